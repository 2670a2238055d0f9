"""The compiled loops of the published A-Tree: how operands are arranged in pairs, and how a tree is asked from above.

An arrangement is found by dynamic programming over intervals of operands. What may stand over an interval are its
*candidates*: nodes that exist, or one that is yet to be made. Of each it is known where the interval was cut, and which
candidates of both sides it is made of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamis.ragged import Ragged
from tamis_lab.matching.atree.filters.kernels import VISITS, Harvest
from tamis_lab.matching.atree.graph.kernels import (
    ALWAYS,
    AND,
    AT_LEAST,
    BUILDING,
    CHILD_COUNT,
    CHILD_START,
    DONE,
    EVER,
    KIND,
    NEED,
    NEVER,
    NEXT,
    ODD,
    OR,
    PARENT_COUNT,
    PARENT_START,
    PHASE,
    XOR,
    insert_many,
    key_of,
    node_of,
)

CANDIDATES = 16
"""So many nodes that exist are kept for an interval at most."""
GROUP = 24
"""So many operands are arranged together; of more, each group first."""

NODE, CUT, LEFT, RIGHT = range(4)
"""The columns of `candidates`: the node, NEVER for one to be made; where the interval is cut, and which candidates of
both sides that it is made of, as places within their intervals."""
FIRST, LAST, CHOSEN, ONE, OTHER, REF = range(6)
"""The columns of `pairs`: an interval, the candidate for it, the places of the pairs of both sides, and what stands for
it in the code."""

BY_PARENTS, IS_REPAIRED, PROGRESS, IS_OPEN, LOOK_UPS, STEPS = range(6)
"""What `switches` say, and count.

BY_PARENTS   a node is looked for among the parents of its operands, and not in the table of keys
IS_REPAIRED  operands are put in order, and all candidates of an interval are kept, not only the first
PROGRESS     the expression that is inserted; IS_OPEN is whether it was arranged already
LOOK_UPS     how often a node was looked for; STEPS is how many entries of lists of parents were read for it
"""
SWITCHES = 6


class Slate(NamedTuple):
    """What an arrangement is written on.

    code        int32[:]     the instructions of the expression, with two operands each
    starts      int64[2]     0, and where they end
    roots       int32[1]     the root, as an operand
    handles     int64[1]     the handle of the expression
    results     int64[:, 2]  of each instruction as it came: what stands for it in the code, and its node or NEVER
    operands    int64[:, 2]  the same of the operands of the instruction at hand
    costs       int64[:, :]  how many nodes are to be made for an interval
    counts      int64[:, :]  how many candidates it has
    candidates  int64[:, :, CANDIDATES, 4]
    pairs       int64[:, 6]  the tree that was chosen, from the root down
    sought      int64[2]     the two operands that are looked for
    switches    int64[6]
    """

    code: Any
    starts: Any
    roots: Any
    handles: Any
    results: Any
    operands: Any
    costs: Any
    counts: Any
    candidates: Any
    pairs: Any
    sought: Any
    switches: Any


# -- Which node is it?


@njit(nogil=True, cache=True)
def parents_of(node, g):
    """Return where the parents of a node stand, and how many there are; -1 for how many if there is one, in place."""
    table = g.rises if node >= 0 else g.leaves
    row = node if node >= 0 else -1 - node
    if row >= table.shape[0]:
        return np.int64(0), np.int64(0)
    return np.int64(table[row, PARENT_START]), np.int64(table[row, PARENT_COUNT])


@njit(nogil=True, cache=True)
def common_parent(kind, one, other, g, slate):
    """Return the node of a kind that both are operands of, -1 for none: two sorted lists are merged."""
    first, first_count = parents_of(one, g)
    second, second_count = parents_of(other, g)
    if first_count == 0 or second_count == 0:
        return np.int64(-1)
    at, place = np.int64(0), np.int64(0)
    steps = np.int64(0)
    parent = np.int64(-1)
    while parent < 0 and at < abs(first_count) and place < abs(second_count):
        steps += 1
        # A negative count says that there is one parent, which stands where a list of them would start.
        left = first if first_count < 0 else np.int64(g.parents[first + at, 0])
        right = second if second_count < 0 else np.int64(g.parents[second + place, 0])
        if left == right:
            if g.inner[left, KIND] == kind and g.inner[left, CHILD_COUNT] == 2:
                parent = left
            at += 1
            place += 1
        elif left < right:
            at += 1
        else:
            place += 1
    slate.switches[STEPS] += steps
    return parent


@njit(nogil=True, cache=True)
def looked_up(kind, one, other, g, w, slate):
    """Return the node of a kind over two that exist, -1 if there is none."""
    slate.switches[LOOK_UPS] += 1
    if slate.switches[BY_PARENTS]:
        return common_parent(kind, one, other, g, slate)
    slate.sought[0] = one
    slate.sought[1] = other
    key = key_of(kind, np.int64(0), slate.sought, np.int64(0), np.int64(2))
    return node_of(kind, np.int64(0), key, slate.sought, np.int64(0), np.int64(2), g, w)


# -- Algorithm 6: which brackets?


@njit(nogil=True, cache=True)
def weigh(kind, begin, count, g, w, slate):
    """Find what stands over every interval of some operands, beginning with the shortest.

    As printed, an interval has one candidate, that of the first cut with the least cost. As repaired, it has all nodes
    that exist: any of them may be what a node above is made of.
    """
    costs, counts, candidates = slate.costs, slate.counts, slate.candidates
    most = CANDIDATES if slate.switches[IS_REPAIRED] else 1
    for index in range(count):
        costs[index, index] = 0
        counts[index, index] = 1
        candidates[index, index, 0, NODE] = slate.operands[begin + index, 1]
    for width in range(1, count):
        for first in range(count - width):
            last = first + width
            least = np.int64(count)
            kept = np.int64(0)
            for cut in range(first, last):
                below = costs[first, cut] + costs[cut + 1, last]
                for left in range(counts[first, cut]):
                    for right in range(counts[cut + 1, last]):
                        one = candidates[first, cut, left, NODE]
                        other = candidates[cut + 1, last, right, NODE]
                        node = np.int64(-1)
                        # What is yet to be made is part of nothing.
                        if one != NEVER and other != NEVER and (below < least or most > 1):
                            node = looked_up(kind, one, other, g, w, slate)
                        cost = below if node >= 0 else below + 1
                        if cost > least or (cost == least and (kept == most or node < 0)):
                            continue
                        if cost < least:
                            kept = np.int64(0)
                            least = cost
                        candidates[first, last, kept, NODE] = node if node >= 0 else NEVER
                        candidates[first, last, kept, CUT] = cut
                        candidates[first, last, kept, LEFT] = left
                        candidates[first, last, kept, RIGHT] = right
                        kept += 1
            costs[first, last] = least
            counts[first, last] = kept


@njit(nogil=True, cache=True)
def write_pairs(kind, begin, count, length, made, slate):
    """Write the instructions of the arrangement that was found; return where the code ends, and how many there are."""
    pairs, candidates, code = slate.pairs, slate.candidates, slate.code
    pairs[0, FIRST], pairs[0, LAST], pairs[0, CHOSEN] = 0, count - 1, 0
    known = 1
    for at in range(2 * count - 1):
        first, last, chosen = pairs[at, FIRST], pairs[at, LAST], pairs[at, CHOSEN]
        if first < last:
            candidate = candidates[first, last, chosen]
            pairs[at, ONE], pairs[at, OTHER] = known, known + 1
            pairs[known, FIRST], pairs[known, LAST] = first, candidate[CUT]
            pairs[known, CHOSEN] = candidate[LEFT]
            pairs[known + 1, FIRST], pairs[known + 1, LAST] = candidate[CUT] + 1, last
            pairs[known + 1, CHOSEN] = candidate[RIGHT]
            known += 2
    for at in range(known - 1, -1, -1):  # those below stand behind those above
        if pairs[at, FIRST] == pairs[at, LAST]:
            pairs[at, REF] = slate.operands[begin + pairs[at, FIRST], 0]
            continue
        code[length], code[length + 1], code[length + 2] = kind, 0, 2
        code[length + 3] = pairs[pairs[at, ONE], REF]
        code[length + 4] = pairs[pairs[at, OTHER], REF]
        length += 5
        made += 1
        pairs[at, REF] = -made
    return length, made


@njit(nogil=True, cache=True)
def put_in_order(count, operands):
    """Sort operands: those that exist by their nodes, the others behind them, as they came."""
    for index in range(1, count):
        ref, node = operands[index, 0], operands[index, 1]
        place = index
        while place > 0 and node != NEVER and (operands[place - 1, 1] == NEVER or operands[place - 1, 1] > node):
            operands[place, 0], operands[place, 1] = operands[place - 1, 0], operands[place - 1, 1]
            place -= 1
        operands[place, 0], operands[place, 1] = ref, node


@njit(nogil=True, cache=True)
def arranged(kind, count, length, made, g, w, slate):
    """Arrange the operands on the slate, in groups if there are many; the first of them is then what stands for all."""
    if slate.switches[IS_REPAIRED]:
        put_in_order(count, slate.operands)
    while count > 1:
        written = np.int64(0)
        for begin in range(0, count, GROUP):
            size = min(np.int64(GROUP), count - begin)
            ref, node = slate.operands[begin, 0], slate.operands[begin, 1]
            if size > 1:
                weigh(kind, begin, size, g, w, slate)
                length, made = write_pairs(kind, begin, size, length, made, slate)
                ref, node = -made, slate.candidates[0, size - 1, 0, NODE]
            slate.operands[written, 0], slate.operands[written, 1] = ref, node
            written += 1
        count = written
    return length, made


@njit(nogil=True, cache=True)
def arrange(code, begin, end, root, numbers, g, w, slate):
    """Write an expression with two operands for each AND, OR and XOR, so that it takes what exists as far as it can.

    The code is that of `graph.kernels.insert_many`. NOT and AT_LEAST stay as they are.
    """
    length, made, instruction = np.int64(0), np.int64(0), 0
    place = begin
    while place < end:
        kind, least, size = np.int64(code[place]), np.int64(code[place + 1]), np.int64(code[place + 2])
        if kind == AT_LEAST and (least == 1 or least == size):
            kind, least = np.int64(OR if least == 1 else AND), np.int64(0)
        count = np.int64(0)
        for index in range(size):
            ref = np.int64(code[place + 3 + index])
            node = -1 - np.int64(numbers[ref]) if ref >= 0 else slate.results[-1 - ref, 1]
            stands = ref if ref >= 0 else slate.results[-1 - ref, 0]
            is_known = False
            for other in range(count if kind <= OR and size <= GROUP else 0):
                is_known |= slate.operands[other, 0] == stands or (node != NEVER and slate.operands[other, 1] == node)
            if not is_known:
                slate.operands[count, 0], slate.operands[count, 1] = stands, node
                count += 1
        place += 3 + size
        if kind <= XOR:
            length, made = arranged(kind, count, length, made, g, w, slate)
            slate.results[instruction, 0], slate.results[instruction, 1] = slate.operands[0, 0], slate.operands[0, 1]
        else:
            slate.code[length], slate.code[length + 1], slate.code[length + 2] = kind, least, count
            for index in range(count):
                slate.code[length + 3 + index] = slate.operands[index, 0]
            length += 3 + count
            made += 1
            slate.results[instruction, 0], slate.results[instruction, 1] = -made, NEVER
        instruction += 1
    slate.starts[1] = length
    # Parts may have been written although the whole is a constant.
    slate.roots[0] = root if root >= 0 or root in (NEVER, EVER) else slate.results[-1 - root, 0]


@njit(nogil=True, cache=True)
def insert_arranged(code, starts, roots, handles, numbers, g, w, slate):
    """Arrange and insert expressions, as `graph.kernels.insert_many` does; each sees the nodes of those before."""
    switches = slate.switches
    while switches[PROGRESS] < roots.size:
        each = switches[PROGRESS]
        if not switches[IS_OPEN]:
            arrange(code, starts[each], starts[each + 1], np.int64(roots[each]), numbers, g, w, slate)
            slate.handles[0] = handles[each]
            g.meta[NEXT] = 0
            g.meta[PHASE] = BUILDING
            switches[IS_OPEN] = 1
        # It stops where a table is full, and goes on where it stopped when that is larger.
        status = insert_many(slate.code, slate.starts, slate.roots, slate.handles, numbers, g, w)
        if status != DONE:
            return status
        switches[IS_OPEN] = 0
        switches[PROGRESS] += 1
    return DONE


# -- The tree from its roots, for comparison


@njit(nogil=True, cache=True)
def value_of(node, mark, trees, states, stack):
    """Evaluate an inner node from below, children first; return whether it is true, and how often nodes were looked at.

    mark    uint64     what marks the states of this event; the lowest bit beside it is the value
    trees              the tables `inner` and `children` of the graph, and the marks of its leaves
    """
    inner, children, leaf_marks = trees
    stack[0] = node
    top = np.int64(1)
    visits = np.int64(0)
    while top:
        each = stack[top - 1]
        visits += 1
        if states[each] >> np.uint64(1) == mark:
            top -= 1
            continue
        true, waiting = np.int64(0), np.int64(0)
        start = inner[each, CHILD_START]
        for edge in range(start, start + inner[each, CHILD_COUNT]):
            child = np.int64(children[edge, 0])
            if child < 0:
                true += leaf_marks[-1 - child] == mark
            elif states[child] >> np.uint64(1) == mark:
                true += np.int64(states[child] & np.uint64(1))
            else:
                stack[top + waiting] = child
                waiting += 1
        if waiting:  # it is looked at again when they are known
            top += waiting
            continue
        need = inner[each, NEED]
        if inner[each, KIND] == ALWAYS:
            is_true = True
        elif need > 0:
            is_true = true >= need
        else:
            is_true = true & 1 == 1 if need == ODD else true == 0
        states[each] = (np.uint64(mark) << np.uint64(1)) | np.uint64(1 if is_true else 0)
        top -= 1
    return states[node] & np.uint64(1) == np.uint64(1), visits


@njit(nogil=True, cache=True)
def match_top_down(fulfilled, span, trees, subscriptions, stamp, room, harvest):
    """Evaluate the expression of every subscription, each node once for an event.

    subscriptions  int32[:, :]  by handle: the node of each
    stamp          int64        what marks the first event; the next one has the next stamp, ...
    room                        the states of nodes, and a stack with a place for each edge and one more
    """
    begin, end = span
    starts, numbers = fulfilled
    leaf_marks = trees[2]
    states, stack = room
    matched, ends, counters = harvest
    count = np.int64(0)
    event = begin
    while event < end and count + subscriptions.shape[0] <= matched.size:
        mark = np.uint64(stamp + event - begin)
        for index in range(starts[event], starts[event + 1]):
            if numbers[index] < leaf_marks.size:
                leaf_marks[numbers[index]] = mark
        for handle in range(subscriptions.shape[0]):
            node = np.int64(subscriptions[handle, 0])
            if node == NEVER:
                continue
            if node < 0:
                is_true = leaf_marks[-1 - node] == mark
            else:
                is_true, visits = value_of(node, mark, trees, states, stack)
                counters[VISITS] += visits
            if is_true:
                matched[count] = handle
                count += 1
        ends[event] = count
        event += 1
    return event


@njit(nogil=True, cache=True)
def match_top_down_of_columns(span, stamp, columns):
    """`match_top_down`: the lists of events, the trees, the subscriptions, the room and the harvest, side by side."""
    return match_top_down(
        Ragged(*columns[:2]), span, columns[2:5], columns[5], stamp, columns[6:8], Harvest(*columns[8:])
    )
