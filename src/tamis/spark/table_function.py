"""Which subscriptions match the rows of a table, in SQL? A table function.

`SELECT * FROM tamis_match(TABLE(events), 'rules')` gives the columns of the events and the id of each subscription
that matches. Which columns these are is known only when the query is analysed, and of Spark's table functions in Python
only those that take rows one by one may say so then. So rows are gathered here, and matched some thousand at once; each
still crosses into Python and back by itself, which `tamis_matches` spares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.conversion import LocalDataToArrowConversion
from pyspark.sql.types import LongType, StringType, StructField, StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from tamis.spark.column_function import named_forest
from tamis.spark.errors import ColumnError, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.spark.forests import ForestFile

GATHERED = 8_192
USAGE = "tamis_match(TABLE(events), 'rules')"


def table_function(forests: Mapping[str, ForestFile], ids: Mapping[str, str], id_type: str) -> type:
    """Return the handler class that Spark calls.

    ids        what the column of the ids is called, by the name of the rules
    id_type    Arrow's name for its type
    """
    kind = StringType() if id_type == "string" else LongType()

    class Matching:
        @staticmethod
        def analyze(events: AnalyzeArgument, rules: AnalyzeArgument) -> AnalyzeResult:
            if not events.isTable or not isinstance(events.dataType, StructType):
                raise OptionError(f"the events must be a table: {USAGE}")
            named_forest(forests, [rules.value])
            name = ids[str(rules.value)]
            if name.lower() in {field.name.lower() for field in events.dataType.fields}:
                raise ColumnError(f"the events have a column {name!r} already; call it otherwise: {USAGE}")
            return AnalyzeResult(schema=StructType([*events.dataType.fields, StructField(name, kind, nullable=False)]))

        def __init__(self, analyzed: AnalyzeResult) -> None:
            self._events = StructType(analyzed.schema.fields[:-1])
            self._waiting: list[Any] = []
            self._forest: Any = None

        def eval(self, event: Any, rules: str) -> Iterator[tuple[Any, ...]]:
            if self._forest is None:
                self._forest = named_forest(forests, [rules])
            self._waiting.append(event)
            if len(self._waiting) >= GATHERED:
                yield from self._matched()

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            if self._waiting:
                yield from self._matched()

        def _matched(self) -> Iterator[tuple[Any, ...]]:
            rows, self._waiting = self._waiting, []
            table = LocalDataToArrowConversion.convert(rows, self._events, False)
            pairs = self._forest.matcher(table).match_batch(table)
            numbers, ids_of_pairs = (pairs.column(name).to_pylist() for name in ("event", "subscription"))
            for number, each in zip(numbers, ids_of_pairs, strict=True):
                yield (*rows[number], each)

    return Matching
