"""Who ranks for a point of space, if there is no centre? A peer of D-ZaLaPS, client and server at once.

Subscriptions and events are points. Each is sent, peer by peer, to the owner of its cell: there a subscription lives
with its window, and there an event is matched with what lives beside it. What lives elsewhere and reaches into the
event's cell has its peer *interested* in it: a peer tells those whose cells its merger reaches, and is posted their
events. What enters the best k of a subscription is posted to the peer of its client.

A merger must reach all that subscriptions want before anything else is answered, so what expands is told first; what
contracts is told after it has.

Source: Pripužić 2010, sections 6.4 and 6.5 (docs/bibliography.md).
Departs: what a peer is told is the whole of its cells that another one wants, with a version, so that nothing depends
on the order; events leave recent buffers by age or by the number of publications, as theorem 3.9 needs it, and not by
how many a peer has seen; `second="local"` lets peers that were posted an event at first make its second attempt
themselves; a client is told of an event once, wherever its subscriptions live. What is withdrawn is posted to every
peer, as all know who there is. Joining and leaving: ours (`hand_over`).
"""

from __future__ import annotations

from collections import Counter
from math import inf
from typing import TYPE_CHECKING, ClassVar

from tamis.routing.distributed.recent import ServedEvents
from tamis.routing.distributed.rendezvous import DepositingNode, notified, satisfied_by
from tamis.routing.distributed.residents import Residents
from tamis.routing.dzalaps.cells import Plots, area_of, has_cell, intersection
from tamis.routing.dzalaps.hand_over import Moves, part_of
from tamis.routing.dzalaps.merger import BORDERS, merger
from tamis.routing.dzalaps.presets import Presets
from tamis.routing.errors import ZoneError
from tamis.routing.messages import (
    CellInterest,
    Deposit,
    HandOver,
    Message,
    Notified,
    Output,
    Passed,
    Post,
    Relayed,
    Send,
    TakeBack,
    TakenOver,
    Withdraw,
)
from tamis.topk.ranked import Ranked
from tamis.topk.windows import CountWindow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.routing.distributed.residents import Satisfied, Who
    from tamis.routing.dzalaps.cells import Area, Cell
    from tamis.routing.dzalaps.space import Space
    from tamis.routing.dzalaps.zones import Zone, Zones

SECOND = ("thesis", "local")
INITIAL = ("whole", "preset")


class Peer(DepositingNode):
    """A peer, which holds a part of space.

    >>> import tamis
    >>> from tamis.routing import Entry, Publish, Subscribe
    >>> from tamis.routing.dzalaps.space import Space
    >>> from tamis.routing.dzalaps.zones import Zones
    >>> peer = Peer("P0", space=Space(("x", "y"), 4), zones=Zones.of_one("P0", 2))
    >>> peer.attach("ann")
    >>> near = tamis.parse("euclidean(array(x, y), array(0.3, 0.3)) <= 0.1")
    >>> peer.receive(Subscribe((Entry("near", near),)), "ann", 0.0)
    []
    >>> [output.client for output in peer.receive(Publish("e", {"x": 0.3, "y": 0.35}), "ann", 1.0)]
    ['ann']

    space    what events are about
    zones    who holds which part of it; `rezone` says when that changes
    border   whether mergers end at the border of space (`clip`) or go round it (`wrap`)
    boxes    of so many boxes of cells a merger consists, at most
    spread_s  after so many seconds at most a message has arrived; who gives a zone away forwards events for so long
    second   whether second attempts are posted to all who are interested (`thesis`), or made on the spot (`local`)
    initial  whether a ranked subscription wants all of space at first (`whole`), or only what is as near as the k-th
             best of what the peer's recent buffer holds (`preset`): fewer messages, and what is farther is lost
             until as many have come, or a window has passed
    """

    name_of_strategy: ClassVar[str] = "D-ZaLaPS"
    hears: ClassVar[frozenset[type[Message]]] = frozenset(
        {Relayed, Passed, Notified, CellInterest, HandOver, TakenOver}
    )

    def __init__(
        self,
        name: str,
        *args: Any,
        space: Space,
        zones: Zones,
        border: str = "clip",
        boxes: int = 1,
        second: str = "thesis",
        counts_own: bool = False,
        spread_s: float = 0.0,
        initial: str = "whole",
        **settings: Any,
    ) -> None:
        super().__init__(name, *args, **settings)
        if border not in BORDERS:
            raise ZoneError(f"the border {border!r:.40}", " or ".join(BORDERS))
        if second not in SECOND:
            raise ZoneError(f"second attempts by {second!r:.40}", " or ".join(SECOND))
        if initial not in INITIAL:
            raise ZoneError(f"initial thresholds by {initial!r:.40}", " or ".join(INITIAL))
        if initial == "preset" and self.settings.buffer is None:
            raise ZoneError("preset thresholds, and no recent buffer", "RankingSettings(buffer=...), which they go by")
        if isinstance(boxes, bool) or not isinstance(boxes, int) or boxes < 1:
            raise ZoneError(f"a merger of {boxes!r:.40} boxes", "a whole number, at least 1")
        self.residents = Residents(self.settings, self._schema, keeps_recent=second == "local")
        self.space = space
        self.plots = Plots(zones, space.grid)
        self.tally: Counter[str] = Counter()
        """Messages as the thesis counts them, one from end to end: subscribe, unsubscribe, rendezvous, interested,
        interest, owner. An owner counts where it is the same peer, too, and with `counts_own` an interested one."""
        if isinstance(spread_s, bool) or not isinstance(spread_s, int | float) or not 0 <= spread_s < inf:
            raise ZoneError(f"a message arrives after {spread_s!r:.40}", "a number of seconds, 0 or more, at most")
        self._spread_s = float(spread_s)
        self._counts_own = counts_own
        self._is_local = second == "local"
        self._presets: Presets | None = Presets(self.residents, self.settings) if initial == "preset" else None
        self._border, self._boxes = border, boxes
        self._merger: Area = ()
        self._version = 0
        self._told: dict[str, Area | None] = {}
        """What others know of the merger; None: they have to be told in any case."""
        self._interested: dict[str, tuple[int, Area]] = {}
        self._recent = ServedEvents(self.settings)
        self._moves = Moves()

    # -- What it knows

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The peers whose zones share a side with its own."""
        return self.plots.zones.neighbours(self.name) if self.name in self.plots.zones else ()

    @property
    def merger(self) -> Area:
        """The cells that concern it."""
        return self._merger

    def interested_in(self, cell: Cell) -> list[str]:
        """Return the other peers that want the events of a cell of its own."""
        return [peer for peer, (_, area) in self._interested.items() if has_cell(area, cell)]

    def _takers(self, cell: Cell) -> list[str]:
        """Return to whom an event of a cell is posted: to who is interested, and to heirs, before they say what in."""
        return list(dict.fromkeys((*self.interested_in(cell), *self._moves.heirs)))

    def interests(self) -> dict[str, Area]:
        """Return which cells of its own each other peer wants the events of."""
        return {peer: area for peer, (_, area) in self._interested.items() if area}

    @property
    def is_moving(self) -> bool:
        """Does it wait for a zone, or for somebody to take one over?"""
        return self._moves.is_open

    # -- Ways

    def _toward(self, relayed: Relayed, now: float) -> list[Output]:
        """Send something one step nearer to the owner of its cell, or do it, if this is the owner."""
        cell = relayed.target
        if isinstance(cell, str) or len(cell) != self.space.dimensions or max(cell) >= self.space.grid.resolution:
            raise ZoneError(f"a message for the cell {cell!r:.60}", "the place of a cell of this space")
        owner = self.plots.owner(cell)
        if owner == self.name:
            if self._moves.is_waiting:
                self._moves.wait(relayed, self.name)
                return []
            return self._arrived(relayed.message, cell, now)
        if self.name not in self.plots.zones:
            return [Post(owner, relayed)]  # it has left, and has no neighbours any more
        hop = self.plots.zones.next_hop(self.name, self.space.grid.centre(cell))
        assert hop is not None
        return [Send(hop, relayed)]

    def _arrived(self, message: Deposit | TakeBack | Passed, cell: Cell, now: float) -> list[Output]:
        match message:
            case Deposit() | TakeBack():
                self.residents.deposit(message)
                if self._presets is not None and isinstance(message, Deposit):
                    self._presets.begin(message, self._recent, self._schema)
            case Passed():
                outputs = self._processed(message, now)
                interested = self._takers(cell)
                self.tally["interested"] += len(interested)
                if self._counts_own and has_cell(self._merger, cell):
                    self.tally["interested"] += 1
                self._recent.push(message, set(interested))
                return outputs + [Post(peer, message) for peer in interested]
        return self._refreshed(now)

    # -- Own clients

    def _objection(self, wanted: Expression | Ranked) -> str | None:
        if (reason := super()._objection(wanted)) is not None:
            return reason
        if self.space.reach(wanted) is None:
            return f"this has no place in space; expected the distance to a point by {self.space.described}"
        if isinstance(wanted, Ranked) and isinstance(wanted.window, CountWindow) and not self.settings.is_numbered:
            return f"{wanted.window} count events without a place, too, which come to no peer; choose a time window"
        return None

    def _enter(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        self.tally["subscribe"] += 1
        return self._toward(Relayed(self._cell_of(wanted), self._deposit(who, wanted)), now)

    def _remove(self, who: Who, wanted: Expression | Ranked, now: float) -> list[Output]:
        self.tally["unsubscribe"] += 1
        return self._toward(Relayed(self._cell_of(wanted), self._take_back(who)), now)

    def _spread(self, message: Withdraw, source: str) -> list[Output]:
        return (
            [Post(peer, message) for peer in self.plots.zones if peer != self.name] if source in self._clients else []
        )

    def _cell_of(self, wanted: Expression | Ranked) -> Cell:
        place = self.space.reach(wanted)
        assert place is not None
        return self._cell(place.point)

    def _cell(self, point: tuple[float, ...]) -> Cell:
        return self.space.grid.cell(tuple(min(max(x, 0.0), 1.0) for x in point))

    def _publish(self, passed: Passed, now: float) -> list[Output]:
        cell = self.space.cell(passed.event)
        if cell is None:
            return []  # it is at no distance from anything, so nobody wants it
        self.tally["rendezvous"] += 1
        return self._toward(Relayed(cell, passed), now)

    # -- Matching

    def _processed(self, passed: Passed, now: float) -> list[Output]:
        return self._settle(self.residents.take(passed, now), now)

    def _posted(self, passed: Passed, source: str, now: float) -> list[Output]:
        """Take an event that a peer has posted because this one is interested, or forwards to what has moved here."""
        if self._moves.is_waiting:
            self._moves.wait(passed, source)
            return []
        cell = self.space.cell(passed.event)
        is_forwarded = source in self._moves.sources and cell is not None and self.plots.owner(cell) != source
        return self._settle(self.residents.take(passed, now, moved_only=is_forwarded), now)

    def _settle(self, satisfied: list[Satisfied], now: float) -> list[Output]:
        """Say what has changed of the merger, and then whom to tell of what."""
        refreshed = self._refreshed(now)
        own, posts = notified(self.name, satisfied)
        self.tally["owner"] += len(posts) + len({each.publication.key for each in own})
        return refreshed + self._deliveries(own, now) + posts

    def _refreshed(self, now: float) -> list[Output]:
        """Return what others have to know of the merger as it is now: one message for each whom a change concerns."""
        if self._presets is not None:
            self._presets.end(now)
        reaches = [
            reach
            for who in self.residents
            if (reach := self.space.reach(self.residents.wanted(who), self._threshold(who))) is not None
        ]
        self._merger = merger([*reaches, *self._moves.reaches], self.space.grid, self._border, self._boxes)
        outputs: list[Output] = []
        for peer in self.plots.zones:
            wanted = intersection(self._merger, self.plots.of(peer)) if peer != self.name else ()
            if wanted != self._told.get(peer, ()):
                # A peer that is started anew begins with a greater version, so that nobody takes it for old.
                self._version = max(self._version + 1, int(now * 1_000_000))
                self._told[peer] = wanted
                self.tally["interest"] += 1
                outputs.append(Post(peer, CellInterest(self.name, self._version, wanted)))
        return outputs

    def _threshold(self, who: Who) -> float:
        threshold = self.residents.threshold(who)
        return threshold if self._presets is None else min(threshold, self._presets.threshold(who))

    def _hear(self, message: Message, source: str, now: float) -> list[Output]:
        match message:
            case Relayed():
                return self._toward(message, now)
            case Passed():
                forwarded: list[Output] = [Post(heir, message) for heir in self._moves.heirs]
                return forwarded + self._posted(message, source, now)
            case Notified():
                return self._deliveries(satisfied_by(message, self.name), now)
            case CellInterest(peer, version, area):
                self._check_area(area)
                known, _ = self._interested.get(peer, (0, ()))
                if version > known:
                    self._moves.announced.add(peer)
                    self._interested[peer] = (version, intersection(area, self.plots.of(self.name)))
                return []
            case HandOver():
                return self._taken_over(message, source, now)
            case TakenOver(zone):
                self._moves.arrived(zone, now + self._spread_s)
                return [] if self._spread_s else self._forgotten(now)
        raise AssertionError(message)

    # -- Second attempts

    @property
    def _due(self) -> float:
        preset_due = inf if self._presets is None else self._presets.due
        return min(super()._due, self._recent.due, self._moves.due, preset_due)

    def _second_attempts(self, now: float, clock: float) -> list[Output]:
        outputs: list[Output] = []
        leaving = self._recent.leaving(clock)
        for kept in leaving if self.settings.ranking.filter is not None else ():
            cell = self.space.cell(kept.passed.event)
            assert cell is not None
            if not self._is_local:
                outputs += self._processed(kept.again, now)
                if self._counts_own and has_cell(self._merger, cell):
                    self.tally["interested"] += 1
            interested = self._takers(cell)
            if self._is_local:
                interested = [peer for peer in interested if peer not in kept.served]
            self.tally["interested"] += len(interested)
            outputs += [Post(peer, kept.again) for peer in interested]
        return outputs

    def advance(self, now: float) -> list[Output]:
        outputs = self._second_attempts(now, now) + super().advance(now) + self._forgotten(now)
        return outputs + (self._refreshed(now) if self._presets is not None else [])

    def try_again(self, number: int, now: float) -> list[Output]:
        return self._second_attempts(now, number)

    # -- Joining and leaving

    def rezone(
        self,
        zones: Zones,
        now: float,
        awaits: Iterable[Zone] = (),
        gives: Iterable[tuple[Zone, str]] = (),
        heirs: Iterable[tuple[str, str]] = (),
    ) -> list[Output]:
        """Hear who holds which zones from now on, and who of all peers is whose heir.

        This peer will be handed over those zones that it awaits, and hands over those that it gives away, each to its
        heir. Everybody must hear of it at once.
        """
        moves = list(heirs)
        handed = [output for zone, heir in gives for output in self._given(zone, heir)]
        self.plots = Plots(zones, self.space.grid)
        own = self.plots.of(self.name)
        self._moves.expect(awaits)
        # Who leaves forwards to its heirs until all know these, and says when that is.
        reached = {*zones, *(giver for giver, _ in moves)}
        self._interested = {
            peer: (version, intersection(area, own))
            for peer, (version, area) in self._interested.items()
            if peer in reached
        }
        told_before = set(self._told)
        self._told = {
            peer: intersection(area or (), self.plots.of(peer)) for peer, area in self._told.items() if peer in zones
        }
        for giver, heir in moves:
            if (giver == self.name or giver in told_before) and heir != self.name:
                # What the giver hands over may be what this peer wanted before a message that is still under way.
                self._told[heir] = None
        return handed + self._refreshed(now)

    def _given(self, zone: Zone, heir: str) -> list[Output]:
        """Return what to send to the new owner of a zone: all that lives in it, and is forgotten here."""
        cells = self.space.grid.area((zone,))
        moving = [who for who in self.residents if has_cell(cells, self._home_cell(who))]
        reaches = [self.space.reach(self.residents.wanted(who), self.residents.threshold(who)) for who in moving]
        subscriptions = tuple(map(self.residents.moving, moving))
        for who in moving:
            self.residents.remove(who)
        self._moves.begin(zone, heir, [reach for reach in reaches if reach is not None])
        wanted = {**self._interested, self.name: (self._version, self._merger)}
        interests = tuple(
            (peer, version, shared)
            for peer, (version, area) in wanted.items()
            if (shared := intersection(area, cells)) and peer != heir
        )
        recent = self._recent.take_out(lambda passed: has_cell(cells, self.space.cell(passed.event) or ()))
        kept = self.residents.recent if moving else ()
        return [Post(heir, HandOver(part_of(zone), subscriptions, interests, recent, kept))]

    def _forgotten(self, now: float) -> list[Output]:
        """No longer reach for what has arrived at its new owner, once everybody has heard from that one."""
        return self._refreshed(now) if self._moves.advance(now) else []

    def _check_area(self, area: Area) -> None:
        if any(len(box) != self.space.dimensions for box in area):
            raise ZoneError(f"cells {area!r:.60}", f"the places of {self.space.dimensions} axes")

    def _home_cell(self, who: Who) -> Cell:
        return self._cell_of(self.residents.wanted(who))

    def _taken_over(self, handed: HandOver, source: str, now: float) -> list[Output]:
        """Let what lived in a zone live here: others hear of it, then the old owner, then what has waited goes on."""
        self._moves.check(handed.zone)
        for _, _, area in handed.interests:
            self._check_area(area)
        self.residents.settle(handed.subscriptions, now)
        own = self.plots.of(self.name)
        for peer, version, area in handed.interests:
            if (peer in self.plots.zones or peer == source) and peer not in self._moves.announced:
                known, before = self._interested.get(peer, (0, ()))
                self._interested[peer] = max(version, known), area_of((*before, *intersection(area, own)))
        self._recent.put_in(handed.recent)
        self.residents.keep(handed.kept)
        waiting = self._moves.take(handed.zone, source)
        outputs = [*self._refreshed(now), Post(source, TakenOver(handed.zone))]
        for message, sender in waiting:
            outputs += (
                self._toward(message, now) if isinstance(message, Relayed) else self._posted(message, sender, now)
            )
        return outputs
