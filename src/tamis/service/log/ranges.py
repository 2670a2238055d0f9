"""What comes next in the log? A reader that goes on where it stopped (read-ahead).

A log is read some megabytes at a time, and a pass looks at some hundred events at a time. So what was read and not
asked for yet is kept: the next part is nearly always the one behind it, or a little of the same once more.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.service.log.base import Block, EventLog


class RangeReader:
    """Reads a log part by part.

    >>> from tamis.service.log.base import Block
    >>> from tamis.service.log.memory import MemoryLog
    >>> log = MemoryLog()
    >>> _ = log.append([Block(first, 0, (b"{}", b"{}"), bytes(2)) for first in (1, 3, 5, 7)])
    >>> reader = RangeReader(log)
    >>> for first in (1, 4, 8):
    ...     blocks, through = reader.read(first, 8, count=3)
    ...     print([block.first for block in blocks], through)
    [1, 3] 4
    [3, 5] 6
    [7] 8
    """

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._blocks: deque[Block] = deque()
        """What was read from the position `_first` on and may be asked for again."""
        self._rest: Iterator[Block] = iter(())
        """What follows, up to `_last`."""
        self._first, self._last = 1, 0

    def read(self, first: int, last: int, count: int) -> tuple[list[Block], int]:
        """Return blocks with events from `first` to `last`, until there are `count`, and through where these are all.

        The log has everything up to `last` now.
        """
        behind = self._blocks[-1].last + 1 if self._blocks else self._first
        if not self._first <= first <= min(behind, self._last):
            self._blocks.clear()
            self._rest, self._last = self._log.read(first, last), last
        self._first = first
        while self._blocks and self._blocks[0].last < first:
            self._blocks.popleft()
        read = 0
        for number, block in enumerate(self._blocks):
            read += len(block.events)
            if read >= count:
                return list(self._blocks)[: number + 1], block.last
        for block in self._rest:
            self._blocks.append(block)
            read += len(block.events)
            if read >= count:
                return list(self._blocks), block.last
        return list(self._blocks), self._last
