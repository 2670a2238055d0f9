"""Where do the values of a term lie, as far as comparisons with some operands have shown it? Cumulative distributions.

All values of one kind stand on a line. A comparison with an operand is a *cut* in it, before the operand or after it:
`price < 20` counts what lies before the cut before 20, `price > 20` what lies after the cut after 20. What was counted
at one cut answers every comparison there, and its complement; what lies between two known cuts is spread evenly
over the values between.

    price    ......10|......|20|......      known   > 10: 0.9    >= 20: 0.6    > 20: 0.5
                     0.1    0.4 0.5         asked   <= 20: 0.5   = 20: 0.1     > 15: 0.75

An event without a value (NULL) lies nowhere. So a complement takes what is left of the events that have one.

Source: Bittner 2008, section 6.4.2 and example 6.1: interpolation between registered operands (docs/bibliography.md).
Departs: `<` and `>` are one kind of knowledge, and lie before or after their operand; NULL is left out.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_left
from decimal import Decimal
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.language.values import instant, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBER, TEXT, TIME, BOOLEAN = "number", "text", "time", "boolean"
BEFORE, AFTER = 0, 1
_OF_OTHERS = 0.1
"""Which share of what lies between two cuts a single value is taken to have, where values cannot be counted."""

Place: TypeAlias = float | str
"""Where a value stands on the line of its kind."""


class LinePosition(NamedTuple):
    """A line, and a place on it."""

    kind: str
    place: Place


def standing(value: Any) -> LinePosition | None:
    """Return where a value stands; None for what stands on no line: NULL, NaN, arrays.

    >>> standing(20), standing(True)
    (LinePosition(kind='number', place=20.0), LinePosition(kind='boolean', place=1.0))
    >>> standing("a"), standing(float("nan"))
    (LinePosition(kind='text', place='a'), None)
    """
    match value_of(value):
        case bool():
            return LinePosition(BOOLEAN, float(value))
        case int() | float() | Decimal() as number:
            try:
                place = float(number)
            except OverflowError:
                place = inf if number > 0 else -inf
            return LinePosition(NUMBER, place + 0.0) if place == place else None
        case str() as text:
            return LinePosition(TEXT, text)
        case dt.date() as day:
            return LinePosition(TIME, (instant(day) - dt.datetime(1970, 1, 1)).total_seconds())
    return None


class Line:
    """What is known of a term's values of one kind, in shares of all events.

    >>> line = Line({(20.0, AFTER): 0.21}, {}, present=1.0)
    >>> line.below(20.0, AFTER), line.below(20.0, BEFORE), line.equal(20.0)
    (0.21, 0.21, 0.021)
    """

    def __init__(
        self,
        cuts: Mapping[tuple[Any, int], float],
        points: Mapping[Any, float],
        present: float,
    ) -> None:
        """Take what lies below each cut, which share has just one value, and which has any."""
        self.present = present
        self._cuts = sorted(cuts)
        self._below: list[float] = []
        least = 0.0
        for cut in self._cuts:  # what was counted on different events may contradict; the line only rises
            least = min(present, max(least, cuts[cut]))
            self._below.append(least)
        self._points: dict[Any, float] = dict(points)
        self._places = sorted(points)

    def __bool__(self) -> bool:
        return bool(self._cuts or self._points)

    def below(self, place: Any, side: int) -> float:
        """Return the share of values before or after a place's cut."""
        at = bisect_left(self._cuts, (place, side))
        if at < len(self._cuts) and self._cuts[at] == (place, side):
            return self._below[at]
        own: float = self._points.get(place, 0.0)
        if side == AFTER and at and self._cuts[at - 1][0] == place:
            return min(self.present, self._below[at - 1] + own)
        if side == BEFORE and at < len(self._cuts) and self._cuts[at][0] == place:
            return max(0.0, self._below[at] - own)
        least = self._below[at - 1] if at else 0.0
        most = self._below[at] if at < len(self._cuts) else self.present
        inside = self._known_between(at)
        known_below = sum(share for known, share in inside if known < place or (known == place and side == AFTER))
        others = max(0.0, most - least - sum(share for _, share in inside))
        return min(most, least + known_below + others * self._position(at, place))

    def equal(self, place: Any) -> float:
        """Return the share of just one value: as it was counted, or an even part of what nobody counted there."""
        first = bisect_left(self._cuts, (place, BEFORE))
        if first + 1 < len(self._cuts) and self._cuts[first : first + 2] == [(place, BEFORE), (place, AFTER)]:
            return self._below[first + 1] - self._below[first]
        if place in self._points:
            return self._points[place]
        after = bisect_left(self._cuts, (place, AFTER))
        # Of two cuts at the place itself at most one is known: the value lies on its inner side.
        low = first if first < len(self._cuts) and self._cuts[first] == (place, BEFORE) else first - 1
        high = after
        least = self._below[low] if low >= 0 else 0.0
        most = self._below[high] if high < len(self._cuts) else self.present
        inside = self._known_between(high) if high == low + 1 else []
        rest = max(0.0, most - least - sum(share for _, share in inside))
        if not isinstance(place, float) or low < 0 or high >= len(self._cuts):
            return rest * _OF_OTHERS
        (low_place, low_side), (high_place, high_side) = self._cuts[low], self._cuts[high]
        values: float = high_place + high_side - low_place - low_side - len(inside)
        return rest / max(1.0, values)

    def _known_between(self, at: int) -> list[tuple[Any, float]]:
        """Return the counted values between a cut and the one before it."""
        if not self._places:
            return []
        begin = bisect_left(self._places, self._cuts[at - 1][0]) if at else 0
        end = len(self._places)
        if at < len(self._cuts):
            end = bisect_left(self._places, self._cuts[at][0])
        points = [(place, self._points[place]) for place in self._places[begin : end + 1]]
        return [
            (place, share)
            for place, share in points
            if (at == 0 or (place, BEFORE) >= self._cuts[at - 1])
            and (at >= len(self._cuts) or (place, AFTER) <= self._cuts[at])
        ]

    def _position(self, at: int, place: Any) -> float:
        if at == 0 or at >= len(self._cuts) or not isinstance(place, float):
            return 0.5
        low, high = self._cuts[at - 1][0], self._cuts[at][0]
        return (place - low) / (high - low) if -inf < low < high < inf else 0.5
