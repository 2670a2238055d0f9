"""Merging: a neighbour knows one filter for several.

Beyond covering, filters that become one are told as one. A newcomer looks for partners among the filters that the
neighbour knows: those with which it merges perfectly, found by an index. With a budget of imperfection it also tries
the latest filters over the same attributes, and takes the merger that adds the least, as long as the share of what
nobody asked for stays within the budget; what its parts already match in vain counts against it. When one of them
leaves, the merger is taken back, and what remains is merged again; if it makes the same, nothing is told.

Mergers are made for each neighbour by itself, of the filters from elsewhere. A merger that went to all neighbours alike
would ask each for what only the same neighbour wants.

Source: Mühl et al. 2002, section 2.6 (docs/bibliography.md).
Departs: the budget holds at each broker; a merger that is merged again further on may exceed it. No rule is given
there.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from tamis.language.expressions import Attribute, postorder
from tamis.relations.merging import merger_around, mergers
from tamis.relations.merging_index import MergingIndex
from tamis.routing.base import Strategy
from tamis.routing.covering import CoveringSummary, Group
from tamis.routing.errors import BudgetOfImperfectionError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.relations.base import Merger
    from tamis.routing.base import Summary
    from tamis.routing.comparisons import Comparisons

    _Nearly = Callable[[Expression, Expression], Merger | None]

_REMEMBERED = 1 << 16
_TRIED = 8
"""With so many of the latest filters an imperfect merger is tried."""
BUDGET = 0.2


class Merging(Strategy):
    """One filter for several that become one without matching more.

    >>> import tamis
    >>> print(*Merging().told(map(tamis.parse, ["x = 1 AND y = 2", "x = 1 AND y = 3", "x = 1 AND y = 2 AND z = 0"])))
    x = 1 AND y IN (2, 3)
    """

    name: ClassVar[str] = "merging"

    def summary(self) -> Summary:
        return MergingSummary(self.comparisons)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        return [each.expression for each in mergers(filters, self.schema)]


class ImperfectMerging(Strategy):
    """One filter for several, though it may match more: at most the budget's share of what it matches.

    `share` says how often an expression is true; without it, that is guessed from the filters.
    """

    name: ClassVar[str] = "imperfect merging"
    is_perfect = False

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        budget: float = BUDGET,
        share: Callable[[Expression], float] | None = None,
    ) -> None:
        super().__init__(schema)
        if not 0 < budget < 1:
            raise BudgetOfImperfectionError(budget)
        self.budget = budget
        self._share = share
        self._nearly: _Nearly = lru_cache(_REMEMBERED)(self._nearly_merged)

    def summary(self) -> Summary:
        return MergingSummary(self.comparisons, self.budget, self._nearly)

    def _nearly_merged(self, one: Expression, two: Expression) -> Merger | None:
        return merger_around(one, two, self.schema, budget=self.budget, share=self._share)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        return [each.expression for each in mergers(filters, self.schema, budget=self.budget, share=self._share)]


class MergingSummary(CoveringSummary):
    """Entries that may be mergers of those that stand under them."""

    def __init__(
        self,
        comparisons: Comparisons,
        budget: float = 0.0,
        nearly: _Nearly | None = None,
    ) -> None:
        super().__init__(comparisons)
        self._budget = budget
        self._nearly = nearly
        self._partners = MergingIndex(comparisons.schema, context=comparisons.context)
        self._alike: dict[frozenset[Attribute], dict[int, None]] = {}
        self._imperfections: dict[int, float] = {}

    def _place(self, members: dict[Hashable, Group], expression: Expression) -> None:
        if self._coverage.covering(expression) is None:
            imperfection = 0.0
            while (found := self._partner(expression, imperfection)) is not None:
                entry, expression, imperfection = found
                members = members | self._take(entry)
            super()._place(members, expression)
            if imperfection:
                self._imperfections[next(iter(members.values())).entry] = imperfection
            return
        super()._place(members, expression)

    def _put(self, expression: Expression) -> int:
        key = super()._put(expression)
        self._partners.add(key, expression)
        if self._budget:
            self._alike.setdefault(_attributes(expression), {})[key] = None
        return key

    def _drop(self, key: int) -> None:
        self._partners.remove(key)
        if self._budget:
            alike = self._alike[_attributes(self._entries[key])]
            del alike[key]
            self._imperfections.pop(key, None)
            if not alike:
                del self._alike[_attributes(self._entries[key])]
        super()._drop(key)

    def _partner(self, expression: Expression, imperfection: float) -> tuple[int, Expression, float] | None:
        """Return an entry, what becomes of it and the expression, and how imperfect that is; None if there is none."""
        for entry in self._partners.candidates(expression):
            found = self._comparisons.merged((self._entries[entry], expression))
            if len(found) == 1 and found[0].perfect:
                return entry, found[0].expression, max(imperfection, self._imperfections.get(entry, 0.0))
        return self._nearest(expression, imperfection) if self._budget else None

    def _nearest(self, expression: Expression, imperfection: float) -> tuple[int, Expression, float] | None:
        """Return the entry that merges with the expression at the least imperfection within the budget."""
        best: tuple[int, Expression, float] | None = None
        for entry in islice(reversed(self._alike.get(_attributes(expression), {})), _TRIED):
            assert self._nearly is not None
            found = self._nearly(self._entries[entry], expression)
            if found is None:
                continue
            # What the two already match in vain is a part of what their merger matches.
            already = max(imperfection, self._imperfections.get(entry, 0.0))
            together = found.imperfection + (1 - found.imperfection) * already
            if together <= self._budget and (best is None or together < best[2]):
                best = entry, found.expression, together
        return best

    def _left(self, gone: Group) -> None:
        told, groups = self._entries[gone.entry], list(self._under[gone.entry].values())
        if any(self._comparisons.is_covered(gone.expression, group.expression) for group in reversed(groups)):
            return  # together they are what they were; what took its place came last
        remaining = self._comparisons.merged(tuple(group.expression for group in groups))
        if any(self._comparisons.is_covered(told, merger.expression) for merger in remaining):
            return
        self._take(gone.entry)
        for merger in remaining:
            self._place({groups[n].formula: groups[n] for n in merger.members}, merger.expression)


def _attributes(expression: Expression) -> frozenset[Attribute]:
    return frozenset(node for node in postorder(expression) if isinstance(node, Attribute))
