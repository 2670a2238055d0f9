"""How do people who write SQL match events? With functions that a session knows.

    tamis.spark.register(spark, rules={"rules": "rules_table"})

    SELECT *, tamis_matches(struct(price, category), 'rules') AS ids FROM events      -- array<id>
    SELECT *, tamis_matching(struct(*), 'rules') AS matches FROM events               -- their number
    SELECT * FROM tamis_match(TABLE(events), 'rules')                                 -- a row for each pair

A function runs in workers, which see no tables. So the rules are compiled when they are registered, under a name, and
travel with the functions; registering them again puts those of now in their place. Rules are named in the call, or by
settings of the session: `spark.tamis.rules.NAME` is the name of their table.

`matches` makes the same function of compiled rules, for DataFrames and for the query functions of pipelines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import ArrayType, LongType, StringType

from tamis.spark import sources
from tamis.spark.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from tamis.language import Functions, Schema
    from tamis.spark.subscriptions import Compiled

PREFIX = "spark.tamis.rules."
"""What stands before the names of rules in settings."""
LISTS, COUNTS, TABLES = "tamis_matches", "tamis_matching", "tamis_match"

_registered: WeakKeyDictionary[Any, dict[str, Compiled]] = WeakKeyDictionary()
"""The rules of each session, by their names."""


def register(
    spark: SparkSession,
    rules: Mapping[str, DataFrame | Compiled | str] | None = None,
    *,
    id: str = "subscription_id",
    where: str = "condition",
    priority: str | None = None,
    schema: Schema | None = None,
    functions: Functions | None = None,
) -> dict[str, Compiled]:
    """Make the formats of tamis known to a session, and rules by name to the functions of its SQL; return the rules.

    rules    by the names that SQL calls them: a DataFrame, what `compiled` made of one, or the name of a table; those
             of the settings `spark.tamis.rules.NAME`, each the name of a table, come before them
    id, where, priority, schema, functions    of the tables, as for `compiled`

    Rules that are registered stay as they are, whatever becomes of their table, until they are registered again. Those
    of the session are returned by their names; `rejected` of each has the rows that are none.
    """
    sources.register(spark)
    asked: dict[str, Any] = {**_in_settings(spark), **(rules or {})}
    if not asked:
        return dict(_registered.get(spark, {}))
    from tamis.spark.subscriptions import Compiled, compiled, warn_of_rejected

    ready: dict[str, Compiled] = dict(_registered.get(spark, {}))
    for name, given in asked.items():
        if not isinstance(given, Compiled):
            table = spark.table(given) if isinstance(given, str) else given
            given = compiled(table, id=id, where=where, priority=priority, schema=schema, functions=functions, shards=1)
            warn_of_rejected(given)
        ready[name] = given
    _define(spark, ready)
    _registered[spark] = ready
    return dict(ready)


def _in_settings(spark: SparkSession) -> dict[str, str]:
    getting: Any = spark.conf.getAll  # a property, or a method
    settings: Mapping[str, str] = getting() if callable(getting) else getting
    return {name.removeprefix(PREFIX): table for name, table in settings.items() if name.startswith(PREFIX)}


def _define(spark: SparkSession, ready: dict[str, Compiled]) -> None:
    """Give SQL functions that know these rules."""
    from tamis.spark.column_function import NamedTask, arrow_function
    from tamis.spark.hosting import failure_count
    from tamis.spark.table_function import table_function

    kinds = {each.id_type.simpleString() == "string" for each in ready.values()}
    if len(kinds) > 1:
        raise OptionError(
            f"the functions of SQL have one type: the ids of {', '.join(sorted(ready))} must all be integers or all be "
            "strings; cast them: CAST(subscription_id AS STRING)"
        )
    id_type = "string" if True in kinds else "int64"
    forests = {name: require_forest(each) for name, each in ready.items()}
    for function, result in ((LISTS, "lists"), (COUNTS, "counts")):
        hosted = next((each.functions for each in forests.values() if each.functions), None)
        failures = failure_count(spark, hosted) if hosted else None
        task = NamedTask(forests, result, id_type, failures)
        spark.udf.register(function, arrow_function(task.values, _kind(result, id_type), takes=2))
    handler: Any = F.udtf(table_function(forests, {name: each.id for name, each in ready.items()}, id_type))
    spark.udtf.register(TABLES, handler)


def _kind(result: str, id_type: str) -> Any:
    if result == "counts":
        return LongType()
    return ArrayType(StringType() if id_type == "string" else LongType(), containsNull=False)


def require_forest(rules: Compiled) -> Any:
    """Return the one forest of compiled rules; raise if they are cut into shards."""
    if rules.forest is None:
        raise OptionError("functions need all subscriptions in one place: tamis.spark.compiled(..., shards=1)")
    return rules.forest


def matches(rules: Compiled, *columns: str, result: str = "lists") -> Column:
    """Return the column of the ids that match each row, the highest priority first, then by id; or of their number.

    columns    the names of what to show to the rules; every attribute that they mention, if you do not say
    result     "lists" or "counts"

    Nothing is looked at before Spark runs it, so it may stand where analysis is forbidden. Of many columns that are
    kept it costs more than `match`, which knows the table.
    """
    from tamis.spark.column_function import RESULTS, ColumnTask, arrow_function
    from tamis.spark.columns import ID_TYPES, column
    from tamis.spark.hosting import failure_count

    if result not in RESULTS:
        raise OptionError(f"result must be one of {', '.join(map(repr, RESULTS))}, not {result!r}")
    forest = require_forest(rules)
    names = list(columns) or list(dict.fromkeys(path[0] for path in rules.attributes))
    shown = [column(name) for name in names]
    if not names:  # rules that mention nothing: only the number of the rows is needed
        names, shown = [""], [F.lit(None).cast("boolean")]
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    failures = failure_count(spark, forest.functions) if spark is not None else None
    kind = LongType() if result == "counts" else ArrayType(rules.id_type, containsNull=False)
    task = ColumnTask(forest, tuple(names), result, ID_TYPES[rules.id_type.simpleString()], failures)
    made: Column = arrow_function(task.values, kind, takes=len(names))(*shown)
    return made
