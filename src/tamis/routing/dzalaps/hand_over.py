"""How does a zone move to another peer, and nothing is lost? Hand-over, step by step.

Everybody hears at once who holds which zone (that is the driver's part). Who gives a zone away sends all that lives in
it: subscriptions with their rankings, who is interested in its cells, and the events of recent buffers. Until that has
come, the new owner lets everything wait. Then it tells others what it wants, and after that the old owner that it has
the zone. So long the old owner reaches for what it gave away as before, and forwards the events that it is posted.

Source: ours; the thesis leaves churn to later work (Pripužić 2010, chapter 7, docs/bibliography.md).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, TypeAlias

from tamis.routing.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.routing.dzalaps.merger import Reach
    from tamis.routing.dzalaps.zones import Zone
    from tamis.routing.messages import Passed, Relayed

Part: TypeAlias = tuple[tuple[float, ...], tuple[float, ...], int]
"""A zone as it travels: its lower and its upper corner, and how often it was halved."""


def part_of(zone: Zone) -> Part:
    """Return a zone as it travels."""
    return zone.low, zone.high, zone.depth


class Moves:
    """What a peer waits for, and what it has given away and must not forget yet."""

    def __init__(self) -> None:
        self._awaited: set[Part] = set()
        self._waiting: list[tuple[Passed | Relayed, str]] = []
        self._given: dict[Part, tuple[str, list[Reach]]] = {}
        self._ends: dict[Part, float] = {}
        self.announced: set[str] = set()
        """Who has said what it wants since this peer began to wait: that counts more than what is handed over."""
        self.sources: set[str] = set()
        """Who has handed something over: what they post is forwarded, and for what has moved alone."""

    @property
    def is_open(self) -> bool:
        """Is a zone on its way, to this peer or from it?"""
        return bool(self._awaited or self._given)

    # -- Taking

    def expect(self, zones: Iterable[Zone]) -> None:
        """Wait for zones."""
        awaited = set(map(part_of, zones))
        if awaited and not self._awaited:
            self.announced.clear()
        self._awaited |= awaited

    @property
    def is_waiting(self) -> bool:
        """Is a zone on its way to this peer?"""
        return bool(self._awaited)

    def wait(self, message: Passed | Relayed, source: str) -> None:
        """Let a message wait until all zones are here."""
        self._waiting.append((message, source))

    def check(self, part: Part) -> None:
        """Raise an error unless a zone is awaited."""
        if part not in self._awaited:
            raise MessageError(f"the zone {part!r:.60} is handed over", "a zone that this peer waits for")

    def take(self, part: Part, source: str) -> list[tuple[Passed | Relayed, str]]:
        """Note that a zone is here; return what has waited for it, if it was the last."""
        self._awaited.remove(part)
        self.sources.add(source)
        if self._awaited:
            return []
        waiting, self._waiting = self._waiting, []
        return waiting

    # -- Giving

    def begin(self, zone: Zone, heir: str, reaches: list[Reach]) -> None:
        """Note that a zone is on its way to an heir, and how far what lives in it reached then."""
        self._given[part_of(zone)] = heir, reaches

    def arrived(self, part: Part, until: float) -> None:
        """Note that it is there, and may be forgotten at a time, when all others have heard so."""
        if part in self._given:
            self._ends[part] = until

    @property
    def due(self) -> float:
        """When something may be forgotten."""
        return min(self._ends.values(), default=inf)

    def advance(self, now: float) -> bool:
        """Forget what may be forgotten by now; return whether that is anything."""
        over = [part for part, end in self._ends.items() if end <= now]
        for part in over:
            del self._ends[part], self._given[part]
        return bool(over)

    @property
    def heirs(self) -> list[str]:
        """Who has to be forwarded what this peer is posted."""
        return list(dict.fromkeys(heir for heir, _ in self._given.values()))

    @property
    def reaches(self) -> list[Reach]:
        """What the merger has to reach for on behalf of what is on its way."""
        return [reach for _, reaches in self._given.values() for reach in reaches]
