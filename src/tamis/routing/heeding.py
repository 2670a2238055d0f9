"""How does a broker keep what neighbours advertise?

As it came, or pruned: a generalised advertisement is smaller, and overlaps more subscriptions, which then travel
farther. No overlap is lost. What goes first is what keeps the fewest of the subscriptions out that are known here, the
measure `overlap`. Advertisements are pruned one by one as they come, or all together (in bulk), then each as far as it
helps to reach a goal of all.

Source: Bittner 2008, section 7.3, and 6.5 for when to prune (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.pruning.bulk import prune_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.pruning.characteristics import Characteristics
    from tamis.pruning.goals import Goal
    from tamis.routing.table import RoutingTable

_CHANGES_BEFORE_RENEWAL = 8
"""So many filters may come or go before it is computed anew what advertisements keep out."""


class Heeding:
    """Advertisements as they are kept, beside the subscriptions of a table.

    >>> import tamis
    >>> from tamis.pruning import Goal
    >>> from tamis.routing.table import RoutingTable
    >>> table = RoutingTable()
    >>> table.add("ann", 1, tamis.parse("price < 10"))
    >>> print(Heeding(table, Goal(count=1)).heeded(tamis.parse("title = 'Dune' AND price > 20")))
    price > 20
    """

    def __init__(self, table: RoutingTable, goal: Goal | None, schema: Schema | None = None) -> None:
        self.goal = goal
        """How far each is pruned when it comes; None if it is kept as it is."""
        self._table = table
        self._schema = schema
        self._characteristics: Characteristics | None = None
        self._characterised = 0  # of how many filters

    def heeded(self, advertised: Expression) -> Expression:
        """Return an advertisement that comes as it is kept."""
        return advertised if self.goal is None else self._pruned([advertised], self.goal)[0]

    def heeded_together(self, advertised: Sequence[Expression], goal: Goal) -> list[Expression]:
        """Return how advertisements are kept that are pruned all together, by what is wanted now."""
        self._characteristics = None
        return self._pruned(advertised, goal)

    def _pruned(self, advertised: Sequence[Expression], goal: Goal) -> list[Expression]:
        return prune_many(advertised, self.keeps_out, goal, "overlap")

    def keeps_out(self, predicate: Expression) -> float:
        """Return how well a predicate of an advertisement keeps out the subscriptions that are known here."""
        from tamis.pruning.characteristics import Characteristics  # most brokers never ask

        size = len(self._table)
        few = max(_CHANGES_BEFORE_RENEWAL, self._characterised // 2)
        if self._characteristics is None or abs(size - self._characterised) > few:
            filters = [expression for _, _, expression in self._table.entries()]
            self._characteristics = Characteristics(filters, self._table.counters.count, self._schema)
            self._characterised = size
        return self._characteristics(predicate)
