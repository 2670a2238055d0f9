"""Which filters become one? Perfect and imperfect mergers.

A *merger* of some filters matches whatever one of them matches; a perfect one matches nothing else. Two conjunctions
that differ in the set of a single term merge perfectly: the sets are united. So do all the constraint classes of the
literature, which are sets here: lists of values join, exclusions intersect, connected intervals grow together,
opposite rays leave out what lies between, and complements leave only that the attribute is there, or nothing if
it always is.

Filters that merge so are found without comparing pairs: each part is filed once for each of its terms, under all
the rest of it; what meets in a file differs in that term only. The largest file is merged first, and again
until nothing meets.

Source: Mühl et al. 2002, section 3.6 (docs/bibliography.md).
Departs: x = 5 and x <> 5 become "x is a number", or IS NOT NULL if the schema says that it is one; only a mandatory
  attribute leaves nothing. Conditions that are not sets must be equal, or are factored out; calls of a function that
  knows how two of its calls unite (two halves of a network) merge as sets do.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from tamis.language.expressions import TRUE, And, Expression, Or, Test
from tamis.language.ranges.value_sets import union_of
from tamis.language.rewrites.flattening import flatten
from tamis.language.rewrites.junctions import conjunction, disjunction
from tamis.relations.base import Merger
from tamis.relations.covering_index import CoveringIndex
from tamis.relations.errors import NoFiltersError
from tamis.relations.forms import Context, Form, context_of
from tamis.relations.formulas import Fact
from tamis.relations.imperfection import measure_of
from tamis.relations.links import united_tests
from tamis.relations.parts import Conjunct, part_of
from tamis.relations.proximity import merged_around, merged_by_proximity
from tamis.relations.relations import covers_by_set, covers_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
    from typing import Any

    from tamis.language.schema import Schema
    from tamis.relations.domains import TermAxis
    from tamis.relations.relations import Filter

_COMPARED_PAIRWISE = 24
"""So many filters are compared pair by pair; for more an index is quicker."""


def mergers(
    filters: Iterable[Filter],
    schema: Schema | None = None,
    *,
    budget: float = 0.0,
    events: Iterable[Mapping[str, Any]] | None = None,
    share: Callable[[Expression], float] | None = None,
) -> list[Merger]:
    """Return fewer filters that together match whatever one of these matches.

    With a `budget`, filters also merge imperfectly, the closest first, as long as no merger has a greater imperfection.
    It is measured on a sample of `events`, or with a `share` that says how often an expression is true; with neither,
    it is guessed from the filters themselves.

    >>> found = mergers(["x = 1 AND y = 2", "x = 1 AND y = 3", "x = 5", "x = 5 AND z > 0"])
    >>> [str(merger.expression) for merger in found]
    ['x = 1 AND y IN (2, 3)', 'x = 5']
    """
    context = context_of(schema)
    forms = [context.form(each) for each in filters]
    parts = _united(_maximal([part_of(form, number) for number, form in enumerate(forms)], context), context)
    if budget > 0:
        measure = measure_of(forms, context, events, share)
        parts = merged_by_proximity(parts, measure, budget, context)
    return [_merger(part, forms, context) for part in parts]


def merge(
    filters: Iterable[Filter],
    schema: Schema | None = None,
    *,
    budget: float = 0.0,
    events: Iterable[Mapping[str, Any]] | None = None,
    share: Callable[[Expression], float] | None = None,
) -> Merger:
    """Return one filter that matches whatever one of these matches: perfectly, or within a budget of imperfection.

    >>> print(merge(["x < 4", "x > 7"]).expression)
    x NOT BETWEEN 4 AND 7
    >>> merger = merge(["x BETWEEN 0 AND 4", "x BETWEEN 6 AND 9"], budget=0.5, events=[{"x": x} for x in range(10)])
    >>> print(merger.expression, merger.perfect, merger.imperfection)
    x BETWEEN 0 AND 4 OR x BETWEEN 6 AND 9 True 0.0
    """
    given = list(filters)
    if not given:
        raise NoFiltersError
    sample = None if events is None else list(events)
    context = context_of(schema)
    forms = [context.form(each) for each in given]
    merged = mergers(given, schema, budget=budget, events=sample, share=share)
    everyone = tuple(range(len(given)))
    if len(merged) == 1:
        return Merger(merged[0].expression, merged[0].perfect, merged[0].imperfection, everyone)
    together = factored([merger.expression for merger in merged])
    if all(merger.perfect for merger in merged):
        return Merger(together, True, 0.0, everyone)
    measure = measure_of(forms, context, sample, share)
    return Merger(together, False, measure.of_expression(together, everyone), everyone)


def merger_around(
    one: Filter,
    two: Filter,
    schema: Schema | None = None,
    *,
    budget: float,
    share: Callable[[Expression], float] | None = None,
) -> Merger | None:
    """Return one imperfect filter for two that do not merge perfectly; None if it would exceed the budget.

    >>> print(merger_around("x < 10 AND y = 1", "x < 11 AND y = 2", budget=0.5).expression)
    x < 11 AND y IN (1, 2)
    >>> merger_around("x = 1 AND y = 1", "x = 2 AND y = 2", budget=0.2)
    """
    context = context_of(schema)
    forms = [context.form(one), context.form(two)]
    parts = [part_of(form, number) for number, form in enumerate(forms)]
    merger = merged_around(parts[0], parts[1], measure_of(forms, context, None, share), budget, context)
    if merger is None or not merger.imperfection:
        return None if merger is None else _merger(merger, forms, context)
    written = merger.written(context)
    assert written is not None
    return Merger(written, False, merger.imperfection, (0, 1))  # seen to match more; a solver need not be asked


def united(one: Form, two: Form) -> Expression | None:
    """Return the one filter that matches just what two match which differ in the values of one term; None if none does.

    >>> context = context_of(None)
    >>> print(united(context.form("x = 1 AND y = 2"), context.form("x = 1 AND y = 3")))
    x = 1 AND y IN (2, 3)
    """
    first, second = part_of(one, 0), part_of(two, 1)
    by_tests = _with_united_tests([first, second])
    if by_tests:
        return by_tests[id(first)].written(one.context)
    if first.box.keys() != second.box.keys() or first.rest.keys() != second.rest.keys():
        return None
    different = [axis for axis, values in first.box.items() if second.box[axis] != values]
    if len(different) != 1:
        return one.expression if not different else None
    together = _with_united([first, second], different[0], one.context)
    return None if together is None else together.expression


def _merger(part: Conjunct, forms: Sequence[Form], context: Context) -> Merger:
    members = tuple(sorted(part.members))
    expression = part.written(context)
    if expression is None:  # a set without a wording: the members themselves say it
        return Merger(factored([forms[member].expression for member in members]), True, 0.0, members)
    if part.perfect:
        return Merger(expression, True, 0.0, members)
    # What the sample did not show, or the guess not see, the relation may still prove.
    perfect = bool(covers_by_set([forms[member].expression for member in members], expression, context.schema))
    return Merger(expression, perfect, 0.0 if perfect else part.imperfection, members)


def factored(expressions: Sequence[Expression]) -> Expression:
    """Return the disjunction of some expressions, what all of them have in common written once.

    >>> import tamis
    >>> print(factored([tamis.parse("a = 1 AND b = 2"), tamis.parse("c = 3 AND a = 1")]))
    a = 1 AND (b = 2 OR c = 3)
    """
    conjuncts = [each.operands if isinstance(each, And) else (each,) for each in map(flatten, expressions)]
    common = dict.fromkeys(conjuncts[0])
    for operands in conjuncts[1:]:
        theirs = set(operands)
        common = {each: None for each in common if each in theirs}
    rests = [conjunction(each for each in operands if each not in common) for operands in conjuncts]
    if TRUE in rests:
        return conjunction(common)
    alternatives = dict.fromkeys(
        each for rest in rests for each in (rest.operands if isinstance(rest, Or) else (rest,))
    )
    return conjunction([*common, disjunction(alternatives)])


# -- Perfect mergers


def _maximal(parts: list[Conjunct], context: Context) -> list[Conjunct]:
    """Return the parts that no other covers; those take over whom the others stand for."""
    forms = [_form_of(part, context) for part in parts]
    covering: dict[int, int] = {}
    if len(parts) <= _COMPARED_PAIRWISE:
        for special in reversed(range(len(parts))):  # of equal ones the first stays
            for general in range(len(parts)):
                if _top(covering, general) == special:
                    continue
                if covers_forms(forms[general], forms[special]).holds:
                    covering[special] = general
                    break
    else:
        index = CoveringIndex(context.schema, context=context)
        for number, form in enumerate(forms):
            index.add(number, form.expression)
        for special in reversed(range(len(parts))):
            for general in index.covering(forms[special].expression):
                if _top(covering, general) != special:
                    covering[special] = general
                    break
    for special in covering:
        top = parts[_top(covering, special)]
        top.members += parts[special].members
    return [part for number, part in enumerate(parts) if number not in covering]


def _form_of(part: Conjunct, context: Context) -> Form:
    written = part.written(context)
    assert written is not None
    return context.form(written)


def _top(covering: dict[int, int], number: int) -> int:
    while number in covering:
        number = covering[number]
    return number


def _united(parts: list[Conjunct], context: Context) -> list[Conjunct]:
    """Merge the parts that differ in one set, as long as there are any."""
    while True:
        files: dict[tuple[TermAxis, Hashable], list[Conjunct]] = {}
        for part in parts:
            for place in part.files():
                files.setdefault(place, []).append(part)
        merged: dict[int, Conjunct] = {}
        for (axis, _), file in sorted(files.items(), key=lambda each: -len(each[1])):
            if len(file) < 2 or any(id(part) in merged for part in file):
                continue
            together = _with_united(file, axis, context)
            if together is not None:
                merged |= {id(part): together for part in file}
        if not merged:
            merged = _with_united_tests(parts)
        if not merged:
            return parts
        parts = list({id(each): each for each in (merged.get(id(part), part) for part in parts)}.values())
        parts = _maximal(parts, context)


def _with_united_tests(parts: list[Conjunct]) -> dict[int, Conjunct]:
    """Return the mergers of parts that differ in one call of a function which knows how two of its calls unite."""
    files: dict[Hashable, list[tuple[Conjunct, Test]]] = {}
    for part in parts:
        for test, place in part.test_files():
            files.setdefault(place, []).append((part, test))
    merged: dict[int, Conjunct] = {}
    for file in files.values():
        for (one, first), (two, second) in combinations(file[:_COMPARED_PAIRWISE], 2):
            if id(one) in merged or id(two) in merged or one is two:
                continue
            together = united_tests(first, second)
            if together is not None:
                merged |= dict.fromkeys((id(one), id(two)), _with_test(one, two, first, together))
    return merged


def _with_test(one: Conjunct, two: Conjunct, old: Test, new: Test) -> Conjunct:
    rest = {formula: written for formula, written in one.rest.items() if written != old}
    return Conjunct(one.box, {**rest, Fact(new, True): new}, one.members + two.members)


def _with_united(file: list[Conjunct], axis: TermAxis, context: Context) -> Conjunct | None:
    """Return the merger of parts that differ in one axis; None if it cannot be written."""
    values = union_of(*(part.box[axis] for part in file))
    box = {each: set_ for each, set_ in file[0].box.items() if each is not axis}
    if values != axis.values:
        box = {each: (values if each is axis else set_) for each, set_ in file[0].box.items()}
    members = tuple(member for part in file for member in part.members)
    together = Conjunct(box, file[0].rest, members)
    return together if together.written(context) is not None else None
