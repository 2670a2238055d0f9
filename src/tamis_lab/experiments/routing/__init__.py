"""The published experiments about networks of brokers: Mühl's strategies, Bittner's pruning.

One module for each question. `sizes` says how large they are, `traffic` who wants what and where, `overlays` which
brokers an event gets to, `prunings` what prunings do to that, `covered_tables` what covering does, and `filter_times`
how long brokers take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.experiments.routing import (
    adaptive,
    advertised,
    brokers,
    conjunctive,
    covered_then_pruned,
    covering,
    growing,
    imperfection,
    interest,
    measures,
    overlap,
    pruned_either_side,
    similarity,
    true_system,
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
        adaptive,
        measures,
        conjunctive,
        growing,
        brokers,
        covering,
        covered_then_pruned,
        overlap,
        advertised,
        pruned_either_side,
        true_system,
    )
)

__all__ = ["EXPERIMENTS"]
