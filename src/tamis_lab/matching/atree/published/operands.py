r"""What if a node's operands are numbers? The published tree node by node, in plain Python.

A match of a predicate has a state and a value: `price < 200` is true of 170, and its value is 170. So a node may add,
compare or take the least of what its operands are worth, and a *constraint* asks something of predicates together: all
of them must hold, and their sum must not exceed 1,000. An operand that was not said is *undefined*. AND, OR and XOR
read that as false; of arithmetic it makes an undefined result, of which nothing is true.

                        [<= 1000]                       level 4    undefined: false
                            |
                          [ + ]                         level 3    undefined where one operand is
                         /     \
                     [ + ]      price_c >= 600          level 2
                    /     \
      price_a >= 200       price_b >= 100               level 1    the value, where the predicate holds

An insertion arranges the operands of each associative function by dynamic programming (see `graph`) with the *cost* of
a node, which may be any function; by default what exists costs nothing, and what is to be made costs 1. Nodes are
looked up among the common parents of their operands, in lists sorted by age, or in a table.

This is the definition that the compiled tree is tested against, and it is as slow as it is plain.

Source: Jewel 2004, sections 3.3 to 3.8, 4.2 and 4.2.1 (docs/bibliography.md).
Departs: an edge knows the place of its operand, which the source fills in as they arrive: `a - b` is not `b - a`.
Departs: a constraint's relation and its bound belong to its node, as a function of one operand.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, insort
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from tamis.language.expressions import Attribute, Compare, Expression
from tamis.language.meaning import attribute_value, truth
from tamis_lab.matching.atree.published.graph import ARRANGEMENTS, LOOK_UPS, PARENTS, PRINTED, REPAIRED, TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

UNDEFINED = None
"""The value of an operand that was not said, or cannot be computed; it is not the same as false."""


class Worth(NamedTuple):
    """What a node says to its parents: whether it is true, and what it is worth."""

    state: bool
    value: Any


@dataclass(frozen=True, slots=True)
class Of:
    """A function of operands: `and`, `or`, `xor`, `+`, `*`, `min` and `max` of any number, `-` and `/` of two."""

    function: str
    operands: tuple[Written, ...]


@dataclass(frozen=True, slots=True)
class With:
    """A function of one operand and a number: a relation such as `<=`, or `/`, which makes a mean of a sum."""

    function: str
    operand: Written
    number: float


Written: TypeAlias = "Expression | Of | With"
"""A predicate, or what is made of several."""

_LOGIC: dict[str, Callable[[bool, bool], bool]] = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "*": operator.mul,
    "min": min,
    "max": max,
    "-": operator.sub,
    "/": operator.truediv,
}
_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_IN_ORDER = ("-", "/")
"""Functions whose operands must not change places, and are two."""


@dataclass(eq=False, slots=True)
class PairNode:
    """A node, with the fields of the source."""

    number: int
    key: Hashable
    """The function, and the number that belongs to it; of a leaf, its predicate."""
    children: tuple[PairNode, ...]
    level: int
    use_count: int = 0
    subscriptions: list[Hashable] = field(default_factory=list)
    parents: list[tuple[int, int]] = field(default_factory=list)
    """Numbers of nodes, and the place of this one among their operands, sorted."""
    operands: list[Worth | None] = field(default_factory=list)
    """Between events all of them are undefined."""


Cost: TypeAlias = "Callable[[str, PairNode | Planned, PairNode | Planned, bool], float]"
"""What a node costs: its function, its operands, and whether it exists."""


class Planned(NamedTuple):
    """A node that is yet to be made."""

    key: Hashable
    children: tuple[PairNode | Planned, ...]


def made_nodes(function: str, one: PairNode | Planned, other: PairNode | Planned, exists: bool) -> float:
    """Return 1 for a node that is to be made: the fewest new nodes are wanted."""
    return 0.0 if exists else 1.0


class OperandTree:
    """The tree, with the general filter.

    >>> from tamis.language import parse
    >>> tree = OperandTree()
    >>> shops = Of("+", (parse("a >= 200"), parse("b >= 100"), parse("c >= 600")))
    >>> tree.add("cheap together", With("<=", shops, 1000))
    >>> tree.match({"a": 240, "b": 120, "c": 630}), tree.match({"a": 300, "b": 170, "c": 630})
    (['cheap together'], [])
    """

    def __init__(self, *, arrangement: str = REPAIRED, look_up: str = TABLE, cost: Cost = made_nodes) -> None:
        assert arrangement in ARRANGEMENTS, arrangement
        assert look_up in LOOK_UPS, look_up
        self._is_printed, self._is_by_parents, self._cost = arrangement == PRINTED, look_up == PARENTS, cost
        self.leaves: dict[Expression, PairNode] = {}
        """PT: from predicates to leaves."""
        self.roots: dict[Hashable, PairNode] = {}
        """ST: from subscriptions to roots."""
        self.nodes: dict[int, PairNode] = {}
        self._table: dict[Hashable, PairNode] = {}
        self._next = 0

    # -- Insertion and removal

    def add(self, subscription: Hashable, written: Written) -> None:
        """Insert an expression; nodes that exist are used, and never changed."""
        root = self._made(self._planned(written))
        for node in _below(root):
            node.use_count += 1
        root.subscriptions.append(subscription)
        self.roots[subscription] = root

    def remove(self, subscription: Hashable) -> None:
        """Remove an expression, and the nodes that were only its own."""
        root = self.roots.pop(subscription)
        root.subscriptions.remove(subscription)
        for node in list(_below(root)):
            node.use_count -= 1
            if not node.use_count:
                del self.nodes[node.number]
                self._table.pop(_address(node.key, node.children), None)
                for place, child in enumerate(node.children):
                    child.parents.remove((node.number, place))
                if not node.children:
                    del self.leaves[node.key]  # type: ignore[arg-type]

    def _planned(self, written: Written) -> PairNode | Planned:
        match written:
            case With(function, operand, number):
                below = self._planned(operand)
                return self._known((function, number), (below,)) or Planned((function, number), (below,))
            case Of(function, operands):
                if function in _IN_ORDER:
                    assert len(operands) == 2, f"{function} takes two operands"
                    pair = tuple(map(self._planned, operands))
                    return self._known(function, pair) or Planned(function, pair)
                return self._arranged(function, [self._planned(each) for each in _flat(function, operands)])
        return self.leaves.get(written) or Planned(written, ())

    def _arranged(self, function: str, operands: list[PairNode | Planned]) -> PairNode | Planned:
        """Algorithm 6: return the best of all ways to put brackets around operands in this order."""
        if not self._is_printed:
            operands = sorted(operands, key=lambda each: each.number if isinstance(each, PairNode) else inf)
        count = len(operands)
        best: dict[tuple[int, int], tuple[float, list[PairNode | Planned]]] = {
            (place, place): (0.0, [each]) for place, each in enumerate(operands)
        }
        for width in range(1, count):
            for first in range(count - width):
                last = first + width
                least, kept = inf, list[PairNode | Planned]()
                for cut in range(first, last):
                    left_cost, lefts = best[first, cut]
                    right_cost, rights = best[cut + 1, last]
                    for left in lefts:
                        for right in rights:
                            node = self._known(function, (left, right))
                            cost = left_cost + right_cost + self._cost(function, left, right, node is not None)
                            if cost < least:
                                least, kept = cost, []
                            if cost == least and (not kept or (not self._is_printed and node is not None)):
                                kept.append(node or Planned(function, (left, right)))
                best[first, last] = least, kept
        return best[0, count - 1][1][0]

    def _known(self, key: Hashable, children: Sequence[PairNode | Planned]) -> PairNode | None:
        """Return the node of a function over operands, if there is one."""
        nodes = [child for child in children if isinstance(child, PairNode)]
        if len(nodes) < len(children):
            return None
        if not self._is_by_parents:
            return self._table.get(_address(key, nodes))
        for number in _in_all([{}.fromkeys(parent for parent, _ in node.parents) for node in nodes]):
            node = self.nodes[number]
            if _address(node.key, node.children) == _address(key, nodes):
                return node
        return None

    def _made(self, planned: PairNode | Planned) -> PairNode:
        if isinstance(planned, PairNode):
            return planned
        children = tuple(map(self._made, planned.children))
        known = self._known(planned.key, children) if children else self.leaves.get(planned.key)  # type: ignore[call-overload]
        if known is not None:  # it was made a moment ago: it stands twice in the expression
            return known
        level = 1 + max((child.level for child in children), default=0)
        node = PairNode(self._next, planned.key, children, level, operands=[UNDEFINED] * len(children))
        self._next += 1
        self.nodes[node.number] = node
        if children:
            self._table[_address(node.key, children)] = node
        else:
            self.leaves[node.key] = node  # type: ignore[index]
        for place, child in enumerate(children):
            insort(child.parents, (node.number, place))
        return node

    # -- Matching

    def match(self, event: Mapping[str, Any]) -> list[Hashable]:
        """Return the subscriptions that match, by the general filter: level by level, values of touched nodes rise."""
        levels: dict[int, list[PairNode]] = {}
        touched: set[int] = set()
        for leaf in self.leaves.values():
            if said_of(leaf.key, event).state:
                levels.setdefault(1, []).append(leaf)
        matched: list[Hashable] = []
        for level in range(1, 1 + max((node.level for node in self.nodes.values()), default=0)):
            for node in levels.pop(level, ()):
                said = applied(node.key, node.operands) if node.children else said_of(node.key, event)
                node.operands = [UNDEFINED] * len(node.children)
                if said.state:
                    matched += node.subscriptions
                for number, place in node.parents:
                    parent = self.nodes[number]
                    if number not in touched:
                        touched.add(number)
                        levels.setdefault(parent.level, []).append(parent)
                    parent.operands[place] = said
        return matched

    def match_top_down(self, event: Mapping[str, Any]) -> list[Hashable]:
        """Return the same by evaluating every expression, operands first."""
        known: dict[int, Worth] = {}

        def said(node: PairNode) -> Worth:
            if node.number not in known:
                known[node.number] = (
                    applied(node.key, list(map(said, node.children))) if node.children else said_of(node.key, event)
                )
            return known[node.number]

        return [subscription for subscription, root in self.roots.items() if said(root).state]


def said_of(predicate: Any, event: Mapping[str, Any]) -> Worth:
    """Return the state of a predicate, and what its attribute is worth: undefined where it is not true."""
    state = truth(predicate, event) is True
    match predicate:
        case Compare(_, Attribute(path), _) if state:
            return Worth(True, attribute_value(event, path))
    return Worth(state, UNDEFINED)


def applied(key: Hashable, operands: Sequence[Worth | None]) -> Worth:
    """Return what a function makes of its operands.

    >>> applied("+", [Worth(True, 170), Worth(True, 30)])
    Worth(state=True, value=200)
    >>> applied("+", [Worth(True, 170), UNDEFINED]), applied("or", [Worth(True, 170), UNDEFINED])
    (Worth(state=False, value=None), Worth(state=True, value=1))
    """
    if isinstance(key, str) and key in _LOGIC:
        one, other = (operand is not None and operand.state for operand in operands)
        state = _LOGIC[key](one, other)
        return Worth(state, int(state))
    values = [operand.value if operand is not None else UNDEFINED for operand in operands]
    if any(value is UNDEFINED for value in values):
        return Worth(False, UNDEFINED)
    if isinstance(key, str):
        value = UNDEFINED if key == "/" and values[1] == 0 else _ARITHMETIC[key](*values)
        return Worth(value is not UNDEFINED, value)
    function, number = cast("tuple[str, float]", key)
    if function in _RELATIONS:
        state = _RELATIONS[function](values[0], number)
        return Worth(state, int(state))
    return Worth(True, _ARITHMETIC[function](values[0], number))


def _flat(function: str, operands: tuple[Written, ...]) -> Iterator[Written]:
    """Yield the operands of the whole region with this function."""
    for operand in operands:
        if isinstance(operand, Of) and operand.function == function:
            yield from _flat(function, operand.operands)
        else:
            yield operand


def _address(key: Hashable, children: Sequence[PairNode]) -> Hashable:
    """Return what a node is found by: its function and its operands, whose order matters only to some."""
    numbers = [child.number for child in children]
    return (key, *(numbers if key in _IN_ORDER else sorted(numbers)))


def _in_all(lists: list[dict[int, None]]) -> list[int]:
    """Return the numbers that stand in all of some sorted lists, which are merged.

    >>> _in_all([{1: None, 4: None, 9: None}, {4: None, 5: None, 9: None}])
    [4, 9]
    """
    common = list(lists[0])
    for numbers in map(list, lists[1:]):
        merged, begin = [], 0
        for number in common:
            begin = bisect_left(numbers, number, begin)
            if begin < len(numbers) and numbers[begin] == number:
                merged.append(number)
        common = merged
    return common


def _below(root: PairNode) -> Iterator[PairNode]:
    """Yield a node and all that it is made of, each once."""
    seen, stack = {root.number}, [root]
    while stack:
        node = stack.pop()
        yield node
        for child in node.children:
            if child.number not in seen:
                seen.add(child.number)
                stack.append(child)
