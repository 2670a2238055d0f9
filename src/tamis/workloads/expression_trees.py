"""What does a random Boolean expression look like, and how much do many of them share?

Trees are binary, as in the source: a leaf compares an attribute with a value, a branch joins two trees. Every
shape with the given number of leaves is equally likely. What a leaf and a branch are made of is the caller's choice,
because a million texts are written much faster than a million trees are built and then written.

Source: Jewel 2004, section 5.2 (docs/bibliography.md).
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from functools import cache
from itertools import accumulate
from math import comb
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tamis.workloads.base import Flags, Numbers


class Leaf(NamedTuple):
    """A comparison of an attribute with a value."""

    attribute: int
    comparison: str
    operand: int


class Branch(NamedTuple):
    """Two trees joined by AND, OR or XOR."""

    connective: str
    left: Tree
    right: Tree


Tree: TypeAlias = Leaf | Branch
Made = TypeVar("Made")


class Material(NamedTuple, Generic[Made]):
    """What trees are made of: how to make a leaf and how to join two trees."""

    leaf: Callable[[int, str, int], Made]
    branch: Callable[[str, Made, Made], Made]


TREE: Material[Tree] = Material(Leaf, Branch)
TEXT: Material[str] = Material(
    lambda attribute, comparison, operand: f"a{attribute + 1} {comparison} {operand}",
    lambda connective, left, right: f"({left} {connective} {right})",
)


def grow(
    leaves: Sequence[Made],
    cuts: Iterator[float],
    connectives: Iterator[str],
    branch: Callable[[str, Made, Made], Made],
) -> Made:
    """Grow a tree over the leaves, whose order stays; `cuts` are uniform random numbers, one for each branch.

    >>> grow(["a", "b", "c"], iter([0.9, 0.0]), iter(["AND", "OR"]), TEXT.branch)
    '((a OR b) AND c)'
    """
    if len(leaves) == 1:
        return leaves[0]
    cut = 1 + bisect(_cumulative_shapes(len(leaves)), next(cuts))
    connective = next(connectives)
    left = grow(leaves[:cut], cuts, connectives, branch)
    return branch(connective, left, grow(leaves[cut:], cuts, connectives, branch))


@cache
def _cumulative_shapes(leaf_count: int) -> list[float]:
    """How likely it is that the left part has no more than 1, 2, … leaves, when all shapes are equally likely.

    >>> _cumulative_shapes(4)  # 2, 1 and 2 of the 5 shapes; the last is whatever remains
    [0.4, 0.6]
    """
    shapes = [_shape_count(left) * _shape_count(leaf_count - left) for left in range(1, leaf_count)]
    return [sum_so_far / sum(shapes) for sum_so_far in accumulate(shapes[:-1])]


def _shape_count(leaf_count: int) -> int:
    """Count the binary trees with so many leaves: a Catalan number."""
    return comb(2 * (leaf_count - 1), leaf_count - 1) // leaf_count


def truths(tree: Tree, is_true: dict[Leaf, Flags], is_false: dict[Leaf, Flags]) -> tuple[Flags, Flags]:
    """Evaluate a tree over many events: where it is true and where it is false. Neither is unknown.

    >>> a, b = Leaf(0, ">", 5), Leaf(1, ">", 5)
    >>> yes, no = np.array([True]), np.array([False])
    >>> truths(Branch("XOR", a, b), {a: yes, b: no}, {a: no, b: yes})
    (array([ True]), array([False]))
    """
    if isinstance(tree, Leaf):
        return is_true[tree], is_false[tree]
    left, not_left = truths(tree.left, is_true, is_false)
    right, not_right = truths(tree.right, is_true, is_false)
    match tree.connective:
        case "AND":
            return left & right, not_left | not_right
        case "OR":
            return left | right, not_left & not_right
        case _:
            return (left & not_right) | (not_left & right), (left & right) | (not_left & not_right)


def chances(tree: Tree, by_attribute: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Return how likely a tree is true and how likely it is false, given both for the predicates of each attribute.

    The predicates of a tree must be independent of one another, that is, about different attributes.

    >>> tree = Branch("OR", Leaf(0, ">", 5), Leaf(1, ">", 5))
    >>> chances(tree, [(np.array([0.5]), np.array([0.5])), (np.array([0.2]), np.array([0.8]))])
    (array([0.6]), array([0.4]))
    """
    if isinstance(tree, Leaf):
        return by_attribute[tree.attribute]
    left, not_left = chances(tree.left, by_attribute)
    right, not_right = chances(tree.right, by_attribute)
    match tree.connective:
        case "AND":
            return left * right, not_left + not_right - not_left * not_right
        case "OR":
            return left + right - left * right, not_left * not_right
        case _:
            return left * not_right + not_left * right, left * right + not_left * not_right


def nodes(tree: Tree) -> Iterator[Tree]:
    """Walk over a tree's nodes."""
    yield tree
    if isinstance(tree, Branch):
        yield from nodes(tree.left)
        yield from nodes(tree.right)


def shared_shares(trees: Iterable[Tree]) -> tuple[float, float]:
    """Measure SNPS: which share of a tree's nodes occurs in other trees too, on average over the trees.

    The source's table speaks of inner nodes and its text of all nodes, so both are returned, all nodes first.

    >>> a, b, c = (Leaf(index, ">", 5) for index in range(3))
    >>> shared_shares([Branch("AND", a, b), Branch("AND", a, c)])
    (0.3333333333333333, 0.0)
    """
    node_sets = [set(nodes(tree)) for tree in trees]
    uses = Counter(node for distinct in node_sets for node in distinct)
    of_all = [_share(distinct, uses) for distinct in node_sets]
    of_inner = [_share([node for node in distinct if isinstance(node, Branch)], uses) for distinct in node_sets]
    return float(np.mean(of_all)), float(np.mean(of_inner))


def _share(distinct: Iterable[Tree], uses: Counter[Tree]) -> float:
    is_shared = [uses[node] > 1 for node in distinct]
    return sum(is_shared) / len(is_shared) if is_shared else 0.0
