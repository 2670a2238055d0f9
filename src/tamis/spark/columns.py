"""Which columns of the events enter the matcher?

A row that enters Python is copied by Spark column by column, and that is most of what the pipeline costs. So only what
a subscription mentions enters, down to the fields of nested records, beside the columns that are to come out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from tamis.errors import did_you_mean
from tamis.spark.errors import ColumnError
from tamis.spark.releases import LIMITED_READERS, has

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from tamis.matching.columns import Path

ID_TYPES = {"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "string": "string"}
"""The types that an id may have, and Arrow's names for them."""


_ZONE: dict[str, Any] = {"timezone": "UTC"} if has(LIMITED_READERS) else {"timestamp_utc": True}
"""How PySpark is told that instants are UTC's; it called that otherwise once."""


def arrow_type(kind: DataType) -> Any:
    """Return Arrow's type for one of Spark's; instants are UTC's."""
    return to_arrow_type(kind, **_ZONE)


def arrow_schema(fields: StructType) -> Any:
    """Return Arrow's schema for one of Spark's; instants are UTC's."""
    return to_arrow_schema(fields, **_ZONE)


def quoted(name: str) -> str:
    """Write a name so that Spark takes it for one name, whatever is in it.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """Return the column of exactly this name."""
    return F.col(quoted(name))


def names_in(keep: str | Iterable[str]) -> list[str]:
    """Return the columns that somebody names, each once; one may be named without a list around it.

    >>> names_in("order_id"), names_in(["b", "a", "b"])
    (['order_id'], ['b', 'a'])
    """
    return [keep] if isinstance(keep, str) else list(dict.fromkeys(keep))


def require(frame: DataFrame, names: Iterable[str], what: str) -> None:
    """Raise unless a DataFrame has the columns."""
    known = frame.columns
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            shown = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            raise ColumnError(f"the {what} have no column {name!r}, only {shown}" + (f". {hint}" if hint else ""))


def id_type(subscriptions: DataFrame, name: str) -> DataType:
    """Return the type of the ids: integers or texts."""
    kind = subscriptions.schema[name].dataType
    if not isinstance(kind, ByteType | ShortType | IntegerType | LongType | StringType):
        written = kind.simpleString()
        raise ColumnError(
            f"ids must be integers or strings, but {name!r} is {written}; cast it: CAST({name} AS STRING)"
        )
    return kind


def entering(events: DataFrame, attributes: Sequence[Path], keep: Sequence[str]) -> dict[str, Column]:
    """Return the columns to show to the matcher: those to keep, then those that are mentioned, as far as they exist."""
    chosen = {name: column(name) for name in keep}
    mentioned: dict[str, list[Path]] = {}
    for first, *rest in attributes:
        mentioned.setdefault(first, []).append(tuple(rest))
    fields = {field.name: field.dataType for field in events.schema.fields}
    for name, paths in mentioned.items():
        if name in fields and name not in keep:
            chosen[name] = _pruned(column(name), fields[name], paths)
    return chosen


def shown_to(events: DataFrame, attributes: Sequence[Path], keep: Sequence[str]) -> dict[str, Column]:
    """Return the columns that enter, at least one: of events that nobody looks at, the number is left."""
    return entering(events, attributes, keep) or {"": F.lit(None).cast("boolean")}


def _pruned(whole: Column, kind: DataType, paths: list[Path]) -> Column:
    """Return the part of a record that is mentioned."""
    if () in paths or not isinstance(kind, StructType):
        return whole
    inner: dict[str, list[Path]] = {}
    for first, *rest in paths:
        inner.setdefault(first, []).append(tuple(rest))
    known = {field.name: field.dataType for field in kind.fields}
    parts = [
        _pruned(whole.getField(name), known[name], rest).alias(name) for name, rest in inner.items() if name in known
    ]
    return F.struct(*parts) if parts else F.lit(None)


def opened(frame: DataFrame) -> DataFrame:
    """Make a row of each element of the last column's lists, beside the other columns."""
    *kept, last = frame.columns
    return frame.select(*map(column, kept), F.explode(column(last)).alias(last))


def kept_fields(
    events: DataFrame, keep: Sequence[str], added: Sequence[StructField], *, is_written: bool = False
) -> StructType:
    """Return the schema of a result: the kept columns, and what is added; raise if one cannot be, or be written."""
    names = {name.lower() for name in keep}  # Spark takes names that differ in case for one
    for field in added:
        if field.name.lower() in names:
            raise ColumnError(
                f"the events have a column {field.name!r} already, and the result would have two of that name: "
                f"keep others (keep=[...]), or rename it"
            )
    by_name: dict[str, Any] = {field.name: field for field in events.schema.fields}
    for name in keep:
        _require_sendable(name, by_name[name].dataType, is_written)
    return StructType([*(by_name[name] for name in keep), *added])


def _require_sendable(name: str, kind: DataType, is_written: bool) -> None:
    """Raise if a column cannot be sent to a worker and back, or not be written to a file."""
    try:
        arrow_type(kind)
    except Exception:  # PySpark has several words for it, and Arrow others
        who = "workers"
    else:
        if not is_written or "TimeType(" not in repr(kind):
            return
        who = "Parquet files"
    written = kind.simpleString()
    raise ColumnError(f"{name!r} cannot be kept: {who} do not take {written}; keep others (keep=[...]), or cast it")
