"""How do the peers of D-ZaLaPS live together in one process? The simulator, with a torus in place of links.

A peer reaches its neighbours on the torus and, by the network below, everybody. Peers join and leave while messages are
under way: all hear of it at once, and hand over what has moved. Who leaves takes its clients with it, and is there
until what it gave away has arrived. One seed decides everything, as for brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tamis.routing.dzalaps.peer import Peer
from tamis.routing.dzalaps.zones import Zones
from tamis.simulation.errors import KnownNameError, WrongStateError
from tamis.simulation.network import Network
from tamis.simulation.occurrences import MessageCarried

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from tamis.routing import Message
    from tamis.routing.dzalaps.space import Space
    from tamis.routing.dzalaps.zones import Point, Zone


class PeerNetwork(Network):
    """Peers, their zones, and clients.

    >>> from random import Random
    >>> import tamis
    >>> from tamis.routing.dzalaps import Space
    >>> network = PeerNetwork([("P0", ()), ("P1", (0.75, 0.25))], Space(("x", "y"), 4), Random(1))
    >>> network.attach("ann", "P1"), network.attach("bob", "P1")
    (None, None)
    >>> network.subscribe("ann", "near", tamis.parse("euclidean(array(x, y), array(0.3, 0.3)) <= 0.1"))
    >>> network.run()
    >>> network.publish("bob", "e", {"x": 0.3, "y": 0.3})
    >>> network.run()
    >>> network.delivered_count
    1
    """

    def __init__(
        self,
        points: Iterable[tuple[str, Point]],
        space: Space,
        chance: Random,
        *,
        delays_s: tuple[float, float] = (0.001, 0.1),
        encodes: bool = False,
        numbers: bool = False,
        observers: Iterable[Any] = (),
        **settings: Any,
    ) -> None:
        """Let peers join at their points, in order; the first one's does not count. `settings` are those of `Peer`."""
        joining = list(points)
        self.zones = Zones.joined(joining, space.dimensions)
        self._space = space
        self._settings = settings
        self._leaving: set[str] = set()
        super().__init__(
            [name for name, _ in joining],
            [],
            self._peer,
            chance,
            delays_s=delays_s,
            encodes=encodes,
            numbers=numbers,
            observers=observers,
        )

    def _peer(self, name: str) -> Any:
        return Peer(name, space=self._space, zones=self.zones, **self._settings)

    @property
    def peers(self) -> dict[str, Peer]:
        """The peers that are there, those included that are leaving."""
        return {name: cast("Peer", peer) for name, peer in self.brokers.items()}

    def _send(self, source: str, target: str, message: Message) -> None:
        # Neighbours come and go with the zones; what is under way to one of them arrives.
        message = self._travelled(message, target)
        self._notice(MessageCarried(source, target, message))
        self._count_hop(source, target, message)
        self.travel.post(source, target, message, self.now)

    # -- Joining and leaving

    @property
    def is_moving(self) -> bool:
        """Is a zone on its way from one peer to another?"""
        return any(peer.is_moving for peer in self.peers.values())

    def join(self, name: str, point: Point) -> None:
        """Let a peer join; the owner of a point gives it the half of a zone, or a zone, in which the point lies."""
        if name in self.brokers:
            raise KnownNameError(name, "another peer")
        self._check_rest()
        giver = self.zones.owner(point)
        self.zones = self.zones.join(name, point)
        (zone,) = self.zones.of(name)
        self._names = (*self._names, name)
        self.brokers[name] = self._peer(name)
        self._rezone({name: [zone]}, {giver: [(zone, name)]})

    def leave(self, name: str) -> None:
        """Let a peer leave, and its clients with it; others get its zones."""
        if name not in self.zones:
            raise WrongStateError(f"peer {name!r}", "gone", "let it join first")
        self._check_rest()
        before = self.zones
        after = before.leave(name)
        for client in [client for client in self.clients.values() if client.home == name]:
            if client.is_connected:
                self.disconnect(client.name)
            del self.clients[client.name]
        self.zones = after
        gives = []
        awaits: dict[str, list[Zone]] = {}
        for zone in before.of(name):
            heir = after.owner(zone.low)
            gives.append((zone, heir))
            awaits.setdefault(heir, []).append(zone)
        self._leaving.add(name)
        self._rezone(awaits, {name: gives})

    def _check_rest(self) -> None:
        if self.is_moving:
            raise WrongStateError("a zone", "on its way", "let it arrive first")

    def _rezone(self, awaits: dict[str, list[Zone]], gives: dict[str, list[tuple[Zone, str]]]) -> None:
        heirs = [(giver, heir) for giver, given in gives.items() for _, heir in given]
        said = {
            name: peer.rezone(self.zones, self.now, awaits.get(name, ()), gives.get(name, ()), heirs)
            for name, peer in self.peers.items()
        }
        for name, outputs in said.items():
            self._carry_out(name, outputs)

    def run(self, most_steps: int = 10_000_000) -> None:
        super().run(most_steps)
        while self.is_moving:
            self.wait(max(self._next_end() - self.now, 0.0))
            super().run(most_steps)
        for name in sorted(self._leaving):
            assert not self.peers[name].is_moving
            del self.brokers[name]
        self._names = tuple(name for name in self._names if name not in self._leaving)
        self._leaving.clear()
