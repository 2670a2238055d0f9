"""What does a predicate ask, and of which axis?

A *leaf* is a predicate laid out for machines: an axis, an operation, and operands among those of the axis. Most
predicates are leaves as they are. What is none (a pattern, a comparison of two attributes) becomes the leaf that asks
for the truth of the whole predicate.

`Leaves` collects them. It is on the path of every registration, so it looks for the simple cases first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import (
    CONNECTIVES,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    Like,
    Literal,
    Not,
    Test,
)
from tamis.language.patterns import ANY_TEXT, like_pieces
from tamis.language.rewrites.canonical import MIRRORED
from tamis.language.rewrites.negation import COMPLEMENTS
from tamis.matching.axes import STRING, TRUTH, Axis, AxisKey, axis_kind, sorting_keys
from tamis.matching.kernels import sort_sets
from tamis.selectivity.operations import (
    ABOVE,
    AMONG,
    AT_LEAST,
    AT_MOST,
    BELOW,
    BEYOND,
    EQUAL,
    FROM_TO,
    NOT_AMONG,
    UNEQUAL,
    WITHIN,
)

_OPERATORS = {"=": EQUAL, "<=>": EQUAL, "<>": UNEQUAL, "<": BELOW, "<=": AT_MOST, ">": ABOVE, ">=": AT_LEAST}
_TERMS = frozenset({Attribute, Call})

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LeafArrays:
    """Leaves over axes, the operands of each axis in order."""

    axes: list[Axis]
    leaf_axes: npt.NDArray[np.uint32]
    leaf_operations: npt.NDArray[np.uint8]
    leaf_a: npt.NDArray[np.int32]
    """The first operand, or the set of AMONG and NOT_AMONG."""
    leaf_b: npt.NDArray[np.int32]
    set_starts: Ints
    set_operands: npt.NDArray[np.int32]


class Leaves:
    """Leaves under construction, numbered as they come.

    >>> from tamis.language.parser import parse
    >>> leaves = Leaves()
    >>> [leaves.leaf(parse(text)) for text in ("price < 20", "price > 10", "NOT signed", "TRUE")]
    [0, 1, 2, -1]
    >>> [(axis.key.term.path, axis.operands) for axis in leaves.finished().axes]
    [(('price',), [10, 20]), (('signed',), [False])]
    """

    def __init__(self) -> None:
        self._axis_numbers: dict[AxisKey, int] = {}
        # By the identity of the term, which the parser shares between texts; `_terms` keeps them alive.
        self._known_axes: dict[tuple[int, str], int] = {}
        self._terms: list[Expression] = []
        self._operands: list[list[Any]] = []
        self._leaves: list[int] = []  # axis, operation, a and b of each leaf
        self._leaf_count = 0
        self._set_axes: list[int] = []
        self._set_ends: list[int] = []
        self._set_operands: list[int] = []

    def operation(self, leaf: int) -> int:
        """Return what a leaf asks."""
        return self._leaves[4 * leaf + 1]

    def leaf(self, node: Any) -> int:
        """Return the leaf of a predicate, -1 for a connective or constant."""
        kind = type(node)
        if kind is Compare:
            left, right = node.left, node.right
            if type(right) is Literal and type(left) is not Literal:
                return self._compared(node, node.operator, left, right.value)
            if type(left) is Literal and type(right) is not Literal:
                return self._compared(node, MIRRORED[node.operator], right, left.value)
            return self.truth(node, True)
        if kind is Between and type(node.low) is Literal and type(node.high) is Literal:
            return self._between(node, node.value, node.low.value, node.high.value, WITHIN)
        if kind is In:
            return self._among(node, node.value, node.values, AMONG)
        match node:
            case Not(Between(term, Literal(low), Literal(high)) as inner):
                return self._between(inner, term, low, high, BEYOND)
            case Not(In(term, members) as inner):
                return self._among(inner, term, members, NOT_AMONG)
            case Not(Compare(operator, left, right)) if operator in COMPLEMENTS:
                return self.leaf(Compare(COMPLEMENTS[operator], left, right))
            case Not(Attribute() as flag):
                return self._compared(node, "=", flag, False)
            case Attribute():
                return self._compared(node, "=", node, True)
            case Like(term, pattern, escape):
                return self._like(node, term, pattern, escape)
            case Test("startswith", (term, Literal(str(prefix)))):
                return self._prefix(term, prefix)
            case Not(inner) if not isinstance(inner, CONNECTIVES) and not isinstance(inner, Literal):
                return self.truth(inner, False)
            case Literal():
                return -1
            case _:
                return -1 if isinstance(node, CONNECTIVES) else self.truth(node, True)

    def _compared(self, node: Expression, operator: str, term: Expression, operand: Any) -> int:
        kind = axis_kind(operand)
        if kind == TRUTH or type(term) not in _TERMS:
            return self.truth(node, True)
        axis = self._known_axes.get((id(term), kind))
        if axis is None:
            axis = self._axis(term, kind)
        operands = self._operands[axis]
        self._leaves += (axis, _OPERATORS[operator], len(operands), 0)
        operands.append(operand)
        self._leaf_count += 1
        return self._leaf_count - 1

    def _between(self, node: Expression, term: Expression, low: Any, high: Any, operation: int) -> int:
        kind = axis_kind(low)
        if kind == TRUTH or kind != axis_kind(high) or type(term) not in _TERMS:
            return self.truth(node, operation == WITHIN)
        axis = self._known_axes.get((id(term), kind))
        if axis is None:
            axis = self._axis(term, kind)
        operands = self._operands[axis]
        first = len(operands)
        self._leaves += (axis, operation, first, first + 1)
        operands += (low, high)
        self._leaf_count += 1
        return self._leaf_count - 1

    def _among(self, node: Expression, term: Expression, members: tuple[Any, ...], operation: int) -> int:
        kinds = (
            set(map(axis_kind, members)) if None not in members else {axis_kind(m) for m in members if m is not None}
        )
        if len(kinds) != 1 or TRUTH in kinds or type(term) not in _TERMS:
            return self.truth(node, operation == AMONG)
        if None in members:
            if operation == NOT_AMONG:  # never true: it is unknown wherever it is not false
                return self.truth(node, False)
            members = tuple(member for member in members if member is not None)
        axis = self._axis(term, kinds.pop())
        operands = self._operands[axis]
        first = len(operands)
        operands += members
        self._set_operands += range(first, len(operands))
        self._set_ends.append(len(self._set_operands))
        self._set_axes.append(axis)
        return self._new_leaf(axis, operation, len(self._set_axes) - 1)

    def _like(self, node: Expression, term: Expression, pattern: str, escape: str) -> int:
        match like_pieces(pattern, escape):
            case []:
                return self._compared(node, "=", term, "")
            case [str(text)]:
                return self._compared(node, "=", term, text)
            case [str(prefix), wild] if wild is ANY_TEXT:
                return self._prefix(term, prefix)
            case _:
                return self.truth(node, True)

    def _prefix(self, term: Expression, prefix: str) -> int:
        """`startswith` as an interval: from the prefix up to the least text above all that start with it."""
        above = _least_text_above(prefix)
        if type(term) not in _TERMS or above is None:
            return self.truth(Test("startswith", (term, Literal(prefix))), True)
        axis = self._axis(term, STRING)
        operands = self._operands[axis]
        operands += (prefix, above)
        return self._new_leaf(axis, FROM_TO, len(operands) - 2, len(operands) - 1)

    def truth(self, predicate: Expression, wanted: bool) -> int:
        axis = self._axis(predicate, TRUTH)
        if not self._operands[axis]:
            self._operands[axis] += (False, True)
        return self._new_leaf(axis, EQUAL, int(wanted))

    def _axis(self, term: Expression, kind: str) -> int:
        number = self._known_axes.get((id(term), kind))
        if number is None:
            number = self._axis_numbers.setdefault(AxisKey(term, kind), len(self._operands))
            if number == len(self._operands):
                self._operands.append([])
            self._known_axes[id(term), kind] = number
            self._terms.append(term)
        return number

    def _new_leaf(self, axis: int, operation: int, a: int, b: int = 0) -> int:
        self._leaves += (axis, operation, a, b)
        self._leaf_count += 1
        return self._leaf_count - 1

    # -- The result

    def finished(self) -> LeafArrays:
        """Sort the operands of every axis, and return the leaves."""
        axes: list[Axis] = []
        places: list[Ints] = []
        for key, operands in zip(self._axis_numbers, self._operands, strict=True):
            unique, place = sorted_operands(key.kind, operands)
            axes.append(Axis(key, unique))
            places.append(place)
        leaves = np.array(self._leaves, np.int64).reshape(-1, 4)
        leaf_axes, operations = leaves[:, 0].astype(np.uint32), leaves[:, 1].astype(np.uint8)
        a, b = leaves[:, 2], leaves[:, 3]
        offsets = np.concatenate([[0], np.cumsum([len(place) for place in places])]).astype(np.int64)
        flat = np.concatenate([*places, np.zeros(1, np.int64)])
        is_set = (operations == AMONG) | (operations == NOT_AMONG)
        moved_a = flat[np.minimum(offsets[leaf_axes] + a, len(flat) - 1)].astype(np.int32)
        moved_b = flat[np.minimum(offsets[leaf_axes] + b, len(flat) - 1)].astype(np.int32)
        set_ends = np.array([0, *self._set_ends], np.int64)
        owners = np.repeat(np.array(self._set_axes, np.int64), np.diff(set_ends))
        members = (
            flat[offsets[owners] + np.array(self._set_operands, np.int64)] if len(owners) else np.zeros(0, np.int64)
        )
        set_starts, sorted_members = np.empty(len(set_ends), np.int64), np.empty(len(members), np.int32)
        member_count = sort_sets(set_ends, members, set_starts, sorted_members)
        return LeafArrays(
            axes,
            leaf_axes,
            operations,
            np.where(is_set, a, moved_a).astype(np.int32),
            moved_b,
            set_starts,
            sorted_members[:member_count],
        )


def _least_text_above(prefix: str) -> str | None:
    """Return the least text that is greater than every text with this prefix; None if there is none."""
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            following = last + 1 if last + 1 != 0xD800 else 0xE000  # surrogates are no characters
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return None


def sorted_operands(kind: str, operands: list[Any]) -> tuple[list[Any], Ints]:
    """Return the distinct operands in order, and the place of each given one among them."""
    if kind == STRING:
        unique = sorted(set(operands))
        place = {operand: index for index, operand in enumerate(unique)}
        return unique, np.fromiter(map(place.__getitem__, operands), np.int64, len(operands))
    if kind == TRUTH:
        return [False, True], np.tile(np.array([0, 1], np.int64), len(operands) // 2)
    keys = sorting_keys(kind, operands)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True, equal_nan=True)
    return [operands[index] for index in first], places.astype(np.int64)
