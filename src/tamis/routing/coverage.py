"""Which of a neighbour's filters covers this one, and which does it cover? The covering order of a link's filters.

A few filters are compared pair by pair. For more than a few there is one pool for all links (`comparisons`), and a link
has its own keys for some of the filters there. Those that were there before it takes into the pool a few at a time,
with each that comes: to take a hundred at once holds everything else up for some tens of milliseconds.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.routing.comparisons import Comparisons, KnownFilter

_COMPARED_PAIRWISE = 32
"""So many filters are compared pair by pair; for more there is an index."""
_ENTERED_AT_ONCE = 4
"""So many of those that were compared pair by pair enter the pool with one that comes."""


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
        self._apart: dict[int, KnownFilter] = {}
        """Those that are not in the pool: all, or what is left of them since they were too many."""
        self._keys: dict[int, int] = {}
        """Of those in the pool, by their numbers there."""

    def __getitem__(self, key: int) -> KnownFilter:
        return self._filters[key]

    def add(self, key: int, known: KnownFilter) -> None:
        """Add a filter under a new key."""
        self._filters[key] = self._apart[key] = known
        if self._keys or len(self._filters) > self._few:
            for each in (key, *islice(self._apart, _ENTERED_AT_ONCE)):
                if each in self._apart:
                    self._enter(each, self._apart.pop(each))

    def _enter(self, key: int, known: KnownFilter) -> None:
        assert known.number not in self._keys
        self._comparisons.enter(known)
        self._keys[known.number] = key

    def remove(self, key: int) -> None:
        """Remove a filter."""
        known = self._filters.pop(key)
        if self._apart.pop(key, None) is None:
            del self._keys[known.number]
            self._comparisons.leave(known)

    def clear(self) -> None:
        """Remove all filters."""
        for key in list(self._filters):
            self.remove(key)

    def covering(self, known: KnownFilter) -> int | None:
        """Return the key of a filter that covers another, the first of them; None if there is none."""
        is_covered, is_around = self._comparisons.is_covered, self._comparisons.is_around
        apart = next((key for key, other in self._apart.items() if is_covered(known, other)), None)
        numbers = self._keys.keys() & self._comparisons.around(known).keys() if self._keys else ()
        in_order = sorted(numbers, key=self._keys.__getitem__)
        pooled = next((self._keys[number] for number in in_order if is_around(number, known)), None)
        return min((key for key in (apart, pooled) if key is not None), default=None)

    def identical(self, known: KnownFilter) -> int | None:
        """Return the key of a filter that matches the same as another, as far as that can be proven."""
        may_be, is_same = self._comparisons.may_be_identical, self._comparisons.are_identical
        apart = next((key for key, each in self._apart.items() if may_be(known, each) and is_same(known, each)), None)
        pooled = self._identical_in_pool(known) if self._keys else None
        return min((key for key in (apart, pooled) if key is not None), default=None)

    def _identical_in_pool(self, known: KnownFilter) -> int | None:
        around, inside = self._comparisons.around(known), self._comparisons.inside(known)
        keys = sorted(self._keys[number] for number in self._keys.keys() & around.keys() & inside.keys())
        may_be = self._comparisons.may_be_identical
        is_around, is_inside = self._comparisons.is_around, self._comparisons.is_inside
        for key in keys:
            other = self._filters[key]
            if may_be(known, other) and is_around(other.number, known) and is_inside(other.number, known):
                return key
        return None

    def covered_by(self, known: KnownFilter) -> list[int]:
        """Return the keys of the filters that another covers."""
        is_covered, is_inside = self._comparisons.is_covered, self._comparisons.is_inside
        apart = [key for key, other in self._apart.items() if is_covered(other, known)]
        numbers = self._keys.keys() & self._comparisons.inside(known).keys() if self._keys else ()
        return sorted([*apart, *(self._keys[number] for number in numbers if is_inside(number, known))])
