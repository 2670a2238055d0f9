"""How do tables come in: those of subscriptions, and those of events? Adapters for dataframes of any library.

Whatever library made it, a table speaks one of two common languages: Arrow's C stream (`__arrow_c_stream__`: polars,
pandas, DuckDB, pyarrow) or the older dataframe interface (`__dataframe__`). Where neither is spoken, rows come one by
one: mappings from names to values, and for subscriptions also tuples. What is none of these is refused at once, with
one error that says what would be right: a table that is taken for something else gives wrong answers in silence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from tamis.errors import EventError, TamisError, did_you_mean
from tamis.language.expressions import Expression
from tamis.matching.condition_columns import ConditionColumn, types_of
from tamis.matching.errors import BadTableError, LifetimeError


class ArrowStream(Protocol):
    """A table that can be read as a stream of Arrow's record batches."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class Interchanged(Protocol):
    """A table that speaks the dataframe interface."""

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any: ...


Table: TypeAlias = "pa.Table | pa.RecordBatch"
Batch: TypeAlias = "Table | ArrowStream | Interchanged | Iterable[Mapping[str, Any]]"
"""Events, however they come."""

IDS = ("subscription_id", "id")
"""The column of ids, if nobody names it: the first of these that there is."""
CONDITIONS = ("condition", "where")
PRIORITIES = ("priority",)
UNTILS = ("until",)
METADATA = ("metadata",)

_HIGHEST = 2**31 - 1
_NO_ROWS = str | bytes | bytearray | memoryview
"""What can be iterated over, and is not a list of anything."""


# -- Any table


def arrow_table(source: Any, error: type[TamisError]) -> Table | None:
    """Return whatever is a table as one of Arrow's; None for what is none.

    >>> arrow_table(pa.RecordBatchReader.from_batches(pa.schema({"a": "int64"}), []), EventError).num_rows
    0
    >>> arrow_table([{"a": 1}], EventError) is None
    True
    """
    if isinstance(source, pa.Table | pa.RecordBatch):
        return source
    try:
        if isinstance(source, pa.RecordBatchReader):
            return source.read_all()
        if type(source).__module__.startswith("pyarrow.") and hasattr(source, "to_table"):  # a dataset, or a scanner
            return source.to_table()
        if hasattr(source, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(source).read_all()
        if hasattr(source, "__arrow_c_array__"):
            return pa.record_batch(source)
        if hasattr(source, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            return from_dataframe(source)
    except (pa.ArrowException, TypeError, ValueError, NotImplementedError, RuntimeError) as reason:
        raise error(f"this {_kind(source)} cannot be read as a table of Arrow's: {reason}") from reason
    return None


def _kind(source: Any) -> str:
    kind = type(source)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]} {kind.__name__}"


def _advice(source: Any) -> str:
    """Return what to do with a thing that is nearly a table."""
    if hasattr(source, "collect") and hasattr(source, "lazy"):
        return "; call collect() on it first"
    if hasattr(source, "toArrow"):
        return "; call toArrow() on it, or let tamis.spark match it"
    return ""


# -- Events


def event_rows(batch: Any) -> Table | Sequence[Mapping[str, Any]]:
    """Return events as a table of Arrow's or as a sequence of mappings, whatever they came as.

    >>> list(event_rows({"price": price} for price in (12, 25)))
    [{'price': 12}, {'price': 25}]
    >>> event_rows({"price": 12})
    Traceback (most recent call last):
        ...
    tamis.errors.EventError: events come as a table (Arrow, polars, pandas, DuckDB, ...) or as a list of mappings, \
not as dict; a single event goes to match, or into a list
    """
    table = arrow_table(batch, EventError)
    if table is not None:
        return table
    advice = "; a single event goes to match, or into a list" if isinstance(batch, Mapping) else _advice(batch)
    if isinstance(batch, _NO_ROWS | Mapping) or not isinstance(batch, Iterable) or advice:
        raise EventError(
            "events come as a table (Arrow, polars, pandas, DuckDB, ...) or as a list of mappings, "
            f"not as {_kind(batch)}{advice}"
        )
    events = batch if isinstance(batch, Sequence) else list(batch)
    if set(map(type, events)) <= {dict}:  # the usual case, and the quickest
        return events
    for number, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise EventError(f"an event must be a mapping from names to values, not {_kind(event)} (row {number})")
    return events


# -- Subscriptions


@dataclass(slots=True)
class Rows:
    """Subscriptions as they came, column by column."""

    ids: list[Any]
    conditions: Sequence[Any]
    priorities: list[Any] | None = None
    """None where all of them are 0."""
    metadata: list[Any] | None = None
    """None where there is none at all."""
    destinations: list[Any] | None = None
    """Where the matches go; None where nobody has a destination."""
    untils: list[Any] | None = None
    """When they end; None where nobody does."""
    now: float = -math.inf
    """An end must lie behind it."""
    malformed: dict[int, str] = field(default_factory=dict)
    """What is wrong with rows that are not rows; such a row has no id, and stands in `conditions` as it came."""

    def __len__(self) -> int:
        return len(self.ids)

    def chosen(self, numbers: list[int]) -> Rows:
        """Return some of the rows."""
        conditions = list(self.conditions)  # one by one out of a column they would take longer
        columns = (self.ids, conditions, self.priorities, self.metadata, self.destinations, self.untils)
        ids, chosen, priorities, metadata, destinations, untils = (
            None if column is None else [column[number] for number in numbers] for column in columns
        )
        assert ids is not None
        assert chosen is not None
        return Rows(ids, chosen, priorities, metadata, destinations, untils, self.now)

    def followed_by(self, others: Rows) -> Rows:
        """Return these rows and others behind them."""
        if not len(others):
            return self
        if not len(self):
            return others
        columns = ("priorities", 0), ("metadata", None), ("destinations", None), ("untils", None)
        priorities, metadata, destinations, untils = (
            None
            if getattr(self, name) is None and getattr(others, name) is None
            else [value for rows in (self, others) for value in getattr(rows, name) or [filler] * len(rows)]
            for name, filler in columns
        )
        ids, conditions = self.ids + others.ids, [*self.conditions, *others.conditions]
        return Rows(ids, conditions, priorities, metadata, destinations, untils, max(self.now, others.now))

    def first_objection(self) -> tuple[int, str] | None:
        """Return the first row that cannot be a subscription whatever its condition says, and why; None: all can."""
        # Looked at by type, which is quick; what is unusual is looked at row by row.
        is_usual = set(map(type, self.ids)) <= {int, str} and type(None) not in types_of(self.conditions)
        if is_usual and self._has_plain_priorities() and self.untils is None:
            return None
        for number in range(len(self)):
            objection = self.objection(number)
            if objection is not None:
                return number, objection
        return None

    def _has_plain_priorities(self) -> bool:
        if self.priorities is None:
            return True
        is_plain = not set(map(type, self.priorities)) - {int}
        return is_plain and -_HIGHEST <= min(self.priorities, default=0) <= max(self.priorities, default=0) <= _HIGHEST

    def objection(self, number: int) -> str | None:
        """Return why a row cannot be a subscription, before its condition is looked at."""
        if number in self.malformed:
            return self.malformed[number]
        subscription_id, condition = self.ids[number], self.conditions[number]
        if subscription_id is None:
            return "a subscription has an id, and this one has none"
        try:
            hash(subscription_id)
        except TypeError:
            return f"an id is a number, a text or anything that can be hashed, not {_kind(subscription_id)}"
        if condition is None:
            return "a condition is a text or an expression, and this one is missing"
        priority = 0 if self.priorities is None else self.priorities[number]
        if type(priority) is not int or not -_HIGHEST <= priority <= _HIGHEST:
            return f"a priority is an integer of 32 bits, not {priority!r}"
        error = None if self.untils is None else lifetime_error(self.untils[number], self.now)
        return None if error is None else str(error)

    def check_lifetimes(self) -> None:
        """Raise if an end is no time, or has passed."""
        for until in self.untils or ():
            if (error := lifetime_error(until, self.now)) is not None:
                raise error


def lifetime_error(until: Any, now: float = -math.inf) -> LifetimeError | None:
    """Return what is wrong with an end of life; None if nothing is: it has no end, or one behind now.

    >>> str(lifetime_error(5.0, 5.0))
    'until=5.0 has passed: it is 5.0; expected a later time, or None for no end'
    >>> lifetime_error(5.5, 5.0), lifetime_error(None, 5.0)
    (None, None)
    """
    if until is None:
        return None
    if isinstance(until, bool) or not isinstance(until, int | float) or not math.isfinite(until):
        return LifetimeError(until)
    return LifetimeError(until, now) if until <= now else None


def subscription_rows(
    source: Any,
    *,
    id: str | None = None,
    where: str | None = None,
    priority: str | None = None,
    metadata: str | Sequence[str] | None = None,
    until: str | None = None,
) -> Rows:
    """Return subscriptions column by column, whatever they came as.

    >>> subscription_rows([("cheap", "price < 20"), ("signed", "signed", 1)]).priorities
    [0, 1]
    >>> subscription_rows([{"rule": 7, "text": "price < 20"}], id="rule", where="text").ids
    [7]
    """
    names = _Names(id, where, priority, metadata, until)
    table = arrow_table(source, BadTableError)
    if table is not None:
        return names.rows_of_table(table)
    if isinstance(source, Mapping):
        names.refuse("a mapping from ids to conditions")
        return _mapped(source)
    if isinstance(source, _NO_ROWS) or not isinstance(source, Iterable) or _advice(source):
        raise BadTableError(
            "subscriptions come as a table (Arrow, polars, pandas, DuckDB, ...), as a mapping from ids to conditions, "
            f"or as a list of tuples or mappings, not as {_kind(source)}{_advice(source)}"
        )
    entries = list(source)
    kinds = set(map(type, entries))
    if kinds <= {tuple} and (lengths := set(map(len, entries))) <= {2, 3}:  # the usual case, and the quickest
        names.refuse("tuples")
        ids, conditions = [entry[0] for entry in entries], [entry[1] for entry in entries]
        priorities = [entry[2] if len(entry) > 2 else 0 for entry in entries] if 3 in lengths else None
        return Rows(ids, conditions, None if priorities is None else _all_whole(priorities))
    return _mixed(entries, names)


def _mapped(source: Mapping[Any, Any]) -> Rows:
    for subscription_id, condition in source.items():
        if not isinstance(condition, str | Expression | None):
            hint = "for a single subscription there is add"
            if isinstance(condition, Iterable):
                hint = "if these are columns, make a table of them, such as pyarrow.table(columns)"
            raise BadTableError(
                f"a mapping has ids as keys and conditions as values, which are texts or expressions; "
                f"{subscription_id!r} has {_kind(condition)}; {hint}"
            )
    return Rows(list(source.keys()), list(source.values()))


def _mixed(entries: list[Any], names: _Names) -> Rows:
    """Read rows one by one: tuples, lists and mappings, each as it is."""
    rows = Rows([], [], [], [], untils=[])
    conditions: list[Any] = []
    rows.conditions = conditions
    columns: tuple[list[Any], ...] = (rows.ids, conditions)
    columns += tuple(column for column in (rows.priorities, rows.metadata, rows.untils) if column is not None)
    for number, entry in enumerate(entries):
        try:
            values = names.values_of(entry)
        except BadTableError as error:
            rows.malformed[number] = str(error)
            values = (None, entry, 0, None, None)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    for name in ("metadata", "untils"):
        if all(each is None for each in getattr(rows, name)):
            setattr(rows, name, None)
    return rows


@dataclass(frozen=True, slots=True)
class _Names:
    """Which columns somebody asked for; None: by the usual names."""

    id: str | None
    where: str | None
    priority: str | None
    metadata: str | Sequence[str] | None
    until: str | None = None

    def refuse(self, kind: str) -> None:
        """Raise if columns are named where there are none."""
        options = ("id", self.id), ("where", self.where), ("priority", self.priority), ("until", self.until)
        for option, name in options:
            if name is not None:
                raise BadTableError(f"{option}={name!r} names a column, but {kind} have none")
        if self.metadata is not None:
            raise BadTableError(f"metadata={self.metadata!r} names a column, but {kind} have none")

    def rows_of_table(self, table: Table) -> Rows:
        names = table.schema.names
        id_name, where = _chosen(names, self.id, IDS, "id"), _chosen(names, self.where, CONDITIONS, "where")
        priority = _chosen(names, self.priority, PRIORITIES, None if self.priority is None else "priority")
        texts = ConditionColumn.of(table.column(names.index(where)))
        rows = Rows(_values(table, id_name), _values(table, where) if texts is None else texts)
        if priority is not None:
            rows.priorities = _all_whole(_values(table, priority))
        until = _chosen(names, self.until, UNTILS, None if self.until is None else "until")
        if until is not None:
            rows.untils = _ends(_values(table, until))
        if isinstance(self.metadata, str | None):
            metadata = _chosen(names, self.metadata, METADATA, None if self.metadata is None else "metadata")
            rows.metadata = None if metadata is None else _values(table, metadata)
        else:
            columns = [_values(table, _chosen(names, each, (), "metadata")) for each in self.metadata]
            rows.metadata = [dict(zip(self.metadata, row, strict=True)) for row in zip(*columns, strict=True)]
        return rows

    def values_of(self, entry: Any) -> tuple[Any, Any, Any, Any, Any]:
        """Return the id, condition, priority, metadata and end of a row."""
        if isinstance(entry, Mapping):
            names = [name for name in entry if isinstance(name, str)]
            subscription_id = entry[_chosen(names, self.id, IDS, "id")]
            condition = entry[_chosen(names, self.where, CONDITIONS, "where")]
            # A row that lacks what others have has none of it: rows of JSON leave out what is empty.
            priority = next((entry[name] for name in _asked(self.priority, PRIORITIES) if name in entry), 0)
            if isinstance(self.metadata, str | None):
                metadata = next((entry[name] for name in _asked(self.metadata, METADATA) if name in entry), None)
            else:
                metadata = {name: entry.get(name) for name in self.metadata}
            until = next((entry[name] for name in _asked(self.until, UNTILS) if name in entry), None)
            return subscription_id, condition, _whole(priority), metadata, until
        if isinstance(entry, tuple | list):
            self.refuse("tuples")
            if 2 <= len(entry) <= 4:
                priority = entry[2] if len(entry) > 2 else 0
                return entry[0], entry[1], _whole(priority), entry[3] if len(entry) > 3 else None, None
        raise BadTableError(
            "a row is a tuple of id and condition (and priority, and metadata), or a mapping with the keys "
            f"{_shown(self.id, IDS)} and {_shown(self.where, CONDITIONS)}, not {_row_kind(entry)}"
        )


def _row_kind(entry: Any) -> str:
    return f"a {type(entry).__name__} of {len(entry)}" if isinstance(entry, tuple | list) else _kind(entry)


def _asked(name: str | None, usual: Sequence[str]) -> Sequence[str]:
    return usual if name is None else (name,)


def _shown(name: str | None, usual: Sequence[str]) -> str:
    return " or ".join(map(repr, _asked(name, usual)))


def _chosen(names: Sequence[str], name: str | None, usual: Sequence[str], option: str | None) -> Any:
    """Return the column of a name, or the first of the usual ones; without an option it may be missing (None)."""
    for asked in _asked(name, usual):
        if asked in names:
            return asked
    if option is None:
        return None
    shown = _shown(name, usual)
    if option == "metadata" or not usual or name is not None:
        hint = did_you_mean(str(name), names)
        hint = f". {hint}" if hint else ""
    else:
        hint = f"; name it with {option}=..."
    raise BadTableError(f"there is no column {shown}, only {', '.join(map(repr, names)) or 'none at all'}{hint}")


def _values(table: Table, name: str) -> list[Any]:
    column = table.column(table.schema.names.index(name))
    try:
        return list(column.to_pylist())
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise BadTableError(f"the column {name!r} holds values that Python cannot represent: {error}") from error


def _ends(untils: list[Any]) -> list[Any] | None:
    """Return ends of life as they are, without those that only stand for none: pandas has NaN there."""
    ends = [None if isinstance(each, float) and math.isnan(each) else each for each in untils]
    return ends if any(each is not None for each in ends) else None


def _all_whole(priorities: list[Any]) -> list[Any]:
    return priorities if set(map(type, priorities)) == {int} else list(map(_whole, priorities))


def _whole(priority: Any) -> Any:
    """Return a priority as a whole number where it is one: a missing one is 0, and pandas makes doubles of the rest."""
    if type(priority) is int or isinstance(priority, bool):
        return priority
    if priority is None or (isinstance(priority, float) and math.isnan(priority)):
        return 0
    if hasattr(priority, "__index__") or (isinstance(priority, float) and priority.is_integer()):
        return int(priority)
    return priority
