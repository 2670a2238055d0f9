"""Which algorithms are there? One table; the conformance suite tests whatever stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.matching.block.algorithm import Block
from tamis.matching.naive import Naive
from tamis.matching.published.atree.algorithm import ATree, ATreeGeneral, ATreeZero
from tamis.matching.published.boolean.algorithm import Boolean
from tamis.matching.published.cluster import Cluster
from tamis.matching.published.counting import Counting
from tamis.matching.published.gryphon import Gryphon

if TYPE_CHECKING:
    from tamis.matching.base import Algorithm

ALGORITHMS: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm
    for algorithm in (Block, Naive, Boolean, Counting, Cluster, Gryphon, ATree, ATreeZero, ATreeGeneral)
}
