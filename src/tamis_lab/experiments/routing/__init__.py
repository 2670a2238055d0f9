"""The published experiments about networks of brokers: Mühl's strategies, Bittner's pruning.

One module for each question. `sizes` says how large they are, `traffic` who wants what and where, `overlays` which
brokers an event gets to, `prunings` what prunings do to that, `coverings` what covering does, and `filter_times` how
long brokers take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.experiments.routing import (
    advertised,
    both,
    both_sides,
    brokers,
    conjunctive,
    covering,
    growing,
    imperfection,
    interest,
    measures,
    overlap,
    similarity,
    way,
)

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        way,
        similarity,
        imperfection,
        interest,
        measures,
        conjunctive,
        growing,
        brokers,
        covering,
        both,
        overlap,
        advertised,
        both_sides,
    )
)

__all__ = ["EXPERIMENTS"]
