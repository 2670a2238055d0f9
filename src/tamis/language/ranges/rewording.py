"""Which predicate is true for just these values? From sets of values back to predicates.

What several predicates on one term say together is a set of values, and where that set has a short name it may stand
for all of them: `a = 1 OR a = 2` is `a IN (1, 2)`. The name is looked for among the operands that the predicates had:
each operand is a pair of cuts, before it and after it, and a stretch of the set is named by the operands whose cuts are
its ends. An operand cuts the doubles at one place and the exact numbers at another (`lines`), and names an end only if
it is the end on both; so beyond 2**53, where a double equals several integers, a set may have no name. Of whole numbers
any may be named, because each cut lies just before one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.language.expressions import And, Between, Compare, Expression, In, Literal, Not, Or, Scalar
from tamis.language.ranges.kinds import KINDS, OF_TYPES
from tamis.language.ranges.lines import Cut, first_value, last_value, places, ranks_of
from tamis.language.ranges.predicates import values_of
from tamis.language.ranges.simple import PREFIX, simple
from tamis.language.ranges.value_sets import Values, difference, intersection
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

INTEGER = "int"
"""The line of whole numbers."""

_Cuts: TypeAlias = tuple[Cut, ...]
"""One cut in each rank of a kind."""
_End: TypeAlias = "tuple[Any, bool] | None"
"""An operand, and whether it lies within; None for the end of the line."""


class Ranged(NamedTuple):
    """A simple predicate over operands of one kind."""

    term: Expression
    kind: str
    operands: tuple[Scalar, ...]
    values: Values
    """Those that make it true."""

    @property
    def is_full(self) -> bool:
        """Does it hold for every value of its kind?"""
        return self.values == KINDS[self.kind]


def ranged(predicate: Expression, line: str = "any") -> Ranged | None:
    """Return the values that make a predicate true, if it compares a term with operands of one kind.

    >>> import tamis
    >>> ranged(tamis.parse("a > 5")).values == ranged(tamis.parse("NOT 5 >= a")).values
    True
    >>> ranged(tamis.parse("a IN (1, 'x')")) is ranged(tamis.parse("a < b")) is None
    True
    """
    asked = simple(predicate)
    if asked is None or asked.operator in ("<=>", PREFIX):
        return None
    # A NULL among members never makes a predicate true, and keeps its complement from being so.
    operands = tuple(operand for operand in asked.operands if operand is not None)
    if len(operands) < len(asked.operands) and (asked.is_negated or not isinstance(predicate, In)):
        return None
    kinds = set(map(kind_of, operands))
    if len(kinds) != 1:
        return None
    positive, is_true = (predicate.value, False) if isinstance(predicate, Not) else (predicate, True)
    values = intersection(values_of(positive, is_true, line), OF_TYPES[line])
    return Ranged(asked.term, kinds.pop(), operands, values)


def as_predicates(ranged: Ranged, junction: type[And] | type[Or], line: str = "any") -> list[Expression]:
    """Return predicates on the term that, joined by AND or OR, are true for just these values.

    The empty list is: there are none that are worth writing.

    >>> import tamis
    >>> one, two = ranged(tamis.parse("a > 3")), ranged(tamis.parse("a <= 9"))
    >>> both = one._replace(operands=(3, 9), values=intersection(one.values, two.values))
    >>> [str(predicate) for predicate in as_predicates(both, And)]
    ['a > 3', 'a <= 9']
    """
    names = _OperandNames(ranged.operands, line)
    inside = _stretches(ranged.values, ranged.kind, line)
    if inside is None:
        return []
    points = names.points(inside)
    if points is not None:
        return _among(ranged.term, points)
    outside = _stretches(difference(intersection(KINDS[ranged.kind], OF_TYPES[line]), ranged.values), ranged.kind, line)
    if outside and (points := names.points(outside)) is not None:
        return [_complement_of(predicate) for predicate in _among(ranged.term, points)]
    if junction is And and len(inside) > 1:
        return []
    pieces = [names.interval(ranged.term, *stretch) for stretch in inside]
    if junction is And:
        return pieces[0] or []
    return [piece[0] for piece in pieces if piece] if all(piece and len(piece) == 1 for piece in pieces) else []


def _stretches(values: Values, kind: str, line: str) -> list[tuple[_Cuts, _Cuts]] | None:
    """Return where the stretches of a set begin and end, in all ranks of a kind; None if these have not as many."""
    by_rank = []
    for rank in ranks_of(kind, line):
        part = intersection(values, ((rank,), (rank + 1,)))
        by_rank.append(list(zip(part[::2], part[1::2], strict=True)))
    if len(set(map(len, by_rank))) != 1:
        return None
    return [(tuple(low for low, _ in each), tuple(high for _, high in each)) for each in zip(*by_rank, strict=True)]


class _OperandNames:
    """The operands by which cuts, and the stretches between them, can be named."""

    def __init__(self, operands: Iterable[Scalar], line: str) -> None:
        self._is_whole = line == INTEGER
        self._cuts: dict[_Cuts, tuple[Any, bool]] = {}
        """By the cuts before and after each operand: the operand, and whether it lies behind them."""
        self._points: dict[tuple[_Cuts, _Cuts], Any] = {}
        if not self._is_whole:
            for operand in operands:
                on_ranks = places(operand, line)
                before, after = tuple(place[1] for place in on_ranks), tuple(place[2] for place in on_ranks)
                self._cuts.setdefault(before, (operand, True))
                self._cuts.setdefault(after, (operand, False))
                self._points.setdefault((before, after), operand)

    def points(self, stretches: list[tuple[_Cuts, _Cuts]]) -> list[Any] | None:
        """Return the operands that stretches consist of; None if one of these is more than an operand."""
        operands = []
        for low, high in stretches:
            if self._is_whole:
                first = first_value(low[0], high[0], INTEGER)
                if first != last_value(low[0], high[0], INTEGER):
                    return None
                operands.append(first)
            elif (low, high) in self._points:
                operands.append(self._points[low, high])
            else:
                return None
        return operands

    def interval(self, term: Expression, low: _Cuts, high: _Cuts) -> list[Expression] | None:
        """Return the comparisons with the ends of a stretch; None if an end has no name."""
        is_start, is_end = all(len(cut) == 1 for cut in low), all(len(cut) == 1 for cut in high)
        first: _End = None
        last: _End = None
        if self._is_whole:
            first = None if is_start else (first_value(low[0], high[0], INTEGER), True)
            last = None if is_end else (last_value(low[0], high[0], INTEGER), True)
        else:
            if (not is_start and low not in self._cuts) or (not is_end and high not in self._cuts):
                return None
            first = None if is_start else self._cuts[low]
            if not is_end:
                operand, is_behind = self._cuts[high]
                last = operand, not is_behind
        return _compared(term, first, last)


def _compared(term: Expression, first: _End, last: _End) -> list[Expression]:
    if first is not None and last is not None and first[1] and last[1]:
        return [Between(term, Literal(first[0]), Literal(last[0]))]
    ends: list[Expression] = []
    if first is not None:
        ends.append(Compare(">=" if first[1] else ">", term, Literal(first[0])))
    if last is not None:
        ends.append(Compare("<=" if last[1] else "<", term, Literal(last[0])))
    return ends


def _among(term: Expression, members: list[Any]) -> list[Expression]:
    if len(members) == 1:
        return [Compare("=", term, Literal(members[0]))]
    return [In(term, tuple(members))] if members else []


def _complement_of(predicate: Expression) -> Expression:
    return Compare("<>", predicate.left, predicate.right) if isinstance(predicate, Compare) else Not(predicate)
