"""How are rules matched where nobody may look at the table? A step for declarative pipelines.

The query function of a pipeline (`pyspark.pipelines`) only says what is to be done: it may not ask a DataFrame for its
columns, and `mapInArrow`, which Spark analyses at once, is refused there. What is allowed is a column that is computed,
so the step is made of one (`sql.matches`): the rules are compiled where the file of definitions is read, and the step
takes any table, or stream, that has the columns that they mention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tamis.spark.columns import column, names_in
from tamis.spark.errors import OptionError
from tamis.spark.sql import matches
from tamis.spark.worker import RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from tamis.spark.subscriptions import Compiled


def matching_step(
    rules: Compiled, *columns: str, keep: str | Sequence[str] | None = None, result: str = "pairs"
) -> Callable[[DataFrame], DataFrame]:
    """Return the step for `events.transform(matching_step(rules))`, which looks at nothing before Spark runs it.

    columns    the names of what to show to the rules; every attribute that they mention, if you do not say
    keep       the columns of the events that the result has; all of them if you do not say
    result     as for `match`: "pairs", "lists" or "counts"

    The columns that are shown have to be there: say which, if rules mention others. Where the table may be looked at,
    `matching` costs less and knows what is there.
    """
    if result not in RESULTS:
        raise OptionError(f"result must be one of {', '.join(map(repr, RESULTS))}, not {result!r}")
    answers = matches(rules, *columns, result="counts" if result == "counts" else "lists")
    named = {"pairs": rules.id, "lists": "subscription_ids", "counts": "matches"}[result]
    kept: list[Any] = ["*"] if keep is None else [column(name) for name in names_in(keep)]

    def step(events: DataFrame) -> DataFrame:
        return events.select(*kept, (F.explode(answers) if result == "pairs" else answers).alias(named))

    return step
