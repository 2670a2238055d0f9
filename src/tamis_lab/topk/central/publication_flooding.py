"""Events go to all clients, and each client matches them against its own subscriptions.

Like a radio station, or an Ethernet hub: subscribing costs nothing, every event costs a message for every client.
Ranked subscriptions cost what Boolean ones cost.

Source: Pripužić 2010, sections 5.1.1 and 5.2.1 (docs/bibliography.md).
Departs: one processor stands for those of all clients, which do the same with the same events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.topk.processor import TopK
from tamis_lab.topk.central.base import CentralSystem, ClientDelivery

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.topk.ranked import Ranked


class PublicationFlooding(CentralSystem):
    """Matching at the subscribers.

    >>> system = PublicationFlooding("ABCDEF")
    >>> system.subscribe("E", "s1", "x > 10")
    >>> system.subscribe("D", "s2", "x > 15")
    >>> [told.client for told in system.publish("A", {"x": 20}, now=0.0, event_id="p")], system.message_count
    (['E', 'D'], 6)
    """

    def __init__(self, clients: Iterable[Hashable], algorithm: str = "block", **settings: Any) -> None:
        super().__init__(clients)
        self._processor = TopK(algorithm, **settings)
        self._owners: dict[Any, Any] = {}

    def subscribe(self, client: Hashable, subscription_id: Hashable, wanted: str | Ranked | Expression) -> None:
        self._processor.add(subscription_id, wanted, client=client)
        self._owners[subscription_id] = client

    def unsubscribe(self, client: Hashable, subscription_id: Hashable) -> None:
        self._processor.remove(subscription_id)
        del self._owners[subscription_id]

    def publish(self, client: Hashable, event: Mapping[str, Any], now: float, event_id: Any) -> list[ClientDelivery]:
        self.messages["publish"] += len(self.clients)  # one to the service, and one from there to each other client
        return self._notifications(self._processor.process(event, now, event_id))

    def advance(self, now: float) -> list[ClientDelivery]:
        return self._notifications(self._processor.advance(now))

    def _notifications(self, deliveries: Iterable[tuple[Any, Any, float]]) -> list[ClientDelivery]:
        return [ClientDelivery(self._owners[subscription], event, at) for subscription, event, at in deliveries]
