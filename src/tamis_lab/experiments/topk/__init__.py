"""The published experiments about ranked subscriptions: Pripužić's, chapters 3 to 5.

One module for each question. `sizes` says how large they are, `points` where the events lie, `playing` how a stream is
played through one ranking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.experiments.topk import (
    errors_made,
    grids,
    indexes,
    kept,
    limits,
    messages,
    parameters,
    sweeps,
    thresholds,
    times,
    volume,
)

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (limits, kept, times, sweeps, parameters, grids, errors_made, indexes, thresholds, volume, messages)
)

__all__ = ["EXPERIMENTS"]
