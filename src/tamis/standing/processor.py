"""How do people register subscriptions of every kind, and learn what there is to tell? The facade of the package.

`Standing` hosts conditions, ranked subscriptions, sequences and changes together. One matcher has the conditions of all
of them: those of Boolean subscriptions, of every step of every sequence, and the entry conditions of changes; so what
an event costs is what it matches. Ranked subscriptions are a `TopK`'s. Time is an argument; nothing here looks at a
clock.

Events are taken in order of time, those of one time in the order they came; they may come out of order by as much as
`lateness`, and wait so long. An event that comes again under its id changes nothing. What is withdrawn, or has expired,
keeps its place, but nobody is told of it any more, nor of a run that it is in.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import TamisError, UnknownFunctionError
from tamis.language.functions import Functions, functions_of
from tamis.matching.columns import Events
from tamis.matching.errors import DuplicateIdError, UnknownIdError
from tamis.matching.leases import Leases
from tamis.matching.matcher import Matcher
from tamis.matching.tables import lifetime_error
from tamis.standing import storage
from tamis.standing.arrivals import StandingBatch
from tamis.standing.change import Change
from tamis.standing.changes import ChangeStates
from tamis.standing.errors import SavedStateError
from tamis.standing.latest import LatestStates
from tamis.standing.pending import ChangesTold, PendingNotifications
from tamis.standing.runs import Plan
from tamis.standing.sequence import Sequence
from tamis.standing.sequences import EndedRun, Sequences
from tamis.standing.spans import span_of
from tamis.standing.subscriptions import Subscription, subscription_of
from tamis.topk import Ranked, SettingError, TopK
from tamis.topk.lateness import Change as Happening
from tamis.topk.lateness import Lateness, Publication, Withdrawal
from tamis.topk.publications import SeenIds, moment_of, moments_of, publication_of, publications_of

if TYPE_CHECKING:
    from collections.abc import Sequence as Listed

    import numpy.typing as npt

    from tamis.language.schema import Schema
    from tamis.matching.tables import Batch
    from tamis.standing.kernels import Numbers
    from tamis.standing.notification import Notification

_ENDLESS = math.inf, math.inf
_MATCHED_AS_A_LIST = 4
"""So few events are matched sooner as a list."""
_BOOLEAN, _STEP, _ENTRY, _LATEST = 0, 1, 2, 3
"""What the matcher's conditions belong to."""


@dataclass(slots=True)
class _Subscription:
    id: Hashable
    wanted: Subscription
    number: int
    """Its place in the order of registration, and the first of its numbers in the matcher."""
    handles: tuple[int, ...] = ()


class Standing:
    """Standing questions of every kind, and what there is to tell.

    >>> processor = Standing()
    >>> processor.add("guess", "SEQUENCE NOT ok THEN ok WITHIN 5 MINUTES PER user")
    >>> processor.add("high", "CHANGE TO price > 30 PER symbol")
    >>> processor.process({"user": "ann", "ok": False}, now=0.0, id="e1")
    []
    >>> processor.process({"user": "ann", "ok": True}, now=9.0, id="e2")
    [Notification(subscription='guess', events=('e1', 'e2'), at=9.0, change=None)]
    >>> processor.process({"symbol": "IBM", "price": 31}, now=9.0, id="e3")
    [Notification(subscription='high', events=('e3',), at=9.0, change=True)]
    """

    def __init__(
        self,
        *,
        schema: Schema | None = None,
        lateness: float = 0.0,
        retention: Any = "1 DAY",
        remember: int = 100_000,
        most_open: int = 10_000,
        most_states: int = 10_000_000,
        ranked: str = "block",
        functions: Functions | None = None,
    ) -> None:
        """Choose limits.

        lateness     by how many seconds times may be out of order; events wait so long
        retention    how long events are kept for sequences that have no WITHIN: a span, or math.inf
        remember     so many ids are remembered, and an event that comes again under one of them is left out
        most_open    so many events are kept for one group of one sequence; beyond it the oldest go, and are counted
        most_states  so many changes may be true at once; beyond it the oldest group is forgotten, and counted
        ranked       the algorithm of the ranked subscriptions, as `TopK` takes it
        functions    those of the host that subscriptions may call; without them, those of the schema
        """
        if isinstance(lateness, bool) or not isinstance(lateness, int | float) or not 0 <= lateness < math.inf:
            raise SettingError(f"lateness must be a number of seconds, 0 or more, not {lateness!r}")
        for name, limit in (("remember", remember), ("most_open", most_open), ("most_states", most_states)):
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise SettingError(f"{name} must be a whole number of at least 1, not {limit!r}")
        self.schema = schema
        self.functions = functions_of(functions, schema)
        self._limits = {"remember": remember, "most_open": most_open, "most_states": most_states}
        self.retention = math.inf if retention == math.inf else span_of(retention) or math.inf
        self.ranked = TopK(ranked, schema=schema, remember=1, functions=self.functions)
        """The ranked subscriptions, by number."""
        self._lock = threading.RLock()
        self._matcher = Matcher(schema=schema, functions=self.functions)
        self._subscriptions: dict[Hashable, _Subscription] = {}
        self._ids: list[Hashable] = []
        """By number: whose it is. A list, because very many may be looked up for a batch."""
        self._kinds = np.zeros(1024, np.int8)
        """By handle: what a condition of the matcher belongs to."""
        self._steps: dict[int, tuple[int, int]] = {}
        """By handle: the number of a sequence, and the step."""
        self._next_handle = 0
        self._booleans = 0
        self._sequences = Sequences(most_open)
        self._latest = LatestStates()
        self._changes = ChangeStates(most_states, schema)
        self._lateness = Lateness(lateness)
        self._order = 0
        self._leases: Leases[Hashable] = Leases()
        """When subscriptions end that do."""
        self._ends: dict[Any, tuple[float, float]] = {}
        """When events were withdrawn, or expire; and the latest of their times, until which they are surely kept."""
        self._most_ends = remember
        self._horizon = 0.0
        """The longest time that any sequence keeps an event."""
        self._seen = SeenIds(remember)
        self._told_count = 0

    # -- Subscriptions

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, subscription_id: Hashable) -> bool:
        return subscription_id in self._subscriptions

    def add(self, subscription_id: Hashable, wanted: Any, *, until: float | None = None) -> None:
        """Register a subscription of any kind, as text or as an object. It starts without a history.

        With `until` it ends by itself: it is told what is due before that time, and nothing at that time or after it.

        >>> processor = Standing()
        >>> processor.add("sale", "price < 20", until=60.0)
        >>> len(processor.process({"price": 12}, now=59.9)), len(processor.process({"price": 12}, now=60.0))
        (1, 0)
        >>> "sale" in processor
        False
        """
        with self._lock:
            if (error := lifetime_error(until, self.now)) is not None:
                raise error
            self.add_many([(subscription_id, wanted)])
            self._leases.lease(subscription_id, until)

    def until(self, subscription_id: Hashable) -> float | None:
        """Return when a subscription ends by itself; None if it does not."""
        self._found(subscription_id)
        return self._leases.end_of(subscription_id)

    def extend(self, subscription_id: Hashable, until: float | None) -> None:
        """Let a subscription end at another time, or not by itself; what is kept for it stays."""
        with self._lock:
            self._found(subscription_id)
            if (error := lifetime_error(until, self.now)) is not None:
                raise error
            self._leases.lease(subscription_id, until)

    def add_many(self, subscriptions: Mapping[Any, Any] | Iterable[tuple[Hashable, Any]]) -> None:
        """Register many subscriptions at once; all of them, or none if one is bad.

        >>> processor = Standing()
        >>> processor.add_many({1: "price < 20", 2: "TOP 1 BY price OVER 1 HOUR"})
        >>> [each.subscription for each in processor.process({"price": 12}, now=0.0)]
        [1, 2]
        """
        pairs = subscriptions.items() if isinstance(subscriptions, Mapping) else subscriptions
        wanted = [(key, self._understood(key, each)) for key, each in pairs]
        with self._lock:
            seen = set(self._subscriptions)
            for key, _ in wanted:
                if key in seen:
                    raise DuplicateIdError(key)
                seen.add(key)
            conditions: list[tuple[int, Any]] = []
            for key, each in wanted:
                conditions += self._start(key, each)
            if conditions:
                self._matcher.add_many(conditions)

    def _understood(self, subscription_id: Hashable, wanted: Any) -> Subscription:
        try:
            with self.functions.in_use():
                return subscription_of(wanted, self.schema)
        except TamisError as error:
            error.add_note(f"in the subscription {subscription_id!r}")
            raise

    def _start(self, key: Hashable, wanted: Subscription) -> list[tuple[int, Any]]:
        """Let a subscription take part; return what the matcher is to know of it."""
        number = self._next_handle
        subscription = _Subscription(key, wanted, number)
        self._subscriptions[key] = subscription
        kind, conditions = _BOOLEAN, []
        match wanted:
            case Ranked():
                self.ranked.add(number, wanted)
            case Sequence():
                plan = Plan(wanted, self.retention, self.schema)
                is_latest = self._latest.has_place_for(plan)
                (self._latest if is_latest else self._sequences).add(number, plan)
                self._horizon = max(self._horizon, plan.within)
                # The matcher's numbers are in the order in which steps take an event, so sorted matches are, too.
                self._steps |= {number + turn: (number, step) for turn, step in enumerate(plan.turns)}
                kind = _LATEST if is_latest else _STEP
                conditions = [plan.conditions[step] for step in plan.turns]
            case Change():
                self._changes.add(number, wanted)
                kind, conditions = _ENTRY, [wanted.entry]
            case _:
                self._booleans += 1
                conditions = [wanted]
        self._next_handle += max(1, len(conditions))
        self._ids += repeat(key, self._next_handle - number)
        if self._next_handle > len(self._kinds):
            self._kinds = np.append(self._kinds, np.zeros(self._next_handle, np.int8))
        self._kinds[number : self._next_handle] = kind
        subscription.handles = tuple(range(number, number + len(conditions)))
        return list(zip(subscription.handles, conditions, strict=True))

    def remove(self, subscription_id: Hashable) -> None:
        """Remove a subscription, and everything that is kept for it."""
        with self._lock:
            subscription = self._found(subscription_id)
            for handle in subscription.handles:
                self._matcher.remove(handle)
                self._steps.pop(handle, None)
            match subscription.wanted:
                case Ranked():
                    self.ranked.remove(subscription.number)
                case Sequence():
                    self._engine_of(subscription).remove(subscription.number)
                case Change():
                    self._changes.remove(subscription.number)
                case _:
                    self._booleans -= 1
            del self._subscriptions[subscription_id]
            end = subscription.number + max(1, len(subscription.handles))
            self._ids[subscription.number : end] = repeat(None, end - subscription.number)
            self._leases.forget(subscription_id)

    def wanted(self, subscription_id: Hashable) -> Subscription:
        """Return what a subscription asks for."""
        return self._found(subscription_id).wanted

    def _engine_of(self, subscription: _Subscription) -> Sequences | LatestStates:
        """Return who keeps the state of a sequence."""
        return self._latest if self._kinds[subscription.number] == _LATEST else self._sequences

    def _found(self, subscription_id: Hashable) -> _Subscription:
        subscription = self._subscriptions.get(subscription_id)
        if subscription is None:
            raise UnknownIdError(subscription_id)
        return subscription

    # -- Events

    def process(
        self, event: Mapping[str, Any], now: float, id: Any = None, expires: float = math.inf
    ) -> list[Notification]:
        """Take an event that is published now; return what there is to tell, in order of time and of registration.

        Without an id it gets a number. Until `expires`, and then too, people may be told of it; afterwards it keeps its
        place, untold.
        """
        with self._lock:
            return self._settled(self._lateness.take([publication_of(event, now, id, expires)]))

    def process_batch(
        self,
        events: Batch,
        now: float | Listed[float],
        ids: Listed[Any] | None = None,
        expires: Listed[float] | None = None,
    ) -> list[Notification]:
        """Take many events; return the same as `process` one by one would, and faster.

        `now` is the time of each, or of all. What is told is in order of time, and at one time in order of
        registration.
        """
        batch = Events(events)
        times = [now] * batch.count if isinstance(now, int | float) else list(now)
        with self._lock:
            if batch.count == len(times) > 1 and expires is None and not len(self._leases):
                times = moments_of(times)
                names = None if ids is None else list(ids)
                if self._lateness.are_in_order(times) and (names is None or len(names) == len(times)):
                    admitted = self._seen.admit_all(names, len(times))
                    if admitted is not None:
                        self._lateness.settled = times[-1]
                        due = self._nothing_told()
                        self._take(StandingBatch(batch, times, admitted, self._order), due)
                        return self._in_order(due)
            return self._settled(self._lateness.take(publications_of(batch.mappings(), times, ids, expires)))

    def withdraw(self, event_id: Any, now: float) -> list[Notification]:
        """Let nobody be told of an event from now on, nor of a run that it is in. An unknown id is not an error."""
        with self._lock:
            return self._settled(self._lateness.take([Withdrawal(moment_of(now), event_id)]))

    def advance(self, now: float) -> list[Notification]:
        """Let the time pass, up to and including `now`; return what there is to tell because something did not come.

        >>> processor = Standing()
        >>> processor.add("unpaid", "SEQUENCE kind = 'order' THEN NOT kind = 'payment' WITHIN 1 HOUR PER customer")
        >>> processor.process({"kind": "order", "customer": 7}, now=0.0, id="e1")
        []
        >>> processor.advance(now=3600.0)
        [Notification(subscription='unpaid', events=('e1',), at=3600.0, change=None)]
        """
        with self._lock:
            due = self._nothing_told()
            self._happen(self._lateness.advance(moment_of(now)), due)
            settled = self._lateness.settled
            self._end_lives(settled, due)
            self._end_runs(self._sequences.advance(settled, inclusive=True), due)
            if len(self.ranked):
                self._tell_ranked(self.ranked.advance(settled), due)
            return self._in_order(due)

    def _settled(self, happenings: list[Happening]) -> list[Notification]:
        due = self._nothing_told()
        self._happen(happenings, due)
        if self._lateness.seconds:
            self._end_lives(self._lateness.settled, due)
            self._pass_time(self._lateness.settled, due)
        return self._in_order(due)

    def _happen(self, happenings: list[Happening], pending: PendingNotifications) -> None:
        """Take what is in order by now, consecutive events together."""
        waiting: list[Publication] = []
        for happening in happenings:
            if len(self._leases) and self._leases.has_ended(happening.at):
                self._publish(waiting, pending)
                waiting = []
                self._end_lives(happening.at, pending)
            if isinstance(happening, Publication):
                waiting.append(happening)
                continue
            self._publish(waiting, pending)
            waiting = []
            self._pass_time(happening.at, pending)
            if happening.event_id in self._seen:
                end = min(self._ends.get(happening.event_id, _ENDLESS)[0], math.nextafter(happening.at, -math.inf))
                self._ends[happening.event_id] = end, happening.at
            if len(self.ranked):
                self._tell_ranked(self.ranked.withdraw(happening.event_id, happening.at), pending)
        self._publish(waiting, pending)

    def _end_lives(self, now: float, pending: PendingNotifications) -> None:
        """Remove the subscriptions that have ended by now, each after what was due before its end."""
        while self._leases.has_ended(now):
            end = self._leases.next_end
            assert end is not None
            self._pass_time(end, pending)
            for subscription_id in list(self._leases.ended(end)):
                self.remove(subscription_id)

    def _pass_time(self, now: float, pending: PendingNotifications) -> None:
        """Tell what was due before `now`."""
        if now > -math.inf:
            self._end_runs(self._sequences.advance(now, inclusive=False), pending)
            self._changes.advance(now)
            if len(self.ranked):
                before = math.nextafter(now, -math.inf)
                if before >= self.ranked.now:
                    self._tell_ranked(self.ranked.advance(before), pending)
            if len(self._ends) > self._most_ends:
                kept = {key: each for key, each in self._ends.items() if each[1] + self._horizon >= now}
                self._ends, self._most_ends = kept, max(self._seen.most, 2 * len(kept))

    def _publish(self, publications: list[Publication], pending: PendingNotifications) -> None:
        """Number events, find who is concerned, and let every kind of state take them."""
        if not publications:
            return
        new = [each for each in publications if self._seen.admit(each)]
        for each in new:
            if each.expires < math.inf:
                self._ends[each.id] = each.expires, max(each.at, each.expires)
        if new:
            times, ids, ends = [each.at for each in new], [each.id for each in new], [each.expires for each in new]
            self._take(StandingBatch(Events([each.event for each in new]), times, ids, self._order), pending, ends)
        if not new or new[-1] is not publications[-1]:
            self._pass_time(publications[-1].at, pending)  # an event that comes again says how late it is

    def _take(self, batch: StandingBatch, pending: PendingNotifications, ends: list[float] | None = None) -> None:
        """Find who is concerned by new events, and let every kind of state take them."""
        self._order += len(batch)
        if len(self.ranked):
            until = [math.inf] * len(batch) if ends is None else ends
            self._tell_ranked(self.ranked.process_batch(batch.mappings, batch.times, batch.ids, until), pending)
        present = (self._booleans, len(self._sequences), len(self._changes), len(self._latest))
        only = (
            next((kind for kind, count in enumerate(present) if count), None) if sum(map(bool, present)) == 1 else None
        )
        matches = _Matches(batch, self._matcher, self._kinds, only)
        if self._booleans:
            self._tell_single(batch, *matches.of(_BOOLEAN), None, pending)
        if len(self._latest):
            for rows, numbers, events in self._latest.take(*matches.of(_LATEST), batch):
                self._tell_many(batch.moments[rows], numbers, events, None, pending)
        if len(self._sequences):
            self._take_steps(batch, *matches.of(_STEP), pending)
        if len(self._changes):
            self._take_changes(batch, *matches.of(_ENTRY), pending)

    def _take_steps(self, batch: StandingBatch, rows: Numbers, handles: Numbers, pending: PendingNotifications) -> None:
        """Let sequences take the matches of a batch, and what is due in between."""
        sequences = self._sequences
        bounds = batch.bounds(rows).tolist()
        for row, at in enumerate(batch.times):
            if sequences.due < at:
                self._end_runs(sequences.advance(at, inclusive=False), pending)
            begin, end = bounds[row], bounds[row + 1]
            if begin == end:
                continue
            arrived = batch.arrived(row)
            # The numbers of a sequence are in the order in which its steps take an event.
            for handle in sorted(handles[begin:end].tolist()):
                self._end_runs(sequences.take(*self._steps[handle], arrived), pending)

    def _take_changes(
        self, batch: StandingBatch, rows: Numbers, numbers: Numbers, pending: PendingNotifications
    ) -> None:
        changes = self._changes
        if len(batch) > 1 and not changes.has_room(len(rows)):
            # Groups may have to be forgotten in between.
            bounds = batch.bounds(rows)
            for row in range(len(batch)):
                own = slice(bounds[row], bounds[row + 1])
                self._take_changes(batch.one(row), rows[own] - row, numbers[own], pending)
            return
        entering, leaving = changes.take(rows, numbers, batch, _Exits(batch, changes).of)
        if len(entering[0]) and len(leaving[0]) and batch.has_ties:
            told_rows, told_numbers = (np.concatenate(both) for both in zip(entering, leaving, strict=True))
            order = np.argsort(told_rows, kind="stable")  # at one time, what is told of a change follows its events
            flags = (order < len(entering[0])).tolist()
            self._tell_single(batch, told_rows[order], told_numbers[order], flags, pending)
        else:
            self._tell_single(batch, *entering, True, pending)
            self._tell_single(batch, *leaving, False, pending)
        if changes.has_forgetful:
            bounds = batch.bounds(rows)
            for row, at in enumerate(batch.times):
                changes.advance(at)
                changed = changes.take_forgetful(batch.arrived(row), numbers[bounds[row] : bounds[row + 1]])
                for number in changed.entering:
                    self._tell(at, number, batch.single_ids[row], True, pending)
                for number in changed.leaving:
                    self._tell(at, number, batch.single_ids[row], False, pending)
        changes.bound()

    # -- Telling

    def _end_runs(self, ended: list[EndedRun], pending: PendingNotifications) -> None:
        for each in ended:
            self._tell(each.at, each.number, tuple([instance.id for instance in each.run]), None, pending)

    def _tell_ranked(self, deliveries: Iterable[Any], pending: PendingNotifications) -> None:
        for number, event_id, at in deliveries:
            pending.one(at, number, (event_id,))

    def _tell_single(
        self, batch: StandingBatch, rows: Numbers, numbers: Numbers, change: ChangesTold, pending: PendingNotifications
    ) -> None:
        """Tell many of one event each; `change` is that of each, or of all."""
        if len(rows):
            events = map(batch.single_ids.__getitem__, rows.tolist())
            self._tell_many(batch.moments[rows], numbers, events, change, pending)

    def _tell_many(
        self,
        times: npt.NDArray[np.float64],
        numbers: Numbers,
        events: Iterable[tuple[Any, ...]],
        change: ChangesTold,
        pending: PendingNotifications,
    ) -> None:
        if not self._ends:
            pending.many(times, numbers, events, change)
            return
        flags = change if isinstance(change, list) else repeat(change, len(times))
        for at, number, run, flag in zip(times.tolist(), numbers.tolist(), events, flags, strict=True):
            self._tell(at, number, run, flag, pending)

    def _tell(
        self, at: float, number: int, events: tuple[Any, ...], change: bool | None, pending: PendingNotifications
    ) -> None:
        if self._ends and any(self._ends.get(each, _ENDLESS)[0] < at for each in events):
            return
        pending.one(at, number, events, change)

    def _nothing_told(self) -> PendingNotifications:
        return PendingNotifications(self._ids.__getitem__)

    def _in_order(self, pending: PendingNotifications) -> list[Notification]:
        self._told_count += len(pending)
        return pending.notifications()

    # -- Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write subscriptions and everything that is kept for them; a file that is there is replaced at once, or not.

        Ids are integers, texts, or other values of the language. Of ranked subscriptions, windows of the algorithm
        `block` can be saved. Of functions of the host the file has names and versions, and no code.

        >>> from tempfile import TemporaryDirectory
        >>> processor = Standing()
        >>> processor.add("s", "SEQUENCE a THEN b WITHIN 1 HOUR")
        >>> _ = processor.process({"a": True}, now=0.0, id="e1")
        >>> with TemporaryDirectory() as folder:
        ...     processor.save(f"{folder}/standing.json")
        ...     Standing.load(f"{folder}/standing.json").process({"b": True}, now=1.0, id="e2")
        [Notification(subscription='s', events=('e1', 'e2'), at=1.0, change=None)]
        """
        with self._lock:
            storage.write(path, self._saved())

    def _saved(self) -> dict[str, Any]:
        if len(self.ranked) and self.ranked.algorithm != "block":
            raise SavedStateError(
                f"{len(self.ranked)} ranked subscriptions are hosted by the algorithm {self.ranked.algorithm!r}, "
                "whose windows cannot be saved; those of 'block' can"
            )
        changes, latest = self._changes.saved(), self._latest.saved()
        subscriptions = []
        for each in self._subscriptions.values():
            state: list[Any] | None
            match each.wanted:
                case Sequence() if self._kinds[each.number] == _LATEST:
                    state = latest.get(each.number, [])
                case Sequence():
                    state = self._sequences.saved(each.number)
                case Ranked():
                    state = storage.encoded(self.ranked.saved_window(each.number))
                case _:
                    state = changes.get(each.number)
            until = self._leases.end_of(each.id)
            rest = [] if until is None else [until]  # nothing where nobody ends, as before there were ends
            subscriptions.append([storage.encoded(each.id), str(each.wanted), state, *rest])
        settled = self._lateness.settled
        return {
            "settings": {
                "lateness": self._lateness.seconds,
                "retention": None if self.retention == math.inf else self.retention,
                **self._limits,
            },
            **({"functions": self.functions.versions} if self.functions else {}),
            "subscriptions": subscriptions,
            "settled": None if settled == -math.inf else settled,
            "waiting": [_saved_happening(each) for each in self._lateness.waiting()],
            "order": self._order,
            "next_id": self._seen.next_id,
            "ids": [storage.encoded(each) for each in self._seen],
            "ends": [
                [storage.encoded(key), storage.encoded(end), storage.encoded(last)]
                for key, (end, last) in self._ends.items()
            ],
            **({"ranked": storage.encoded(self.ranked.saved())} if len(self.ranked) else {}),
        }

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, schema: Schema | None = None, functions: Functions | None = None
    ) -> Standing:
        """Return the processor that was saved in a file. Its texts are parsed again, and checked against the schema.

        The functions of the host that were there are given again, in the same versions; an error names what is missing.
        """
        state = storage.read(path)
        try:
            return cls._restored(state, schema, functions)
        except UnknownFunctionError as error:
            raise SavedStateError(f"subscriptions of {os.fspath(path)} call a function of the host: {error}") from error
        except (SavedStateError, *storage.BROKEN) as error:
            raise SavedStateError(f"{os.fspath(path)} does not hold the state of a processor: {error}") from error

    @classmethod
    def _restored(cls, state: dict[str, Any], schema: Schema | None, functions: Functions | None) -> Standing:
        settings = state["settings"]
        retention = math.inf if settings["retention"] is None else settings["retention"]
        processor = cls(schema=schema, functions=functions, **{**settings, "retention": retention})
        processor.functions.demand(state.get("functions", {}))
        rows = [(storage.decoded(key), text, kept) for key, text, kept, *_ in state["subscriptions"]]
        processor.add_many([(key, text) for key, text, _ in rows])
        changes = {}
        if "ranked" in state:  # nothing where nobody ranks, as before there were windows in files
            processor.ranked.restore(storage.decoded(state["ranked"]))
        for key, _, kept in rows:
            subscription = processor._subscriptions[key]
            if isinstance(subscription.wanted, Sequence):
                processor._engine_of(subscription).restore(subscription.number, kept)
            elif isinstance(subscription.wanted, Ranked):
                processor.ranked.restore_window(subscription.number, storage.decoded(kept))
            elif kept:
                changes[subscription.number] = kept
        processor._changes.restore(changes)
        for (key, *_), (_, _, _, *ends) in zip(rows, state["subscriptions"], strict=True):
            for until in ends:
                if until is None or lifetime_error(until) is not None:
                    raise SavedStateError(f"the subscription {key!r} ends at {until!r}")
                processor._leases.lease(key, float(until))
        if state["settled"] is not None:
            processor._lateness.settled = float(state["settled"])
        processor._lateness.restore([_restored_happening(each) for each in state["waiting"]])
        processor._order = int(state["order"])
        ids = map(storage.decoded, state["ids"])
        processor._seen = SeenIds(settings["remember"], ids, int(state["next_id"]))
        processor._ends = {
            storage.decoded(key): (storage.decoded(end), storage.decoded(last)) for key, end, last in state["ends"]
        }
        return processor

    # -- Looking inside

    @property
    def now(self) -> float:
        """The time up to which everything is settled."""
        return self._lateness.settled

    @property
    def due(self) -> float:
        """When `advance` may have something to tell next; infinite if only an event can change anything.

        >>> processor = Standing()
        >>> processor.add("unpaid", "SEQUENCE ordered THEN NOT paid WITHIN 1 HOUR")
        >>> processor.due
        inf
        >>> _ = processor.process({"ordered": True}, now=10.0)
        >>> processor.due
        3610.0
        """
        with self._lock:
            ranked = self.ranked.due if len(self.ranked) else math.inf
            end = self._leases.next_end
            due = min(ranked, self._sequences.due, self._lateness.waiting_since, math.inf if end is None else end)
            return due + self._lateness.seconds

    def held(self) -> set[Any]:
        """Return the ids of all events that somebody may still be told of, and perhaps of some others."""
        with self._lock:
            waiting = {each.id for each in self._lateness.waiting() if isinstance(each, Publication)}
            return waiting | self.ranked.held() | self._sequences.held() | self._latest.held()

    def rank(self, subscription_id: Hashable, event_id: Any) -> int | None:
        """Return the place of an event among the best k of a ranked subscription; None if it is not among them.

        >>> processor = Standing()
        >>> processor.add("cheap", "TOP 2 BY price ASC OVER 1 HOUR")
        >>> for name, price in (("a", 12), ("b", 10), ("c", 11)):
        ...     _ = processor.process({"price": price}, now=0.0, id=name)
        >>> [processor.rank("cheap", name) for name in "abc"]
        [None, 1, 2]
        """
        with self._lock:
            subscription = self._found(subscription_id)
            if not isinstance(subscription.wanted, Ranked):
                return None
            best = self.ranked.kept(subscription.number)[: subscription.wanted.k]
            return best.index(event_id) + 1 if event_id in best else None

    def saved_states(self, subscription_ids: Iterable[Hashable]) -> dict[Hashable, dict[str, Any]]:
        """Return what is kept for some sequences and changes, as data that JSON can write.

        >>> processor, other = Standing(), Standing()
        >>> for each in (processor, other):
        ...     each.add("high", "CHANGE TO price > 30 PER symbol")
        >>> _ = processor.process({"symbol": "IBM", "price": 31}, now=0.0, id="e1")
        >>> other.restore_state("high", processor.saved_states(["high"])["high"])
        >>> other.process({"symbol": "IBM", "price": 32}, now=1.0, id="e2")
        []
        """
        with self._lock:
            changes, latest = self._changes.saved(), self._latest.saved()
            states: dict[Hashable, dict[str, Any]] = {}
            for subscription_id in subscription_ids:
                subscription = self._found(subscription_id)
                match subscription.wanted:
                    case Sequence() if self._kinds[subscription.number] == _LATEST:
                        state = latest.get(subscription.number, [])
                    case Sequence():
                        state = self._sequences.saved(subscription.number)
                    case Change():
                        state = changes.get(subscription.number, [])
                    case _:
                        raise SavedStateError(f"{subscription.wanted} is neither a sequence nor a change")
                states[subscription_id] = {"order": self._order, "state": state}
            return states

    def restore_state(self, subscription_id: Hashable, saved: Mapping[str, Any]) -> None:
        """Let a sequence or a change that has just been added go on from what `saved_states` returned elsewhere."""
        with self._lock:
            subscription = self._found(subscription_id)
            try:
                if isinstance(subscription.wanted, Sequence):
                    self._engine_of(subscription).restore(subscription.number, saved["state"])
                elif saved["state"]:
                    self._changes.restore({subscription.number: saved["state"]})
                self._order = max(self._order, int(saved["order"]))  # what comes now is behind what was kept
            except storage.BROKEN as error:
                raise SavedStateError(f"this is not the state of {subscription.wanted}: {error}") from error

    def overflows(self) -> dict[Any, int]:
        """Return of which sequences events did not fit (`most_open`), and how many."""
        with self._lock:
            return {self._ids[number]: count for number, count in self._sequences.shed().items()}

    def statistics(self) -> dict[str, Any]:
        """Return what an operator may want to see."""
        with self._lock:
            sequences = self._sequences.statistics()
            for name, count in zip(("sequence_states", "open_events"), self._latest.open_counts(self.now), strict=True):
                sequences[name] += count
            return {
                "subscriptions": len(self),
                "boolean": self._booleans,
                "ranked": len(self.ranked),
                "sequences": len(self._sequences) + len(self._latest),
                "changes": len(self._changes),
                "events": self._order,
                "told": self._told_count,
                "repeated": self._seen.repeated,
                "waiting": len(self._lateness),
                **sequences,
                **self._changes.statistics(),
            }


class _Matches:
    """Which conditions the events of a batch match, by event and by what the condition belongs to."""

    def __init__(self, batch: StandingBatch, matcher: Matcher, kinds: npt.NDArray[np.int8], only: int | None) -> None:
        """Match a batch; `only` is the kind of all conditions, if they are of one."""
        self._rows, self._handles = _pairs(batch, matcher)
        self._only = only
        self._kinds = kinds[self._handles] if only is None else None

    def of(self, kind: int) -> tuple[Numbers, Numbers]:
        """Return rows and conditions of one kind, by row."""
        if self._kinds is None:
            return (self._rows, self._handles) if self._only == kind else (self._rows[:0], self._handles[:0])
        own = self._kinds == kind
        return self._rows[own], self._handles[own]


class _Exits:
    """Whose exit conditions the events of a batch match; found for the whole batch when somebody asks."""

    def __init__(self, batch: StandingBatch, changes: ChangeStates) -> None:
        self._batch = batch
        self._changes = changes
        self._matches: tuple[Numbers, Numbers] | None = None

    def of(self, row: int) -> Numbers:
        """Return the changes that an event would make false."""
        if self._matches is None:
            rows, numbers = _pairs(self._batch, self._changes.exits())
            self._matches = numbers, self._batch.bounds(rows)
        numbers, bounds = self._matches
        return numbers[bounds[row] : bounds[row + 1]]


def _pairs(batch: StandingBatch, matcher: Matcher) -> tuple[Numbers, Numbers]:
    """Return the pairs of an event's row and a condition that it matches, by row."""
    if not len(matcher):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(batch) == 1:
        handles = np.array(matcher.match(batch.mappings[0]), np.int64)
        return np.zeros(len(handles), np.int64), handles
    table = matcher.match_batch(batch.events if len(batch) > _MATCHED_AS_A_LIST else list(batch.mappings))
    rows, handles = (table[name].chunk(0).to_numpy() for name in ("event", "subscription"))
    return rows, handles


def _saved_happening(happening: Happening) -> list[Any]:
    if isinstance(happening, Withdrawal):
        return [happening.at, storage.encoded(happening.event_id)]
    expires = storage.encoded(happening.expires)
    return [happening.at, storage.encoded(happening.id), storage.encoded(happening.event), expires]


def _restored_happening(data: list[Any]) -> Happening:
    at, event_id, *rest = data
    if not rest:
        return Withdrawal(float(at), storage.decoded(event_id))
    event, expires = rest
    return Publication(float(at), storage.decoded(event), storage.decoded(event_id), storage.decoded(expires))
