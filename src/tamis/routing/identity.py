"""Identity: of filters that match the same, a neighbour knows one.

The first of them is told, and the last that leaves takes it back. Identical are filters whose formulas are equal; that
is sound, and finds all of the same sets of values however they are written. What only a solver would find stays two.

Source: Mühl et al. 2002, section 2.4 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.routing.base import Source, Strategy, Summary

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from tamis.language.expressions import Expression
    from tamis.routing.comparisons import Comparisons


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
            first.setdefault(self.comparisons.formula(each), each)
        return list(first.values())


class IdentitySummary(Summary):
    """An entry for each class of identical filters."""

    def __init__(self, comparisons: Comparisons) -> None:
        super().__init__()
        self._comparisons = comparisons
        self._formulas: dict[Source, Hashable] = {}
        self._keys: dict[Hashable, int] = {}
        self._counts: dict[Hashable, int] = {}

    def __contains__(self, source: Source) -> bool:
        return source in self._formulas

    def add(self, source: Source, expression: Expression) -> None:
        assert source not in self._formulas
        formula = self._comparisons.formula(expression)
        self._formulas[source] = formula
        if formula not in self._keys:
            self._keys[formula] = self._put(expression)
        self._counts[formula] = self._counts.get(formula, 0) + 1

    def remove(self, source: Source) -> None:
        formula = self._formulas.pop(source)
        self._counts[formula] -= 1
        if not self._counts[formula]:
            del self._counts[formula]
            self._drop(self._keys.pop(formula))
