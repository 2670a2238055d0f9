"""How many of some values lie in a set? Ranks in a sorted list.

The values are sorted once, along the line of all values (`lines`), and a stretch of the line is a slice of them. Most
columns hold values of one type that Python itself orders as the line does; beside an operand of that type a comparison
is then two searches among the values as they are, which takes half the time of placing the operand on the line first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from tamis.language.ranges.lines import DOUBLE, NULL, NUMBER, TEXT, cut_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.ranges.value_sets import Values

_OF_ONE_RANK = (("double", {NULL, DOUBLE}), ("decimal", {NULL, NUMBER}), ("string", {NULL, TEXT}))
_EXACT_AS_DOUBLE = 2**53


class SortedValues:
    """Values, NULLs among them, along the line.

    >>> from tamis.language.ranges.predicates import compared
    >>> values = SortedValues([5, None, 15, 25])
    >>> values.compared("<", 20), values.among(compared("<", 20, values.line))
    (2, 2)
    """

    __slots__ = ("_cuts", "_plain", "_type", "line")

    def __init__(self, values: Iterable[Any]) -> None:
        values = list(values)
        self._cuts = sorted(map(cut_at, values))
        ranks = {cut[0] for cut in self._cuts}
        self.line = next((line for line, only in _OF_ONE_RANK if ranks <= only), "any")
        """The type of the values, where they are all of one: operands then have to be placed on one rank only."""
        plain = [value for value in values if value is not None]
        self._type = _ordered_type(plain)
        self._plain: list[Any] = sorted(plain) if self._type is not None else []

    def among(self, wanted: Values) -> int:
        """Return how many of the values are in a set: of each of its stretches, what lies before the end of it."""
        cuts = self._cuts
        if len(wanted) == 2:  # the common case
            return bisect_left(cuts, wanted[1]) - bisect_left(cuts, wanted[0])
        count, sign = 0, -1
        for cut in wanted:  # starts and ends take turns
            count += sign * bisect_left(cuts, cut)
            sign = -sign
        return count

    def compared(self, operator: str, operand: Any) -> int | None:
        """Return how many of the values compare so with an operand; None where Python's order is not the line's."""
        if type(operand) is not self._type:
            # Beside a double an integer becomes one, and one that is short stays what it is.
            if self._type is not float or type(operand) is not int or not _is_short(operand):
                return None
        elif operand != operand:
            return None
        plain = self._plain
        if operator == "<":
            return bisect_left(plain, operand)
        if operator == "<=":
            return bisect_right(plain, operand)
        if operator == ">":
            return len(plain) - bisect_right(plain, operand)
        if operator == ">=":
            return len(plain) - bisect_left(plain, operand)
        equal = bisect_right(plain, operand) - bisect_left(plain, operand)
        return equal if operator == "=" else len(plain) - equal if operator == "<>" else None


def _ordered_type(values: list[Any]) -> type | None:
    """Return the type of all values, if Python orders them as the line does beside an operand of that type."""
    types = set(map(type, values))
    if len(types) != 1:
        return None
    only = types.pop()
    if only is float:
        return None if any(value != value for value in values) else float
    if only is str:
        # Half a surrogate pair is not a text of an event, and lies elsewhere than Python has it.
        return str if all(value.isascii() or not _has_surrogate(value) for value in values) else None
    return int if only is int else None


def _is_short(number: int) -> bool:
    return -_EXACT_AS_DOUBLE <= number <= _EXACT_AS_DOUBLE


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
