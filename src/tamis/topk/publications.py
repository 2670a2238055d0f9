"""What does a processor accept as an event that is published, and when is it one that came before? Idempotency keys.

Every processor of stateful subscriptions takes events in the same way: with a finite time, with an id that it gives
where the caller has none, and perhaps with the time at which they expire. An id is an idempotency key: the latest ids
are remembered, and an event that comes again under one of them is counted and left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from tamis.errors import EventError
from tamis.matching.columns import Events
from tamis.topk.lateness import Change, Publication

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.matching.tables import Batch


def publication_of(event: Mapping[str, Any], now: float, id: Any, expires: float | None) -> Publication:
    """Return an event as it is published, or raise.

    >>> publication_of({"price": 12}, 1, "e1", None)
    Publication(at=1.0, event={'price': 12}, id='e1', expires=inf)
    """
    if not isinstance(event, Mapping):
        raise EventError(f"an event must be a mapping from names to values, not {type(event).__name__}")
    return Publication(moment_of(now), event, id, _end_of(expires))


def publications_of(
    events: Batch, now: float | Sequence[float], ids: Sequence[Any] | None, expires: Sequence[float] | None
) -> list[Change]:
    """Return the events of a batch as they are published; `now` is the time of each, or of all.

    >>> [change.at for change in publications_of([{"price": 12}, {"price": 13}], [1, 2], None, None)]
    [1.0, 2.0]
    """
    mappings = Events(events).mappings()
    times = [now] * len(mappings) if isinstance(now, int | float) else list(now)
    names = [None] * len(mappings) if ids is None else list(ids)
    ends = [math.inf] * len(mappings) if expires is None else list(expires)
    if not len(mappings) == len(times) == len(names) == len(ends):
        raise EventError(f"there are {len(mappings)} events, {len(times)} times, {len(names)} ids and {len(ends)} ends")
    return [
        Publication(moment_of(time), event, name, _end_of(end))
        for event, time, name, end in zip(mappings, times, names, ends, strict=True)
    ]


def moment_of(now: Any) -> float:
    """Return a time in seconds, or raise if it is none that has a place among others."""
    if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now):
        raise EventError(f"a time must be a finite number of seconds, not {now!r}")
    return float(now)


def moments_of(times: list[Any]) -> list[float]:
    """Return the times of a batch in seconds, or raise. Where all are floats it is enough to look at them at once.

    >>> moments_of([1, 2.5])
    [1.0, 2.5]
    """
    if set(map(type, times)) == {float} and all(map(math.isfinite, times)):
        return times
    return list(map(moment_of, times))


def _end_of(expires: Any) -> float:
    if expires is None:
        return math.inf
    if isinstance(expires, bool) or not isinstance(expires, int | float) or math.isnan(expires):
        raise EventError(f"an event must expire at a number of seconds, not {expires!r}")
    return float(expires)


class SeenIds:
    """The latest ids of events, so that an event that comes again changes nothing.

    >>> seen = SeenIds(most=2)
    >>> [seen.admit(Publication(0.0, {}, id, math.inf)) for id in ("a", "b", "a", "c", "a")]
    [True, True, False, True, True]
    >>> seen.repeated
    1
    """

    def __init__(self, most: int, ids: Iterable[Any] = (), next_id: int = 0) -> None:
        """Remember the latest `most` ids; `ids` and `next_id` are those of a processor that goes on here."""
        self.most = most
        self.repeated = 0
        """So many events came again."""
        self.next_id = next_id
        """The next number for an event that has no id."""
        self._ids: dict[Any, None] = dict.fromkeys(ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, event_id: Any) -> bool:
        return event_id in self._ids

    def __iter__(self) -> Iterator[Any]:
        return iter(self._ids)

    def admit(self, publication: Publication) -> bool:
        """Give an event its id and remember it; return whether it comes for the first time."""
        if publication.id is None:
            while self.next_id in self._ids:
                self.next_id += 1
            publication.id = self.next_id
            self.next_id += 1
        if publication.id in self._ids:
            self.repeated += 1
            return False
        self._ids[publication.id] = None
        if len(self._ids) > self.most:
            del self._ids[next(iter(self._ids))]
        return True

    def admit_all(self, ids: Sequence[Any] | None, count: int) -> list[Any] | None:
        """Remember the ids of many events, and return them, if every event comes for the first time; else do nothing.

        Without ids they get numbers. Then ask one by one who comes again.

        >>> seen = SeenIds(most=3)
        >>> seen.admit_all(None, 2), seen.admit_all(["a", "b"], 2), seen.admit_all(["b"], 1), list(seen)
        ([0, 1], ['a', 'b'], None, [1, 'a', 'b'])
        """
        given = range(self.next_id, self.next_id + count) if ids is None else ids
        if ids is not None and (None in ids or len(set(ids)) < count):
            return None
        if not self._ids.keys().isdisjoint(given):
            return None
        if ids is None:
            self.next_id += count
        admitted = list(given)
        self._ids |= dict.fromkeys(admitted)
        for old in list(islice(self._ids, max(0, len(self._ids) - self.most))):
            del self._ids[old]
        return admitted
