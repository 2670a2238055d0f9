"""How many messages do the peers of D-ZaLaPS send? Counted without sending any.

How many peers an event interests depends on its cell and on the mergers of the moment; how many have to be told of a
merger that moves, on the zones. So nothing needs to travel to be counted: one array says how many mergers reach each
cell. Rankings, zones, cells and mergers are those of `tamis.routing.dzalaps`, and a test counts the messages of
simulated peers beside it.

Source: Pripužić 2010, section 6.5 (docs/bibliography.md).
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.routing.dzalaps import CellGrid, Plots, Reach, merger
from tamis.topk.owner import Owner
from tamis.topk.ranked import Ranked

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.routing.dzalaps import Zones
    from tamis.routing.dzalaps.cells import Area, Box
    from tamis.topk.settings import TopKSettings

    Points = npt.NDArray[np.float64]


class Convention(NamedTuple):
    """What the thesis leaves open: mergers that go round the border, and a peer's own events that interest it."""

    border: str = "clip"
    counts_own: bool = False


THESIS = Convention("wrap", True)
"""With these its Boolean total comes out."""


class RankingChoice(NamedTuple):
    """How ranked subscriptions are kept: the best k of so many events, by an algorithm."""

    algorithm: str
    settings: TopKSettings
    k: int
    window: int
    buffer: int | None = None


class MessageCounts(NamedTuple):
    """Messages of a run, from end to end, of each kind of the thesis."""

    subscribe: int
    rendezvous: int
    interested: int
    interest: int
    owner: int
    radius: float
    """How far subscriptions reached, in the mean over the run."""

    @property
    def total(self) -> int:
        """All of them."""
        return self.subscribe + self.rendezvous + self.interested + self.interest + self.owner


class Mergers:
    """The mergers of all peers, and how many reach each cell."""

    def __init__(self, zones: Zones, grid: CellGrid, centres: Points, convention: Convention) -> None:
        self._grid, self._convention = grid, convention
        names = list(zones)
        plots = Plots(zones, grid)
        shape = (grid.resolution,) * grid.dimensions
        self.owners = np.zeros(shape, np.int64)
        boxes = []
        for place, name in enumerate(names):
            (box,) = plots.of(name) or ((0,) * grid.dimensions,)
            boxes.append(box)
            self.owners[_places(box)] = place
        self._boxes = np.array(boxes, np.int64)
        self.reached = np.zeros(shape, np.int64)
        self._centres = [tuple(map(float, centre)) for centre in centres]
        self.homes = [int(self.owners[grid.cell(centre)]) for centre in self._centres]
        self.residents: dict[int, list[int]] = {}
        for subscription, home in enumerate(self.homes):
            self.residents.setdefault(home, []).append(subscription)
        self._areas: dict[int, Area] = {}
        self.told = 0
        """How many peers were told of a merger that has moved."""

    def refresh(self, peer: int, radii: Points) -> None:
        """Compute a peer's merger anew."""
        reaches = [
            Reach(self._centres[each], (float(radii[each]),) * self._grid.dimensions) for each in self.residents[peer]
        ]
        before, after = self._areas.get(peer, ()), merger(reaches, self._grid, self._convention.border)
        if before == after:
            return
        self._areas[peer] = after
        for area, change in ((before, -1), (after, 1)):
            for box in area:
                self.reached[_places(box)] += change
        # Whose share of the merger is another one now?
        shares = [self._shares(area) for area in (before, after)]
        self.told += int((shares[0] != shares[1]).any(axis=1).sum()) - int((shares[0] != shares[1]).any(axis=1)[peer])

    def _shares(self, area: Area) -> npt.NDArray[np.int64]:
        if not area:
            return np.zeros_like(self._boxes)
        (box,) = area
        shares = self._boxes & np.array(box, np.int64)
        shares[(shares == 0).any(axis=1)] = 0
        return shares

    def interested(self, cell: tuple[int, ...]) -> int:
        """Return how many peers an event in a cell is posted to, the own one counted by convention."""
        home = int(self.owners[cell])
        own = any(
            all(side >> place & 1 for side, place in zip(box, cell, strict=True)) for box in self._areas.get(home, ())
        )
        return int(self.reached[cell]) - (own and not self._convention.counts_own)

    def asked(self, cell: tuple[int, ...]) -> list[int]:
        """Return the subscriptions that live at a peer which an event in a cell comes to."""
        home = int(self.owners[cell])
        peers = [
            peer
            for peer, area in self._areas.items()
            if peer == home or any(all(side >> x & 1 for side, x in zip(box, cell, strict=True)) for box in area)
        ]
        return sorted(each for peer in peers for each in self.residents[peer])

    def own(self) -> npt.NDArray[np.int64]:
        """Return for each cell whether it lies in the merger of the peer that owns it."""
        flags = np.zeros_like(self.reached)
        for peer, area in self._areas.items():
            for box in area:
                flags[_places(box)] |= self.owners[_places(box)] == peer
        return flags


def _places(box: Box) -> tuple[npt.NDArray[np.intp], ...]:
    return np.ix_(*[[place for place in range(side.bit_length()) if side >> place & 1] for side in box])


def count_boolean(
    zones: Zones, grid: CellGrid, centres: Points, radius: float, events: Points, convention: Convention
) -> MessageCounts:
    """Count the messages of Boolean subscriptions, which never move: a cell at a time."""
    mergers = Mergers(zones, grid, centres, convention)
    radii = np.full(len(centres), radius)
    for peer in mergers.residents:
        mergers.refresh(peer, radii)
    posted = mergers.reached - (0 if convention.counts_own else mergers.own())
    cells = np.minimum((events * grid.resolution).astype(np.int64), grid.resolution - 1)
    interested = int(posted[tuple(cells.T)].sum())
    squares = (events**2).sum(axis=1)
    matches = sum(
        int(((squares - 2 * events @ centre + centre @ centre) <= radius * radius).sum()) for centre in centres
    )
    return MessageCounts(len(centres), len(events), interested, 0, matches, radius)


def count_ranked(
    zones: Zones,
    grid: CellGrid,
    centres: Points,
    ranking: RankingChoice,
    events: Points,
    warm_up: int,
    convention: Convention,
) -> MessageCounts:
    """Count the messages of ranked subscriptions, after so many events that are not counted."""
    names = [f"x{axis}" for axis in range(grid.dimensions)]
    owners = [
        Owner(
            Ranked.parse(
                f"TOP {ranking.k} BY euclidean(array({', '.join(names)}), "
                f"array({', '.join(repr(float(x)) for x in centre)})) OVER {ranking.window} EVENTS"
            ),
            ranking.algorithm,
            ranking.settings,
        )
        for centre in centres
    ]
    mergers = Mergers(zones, grid, centres, convention)
    radii = np.full(len(centres), inf)
    due = np.full(len(centres), inf)
    for peer in mergers.residents:
        mergers.refresh(peer, radii)
    recent: deque[tuple[int, tuple[int, ...], Points, list[int]]] = deque()
    interested = owner_count = 0
    reach = 0.0

    def asked(cell: tuple[int, ...], distances: Points) -> list[int]:
        """Return which subscriptions look at an event.

        A peer offers an event to all that live there, whosever threshold it came for. A filter that remembers what is
        beyond its threshold has a tighter one later because of it; for all others that changes nothing.
        """
        if ranking.settings.filter in (None, "probabilistic"):
            return np.flatnonzero(distances <= radii).tolist()
        return mergers.asked(cell)

    def moved(subscriptions: list[int]) -> None:
        """Take note of thresholds, and of who loses something next."""
        peers: dict[int, None] = {}
        for each in subscriptions:
            due[each] = owners[each].due
            if owners[each].threshold != radii[each]:
                radii[each] = owners[each].threshold
                peers[mergers.homes[each]] = None
        for peer in peers:
            mergers.refresh(peer, radii)

    for number, event in enumerate(events, start=1):
        if number == warm_up + 1:
            interested = owner_count = mergers.told = 0
        cell = grid.cell(tuple(map(float, event)))
        distances = np.sqrt(((centres - event) ** 2).sum(axis=1))
        if ranking.buffer is not None:
            while recent and recent[0][0] + ranking.buffer <= number:
                old, old_cell, old_distances, takers = recent.popleft()
                interested += mergers.interested(old_cell)
                wanting = asked(old_cell, old_distances)
                for each in takers:
                    owners[each].expel(old)
                for each in wanting:
                    owners[each].expel(old)
                    owner_count += len(owners[each].retry(old, float(old_distances[each]), float(old)))
                moved(list(dict.fromkeys([*takers, *wanting])))
        interested += mergers.interested(cell)
        takers = asked(cell, distances)
        for each in takers:
            owner_count += len(owners[each].take(number, float(distances[each]), float(number)))
        leaving = np.flatnonzero(due <= number).tolist()
        for each in dict.fromkeys([*takers, *leaving]):
            owner_count += len(owners[each].leave(float(number)))
        moved(list(dict.fromkeys([*takers, *leaving])))
        if ranking.buffer is not None:
            recent.append((number, cell, distances, takers))
        if number > warm_up:
            reach += float(np.minimum(radii, 1.0).mean())
    counted = len(events) - warm_up
    return MessageCounts(len(centres), counted, interested, mergers.told, owner_count, reach / max(1, counted))
