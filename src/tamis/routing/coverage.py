"""Which of a neighbour's filters covers this one, and which does it cover? The covering order of a link's filters.

A few filters are compared pair by pair. For more than a few there is one pool for all links (`comparisons`), and a link
has its own keys for some of the filters there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.routing.comparisons import Comparisons, KnownFilter

_COMPARED_PAIRWISE = 32
"""So many filters are compared pair by pair; for more there is an index."""


class Coverage:
    """Filters by key; those that cover one, and those that it covers.

    >>> import tamis
    >>> from tamis.routing.comparisons import Comparisons
    >>> comparisons = Comparisons()
    >>> coverage = Coverage(comparisons)
    >>> coverage.add(7, comparisons.known(tamis.parse("price < 20")))
    >>> cheaper = comparisons.known(tamis.parse("price < 10"))
    >>> coverage.covering(cheaper), coverage.covered_by(cheaper)
    (7, [])
    """

    def __init__(self, comparisons: Comparisons, few: int | None = None) -> None:
        self._comparisons = comparisons
        self._few = _COMPARED_PAIRWISE if few is None else few
        self._filters: dict[int, KnownFilter] = {}
        self._keys: dict[int, int] = {}

    def __getitem__(self, key: int) -> KnownFilter:
        return self._filters[key]

    def add(self, key: int, known: KnownFilter) -> None:
        """Add a filter under a new key."""
        self._filters[key] = known
        if self._keys:
            self._enter(key, known)
        elif len(self._filters) > self._few:
            for each, filter_ in self._filters.items():
                self._enter(each, filter_)

    def _enter(self, key: int, known: KnownFilter) -> None:
        assert known.number not in self._keys
        self._comparisons.enter(known)
        self._keys[known.number] = key

    def remove(self, key: int) -> None:
        """Remove a filter."""
        known = self._filters.pop(key)
        if self._keys:
            del self._keys[known.number]
            self._comparisons.leave(known)

    def clear(self) -> None:
        """Remove all filters."""
        for key in list(self._filters):
            self.remove(key)

    def covering(self, known: KnownFilter) -> int | None:
        """Return the key of a filter that covers another, the first of them; None if there is none."""
        if not self._keys:
            is_covered = self._comparisons.is_covered
            return next((key for key, other in self._filters.items() if is_covered(known, other)), None)
        numbers = self._keys.keys() & self._comparisons.around(known).keys()
        if not numbers:
            return None
        is_around = self._comparisons.is_around
        in_order = sorted(numbers, key=self._keys.__getitem__)
        return next((self._keys[number] for number in in_order if is_around(number, known)), None)

    def identical(self, known: KnownFilter) -> int | None:
        """Return the key of a filter that matches the same as another, as far as that can be proven."""
        may_be = self._comparisons.may_be_identical
        if not self._keys:
            is_same = self._comparisons.are_identical
            return next(
                (key for key, each in self._filters.items() if may_be(known, each) and is_same(known, each)), None
            )
        around, inside = self._comparisons.around(known), self._comparisons.inside(known)
        keys = sorted(self._keys[number] for number in self._keys.keys() & around.keys() & inside.keys())
        is_around, is_inside = self._comparisons.is_around, self._comparisons.is_inside
        for key in keys:
            other = self._filters[key]
            if may_be(known, other) and is_around(other.number, known) and is_inside(other.number, known):
                return key
        return None

    def covered_by(self, known: KnownFilter) -> list[int]:
        """Return the keys of the filters that another covers."""
        if not self._keys:
            is_covered = self._comparisons.is_covered
            return [key for key, other in self._filters.items() if is_covered(other, known)]
        numbers = self._keys.keys() & self._comparisons.inside(known).keys()
        is_inside = self._comparisons.is_inside
        return sorted(self._keys[number] for number in numbers if is_inside(number, known))
