"""Which single values is a long set made of?

Lists of values meet by the hundred thousand, and what `wording` does for each cut (which operands may have made it,
and which of them is the one to name) takes too long there. A set of nothing but single texts or single numbers
is read off its cuts directly; whoever words it checks that it means the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.ranges.lines import DOUBLE, NUMBER, TEXT, Cut, double_key, exact_at, first_value, next_cut

if TYPE_CHECKING:
    from tamis.language.ranges.value_sets import Values


def listed(values: Values, line: str) -> list[Any] | None:
    """Return the values of a set of one kind, if they are single texts or numbers; None if they are not.

    >>> from tamis.language.ranges.predicates import compared
    >>> listed(compared("=", 5, "any"), "any"), listed(compared("=", "b", "any"), "any"), listed(((3,), (4,)), "any")
    ([5], ['b'], None)
    """
    by_rank: dict[int, list[tuple[Cut, Cut]]] = {}
    for low, high in zip(values[::2], values[1::2], strict=True):
        if low[0] not in (DOUBLE, NUMBER, TEXT):
            return None
        by_rank.setdefault(low[0], []).append((low, high))
    match sorted(by_rank):
        case [rank] if rank == TEXT or line not in ("any", "number"):
            pairs = by_rank[rank]
            return None if any(next_cut(low, line) != high for low, high in pairs) else _values(pairs, line)
        case [int(doubles), int(exact)] if (doubles, exact) == (DOUBLE, NUMBER):
            return _numbers(by_rank[DOUBLE], by_rank[NUMBER], line)
    return None


def _values(pairs: list[tuple[Cut, Cut]], line: str) -> list[Any]:
    return [first_value(low, high, line) for low, high in pairs]


def _numbers(doubles: list[tuple[Cut, Cut]], exact: list[tuple[Cut, Cut]], line: str) -> list[Any] | None:
    """Return numbers that cut both ranks: an exact one is a single value on both, a double on its own alone."""
    if len(doubles) != len(exact):
        return None
    numbers: list[Any] = []
    for double, number in zip(doubles, exact, strict=True):
        if next_cut(double[0], line) != double[1]:
            return None
        operand: Any = first_value(*double, line)
        if next_cut(number[0], line) == number[1] and len(number[0]) > 1:
            operand = exact_at(number[0][1])
            if len(double[0]) < 2 or double_key(float(operand)) != double[0][1]:
                return None
        numbers.append(operand)
    return numbers
