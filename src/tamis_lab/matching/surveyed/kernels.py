"""The compiled loops of structures that were compared or surveyed, behind the predicate phase."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamis.ragged import Ragged
from tamis_lab.matching.kernels import (
    COLUMNS,
    LINE,
    SIZE,
    LastPages,
    Outlet,
    clear_bits,
    match_pages,
    next_epoch,
    set_bits,
)

# -- Counters in slices: bit b of 64 counters is one word


class SlicedTable(NamedTuple):
    """Predicates by the words of counters that they count in.

    starts  int64[predicates + 1]   the entries of predicate p are starts[p]:starts[p + 1]
    words   uint32[entries]         which 64 conjunctions
    masks   uint64[entries]         which of these have the predicate
    needs   uint64[words, slices]   how many predicates each has, sliced
    """

    starts: Any
    words: Any
    masks: Any
    needs: Any


@njit(nogil=True, cache=True)
def add_slices(mask, counters):
    """Add one to some of 64 counters: the carry goes from slice to slice, until nobody has one."""
    index = 0
    while mask:
        before = counters[index]
        counters[index] = before ^ mask
        mask &= before
        index += 1


@njit(nogil=True, cache=True)
def match_slices(fulfilled, begin, table, pages, room, out):
    """Count hits for 64 conjunctions at a time, and compare with what they need, slice by slice.

    room  the sliced counters, all 0 between calls, and a bit for each predicate
    """
    event_starts, numbers = fulfilled
    starts, words, masks, needs = table
    counters, bits = room
    out_events, out_slots = out
    written = 0
    for event in range(begin, event_starts.size - 1):
        if written + pages.slot_count > out_slots.size:
            return event, written
        first, last = event_starts[event], event_starts[event + 1]
        for index in range(first, last):
            number = np.int64(numbers[index])
            if number < starts.size - 1:  # others are too new
                for entry in range(starts[number], starts[number + 1]):
                    add_slices(masks[entry], counters[words[entry]])
        last_owner = np.int64(-1)
        for word in range(needs.shape[0]):
            differences = np.uint64(0)
            for index in range(needs.shape[1]):
                differences |= counters[word, index] ^ needs[word, index]
                counters[word, index] = 0
            equal = ~differences
            conjunction = 64 * word
            while equal:
                if equal & np.uint64(1):
                    # Conjunctions ascend, so two of one slot follow each other: it is written once.
                    owner = np.int64(pages.owners[conjunction])
                    if owner != last_owner:
                        out_events[written] = event
                        out_slots[written] = owner
                        written += 1
                        last_owner = owner
                equal >>= np.uint64(1)
                conjunction += 1
        if pages.first < pages.ends.size:
            set_bits(numbers, first, last, bits)
            written = match_pages(pages, bits, event, last_owner, out, written)
            clear_bits(numbers, first, last, bits)
    return event_starts.size - 1, written


@njit(nogil=True, cache=True)
def match_slices_of_columns(begin, columns):
    """`match_slices`: the lists of events, the table, the last pages, the room, the outlet."""
    return match_slices(
        Ragged(*columns[:2]),
        begin,
        SlicedTable(*columns[2:6]),
        LastPages(*columns[6:11]),
        columns[11:13],
        Outlet(*columns[13:]),
    )


# -- Equalities that hold, by axis


class EqualRoom(NamedTuple):
    """The equalities of an event, and what a visit works in. Invariant: between calls `equal_at` and bits are 0.

    equal_at  uint32[axes]        one plus the last equality that holds there
    twins     uint32[predicates]  of each such equality, one plus the one before it on the same axis, 0 for none
    stack     uint32[nodes]       the nodes to be visited, where there are any
    bits      uint32[:]           a bit for each predicate
    stamps    uint32[slots]       the epoch in which a shared slot was written last
    epochs    uint32[1]           the present one
    """

    equal_at: Any
    twins: Any
    stack: Any
    bits: Any
    stamps: Any
    epochs: Any


@njit(nogil=True, cache=True)
def note_equalities(numbers, begin, end, equal_axes, room):
    """Note down which equalities hold on each axis. `equal_axes` has one plus the axis of each, 0 for others."""
    for index in range(begin, end):
        number = np.int64(numbers[index])
        if number < equal_axes.size and equal_axes[number]:
            axis = equal_axes[number] - 1
            room.twins[number] = room.equal_at[axis]
            room.equal_at[axis] = number + 1


@njit(nogil=True, cache=True)
def forget_equalities(numbers, begin, end, equal_axes, room):
    """Clear what was noted down."""
    for index in range(begin, end):
        number = np.int64(numbers[index])
        if number < equal_axes.size and equal_axes[number]:
            room.equal_at[equal_axes[number] - 1] = 0


@njit(nogil=True, cache=True)
def hashed(one, two, three):
    """Return a number that looks random."""
    x = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(29)) ^ np.uint64(two)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(32)) ^ np.uint64(three)) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# -- Clusters by several equalities

NONE = 2**32 - 1
"""In place of a predicate, where there are fewer than three."""


class AccessTable(NamedTuple):
    """Clusters by access predicates of one to three equalities.

    schemas     int32[schemas, 3]     the axes of each kind of access predicate, -1 behind the last
    keys        uint32[groups, 3]     the equalities of each access predicate, NONE behind the last
    table       int32[:]              from keys to groups, by open addressing
    starts      int64[groups + 2]     the clusters of each group, and of those without an access predicate
    clusters    int64[clusters + 1, 3]
    line        uint32[conjunctions]
    columns     uint32[:]             these three as `ClusterTable` has them
    equal_axes  int32[predicates]     one plus the axis of an equality, 0 for other predicates
    is_shared   bool[slots]           whether a slot has several conjunctions, and may be written twice
    """

    schemas: Any
    keys: Any
    table: Any
    starts: Any
    clusters: Any
    line: Any
    columns: Any
    equal_axes: Any
    is_shared: Any


@njit(nogil=True, cache=True)
def enter_keys(keys, table):
    """Fill an empty table with the groups of all keys."""
    mask = np.uint64(table.size - 1)
    for group in range(keys.shape[0]):
        place = hashed(keys[group, 0], keys[group, 1], keys[group, 2]) & mask
        while table[place] >= 0:
            place = (place + np.uint64(1)) & mask
        table[place] = group


@njit(nogil=True, cache=True)
def group_of(one, two, three, keys, table):
    """Return the group of some equalities, -1 if nobody asks for them."""
    mask = np.uint64(table.size - 1)
    place = hashed(one, two, three) & mask
    while table[place] >= 0:
        group = table[place]
        if keys[group, 0] == one and keys[group, 1] == two and keys[group, 2] == three:
            return np.int64(group)
        place = (place + np.uint64(1)) & mask
    return np.int64(-1)


@njit(nogil=True, cache=True)
def visit_group(group, event, access, room, written, out):
    """Check the clusters of a group, column by column; return how many matches there are now."""
    epoch = room.epochs[0]
    for cluster in range(access.starts[group], access.starts[group + 1]):
        from_line, at, size = (
            access.clusters[cluster, LINE],
            access.clusters[cluster, COLUMNS],
            access.clusters[cluster, SIZE],
        )
        count = access.clusters[cluster + 1, LINE] - from_line
        for member in range(count):
            column = 0
            while column < size:
                asked = access.columns[at + column * count + member]
                if (room.bits[asked >> np.uint32(5)] >> (asked & np.uint32(31))) & np.uint32(1) == 0:
                    break
                column += 1
            if column < size:
                continue
            slot = access.line[from_line + member]
            if access.is_shared[slot]:
                if room.stamps[slot] == epoch:
                    continue
                room.stamps[slot] = epoch
            out.events[written] = event
            out.slots[written] = slot
            written += 1
    return written


@njit(nogil=True, cache=True)
def first_on(axis, room):
    """Return one plus the last equality that holds on an axis, 0 for none; where there is no axis, one plus NONE."""
    return np.int64(NONE + 1) if axis < 0 else np.int64(room.equal_at[axis])


@njit(nogil=True, cache=True)
def next_on(place, axis, room):
    """Return what follows on the axis."""
    return np.int64(0) if axis < 0 else np.int64(room.twins[place - 1])


@njit(nogil=True, cache=True)
def match_access(fulfilled, begin, access, pages, room, out):
    """Visit the clusters of the access predicates that hold: those of each schema are looked up by what holds there.

    Of one axis more than one equality may hold (`x = 1` and `x <=> 1`), so all combinations are looked up.
    """
    event_starts, numbers = fulfilled
    written = 0
    last_group = access.keys.shape[0]
    for event in range(begin, event_starts.size - 1):
        if written + pages.slot_count > out.slots.size:
            return event, written
        first, last = event_starts[event], event_starts[event + 1]
        next_epoch(room.epochs, room.stamps)
        set_bits(numbers, first, last, room.bits)
        note_equalities(numbers, first, last, access.equal_axes, room)
        for schema in access.schemas:
            one = first_on(schema[0], room)
            while one:
                two = first_on(schema[1], room)
                while two:
                    three = first_on(schema[2], room)
                    while three:
                        group = group_of(one - 1, two - 1, three - 1, access.keys, access.table)
                        if group >= 0:
                            written = visit_group(group, event, access, room, written, out)
                        three = next_on(three, schema[2], room)
                    two = next_on(two, schema[1], room)
                one = next_on(one, schema[0], room)
        written = visit_group(last_group, event, access, room, written, out)
        if pages.first < pages.ends.size:
            written = match_pages(pages, room.bits, event, -1, out, written)
        forget_equalities(numbers, first, last, access.equal_axes, room)
        clear_bits(numbers, first, last, room.bits)
    return event_starts.size - 1, written


@njit(nogil=True, cache=True)
def match_access_of_columns(begin, columns):
    """`match_access`: the lists of events, the access table, the last pages, the room, the outlet."""
    return match_access(
        Ragged(*columns[:2]),
        begin,
        AccessTable(*columns[2:11]),
        LastPages(*columns[11:16]),
        EqualRoom(*columns[16:22]),
        Outlet(*columns[22:]),
    )


# -- The matching tree with a level for each attribute


class LevelTree(NamedTuple):
    """A tree in which every path has a node for each attribute. Invariant: children have greater numbers.

    levels      int32[nodes]         the level of each, which is the place of its attribute in the order
    stars       uint32[nodes]        where those lead who do not care, 0 for none
    keys        uint32[:, 2]         by place in a table with open addressing: a node, and the equality of an edge
    targets     uint32[:]            beside `keys`: the node that the edge leads to, 0 where the place is free
    starts      int64[nodes + 1]     the subscriptions of each node
    line        uint32[conjunctions] the slots, node after node
    axes        int32[levels]        the axis of each level
    equal_axes  int32[predicates]    one plus the axis of an equality
    is_shared   bool[slots]
    """

    levels: Any
    stars: Any
    keys: Any
    targets: Any
    starts: Any
    line: Any
    axes: Any
    equal_axes: Any
    is_shared: Any


@njit(nogil=True, cache=True)
def edge_place(node, number, keys, targets):
    """Return where an edge stands in the table, or would stand."""
    mask = np.uint64(targets.size - 1)
    place = hashed(node, number, 0) & mask
    while targets[place] and not (keys[place, 0] == node and keys[place, 1] == number):
        place = (place + np.uint64(1)) & mask
    return place


@njit(nogil=True, cache=True)
def grow_levels(predicates, ends, ranks, tree, nodes_of):
    """Insert conjunctions one after the other; return how many nodes there are.

    predicates  uint32[:]  those of each conjunction in the order of the levels
    ranks       int64[:]   by predicate: its level
    nodes_of    int64[:]   written: the node of each conjunction
    """
    count = np.int64(1)
    begin = np.int64(0)
    depth = tree.axes.size
    for conjunction in range(ends.size):
        node = np.int64(0)
        at = begin
        end = np.int64(ends[conjunction])
        for level in range(depth):
            if at < end and ranks[predicates[at]] == level:
                place = edge_place(node, predicates[at], tree.keys, tree.targets)
                if tree.targets[place] == 0:
                    tree.keys[place, 0], tree.keys[place, 1] = node, predicates[at]
                    tree.targets[place] = count
                    tree.levels[count] = level + 1
                    count += 1
                node = np.int64(tree.targets[place])
                at += 1
            else:
                if tree.stars[node] == 0:
                    tree.stars[node] = count
                    tree.levels[count] = level + 1
                    count += 1
                node = np.int64(tree.stars[node])
        nodes_of[conjunction] = node
        begin = end
    return count


@njit(nogil=True, cache=True)
def match_level_tree(fulfilled, begin, tree, pages, room, out):
    """Follow, from the root, the edge of what holds and the star of every node."""
    event_starts, numbers = fulfilled
    written = 0
    depth = tree.axes.size
    for event in range(begin, event_starts.size - 1):
        if written + pages.slot_count > out.slots.size:
            return event, written
        first, last = event_starts[event], event_starts[event + 1]
        epoch = next_epoch(room.epochs, room.stamps)
        set_bits(numbers, first, last, room.bits)
        note_equalities(numbers, first, last, tree.equal_axes, room)
        room.stack[0] = 0
        top = 1
        while top:
            top -= 1
            node = np.int64(room.stack[top])
            if tree.levels[node] == depth:
                for index in range(tree.starts[node], tree.starts[node + 1]):
                    slot = tree.line[index]
                    if tree.is_shared[slot]:
                        if room.stamps[slot] == epoch:
                            continue
                        room.stamps[slot] = epoch
                    out.events[written] = event
                    out.slots[written] = slot
                    written += 1
                continue
            if tree.stars[node]:
                room.stack[top] = tree.stars[node]
                top += 1
            holds = room.equal_at[tree.axes[tree.levels[node]]]
            if holds:
                target = tree.targets[edge_place(node, holds - 1, tree.keys, tree.targets)]
                if target:
                    room.stack[top] = target
                    top += 1
        if pages.first < pages.ends.size:
            written = match_pages(pages, room.bits, event, -1, out, written)
        forget_equalities(numbers, first, last, tree.equal_axes, room)
        clear_bits(numbers, first, last, room.bits)
    return event_starts.size - 1, written


@njit(nogil=True, cache=True)
def match_level_tree_of_columns(begin, columns):
    """`match_level_tree`: the lists of events, the tree, the last pages, the room, the outlet."""
    return match_level_tree(
        Ragged(*columns[:2]),
        begin,
        LevelTree(*columns[2:11]),
        LastPages(*columns[11:16]),
        EqualRoom(*columns[16:22]),
        Outlet(*columns[22:]),
    )
