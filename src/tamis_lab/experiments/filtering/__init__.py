"""The published experiments about filtering: Bittner's on Boolean filtering, Jewel's on the A-Tree.

One module for each question. `subjects` says who is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.experiments.filtering import (
    auction_classes,
    auction_memory,
    auction_time,
    brute_force,
    commonality,
    composite,
    conjunctions,
    conjunctive_load,
    deregistration,
    length,
    match_share,
    normal_forms,
    operators,
    overlap,
    persistence,
    priorities,
    published_structures,
    time_shares,
    tree_variants,
    turning_points,
)

if TYPE_CHECKING:
    from tamis_lab.experiments.base import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT
    for module in (
        turning_points,
        commonality,
        auction_memory,
        auction_time,
        auction_classes,
        conjunctions,
        tree_variants,
        deregistration,
        conjunctive_load,
        published_structures,
        operators,
        length,
        overlap,
        match_share,
        brute_force,
        normal_forms,
        composite,
        persistence,
        priorities,
        time_shares,
    )
)

__all__ = ["EXPERIMENTS"]
