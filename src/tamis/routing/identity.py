"""Identity: of filters that match the same, a neighbour knows one.

The first of them is told, and the last that leaves takes it back. Identical are filters whose formulas are equal; that
is sound, and finds all of the same sets of values however they are written. What only a solver would find stays two.

Source: Mühl et al. 2002, section 2.4 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.routing.base import Source, Strategy, Summary
from tamis.routing.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from tamis.language.expressions import Expression
    from tamis.routing.comparisons import Comparisons, KnownFilter


class Identity(Strategy):
    """One filter of each that match the same.

    >>> import tamis
    >>> told = Identity().told(map(tamis.parse, ["x = 1 OR x = 2", "x IN (1, 2)", "x = 1"]))
    >>> [str(each) for each in told]
    ['x = 1 OR x = 2', 'x = 1']
    """

    name: ClassVar[str] = "identity"

    def summary(self) -> IdentitySummary:
        return IdentitySummary(self.comparisons)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        first: dict[Hashable, Expression] = {}
        for each in filters:
            first.setdefault(self.comparisons.context.form(each).formula, each)
        return list(first.values())


class IdentitySummary(Summary):
    """An entry for each class of identical filters."""

    def __init__(self, comparisons: Comparisons) -> None:
        super().__init__()
        self._comparisons = comparisons
        self._known_of: dict[Source, KnownFilter] = {}
        self._keys: dict[KnownFilter, int] = {}
        self._sources: dict[KnownFilter, Sources] = {}

    def __contains__(self, source: Source) -> bool:
        return source in self._known_of

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        assert source not in self._known_of
        known = self._known_of[source] = self._comparisons.known(expression)
        if known not in self._keys:
            self._keys[known] = self._put(expression, imperfection)
            self._sources[known] = Sources()
        self._sources[known].add(source, imperfection)

    def remove(self, source: Source) -> None:
        known = self._known_of.pop(source)
        sources, key = self._sources[known], self._keys[known]
        sources.remove(source)
        if not sources:
            del self._sources[known]
            self._drop(self._keys.pop(known))
        elif sources.imperfection > self._imperfections.get(key, 0.0):
            self._keys[known] = self._put(self._entries[key], sources.imperfection)
            self._drop(key)
