"""Which algorithms are there? One table; the conformance suite tests whatever stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.matching.block.algorithm import Block
from tamis.matching.naive import Naive

if TYPE_CHECKING:
    from tamis.matching.base import Algorithm

ALGORITHMS: dict[str, type[Algorithm]] = {algorithm.name: algorithm for algorithm in (Block, Naive)}
