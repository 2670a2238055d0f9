"""Where are events matched, if all clients are connected to one service?

Three answers, and what each costs in messages: at the subscribers (every event goes to everybody), at the publishers
(every subscription goes to everybody), or at the service. All three deliver the same; they differ in who does the work,
and in how many messages that takes. Ranked subscriptions make the second one expensive, because their thresholds move.

Source: Pripužić 2010, chapter 5 (docs/bibliography.md).
"""

from tamis.topk.policies import BoxCells, EveryChange, ExactCells, Hysteresis
from tamis_lab.topk.central.base import CentralSystem, ClientDelivery
from tamis_lab.topk.central.publication_flooding import PublicationFlooding
from tamis_lab.topk.central.selective_routing import SelectiveRouting
from tamis_lab.topk.central.subscription_flooding import SubscriptionFlooding

STRATEGIES: dict[str, type[CentralSystem]] = {
    "publication flooding": PublicationFlooding,
    "subscription flooding": SubscriptionFlooding,
    "selective routing": SelectiveRouting,
}

__all__ = [
    "STRATEGIES",
    "BoxCells",
    "CentralSystem",
    "ClientDelivery",
    "EveryChange",
    "ExactCells",
    "Hysteresis",
    "PublicationFlooding",
    "SelectiveRouting",
    "SubscriptionFlooding",
]
