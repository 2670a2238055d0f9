"""Which of very many rules say nothing new? Relations at scale.

A rule is *identical* to another if both match the same events, *covered* by another that matches more, and *never*
matches if no event does. `tamis.relations` says so of two rules; comparing each of a million with each other one would
be a million million questions. So rules are divided by access key, as events are (`sharding`). Whoever covers a rule
matches every event that the rule matches, so it matches one *witness* of it, too: a rule asks where its witness would
have gone as an event, and is compared there with those whose key that is, and somewhere with those without a key.
There an index (`relations.CoveringIndex`) leaves a few of them, which are compared exactly.

What *merges* is found by what the rules have in common but for one set of values, in one place for all of them.

Source: identity, covering and merging of filters are those of Mühl et al. 2002, sections 2.4 to 2.7 and 3.6
  (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce as folded
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tamis.language.functions import functions_of
from tamis.relations.deciding import DEFAULT_BUDGET
from tamis.spark.columns import ID_TYPES, column, id_type, require
from tamis.spark.compiling import numbered
from tamis.spark.errors import ColumnError
from tamis.spark.reducing_tasks import Comparing, Preparing, compared_columns, prepared_columns
from tamis.spark.rejecting import rejected_of
from tamis.spark.workers import require_workers

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from tamis.language import Functions, Schema

_MOST_ATTRIBUTES = 16
"""Rules are divided by the attributes that most of them have keys of; so many at most."""
_TOGETHER = 5_000
"""About so many rules are compared in one place."""
_FEWEST_PLACES = 4
_BARE_PLACES = 4
"""The rules without a key are in each of so many places, and each other rule visits one of these."""


@dataclass(frozen=True)
class Reduction:
    """What rules say that others say, too."""

    relations: DataFrame
    """A row for each rule that could go: its id, `relation` ("identical", "covered" or "never") and `by`, the least id
    of those that it is identical to, or covered by; NULL for one that never matches."""
    merging: DataFrame
    """A row for each rule that stays and differs from others that stay in one set of values only: its id, and `group`,
    the same for those that merge with one another."""
    rejected: DataFrame
    """The rows that are no rules: id, condition, error, message."""
    counts: dict[str, int]
    """How many rules there are (`rules`), how many could go (`identical`, `covered`, `never`), how many stay (`kept`),
    how many are left of these when groups have merged (`merged`), and how many rows are no rules (`rejected`)."""


def reduce(
    rules: DataFrame,
    *,
    id: str = "subscription_id",
    where: str = "condition",
    schema: Schema | None = None,
    functions: Functions | None = None,
    budget: int = DEFAULT_BUDGET,
) -> Reduction:
    """Find the rules that are identical to others, covered by others, or never match, and those that merge.

    schema       what rules may mention; it makes answers sharper: between 4 and 5 there is no integer
    functions    those of the host that rules may call; without them, those of the schema
    budget       how long a solver may think about two rules; what it does not decide counts as not covered

    Nothing is changed. Whoever keeps the rules that are not in `relations` loses no match of any event, for each of
    the others is covered by one that stays.
    """
    require(rules, [id, where], "rules")
    kind = id_type(rules, id).simpleString()
    if rules.schema[where].dataType.simpleString() != "string":
        raise ColumnError(f"conditions must be strings, but {where!r} is {rules.schema[where].dataType}")
    spark = rules.sparkSession
    require_workers(spark)
    hosted = functions_of(functions, schema)
    rows = numbered(rules.select(column(id), column(where))).toDF("id", "condition", "place")
    preparing = Preparing(schema, hosted, ID_TYPES[kind], budget)
    prepared = rows.mapInArrow(preparing.run, prepared_columns(kind)).persist()
    usable = prepared.where("error IS NULL")
    firsts = usable.groupBy("id").agg(F.min("place").alias("place"))
    usable = usable.join(firsts, ["id", "place"], "left_semi").persist()
    asked = usable.where("NOT never")
    comparing = Comparing(schema, hosted, ID_TYPES[kind], budget)
    # By a function of its own: Spark counts the `self` of a method, and would hand over the key as well.
    compared = _placed(asked).groupBy("at").applyInArrow(lambda table: comparing.run(table), compared_columns(kind))
    least = compared.groupBy("id").agg(F.min("identical").alias("identical"), F.min("covered").alias("covered"))
    never = usable.where("never").select("id", F.lit("never").alias("relation"), F.lit(None).cast(kind).alias("by"))
    related = least.where("identical IS NOT NULL OR covered IS NOT NULL").select(
        "id",
        F.when(F.col("identical").isNotNull(), "identical").otherwise("covered").alias("relation"),
        F.coalesce("identical", "covered").alias("by"),
    )
    relations = related.unionAll(never).persist()
    kept = asked.join(relations, "id", "left_anti")
    merging = _merging(kept).persist()
    rejected = rejected_of(prepared).persist()
    counts = {row["relation"]: row["count"] for row in relations.groupBy("relation").count().collect()}
    total, groups = usable.count(), merging.agg(F.count("id"), F.count_distinct("group")).collect()[0]
    could_go = {each: counts.get(each, 0) for each in ("identical", "covered", "never")}
    stay = total - sum(could_go.values())
    counted = {"rules": total, **could_go, "kept": stay, "merged": stay - groups[0] + groups[1]}
    counted["rejected"] = rejected.count()
    prepared.unpersist()
    usable.unpersist()
    return Reduction(
        relations.withColumnRenamed("id", id),
        merging.withColumnRenamed("id", id),
        rejected.withColumnsRenamed({"id": id, "condition": where}),
        counted,
    )


def _placed(rules: DataFrame) -> DataFrame:
    """Put each rule where others ask for it, and where it has to ask; a row says which of the two."""
    keys = rules.select("id", F.explode_outer("keys.attribute").alias("attribute")).distinct()
    sizes = {row["attribute"]: row["count"] for row in keys.groupBy("attribute").count().collect()}
    bare_count = sizes.pop(None, 0)
    total = bare_count + max(sizes.values(), default=0)
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    usual = order[:_MOST_ATTRIBUTES]
    places = max(_FEWEST_PLACES, -(-total // _TOGETHER))
    bare = range(places, places + _BARE_PLACES)
    has_bare = bare_count > 0 or len(order) > len(usual)
    best = F.coalesce(
        *(F.when(F.array_contains(F.col("keys.attribute"), name), F.lit(name)) for name in usual),
        F.lit(None).cast("string"),
    )
    chosen = rules.withColumn("best", best)

    def at(keys: Column) -> Column:
        return F.array_distinct(F.transform(keys, lambda key: F.pmod(F.xxhash64(key), F.lit(places)).cast("int")))

    everywhere = F.array(*map(F.lit, bare))
    own = F.when(F.col("best").isNotNull(), at(F.filter("keys", lambda key: key["attribute"] == F.col("best"))))
    general = chosen.select(
        "id", "condition", F.lit(True).alias("is_general"), F.explode(F.coalesce(own, everywhere)).alias("at")
    )
    asking = F.filter("witness", lambda key: key["attribute"].isin(usual)) if usual else F.array()
    asks: list[Column] = [at(asking)] if usual else []
    if has_bare:
        asks.append(F.array(F.lit(places) + F.pmod(F.xxhash64("id"), F.lit(_BARE_PLACES)).cast("int")))
    all_of_them = F.array(*map(F.lit, range(bare.stop)))
    visited = (
        F.when(F.col("witness").isNull(), all_of_them).otherwise(folded(F.array_union, asks)) if asks else all_of_them
    )
    special = chosen.select("id", "condition", F.lit(False).alias("is_general"), F.explode(visited).alias("at"))
    return general.unionAll(special)


def _merging(kept: DataFrame) -> DataFrame:
    """Let each rule join the largest of its groups, of equal ones the first; a group of one is none."""
    filed = kept.select("id", F.explode("files").alias("group"))
    sizes = filed.groupBy("group").count().where("count > 1")
    best = filed.join(sizes, "group").groupBy("id").agg(F.min(F.struct(-F.col("count"), F.col("group"))).alias("best"))
    joined = best.select("id", F.col("best.group").alias("group"))
    return joined.join(joined.groupBy("group").count().where("count > 1"), "group", "left_semi").select("id", "group")
