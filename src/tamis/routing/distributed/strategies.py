"""Which strategies are there for ranked subscriptions in a network, and what makes a node of each? One table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.routing.broker import Broker
from tamis.routing.distributed.gossip import BasicGossiper, InformedGossiper
from tamis.routing.distributed.rendezvous import RendezvousNode
from tamis.routing.distributed.subscription_flooding import SubscriptionFlooder

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DISTRIBUTED: dict[str, Callable[..., Any]] = {
    "publication flooding": lambda name, **settings: Broker(name, "flooding", **settings),
    "covering": lambda name, **settings: Broker(name, "covering", **settings),
    **{kind.name_of_strategy: kind for kind in (SubscriptionFlooder, RendezvousNode, BasicGossiper, InformedGossiper)},
}
"""By the names of the thesis. The first two are brokers; each call makes a node of a name."""
EXACT = ("publication flooding", "covering", "subscription flooding", "rendezvous")
"""Those that promise to tell everybody what a centre would."""
