"""How do many subscriptions with a ranking each take an event?

One after the other. Scores are computed for all subscriptions of a family at once, because that is not what the
algorithms differ in; then every subscription is told of the arrival, and of what leaves. One recent buffer serves all
subscriptions with filters that have a buffer of that length; one heap knows who loses something next.

Source: Pripužić 2010, section 3.6 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import TRUE
from tamis.topk.ageing import family_of
from tamis.topk.base import Arrival, Candidate, RankingAlgorithm
from tamis.topk.ending import Ending
from tamis.topk.errors import SettingError
from tamis.topk.guard import Guarded
from tamis.topk.probabilistic import Probabilistic
from tamis.topk.rates import WindowCount
from tamis.topk.recent_buffer import BufferSize, Filtered, RecentBuffer
from tamis.topk.relaxed import Relaxed
from tamis.topk.scores import key
from tamis.topk.scoring import Group
from tamis.topk.strict import Strict
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.language.schema import Schema
    from tamis.relations.families import Family
    from tamis.topk.base import Ranking, Report
    from tamis.topk.guard import OrderReport
    from tamis.topk.ranked import Ranked


class Query:
    """A subscription with its ranking, and its clock."""

    __slots__ = (
        "buffer", "group", "handle", "is_guarded", "is_timed", "position", "positions", "ranked", "ranking",
        "scheduled", "seen", "since", "slot", "span",
    )  # fmt: skip

    def __init__(self, handle: int, ranked: Ranked, ranking: Ranking, since: int) -> None:
        self.handle = handle
        self.ranked = ranked
        self.ranking = ranking
        self.since = since
        self.span = ranked.window.span
        self.is_timed = isinstance(ranked.window, TimeWindow)
        self.is_guarded = ranked.where != TRUE
        self.position = 0
        self.positions: dict[int, int] = {}
        """The positions of the events in the recent buffer, where they are not the events' numbers."""
        self.scheduled = math.inf
        self.seen: WindowCount | None = WindowCount(self.span)
        """Counts its window; None where somebody counts for several."""
        self.group: Group | None = None
        self.slot = 0
        self.buffer: RecentBuffer | None = None

    def arrive(self, number: int, at: float, key: float) -> list[int]:
        """Take an arrival; return who enters the best k."""
        clock = at
        if not self.is_timed:
            clock = number
            if self.is_guarded:
                self.position += 1
                clock = self.position
                if self.buffer is not None:
                    self.positions[number] = clock
        ranking = self.ranking
        entering: list[int] = []
        if key == key:
            if isinstance(ranking, Guarded):
                ranking.see(clock, key)
            if self.is_timed and isinstance(ranking, Probabilistic) and self.seen is not None:
                ranking.expect(self.seen.add(at))
            entering = ranking.insert(Candidate(key, -number, clock + self.span))
        if not self.is_timed and ranking.due <= clock:
            entering = entering + ranking.leave(clock)
        return entering

    def try_again(self, arrival: Arrival, key: float) -> list[int]:
        """Take an event that has left the recent buffer."""
        assert isinstance(self.ranking, Filtered)
        self.ranking.expel(arrival.number)
        clock = arrival.at if self.is_timed else float(self.positions.pop(arrival.number, arrival.number))
        if key != key:
            return []
        return self.ranking.try_again(Candidate(key, -arrival.number, clock + self.span))


class PerSubscription(RankingAlgorithm):
    """A ranking for each subscription, as `make` makes it."""

    def __init__(
        self, make: Callable[[Ranked], Ranking], schema: Schema | None = None, *, by_definition: bool = False
    ) -> None:
        """Keep rankings; `by_definition` says that their keys are computed by the reference meaning."""
        self._make = make
        self._schema = schema
        self._by_definition = by_definition
        self._queries: dict[int, Query] = {}
        self._open: dict[int, Query] = {}
        self._groups: dict[Family, Group] = {}
        self._buffers: dict[BufferSize, RecentBuffer] = {}
        self._heap: list[tuple[float, int]] = []

    # -- Subscriptions

    def add(self, handle: int, ranked: Ranked, number: int, until: float = math.inf) -> None:
        ranking = self._make(ranked)
        if until < math.inf and isinstance(ranking, Strict | Relaxed) and isinstance(ranked.window, TimeWindow):
            ranking = Ending(ranking, until)
        query = Query(handle, ranked, ranking, number)
        family, numbers = family_of(ranked)
        query.group = self._groups.setdefault(family, Group(family, self._schema))
        query.slot = query.group.add(ranked, numbers)
        if isinstance(query.ranking, Filtered):
            size = query.ranking.size
            query.buffer = self._buffers.setdefault(size, RecentBuffer(size))
            query.buffer.members[handle] = None
        self._queries[handle] = query
        if not query.is_guarded:
            self._open[handle] = query

    def remove(self, handle: int) -> None:
        query = self._queries.pop(handle)
        self._open.pop(handle, None)
        assert query.group is not None
        query.group.remove(query.slot)
        if not len(query.group):
            del self._groups[query.group.family]
        if query.buffer is not None:
            del query.buffer.members[handle]
            if not query.buffer.members:
                del self._buffers[query.buffer.size]

    # -- Events

    def arrive(self, arrivals: Sequence[Arrival]) -> list[Report]:
        reports: list[Report] = []
        for step, arrival in enumerate(arrivals):
            elapsed = self._room_made(arrival, step)
            keys = self._keys(arrival)
            for query in self._open.values():
                self._tell(query, arrival, keys, step, elapsed)
            for handle in arrival.guarded.tolist():
                self._tell(self._queries[handle], arrival, keys, step, elapsed)
            reports += sorted(elapsed, key=_order)
        return reports

    def _room_made(self, arrival: Arrival, step: int) -> list[Report]:
        """Let leave what leaves before an event comes, and take that into recent buffers; return who enters."""
        elapsed = self._elapse(arrival.at, step, inclusive=False)
        for buffer in self._buffers.values():
            self._expel(buffer, buffer.expelled(arrival.at, makes_room=True), arrival.at, step, elapsed)
            buffer.push(arrival)
        return elapsed

    def _tell(
        self, query: Query, arrival: Arrival, keys: dict[Family, list[float]], step: int, reports: list[Report]
    ) -> None:
        if self._by_definition:
            found_key = key(query.ranked, arrival.event, self._schema)
        else:
            assert query.group is not None
            found_key = keys[query.group.family][query.slot]
        self._tell_key(query, arrival, found_key, step, reports)

    def _tell_key(self, query: Query, arrival: Arrival, found_key: float, step: int, reports: list[Report]) -> None:
        entering = query.arrive(arrival.number, arrival.at, found_key)
        reports += [(step, arrival.at, query.handle, each) for each in entering]
        self._reschedule(query)

    def _reschedule(self, query: Query) -> None:
        if query.is_timed and query.ranking.due < query.scheduled:
            query.scheduled = query.ranking.due
            heappush(self._heap, (query.scheduled, query.handle))

    def _keys(self, arrival: Arrival) -> dict[Family, list[float]]:
        if self._by_definition:
            return {}
        return {family: group.keys(arrival.event).tolist() for family, group in self._groups.items()}

    def _expel(
        self, buffer: RecentBuffer, expelled: list[Arrival], at: float, step: int, reports: list[Report]
    ) -> None:
        """Give those that leave a buffer their second try."""
        for arrival in expelled:
            keys = self._keys(arrival)
            guarded = set(arrival.guarded.tolist())
            for handle in buffer.members:
                query = self._queries[handle]
                if arrival.number < query.since or (query.is_guarded and handle not in guarded):
                    continue
                assert query.group is not None
                entering = query.try_again(arrival, keys[query.group.family][query.slot])
                reports += [(step, at, handle, each) for each in entering]

    def expect(self, handle: int, n: int) -> None:
        self._queries[handle].ranking.expect(n)
        self._changed(self._queries[handle])

    def retry(self, arrival: Arrival, now: float) -> list[Report]:
        if not self._buffers:
            return super().retry(arrival, now)
        guarded = set(arrival.guarded.tolist())
        members = [handle for buffer in self._buffers.values() for handle in buffer.members]
        concerned = [handle for handle in members if handle in guarded or not self._queries[handle].is_guarded]
        if not all(self._queries[handle].is_timed for handle in concerned):
            raise SettingError(
                "a count window needs to see every event when it is published; choose an algorithm without a filter, "
                "or a time window"
            )
        keys = self._keys(arrival)
        reports: list[Report] = []
        for handle in sorted(concerned):
            query = self._queries[handle]
            if arrival.number >= query.since and arrival.at + query.span > now:
                assert query.group is not None
                entering = query.try_again(arrival, keys[query.group.family][query.slot])
                reports += [(0, now, handle, each) for each in entering]
                self._reschedule(query)
                self._changed(query)
        return reports

    def _changed(self, query: Query) -> None:
        """Take note that the threshold of a ranking may have moved without an arrival."""

    def advance(self, now: float, *, inclusive: bool) -> list[Report]:
        return sorted(self._elapse(now, 0, inclusive=inclusive), key=_order)

    def _elapse(self, until: float, step: int, *, inclusive: bool) -> list[Report]:
        """Let leave what leaves before `until`, or then; what leaves a recent buffer by then tries again first."""
        reports: list[Report] = []
        timed = [buffer for buffer in self._buffers.values() if buffer.size.seconds < math.inf]
        while True:
            due = self._heap[0][0] if self._heap else math.inf
            for buffer in timed:
                while (expulsion := buffer.next_expulsion()) <= min(due, until):
                    self._expel(buffer, buffer.expelled(expulsion, makes_room=False), expulsion, step, reports)
            if not (due < until or (inclusive and due <= until)):
                return reports
            _, handle = heappop(self._heap)
            query = self._queries.get(handle)
            if query is None or query.scheduled != due:
                continue
            if query.ranking.due <= due:
                reports += [(step, due, handle, each) for each in query.ranking.leave(due)]
                self._changed(query)
            query.scheduled = query.ranking.due
            if query.scheduled < math.inf:
                heappush(self._heap, (query.scheduled, handle))

    # -- Looking inside

    @property
    def due(self) -> float:
        expulsions = [buffer.next_expulsion() for buffer in self._buffers.values()]
        return min([self._heap[0][0] if self._heap else math.inf, *expulsions])

    def held(self) -> set[int]:
        held = {number for query in self._queries.values() for number in query.ranking.held()}
        return held.union(*({arrival.number for arrival in buffer} for buffer in self._buffers.values()))

    def candidates(self, handle: int) -> int:
        return len(self._queries[handle].ranking)

    def kept(self, handle: int) -> list[int]:
        return [item.number for item in self._queries[handle].ranking.items]

    def threshold(self, handle: int) -> float:
        return self._queries[handle].ranking.threshold

    def statistics(self) -> dict[str, Any]:
        return {"candidates": sum(len(query.ranking) for query in self._queries.values())}

    def order_reports(self) -> dict[int, OrderReport]:
        """Return what the guard of each subscription has found, if anything."""
        return {
            handle: query.ranking.report
            for handle, query in self._queries.items()
            if isinstance(query.ranking, Guarded) and query.ranking.report is not None
        }


def _order(report: Report) -> tuple[float, int]:
    _, at, handle, _ = report
    return at, handle
