"""Which links of a graph carry traffic? Link-state flooding: all brokers compute the same spanning tree.

A broker floods which links it has, over all of its connections, used or not. Whoever knows the links of all brokers
computes the tree by itself, and all compute the same: of the links that both ends name, the oldest ones that close no
circle. A link that comes up later displaces none that is in use, and when one fails, one other takes its place: tables
change where they must. A link carries traffic when both ends name the same tree.

Where the links are to form a tree by configuration, `circles` names those that close one, for the driver to refuse: the
same ones at every broker.

A broker's word has a version that grows. One that was started anew hears of its life before from others, and goes on
from there; of two words of one version, from two lives, all believe the same one until then. The words of brokers that
are gone are kept: nobody gets to them, as no living end names their links.

Source: spanning trees for general topologies are mentioned in Mühl et al. 2002, section 2.1 (docs/bibliography.md).
Departs: theirs is one tree for each broker; ours is one for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tamis.routing.errors import KnownPeerError, MessageError, NamelessError, UnknownPeerError
from tamis.routing.spanning import spanning_links

if TYPE_CHECKING:
    from collections.abc import Iterable

Way: TypeAlias = tuple[str, str]
"""A link, the end first that comes first by name."""


class LinkState(NamedTuple):
    """What a broker says of itself: its links, each with when it came up, in a version that replaces all before."""

    broker: str
    version: int
    links: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Flood:
    """To a neighbour: what brokers say of themselves, and the tree that the sender computes from all it knows."""

    states: tuple[LinkState, ...]
    tree: str


class Overlay:
    """What one broker knows of the graph.

    >>> one, two = Overlay("one"), Overlay("two")
    >>> to_two, to_one = one.connect("two", 5.0)["two"], two.connect("one", 5.0)["one"]
    >>> answers = two.receive(to_two, "one"), one.receive(to_one, "two")
    >>> _ = one.receive(answers[0]["one"], "two"), two.receive(answers[1]["two"], "one")
    >>> one.tree == two.tree, one.carries("two"), two.carries("one"), one.links
    (True, True, True, [('one', 'two')])
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise NamelessError(name)
        self.name = name
        self._states = {name: LinkState(name, 1, ())}
        self._connections: dict[str, float] = {}
        self._trees: dict[str, str] = {}
        """What neighbours call the tree."""
        self.links: list[Way] = []
        """The links of the tree, as far as one gets from here."""
        self.circles: list[Way] = []
        """The links that close a circle, and wait."""
        self.tree = ""
        """The name of the tree: brokers that compute the same one call it the same."""
        self._compute()

    def carries(self, neighbour: str) -> bool:
        """Does the link to a neighbour carry traffic?"""
        self._check(neighbour)
        return _way(self.name, neighbour) in self.links and self._trees.get(neighbour) == self.tree

    @property
    def reachable(self) -> frozenset[str]:
        """All brokers that one gets to from here, this one among them."""
        return frozenset((self.name, *(end for way in self.links for end in way)))

    @property
    def neighbours(self) -> frozenset[str]:
        """The brokers at the other ends of this broker's links in the tree."""
        return frozenset(end for way in self.links if self.name in way for end in way if end != self.name)

    def over(self, neighbour: str) -> frozenset[str]:
        """Return the brokers that are reached over a neighbour, itself among them; nobody if its link is not used.

        >>> one = Overlay("one")
        >>> _ = one.connect("two", 1.0)
        >>> two = LinkState("two", 1, (("one", 1.0), ("three", 2.0)))
        >>> _ = one.receive(Flood((two, LinkState("three", 1, (("two", 2.0),))), ""), "two")
        >>> sorted(one.over("two")), sorted(one.over("three"))
        (['three', 'two'], [])
        """
        if _way(self.name, neighbour) not in self.links:
            return frozenset()
        beside: dict[str, list[str]] = {}
        for one, two in self.links:
            beside.setdefault(one, []).append(two)
            beside.setdefault(two, []).append(one)
        within, order = {self.name, neighbour}, [neighbour]
        for broker in order:
            order += [other for other in beside[broker] if other not in within]
            within.update(beside[broker])
        return frozenset(order)

    def closes_circle(self, neighbour: str) -> bool:
        """Would a link to a broker close a circle, as far as is known by now?"""
        return neighbour in self.reachable and neighbour not in self._connections

    # -- What happens

    def connect(self, neighbour: str, since: float) -> dict[str, Flood]:
        """There is a connection, up since then by this end's clock; return what to say to neighbours."""
        if neighbour == self.name or neighbour in self._connections:
            raise KnownPeerError(self.name, neighbour)
        self._connections[neighbour] = since
        self._say_of_myself(self._states[self.name].version + 1)
        outputs = self._told((self._states[self.name],), besides=neighbour)
        outputs[neighbour] = Flood(tuple(self._states.values()), self.tree)
        return outputs

    def disconnect(self, neighbour: str) -> dict[str, Flood]:
        """A connection is gone; return what to say to the other neighbours."""
        self._check(neighbour)
        del self._connections[neighbour]
        self._trees.pop(neighbour, None)
        self._say_of_myself(self._states[self.name].version + 1)
        return self._told((self._states[self.name],))

    def lose(self, neighbour: str) -> None:
        """A connection broke that may be back soon: the link stays, and carries nothing before both have spoken."""
        self._check(neighbour)
        self._trees.pop(neighbour, None)

    def greeting(self) -> Flood:
        """Return all that is known here, for a neighbour whose connection is back: it may have been started anew."""
        return Flood(tuple(self._states.values()), self.tree)

    def receive(self, flood: Flood, source: str) -> dict[str, Flood]:
        """Take what a neighbour says; return what to say to neighbours: what was new, and another tree."""
        self._check(source)
        _check_states(flood)
        before = self.tree
        self._trees[source] = flood.tree
        new = [
            state
            for state in flood.states
            if state.broker != self.name
            and (state.broker not in self._states or state[1:] > self._states[state.broker][1:])
        ]
        self._states.update({state.broker: state for state in new})
        mine = next((state for state in flood.states if state.broker == self.name), None)
        if mine is not None and mine[1:] > self._states[self.name][1:]:
            # It is from a life before, and would be believed more than this one.
            self._say_of_myself(mine.version + 1)
            outputs = self._told((*new, self._states[self.name]), besides=source)
            outputs[source] = Flood((self._states[self.name],), self.tree)
            return outputs
        self._compute()
        if not new and self.tree == before:
            return {}
        outputs = self._told(tuple(new), besides=source)
        if self.tree != before:
            outputs[source] = Flood((), self.tree)
        return outputs

    def _say_of_myself(self, version: int) -> None:
        self._states[self.name] = LinkState(self.name, version, tuple(sorted(self._connections.items())))
        self._compute()

    def _told(self, states: tuple[LinkState, ...], besides: str | None = None) -> dict[str, Flood]:
        return {peer: Flood(states, self.tree) for peer in self._connections if peer != besides}

    def _compute(self) -> None:
        """Find the tree of all links that both ends name, the oldest first."""
        self.links, self.circles = tree_of(self._states.values(), self.name)
        self.tree = sha256(
            "\n".join("\t".join(way) for way in self.links).encode("utf-8", "surrogatepass")
        ).hexdigest()[:16]

    def _check(self, neighbour: str) -> None:
        if neighbour not in self._connections:
            raise UnknownPeerError(self.name, neighbour)


def tree_of(states: Iterable[LinkState], start: str) -> tuple[list[Way], list[Way]]:
    """Return the links of the tree around a broker, and those that close a circle: the definition.

    >>> ring = [LinkState("a", 1, (("b", 1.0), ("c", 3.0))), LinkState("b", 1, (("a", 1.0), ("c", 2.0)))]
    >>> tree_of([*ring, LinkState("c", 1, (("a", 3.0), ("b", 2.0)))], "a")
    ([('a', 'b'), ('b', 'c')], [('a', 'c')])
    """
    named = {(state.broker, other): since for state in states for other, since in state.links}
    ages = {
        (one, two): max(since, named[two, one])
        for (one, two), since in named.items()
        if one < two and (two, one) in named
    }
    within = {start}
    beside: dict[str, list[str]] = {}
    for one, two in ages:
        beside.setdefault(one, []).append(two)
        beside.setdefault(two, []).append(one)
    order = [start]
    for broker in order:
        for other in beside.get(broker, ()):
            if other not in within:
                within.add(other)
                order.append(other)
    oldest_first = sorted((way for way in ages if way[0] in within), key=lambda way: (ages[way], way))
    chosen = spanning_links(sorted(within), oldest_first)
    return sorted(chosen), sorted(set(oldest_first) - set(chosen))


def _way(one: str, two: str) -> Way:
    return (one, two) if one < two else (two, one)


def _check_states(flood: Flood) -> None:
    if not isinstance(flood, Flood) or not isinstance(flood.tree, str):
        raise MessageError(f"{flood!r:.80} of the graph", "states of links and the name of a tree")
    for state in flood.states:
        if not isinstance(state, LinkState) or not isinstance(state.broker, str) or not isinstance(state.version, int):
            raise MessageError(f"{state!r:.80} as a state of links", "a broker, a version and its links")
        for link in state.links:
            if (
                len(link) != 2
                or not isinstance(link[0], str)
                or not isinstance(link[1], int | float)
                or link[1] != link[1]
            ):
                raise MessageError(f"{link!r:.80} as a link", "a neighbour, and since when")
