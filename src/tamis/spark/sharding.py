"""How are more subscriptions matched than one worker should hold? Partitioning by access key.

They are cut into *shards* by their access keys, and an event goes to the shards in which it can match: for each
attribute that keys are about, to the one shard of its value; and to those of the subscriptions without a key. A
subscription lies under one attribute, and an event has one value of it, so no pair is found twice. Spark hashes the
values of keys and of events by the same function, so they meet.

The events of a hot key are spread over several tasks by a salt; each of these maps the same shard.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import LongType, NumericType, StringType, StructField, StructType

from tamis.errors import TamisError
from tamis.language import parse
from tamis.language.functions import NO_FUNCTIONS
from tamis.matching.admission import CandidateRow, admitted
from tamis.matching.matcher import Matcher
from tamis.matching.uniting import mentioned
from tamis.spark.access_keys import keys_of
from tamis.spark.columns import ID_TYPES, column, opened
from tamis.spark.compiling import batch_of, chunks_of, in_order, matcher_of, rejected_columns, rejection_in
from tamis.spark.errors import OptionError
from tamis.spark.forests import ForestFile, folder, planted, shares_disk
from tamis.spark.hosting import counted, failure_count
from tamis.spark.worker import TaskClock, gathered, matched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, DataFrame

    from tamis.language import Functions, Schema
    from tamis.matching.columns import Path
    from tamis.matching.rejections import Rejected
    from tamis.matching.sightings import Asked

MOST_IN_ONE = 2_000_000
"""More subscriptions than this are cut into shards by themselves: a gigabyte or two each."""
SALTS = 4
"""The events of one shard are spread over so many tasks at least."""

_MOST_TASKS = 400
F_LONG = StructField("", LongType())
_CARRIED = ("id", "condition", "priority", "place")
_KEYED = "attribute string, number double, text string"


@dataclass(frozen=True, slots=True)
class Route:
    """The shards of the keys of one attribute: `count` of them, from number `first` on."""

    path: Path
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Shards:
    """Forests by number, and how events find them."""

    forests: dict[int, ForestFile]
    routes: tuple[Route, ...]
    unkeyed: tuple[int, ...]
    """The shards of the subscriptions without a key, which every event goes to."""
    asked: tuple[Asked, ...]
    """What the subscriptions ask of events."""

    def of(self, events: DataFrame) -> Column:
        """Return the column of the shards that an event goes to."""
        shards = [_shard_of(events, route) for route in self.routes]
        always = [F.lit(number) for number in self.unkeyed]
        whole = F.array(*shards, *always) if shards or always else F.array().cast("array<int>")
        return F.filter(whole, lambda number: number.isNotNull())


def _shard_of(events: DataFrame, route: Route) -> Column:
    kind: Any = events.schema
    for name in route.path:
        kind = kind[name].dataType if isinstance(kind, StructType) and name in kind.names else None
    value = column(route.path[0])
    for name in route.path[1:]:
        value = value.getField(name)
    if isinstance(kind, NumericType):
        hashed = F.xxhash64(value.cast("double") + F.lit(0.0))
    elif isinstance(kind, StringType):
        hashed = F.xxhash64(value)
    else:  # no such column, or of a type that no key is equal to
        return F.lit(None).cast("int")
    shard = F.lit(route.first) + F.pmod(hashed, F.lit(route.count)).cast("int")
    return F.when(value.isNotNull(), shard)


# -- Compiling


def sharded(
    rows: DataFrame, schema: Schema | None, count: int, functions: Functions
) -> tuple[Shards, list[Rejected], int]:
    """Cut subscriptions into about `count` shards; return them, the rows that are none, and how many there are."""
    spark = rows.sparkSession
    kind = rows.schema[0].dataType.simpleString()
    named = rows.toDF("id", "condition", *(["priority"] if len(rows.columns) > 3 else []), "place")
    if "priority" not in named.columns:
        named = named.withColumn("priority", F.lit(0))
    named = named.select("id", "condition", F.col("priority").cast("bigint").alias("priority"), "place")
    repeated = named.groupBy("id").count().where("count > 1 OR id IS NULL").select("id")
    same = named["id"].eqNullSafe(repeated["id"])
    # The rows of an id that several have are few, so the driver decides which of them stays.
    doubled = [CandidateRow(*row) for row in named.join(repeated, same, "left_semi").orderBy("place").collect()]
    _, rejected = admitted(doubled, schema)
    lost = {row.row for row in rejected}
    usable = [row for row in doubled if row.place not in lost]
    single = named.join(repeated, same, "left_anti").unionAll(spark.createDataFrame(usable, named.schema))
    keyed = single.mapInArrow(
        _finding_keys(schema, ID_TYPES[kind], functions),
        f"id {kind}, condition string, priority bigint, place bigint, keys array<struct<{_struct(_KEYED)}>>",
    ).persist()
    try:
        routes, unkeyed, placed = _placed(keyed, count)
        shared = str(folder()) if shares_disk(spark) else None
        parts = placed.groupBy("shard").applyInArrow(
            _compiling_shard(schema, shared, ID_TYPES[kind], functions),
            f"part int, chunk binary, {rejected_columns(kind)}",
        )
        table = parts.toArrow().to_pylist()
        total = keyed.count()
    finally:
        keyed.unpersist()
    bad: dict[Any, Rejected] = {}
    pieces: dict[int, list[bytes]] = {}
    for row in table:
        if row["chunk"] is None:
            bad[row["id"]] = rejection_in(row)
        else:
            pieces.setdefault(row["part"], []).append(row["chunk"])
    forests: dict[int, ForestFile] = {}
    asked: dict[Asked, None] = {}
    for number, chunks in sorted(pieces.items()):
        matcher = matcher_of(chunks, functions, is_path=shared is not None)
        forests[number] = planted(spark, matcher, mentioned(matcher))
        asked |= dict.fromkeys(matcher.asked())
    return Shards(forests, routes, unkeyed, tuple(asked)), in_order([*bad.values(), *rejected]), total - len(bad)


def _placed(keyed: DataFrame, count: int) -> tuple[tuple[Route, ...], tuple[int, ...], DataFrame]:
    """Choose an attribute for each subscription, the one with the most different values, and shards for these."""
    values = keyed.select("id", F.explode("keys").alias("key")).select("id", "key.*")
    ranked = values.groupBy("attribute").agg(
        F.approx_count_distinct(F.struct("number", "text")).alias("values"), F.approx_count_distinct("id").alias("ids")
    )
    ranks = {row["attribute"]: row["values"] for row in ranked.collect()}
    order = sorted(ranks, key=lambda name: (-ranks[name], name))
    best = F.coalesce(
        *(F.when(F.array_contains(F.col("keys.attribute"), name), F.lit(name)) for name in order),
        F.lit(None).cast("string"),
    )
    chosen = keyed.withColumn("best", best)
    sizes = {row["best"]: row["count"] for row in chosen.groupBy("best").count().collect()}
    total = sum(sizes.values()) or 1
    routes, first = [], 0
    for name in order:
        if name in sizes:
            route_count = max(1, round(count * sizes[name] / total))
            routes.append(Route(_path(name), first, route_count))
            first += route_count
    unkeyed_count = max(1, round(count * sizes[None] / total)) if None in sizes else 0
    unkeyed = tuple(range(first, first + unkeyed_count))
    keys = F.filter("keys", lambda key: key["attribute"] == F.col("best"))
    parts = [
        chosen.where(F.col("best") == _name(route.path)).select(
            *_CARRIED, F.explode(F.array_distinct(F.transform(keys, _shard(route)))).alias("shard")
        )
        for route in routes
    ]
    if unkeyed:
        spread = F.lit(first) + F.pmod(F.xxhash64("id"), F.lit(unkeyed_count)).cast("int")
        parts.append(chosen.where("best IS NULL").select(*_CARRIED, spread.alias("shard")))
    placed = parts[0] if parts else chosen.select(*_CARRIED, F.lit(0).alias("shard")).limit(0)
    for part in parts[1:]:
        placed = placed.unionAll(part)
    return tuple(routes), unkeyed, placed


def _shard(route: Route) -> Callable[[Column], Column]:
    def of(key: Column) -> Column:
        hashed = F.when(key["number"].isNotNull(), F.xxhash64(key["number"])).otherwise(F.xxhash64(key["text"]))
        return F.lit(route.first) + F.pmod(hashed, F.lit(route.count)).cast("int")

    return of


def _struct(fields: str) -> str:
    return ", ".join(f"{name}: {kind}" for name, kind in (field.split() for field in fields.split(", ")))


def _name(path: Path) -> str:
    return "\x00".join(path)


def _path(name: str) -> Path:
    return tuple(name.split("\x00"))


def _finding_keys(
    schema: Schema | None, kind: str, functions: Functions
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a task does to find the keys of its subscriptions; what does not parse has none."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key_type = pa.struct([("attribute", pa.string()), ("number", pa.float64()), ("text", pa.string())])
        for batch in batches:
            with functions.in_use():
                keys = [_key_rows(text, schema) for text in batch.column(1).to_pylist()]
            ids, texts, priorities, places = batch.columns
            yield pa.RecordBatch.from_arrays(
                [
                    ids.cast(pa.type_for_alias(kind)),
                    texts,
                    priorities,
                    places,
                    pa.array(keys, pa.list_(key_type)),
                ],
                [*_CARRIED, "keys"],
            )

    return run


def _key_rows(text: str | None, schema: Schema | None) -> list[dict[str, Any]]:
    try:
        keys = keys_of(parse(text, schema)) if text is not None else {}
    except TamisError:
        return []
    return [
        {
            "attribute": _name(path),
            "number": value if isinstance(value, float) else None,
            "text": value if isinstance(value, str) else None,
        }
        for path, values in keys.items()
        for value in values
    ]


def _compiling_shard(
    schema: Schema | None, shared: str | None, kind: str, functions: Functions
) -> Callable[[pa.Table], pa.Table]:
    """Return what a task does with the subscriptions of one shard."""

    def run(table: pa.Table) -> pa.Table:
        table = table.sort_by("id")
        shard = table["shard"][0].as_py()
        with functions.in_use():
            matcher, bad = admitted(map(CandidateRow, *(table[name].to_pylist() for name in _CARRIED)), schema)
        batches = []
        if len(matcher):
            with TemporaryDirectory() as own:
                path = FilePath(shared or own) / f"{token_hex(8)}.part"
                matcher.save(path)
                chunks = [str(path).encode()] if shared else chunks_of(path.read_bytes())
            batches += [batch_of(kind, part=shard, chunk=chunk) for chunk in chunks]
        batches += [batch_of(kind, **row._asdict()) for row in bad]
        return pa.Table.from_batches(batches, schema=batch_of(kind).schema)

    return run


# -- Matching


@dataclass(frozen=True, slots=True)
class ShardTask:
    """What to do with events that know their shards; the last column is the shard."""

    shards: Shards
    names: tuple[str, ...]
    keep: int
    result: str
    id_type: str
    failures: Any = None
    """An accumulator for what functions of the host could not do, or None."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Match the batches of a partition, shard by shard."""
        for table in gathered(batches):
            numbers = table.column(table.num_columns - 1)
            events = table.select(range(table.num_columns - 1)).rename_columns(list(self.names))
            for number in pc.unique(numbers).to_pylist():
                part = events.filter(pc.is_null(numbers) if number is None else pc.equal(numbers, number))
                forest = self.shards.forests.get(number)
                matcher = Matcher() if forest is None else forest.matcher(part)
                with counted(self.failures, matcher.functions):
                    yield from matched(matcher, part, self.keep, self.result, self.id_type, TaskClock())


def matched_in_shards(
    events: DataFrame,
    shards: Shards,
    shown: dict[str, Column],
    keep: int,
    result: str,
    id_type: str,
    schema: StructType,
) -> DataFrame:
    """Send every event to its shards, match there, and unite what was found."""
    is_united = result != "pairs"  # then an event has one row, whatever shards it went to
    if is_united and events.isStreaming:
        raise OptionError(
            f"the {result} of a stream need all subscriptions in one place: shards=1; or ask for pairs, "
            f"or let tamis.spark.match_stream match it batch by batch"
        )
    columns = ({"\x00row": F.monotonically_increasing_id()} if is_united else {}) | shown
    kept_count = keep + is_united
    numbered = [each.alias(str(number)) for number, each in enumerate(columns.values())]
    names = [str(number) for number in range(len(columns))]
    sent = events.select(*numbered, shards.of(events).alias("shards"))
    each_shard = F.explode_outer("shards") if is_united else F.explode("shards")
    salted = sent.select(*names, each_shard.alias("shard"), (F.spark_partition_id() % SALTS).alias("salt"))
    tasks = max(2, min(len(shards.forests) * SALTS, _MOST_TASKS))
    spread = salted.repartition(tasks, "shard", "salt")
    if not events.isStreaming:  # Spark sorts no streams; a worker then goes from shard to shard more often
        spread = spread.sortWithinPartitions("shard")
    spread = spread.drop("salt")
    functions = next((each.functions for each in shards.forests.values()), NO_FUNCTIONS)
    failures = failure_count(events.sparkSession, functions)
    task = ShardTask(shards, tuple(columns), kept_count, result, id_type, failures)
    fields = [F_LONG] * is_united + list(schema.fields)
    plain = StructType([StructField(str(number), each.dataType) for number, each in enumerate(fields)])
    matches = spread.mapInArrow(task.run, plain)
    if not is_united:
        return opened(matches).toDF(*schema.names)
    last = str(len(fields) - 1)
    together = F.sum(last) if result == "counts" else F.array_sort(F.flatten(F.collect_list(last)))
    kept = [F.first(str(number)).alias(str(number)) for number in range(1, len(fields) - 1)]
    return matches.groupBy("0").agg(*kept, together.alias(last)).drop("0").toDF(*schema.names)
