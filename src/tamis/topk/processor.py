"""How do people register ranked subscriptions, and learn of the best events? The facade of the package.

`TopK` is the same for every algorithm. It hosts ranked and Boolean subscriptions together, gives events their numbers,
asks a matcher which filters an event passes, and turns what the algorithm reports into deliveries: once for a client
and an event, and only while the event is neither withdrawn nor expired. Time is an argument; nothing here looks at a
clock.

Arrival comes before departure at the same instant. What leaves at an instant leaves when the time moves on beyond it,
or when somebody says so with `advance`.

Source: Pripužić 2010, sections 2.3 and 2.4 (docs/bibliography.md).
Departs: an event that is withdrawn or expires keeps its place in all windows, as there, but nobody is told of it any
more; times may come out of order by as much as `lateness`.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis.errors import TamisError
from tamis.language.checking import check
from tamis.language.expressions import TRUE, Expression, is_condition
from tamis.language.functions import Functions, functions_of
from tamis.language.parser import parse
from tamis.matching.errors import BadTableError, DuplicateIdError, UnknownAlgorithmError, UnknownIdError
from tamis.matching.matcher import Matcher
from tamis.topk.ageing import DatedEvent, check_order
from tamis.topk.algorithms import ALGORITHMS
from tamis.topk.base import Arrival
from tamis.topk.delivery import Delivery
from tamis.topk.errors import SettingError
from tamis.topk.lateness import Change, Lateness, Publication, Withdrawal
from tamis.topk.many_texts import read_subscriptions
from tamis.topk.numbering import Numbering
from tamis.topk.publications import SeenIds, moment_of, publication_of, publications_of
from tamis.topk.ranked import Ranked
from tamis.topk.recent_buffer import buffer_size
from tamis.topk.settings import TopKSettings
from tamis.topk.text import is_ranked

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.matching.tables import Batch
    from tamis.topk.base import Report
    from tamis.topk.guard import OrderReport

Wanted: TypeAlias = "str | Ranked | Expression"
_EVENTS_KEPT_ANYWAY = 4096
"""Below so many events it does not pay to look which of them are still needed."""


@dataclass(slots=True)
class _TopKSubscription:
    id: Hashable
    wanted: Ranked | Expression
    client: Hashable
    until: float = math.inf
    """It is told of nothing later, and removed when the time has passed."""
    handle: int | None = None
    """Its number while it is active."""


@dataclass(slots=True)
class _Client:
    subscriptions: int = 0
    told: set[int] = field(default_factory=set)
    """The numbers of the events it was told of, as far as somebody could be about to tell it again."""


class TopK:
    """Standing questions for the best events, and what there is to tell.

    >>> processor = TopK(algorithm="strict")
    >>> processor.add("s1", "TOP 2 BY price ASC OVER 5 EVENTS WHERE category = 'flat'")
    >>> processor.process({"price": 10, "category": "flat"}, now=1.0, id="e1")
    [Delivery(subscription='s1', event='e1', at=1.0)]
    """

    def __init__(
        self,
        algorithm: str = "block",
        *,
        filter: str | None = None,
        schema: Schema | None = None,
        lateness: float = 0.0,
        remember: int = 100_000,
        functions: Functions | None = None,
        **settings: Any,
    ) -> None:
        """Choose an algorithm, and a filter before `strict` or `relaxed` if you like.

        lateness   by how many seconds times may be out of order; events wait so long
        functions  those of the host that conditions and scores may call; without them, those of the schema
        remember   so many ids are remembered, and an event that comes again under one of them is left out
        settings   gamma, sigma, buffer, buffer_s, guard, index (see `TopKSettings`); one that means nothing to the
                   algorithm is refused
        """
        if algorithm not in ALGORITHMS:
            raise UnknownAlgorithmError(algorithm, tuple(ALGORITHMS))
        try:
            self.settings = TopKSettings(filter, **settings)
        except TypeError as error:
            raise SettingError(str(error).replace("TopKSettings.__init__()", "TopK()")) from None
        self.settings.check_filter(algorithm)
        self.settings.check_meanings(algorithm, settings)
        if not 0 <= lateness < math.inf:
            raise SettingError(f"lateness must be a number of seconds, 0 or more, not {lateness!r}")
        self.algorithm = algorithm
        self.schema = schema
        self.functions = functions_of(functions, schema)
        self._lock = threading.RLock()
        self._engine = ALGORITHMS[algorithm](self.settings, schema)
        self._matcher = Matcher("naive" if algorithm == "naive" else "block", schema, functions=self.functions)
        self._subscriptions: dict[Hashable, _TopKSubscription] = {}
        self._active: dict[int, _TopKSubscription] = {}
        self._clients: dict[Hashable, _Client] = {}
        self._boolean_open: dict[int, None] = {}
        self._ending: list[tuple[float, int, _TopKSubscription]] = []
        """When subscriptions end by themselves: a heap, with those that were removed before."""
        self._boolean_count = 0
        self._is_boolean = np.zeros(1024, np.bool_)
        """Whether a handle is that of a condition, rather than of a ranked subscription."""
        self._next_handle = 0
        self._lateness = Lateness(lateness)
        self._next_number = 0
        self._numbering = Numbering() if filter is not None else None
        """Behind a filter events may come late, and are numbered among those that came in time."""
        self._ids: dict[int, Any] = {}
        self._numbers: dict[Any, int] = {}
        self._ends: dict[int, float] = {}
        """When an event that is to be told of no more was withdrawn, or expires."""
        self._seen = SeenIds(remember)
        self._kept = 0
        self._dates = False
        """Whether the score of any subscription ages, so that events have to know when they were published."""

    # -- Subscriptions

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, subscription_id: Hashable) -> bool:
        return subscription_id in self._subscriptions

    def add(
        self,
        subscription_id: Hashable,
        wanted: Wanted,
        *,
        client: Hashable = None,
        is_active: bool = True,
        until: float = math.inf,
    ) -> None:
        """Register a subscription: a ranked one, or a condition, of which every match is delivered.

        Its window starts empty: only what comes from now on counts. A client is told of an event once, by whichever of
        its subscriptions is first; without a client, a subscription is its own. A subscription that lasts until a time
        is told of nothing later, and removes itself; `strict` and `relaxed` keep less for it towards its end.
        """
        self.add_many([(subscription_id, wanted)], client=client, is_active=is_active, until=until)

    def add_many(
        self,
        subscriptions: Mapping[Any, Wanted] | Iterable[tuple[Hashable, Wanted]],
        *,
        client: Hashable = None,
        is_active: bool = True,
        until: float = math.inf,
    ) -> None:
        """Register many subscriptions at once; all of them, or none if one is bad."""
        pairs = list(subscriptions.items() if isinstance(subscriptions, Mapping) else subscriptions)
        end = math.inf if until == math.inf else moment_of(until)
        known = read_subscriptions([wanted for _, wanted in pairs if isinstance(wanted, str)], self.schema)
        new = [_TopKSubscription(key, self._understood(key, wanted, known), client, end) for key, wanted in pairs]
        with self._lock:
            ids = {subscription.id for subscription in new}
            for subscription in new:
                if subscription.id in self._subscriptions or len(ids) < len(new):
                    raise DuplicateIdError(subscription.id)
            self._subscriptions |= {subscription.id: subscription for subscription in new}
            if end < math.inf:
                for subscription in new:
                    heappush(self._ending, (end, id(subscription), subscription))
            if is_active:
                self._start(new)

    def _understood(
        self, subscription_id: Hashable, wanted: Wanted, known: Mapping[str, Ranked | Expression]
    ) -> Ranked | Expression:
        try:
            if isinstance(wanted, str):
                read = known.get(wanted)
                if read is not None:
                    return self._fitting(read) if isinstance(read, Ranked) else read
                if is_ranked(wanted):
                    with self.functions.in_use():
                        return self._fitting(Ranked.parse(wanted, self.schema))
                return parse(wanted, self.schema, functions=self.functions or None)
            if isinstance(wanted, Ranked):
                return self._fitting(wanted.checked(self.schema))
            if not isinstance(wanted, Expression) or not is_condition(wanted):
                raise BadTableError(
                    f"a subscription must be a text, a Ranked or a condition, not {type(wanted).__name__}"
                )
            check(wanted, self.schema)
            return wanted
        except TamisError as error:
            error.add_note(f"in the subscription {subscription_id!r}")
            raise

    def _fitting(self, ranked: Ranked) -> Ranked:
        """Return a ranked subscription, or raise if the algorithm, or its recent buffer, does not suit it."""
        check_order(ranked, self.algorithm)
        if self.settings.filter is not None:
            buffer_size(ranked.window, self.settings.buffer, self.settings.buffer_s)
        return ranked

    def _start(self, subscriptions: Sequence[_TopKSubscription]) -> None:
        conditions: list[tuple[int, Expression]] = []
        for subscription in subscriptions:
            handle = self._next_handle
            self._next_handle += 1
            subscription.handle = handle
            self._active[handle] = subscription
            if handle >= len(self._is_boolean):
                self._is_boolean = np.append(self._is_boolean, np.zeros(handle, np.bool_))
            if subscription.client is not None:
                self._clients.setdefault(subscription.client, _Client()).subscriptions += 1
            wanted = subscription.wanted
            condition = wanted.where if isinstance(wanted, Ranked) else wanted
            if condition != TRUE:
                conditions.append((handle, condition))
            if isinstance(wanted, Ranked):
                self._dates = self._dates or wanted.half_life_s is not None
                self._engine.add(handle, wanted, self._next_number, subscription.until)
                continue
            self._boolean_count += 1
            self._is_boolean[handle] = True
            if condition == TRUE:
                self._boolean_open[handle] = None
        if conditions:
            self._matcher.add_many(conditions)

    def activate(self, subscription_id: Hashable) -> None:
        """Let a subscription take part from now on, with an empty window; nothing happens if it does already."""
        with self._lock:
            subscription = self._subscription_of(subscription_id)
            if subscription.handle is None:
                self._start([subscription])

    def deactivate(self, subscription_id: Hashable) -> None:
        """Let a subscription rest: its window is emptied, and it is told nothing until it is activated."""
        with self._lock:
            subscription = self._subscription_of(subscription_id)
            handle, subscription.handle = subscription.handle, None
            if handle is None:
                return
            del self._active[handle]
            if handle in self._matcher:
                self._matcher.remove(handle)
            if isinstance(subscription.wanted, Ranked):
                self._engine.remove(handle)
            else:
                self._boolean_count -= 1
                self._boolean_open.pop(handle, None)
            if subscription.client is not None:
                client = self._clients[subscription.client]
                client.subscriptions -= 1
                if not client.subscriptions:
                    del self._clients[subscription.client]

    def remove(self, subscription_id: Hashable) -> None:
        """Remove a subscription."""
        with self._lock:
            self.deactivate(subscription_id)
            del self._subscriptions[subscription_id]

    def is_active(self, subscription_id: Hashable) -> bool:
        """Does a subscription take part?"""
        return self._subscription_of(subscription_id).handle is not None

    def wanted(self, subscription_id: Hashable) -> Ranked | Expression:
        """Return what a subscription asks for."""
        return self._subscription_of(subscription_id).wanted

    def _subscription_of(self, subscription_id: Hashable) -> _TopKSubscription:
        subscription = self._subscriptions.get(subscription_id)
        if subscription is None:
            raise UnknownIdError(subscription_id)
        return subscription

    # -- Events

    def process(
        self,
        event: Mapping[str, Any],
        now: float,
        id: Any = None,
        expires: float = math.inf,
    ) -> list[Delivery]:
        """Take an event that is published now; return what there is to tell, in order of time.

        Without an id it gets a number. Until `expires`, and then too, it may be delivered; afterwards it keeps its
        place, untold.
        """
        with self._lock:
            return self._settled(self._lateness.take([publication_of(event, now, id, expires)]))

    def process_batch(
        self,
        events: Batch,
        now: float | Sequence[float],
        ids: Sequence[Any] | None = None,
        expires: Sequence[float] | None = None,
    ) -> list[Delivery]:
        """Take many events, in order; return the same as `process` one by one would, and faster.

        `now` is the time of each, or of all.
        """
        published = publications_of(events, now, ids, expires)
        with self._lock:
            return self._settled(self._lateness.take(published))

    def withdraw(self, event_id: Any, now: float) -> list[Delivery]:
        """Deliver an event to nobody from now on. It keeps its place in all windows. An unknown id is not an error."""
        with self._lock:
            return self._settled(self._lateness.take([Withdrawal(moment_of(now), event_id)]))

    def advance(self, now: float) -> list[Delivery]:
        """Let the time pass, up to and including `now`; return what there is to tell because something left."""
        with self._lock:
            changes = self._lateness.advance(moment_of(now))
            deliveries = self._settled(changes) + self._end(self._lateness.settled)
            reports = self._engine.advance(self._lateness.settled, inclusive=True)
            return deliveries + self._delivered(reports)

    def expect(self, subscription_id: Hashable, n: int) -> None:
        """Let a ranked subscription be prepared for `n` events in its window, of those that pass its filter.

        For a processor that does not see them all, because others, who know a threshold, do not send what is beyond it.
        Exact algorithms need not know.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise SettingError(f"n must be a whole number of events, at least 1, not {n!r}")
        with self._lock:
            subscription = self._subscription_of(subscription_id)
            if not isinstance(subscription.wanted, Ranked):
                raise SettingError(f"the subscription {subscription_id!r} is a condition and has no window")
            if subscription.handle is not None:
                self._engine.expect(subscription.handle, n)

    def retry(
        self,
        event: Mapping[str, Any],
        now: float,
        id: Any,
        *,
        published: float | None = None,
        expires: float = math.inf,
    ) -> list[Delivery]:
        """Take an event that has left a recent buffer elsewhere; return what there is to tell.

        Others, who know a threshold, send an event when it is published, or when it leaves their recent buffer, or
        never. So it may come now for the first time, with the time at which it was published: subscriptions behind a
        filter, with a time window, look at it as they would have if it had stood in their own recent buffer (as long as
        theirs, see `buffer_s`). One that came before needs nothing: it is tried again when it leaves the buffer here.
        """
        if self._numbering is None:
            raise SettingError("only subscriptions behind a filter look at an event a second time")
        publication = publication_of(event, now if published is None else published, id, expires)
        if id is None or publication.at > moment_of(now):
            raise SettingError(f"an event that is tried again has an id, and was published by {now}, not later")
        with self._lock:
            deliveries = self._settled(self._lateness.advance(moment_of(now)))
            deliveries += self._delivered(self._engine.advance(self._lateness.settled, inclusive=False))
            if not self._seen.admit(publication):
                return deliveries
            (handles,) = self._passing([publication.event])
            ranked = handles[~self._is_boolean[handles]] if self._boolean_count else handles
            number = self._numbering.late(publication.at)
            self._ids[number], self._numbers[id] = id, number
            if expires < math.inf:
                self._ends[number] = expires
            event = self._dated(publication.event, publication.at)
            reports = self._engine.retry(Arrival(number, publication.at, event, ranked), now)
            return deliveries + self._delivered(reports)

    def _end(self, now: float) -> list[Delivery]:
        """Remove the subscriptions that end before now; return what there was to tell until then."""
        deliveries: list[Delivery] = []
        while self._ending and self._ending[0][0] < now:
            until, _, subscription = heappop(self._ending)
            if self._subscriptions.get(subscription.id) is subscription:
                deliveries += self._delivered(self._engine.advance(until, inclusive=True))
                self.remove(subscription.id)
        return deliveries

    def _settled(self, changes: list[Change]) -> list[Delivery]:
        """Take what is in order by now, consecutive events together."""
        deliveries: list[Delivery] = []
        waiting: list[Publication] = []
        for change in changes:
            if self._ending and self._ending[0][0] < change.at:
                deliveries += self._publish(waiting)
                waiting = []
                deliveries += self._end(change.at)
            if isinstance(change, Publication):
                waiting.append(change)
                continue
            deliveries += self._publish(waiting)
            waiting = []
            deliveries += self._delivered(self._engine.advance(change.at, inclusive=False))
            number = self._numbers.get(change.event_id)
            if number is not None:
                self._ends[number] = min(self._ends.get(number, math.inf), math.nextafter(change.at, -math.inf))
        deliveries += self._publish(waiting)
        if self._lateness.seconds:
            deliveries += self._delivered(self._engine.advance(self._lateness.settled, inclusive=False))
        return deliveries

    def _publish(self, publications: list[Publication]) -> list[Delivery]:
        """Number events, find whose filters they pass, and let the algorithm take them."""
        new = [each for each in publications if self._seen.admit(each)]
        if not new:
            return []
        passing = self._passing([each.event for each in new])
        arrivals = []
        matches: list[Report] = []
        for step, (each, handles) in enumerate(zip(new, passing, strict=True)):
            number = self._next_number
            self._next_number += 1
            if self._numbering is not None:
                self._numbering.next(each.at)
            self._ids[number] = each.id
            self._numbers[each.id] = number
            if each.expires < math.inf:
                self._ends[number] = each.expires
            ranked = handles
            if self._boolean_count:
                is_boolean = self._is_boolean[handles]
                ranked = handles[~is_boolean]
                concerned = (*handles[is_boolean].tolist(), *self._boolean_open)
                matches += [(step, each.at, handle, number) for handle in concerned]
            arrivals.append(Arrival(number, each.at, self._dated(each.event, each.at), ranked))
        reports = self._engine.arrive(arrivals)
        if matches:
            reports = sorted(reports + matches, key=itemgetter(0, 1, 2))
        deliveries = self._delivered(reports)
        self._forget()
        return deliveries

    def _dated(self, event: Mapping[str, Any], at: float) -> Mapping[str, Any]:
        """Return an event as rankings see it: with its time, if any score ages."""
        return DatedEvent(event, at) if self._dates else event

    def _passing(self, events: list[Mapping[str, Any]]) -> list[Any]:
        """Return the handles whose conditions each event fulfils."""
        if not len(self._matcher):
            return [_NOBODY] * len(events)
        if len(events) == 1:
            return [np.array(self._matcher.match(events[0]), np.int64)]
        table = self._matcher.match_batch(events)
        handles = table["subscription"].to_numpy()
        bounds = np.searchsorted(table["event"].to_numpy(), np.arange(len(events) + 1))
        return [np.sort(handles[begin:end]) for begin, end in itertools.pairwise(bounds)]

    def _delivered(self, reports: list[Report]) -> list[Delivery]:
        """Turn reports into deliveries: of events that are neither withdrawn nor expired, once for a client."""
        deliveries = []
        for _, at, handle, number in reports:
            if self._ends and self._ends.get(number, math.inf) < at:
                continue
            subscription = self._active[handle]
            if subscription.client is not None:
                client = self._clients[subscription.client]
                if number in client.told:
                    continue
                if client.subscriptions > 1:
                    client.told.add(number)
            deliveries.append(Delivery(subscription.id, self._ids[number], at))
        return deliveries

    def _forget(self) -> None:
        """Forget the events that no ranking refers to any more, whenever they have become twice as many."""
        if len(self._ids) <= max(_EVENTS_KEPT_ANYWAY, 2 * self._kept):
            return
        held = self._engine.held()
        for number in [number for number in self._ids if number not in held]:
            event_id = self._ids.pop(number)
            if self._numbers.get(event_id) == number:
                del self._numbers[event_id]
            self._ends.pop(number, None)
        for client in self._clients.values():
            client.told &= held
        if self._numbering is not None:
            spans = [each.wanted.window.span for each in self._active.values() if isinstance(each.wanted, Ranked)]
            self._numbering.forget(before=self._lateness.settled - max(spans, default=0.0))
        self._kept = len(self._ids)

    # -- Files

    def saved(self) -> dict[str, Any]:
        """Return what the processor knows of the events in its windows, as values of the language.

        What waits (`lateness`), and what clients were told, is not in it: a `Standing`'s processor has neither.
        """
        with self._lock:
            held = self._engine.held()
            return {
                "next": self._next_number,
                "settled": self._lateness.settled,
                "events": [[number, event_id] for number, event_id in self._ids.items() if number in held],
                "ends": [[number, end] for number, end in self._ends.items() if number in held],
            }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Let a new processor know what another one knew of its events; the windows follow (`restore_window`)."""
        with self._lock:
            self._next_number, self._lateness.settled = int(state["next"]), float(state["settled"])
            self._ids = {int(number): event_id for number, event_id in state["events"]}
            self._numbers = {event_id: number for number, event_id in self._ids.items()}
            self._ends = {int(number): float(end) for number, end in state["ends"]}
            if any(not 0 <= number < self._next_number for number in self._ids):
                raise ValueError("an event of a window has a number that was not given yet")

    def saved_window(self, subscription_id: Hashable) -> list[Any]:
        """Return the window of a ranked subscription, as numbers and lists; of the algorithm `block` alone."""
        with self._lock:
            handle = self._subscription_of(subscription_id).handle
            assert handle is not None, "whoever saves windows lets nobody rest"
            return self._engine.saved(handle)

    def restore_window(self, subscription_id: Hashable, window: list[Any]) -> None:
        """Let a ranked subscription that has just been added have the window that was saved."""
        with self._lock:
            handle = self._subscription_of(subscription_id).handle
            assert handle is not None, "it takes part since it was added"
            if not self._ids.keys() >= set(self._engine.restore(handle, window)):
                raise ValueError("a window holds an event that is not known")

    # -- Looking inside

    @property
    def now(self) -> float:
        """The time up to which everything is settled."""
        return self._lateness.settled

    @property
    def due(self) -> float:
        """When `advance` may have something to tell next; infinite if only an event can change anything.

        >>> processor = TopK("naive")
        >>> processor.add("s1", "TOP 1 BY price ASC OVER 5 SECONDS")
        >>> _ = processor.process({"price": 10}, now=1.0, id="e1")
        >>> processor.process({"price": 12}, now=2.0, id="e2"), processor.due
        ([], 6.0)
        >>> processor.advance(processor.due), processor.due
        ([Delivery(subscription='s1', event='e2', at=6.0)], 7.0)
        """
        with self._lock:
            waiting = self._lateness.waiting_since + self._lateness.seconds
            return min(waiting, self._engine.due + self._lateness.seconds)

    def held(self) -> set[Any]:
        """Return the ids of all events that some ranking, buffer or log still refers to."""
        with self._lock:
            held = self._engine.held()
            return {event_id for number, event_id in self._ids.items() if number in held}

    def kept(self, subscription_id: Hashable) -> list[Any]:
        """Return the ids of the events that are kept for a ranked subscription, by rank: the best k, then candidates.

        With the algorithm `naive` that is its window, of what has a score; so what is missing from one look to the next
        was dropped in between.
        """
        with self._lock:
            subscription = self._subscription_of(subscription_id)
            if subscription.handle is None or not isinstance(subscription.wanted, Ranked):
                return []
            return [self._ids[number] for number in self._engine.kept(subscription.handle)]

    def candidates(self, subscription_id: Hashable) -> int:
        """Return how many events are kept for a ranked subscription, the best k included."""
        with self._lock:
            subscription = self._subscription_of(subscription_id)
            if subscription.handle is None or not isinstance(subscription.wanted, Ranked):
                return 0
            return self._engine.candidates(subscription.handle)

    def threshold(self, subscription_id: Hashable) -> float:
        """Return the score beyond which an arrival does not interest a ranked subscription, now or later.

        Infinite (with the sign of the worse end) where every arrival may, as with all algorithms that have no
        threshold.
        """
        with self._lock:
            subscription = self._subscription_of(subscription_id)
            if not isinstance(subscription.wanted, Ranked):
                raise SettingError(f"the subscription {subscription_id!r} is a condition and has no threshold")
            key = math.inf if subscription.handle is None else self._engine.threshold(subscription.handle)
            return key if subscription.wanted.is_ascending else -key

    def order_reports(self) -> dict[Any, OrderReport]:
        """Return which subscriptions' streams were found not to be in random order, and when (probabilistic)."""
        with self._lock:
            return {self._active[handle].id: report for handle, report in self._engine.order_reports().items()}

    def statistics(self) -> dict[str, Any]:
        """Return what an operator may want to see."""
        with self._lock:
            return {
                "algorithm": self.algorithm,
                "filter": self.settings.filter,
                "subscriptions": len(self),
                "active": len(self._active),
                "events": self._next_number,
                "repeated": self._seen.repeated,
                "waiting": len(self._lateness),
                "order_reports": len(self._engine.order_reports()),
                **self._engine.statistics(),
            }


_NOBODY = np.zeros(0, np.int64)
