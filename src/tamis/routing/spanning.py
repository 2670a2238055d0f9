"""Along which links of a graph do messages travel? A spanning tree.

Brokers route on a tree: between two of them there is one way, so nothing goes round in circles and nothing comes twice.
In a graph with more links than that, some are used and the others wait. When a link or a broker fails, links that still
work stay in use, and waiting ones take the place of those that do not: as few tables as possible change.

Source: Mühl et al. 2002, section 2.1, mentions spanning trees for general topologies (docs/bibliography.md). Theirs is
one
  tree for each broker; ours is one for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


def spanning_links(
    brokers: Iterable[str], links: Collection[tuple[str, str]], used: Collection[tuple[str, str]] = ()
) -> list[tuple[str, str]]:
    """Return links that connect whatever can be connected, without a circle; those in use are kept.

    >>> ring = [("a", "b"), ("b", "c"), ("a", "c")]
    >>> spanning_links("abc", ring)
    [('a', 'b'), ('b', 'c')]
    >>> spanning_links("abc", ring[1:], used=[("a", "b"), ("b", "c")])
    [('b', 'c'), ('a', 'c')]
    """
    parents = {broker: broker for broker in brokers}

    def root(broker: str) -> str:
        while parents[broker] != broker:
            parents[broker] = broker = parents[parents[broker]]
        return broker

    kept = set(used)
    chosen = []
    for one, two in sorted(links, key=lambda link: link not in kept):  # stable: in the order given
        if one in parents and two in parents and root(one) != root(two):
            parents[root(one)] = root(two)
            chosen.append((one, two))
    return chosen
