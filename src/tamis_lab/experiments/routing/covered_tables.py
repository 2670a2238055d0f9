"""What is left of tables if covered filters are dropped, and what if the rest is pruned?

A broker keeps of a neighbour's filters those that none of the others from there covers. Which events cross which link
does not change by that. What is kept may be pruned on top of it, and then more cross: a pruned filter matches more, and
goes on covering what it covered. All brokers prune in one order here, as in `prunings`; but a filter is kept on
some links and covered on others, so that links are looked at one by one.

Source: Bittner 2008, section 8.4 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tamis.language.rewrites.monotone import leaf_count
from tamis.pruning.cut_off import NEVER
from tamis.pruning.trees import pruning_form
from tamis.routing import Covering
from tamis_lab.experiments.measuring import undisturbed
from tamis_lab.experiments.routing.filter_times import broker_s, prepared
from tamis_lab.experiments.routing.prunings import Pruning

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis_lab.experiments.base import Scale
    from tamis_lab.experiments.routing.overlays import LabOverlay, Ranks
    from tamis_lab.experiments.routing.traffic import Traffic

Link = tuple[int, int]
"""A broker, and the neighbour that filters came from; events take the same way."""


class Covered:
    """The brokers of a network under covering, and with the filters that are left pruned by a measure.

    >>> from tamis_lab.experiments.routing.overlays import LabOverlay
    >>> from tamis_lab.experiments.routing.sizes import SIZES
    >>> from tamis_lab.experiments.routing.traffic import auctions, conjunctive
    >>> covered = Covered(conjunctive(auctions(SIZES["tiny"], seed=1)), LabOverlay("line", 3), "occurrence")
    >>> 0 < covered.share < 1, covered.reduction(0), covered.reduction(1) > 0.5
    (True, 0.0, True)
    """

    def __init__(self, traffic: Traffic, overlay: LabOverlay, measure: str) -> None:
        self.traffic = traffic
        self.overlay = overlay
        self._homes = traffic.homes(overlay.count)
        self._strategy = Covering(traffic.schema)
        self._known: dict[Link, list[Expression]] = {}
        self.kept: dict[Link, list[Expression]] = {
            (broker, neighbour): self._broadest(broker, neighbour)
            for broker, neighbours in enumerate(overlay.neighbours)
            for neighbour in neighbours
        }
        """The filters that a broker keeps of a neighbour."""
        links: dict[Expression, set[Link]] = {}
        for link, filters in self.kept.items():
            for each in filters:
                links.setdefault(each, set()).add(link)
        self._pruning = Pruning(replace(traffic, filters=list(links)), measure)
        self._groups = [frozenset(each) for each in links.values()]
        self._reached: Ranks | None = None

    def _broadest(self, broker: int, neighbour: int) -> list[Expression]:
        """Return what a broker keeps of a neighbour: of its clients' filters, and of what it keeps of others."""
        known = self._known.get((broker, neighbour))
        if known is None:
            given = [self.traffic.filters[number] for number in np.flatnonzero(self._homes == neighbour)]
            for further in self.overlay.neighbours[neighbour]:
                if further != broker:
                    given += self._broadest(neighbour, further)
            summary = self._strategy.summary()
            for number, each in enumerate(given):
                summary.add(number, each)
            known = self._known[broker, neighbour] = [entry.condition for entry in summary.entries]
        return known

    def behind(self, link: Link) -> int:
        """Return how many filters there are behind a link."""
        return int((np.array(self.overlay.towards(link[0]))[self._homes] == link[1]).sum())

    @property
    def share(self) -> float:
        """The share of others' filters that are covered, all brokers together (cov)."""
        return 1 - sum(map(len, self.kept.values())) / sum(map(self.behind, self.kept))

    @property
    def own_share(self) -> float:
        """The share of what all brokers have that are filters of their own clients."""
        own = len(self.traffic.filters)
        return own / (own + sum(map(len, self.kept.values())))

    # -- Pruned

    def versions(self, share: float) -> dict[Link, list[Expression]]:
        """Return what is kept, after a share of all prunings."""
        pruned = dict(zip(self._pruning.traffic.filters, self._pruning.versions(share), strict=True))
        return {link: [pruned[each] for each in filters] for link, filters in self.kept.items()}

    def reduction(self, share: float) -> float:
        """Return which share of the predicates that covering leaves is gone."""
        before, after = (
            sum(leaf_count(pruning_form(each)) for filters in table.values() for each in filters)
            for table in (self.kept, self.versions(share))
        )
        return 1 - after / before

    def reached(self) -> Ranks:
        """Return after how many prunings events get where (see `LabOverlay.reached`)."""
        if self._reached is None:
            by_group = self._pruning.first_sent(self._groups)
            crossed = {link: np.full(len(self.traffic.events), NEVER) for link in self.kept}
            for group, firsts in by_group.items():
                for link in group:
                    np.minimum(crossed[link], firsts, out=crossed[link])
            self._reached = self.overlay.reached_over(crossed)
        return self._reached

    def load(self, share: float) -> float:
        """Return the load of the network after a share of all prunings (N)."""
        return self.overlay.loads(self.reached(), [self._pruning.steps(share)])[0]

    def network_s(self, name: str, share: float, scale: Scale) -> float:
        """Return the time of all brokers for an event, after a share of all prunings."""
        seen = self.overlay.seen(self.reached(), self._pruning.steps(share))
        originals = prepared(name, self.traffic, self.traffic.filters)
        versions = {link: prepared(name, self.traffic, each) for link, each in self.versions(share).items()}
        spent = 0.0
        with undisturbed():
            for broker, rows in enumerate(seen):
                ready = [originals[number] for number in np.flatnonzero(self._homes == broker)]
                for neighbour in self.overlay.neighbours[broker]:
                    ready += versions[broker, neighbour]
                spent += broker_s(name, self.traffic, ready, rows, scale)
        return spent / len(self.traffic.events)
