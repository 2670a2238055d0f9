"""Which rules can never match the events of a table?

What no event had is told of a table on Spark as a matcher tells it (`tamis.matching.sightings`). Spark itself looks
whether a column has any value while it reads the events for matching: an observation, which costs no job of its own
and which a client of Spark Connect has too. Of which kind the values are, the column's type says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from tamis.matching.sightings import OTHER, arrow_kind, unmet
from tamis.spark.columns import arrow_type, column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from tamis.matching.columns import Path
    from tamis.matching.sightings import Unmet
    from tamis.spark.subscriptions import Compiled


class Sighted:
    """Events that are looked at when they are read, and what the rules ask for and none of them had."""

    def __init__(self, events: DataFrame, rules: Compiled) -> None:
        self._asked = rules.asked
        self._kinds: dict[Path, str] = {}
        """The attributes that are asked for and that there is a column for."""
        seen: list[Column] = []
        for path in dict.fromkeys(each.path for each in rules.asked):
            column_and_kind = _at(events, path)
            if column_and_kind is not None:
                value, kind = column_and_kind
                seen.append(F.max(value.isNotNull()).alias(str(len(self._kinds))))
                self._kinds[path] = _kind(kind)
        self._told = Observation()
        self.events = events.observe(self._told, F.count(F.lit(1)).alias("events"), *seen)
        """The same events; the first job that reads all of them tells what they had."""

    def unmet(self) -> list[Unmet]:
        """Return what no event had; waits for the job that reads the events."""
        observed: dict[str, Any] = self._told.get
        if not observed["events"]:
            return []
        kinds = {path: {kind} for number, (path, kind) in enumerate(self._kinds.items()) if observed[str(number)]}
        return unmet(self._asked, kinds)


def _at(events: DataFrame, path: Path) -> tuple[Column, DataType] | None:
    """Return the column of an attribute and its type; None if there is none."""
    value: Any = None
    kind: Any = events.schema
    for name in path:
        if not isinstance(kind, StructType) or name not in kind.names:
            return None
        kind = kind[name].dataType
        value = column(name) if value is None else value.getField(name)
    return value, kind


def _kind(kind: DataType) -> str:
    try:
        return arrow_kind(arrow_type(kind))
    except Exception:  # what workers do not take; PySpark has several words for it
        return OTHER
