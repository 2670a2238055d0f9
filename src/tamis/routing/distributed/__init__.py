"""Where are events matched, if there is no centre, and no reverse paths? The other strategies of a network.

`base` is what all nodes share, `residents` the subscriptions that live at one, `recent` a publisher's recent buffer.
Events are matched by their publishers (`subscription_flooding`), where they meet subscriptions (`rendezvous`, by a
`meeting`), or wherever chance takes them (`gossip`). `strategies` is the table of all of them.
"""

from tamis.routing.distributed.base import RoutingNode
from tamis.routing.distributed.gossip import BasicGossiper, InformedGossiper
from tamis.routing.distributed.meeting import ByValue, Meeting, OneNode
from tamis.routing.distributed.rendezvous import RendezvousNode
from tamis.routing.distributed.residents import RankingSettings, Residents
from tamis.routing.distributed.strategies import DISTRIBUTED, EXACT
from tamis.routing.distributed.subscription_flooding import SubscriptionFlooder

__all__ = [
    "DISTRIBUTED",
    "EXACT",
    "BasicGossiper",
    "ByValue",
    "InformedGossiper",
    "Meeting",
    "OneNode",
    "RankingSettings",
    "RendezvousNode",
    "Residents",
    "RoutingNode",
    "SubscriptionFlooder",
]
