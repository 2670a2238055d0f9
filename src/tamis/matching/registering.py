"""How do subscriptions come and go while others match? Transactions on the set of subscriptions.

Every change is one step: whoever matches meanwhile sees the set before it or the set after it, never a rule in neither
version or in both. What can be done before the step (reading tables, parsing, compiling) is done before, without the
lock; what cannot be done is refused before anything has happened. Of the step itself, the new comes before the
removal of the old, so that a failure leaves everything as it was.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import numpy as np

from tamis.errors import SchemaError, TamisError
from tamis.language.checking import check
from tamis.language.expressions import Condition as ConditionNode
from tamis.language.expressions import Expression, is_condition
from tamis.language.functions import Functions, functions_of
from tamis.language.parser import parse
from tamis.language.schema import Schema
from tamis.matching import forking
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.condition_columns import types_of
from tamis.matching.destinations import named
from tamis.matching.errors import BadTableError, MatcherOptionError, UnknownIdError
from tamis.matching.register import Register, Subscription
from tamis.matching.rejections import Rejected, Sieve, latest
from tamis.matching.sources import parsed
from tamis.matching.tables import Rows, subscription_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.types import Written
    from tamis.matching.axes import Axis
    from tamis.matching.base import TextsRead
    from tamis.matching.storage import Part
    from tamis.matching.tables import ArrowStream, Interchanged, Table

Condition: TypeAlias = "str | Expression"
Entry: TypeAlias = "tuple[Hashable, Condition] | tuple[Hashable, Condition, int] | tuple[Hashable, Condition, int, Any]"
Subscriptions: TypeAlias = (
    "Mapping[Any, Condition] | Iterable[Entry] | Iterable[Mapping[str, Any]] | Table | ArrowStream | Interchanged"
)
Destined: TypeAlias = "Mapping[Any, Hashable] | Iterable[Hashable]"
OnError: TypeAlias = Literal["raise", "skip"]


class _Kept:
    def __repr__(self) -> str:
        return "as it was"


_AS_IT_WAS: Any = _Kept()


class Registering:
    """The part of `Matcher` that registers, removes and changes."""

    def __init__(
        self,
        algorithm: str = "block",
        schema: Schema | Mapping[str, Written] | None = None,
        *,
        functions: Functions | None = None,
    ) -> None:
        engine = ALGORITHMS[algorithm]
        if isinstance(schema, Mapping):
            schema = Schema(schema)
        elif not isinstance(schema, Schema | None):
            raise SchemaError(
                f"a schema must be a tamis.Schema or a dict of names and types, not {type(schema).__name__}"
            )
        self.algorithm = algorithm
        self.schema = schema
        self.functions = functions_of(functions, schema)
        """Those of the host that conditions may call."""
        self._engine = engine(schema)
        self._register = Register()
        self._now = -math.inf
        """The latest time that somebody told: what has ended by then is gone."""
        self._lock = threading.RLock()
        forking.protect(self, forking.MATCHERS)

    @property
    def locks(self) -> Sequence[Any]:
        """What is held while the process forks."""
        return (self._lock,)

    def after_fork(self) -> None:
        """Go on in a child process."""

    def __len__(self) -> int:
        return len(self._register.handles)

    def __contains__(self, subscription_id: Hashable) -> bool:
        return subscription_id in self._register.handles

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids())

    def __repr__(self) -> str:
        schema = "" if self.schema is None else f", {len(self.schema.attributes)} attributes"
        return f"<{type(self).__name__} {self.algorithm!r}: {len(self):,} subscriptions{schema}>"

    # -- What is there

    def ids(self) -> list[Any]:
        """Return the ids of all subscriptions, in the order of registration."""
        with self._lock:
            return list(self._register.handles)

    def items(self) -> Iterator[tuple[Any, str]]:
        """Yield the ids and texts of all subscriptions of this moment, in the order of registration.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", 2: "price < 30"})
        >>> dict(matcher.items())
        {1: 'price < 20', 2: 'price < 30'}
        """
        with self._lock:
            handles, sources = list(self._register.handles), self._register.sources.copy()
        texts = (str(source) for source in sources if source is not None)
        return zip(handles, texts, strict=True)

    def get(self, subscription_id: Hashable, default: Any = None) -> Any:
        """Return what is registered under an id (`Subscription`): its text, priority and metadata; else the default."""
        with self._lock:
            handle = self._register.handles.get(subscription_id)
            return default if handle is None else self._register.record(subscription_id, handle)

    def text(self, subscription_id: Hashable) -> str:
        """Return the text of a subscription."""
        return self._subscription(subscription_id).text

    def expression(self, subscription_id: Hashable) -> Expression:
        """Return the expression of a subscription."""
        with self._lock:
            handle = self._register.handles.get(subscription_id)
            source = None if handle is None else self._register.sources[handle]
        if source is None:
            raise UnknownIdError(subscription_id)
        return self._read(source)

    def destination(self, subscription_id: Hashable) -> Any:
        """Return the destination of a subscription; None if it has none."""
        return self._subscription(subscription_id).destination

    def destinations(self) -> list[Any]:
        """Return all destinations that subscriptions have, in the order in which they were first given."""
        with self._lock:
            return self._register.destinations.living()

    def _subscription(self, subscription_id: Hashable) -> Subscription:
        subscription: Subscription | None = self.get(subscription_id)
        if subscription is None:
            raise UnknownIdError(subscription_id)
        return subscription

    # -- New ones

    def add(
        self,
        subscription_id: Hashable,
        condition: Condition,
        *,
        priority: int = 0,
        metadata: Any = None,
        destination: Hashable = None,
        until: float | None = None,
    ) -> None:
        """Register a subscription: a text, or an expression.

        Its matches may have a `destination`, and metadata that comes back with them. With `until` it ends by itself:
        at that time, as `advance` is told it, it is no longer there.
        """
        self.change(add=self._row(subscription_id, condition, priority, metadata, destination, until))

    @overload
    def add_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        metadata: str | Sequence[str] | None = None,
        until: str | None = None,
        destinations: Destined = (),
    ) -> None: ...

    @overload
    def add_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        metadata: str | Sequence[str] | None = None,
        until: str | None = None,
        destinations: Destined = (),
        on_error: Literal["skip"],
    ) -> list[Rejected]: ...

    def add_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        metadata: str | Sequence[str] | None = None,
        until: str | None = None,
        destinations: Destined = (),
        on_error: OnError = "raise",
    ) -> list[Rejected] | None:
        """Register many subscriptions at once; all of them, or none if one is bad.

        They come as a mapping from ids to conditions; as tuples of id and condition (and priority, and metadata); as
        mappings with these as keys; or as a table of any library that speaks Arrow's C stream or the dataframe
        interface: polars, pandas, DuckDB, pyarrow with its readers and datasets.

        id, where, priority    the columns of ids (else `subscription_id` or `id`), of conditions (else `condition` or
                               `where`) and of priorities (else `priority`, if there is one)
        metadata               the column of metadata (else `metadata`, if there is one), or a list of columns
        until                  the column of ends (else `until`, if there is one); NULL stands for no end
        destinations           for `match_destinations`: a mapping from ids, or as long as the subscriptions and in
                               their order; None stands for none
        on_error               "raise": the first bad row is an error, and nothing is registered;
                               "skip": bad rows are left out and returned, each with the reason. Of rows with one id
                               the first that is good stays, and the later ones are rejected.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", 2: "price < 30"})
        >>> matcher.match({"price": 25})
        [2]
        >>> rejected = matcher.add_many([(2, "price < 40"), (3, "price <"), (4, "price < 50")], on_error="skip")
        >>> [(each.id, each.error) for each in rejected], len(matcher)
        ([(2, 'DuplicateIdError'), (3, 'ExpressionSyntaxError')], 3)
        """
        rows = subscription_rows(subscriptions, id=id, where=where, priority=priority, metadata=metadata, until=until)
        rows.destinations, rows.now = named(destinations, rows.ids), self._now
        if _is_skipping(on_error):
            return self._register_good(rows, is_replacing=False)
        prepared = self._prepared(rows)
        with self._lock:
            self._step(rows, prepared, {})
        return None

    def check(self, condition: Condition) -> None:
        """Raise what `add` would raise for a condition, and register nothing.

        >>> from tamis import Matcher
        >>> Matcher(schema={"price": "double"}).check("price < 20")
        """
        self._engine.prepare(list(self._expressions([None], [condition])))

    # -- Other ones

    def remove(self, subscription_id: Hashable) -> None:
        """Remove a subscription."""
        self.remove_many([subscription_id])

    def remove_many(self, subscription_ids: Iterable[Hashable]) -> None:
        """Remove many subscriptions at once; all of them, or none if one is not registered.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", 2: "price < 30", 3: "price < 40"})
        >>> matcher.remove_many([1, 3])
        >>> matcher.match({"price": 10})
        [2]
        """
        self.change(remove=subscription_ids)

    def replace(
        self,
        subscription_id: Hashable,
        condition: Condition,
        *,
        priority: int | None = None,
        metadata: Any = _AS_IT_WAS,
        destination: Any = _AS_IT_WAS,
        until: Any = _AS_IT_WAS,
    ) -> None:
        """Give a registered subscription another condition, in one step. What is not said stays as it was.

        It counts as registered anew: among matches of one priority it comes last.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add("cheap", "price < 20", priority=1)
        >>> matcher.replace("cheap", "price < 30")
        >>> matcher.get("cheap")
        Subscription(id='cheap', text='price < 30', priority=1, metadata=None, destination=None, until=None)
        """
        rows = _checked(Rows([subscription_id], [condition], [priority or 0], [None]))
        if until is not _AS_IT_WAS:
            rows.untils, rows.now = [until], self._now
            rows.check_lifetimes()
        prepared = self._prepared(rows)
        with self._lock:
            before = self._subscription(subscription_id)
            rows.priorities = [before.priority if priority is None else priority]
            rows.metadata = [before.metadata if metadata is _AS_IT_WAS else metadata]
            rows.destinations = named([before.destination if destination is _AS_IT_WAS else destination], rows.ids)
            rows.untils = [before.until if until is _AS_IT_WAS else until]
            self._step(rows, prepared, self._register.handles_of([subscription_id]))

    def update(
        self,
        subscription_id: Hashable,
        condition: Condition | None = None,
        *,
        priority: int | None = None,
        metadata: Any = _AS_IT_WAS,
        destination: Any = _AS_IT_WAS,
        until: Any = _AS_IT_WAS,
    ) -> None:
        """Change a registered subscription, its condition or its priority or both, in one step.

        What is not said stays as it was. Who matches meanwhile finds it as it was before, or as it is now, and never
        twice or not at all. It counts as registered anew, as with `replace`.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add_many({"cheap": "price < 20", "very cheap": "price < 10"})
        >>> matcher.update("very cheap", priority=3)
        >>> matcher.match({"price": 5})
        ['very cheap', 'cheap']
        """
        with self._lock:  # the condition that stays is that of this moment
            if condition is None:
                self._subscription(subscription_id)  # or say that there is none
                condition = self._register.sources[self._register.handles[subscription_id]]
            assert condition is not None
            self.replace(
                subscription_id, condition, priority=priority, metadata=metadata, destination=destination, until=until
            )

    def upsert(
        self,
        subscription_id: Hashable,
        condition: Condition,
        *,
        priority: int = 0,
        metadata: Any = None,
        destination: Hashable = None,
        until: float | None = None,
    ) -> None:
        """Register a subscription, instead of the one that has its id, if there is one; in one step."""
        self.change(upsert=self._row(subscription_id, condition, priority, metadata, destination, until))

    @overload
    def upsert_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        metadata: str | Sequence[str] | None = None,
        until: str | None = None,
        destinations: Destined = (),
    ) -> None: ...

    @overload
    def upsert_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        metadata: str | Sequence[str] | None = None,
        until: str | None = None,
        destinations: Destined = (),
        on_error: Literal["skip"],
    ) -> list[Rejected]: ...

    def upsert_many(
        self,
        subscriptions: Subscriptions,
        *,
        id: str | None = None,
        where: str | None = None,
        priority: str | None = None,
        metadata: str | Sequence[str] | None = None,
        until: str | None = None,
        destinations: Destined = (),
        on_error: OnError = "raise",
    ) -> list[Rejected] | None:
        """Register many subscriptions, each instead of the one that has its id, in one step; as `add_many` otherwise.

        Of rows with one id the last that is good counts.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", 2: "price < 30"})
        >>> matcher.upsert_many([(2, "price < 5"), (3, "price < 40"), (2, "price < 50")])
        >>> dict(matcher.items())
        {1: 'price < 20', 3: 'price < 40', 2: 'price < 50'}
        """
        rows = subscription_rows(subscriptions, id=id, where=where, priority=priority, metadata=metadata, until=until)
        rows.destinations, rows.now = named(destinations, rows.ids), self._now
        if _is_skipping(on_error):
            return self._register_good(rows, is_replacing=True)
        self.change(upsert=rows)
        return None

    def change(
        self,
        *,
        add: Subscriptions | Rows = (),
        upsert: Subscriptions | Rows = (),
        remove: Iterable[Hashable] = (),
        destinations: Mapping[Any, Hashable] | None = None,
    ) -> None:
        """Remove some, register others and replace others again, all in one step, or nothing at all.

        What is removed makes room: an id may be removed and added in one change. `destinations` leads from the ids of
        the new ones to theirs.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add_many({1: "price < 20", 2: "price < 30"})
        >>> matcher.change(remove=[1], add={3: "price < 40"}, upsert={2: "price < 35"})
        >>> dict(matcher.items())
        {3: 'price < 40', 2: 'price < 35'}
        """
        if isinstance(remove, str | bytes | Mapping):
            raise MatcherOptionError(f"remove takes a list of ids, not {type(remove).__name__}: {remove!r}")
        added, replacing = (_checked(each if isinstance(each, Rows) else self._rows(each)) for each in (add, upsert))
        if len(set(replacing.ids)) < len(replacing):
            for condition in replacing.conditions:
                self._understood(condition)  # all or nothing: what is overwritten at once must be right too
            replacing = replacing.chosen(latest(replacing.ids))
        rows = added.followed_by(replacing)
        if destinations is not None:
            rows.destinations = named(destinations, rows.ids)
        prepared = self._prepared(rows)
        with self._lock:
            leaving = self._register.handles_of(remove)
            present = self._register.handles
            leaving |= {each: present[each] for each in replacing.ids if each in present}
            self._step(rows, prepared, leaving)

    # -- The end of a life

    def advance(self, now: float) -> list[Any]:
        """Remove the subscriptions that have ended by now, in one step; return their ids, in the order of their ends.

        A subscription with `until` is there for all times before it, and no longer at that time itself. The matcher has
        no clock: as long as nobody says that it is later, nothing ends. Time does not go back; an earlier `now`
        changes nothing.

        >>> from tamis import Matcher
        >>> matcher = Matcher()
        >>> matcher.add("sale", "price < 20", until=60.0)
        >>> matcher.advance(59.9), matcher.match({"price": 12})
        ([], ['sale'])
        >>> matcher.advance(60.0), matcher.match({"price": 12})
        (['sale'], [])
        """
        if isinstance(now, bool) or not isinstance(now, int | float) or not math.isfinite(now):
            raise MatcherOptionError(f"a time is a finite number of seconds, not {now!r}")
        with self._lock:
            self._now = max(self._now, float(now))
            ended = list(self._register.leases.ended(self._now))
            if ended:
                self._step(Rows([], []), None, self._register.handles_of(ended))
            return ended

    @property
    def next_end(self) -> float | None:
        """When a subscription ends next; None if none does."""
        with self._lock:
            return self._register.leases.next_end

    def clear(self) -> None:
        """Remove all subscriptions, in one step."""
        with self._lock:
            self._engine, self._register = self._engine.emptied(), Register()

    # -- The step

    def _rows(self, subscriptions: Subscriptions) -> Rows:
        rows = subscription_rows(subscriptions)
        rows.now = self._now
        return rows

    def _row(self, subscription_id: Hashable, condition: Any, priority: int, *rest: Any) -> Rows:
        """Return one subscription, whose end has been looked at."""
        metadata, destination, until = rest
        rows = subscription_rows([(subscription_id, condition, priority, metadata)])
        rows.destinations = named([destination], rows.ids)
        if until is not None:
            rows.untils, rows.now = [until], self._now
            rows.check_lifetimes()
        return rows

    def _prepared(self, rows: Rows) -> Any:
        ids, conditions = _checked(rows).ids, rows.conditions
        texts = self._texts(conditions)
        if texts is not None:
            return texts.prepared(range(len(ids)), lambda number: self._parsed_one(ids[number], conditions[number]))
        return self._engine.prepare(self._expressions(ids, conditions))

    def _texts(self, conditions: Sequence[Any]) -> TextsRead | None:
        """Return conditions read by the algorithm, if they are texts, and it can."""
        return self._engine.read(conditions) if types_of(conditions) == {str} else None

    def _register_good(self, rows: Rows, *, is_replacing: bool) -> list[Rejected]:
        """Register the rows that can be; return the others."""
        understood: Callable[[Any], Expression] = self._understood
        is_alone = False
        while True:
            texts = None if is_alone else self._texts(rows.conditions)
            present = () if is_replacing else self._register.handles
            sieve = Sieve(rows, present, understood, keeps_last=is_replacing, texts=texts)
            try:
                prepared = sieve.prepared(self._engine)
            except TamisError:  # the algorithm refuses one of them, so it is worth the time to ask it for each
                assert understood != self._prepared_alone, "an algorithm that took each takes all of them"
                understood, is_alone = self._prepared_alone, True
                continue
            good = rows.chosen(sieve.accepted)
            with self._lock:
                present = self._register.handles
                taken = {each: present[each] for each in good.ids if each in present}
                if rows.untils is not None and rows.now < self._now:
                    rows.now = self._now  # time has passed meanwhile, perhaps beyond an end
                elif is_replacing or not taken:  # else somebody was quicker, and came first
                    self._step(good, prepared, taken)
                    return sieve.rejected

    def _prepared_alone(self, condition: Any) -> Expression:
        expression = self._understood(condition)
        self._engine.prepare([expression])
        return expression

    def _step(self, rows: Rows, prepared: Any, leaving: Mapping[Hashable, int]) -> None:
        """Register rows and remove others, under the lock."""
        register, engine = self._register, self._engine
        register.check_new(rows.ids, leaving)
        if rows.now < self._now and rows.untils is not None:  # time has passed since the rows were looked at
            rows.now = self._now
            rows.check_lifetimes()
        first = len(register)
        if len(rows):
            engine.add(range(first, first + len(rows)), prepared)
        if leaving:
            engine.remove_many(leaving.values())
            register.leave(leaving)
        if len(rows):
            register.enter(rows)
            urgent, priorities = register.urgent(first)
            if urgent:
                engine.prioritise(urgent, priorities)
        if register.is_worn:
            self._renumber()

    def _renumber(self) -> None:
        """Give the living new handles, without the places of the dead. Who matches meanwhile keeps the old ones."""
        register = self._register
        living = register.living()
        sources = (source for source in register.sources if source is not None)
        expressions = map(self._read, sources)
        engine, kept = self._engine.renumbered(living, expressions)
        self._register = register.renumbered(kept)
        if engine is not self._engine:
            self._engine = engine
            urgent, priorities = self._register.urgent()
            if urgent:
                engine.prioritise(urgent, priorities)

    # -- What was compiled, for other modules of this package

    def axes(self) -> Sequence[Axis] | None:
        """Return the axes of all predicates that are registered; None if the algorithm has none."""
        with self._lock:
            return self._engine.axes()

    def exported(self) -> tuple[Register, list[Part]]:
        """Return who is registered and what was compiled; handles are counted anew, without the removed."""
        with self._lock:
            parts = self._engine.parts() or ()  # before the rest, because it compiles what is still open
            living = self._register.living()
            register = self._register.renumbered(living)
        return register, [
            (segment.renumbered(np.searchsorted(living, segment.draft.handles)), alive) for segment, alive in parts
        ]

    def adopt(self, registers: Iterable[Register], parts: Sequence[Part]) -> None:
        """Begin with what other matchers registered, one behind the other, and with what was compiled of it."""
        with self._lock:
            assert not len(self._register), "only a new matcher begins with what others have"
            for register in registers:
                self._register.check_new(register.ids)
                self._register.enter(register.rows())
            self._engine.restore(parts)

    # -- Conditions

    def _expressions(self, ids: list[Any], conditions: Sequence[Any]) -> Iterable[Expression]:
        """Return the expression of each condition."""
        if all(issubclass(kind, ConditionNode) for kind in types_of(conditions)):
            return list(conditions if self.schema is None else self._parsed(ids, conditions))
        return self._parsed(ids, conditions)

    def _parsed(self, ids: list[Any], conditions: Sequence[Any]) -> Iterator[Expression]:
        """Return the expression of each condition, as far as somebody asks: texts are many, and expressions large."""
        return map(self._parsed_one, ids, conditions)

    def _parsed_one(self, subscription_id: Any, condition: Any) -> Expression:
        try:
            return self._understood(condition)
        except TamisError as error:
            error.add_note(f"in the subscription {subscription_id!r}")
            raise

    def _read(self, source: str | Expression) -> Expression:
        """Return the expression of a condition that was understood before."""
        if not isinstance(source, str):
            return source
        with self.functions.in_use():
            return parsed(source)

    def _understood(self, condition: Any) -> Expression:
        """Return what a condition asks."""
        if isinstance(condition, str):
            return parse(condition, self.schema, functions=self.functions or None)
        if not isinstance(condition, Expression) or not is_condition(condition):
            raise BadTableError(f"a condition must be a text or an expression, not {type(condition).__name__}")
        if self.schema is not None:
            check(condition, self.schema)
        return condition


def _is_skipping(on_error: str) -> bool:
    if on_error not in ("raise", "skip"):
        raise MatcherOptionError(f"on_error must be 'raise' or 'skip', not {on_error!r}")
    return on_error == "skip"


def _checked(rows: Rows) -> Rows:
    """Return rows, having seen that none is bad whatever its condition says."""
    objection = rows.first_objection()
    if objection is not None:
        raise BadTableError(f"row {objection[0]} ({rows.ids[objection[0]]!r}): {objection[1]}")
    return rows
