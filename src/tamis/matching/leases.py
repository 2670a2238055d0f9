"""What ends by itself, and when? Leases, in a queue by time.

A client may lease what it says, and say it again to renew it. What it says without a lease stays until taken back.
Subscriptions that have an end (`until`) are leased in matchers and processors: at that time they are no longer there.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Item = TypeVar("Item")


class Leases(Generic[Item]):
    """Things that end at a time, unless they are leased again.

    >>> leases = Leases()
    >>> leases.lease("a", 5.0), leases.lease("b", 7.0), leases.lease("a", 9.0)
    (None, None, None)
    >>> leases.next_end, list(leases.ended(8.0)), leases.next_end
    (7.0, ['b'], 9.0)
    """

    def __init__(self) -> None:
        self._ends: dict[Item, float] = {}
        self._queue: list[tuple[float, int, Item]] = []  # earlier ends of what was leased again stay until they come up
        self._count = 0

    def __len__(self) -> int:
        return len(self._ends)

    def lease(self, item: Item, end: float | None) -> None:
        """Let a thing end then, whatever was said of it before; never, if no end is given."""
        if end is None:
            self.forget(item)
            return
        self._count += 1
        self._ends[item] = end
        heappush(self._queue, (end, self._count, item))

    def forget(self, item: Item) -> None:
        """Let a thing stay, or be gone already."""
        self._ends.pop(item, None)

    def ended(self, now: float) -> Iterator[Item]:
        """Yield what has ended by now, in the order of time, and forget it."""
        while (end := self.next_end) is not None and end <= now:
            _, _, item = heappop(self._queue)
            del self._ends[item]
            yield item

    def has_ended(self, now: float) -> bool:
        """Has anything ended by now?"""
        return (end := self.next_end) is not None and end <= now

    def end_of(self, item: Item) -> float | None:
        """Return when a thing ends; None if it does not."""
        return self._ends.get(item)

    def ends(self) -> Iterator[tuple[Item, float]]:
        """Yield everything that ends, and when."""
        return iter(self._ends.items())

    @property
    def next_end(self) -> float | None:
        """When something ends next; None if nothing does."""
        while self._queue and self._ends.get(self._queue[0][2]) != self._queue[0][0]:
            heappop(self._queue)
        return self._queue[0][0] if self._queue else None
