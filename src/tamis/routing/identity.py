"""Identity: of filters that match the same, a neighbour knows one.

The first of them is told, and the last that leaves takes it back. Identical are filters whose formulas are equal, which
finds all of the same sets of values however they are written; and filters that are proven to cover each other, as far
as a proof is found within its budget. A proof is tried only where it may succeed: filters that match the same have the
same *projections*, the values that each attribute has in events that match. So they are found by these, in a
dictionary. Only for a filter whose projections are not known are all others asked, by an index.

Source: Mühl et al. 2002, section 2.4 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.routing.base import Source, Strategy, Summary
from tamis.routing.coverage import Coverage
from tamis.routing.sources import FilterSources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression
    from tamis.relations.forms import Projections
    from tamis.routing.comparisons import Comparisons, KnownFilter


class Identity(Strategy):
    """One filter of each that match the same.

    >>> import tamis
    >>> told = Identity().told(map(tamis.parse, ["x = 1 OR x = 2", "x IN (1, 2)", "x = 1"]))
    >>> [str(each) for each in told]
    ['x = 1 OR x = 2', 'x = 1']
    >>> len(Identity().told(map(tamis.parse, ["x = 1", "x = 1 AND y = 2 OR x = 1 AND (y <> 2 OR y IS NULL) OR x = 1"])))
    1
    """

    name: ClassVar[str] = "identity"

    def summary(self) -> IdentitySummary:
        return IdentitySummary(self.comparisons)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        first: list[tuple[KnownFilter, Expression]] = []
        for each in filters:
            known = self.comparisons.known(each)
            if not any(self.comparisons.are_identical(known, other) for other, _ in first):
                first.append((known, each))
        return [each for _, each in first]


class IdenticalFilters:
    """Filters that match the same: who wants them, and how the neighbour knows them."""

    __slots__ = ("key", "known", "members", "sources")

    def __init__(self, known: KnownFilter, key: int) -> None:
        self.known = known
        self.key = key
        self.members = [known]
        self.sources = FilterSources()


class IdentitySummary(Summary):
    """An entry for each class of identical filters."""

    def __init__(self, comparisons: Comparisons) -> None:
        super().__init__()
        self._comparisons = comparisons
        self._kind_of: dict[Source, IdenticalFilters] = {}
        self._kinds: dict[KnownFilter, IdenticalFilters] = {}
        self._told: dict[int, IdenticalFilters] = {}
        self._alike: dict[Projections, list[IdenticalFilters]] = {}
        self._coverage: Coverage | None = None  # of all that is told, from the first filter on of unknown projections

    def __contains__(self, source: Source) -> bool:
        return source in self._kind_of

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        assert source not in self._kind_of
        known = self._comparisons.known(expression)
        kind = self._kinds.get(known) or self._proven(known)
        if kind is None:
            kind = IdenticalFilters(known, self._put(expression, imperfection))
            self._tell(kind)
        self._kinds[known] = kind
        kind.sources.add(source, imperfection)
        self._kind_of[source] = kind

    def remove(self, source: Source) -> None:
        kind = self._kind_of.pop(source)
        kind.sources.remove(source)
        if not kind.sources:
            self._take(kind)
            for known in kind.members:
                del self._kinds[known]
        elif kind.sources.imperfection > self._imperfections.get(kind.key, 0.0):
            expression = self._entries[kind.key]
            self._take(kind)
            kind.key = self._put(expression, kind.sources.imperfection)
            self._tell(kind)

    def close(self) -> None:
        if self._coverage is not None:
            self._coverage.clear()

    def _proven(self, known: KnownFilter) -> IdenticalFilters | None:
        """Return the kind of a filter of another formula, if one of those that are told is proven to be identical."""
        projections = known.form.projections
        if projections is None and self._coverage is None:
            self._coverage = Coverage(self._comparisons)
            for key, kind in self._told.items():
                self._coverage.add(key, kind.known)
        alike = () if projections is None else self._alike.get(projections, ())
        same = next((kind for kind in alike if self._comparisons.are_identical(known, kind.known)), None)
        if same is None and self._coverage is not None:
            identical = self._coverage.identical(known)
            same = None if identical is None else self._told[identical]
        if same is not None:
            same.members.append(known)
        return same

    def _tell(self, kind: IdenticalFilters) -> None:
        self._told[kind.key] = kind
        if (projections := kind.known.form.projections) is not None:
            self._alike.setdefault(projections, []).append(kind)
        if self._coverage is not None:
            self._coverage.add(kind.key, kind.known)

    def _take(self, kind: IdenticalFilters) -> None:
        self._drop(kind.key)
        del self._told[kind.key]
        if (projections := kind.known.form.projections) is not None:
            self._alike[projections].remove(kind)
            if not self._alike[projections]:
                del self._alike[projections]
        if self._coverage is not None:
            self._coverage.remove(kind.key)
