"""The compiled loops of the block matcher: tables in, matches out.

Throughout, an event's value on an axis is a *code*: 0 for NULL or a value of another kind, otherwise its rank
among the axis's operands plus one. What a segment has compiled travels into the loops as the tables below, each a named
tuple that goes in whole. How they hang together, for a segment of three clauses under two keys:

    Keys        axis 0, code 4          axis 2, codes 2 to 9          a key is a leaf that a block is sorted by
                |                       |
    rows        0           1           2                             one clause each, under the key that finds it
                |           |           |
    Program     leaves 0-1  leaves 2-2  leaves 3-5, tree at 0         what is checked behind the key
                |           |           |
    owners      7           3           7                             whose clause it is; 7 matches if either holds

A row of `clauses`, `leaves` or `trees` is one cache line or less, so a clause costs one wait for memory, not six.

There are six kinds of leaf:

    INTERVAL   FIRST <= code <= FIRST + SPAN
    OUTSIDE    the code is not 0 and not in that interval
    MEMBER     bit `code` of the bitmap that starts at word FIRST is set
    LISTED     the code is one of the SPAN sorted words that start at word FIRST
    UNLISTED   the code is not 0 and not one of them
    FEW        the code is twice a bit that is set in FIRST and SPAN together, on an axis of at most MOST_FEW operands

Inside a loop the columns are taken out of their tables first: a call between compiled functions that passes an array
counts references, which costs more than checking a leaf. Arrays are indexed by unsigned numbers for the same reason:
a signed index is first tested for being negative.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

WHAT, FIRST, SPAN, ON_TRUE, ON_FALSE = 0, 1, 2, 3, 4
KIND_BITS, KIND_MASK = np.uint32(3), np.uint32(7)
LEAVES, TREE, OWNER, ORDINAL = 0, 1, 2, 3
INTERVAL, OUTSIDE, MEMBER, LISTED, UNLISTED, FEW = 0, 1, 2, 3, 4, 5
MOST_FEW = 63
MOST_KEYS_OF_A_SET = 16
"""A clause that is found by the members of a set is laid out once for each; larger sets find nobody."""
TERM, OTHER_MAP = 0, 1
"""The columns of a leaf on bitmaps."""
ACTION, STEP_KIND, ONE, OTHER = 0, 1, 2, 3
"""The columns of a step of a tree on bitmaps."""
NONE = ACCEPT = 2**32 - 1
REJECT = 2**32 - 2


# -- Tables


class Program(NamedTuple):
    """What the rows of a segment ask. Invariant: `clauses` has one row more than there are, which ends the last one.

    clauses        uint32[rows + 1, 4]  LEAVES TREE OWNER ORDINAL: where its leaves start (they end where the next row's
                                        start), where its tree starts or NONE, whose it is, which of the owner's
    leaves         uint32[:, 3]         WHAT FIRST SPAN: WHAT is the axis times eight, plus the kind
    trees          uint32[:, 5]         WHAT FIRST SPAN ON_TRUE ON_FALSE: a leaf, and where to go on from it, counted
                                        from the start of its tree
    bitmaps        uint64[:]            the members of sets, where the leaves say
    owner_clauses  uint32[owners]       where the clauses of each owner start in `clause_rows`
    clause_rows    uint32[clauses]      the row of each clause, owner after owner; NONE for one that never holds
    """

    clauses: Any
    leaves: Any
    trees: Any
    bitmaps: Any
    owner_clauses: Any
    clause_rows: Any


class Keys(NamedTuple):
    """By which key a block finds each row, as plans show it. Invariant: keys lie in the order of their axes.

    firsts       uint32[keys]     the first code that passes
    lasts        uint32[keys]     and the last
    rows         int64[keys + 1]  the rows of key k are rows[k]:rows[k + 1]
    """

    firsts: Any
    lasts: Any
    rows: Any


class Runs(NamedTuple):
    """The keys that have narrow rows, as a block of events meets them: a slice of sorted events for a run of rows.

    orders    int64[runs]      where in the orders of a block the run's axis starts
    begins    int64[runs]      where in the starts of a block its first code is found
    ends      int64[runs]      and where the one behind its last
    rows      int64[runs + 1]  the rows of run r are rows[r]:rows[r + 1]; broad ones among them are passed over
    is_broad  bool[rows]       by row
    """

    orders: Any
    begins: Any
    ends: Any
    rows: Any
    is_broad: Any


class Broad(NamedTuple):
    """The rows that are checked with bitmaps, and what their leaves are there.

    rows         int32[:]         those of an owner that has several lie side by side
    terms        uint32[leaves, 2]  TERM OTHER_MAP: of each leaf two maps, the first packed with what it is and whether
                                    it is exact
    lists        uint32[:]        the maps of sets, one set behind the other
    steps        uint32[:, 4]     ACTION STEP_KIND ONE OTHER of each step of a tree: what it does, what its leaf is on
                                  bitmaps, two maps
    step_starts  uint32[rows + 1]  where the steps of each row's tree start, times two, plus one if they are exact
    """

    rows: Any
    terms: Any
    lists: Any
    steps: Any
    step_starts: Any


class SortedBlock(NamedTuple):
    """A block of events, sorted by every axis that has narrow keys.

    codes   [axes, events]  the code of every event
    orders  uint16[:]       the events in the order of each axis, one axis behind the other
    starts  int32[:]        where the events of each code start there
    """

    codes: Any
    orders: Any
    starts: Any


class MappedBlock(NamedTuple):
    """A block of events as bitmaps, a bit for each event.

    codes       [axes, events]  the code of every event
    maps        uint64[:]       the maps one behind the other. Flat: a view of each map would cost more than its work
    everything  uint64[words]   the map of all events
    """

    codes: Any
    maps: Any
    everything: Any


class Room(NamedTuple):
    """Maps that `match_maps` writes into and nobody reads afterwards: uint64[words] each, the stack several of them."""

    survivors: Any
    scratch: Any
    stack: Any
    unmatched: Any


class Matches(NamedTuple):
    """Where matches are written: uint16 events and uint32 owners, side by side."""

    events: Any
    owners: Any


class Reaching(NamedTuple):
    """What is needed to ask nobody twice. A destination is a number from 1 on; 0 is that of those who have none.

    owner_groups  uint32[owners]  the group of destinations that an owner, or one of the owner's twins, has
    probe_groups  uint32[:]       that of the owner of each probe, for single events
    groups        lists[groups]   of uint32: the destinations of each group, in order
    destinations  uint32[owners]  of each owner
    twins         lists[owners]   of uint32: the owner's twins, see `twins.py`; no lists where nobody has any
    alive         bool[owners]
    words         int             how many words of 64 events a map has
    reached       uint64[:]       for each destination the map of the events that reached it; that of 0 stays empty
    targets       uint32[:]       room for all destinations, and behind them a mark for each, cleared after use
    """

    owner_groups: Any
    probe_groups: Any
    groups: Any
    destinations: Any
    twins: Any
    alive: Any
    words: int
    reached: Any
    targets: Any


class LeafTable(NamedTuple):
    """The leaves of a draft in codes. Invariant: an interval that nothing lies in starts at a code that nobody has.

    axes    uint32[leaves]
    kinds   uint8[leaves]    INTERVAL to FEW
    firsts  uint32[leaves]   FIRST and SPAN, as the kind reads them
    spans   uint32[leaves]
    shares  float32[leaves]  which share of the events passes, as far as is known
    """

    axes: Any
    kinds: Any
    firsts: Any
    spans: Any
    shares: Any


class Layout(NamedTuple):
    """Which clause each row is, and which leaves are checked there, the most selective first.

    clauses  int64[rows]     the clause of each row; one that is found by the members of a set has several
    chosen   int64[clauses]  the leaf by which each clause is found, -1 for none
    leaves   lists[rows]     of uint32: the leaves of each row
    """

    clauses: Any
    chosen: Any
    leaves: Any


# -- Leaves, trees and clauses


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
    # A list is kept where a bitmap of all codes would be longer; its members ascend, so it is searched by halving.
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
def clause_holds(codes, event, clause, program):
    """Do all leaves and the tree of a clause hold for one event?"""
    clauses, leaves, trees, bitmaps = program.clauses, program.leaves, program.trees, program.bitmaps
    for leaf in range(clauses[clause, LEAVES], clauses[clause + np.uintp(1), LEAVES]):
        code = codes[(leaves[leaf, WHAT] >> KIND_BITS), event]
        if not holds(code, (leaves[leaf, WHAT] & KIND_MASK), leaves[leaf, FIRST], leaves[leaf, SPAN], bitmaps):
            return False
    tree = clauses[clause, TREE]
    return tree == NONE or tree_holds(codes, event, tree, trees, bitmaps)


@njit(nogil=True, cache=True)
def is_repeated(codes, event, owner, ordinal, program):
    """Was this match found through an earlier clause of the same subscription already?"""
    first = program.owner_clauses[owner]
    # Clauses are numbered within their owner: only those before this one may have written the match. To mark owners
    # instead would need a mark for each event of the block.
    for earlier in range(first, first + ordinal):
        row = program.clause_rows[earlier]
        if row != NONE and clause_holds(codes, event, row, program):
            return True
    return False


# -- The shortcut: whoever has been reached is not asked again


@njit(nogil=True, cache=True, inline="always")
def reached_word(group, word, shortcut):
    """Return the events of a word that have reached all destinations of a group."""
    group_starts, group_members = shortcut.groups.starts, shortcut.groups.values
    reached, words = shortcut.reached, shortcut.words
    group = np.uintp(group)
    bits = ~np.uint64(0)
    for index in range(np.uintp(group_starts[group]), np.uintp(group_starts[group + np.uintp(1)])):
        # A row is done with where all destinations of its group are reached, so this is an intersection; destination 0
        # is that of those who have none, its map stays empty, and so such a row is always asked.
        bits &= reached[np.uintp(group_members[index]) * np.uintp(words) + np.uintp(word)]
        if bits == 0:
            break
    return bits


@njit(nogil=True, cache=True)
def find_targets(owner, shortcut):
    """Write the destinations of an owner and its twins, as far as they live, each once; returns how many there are."""
    destinations, twin_starts, twins = shortcut.destinations, shortcut.twins.starts, shortcut.twins.values
    alive, targets = shortcut.alive, shortcut.targets
    if twins.size == 0:
        targets[0] = destinations[owner]
        return np.uintp(1)
    # The second half of `targets` marks what is in the first half already: twins share destinations, and each is
    # written once.
    room = np.uintp(targets.size // 2)
    count = np.uintp(0)
    for index in range(twin_starts[owner], twin_starts[owner + 1]):
        twin = np.uintp(twins[index])
        destination = np.uintp(destinations[twin])
        if alive[twin] and targets[room + destination] == 0:
            targets[room + destination] = 1
            targets[count] = destination
            count += np.uintp(1)
    # Only what was marked is cleared: the room is as long as there are destinations.
    for index in range(count):
        targets[room + np.uintp(targets[index])] = 0
    return count


@njit(nogil=True, cache=True)
def reach(event, target_count, shortcut):
    """Note whom an event reaches; returns whether one among them has no destination, and is to be written."""
    words, reached, targets = shortcut.words, shortcut.reached, shortcut.targets
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
def match_keys(block, runs, program, asked, survivors, place, out, shortcut):
    """Match a block of events against the narrow rows of every run, run by run.

    A run's events are a slice of the block sorted by its axis. A row narrows the slice, leaf by leaf, to the events
    that survive. Returns (run, row, matches written); a run short of the last one means that the output is full, and
    the caller continues from there.

    asked      bool[owners]  whose clauses are asked
    survivors  uint16[:]     room for the events of a block, and one more
    place                    the run and the row to go on with
    shortcut                 None, or a `Reaching`: then an event is not asked for those whom it has reached
    """
    codes, orders, starts = block
    clauses, leaves, trees, bitmaps = program.clauses, program.leaves, program.trees, program.bitmaps
    is_broad, out_events, out_owners = runs.is_broad, out.events, out.owners
    run, at = place
    written = 0
    while run < runs.orders.size:
        begin, end = starts[runs.begins[run]], starts[runs.ends[run]]
        last_row = runs.rows[run + 1]
        # No event of the block has one of the key's codes: the whole run is passed over.
        if begin == end:
            at = last_row
        slice_start = np.uintp(runs.orders[run] + begin)
        size = np.uintp(end - begin)
        while at < last_row:
            row = np.uintp(at)
            owner = clauses[row, OWNER]
            if asked[owner] and not is_broad[row]:
                # A row writes no more matches than it has events, so this one test saves one for each match.
                if written + np.int64(size) > out_events.size:
                    return run, at, written
                remaining = size
                for index in range(size):
                    survivors[index] = orders[slice_start + index]
                target_count = np.uintp(NONE)  # not looked for yet
                for leaf in range(clauses[row, LEAVES], clauses[row + np.uintp(1), LEAVES]):
                    axis, kind = (leaves[leaf, WHAT] >> KIND_BITS), (leaves[leaf, WHAT] & KIND_MASK)
                    first, span = leaves[leaf, FIRST], leaves[leaf, SPAN]
                    kept = np.uintp(0)
                    # Without a branch: every event is written, and the place moves on only if it passed. The two most
                    # frequent kinds have loops of their own, which the compiler turns into vector code.
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
                        reached_word(shortcut.owner_groups[owner], np.uintp(event >> 6), shortcut)
                        >> np.uint64(event & 63)
                    ) & np.uint64(1):
                        continue
                    if tree != NONE and not tree_holds(codes, event, tree, trees, bitmaps):
                        continue
                    if ordinal > 0 and is_repeated(codes, event, owner, ordinal, program):
                        continue
                    if shortcut is not None:
                        if target_count == np.uintp(NONE):
                            target_count = find_targets(owner, shortcut)
                        if not reach(event, target_count, shortcut):
                            continue
                    out_events[written] = event
                    out_owners[written] = owner
                    written += 1
            at += 1
        run += 1
    return run, at, written


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
    # The map behind the last bucket is the first union, that of no bucket at all; it stays empty.
    maps[base * words : (base + bucket_count + 1) * words] = 0
    for event in range(count):
        row = base + buckets[codes[event]]
        maps[row * words + (event >> 6)] |= np.uint64(1) << np.uint64(event & 63)
    # Running unions: map j holds the events of all buckets before the j-th, so an interval is a difference of two.
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
def match_maps(block, broad, program, asked, room, at, out, shortcut):
    """Match a block of events against broad rows, all events of the block at once.

    A leaf's maps hold every event that it holds for, and perhaps a few more; what survives them all is checked exactly.
    The rows of a subscription that has several lie side by side; what one of them matched the next ones leave out.
    Returns (rows done, matches written); the output is full before the last row of a subscription.

    at        int   the row to go on with
    shortcut        None, or a `Reaching`: then an event is not asked for those whom it has reached
    """
    codes, maps, everything = block
    rows, terms, map_lists, steps, step_starts = broad
    clauses, leaves, trees, bitmaps = program.clauses, program.leaves, program.trees, program.bitmaps
    survivors, scratch, stack, unmatched = room
    out_events, out_owners = out.events, out.owners
    written = 0
    last_owner = np.uint32(NONE)
    target_count = np.uintp(NONE)
    words = np.uintp(survivors.size)
    while at < rows.size:
        row = np.uintp(rows[at])
        owner = clauses[row, OWNER]
        if not asked[owner]:
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
                    unmatched[word] &= ~reached_word(shortcut.owner_groups[owner], word, shortcut)
        for word in range(words):
            survivors[word] = unmatched[word]
        first_leaf, last_leaf = np.uintp(clauses[row, LEAVES]), np.uintp(clauses[row + np.uintp(1), LEAVES])
        # Unless somebody is reached already all events are left, and to look for one would be in vain.
        left = np.uint64(1)
        if shortcut is not None:
            left = np.uint64(0)
            for word in range(words):
                left |= survivors[word]
        leaf = first_leaf
        while leaf < last_leaf and left != 0:
            term = terms[leaf, TERM]
            kind = (term >> np.uint32(KIND_SHIFT)) & np.uint32(3)
            if kind == ONE_MAP:
                one = np.uintp(term & np.uint32(MAP_MASK)) * words
                left = np.uint64(0)
                for word in range(words):
                    held = survivors[word] & maps[one + word]
                    survivors[word] = held
                    left |= held
            elif kind == DIFFERENCE:
                one, other = np.uintp(term & np.uint32(MAP_MASK)) * words, np.uintp(terms[leaf, OTHER_MAP]) * words
                left = np.uint64(0)
                for word in range(words):
                    held = survivors[word] & maps[one + word] & ~maps[other + word]
                    survivors[word] = held
                    left |= held
            elif kind == ANY_MAP:
                load(kind, term & np.uint32(MAP_MASK), terms[leaf, OTHER_MAP], maps, map_lists, words, scratch)
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
        # What the maps let through is checked exactly, but for the leaves whose maps are exact already.
        for word in range(words):
            bits = survivors[word]
            while bits:
                # The lowest set bit is what a number and its negative have in common.
                lowest = bits & (~bits + np.uint64(1))
                bits ^= lowest
                event = np.uintp(64) * word + bit_number(lowest)
                is_match = True
                for leaf in range(first_leaf, last_leaf):
                    if terms[leaf, TERM] < np.uint32(EXACT_BIT):
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
                # The next clauses of the same owner need not ask about this event: each is matched once.
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
    # Postfix order: operands stand before what joins them, so a stack of maps is all that is needed, as deep as
    # `plans` allows.
    top = np.uintp(0)  # where the next entry goes
    while step < last_step:
        action = steps[step, ACTION]
        if action == START:
            load(steps[step, STEP_KIND], steps[step, ONE], steps[step, OTHER], maps, map_lists, words, scratch)
            for word in range(words):
                stack[top + word] = scratch[word]
            top += words
        elif action in (INTERSECT, UNITE):
            load(steps[step, STEP_KIND], steps[step, ONE], steps[step, OTHER], maps, map_lists, words, scratch)
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


# -- Owners


@njit(nogil=True, cache=True)
def drop_repeated(owners):
    """Move the distinct ones of some sorted owners to the front; returns how many there are."""
    kept = 0
    for index in range(owners.size):
        owners[kept] = owners[index]
        kept += np.int64(index + 1 == owners.size or owners[index + 1] != owners[index])
    return kept


@njit(nogil=True, cache=True)
def count_twins(owners, twin_lists, alive):
    """Return how many living twins some owners have together."""
    starts, twins = twin_lists
    count = 0
    for owner in owners:
        for index in range(starts[owner], starts[owner + 1]):
            count += alive[twins[index]]
    return count


@njit(nogil=True, cache=True)
def write_twins(matches, twin_lists, alive, out):
    """Write the living twins of each match's owner, with its event."""
    events, owners = matches
    starts, twins = twin_lists
    out_events, out_owners = out
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
def find_first_equal(rows, table, firsts):
    """Find for each row of words the first that is equal.

    rows    lists      of uint32: the words of each row
    table   int64[:]   -1 throughout, a power of two, more than the rows
    firsts  int64[:]   written
    """
    starts, words = rows
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
def choose_access(leaves_of_clauses, costs, chosen):
    """Choose the cheapest leaf of each clause; -1 where none has a finite cost."""
    clause_starts, clause_leaves = leaves_of_clauses
    for clause in range(chosen.size):
        best = np.inf
        chosen[clause] = -1
        for index in range(clause_starts[clause], clause_starts[clause + 1]):
            leaf = clause_leaves[index]
            if costs[leaf] < best:
                best = costs[leaf]
                chosen[clause] = leaf


@njit(nogil=True, cache=True)
def lay_out_leaves(leaves_of_clauses, keeps_chosen, shares, layout):
    """Write the leaves of each row's clause, the most selective first, but for the one by which it is found.

    keeps_chosen  bool[clauses]  whether that one is written too
    layout                       its leaves are written; returns how many
    """
    clause_starts, clause_leaves = leaves_of_clauses
    rows, chosen, (starts, placed) = layout
    written = 0
    for row in range(rows.size):
        clause = rows[row]
        starts[row] = written
        for index in range(clause_starts[clause], clause_starts[clause + 1]):
            leaf = clause_leaves[index]
            # Whoever finds a row by its key knows already that this leaf holds.
            if leaf == chosen[clause] and not keeps_chosen[clause]:
                continue
            place = written
            # Insertion sort: a clause has a handful of leaves, and they are written where they stay.
            while place > starts[row] and shares[placed[place - 1]] > shares[leaf]:
                placed[place] = placed[place - 1]
                place -= 1
            placed[place] = leaf
            written += 1
    starts[rows.size] = written
    return written


@njit(nogil=True, cache=True)
def write_few(set_leaves, set_numbers, sets, firsts, spans):
    """Write small sets of few operands into their leaves."""
    set_starts, set_operands = sets
    for index in range(set_leaves.size):
        number = set_numbers[index]
        bits = np.uint64(0)
        for member in range(set_starts[number], set_starts[number + 1]):
            bits |= np.uint64(1) << np.uint64(set_operands[member] + 1)
        firsts[set_leaves[index]] = bits & np.uint64(0xFFFFFFFF)
        spans[set_leaves[index]] = bits >> np.uint64(32)


@njit(nogil=True, cache=True)
def write_sets(set_numbers, sets, code_counts, is_in, places, kinds, words):
    """Write each set of codes as a bitmap or as a list of its members, where its leaf's place says.

    places  int64[:]   where the words of each leaf's set start
    kinds   uint8[:]   MEMBER, LISTED or UNLISTED
    words   uint64[:]  zeros
    """
    set_starts, set_operands = sets
    for index in range(set_numbers.size):
        number, place = set_numbers[index], places[index]
        if kinds[index] == MEMBER:
            # For NOT IN all codes but 0 are set first, and the members are then turned off by the same XOR.
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
def list_buckets(set_numbers, sets, buckets, bucket_sizes, longest, starts, lists, is_exact):
    """Write the buckets that hold the members of each set. Returns how many were written.

    starts    int64[:]  where the list of each set starts; a set with more than `longest` buckets has an empty one
    is_exact  bool[:]   whether each of its buckets holds a single code
    """
    set_starts, set_operands = sets
    written = 0
    for index in range(set_numbers.size):
        starts[index] = written
        is_exact[index] = True
        last = -1
        number = set_numbers[index]
        for member in range(set_starts[number], set_starts[number + 1]):
            bucket = np.int64(buckets[2 * np.int64(set_operands[member]) + 2])
            # Members ascend, and so do their buckets: equal ones stand side by side.
            if bucket != last:
                # Too many maps to unite: the set is no help, and its survivors are checked one by one.
                if written - starts[index] == longest:
                    written = starts[index]
                    break
                lists[written] = bucket
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
                terms[leaf, TERM] = 0  # no help, and not exact
            elif (terms[leaf, TERM] >> np.uint32(KIND_SHIFT)) & np.uint32(3) != EVERY:
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
            # The lowest bit that is set, alone: x & -x in unsigned numbers. A word costs as many turns as it has
            # events.
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
def number_matches(counts, first, starts, numbers):
    """Write the number of its event for every match, and where the matches of each event start.

    counts   int64[:]  how many matches each event has
    first    int       the number of the first event
    starts   int64[:]  written
    numbers  int64[:]  written, event after event
    """
    written = 0
    for event in range(counts.size):
        starts[event] = written
        for place in range(written, written + counts[event]):
            numbers[place] = first + event
        written += counts[event]


@njit(nogil=True, cache=True)
def place_matches(events, owners, handles, starts, placed):
    """Write the handles of matches behind those of the same event that were placed before; `starts` moves along.

    handles  int64[:]  the handle of each owner
    """
    for index in range(events.size):
        event = np.uintp(events[index])
        placed[np.uintp(starts[event])] = handles[owners[index]]
        starts[event] += 1
