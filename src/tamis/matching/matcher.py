"""How do people register subscriptions and match events? The facade of the package.

`Matcher` is the same for every algorithm: it registers (`registering`), hands events to the algorithm, and turns the
handles of its matches into ids, lists and Arrow tables (`register`). Many threads may match while others register; a
match sees the subscriptions of one moment. A matcher can be saved, and loaded by another process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
import pyarrow as pa

from tamis.errors import EventError, LabMissingError, TamisError
from tamis.language.explanation import Explanation, explain
from tamis.language.functions import NO_FUNCTIONS, Functions, functions_of
from tamis.matching import storage
from tamis.matching.block.access import AccessPlan
from tamis.matching.columns import Events
from tamis.matching.destinations import Destinations
from tamis.matching.errors import MatcherOptionError, SavedMatcherError, UnknownIdError
from tamis.matching.register import Register, column_of, integer_column
from tamis.matching.registering import Registering
from tamis.matching.scanning.lines import EventLines
from tamis.matching.scanning.scanner import decoded
from tamis.matching.sightings import Asked, Sightings, Unmet, asked_by, unmet
from tamis.matching.warming import SIZES, made_up
from tamis.matching.watching import PlainAxes, Watch

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import numpy.typing as npt

    from tamis.language.schema import Schema
    from tamis.language.types import Written
    from tamis.matching.base import Handles, Snapshot
    from tamis.matching.tables import Batch
    from tamis.selectivity.counters import Tallied


class ShortcutMatches(NamedTuple):
    """Who wants which event of a batch: subscriptions that have no destination, and the destinations of the others.

    events         int64[:]            the number of an event, sorted; beside it
    subscriptions  int64[:] or object[:]    the id of a match without a destination; of one event the highest priority
                                       first, then in order of registration
    reaching       int64[:]            the number of an event, sorted; beside it
    destinations   int64[:]            the number of a destination that it reaches, each once
    names          list                destinations by number
    """

    events: Handles
    subscriptions: npt.NDArray[Any]
    reaching: Handles
    destinations: Handles
    names: Sequence[Any]


MATCHED_SINGLY = 7
"""Up to so many mappings are matched without further ado: no columns are made, and nobody asks whether they are few."""
WATCHED = 16
"""One of so many events is looked at, where a matcher is watched."""


class Matcher(Registering):
    """Standing questions, and which of them an event answers.

    >>> matcher = Matcher()
    >>> matcher.add("cheap", "price < 20")
    >>> matcher.add("signed", "signed AND bids <= 3", priority=1)
    >>> matcher.match({"price": 12, "signed": True, "bids": 2})
    ['signed', 'cheap']
    >>> matcher.match_batch([{"price": 12}, {"price": 25}, {"price": 3}]).to_pydict()
    {'event': [0, 2], 'subscription': ['cheap', 'cheap']}
    """

    def __init__(
        self,
        algorithm: str = "block",
        schema: Schema | Mapping[str, Written] | None = None,
        *,
        functions: Functions | None = None,
    ) -> None:
        super().__init__(algorithm, schema, functions=functions)
        self._watch: Watch | None = None
        self._plain_axes: tuple[Snapshot, PlainAxes] | None = None
        self._sightings = Sightings()

    @property
    def locks(self) -> Sequence[Any]:
        return super().locks if self._watch is None else (*super().locks, self._watch.lock)

    # -- Matching

    @overload
    def match(self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None) -> list[Any]: ...

    @overload
    def match(
        self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None, metadata: Literal[True]
    ) -> list[tuple[Any, Any]]: ...

    def match(
        self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None, metadata: bool = False
    ) -> list[Any]:
        """Return the ids of the subscriptions that match, the highest priority first, then in order of registration.

        among       only these subscriptions are asked
        metadata    return pairs of an id and what was registered with it

        >>> matcher = Matcher()
        >>> matcher.add("cheap", "price < 20", metadata={"mail": "a@example.org"})
        >>> matcher.match({"price": 12}, metadata=True)
        [('cheap', {'mail': 'a@example.org'})]
        """
        if not isinstance(event, Mapping):
            raise EventError(f"an event must be a mapping from names to values, not {type(event).__name__}")
        snapshot, register, asked = self._snapshot(among)
        self._sightings.look(event)
        if self._watch is not None and self._watch.take_turn():
            self._look_at_event(self._watch, snapshot, event)
        handles = register.in_order(snapshot.match_event(event, asked))
        names = register.names(handles)
        return names if not metadata else list(zip(names, map(register.metadata.get, handles.tolist()), strict=True))

    @overload
    def match_json(self, event: bytes | str, *, among: Iterable[Hashable] | None = None) -> list[Any]: ...

    @overload
    def match_json(
        self, event: bytes | str, *, among: Iterable[Hashable] | None = None, metadata: Literal[True]
    ) -> list[tuple[Any, Any]]: ...

    def match_json(
        self, event: bytes | str, *, among: Iterable[Hashable] | None = None, metadata: bool = False
    ) -> list[Any]:
        """Return what `match` returns of an event in JSON, as `json.loads` reads it.

        Bytes are read by compiled loops, and only what somebody mentions becomes values. What is not everyday, and what
        is wrong, goes the long way: an `EventError` says what `json.loads` says of it.

        >>> matcher = Matcher()
        >>> matcher.add_many({"cheap": "price < 20", "near": "position.city = 'Leeds'"})
        >>> matcher.match_json(b'{"price": 12, "position": {"city": "Leeds"}, "note": [1, 2, 3]}')
        ['cheap', 'near']
        """
        if type(event) is bytes and self._watch is None:
            snapshot, register, asked = self._snapshot(among)
            matched = snapshot.match_json(event, asked)
            if matched is not None:
                shape, handles = matched
                self._sightings.look_at_json(shape, event)
                handles = register.in_order(handles)
                names = register.names(handles)
                if not metadata:
                    return names
                return list(zip(names, map(register.metadata.get, handles.tolist()), strict=True))
        mapping = decoded(event)
        return self.match(mapping, among=among, metadata=True) if metadata else self.match(mapping, among=among)

    def match_in_order(
        self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None
    ) -> Iterator[list[Any]]:
        """Yield the ids that `match` returns, in the same order, in groups: the urgent ones as soon as they are known.

        An algorithm that knows of priorities (`atree`) looks for those of lower priority only when they are asked for.

        >>> matcher = Matcher("atree")
        >>> matcher.add_many([("cheap", "price < 20", 0), ("very cheap", "price < 10", 2)])
        >>> list(matcher.match_in_order({"price": 5}))
        [['very cheap'], ['cheap']]
        """
        if not isinstance(event, Mapping):
            raise EventError(f"an event must be a mapping from names to values, not {type(event).__name__}")
        snapshot, register, asked = self._snapshot(among)
        self._sightings.look(event)
        for group in snapshot.match_event_in_order(event, asked):
            if len(group):
                yield register.names(register.in_order(group))

    def match_batch(
        self,
        events: Batch | Events,
        *,
        among: Iterable[Hashable] | None = None,
        threads: int = 1,
        metadata: bool = False,
    ) -> pa.Table:
        """Return the matches of a batch by event: a table of `event` (the row's number) and `subscription` (the id).

        With `metadata` there is a third column of what was registered with the subscription. Where ids are of several
        types, their column is a union of these: `to_pylist` gives each id as it was registered. So few events that they
        are sooner matched one by one are matched so.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", "cheap": "price < 15"})
        >>> matcher.match_batch([{"price": 12}, {"price": 18}]).to_pydict()
        {'event': [0, 0, 1], 'subscription': [1, 'cheap', 1]}
        """
        if (
            type(events) is list
            and len(events) <= MATCHED_SINGLY
            and self._watch is None
            and set(map(type, events)) == {dict}
        ):
            register, numbers, handles = self._few_pairs(events, among)
        else:
            register, _, numbers, handles = self._pairs(events, among, threads)
        return self._as_table(register, numbers, handles, metadata=metadata)

    def match_json_lines(
        self, events: bytes | str, *, among: Iterable[Hashable] | None = None, metadata: bool = False
    ) -> pa.Table:
        r"""Return what `match_batch` returns of events in JSON, one in each line, as `json.loads` reads them.

        Events are counted from 0; blank lines are none. Compiled loops read all lines, and only what somebody mentions
        becomes values; a line that is no event raises an `EventError` that says which.

        >>> matcher = Matcher()
        >>> matcher.add_many({"cheap": "price < 20", "near": "position.city = 'Leeds'"})
        >>> lines = b'{"price": 12, "position": {"city": "Leeds"}}\n{"price": 25}\n{"price": 3}\n'
        >>> matcher.match_json_lines(lines).to_pydict()
        {'event': [0, 0, 2], 'subscription': ['cheap', 'near', 'cheap']}
        """
        lines = EventLines(events)
        if self._watch is None and len(lines):
            snapshot, register, asked = self._snapshot(among)
            matched = snapshot.match_json_lines(lines, asked)
            if matched is not None:
                shapes, (numbers, handles) = matched
                self._sightings.look_at_lines(shapes, lines)
                return self._as_table(register, numbers, handles, metadata=metadata)
        return self.match_batch(list(map(lines.event, range(len(lines)))), among=among, metadata=metadata)

    @staticmethod
    def _as_table(register: Register, numbers: Handles, handles: Handles, *, metadata: bool) -> pa.Table:
        """Return matches as a table; the arrays may be written over."""
        if not metadata:
            return pa.Table.from_arrays([integer_column(numbers), register.column(handles)], ["event", "subscription"])
        columns = {"event": integer_column(numbers)}
        used, places = np.unique(handles, return_inverse=True)
        values = column_of(list(map(register.metadata.get, used.tolist())), "metadata")
        columns["metadata"] = values.take(pa.array(places))
        columns["subscription"] = register.column(handles)  # last, because it writes over the handles
        names = ("event", "subscription", "metadata")
        return pa.Table.from_arrays([columns[name] for name in names], names)

    def count_batch(self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1) -> pa.Array:
        """Return how many subscriptions match each event."""
        _, count, numbers, _ = self._pairs(events, among, threads)
        return pa.array(np.bincount(numbers, minlength=count), pa.int64())

    def list_batch(self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1) -> pa.ListArray:
        """Return, for each event, the ids that match, the highest priority first, then in order of registration."""
        register, count, numbers, handles = self._pairs(events, among, threads)
        numbers, handles = register.in_order_by_event(numbers, handles)
        counts = np.bincount(numbers, minlength=count)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), register.column(handles))

    def any_batch(self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1) -> pa.Array:
        """Return, for each event, whether any subscription matches."""
        _, count, numbers, _ = self._pairs(events, among, threads)
        return pa.array(np.bincount(numbers, minlength=count) > 0)

    # -- Matching by destination

    def match_destinations(self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None) -> list[Any]:
        """Return the destinations of the subscriptions that match, each once, in the order in which they first came.

        Once one of its subscriptions is found to match, a destination is not asked again: of many that match, few are
        evaluated.

        >>> matcher = Matcher()
        >>> matcher.add("cheap", "price < 20", destination="north")
        >>> matcher.add("very cheap", "price < 10", destination="north")
        >>> matcher.add("any", "price > 0", destination="south")
        >>> matcher.match_destinations({"price": 5}), matcher.match_destinations({"price": 25})
        (['north', 'south'], ['south'])
        """
        return self._reached(event, among)[2]

    def match_shortcut(
        self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Return the ids of the matches that have no destination, as `match` does, and the destinations of the others.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "a = 1", 2: "a > 0", 3: "a < 9"}, destinations={1: "north", 2: "north"})
        >>> matcher.match_shortcut({"a": 1})
        ([3], ['north'])
        """
        register, handles, destinations = self._reached(event, among)
        return register.names(register.in_order(handles)), destinations

    def _reached(
        self, event: Mapping[str, Any], among: Iterable[Hashable] | None
    ) -> tuple[Register, Handles, list[Any]]:
        if not isinstance(event, Mapping):
            raise EventError(f"an event must be a mapping from names to values, not {type(event).__name__}")
        snapshot, register, asked, destinations = self._snapshot_and_destinations(among)
        self._sightings.look(event)
        if self._watch is not None and self._watch.take_turn():
            self._look_at_event(self._watch, snapshot, event)
        handles, numbers = snapshot.reach_event(event, destinations, asked)
        return register, handles, list(map(destinations.names.__getitem__, numbers.tolist()))

    def match_destinations_batch(
        self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1
    ) -> pa.Table:
        """Return the destinations of each event of a batch: a table of `event` (the row's number) and `destination`.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "a = 1", 2: "a > 0"}, destinations=["north", "north"])
        >>> matcher.match_destinations_batch([{"a": 1}, {"a": 0}, {"a": 2}]).to_pydict()
        {'event': [0, 2], 'destination': ['north', 'north']}
        """
        batch = Events(events)
        self._engine.observe(batch)
        self._sightings.look_at_all(batch)
        snapshot, _, asked, destinations = self._snapshot_and_destinations(among, batch)
        if self._watch is not None:
            self._look_at_events(self._watch, snapshot, batch, self._watch.rows(batch.count))
        _, (numbers, reached) = snapshot.reach_events(batch, destinations, asked, threads)
        used, places = np.unique(reached, return_inverse=True)
        names = column_of([destinations.names[number] for number in used.tolist()], "destinations")
        return pa.table({"event": pa.array(numbers, pa.int64()), "destination": names.take(pa.array(places))})

    def match_shortcut_batch(
        self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1
    ) -> ShortcutMatches:
        """Return what `match_shortcut` does for each event of a batch, as arrays.

        A matcher that is watched looks at the same events as if they came one by one.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "a = 1", 2: "a > 0", 3: "a < 9"}, destinations={1: "north", 2: "north"})
        >>> found = matcher.match_shortcut_batch([{"a": 1}, {"a": 10}])
        >>> found.events.tolist(), found.subscriptions.tolist()
        ([0], [3])
        >>> found.reaching.tolist(), [found.names[number] for number in found.destinations.tolist()]
        ([0, 1], ['north', 'north'])
        """
        batch = Events(events)
        self._engine.observe(batch)
        self._sightings.look_at_all(batch)
        snapshot, register, asked, destinations = self._snapshot_and_destinations(among, batch)
        if self._watch is not None:
            self._look_at_events(self._watch, snapshot, batch, self._watch.due_rows(batch.count))
        (numbers, handles), (reaching, reached) = snapshot.reach_events(batch, destinations, asked, threads)
        numbers, handles = register.in_order_by_event(numbers, handles)
        return ShortcutMatches(numbers, register.array(handles), reaching, reached, destinations.names)

    def _snapshot_and_destinations(
        self, among: Iterable[Hashable] | None, batch: Events | None = None
    ) -> tuple[Snapshot, Register, Handles | None, Destinations]:
        with self._lock:
            snapshot, register, asked = self._snapshot(among, batch)
            return snapshot, register, asked, register.destinations

    # -- The moment

    def _few_pairs(
        self, events: list[dict[str, Any]], among: Iterable[Hashable] | None
    ) -> tuple[Register, Handles, Handles]:
        """Return what `_pairs` does, of so few events that what is done once for a batch costs more than it saves."""
        snapshot, register, asked = self._snapshot(among)
        for event in events:
            self._sightings.look(event)
        if len(events) == 1:
            handles = snapshot.match_event(events[0], asked).copy()
            return register, np.zeros(len(handles), np.int64), handles
        return register, *snapshot.match_few(events, asked)

    def _pairs(
        self, batch: Batch | Events, among: Iterable[Hashable] | None, threads: int
    ) -> tuple[Register, int, Handles, Handles]:
        """Return whose handles these are, the number of events, and the events and handles of all matches."""
        events = batch if isinstance(batch, Events) else Events(batch)
        self._engine.observe(events)
        self._sightings.look_at_all(events)
        snapshot, register, asked = self._snapshot(among, events)
        if self._watch is not None:
            self._look_at_events(self._watch, snapshot, events, self._watch.rows(events.count))
        return register, events.count, *snapshot.match_events(events, asked, threads)

    def _snapshot(
        self, among: Iterable[Hashable] | None, batch: Events | None = None
    ) -> tuple[Snapshot, Register, Handles | None]:
        """Return the set of this moment, the register that knows its handles, and the handles that are asked for.

        It is for a single event, or for a batch.
        """
        with self._lock:
            asked = None
            if among is not None:
                try:
                    asked = np.array(sorted(self._register.handles[each] for each in among), np.int64)
                except KeyError as missing:
                    raise UnknownIdError(missing.args[0]) from None
            snapshot = self._engine.snapshot() if batch is None else self._engine.snapshot_for(batch)
            return snapshot, self._register, asked

    # -- Watching

    def watch(self, every: int = WATCHED) -> None:
        """Look at one of so many of the events that are matched from now on, and count which predicates are true.

        >>> import tamis
        >>> from tamis.selectivity import Counters
        >>> matcher, counters = Matcher(), Counters()
        >>> matcher.add_many({1: "price < 20 AND sold", 2: "price < 30"})
        >>> matcher.watch(every=1)
        >>> _ = matcher.match_batch([{"price": price, "sold": price > 10} for price in range(100)])
        >>> counters.take(*matcher.watched())
        >>> [counters.share(tamis.parse(text)) for text in ("price < 20", "price >= 30", "sold = TRUE")]
        [0.2, 0.7, 0.89]
        """
        self._watch = Watch(every)

    def watched(self) -> tuple[int, list[Tallied]]:
        """Return how many events were looked at since this was asked last, and their counts, for `Counters.take`."""
        return (0, []) if self._watch is None else self._watch.take()

    @property
    def watched_count(self) -> int:
        """How many events were looked at since `watched` was asked last."""
        return 0 if self._watch is None else self._watch.event_count

    def _look_at_event(self, watch: Watch, snapshot: Snapshot, event: Mapping[str, Any]) -> None:
        encoded = snapshot.encoded_event(event)
        watch.look(1, self._axes(snapshot).of_event(event) if encoded is None else encoded)

    def _look_at_events(self, watch: Watch, snapshot: Snapshot, events: Events, rows: Handles) -> None:
        if len(rows):
            seen = events.take(rows)
            encoded = snapshot.encoded_events(seen)
            watch.look(len(rows), self._axes(snapshot).of_events(seen) if encoded is None else encoded)

    def _axes(self, snapshot: Snapshot) -> PlainAxes:
        """Return the axes of all subscriptions, made anew when they have changed."""
        known = self._plain_axes
        if known is None or known[0] is not snapshot:
            with self._lock:
                expressions = [self.expression(each) for each in self._register.handles]
            known = self._plain_axes = snapshot, PlainAxes(expressions, self.schema)
        return known[1]

    # -- Looking inside

    def explain(self, subscription_id: Hashable, event: Mapping[str, Any]) -> Explanation:
        """Say why a subscription matches an event, or does not."""
        return explain(self.expression(subscription_id), event, self.schema)

    def plan(self, subscription_id: Hashable) -> AccessPlan:
        """Return how a subscription is found: its clauses, their keys or bitmaps, and the share of events they pass.

        It prints as text, and `as_dict` gives it as data. What is still open is laid out by the next batch of some
        size, or by `compile`.

        >>> matcher = Matcher()
        >>> matcher.add_many({"cheap": "price < 20 AND category = 'Thriller'", "dear": "price > 90"})
        >>> matcher.compile()
        True
        >>> print(matcher.plan("cheap"))
        subscription 'cheap': price < 20 AND category = 'Thriller'
        segment 0: 2 subscriptions, laid out by operands alone
        clause 1 of 1: by bitmap, 16.7 % of events
            key   price < 20   (price as number, 16.7 %)
            check category = 'Thriller'   (category as string, 50 %)
        """
        with self._lock:
            handle = self._register.handles.get(subscription_id)
            if handle is None:
                raise UnknownIdError(subscription_id)
            plan = self._engine.plan(handle)
            if plan is None:
                raise MatcherOptionError(f"the algorithm {self.algorithm!r} cannot show plans, only 'block' can")
            twin = None if plan.twin_of is None else self._register.ids[plan.twin_of]
            return AccessPlan(
                plan.segment, plan.segment_size, plan.is_informed, twin, plan.twin_count, plan.clauses,
                subscription_id, self.text(subscription_id),
            )  # fmt: skip

    def compile(self) -> bool:
        """Lay out the subscriptions that came last, now and in this thread; return whether there were any.

        Until then each of them is asked by itself; a thread in the background lays them out when that costs too much.
        Who knows that changes are over for a while calls this, and the next event finds nothing open. It takes some
        milliseconds for a few, and hardly anything if nothing is open, which is always so with `naive` and `atree`.

        >>> matcher = Matcher()
        >>> matcher.add("cheap", "price < 20")
        >>> matcher.compile(), matcher.compile(), matcher.statistics()["open"]
        (True, False, 0)
        """
        with self._lock:
            return self._engine.compile()

    @property
    def open_count(self) -> int:
        """How many subscriptions are not laid out yet (`compile`), and asked by themselves."""
        return self._engine.open_count

    def warm(self) -> None:
        """Get everything ready that the first events would have to wait for: what is open, and the kernels.

        Events are made up for that, alone and in groups of several sizes. They are not counted, and nothing is learnt
        from them. Nobody else may match meanwhile.

        >>> matcher = Matcher()
        >>> matcher.add_many({"cheap": "price < 20", "near": "position.city = 'Leeds'"})
        >>> matcher.warm()
        >>> matcher.statistics()["events"], matcher.statistics()["open"]
        (0, 0)
        """
        self.compile()
        asked = self.asked()
        kept = self._sightings, self._watch
        self._sightings, self._watch = Sightings(), None if self._watch is None else Watch(1)
        try:
            for is_whole in (True, False):
                events = made_up(asked, max(SIZES), is_whole=is_whole)
                self.match(events[0])
                self.match_shortcut(events[0])
                for size in SIZES:  # with destinations and without: a batch is matched by the one or the other
                    self.match_shortcut_batch(events[:size])
                    self.count_batch(events[:size])
        finally:
            self._sightings, self._watch = kept

    def settle(self) -> None:
        """Wait until nothing is laid out in the background any more."""
        self._engine.settle()

    def learn(self, events: Batch) -> None:
        """Look at a sample of events, so that what they rarely match is asked first.

        Without it the matcher takes the first batch of some size as its sample.
        """
        self._engine.learn(Events(events))

    def statistics(self) -> dict[str, Any]:
        """Return what an operator may want to see.

        Among others how many events were matched, and what of the rules can never match such events (`unmet`).
        """
        unmet = [str(each) for each in self.unmet()]
        with self._lock:
            counts = {"algorithm": self.algorithm, "subscriptions": len(self), "events": self._sightings.event_count}
            return {**counts, "unmet": unmet, **self._engine.statistics()}

    def unmet(self) -> list[Unmet]:
        """Return what rules ask for and no event had so far: attributes, and values of the type they compare with.

        Of batches everything is looked at; of single events each, until they have looked alike for long, and then some.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "prize < 20", 2: "price < 20 AND title LIKE 'The %'"})
        >>> matcher.match({"price": "12", "title": "The House"})
        []
        >>> for each in matcher.unmet():
        ...     print(each)
        price is compared with numbers, and events had only texts
        no event had the attribute prize
        """
        return unmet(self.asked(), self._sightings.kinds) if self._sightings.event_count else []

    def asked(self) -> tuple[Asked, ...]:
        """Return which attributes rules ask for, each with the kind of value that it is compared with.

        >>> matcher = Matcher()
        >>> matcher.add("cheap", "price < 20")
        >>> matcher.asked()
        (Asked(path=('price',), expected='number'),)
        """
        with self._lock:
            axes = self._engine.axes()
            if axes is None:
                axes = self._axes(self._engine.snapshot()).axes
        return asked_by(axes)

    def memory(self) -> int:
        """Return how many bytes the matcher takes, roughly: its arrays, the ids and the texts."""
        with self._lock:
            return self._engine.memory() + self._register.memory()

    # -- Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matcher to a file, compiled as it is; one that is there already is replaced at once, or not at all.

        Ids are integers or texts, and metadata is what JSON has a form for. Others may register and match meanwhile;
        what is saved is the set of one moment.
        """
        storage.write(path, self._gathered())

    def _gathered(self) -> storage.Saved:
        with self._lock:
            parts = self._engine.parts()
            return storage.gathered(self.algorithm, self.schema, self._register, parts, self.functions, self._now)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        verify: bool = True,
        recompile: bool = False,
        functions: Functions | None = None,
    ) -> Matcher:
        """Return the matcher that was saved in a file. The file is mapped, so leave it as it is; `save` may replace it.

        `verify` reads the whole file once to find out whether a disk or a transfer has damaged it. That says nothing of
        somebody who meant to: what was compiled is used unseen, so `recompile` what comes from strangers. Then only
        ids, priorities and texts are read, and the texts are parsed again.

        A file has the names and versions of the functions of the host that its conditions may call, and no code: they
        are given as `functions`, and one that is missing, or of another version, is named by the error.

        >>> from tempfile import TemporaryDirectory
        >>> matcher = Matcher()
        >>> matcher.add("cheap", "price < 20")
        >>> with TemporaryDirectory() as folder:
        ...     matcher.save(f"{folder}/auctions.tamis")
        ...     Matcher.load(f"{folder}/auctions.tamis").match({"price": 12})
        ['cheap']
        """
        saved = storage.read(path, verify=verify, texts_only=recompile, functions=functions_of(functions))
        try:
            return cls._restored(saved)
        except LabMissingError:
            raise  # the file is whole; what it needs can be installed
        except (TamisError, UnicodeDecodeError) as error:
            raise SavedMatcherError(f"{path} does not hold a matcher of this version: {error}") from error

    @classmethod
    def _restored(cls, saved: storage.Saved) -> Matcher:
        matcher = cls(saved.algorithm, saved.schema, functions=saved.functions)
        register, engine = matcher._register, matcher._engine
        register.restore(saved.ids, saved.sources, saved.priorities, saved.metadata, saved.destinations, saved.untils)
        matcher._now = saved.now
        register.is_numbered |= saved.is_numbered and not saved.ids
        if saved.parts is not None:
            engine.restore(saved.parts)
        else:
            living = register.living()
            sources = [str(source) for source in saved.sources if source is not None]
            texts = engine.read(sources)
            prepared = (
                engine.prepare(map(matcher._read, sources))
                if texts is None
                else texts.prepared(range(len(sources)), lambda number: matcher._read(sources[number]))
            )
            engine.add(living.tolist(), prepared)
        urgent, priorities = register.urgent()
        if urgent:
            engine.prioritise(urgent, priorities)
        if register.is_worn:
            matcher._renumber()
        return matcher

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what `save` would save; ids, metadata and destinations may be whatever can be pickled."""
        saved = self._gathered()
        given = {"ids": saved.ids, "metadata": dict(saved.metadata), "destinations": saved.destinations}
        plain: dict[str, Any] = {"ids": list(range(len(saved.ids))), "metadata": {}, "destinations": Destinations()}
        content = storage.to_bytes(dataclasses.replace(saved, **plain))
        return _unpickled, (type(self), content, given, *([self.functions] if self.functions else []))


def _unpickled(
    kind: type[Matcher], content: bytes, given: dict[str, Any], functions: Functions = NO_FUNCTIONS
) -> Matcher:
    return kind._restored(dataclasses.replace(storage.from_bytes(content, functions), **given))
