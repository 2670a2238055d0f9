"""Which algorithms of the literature are there? What `tamis.matching` finds here by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis_lab.matching.atree.algorithm import ATree, ATreeGeneral, ATreeZero
from tamis_lab.matching.atree.published.algorithm import ATreePublished
from tamis_lab.matching.boolean.algorithm import Boolean
from tamis_lab.matching.cluster import Cluster
from tamis_lab.matching.counting import Counting
from tamis_lab.matching.gryphon import Gryphon
from tamis_lab.matching.surveyed.access import ClusterSeveral
from tamis_lab.matching.surveyed.sliced import CountingSliced

if TYPE_CHECKING:
    from tamis.matching.base import Algorithm

_CLASSES: tuple[type[Algorithm], ...] = (Boolean, Counting, Cluster, Gryphon, ATree, ATreeZero, ATreeGeneral)
_FOR_COMPARISON: tuple[type[Algorithm], ...] = (ATreePublished, CountingSliced, ClusterSeveral)
ALGORITHMS: dict[str, type[Algorithm]] = {each.name: each for each in (*_CLASSES, *_FOR_COMPARISON)}
