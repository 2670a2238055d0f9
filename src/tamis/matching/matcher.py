"""How do people register subscriptions and match events?

`Matcher` is the same for every algorithm: it keeps ids, priorities and what was registered, hands out handles, and
turns the matches of an algorithm into ids, lists and Arrow tables. Many threads may match while others register; a
match sees the subscriptions of one moment. A matcher can be saved, and loaded by another process.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import EventError, TamisError
from tamis.language.checking import check
from tamis.language.explanation import Explanation, explain
from tamis.language.expressions import Condition as ConditionNode
from tamis.language.expressions import Expression, is_condition
from tamis.language.parser import parse
from tamis.matching import kernels, storage
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.columns import Events
from tamis.matching.destinations import Destinations, named
from tamis.matching.errors import (
    BadTableError,
    DuplicateIdError,
    OptionError,
    SavedMatcherError,
    UnknownAlgorithmError,
    UnknownIdError,
)
from tamis.matching.rejections import Rejected, Sieve
from tamis.matching.sources import Sources, parsed
from tamis.matching.tables import subscription_rows
from tamis.matching.watching import PlainAxes, Watch

if TYPE_CHECKING:
    import os

    from tamis.language.schema import Schema
    from tamis.matching.base import Handles, Snapshot
    from tamis.matching.tables import ArrowStream, Batch, Interchanged, Rows, Table
    from tamis.selectivity.counters import Tallied

Condition: TypeAlias = "str | Expression"
Entry: TypeAlias = "tuple[Hashable, Condition] | tuple[Hashable, Condition, int]"
Subscriptions: TypeAlias = (
    "Mapping[Any, Condition] | Iterable[Entry] | Iterable[Mapping[str, Any]] | Table | ArrowStream | Interchanged"
)
WATCHED = 16
"""One of so many events is looked at, where a matcher is watched."""


class Matcher:
    """Standing questions, and which of them an event answers.

    >>> matcher = Matcher()
    >>> matcher.add("cheap", "price < 20")
    >>> matcher.add("signed", "signed AND bids <= 3", priority=1)
    >>> matcher.match({"price": 12, "signed": True, "bids": 2})
    ['signed', 'cheap']
    >>> matcher.match_batch([{"price": 12}, {"price": 25}, {"price": 3}]).to_pydict()
    {'event': [0, 2], 'subscription': ['cheap', 'cheap']}
    """

    def __init__(self, algorithm: str = "block", schema: Schema | None = None) -> None:
        if algorithm not in ALGORITHMS:
            raise UnknownAlgorithmError(algorithm, tuple(ALGORITHMS))
        self.algorithm = algorithm
        self.schema = schema
        self._engine = ALGORITHMS[algorithm](schema)
        self._lock = threading.RLock()
        self._handles: dict[Hashable, int] = {}
        self._ids: list[Any] = []
        self._sources = Sources()
        self._priorities: npt.NDArray[np.int64] | None = None
        """By handle, with room for more; None as long as all of them are 0."""
        self._integer_ids: npt.NDArray[np.int64] | None = np.zeros(0, np.int64)
        """By handle, with room for more; None once an id is no integer of 64 bits."""
        self._id_array: npt.NDArray[Any] | None = None
        self._watch: Watch | None = None
        self._plain_axes: tuple[Snapshot, PlainAxes] | None = None
        self._destinations = Destinations()

    def __len__(self) -> int:
        return len(self._handles)

    def __contains__(self, subscription_id: Hashable) -> bool:
        return subscription_id in self._handles

    # -- Registration

    def add(
        self, subscription_id: Hashable, condition: Condition, *, priority: int = 0, destination: Hashable = None
    ) -> None:
        """Register a subscription: a text, or an expression. Its matches may have a `destination`."""
        self.add_many([(subscription_id, condition, priority)], destinations=[destination])

    @overload
    def add_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        destinations: Mapping[Any, Hashable] | Iterable[Hashable] = (),
    ) -> None: ...

    @overload
    def add_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        destinations: Mapping[Any, Hashable] | Iterable[Hashable] = (),
        on_error: Literal["skip"],
    ) -> list[Rejected]: ...

    def add_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        destinations: Mapping[Any, Hashable] | Iterable[Hashable] = (),
        on_error: Literal["raise", "skip"] = "raise",
    ) -> list[Rejected] | None:
        """Register many subscriptions at once; all of them, or none if one is bad.

        They come as a mapping from ids to conditions; as tuples of id and condition (and priority); as mappings with
        these as keys; or as a table of any library that speaks Arrow's C stream or the dataframe interface: polars,
        pandas, DuckDB, pyarrow with its readers and datasets.

        id, where, priority    the columns of ids (else `subscription_id` or `id`), of conditions (else `condition` or
                               `where`) and of priorities (else `priority`, if there is one)
        on_error               "raise": the first bad row is an error, and nothing is registered;
                               "skip": bad rows are left out and returned, each with the reason. Of rows with one id
                               the first that is good stays, and the later ones are rejected.

        `destinations`, for `match_destinations`, is a mapping from ids, or as long as the subscriptions and in their
        order; None stands for none.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", 2: "price < 30"})
        >>> matcher.match({"price": 25})
        [2]
        >>> rejected = matcher.add_many([(2, "price < 40"), (3, "price <"), (4, "price < 50")], on_error="skip")
        >>> [(each.id, each.error) for each in rejected], len(matcher)
        ([(2, 'DuplicateIdError'), (3, 'ExpressionSyntaxError')], 3)
        """
        rows = subscription_rows(subscriptions, id=id, where=where, priority=priority)
        rows.destinations = named(destinations, rows.ids)
        if on_error == "skip":
            return self._add_good(rows)
        if on_error != "raise":
            raise OptionError(f"on_error is 'raise' or 'skip', not {on_error!r}")
        objection = rows.first_objection()
        if objection is not None:
            raise BadTableError(f"row {objection[0]} ({rows.ids[objection[0]]!r}): {objection[1]}")
        prepared = self._engine.prepare(self._expressions(rows.ids, rows.conditions))
        with self._lock:
            self._register(rows, prepared)
        return None

    def _add_good(self, rows: Rows) -> list[Rejected]:
        """Register the rows that can be; return the others."""
        understood: Callable[[Any], Expression] = self._understood
        while True:
            sieve = Sieve(rows, self._handles, understood)
            try:
                prepared = self._engine.prepare(sieve.expressions())
            except TamisError:  # the algorithm refuses one of them, so it is worth the time to ask it for each
                assert understood != self._prepared_alone, "an algorithm that took each takes all of them"
                understood = self._prepared_alone
                continue
            good = rows.chosen(sieve.accepted)
            with self._lock:
                if self._handles.keys().isdisjoint(good.ids):  # else somebody was quicker, and came first
                    self._register(good, prepared)
                    return sieve.rejected

    def _prepared_alone(self, condition: Any) -> Expression:
        expression = self._understood(condition)
        self._engine.prepare([expression])
        return expression

    def _register(self, rows: Rows, prepared: Any) -> None:
        ids = rows.ids
        first = len(self._ids)
        new = dict(zip(ids, range(first, first + len(ids)), strict=True))
        if len(new) < len(ids) or not self._handles.keys().isdisjoint(new):
            raise DuplicateIdError(_first_repeated(ids, self._handles))
        self._engine.add(range(first, first + len(ids)), prepared)
        if self._handles:
            self._handles |= new
        else:
            self._handles = new
        self._ids += ids
        self._note_integers(first, ids)
        self._sources.extend(rows.conditions)
        self._prioritise(first, np.array(rows.priorities or [0] * len(ids), np.int64))
        if rows.destinations is not None:
            self._destinations.extend(first, rows.destinations)
        self._id_array = None

    def check(self, condition: Condition) -> None:
        """Raise what `add` would raise for a condition, and register nothing.

        >>> import tamis
        >>> Matcher(schema=tamis.Schema({"price": "double"})).check("price < 20")
        """
        self._engine.prepare(list(self._expressions([None], [condition])))

    def _note_integers(self, first: int, ids: list[Any]) -> None:
        if self._integer_ids is None:
            return
        if set(map(type, ids)) - {int}:
            self._integer_ids = None
            return
        try:
            new = np.fromiter(ids, np.int64, len(ids))
        except OverflowError:
            self._integer_ids = None
            return
        # A little room only: at a million subscriptions every byte counts.
        known = self._integer_ids
        if len(known) < first + len(ids):
            known = np.zeros(first + len(ids) + (first >> 2), np.int64)
            known[:first] = self._integer_ids[:first]
        known[first : first + len(ids)] = new
        self._integer_ids = known

    def _prioritise(self, first: int, priorities: npt.NDArray[np.int64]) -> None:
        if self._priorities is None and not priorities.any():
            return
        known = np.zeros(0, np.int64) if self._priorities is None else self._priorities
        if len(known) < len(self._ids):
            grown = np.zeros(max(1024, 2 * len(self._ids)), np.int64)
            grown[: len(known)] = known
            known = grown
        known[first : len(self._ids)] = priorities
        self._priorities = known
        chosen = np.flatnonzero(priorities)
        self._engine.prioritise((first + chosen).tolist(), priorities[chosen])

    def _expressions(self, ids: list[Any], conditions: list[Any]) -> Iterable[Expression]:
        """Return the expression of each condition."""
        if self.schema is None and all(issubclass(kind, ConditionNode) for kind in set(map(type, conditions))):
            return conditions
        return self._parsed(ids, conditions)

    def _parsed(self, ids: list[Any], conditions: list[Any]) -> Iterator[Expression]:
        """Yield the expression of each condition, as far as somebody asks: texts are many, and expressions large."""
        for subscription_id, condition in zip(ids, conditions, strict=True):
            try:
                yield self._understood(condition)
            except TamisError as error:
                error.add_note(f"in the subscription {subscription_id!r}")
                raise

    def _understood(self, condition: Any) -> Expression:
        """Return what a condition asks."""
        if isinstance(condition, str):
            return parse(condition, self.schema)
        if not isinstance(condition, Expression) or not is_condition(condition):
            raise BadTableError(f"a condition is a text or an expression, not {type(condition).__name__}")
        if self.schema is not None:
            check(condition, self.schema)
        return condition

    def remove(self, subscription_id: Hashable) -> None:
        """Remove a subscription."""
        self.remove_many([subscription_id])

    def remove_many(self, subscription_ids: Iterable[Hashable]) -> None:
        """Remove many subscriptions at once; all of them, or none if one is not registered.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", 2: "price < 30", 3: "price < 40"})
        >>> matcher.remove_many([1, 3])
        >>> matcher.match({"price": 10})
        [2]
        """
        with self._lock:
            gone: dict[Hashable, int] = {}
            for each in subscription_ids:
                if each not in self._handles or each in gone:
                    raise UnknownIdError(each)
                gone[each] = self._handles[each]
            self._engine.remove_many(gone.values())
            for each, handle in gone.items():
                del self._handles[each]
                self._sources.forget(handle)
                self._destinations.forget(handle)
            if self._destinations.is_worn:
                self._destinations = self._destinations.renewed(self._sources.alive)

    # -- Matching

    def match(self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None) -> list[Any]:
        """Return the ids of the subscriptions that match, the highest priority first, then in order of registration.

        With `among`, only these subscriptions are asked.
        """
        if not isinstance(event, Mapping):
            raise EventError(f"an event is a mapping from names to values, not {type(event).__name__}")
        snapshot, asked = self._snapshot(among, is_batch=False)
        if self._watch is not None and self._watch.is_due():
            self._look_at_event(self._watch, snapshot, event)
        return self._ids_in_order(np.sort(snapshot.match_event(event, asked)))

    def _ids_in_order(self, handles: Handles) -> list[Any]:
        """Return the ids of sorted handles, the highest priority first."""
        if self._priorities is not None:
            handles = handles[np.argsort(-self._priorities[handles], kind="stable")]
        integers, ids = self._integer_ids, self._ids
        if integers is not None:  # new integers cost less than looking for the registered ones all over the memory
            return integers[handles].tolist()  # type: ignore[no-any-return]
        return [ids[handle] for handle in handles.tolist()]

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
            raise EventError(f"an event is a mapping from names to values, not {type(event).__name__}")
        snapshot, asked = self._snapshot(among, is_batch=False)
        for group in snapshot.match_event_in_order(event, asked):
            handles = np.sort(group)
            if self._priorities is not None:
                handles = handles[np.argsort(-self._priorities[handles], kind="stable")]
            if len(handles):
                yield [self._ids[handle] for handle in handles.tolist()]

    def match_batch(self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1) -> pa.Table:
        """Return the matches of a batch by event: a table of `event` (the row's number) and `subscription` (the id)."""
        _, numbers, handles = self._pairs(events, among, threads)
        return pa.table({"event": pa.array(numbers, pa.int64()), "subscription": self._arrow_ids(handles)})

    def count_batch(self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1) -> pa.Array:
        """Return how many subscriptions match each event."""
        count, numbers, _ = self._pairs(events, among, threads)
        return pa.array(np.bincount(numbers, minlength=count), pa.int64())

    def list_batch(self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1) -> pa.ListArray:
        """Return, for each event, the ids that match, the highest priority first, then in order of registration."""
        count, numbers, handles = self._pairs(events, among, threads)
        priorities = 0 * handles if self._priorities is None else self._priorities[handles]
        order = np.lexsort((handles, -priorities, numbers))
        counts = np.bincount(numbers, minlength=count)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), self._arrow_ids(handles[order]))

    def any_batch(self, events: Batch, *, among: Iterable[Hashable] | None = None, threads: int = 1) -> pa.Array:
        """Return, for each event, whether any subscription matches."""
        count, numbers, _ = self._pairs(events, among, threads)
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
        return self._reached(event, among)[1]

    def match_shortcut(
        self, event: Mapping[str, Any], *, among: Iterable[Hashable] | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Return the ids of the matches that have no destination, as `match` does, and the destinations of the others.

        >>> matcher = Matcher()
        >>> matcher.add_many({1: "a = 1", 2: "a > 0", 3: "a < 9"}, destinations={1: "north", 2: "north"})
        >>> matcher.match_shortcut({"a": 1})
        ([3], ['north'])
        """
        handles, destinations = self._reached(event, among)
        return self._ids_in_order(np.sort(handles)), destinations

    def _reached(self, event: Mapping[str, Any], among: Iterable[Hashable] | None) -> tuple[Handles, list[Any]]:
        if not isinstance(event, Mapping):
            raise EventError(f"an event is a mapping from names to values, not {type(event).__name__}")
        snapshot, asked, destinations = self._snapshot_and_destinations(among, is_batch=False)
        if self._watch is not None and self._watch.is_due():
            self._look_at_event(self._watch, snapshot, event)
        handles, numbers = snapshot.reach_event(event, destinations, asked)
        return handles, list(map(destinations.names.__getitem__, numbers.tolist()))

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
        snapshot, asked, destinations = self._snapshot_and_destinations(among, is_batch=True)
        if self._watch is not None:
            self._look_at_events(self._watch, snapshot, batch)
        _, (numbers, reached) = snapshot.reach_events(batch, destinations, asked, threads)
        used, places = np.unique(reached, return_inverse=True)
        names = _column_of([destinations.names[number] for number in used.tolist()], "destinations")
        return pa.table({"event": pa.array(numbers, pa.int64()), "destination": names.take(pa.array(places))})

    def _snapshot_and_destinations(
        self, among: Iterable[Hashable] | None, *, is_batch: bool
    ) -> tuple[Snapshot, Handles | None, Destinations]:
        with self._lock:
            return *self._snapshot(among, is_batch=is_batch), self._destinations

    def destination(self, subscription_id: Hashable) -> Any:
        """Return the destination of a subscription; None if it has none."""
        with self._lock:
            if subscription_id not in self._handles:
                raise UnknownIdError(subscription_id)
            return self._destinations.name_of(self._handles[subscription_id])

    def destinations(self) -> list[Any]:
        """Return all destinations that subscriptions have, in the order in which they were first given."""
        with self._lock:
            return self._destinations.living()

    def _pairs(self, batch: Batch, among: Iterable[Hashable] | None, threads: int) -> tuple[int, Handles, Handles]:
        """Return the number of events, and the events and handles of all matches."""
        events = Events(batch)
        self._engine.observe(events)
        snapshot, asked = self._snapshot(among, is_batch=True)
        if self._watch is not None:
            self._look_at_events(self._watch, snapshot, events)
        return events.count, *snapshot.match_events(events, asked, threads)

    def _snapshot(self, among: Iterable[Hashable] | None, *, is_batch: bool) -> tuple[Snapshot, Handles | None]:
        with self._lock:
            asked = None
            if among is not None:
                try:
                    asked = np.array(sorted(self._handles[each] for each in among), np.int64)
                except KeyError as missing:
                    raise UnknownIdError(missing.args[0]) from None
            return (self._engine.compiled_snapshot() if is_batch else self._engine.snapshot()), asked

    def _arrow_ids(self, handles: Handles) -> pa.Array:
        """Return the ids of handles, in the same memory where they are numbers: matches may be many."""
        integers = self._integer_ids
        if integers is not None and len(self._ids):
            kernels.rename(handles, integers)
            return pa.array(handles)
        with self._lock:
            if self._id_array is None or len(self._id_array) < len(self._ids):
                self._id_array = np.array(self._ids, object)
            ids = self._id_array
        return _column_of(ids[handles].tolist(), "ids")

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

    def _look_at_events(self, watch: Watch, snapshot: Snapshot, events: Events) -> None:
        rows = watch.rows(events.count)
        if len(rows):
            seen = events.take(rows)
            encoded = snapshot.encoded_events(seen)
            watch.look(len(rows), self._axes(snapshot).of_events(seen) if encoded is None else encoded)

    def _axes(self, snapshot: Snapshot) -> PlainAxes:
        """Return the axes of all subscriptions, made anew when they have changed."""
        known = self._plain_axes
        if known is None or known[0] is not snapshot:
            with self._lock:
                expressions = [self.expression(each) for each in self._handles]
            known = self._plain_axes = snapshot, PlainAxes(expressions, self.schema)
        return known[1]

    # -- Looking inside

    def explain(self, subscription_id: Hashable, event: Mapping[str, Any]) -> Explanation:
        """Say why a subscription matches an event, or does not."""
        return explain(self.expression(subscription_id), event, self.schema)

    def expression(self, subscription_id: Hashable) -> Expression:
        """Return the expression of a subscription."""
        with self._lock:
            handle = self._handles.get(subscription_id)
            source = None if handle is None else self._sources[handle]
        if source is None:
            raise UnknownIdError(subscription_id)
        return parsed(source) if isinstance(source, str) else source

    def learn(self, events: Batch) -> None:
        """Look at a sample of events, so that what they rarely match is asked first.

        Without it the matcher takes the first batch of some size as its sample.
        """
        self._engine.learn(Events(events))

    def statistics(self) -> dict[str, Any]:
        """Return what an operator may want to see."""
        with self._lock:
            return {"algorithm": self.algorithm, "subscriptions": len(self), **self._engine.statistics()}

    def memory(self) -> int:
        """Return how many bytes the matcher takes, roughly: its arrays, the ids and the texts."""
        with self._lock:
            ids = sys.getsizeof(self._handles) + sys.getsizeof(self._ids) + sum(map(sys.getsizeof, self._handles))
            arrays = sum(array.nbytes for array in (self._priorities, self._integer_ids) if array is not None)
            return self._engine.memory() + self._sources.memory() + ids + arrays + self._destinations.memory()

    # -- Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the matcher to a file, compiled as it is; one that is there already is replaced at once, or not at all.

        Ids are integers or texts. Others may register and match meanwhile; what is saved is the set of one moment.
        """
        with self._lock:
            count = len(self._ids)
            saved = storage.Saved(
                self.algorithm,
                self.schema,
                self._ids.copy(),
                self._sources.copy(),
                np.zeros(count, np.int64) if self._priorities is None else self._priorities[:count].copy(),
                self._destinations.copy(),
                self._engine.parts(),
            )
        storage.write(path, saved)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, verify: bool = True, recompile: bool = False) -> Matcher:
        """Return the matcher that was saved in a file. The file is mapped, so leave it as it is; `save` may replace it.

        `verify` reads the whole file once to find out whether a disk or a transfer has damaged it. That says nothing of
        somebody who meant to: what was compiled is used unseen, so `recompile` what comes from strangers. Then only
        ids, priorities and texts are read, and the texts are parsed again.

        >>> from tempfile import TemporaryDirectory
        >>> matcher = Matcher()
        >>> matcher.add("cheap", "price < 20")
        >>> with TemporaryDirectory() as folder:
        ...     matcher.save(f"{folder}/auctions.tamis")
        ...     Matcher.load(f"{folder}/auctions.tamis").match({"price": 12})
        ['cheap']
        """
        saved = storage.read(path, verify=verify, texts_only=recompile)
        try:
            matcher = cls(saved.algorithm, saved.schema)
            living = np.flatnonzero(saved.sources.alive).tolist()
            matcher._ids, matcher._sources = saved.ids, saved.sources
            matcher._handles = {saved.ids[handle]: handle for handle in living}
            if len(matcher._handles) < len(living):
                raise BadTableError("two subscriptions have one id")
            if saved.parts is not None:
                matcher._engine.restore(saved.parts)
            else:
                expressions = (parsed(str(saved.sources[handle])) for handle in living)
                matcher._engine.add(living, matcher._engine.prepare(expressions))
            matcher._prioritise(0, saved.priorities)
            matcher._note_integers(0, saved.ids)
            matcher._destinations = saved.destinations
        except (TamisError, UnicodeDecodeError) as error:
            raise SavedMatcherError(f"{path} holds no matcher of this version: {error}") from error
        return matcher


def _column_of(names: list[Any], what: str) -> pa.Array:
    try:
        return pa.array(names, None if names else pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise BadTableError(
            f"{what} of several types have no column; match events one by one, or use one type"
        ) from None


def _first_repeated(ids: list[Any], registered: Mapping[Any, int]) -> Any:
    seen = set(registered)
    for each in ids:
        if each in seen:
            return each
        seen.add(each)
    raise AssertionError("some id is registered twice")
