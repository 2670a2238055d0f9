"""Outside of which values of single terms does a leaf surely not hold? Bounding boxes of leaves.

`length(title) > 3` needs a text. A distance of at most 10 km needs a latitude and a longitude near the place, and
`title LIKE 'The %s'` a text that starts so. What lies outside of such a box does not match, and that is seen without
knowing the function.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from tamis.language.expressions import Attribute, Expression, Like
from tamis.language.ranges.kinds import ABSENT, KINDS, PRESENT
from tamis.language.ranges.lines import prefix_cuts
from tamis.language.ranges.predicates import pieces_of
from tamis.language.ranges.value_sets import Values, intersection, is_disjoint, union_of
from tamis.language.requirements import required_kinds
from tamis.relations.confinement import coordinates, interval_of, values_between
from tamis.relations.formulas import Fact, Within

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.relations.domains import TermAxis


def requirements(node: Expression) -> dict[Attribute, Values]:
    """Return the values that attributes must have for a term to have a value, or a predicate to be true or false.

    >>> import tamis
    >>> [str(attribute) for attribute in requirements(tamis.parse("length(title) > low"))]
    ['low', 'title']
    """
    required: dict[Attribute, Values] = {}
    for attribute, kinds in required_kinds(node):
        values = union_of(*(KINDS[kind] for kind in kinds)) if kinds else PRESENT
        required[attribute] = intersection(required.get(attribute, PRESENT), values)
    return required


def enclosure(leaf: Within | Fact, axis_of: Callable[[Expression], TermAxis]) -> dict[TermAxis, Values]:
    """Return, for other terms than its own, the values outside of which a leaf does not hold.

    >>> from tamis.relations.forms import context_of
    >>> context = context_of(None)
    >>> near = context.form("distance(lat, lon, 45, 16) < 10").formula
    >>> [str(axis.term) for axis in enclosure(near, context.axis)]
    ['lon', 'lat']
    """
    box: dict[TermAxis, Values] = {}
    if isinstance(leaf, Within):
        if leaf.axis.is_plain or not is_disjoint(leaf.values, ABSENT):
            return box
        needed, sets = requirements(leaf.axis.term), _around(leaf)
    elif leaf.is_so:
        needed, sets = requirements(leaf.predicate), _of_pattern(leaf)
    else:
        return box
    for terms in (needed, sets):
        for term, values in terms.items():
            axis = axis_of(term)
            box[axis] = intersection(box.get(axis, axis.values), values)
    return box


def _around(leaf: Within) -> dict[Expression, Values]:
    """Return where the coordinates of a place lie that is not far from another."""
    interval = interval_of(leaf.values, leaf.axis.line)
    if interval is None or interval[1] == inf:
        return {}
    sets = coordinates(leaf.axis.term, interval[1])
    return {attribute: values_between(intervals, "any") for attribute, intervals in sets.items()}


def _of_pattern(fact: Fact) -> dict[Expression, Values]:
    """Return the texts that start as a pattern does."""
    match fact.predicate:
        case Like(term) as pattern if fact.truth:
            pieces = pieces_of(pattern)
            if pieces and isinstance(pieces[0], str):
                return {term: prefix_cuts(pieces[0])}
    return {}
