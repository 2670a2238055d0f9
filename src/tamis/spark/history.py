"""What would the past have matched, by the rules of its day? Time travel.

A log of subscriptions says from when on each of its versions is in force (`SubscriptionLog.since`), and some
subscriptions end at a time of their own. So time falls into *days*, in each of which the same rules hold. The rules of
every day that some event belongs to are compiled, each from those of the day before, and an event is asked by those of
its own: in one pass, whose workers take the events of a batch day by day.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from tamis.language import Schema
from tamis.language.functions import functions_of
from tamis.matching.uniting import mentioned
from tamis.spark.columns import ID_TYPES, column, kept_fields, names_in, opened, require, shown_to
from tamis.spark.errors import OptionError
from tamis.spark.event_time import MICROS
from tamis.spark.forests import planted
from tamis.spark.hosting import failure_count
from tamis.spark.sharding import Shards, ShardTask
from tamis.spark.timed_events import require_timed
from tamis.spark.versions import Succession
from tamis.spark.worker import RESULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from tamis.language import Functions
    from tamis.matching.columns import Path
    from tamis.spark.forests import ForestFile
    from tamis.spark.subscription_log import SubscriptionLog


def match_history(
    events: DataFrame,
    log: SubscriptionLog,
    *,
    time: str = "time",
    id: str = "subscription_id",
    keep: str | Sequence[str] | None = None,
    result: str = "pairs",
    schema: Schema | None = None,
    functions: Functions | None = None,
) -> DataFrame:
    """Return which subscriptions match each event by the rules that were in force at its time.

    events       a table, with a column of times
    log          each of its versions has to say since when it is in force
    id           what the column of the ids is called in the result
    keep         the columns of the events that the result has; all of them if you do not say
    result       as for `match`
    schema       what conditions may mention; the columns of the events if you do not say
    functions    those of the host that conditions may call; without them, those of the schema

    Before the first version, and where an event has no time, no rule is in force.
    """
    if result not in RESULTS:
        raise OptionError(f"result must be one of {', '.join(map(repr, RESULTS))}, not {result!r}")
    if events.isStreaming:
        raise OptionError("a stream has no past: tamis.spark.match_stream matches it by the rules of each batch")
    require_timed(events, time, time, None)
    hosted = functions_of(functions, schema)
    schema = (schema or Schema.from_spark(events)).calling(hosted)
    log.demand(log.version, hosted)
    starts = _starts(log)
    spark = events.sparkSession
    day = F.size(F.filter(F.array(*map(F.lit, starts)), lambda start: start <= F.unix_micros(_instant(time)))) - 1
    day = F.when(column(time).isNotNull(), day if starts else F.lit(-1))
    asked = sorted(row[0] for row in events.select(day.alias("day")).distinct().collect() if row[0] is not None)
    with hosted.in_use():
        forests, attributes = _forests(events, log, starts, [each for each in asked if each >= 0], schema)
    names = list(events.columns) if keep is None else names_in(keep)
    require(events, names, "events")
    kind = LongType() if log.id_type is int else StringType()
    lists = ArrayType(kind, containsNull=False)
    name = {"pairs": id, "lists": "subscription_ids", "counts": "matches"}[result]
    added = StructField(name, LongType() if result == "counts" else lists, nullable=False)
    fields = kept_fields(events, names, [added])
    shown = shown_to(events, attributes, names)
    numbered = [each.alias(str(number)) for number, each in enumerate(shown.values())]
    failures = failure_count(spark, hosted)
    days = Shards(forests, (), (), ())
    task = ShardTask(days, tuple(shown), len(names), result, ID_TYPES[kind.simpleString()], failures)
    plain = StructType([StructField(str(number), each.dataType) for number, each in enumerate(fields)])
    answered = events.select(*numbered, day.alias("day")).mapInArrow(task.run, plain).toDF(*fields.names)
    return opened(answered) if result == "pairs" else answered


def _instant(time: str) -> Column:
    """Return a time as an instant; a time without a zone is UTC's."""
    whole = column(time)
    return F.when(
        F.typeof(whole) == "timestamp_ntz", F.to_utc_timestamp(whole.cast("timestamp"), F.current_timezone())
    ).otherwise(whole.cast("timestamp"))


def _starts(log: SubscriptionLog) -> list[int]:
    """Return when days begin, in microseconds since 1970: with a version, or with the end of a subscription."""
    starts: set[int] = set()
    for version in range(1, log.version + 1):
        since = log.since(version)
        if since is None:
            raise OptionError(
                f"version {version} of {log.folder} does not say since when it is in force: log.change(..., since=...)"
            )
        starts.add(round(since * MICROS))
        starts |= {round(each.until * MICROS) for each in log.terms_of(version).values() if each.until is not None}
    first = log.since(1)
    return sorted(start for start in starts if first is not None and start >= round(first * MICROS))


def _forests(
    events: DataFrame, log: SubscriptionLog, starts: list[int], days: list[int], schema: Schema
) -> tuple[dict[int, ForestFile], tuple[Path, ...]]:
    """Compile the subscriptions of some days; return them, and what they mention."""
    begins = [round((log.since(version) or 0.0) * MICROS) for version in range(1, log.version + 1)]
    succession = Succession(schema)
    forests: dict[int, ForestFile] = {}
    attributes: set[Path] = set()
    version = 0
    for day in days:
        last = bisect_right(begins, starts[day])
        for number in range(version + 1, last + 1):
            succession.apply(log.changes(number), log.terms_of(number))
        version = last
        ended = {
            each: None
            for each, terms in log.terms(version).items()
            if terms.until is not None and terms.until * MICROS <= starts[day] and each in succession.matcher
        }
        succession.apply(ended, {})
        own = mentioned(succession.matcher)
        attributes |= set(own)
        forests[day] = planted(events.sparkSession, succession.matcher, own)
    return forests, tuple(sorted(attributes))
