"""In which order would the branches of many trees go? The compiled loop of greedy pruning.

A tree is rows, from the root down and from left to right (preorder), so that a branch is a run of rows. Rows stay
where they are when branches go. An AND of which one operand is left counts as that operand, and an OR in an OR as part
of it: a walk over the operands just goes on into such a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.compilation import borrowed, inlined, kernel

if TYPE_CHECKING:
    from tamis.ragged import Ragged

Floats = npt.NDArray[np.float64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

LEAF, AND, OR, AT_LEAST = range(4)
"""What a row is."""
KIND, NEED, END, PARENT = range(4)
"""The columns of `nodes`: what it is, what an `at_least` asks for, the row after the branch, the row of the parent."""
GONE, LEFT, HOLD = range(3)
"""The columns of `state`: whether the branch is gone, how many operands are left, how many of them must hold."""
LEAST, AVERAGE, MOST, LEAST_HITS, MEMORY_BYTES, OCCURRENCES, LEAF_COUNT = range(7)
"""The columns of `values`: how often it holds, at least, on average and at most (or what stands in for that, as in
`characteristics`); how many leaves must hold, and three sums over its leaves."""
COLUMNS = 7
BYTES, LEAVES = range(2)
"""The columns of sizes."""
ACCURACY, EFFICIENCY, MEMORY, OCCURRENCE, DISTANCE, OVERLAP = range(6)
ANY, INNERMOST, LOWEST = range(3)


# -- Tables


class Forest(NamedTuple):
    """Trees side by side. Made by `layout.laid_out`.

    nodes       Ragged of int32[:, 4]  the rows of each tree: KIND, NEED, END and PARENT, which count from its root
    predicates  int32[:]               by row: the number of a leaf's predicate, -1 for a junction

    The root is the first row of its tree and its own parent; a row's parent stands before it; the operands of a
    junction lie one behind the other, from the row after it to its END.
    """

    nodes: Ragged[np.int32]
    predicates: Small


class LeafFacts(NamedTuple):
    """What is known of the leaves of a forest, by row; 0 for a junction. Made by `layout.Layout.leaves`.

    shares       float64[:]  how often it holds, or what it is worth
    occurrences  float64[:]  how often its predicate occurs among all filters
    """

    shares: Floats
    occurrences: Floats


class Order(NamedTuple):
    """By what prunings are put in order, the least first. Made by `sequencing.sequences`.

    dimensions  int64[3]  ACCURACY to OVERLAP: the second decides where the first is equal, then the third
    rule        int       ANY, INNERMOST or LOWEST: which prunings count
    """

    dimensions: npt.NDArray[np.int64]
    rule: int


class StepTable(NamedTuple):
    """The prunings of many trees, one after the other until nothing can go. Made by `sequencing.step_table`.

    starts       int64[:]       the steps of tree t begin at starts[t]; there is room for as many as it has leaves
    step_counts  int32[:]       by tree: how many steps there are
    first_sizes  int32[:, 2]    by tree: its BYTES and LEAVES before the first
    rows         int32[:]       by step: the row whose branch goes
    keys         float64[:, 3]  by step: what it is ordered by
    sizes        int32[:, 2]    by step: the tree's BYTES and LEAVES afterwards

    `starts` has one more entry than there are trees. A tree's steps may be followed by room that is free.
    """

    starts: npt.NDArray[np.int64]
    step_counts: Small
    first_sizes: Small
    rows: Small
    keys: Floats
    sizes: Small


class Tree(NamedTuple):
    """A tree that is being pruned.

    nodes     int32[:, 4]    KIND, NEED, END, PARENT
    state     int32[:, 3]    GONE, LEFT, HOLD
    values    float64[:, 7]  LEAST to LEAF_COUNT, of each branch as it is now
    operands  float64[:, 4]  room for LEAST to LEAST_HITS of the operands of one row

    All but `nodes` have room for the largest tree.
    """

    nodes: Small
    state: Small
    values: Floats
    operands: Floats


class FigureTable(NamedTuple):
    """Three versions of a tree that are compared, each LEAST to LEAF_COUNT.

    first   float64[7]  as it came
    before  float64[7]  as it is now
    after   float64[7]  as it would be without a branch
    """

    first: Floats
    before: Floats
    after: Floats


class Workspace(NamedTuple):
    """Room to work in, for the largest tree. Made by `sequencing.workspace`.

    state     int32[:, 3]    as in a Tree, and so are `values` and `operands`
    values    float64[:, 7]
    operands  float64[:, 4]
    prunable  bool[:]        by row: whether it has a valid pruning inside
    saved     float64[:, 7]  the values of the rows above a branch, while it is left out on trial
    best      float64[5]     the best pruning so far: the three parts of its key; bytes and leaves without it
    figures   Figures        the versions that are compared
    """

    state: Small
    values: Floats
    operands: Floats
    prunable: Flags
    saved: Floats
    best: Floats
    figures: FigureTable


@kernel
def branch_ends(nodes: Ragged[np.int32]) -> None:
    """Write where each branch ends: a row of the same tree, counted from its root. KIND and PARENT are known."""
    starts, rows = nodes.starts, nodes.values
    for tree in range(len(starts) - 1):
        begin, end = starts[tree], starts[tree + 1]
        for row in range(begin, end):
            rows[row, END] = row - begin + 1
        # From behind, so that a branch is complete before its parent hears of it.
        for row in range(end - 1, begin, -1):
            parent = begin + rows[row, PARENT]
            if rows[row, END] > rows[parent, END]:
                rows[parent, END] = rows[row, END]


# -- The values of a branch


@inlined
def _holds_with_one(row, tree: Tree):
    """Is it an OR, or as good as one?"""
    kind = tree.nodes[row, KIND]
    return kind == OR or (kind == AT_LEAST and tree.state[row, HOLD] == 1)


@inlined
def _operand_from(tree: Tree, at, end, is_or):
    """Return the first operand from a row on, `end` if there is none.

    What is gone is passed by; a row that counts as its own operands is entered.
    """
    while at < end:
        kind = tree.nodes[at, KIND]
        if tree.state[at, GONE]:
            at = tree.nodes[at, END]
        elif (kind == AND and tree.state[at, LEFT] == 1) or (is_or and _holds_with_one(at, tree)):
            at += 1
        else:
            break
    return at


@kernel
def most_often(count, shares, size):
    """Return how often `count` of some can hold at most (a Fréchet bound); their shares are put in order.

    If at least `count` of them hold, then without the `aside` likeliest at least `count - aside` of the others do,
    which happens no more often than the sum of their shares allows.
    """
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


@kernel
def _at_least(operands: Floats, count, need, is_overlap):
    """Return LEAST to LEAST_HITS of "at least `need` of these operands"."""
    hits = 0.0
    hits_in_order = np.sort(operands[:count, LEAST_HITS])
    for place in range(need):
        hits += hits_in_order[place]
    average = most = 0.0
    if is_overlap:
        for part in range(count):
            average = average + operands[part, AVERAGE] - average * operands[part, AVERAGE]
            most += operands[part, MOST]
        return np.sort(operands[:count, LEAST])[need - 1], average, min(1.0, most), hits
    # exactly[h]: how often h of the operands so far hold, if they are independent; from behind, so that each operand
    # is counted once.
    exactly = np.zeros(count + 1)
    exactly[0] = 1.0
    for part in range(count):
        share = operands[part, AVERAGE]
        for held in range(part + 1, 0, -1):
            exactly[held] = exactly[held] * (1.0 - share) + exactly[held - 1] * share
        exactly[0] *= 1.0 - share
    for held in range(need, count + 1):
        average += exactly[held]
    shares = operands[:count, MOST].copy()
    most = most_often(need, shares, count)
    # It fails if count - need + 1 operands do; so it holds at least as often as that does not happen.
    for part in range(count):
        shares[part] = 1.0 - operands[part, LEAST]
    least = max(0.0, 1.0 - most_often(count - need + 1, shares, count))
    return least, min(1.0, average), most, hits


@kernel
def evaluate(row, tree: Tree, is_overlap):
    """Write the values of a junction from those of its operands."""
    kind, need = tree.nodes[row, KIND], tree.state[row, HOLD]
    is_and = kind == AND
    is_or = _holds_with_one(row, tree)
    values, end = tree.values, tree.nodes[row, END]
    start = 1.0 if is_and and not is_overlap else 0.0
    least, average, most, hits = start, start, start, 0.0
    memory, occurrences, leaves, count = 0.0, 0.0, 0.0, 0
    at = _operand_from(tree, row + 1, end, is_or)
    while at < end:
        if is_and and not is_overlap:
            # Fréchet's bounds: operands of AND hold together at least as often as their failures cannot be kept apart,
            # and at most as often as the rarest; on average, as if they were independent.
            least += values[at, LEAST] - 1.0
            average *= values[at, AVERAGE]
            most = min(most, values[at, MOST])
            hits += values[at, LEAST_HITS]
        elif is_and or is_or:
            # One minus the product of the complements, without taking complements: an OR, or the overlap of an AND.
            average = average + values[at, AVERAGE] - average * values[at, AVERAGE]
            most += values[at, MOST]
            if is_and or not is_overlap:
                least = max(least, values[at, LEAST])
            else:
                least = values[at, LEAST] if count == 0 else min(least, values[at, LEAST])
            if is_and:
                hits += values[at, LEAST_HITS]
            else:
                hits = values[at, LEAST_HITS] if count == 0 else min(hits, values[at, LEAST_HITS])
        else:
            for part in range(LEAST_HITS + 1):
                tree.operands[count, part] = values[at, part]
        count += 1
        # What is added up is the same for every junction; only the shares depend on its kind.
        memory += values[at, MEMORY_BYTES]
        occurrences += values[at, OCCURRENCES]
        leaves += values[at, LEAF_COUNT]
        at = _operand_from(tree, tree.nodes[at, END], end, is_or)
    if is_and or is_or:
        least, most = max(0.0, least), min(1.0, most)
    else:
        least, average, most, hits = _at_least(tree.operands, count, need, is_overlap)
    values[row, LEAST] = least
    values[row, AVERAGE] = average
    values[row, MOST] = most
    values[row, LEAST_HITS] = hits
    values[row, MEMORY_BYTES] = memory + (3.0 if kind == AT_LEAST and need > 1 else 2.0)
    values[row, OCCURRENCES] = occurrences
    values[row, LEAF_COUNT] = leaves


@inlined
def _evaluate_above(row, tree: Tree, is_overlap):
    """Write the values of everything above a branch, from the bottom up: nothing else changes when it goes."""
    at = tree.nodes[row, PARENT]
    while at >= 0:
        if not (tree.nodes[at, KIND] == AND and tree.state[at, LEFT] == 1):  # such an AND counts as what is left of it
            evaluate(at, tree, is_overlap)
        at = tree.nodes[at, PARENT] if at > 0 else -1


@inlined
def _copy_values(source, target):
    """Copy the values of a branch."""
    for part in range(COLUMNS):
        target[part] = source[part]


# -- Prunings


@inlined
def leave_out(row, tree: Tree):
    """Mark a branch as gone."""
    parent = tree.nodes[row, PARENT]
    tree.state[row, GONE] = 1
    tree.state[parent, LEFT] -= 1
    if tree.nodes[parent, KIND] == AT_LEAST:
        tree.state[parent, HOLD] -= 1


@inlined
def take_back(row, tree: Tree):
    """Undo `leave_out`."""
    parent = tree.nodes[row, PARENT]
    tree.state[row, GONE] = 0
    tree.state[parent, LEFT] += 1
    if tree.nodes[parent, KIND] == AT_LEAST:
        tree.state[parent, HOLD] += 1


@inlined
def top_of(tree: Tree):
    """Return the row that stands for the whole tree: the root, or what is left of it."""
    top = 0
    while tree.nodes[top, KIND] == AND and tree.state[top, LEFT] == 1:
        top += 1
        while tree.state[top, GONE]:
            top = tree.nodes[top, END]
    return top


@inlined
def offers(row, tree: Tree):
    """May an operand of this row go?"""
    kind = tree.nodes[row, KIND]
    return (kind == AND and tree.state[row, LEFT] >= 2) or (kind == AT_LEAST and tree.state[row, HOLD] >= 2)


@kernel
def mark_prunable(tree: Tree, prunable: Flags) -> None:
    """Write which branches have a valid pruning inside."""
    size = len(tree.nodes)
    for row in range(size - 1, -1, -1):
        prunable[row] = offers(row, tree)
    # Rows lie from the root down, so backwards every branch is done before its parent asks.
    for row in range(size - 1, 0, -1):
        if prunable[row] and not tree.state[row, GONE]:
            prunable[tree.nodes[row, PARENT]] = True


@inlined
def is_allowed(row, tree: Tree, prunable, rule):
    """Is leaving this row out valid, and allowed by the rule?"""
    parent = tree.nodes[row, PARENT]
    if not offers(parent, tree):
        return False
    if rule == INNERMOST:
        return not prunable[row]
    if rule == LOWEST:
        at, end = parent + 1, tree.nodes[parent, END]
        while at < end:
            if not tree.state[at, GONE] and prunable[at]:
                return False
            at = tree.nodes[at, END]
    return True


@inlined
def degradation(dimension, figures: FigureTable, weight):
    """Return a dimension of a change, the less the better; `weight` is how far away the subscriber is."""
    first, before, after = figures.first, figures.before, figures.after
    if dimension == EFFICIENCY:
        return first[LEAST_HITS] - after[LEAST_HITS]
    if dimension == MEMORY:
        return after[MEMORY_BYTES] - before[MEMORY_BYTES]
    worst = -np.inf
    if dimension == OVERLAP:
        for part in range(LEAST, MOST + 1):
            lost = (first[part] - after[part]) / first[part] if first[part] != 0.0 else 0.0
            worst = max(worst, lost)
        return worst
    for part in range(LEAST, MOST + 1):
        worst = max(worst, after[part] - first[part])
    if dimension == OCCURRENCE:
        return before[OCCURRENCES] / after[OCCURRENCES] * worst if after[OCCURRENCES] != 0.0 else 0.0
    return worst / weight if dimension == DISTANCE else worst


# -- Sequences


@inlined
def _plant(tree: Tree, begin, leaves: LeafFacts, is_overlap):
    """Write the state and the values of a tree as it came; its rows begin at `begin` of the forest."""
    nodes, state, values = tree.nodes, tree.state, tree.values
    for row in range(len(nodes)):
        state[row, GONE] = 0
        state[row, LEFT] = 0
        state[row, HOLD] = nodes[row, NEED]
        if row > 0:
            state[nodes[row, PARENT], LEFT] += 1
    for row in range(len(nodes) - 1, -1, -1):  # operands before their junction
        if nodes[row, KIND] != LEAF:
            evaluate(row, tree, is_overlap)
            continue
        share = leaves.shares[begin + row]
        values[row, LEAST] = share
        values[row, AVERAGE] = share
        values[row, MOST] = share
        values[row, LEAST_HITS] = 1.0
        values[row, MEMORY_BYTES] = 5.0
        values[row, OCCURRENCES] = leaves.occurrences[begin + row]
        values[row, LEAF_COUNT] = 1.0


@inlined
def _cut_back(tree: Tree, begin, gone: Flags, is_overlap):
    """Leave out what went before."""
    is_changed = False
    for row in range(1, len(tree.nodes)):
        if gone[begin + row]:
            leave_out(row, tree)
            is_changed = True
    if is_changed:
        for row in range(len(tree.nodes) - 1, -1, -1):
            if tree.nodes[row, KIND] != LEAF and tree.state[row, LEFT] > 0:
                evaluate(row, tree, is_overlap)


@inlined
def _try_without(row, tree: Tree, saved: Floats, after: Floats, is_overlap):
    """Write the values that the whole tree has without a branch; the tree stays as it is."""
    leave_out(row, tree)
    # Only the way up to the root changes, so only that is saved and put back: a try costs the depth of the tree, not
    # its size.
    depth, at = 0, tree.nodes[row, PARENT]
    while at >= 0:
        _copy_values(tree.values[at], saved[depth])
        depth += 1
        at = tree.nodes[at, PARENT] if at > 0 else -1
    _evaluate_above(row, tree, is_overlap)
    _copy_values(tree.values[top_of(tree)], after)
    take_back(row, tree)
    depth, at = 0, tree.nodes[row, PARENT]
    while at >= 0:
        _copy_values(saved[depth], tree.values[at])
        depth += 1
        at = tree.nodes[at, PARENT] if at > 0 else -1


@inlined
def _best_pruning(tree: Tree, order: Order, weight, work: Workspace):
    """Return the row whose branch goes next, -1 if none can. What it does is written into `work.best`."""
    figures, prunable, best = work.figures, work.prunable, work.best
    dimensions, is_overlap = order.dimensions, order.dimensions[0] == OVERLAP
    if order.rule != ANY:
        mark_prunable(tree, prunable)
    chosen = -1
    row = 1
    while row < len(tree.nodes):
        # Behind the end of a branch that is gone: nothing inside it can go a second time.
        if tree.state[row, GONE]:
            row = tree.nodes[row, END]
            continue
        if is_allowed(row, tree, prunable, order.rule):
            _try_without(row, tree, work.saved, figures.after, is_overlap)
            one = degradation(dimensions[0], figures, weight)
            two = degradation(dimensions[1], figures, weight)
            three = degradation(dimensions[2], figures, weight)
            # Of equals the first row stays: the order of the definition.
            if chosen < 0 or (
                one < best[0] or (one == best[0] and (two < best[1] or (two == best[1] and three < best[2])))
            ):
                chosen = row
                best[0], best[1], best[2] = one, two, three
                best[3], best[4] = figures.after[MEMORY_BYTES], figures.after[LEAF_COUNT]
        row += 1
    return chosen


@kernel
def sequences(
    forest: Forest, leaves: LeafFacts, gone: Flags, weights: Floats, order: Order, steps: StepTable, work: Workspace
) -> None:
    """Write, for each tree, which branches go one after the other, the best first, until nothing can.

    gone     bool[:]     by row of the forest: whether its branch went before, in this order or another
    weights  float64[:]  by tree: how far away its subscriber is
    steps    StepTable   written, but for `starts`
    """
    # Borrowed: references to the arrays of a tree would be counted at every step, which took twice as long as pruning.
    forest, leaves, steps, work = borrowed(forest), borrowed(leaves), borrowed(steps), borrowed(work)
    for number in range(len(forest.nodes.starts) - 1):
        _write_sequence(number, forest, leaves, borrowed(gone), weights[number], borrowed(order), steps, work)


@inlined
def _write_sequence(
    number, forest: Forest, leaves: LeafFacts, gone: Flags, weight, order: Order, steps: StepTable, work: Workspace
):
    """Write which branches of one tree go, one after the other."""
    begin, end = forest.nodes.starts[number], forest.nodes.starts[number + 1]
    tree = Tree(forest.nodes.values[begin:end], work.state, work.values, work.operands)
    values, best, is_overlap = work.values, work.best, order.dimensions[0] == OVERLAP
    _plant(tree, begin, leaves, is_overlap)
    _copy_values(values[0], work.figures.first)
    _cut_back(tree, begin, gone, is_overlap)
    top = top_of(tree)
    steps.first_sizes[number, BYTES] = np.int32(values[top, MEMORY_BYTES])
    steps.first_sizes[number, LEAVES] = np.int32(values[top, LEAF_COUNT])
    step = steps.starts[number]
    while True:
        _copy_values(values[top_of(tree)], work.figures.before)
        row = _best_pruning(tree, order, weight, work)
        if row < 0:
            break
        leave_out(row, tree)
        _evaluate_above(row, tree, is_overlap)
        steps.rows[step] = row
        steps.keys[step, 0] = best[0]
        steps.keys[step, 1] = best[1]
        steps.keys[step, 2] = best[2]
        steps.sizes[step, BYTES] = np.int32(best[3])
        steps.sizes[step, LEAVES] = np.int32(best[4])
        step += 1
    steps.step_counts[number] = step - steps.starts[number]


@kernel
def running_maxima(starts: npt.NDArray[np.int64], step_counts: Small, keys: Floats) -> None:
    """Raise each key to the greatest of its tree so far: then no step is in order before the one that it follows.

    starts, step_counts    as in a StepTable
    keys                   float64[:, n]  changed in place
    """
    width = keys.shape[1]
    for tree in range(len(starts) - 1):
        for step in range(starts[tree] + 1, starts[tree] + step_counts[tree]):
            is_less = False
            for part in range(width):
                if keys[step, part] != keys[step - 1, part]:
                    # Keys are compared part by part, as tuples are; the first that differs decides.
                    is_less = keys[step, part] < keys[step - 1, part]
                    break
            if is_less:
                for part in range(width):
                    keys[step, part] = keys[step - 1, part]
