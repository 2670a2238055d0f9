"""How do many subscriptions with a threshold take an event, if most of them need not look at it?

An index over their thresholds says whom an event interests, when it comes and again when it leaves the recent buffer
(`interest`). Apart from these only those look at it who have to do something now: whom something leaves, whose filter
forgets what has left the buffer, or whose guard wants a sample. Answers are those without an index: what is beyond a
threshold changes nothing.

Subscriptions with a condition (WHERE) are found by the matcher of conditions and look at all that passes it.

Source: Pripužić 2010, section 3.6.1, figure 3.11 (docs/bibliography.md).
Departs: a filter is not told of what is beyond its k-th best, so it may forget what would follow when one of these
leaves; any k events of the buffer will do, so that costs insertions and no answers.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from tamis.topk.guard import Guarded
from tamis.topk.interest import ThresholdIndex
from tamis.topk.per_subscription import PerSubscription, Query
from tamis.topk.probabilistic import Probabilistic
from tamis.topk.rates import WindowCount, with_room
from tamis.topk.recent_buffer import Filtered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.language.schema import Schema
    from tamis.relations.families import Family
    from tamis.topk.base import Arrival, Ranking, Report
    from tamis.topk.ranked import Ranked
    from tamis.topk.recent_buffer import RecentBuffer


class Indexed(PerSubscription):
    """A ranking for each subscription, and an index over their thresholds for each family of scores."""

    def __init__(self, make: Callable[[Ranked], Ranking], schema: Schema | None = None, *, index: str) -> None:
        super().__init__(make, schema)
        self._index = index
        self._interests: dict[Family, ThresholdIndex] = {}
        self._waking: dict[str, list[tuple[float, int]]] = {"number": [], "time": [], "expulsion": []}
        """Who has to look, and when: at a number, at a time, or when that number leaves its buffer."""
        self._woken: dict[tuple[str, int], float] = {}
        self._counts: dict[float, tuple[WindowCount, dict[int, Query]]] = {}
        """By the length of a time window, how many events it has, and whom that concerns."""
        self._told: dict[float, int] = {}

    # -- Subscriptions

    def add(self, handle: int, ranked: Ranked, number: int, until: float = math.inf) -> None:
        super().add(handle, ranked, number, until)
        query = self._queries[handle]
        assert query.group is not None
        interests = self._interests.setdefault(query.group.family, ThresholdIndex(query.group, self._index))
        interests.add(query.slot, handle, is_sought=not query.is_guarded)
        if not query.is_guarded and query.is_timed and isinstance(query.ranking, Probabilistic | Guarded):
            count, members = self._counts.setdefault(query.span, (WindowCount(query.span), {}))
            members[handle] = query
            query.seen = None
            if isinstance(query.ranking, Guarded):
                query.ranking.share(count)
            _prepare(query.ranking, self._told.get(query.span, 1))
        self._changed(query)

    def remove(self, handle: int) -> None:
        query = self._queries[handle]
        assert query.group is not None
        self._interests[query.group.family].remove(query.slot)
        if query.span in self._counts:
            members = self._counts[query.span][1]
            members.pop(handle, None)
            if not members:
                del self._counts[query.span]
                self._told.pop(query.span, None)
        for kind in self._waking:
            self._woken.pop((kind, handle), None)
        super().remove(handle)
        if query.group.family not in self._groups:
            del self._interests[query.group.family]

    # -- Events

    def arrive(self, arrivals: Sequence[Arrival]) -> list[Report]:
        reports: list[Report] = []
        for step, arrival in enumerate(arrivals):
            elapsed = self._room_made(arrival, step)
            self._count(arrival.at)
            keys: dict[int, float] = {}
            for interests in self._interests.values():
                interests.read(arrival.event, is_sampled=True)
                keys |= interests.interested()
            awake = [*self._awake("number", arrival.number), *self._awake("time", arrival.at)]
            for handle in [*awake, *arrival.guarded.tolist()]:
                if handle not in keys:
                    keys[handle] = self._key(self._queries[handle])
            for handle in sorted(keys):
                query = self._queries[handle]
                self._tell_key(query, arrival, keys[handle], step, elapsed)
                self._changed(query)
            reports += sorted(elapsed, key=lambda report: (report[1], report[2]))
        return reports

    def _key(self, query: Query) -> float:
        assert query.group is not None
        return self._interests[query.group.family].key(query.slot)

    def _expel(
        self, buffer: RecentBuffer, expelled: list[Arrival], at: float, step: int, reports: list[Report]
    ) -> None:
        for arrival in expelled:
            for handle in self._awake("expulsion", arrival.number):
                query = self._queries[handle]
                assert isinstance(query.ranking, Filtered)
                query.ranking.expel(arrival.number)
                self._changed(query)
            keys: dict[int, float] = {}
            for interests in self._interests.values():
                interests.read(arrival.event, is_sampled=False)
                keys |= interests.interested()
            for handle in arrival.guarded.tolist():
                if handle in self._queries:
                    keys[handle] = self._key(self._queries[handle])
            for handle in sorted(keys):
                query = self._queries[handle]
                if handle in buffer.members and arrival.number >= query.since:
                    entering = query.try_again(arrival, keys[handle])
                    reports += [(step, at, handle, each) for each in entering]
                    self._changed(query)

    def _count(self, at: float) -> None:
        """Count the windows of all lengths; who keeps candidates hears of it when there are many more than before."""
        for span, (count, members) in self._counts.items():
            if count.add(at) > self._told.get(span, 0):
                self._told[span] = with_room(count.total)
                for query in members.values():
                    _prepare(query.ranking, self._told[span])
                    self._changed(query)

    # -- Who has to look

    def _awake(self, kind: str, until: float) -> list[int]:
        """Return who has to look by now."""
        waking = self._waking[kind]
        awake = []
        while waking and waking[0][0] <= until:
            when, handle = heappop(waking)
            if self._woken.get((kind, handle)) == when:
                del self._woken[kind, handle]
                awake.append(handle)
        return awake

    def _wake(self, kind: str, handle: int, when: float) -> None:
        before = self._woken.get((kind, handle), math.inf)
        if when < before:
            self._woken[kind, handle] = when
            heappush(self._waking[kind], (when, handle))

    def _changed(self, query: Query) -> None:
        assert query.group is not None
        ranking, handle = query.ranking, query.handle
        if not query.is_guarded:
            self._interests[query.group.family].moved(query.slot, ranking.threshold)
            if not query.is_timed:
                self._wake("number", handle, ranking.due)
            if isinstance(ranking, Guarded):
                self._wake("time" if query.is_timed else "number", handle, ranking.next_look)
        if isinstance(ranking, Filtered):
            self._wake("expulsion", handle, ranking.filter.due)


def _prepare(ranking: Ranking, n: int) -> None:
    if isinstance(ranking, Guarded):
        ranking.prepare(n)
    else:
        ranking.expect(n)
