"""All promises of a network at once, in a graph: the world of trees with links that close circles.

A link that is cut stays down for so long that others take its place, and is mended later; so the tree changes again and
again while events are under way. The checkers are those of the world of trees; the way of an event at rest is that of
the tree that all brokers name then.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tests.service.links.tree import Site, Tree
from tests.service.links.world import NOBODYS, STRATEGIES, TEXTS, Reader, World, Writer

REROUTE_AFTER_S = 0.4


class GraphSite(Site):
    """A broker in a graph."""

    reroute_after_s = REROUTE_AFTER_S


class Graph(Tree):
    """Sites in a graph, which come to rest when all name one tree and nothing is leaving."""

    def neighbours(self, name: str) -> Any:
        node = self.sites[name].node
        assert node is not None
        return node.neighbours

    def is_at_rest(self) -> bool:
        trees = {self.neighbours(name)._agreement.overlay.tree for name in self.sites}
        return len(trees) == 1 and all(
            each.is_routed == (each.name in self.neighbours(name)._agreement.neighbours)
            for name in self.sites
            for each in self.neighbours(name)
        )

    def rest(self, most: int = 100_000) -> None:
        for _ in range(20):
            super().rest(most)
            self.tick(REROUTE_AFTER_S)
            super().rest(most)
            if self.is_at_rest():
                return
        raise AssertionError("the graph does not come to rest: " + "; ".join(map(str, self.unrest())))

    def unrest(self) -> list[Any]:
        """Return what keeps the graph from rest."""
        return [
            (name, each.name, each.is_routed, each.is_joined, self.neighbours(name)._turns.get(each.name))
            for name in self.sites
            for each in self.neighbours(name)
            if each.is_routed != (each.name in self.neighbours(name)._agreement.neighbours)
        ] or [(name, self.neighbours(name)._agreement.overlay.links) for name in self.sites]

    def tree_links(self) -> list[tuple[str, str]]:
        """Return the links that carry traffic."""
        return list(self.neighbours(min(self.sites))._agreement.overlay.links)


class GraphReader(Reader):
    """A durable subscriber in a graph."""

    def check_order(self, source: str, number: int, is_again: bool) -> None:
        """When the tree changes, events that went the old way may come behind those that went the new one."""


class GraphWorld(World):
    """One run."""

    def __init__(self, seed: int, site_type: type[Site] = GraphSite) -> None:
        self.seed = seed
        self.chance = chance = Random(seed)
        count = chance.randint(3, 5)
        names = [chr(ord("a") + number) for number in range(count)]
        links = [(names[number], names[chance.randrange(number)]) for number in range(1, count)]
        others = [
            (one, two)
            for one in names
            for two in names
            if one < two and (one, two) not in links and (two, one) not in links
        ]
        links += chance.sample(others, chance.randint(1, min(3, len(others))))
        self.strategy = chance.choice(STRATEGIES)
        self.texts = NOBODYS if seed % 5 == 4 else TEXTS
        self.down: set[tuple[str, str]] = set()
        """Links that stay down for a while."""
        self.tree: Graph = Graph(
            links, self.strategy, chance.randrange(2**32), site_type, queue_events=chance.choice((4, 1024)),
            recent_bytes=chance.choice((300, 1_000_000)),
        )  # fmt: skip
        self.readers = [GraphReader(self, chance.choice(names), f"r{number}") for number in range(chance.randint(1, 3))]
        self.writers = [Writer(self, chance.choice(names), f"/w{number}") for number in range(chance.randint(1, 3))]

    def happen(self) -> None:
        chance, tree = self.chance, self.tree
        roll = chance.random()
        if roll < 0.03:
            link = chance.choice(tree.links)
            if link in self.down:
                self.down.discard(link)
            elif len(self.down) < len(tree.links) - 1:
                self.down.add(link)
                if tree.is_connected(link):
                    tree.cut(tree.ends[link])
        elif roll < 0.1:
            for link in tree.links:
                if link not in self.down and not tree.is_connected(link):
                    tree.tidy()
                    tree.call(link)
        else:
            super().happen()
        for link in self.down:
            if tree.is_connected(link):
                tree.cut(tree.ends[link])

    def rest(self) -> None:
        self.down.clear()
        super().rest()

    def check(self) -> None:
        """Check what was promised, and that no event has two positions for a client."""
        super().check()
        for reader in self.readers:
            bodies = list(reader.positions.values())
            assert len(bodies) == len(set(bodies)), f"an event came twice to {reader.name}"

    def check_at_rest(self) -> None:
        """Check the same as in a tree: it is the one that all name."""
        every, self.tree.links = self.tree.links, self.tree.tree_links()
        trees = {tuple(self.tree.neighbours(name)._agreement.overlay.links) for name in self.tree.sites}
        assert len(trees) == 1, "not all name the same tree"
        rest = self.tree.rest

        def whole_rest(most: int = 100_000) -> None:
            self.tree.links = every
            rest(most)
            self.tree.links = self.tree.tree_links()

        self.tree.rest = whole_rest  # type: ignore[method-assign]
        super().check_at_rest()


def run(seed: int, site_type: type[Site] = GraphSite, steps: int = 400) -> GraphWorld:
    world = GraphWorld(seed, site_type)
    world.run(steps)
    return world


__all__ = ["GraphSite", "GraphWorld", "run"]
