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
from tamis.routing.sources import FilterSources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression
    from tamis.routing.comparisons import Comparisons, KnownFilter


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
    kept: list[tuple[KnownFilter, Expression]] = []
    for each in filters:
        known = comparisons.known(each)
        if not any(comparisons.is_covered(known, other) for other, _ in kept):
            kept = [(other, broad) for other, broad in kept if not comparisons.is_covered(other, known)]
            kept.append((known, each))
    return [broad for _, broad in kept]


class EqualFilters:
    """Filters that match the same: the first of them, of which sources, and under which entry they stand."""

    __slots__ = ("entry", "expression", "known", "sources")

    def __init__(self, known: KnownFilter, expression: Expression) -> None:
        self.known = known
        self.expression = expression
        self.sources = FilterSources()
        self.entry = -1


class CoveringSummary(Summary):
    """Entries, and the filters that stand under each."""

    def __init__(self, comparisons: Comparisons) -> None:
        super().__init__()
        self._comparisons = comparisons
        self._group_of: dict[Source, EqualFilters] = {}
        self._groups: dict[KnownFilter, EqualFilters] = {}
        self._under: dict[int, dict[EqualFilters, None]] = {}
        self._coverage = Coverage(comparisons)

    def __contains__(self, source: Source) -> bool:
        return source in self._group_of

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        assert source not in self._group_of
        known = self._comparisons.known(expression)
        group = self._groups.get(known)
        if group is None:
            group = self._groups[known] = EqualFilters(known, expression)
            group.sources.add(source, imperfection)
            self._place(group)
        group.sources.add(source, imperfection)
        self._group_of[source] = group

    def remove(self, source: Source) -> None:
        group = self._group_of.pop(source)
        group.sources.remove(source)
        if not group.sources:
            del self._groups[group.known]
            del self._under[group.entry][group]
            self._left(group)
        elif group.sources.imperfection and self._coverage[group.entry] is group.known:
            self._become(group.entry, group.sources.imperfection)

    def close(self) -> None:
        self._coverage.clear()

    def _place(self, group: EqualFilters) -> None:
        """Find a place for a filter: under one that is told, or among those."""
        entry = self._coverage.covering(group.known)
        if entry is None:
            members: dict[EqualFilters, None] = {}
            for narrower in self._coverage.covered_by(group.known):
                members |= self._take(narrower)
            entry = self._told(group.expression, group.known, members, group.sources.imperfection)
        self._under[entry][group] = None
        group.entry = entry

    def _told(
        self, expression: Expression, known: KnownFilter, members: dict[EqualFilters, None], imperfection: float
    ) -> int:
        """Tell a filter, with those that stand under it; return its number."""
        entry = self._put(expression, imperfection)
        self._coverage.add(entry, known)
        self._under[entry] = members
        for each in members:
            each.entry = entry
        return entry

    def _become(self, entry: int, imperfection: float) -> None:
        """Tell an entry anew if it has become more imperfect."""
        if imperfection > self._imperfections.get(entry, 0.0):
            expression, known = self._entries[entry], self._coverage[entry]
            self._told(expression, known, self._take(entry), imperfection)

    def _take(self, entry: int) -> dict[EqualFilters, None]:
        """Remove an entry; return what stood under it."""
        self._coverage.remove(entry)
        self._drop(entry)
        return self._under.pop(entry)

    def _left(self, gone: EqualFilters) -> None:
        """Decide what becomes of the entry under which a filter stood that is gone."""
        expression, members = self._coverage[gone.entry], self._under[gone.entry]
        is_covered = self._comparisons.is_covered
        if not is_covered(expression, gone.known):
            return  # it was another one's entry
        same = [group.sources.imperfection for group in members if is_covered(expression, group.known)]
        if same:  # nothing that is told is too broad now
            self._become(gone.entry, min(same))
            return
        for group in self._take(gone.entry):
            self._place(group)
