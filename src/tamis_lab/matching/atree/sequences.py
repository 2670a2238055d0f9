"""Which pairs of events are a sequence, if a node of the tree remembers one event? The A-Tree's own composite events.

A sequence is a node with two operands, left and right. Its edges carry the operand's slot, because which of them was
true matters, and it has an entry in a table of its own: the event for which the left operand was last true, and its
time. (The stamp of the path filter would be overwritten by every event.) If the right operand is true for an event, and
the entry's time is in range, the node is true *for this event*, and whatever stands above it goes on as usual: AND, OR,
and further sequences. Conditions are leaves here, and one shared graph (`atree`) matches all of them.

One entry for each node makes this small, and decides what it can say: of several left events the latest counts. Where a
sequence says AFTER, that one may be too young and an older one would do; the node has forgotten it. `tamis.Standing`
keeps it. Without AFTER, both find the same (`tests/tamis_lab/matching/atree/test_sequences.py`).

Source: Jewel 2004, section 4.3 (docs/bibliography.md).
Departs: the text leaves open whether t is exact, a least or a greatest time; here there are a least and a greatest, as
  in the product. The entry has the first event's time too, so that a sequence of sequences is timed as a whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.language.expressions import Expression
from tamis.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

LEFT, RIGHT = 0, 1
"""The slots of a sequence's operands."""


@dataclass(frozen=True, slots=True)
class Then:
    """The left operand is true for an event, and later the right one, between `after` and `within` seconds later."""

    left: Composite
    right: Composite
    after: float = 0.0
    within: float = math.inf
    is_same: bool = False
    """May one event be both?"""


@dataclass(frozen=True, slots=True)
class AllOf:
    """All operands are true for one event."""

    operands: tuple[Composite, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """An operand is true for an event."""

    operands: tuple[Composite, ...]


Composite: TypeAlias = Expression | Then | AllOf | AnyOf

Occurrence: TypeAlias = tuple[tuple[Any, ...], float]
"""The events that made a node true, in order, and the time of the first of them."""


@dataclass(slots=True)
class _SequenceNode:
    """A node of the tree: what it is, who is above it, by slot, and how far it is from the leaves."""

    what: Composite
    level: int
    parents: list[tuple[_SequenceNode, int]] = field(default_factory=list)
    subscriptions: dict[Hashable, None] = field(default_factory=dict)
    users: int = 0
    handle: int | None = None
    """Of a leaf, its number in the shared graph."""
    entry: Occurrence | None = None
    """Of a sequence: for which event its left operand was last true."""
    operands: dict[int, Occurrence] = field(default_factory=dict)
    """Which slots were true for the present event."""


class SequenceTree:
    """Composite subscriptions over one shared graph of conditions.

    >>> from tamis import parse
    >>> tree = SequenceTree(algorithm="naive")
    >>> tree.add("guess", Then(parse("NOT ok"), parse("ok"), within=300.0))
    >>> tree.match({"ok": False}, 0.0, "e1"), tree.match({"ok": True}, 9.0, "e2")
    ([], [('guess', ('e1', 'e2'))])
    """

    def __init__(self, algorithm: str = "atree") -> None:
        self._conditions = Matcher(algorithm)
        self._nodes: dict[Composite, _SequenceNode] = {}
        self._leaves: dict[int, _SequenceNode] = {}
        self._wanted: dict[Hashable, Composite] = {}
        self._next_handle = 0
        self._depth = 0

    def __len__(self) -> int:
        return len(self._wanted)

    @property
    def node_count(self) -> int:
        """How many nodes there are; equal ones are one."""
        return len(self._nodes)

    @property
    def entry_count(self) -> int:
        """How many sequences remember an event."""
        return sum(node.entry is not None for node in self._nodes.values())

    # -- Subscriptions

    def add(self, subscription: Hashable, wanted: Composite) -> None:
        """Register a composite subscription; nodes that are there already are shared, with what they remember."""
        if subscription in self._wanted:
            raise ValueError(f"{subscription!r} is registered already")
        self._wanted[subscription] = wanted
        self._node(wanted).subscriptions[subscription] = None
        self._use(wanted)

    def _node(self, wanted: Composite) -> _SequenceNode:
        node = self._nodes.get(wanted)
        if node is not None:
            return node
        below = [self._node(operand) for operand in _operands(wanted)]
        node = self._nodes[wanted] = _SequenceNode(wanted, 1 + max((each.level for each in below), default=-1))
        for slot, operand in enumerate(below):
            operand.parents.append((node, slot))
        if isinstance(wanted, Expression):
            node.handle = self._next_handle
            self._next_handle += 1
            self._leaves[node.handle] = node
            self._conditions.add(node.handle, wanted)
        self._depth = max(self._depth, node.level)
        return node

    def _use(self, wanted: Composite) -> None:
        node = self._nodes[wanted]
        node.users += 1
        if node.users == 1:
            for operand in _operands(wanted):
                self._use(operand)

    def remove(self, subscription: Hashable) -> None:
        """Remove a subscription, and the nodes that nobody else uses."""
        wanted = self._wanted.pop(subscription)
        del self._nodes[wanted].subscriptions[subscription]
        self._release(wanted)

    def _release(self, wanted: Composite) -> None:
        node = self._nodes[wanted]
        node.users -= 1
        if node.users:
            return
        del self._nodes[wanted]
        if node.handle is not None:
            del self._leaves[node.handle]
            self._conditions.remove(node.handle)
        for operand in _operands(wanted):
            below = self._nodes[operand]
            below.parents = [each for each in below.parents if each[0] is not node]
            self._release(operand)

    # -- Events

    def match(self, event: Mapping[str, Any], at: float, event_id: Any) -> list[tuple[Hashable, tuple[Any, ...]]]:
        """Return the subscriptions that are true for an event, each with the events that make it so.

        Truth rises level by level, so a node is looked at when all of its operands have been.
        """
        queues: list[dict[int, _SequenceNode]] = [{} for _ in range(self._depth + 1)]
        reports: list[tuple[Hashable, tuple[Any, ...]]] = []
        for handle in sorted(self._conditions.match(event)):
            self._rise(self._leaves[handle], ((event_id,), at), queues, reports)
        for queue in queues:
            for node in queue.values():
                occurrence = _evaluated(node, at)
                node.operands.clear()
                if occurrence is not None:
                    self._rise(node, occurrence, queues, reports)
        return reports

    def _rise(
        self,
        node: _SequenceNode,
        occurrence: Occurrence,
        queues: list[dict[int, _SequenceNode]],
        reports: list[tuple[Hashable, tuple[Any, ...]]],
    ) -> None:
        """Report a node that is true for an event, and enter it into the slots of those above it."""
        reports += [(subscription, occurrence[0]) for subscription in node.subscriptions]
        for parent, slot in node.parents:
            parent.operands[slot] = occurrence
            queues[parent.level][id(parent)] = parent


def _operands(wanted: Composite) -> tuple[Composite, ...]:
    match wanted:
        case Then(left, right):
            return left, right
        case AllOf(operands) | AnyOf(operands):
            return operands
    return ()


def _evaluated(node: _SequenceNode, at: float) -> Occurrence | None:
    """Return what makes a node true for the present event, None if it is not."""
    operands = node.operands
    match node.what:
        case AllOf(all_operands):
            return _together(operands) if len(operands) == len(all_operands) else None
        case AnyOf():
            return operands[min(operands)]
        case Then() as sequence:
            if sequence.is_same and LEFT in operands:
                node.entry = operands[LEFT]
            occurrence = None
            if RIGHT in operands and node.entry is not None:
                events, first = node.entry
                if sequence.after <= at - first <= sequence.within:
                    occurrence = (*events, *operands[RIGHT][0]), first
            if LEFT in operands:
                node.entry = operands[LEFT]
            return occurrence
    raise AssertionError("a leaf is matched by the shared graph")


def _together(operands: Mapping[int, Occurrence]) -> Occurrence:
    events: dict[Any, None] = {}
    for slot in sorted(operands):
        events.update(dict.fromkeys(operands[slot][0]))
    return tuple(events), min(first for _, first in operands.values())
