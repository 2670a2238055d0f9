"""The compiled loops of the indexes: arrays in, arrays out.

Scores are LINEAR (a weighted sum) or not (a weighted sum of squares); see the kernels of the package for their numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from tamis.topk.kernels import measures_of_subscriptions

_BLOCK = 1024
_SHARP = 1 - 1e-12
"""Bounds of regions are taken a little too low, so that rounding never hides anybody."""


@njit(nogil=True, cache=True)
def interesting_slots(kind, sign, numbers, width, coordinates, i, given, bounds, dues, is_timed, time, position, found):
    """Find the subscriptions for which event `i` may be among the best k, or which something leaves.

    bounds    float64[:]  the measure of the k-th best event of each subscription; -inf: not in use
    dues      float64[:]  when the next of the best k leaves
    is_timed  bool[:]     whether that is a time, or a position
    found     int64[:]    written: the slots; the number of them is returned
    """
    measures = np.empty(_BLOCK)
    count = 0
    for first in range(0, bounds.size, _BLOCK):
        last = min(first + _BLOCK, bounds.size)
        measures_of_subscriptions(kind, sign, numbers, width, coordinates, i, given, first, last, measures)
        for s in range(first, last):
            if measures[s - first] <= bounds[s] or dues[s] < (time if is_timed[s] else position + 0.5):
                found[count] = s
                count += 1
    return count


@njit(nogil=True, cache=True)
def concerned_slots(slots, kind, sign, numbers, width, coordinates, i, given, bounds, stamps, stamp, found):
    """Find those of some subscriptions for which event `i` may be among the best k, each once.

    stamps  int64[:]  by slot: the last search that has seen it; `stamp` is the number of this one
    """
    count = 0
    measure = np.empty(1)
    for s in slots:
        if stamps[s] != stamp:
            stamps[s] = stamp
            measures_of_subscriptions(kind, sign, numbers, width, coordinates, i, given, s, s + 1, measure)
            if measure[0] <= bounds[s]:
                found[count] = s
                count += 1
    return count


@njit(nogil=True, cache=True)
def tree_search(is_linear, rows, x, lows, highs, least, most, starts, leaf_size, slots, stack, found):
    """Find the leaves of a tree whose boxes may hold somebody whom the event concerns; return how many slots they have.

    x        float64[:]     the event's coordinates
    lows     float64[:, :]  by node: the least of the numbers of its subscriptions; `highs` the greatest
    least    float64[:, :]  by node: the least of the weights
    most     float64[:]     by node: the greatest bound of its subscriptions
    starts   int64[:]       by node: where its slots begin; the children of node i are 2i + 1 and 2i + 2
    """
    nodes = most.size
    first_leaf = nodes >> 1
    count = 0
    stack[0] = 0
    height = 1
    while height > 0:
        height -= 1
        node = stack[height]
        lowest = 0.0
        if is_linear:
            size = 0.0
            for row in range(rows):
                one, two = lows[row, node] * x[row], highs[row, node] * x[row]
                lowest += min(one, two)
                size += max(abs(one), abs(two))
            lowest -= 1e-12 * size
        else:
            for row in range(rows):
                gap = max(lows[row, node] - x[row], x[row] - highs[row, node])
                if gap > 0:
                    lowest += least[row, node] * (gap * gap)
            lowest *= _SHARP
        if lowest > most[node]:
            continue
        if node >= first_leaf:
            for place in range(starts[node], starts[node + 1]):
                found[count] = slots[place]
                count += 1
        else:
            stack[height] = 2 * node + 1
            stack[height + 1] = 2 * node + 2
            height += 2
    return count


@njit(nogil=True, cache=True)
def raise_bounds(changed, bounds, known, leaves, most):
    """Let the nodes of a tree know the bounds of slots that have grown."""
    for s in changed:
        if bounds[s] > known[s]:
            known[s] = bounds[s]
            node = leaves[s]
            while most[node] < bounds[s]:
                most[node] = bounds[s]
                if node == 0:
                    break
                node = (node - 1) >> 1


@njit(nogil=True, cache=True)
def gather_bounds(bounds, known, slots, starts, most):
    """Let a tree know all bounds as they are."""
    first_leaf = most.size >> 1
    for node in range(first_leaf, most.size):
        greatest = -np.inf
        for place in range(starts[node], starts[node + 1]):
            s = slots[place]
            known[s] = bounds[s]
            greatest = max(greatest, bounds[s])
        most[node] = greatest
    for node in range(first_leaf - 1, -1, -1):
        most[node] = max(most[2 * node + 1], most[2 * node + 2])


@njit(nogil=True, cache=True, inline="always")
def _place(x, origin, step, resolution):
    """Return which of the cells of one dimension a coordinate is in. It never falls with the coordinate."""
    place = (x - origin) / step
    if place >= resolution - 1:
        return resolution - 1
    return np.int64(place) if place > 0 else 0


@njit(nogil=True, cache=True)
def cells_of_regions(
    is_linear, rows, numbers, slots, known, origin, step, resolution, counts, starts, members, is_counting
):
    """Count, or list, for each cell of a grid the slots whose regions reach into it.

    Cells at the rim have no outer edge.

    origin, step  float64[:]  the grid's corner and the width of its cells
    counts        int64[:]    how many there are (counting), or where to put the next (listing)
    """
    low = np.zeros(rows, np.int64)
    high = np.zeros(rows, np.int64)
    at = np.zeros(rows, np.int64)
    for s in slots:
        for row in range(rows):
            low[row], high[row] = 0, resolution - 1
            if not is_linear:
                weight = numbers[rows + row, s]
                if weight > 0:
                    radius = math.sqrt(known[s] / weight) * (1 + 1e-9)
                    low[row] = _place(numbers[row, s] - radius, origin[row], step[row], resolution)
                    high[row] = _place(numbers[row, s] + radius, origin[row], step[row], resolution)
            at[row] = low[row]
        while True:
            cell = 0
            lowest = size = 0.0
            for row in range(rows):
                cell = cell * resolution + at[row]
                begin = -np.inf if at[row] == 0 else origin[row] + (at[row] - 1e-9) * step[row]
                end = np.inf if at[row] == resolution - 1 else origin[row] + (at[row] + 1 + 1e-9) * step[row]
                if is_linear:
                    weight = numbers[row, s]
                    if weight != 0:
                        term = weight * (begin if weight > 0 else end)
                        lowest += term
                        size += abs(term)
                else:
                    gap = max(begin - numbers[row, s], numbers[row, s] - end)
                    if gap > 0:
                        lowest += numbers[rows + row, s] * (gap * gap)
                        size = lowest
            if not lowest - 1e-12 * size > known[s]:
                if is_counting:
                    counts[cell] += 1
                else:
                    members[counts[cell]] = s
                    counts[cell] += 1
            row = rows - 1
            while row >= 0 and at[row] == high[row]:
                at[row] = low[row]
                row -= 1
            if row < 0:
                break
            at[row] += 1


@njit(nogil=True, cache=True)
def cell_of(rows, x, origin, step, resolution):
    """Return the cell of an event, -1 if it has no place."""
    cell = 0
    for row in range(rows):
        if x[row] != x[row]:
            return -1
        cell = cell * resolution + _place(x[row], origin[row], step[row], resolution)
    return cell
