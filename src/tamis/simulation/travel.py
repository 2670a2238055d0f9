"""How do messages travel between brokers? Links: delay, loss, duplication, order.

A message takes a random time on its link. Links keep their order, and know nothing of each other, so messages overtake
each other on different ways. A link may deliver a message a second time, perhaps after later ones. What is under way
on a link that fails is lost, also if the link is soon up again.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tamis.routing import Message


class Numbered(NamedTuple):
    """A control message of which the sender wants to know when it is settled."""

    number: int
    message: Message


class SettledThrough(NamedTuple):
    """All up to this number is settled at the sender."""

    number: int


_POSTED = -1
"""In place of the link, for what does not travel on one."""

Frame: TypeAlias = "Message | Numbered | SettledThrough"


class Travel:
    """What is under way, and on which links.

    >>> from random import Random
    >>> from tamis.routing import ResumeFiltering
    >>> travel = Travel(Random(1), (0.5, 1.0))
    >>> travel.open("a", "b")
    >>> travel.send("a", "b", ResumeFiltering(), now=0.0)
    >>> 0.5 <= travel.next_s <= 1.0, travel.arrive()
    (True, ('a', 'b', ResumeFiltering()))
    >>> travel.next_s
    inf
    """

    def __init__(self, chance: Random, delays_s: tuple[float, float]) -> None:
        self.duplicate_share = 0.0
        """The share of messages that links deliver twice."""
        self._chance = chance
        self.delays_s = delays_s
        """How long messages take that leave from now on, at least and at most."""
        self._arrivals: list[tuple[float, int, str, str, int, Frame]] = []
        self._count = 0
        self._latest: dict[tuple[str, str], float] = {}
        self._links: dict[frozenset[str], int] = {}

    def open(self, one: str, two: str) -> None:
        """Let a link come up."""
        self._count += 1
        self._links[frozenset((one, two))] = self._count

    def close(self, one: str, two: str) -> None:
        """Let it fail."""
        del self._links[frozenset((one, two))]

    def is_open(self, one: str, two: str) -> bool:
        """Does a link work?"""
        return frozenset((one, two)) in self._links

    def send(self, source: str, target: str, message: Frame, now: float) -> None:
        """Let a message leave on a link that works."""
        arrives = max(now + self._chance.uniform(*self.delays_s), self._latest.get((source, target), 0.0))
        self._latest[source, target] = arrives
        times = [arrives]
        if self.duplicate_share and self._chance.random() < self.duplicate_share:
            times.append(arrives + self._chance.choice((0, 1, 3)) * self._chance.uniform(*self.delays_s))
        link = self._links[frozenset((source, target))]
        for each in times:
            self._count += 1
            heappush(self._arrivals, (each, self._count, source, target, link, message))

    def post(self, source: str, target: str, message: Frame, now: float) -> None:
        """Let a message leave by the network below, which reaches everybody, in as much time as a link takes."""
        arrives = max(now + self._chance.uniform(*self.delays_s), self._latest.get((source, target), 0.0))
        self._latest[source, target] = arrives
        self._count += 1
        heappush(self._arrivals, (arrives, self._count, source, target, _POSTED, message))

    @property
    def next_s(self) -> float:
        """When the next message arrives; infinity if there is none."""
        return self._arrivals[0][0] if self._arrivals else inf

    def arrive(self) -> tuple[str, str, Frame] | None:
        """Return from where to where the next message went, and the message; None if its link has failed since."""
        _, _, source, target, link, message = heappop(self._arrivals)
        is_open = link == _POSTED or self._links.get(frozenset((source, target))) == link
        return (source, target, message) if is_open else None

    def __len__(self) -> int:
        return len(self._arrivals)

    def __iter__(self) -> Iterator[tuple[str, str, Message]]:
        """Yield what is under way, in the order in which it will arrive."""
        for _, _, source, target, _, frame in sorted(self._arrivals):
            if isinstance(frame, Numbered):
                yield source, target, frame.message
            elif not isinstance(frame, SettledThrough):
                yield source, target, frame
