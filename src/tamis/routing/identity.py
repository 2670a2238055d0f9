"""Identity: of filters that match the same, a neighbour knows one.

The first of them is told, and the last that leaves takes it back. Identical are filters whose formulas are equal; that
is sound, and finds all of the same sets of values however they are written. What only a solver would find stays two.

Source: Mühl et al. 2002, section 2.4 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.relations.forms import context_of
from tamis.routing.base import Source, Strategy, Summary

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema


class Identity(Strategy):
    """One filter of each that match the same.

    >>> import tamis
    >>> told = Identity().told(map(tamis.parse, ["x = 1 OR x = 2", "x IN (1, 2)", "x = 1"]))
    >>> [str(each) for each in told]
    ['x = 1 OR x = 2', 'x = 1']
    """

    name: ClassVar[str] = "identity"

    def summary(self) -> IdentitySummary:
        return IdentitySummary(self.schema)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        first: dict[Hashable, Expression] = {}
        for each in filters:
            first.setdefault(context_of(self.schema).form(each).formula, each)
        return list(first.values())


class IdentitySummary(Summary):
    """An entry for each class of identical filters."""

    def __init__(self, schema: Schema | None) -> None:
        super().__init__()
        self._schema = schema
        self._formulas: dict[Source, Hashable] = {}
        self._keys: dict[Hashable, int] = {}
        self._counts: dict[Hashable, int] = {}

    def __contains__(self, source: Source) -> bool:
        return source in self._formulas

    def add(self, source: Source, expression: Expression) -> None:
        assert source not in self._formulas
        formula = context_of(self._schema).form(expression).formula
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
