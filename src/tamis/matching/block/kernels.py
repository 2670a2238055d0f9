"""The compiled loops of the block matcher: arrays in, arrays out.

Throughout, an event's value on an axis is a *code*: 0 for NULL or a value of another kind, otherwise its rank
among the axis's operands plus one. A segment's clauses are rows of four tables of unsigned 32-bit numbers (one row
is one cache line or less, and few arguments make calls between kernels cheap):

    leaves     WHAT FIRST SPAN                         a leaf: does the code lie in a set of codes? WHAT is the axis,
                                                       times eight, plus the kind
    trees      WHAT FIRST SPAN ON_TRUE ON_FALSE        a leaf of a tree, and where to go on from it
    clauses    LEAVES TREE OWNER ORDINAL               where its leaves start (they end where the next clause's start),
                                                       where its tree starts, whose it is, and which of the owner's
    bitmaps                                            64-bit words: the members of sets

There are six kinds of leaf:

    INTERVAL   FIRST <= code <= FIRST + SPAN
    OUTSIDE    the code is not 0 and not in that interval
    MEMBER     bit `code` of the bitmap that starts at word FIRST is set
    LISTED     the code is one of the SPAN sorted words that start at word FIRST
    UNLISTED   the code is not 0 and not one of them
    FEW        the code is twice a bit that is set in FIRST and SPAN together, on an axis of at most MOST_FEW operands
"""

from __future__ import annotations

import numpy as np
from numba import njit

WHAT, FIRST, SPAN, ON_TRUE, ON_FALSE = 0, 1, 2, 3, 4
KIND_BITS, KIND_MASK = np.uint32(3), np.uint32(7)
LEAVES, TREE, OWNER, ORDINAL = 0, 1, 2, 3
INTERVAL, OUTSIDE, MEMBER, LISTED, UNLISTED, FEW = 0, 1, 2, 3, 4, 5
MOST_FEW = 63
NONE = ACCEPT = 2**32 - 1
REJECT = 2**32 - 2


@njit(nogil=True, cache=True, inline="always")
def few_hold(code, first, span):
    """Does a leaf of the kind FEW hold for a code? Operand i has the code 2 i + 2; bit 0 is never set."""
    bits = np.uint64(first) | (np.uint64(span) << np.uint64(32))
    return (bits >> np.uint64(code >> 1)) & np.uint64(~code & 1) != 0


@njit(nogil=True, cache=True, inline="always")
def holds(code, kind, first, span, bitmaps):
    """Does a leaf hold for a code?"""
    if kind == INTERVAL:
        return np.uint32(code) - np.uint32(first) <= np.uint32(span)
    if kind == OUTSIDE:
        return code != 0 and np.uint32(code) - np.uint32(first) > np.uint32(span)
    if kind == FEW:
        return few_hold(code, first, span)
    if kind == MEMBER:
        return (bitmaps[first + (code >> 6)] >> np.uint64(code & 63)) & np.uint64(1) != 0
    if code == 0:
        return False
    low, high = np.int64(first), np.int64(first) + np.int64(span)
    while low < high:
        middle = (low + high) >> 1
        if bitmaps[middle] < code:
            low = middle + 1
        else:
            high = middle
    is_listed = low < np.int64(first) + np.int64(span) and bitmaps[low] == code
    return is_listed == (kind == LISTED)


@njit(nogil=True, cache=True, inline="always")
def tree_holds(codes, event, start, trees, bitmaps):
    """Follow the jumps of a tree's program from leaf to leaf until it accepts or rejects."""
    at = np.uint32(0)
    while at < REJECT:
        leaf = start + at
        code = codes[(trees[leaf, WHAT] >> KIND_BITS), event]
        if holds(code, (trees[leaf, WHAT] & KIND_MASK), trees[leaf, FIRST], trees[leaf, SPAN], bitmaps):
            at = trees[leaf, ON_TRUE]
        else:
            at = trees[leaf, ON_FALSE]
    return at == ACCEPT


@njit(nogil=True, cache=True)
def clause_holds(codes, event, clause, clauses, leaves, trees, bitmaps):
    """Do all leaves and the tree of a clause hold for one event?"""
    for leaf in range(clauses[clause, LEAVES], clauses[clause + np.uintp(1), LEAVES]):
        code = codes[(leaves[leaf, WHAT] >> KIND_BITS), event]
        if not holds(code, (leaves[leaf, WHAT] & KIND_MASK), leaves[leaf, FIRST], leaves[leaf, SPAN], bitmaps):
            return False
    tree = clauses[clause, TREE]
    return tree == NONE or tree_holds(codes, event, tree, trees, bitmaps)


@njit(nogil=True, cache=True)
def is_repeated(codes, event, owner, ordinal, owner_clauses, clause_list, clauses, leaves, trees, bitmaps):
    """Was this match found through an earlier clause of the same subscription already?"""
    first = owner_clauses[owner]
    for earlier in range(first, first + ordinal):
        clause = clause_list[earlier]
        if clause != NONE and clause_holds(codes, event, clause, clauses, leaves, trees, bitmaps):
            return True
    return False


# -- The shortcut: whoever has been reached is not asked again
#
# A subscription may have a destination, a number from 1 on; 0 is that of those who have none. The shortcut is a tuple:
#
#     row_groups     uint32[:]  for each row the group of destinations that its owner, or one of the owner's twins, has
#     group_starts   uint32[:]  those of group g are group_members[group_starts[g]:group_starts[g + 1]], in order
#     group_members  uint32[:]
#     destinations   uint32[:]  of each owner
#     twin_starts    uint32[:]  the owner's twins, see `twins.py`; empty where nobody has any
#     twins          uint32[:]
#     alive          bool[:]    by owner
#     words          int        how many words of 64 events a map has
#     reached        uint64[:]  for each destination the map of the events that reached it; that of 0 stays empty
#     targets        uint32[:]  room for all destinations, and behind them a mark for each, which is cleared after use


@njit(nogil=True, cache=True, inline="always")
def reached_word(row, word, shortcut):
    """Return the events of a word that have reached all whom a row could reach."""
    row_groups, group_starts, group_members, _, _, _, _, words, reached, _ = shortcut
    group = np.uintp(row_groups[row])
    bits = ~np.uint64(0)
    for index in range(np.uintp(group_starts[group]), np.uintp(group_starts[group + np.uintp(1)])):
        bits &= reached[np.uintp(group_members[index]) * np.uintp(words) + np.uintp(word)]
        if bits == 0:
            break
    return bits


@njit(nogil=True, cache=True)
def find_targets(owner, shortcut):
    """Write the destinations of an owner and its twins, as far as they live, each once; returns how many there are."""
    _, _, _, destinations, twin_starts, twins, alive, _, _, targets = shortcut
    if twin_starts.size == 0:
        targets[0] = destinations[owner]
        return np.uintp(1)
    room = np.uintp(targets.size // 2)
    count = np.uintp(0)
    for index in range(twin_starts[owner], twin_starts[owner + 1]):
        twin = np.uintp(twins[index])
        destination = np.uintp(destinations[twin])
        if alive[twin] and targets[room + destination] == 0:
            targets[room + destination] = 1
            targets[count] = destination
            count += np.uintp(1)
    for index in range(count):
        targets[room + np.uintp(targets[index])] = 0
    return count


@njit(nogil=True, cache=True)
def reach(event, target_count, shortcut):
    """Note whom an event reaches; returns whether one among them has no destination, and is to be written."""
    _, _, _, _, _, _, _, words, reached, targets = shortcut
    is_written = False
    word, bit = np.uintp(event) >> np.uintp(6), np.uint64(1) << np.uint64(np.uintp(event) & np.uintp(63))
    for index in range(target_count):
        destination = np.uintp(targets[index])
        if destination == 0:
            is_written = True
        else:
            reached[destination * np.uintp(words) + word] |= bit
    return is_written


# -- Narrow clauses: found by a key, checked event by event


@njit(nogil=True, cache=True)
def sort_by_code(codes, count, starts, order):
    """Sort the events of a block by their code on one axis.

    codes   [:]        the code of each event
    count   int        how many events
    starts  int32[:]   afterwards the events with code c are order[starts[c]:starts[c + 1]]
    order   uint16[:]  the events
    """
    starts[:] = 0
    for event in range(count):
        starts[codes[event] + 1] += 1
    for code in range(1, starts.size):
        starts[code] += starts[code - 1]
    # `starts` is moved while placing, and shifted back afterwards
    for event in range(count):
        code = codes[event]
        order[starts[code]] = event
        starts[code] += 1
    for code in range(starts.size - 1, 0, -1):
        starts[code] = starts[code - 1]
    starts[0] = 0


@njit(nogil=True, cache=True)
def match_keys(
    codes, orders, starts, key_orders, key_begins, key_ends, key_clauses,
    clauses, leaves, trees, bitmaps, owner_clauses, clause_list, is_broad, alive,
    survivors, key, clause, out_events, out_owners, shortcut,
):  # fmt: skip
    """Match a block of events against the clauses of every key, key by key.

    Each key's events are a slice of the block sorted by that key's axis. A clause narrows the slice, leaf by leaf, to
    the events that survive. Returns (key, clause, matches written); a key short of the last one means that the output
    is full, and the caller continues from there.

    key_orders  int64[:]  where in `orders` the key's axis starts
    key_begins  int64[:]  where in `starts` the key's first code is found
    key_ends    int64[:]  and where the one behind its last
    shortcut              None, or what `reach` needs: then an event is not asked for those whom it has reached
    """
    written = 0
    while key < key_orders.size:
        begin, end = starts[key_begins[key]], starts[key_ends[key]]
        last_clause = key_clauses[key + 1]
        if begin == end:
            clause = last_clause
        slice_start = np.uintp(key_orders[key] + begin)
        size = np.uintp(end - begin)
        while clause < last_clause:
            row = np.uintp(clause)
            owner = clauses[row, OWNER]
            if alive[owner] and not is_broad[row]:
                if written + np.int64(size) > out_events.size:
                    return key, clause, written
                remaining = size
                for index in range(size):
                    survivors[index] = orders[slice_start + index]
                target_count = np.uintp(NONE)  # not looked for yet
                for leaf in range(clauses[row, LEAVES], clauses[row + np.uintp(1), LEAVES]):
                    axis, kind = (leaves[leaf, WHAT] >> KIND_BITS), (leaves[leaf, WHAT] & KIND_MASK)
                    first, span = leaves[leaf, FIRST], leaves[leaf, SPAN]
                    kept = np.uintp(0)
                    if kind == INTERVAL:
                        for index in range(remaining):
                            event = survivors[index]
                            survivors[kept] = event
                            kept += np.uintp(np.uint32(codes[axis, event]) - np.uint32(first) <= np.uint32(span))
                    elif kind == FEW:
                        for index in range(remaining):
                            event = survivors[index]
                            survivors[kept] = event
                            kept += np.uintp(few_hold(codes[axis, event], first, span))
                    else:
                        for index in range(remaining):
                            event = survivors[index]
                            survivors[kept] = event
                            kept += np.uintp(holds(codes[axis, event], kind, first, span, bitmaps))
                    remaining = kept
                    if remaining == 0:
                        break
                tree, ordinal = clauses[row, TREE], clauses[row, ORDINAL]
                for index in range(remaining):
                    event = survivors[index]
                    # A leaf costs no more than this question, so it is asked only now.
                    if shortcut is not None and (
                        reached_word(row, np.uintp(event >> 6), shortcut) >> np.uint64(event & 63)
                    ) & np.uint64(1):
                        continue
                    if tree != NONE and not tree_holds(codes, event, tree, trees, bitmaps):
                        continue
                    if ordinal > 0 and is_repeated(
                        codes, event, owner, ordinal, owner_clauses, clause_list, clauses, leaves, trees, bitmaps
                    ):
                        continue
                    if shortcut is not None:
                        if target_count == np.uintp(NONE):
                            target_count = find_targets(owner, shortcut)
                        if not reach(event, target_count, shortcut):
                            continue
                    out_events[written] = event
                    out_owners[written] = owner
                    written += 1
            clause += 1
        key += 1
    return key, clause, written


# -- Broad clauses: bitmaps over the events of a block

EVERY, ONE_MAP, DIFFERENCE, ANY_MAP = 0, 1, 2, 3
"""What a leaf is on bitmaps: no help, one map, one map without another, or any of some maps."""
EXACT_BIT, KIND_SHIFT, MAP_MASK = 1 << 31, 29, (1 << 29) - 1
"""How a leaf's kind and exactness are packed with its first map."""
START, INTERSECT, UNITE, INTERSECT_TOP, UNITE_TOP = 0, 1, 2, 3, 4
"""What a step of a tree on bitmaps does: put a map on the stack, join the top with a map, or with what lies below."""


@njit(nogil=True, cache=True)
def fill_maps(codes, count, buckets, base, bucket_count, words, maps):
    """Write the maps of one axis: one per bucket of codes, then the running unions of all buckets before the j-th.

    buckets  uint16[:]  the bucket of each code
    maps     uint64[:]  the maps one behind the other, `words` words each, a bit per event
    """
    maps[base * words : (base + bucket_count + 1) * words] = 0
    for event in range(count):
        row = base + buckets[codes[event]]
        maps[row * words + (event >> 6)] |= np.uint64(1) << np.uint64(event & 63)
    union = (base + bucket_count) * words
    for index in range(bucket_count * words):
        maps[union + words + index] = maps[union + index] | maps[base * words + index]


@njit(nogil=True, cache=True)
def load(kind, a, b, maps, map_lists, words, into):
    """Write the events that a leaf's maps hold to `into[:words]`."""
    if kind == ONE_MAP:
        one = np.uintp(a) * words
        for word in range(words):
            into[word] = maps[one + word]
    elif kind == DIFFERENCE:
        one, other = np.uintp(a) * words, np.uintp(b) * words
        for word in range(words):
            into[word] = maps[one + word] & ~maps[other + word]
    elif kind == ANY_MAP:
        for word in range(words):
            into[word] = 0
        for index in range(np.uintp(a), np.uintp(a) + np.uintp(b)):
            one = np.uintp(map_lists[index]) * words
            for word in range(words):
                into[word] |= maps[one + word]
    else:
        for word in range(words):
            into[word] = ~np.uint64(0)


@njit(nogil=True, cache=True)
def match_maps(
    codes, rows, maps, everything, terms, map_lists, steps, step_starts,
    clauses, leaves, trees, bitmaps, alive,
    survivors, scratch, stack, unmatched, at, out_events, out_owners, shortcut,
):  # fmt: skip
    """Match a block of events against broad clauses, all events of the block at once.

    A leaf's maps hold every event that it holds for, and perhaps a few more; what survives them all is checked exactly.
    The clauses of a subscription that has several lie side by side; what one of them matched the next ones leave out.
    Returns (rows done, matches written); the output is full before the last row of a subscription.

    maps         uint64[:]    the maps one behind the other. Flat, and indexed by unsigned numbers: a view of each map
                              would cost more than its work, and so would the test for negative indexes
    terms        uint32[:,2]  for each leaf two maps, the first packed with what it is and whether it is exact
    steps        uint32[:,4]  for each step of a tree: what it does, what its leaf is on bitmaps, two maps
    step_starts  uint32[:]    where the steps of each row's tree start; the last bit says whether they are exact
    shortcut                  None, or what `reach` needs: then an event is not asked for those whom it has reached
    """
    written = 0
    last_owner = np.uint32(NONE)
    target_count = np.uintp(NONE)
    words = np.uintp(survivors.size)
    while at < rows.size:
        row = np.uintp(rows[at])
        owner = clauses[row, OWNER]
        if not alive[owner]:
            at += 1
            continue
        if owner != last_owner:
            # Room for all its clauses together, because each event is matched once at most.
            if written + 64 * survivors.size > out_events.size:
                return at, written
            last_owner = owner
            target_count = np.uintp(NONE)  # not looked for yet
            for word in range(words):
                unmatched[word] = everything[word]
            if shortcut is not None:
                for word in range(words):
                    unmatched[word] &= ~reached_word(row, word, shortcut)
        for word in range(words):
            survivors[word] = unmatched[word]
        first_leaf, last_leaf = np.uintp(clauses[row, LEAVES]), np.uintp(clauses[row + np.uintp(1), LEAVES])
        left = np.uint64(1)
        if shortcut is not None:
            left = np.uint64(0)
            for word in range(words):
                left |= survivors[word]
        leaf = first_leaf
        while leaf < last_leaf and left != 0:
            term = terms[leaf, 0]
            kind = (term >> np.uint32(KIND_SHIFT)) & np.uint32(3)
            if kind == ONE_MAP:
                one = np.uintp(term & np.uint32(MAP_MASK)) * words
                left = np.uint64(0)
                for word in range(words):
                    held = survivors[word] & maps[one + word]
                    survivors[word] = held
                    left |= held
            elif kind == DIFFERENCE:
                one, other = np.uintp(term & np.uint32(MAP_MASK)) * words, np.uintp(terms[leaf, 1]) * words
                left = np.uint64(0)
                for word in range(words):
                    held = survivors[word] & maps[one + word] & ~maps[other + word]
                    survivors[word] = held
                    left |= held
            elif kind == ANY_MAP:
                load(kind, term & np.uint32(MAP_MASK), terms[leaf, 1], maps, map_lists, words, scratch)
                left = np.uint64(0)
                for word in range(words):
                    held = survivors[word] & scratch[word]
                    survivors[word] = held
                    left |= held
            leaf += np.uintp(1)
        tree = clauses[row, TREE]
        is_tree_done = tree == NONE
        step, last_step = np.uintp(step_starts[row] >> 1), np.uintp(step_starts[row + np.uintp(1)] >> 1)
        if step < last_step and left != 0:
            run_steps(step, last_step, steps, maps, map_lists, words, scratch, stack)
            left = np.uint64(0)
            for word in range(words):
                held = survivors[word] & stack[word]
                survivors[word] = held
                left |= held
            is_tree_done = (step_starts[row] & np.uint32(1)) != 0
        if left == 0:
            at += 1
            continue
        for word in range(words):
            bits = survivors[word]
            while bits:
                lowest = bits & (~bits + np.uint64(1))
                bits ^= lowest
                event = np.uintp(64) * word + bit_number(lowest)
                is_match = True
                for leaf in range(first_leaf, last_leaf):
                    if terms[leaf, 0] < np.uint32(EXACT_BIT):
                        code = codes[(leaves[leaf, WHAT] >> KIND_BITS), event]
                        if (leaves[leaf, WHAT] & KIND_MASK) == INTERVAL:
                            is_match = np.uint32(code) - np.uint32(leaves[leaf, FIRST]) <= np.uint32(leaves[leaf, SPAN])
                        else:
                            is_match = holds(
                                code, (leaves[leaf, WHAT] & KIND_MASK), leaves[leaf, FIRST], leaves[leaf, SPAN], bitmaps
                            )
                        if not is_match:
                            break
                if not is_match or (not is_tree_done and not tree_holds(codes, event, tree, trees, bitmaps)):
                    continue
                unmatched[word] ^= lowest
                if shortcut is not None:
                    if target_count == np.uintp(NONE):
                        target_count = find_targets(owner, shortcut)
                    if not reach(event, target_count, shortcut):
                        continue
                out_events[written] = event
                out_owners[written] = owner
                written += 1
        at += 1
    return at, written


@njit(nogil=True, cache=True)
def run_steps(step, last_step, steps, maps, map_lists, words, scratch, stack):
    """Evaluate a tree on bitmaps; the result is the first `words` words of the stack."""
    top = np.uintp(0)  # where the next entry goes
    while step < last_step:
        action = steps[step, 0]
        if action == START:
            load(steps[step, 1], steps[step, 2], steps[step, 3], maps, map_lists, words, scratch)
            for word in range(words):
                stack[top + word] = scratch[word]
            top += words
        elif action in (INTERSECT, UNITE):
            load(steps[step, 1], steps[step, 2], steps[step, 3], maps, map_lists, words, scratch)
            below = top - words
            if action == INTERSECT:
                for word in range(words):
                    stack[below + word] &= scratch[word]
            else:
                for word in range(words):
                    stack[below + word] |= scratch[word]
        else:
            top -= words
            below = top - words
            if action == INTERSECT_TOP:
                for word in range(words):
                    stack[below + word] &= stack[top + word]
            else:
                for word in range(words):
                    stack[below + word] |= stack[top + word]
        step += np.uintp(1)


@njit(nogil=True, cache=True, inline="always")
def bit_number(bit):
    """Return which bit is set, by a multiplication whose top six bits differ for each of the 64 (de Bruijn)."""
    return _BIT_NUMBERS[(bit * np.uint64(0x03F79D71B4CB0A89)) >> np.uint64(58)]


_BIT_NUMBERS = np.zeros(64, np.uint64)
for _number in range(64):
    _BIT_NUMBERS[((1 << _number) * 0x03F79D71B4CB0A89 % 2**64) >> 58] = _number


# -- A single event


@njit(nogil=True, cache=True)
def match_event(
    codes, axis_points, axis_ranges, scan_key, key_firsts, key_lasts, key_clauses, shifts, probes,
    clauses, leaves, trees, bitmaps, alive, out_owners, shortcut,
):  # fmt: skip
    """Match a single event against the clauses of the keys it passes. Returns how many match, perhaps not all written.

    A subscription is written once for each of its clauses that match.

    Written out in one piece: a call that passes arrays costs more than a leaf.

    codes                     [:,1]        the event's code on each axis
    axis_points, axis_ranges  int64[:]     the keys of axis a that are points are axis_points[a]:axis_ranges[a], in
                                           order of their code; those that are ranges follow until axis_points[a + 1],
                                           in order of their first code
    scan_key                  int          the key of the clauses that no key finds, or -1
    shifts                    uint8[:]     by how many bits the codes of each axis are shifted to fit into 16
    probes                    uint16[:,16] of each clause three intervals that its leaves lie in, in shifted codes:
                                           axis, first and span of each; 1 if the row is all that its leaves ask; the
                                           axis and the 64 bits of a leaf of the kind FEW, or of one that always holds;
                                           and nothing. Most clauses are done with after reading this half cache line
    shortcut                               None, or what `reach` needs: then whoever is reached is not asked again
    """
    keys = np.empty(key_firsts.size + 1, np.uint32)
    candidates = np.empty(probes.shape[0], np.uint32)
    candidate_count = 0
    coarse = np.empty(shifts.size + 1, np.uint16)
    bits = np.zeros(shifts.size + 1, np.uint8)  # the last axis is none: its bit 0 always holds
    for axis in range(shifts.size):
        code = np.uint32(codes[axis, 0])
        coarse[axis] = code >> shifts[axis]
        if code & 1 == 0 and code <= 2 * MOST_FEW:
            bits[axis] = code >> 1
    for axis in range(axis_ranges.size + 1):
        count = 0
        if axis < axis_ranges.size:
            code = np.uint32(codes[axis, 0])
            if code == 0:
                continue
            low, high = axis_points[axis], axis_ranges[axis]
            while low < high:
                middle = (low + high) >> 1
                if key_firsts[middle] < code:
                    low = middle + 1
                else:
                    high = middle
            if low < axis_ranges[axis] and key_firsts[low] == code:
                keys[0] = low
                count = 1
            for key in range(axis_ranges[axis], axis_points[axis + 1]):
                if key_firsts[key] > code:
                    break
                keys[count] = key
                count += np.int64(key_lasts[key] >= code)
        elif scan_key >= 0:
            keys[0] = scan_key
            count = 1
        for index in range(count):
            key = np.uintp(keys[index])
            for clause in range(np.uintp(key_clauses[key]), np.uintp(key_clauses[key + np.uintp(1)])):
                if shortcut is not None and reached_word(clause, np.uintp(0), shortcut) != 0:
                    continue
                one = np.uint16(coarse[np.uintp(probes[clause, 0])] - probes[clause, 1])
                two = np.uint16(coarse[np.uintp(probes[clause, 3])] - probes[clause, 4])
                three = np.uint16(coarse[np.uintp(probes[clause, 6])] - probes[clause, 7])
                bit = np.uintp(bits[np.uintp(probes[clause, 10])])
                word = probes[clause, np.uintp(11) + (bit >> np.uintp(4))] >> (bit & np.uintp(15))
                # Without a branch: whether an interval holds is a coin that the processor cannot foresee.
                candidates[candidate_count] = clause
                candidate_count += np.int64(
                    (one <= probes[clause, 2]) & (two <= probes[clause, 5]) & (three <= probes[clause, 8])
                ) & np.int64(word)
                if (
                    shortcut is not None
                    and candidate_count > 0
                    and candidates[candidate_count - 1] == clause
                    and probes[clause, 9] == 1
                    and clauses[clause, TREE] == NONE
                    and alive[clauses[clause, OWNER]]
                    and not reach(np.uintp(0), find_targets(clauses[clause, OWNER], shortcut), shortcut)
                ):
                    candidate_count -= 1  # it holds, and is noted; the rows that follow may be spared
    written = 0
    for begin in range(0, candidate_count, 64):
        end = min(begin + 64, candidate_count)
        # The rows of a candidate lie anywhere. Read one word of each ahead, so that the waits for memory overlap.
        ahead = np.uint32(0)
        if shortcut is not None:
            kept = begin
            for index in range(begin, end):
                candidates[kept] = candidates[index]
                kept += np.int64(reached_word(np.uintp(candidates[index]), np.uintp(0), shortcut) == 0)
            end = kept
        for index in range(begin, end):
            clause = np.uintp(candidates[index])
            ahead |= clauses[clause, LEAVES]
        for index in range(begin, end):
            clause = np.uintp(candidates[index])
            leaf = np.uintp(clauses[clause, LEAVES])
            ahead |= np.uint32(alive[clauses[clause, OWNER]])
            if probes[clause, 9] == 0 and leaf < np.uintp(leaves.shape[0]):
                ahead |= leaves[leaf, WHAT]
            if clauses[clause, TREE] != NONE:
                ahead |= trees[np.uintp(clauses[clause, TREE]), WHAT]
        keys[0] = ahead  # so that no compiler leaves the reads out
        for index in range(begin, end):
            clause = np.uintp(candidates[index])
            is_match = True
            leaf, last_leaf = np.uintp(clauses[clause, LEAVES]), np.uintp(clauses[clause + np.uintp(1), LEAVES])
            if probes[clause, 9] == 1:
                leaf = last_leaf
            while leaf < last_leaf and is_match:
                code = np.uint32(codes[(leaves[leaf, WHAT] >> KIND_BITS), 0])
                if (leaves[leaf, WHAT] & KIND_MASK) == INTERVAL:
                    is_match = code - leaves[leaf, FIRST] <= leaves[leaf, SPAN]
                else:
                    is_match = holds(
                        code, (leaves[leaf, WHAT] & KIND_MASK), leaves[leaf, FIRST], leaves[leaf, SPAN], bitmaps
                    )
                leaf += np.uintp(1)
            owner, tree = clauses[clause, OWNER], clauses[clause, TREE]
            if not is_match or not alive[owner]:
                continue
            if tree != NONE and not tree_holds(codes, np.uintp(0), tree, trees, bitmaps):
                continue
            if shortcut is not None and not reach(np.uintp(0), find_targets(owner, shortcut), shortcut):
                continue
            if written < out_owners.size:
                out_owners[written] = owner
            written += 1
    return written


@njit(nogil=True, cache=True)
def drop_repeated(owners):
    """Move the distinct ones of some sorted owners to the front; returns how many there are."""
    kept = 0
    for index in range(owners.size):
        owners[kept] = owners[index]
        kept += np.int64(index + 1 == owners.size or owners[index + 1] != owners[index])
    return kept


@njit(nogil=True, cache=True)
def count_twins(owners, starts, twins, alive):
    """Return how many living twins some owners have together."""
    count = 0
    for owner in owners:
        for index in range(starts[owner], starts[owner + 1]):
            count += alive[twins[index]]
    return count


@njit(nogil=True, cache=True)
def write_twins(events, owners, starts, twins, alive, out_events, out_owners):
    """Write the living twins of each owner, with its event."""
    written = 0
    for match in range(owners.size):
        owner = owners[match]
        for index in range(starts[owner], starts[owner + 1]):
            twin = twins[index]
            if alive[twin]:
                out_events[written] = events[match]
                out_owners[written] = twin
                written += 1


# -- Laying a segment out


@njit(nogil=True, cache=True)
def find_first_equal(starts, words, table, firsts):
    """Find for each row of words the first that is equal.

    starts  int[:]     row r is words[starts[r]:starts[r + 1]]
    table   int64[:]   -1 throughout, a power of two, more than the rows
    firsts  int64[:]   written
    """
    mask = table.size - 1
    for row in range(firsts.size):
        start, size = starts[row], starts[row + 1] - starts[row]
        mixed = np.int64(size)
        for index in range(start, start + size):  # 32 bits and their product with 25: there is no overflow
            mixed = ((mixed ^ np.int64(words[index])) * np.int64(16777619)) & np.int64(0xFFFFFFFF)
            mixed ^= mixed >> np.int64(15)
        slot = mixed & mask
        while table[slot] >= 0:
            other = starts[table[slot]]
            is_equal = starts[table[slot] + 1] - other == size
            index = 0
            while is_equal and index < size:
                is_equal = words[other + index] == words[start + index]
                index += 1
            if is_equal:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = row
        firsts[row] = table[slot]


@njit(nogil=True, cache=True)
def choose_access(clause_starts, clause_leaves, costs, chosen):
    """Choose the cheapest leaf of each clause; -1 where none has a finite cost."""
    for clause in range(chosen.size):
        best = np.inf
        chosen[clause] = -1
        for index in range(clause_starts[clause], clause_starts[clause + 1]):
            leaf = clause_leaves[index]
            if costs[leaf] < best:
                best = costs[leaf]
                chosen[clause] = leaf


@njit(nogil=True, cache=True)
def lay_out_leaves(rows, clause_starts, clause_leaves, chosen, keeps_chosen, shares, starts, placed):
    """Write the leaves of each row's clause, the most selective first, but for the one by which it is found.

    placed  uint32[:]  leaves, row after row; returns how many were written
    """
    written = 0
    for row in range(rows.size):
        clause = rows[row]
        starts[row] = written
        for index in range(clause_starts[clause], clause_starts[clause + 1]):
            leaf = clause_leaves[index]
            if leaf == chosen[clause] and not keeps_chosen[clause]:
                continue
            place = written
            while place > starts[row] and shares[placed[place - 1]] > shares[leaf]:
                placed[place] = placed[place - 1]
                place -= 1
            placed[place] = leaf
            written += 1
    starts[rows.size] = written
    return written


@njit(nogil=True, cache=True)
def choose_probes(
    rows, leaf_starts, placed, chosen, leaf_axes, kinds, leaf_firsts, leaf_spans, firsts, lasts, costs, shifts, probes
):
    """Choose the cheapest leaves of each row, but for the one by which it is found, and write what they ask.

    firsts, lasts  uint32[:]     an interval around each leaf
    costs          float32[:]    infinite for a leaf that has none
    probes         uint16[:,16]  see `match_event`
    """
    best = np.empty(3, np.int64)
    for row in range(rows.size):
        few = -1
        for index in range(leaf_starts[row], leaf_starts[row + 1]):
            leaf = np.int64(placed[index])
            if leaf != chosen[rows[row]] and kinds[leaf] == FEW and (few < 0 or costs[leaf] < costs[few]):
                few = leaf
        best[:] = -1
        count = 0
        is_all = True
        for index in range(leaf_starts[row], leaf_starts[row + 1]):
            leaf = np.int64(placed[index])
            if leaf == chosen[rows[row]] or leaf == few:
                continue
            if costs[leaf] == np.inf or leaf_axes[leaf] > 0xFFFF:
                is_all = False
                continue
            is_all &= kinds[leaf] == INTERVAL and shifts[leaf_axes[leaf]] == 0
            count += 1
            for place in range(3):
                if best[place] < 0 or costs[leaf] < costs[best[place]]:
                    for later in range(2, place, -1):
                        best[later] = best[later - 1]
                    best[place] = leaf
                    break
        if few >= 0 and leaf_axes[few] > 0xFFFF:
            few, is_all = -1, False
        probes[row, 9] = is_all and count <= 3
        for place in range(3):
            leaf = best[place]
            if leaf < 0:
                probes[row, 3 * place] = probes[row, 3 * place + 1] = 0
                probes[row, 3 * place + 2] = 0xFFFF
            else:
                axis = leaf_axes[leaf]
                first = firsts[leaf] >> shifts[axis]
                probes[row, 3 * place] = axis
                probes[row, 3 * place + 1] = first
                probes[row, 3 * place + 2] = (lasts[leaf] >> shifts[axis]) - first
        probes[row, 10:] = 0
        if few < 0:
            probes[row, 10], probes[row, 11] = shifts.size, 1
        else:
            probes[row, 10] = leaf_axes[few]
            probes[row, 11], probes[row, 12] = leaf_firsts[few] & 0xFFFF, leaf_firsts[few] >> 16
            probes[row, 13], probes[row, 14] = leaf_spans[few] & 0xFFFF, leaf_spans[few] >> 16


@njit(nogil=True, cache=True)
def write_few(set_leaves, set_numbers, set_starts, set_operands, firsts, spans):
    """Write small sets of few operands into their leaves."""
    for index in range(set_leaves.size):
        number = set_numbers[index]
        bits = np.uint64(0)
        for member in range(set_starts[number], set_starts[number + 1]):
            bits |= np.uint64(1) << np.uint64(set_operands[member] + 1)
        firsts[set_leaves[index]] = bits & np.uint64(0xFFFFFFFF)
        spans[set_leaves[index]] = bits >> np.uint64(32)


@njit(nogil=True, cache=True)
def write_sets(set_leaves, set_numbers, set_starts, set_operands, code_counts, is_in, places, kinds, words):
    """Write each set of codes as a bitmap or as a list of its members, where its leaf's place says.

    places  int64[:]   where the words of each leaf's set start
    kinds   uint8[:]   MEMBER, LISTED or UNLISTED
    words   uint64[:]  zeros
    """
    for index in range(set_leaves.size):
        number, place = set_numbers[index], places[index]
        if kinds[index] == MEMBER:
            if not is_in[index]:
                for code in range(1, code_counts[index]):
                    words[place + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)
            for member in range(set_starts[number], set_starts[number + 1]):
                code = 2 * np.int64(set_operands[member]) + 2
                words[place + (code >> 6)] ^= np.uint64(1) << np.uint64(code & 63)
        else:
            for member in range(set_starts[number], set_starts[number + 1]):
                words[place] = np.uint64(2 * np.int64(set_operands[member]) + 2)
                place += 1


@njit(nogil=True, cache=True)
def list_buckets(set_numbers, set_starts, set_operands, buckets, bucket_sizes, base, longest, starts, lists, is_exact):
    """Write the maps of each set: those of the buckets that hold its members. Returns how many were written.

    starts    int64[:]  where the list of each set starts; a set with more than `longest` buckets has an empty one
    is_exact  bool[:]   whether each of its buckets holds a single code
    """
    written = 0
    for index in range(set_numbers.size):
        starts[index] = written
        is_exact[index] = True
        last = -1
        number = set_numbers[index]
        for member in range(set_starts[number], set_starts[number + 1]):
            bucket = np.int64(buckets[2 * np.int64(set_operands[member]) + 2])
            if bucket != last:
                if written - starts[index] == longest:
                    written = starts[index]
                    break
                lists[written] = base + bucket
                written += 1
                last = bucket
            is_exact[index] &= bucket_sizes[bucket] == 1
    starts[set_numbers.size] = written
    return written


@njit(nogil=True, cache=True)
def stop_early(leaf_starts, shares, enough, terms, survival):
    """Leave the maps of a row's further leaves alone once so few events survive that checking each is cheaper.

    survival  float32[:]  afterwards the share of events that survives the maps of each row
    """
    for row in range(survival.size):
        surviving = np.float32(1)
        for leaf in range(leaf_starts[row], leaf_starts[row + 1]):
            if surviving < enough:
                terms[leaf, 0] = 0  # no help, and not exact
            elif (terms[leaf, 0] >> np.uint32(KIND_SHIFT)) & np.uint32(3) != EVERY:
                surviving *= shares[leaf]
        survival[row] = surviving


# -- Sorting matches by event


@njit(nogil=True, cache=True)
def events_of_maps(maps, words, events, rows):
    """Write the events of maps, map by map; returns how many there are, perhaps not all written.

    maps    uint64[:]  one behind the other, `words` words each
    events  int64[:]   the events
    rows    int64[:]   and the map that each is in
    """
    written = 0
    for place in range(maps.size):
        bits = maps[place]
        while bits:
            lowest = bits & (~bits + np.uint64(1))
            bits ^= lowest
            if written < events.size:
                events[written] = 64 * (place % words) + np.int64(bit_number(lowest))
                rows[written] = place // words
            written += 1
    return written


@njit(nogil=True, cache=True)
def count_events(events, counts):
    """Add the number of matches of each event e to `counts[e]`."""
    for index in range(events.size):
        counts[events[index]] += 1


@njit(nogil=True, cache=True)
def place_matches(events, owners, handles, starts, placed):
    """Write the handles of matches behind those of the same event that were placed before; `starts` moves along.

    handles  int64[:]  the handle of each owner
    """
    for index in range(events.size):
        event = np.uintp(events[index])
        placed[np.uintp(starts[event])] = handles[owners[index]]
        starts[event] += 1
