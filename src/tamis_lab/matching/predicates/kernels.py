"""The compiled loops of the predicate phase: arrays in, results written into arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

ROWS, BELOW, ABOVE, TREE, LEAVES = range(5)
"""Of each axis: its first row, the start of its predicates with only an upper bound, of those with only a lower bound,
its first tree node, and the number of the tree's leaves, 0 where the axis has none."""
POINTS, BELOW_END, ABOVE_END = range(3)
"""Of each code of an axis: where the predicates that hold at just this code start, and where those with an upper, or
a lower bound end that still hold here."""


# -- Which predicates does an event fulfil?


@njit(nogil=True, cache=True)
def count_fulfilled(codes, axes, rows, tree_starts, counts):
    """Add to `counts[e]` how many predicates event e fulfils.

    codes        uint32[:, :]  the code of each event on each axis
    axes         int64[:, 5]   see ROWS, BELOW, ...
    rows         uint32[:, 3]  see POINTS, ...
    tree_starts  uint32[:]     the predicates of tree node n are those from tree_starts[n] up to tree_starts[n + 1]
    """
    for event in range(codes.shape[0]):
        count = np.int64(0)
        for axis in range(codes.shape[1]):
            code = np.int64(codes[event, axis])
            row = axes[axis, ROWS] + code
            count += np.int64(rows[row + 1, POINTS]) - np.int64(rows[row, POINTS])
            count += np.int64(rows[row, BELOW_END]) - axes[axis, BELOW]
            count += np.int64(rows[row, ABOVE_END]) - axes[axis, ABOVE]
            if axes[axis, LEAVES] > 0:
                # From the code's leaf up to the root: an interval is kept at the nodes that it covers whole.
                node = axes[axis, LEAVES] + code
                while node > 0:
                    at = axes[axis, TREE] + node
                    count += np.int64(tree_starts[at + 1]) - np.int64(tree_starts[at])
                    node >>= 1
        counts[event] += count


@njit(nogil=True, cache=True)
def write_fulfilled(codes, begin, axes, rows, tree_starts, numbers, cursors, out):
    """Write the predicates that events fulfil, those of event `begin + i` from `out[cursors[i]]` on; moves the cursors.

    Each predicate is written once: what it asks was taken apart into intervals that have no code in common.
    """
    for place in range(cursors.size):
        event = begin + place
        at = cursors[place]
        for axis in range(codes.shape[1]):
            code = np.int64(codes[event, axis])
            row = axes[axis, ROWS] + code
            for index in range(np.int64(rows[row, POINTS]), np.int64(rows[row + 1, POINTS])):
                out[at] = numbers[index]
                at += 1
            for index in range(axes[axis, BELOW], np.int64(rows[row, BELOW_END])):
                out[at] = numbers[index]
                at += 1
            for index in range(axes[axis, ABOVE], np.int64(rows[row, ABOVE_END])):
                out[at] = numbers[index]
                at += 1
            if axes[axis, LEAVES] > 0:
                node = axes[axis, LEAVES] + code
                while node > 0:
                    from_node = axes[axis, TREE] + node
                    for index in range(np.int64(tree_starts[from_node]), np.int64(tree_starts[from_node + 1])):
                        out[at] = numbers[index]
                        at += 1
                    node >>= 1
        cursors[place] = at


# -- How are the indexes laid out?

FROM_START, BEFORE_A, AT_A, AFTER_A, BEFORE_B, AT_B, AFTER_B, TO_END = range(8)
"""Where a piece of a predicate begins or ends, among the codes of its axis."""
AS_POINT, AS_BELOW, AS_ABOVE, AS_INSIDE = range(4)
"""What a piece is: one code, all codes up to one, all from one on (in the order of POINTS, ...), or two ends inside."""


class Recipes(NamedTuple):
    """How each operation is taken apart.

    ends  int64[operations, 2, 2]  the two ends of up to two pieces, -1 for none
    sets  int64[operations]        0, or 1 if the codes of a set fulfil it, or 2 if all others do
    """

    ends: Any
    sets: Any


class PieceTable(NamedTuple):
    """Intervals of codes. Invariant: those of one leaf have no code in common.

    intervals  int64[:, 3]  axis, first and last code of each
    owners     int64[:]     the leaf of each
    """

    intervals: Any
    owners: Any


@njit(nogil=True, cache=True)
def write_pieces(operation_recipes, tops, leaves, sets_of_codes, room):
    """Take predicates apart into intervals without a common code; return how many were written.

    tops           int64[:]  the last code of each axis
    leaves                   `LeafColumns`, with codes for operands; `a` is the set's number where there is one
    sets_of_codes  lists     of int64: the codes of the members of sets, ascending
    room                     `PieceTable` to be written
    """
    recipes, sets = operation_recipes
    leaf_axes, operations, at_a, at_b = leaves
    set_starts, set_codes = sets_of_codes
    pieces, owners = room
    written = 0
    for leaf in range(operations.size):
        axis, operation = np.int64(leaf_axes[leaf]), operations[leaf]
        top, a, b = tops[axis], at_a[leaf], at_b[leaf]
        if sets[operation]:
            first = np.int64(1)  # code 0 is NULL, which is in no set and outside of none
            for index in range(set_starts[a], set_starts[a + 1]):
                code = set_codes[index]
                low, high = (code, code) if sets[operation] == 1 else (first, code - 1)
                if low <= high:
                    pieces[written, 0], pieces[written, 1], pieces[written, 2] = axis, low, high
                    owners[written] = leaf
                    written += 1
                first = code + 1
            if sets[operation] == 2 and first <= top:
                pieces[written, 0], pieces[written, 1], pieces[written, 2] = axis, first, top
                owners[written] = leaf
                written += 1
            continue
        if recipes[operation, 1, 0] == AFTER_B and a > b:
            # Not between 5 and 3 is every value there is: one piece, since the two would overlap.
            pieces[written, 0], pieces[written, 1], pieces[written, 2] = axis, 1, top
            owners[written] = leaf
            written += 1
            continue
        for number in range(2):
            if recipes[operation, number, 0] < 0:
                continue
            low, high = np.int64(0), np.int64(0)
            for end in range(2):
                place = recipes[operation, number, end]
                if place == FROM_START:
                    code = np.int64(1)
                elif place == TO_END:
                    code = top
                elif place <= AFTER_A:
                    code = a + place - AT_A
                else:
                    code = b + place - AT_B
                if end == 0:
                    low = code
                else:
                    high = code
            if low <= high:
                pieces[written, 0], pieces[written, 1], pieces[written, 2] = axis, low, high
                owners[written] = leaf
                written += 1
    return written


@njit(nogil=True, cache=True)
def lay_out_pieces(all_pieces, numbers, tops, axes, rows, cursors, entries, kinds):
    """Sort pieces into the rows of the codes they hold at; return how many numbers were written to `entries`.

    `axes` and `rows` are filled in, but for the trees; `kinds` tells what each piece is; `cursors` is scratch, shaped
    like `rows`.
    """
    pieces, owners = all_pieces
    # A counting sort: how many lie at each code, where those of each code begin, and then one after the other.
    for index in range(owners.size):
        axis, low, high = pieces[index, 0], pieces[index, 1], pieces[index, 2]
        row = axes[axis, ROWS]
        if low == high:
            kinds[index] = AS_POINT
            rows[row + low, POINTS] += 1
        elif low == 1:
            kinds[index] = AS_BELOW
            rows[row + high, BELOW_END] += 1
        elif high == tops[axis]:
            kinds[index] = AS_ABOVE
            rows[row + low, ABOVE_END] += 1
        else:
            kinds[index] = AS_INSIDE
    written = 0
    for row in range(rows.shape[0]):
        here = rows[row, POINTS]
        rows[row, POINTS] = cursors[row, POINTS] = written
        written += here
    for axis in range(axes.shape[0]):
        # The longest come first: at a code, those hold that end there or later.
        axes[axis, BELOW] = written
        for code in range(tops[axis], -1, -1):
            row = axes[axis, ROWS] + code
            cursors[row, BELOW_END] = written
            written += rows[row, BELOW_END]
            rows[row, BELOW_END] = written
        rows[axes[axis, ROWS], BELOW_END] = axes[axis, BELOW]  # NULL fulfils nothing
    for axis in range(axes.shape[0]):
        axes[axis, ABOVE] = written
        for code in range(tops[axis] + 1):
            row = axes[axis, ROWS] + code
            cursors[row, ABOVE_END] = written
            written += rows[row, ABOVE_END]
            rows[row, ABOVE_END] = written
    for index in range(owners.size):
        axis = pieces[index, 0]
        kind = kinds[index]
        if kind != AS_INSIDE:
            row = axes[axis, ROWS] + (pieces[index, 2] if kind == AS_BELOW else pieces[index, 1])
            entries[cursors[row, kind]] = numbers[owners[index]]
            cursors[row, kind] += 1
    return written


@njit(nogil=True, cache=True)
def count_tree_entries(bases, leaf_counts, firsts, lasts, counts):
    """Count, for each tree node, the intervals that cover it whole but not its parent.

    Interval i lies on the tree at `bases[i]` with `leaf_counts[i]` leaves and covers the leaves firsts[i] to lasts[i].
    """
    for index in range(firsts.size):
        # Bottom up, with both ends at once: a node that is its parent's other half is taken, and the ends move inwards.
        low, high = firsts[index] + leaf_counts[index], lasts[index] + leaf_counts[index] + 1
        while low < high:
            if low & 1:
                counts[bases[index] + low] += 1
                low += 1
            if high & 1:
                high -= 1
                counts[bases[index] + high] += 1
            low >>= 1
            high >>= 1


@njit(nogil=True, cache=True)
def write_tree_entries(bases, leaf_counts, firsts, lasts, numbers, cursors, out):
    """Write the number of each interval to the nodes that it covers, at the nodes' cursors, which move."""
    for index in range(firsts.size):
        low, high = firsts[index] + leaf_counts[index], lasts[index] + leaf_counts[index] + 1
        while low < high:
            if low & 1:
                out[cursors[bases[index] + low]] = numbers[index]
                cursors[bases[index] + low] += 1
                low += 1
            if high & 1:
                high -= 1
                out[cursors[bases[index] + high]] = numbers[index]
                cursors[bases[index] + high] += 1
            low >>= 1
            high >>= 1
