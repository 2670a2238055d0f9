"""Whom may an event concern? The compiled loops of the indexes: a scan of columns, a ball tree, a uniform grid.

Of a score only its form counts: what it makes of the gaps between an event and a centre, or of coordinates and weights
(`Form`). A cosine is a weighted sum of unit vectors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.compilation import kernel
from tamis.topk.kernels import Edges, Floats, Integers, ScoreTable, measures_of_subscriptions

if TYPE_CHECKING:
    from tamis.ragged import Ragged

SQUARES, SUM, GREATEST, GAPS = 0, 1, 2, 3
"""Forms: a weighted sum of squared gaps; a weighted sum; the greatest weighted gap; a weighted sum of gaps."""
_BLOCK = 1024
_SHARP = 1 - 1e-12
"""Bounds of regions are taken a little too low, so that rounding never hides anybody."""


class Boxes(NamedTuple):
    """A complete binary tree over slots: node 0 is the root, the children of node i are 2i + 1 and 2i + 2.

    form       int            SQUARES, SUM, GREATEST or GAPS
    lows       float64[:, :]  by row and node: the least number of its subscriptions; inf for a node without any
    highs      float64[:, :]  the greatest, or -inf
    least      float64[:, :]  by row and node: the least weight of its subscriptions
    most       float64[:]     by node: a bound that is not less than that of any of its subscriptions
    leaves     Ragged         the slots of the leaves, from left to right; the first leaf is node `most.size >> 1`

    A node's box encloses those of its children, and its `most` is not less than theirs. Made by `tree.Tree`; only
    `most` changes afterwards.
    """

    form: int
    lows: Floats
    highs: Floats
    least: Floats
    most: Floats
    leaves: Ragged[np.int64]


class Cells(NamedTuple):
    """A uniform grid: `resolution` cells of equal width in each dimension. Cells at the rim have no outer edge.

    form        int         SQUARES, SUM, GREATEST or GAPS
    resolution  int         how many cells there are in one dimension; `resolution ** len(origin)` in all
    origin      float64[:]  by dimension: where the first cell ends at the lower side
    step        float64[:]  by dimension: how wide a cell is, more than 0

    The number of a cell has one digit to the base `resolution` for each dimension, the first dimension's first.
    """

    form: int
    resolution: int
    origin: Floats
    step: Floats


# -- Columns


@kernel
def interesting_slots(
    scores: ScoreTable,
    coordinates: Floats,
    i: int,
    edges: Edges,
    slot_count: int,
    time: float,
    position: float,
    interested: Integers,
) -> int:
    """Find the subscriptions for which event `i` may be among the best k, or which something leaves.

    slot_count      how many slots are or were in use
    time, position  whatever is due before that time, or at that position, leaves
    interested           int64[:]    written: the slots; the number of them is returned
    """
    bounds, dues, is_timed = edges.bounds, edges.dues, edges.is_timed
    measures = np.empty(_BLOCK)
    count = 0
    # By the block, so that measures are read again while they are in the processor's first cache.
    for first in range(0, slot_count, _BLOCK):
        last = min(first + _BLOCK, slot_count)
        measures_of_subscriptions(scores, coordinates, i, first, last, measures)
        for s in range(first, last):
            if measures[s - first] <= bounds[s] or dues[s] < (time if is_timed[s] else position + 0.5):
                interested[count] = s
                count += 1
    return count


@kernel
def concerned_slots(
    slots: Integers,
    scores: ScoreTable,
    coordinates: Floats,
    i: int,
    bounds: Floats,
    stamps: Integers,
    stamp: int,
    concerned: Integers,
) -> int:
    """Find those of some subscriptions for which event `i` may be among the best k, each once.

    stamps  int64[:]  by slot: the last search that has seen it; `stamp` is the number of this one
    """
    count = 0
    measure = np.empty(1)
    for s in slots:
        if stamps[s] != stamp:
            stamps[s] = stamp
            measures_of_subscriptions(scores, coordinates, i, s, s + 1, measure)
            if measure[0] <= bounds[s]:
                concerned[count] = s
                count += 1
    return count


# -- A ball tree


@kernel
def _least_measure(boxes: Boxes, node, x):
    """Return a measure that no subscription of a node has less than, for an event with these coordinates."""
    lowest = 0.0
    if boxes.form == SUM:
        size = 0.0
        for row in range(x.size):
            one, two = boxes.lows[row, node] * x[row], boxes.highs[row, node] * x[row]
            lowest += min(one, two)
            size += max(abs(one), abs(two))
        lowest -= 1e-12 * size  # terms may cancel out, so the error is in proportion to them, not to their sum
    else:
        for row in range(x.size):
            gap = max(boxes.lows[row, node] - x[row], x[row] - boxes.highs[row, node])
            if gap > 0:
                if boxes.form == SQUARES:
                    lowest += boxes.least[row, node] * (gap * gap)
                elif boxes.form == GAPS:
                    lowest += boxes.least[row, node] * gap
                else:
                    lowest = max(lowest, boxes.least[row, node] * gap)
        lowest *= _SHARP
    return lowest


@kernel
def tree_search(boxes: Boxes, x: Floats, stack: Integers, slots_reached: Integers) -> int:
    """Find the leaves of a tree whose boxes may hold somebody whom the event concerns; return how many slots they have.

    x      float64[:]  the event's coordinates
    stack  int64[:]    room for two nodes of each level
    slots_reached  int64[:]    written: the slots
    """
    first_leaf = boxes.most.size >> 1
    starts, slots = boxes.leaves.starts, boxes.leaves.values
    count = 0
    stack[0] = 0
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        if _least_measure(boxes, node, x) > boxes.most[node]:
            continue  # too far away for the most generous below, and so for all of them
        if node >= first_leaf:
            for place in range(starts[node - first_leaf], starts[node - first_leaf + 1]):
                slots_reached[count] = slots[place]
                count += 1
        else:
            stack[height] = 2 * node + 1
            stack[height + 1] = 2 * node + 2
            height += 2
    return count


@kernel
def raise_bounds(boxes: Boxes, changed: Integers, bounds: Floats, known: Floats, nodes: Integers) -> None:
    """Let the nodes of a tree know the bounds of slots that have grown.

    known  float64[:]  by slot: the bound that the tree knows; raised in place
    nodes  int64[:]    by slot: its leaf
    """
    most = boxes.most
    for s in changed:
        if bounds[s] > known[s]:
            known[s] = bounds[s]
            node = nodes[s]
            while most[node] < bounds[s]:  # who knows a greater one has passed it up before
                most[node] = bounds[s]
                if node == 0:
                    break
                node = (node - 1) >> 1


@kernel
def gather_bounds(boxes: Boxes, bounds: Floats, known: Floats) -> None:
    """Let a tree know all bounds as they are: those that have fallen too, which nobody tells it."""
    most, starts, slots = boxes.most, boxes.leaves.starts, boxes.leaves.values
    first_leaf = most.size >> 1
    for node in range(first_leaf, most.size):
        greatest = -np.inf
        for place in range(starts[node - first_leaf], starts[node - first_leaf + 1]):
            s = slots[place]
            known[s] = bounds[s]
            greatest = max(greatest, bounds[s])
        most[node] = greatest
    for node in range(first_leaf - 1, -1, -1):
        most[node] = max(most[2 * node + 1], most[2 * node + 2])


# -- A grid


@kernel
def _place(cells: Cells, row, x):
    """Return which of the cells of one dimension a coordinate is in. It never falls with the coordinate."""
    place = (x - cells.origin[row]) / cells.step[row]
    if place >= cells.resolution - 1:
        return cells.resolution - 1
    return np.int64(place) if place > 0 else 0


@kernel
def _reaches(cells: Cells, at: Integers, numbers: Floats, s: int, bound: float) -> bool:
    """Can an event in this cell have a measure of no more than the bound for subscription `s`?"""
    rows = at.size
    lowest = size = 0.0
    for row in range(rows):
        # Edges are moved outwards by a little, because `_place` rounds.
        begin = -np.inf if at[row] == 0 else cells.origin[row] + (at[row] - 1e-9) * cells.step[row]
        end = np.inf if at[row] == cells.resolution - 1 else cells.origin[row] + (at[row] + 1 + 1e-9) * cells.step[row]
        if cells.form == SUM:
            weight = numbers[row, s]
            if weight != 0:  # nothing times an infinite edge would be NaN
                term = weight * (begin if weight > 0 else end)
                lowest += term
                size += abs(term)
        else:
            gap = max(begin - numbers[row, s], numbers[row, s] - end)
            if gap > 0:
                if cells.form == SQUARES:
                    lowest += numbers[rows + row, s] * (gap * gap)
                elif cells.form == GAPS:
                    lowest += numbers[rows + row, s] * gap
                else:
                    lowest = max(lowest, numbers[rows + row, s] * gap)
                size = lowest
    return not lowest - 1e-12 * size > bound  # NaN reaches: it is not known to be too far


@kernel
def cells_of_regions(
    cells: Cells,
    numbers: Floats,
    slots: Integers,
    known: Floats,
    counts: Integers,
    members: Integers,
    is_counting: bool,
) -> None:
    """Count, or list, for each cell of a grid the slots whose regions reach into it.

    numbers  float64[:, :]  by slot: the weights of a sum; or the centre, and then the weights of its squares
    known    float64[:]     by slot: how far its region reaches
    counts   int64[:]       by cell: how many there are (counting), or where to put the next (listing)
    members  int64[:]       written when listing
    """
    rows = cells.origin.size
    low, high, at = np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for s in slots:
        # The cells around the region: all of them for a half-space, for a ball those that its radius reaches.
        for row in range(rows):
            low[row], high[row] = 0, cells.resolution - 1
            if cells.form != SUM:
                weight = numbers[rows + row, s]
                if weight > 0:
                    reach = known[s] / weight
                    radius = (math.sqrt(reach) if cells.form == SQUARES else reach) * (1 + 1e-9)
                    low[row] = _place(cells, row, numbers[row, s] - radius)
                    high[row] = _place(cells, row, numbers[row, s] + radius)
            at[row] = low[row]
        # Count `at` up from `low` to `high`, the last dimension fastest, as an odometer does.
        while True:
            if _reaches(cells, at, numbers, s, known[s]):
                cell = 0
                for row in range(rows):
                    cell = cell * cells.resolution + at[row]
                if not is_counting:
                    members[counts[cell]] = s
                counts[cell] += 1
            row = rows - 1
            while row >= 0 and at[row] == high[row]:
                at[row] = low[row]
                row -= 1
            if row < 0:
                break
            at[row] += 1


@kernel
def cell_of(cells: Cells, x: Floats) -> int:
    """Return the cell of an event, -1 if it has no place."""
    cell = 0
    for row in range(x.size):
        if x[row] != x[row]:
            return -1
        cell = cell * cells.resolution + _place(cells, row, x[row])
    return cell
