"""The compiled loops of the published algorithms, behind the predicate phase: tables in, matches written into arrays.

All of them get the predicates that events fulfil, a list for each event, and write events and slots of matches. They
end before an event that might have more matches than there is room for, and return where to go on and how much was
written. What an algorithm laid out, and the memory that it works in, are a table each.

From Python they are called with the columns of all tables side by side, in one plain tuple (`..._of_columns`): to look
into a named tuple takes the compiler's dispatcher 0.6 µs, and into six of them a fifth of the time of a single event.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from tamis.ragged import Ragged

# -- Tables that several algorithms share


class Outlet(NamedTuple):
    """Where matches are written: uint32 events and uint32 slots, side by side."""

    events: Any
    slots: Any


class LastPages(NamedTuple):
    """The conjunctions of all subscriptions, of which the last ones are asked one by one (see `conjunctive`).

    predicates  uint32[:]             the predicates of all conjunctions, one behind the other
    ends        uint32[conjunctions]  where those of each conjunction end
    owners      uint32[conjunctions]  the slot of each; those of a slot stand side by side
    first       int                   the first conjunction that is not laid out otherwise
    slot_count  int                   how many subscriptions there are, and so how many may match an event
    """

    predicates: Any
    ends: Any
    owners: Any
    first: int
    slot_count: int


# -- Which predicates are fulfilled, as bits


@njit(nogil=True, cache=True)
def set_bits(numbers, begin, end, bits):
    """Set the bits of some predicates: bit p & 31 of bits[p >> 5]."""
    for index in range(begin, end):
        number = numbers[index]
        bits[number >> np.uint32(5)] |= np.uint32(1) << (number & np.uint32(31))


@njit(nogil=True, cache=True)
def clear_bits(numbers, begin, end, bits):
    """Clear the words in which some predicates have their bits."""
    for index in range(begin, end):
        bits[numbers[index] >> np.uint32(5)] = 0


@njit(nogil=True, cache=True)
def match_pages(pages, bits, event, last, out, written):
    """Ask the conjunctions of the last pages whether all their predicates hold; return how many matches there are now.

    The conjunctions of a slot stand side by side, and `last` is the slot that was written last: each is written once.
    """
    predicates, ends, owners, first, _ = pages
    out_events, out_slots = out
    begin = ends[first - 1] if first > 0 else np.uint32(0)
    for conjunction in range(first, ends.size):
        end = ends[conjunction]
        at = begin
        while at < end:
            number = predicates[at]
            if (bits[number >> np.uint32(5)] >> (number & np.uint32(31))) & np.uint32(1) == 0:
                break
            at += np.uint32(1)
        if at >= end:
            owner = np.int64(owners[conjunction])
            if owner != last:
                out_events[written] = event
                out_slots[written] = owner
                written += 1
                last = owner
        begin = end
    return written


# -- Counting


@njit(nogil=True, cache=True)
def count_associations(predicates, starts):
    """Turn predicates by occurrence into where the list of each starts, one entry more than there are predicates."""
    for index in range(predicates.size):
        starts[np.int64(predicates[index]) + 1] += 1
    for number in range(1, starts.size):
        starts[number] += starts[number - 1]


@njit(nogil=True, cache=True)
def write_associations(predicates, ends, cursors, lists):
    """Write who has each predicate: record r has those up to `ends[r]`. `cursors` moves from the lists' starts."""
    begin = np.uint32(0)
    for record in range(ends.size):
        for index in range(begin, ends[record]):
            number = predicates[index]
            lists[cursors[number]] = record
            cursors[number] += 1
        begin = ends[record]


@njit(nogil=True, cache=True)
def count_hits(numbers, begin, end, associations, hits):
    """Add one to the hits of everybody in the lists of some predicates. Predicates that are too new have no list."""
    starts, lists = associations
    for index in range(begin, end):
        number = np.int64(numbers[index])
        if number < starts.size - 1:
            for at in range(starts[number], starts[number + 1]):
                hits[lists[at]] += 1


@njit(nogil=True, cache=True)
def list_candidates(hits, least, candidates):
    """Write who has hits enough, clear all hits, and return how many were written.

    The arrays are whole blocks of 64, which the processor compares at once; hardly any block has a candidate. There is
    room for 64 more than there can be.
    """
    count = 0
    for block in range(0, hits.size, 64):
        some, needed = hits[block : block + 64], least[block : block + 64]
        is_any = np.uint8(0)
        # Without a branch, over a whole block: hardly any block has a candidate, so hardly any is looked at twice.
        for index in range(64):
            is_any |= np.uint8(some[index] >= needed[index])
        if is_any:
            for index in range(64):
                # Every slot is written, and the place moves on only if it has hits enough; that is why there is room
                # for 64 more.
                candidates[count] = block + index
                count += some[index] >= needed[index]
        for index in range(64):
            some[index] = 0
    return count


class CountingRoom(NamedTuple):
    """The memory that counting works in. Invariant: between calls all hits and bits are 0.

    hits        uint8 or uint16[conjunctions]  whole blocks of 64
    candidates  uint32[:]                      room for all conjunctions, and 64 more
    bits        uint32[:]                      a bit for each predicate
    """

    hits: Any
    candidates: Any
    bits: Any


@njit(nogil=True, cache=True)
def match_counts(fulfilled, begin, associations, needs, pages, room, out):
    """The counting algorithm: a conjunction holds where as many of its predicates hold as it has.

    Those before the last pages have lists (`associations`) and counters; the others are asked one by one.
    """
    event_starts, numbers = fulfilled
    out_events, out_slots = out
    owners, bits = pages.owners, room.bits
    written = 0
    has_more = pages.first < pages.ends.size
    for event in range(begin, event_starts.size - 1):
        if written + pages.slot_count > out_slots.size:
            return event, written
        first, last = event_starts[event], event_starts[event + 1]
        count_hits(numbers, first, last, associations, room.hits)
        count = list_candidates(room.hits, needs, room.candidates)
        last_owner = np.int64(-1)
        for index in range(count):
            # Candidates ascend, so two conjunctions of one slot follow each other: it is written once.
            owner = np.int64(owners[room.candidates[index]])
            if owner != last_owner:
                out_events[written] = event
                out_slots[written] = owner
                written += 1
                last_owner = owner
        if has_more:
            set_bits(numbers, first, last, bits)
            written = match_pages(pages, bits, event, last_owner, out, written)
            # Only the words that were set are cleared: to clear all would take longer than to match.
            clear_bits(numbers, first, last, bits)
    return event_starts.size - 1, written


@njit(nogil=True, cache=True)
def match_counts_of_columns(begin, columns):
    """`match_counts`: the lists of events, the associations, what is needed, the last pages, the room, the outlet."""
    return match_counts(
        Ragged(*columns[:2]),
        begin,
        Ragged(*columns[2:4]),
        columns[4],
        LastPages(*columns[5:10]),
        CountingRoom(*columns[10:13]),
        Outlet(*columns[13:]),
    )


# -- Clusters

LINE, COLUMNS, SIZE = range(3)
"""Of each cluster: where its subscriptions start, where its columns of predicates start, how many columns it has."""


class ClusterTable(NamedTuple):
    """Conjunctions by access predicate and size.

    starts     int64[predicates + 2]  the clusters of predicate p are starts[p]:starts[p + 1]; behind the last predicate
                                      follow those without an access predicate
    clusters   int64[clusters + 1, 3] LINE, COLUMNS and SIZE of each
    line       uint32[conjunctions]   the slots, cluster after cluster
    columns    uint32[:]              the predicates of each cluster, column after column
    is_shared  bool[slots]            whether a slot has several conjunctions, and may be found twice
    """

    starts: Any
    clusters: Any
    line: Any
    columns: Any
    is_shared: Any


class StampRoom(NamedTuple):
    """The memory that a visit of clusters works in. Invariant: between calls all bits are 0.

    bits    uint32[:]      a bit for each predicate
    stamps  uint32[slots]  the epoch in which a shared slot was found last
    epochs  uint32[1]      the present one: a new number for each event, so that no stamp need be cleared
    """

    bits: Any
    stamps: Any
    epochs: Any


@njit(nogil=True, cache=True)
def choose_access(predicates, ends, is_equality, shares, none, access, ordered):
    """Choose the access predicate of every conjunction, and put its predicates in order, the access predicate first.

    It is the equality predicate that holds least often, `none` where there is no equality; the others follow by how
    seldom they hold.
    """
    begin = np.int64(0)
    for conjunction in range(ends.size):
        end = np.int64(ends[conjunction])
        chosen = np.int64(-1)
        # An insertion sort: conjunctions are short, and this one needs no memory.
        for index in range(begin, end):
            number = predicates[index]
            place = index
            while place > begin and shares[ordered[place - 1]] > shares[number]:
                ordered[place] = ordered[place - 1]
                place -= 1
            ordered[place] = number
        for index in range(begin, end):
            if is_equality[ordered[index]]:
                chosen = index
                break
        access[conjunction] = none if chosen < 0 else ordered[chosen]
        if chosen > begin:
            # It moves to the front, where `write_clusters` leaves it out: whoever visits the cluster fulfils it.
            number = ordered[chosen]
            for index in range(chosen, begin, -1):
                ordered[index] = ordered[index - 1]
            ordered[begin] = number
        begin = end


@njit(nogil=True, cache=True)
def write_clusters(order, owners, ends, ordered, clusters, line, columns):
    """Write conjunctions, in the `order` of their clusters, to lines of slots and columns of predicates."""
    for cluster in range(clusters.shape[0] - 1):
        first, size = clusters[cluster, LINE], clusters[cluster, SIZE]
        count = clusters[cluster + 1, LINE] - first
        for member in range(count):
            conjunction = order[first + member]
            line[first + member] = owners[conjunction]
            for column in range(size):  # the last `size` of its predicates: the access predicate is left out
                number = ordered[np.int64(ends[conjunction]) - size + column]
                columns[clusters[cluster, COLUMNS] + column * count + member] = number


@njit(nogil=True, cache=True)
def next_epoch(epochs, stamps):
    """Return a number that no stamp has."""
    epochs[0] += 1
    if epochs[0] == np.uint32(2**32 - 1):  # the numbers are at their end: stamps of long ago must not look new
        stamps[:] = 0
        epochs[0] = 1
    return epochs[0]


@njit(nogil=True, cache=True)
def match_clusters(fulfilled, begin, table, pages, room, out):
    """The cluster algorithm: visit the clusters of the access predicates that hold, and check their columns.

    A slot with several conjunctions is stamped when it is found.
    """
    event_starts, numbers = fulfilled
    starts, clusters, line, columns, is_shared = table
    bits, stamps, epochs = room
    out_events, out_slots = out
    written = 0
    last_list = starts.size - 2
    for event in range(begin, event_starts.size - 1):
        if written + pages.slot_count > out_slots.size:
            return event, written
        first, last = event_starts[event], event_starts[event + 1]
        epoch = next_epoch(epochs, stamps)
        set_bits(numbers, first, last, bits)
        # One turn more than there are predicates: the last is for the clusters without an access predicate.
        for index in range(first, last + 1):
            number = np.int64(numbers[index]) if index < last else last_list
            if number > last_list or (number == last_list and index < last):
                continue  # too new
            for cluster in range(starts[number], starts[number + 1]):
                from_line, at, size = clusters[cluster, LINE], clusters[cluster, COLUMNS], clusters[cluster, SIZE]
                count = clusters[cluster + 1, LINE] - from_line
                for member in range(count):
                    # The first column asks for what holds least often, so nearly everybody is done with after it.
                    column = 0
                    while column < size:
                        asked = columns[at + column * count + member]
                        if (bits[asked >> np.uint32(5)] >> (asked & np.uint32(31))) & np.uint32(1) == 0:
                            break
                        column += 1
                    if column < size:
                        continue
                    slot = line[from_line + member]
                    if is_shared[slot]:
                        if stamps[slot] == epoch:
                            continue
                        stamps[slot] = epoch
                    out_events[written] = event
                    out_slots[written] = slot
                    written += 1
        if pages.first < pages.ends.size:
            written = match_pages(pages, bits, event, -1, out, written)
        clear_bits(numbers, first, last, bits)
    return event_starts.size - 1, written


@njit(nogil=True, cache=True)
def match_clusters_of_columns(begin, columns):
    """`match_clusters`: the lists of events, the clusters, the last pages, the room, the outlet."""
    return match_clusters(
        Ragged(*columns[:2]),
        begin,
        ClusterTable(*columns[2:7]),
        LastPages(*columns[7:12]),
        StampRoom(*columns[12:15]),
        Outlet(*columns[15:]),
    )


# -- Gryphon's matching tree

TEST_AXIS, EQUALS, OTHERS, EDGES_END = range(4)
"""Of each test: its axis, and where its edges by equality start, where its other edges start, and where all end."""
TESTS, SUBSCRIPTIONS = range(2)
"""Of each node: where its tests start, and where its subscriptions start."""


class MatchingTree(NamedTuple):
    """Gryphon's tree. Invariant: the edges of a test by equality are labelled in ascending order.

    nodes       uint32[nodes + 1, 2]  TESTS and SUBSCRIPTIONS of each
    tests       uint32[tests, 4]      TEST_AXIS, EQUALS, OTHERS and EDGES_END of each
    labels      uint32[edges]         the predicate of each edge
    targets     uint32[edges]         the node that it leads to
    line        uint32[conjunctions]  the slots, node after node
    equal_axes  int32[predicates]     one plus the axis of an equality, 0 for other predicates
    is_shared   bool[slots]           whether a slot has several conjunctions, and may be found twice
    """

    nodes: Any
    tests: Any
    labels: Any
    targets: Any
    line: Any
    equal_axes: Any
    is_shared: Any


class TreeRoom(NamedTuple):
    """The memory that a walk through the tree works in. Invariant: between calls `bits` and `equal_at` are all 0.

    bits      uint32[:]           a bit for each predicate
    equal_at  uint32[axes]        one plus the last equality that holds there
    twins     uint32[predicates]  of each such equality, one plus the one before it on the same axis, 0 for none;
                                  `x = 1` and `x <=> 1` are two predicates, and both hold
    stack     uint32[nodes]       the nodes to be visited
    stamps    uint32[slots]       the epoch in which a shared slot was found last
    epochs    uint32[1]           the present one
    """

    bits: Any
    equal_at: Any
    twins: Any
    stack: Any
    stamps: Any
    epochs: Any


@njit(nogil=True, cache=True)
def order_by_rank(predicates, ends, ranks, ordered):
    """Write the predicates of each conjunction in the order of their ranks."""
    begin = np.int64(0)
    for conjunction in range(ends.size):
        end = np.int64(ends[conjunction])
        for index in range(begin, end):
            number = predicates[index]
            place = index
            while place > begin and ranks[ordered[place - 1]] > ranks[number]:
                ordered[place] = ordered[place - 1]
                place -= 1
            ordered[place] = number
        begin = end


@njit(nogil=True, cache=True, inline="always")
def rank_at(conjunction, depth, ends, ordered, ranks):
    """Return one plus the rank of a conjunction's predicate at some depth, 0 behind its last."""
    begin = np.int64(ends[conjunction - 1]) if conjunction > 0 else np.int64(0)
    at = begin + depth
    return np.int64(ranks[ordered[at]]) + 1 if at < np.int64(ends[conjunction]) else np.int64(0)


@njit(nogil=True, cache=True)
def sort_conjunctions(ends, ordered, ranks, order, stack):
    """Sort conjunctions by their sequences of ranks, a shorter one before its continuations: multikey quicksort.

    The smallest of the three parts goes on, so that the stack needs no more than two rows per halving.
    """
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, order.size, 0
    height = 1
    while height > 0:
        height -= 1
        low, high, depth = stack[height, 0], stack[height, 1], stack[height, 2]
        while high - low > 1:
            # Three parts: less, equal, greater at this depth. Only the equal ones look at the next depth, so common
            # beginnings are read once.
            pivot = rank_at(order[low + (high - low) // 2], depth, ends, ordered, ranks)
            less, at, more = low, low, high
            while at < more:
                conjunction = order[at]
                rank = rank_at(conjunction, depth, ends, ordered, ranks)
                if rank < pivot:
                    order[at] = order[less]
                    order[less] = conjunction
                    less += 1
                    at += 1
                elif rank > pivot:
                    more -= 1
                    order[at] = order[more]
                    order[more] = conjunction
                else:
                    at += 1
            # Those that are equal here differ further down, unless they have all ended.
            below = (low, less, depth)
            among = (less, more if pivot > 0 else less, depth + 1)
            above = (more, high, depth)
            small, one, two = below, among, above
            if one[1] - one[0] < small[1] - small[0]:
                small, one = one, small
            if two[1] - two[0] < small[1] - small[0]:
                small, two = two, small
            for part in (one, two):
                if part[1] - part[0] > 1:
                    stack[height, 0], stack[height, 1], stack[height, 2] = part
                    height += 1
            low, high, depth = small


@njit(nogil=True, cache=True)
def grow_tree(order, ends, ordered, path, parents, labels, nodes_of):
    """Make the nodes of the tree from sorted conjunctions; return how many edges there are.

    Edge e goes from node `parents[e]` to node e + 1, and is labelled with a predicate; `nodes_of[i]` is where the i-th
    of the sorted conjunctions ends. `path` has room for the longest conjunction and one more.
    """
    count = 0
    path[0] = 0
    before_begin = before_end = np.int64(0)
    for index in range(order.size):
        conjunction = order[index]
        begin = np.int64(ends[conjunction - 1]) if conjunction > 0 else np.int64(0)
        end = np.int64(ends[conjunction])
        depth = 0
        # Sorted, so what a conjunction has in common with the one before is a path that exists: only its rest makes
        # nodes.
        while (
            begin + depth < end
            and before_begin + depth < before_end
            and ordered[begin + depth] == ordered[before_begin + depth]
        ):
            depth += 1
        while begin + depth < end:
            parents[count] = path[depth]
            labels[count] = ordered[begin + depth]
            count += 1
            depth += 1
            path[depth] = count
        nodes_of[index] = path[depth]
        before_begin, before_end = begin, end
    return count


@njit(nogil=True, cache=True)
def write_tests(edges, starts, axes, is_equality, labels, nodes, tests):
    """Group the edges of each node, which lie in the order of their ranks, into one test per axis; return how many.

    `edges` are sorted by their nodes, which they leave from `starts[node]` on.
    """
    count = 0
    for node in range(starts.size - 1):
        nodes[node, TESTS] = count
        for at in range(starts[node], starts[node + 1]):
            number = labels[edges[at]]
            if at == starts[node] or axes[number] != tests[count - 1, TEST_AXIS]:
                tests[count, TEST_AXIS] = axes[number]
                tests[count, EQUALS] = tests[count, OTHERS] = at
                count += 1
            if is_equality[number]:
                tests[count - 1, OTHERS] = at + 1
            tests[count - 1, EDGES_END] = at + 1
    nodes[starts.size - 1, TESTS] = count
    return count


@njit(nogil=True, cache=True)
def match_tree(fulfilled, begin, tree, pages, room, out):
    """Gryphon's algorithm: from the root, follow every edge whose predicate holds, and all edges for "don't care"."""
    event_starts, numbers = fulfilled
    nodes, tests, labels, targets, line, equal_axes, is_shared = tree
    bits, equal_at, twins, stack, stamps, epochs = room
    out_events, out_slots = out
    written = 0
    for event in range(begin, event_starts.size - 1):
        if written + pages.slot_count > out_slots.size:
            return event, written
        first, last = event_starts[event], event_starts[event + 1]
        epoch = next_epoch(epochs, stamps)
        set_bits(numbers, first, last, bits)
        for index in range(first, last):
            number = numbers[index]
            if number < equal_axes.size and equal_axes[number] > 0:
                # A linked list for each axis: hardly ever longer than one, and cleared through the same predicates.
                twins[number] = equal_at[equal_axes[number] - 1]
                equal_at[equal_axes[number] - 1] = number + np.uint32(1)
        stack[0] = 0
        height = 1
        while height > 0:
            height -= 1
            node = np.int64(stack[height])
            for index in range(nodes[node, SUBSCRIPTIONS], nodes[node + 1, SUBSCRIPTIONS]):
                slot = line[index]
                if is_shared[slot]:
                    if stamps[slot] == epoch:
                        continue
                    stamps[slot] = epoch
                out_events[written] = event
                out_slots[written] = slot
                written += 1
            for test in range(nodes[node, TESTS], nodes[node + 1, TESTS]):
                # Of many equalities on one axis one holds, so it is looked up; other predicates are asked each.
                equal = equal_at[tests[test, TEST_AXIS]]
                if tests[test, EQUALS] == tests[test, OTHERS]:
                    equal = np.uint32(0)
                while equal > 0:
                    wanted = equal - np.uint32(1)
                    low, high = np.int64(tests[test, EQUALS]), np.int64(tests[test, OTHERS])
                    while high - low > 1:
                        middle = (low + high) >> 1
                        if labels[middle] <= wanted:
                            low = middle
                        else:
                            high = middle
                    if labels[low] == wanted:
                        stack[height] = targets[low]
                        height += 1
                    equal = twins[wanted]
                for at in range(tests[test, OTHERS], tests[test, EDGES_END]):
                    asked = labels[at]
                    if (bits[asked >> np.uint32(5)] >> (asked & np.uint32(31))) & np.uint32(1) != 0:
                        stack[height] = targets[at]
                        height += 1
        if pages.first < pages.ends.size:
            written = match_pages(pages, bits, event, -1, out, written)
        for index in range(first, last):
            number = numbers[index]
            if number < equal_axes.size and equal_axes[number] > 0:
                equal_at[equal_axes[number] - 1] = 0
        clear_bits(numbers, first, last, bits)
    return event_starts.size - 1, written


@njit(nogil=True, cache=True)
def match_tree_of_columns(begin, columns):
    """`match_tree`: the lists of events, the tree, the last pages, the room, the outlet."""
    return match_tree(
        Ragged(*columns[:2]),
        begin,
        MatchingTree(*columns[2:9]),
        LastPages(*columns[9:14]),
        TreeRoom(*columns[14:20]),
        Outlet(*columns[20:]),
    )


# -- Boolean trees

ALL, ANY, PURE, LEAF, ALWAYS, NEVER = 1, 2, 3, 4, 5, 6
"""The codes of nodes: AND, OR, the root of a pure conjunction, a predicate, TRUE and FALSE (see `boolean.encoding`)."""
SHORT_CIRCUIT, WITHOUT, WITH_WIDTHS = range(3)
"""How a tree is evaluated: leaving out what cannot matter any more, in full, or by the widths of its children."""
CANDIDATES, EVALUATED, LEAVES = range(3)
"""What is counted on the way: candidates, trees evaluated, predicates looked at."""


class TreeBytes(NamedTuple):
    """Trees, one behind the other.

    data       uint8[:]       see `boolean.encoding`
    locations  uint32[slots]  where each starts
    mode       int            how they are evaluated: SHORT_CIRCUIT, WITHOUT or WITH_WIDTHS
    """

    data: Any
    locations: Any
    mode: int


class GroveTable(NamedTuple):
    """The trees of one event type, laid out. Invariant: what is not among the newest has lists and counters.

    associations  lists[predicates]  of uint32: the slots that ask for each predicate, by occurrence
    least         uint8 or uint16[:] the fewest hits with which each tree can hold, whole blocks of 64
    laid_out      TreeBytes          those that have counters, their children in the order of their selectivity
    registered    TreeBytes          all trees as they were registered
    newest        uint32[:]          the slots that came since, all of which are evaluated
    """

    associations: Any
    least: Any
    laid_out: Any
    registered: Any
    newest: Any

    @property
    def columns(self) -> tuple[Any, ...]:
        """All columns of all its tables, side by side."""
        return (*self.associations, self.least, *self.laid_out, *self.registered, self.newest)


class Marks(NamedTuple):
    """What is to be known of slots besides their trees.

    deaths        uint32[slots]  in which version each was removed
    version       int            the version that is looked at; who died up to it is gone
    destinations  int32[slots]   the destination of each, -1 for none; empty without the shortcut
    is_shortcut   bool           whether who has a destination is left out once that is reached
    """

    deaths: Any
    version: int
    destinations: Any
    is_shortcut: bool


class GroveRoom(NamedTuple):
    """The memory that Boolean filtering works in. Invariant: between calls all hits and bits are 0.

    hits        uint8 or uint16[:]  whole blocks of 64
    candidates  uint32[:]           room for all slots, and 64 more
    bits        uint32[:]           a bit for each predicate
    stack       int64[:, 4]         see `evaluate_node`
    counts      int64[3]            CANDIDATES, EVALUATED and LEAVES, added up
    """

    hits: Any
    candidates: Any
    bits: Any
    stack: Any
    counts: Any


@njit(nogil=True, cache=True, inline="always")
def number_at(trees, at):
    """Read the number of the LEAF at a place."""
    return (
        np.uint32(trees[at + 1])
        | np.uint32(trees[at + 2]) << np.uint32(8)
        | np.uint32(trees[at + 3]) << np.uint32(16)
        | np.uint32(trees[at + 4]) << np.uint32(24)
    )


@njit(nogil=True, cache=True, inline="always")
def evaluate_node(trees, at, end, bits, mode, stack):
    """Evaluate a node below the root; return its value, where it ends, and how many predicates were looked at.

    Once its value is known, the rest of a node is walked over without looking at predicates, because only walking tells
    where it ends; with widths, not even that, and `end` is where this one ends. The stack has a row for each level: the
    node's code, how many of its children are to come, its value so far, and its end.
    """
    depth = leaves = 0
    value = False
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = trees[at], trees[at + 1], trees[at] == ALL, end
    at += 2
    while depth >= 0:
        # The width says where this child ends, so that what cannot matter is passed over without being walked.
        if mode == WITH_WIDTHS:
            end = at + 2 + np.int64(trees[at]) + np.int64(trees[at + 1]) * 256
            at += 2
        code = np.int64(trees[at])
        if code != LEAF:
            depth += 1
            stack[depth, 0], stack[depth, 1] = code, trees[at + 1]
            stack[depth, 2], stack[depth, 3] = code == ALL, end
            at += 2
            continue
        number = number_at(trees, at)
        leaves += 1
        value = (bits[number >> np.uint32(5)] >> (number & np.uint32(31))) & np.uint32(1) != 0
        at += 5
        while depth >= 0:  # the value of a child is known: what does it mean for its parents?
            stack[depth, 1] -= 1
            if value != (stack[depth, 0] == ALL):
                stack[depth, 2] = value
                if mode == WITH_WIDTHS:
                    at = stack[depth, 3]
                    stack[depth, 1] = 0
                elif mode == SHORT_CIRCUIT:
                    left = stack[depth, 1]
                    while left > 0:
                        if trees[at] == LEAF:
                            at += 5
                            left -= 1
                        else:
                            left += np.int64(trees[at + 1]) - 1
                            at += 2
                    stack[depth, 1] = 0
            if stack[depth, 1] > 0:
                break
            value = stack[depth, 2] != 0
            depth -= 1
    return value, at, leaves


@njit(nogil=True, cache=True)
def evaluate(candidates, is_counted, tree_bytes, marks, reached, room, place, out):
    """Evaluate candidates, and write those that hold; return how many matches there are now.

    At the root the first child that decides ends it all. A pure conjunction holds unseen, if it is a candidate because
    its hits were counted (`is_counted`). With the shortcut, who has a destination is left out once it is reached: the
    event goes there already.

    reached  uint8[:]  which destinations the event has reached, updated
    place              the event, and how many matches are written already
    """
    trees, locations, mode = tree_bytes
    deaths, version, destinations, is_shortcut = marks
    bits, stack, counts = room.bits, room.stack, room.counts
    out_events, out_slots = out
    event, written = place
    evaluated = leaves = 0
    is_lazy = mode == SHORT_CIRCUIT
    for index in range(candidates.size):
        slot = candidates[index]
        if is_shortcut and destinations[slot] >= 0 and reached[destinations[slot]]:
            continue
        evaluated += 1
        at = np.int64(locations[slot])
        code = np.int64(trees[at])
        if is_lazy and code == ALL and trees[at + 2] == LEAF:
            # What happens to most candidates: their first predicate is the one that seldom holds.
            number = number_at(trees, at + 2)
            if (bits[number >> np.uint32(5)] >> (number & np.uint32(31))) & np.uint32(1) == 0:
                leaves += 1
                continue
        if deaths[slot] <= version:  # only now: most are done with before, and this is another wait for memory
            continue
        if code == PURE and not is_counted:
            code = ALL
        value = code in (ALWAYS, PURE)
        if code <= ANY:
            is_all = code == ALL
            left = np.int64(trees[at + 1])
            value = is_all
            at += 2
            end = at
            while left > 0:
                if mode == WITH_WIDTHS:
                    end = at + 2 + np.int64(trees[at]) + np.int64(trees[at + 1]) * 256
                    at += 2
                if trees[at] == LEAF:
                    number = number_at(trees, at)
                    leaves += 1
                    child = (bits[number >> np.uint32(5)] >> (number & np.uint32(31))) & np.uint32(1) != 0
                    at += 5
                else:
                    child, at, more = evaluate_node(trees, at, end, bits, mode, stack)
                    leaves += more
                left -= 1
                if child != is_all:
                    value = child
                    if mode != WITHOUT:
                        break
        elif code == LEAF:
            number = number_at(trees, at)
            leaves += 1
            value = (bits[number >> np.uint32(5)] >> (number & np.uint32(31))) & np.uint32(1) != 0
        if value:
            out_events[written] = event
            out_slots[written] = slot
            written += 1
            if is_shortcut and destinations[slot] >= 0:
                reached[destinations[slot]] = 1
    counts[CANDIDATES] += candidates.size
    counts[EVALUATED] += evaluated
    counts[LEAVES] += leaves
    return written


@njit(nogil=True, cache=True)
def match_trees(fulfilled, begin, grove, marks, reached, room, out):
    """The Boolean algorithm: count hits, list the candidates, evaluate their trees.

    reached  uint8[:, :]  with the shortcut, a row of destinations for each event
    """
    event_starts, numbers = fulfilled
    written = 0
    for event in range(begin, event_starts.size - 1):
        if written + grove.registered.locations.size > out.slots.size:
            return event, written
        first, last = event_starts[event], event_starts[event + 1]
        there = reached[event if marks.is_shortcut else 0]
        count_hits(numbers, first, last, grove.associations, room.hits)
        count = list_candidates(room.hits, grove.least, room.candidates)
        set_bits(numbers, first, last, room.bits)
        written = evaluate(room.candidates[:count], True, grove.laid_out, marks, there, room, (event, written), out)
        if grove.newest.size:
            written = evaluate(grove.newest, False, grove.registered, marks, there, room, (event, written), out)
        clear_bits(numbers, first, last, room.bits)
    return event_starts.size - 1, written


@njit(nogil=True, cache=True)
def match_trees_of_columns(begin, columns):
    """`match_trees`: the lists of events, the grove (`GroveTable.columns`), marks, what is reached, room, outlet."""
    grove = GroveTable(
        Ragged(*columns[2:4]), columns[4], TreeBytes(*columns[5:8]), TreeBytes(*columns[8:11]), columns[11]
    )
    return match_trees(
        Ragged(*columns[:2]),
        begin,
        grove,
        Marks(*columns[12:16]),
        columns[16],
        GroveRoom(*columns[17:22]),
        Outlet(*columns[22:]),
    )
