"""The compiled loops of pruning: the sequences of prunings of many trees.

A tree is rows, from the root down and from left to right:

    nodes    int32[:, 4]    KIND, what `at_least` asks for (NEED), the row after the branch (END), the PARENT's row
    state    int32[:, 3]    whether the branch is GONE, how many operands are LEFT, how many of them must hold (HOLD)
    values   float64[:, 7]  least, average, most, least hits, bytes, occurrences, leaves

Rows stay where they are when branches go. An AND of which one operand is left counts as that operand, and an OR in an
OR as part of it: a walk over the operands just goes on into such a row.
"""

import numpy as np
from numba import njit

LEAF, AND, OR, AT_LEAST = 0, 1, 2, 3
KIND, NEED, END, PARENT = 0, 1, 2, 3
GONE, LEFT, HOLD = 0, 1, 2
ACCURACY, EFFICIENCY, MEMORY, OCCURRENCE, DISTANCE, OVERLAP = 0, 1, 2, 3, 4, 5
ANY, INNERMOST, LOWEST = 0, 1, 2


@njit(nogil=True, cache=True)
def branch_ends(starts, nodes):
    """Write where each branch ends, and who its parent is: rows of the same tree, counted from its root.

    starts  int64[:]     the rows of tree t are starts[t] to starts[t + 1]
    nodes   int32[:, 4]  KIND is known; PARENT too; END is written
    """
    for tree in range(len(starts) - 1):
        begin, end = starts[tree], starts[tree + 1]
        for row in range(begin, end):
            nodes[row, END] = row - begin + 1
        for row in range(end - 1, begin, -1):
            parent = begin + nodes[row, PARENT]
            if nodes[row, END] > nodes[parent, END]:
                nodes[parent, END] = nodes[row, END]


@njit(nogil=True, cache=True)
def most_often(count, shares, size):
    """Return how often `count` of some can hold at most; their shares are put in order."""
    for place in range(1, size):
        moved = shares[place]
        before = place - 1
        while before >= 0 and shares[before] > moved:
            shares[before + 1] = shares[before]
            before -= 1
        shares[before + 1] = moved
    total = 0.0
    for place in range(size):
        total += shares[place]
    bound = 1.0
    for aside in range(count):
        bound = min(bound, total / (count - aside))
        total -= shares[size - 1 - aside]
    return max(0.0, bound)


@njit(nogil=True, cache=True)
def evaluate(row, begin, nodes, state, values, scratch, is_overlap):
    """Write the values of a junction from those of its operands."""
    kind = nodes[begin + row, KIND]
    need = state[row, HOLD]
    is_or = kind == OR or (kind == AT_LEAST and need == 1)
    is_and = kind == AND
    least, average, most, hits = 0.0, 0.0, 0.0, 0.0
    if is_and and not is_overlap:
        least, average, most = 1.0, 1.0, 1.0
    total_bytes, occurrences, leaves, count = 0.0, 0.0, 0.0, 0
    at, end = row + 1, nodes[begin + row, END]
    while at < end:
        if state[at, GONE]:
            at = nodes[begin + at, END]
            continue
        other = nodes[begin + at, KIND]
        if other == AND and state[at, LEFT] == 1:
            at += 1
            continue
        if is_or and (other == OR or (other == AT_LEAST and state[at, HOLD] == 1)):
            at += 1
            continue
        if is_overlap:
            average = average + values[at, 1] - average * values[at, 1]
            most += values[at, 2]
            if is_and:
                least = max(least, values[at, 0])
            elif is_or and count == 0:
                least = values[at, 0]
            elif is_or:
                least = min(least, values[at, 0])
        elif is_and:
            least += values[at, 0] - 1.0
            average *= values[at, 1]
            most = min(most, values[at, 2])
        elif is_or:
            least = max(least, values[at, 0])
            average = average + values[at, 1] - average * values[at, 1]
            most += values[at, 2]
        if is_and:
            hits += values[at, 3]
        elif is_or:
            hits = values[at, 3] if count == 0 else min(hits, values[at, 3])
        else:
            scratch[count, 0] = values[at, 0]
            scratch[count, 1] = values[at, 1]
            scratch[count, 2] = values[at, 2]
            scratch[count, 3] = values[at, 3]
        count += 1
        total_bytes += values[at, 4]
        occurrences += values[at, 5]
        leaves += values[at, 6]
        at = nodes[begin + at, END]
    if is_and:
        least = max(0.0, least)
        most = min(1.0, most)
    elif is_or:
        most = min(1.0, most)
    else:
        hits_in_order = np.sort(scratch[:count, 3])
        for place in range(need):
            hits += hits_in_order[place]
        if is_overlap:
            least = np.sort(scratch[:count, 0])[need - 1]
            most = min(1.0, most)
        else:
            exact = np.zeros(count + 1)
            exact[0] = 1.0
            for part in range(count):
                share = scratch[part, 1]
                for held in range(part + 1, 0, -1):
                    exact[held] = exact[held] * (1.0 - share) + exact[held - 1] * share
                exact[0] *= 1.0 - share
            average = 0.0
            for held in range(need, count + 1):
                average += exact[held]
            average = min(1.0, average)
            shares = scratch[:count, 2].copy()
            most = most_often(need, shares, count)
            for part in range(count):
                shares[part] = 1.0 - scratch[part, 0]
            least = max(0.0, 1.0 - most_often(count - need + 1, shares, count))
    values[row, 0] = least
    values[row, 1] = average
    values[row, 2] = most
    values[row, 3] = hits
    values[row, 4] = total_bytes + (3.0 if kind == AT_LEAST and need > 1 else 2.0)
    values[row, 5] = occurrences
    values[row, 6] = leaves


@njit(nogil=True, cache=True)
def leave_out(row, begin, nodes, state):
    """Mark a branch as gone."""
    state[row, GONE] = 1
    parent = nodes[begin + row, PARENT]
    state[parent, LEFT] -= 1
    if nodes[begin + parent, KIND] == AT_LEAST:
        state[parent, HOLD] -= 1


@njit(nogil=True, cache=True)
def take_back(row, begin, nodes, state):
    """Undo `leave_out`."""
    state[row, GONE] = 0
    parent = nodes[begin + row, PARENT]
    state[parent, LEFT] += 1
    if nodes[begin + parent, KIND] == AT_LEAST:
        state[parent, HOLD] += 1


@njit(nogil=True, cache=True)
def top_of(begin, nodes, state):
    """Return the row that stands for the whole tree: the root, or what is left of it."""
    top = 0
    while nodes[begin + top, KIND] == AND and state[top, LEFT] == 1:
        top += 1
        while state[top, GONE]:
            top = nodes[begin + top, END]
    return top


@njit(nogil=True, cache=True)
def offers(row, begin, nodes, state):
    """May an operand of this row go?"""
    kind = nodes[begin + row, KIND]
    return (kind == AND and state[row, LEFT] >= 2) or (kind == AT_LEAST and state[row, HOLD] >= 2)


@njit(nogil=True, cache=True)
def mark_prunable(begin, size, nodes, state, prunable):
    """Write which branches have a valid pruning inside."""
    for row in range(size - 1, -1, -1):
        prunable[row] = offers(row, begin, nodes, state)
    for row in range(size - 1, 0, -1):
        if prunable[row] and not state[row, GONE]:
            prunable[nodes[begin + row, PARENT]] = True


@njit(nogil=True, cache=True)
def is_allowed(row, begin, nodes, state, prunable, rule):
    """Is leaving this row out valid, and allowed by the rule?"""
    parent = nodes[begin + row, PARENT]
    if not offers(parent, begin, nodes, state):
        return False
    if rule == INNERMOST:
        return not prunable[row]
    if rule == LOWEST:
        at, end = parent + 1, nodes[begin + parent, END]
        while at < end:
            if not state[at, GONE] and prunable[at]:
                return False
            at = nodes[begin + at, END]
    return True


@njit(nogil=True, cache=True)
def degradation(dimension, first, before, after, weight):
    """Return a dimension of a change, the less the better.

    first, before, after  float64[:]  the values of the original, of the current and of the pruned tree
    """
    if dimension == EFFICIENCY:
        return first[3] - after[3]
    if dimension == MEMORY:
        return after[4] - before[4]
    worst = -np.inf
    if dimension == OVERLAP:
        for part in range(3):
            lost = (first[part] - after[part]) / first[part] if first[part] != 0.0 else 0.0
            worst = max(worst, lost)
        return worst
    for part in range(3):
        worst = max(worst, after[part] - first[part])
    if dimension == OCCURRENCE:
        return before[5] / after[5] * worst if after[5] != 0.0 else 0.0
    return worst / weight if dimension == DISTANCE else worst


@njit(nogil=True, cache=True)
def sequences(
    starts, nodes, leaf_values, gone, weights, dimensions, rule, step_starts, step_rows, step_keys, step_sizes, counts
):
    """Write, for each tree, which branches go one after the other, the best first, until nothing can.

    starts       int64[:]       the rows of tree t are starts[t] to starts[t + 1]
    nodes        int32[:, 4]    see above; rows are counted from their tree's root
    leaf_values  float64[:, 2]  of each row that is a leaf: its share, or what it is worth, and its occurrences
    gone         bool[:]        of each row: whether its branch went before, in this order or another
    weights      float64[:]     of each tree: how far away its subscriber is
    dimensions   int64[:]       the three dimensions of the measure
    rule         int            which prunings count
    step_starts  int64[:]       the steps of tree t begin at step_starts[t]
    step_rows    int32[:]       written: the row that goes
    step_keys    float64[:, 3]  written: its key
    step_sizes   int32[:, 2]    written: bytes and leaves of the tree afterwards
    counts       int32[:, 3]    written: of each tree, the number of steps, and bytes and leaves before the first
    """
    largest = 1
    for tree in range(len(starts) - 1):
        largest = max(largest, starts[tree + 1] - starts[tree])
    state = np.zeros((largest, 3), np.int32)
    values = np.zeros((largest, 7))
    scratch = np.zeros((largest, 4))
    prunable = np.zeros(largest, np.bool_)
    saved = np.zeros((largest, 7))
    first, before, after = np.zeros(7), np.zeros(7), np.zeros(7)
    is_overlap = dimensions[0] == OVERLAP
    for tree in range(len(starts) - 1):
        begin = starts[tree]
        size = starts[tree + 1] - begin
        weight = weights[tree]
        for row in range(size):
            state[row, GONE] = 0
            state[row, LEFT] = 0
            state[row, HOLD] = nodes[begin + row, NEED]
            if row > 0:
                state[nodes[begin + row, PARENT], LEFT] += 1
        for row in range(size - 1, -1, -1):
            if nodes[begin + row, KIND] == LEAF:
                share = leaf_values[begin + row, 0]
                values[row, 0] = share
                values[row, 1] = share
                values[row, 2] = share
                values[row, 3] = 1.0
                values[row, 4] = 5.0
                values[row, 5] = leaf_values[begin + row, 1]
                values[row, 6] = 1.0
            else:
                evaluate(row, begin, nodes, state, values, scratch, is_overlap)
        for part in range(7):
            first[part] = values[0, part]
        is_changed = False
        for row in range(1, size):
            if gone[begin + row]:
                leave_out(row, begin, nodes, state)
                is_changed = True
        if is_changed:
            for row in range(size - 1, -1, -1):
                if nodes[begin + row, KIND] != LEAF and state[row, LEFT] > 0:
                    evaluate(row, begin, nodes, state, values, scratch, is_overlap)
        top = top_of(begin, nodes, state)
        counts[tree, 1] = np.int32(values[top, 4])
        counts[tree, 2] = np.int32(values[top, 6])
        step = step_starts[tree]
        while True:
            top = top_of(begin, nodes, state)
            for part in range(7):
                before[part] = values[top, part]
            if rule != ANY:
                mark_prunable(begin, size, nodes, state, prunable)
            best = -1
            best_one, best_two, best_three = 0.0, 0.0, 0.0
            best_bytes, best_leaves = 0.0, 0.0
            row = 1
            while row < size:
                if state[row, GONE]:
                    row = nodes[begin + row, END]
                    continue
                if not is_allowed(row, begin, nodes, state, prunable, rule):
                    row += 1
                    continue
                # Only what stands above the branch changes its values.
                leave_out(row, begin, nodes, state)
                depth = 0
                at = nodes[begin + row, PARENT]
                while at >= 0:
                    for part in range(7):
                        saved[depth, part] = values[at, part]
                    depth += 1
                    if not (nodes[begin + at, KIND] == AND and state[at, LEFT] == 1):
                        evaluate(at, begin, nodes, state, values, scratch, is_overlap)
                    at = nodes[begin + at, PARENT] if at > 0 else -1
                top = top_of(begin, nodes, state)
                for part in range(7):
                    after[part] = values[top, part]
                one = degradation(dimensions[0], first, before, after, weight)
                two = degradation(dimensions[1], first, before, after, weight)
                three = degradation(dimensions[2], first, before, after, weight)
                if best < 0 or (
                    one < best_one or (one == best_one and (two < best_two or (two == best_two and three < best_three)))
                ):
                    best = row
                    best_one, best_two, best_three = one, two, three
                    best_bytes, best_leaves = after[4], after[6]
                take_back(row, begin, nodes, state)
                depth = 0
                at = nodes[begin + row, PARENT]
                while at >= 0:
                    for part in range(7):
                        values[at, part] = saved[depth, part]
                    depth += 1
                    at = nodes[begin + at, PARENT] if at > 0 else -1
                row += 1
            if best < 0:
                break
            leave_out(best, begin, nodes, state)
            at = nodes[begin + best, PARENT]
            while at >= 0:
                if not (nodes[begin + at, KIND] == AND and state[at, LEFT] == 1):
                    evaluate(at, begin, nodes, state, values, scratch, is_overlap)
                at = nodes[begin + at, PARENT] if at > 0 else -1
            step_rows[step] = best
            step_keys[step, 0] = best_one
            step_keys[step, 1] = best_two
            step_keys[step, 2] = best_three
            step_sizes[step, 0] = np.int32(best_bytes)
            step_sizes[step, 1] = np.int32(best_leaves)
            step += 1
        counts[tree, 0] = step - step_starts[tree]


@njit(nogil=True, cache=True)
def running_maxima(step_starts, counts, keys):
    """Raise each key to the greatest of its tree so far: then no step is in order before the one that it follows.

    step_starts  int64[:]       the steps of tree t begin at step_starts[t]
    counts       int32[:, 3]    how many there are, in the first column
    keys         float64[:, n]  changed in place
    """
    width = keys.shape[1]
    for tree in range(len(step_starts) - 1):
        for step in range(step_starts[tree] + 1, step_starts[tree] + counts[tree, 0]):
            is_less = False
            for part in range(width):
                if keys[step, part] != keys[step - 1, part]:
                    is_less = keys[step, part] < keys[step - 1, part]
                    break
            if is_less:
                for part in range(width):
                    keys[step, part] = keys[step - 1, part]
