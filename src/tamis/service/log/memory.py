"""What if nothing has to outlive the process? A log in memory: the definition of a log.

It does what every `EventLog` does, in the plainest way, and forgets everything at its end: for tests, for trying
things out, and as what the other logs are compared with.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left
from typing import TYPE_CHECKING

from tamis.service.errors import LogError
from tamis.service.log.base import Block, Extent, Gap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class MemoryLog:
    """A log that lasts as long as its process; it is cut into extents of some bytes.

    >>> log = MemoryLog()
    >>> _ = log.append([Block(1, 7, (b"{}", b"{}"), bytes(2)), Block(3, 9, (b"{}",), bytes(1))])
    >>> [(block.first, block.last) for block in log.read(2, 3)], log.position_at(8)
    ([(1, 2), (3, 3)], 3)
    """

    is_shared = False
    block_positions = 1

    def __init__(self, extent_bytes: int = 4 << 20) -> None:
        self.epoch = secrets.token_hex(4)
        self._extent_bytes = extent_bytes
        self._blocks: list[Block] = []
        self._cuts: list[int] = [1]
        """The first positions of the extents."""
        self._open_bytes = 0
        self._last, self._time_us = 0, 0
        self._is_closed = False

    @property
    def first(self) -> int:
        """The position of the oldest event that is still there; 1 more than the last one if there is none."""
        return self._cuts[0]

    @property
    def last(self) -> int:
        """The position of the newest event; 0 if there never was one."""
        return self._last

    @property
    def last_time_us(self) -> int:
        """When the newest block was taken, also if it has been dropped; 0 if there never was one."""
        return self._time_us

    def append(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Add blocks; each begins behind the one before."""
        if self._is_closed:
            raise LogError("the log is closed")
        for block in blocks:
            assert block.first > self._last, f"position {block.first} does not follow {self._last}"
            assert block.time_us >= self._time_us, "time does not go backwards"
            if self._open_bytes >= self._extent_bytes:
                self._cuts.append(block.first)
                self._open_bytes = 0
            self._open_bytes += block.size_bytes
            self._blocks.append(block)
            self._last, self._time_us = block.last, block.time_us
        return tuple(blocks)

    def read(self, first: int, last: int) -> Iterator[Block]:
        """Yield the blocks that have an event from `first` to `last`, whole, in order."""
        blocks = self._blocks  # `drop` makes a new list, so what is read now stays
        index = bisect_left(blocks, first, key=lambda block: block.last)
        while index < len(blocks) and blocks[index].first <= last:
            yield blocks[index]
            index += 1

    def gaps(self) -> tuple[Gap, ...]:
        """Return what a repair has left out: nothing."""
        return ()

    def position_at(self, time_us: int) -> int:
        """Return the position of the first event taken at or after a time; 1 more than the last if none was."""
        blocks = self._blocks
        index = bisect_left(blocks, time_us, key=lambda block: block.time_us)
        return blocks[index].first if index < len(blocks) else self._last + 1

    def extents(self) -> tuple[Extent, ...]:
        """Return the parts that can be dropped, oldest first."""
        ends = [*(cut - 1 for cut in self._cuts[1:]), self._last]
        parts = [(first, last, list(self.read(first, last))) for first, last in zip(self._cuts, ends, strict=True)]
        return tuple(
            Extent(first, last, blocks[-1].time_us, sum(block.size_bytes for block in blocks))
            for first, last, blocks in parts
            if blocks
        )

    def drop(self, before: int) -> int:
        """Drop the extents all of whose events come before a position; return the new `first`."""
        for extent in self.extents():
            if extent.last < before:
                self._blocks = [block for block in self._blocks if block.first > extent.last]
                self._cuts = self._cuts[1:] or [extent.last + 1]
                self._open_bytes = self._open_bytes if self._blocks else 0
        return self.first

    def close(self) -> None:
        """Take nothing more."""
        self._is_closed = True
