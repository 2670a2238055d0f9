"""Which links of a graph carry traffic now? What a broker and its neighbours say of the tree, connection by connection.

`routing.Overlay` computes the tree from what brokers flood. Here is what belongs to connections: which neighbours are
there, which tree each of them names, and whether everybody behind it names that too (it is *complete*). Trees are told
apart by *turns*, because a tree may come back: an end counts how often it has computed another one. Both ends of a link
speak of the same tree if each knows the turn of the other, and the trees are the same.

A connection that breaks may be back soon, and then nothing has changed. Only after a while its link is given up, and
another one takes its place.

>>> one, two = Agreement("one"), Agreement("two")
>>> to_two, to_one = one.connect("two", 5.0)["two"], two.connect("one", 5.0)["one"]
>>> answers = two.receive(to_two, "one"), one.receive(to_one, "two")
>>> _ = one.receive(answers[0]["one"], "two"), two.receive(answers[1]["two"], "one")
>>> one.carries("two"), one.turns("two") == two.turns("one")[::-1], one.is_complete("two")
(True, True, False)
>>> _ = one.receive(two.completion(), "two")
>>> one.is_complete("two"), one.lose("two"), one.carries("two"), sorted(one.overlay.reachable)
(True, None, False, ['one', 'two'])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.routing.overlay import Flood, Overlay
from tamis.service.links.frames import GraphSaid

if TYPE_CHECKING:
    from collections.abc import Mapping


class Agreement:
    """What one broker knows of the graph, and of what its neighbours know."""

    def __init__(self, name: str) -> None:
        self.overlay = Overlay(name)
        self.turn = 1
        self._tree = self.overlay.tree
        self._links: set[str] = set()
        """Neighbours whose link is not given up, connected or not."""
        self._heard: dict[str, GraphSaid] = {}
        """The latest word of those who are connected."""
        self._complete: set[str] = set()
        """Of whom everybody behind them names the tree of their latest word."""

    @property
    def neighbours(self) -> frozenset[str]:
        """To whom a link of the tree leads."""
        return self.overlay.neighbours

    def knows(self, neighbour: str) -> bool:
        """Is the link to a neighbour up, or may it be back soon?"""
        return neighbour in self._links

    def carries(self, neighbour: str) -> bool:
        """Does a link carry traffic: is it in the tree, and do both ends name the same one?"""
        return neighbour in self._heard and self.overlay.carries(neighbour)

    def turns(self, neighbour: str) -> tuple[int, int]:
        """Return the turns of both ends, ours first; 0 for a neighbour that has not spoken."""
        heard = self._heard.get(neighbour)
        return self.turn, 0 if heard is None else heard.turn

    def is_complete(self, neighbour: str) -> bool:
        """Does everybody behind a neighbour name our tree, and has told what it wants?"""
        return neighbour in self._complete and self.carries(neighbour)

    def completion(self) -> GraphSaid:
        """Return what to say when everybody behind this end names its tree."""
        return GraphSaid((), self.overlay.tree, self.turn, is_complete=True)

    # -- What happens

    def connect(self, neighbour: str, since: float) -> dict[str, GraphSaid]:
        """A connection is there; return what to say to whom."""
        self._heard.pop(neighbour, None)
        self._complete.discard(neighbour)
        if neighbour in self._links:
            self.overlay.lose(neighbour)
            return self._said({neighbour: self.overlay.greeting()})
        self._links.add(neighbour)
        return self._said(self.overlay.connect(neighbour, since))

    def lose(self, neighbour: str) -> None:
        """A connection broke, and may be back soon."""
        if neighbour in self._links:
            self._heard.pop(neighbour, None)
            self._complete.discard(neighbour)
            self.overlay.lose(neighbour)

    def give_up(self, neighbour: str) -> dict[str, GraphSaid]:
        """A connection was not back in time: the link is gone; return what to say to the others."""
        self.lose(neighbour)
        self._links.discard(neighbour)
        return self._said(self.overlay.disconnect(neighbour))

    def receive(self, said: GraphSaid, source: str) -> dict[str, GraphSaid]:
        """Take what a neighbour says; return what to say to whom."""
        floods = self.overlay.receive(Flood(said.states, said.tree), source)
        before = self._heard.get(source)
        self._heard[source] = said
        if before is None or before.turn != said.turn:
            self._complete.discard(source)
        if said.is_complete:
            self._complete.add(source)
        return self._said(floods)

    def _said(self, floods: Mapping[str, Flood]) -> dict[str, GraphSaid]:
        if self.overlay.tree != self._tree:
            self.turn += 1
            self._tree = self.overlay.tree
        return {name: GraphSaid(flood.states, flood.tree, self.turn) for name, flood in floods.items()}
