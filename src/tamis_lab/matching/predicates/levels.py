"""Which of many predicates does an event fulfil?

One index per axis. An event's value is a code on the axis (see `axes`), and every predicate is a set of codes: a
point, all codes up to one, all from one on, or an interval. So the predicates that hold at a code are four runs of
predicate numbers:

    code         0   1   2   3   4   5   6   7          operands  10     20     30
    a = 20                       x                      codes   1  2  3   4  5   6  7
    a < 30           x   x   x   x   x                  up to 5: sorted by where they end, the longest first
    a >= 20                      x   x   x   x          from 4:  sorted by where they start
    a BETWEEN 10 AND 20  x   x   x                      2 to 4:  in a segment tree over the codes
    a <> 20          x   x   x       x   x   x          up to 3, and from 5: two pieces, never both

A table by code tells where the first three runs end; the fourth is gathered on the way from a leaf of the tree to its
root. Nothing is compared: the work is that of writing the numbers down.

Source: one-dimensional indexes, one per attribute, are common to the counting family; Bittner 2008, section 4.2.3
  (docs/bibliography.md).
Departs: one index per attribute and kind of value takes all operators; a complement is two pieces instead of an index
  with inverted output, which would need events that have every attribute.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.matching import operations as op
from tamis.matching.axes import TRUTH
from tamis.matching.encoder import Encoder
from tamis.matching.leaves import Ints, LeafTables, Leaves
from tamis.matching.shares import default_shares
from tamis.ragged import Ragged
from tamis_lab.matching.predicates import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.axes import Codes
    from tamis.matching.columns import Events

Numbers = npt.NDArray[np.uint32]
"""Predicates, by their numbers."""


_RECIPES = np.full((len(op.GUESSES), 2, 2), -1, np.int64)
_RECIPES[op.EQUAL, 0] = kernels.AT_A, kernels.AT_A
_RECIPES[op.BELOW, 0] = kernels.FROM_START, kernels.BEFORE_A
_RECIPES[op.AT_MOST, 0] = kernels.FROM_START, kernels.AT_A
_RECIPES[op.ABOVE, 0] = kernels.AFTER_A, kernels.TO_END
_RECIPES[op.AT_LEAST, 0] = kernels.AT_A, kernels.TO_END
_RECIPES[op.WITHIN, 0] = kernels.AT_A, kernels.AT_B
_RECIPES[op.FROM_TO, 0] = kernels.AT_A, kernels.BEFORE_B
_RECIPES[op.UNEQUAL] = (kernels.FROM_START, kernels.BEFORE_A), (kernels.AFTER_A, kernels.TO_END)
_RECIPES[op.BEYOND] = (kernels.FROM_START, kernels.BEFORE_A), (kernels.AFTER_B, kernels.TO_END)
_SETS = np.zeros(len(op.GUESSES), np.int64)
_SETS[op.AMONG], _SETS[op.NOT_AMONG] = 1, 2


class Level:
    """An immutable index of some predicates."""

    def __init__(self, predicates: Sequence[Expression], numbers: Sequence[int]) -> None:
        leaves = Leaves()
        places = leaves.leaves(predicates)
        assert -1 not in places, "a connective or a constant is not a predicate"
        self.leaves: LeafTables = leaves.finished()
        self.numbers: Numbers = np.empty(len(places), np.uint32)
        """The number of each leaf."""
        self.numbers[places] = np.array(numbers, np.uint32)
        self.axes = self.leaves.axes
        self._encoder: Encoder | None = None
        self._lay_out()

    def __len__(self) -> int:
        return len(self.numbers)

    # -- Building

    def _lay_out(self) -> None:
        leaves, sets = self.leaves.leaves, self.leaves.sets
        tops = np.array([axis.code_count - 1 for axis in self.axes], np.int64)
        at_a = np.where(_SETS[leaves.operations] > 0, leaves.a, 2 * leaves.a.astype(np.int64) + 2)
        is_truth = np.array([axis.key.kind == TRUTH for axis in self.axes], np.bool_)[leaves.axes]
        at_a[is_truth] = leaves.a[is_truth] + 1
        coded = (leaves.axes, leaves.operations, at_a, 2 * leaves.b.astype(np.int64) + 2)
        most = 2 * len(self) + len(sets.values)
        room = kernels.PieceTable(np.empty((most, 3), np.int64), np.empty(most, np.int64))
        set_codes = Ragged(sets.starts, 2 * sets.values.astype(np.int64) + 2)
        count = kernels.write_pieces(kernels.Recipes(_RECIPES, _SETS), tops, coded, set_codes, room)
        pieces = kernels.PieceTable(room.intervals[:count], room.owners[:count])
        self._axes = np.zeros((len(tops), 5), np.int64)
        self._axes[1:, kernels.ROWS] = np.cumsum(tops[:-1] + 2)
        rows = np.zeros((int((tops + 2).sum()) + 1, 3), np.int64)
        entries, kinds = np.empty(count, np.uint32), np.empty(count, np.uint8)
        written = kernels.lay_out_pieces(
            pieces, self.numbers, tops, self._axes, rows, np.empty_like(rows), entries, kinds
        )
        self._rows = rows.astype(np.uint32)
        self._entries = entries
        self._tree_starts = np.zeros(1, np.uint32)
        if written < count:
            inside = kinds == kernels.AS_INSIDE
            self._plant_trees(pieces.intervals[inside], self.numbers[pieces.owners[inside]], tops, written)

    def _plant_trees(self, pieces: Ints, numbers: Numbers, tops: Ints, written: int) -> None:
        """Write the intervals with two ends to segment trees, one for each axis that has any."""
        used = np.unique(pieces[:, 0])
        leaf_counts = np.array([1 << int(tops[axis]).bit_length() for axis in used], np.int64)
        bases = np.concatenate([[0], np.cumsum(2 * leaf_counts)])
        self._axes[used, kernels.TREE] = bases[:-1]
        self._axes[used, kernels.LEAVES] = leaf_counts
        trees = self._axes[pieces[:, 0]]
        intervals = (trees[:, kernels.TREE], trees[:, kernels.LEAVES], pieces[:, 1], pieces[:, 2])
        counts = np.zeros(int(bases[-1]) + 1, np.int64)
        kernels.count_tree_entries(*intervals, counts)
        starts = np.cumsum(counts) - counts
        entries = np.empty(int(counts.sum()), np.uint32)
        kernels.write_tree_entries(*intervals, numbers, starts.copy(), entries)
        self._tree_starts = (starts + written).astype(np.uint32)
        self._entries = np.concatenate([self._entries[:written], entries])

    # -- Events

    def encoder(self, schema: Schema | None) -> Encoder:
        """Return what turns single events into codes; it is made once, as many views share a level."""
        if self._encoder is None:
            self._encoder = Encoder(self.axes, schema)
        return self._encoder

    def codes(self, events: Events, schema: Schema | None) -> Codes:
        """Return the code of every event on every axis, one row for each event."""
        codes = np.empty((events.count, len(self.axes)), np.uint32)
        for number, axis in enumerate(self.axes):
            codes[:, number] = axis.codes(events, schema)
        return codes

    def count(self, codes: Codes, counts: Ints) -> None:
        """Add to `counts` how many predicates each event fulfils."""
        kernels.count_fulfilled(codes, self._axes, self._rows, self._tree_starts, counts)

    def write(self, codes: Codes, begin: int, cursors: Ints, out: Numbers) -> None:
        """Write the numbers of the predicates that events fulfil, from event `begin` on, at the cursors."""
        kernels.write_fulfilled(codes, begin, self._axes, self._rows, self._tree_starts, self._entries, cursors, out)

    # -- Told to others

    def guessed_shares(self) -> npt.NDArray[np.float32]:
        """Return how often each predicate may be true, in the order of `numbers`, judging by the operands."""
        return default_shares(self.leaves)

    def memory(self) -> int:
        """Return the bytes of its arrays, operands included."""
        arrays: list[npt.NDArray[Any]] = [self.numbers, self._axes, self._rows, self._tree_starts, self._entries]
        arrays += self.leaves.leaves
        operands = sum(8 + sys.getsizeof(operand) for axis in self.axes for operand in axis.operands)
        return int(sum(array.nbytes for array in arrays)) + operands
