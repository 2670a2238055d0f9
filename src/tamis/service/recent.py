"""Which events came last? A ring buffer of blocks.

The latest blocks stay in memory up to a number of bytes, so that those who are a little behind need no disk. Blocks
are added in the order of their positions.
"""

from __future__ import annotations

from bisect import bisect_left

from tamis.service.log.base import Block

_GONE = Block(1, 0, (b"",), b"\0")
"""What stands in the place of a block that was let go."""
EVENT_BYTES = 50
"""So much memory an event takes besides its own bytes."""


class Recent:
    """The latest blocks, by position.

    >>> recent = Recent(most_bytes=120)
    >>> for first in (1, 3, 5):
    ...     recent.add(Block(first, 0, (b"four", b"4444"), bytes(2)))
    >>> recent.let_go(through=4)
    >>> recent.first, [block.first for block in recent.read(6, 9)]
    (5, [5])
    """

    def __init__(self, most_bytes: int, after: int = 0) -> None:
        self._blocks: list[Block] = []
        self._lasts: list[int] = []
        self._start = 0  # blocks before this index are gone; the lists are cut now and then, not for each block
        self._size_bytes = 0
        self._most_bytes = most_bytes
        self._after = after

    @property
    def first(self) -> int:
        """From this position on every event is here."""
        return self._after + 1

    @property
    def last(self) -> int:
        """The position of the newest event that is here, or was."""
        return self._lasts[-1] if self._lasts else self._after

    def add(self, block: Block) -> None:
        """Take the newest block."""
        self._blocks.append(block)
        self._lasts.append(block.last)
        self._size_bytes += _memory_of(block)

    def let_go(self, through: int) -> None:
        """Let go of the oldest blocks that are too many, of those up to a position: they are on disk."""
        while (
            self._size_bytes > self._most_bytes
            and self._start < len(self._blocks) - 1
            and self._lasts[self._start] <= through
        ):
            gone = self._blocks[self._start]
            self._blocks[self._start] = _GONE  # its events must not wait in memory until the lists are cut
            self._start += 1
            self._size_bytes -= _memory_of(gone)
            self._after = gone.last
        if self._start > 1024 and self._start * 2 > len(self._blocks):
            del self._blocks[: self._start], self._lasts[: self._start]
            self._start = 0

    def read(self, first: int, last: int) -> list[Block]:
        """Return the blocks that have an event from `first` to `last`, whole."""
        begin = max(bisect_left(self._lasts, first), self._start)
        end = begin
        while end < len(self._blocks) and self._blocks[end].first <= last:
            end += 1
        return self._blocks[begin:end]

    def remove(self, first: int) -> None:
        """Forget the block that begins at a position: it was not written."""
        for index in range(self._start, len(self._blocks)):
            if self._blocks[index].first == first:
                self._size_bytes -= _memory_of(self._blocks[index])
                del self._blocks[index], self._lasts[index]
                return


def _memory_of(block: Block) -> int:
    return block.size_bytes + EVENT_BYTES * len(block.events)
