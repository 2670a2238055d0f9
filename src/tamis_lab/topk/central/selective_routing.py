"""Subscriptions and events go to the service, which matches them and notifies those concerned.

The fewest messages: one for a subscription, one for an event, one for a delivery. A notification may have no
publication as its cause: it follows when a better event leaves a window.

Source: Pripužić 2010, sections 5.1.3 and 5.2.3 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tamis.topk.processor import TopK
from tamis_lab.topk.central.base import CentralSystem, ClientDelivery

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from tamis.language.expressions import Expression
    from tamis.topk.delivery import Delivery
    from tamis.topk.ranked import Ranked


class SelectiveRouting(CentralSystem):
    """Matching at the service: one processor hosts the subscriptions of all clients.

    >>> system = SelectiveRouting("ABCDEF")
    >>> system.subscribe("E", "s1", "x > 10")
    >>> system.subscribe("D", "s2", "x > 15")
    >>> [told.client for told in system.publish("A", {"x": 20}, now=0.0, event_id="p")], system.message_count
    (['E', 'D'], 5)
    """

    def __init__(self, clients: Iterable[Hashable], algorithm: str = "block", **settings: Any) -> None:
        super().__init__(clients)
        self._processor = TopK(algorithm, **settings)
        self._owners: dict[Any, Any] = {}

    def subscribe(self, client: Hashable, subscription_id: Hashable, wanted: str | Ranked | Expression) -> None:
        self._processor.add(subscription_id, wanted, client=client)
        self._owners[subscription_id] = client
        self.messages["subscribe"] += 1

    def unsubscribe(self, client: Hashable, subscription_id: Hashable) -> None:
        self._processor.remove(subscription_id)
        del self._owners[subscription_id]
        self.messages["unsubscribe"] += 1

    def publish(
        self, client: Hashable, event: Mapping[str, Any], now: float, event_id: Any, *, expires: float = math.inf
    ) -> list[ClientDelivery]:
        self.messages["publish"] += 1
        return self._notified(self._processor.process(event, now, event_id, expires))

    def unpublish(self, client: Hashable, event_id: Any, now: float) -> list[ClientDelivery]:
        self.messages["unpublish"] += 1
        return self._notified(self._processor.withdraw(event_id, now))

    def advance(self, now: float) -> list[ClientDelivery]:
        return self._notified(self._processor.advance(now))

    def _notified(self, deliveries: list[Delivery]) -> list[ClientDelivery]:
        self.messages["notify"] += len(deliveries)
        return [ClientDelivery(self._owners[subscription], event, at) for subscription, event, at in deliveries]
