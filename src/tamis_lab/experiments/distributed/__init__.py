"""The published experiments about networks without a centre: Pripužić's chapter 6.

`strategies` counts real messages of simulated nodes; `windows`, `totals` and `growth` count those of D-ZaLaPS at sizes
where nothing can be sent (`counting`, over `worlds`). `sizes` says how large they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.experiments.distributed import growth, strategies, totals, windows

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(module.EXPERIMENT for module in (strategies, windows, totals, growth))

__all__ = ["EXPERIMENTS"]
