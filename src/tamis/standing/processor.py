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
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis.errors import EventError, TamisError
from tamis.matching.columns import Events
from tamis.matching.errors import DuplicateIdError, UnknownIdError
from tamis.matching.matcher import Matcher
from tamis.standing import storage
from tamis.standing.change import Change
from tamis.standing.changes import Changes
from tamis.standing.errors import SavedStateError
from tamis.standing.latest import LatestPairs, fits
from tamis.standing.notification import Notification
from tamis.standing.runs import Plan
from tamis.standing.sequence import Sequence
from tamis.standing.sequences import Arrived, Ended, Sequences
from tamis.standing.spans import span_of
from tamis.standing.subscriptions import Subscription, subscription_of
from tamis.topk import Ranked, SettingError, TopK
from tamis.topk.lateness import Change as Happening
from tamis.topk.lateness import Lateness, Publication, Withdrawal

if TYPE_CHECKING:
    from collections.abc import Sequence as Listed

    import numpy.typing as npt

    from tamis.language.schema import Schema
    from tamis.matching.tables import Batch
    from tamis.standing.kernels import Numbers

Told: TypeAlias = "tuple[float, int, int, Notification]"
"""When, for whom (in order of registration), how many were told before in this call, and what."""
_ENDLESS = math.inf, math.inf
_HANDLE_BITS = 40
"""So many bits of a pair are its condition's number; the others are the event's row."""
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
    ) -> None:
        """Choose limits.

        lateness     by how many seconds times may be out of order; events wait so long
        retention    how long events are kept for sequences that have no WITHIN: a span, or math.inf
        remember     so many ids are remembered, and an event that comes again under one of them is left out
        most_open    so many events are kept for one group of one sequence; beyond it the oldest go, and are counted
        most_states  so many changes may be true at once; beyond it the oldest group is forgotten, and counted
        ranked       the algorithm of the ranked subscriptions, as `TopK` takes it
        """
        if isinstance(lateness, bool) or not isinstance(lateness, int | float) or not 0 <= lateness < math.inf:
            raise SettingError(f"lateness must be a number of seconds, 0 or more, not {lateness!r}")
        for name, limit in (("remember", remember), ("most_open", most_open), ("most_states", most_states)):
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
                raise SettingError(f"{name} must be a whole number of at least 1, not {limit!r}")
        self.schema = schema
        self._limits = {"remember": remember, "most_open": most_open, "most_states": most_states}
        self.retention = math.inf if retention == math.inf else span_of(retention) or math.inf
        self.ranked = TopK(ranked, schema=schema, remember=1)
        """The ranked subscriptions, by number."""
        self._lock = threading.RLock()
        self._matcher = Matcher(schema=schema)
        self._subscriptions: dict[Hashable, _Subscription] = {}
        self._by_number: dict[int, _Subscription] = {}
        self._kinds = np.zeros(1024, np.int8)
        """By handle: what a condition of the matcher belongs to."""
        self._steps: dict[int, tuple[int, int]] = {}
        """By handle: the number of a sequence, and the step."""
        self._next_handle = 0
        self._booleans = 0
        self._sequences = Sequences(most_open)
        self._latest = LatestPairs()
        self._changes = Changes(most_states, schema)
        self._lateness = Lateness(lateness)
        self._order = 0
        self._ends: dict[Any, tuple[float, float]] = {}
        """When events were withdrawn, or expire; and the latest of their times, until which they are surely kept."""
        self._most_ends = remember
        self._horizon = 0.0
        """The longest time that any sequence keeps an event."""
        self._remembered: dict[Any, None] = {}
        self._remember = remember
        self._next_id = 0
        self._repeated = 0
        self._told_count = 0

    # -- Subscriptions

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, subscription_id: Hashable) -> bool:
        return subscription_id in self._subscriptions

    def add(self, subscription_id: Hashable, wanted: Any) -> None:
        """Register a subscription of any kind, as text or as an object. It starts without a history."""
        self.add_many([(subscription_id, wanted)])

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
            return subscription_of(wanted, self.schema)
        except TamisError as error:
            error.add_note(f"in the subscription {subscription_id!r}")
            raise

    def _start(self, key: Hashable, wanted: Subscription) -> list[tuple[int, Any]]:
        """Let a subscription take part; return what the matcher is to know of it."""
        number = self._next_handle
        subscription = _Subscription(key, wanted, number)
        self._subscriptions[key] = subscription
        self._by_number[number] = subscription
        kind, conditions = _BOOLEAN, []
        match wanted:
            case Ranked():
                self.ranked.add(number, wanted)
            case Sequence():
                plan = Plan(wanted, self.retention, self.schema)
                is_latest = fits(plan)
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
            del self._subscriptions[subscription_id], self._by_number[subscription.number]

    def wanted(self, subscription_id: Hashable) -> Subscription:
        """Return what a subscription asks for."""
        return self._found(subscription_id).wanted

    def _engine_of(self, subscription: _Subscription) -> Sequences | LatestPairs:
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
        if not isinstance(event, Mapping):
            raise EventError(f"an event must be a mapping from names to values, not {type(event).__name__}")
        published = Publication(_moment(now), event, id, _end(expires))
        with self._lock:
            return self._settled(self._lateness.take([published]))

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
        mappings = Events(events).mappings()
        times = [now] * len(mappings) if isinstance(now, int | float) else list(now)
        names = [None] * len(mappings) if ids is None else list(ids)
        ends = [math.inf] * len(mappings) if expires is None else list(expires)
        if not len(mappings) == len(times) == len(names) == len(ends):
            raise EventError(
                f"there are {len(mappings)} events, {len(times)} times, {len(names)} ids and {len(ends)} ends"
            )
        published: list[Happening] = [
            Publication(_moment(time), event, name, _end(end))
            for event, time, name, end in zip(mappings, times, names, ends, strict=True)
        ]
        with self._lock:
            return self._settled(self._lateness.take(published))

    def withdraw(self, event_id: Any, now: float) -> list[Notification]:
        """Let nobody be told of an event from now on, nor of a run that it is in. An unknown id is not an error."""
        with self._lock:
            return self._settled(self._lateness.take([Withdrawal(_moment(now), event_id)]))

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
            told: list[Told] = []
            self._happen(self._lateness.advance(_moment(now)), told)
            settled = self._lateness.settled
            self._end_runs(self._sequences.advance(settled, inclusive=True), told)
            if len(self.ranked):
                self._tell_ranked(self.ranked.advance(settled), told)
            return self._in_order(told)

    def _settled(self, happenings: list[Happening]) -> list[Notification]:
        told: list[Told] = []
        self._happen(happenings, told)
        if self._lateness.seconds:
            self._pass_time(self._lateness.settled, told)
        return self._in_order(told)

    def _happen(self, happenings: list[Happening], told: list[Told]) -> None:
        """Take what is in order by now, consecutive events together."""
        waiting: list[Publication] = []
        for happening in happenings:
            if isinstance(happening, Publication):
                waiting.append(happening)
                continue
            self._publish(waiting, told)
            waiting = []
            self._pass_time(happening.at, told)
            if happening.event_id in self._remembered:
                end = min(self._ends.get(happening.event_id, _ENDLESS)[0], math.nextafter(happening.at, -math.inf))
                self._ends[happening.event_id] = end, happening.at
            if len(self.ranked):
                self._tell_ranked(self.ranked.withdraw(happening.event_id, happening.at), told)
        self._publish(waiting, told)

    def _pass_time(self, now: float, told: list[Told]) -> None:
        """Tell what was due before `now`."""
        if now > -math.inf:
            self._end_runs(self._sequences.advance(now, inclusive=False), told)
            self._changes.advance(now)
            if len(self.ranked):
                before = math.nextafter(now, -math.inf)
                if before >= self.ranked.now:
                    self._tell_ranked(self.ranked.advance(before), told)
            if len(self._ends) > self._most_ends:
                kept = {key: each for key, each in self._ends.items() if each[1] + self._horizon >= now}
                self._ends, self._most_ends = kept, max(self._remember, 2 * len(kept))

    def _publish(self, publications: list[Publication], told: list[Told]) -> None:
        """Number events, find who is concerned, and let every kind of state take them."""
        new = [each for each in publications if self._admit(each)]
        if not new:
            return
        events = [each.event for each in new]
        if len(self.ranked):
            ids, ends = [each.id for each in new], [each.expires for each in new]
            self._tell_ranked(self.ranked.process_batch(events, [each.at for each in new], ids, ends), told)
        for each in new:
            if each.expires < math.inf:
                self._ends[each.id] = each.expires, max(each.at, each.expires)
        matches = _Matches(events, self._matcher, self._kinds)
        if len(self._latest):
            times, ids = [each.at for each in new], [each.id for each in new]
            for row, number, first in self._latest.take(*matches.latest, times, ids, self._order):
                self._tell(times[row], number, (first, ids[row]), None, told)
        if not (self._booleans or len(self._sequences) or len(self._changes)):
            self._order += len(new)
            return
        exits = _Exits(events, self._changes)
        for row, each in enumerate(new):
            self._end_runs(self._sequences.advance(each.at, inclusive=False), told)
            arrived = Arrived(each.at, self._order, each.id, each.event, {})
            self._order += 1
            for handle in matches.of(row, _BOOLEAN):
                self._tell(each.at, handle, (each.id,), None, told)
            for handle in matches.of(row, _STEP):
                self._end_runs(self._sequences.take(*self._steps[handle], arrived), told)
            if len(self._changes):
                self._take_changes(arrived, matches.numbers(row, _ENTRY), exits, row, told)

    def _take_changes(self, arrived: Arrived, matching: Numbers, exits: _Exits, row: int, told: list[Told]) -> None:
        self._changes.advance(arrived.at)
        changed = self._changes.take(arrived, matching, lambda: exits.of(row))
        for number in changed.entering:
            self._tell(arrived.at, number, (arrived.id,), True, told)
        for number in changed.leaving:
            wanted = self._by_number[number].wanted
            if isinstance(wanted, Change) and wanted.is_both_ways:
                self._tell(arrived.at, number, (arrived.id,), False, told)

    def _admit(self, publication: Publication) -> bool:
        """Give an event its id and remember it; return whether it comes for the first time."""
        if publication.id is None:
            while self._next_id in self._remembered:
                self._next_id += 1
            publication.id = self._next_id
            self._next_id += 1
        if publication.id in self._remembered:
            self._repeated += 1
            return False
        self._remembered[publication.id] = None
        if len(self._remembered) > self._remember:
            del self._remembered[next(iter(self._remembered))]
        return True

    # -- Telling

    def _end_runs(self, ended: list[Ended], told: list[Told]) -> None:
        for each in ended:
            self._tell(each.at, each.number, tuple([instance.id for instance in each.run]), None, told)

    def _tell_ranked(self, deliveries: Iterable[Any], told: list[Told]) -> None:
        for number, event_id, at in deliveries:
            told.append((at, number, len(told), Notification(self._by_number[number].id, (event_id,), at)))

    def _tell(self, at: float, number: int, events: tuple[Any, ...], change: bool | None, told: list[Told]) -> None:
        if self._ends and any(self._ends.get(each, _ENDLESS)[0] < at for each in events):
            return
        told.append((at, number, len(told), Notification(self._by_number[number].id, events, at, change)))

    def _in_order(self, told: list[Told]) -> list[Notification]:
        told.sort()
        self._told_count += len(told)
        return [notification for *_, notification in told]

    # -- Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write subscriptions and everything that is kept for them; a file that is there is replaced at once, or not.

        Ids are integers, texts, or other values of the language. Ranked subscriptions cannot be saved yet.

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
        if len(self.ranked):
            raise SavedStateError(f"{len(self.ranked)} ranked subscriptions are hosted, whose windows cannot be saved")
        changes = self._changes.saved()
        subscriptions = []
        for each in self._subscriptions.values():
            is_sequence = isinstance(each.wanted, Sequence)
            state = self._engine_of(each).saved(each.number) if is_sequence else changes.get(each.number)
            subscriptions.append([storage.encoded(each.id), str(each.wanted), state])
        settled = self._lateness.settled
        return {
            "settings": {
                "lateness": self._lateness.seconds,
                "retention": None if self.retention == math.inf else self.retention,
                **self._limits,
            },
            "subscriptions": subscriptions,
            "settled": None if settled == -math.inf else settled,
            "waiting": [_saved_happening(each) for each in self._lateness.waiting()],
            "order": self._order,
            "next_id": self._next_id,
            "ids": [storage.encoded(each) for each in self._remembered],
            "ends": [
                [storage.encoded(key), storage.encoded(end), storage.encoded(last)]
                for key, (end, last) in self._ends.items()
            ],
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, schema: Schema | None = None) -> Standing:
        """Return the processor that was saved in a file. Its texts are parsed again, and checked against the schema."""
        state = storage.read(path)
        try:
            return cls._restored(state, schema)
        except (SavedStateError, *storage.BROKEN) as error:
            raise SavedStateError(f"{os.fspath(path)} does not hold the state of a processor: {error}") from error

    @classmethod
    def _restored(cls, state: dict[str, Any], schema: Schema | None) -> Standing:
        settings = state["settings"]
        retention = math.inf if settings["retention"] is None else settings["retention"]
        processor = cls(schema=schema, **{**settings, "retention": retention})
        rows = [(storage.decoded(key), text, kept) for key, text, kept in state["subscriptions"]]
        processor.add_many([(key, text) for key, text, _ in rows])
        changes = {}
        for key, _, kept in rows:
            subscription = processor._subscriptions[key]
            if isinstance(subscription.wanted, Sequence):
                processor._engine_of(subscription).restore(subscription.number, kept)
            elif kept:
                changes[subscription.number] = kept
        processor._changes.restore(changes)
        if state["settled"] is not None:
            processor._lateness.settled = float(state["settled"])
        processor._lateness.restore([_restored_happening(each) for each in state["waiting"]])
        processor._order, processor._next_id = int(state["order"]), int(state["next_id"])
        processor._remembered = dict.fromkeys(storage.decoded(each) for each in state["ids"])
        processor._ends = {
            storage.decoded(key): (storage.decoded(end), storage.decoded(last)) for key, end, last in state["ends"]
        }
        return processor

    # -- Looking inside

    @property
    def now(self) -> float:
        """The time up to which everything is settled."""
        return self._lateness.settled

    def overflows(self) -> dict[Any, int]:
        """Return of which sequences events did not fit (`most_open`), and how many."""
        with self._lock:
            return {self._by_number[number].id: count for number, count in self._sequences.shed().items()}

    def statistics(self) -> dict[str, Any]:
        """Return what an operator may want to see."""
        with self._lock:
            sequences = self._sequences.statistics()
            for name in ("sequence_states", "open_events"):
                sequences[name] += self._latest.open_count(self.now)
            return {
                "subscriptions": len(self),
                "boolean": self._booleans,
                "ranked": len(self.ranked),
                "sequences": len(self._sequences) + len(self._latest),
                "changes": len(self._changes),
                "events": self._order,
                "told": self._told_count,
                "repeated": self._repeated,
                "waiting": len(self._lateness),
                **sequences,
                **self._changes.statistics(),
            }


class _Matches:
    """Which conditions the events of a batch match, by event and by what the condition belongs to."""

    def __init__(self, events: list[Mapping[str, Any]], matcher: Matcher, kinds: npt.NDArray[np.int8]) -> None:
        rows, handles = _pairs(events, matcher)
        belongs = kinds[handles]
        self._handles: list[Numbers] = []
        self._bounds: list[list[int]] = []
        own = belongs == _LATEST
        self.latest = rows[own], handles[own]
        """The pairs of those that take a batch at once."""
        for kind in (_BOOLEAN, _STEP, _ENTRY):
            own = belongs == kind
            self._handles.append(handles[own])
            self._bounds.append(np.searchsorted(rows[own], np.arange(len(events) + 1)).tolist())

    def numbers(self, row: int, kind: int) -> Numbers:
        """Return the matches of an event, sorted."""
        bounds = self._bounds[kind]
        return self._handles[kind][bounds[row] : bounds[row + 1]]

    def of(self, row: int, kind: int) -> list[int]:
        """Return the matches of an event, sorted, as a list."""
        numbers = self.numbers(row, kind)
        return numbers.tolist() if len(numbers) else []


class _Exits:
    """Whose exit conditions the events of a batch match; found for the whole batch when somebody asks."""

    def __init__(self, events: list[Mapping[str, Any]], changes: Changes) -> None:
        self._events = events
        self._changes = changes
        self._found: tuple[Numbers, Numbers] | None = None

    def of(self, row: int) -> Numbers:
        """Return the changes that an event would make false, sorted."""
        if self._found is None:
            rows, numbers = _pairs(self._events, self._changes.exits())
            self._found = numbers, np.searchsorted(rows, np.arange(len(self._events) + 1))
        numbers, bounds = self._found
        return numbers[bounds[row] : bounds[row + 1]]


def _pairs(events: list[Mapping[str, Any]], matcher: Matcher) -> tuple[Numbers, Numbers]:
    """Return the pairs of an event's row and a condition that it matches, sorted by both."""
    if not len(matcher):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(events) == 1:
        handles = np.sort(np.array(matcher.match(events[0]), np.int64))
        return np.zeros(len(handles), np.int64), handles
    table = matcher.match_batch(events)
    rows, handles = table["event"].to_numpy(), table["subscription"].to_numpy()
    # One sort of numbers that hold both is several times as fast as a sort by two columns.
    pairs = np.sort((rows << _HANDLE_BITS) | handles)
    return pairs >> _HANDLE_BITS, pairs & ((1 << _HANDLE_BITS) - 1)


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


def _moment(now: Any) -> float:
    if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now):
        raise EventError(f"a time must be a finite number of seconds, not {now!r}")
    return float(now)


def _end(expires: Any) -> float:
    if expires is None:
        return math.inf
    if isinstance(expires, bool) or not isinstance(expires, int | float) or math.isnan(expires):
        raise EventError(f"an event must expire at a number of seconds, not {expires!r}")
    return float(expires)
