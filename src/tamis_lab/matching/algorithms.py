"""Which algorithms of the literature are there? What `tamis.matching` finds here by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.matching.atree.algorithm import ATree, ATreeGeneral, ATreeZero
from tamis_lab.matching.atree.published.algorithm import ATreePublished
from tamis_lab.matching.boolean.algorithm import Boolean
from tamis_lab.matching.cluster import Cluster
from tamis_lab.matching.counting import Counting
from tamis_lab.matching.gryphon import Gryphon

if TYPE_CHECKING:
    from tamis.matching.base import Algorithm

ALGORITHMS: dict[str, type[Algorithm]] = {
    algorithm.name: algorithm
    for algorithm in (Boolean, Counting, Cluster, Gryphon, ATree, ATreeZero, ATreeGeneral, ATreePublished)
}
