"""Do two filters overlap, as far as single predicates can tell?

Two predicates are *disjoint* if no value of one term makes both true: of a term that both are about, or of an attribute
that both enclose, as two distances from far places do; or if their function says so of its calls. An event that a
filter matches makes all predicates true of at least one of the filter's alternatives (a conjunction of its disjunctive
normal form), so whatever predicate of another filter is disjoint to one of these is not true for that event. If the
other filter, which is monotone in its predicates, is false with those predicates false and all others true, for every
alternative, then no event matches both. Otherwise they are said to overlap.

An overlap is never missed. One may be claimed where none is: if predicates exclude each other only together, or a
conjunction is never true by itself. Where all predicates are intervals and no alternative contradicts itself, the
answer is exact.

    advertisement   condition = 'Used' AND price > 11   OR   condition = 'New' AND price > 14
    disjoint to it         condition = 'New'                  condition = 'Used', price < 12
    subscription    (condition = 'New' AND price < 15) OR (price < 12 AND condition = 'Used')     overlaps by the second

Source: Bittner 2008, sections 7.2.1 to 7.2.3; a filter is a candidate if enough predicates are left for *one* of the
  alternatives, not for the one with the most disjoint predicates (docs/bibliography.md).
Departs: predicates are disjoint if their sets of values are, for all operators and types, absence included. What has
  too many alternatives is taken as one: disjoint to it is what is disjoint to all of them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from tamis.errors import BudgetError
from tamis.language.expressions import FALSE, And, AtLeast, Expression, Literal, Or
from tamis.language.measures import least_hits
from tamis.language.ranges.value_sets import is_disjoint
from tamis.language.rewrites.disjunctive import disjuncts
from tamis.language.rewrites.monotone import fold_monotone, leaf_count, leaves_of, monotone
from tamis.relations.forms import Context, Form, context_of
from tamis.relations.formulas import Conjunction, Fact, Formula
from tamis.relations.links import tests_exclude

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Set

    from tamis.language.schema import Schema
    from tamis.relations.relations import Filter

MOST_ALTERNATIVES = 64
_MOST_PREDICATES = 4_096
"""A filter with more alternatives than this, or with more predicates in them, is taken as one alternative."""
MOST_LEAVES = 20_000
"""A filter with more predicates, as a tree, overlaps whatever there is, as far as predicates tell."""
_MOST_COMPARED = 200_000
"""So many pairs of predicates are compared for two filters."""

T = TypeVar("T")


class Effort:
    """How many predicates may still be compared for one question; what is not compared counts as not disjoint."""

    __slots__ = ("left",)

    def __init__(self, most: int) -> None:
        self.left = most


def are_disjoint(one: Form, two: Form) -> bool:
    """Can two predicates not be true of one event, as far as a single term or fact tells?"""
    if one.is_never or two.is_never:
        return True
    hull, other = one.hull, two.hull
    if any(is_disjoint(values, other[axis]) for axis, values in hull.items() if axis in other):
        return True
    return any(facts_clash(mine, theirs) for mine in facts_of(one.formula) for theirs in facts_of(two.formula))


def facts_of(formula: Formula) -> list[Fact]:
    """Return the facts that a predicate states, all of which must be so."""
    parts = formula.children if isinstance(formula, Conjunction) else (formula,)
    return [part for part in parts if isinstance(part, Fact)]


def facts_clash(one: Fact, two: Fact) -> bool:
    """Are two facts never so at once?"""
    if one.predicate == two.predicate:
        return one.is_so is not two.is_so if one.truth is two.truth else one.is_so and two.is_so
    are_true = one.truth and two.truth and one.is_so and two.is_so
    return are_true and tests_exclude(one.predicate, two.predicate)


def alternatives(tree: Expression, disjoint: Callable[[Expression], Set[T]]) -> list[frozenset[T]]:
    """Return, for each alternative of a tree, all that is disjoint to one of its predicates.

    `disjoint` says what is disjoint to a single predicate. An alternative that adds nothing but more disjoint
    predicates to another is left out: who is false without those is false without more.
    """
    if tree == FALSE:
        return []
    if leaf_count(tree) > MOST_LEAVES:
        return [frozenset()]
    try:
        clauses = disjuncts(tree, budget=_MOST_PREDICATES)
    except BudgetError:
        clauses = []
    if not clauses or len(clauses) > MOST_ALTERNATIVES:
        return [fold_monotone(tree, lambda node, below: _as_one(node, below, disjoint))]
    unions = {frozenset[T]().union(*(disjoint(each) for each in clause)) for clause in clauses}
    return [each for each in unions if not any(other < each for other in unions)]


def _as_one(node: Expression, below: list[frozenset[T]], disjoint: Callable[[Expression], Set[T]]) -> frozenset[T]:
    """Return what is disjoint to a node however it comes true."""
    match node:
        case And():
            return frozenset[T]().union(*below)
        case Or():
            return frozenset.intersection(*below)
        case AtLeast(count):
            # All but a few hold: whatever is disjoint to more than those few is disjoint to one that holds.
            often = Counter(item for each in below for item in each)
            return frozenset(item for item, times in often.items() if times > len(below) - count)
        case Literal():
            return frozenset()
    return frozenset(disjoint(node))


def disjoint_sets(
    query: Filter, predicates: Iterable[Filter], schema: Schema | None = None
) -> set[frozenset[Expression]]:
    """Return, for each alternative of a filter, which of some predicates are disjoint to it.

    >>> found = disjoint_sets("sold AND price > 11 OR price > 14", ["NOT sold", "price < 12", "price > 3"])
    >>> sorted(sorted(map(str, each)) for each in found)
    [['price < 12'], ['sold = FALSE']]
    """
    context = context_of(schema)
    given = [monotone(context.form(each).expression) for each in predicates]
    forms = {each: context.form(each) for each in given}

    return set(alternatives(monotone(context.form(query).expression), _comparison(forms, context)))


def _comparison(forms: Mapping[Expression, Form], context: Context) -> Callable[[Expression], frozenset[Expression]]:
    """Return what says which of some predicates are disjoint to another, as long as its effort lasts."""
    effort = Effort(_MOST_COMPARED)

    def disjoint(predicate: Expression) -> frozenset[Expression]:
        if effort.left <= 0:
            return frozenset()
        effort.left -= len(forms)
        asked = context.form(predicate)
        return frozenset(each for each, form in forms.items() if are_disjoint(asked, form))

    return disjoint


def overlaps_by_predicates(one: Filter, two: Filter, schema: Schema | None = None) -> bool:
    """Do two filters overlap, as far as single predicates can tell? If they do, this says so.

    >>> overlaps_by_predicates("price < 10 AND sold", "price > 5")
    True
    >>> overlaps_by_predicates("price < 10 AND sold", "price > 20 OR NOT sold")
    False
    """
    context = context_of(schema)
    try:
        target, query = (monotone(context.form(each).expression) for each in (two, one))
    except BudgetError:
        return True
    if leaf_count(target) > MOST_LEAVES:
        return query != FALSE
    leaves = [leaf for leaf in leaves_of(target) if not isinstance(leaf, Literal)]
    forms = {leaf: context.form(leaf) for leaf in leaves}
    never = frozenset(leaf for leaf, form in forms.items() if form.is_never)
    least = least_hits(target)
    for false in alternatives(query, _comparison(forms, context)):
        without = false | never
        left = sum(leaf not in without for leaf in leaves)
        if left >= least and _can_hold(target, without):
            return True
    return False


def _can_hold(tree: Expression, false: Set[Expression]) -> bool:
    return fold_monotone(tree, lambda node, below: _holds(node, below, false))


def _holds(node: Expression, below: list[bool], false: Set[Expression]) -> bool:
    match node:
        case And():
            return all(below)
        case Or():
            return any(below)
        case AtLeast(count):
            return sum(below) >= count
        case Literal():
            return node.value is True
    return node not in false
