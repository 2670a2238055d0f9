"""What does a predicate ask, and of which axis? Predicates, encoded.

A *leaf* is a predicate laid out for machines: an axis, an operation, and operands among those of the axis. Most
predicates are leaves as they are. What is none (a pattern, a comparison of two attributes) becomes the leaf that asks
for the truth of the whole predicate.

`Leaves` collects them. It is on the path of every registration, so it looks for the simple cases first.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import (
    CONNECTIVES,
    MIRRORED,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    Literal,
    Not,
    Test,
)
from tamis.language.patterns import least_text_above
from tamis.language.ranges.simple import BETWEEN, IN, PREFIX, simple
from tamis.matching.axes import STRING, TRUTH, Axis, AxisKey, axis_kind, sorting_keys
from tamis.matching.kernels import sort_sets
from tamis.matching.operations import (
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
from tamis.ragged import Ragged

if TYPE_CHECKING:
    from collections.abc import Iterable

_OPERATORS = {"=": EQUAL, "<=>": EQUAL, "<>": UNEQUAL, "<": BELOW, "<=": AT_MOST, ">": ABOVE, ">=": AT_LEAST}
_TERMS = frozenset({Attribute, Call})
_EXACT_IN_DOUBLES = 2**53
_NOWHERE: tuple[int, Any] = (0, None)
_NO_PLACES: dict[int, tuple[int, Any]] = {}
_Numbers: TypeAlias = "defaultdict[Any, int]"
"""Operands, each with its number: who is asked for gets the next."""
_PLAIN_TYPES = frozenset({int, float, str})
"""Types of which all values belong to one axis of a term, integers as long as they are short."""

Ints = npt.NDArray[np.int64]
Starts = npt.NDArray[np.int32]
"""Where the members of each of some groups start; the last entry is where the last group ends."""


class LeafColumns(NamedTuple):
    """What each leaf asks. Invariant: operands are counted from 0 within the leaf's own axis.

    axes        uint32[leaves]  the axis of each
    operations  uint8[leaves]   one of `operations`
    a           int32[leaves]   the first operand; for AMONG and NOT_AMONG the number of the set
    b           int32[leaves]   the last operand of WITHIN, BEYOND and FROM_TO; of others it says nothing
    """

    axes: npt.NDArray[np.uint32]
    operations: npt.NDArray[np.uint8]
    a: npt.NDArray[np.int32]
    b: npt.NDArray[np.int32]

    @property
    def is_set(self) -> npt.NDArray[np.bool_]:
        """Which leaves ask for the members of a set."""
        return np.asarray((self.operations == AMONG) | (self.operations == NOT_AMONG))

    @property
    def is_span(self) -> npt.NDArray[np.bool_]:
        """Which leaves have a second operand."""
        return np.isin(self.operations, (WITHIN, BEYOND, FROM_TO))

    def chosen(self, numbers: npt.NDArray[Any]) -> LeafColumns:
        """Return some of the leaves, by number or by a flag for each."""
        return LeafColumns(*(column[numbers] for column in self))


@dataclass(frozen=True, slots=True)
class LeafTables:
    """Leaves over axes. Invariant: the operands of an axis are in order, and so are the members of a set."""

    axes: list[Axis]
    leaves: LeafColumns
    sets: Ragged[np.int32]
    """The operands of the sets that leaves ask for."""


class ReadLeaves(NamedTuple):
    """Leaves that come in columns, behind those that are there, over axes that are there and operands of their own.

    axes        int64[leaves]
    operations  uint8[leaves]
    a, b        int64[leaves]  operands; of AMONG and NOT_AMONG a is the number of the set
    sets        lists of operands
    places      of each axis: which operands lie on it, int64[:], and their values
    """

    axes: Ints
    operations: npt.NDArray[np.uint8]
    a: Ints
    b: Ints
    sets: Ragged[np.int64]
    operand_count: int
    places: dict[int, tuple[Ints, list[Any]]]


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
        self._operands: list[_Numbers] = []
        # By the type of the operand and the identity of the term, which the parser shares between texts: 16 times the
        # axis, and its operands. Only for types of which every value fits the axis. What is known by its identity has
        # to be kept, or another may come to bear the number.
        self._places: dict[type, dict[int, tuple[int, _Numbers]]] = {plain: {} for plain in _PLAIN_TYPES}
        self._kept: list[Expression] = []
        self._comparisons: dict[int, int] = {}  # the leaf of each comparison by its identity, for the same reason
        self._asked: list[int] = []  # of each leaf: 16 times its axis plus its operation
        self._firsts: list[int] = []
        self._seconds: list[int] = []
        self._set_ends: list[int] = []
        self._set_operands: list[int] = []

    def operation(self, leaf: int) -> int:
        """Return what a leaf asks."""
        return self._asked[leaf] & 15

    def leaf(self, node: Any) -> int:
        """Return the leaf of a predicate, -1 for a connective or constant."""
        return self.leaves((node,))[0]

    def leaves(self, nodes: Iterable[Any]) -> list[int]:
        """Return the leaf of each of some predicates, -1 for a connective or constant.

        Written out for what most subscriptions ask: each call less is felt where a million are registered.
        """
        comparisons, places, asked = self._comparisons, self._places, self._asked
        firsts, seconds = self._firsts, self._seconds
        least = -_EXACT_IN_DOUBLES
        numbers = []
        for node in nodes:
            kind = type(node)
            if kind is Compare:
                leaf = comparisons.get(id(node))
                if leaf is None:
                    leaf = comparisons[id(node)] = self._comparison(node)
                    self._kept.append(node)
                numbers.append(leaf)
                continue
            if kind is Between and type(node.low) is Literal is type(node.high):
                low: Any = node.low.value
                high: Any = node.high.value
                axis, operands = places.get(type(low), _NO_PLACES).get(id(node.value), _NOWHERE)
                if (
                    operands is not None
                    and type(high) is type(low)
                    and (
                        type(low) is not int
                        or (least <= low <= _EXACT_IN_DOUBLES and least <= high <= _EXACT_IN_DOUBLES)
                    )
                ):
                    numbers.append(len(asked))
                    asked.append(axis + WITHIN)
                    firsts.append(operands[low])
                    seconds.append(operands[high])
                    continue
            elif kind is In:
                members = node.values
                types = set(map(type, members))
                if len(types) == 1:
                    axis, operands = places.get(types.pop(), _NO_PLACES).get(id(node.value), _NOWHERE)
                    if operands is not None and (type(members[0]) is str or _are_short(members)):
                        numbers.append(len(asked))
                        asked.append(axis + AMONG)
                        firsts.append(len(self._set_ends))
                        seconds.append(0)
                        self._set_operands += map(operands.__getitem__, members)
                        self._set_ends.append(len(self._set_operands))
                        continue
            numbers.append(self._other(node))
        return numbers

    def _other(self, node: Any) -> int:
        asked = simple(node)
        positive, is_true = (node.value, False) if type(node) is Not else (node, True)
        if asked is not None and not (asked.is_negated and asked.operator not in (BETWEEN, IN)):
            term, operands = asked.term, asked.operands
            if asked.operator == IN:
                return self._among(positive, term, operands, AMONG if is_true else NOT_AMONG)
            if asked.operator == BETWEEN:
                return self._between(positive, term, operands, WITHIN if is_true else BEYOND)
            if asked.operator == PREFIX:
                return self._prefix(term, operands[0])
            return self._compared(node, asked.operator, term, operands[0])
        if isinstance(positive, (*CONNECTIVES, Literal)):
            return -1
        return self.truth(positive, is_true)

    def _comparison(self, node: Compare) -> int:
        """Return the leaf of a comparison: `simple`, written out, because every new condition passes here."""
        left, right = node.left, node.right
        if type(right) is Literal and type(left) is not Literal:
            return self._compared(node, node.operator, left, right.value)
        if type(left) is Literal and type(right) is not Literal:
            return self._compared(node, MIRRORED[node.operator], right, left.value)
        return self.truth(node, True)

    def _compared(self, node: Expression, operator: str, term: Expression, operand: Any) -> int:
        kind = axis_kind(operand)
        if kind == TRUTH or type(term) not in _TERMS:
            return self.truth(node, True)
        axis, operands = self._place(term, kind)
        return self._new_leaf(axis, _OPERATORS[operator], operands[operand])

    def _between(self, node: Expression, term: Expression, operands: tuple[Any, ...], operation: int) -> int:
        low, high = operands
        kind = axis_kind(low)
        if kind == TRUTH or kind != axis_kind(high) or type(term) not in _TERMS:
            return self.truth(node, operation == WITHIN)
        axis, numbers = self._place(term, kind, type(low))
        first = numbers[low]
        return self._new_leaf(axis, operation, first, numbers[high])

    def _among(self, node: Expression, term: Expression, members: tuple[Any, ...], operation: int) -> int:
        kinds = {axis_kind(member) for member in members if member is not None}
        if len(kinds) != 1 or TRUTH in kinds or type(term) not in _TERMS:
            return self.truth(node, operation == AMONG)
        if None in members:
            if operation == NOT_AMONG:  # never true: it is unknown wherever it is not false
                return self.truth(node, False)
            members = tuple(member for member in members if member is not None)
        axis, operands = self._place(term, kinds.pop(), type(members[0]))
        self._set_operands += map(operands.__getitem__, members)
        self._set_ends.append(len(self._set_operands))
        return self._new_leaf(axis, operation, len(self._set_ends) - 1)

    def _prefix(self, term: Expression, prefix: str) -> int:
        """`startswith` as an interval: from the prefix up to the least text above all that start with it."""
        above = least_text_above(prefix)
        if type(term) not in _TERMS or above is None:
            return self.truth(Test("startswith", (term, Literal(prefix))), True)
        axis, operands = self._place(term, STRING)
        first = operands[prefix]
        return self._new_leaf(axis, FROM_TO, first, operands[above])

    def truth(self, predicate: Expression, wanted: bool) -> int:
        """Return the leaf that asks whether a predicate is true, or whether it is false."""
        axis, operands = self._place(predicate, TRUTH)
        operands.update({False: 0, True: 1})
        return self._new_leaf(axis, EQUAL, int(wanted))

    def _place(self, term: Expression, kind: str, operand_type: type | None = None) -> tuple[int, _Numbers]:
        """Return 16 times an axis, and its operands; operands of a plain type will find it by themselves next time."""
        number = self._axis_numbers.setdefault(AxisKey(term, kind), len(self._operands))
        if number == len(self._operands):
            self._operands.append(defaultdict(count().__next__))
        place = 16 * number, self._operands[number]
        if operand_type in _PLAIN_TYPES:
            self._places[operand_type][id(term)] = place
            self._kept.append(term)
        return place

    def _new_leaf(self, axis: int, operation: int, first: int, second: int = 0) -> int:
        self._asked.append(axis + operation)
        self._firsts.append(first)
        self._seconds.append(second)
        return len(self._asked) - 1

    # -- The result

    def __len__(self) -> int:
        return len(self._asked)

    def axis(self, term: Expression, kind: str) -> int:
        """Return the number of an axis, a new one if it is not there yet."""
        return self._place(term, kind)[0] >> 4

    def finished(self, read: ReadLeaves | None = None) -> LeafTables:
        """Sort the operands of every axis, and return the leaves, those that come in columns at the end."""
        axes: list[Axis] = []
        places: list[Ints] = []
        read_places = np.zeros(0 if read is None else read.operand_count, np.int64)
        for number, (key, operands) in enumerate(zip(self._axis_numbers, self._operands, strict=True)):
            own = list(operands)
            if read is not None and number in read.places:
                read_operands, values = read.places[number]
                unique, place = sorted_operands(key.kind, own + values)
                read_places[read_operands] = place[len(own) :]
                place = place[: len(own)]
            else:
                unique, place = sorted_operands(key.kind, own)
            axes.append(Axis(key, unique))
            places.append(place)
        asked = integers(self._asked)
        leaf_axes, operations = (asked >> 4).astype(np.uint32), (asked & 15).astype(np.uint8)
        a, b = integers(self._firsts), integers(self._seconds)
        offsets = np.concatenate([[0], np.cumsum([len(place) for place in places])]).astype(np.int64)
        flat = np.concatenate([*places, np.zeros(1, np.int64)])
        is_set = (operations == AMONG) | (operations == NOT_AMONG)
        base = offsets[leaf_axes]
        moved_a = np.where(is_set, a, flat[base + np.where(is_set, 0, a)]).astype(np.int32)
        moved_b = flat[base + b].astype(np.int32)
        set_ends = starts_of_ends(self._set_ends)
        owners = np.repeat(leaf_axes[is_set], np.diff(set_ends))
        members = flat[offsets[owners] + integers(self._set_operands)]
        leaves = LeafColumns(leaf_axes, operations, moved_a, moved_b)
        if read is not None:
            leaves, set_ends, members = _with_read(leaves, set_ends, members, read, read_places)
        set_starts, sorted_members = np.empty(len(set_ends), np.int32), np.empty(len(members), np.int32)
        member_count = sort_sets(set_ends, members, set_starts, sorted_members)
        return LeafTables(axes, leaves, Ragged(set_starts, sorted_members[:member_count]))


def _with_read(
    leaves: LeafColumns, set_ends: Starts, members: Ints, read: ReadLeaves, places: Ints
) -> tuple[LeafColumns, Starts, Ints]:
    """Return leaves and sets with those behind them that come in columns, whose operands lie in these places."""
    is_set = (read.operations == AMONG) | (read.operations == NOT_AMONG)
    a = np.where(is_set, read.a + len(set_ends) - 1, places[np.where(is_set, 0, read.a)] if len(places) else 0)
    b = places[read.b] if len(places) else read.b
    joined = LeafColumns(
        np.concatenate([leaves.axes, read.axes.astype(np.uint32)]),
        np.concatenate([leaves.operations, read.operations]),
        np.concatenate([leaves.a, a.astype(np.int32)]),
        np.concatenate([leaves.b, b.astype(np.int32)]),
    )
    ends = np.concatenate([set_ends, len(members) + read.sets.starts[1:].astype(np.int32)]).astype(np.int32)
    return joined, ends, np.concatenate([members, places[read.sets.values]])


def integers(values: list[int], dtype: Any = np.int64) -> npt.NDArray[Any]:
    """Return a list of integers as an array, faster than `np.array`, which looks for what they might be."""
    return np.fromiter(values, dtype, len(values))


def starts_of_ends(ends: list[int]) -> Starts:
    """Return where groups start, given where each ends."""
    return np.concatenate([np.zeros(1, np.int32), integers(ends, np.int32)])


def _are_short(numbers: tuple[Any, ...]) -> bool:
    """Do numbers of one type belong to one axis (see `axis_kind`)?"""
    return type(numbers[0]) is not int or -_EXACT_IN_DOUBLES <= min(numbers) <= max(numbers) <= _EXACT_IN_DOUBLES


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
