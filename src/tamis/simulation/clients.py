"""What does a client remember?

What it wants, what it may publish, and until when: a client that leases something forgets it when the lease ends,
whether its broker is there or not. It counts for itself. A broker that counts otherwise is found out.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.expressions import Expression
    from tamis.routing.messages import Key
    from tamis.topk import Ranked

Wish: TypeAlias = tuple[bool, "Key"]
"""Whether it is an advertisement, and what the client calls it."""


class SimulatedClient:
    """Somebody at a broker, and what it wants and may publish.

    >>> from tamis.language.expressions import TRUE
    >>> client = SimulatedClient("ann", "b0")
    >>> client.say(True, "all", TRUE)
    >>> client.advertisements, client.subscriptions
    ({'all': ...}, {})
    """

    def __init__(self, name: str, home: str) -> None:
        self.name = name
        self.home = home
        self.is_connected = True
        self.subscriptions: dict[Key, Expression | Ranked] = {}
        self.advertisements: dict[Key, Expression] = {}
        self.ends: dict[Wish, float] = {}
        """When that ends which is leased."""

    def said(self, is_advertisement: bool) -> dict[Key, Expression]:
        """Return what it advertised, or what it subscribed to."""
        return self.advertisements if is_advertisement else self.subscriptions

    def say(self, is_advertisement: bool, key: Key, filter_: Expression, end: float | None = None) -> None:
        """Remember a wish, until its end if it has one."""
        self.said(is_advertisement)[key] = filter_
        if end is None:
            self.ends.pop((is_advertisement, key), None)
        else:
            self.ends[is_advertisement, key] = end

    def forget(self, is_advertisement: bool, key: Key) -> None:
        """Want it no longer."""
        del self.said(is_advertisement)[key]
        self.ends.pop((is_advertisement, key), None)


class Ends:
    """The ends of all that clients have leased, in the order of time.

    >>> client, ends = SimulatedClient("ann", "b0"), Ends()
    >>> from tamis.language.expressions import TRUE
    >>> for key, end in (("s", 5.0), ("t", 7.0), ("s", 9.0)):
    ...     client.say(False, key, TRUE, end)
    ...     ends.add(client, (False, key))
    >>> ends.next_s, [wish for _, wish in ends.until(8.0)], ends.next_s
    (7.0, [(False, 't')], 9.0)
    """

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, SimulatedClient, Wish]] = []
        self._count = 0

    def add(self, client: SimulatedClient, wish: Wish) -> None:
        """Take note of a lease; an earlier one of the same wish holds no longer."""
        self._count += 1
        heappush(self._queue, (client.ends[wish], self._count, client, wish))

    @property
    def next_s(self) -> float:
        """When the next one ends; infinity if none does."""
        while self._queue and self._queue[0][2].ends.get(self._queue[0][3]) != self._queue[0][0]:
            heappop(self._queue)
        return self._queue[0][0] if self._queue else inf

    def until(self, now: float) -> Iterator[tuple[SimulatedClient, Wish]]:
        """Yield whose leases end by now, and let the client forget what it leased."""
        while self.next_s <= now:
            _, _, client, wish = heappop(self._queue)
            client.forget(*wish)
            yield client, wish
