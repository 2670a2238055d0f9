"""Who subscribes to what, where, and what is published?

Book auctions: subscribers and publishers sit anywhere in the network with the same probability. *Seats* are numbers
that become brokers, whatever the number of brokers is, so that one load serves networks of many sizes. A conjunctive
system knows each conjunction of the normal form as a subscription of its own.

Departs: signed copies are rare here (`books`); with those of the source's captions the published loads do not come out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.language import parse
from tamis.language.rewrites.disjunctive import disjuncts
from tamis.language.rewrites.junctions import conjunction
from tamis.selectivity import Sample
from tamis_lab.experiments.books import books

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.language import Schema
    from tamis.language.expressions import Expression
    from tamis.selectivity.estimates import Share
    from tamis.workloads import Auction
    from tamis_lab.experiments.routing.sizes import RoutingSizes

SEATS = 100


@dataclass(frozen=True, slots=True)
class Traffic:
    """Subscriptions and events."""

    filters: list[Expression]
    seats: npt.NDArray[np.int64]
    """Where each subscriber sits."""
    table: pa.Table
    """The events, as columns."""
    events: list[dict[str, Any]]
    """The events, one by one."""
    share: Share
    """How often predicates are true, by other events of the same kind."""
    schema: Schema
    subscription_count: int
    """How many subscriptions the filters are, or were made of."""

    def homes(self, broker_count: int) -> npt.NDArray[np.int64]:
        """Return the brokers of the subscribers."""
        return self.seats * broker_count // SEATS


def auctions(sizes: RoutingSizes, seed: int, workload: Auction | None = None, count: int | None = None) -> Traffic:
    """Return auctions, and bidders at random seats.

    >>> from tamis_lab.experiments.routing.sizes import SIZES
    >>> traffic = auctions(SIZES["tiny"], seed=1)
    >>> len(traffic.filters), traffic.table.num_rows, bool(traffic.homes(5).max() < 5)
    (150, 60, True)
    """
    workload = workload or books()
    count = sizes.subscriptions if count is None else count
    filters = [parse(text) for text in workload.subscriptions(count, seed)["condition"].to_pylist()]
    seats = np.random.default_rng(seed).integers(0, SEATS, count)
    share = Sample(workload.events(sizes.sample, seed + 2).to_pylist()).share
    table = workload.events(sizes.events, seed + 1)
    return Traffic(filters, seats, table, table.to_pylist(), share, workload.schema, count)


def conjunctive(traffic: Traffic) -> Traffic:
    """Return the same with a subscription for each conjunction.

    >>> from tamis_lab.experiments.routing.sizes import SIZES
    >>> traffic = auctions(SIZES["tiny"], seed=1)
    >>> round(len(conjunctive(traffic).filters) / len(traffic.filters), 1)
    3.9
    """
    parts = [disjuncts(each) for each in traffic.filters]
    return Traffic(
        [conjunction(each) for some in parts for each in some],
        np.repeat(traffic.seats, [len(some) for some in parts]),
        traffic.table,
        traffic.events,
        traffic.share,
        traffic.schema,
        traffic.subscription_count,
    )
