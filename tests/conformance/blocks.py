"""How are few events matched as a block, or as many blocks?

The product matches some 8,000 events at a time, and a handful one by one; but the last block of any batch may be as
small as one event. Here the sizes are set, for all algorithms at once.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from unittest.mock import patch

from tamis.matching.block import algorithm
from tamis_lab.matching import snapshots
from tamis_lab.matching.boolean import grove

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZES = ((algorithm, "BLOCK"), (snapshots, "BLOCK"), (grove, "BLOCK"))


@contextmanager
def blocks_of(size: int) -> Iterator[list[int]]:
    """Match all batches in blocks of so many events, however few they are; gives the sizes of the flagship's blocks."""
    seen: list[int] = []
    match_block = algorithm.BlockSnapshot._match_block

    def counting(self, events, *rest):
        seen.append(events.count)
        return match_block(self, events, *rest)

    with ExitStack() as stack:
        for module, name in _SIZES:
            stack.enter_context(patch.object(module, name, size))
        stack.enter_context(patch.object(algorithm, "are_few", lambda parts, events: events.count == 0))
        stack.enter_context(patch.object(algorithm.BlockSnapshot, "_match_block", counting))
        yield seen
