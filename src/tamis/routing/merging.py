"""Merging: a neighbour knows one filter for several.

Beyond covering, filters that become one are told as one. A newcomer looks for partners among the filters that the
neighbour knows: those with which it merges perfectly, found by an index. With a budget of imperfection it also tries
the latest filters over the same attributes, and takes the merger that adds the least, as long as the share of what
nobody asked for stays within the budget; what its parts already match in vain counts against it, also if they were
merged elsewhere. `mergers` has the
rest: what joins a merger, and what becomes of it when one of its filters leaves.

Mergers are made for each neighbour by itself, of the filters from elsewhere. A merger that went to all neighbours alike
would ask each for what only the same neighbour wants.

Source: Mühl et al. 2002, section 2.6 (docs/bibliography.md).
Departs: errors add up along a path there, and no rule is given. Here entries carry their imperfection, so the budget
  holds from end to end.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from tamis.relations.merging import merger_around, mergers
from tamis.routing.base import Strategy
from tamis.routing.errors import BudgetOfImperfectionError
from tamis.routing.mergers import MergingSummary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.relations.base import Merger
    from tamis.routing.base import Summary
    from tamis.routing.mergers import Nearly

_REMEMBERED = 1 << 13
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
        self._nearly: Nearly = lru_cache(_REMEMBERED)(self._nearly_merged)

    def summary(self) -> Summary:
        return MergingSummary(self.comparisons, self.budget, self._nearly, self._share)

    def _nearly_merged(self, one: Expression, two: Expression) -> Merger | None:
        return merger_around(one, two, self.schema, budget=self.budget, share=self._share)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        return [each.expression for each in mergers(filters, self.schema, budget=self.budget, share=self._share)]
