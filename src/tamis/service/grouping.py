"""How do publications of several sessions become one group of events? A batch, from which repetitions are left out.

An event whose key is known was taken before: it is not taken again, and its publication is answered with the position
that it has. The same holds within the group: whoever comes second gets the position of the first. An event that a
neighbour sends another way, because a link failed, is taken here at most once, and passed on in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tamis.service.log.base import LATE, REROUTED, is_rerouted
from tamis.service.messages import Incoming, Publish, Published, Say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.service.event_keys import EventKeys
    from tamis.service.links.neighbours import Neighbour


class WaitingPublication(msgspec.Struct):
    """A publication that waits for its answer."""

    session: int
    request: int
    asks_wanted: bool
    places: list[tuple[bool, int]] = []
    """Of each event: whether it is new, and its index in the group or the position that it has."""
    known_count: int = 0

    def positions(self, given: Sequence[int]) -> tuple[int, ...]:
        """Return the positions of its events, if those of the group were given these."""
        return tuple(given[place] if is_new else place for is_new, place in self.places)

    def answer(self, given: Sequence[int], wanted: Sequence[int] | None, *, is_durable: bool) -> Say:
        """Return what its publisher is told, if the events of the group were given these positions.

        `wanted` is how many want each event of the group; nobody counted them for an event that was known.
        """
        positions = self.positions(given)
        counts = None
        if self.asks_wanted and wanted is not None:
            counts = tuple(wanted[place] if is_new else None for is_new, place in self.places)
        last = max(positions, default=0)
        return Say(self.session, Published(self.request, last, positions, self.known_count, is_durable, counts))


class PublicationGroup:
    """The new events of several publications.

    >>> from tamis.service.event_keys import EventKeys
    >>> keys = EventKeys()
    >>> keys.remember([("a", 7)], now_us=0)
    >>> group = PublicationGroup(keys)
    >>> events = [Incoming(key, b"{}", {}) for key in "abb"]
    >>> group.add(3, Publish(1, tuple(events)), events)
    >>> [event.key for event in group.events], group.known_count
    (['b'], 2)
    >>> group.publications[0].positions(range(8, 9))
    (7, 8, 8)
    """

    def __init__(self, keys: EventKeys) -> None:
        self._keys = keys
        self.events: list[Incoming] = []
        self.sources: list[str] = []
        """Of each event: the neighbour that sent it, or nobody."""
        self.new: dict[str, int] = {}
        """The keys of the events that were not known, and their indices in the group."""
        self.publications: list[WaitingPublication] = []
        self.relayed: list[tuple[Neighbour, WaitingPublication]] = []
        """Those of neighbours."""

    @property
    def known_count(self) -> int:
        """How many events were repetitions."""
        return sum(publication.known_count for publication in self.publications)

    def add(
        self, session: int, request: Publish, events: Sequence[Incoming], neighbour: Neighbour | None = None
    ) -> None:
        """Take the events of a publication that may be taken."""
        source = "" if neighbour is None else neighbour.peer
        publication = WaitingPublication(session, request.request, request.asks_wanted)
        for event in events:
            position = self._keys.get(event.key)
            if position is None and event.key not in self.new:
                self.new[event.key] = len(self.events)
                publication.places.append((True, len(self.events)))
                self._take(_taken_here(event), source)
            else:
                publication.known_count += 1
                publication.places.append((True, self.new[event.key]) if position is None else (False, position))
            if is_rerouted(event.flags):  # whether it is new here or not: neighbours may miss it
                publication.places.append((True, len(self.events)))
                self._take(event, source)
        self.publications.append(publication)
        if neighbour is not None:
            self.relayed.append((neighbour, publication))

    def _take(self, event: Incoming, source: str) -> None:
        self.events.append(event)
        self.sources.append(source)


def _taken_here(event: Incoming) -> Incoming:
    """Return an event as one that is for everybody here; what went another way may come behind later events."""
    if not is_rerouted(event.flags):
        return event
    return Incoming(event.key, event.body, event.record, event.flags & ~REROUTED | LATE)
