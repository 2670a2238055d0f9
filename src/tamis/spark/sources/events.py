"""How do messages become events?

Their bodies are JSON, and Spark reads JSON: `from_json` with a schema, so that dates, decimals and nested records
mean what they mean in files. Which schema that is can be seen from the first messages.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions
from pyspark.sql.types import StringType, StructField, StructType, _parse_datatype_string

from tamis.spark.columns import column, names_in, require
from tamis.spark.errors import ColumnError, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

_BAD = "__not_json"
BAD = ("null", "drop", "fail")


def json_events(
    schema: StructType | str, *, keep: str | Sequence[str] = (), bad: str = "null", body: str = "body"
) -> Callable[[DataFrame], DataFrame]:
    """Return the step from messages to events: `messages.transform(json_events("price double, title string"))`.

    schema    the columns of the events, as Spark writes them
    keep      the columns of the messages that stay, such as "sequence"
    bad       what becomes of a body that does not fit this schema: "null", a row in which what cannot be read is NULL;
              "drop", nothing; "fail", an error that ends the query
    """
    if bad not in BAD:
        raise OptionError(f"bad must be one of {', '.join(map(repr, BAD))}, not {bad!r}")
    columns = _parse_datatype_string(schema) if isinstance(schema, str) else schema
    if not isinstance(columns, StructType) or not columns.fields:
        raise OptionError(f"events have columns: 'price double, title string', not {schema!r}")
    return partial(_parsed, schema=columns, keep=tuple(names_in(keep)), bad=bad, body=body)


def _parsed(messages: DataFrame, schema: StructType, keep: tuple[str, ...], bad: str, body: str) -> DataFrame:
    require(messages, (*keep, body), "messages")
    for name in keep:
        if name in schema.names:
            raise ColumnError(f"events and messages both have {name!r}: rename that of the messages first")
    asked = StructType([*schema.fields, StructField(_BAD, StringType())])
    options = {"mode": "FAILFAST" if bad == "fail" else "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    text = column(body).cast("string")
    rows = messages.withColumn(_BAD, functions.from_json(text, asked, options))
    if bad == "drop":
        rows = rows.where(column(_BAD).isNotNull() & column(_BAD)[_BAD].isNull())
    return rows.select(*(column(name) for name in keep), *(column(_BAD)[name].alias(name) for name in schema.names))


def guessed_schema(messages: DataFrame, body: str = "body", rows: int = 1_000) -> StructType:
    """Return the columns that the first messages have."""
    texts = messages.limit(rows).select(column(body).cast("string").alias("value"))
    guessed = messages.sparkSession.read.json(texts)
    fields = [field for field in guessed.schema.fields if field.name != "_corrupt_record"]
    if not fields:
        raise OptionError("none of the first messages is a JSON object, so nothing says which columns events have")
    return StructType(fields)
