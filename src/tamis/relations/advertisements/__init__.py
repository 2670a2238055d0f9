"""Which subscriptions does an advertisement concern, and which advertisements a subscription?

A publisher announces with an *advertisement* what it will publish, as a filter. A subscription is forwarded only to
where an advertisement came from that overlaps it. Advertisements and subscriptions are filters alike, so one index
answers in both directions: of the subscriptions by an advertisement, and of the advertisements by a subscription.
`disjoint` says what is asked of a pair, `index` asks it of many.
"""

from tamis.relations.advertisements.disjoint import disjoint_sets, overlaps_by_predicates
from tamis.relations.advertisements.index import OverlapIndex
from tamis.relations.advertisements.predicates import Predicates

__all__ = ["OverlapIndex", "Predicates", "disjoint_sets", "overlaps_by_predicates"]
