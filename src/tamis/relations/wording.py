"""How is a set of values said in the language? From sets back to syntax.

The other way round: from cuts back to operands, and from these to the predicate that a person would have written:
`=`, `IN`, `<>`, `NOT IN`, `BETWEEN`, one or two comparisons, `IS NULL`, `IS A`. A predicate counts only if it
means just the set it was made from; what has no wording is answered with None.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import (
    FALSE,
    TRUE,
    Attribute,
    Between,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
)
from tamis.language.ranges.kinds import ABSENT, KINDS, PRESENT
from tamis.language.ranges.lines import BOOLEAN, DOUBLE, NUMBER, TEXT, Cut, first_value, last_value, places, prefix_cuts
from tamis.language.ranges.predicates import compared
from tamis.language.ranges.value_sets import Values, difference, intersection, is_member, stretches, union_of
from tamis.language.rewrites.junctions import conjunction, disjunction
from tamis.relations.formulas import ALWAYS, Constant, Within
from tamis.relations.listing import listed

if TYPE_CHECKING:
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Context

Station = tuple[Any, int]
"""An operand, and whether the line is cut before (0) or after (1) what equals it."""

_REMEMBERED = 1 << 14
_LISTED_FIRST = 256
"""Of a set with more cuts than this, it is seen first whether it is a list of single values."""
_MOST_CUTS = 4_096
"""A set with more cuts that is no such list has no wording: an operand for each takes a tenth of a millisecond."""
_ORDERS = ("<", "<=", "=", "<>", ">=", ">")


def worded(axis: TermAxis, values: Values, context: Context) -> Expression | None:
    """Return an expression that is true just for these values of the axis.

    >>> from tamis.relations.forms import context_of
    >>> form = context_of(None).form("x < 4 OR x > 7")
    >>> print(worded(form.formula.axis, form.formula.values, form.context))
    x NOT BETWEEN 4 AND 7
    """
    said = _said(axis, values, context)
    if said is None:
        return None
    meant = context.form(said).formula
    if isinstance(meant, Constant):
        return said if values == (axis.values if meant is ALWAYS else ()) else None
    return said if isinstance(meant, Within) and meant.axis is axis and meant.values == values else None


def _said(axis: TermAxis, values: Values, context: Context) -> Expression | None:
    term = axis.term
    if values == axis.values:
        return TRUE
    if not values:
        return FALSE
    if axis.is_order:
        orders = (Compare(operator, *term.children) for operator in _ORDERS)
        return next((each for each in orders if _means(each, values, context)), None)
    if values == intersection(axis.values, PRESENT):
        return Not(IsNull(term))
    parts: list[Expression] = []
    rest = difference(values, ABSENT)
    if rest != values:
        parts.append(IsNull(term))
    for kind, of_kind in KINDS.items():
        mine, all_of_kind = intersection(rest, of_kind), intersection(axis.values, of_kind)
        if not mine:
            continue
        if kind in ("array", "record"):
            return None
        said = _event_types(axis, mine, context)
        if said is None:
            said = _of_kind(term, mine, all_of_kind, axis.line)
        if said is None:
            return None
        parts.append(said)
    return disjunction(parts)


def _means(expression: Expression, values: Values, context: Context) -> bool:
    formula = context.form(expression).formula
    return isinstance(formula, Within) and formula.values == values


def _event_types(axis: TermAxis, values: Values, context: Context) -> Expression | None:
    """Return IS A if the values are just the names of an event type and those below it."""
    schema = context.schema
    if schema is None or not isinstance(axis.term, Attribute) or axis.term.path != (schema.type_attribute,):
        return None
    for name in schema.hierarchy:
        names = schema.subtypes(name)
        if len(names) > 1 and values == union_of(*(compared("=", each, axis.line) for each in names)):
            return IsA(axis.term, name)
    return None


def _of_kind(term: Expression, values: Values, everything: Values, line: str) -> Expression | None:
    if values == everything:
        return _anything(term, values)
    prefix = values[0][1] if len(values) == 2 and len(values[0]) > 1 and values[0][0] == TEXT else None
    if prefix is not None and values == prefix_cuts(prefix) and not prefix.endswith("\0"):
        escaped = "".join(f"\\{each}" if each in "\\%_" else each for each in prefix)
        return Like(term, f"{escaped}%")
    if values[0][0] == BOOLEAN:
        return Compare("=", term, Literal(first_value(values[0], values[1])))
    if len(values) > _LISTED_FIRST and (members := listed(values, line)) is not None:
        return _members(term, members)
    left_out = difference(everything, values)
    if left_out[0] != everything[0] and left_out[-1] != everything[-1]:  # or it is not an exclusion: a list may be long
        if len(left_out) > _LISTED_FIRST and (members := listed(left_out, line)) is not None:
            return Not(_members(term, members))
        outside = _intervals(left_out, everything, line)
        if outside and all(_is_point(low, high) for low, high in outside):
            among = _members(term, [low[0] for low, _ in outside if low is not None])
            return Compare("<>", term, among.right) if isinstance(among, Compare) else Not(among)
        if outside is not None and len(outside) == 1 and None not in outside[0]:
            gap = _interval(term, *outside[0])
            if isinstance(gap, Between):
                return Not(gap)
    inside = _intervals(values, everything, line)
    if inside is None:
        return None
    points = [low[0] for low, high in inside if low is not None and _is_point(low, high)]
    pieces: list[Expression] = [_members(term, points)] if points else []
    pieces += [_interval(term, low, high) for low, high in inside if not _is_point(low, high)]
    return disjunction(pieces)


def _anything(term: Expression, values: Values) -> Expression | None:
    """Return a predicate that is true for every value of a kind."""
    for literal in (float("nan"), True):
        if compared("<=", literal, "any") == values:
            return Compare("<=", term, Literal(literal))
    for least in ("", dt.datetime.min):
        if compared(">=", least, "any") == values:
            return Compare(">=", term, Literal(least))
    return None


def _is_point(low: Station | None, high: Station | None) -> bool:
    if low is None or high is None or low[1] != 0 or high[1] != 1:
        return False
    return type(low[0]) is type(high[0]) and bool(low[0] == high[0] or low[0] != low[0])


def _members(term: Expression, members: list[Any]) -> Expression:
    return Compare("=", term, Literal(members[0])) if len(members) == 1 else In(term, tuple(members))


def _interval(term: Expression, low: Station | None, high: Station | None) -> Expression:
    if low is not None and high is not None and low[1] == 0 and high[1] == 1:
        return Between(term, Literal(low[0]), Literal(high[0]))
    ends: list[Expression] = []
    if low is not None:
        ends.append(Compare(">=" if low[1] == 0 else ">", term, Literal(low[0])))
    if high is not None:
        ends.append(Compare("<=" if high[1] == 1 else "<", term, Literal(high[0])))
    return conjunction(ends)


# -- From cuts to operands


def _intervals(values: Values, everything: Values, line: str) -> list[tuple[Station | None, Station | None]] | None:
    """Return a set of one kind as intervals between operands, open ones beginning or ending with None."""
    if len(values) > _MOST_CUTS:
        return None
    is_begun = is_member(everything[0], values)
    # Lengths begin at 0 and distances end somewhere: what a term cannot exceed is not a cut that needs an operand.
    ranks = list(dict.fromkeys(low[0] for low, _ in stretches(everything)))
    inner = {rank: [cut for cut in values if len(cut) > 1 and cut[0] == rank] for rank in ranks}
    if len(ranks) == 1:
        inner[ranks[0]] = [cut for cut in inner[ranks[0]] if cut not in (everything[0], everything[-1])]
        stations = [_station(cut, line, is_begun is (index % 2 == 0)) for index, cut in enumerate(inner[ranks[0]])]
    else:
        stations = _paired(inner[DOUBLE], inner[NUMBER], _known(inner[DOUBLE] + inner[NUMBER], line))
    if None in stations:
        return None
    bounds: list[Station | None] = [None, *stations, None]
    return list(pairwise(bounds))[0 if is_begun else 1 :: 2]


@lru_cache(_REMEMBERED)
def _station(cut: Cut, line: str, is_end: bool) -> Station | None:
    """Return the operand that cuts a rank just here; long lists of values come again and again with one more."""
    return _nearest(_known([cut], line), (cut,), is_end)


_Known = dict[tuple[Cut, ...], list[Station]]


def _known(cuts: list[Cut], line: str) -> _Known:
    """Return operands that may have made these cuts, by the cuts that they make on each rank."""
    known: _Known = {}
    for cut in cuts:
        for operand, side in _operands(cut, line):
            place = tuple(each[1 + side] for each in places(operand, line))
            known.setdefault(place, []).append((operand, side))
    return known


def _nearest(known: _Known, place: tuple[Cut, ...], is_end: bool) -> Station | None:
    """Return the operand to name: an exact and short one, and one that belongs to the interval if there is a choice."""
    stations = known.get(place, [])
    wanted = 1 if is_end else 0
    return min(stations, key=lambda each: (*_awkwardness(each[0]), each[1] != wanted, len(str(each[0]))), default=None)


def _awkwardness(operand: Any) -> tuple[bool, bool]:
    if isinstance(operand, dt.datetime):
        return operand.microsecond != 0, False
    return isinstance(operand, float | Decimal) and len(str(operand)) > 15, isinstance(operand, float)


def _paired(doubles: list[Cut], exact: list[Cut], known: _Known) -> list[Station | None]:
    """Find operands that cut the doubles here and the exact numbers there, in step."""
    stations: list[Station | None] = []
    mine, theirs = 0, 0
    while mine < len(doubles) or theirs < len(exact):
        double = doubles[mine] if mine < len(doubles) else (NUMBER,)
        number = exact[theirs] if theirs < len(exact) else (TEXT,)
        for place in ((double, number), (double, (NUMBER,)), (double, (TEXT,)), ((DOUBLE,), number)):
            if place in known:
                stations.append(_nearest(known, place, is_end=False))
                mine += place[0] == double and mine < len(doubles)
                theirs += place[1] == number and theirs < len(exact)
                break
        else:
            return [None]
    return stations


def _operands(cut: Cut, line: str) -> list[Station]:
    """Return operands that may cut a rank just here: the value behind the cut, and the one before it."""
    rank = cut[0]
    at, before = first_value(cut, (), line), last_value((rank,), cut, line)
    if rank == TEXT:
        return [(before, 1)] if cut[1].endswith("\0") else [(at, 0)]
    return [(each, side) for value, side in ((at, 0), (before, 1)) for each in _spellings(value, rank)]


def _spellings(value: Any, rank: int) -> list[Any]:
    """Return the literals that mean a number, and perhaps others with the same double."""
    if rank == NUMBER:
        return [value, float(value)]
    if rank != DOUBLE or value != value or abs(value) == float("inf"):
        return [value]
    if value == int(value) and abs(value) <= 2**53:
        return [int(value), value]
    exact = Decimal(repr(value))
    return [exact, value] if -38 <= int(exact.as_tuple().exponent) <= 0 else [value]
