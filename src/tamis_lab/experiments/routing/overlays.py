"""Which brokers does an event get to?

An event crosses a link if somebody behind it wants it, or seems to: some filter from there matches, in the version that
is kept. All brokers keep the same version of a filter here, as brokers do that prune up to the same rank. Then an event
gets to a broker if a filter from that broker or from behind it matches it, and it does so after the first pruning that
lets one of them match. So the load of a network after any number of prunings is known from one pass over the filters.

`tests/lab/test_routing.py` shows that simulated brokers carry exactly these messages.

Source: network load N is Bittner 2008, table 8.1: of the brokers other than the publisher's, the share that filters an
  event (docs/bibliography.md).
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.simulation.topologies import TOPOLOGIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Ranks = npt.NDArray[np.int64]


class LabOverlay:
    """Brokers by number, and the links between them.

    >>> line = LabOverlay("line", 3)
    >>> line.neighbours
    [[1], [0, 2], [1]]
    """

    def __init__(self, topology: str, broker_count: int) -> None:
        self.topology = topology
        self.count = broker_count
        self.neighbours: list[list[int]] = [[] for _ in range(broker_count)]
        for one, two in TOPOLOGIES[topology](broker_count, Random(1)):
            self.neighbours[int(one[1:])].append(int(two[1:]))
            self.neighbours[int(two[1:])].append(int(one[1:]))

    def alike(self) -> list[list[int]]:
        """Return the brokers in groups of those with as many neighbours.

        >>> LabOverlay("star", 4).alike()
        [[0], [1, 2, 3]]
        """
        groups: dict[int, list[int]] = {}
        for broker, neighbours in enumerate(self.neighbours):
            groups.setdefault(len(neighbours), []).append(broker)
        return list(groups.values())

    def towards(self, broker: int) -> list[int]:
        """Return, for each broker, the neighbour through which it is reached; of the broker itself, -1.

        >>> LabOverlay("line", 4).towards(1)
        [0, -1, 2, 2]
        """
        next_hops = [-1] * self.count
        for broker_at, before, first in (order := [(broker, -1, -1)]):  # grows while it is walked
            next_hops[broker_at] = first
            order += [
                (each, broker_at, each if first < 0 else first) for each in self.neighbours[broker_at] if each != before
            ]
        return next_hops

    def reached(self, firsts: Ranks) -> Ranks:
        """Return after how many prunings an event of a publisher at one broker gets to another.

        firsts   brokers x events               after how many prunings a filter of a broker's client matches
        result   publishers x brokers x events  0 at the publisher's own

        >>> LabOverlay("line", 3).reached(np.array([[7], [5], [2]]))[0, :, 0].tolist()
        [0, 2, 2]
        """
        ranks = np.zeros((self.count, *firsts.shape), np.int64)
        for publisher in range(self.count):
            order: list[tuple[int, int]] = [(publisher, -1)]
            for broker, before in order:  # grows while it is walked
                order += [(each, broker) for each in self.neighbours[broker] if each != before]
            behind = firsts.copy()
            for broker, before in reversed(order[1:]):
                ranks[publisher, broker] = behind[broker]
                np.minimum(behind[before], behind[broker], out=behind[before])
        return ranks

    def reached_over(self, crossed: Mapping[tuple[int, int], npt.NDArray[np.int64]]) -> Ranks:
        """Return the same, given for each link, from one broker to the next, after how many prunings events cross it.

        >>> crossed = {(0, 1): np.array([3]), (1, 2): np.array([2]), (2, 1): np.array([9]), (1, 0): np.array([9])}
        >>> LabOverlay("line", 3).reached_over(crossed)[0, :, 0].tolist()
        [0, 3, 3]
        """
        event_count = len(next(iter(crossed.values())))
        ranks = np.zeros((self.count, self.count, event_count), np.int64)
        for publisher in range(self.count):
            for broker, before in (order := [(publisher, -1)]):  # grows while it is walked
                if before >= 0:
                    np.maximum(ranks[publisher, before], crossed[before, broker], out=ranks[publisher, broker])
                order += [(each, broker) for each in self.neighbours[broker] if each != before]
        return ranks

    def loads(self, reached: Ranks, step_counts: Sequence[int]) -> list[float]:
        """Return the share of other brokers that an event gets to, after so many prunings, over all publishers."""
        others = np.sort(reached[~np.eye(self.count, dtype=np.bool_)].ravel())
        return [float(each) for each in np.searchsorted(others, step_counts, side="right") / len(others)]

    def seen(self, reached: Ranks, step_count: int) -> list[npt.NDArray[np.int64]]:
        """Return, for each broker, the events that it filters; publishers take turns."""
        numbers = np.arange(reached.shape[2])
        return [
            np.flatnonzero(reached[numbers % self.count, broker, numbers] <= step_count) for broker in range(self.count)
        ]
