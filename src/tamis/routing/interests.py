"""Does anybody want this? Quenching.

A publisher that knows that nobody listens need not publish, nor even measure what it would publish. It asks its broker
about the events that a filter matches. The broker knows what its clients want, and of its neighbours what they told it:
filters that cover everything that is wanted behind them. So "nobody" is certain, as far as filters have spread; and
"somebody" is true of the broker's own clients, and of those behind perfect strategies, if the overlap could be decided.

The index is made when the first question comes; most brokers are never asked.

Source: that publishers may keep quiet is Elvin's idea, named in Mühl et al. 2002, section 4 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.relations.advertisements import OverlapIndex

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.relations.forms import Context
    from tamis.routing.messages import Key
    from tamis.routing.table import RoutingTable


class Interests:
    """What peers want, for somebody who would give it.

    >>> import tamis
    >>> from tamis.relations.forms import context_of
    >>> from tamis.routing.table import RoutingTable
    >>> table = RoutingTable()
    >>> table.add("ann", "cheap", tamis.parse("price < 20"))
    >>> interests = Interests(table, context_of(None))
    >>> [interests.are_there(tamis.parse(text), "bob") for text in ("price > 10", "price > 20")]
    [True, False]
    >>> interests.are_there(tamis.parse("price > 10"), besides="ann")
    False
    """

    def __init__(self, table: RoutingTable, context: Context) -> None:
        self._table = table
        self._context = context
        self._index: OverlapIndex | None = None

    def add(self, peer: str, key: Key, expression: Expression) -> None:
        """A peer wants something."""
        if self._index is not None:
            self._index.add((peer, key), expression)

    def remove(self, peer: str, key: Key) -> None:
        """It does no longer."""
        if self._index is not None:
            self._index.remove((peer, key))

    def are_there(self, expression: Expression, besides: str | None = None) -> bool:
        """May anybody want an event that a filter matches, other than one peer?"""
        if self._index is None:
            self._index = OverlapIndex(self._context.schema, is_exact=True, context=self._context)
            for peer, key, wanted in self._table.entries():
                self._index.add((peer, key), wanted)
        witness = self._index.witness(expression)
        if witness is None or besides is None or witness[0] != besides:
            return witness is not None
        return bool(self._index.overlapping(expression, only=lambda source: source[0] != besides))
