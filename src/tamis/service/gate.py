"""What may be said before it is on disk? Nothing: a gate that opens by durability (a commit barrier).

The node decides what to answer while the disk is still at work, and hands the answer to the gate together with what it
depends on: a position of the log, a number of the state, or both. It comes out when both are on disk.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.service.messages import Output


class Gate:
    """Answers that wait for the log and the state.

    >>> gate = Gate(logged=5, kept=0)
    >>> gate.hold("a", logged=5), gate.hold("b", logged=7), gate.hold("c", logged=6, kept=1)
    (['a'], [], [])
    >>> gate.on_disk(7), gate.on_kept(1)
    (['b'], ['c'])
    """

    def __init__(self, logged: int = 0, kept: int = 0) -> None:
        self.logged, self.kept = logged, kept
        self._by_log: list[tuple[int, int, int, Output]] = []
        self._by_state: list[tuple[int, int, Output]] = []
        self._count = 0  # two answers that wait for the same come out in the order in which they went in

    def __len__(self) -> int:
        return len(self._by_log) + len(self._by_state)

    def hold(self, output: Output, logged: int = 0, kept: int = 0) -> list[Output]:
        """Return an output if it may be said now; keep it otherwise."""
        if logged <= self.logged and kept <= self.kept:
            return [output]
        self._count += 1
        if logged > self.logged:
            heappush(self._by_log, (logged, self._count, kept, output))
        else:
            heappush(self._by_state, (kept, self._count, output))
        return []

    def on_disk(self, through: int) -> list[Output]:
        """The log is on disk up to a position; return what may be said now."""
        self.logged = max(self.logged, through)
        open_now: list[Output] = []
        while self._by_log and self._by_log[0][0] <= self.logged:
            _, _, kept, output = heappop(self._by_log)
            open_now += self.hold(output, kept=kept)
        return open_now

    def on_kept(self, through: int) -> list[Output]:
        """The state is on disk up to a number; return what may be said now."""
        self.kept = max(self.kept, through)
        open_now: list[Output] = []
        while self._by_state and self._by_state[0][0] <= self.kept:
            open_now.append(heappop(self._by_state)[2])
        return open_now

    def withdraw(self, is_void: Callable[[Output], bool]) -> list[Output]:
        """Take back what waits for the log and is not to be said any more; return it in its order."""
        void = [each for each in self._by_log if is_void(each[3])]
        valid = [each for each in self._by_log if not is_void(each[3])]
        self._by_log = sorted(valid, key=lambda each: each[:2])  # a sorted list is a heap
        return [output for _, _, _, output in sorted(void, key=lambda each: each[1])]
