"""How can any filters become one?

Their disjunction is a perfect merger, and as large as all of them together. Pruned, it gets smaller and imperfect, by
as much as somebody wants: pruning answers how to merge, for any filters, where methods for conjunctions have no answer.

Source: Bittner 2008, sections 6.3.5 and 6.7.1 (docs/bibliography.md).
Departs: what became equal by pruning, or is implied by its neighbours, is said once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.rewrites.canonical import canonical
from tamis.language.rewrites.monotone import any_of
from tamis.pruning.bulk import Cut
from tamis.pruning.errors import GoalError
from tamis.pruning.sequencing import sequences
from tamis.pruning.trees import pruning_form
from tamis.relations.base import Merger
from tamis.relations.errors import NoFiltersError
from tamis.relations.forms import context_of
from tamis.relations.imperfection import measure_of
from tamis.relations.merging import factored
from tamis.relations.relations import covers_by_set
from tamis.selectivity.estimates import estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.pruning.goals import Goal
    from tamis.pruning.measures import Measure
    from tamis.relations.forms import Context
    from tamis.selectivity.estimates import Share


def merge_by_pruning(
    filters: Iterable[str | Expression],
    share: Share,
    goal: Goal | None = None,
    measure: str | Measure = "accuracy",
    schema: Schema | None = None,
    *,
    budget: float | None = None,
    events: Iterable[Mapping[str, Any]] | None = None,
) -> Merger:
    """Return one filter that matches whatever one of these matches, pruned until a goal is reached.

    With a `budget` instead, it is pruned as far as its imperfection allows, which is counted in a sample of `events` or
    else estimated from the shares.

    >>> from tamis.pruning import Goal
    >>> shares = {"title = 'Dune'": 0.01, "price < 10": 0.5, "price < 12": 0.6}
    >>> merger = merge_by_pruning(
    ...     ["title = 'Dune' AND price < 10", "title = 'Dune' AND price < 12"],
    ...     lambda predicate: shares[str(predicate)],
    ...     Goal(share=1),
    ... )
    >>> print(merger.expression, merger.perfect, round(merger.imperfection, 2))
    title = 'Dune' False 0.4
    """
    if (goal is None) is (budget is None):
        raise GoalError("a merger's goal", None, "either a Goal or a budget of imperfection")
    context = context_of(schema)
    forms = [context.form(each) for each in filters]
    if not forms:
        raise NoFiltersError
    sample = None if events is None else list(events)
    whole = any_of(pruning_form(form.expression) for form in forms)
    judge = _judge([form.expression for form in forms], context, share, sample)
    everyone = tuple(range(len(forms)))
    ranked = sequences([whole], share, measure)
    count = int(ranked.table.step_counts[0])
    if goal is not None:
        count = Cut.of(ranked, ranked.ordered(), goal).step_count
    expression = canonical(ranked.expression(0, count) if count else whole, schema)
    if budget is not None:
        low = 0  # imperfection grows with every step, so the last step that is allowed is searched for
        while low < count:
            middle = (low + count + 1) // 2
            tried = canonical(ranked.expression(0, middle), schema)
            if judge(tried) <= budget:
                low = middle
            else:
                count = middle - 1
        expression = canonical(ranked.expression(0, low) if low else whole, schema)
    if covers_by_set([form.expression for form in forms], expression, schema):
        return Merger(expression, True, 0.0, everyone)
    return Merger(expression, False, judge(expression), everyone)


def _judge(
    members: Sequence[Expression], context: Context, share: Share, events: Sequence[Mapping[str, Any]] | None
) -> Callable[[Expression], float]:
    """Return what says how imperfect a merger is."""
    if events is not None:
        measure = measure_of([context.form(each) for each in members], context, events, None)
        return lambda expression: measure.of_expression(expression, range(len(members)))
    # What all members have in common would count as often as there are members, so it is written once.
    wanted = estimate(canonical(factored(members), context.schema), share).average

    def imperfection(expression: Expression) -> float:
        matched = estimate(expression, share).average
        return max(0.0, 1 - wanted / matched) if matched > 0 else 1.0

    return imperfection
