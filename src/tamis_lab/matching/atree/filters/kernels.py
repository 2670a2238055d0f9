"""The compiled loops by which truth rises from predicates to subscriptions.

They take a span of events, each of which has a list of the predicates that it fulfils. They write handles, and where
those of each event end, and return the first event that they have not done: they stop where there might be no room for
the matches of one more, which are `most`. The state of a node is one word of `states`: the event that touched it last,
and how many of its operands are true. So nothing is ever put back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamis.ragged import Ragged

NEED, LEVEL, BASE, DEFAULT = range(1, 5)
PARENT_START, PARENT_COUNT, HOLDER_START, HOLDER_COUNT = range(4)
"""Columns of the tables `inner`, and of `rises` and `leaves`, as the graph has them."""
ODD = 0

PATH_BITS = 12
"""Bits of a counter in the states of `match_paths`; no node needs more true operands than they can count."""
LEVEL_BITS = 24
TOUCHES, VISITS = range(2)
"""What `counters` counts: how often a node was told of an operand, and how many nodes were told."""


class Rising(NamedTuple):
    """What is read of the graph (see `graph/kernels.py`, where its tables are described).

    leaves    int32[leaves, 4]  PARENT_START to HOLDER_COUNT of each predicate's node
    rises     int32[nodes, 4]   the same of inner nodes
    inner     int32[nodes, :]   NEED, LEVEL, BASE and DEFAULT of each
    parents   int32[:, 2]       a parent, and how many true operands it needs
    holders   int32[:, :]       the handles of the subscriptions that a node is
    standing  int[:]            the nodes that are true without any event, and have subscriptions
    """

    leaves: Any
    rises: Any
    inner: Any
    parents: Any
    holders: Any
    standing: Any


class PathRoom(NamedTuple):
    """The memory that `match_paths` works in.

    states  uint32[nodes]  the stamp, and in the lowest bits the number of true operands
    stack   int32[nodes]   the nodes that became true, and have not told their parents yet
    """

    states: Any
    stack: Any


class LevelRoom(NamedTuple):
    """The memory that `match_levels` works in.

    states  uint64[nodes]  the stamp, a flag for a default that was turned over, the number of true operands
    queue   int32[nodes]   the nodes that wait on level l are queue[starts[l]:ends[l]]
    starts  int64[levels]
    ends    int64[levels]
    """

    states: Any
    queue: Any
    starts: Any
    ends: Any


class Harvest(NamedTuple):
    """Where matches are written.

    handles   int64[:]     the handles of the matches, event after event
    ends      int64[:]     where those of each event end
    counters  int64[2]     TOUCHES and VISITS, added up
    """

    handles: Any
    ends: Any
    counters: Any


@njit(nogil=True, cache=True)
def match_paths(fulfilled, span, graph, most, stamp, room, harvest):
    """The true-value path filter: follow truth upwards from every true leaf. AND, OR and AT_LEAST only.

    A node is touched by each operand that is true. With the touch that makes it as many as it needs it is true itself,
    and touches its parents in turn; what comes later changes nothing.

    span   the first event and the one behind the last
    stamp  what marks the states of the first event; the next one has the next stamp, ...
    """
    begin, end = span
    starts, numbers = fulfilled
    leaves, rises, _, parents, holders, standing = graph
    states, stack = room
    matched, ends, counters = harvest
    low = np.uint32((1 << PATH_BITS) - 1)
    high = ~low
    one = np.uint32(1)
    leaf_count = np.uint64(leaves.shape[0])
    count = np.int64(0)
    touches, visits = np.int64(0), np.int64(0)
    event = begin
    while event < end and count + most <= matched.size:
        mark = np.uint32(stamp + event - begin) << np.uint32(PATH_BITS)
        for index in range(starts[event], starts[event + 1]):
            number = np.uint64(numbers[index])
            if number >= leaf_count:
                continue
            table, row = leaves, number
            top = np.int64(0)
            while True:
                # A stack in place of recursion: what became true tells its parents, and they theirs.
                holder_count = table[row, HOLDER_COUNT]
                if holder_count:
                    first = np.uint64(table[row, HOLDER_START])
                    for holder in range(first, first + np.uint64(holder_count)):
                        matched[np.uint64(count)] = holders[holder, 0]
                        count += 1
                parent_count = table[row, PARENT_COUNT]
                if parent_count < 0:  # just one, and no block
                    touches += 1
                    parent = np.uint64(table[row, PARENT_START])
                    need = np.uint32(-parent_count)
                    state = states[parent]
                    if state & high != mark:  # of an earlier event: its operands are as good as untouched
                        state = mark
                        visits += 1
                    reached = state & low
                    if reached < need:  # counting ends there, so that the counter cannot run over
                        states[parent] = state + one
                        if reached + one == need:
                            stack[np.uint64(top)] = np.int32(parent)
                            top += 1
                else:
                    touches += parent_count
                    first = np.uint64(table[row, PARENT_START])
                    for edge in range(first, first + np.uint64(parent_count)):
                        parent = np.uint64(parents[edge, 0])
                        need = np.uint32(parents[edge, 1])
                        state = states[parent]
                        if state & high != mark:
                            state = mark
                            visits += 1
                        reached = state & low
                        if reached < need:
                            states[parent] = state + one
                            if reached + one == need:
                                stack[np.uint64(top)] = np.int32(parent)
                                top += 1
                if top == 0:
                    break
                top -= 1
                table, row = rises, np.uint64(stack[np.uint64(top)])
        for index in range(standing.size):
            row = np.uint64(standing[index])
            first = np.uint64(rises[row, HOLDER_START])
            for holder in range(first, first + np.uint64(rises[row, HOLDER_COUNT])):
                matched[np.uint64(count)] = holders[holder, 0]
                count += 1
        ends[event] = count
        event += 1
    counters[TOUCHES] += touches
    counters[VISITS] += visits
    return event


@njit(nogil=True, cache=True)
def match_paths_of_columns(span, most, stamp, columns):
    """`match_paths`: the lists of events, the graph, the room and the harvest, their columns side by side.

    Python calls this one. To look into four named tuples would take the dispatcher longer than many an event takes.
    """
    return match_paths(
        Ragged(*columns[:2]),
        span,
        Rising(*columns[2:8]),
        most,
        stamp,
        PathRoom(*columns[8:10]),
        Harvest(*columns[10:]),
    )


@njit(nogil=True, cache=True)
def match_levels(fulfilled, span, graph, most, stamp, room, is_general, harvest):
    """The general filter, and the one that suppresses what is as it would be without any event.

    Nodes that are told of an operand wait in a queue for each level, lowest first, so that all operands have spoken
    when a node is evaluated. The general filter tells the parents of every such node. The other one tells them only
    of a result that differs from the node's default, which for nodes that are false without events is to suppress
    zeros.

    span   the first event and the one behind the last
    stamp  what marks the states of the first event; the next one has the next stamp, ...
    """
    begin, end = span
    starts, numbers = fulfilled
    leaves, rises, inner, parents, holders, standing = graph
    states, queue, queue_starts, queue_ends = room
    matched, ends, counters = harvest
    bits = np.uint64(LEVEL_BITS)
    turned = np.uint64(1 << (LEVEL_BITS - 1))
    low = np.uint64((1 << (LEVEL_BITS - 1)) - 1)
    leaf_count = np.uint64(leaves.shape[0])
    count = np.int64(0)
    touches, visits = np.int64(0), np.int64(0)
    event = begin
    while event < end and count + most <= matched.size:
        mark = np.uint64(stamp + event - begin)
        for level in range(queue_starts.size):
            queue_ends[level] = queue_starts[level]
        leaf = starts[event]
        level = 1
        place = np.int64(0)
        while True:
            change = np.uint64(1)
            if level == 1:  # true leaves need no queue
                # All leaves have spoken: from now on the nodes of the lowest level that waits.
                if leaf == starts[event + 1]:
                    level = 2
                    place = queue_starts[2] if queue_starts.size > 2 else np.int64(0)
                    continue
                row = np.uint64(numbers[leaf])
                leaf += 1
                if row >= leaf_count:
                    continue
                table = leaves
                is_reported = True
            else:
                while level < queue_starts.size and place == queue_ends[level]:
                    level += 1
                    if level < queue_starts.size:
                        place = queue_starts[level]
                if level >= queue_starts.size:
                    break
                row = np.uint64(queue[np.uint64(place)])
                place += 1
                table = rises
                operands = np.int64(states[row] & low)
                need = inner[row, NEED]
                default = np.int64(inner[row, DEFAULT])
                if need > 0:
                    is_true = np.int64(operands >= need)
                else:
                    is_true = operands & 1 if need == ODD else np.int64(operands == 0)
                is_reported = is_true > default
                if is_true == default and not is_general:
                    continue
                if is_true < default:
                    states[row] |= turned
                # A default that was true and is not any more takes one away: unsigned numbers wrap around for that.
                change = np.uint64(is_true - default)
            if is_reported:
                first = np.uint64(table[row, HOLDER_START])
                for holder in range(first, first + np.uint64(table[row, HOLDER_COUNT])):
                    matched[np.uint64(count)] = holders[holder, 0]
                    count += 1
            parent_count = np.int64(table[row, PARENT_COUNT])
            first = np.uint64(table[row, PARENT_START])
            is_single = parent_count < 0
            if is_single:
                parent_count = np.int64(1)
            touches += parent_count
            for edge in range(first, first + np.uint64(parent_count)):
                parent = first if is_single else np.uint64(parents[edge, 0])
                state = states[parent]
                if state >> bits != mark:
                    state = (mark << bits) + np.uint64(inner[parent, BASE])
                    above = np.uint64(inner[parent, LEVEL])
                    queue[np.uint64(queue_ends[above])] = np.int32(parent)
                    queue_ends[above] += 1
                    visits += 1
                states[parent] = state + change
        for index in range(standing.size):
            row = np.uint64(standing[index])
            # True without any event, and this event turned it over.
            if states[row] >> bits == mark and states[row] & turned:
                continue
            first = np.uint64(rises[row, HOLDER_START])
            for holder in range(first, first + np.uint64(rises[row, HOLDER_COUNT])):
                matched[np.uint64(count)] = holders[holder, 0]
                count += 1
        ends[event] = count
        event += 1
    counters[TOUCHES] += touches
    counters[VISITS] += visits
    return event


@njit(nogil=True, cache=True)
def match_levels_of_columns(span, most, stamp, is_general, columns):
    """`match_levels`: the lists of events, the graph, the room and the harvest, their columns side by side."""
    return match_levels(
        Ragged(*columns[:2]),
        span,
        Rising(*columns[2:8]),
        most,
        stamp,
        LevelRoom(*columns[8:12]),
        is_general,
        Harvest(*columns[12:]),
    )


# -- The same by priority: one band of subscriptions after the other, the highest first
#
# A node's band is the highest of its subscriptions', so it is never above that of its children: whoever handles the
# bands from the highest down, and the levels of each from the lowest up, has decided all operands before each node.
# What belongs to a lower band waits in a list: `heads` has the first node of each list, `following` the next after a
# node. Nodes that came since the bands were written down are left out.


class Waiting(NamedTuple):
    """What belongs to lower bands: lists of nodes, linked.

    bands      uint8[nodes]  the band of each inner node
    heads      int32         by band, and by level where there are levels: the first node that waits, -1 for none
    following  int32[nodes]  the node that waits behind each, -1 for none
    """

    bands: Any
    heads: Any
    following: Any


@njit(nogil=True, cache=True)
def match_band_by_paths(band, numbers, graph, waiting, mark, room, matched):
    """Follow truth upwards as `match_paths` does, from the leaves of one band and from what waits for it.

    numbers  uint32[:]  the predicates that are fulfilled, and whose leaves are in this band
    mark     uint32     the stamp of the event, where it stands in a state
    matched    int64[:]   the handles, written
    """
    leaves, rises, _, parents, holders, standing = graph
    bands, heads, following = waiting
    states, stack = room
    low = np.uint32((1 << PATH_BITS) - 1)
    count = np.int64(0)
    leaf = 0
    top = 0
    while True:
        if top > 0:
            top -= 1
            table, row = rises, np.int64(stack[top])
        elif leaf < numbers.size:
            table, row = leaves, np.int64(numbers[leaf])
            leaf += 1
            if row >= leaves.shape[0]:
                continue
        elif heads[band] >= 0:
            table, row = rises, np.int64(heads[band])
            heads[band] = following[row]
        else:
            break
        first = table[row, HOLDER_START]
        for holder in range(first, first + table[row, HOLDER_COUNT]):
            matched[count] = holders[holder, 0]
            count += 1
        first, parent_count = table[row, PARENT_START], table[row, PARENT_COUNT]
        for index in range(max(parent_count, 1 if parent_count < 0 else 0)):
            parent = first if parent_count < 0 else parents[first + index, 0]
            need = np.uint32(-parent_count) if parent_count < 0 else np.uint32(parents[first + index, 1])
            # It came after the bands were written down, and is left out as if it had come after the event.
            if parent >= bands.size:
                continue
            state = states[parent]
            if state & ~low != mark:
                state = np.uint32(mark)
            reached = state & low
            if reached < need:
                states[parent] = state + np.uint32(1)
                if reached + np.uint32(1) == need:
                    if bands[parent] >= band:
                        stack[top] = parent
                        top += 1
                    else:
                        # It became true before its band has its turn: it goes to the front of the band's list.
                        following[parent] = heads[bands[parent]]
                        heads[bands[parent]] = parent
    for node in standing:
        if bands[node] == band:
            first = rises[node, HOLDER_START]
            for holder in range(first, first + rises[node, HOLDER_COUNT]):
                matched[count] = holders[holder, 0]
                count += 1
    return count


@njit(nogil=True, cache=True)
def match_band_by_levels(band, numbers, graph, waiting, mark, states, is_general, matched):
    """Evaluate the nodes of one band level by level, as `match_levels` does.

    numbers  uint32[:]  the predicates that are fulfilled, and whose leaves are in this band
    mark     uint64     the stamp of the event
    matched    int64[:]   the handles, written
    """
    leaves, rises, inner, parents, holders, standing = graph
    bands, heads, following = waiting
    bits = np.uint64(LEVEL_BITS)
    turned = np.uint64(1 << (LEVEL_BITS - 1))
    low = np.uint64((1 << (LEVEL_BITS - 1)) - 1)
    count = np.int64(0)
    leaf = 0
    level = 1
    # Level by level, because a node above can only be judged when all its operands have said what they have to say.
    while level < heads.shape[1]:
        change = np.uint64(1)
        is_reported = True
        if level == 1:
            if leaf == numbers.size:
                level = 2
                continue
            table, row = leaves, np.int64(numbers[leaf])
            leaf += 1
            # A predicate that is younger than this snapshot of the graph has no leaf in it.
            if row >= leaves.shape[0]:
                continue
        else:
            if heads[band, level] < 0:
                level += 1
                continue
            table, row = rises, np.int64(heads[band, level])
            heads[band, level] = following[row]
            operands = np.int64(states[row] & low)
            need = inner[row, NEED]
            default = np.int64(inner[row, DEFAULT])
            if need > 0:
                is_true = np.int64(operands >= need)
            else:
                is_true = operands & 1 if need == ODD else np.int64(operands == 0)
            is_reported = is_true > default
            if is_true == default and not is_general:
                continue
            # A node that is true without any event (a NOT) stands among `standing`; the bit says that it is not now.
            if is_true < default:
                states[row] |= turned
            # One more or one less for the parents, whose count began with the defaults of their operands; unsigned, so
            # that one less is what wraps around.
            change = np.uint64(is_true - default)
        if is_reported:
            first = table[row, HOLDER_START]
            for holder in range(first, first + table[row, HOLDER_COUNT]):
                matched[count] = holders[holder, 0]
                count += 1
        # A negative count says that there is one parent, in place of where a list of them would start.
        first, parent_count = table[row, PARENT_START], table[row, PARENT_COUNT]
        for index in range(max(parent_count, 1 if parent_count < 0 else 0)):
            parent = first if parent_count < 0 else parents[first + index, 0]
            if parent >= bands.size or inner[parent, LEVEL] >= heads.shape[1]:
                continue
            state = states[parent]
            # The stamp of an earlier event: the state is as good as empty, so nothing is cleaned between two events.
            if state >> bits != mark:
                state = (np.uint64(mark) << bits) + np.uint64(inner[parent, BASE])
                following[parent] = heads[bands[parent], inner[parent, LEVEL]]
                heads[bands[parent], inner[parent, LEVEL]] = parent
            states[parent] = state + change
    for node in standing:
        if bands[node] == band and not (states[node] >> bits == mark and states[node] & turned):
            first = rises[node, HOLDER_START]
            for holder in range(first, first + rises[node, HOLDER_COUNT]):
                matched[count] = holders[holder, 0]
                count += 1
    return count
