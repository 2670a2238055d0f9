"""Which of a neighbour's filters covers this one, and which does it cover?

A few filters are compared pair by pair, and what was once compared is remembered; for more there is an index.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tamis.relations import covers

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.relations.covering_index import CoveringIndex

_FEW = 32
_REMEMBERED = 1 << 16


@lru_cache(_REMEMBERED)
def is_covered(special: Expression, general: Expression, schema: Schema | None) -> bool:
    """Does the second filter match every event that the first matches, as far as that can be proven?"""
    return special == general or covers(general, special, schema).holds


class Coverage:
    """Filters by key; those that cover one, and those that it covers."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._filters: dict[int, Expression] = {}
        self._index: CoveringIndex | None = None

    def add(self, key: int, expression: Expression) -> None:
        """Add a filter under a new key."""
        self._filters[key] = expression
        if self._index is not None:
            self._index.add(key, expression)
        elif len(self._filters) > _FEW:
            from tamis.relations.covering_index import CoveringIndex  # compiled, and most links need it never

            self._index = CoveringIndex(self._schema)
            for each, filter_ in self._filters.items():
                self._index.add(each, filter_)

    def remove(self, key: int) -> None:
        """Remove a filter."""
        del self._filters[key]
        if self._index is not None:
            self._index.remove(key)

    def covering(self, expression: Expression) -> int | None:
        """Return the key of a filter that covers another, the first of them; None if there is none."""
        if self._index is not None:
            return min(self._index.covering(expression), default=None)
        return next((k for k, each in self._filters.items() if is_covered(expression, each, self._schema)), None)

    def covered_by(self, expression: Expression) -> list[int]:
        """Return the keys of the filters that another covers."""
        if self._index is not None:
            return list(self._index.covered_by(expression))
        return [key for key, each in self._filters.items() if is_covered(each, expression, self._schema)]
