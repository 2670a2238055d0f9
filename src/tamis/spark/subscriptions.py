"""How does a table of subscriptions become something that events can be matched against?

Compiled into one forest, by the driver if they are few and else in parallel (`compiling`), or into shards where one
forest would be too large for one worker (`sharding`). Bad rows stay beside it, with what is wrong with them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import IntegerType, LongType

from tamis.language.functions import functions_of
from tamis.matching.admission import admitted
from tamis.matching.rejections import Rejected
from tamis.matching.uniting import mentioned, united
from tamis.selectivity.likely_events import likely_events
from tamis.spark.columns import column, id_type, require
from tamis.spark.compiling import collected, numbered, rejected_frame, rows_of
from tamis.spark.errors import ColumnError, OptionError, RejectedSubscriptionsError, RejectedSubscriptionsWarning
from tamis.spark.forests import planted
from tamis.spark.sharding import MOST_IN_ONE, sharded
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from tamis.language import Functions, Schema
    from tamis.matching.columns import Path
    from tamis.matching.sightings import Asked
    from tamis.selectivity import Statistics
    from tamis.spark.forests import ForestFile
    from tamis.spark.sharding import Shards

ON_ERROR = ("reject", "raise")
COMPILED_BY_DRIVER = 1_000
"""So many texts are compiled here in less time than Spark takes to send them round."""


@dataclass(frozen=True)
class Compiled:
    """Subscriptions, ready to be matched against any number of DataFrames."""

    count: int
    """How many there are."""
    attributes: tuple[Path, ...]
    """The paths of the attributes that they mention."""
    rejected: DataFrame
    """The rows that are none: id, condition, error, message, in the order of the table."""
    rejected_count: int
    id: str
    id_type: DataType
    forest: ForestFile | None
    shards: Shards | None = None
    """One of the two is there."""
    has_priorities: bool = False
    asked: tuple[Asked, ...] = ()
    """What they ask of events, attributes and kinds of values; of a stream, whose rules change, nobody keeps it."""

    def every_forest(self) -> tuple[ForestFile, ...]:
        """Return where the subscriptions lie; of shards, one of them may lie in several."""
        if self.forest is not None:
            return (self.forest,)
        assert self.shards is not None
        return tuple(self.shards.forests.values())


def compiled(
    subscriptions: DataFrame,
    *,
    id: str = "subscription_id",
    where: str = "condition",
    priority: str | None = None,
    schema: Schema | None = None,
    statistics: Statistics | None = None,
    shards: int | None = None,
    on_error: str = "reject",
    functions: Functions | None = None,
) -> Compiled:
    """Parse and compile a table of subscriptions, in parallel. The first usable row of an id stays.

    schema        what texts are checked against, such as `tamis.Schema.from_spark(events)`
    statistics    what to lay one forest out by at once; otherwise the first events that a host sees decide
    shards        into about how many shards to cut them; by their number, if you do not say
    functions     those of the host that texts may call; without them, those of the schema
    """
    hosted = functions_of(functions, schema)
    with hosted.in_use():
        return _compiled(subscriptions, (id, where, priority), schema, statistics, shards, on_error, hosted)


def _compiled(
    subscriptions: DataFrame,
    naming: tuple[str, str, str | None],
    schema: Schema | None,
    statistics: Statistics | None,
    shards: int | None,
    on_error: str,
    functions: Functions,
) -> Compiled:
    id, where, priority = naming
    if on_error not in ON_ERROR:
        raise OptionError(f"on_error must be 'reject' or 'raise', not {on_error!r}")
    if shards is not None and shards < 1:
        raise OptionError(f"shards must be at least 1, not {shards}")
    names = [id, where, *([priority] if priority else [])]
    require(subscriptions, names, "subscriptions")
    kind = id_type(subscriptions, id)
    if subscriptions.schema[where].dataType.simpleString() != "string":
        raise ColumnError(f"conditions must be strings, but {where!r} is {subscriptions.schema[where].dataType}")
    if priority and not isinstance(subscriptions.schema[priority].dataType, IntegerType | LongType):
        raise ColumnError(f"priorities must be integers, but {priority!r} is {subscriptions.schema[priority].dataType}")
    spark = subscriptions.sparkSession
    require_workers(spark)
    rows = numbered(subscriptions.select(*map(column, names)))
    forest = found_shards = None
    few = rows.limit(COMPILED_BY_DRIVER + 1).toArrow()
    if few.num_rows <= COMPILED_BY_DRIVER and (shards or 1) == 1:
        matcher, bad = admitted(rows_of(few), schema)
        matchers, count = [matcher], len(matcher)
    elif (wanted := shards or -(-rows.count() // MOST_IN_ONE)) > 1:
        found_shards, bad, count = sharded(rows, schema, wanted, functions)
        attributes = tuple(sorted({path for each in found_shards.forests.values() for path in each.attributes}))
        asked = found_shards.asked
    else:
        matchers, bad = collected(spark, rows, schema, functions)
        count = sum(map(len, matchers))
    if bad and on_error == "raise":
        raise RejectedSubscriptionsError(len(bad), count + len(bad), bad[0].described())
    if found_shards is None:
        matcher = united(matchers, schema)
        if statistics is not None:
            matcher.learn(likely_events(statistics))
        attributes, asked = mentioned(matcher), matcher.asked()
        forest = planted(spark, matcher, attributes, is_informed=statistics is not None)
    rejected = rejected_frame(spark, bad, id, where, kind)
    return Compiled(count, attributes, rejected, len(bad), id, kind, forest, found_shards, priority is not None, asked)


def warn_of_rejected(compiled: Compiled) -> None:
    """Say that something was left out: nothing is lost in silence."""
    if compiled.rejected_count:
        first = compiled.rejected.collect()[0]
        warnings.warn(
            f"{compiled.rejected_count:,} subscriptions cannot be used and are left out; the first: "
            f"{Rejected(*first).described()}\n  tamis.spark.compiled(subscriptions).rejected has them all",
            RejectedSubscriptionsWarning,
            stacklevel=3,
        )
