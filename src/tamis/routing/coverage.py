"""Which of a neighbour's filters covers this one, and which does it cover?

A few filters are compared pair by pair, and what was compared on one link is known on the others. For more, there is
one pool of filters for all links, and a link has its own keys for some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.routing.comparisons import Comparisons

_FEW = 32


class Coverage:
    """Filters by key; those that cover one, and those that it covers.

    >>> import tamis
    >>> from tamis.routing.comparisons import Comparisons
    >>> coverage = Coverage(Comparisons())
    >>> coverage.add(7, tamis.parse("price < 20"))
    >>> coverage.covering(tamis.parse("price < 10")), coverage.covered_by(tamis.parse("price < 10"))
    (7, [])
    """

    def __init__(self, comparisons: Comparisons) -> None:
        self._comparisons = comparisons
        self._filters: dict[int, Expression] = {}
        self._keys: dict[int, int] = {}
        self._numbers: dict[int, int] = {}

    def add(self, key: int, expression: Expression) -> None:
        """Add a filter under a new key."""
        self._filters[key] = expression
        if self._keys:
            self._enter(key, expression)
        elif len(self._filters) > _FEW:
            for each, filter_ in self._filters.items():
                self._enter(each, filter_)

    def _enter(self, key: int, expression: Expression) -> None:
        number = self._comparisons.enter(expression)
        assert number not in self._keys
        self._keys[number], self._numbers[key] = key, number

    def remove(self, key: int) -> None:
        """Remove a filter."""
        del self._filters[key]
        if self._keys:
            number = self._numbers.pop(key)
            del self._keys[number]
            self._comparisons.leave(number)

    def covering(self, expression: Expression) -> int | None:
        """Return the key of a filter that covers another, the first of them; None if there is none."""
        if self._keys:
            found = self._keys.keys() & self._comparisons.covering(expression)
            return min((self._keys[number] for number in found), default=None)
        is_covered = self._comparisons.is_covered
        return next((key for key, each in self._filters.items() if is_covered(expression, each)), None)

    def covered_by(self, expression: Expression) -> list[int]:
        """Return the keys of the filters that another covers."""
        if self._keys:
            found = self._keys.keys() & self._comparisons.covered_by(expression)
            return sorted(self._keys[number] for number in found)
        is_covered = self._comparisons.is_covered
        return [key for key, each in self._filters.items() if is_covered(each, expression)]
