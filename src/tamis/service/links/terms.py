"""What may pass over a link, and how is it told? The terms of a link."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import msgspec

from tamis.language import parse
from tamis.pruning.goals import Goal
from tamis.routing import Adaptation, Pruned
from tamis.routing.strategies import strategy_of

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.routing.base import Strategy

LINK_SUBSCRIBER = "link\t"
"""What the name of a neighbour begins with among subscribers and peers of the broker.

No client can have such a name, because it is not printable.
"""


class PruningTerms(msgspec.Struct, frozen=True):
    """How far filters are generalised before the neighbour is told of them; what is None does not matter."""

    count: int | None = None
    share: float | None = None
    threshold: float | None = None
    reduction: float | None = None
    memory_bytes: float | None = None
    measure: str = "accuracy"

    def goal(self) -> Goal:
        """Return how far; a `GoalError` says what is wrong with that."""
        return Goal(self.count, self.share, self.threshold, self.reduction, self.memory_bytes)


class AdaptationTerms(msgspec.Struct, frozen=True):
    """When events are no longer filtered on the way to the neighbour, and when it is to filter again."""

    stop_above: float = 0.9
    ask_above: float = 0.3
    event_count: int = 100
    wait_s: float = 60.0

    def adaptation(self) -> Adaptation:
        """Return the same as routing takes it; an `AdaptationError` says what is wrong with that."""
        return Adaptation(self.stop_above, self.ask_above, self.event_count, self.wait_s)


class LinkTerms(msgspec.Struct, frozen=True):
    """What two neighbours have agreed on for their link, as far as this end keeps to it."""

    may_send: str = "TRUE"
    """A filter of the events that may go to the neighbour."""
    may_receive: str = "TRUE"
    """A filter of the events that may come from there."""
    rate: float = 0.0
    """Events a second that are taken from there; 0 is without a limit."""
    patience_s: float = 3600.0
    """So long after the last connection the neighbour is gone for good."""
    strategy: str = ""
    """How filters are told to it; empty: as the broker tells others."""
    pruning: PruningTerms | None = None
    adaptation: AdaptationTerms | None = None

    def routed_alike(self, other: LinkTerms) -> bool:
        """Do others say the same of what is told and what passes? Rates and patience do not concern routing."""
        return msgspec.structs.replace(other, rate=self.rate, patience_s=self.patience_s) == self


class RoutingTerms(TypedDict):
    """The terms of a link as `Broker.connect` and `Broker.amend` take them."""

    strategy: Strategy
    adaptation: Adaptation | None
    may_leave: Expression | None
    may_enter: Expression | None


def routing_terms(terms: LinkTerms, strategy: Strategy, schema: Schema | None) -> RoutingTerms:
    """Return the terms of a link for the broker, whose own strategy and schema these are.

    Pruning goes by how often predicates are true of the events that the broker has seen.

    >>> from tamis.routing import Covering
    >>> terms = LinkTerms(may_receive="price < 20", strategy="simple", pruning=PruningTerms(count=1))
    >>> routed = routing_terms(terms, Covering(), None)
    >>> routed["strategy"].name, routed["may_leave"], str(routed["may_enter"])
    ('pruned', None, 'price < 20')
    """
    summarising = strategy_of(terms.strategy, schema) if terms.strategy else strategy
    if terms.pruning is not None:
        summarising = Pruned(summarising, terms.pruning.goal(), measure=terms.pruning.measure)
    adaptation = None if terms.adaptation is None else terms.adaptation.adaptation()
    may_send, may_receive = (
        None if text == "TRUE" else parse(text, schema) for text in (terms.may_send, terms.may_receive)
    )
    return RoutingTerms(strategy=summarising, adaptation=adaptation, may_leave=may_send, may_enter=may_receive)
