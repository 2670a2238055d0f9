"""Which values of a term make a predicate true?

A set of values of one kind: a sorted list of disjoint intervals. Numbers of all three types share one
line. That is sound only while different operands stay different as doubles: beyond 2**53 an event's
double equals several integers at once. Such operands make no set, and their predicates stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cmp_to_key
from math import isfinite
from typing import Any

from tamis.language.expressions import And, Between, Compare, Expression, In, Literal, Not, Or, Scalar
from tamis.language.values import compare, kind_of

# A cut lies before (0) or after (1) a value; None is the end of the line on either side.
Cut = tuple[Any, int] | None


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values of one kind, as disjoint intervals in order; each lies between two cuts."""

    kind: str
    intervals: tuple[tuple[Cut, Cut], ...]

    @property
    def is_empty(self) -> bool:
        """Does it hold no value?"""
        return not self.intervals

    @property
    def is_full(self) -> bool:
        """Does it hold every value of its kind?"""
        return self.intervals == ((None, None),)


def as_set(predicate: Expression) -> tuple[Expression, ValueSet] | None:
    """Return the term of a predicate and the values that make it true; None for other predicates."""
    match predicate:
        case Compare(operator, term, Literal(value)) if operator != "<=>":
            found = _compared(operator, value)
        case Between(term, Literal(low), Literal(high)):
            found = _between(low, high)
        case In(term, members):
            found = _members(members)
        case Not(In(term, members)):
            inside = _members(members)
            found = _complement(inside) if inside is not None and None not in members else None
        case Not(Between(term, Literal(low), Literal(high))):
            inside = _between(low, high)
            found = _complement(inside) if inside is not None else None
        case _:
            return None
    return None if found is None or isinstance(term, Literal) else (term, found)


def _compared(operator: str, value: Scalar) -> ValueSet | None:
    if value is None:
        return None
    before, after = (value, 0), (value, 1)
    intervals: dict[str, tuple[tuple[Cut, Cut], ...]] = {
        "=": ((before, after),),
        "<>": ((None, before), (after, None)),
        "<": ((None, before),),
        "<=": ((None, after),),
        ">": ((after, None),),
        ">=": ((before, None),),
    }
    return _tidy(kind_of(value), list(intervals[operator]))


def _between(low: Scalar, high: Scalar) -> ValueSet | None:
    if low is None or high is None or kind_of(low) != kind_of(high):
        return None
    order = compare(low, high)
    assert order is not None
    return _tidy(kind_of(low), [((low, 0), (high, 1))] if order <= 0 else [])


def _members(members: tuple[Scalar, ...]) -> ValueSet | None:
    # A NULL among them never makes it true, so the set is that of the others.
    present = [member for member in members if member is not None]
    kinds = {kind_of(member) for member in present}
    if len(kinds) != 1 or not _distinguishable(present):
        return None
    return _tidy(kinds.pop(), [((member, 0), (member, 1)) for member in present])


def _tidy(kind: str, intervals: list[tuple[Cut, Cut]]) -> ValueSet:
    """Sort and join intervals that touch."""
    joined: list[tuple[Cut, Cut]] = []
    by_start = cmp_to_key(lambda one, two: _order_low(one[0], two[0]))  # type: ignore[index]
    for low, high in sorted(intervals, key=by_start):
        if joined and _reaches(joined[-1][1], low):
            if _order_high(high, joined[-1][1]) > 0:
                joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return ValueSet(kind, tuple(joined))


def _order(one: tuple[Any, int], two: tuple[Any, int]) -> int:
    return compare(one[0], two[0]) or one[1] - two[1]


def _order_low(one: Cut, two: Cut) -> int:
    if one is None or two is None:
        return (one is not None) - (two is not None)
    return _order(one, two)


def _order_high(one: Cut, two: Cut) -> int:
    if one is None or two is None:
        return (two is not None) - (one is not None)
    return _order(one, two)


def _reaches(high: Cut, low: Cut) -> bool:
    return high is None or low is None or _order(high, low) >= 0


def _complement(values: ValueSet) -> ValueSet:
    gaps: list[tuple[Cut, Cut]] = []
    at: Cut = None
    for low, high in values.intervals:
        if low is not None:
            gaps.append((at, low))
        at = high
        if high is None:
            return ValueSet(values.kind, tuple(gaps))
    return ValueSet(values.kind, (*gaps, (at, None)))


def intersection(sets: list[ValueSet], is_integer: bool = False) -> ValueSet | None:
    """Return the values that all sets hold; None where that cannot be said.

    Sets of different kinds have nothing in common. With `is_integer` only whole numbers count.
    """
    if len({values.kind for values in sets}) > 1:
        return ValueSet(sets[0].kind, ())
    if not _distinguishable(_operands(sets)):
        return None
    together = sets[0]
    for other in sets[1:]:
        together = _complement(union([_complement(together), _complement(other)]) or together)
    return _whole(together) if is_integer and together.kind == "number" else together


def union(sets: list[ValueSet]) -> ValueSet | None:
    """Return the values that any set holds; None where they are of different kinds."""
    if len({values.kind for values in sets}) > 1 or not _distinguishable(_operands(sets)):
        return None
    return _tidy(sets[0].kind, [interval for values in sets for interval in values.intervals])


def _operands(sets: list[ValueSet]) -> list[Any]:
    return [cut[0] for values in sets for interval in values.intervals for cut in interval if cut is not None]


def _distinguishable(operands: list[Any]) -> bool:
    numbers = [operand for operand in operands if kind_of(operand) == "number"]
    by_double: dict[str, Any] = {}
    for number in numbers:
        known = by_double.setdefault(repr(float(number) + 0.0), number)
        if compare(known, number) != 0:
            return False
        if isinstance(known, float) is not isinstance(number, float) and abs(float(number)) > 2.0**53:
            return False
    return True


def _whole(values: ValueSet) -> ValueSet:
    """Move the cuts to whole numbers: between 3 and 4 there is nothing."""
    intervals: list[tuple[Cut, Cut]] = []
    for low, high in values.intervals:
        first = _whole_cut(low, ROUND_CEILING, 0)
        last = _whole_cut(high, ROUND_FLOOR, 1)
        if first is None or last is None or compare(first[0], last[0]) != 1:
            intervals.append((first, last))
    return _tidy(values.kind, intervals)


def _whole_cut(cut: Cut, rounding: str, side: int) -> Cut:
    if cut is None or not isfinite(cut[0]) or abs(cut[0]) > 2**53:
        return cut
    exact = Decimal(cut[0])
    whole = int(exact.to_integral_value(rounding))
    if whole == exact and cut[1] != side:  # just beside a whole number: the next one
        whole += 1 if side == 0 else -1
    return (whole, side)


def as_predicates(term: Expression, values: ValueSet, junction: type[And] | type[Or]) -> list[Expression]:
    """Return predicates on the term that, joined by AND or OR, are true for just these values.

    The empty list is: there are none that are worth writing.
    """
    if all(_is_point(low, high) for low, high in values.intervals):
        return _in(term, [low[0] for low, _ in values.intervals if low is not None])
    outside = _complement(values)
    if not outside.is_empty and all(_is_point(low, high) for low, high in outside.intervals):
        return [
            _complement_of(member) for member in _in(term, [low[0] for low, _ in outside.intervals if low is not None])
        ]
    if junction is Or:
        pieces = [_interval(term, low, high) for low, high in values.intervals]
        return [piece[0] for piece in pieces] if all(len(piece) == 1 for piece in pieces) else []
    return _interval(term, *values.intervals[0]) if len(values.intervals) == 1 else []


def _complement_of(predicate: Expression) -> Expression:
    return Compare("<>", predicate.left, predicate.right) if isinstance(predicate, Compare) else Not(predicate)


def _is_point(low: Cut, high: Cut) -> bool:
    return low is not None and high is not None and compare(low[0], high[0]) == 0


def _in(term: Expression, members: list[Any]) -> list[Expression]:
    if len(members) == 1:
        return [Compare("=", term, Literal(members[0]))]
    return [In(term, tuple(members))] if members else []


def _interval(term: Expression, low: Cut, high: Cut) -> list[Expression]:
    if low is not None and high is not None and low[1] == 0 and high[1] == 1:
        return [Between(term, Literal(low[0]), Literal(high[0]))]
    ends: list[Expression] = []
    if low is not None:
        ends.append(Compare(">=" if low[1] == 0 else ">", term, Literal(low[0])))
    if high is not None:
        ends.append(Compare("<=" if high[1] == 1 else "<", term, Literal(high[0])))
    return ends
