"""Simple routing: every neighbour knows every filter.

Each subscription costs one message on every link, and an entry in every other broker's table.

Source: Mühl et al. 2002, section 2.3 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.routing.base import Source, Strategy, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression


class Simple(Strategy):
    """Every filter as it is.

    >>> import tamis
    >>> len(Simple().told([tamis.parse("x = 1"), tamis.parse("x = 1")]))
    2
    """

    name: ClassVar[str] = "simple"

    def summary(self) -> SimpleSummary:
        return SimpleSummary()

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        return list(filters)


class SimpleSummary(Summary):
    """An entry for each source."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[Source, int] = {}

    def __contains__(self, source: Source) -> bool:
        return source in self._keys

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        assert source not in self._keys
        self._keys[source] = self._put(expression, imperfection)

    def remove(self, source: Source) -> None:
        self._drop(self._keys.pop(source))
