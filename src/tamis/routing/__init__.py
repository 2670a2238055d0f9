"""What does a broker do?

A `Broker` takes messages from neighbours and clients, and returns what is to be sent and delivered; it has no socket,
clock or thread.

Messages: `messages` defines them, `acceptance` validates what a peer may send, `encoding` turns them into bytes.
Events: the routing `table` knows which peers want an event; `publishing` handles one event, and `groups` many at once
(`wanted` is their table of matches). The `desk` keeps clients' ranked subscriptions, with a ranker (`rankers`).
Filters: a *strategy* (`base`) decides what a neighbour must know of everybody else's filters, one file each:
`flooding`, `simple`, `identity`, `covering`, `merging`, and `pruned` on top of any of them.
Neighbours: `links` is the state of one link. It is computed step by step (`gradual`, `agenda`), sent in parts
(`greeting`) and renewed after a restart (`renewal`); `silence` finds out that a neighbour is gone, `adaptation` when
filtering for it does not pay, `guard` limits what may pass a link, `settling` says when a subscription is in force
everywhere, and `overlay` and `spanning` choose the links of a graph that carry traffic.
Announcements of subscriptions are in `announcements`, questions about interest in `interests`, and requests for steps
of sequences in `steps`. Strategies that do not use reverse paths are in `distributed` and `dzalaps`.
"""

from tamis.routing.adaptation import Adaptation
from tamis.routing.base import Changes, Strategy, Summary
from tamis.routing.broker import MOST_ENTRIES, Broker
from tamis.routing.covering import Covering
from tamis.routing.desk import Desk, RankedDelivery
from tamis.routing.encoding import decode, encode
from tamis.routing.errors import (
    BudgetOfImperfectionError,
    DeskSettingError,
    KnownPeerError,
    LeaseOfLinksError,
    LengthOfMessagesError,
    MemoryOfEventsError,
    MessageError,
    NamelessError,
    OtherFunctionsError,
    OtherSchemaError,
    SchemaOfAnnouncementsError,
    SchemaOfStrategyError,
    UnknownHandleError,
    UnknownPeerError,
    UnknownStrategyError,
)
from tamis.routing.flooding import Flooding
from tamis.routing.groups import Routed
from tamis.routing.identity import Identity
from tamis.routing.merging import ImperfectMerging, Merging
from tamis.routing.messages import (
    Advertise,
    Answer,
    Ask,
    CellInterest,
    Deliver,
    Deposit,
    Deposited,
    Entry,
    Flooded,
    Gossiped,
    HandOver,
    Hello,
    LostNeighbour,
    Message,
    Notified,
    Output,
    Passed,
    Post,
    Publish,
    Reject,
    Relayed,
    Renew,
    ResumeFiltering,
    Send,
    Spread,
    Subscribe,
    TakeBack,
    TakenOver,
    Unadvertise,
    Unsubscribe,
    Withdraw,
)
from tamis.routing.overlay import Flood, LinkState, Overlay
from tamis.routing.pruned import Pruned
from tamis.routing.settling import Settlement, Settling
from tamis.routing.simple import Simple
from tamis.routing.spanning import spanning_links
from tamis.routing.steps import StepRequests, advertised_to
from tamis.routing.strategies import STRATEGIES, strategy_of
from tamis.routing.table import RoutingTable
from tamis.routing.wanted import ClientMatches, GroupMatches, NeighbourMatches

__all__ = [
    "MOST_ENTRIES",
    "STRATEGIES",
    "Adaptation",
    "Advertise",
    "Answer",
    "Ask",
    "Broker",
    "BudgetOfImperfectionError",
    "CellInterest",
    "Changes",
    "ClientMatches",
    "Covering",
    "Deliver",
    "Deposit",
    "Deposited",
    "Desk",
    "DeskSettingError",
    "Entry",
    "Flood",
    "Flooded",
    "Flooding",
    "Gossiped",
    "GroupMatches",
    "HandOver",
    "Hello",
    "Identity",
    "ImperfectMerging",
    "KnownPeerError",
    "LeaseOfLinksError",
    "LengthOfMessagesError",
    "LinkState",
    "LostNeighbour",
    "MemoryOfEventsError",
    "Merging",
    "Message",
    "MessageError",
    "NamelessError",
    "NeighbourMatches",
    "Notified",
    "OtherFunctionsError",
    "OtherSchemaError",
    "Output",
    "Overlay",
    "Passed",
    "Post",
    "Pruned",
    "Publish",
    "RankedDelivery",
    "Reject",
    "Relayed",
    "Renew",
    "ResumeFiltering",
    "Routed",
    "RoutingTable",
    "SchemaOfAnnouncementsError",
    "SchemaOfStrategyError",
    "Send",
    "Settlement",
    "Settling",
    "Simple",
    "Spread",
    "StepRequests",
    "Strategy",
    "Subscribe",
    "Summary",
    "TakeBack",
    "TakenOver",
    "Unadvertise",
    "UnknownHandleError",
    "UnknownPeerError",
    "UnknownStrategyError",
    "Unsubscribe",
    "Withdraw",
    "advertised_to",
    "decode",
    "encode",
    "spanning_links",
    "strategy_of",
]
