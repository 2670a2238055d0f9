"""Events go to all clients, and each client matches them against its own subscriptions.

Like a radio station, or an Ethernet hub: subscribing costs nothing, every event costs a message for every client.
Ranked subscriptions cost what Boolean ones cost.

Source: Pripužić 2010, sections 5.1.1 and 5.2.1 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tamis.errors import TamisError
from tamis.topk.processor import TopK
from tamis_lab.topk.central.base import CentralSystem, ClientDelivery

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.topk.delivery import Delivery
    from tamis.topk.ranked import Ranked


class PublicationFlooding(CentralSystem):
    """Matching at the subscribers: each has a processor of its own, to which all events go.

    >>> system = PublicationFlooding("ABCDEF")
    >>> system.subscribe("E", "s1", "x > 10")
    >>> system.subscribe("D", "s2", "x > 15")
    >>> [told.client for told in system.publish("A", {"x": 20}, now=0.0, event_id="p")], system.message_count
    (['E', 'D'], 6)
    """

    def __init__(self, clients: Iterable[Hashable], algorithm: str = "block", **settings: Any) -> None:
        super().__init__(clients)
        self._processors = {client: TopK(algorithm, **settings) for client in self.clients}
        self._order: dict[Any, int] = {}
        """When each subscription came, so that deliveries of one moment are in that order."""
        self._count = 0

    def subscribe(self, client: Hashable, subscription_id: Hashable, wanted: str | Ranked | Expression) -> None:
        if subscription_id in self._order:
            raise TamisError(f"there is a subscription {subscription_id!r} already")
        self._processors[client].add(subscription_id, wanted, client=client)
        self._order[subscription_id] = self._count
        self._count += 1

    def unsubscribe(self, client: Hashable, subscription_id: Hashable) -> None:
        self._processors[client].remove(subscription_id)
        del self._order[subscription_id]

    def publish(
        self, client: Hashable, event: Mapping[str, Any], now: float, event_id: Any, *, expires: float = math.inf
    ) -> list[ClientDelivery]:
        self.messages["publish"] += len(self.clients)  # one to the service, and one from there to each other client
        return self._of_all(lambda processor: processor.process(event, now, event_id, expires))

    def unpublish(self, client: Hashable, event_id: Any, now: float) -> list[ClientDelivery]:
        self.messages["unpublish"] += len(self.clients)
        return self._of_all(lambda processor: processor.withdraw(event_id, now))

    def advance(self, now: float) -> list[ClientDelivery]:
        return self._of_all(lambda processor: processor.advance(now))

    def _of_all(self, ask: Callable[[TopK], list[Delivery]]) -> list[ClientDelivery]:
        """Ask the processors of all clients; return what they tell, in order of time."""
        pairs = [(each, client) for client, processor in self._processors.items() for each in ask(processor)]
        pairs.sort(key=lambda pair: (pair[0].at, self._order[pair[0].subscription]))
        return [ClientDelivery(client, each.event, each.at) for each, client in pairs]
