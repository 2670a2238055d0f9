"""What does a broker do?

A `Broker` takes messages of neighbours and clients and returns what is to be sent and delivered; it has no socket,
clock or thread. `messages` says what is said, `acceptance` what a peer may say, `encoding` how that becomes bytes. Who
wants an event is in a routing `table`; what is done with one is `publishing`, with many at once `groups`, which tell of
matches by handles (`wanted`). Who wants the best k is the `desk`'s business, which has a ranker (`rankers`); `recent`
is what comes a second time for that. What a neighbour must know of everybody else's filters is a *strategy's* business
(`base`), one file each: `flooding`, `simple`, `identity`, `covering`, `merging`, and `pruned` on top of any. `links` is
what a broker knows of one neighbour (worked out step by step: `gradual`, `agenda`; told in parts: `greeting`; said
again after a restart: `renewal`), `silence` how it finds out that one is gone, `adaptation` when it stops filtering for
it, `announcements` what it tells of subscriptions, `interests` whether anybody wants something, `steps` what the home
of a sequence asks for just now, `guard` what may pass a link, `settling` when what was said is in force everywhere,
`overlay` and `spanning` along which links of a graph messages travel.
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
    Filter,
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
    "Filter",
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
