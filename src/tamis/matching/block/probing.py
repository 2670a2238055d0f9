"""The compiled loops of a single event: from its codes to the owners of the clauses that hold.

A block of events pays for its sorting once; a single event can sort nothing. It has tables of its own (`finders` makes
them), which lead it in three ways to the *probes* that it is tried on, half a cache line each:

    a cell     of two axes that a clause asks for one value each: the event's two codes name one cell of a table, in
               which few clauses lie. Where a clause asks for one value only, or none of its pairs is worth a look, the
               cell is that of one axis
    a bucket   of an axis on which clauses ask for a range: some neighbouring codes, with all ranges that reach into it
    the scan   whoever has neither

A probe asks most of what a clause asks, and often all of it; then it says whose clause it is, and the event need not
look anywhere else. For the others the clause's own row is fetched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamis.compilation import borrowed, prefetch
from tamis.matching.block.kernels import (
    FEW,
    FIRST,
    INTERVAL,
    KIND_BITS,
    KIND_MASK,
    LEAVES,
    MOST_FEW,
    NONE,
    OWNER,
    SPAN,
    TREE,
    WHAT,
    Program,
    drop_repeated,
    find_targets,
    holds,
    reach,
    reached_word,
    tree_holds,
)

AXIS_1, FIRST_1, SPAN_1, FEW_AXIS = range(4)
"""The columns of the first part of a probe."""
FIRST_PART = 4
AXIS_2, FIRST_2, SPAN_2, AXIS_3, FIRST_3, SPAN_3, FEW_BITS = range(7)
"""The columns of the second; the 64 bits are four columns from FEW_BITS on,"""
WHOSE = 10
"""and the last two are a number: a row of the program, or an owner."""
SECOND_PART = 12
IS_ALL, IS_TREE_LEFT = np.uint32(1 << 31), np.uint32(1 << 30)
"""What is said with that number: the probe asks all, and it is an owner; or all but the tree of the row."""
NUMBER = np.uint32((1 << 30) - 1)
ONE, OTHER, WIDTH, CELL = range(4)
"""The columns of a pair of axes."""
AXIS, SHIFT, BUCKET = range(3)
"""The columns of an axis with ranges."""
AHEAD = 16
"""So many probes ahead of the one that is tried, memory is asked for."""
MOST_AXES = 0xFFFF
"""A probe has 16 bits for an axis."""


class Finders(NamedTuple):
    """Which probes an event is tried on: first those in cells, then the ranges, then those that nothing finds.

    truths     uint8[axes]        1 for an axis of truths, whose codes 1 and 2 are places 0 and 1; on the others the
                                  place of operand i is i, and its code 2 i + 2
    pairs      uint32[pairs, 4]   ONE OTHER WIDTH CELL: two axes, how many places the second has, and the first cell;
                                  the axis behind the last one has the place 0 always, for pairs that are one axis
    cells      uint32[cells + 1]  the probes of cell c are cells[c]:cells[c + 1]
    ranged     uint32[:, 3]       AXIS SHIFT BUCKET: an axis with ranges, by how many bits its codes are shifted to be
                                  buckets, and its first bucket
    buckets    uint32[buckets + 1]  the ranges that reach into bucket b are members[buckets[b]:buckets[b + 1]]
    members    uint32[:]
    bounds     uint32[ranges, 2]  the first code and the span of each range, whose probe is `first_range` and so many on
    first_range  int              the first probe of a range
    first_scanned  int            the first that nothing finds
    """

    truths: Any
    pairs: Any
    cells: Any
    ranged: Any
    buckets: Any
    members: Any
    bounds: Any
    first_range: int
    first_scanned: int


class Probes(NamedTuple):
    """What a single event is tried on: half a cache line each, after which most are done with.

    shifts  uint8[axes]         by how many bits the codes of each axis are shifted to fit into 16
    firsts  uint16[probes, 4]   AXIS_1 to SPAN_1: an interval that a leaf of the clause lies in, in shifted codes. Most
                                fail here, so it lies apart; and FEW_AXIS
    rows    uint16[probes, 12]  AXIS_2 to SPAN_3: two more intervals; FEW_BITS: the 64 bits of a leaf of the kind FEW on
                                that axis, or of one that always holds; WHOSE: a row of the program or an owner, with
                                IS_ALL or IS_TREE_LEFT
    """

    shifts: Any
    firsts: Any
    rows: Any


class Hulls(NamedTuple):
    """An interval around each leaf, and roughly the share of events in it; infinite where there is none.

    firsts  uint32[leaves]
    lasts   uint32[leaves]
    costs   float32[leaves]
    """

    firsts: Any
    lasts: Any
    costs: Any


# -- Matching


@njit(nogil=True, cache=True)
def match_event(codes, finders, probes, program, asked, out_owners, shortcut):
    """Match a single event. Returns how many match, perhaps not all written.

    A subscription is written once for each of its clauses that match. Written out in one piece: a call that passes
    arrays costs more than a leaf.

    codes       [axes, 1]     the event's code on each axis
    asked       bool[owners]  whose clauses are asked
    out_owners  uint32[:]     written as far as there is room
    shortcut                  None, or a `Reaching`: then whoever is reached is not asked again
    """
    truths, pairs, cells, ranged, buckets, members, bounds, first_range, first_scanned = finders
    shifts, probe_firsts, probe_rows = probes
    clauses, leaves, trees, bitmaps = program.clauses, program.leaves, program.trees, program.bitmaps
    # Room for all: to ask whether there is room would be a branch in the inner loop.
    candidates = np.empty(probe_rows.shape[0] + AHEAD + 1, np.uint32)
    # The event in the words of the probes: codes of 16 bits, where a small set would have its bit, and places.
    coarse = np.empty(shifts.size + 1, np.uint16)
    bits = np.zeros(shifts.size + 1, np.uint8)  # the last axis is none: its bit 0 always holds
    places = np.empty(shifts.size + 1, np.uint32)
    places[shifts.size] = 0
    for axis in range(shifts.size):
        code = np.uint32(codes[axis, 0])
        coarse[axis] = code >> shifts[axis]
        if code & 1 == 0 and code <= 2 * MOST_FEW:
            bits[axis] = code >> 1
        if truths[axis] == 1:
            places[axis] = code - 1 if code != 0 else NONE
        else:
            places[axis] = (code >> 1) - 1 if code & 1 == 0 and code != 0 else NONE
    # In three turns, so that the waits for memory overlap: where the cells are, where their probes are, and these.
    slices = np.empty((pairs.shape[0] + 1, 2), np.uint32)
    slice_count = np.uintp(0)
    for pair in range(np.uintp(pairs.shape[0])):
        one, other = places[np.uintp(pairs[pair, ONE])], places[np.uintp(pairs[pair, OTHER])]
        if one != NONE and other != NONE:
            cell = np.uintp(pairs[pair, CELL]) + np.uintp(one) * np.uintp(pairs[pair, WIDTH]) + np.uintp(other)
            begin, end = cells[cell], cells[cell + np.uintp(1)]
            slices[slice_count, 0], slices[slice_count, 1] = begin, end
            prefetch(probe_firsts, np.uintp(begin))
            slice_count += np.uintp(begin < end)
    # One comparison tests both ends: a code below the first wraps around to more than any span. Each is written in any
    # case, and kept only if it is counted: whether an interval holds is a coin that the processor cannot foresee.
    count = 0
    for index in range(slice_count):
        for probe in range(np.uintp(slices[index, 0]), np.uintp(slices[index, 1])):
            first = np.uint16(coarse[np.uintp(probe_firsts[probe, AXIS_1])] - probe_firsts[probe, FIRST_1])
            candidates[np.uintp(count)] = probe
            count += np.int64(first <= probe_firsts[probe, SPAN_1])
    for place in range(np.uintp(ranged.shape[0])):
        code = np.uint32(codes[np.uintp(ranged[place, AXIS]), 0])
        if code != 0:
            bucket = np.uintp(ranged[place, BUCKET]) + (np.uintp(code) >> np.uintp(ranged[place, SHIFT]))
            for index in range(np.uintp(buckets[bucket]), np.uintp(buckets[bucket + np.uintp(1)])):
                member = np.uintp(members[index])
                probe = np.uintp(first_range) + member
                first = np.uint16(coarse[np.uintp(probe_firsts[probe, AXIS_1])] - probe_firsts[probe, FIRST_1])
                candidates[np.uintp(count)] = probe
                count += np.int64(
                    (np.uint32(code - bounds[member, 0]) <= bounds[member, 1]) & (first <= probe_firsts[probe, SPAN_1])
                )
    for probe in range(np.uintp(first_scanned), np.uintp(probe_rows.shape[0])):
        first = np.uint16(coarse[np.uintp(probe_firsts[probe, AXIS_1])] - probe_firsts[probe, FIRST_1])
        candidates[np.uintp(count)] = probe
        count += np.int64(first <= probe_firsts[probe, SPAN_1])
    candidates[np.uintp(count) : np.uintp(count + AHEAD)] = 0  # so that the last ones may look ahead, too
    for index in range(min(count, AHEAD)):
        prefetch(probe_rows, np.uintp(candidates[np.uintp(index)]))
    candidate_count = 0
    for index in range(count):
        probe = np.uintp(candidates[np.uintp(index)])
        if shortcut is not None and reached_word(shortcut.probe_groups[probe], np.uintp(0), shortcut) != 0:
            continue
        prefetch(probe_rows, np.uintp(candidates[np.uintp(index + AHEAD)]))
        second = np.uint16(coarse[np.uintp(probe_rows[probe, AXIS_2])] - probe_rows[probe, FIRST_2])
        third = np.uint16(coarse[np.uintp(probe_rows[probe, AXIS_3])] - probe_rows[probe, FIRST_3])
        bit = np.uintp(bits[np.uintp(probe_firsts[probe, FEW_AXIS])])
        word = probe_rows[probe, np.uintp(FEW_BITS) + (bit >> np.uintp(4))] >> (bit & np.uintp(15))
        # What is kept is written over what was read before.
        candidates[np.uintp(candidate_count)] = probe
        candidate_count += np.int64(
            (second <= probe_rows[probe, SPAN_2]) & (third <= probe_rows[probe, SPAN_3])
        ) & np.int64(word)
        if shortcut is not None and candidate_count > 0 and candidates[np.uintp(candidate_count - 1)] == probe:
            whose = np.uint32(probe_rows[probe, WHOSE]) | np.uint32(probe_rows[probe, WHOSE + 1]) << np.uint32(16)
            owner = np.uintp(whose & NUMBER)
            if whose & IS_ALL and asked[owner] and not reach(np.uintp(0), find_targets(owner, shortcut), shortcut):
                candidate_count -= 1  # it holds, and is noted; the probes that follow may be spared
    written = 0
    for begin in range(0, candidate_count, 64):
        end = min(begin + 64, candidate_count)
        if shortcut is not None:
            # Who was reached by earlier candidates is left out here, not only when its turn comes, so that its rows
            # are not even read.
            kept = begin
            for index in range(begin, end):
                probe = np.uintp(candidates[np.uintp(index)])
                candidates[np.uintp(kept)] = candidates[np.uintp(index)]
                kept += np.int64(reached_word(shortcut.probe_groups[probe], np.uintp(0), shortcut) == 0)
            end = kept
        # The rows of a candidate lie anywhere. Read one word of each ahead, so that the waits for memory overlap.
        ahead = np.uint32(0)
        for index in range(begin, end):
            probe = np.uintp(candidates[np.uintp(index)])
            whose = np.uint32(probe_rows[probe, WHOSE]) | np.uint32(probe_rows[probe, WHOSE + 1]) << np.uint32(16)
            candidates[np.uintp(index)] = whose
            if whose & IS_ALL:
                ahead |= np.uint32(asked[np.uintp(whose & NUMBER)])
            else:
                ahead |= clauses[np.uintp(whose & NUMBER), LEAVES]
        for index in range(begin, end):
            whose = candidates[np.uintp(index)]
            if whose & IS_ALL:
                continue
            clause = np.uintp(whose & NUMBER)
            ahead |= np.uint32(asked[np.uintp(clauses[clause, OWNER])])
            leaf = np.uintp(clauses[clause, LEAVES])
            if not whose & IS_TREE_LEFT and leaf < np.uintp(leaves.shape[0]):
                ahead |= leaves[leaf, WHAT]
            if clauses[clause, TREE] != NONE:
                ahead |= trees[np.uintp(clauses[clause, TREE]), WHAT]
        places[shifts.size] = ahead  # so that no compiler leaves the reads out
        for index in range(begin, end):
            whose = candidates[np.uintp(index)]
            clause = np.uintp(whose & NUMBER)
            owner = np.uint32(clause)
            if not whose & IS_ALL:
                owner, tree = clauses[clause, OWNER], clauses[clause, TREE]
                is_match = True
                if not whose & IS_TREE_LEFT:
                    leaf, last_leaf = np.uintp(clauses[clause, LEAVES]), np.uintp(clauses[clause + np.uintp(1), LEAVES])
                    while leaf < last_leaf and is_match:
                        code = np.uint32(codes[(leaves[leaf, WHAT] >> KIND_BITS), 0])
                        if (leaves[leaf, WHAT] & KIND_MASK) == INTERVAL:
                            is_match = code - leaves[leaf, FIRST] <= leaves[leaf, SPAN]
                        else:
                            is_match = holds(
                                code, (leaves[leaf, WHAT] & KIND_MASK), leaves[leaf, FIRST], leaves[leaf, SPAN], bitmaps
                            )
                        leaf += np.uintp(1)
                if not is_match or (tree != NONE and not tree_holds(codes, np.uintp(0), tree, trees, bitmaps)):
                    continue
            if not asked[np.uintp(owner)]:
                continue
            if shortcut is not None and not reach(np.uintp(0), find_targets(owner, shortcut), shortcut):
                continue
            if written < out_owners.size:
                out_owners[np.uintp(written)] = owner
            written += 1
    return written


@njit(nogil=True, cache=True)
def match_event_of_columns(codes, columns, asked, out_owners, shortcut):
    """`match_event`, given the columns of finders, probes and program side by side, in one plain tuple.

    Python calls this one: to look into a named tuple takes the dispatcher 0.6 µs, and a small event takes 10. For the
    same reason the owners are put in order here, each once, if there was room for all.
    """
    finders, probes, program = Finders(*columns[:9]), Probes(*columns[9:12]), Program(*columns[12:])
    written = match_event(codes, borrowed(finders), borrowed(probes), borrowed(program), asked, out_owners, shortcut)
    if written > out_owners.size:
        return written
    owners = out_owners[:written]
    owners.sort()
    return drop_repeated(owners)


@njit(nogil=True, cache=True)
def match_few_of_columns(codes, columns, asked, numbers, out):
    """Match a few events one by one, in one call: a call from Python takes as long as a small event.

    codes    uint32[events, axes]  their codes
    columns                        as for `match_event_of_columns`
    numbers  int64[:]              written: the number of the event of each match
    out      uint32[:]             written: its owner; those of an event are in order, each once

    Returns how many are written, or a negative number of matches that there should be room for at least.
    """
    finders, probes = borrowed(Finders(*columns[:9])), borrowed(Probes(*columns[9:12]))
    program = borrowed(Program(*columns[12:]))
    written = 0
    for event in range(codes.shape[0]):
        column = codes[event].reshape(-1, 1)
        count = match_event(column, finders, probes, program, asked, out[written:], None)
        if count > out.size - written:
            return -(written + count)
        owners = out[written : written + count]
        owners.sort()
        end = written + drop_repeated(owners)
        numbers[written:end] = event
        written = end
    return written


# -- Laying out


class PairLeaves(NamedTuple):
    """The leaves that a clause may be found by two at a time, and what that costs."""

    sizes: Any
    """int64[leaves]: how many values a leaf asks for: 1, or the members of a set; 0 if it is neither."""
    groups: Any
    """int64[leaves]: which of the axes that may have pairs its axis is; -1 for none."""
    shares: Any
    """By leaf: the share of the events that pass it."""
    most_members: int
    """A pair of sets has a copy of the clause for each combination, at most so many,"""
    copy_cost: float
    """and each is weighed as this share of the events."""


@njit(nogil=True, cache=True)
def choose_pairs(leaves_of_clauses, leaves, chosen, costs, allowed, best, gains):
    """Choose for each clause the two leaves that ask for a value each and that the fewest events pass together.

    leaves     PairLeaves
    chosen     int64[clauses]     the leaf by which a block finds it; a pair must have it where it is below -1: then
                                  it is that leaf, as -2 - leaf
    costs      float64[clauses]   the share of the events that it would be found by without a pair
    allowed    bool[axes, axes]   which pairs may be chosen
    best       int64[clauses, 2]  written: the leaves, -1 where there is no pair
    gains      float64[axes, axes, 2]  written: how many clauses choose a pair, and which shares they save together
    """
    sizes, groups, shares, most_members, copy_cost = leaves
    few = np.empty(6, np.int64)
    for clause in range(chosen.size):
        best[clause, 0] = best[clause, 1] = -1
        demanded = -2 - chosen[clause] if chosen[clause] < -1 else -1
        count = 0  # of the cheapest so far, in order: an insertion sort of a few places
        for index in range(leaves_of_clauses.starts[clause], leaves_of_clauses.starts[clause + 1]):
            leaf = np.int64(leaves_of_clauses.values[index])
            if sizes[leaf] == 0 or groups[leaf] < 0:
                continue
            place = min(count, few.size - 1)
            if count == few.size and shares[few[place]] <= shares[leaf] and leaf != demanded:
                continue
            while place > 0 and shares[few[place - 1]] > shares[leaf]:
                few[place] = few[place - 1]
                place -= 1
            few[place] = leaf
            count = min(count + 1, few.size)
        least = costs[clause] / 2
        for one in range(count):
            for other in range(one + 1, count):
                a, b = few[one], few[other]
                copies = sizes[a] * sizes[b]
                if groups[a] == groups[b] or copies > most_members or (demanded >= 0 and a != demanded != b):
                    continue
                if groups[a] > groups[b]:
                    a, b = b, a
                cost = np.float64(shares[a]) * shares[b] + copy_cost * (copies - 1)
                if cost < least and allowed[groups[a], groups[b]]:
                    least = cost
                    best[clause, 0], best[clause, 1] = a, b
        if best[clause, 0] >= 0:
            a, b = best[clause]
            gains[groups[a], groups[b], 0] += 1
            gains[groups[a], groups[b], 1] += costs[clause] - np.float64(shares[a]) * shares[b]


@njit(nogil=True, cache=True)
def write_cells(chosen, pairs, starts, sizes, places, cells, clauses):
    """Write in which cells each clause lies: one for each combination of the values that its two leaves ask for.

    chosen   int64[clauses, 2]  the leaves, the second -1 where there is one only, the first where there is none
    pairs    int64[clauses, 2]  the first cell of its pair of axes, and how many places the second axis has
    starts   int64[leaves]      where the places of the values of each leaf start,
    sizes    int64[leaves]      how many there are,
    places   int64[:]           and the places
    cells    int64[:]           written, and beside it
    clauses  int64[:]           the clause
    """
    written = 0
    for clause in range(chosen.shape[0]):
        one, other = chosen[clause]
        if one < 0:
            continue
        for index in range(starts[one], starts[one] + sizes[one]):
            cell = pairs[clause, 0] + places[index] * pairs[clause, 1]
            if other < 0:
                cells[written], clauses[written] = cell, clause
                written += 1
                continue
            for place in range(starts[other], starts[other] + sizes[other]):
                cells[written], clauses[written] = cell + places[place], clause
                written += 1
    return written


@njit(nogil=True, cache=True)
def choose_probes(leaves_of_clauses, found_by, demanded, table, hulls, shifts, probes):
    """Choose the cheapest leaves of each clause, but for those by which it is found, and write what they ask.

    found_by  int64[clauses, 2]    the leaves by which it is found; -1 for none
    demanded  int64[clauses]       a leaf that nobody else asks, whose interval must be among them; -1 for none
    probes                         written: the parts of a probe for each clause, see `Probes`; of WHOSE only the flag
                                   IS_ALL is written, if all leaves are asked

    A leaf that is demanded is an interval, on an axis whose codes are not shifted.
    """
    best = np.empty(3, np.int64)
    for clause in range(found_by.shape[0]):
        few = -1
        # Of the sets of few operands the one that holds least often is asked as 64 bits; there is room for one.
        for index in range(leaves_of_clauses.starts[clause], leaves_of_clauses.starts[clause + 1]):
            leaf = np.int64(leaves_of_clauses.values[index])
            if leaf == found_by[clause, 0] or leaf == found_by[clause, 1]:
                continue
            if table.kinds[leaf] == FEW and (few < 0 or hulls.costs[leaf] < hulls.costs[few]):
                few = leaf
        best[:] = -1  # the three cheapest so far, in order: an insertion sort of three places
        count = 0
        is_all = True
        for index in range(leaves_of_clauses.starts[clause], leaves_of_clauses.starts[clause + 1]):
            leaf = np.int64(leaves_of_clauses.values[index])
            if leaf == found_by[clause, 0] or leaf == found_by[clause, 1] or leaf == few:
                continue
            if hulls.costs[leaf] == np.inf or table.axes[leaf] > MOST_AXES:
                is_all = False
                continue
            # The probes are the whole answer only if nothing was rounded: no hull around a set, and no code that lost
            # bits.
            is_all &= table.kinds[leaf] == INTERVAL and shifts[table.axes[leaf]] == 0
            count += 1
            cost = np.float32(-1) if leaf == demanded[clause] else hulls.costs[leaf]
            for place in range(3):
                if best[place] < 0 or (best[place] != demanded[clause] and cost < hulls.costs[best[place]]):
                    for later in range(2, place, -1):
                        best[later] = best[later - 1]
                    best[place] = leaf
                    break
        if few >= 0 and table.axes[few] > MOST_AXES:
            few, is_all = -1, False
        write_interval(best[0], table, hulls, shifts, probes.firsts[clause])
        write_interval(best[1], table, hulls, shifts, probes.rows[clause])
        write_interval(best[2], table, hulls, shifts, probes.rows[clause, AXIS_3:])
        firsts, row = probes.firsts[clause], probes.rows[clause]
        row[FEW_BITS:] = 0
        if few < 0:
            # No such set: the axis behind the last one, whose bit 0 always holds.
            firsts[FEW_AXIS], row[FEW_BITS] = shifts.size, 1
        else:
            firsts[FEW_AXIS] = table.axes[few]
            # The leaf has its 64 bits in two words of 32; here they are four of 16, the lowest first.
            row[FEW_BITS], row[FEW_BITS + 1] = table.firsts[few] & 0xFFFF, table.firsts[few] >> 16
            row[FEW_BITS + 2], row[FEW_BITS + 3] = table.spans[few] & 0xFFFF, table.spans[few] >> 16
        row[WHOSE + 1] = np.uint16(0x8000) if is_all and count <= 3 else np.uint16(0)


@njit(nogil=True, cache=True)
def write_interval(leaf, table, hulls, shifts, columns):
    """Write the axis, the first code and the span of a leaf's interval; without a leaf, of one that always holds."""
    columns[0] = columns[1] = 0
    columns[2] = 0xFFFF
    if leaf >= 0:
        axis = table.axes[leaf]
        first = hulls.firsts[leaf] >> shifts[axis]
        columns[0], columns[1] = axis, first
        columns[2] = (hulls.lasts[leaf] >> shifts[axis]) - first
