"""How much of a subscription must come from the small pool for it to share so much with others?

A subscription of L predicates is a binary tree of 2L - 1 nodes that joins two parts. A part of n predicates from the
small pool brings 2n - 1 nodes that other subscriptions have as well; a part from the large pool brings none.

Source: Jewel 2004, section 5.2 (docs/bibliography.md). It says that the mix follows from the two knobs, and not how.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.workloads.errors import require


class Recipe(NamedTuple):
    """How a share of the subscriptions is put together: the size of its left part, and which parts are common."""

    share: float
    left_size: int
    is_left_shared: bool
    is_right_shared: bool


def recipes(predicate_count: int, overlap: float, shared_nodes: float) -> tuple[Recipe, ...]:
    """Find a mix in which so many subscriptions overlap, and share so many of their nodes on average.

    Much sharing takes a common half, or two of them. Less takes a common part smaller than a half. In between the
    two nearest are mixed, so that the average is exact.

    >>> recipes(predicate_count=4, overlap=1.0, shared_nodes=6 / 7)[-1]
    Recipe(share=1.0, left_size=2, is_left_shared=True, is_right_shared=True)
    >>> [(recipe.left_size, round(recipe.share, 2)) for recipe in recipes(10, 0.9, 0.2)]
    [(5, 0.1), (2, 0.35), (3, 0.55)]
    """
    require(0 <= overlap <= 1, "overlap", overlap, "a share from 0 to 1")
    half, node_count = predicate_count // 2, 2 * predicate_count - 1
    unique = Recipe(1 - overlap, half, is_left_shared=False, is_right_shared=False)
    if overlap == 0:
        require(shared_nodes == 0, "shared_nodes", shared_nodes, "0, as nothing overlaps")
        return (unique,)
    least, most = overlap / node_count, overlap * (node_count - 1) / node_count
    is_reachable = least - 1e-9 <= shared_nodes <= most + 1e-9  # a quotient may miss its own limit by a hair
    require(is_reachable, "shared_nodes", shared_nodes, f"from {least:.3f} to {most:.3f} at this overlap")
    wanted = shared_nodes / overlap * node_count  # common nodes of a subscription that overlaps
    if wanted >= 2 * half - 1:
        more = (wanted - (2 * half - 1)) / (node_count - 2 * half)
        less, greater = Recipe(0, half, True, False), Recipe(0, half, True, True)
    else:
        size = max(1, int((wanted + 1) / 2))
        more = (wanted + 1) / 2 - size
        less, greater = Recipe(0, size, True, False), Recipe(0, size + 1, True, False)
    more = min(max(more, 0.0), 1.0)
    return unique, less._replace(share=overlap * (1 - more)), greater._replace(share=overlap * more)
