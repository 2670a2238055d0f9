"""Flooding: every neighbour gets every event.

A broker tells each neighbour once, when they meet, that it wants everything. No filter travels, tables never change,
and every broker sees every event. That is best where everybody wants nearly everything.

Source: Mühl et al. 2002, section 2.2 (docs/bibliography.md).
Departs: the constant entries of the tables are told when a link comes up, so that flooding brokers get along with
others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.language.expressions import TRUE
from tamis.routing.base import Source, Strategy, Summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression


class Flooding(Strategy):
    """Everything, always.

    >>> [str(each) for each in Flooding().told([])]
    ['TRUE']
    """

    name: ClassVar[str] = "flooding"
    is_perfect = False

    def summary(self) -> FloodingSummary:
        return FloodingSummary()

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        return [TRUE]


class FloodingSummary(Summary):
    """One entry, TRUE."""

    def __init__(self) -> None:
        super().__init__()
        self._sources: set[Source] = set()
        self._put(TRUE, 1.0)  # all of it may be in vain

    def __contains__(self, source: Source) -> bool:
        return source in self._sources

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        self._sources.add(source)

    def remove(self, source: Source) -> None:
        self._sources.remove(source)
