"""How are brokers linked? Topologies.

line              the longest ways
star              one broker in the middle of all
balanced tree     each broker has two below it
random tree       each broker is linked to some earlier one
graph             a random tree, and about half as many links again: more ways than one
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

Links = list[tuple[str, str]]


def names(count: int) -> list[str]:
    """Return the names of so many brokers.

    >>> names(3)
    ['b0', 'b1', 'b2']
    """
    return [f"b{number}" for number in range(count)]


def line(count: int, chance: Random) -> Links:
    """Return a line."""
    return [(f"b{number - 1}", f"b{number}") for number in range(1, count)]


def star(count: int, chance: Random) -> Links:
    """Return a star around the first broker."""
    return [("b0", f"b{number}") for number in range(1, count)]


def balanced_tree(count: int, chance: Random) -> Links:
    """Return a binary tree below the first broker."""
    return [(f"b{(number - 1) // 2}", f"b{number}") for number in range(1, count)]


def random_tree(count: int, chance: Random) -> Links:
    """Return a tree in which each broker hangs on an earlier one."""
    return [(f"b{chance.randrange(number)}", f"b{number}") for number in range(1, count)]


def graph(count: int, chance: Random) -> Links:
    """Return a random tree with about half as many links again."""
    links = random_tree(count, chance)
    known = set(links)
    others = [
        (f"b{one}", f"b{two}") for two in range(count) for one in range(two) if (f"b{one}", f"b{two}") not in known
    ]
    return links + chance.sample(others, min(len(others), count // 2))


TOPOLOGIES: dict[str, Callable[[int, Random], Links]] = {
    "line": line,
    "star": star,
    "balanced tree": balanced_tree,
    "random tree": random_tree,
    "graph": graph,
}


def ways_from(broker: str, links: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return over which neighbour the shortest way to every other broker begins.

    >>> ways_from("a", [("a", "b"), ("b", "c"), ("a", "d")])
    {'b': 'b', 'd': 'd', 'c': 'b'}
    """
    beside: dict[str, list[str]] = {}
    for one, other in links:
        beside.setdefault(one, []).append(other)
        beside.setdefault(other, []).append(one)
    ways = {neighbour: neighbour for neighbour in beside.get(broker, ())}
    for reached in (border := list(ways)):
        for following in beside[reached]:
            if following != broker and following not in ways:
                ways[following] = ways[reached]
                border.append(following)
    return ways
