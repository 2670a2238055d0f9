"""What number has an event that comes after younger ones?

Rankings tell older from younger by number, and events are numbered as they come. One that was published earlier, and
comes only now, belongs between two numbers that are taken: it gets a fraction between them. Fractions are exact and
compare with whole numbers, and nothing but comparison is ever done with the number of an event that comes late.

Source: ours; it makes the second attempt of Pripužić 2010, section 3.5, possible for an event whose first was not made
(docs/bibliography.md).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from typing import cast


class Numbering:
    """Numbers in order of publication.

    >>> numbers = Numbering()
    >>> numbers.next(at=1.0), numbers.next(at=5.0), numbers.late(at=2.0), numbers.late(at=2.0), numbers.next(at=6.0)
    (0, 1, Fraction(1, 2), Fraction(3, 4), 2)
    """

    def __init__(self, first: int = 0) -> None:
        self._next = first
        self._times: list[float] = []
        self._numbers: list[int] = []

    def next(self, at: float) -> int:
        """Number an event that is not older than any before it."""
        number = self._next
        self._next += 1
        self._times.append(at)
        self._numbers.append(number)
        return number

    def late(self, at: float) -> int:
        """Number an event among those published earlier and later; of the same time, those before it come first."""
        place = bisect_right(self._times, at)
        after = self._numbers[place] if place < len(self._numbers) else self._next
        before = self._numbers[place - 1] if place else after - 1
        number = cast("int", (Fraction(before) + after) / 2)
        self._times.insert(place, at)
        self._numbers.insert(place, number)
        return number

    def forget(self, before: float = math.inf) -> None:
        """Forget what was published before a time: nothing as late as that will come."""
        place = bisect_right(self._times, math.nextafter(before, -math.inf))
        del self._times[:place], self._numbers[:place]

    def __len__(self) -> int:
        return len(self._numbers)
