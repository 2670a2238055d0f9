"""How do two filters relate?

`identical`, `covers`, `covers_by_set` and `overlaps`, each answered with a `Verdict`. Filters are texts or expressions
of the whole language. A schema makes the answers sharper: between 4 and 5 there is no integer, a mandatory attribute
is never absent, a subtype has what its supertype has.

Source: the relations are those of Mühl et al. 2002, sections 2.4 to 2.7, there for conjunctions of attribute filters
  (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tamis.language.expressions import Expression
from tamis.relations import quick
from tamis.relations.base import STAGES, Verdict
from tamis.relations.deciding import DEFAULT_BUDGET, ask
from tamis.relations.forms import Form, context_of
from tamis.relations.witnesses import Event, plain_event

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.schema import Schema

Filter: TypeAlias = str | Expression


def covers(general: Filter, special: Filter, schema: Schema | None = None, *, budget: int = DEFAULT_BUDGET) -> Verdict:
    """Does the first filter match every event that the second matches?

    >>> covers("price > 10", "price BETWEEN 20 AND 30")
    Verdict(holds=True, proven=True, by='propositions')
    >>> covers("price < 20 OR NOT sold", "bids = 3 AND NOT (price >= 20 AND sold)")
    Verdict(holds=True, proven=True, by='structure')
    """
    context = context_of(schema)
    return covers_forms(context.form(general), context.form(special), budget)


def covers_forms(general: Form, special: Form, budget: int = DEFAULT_BUDGET) -> Verdict:
    """Answer `covers` for filters that are prepared already, in one context."""
    seen = quick.covers(general, special)
    if seen is not None:
        return seen
    answer = ask([special], [general], special.context, budget)
    return Verdict(not answer.is_possible, answer.is_proven, answer.by)


def covers_by_set(
    filters: Iterable[Filter], special: Filter, schema: Schema | None = None, *, budget: int = DEFAULT_BUDGET
) -> Verdict:
    """Do the filters together match every event that another matches, though perhaps none of them does alone?

    >>> bool(covers_by_set(["x < 5", "x >= 5 AND y = 1"], "x > 3 AND y = 1"))
    True
    """
    context = context_of(schema)
    wanted = context.form(special)
    useful = []
    for each in filters:
        form = context.form(each)
        alone, touching = quick.covers(form, wanted), quick.overlaps(form, wanted)
        if alone:
            return alone
        if touching is None or touching.holds:
            useful.append(form)
    answer = ask([wanted], useful, context, budget)
    return Verdict(not answer.is_possible, answer.is_proven, answer.by)


def identical(one: Filter, two: Filter, schema: Schema | None = None, *, budget: int = DEFAULT_BUDGET) -> Verdict:
    """Do both filters match the same events?

    >>> bool(identical("x = 1 OR x > 1", "NOT x < 1"))
    True
    >>> bool(identical("price IS NOT NULL AND type IS A 'Quote'", "type IS A 'Quote'"))
    False
    """
    context = context_of(schema)
    first, second = context.form(one), context.form(two)
    seen = quick.identical(first, second)
    if seen is not None:
        return seen
    forth = covers_forms(first, second, budget)
    if not forth and forth.proven:
        return forth
    back = covers_forms(second, first, budget)
    if not back and back.proven:
        return back
    return Verdict(forth.holds and back.holds, forth.proven and back.proven, max(forth.by, back.by, key=STAGES.index))


def overlaps(one: Filter, two: Filter, schema: Schema | None = None, *, budget: int = DEFAULT_BUDGET) -> Verdict:
    """Is there an event that both filters match?

    >>> import tamis
    >>> bool(overlaps("x > 4", "x < 5")), bool(overlaps("x > 4", "x < 5", tamis.Schema({"x": "int"})))
    (True, False)
    """
    context = context_of(schema)
    return overlaps_forms(context.form(one), context.form(two), budget)


def overlaps_forms(one: Form, two: Form, budget: int = DEFAULT_BUDGET) -> Verdict:
    """Answer `overlaps` for filters that are prepared already, in one context."""
    seen = quick.overlaps(one, two)
    if seen is not None:
        return seen
    answer = ask([one, two], [], one.context, budget)
    return Verdict(answer.is_possible, answer.is_proven, answer.by)


def satisfiable(filter_: Filter, schema: Schema | None = None, *, budget: int = DEFAULT_BUDGET) -> Verdict:
    """Is there an event that the filter matches?

    >>> bool(satisfiable("x > 5 AND (x < 3 OR x IS NULL)"))
    False
    """
    return overlaps(filter_, filter_, schema, budget=budget)


def example(
    matching: Iterable[Filter],
    missing: Iterable[Filter] = (),
    schema: Schema | None = None,
    *,
    budget: int = DEFAULT_BUDGET,
) -> Event | None:
    """Return an event that all of some filters match, and none of others; None if there is none, or none was found.

    >>> example(["price < 20", "bids > 3"], missing=["price < 10"])
    {'price': 10, 'bids': 4}
    """
    context = context_of(schema)
    answer = ask([context.form(each) for each in matching], [context.form(each) for each in missing], context, budget)
    if not (answer.is_possible and answer.is_proven):
        return None
    return answer.event if answer.box is None else plain_event(answer.box, schema)
