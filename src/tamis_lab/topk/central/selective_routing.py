"""Subscriptions and events go to the service, which matches them and notifies those concerned.

The fewest messages: one for a subscription, one for an event, one for a delivery. A notification may have no
publication as its cause: it follows when a better event leaves a window.

Source: Pripužić 2010, sections 5.1.3 and 5.2.3 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis_lab.topk.central.publication_flooding import PublicationFlooding

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tamis.language.expressions import Expression
    from tamis.topk.ranked import Ranked
    from tamis_lab.topk.central.base import ClientDelivery


class SelectiveRouting(PublicationFlooding):
    """Matching at the service.

    >>> system = SelectiveRouting("ABCDEF")
    >>> system.subscribe("E", "s1", "x > 10")
    >>> system.subscribe("D", "s2", "x > 15")
    >>> [told.client for told in system.publish("A", {"x": 20}, now=0.0, event_id="p")], system.message_count
    (['E', 'D'], 5)
    """

    def subscribe(self, client: Hashable, subscription_id: Hashable, wanted: str | Ranked | Expression) -> None:
        super().subscribe(client, subscription_id, wanted)
        self.messages["subscribe"] += 1

    def unsubscribe(self, client: Hashable, subscription_id: Hashable) -> None:
        super().unsubscribe(client, subscription_id)
        self.messages["unsubscribe"] += 1

    def publish(self, client: Hashable, event: Mapping[str, Any], now: float, event_id: Any) -> list[ClientDelivery]:
        self.messages["publish"] += 1
        deliveries = self._notifications(self._processor.process(event, now, event_id))
        self.messages["notify"] += len(deliveries)
        return deliveries

    def advance(self, now: float) -> list[ClientDelivery]:
        deliveries = super().advance(now)
        self.messages["notify"] += len(deliveries)
        return deliveries
