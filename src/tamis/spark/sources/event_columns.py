"""Which columns do the events of a stream have, when all there is to go by is its address?

They are said, or seen from the first messages; and what was seen once is kept beside the checkpoint, because a query
that goes on must read what comes as it read what came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql.types import StructType, _parse_datatype_string

from tamis.spark.columns import names_in
from tamis.spark.errors import OptionError
from tamis.spark.folders import file_at
from tamis.spark.sources.events import guessed_schema, json_events

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from tamis.spark.folders import Place

LOOKED_AT = 1_000
"""So many messages say which columns events have."""


def event_columns(
    schema: StructType | str | None, remembered: Place | None, first: Callable[[], DataFrame], body: str = "body"
) -> StructType:
    """Return the columns of the events: as said, as seen before, or as seen now in the `first` messages."""
    return columns_of_events(schema, remembered, lambda: guessed_schema(first(), body=body, rows=LOOKED_AT))


def columns_of_events(
    schema: StructType | str | None, remembered: Place | None, guess: Callable[[], StructType]
) -> StructType:
    """Return the columns of events: as said, as seen before, or as seen now, which is remembered."""
    if schema is not None:
        return said(schema)
    if remembered is not None:
        folder, name = file_at(remembered)
        if (known := folder.record(name)) is not None:
            return StructType.fromJson(known)
    guessed = guess()
    if remembered is not None:
        folder.put_record(name, guessed.jsonValue())
    return guessed


def events_in(
    messages: DataFrame, columns: StructType, keep: str | Sequence[str], theirs: Sequence[str], body: str = "body"
) -> DataFrame:
    """Return the events in messages, and of what only messages have (`theirs`) what is to be kept."""
    only_theirs = [name for name in names_in(keep) if name in theirs and name not in columns.names]
    return json_events(columns, keep=only_theirs, body=body)(messages)


def said(schema: StructType | str) -> StructType:
    """Read a schema as Spark writes it; needs a Spark that runs."""
    try:
        parsed = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise OptionError(f"a schema is written as 'price double, title string', not {schema!r}: {reason}") from None
    if not isinstance(parsed, StructType) or not parsed.fields:
        raise OptionError(f"events have columns: 'price double, title string', not {schema!r}")
    return parsed


def nothing_seen(place: object) -> OptionError:
    """Return the error that says why an empty stream cannot be read without a schema."""
    return OptionError(f"{place} is empty: its first messages say which columns events have; or say it with a schema")
