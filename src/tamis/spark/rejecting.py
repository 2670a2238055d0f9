"""Which rows of a table are no subscriptions, and why?

Those that `match`, `top_k` and `notify` leave out or fail at: NULLs, texts that do not parse or do not fit the events,
and rows whose id an earlier row has. The texts are read in parallel, and nothing is compiled; whoever has compiled
rules has their rejected rows already (`Compiled.rejected`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tamis.errors import TamisError
from tamis.language import parse
from tamis.language.functions import functions_of
from tamis.matching.admission import LATER
from tamis.spark.columns import ID_TYPES, column, id_type, require
from tamis.spark.compiling import numbered
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.workers import require_workers
from tamis.standing import parse_subscription
from tamis.topk.text import parse_ranked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from tamis.language import Functions, Schema

KINDS: dict[str, Callable[..., object]] = {"conditions": parse, "ranked": parse_ranked, "all": parse_subscription}
"""What may stand in a table, and how it is read."""


def rejected(
    rules: DataFrame,
    *,
    id: str = "subscription_id",
    where: str = "condition",
    kinds: str = "conditions",
    schema: Schema | None = None,
    functions: Functions | None = None,
) -> DataFrame:
    """Return the rows that are no subscriptions, in the order of the table: id, condition, `error` and `message`.

    kinds        what may stand there: "conditions", as for `match`; or "all" kinds, as for `notify`: conditions, ranked
                 subscriptions, sequences and changes; or "ranked", as for `top_k`
    schema       what they may mention, such as `tamis.Schema.from_spark(events)`
    functions    those of the host that they may call; without them, those of the schema
    """
    if kinds not in KINDS:
        raise OptionError(f"kinds must be one of {', '.join(map(repr, KINDS))}, not {kinds!r}")
    require(rules, [id, where], "rules")
    kind = id_type(rules, id).simpleString()
    if rules.schema[where].dataType.simpleString() != "string":
        raise ColumnError(f"conditions must be strings, but {where!r} is {rules.schema[where].dataType}")
    require_workers(rules.sparkSession)
    reading = Reading(schema, functions_of(functions, schema), ID_TYPES[kind], kinds)
    rows = numbered(rules.select(column(id), column(where)))
    read = rows.mapInArrow(reading.run, f"id {kind}, condition string, place bigint, error string, message string")
    return rejected_of(read).withColumnsRenamed({"id": id, "condition": where})


def rejected_of(read: DataFrame) -> DataFrame:
    """Return what is wrong with rows that were read: with what they say, or that an earlier one has their id."""
    of_one_id = Window.partitionBy("id", F.col("error").isNull()).orderBy("place")
    known = read.select("id", "condition", "place", "error", "message", F.row_number().over(of_one_id).alias("number"))
    is_later = F.col("error").isNull() & (F.col("number") > 1)
    wrong = known.where(F.col("error").isNotNull() | is_later).select(
        "id",
        "condition",
        F.coalesce("error", F.lit("DuplicateIdError")).alias("error"),
        F.coalesce("message", F.lit(LATER)).alias("message"),
        "place",
    )
    return wrong.orderBy("place").drop("place")


@dataclass(frozen=True, slots=True)
class Reading:
    """A task that reads rules, and says what is wrong with them."""

    schema: Schema | None
    functions: Functions
    id_type: str
    """Arrow's name for it."""
    kinds: str

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the rules of a partition."""
        for batch in batches:
            ids, texts, places = (each.to_pylist() for each in batch.columns)
            with self.functions.in_use():
                wrong = [self._wrong(id, text) for id, text in zip(ids, texts, strict=True)]
            columns = [
                pa.array(ids, pa.type_for_alias(self.id_type)),
                pa.array(texts, pa.string()),
                pa.array(places, pa.int64()),
                *(pa.array([each[part] for each in wrong], pa.string()) for part in range(2)),
            ]
            yield pa.RecordBatch.from_arrays(columns, ["id", "condition", "place", "error", "message"])

    def _wrong(self, id: Any, text: str | None) -> tuple[str | None, str | None]:
        if id is None or text is None:
            return "BadTableError", f"{'an id' if id is None else 'a condition'} must not be NULL"
        try:
            KINDS[self.kinds](text, self.schema)
        except TamisError as error:
            return type(error).__name__, str(error)
        return None, None
