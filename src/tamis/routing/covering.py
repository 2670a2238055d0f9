"""Covering: a neighbour knows only filters that no other of them covers.

Every filter *stands under* one that the neighbour knows: under itself, or under one that covers it. A filter that is
covered when it comes costs nothing; one that covers others takes them under itself, and they are taken back. When the
filter leaves under which others stand, those are placed anew: one of them may be told again, in the same message that
takes the broad one back.

Source: Mühl et al. 2002, section 2.5 (docs/bibliography.md).
Departs: what is no longer needed is named by the sender; the published receiver finds it with covering tests of its
own.
  Only those that nothing else covers are told again, not all that were covered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.routing.base import Source, Strategy, Summary
from tamis.routing.coverage import Coverage

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from tamis.language.expressions import Expression
    from tamis.routing.comparisons import Comparisons


class Covering(Strategy):
    """The broadest filters alone.

    >>> import tamis
    >>> told = Covering().told(map(tamis.parse, ["x > 15", "x > 10", "y = 1", "x > 10 AND y = 1"]))
    >>> [str(each) for each in told]
    ['x > 10', 'y = 1']
    """

    name: ClassVar[str] = "covering"

    def summary(self) -> CoveringSummary:
        return CoveringSummary(self.comparisons)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        return _broadest(list(filters), self.comparisons)


def _broadest(filters: list[Expression], comparisons: Comparisons) -> list[Expression]:
    kept: list[Expression] = []
    for each in filters:
        if not any(comparisons.is_covered(each, other) for other in kept):
            kept = [other for other in kept if not comparisons.is_covered(other, each)] + [each]
    return kept


class Group:
    """Filters that match the same: the first of them, whose they are, and under which entry they stand."""

    __slots__ = ("entry", "expression", "formula", "sources")

    def __init__(self, formula: Hashable, expression: Expression) -> None:
        self.formula = formula
        self.expression = expression
        self.sources: set[Source] = set()
        self.entry = -1


class CoveringSummary(Summary):
    """Entries, and the filters that stand under each."""

    def __init__(self, comparisons: Comparisons) -> None:
        super().__init__()
        self._comparisons = comparisons
        self._group_of: dict[Source, Group] = {}
        self._groups: dict[Hashable, Group] = {}
        self._under: dict[int, dict[Hashable, Group]] = {}
        self._coverage = Coverage(comparisons)

    def __contains__(self, source: Source) -> bool:
        return source in self._group_of

    def add(self, source: Source, expression: Expression) -> None:
        assert source not in self._group_of
        formula = self._comparisons.formula(expression)
        group = self._groups.get(formula)
        if group is None:
            group = self._groups[formula] = Group(formula, expression)
            self._place({formula: group}, expression)
        group.sources.add(source)
        self._group_of[source] = group

    def remove(self, source: Source) -> None:
        group = self._group_of.pop(source)
        group.sources.remove(source)
        if not group.sources:
            del self._groups[group.formula]
            del self._under[group.entry][group.formula]
            self._left(group)

    def _place(self, members: dict[Hashable, Group], expression: Expression) -> None:
        """Find a place for filters that the expression stands for."""
        entry = self._coverage.covering(expression)
        if entry is None:
            for narrower in self._coverage.covered_by(expression):
                members = members | self._take(narrower)
            entry = self._put(expression)
            self._coverage.add(entry, expression)
            self._under[entry] = {}
        self._under[entry] |= members
        for group in members.values():
            group.entry = entry

    def _take(self, entry: int) -> dict[Hashable, Group]:
        """Remove an entry; return what stood under it."""
        self._coverage.remove(entry)
        self._drop(entry)
        return self._under.pop(entry)

    def _left(self, gone: Group) -> None:
        """Decide what becomes of the entry under which a filter stood that is gone."""
        told, members = self._entries[gone.entry], self._under[gone.entry]
        if not self._comparisons.is_covered(told, gone.expression):
            return  # it was another one's entry
        if any(self._comparisons.is_covered(told, group.expression) for group in members.values()):
            return  # nothing that is told is too broad now
        for formula, group in self._take(gone.entry).items():
            self._place({formula: group}, group.expression)
