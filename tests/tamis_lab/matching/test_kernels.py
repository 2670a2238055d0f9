"""Each kernel beside a plain twin that says what it should do."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.ragged import Ragged
from tamis_lab.matching import kernels
from tamis_lab.matching.counting import associations, counters
from tamis_lab.matching.predicates import kernels as phase

NUMBERS = 40
"""Predicates in these tests."""
some_numbers = st.lists(st.integers(0, NUMBERS - 1), unique=True, max_size=NUMBERS)
books = st.lists(st.lists(st.lists(st.integers(0, NUMBERS - 1), unique=True, max_size=5), max_size=3), max_size=30)
"""Of each slot its conjunctions, of each its predicates."""


def u32(values):
    return np.array(values, np.uint32)


def written(book):
    """A book as the arrays that kernels take: predicates, ends, owners."""
    conjunctions = [(slot, way) for slot, ways in enumerate(book) for way in ways]
    predicates = u32([number for _, way in conjunctions for number in way])
    ends = u32(np.cumsum([len(way) for _, way in conjunctions]))
    return predicates, ends, u32([slot for slot, _ in conjunctions])


def matches(book, fulfilled):
    """What every conjunctive algorithm should find."""
    return [slot for slot, ways in enumerate(book) if any(set(way) <= set(fulfilled) for way in ways)]


def bits_of(numbers):
    bits = np.zeros(NUMBERS // 32 + 1, np.uint32)
    kernels.set_bits(u32(numbers), 0, len(numbers), bits)
    return bits


# -- Bits


@given(numbers=some_numbers)
def test_bits_are_set_and_cleared(numbers):
    bits = bits_of(numbers)
    assert [number for number in range(NUMBERS) if bits[number // 32] >> (number % 32) & 1] == sorted(numbers)
    kernels.clear_bits(u32(numbers), 0, len(numbers), bits)
    assert not bits.any()


@given(book=books, fulfilled=some_numbers, first=st.integers(0, 10))
def test_pages_are_asked_one_by_one(book, fulfilled, first):
    predicates, ends, owners = written(book)
    first = min(first, len(ends))
    out = u32(np.zeros(len(book) + 1)), u32(np.zeros(len(book) + 1))
    pages = kernels.LastPages(predicates, ends, owners, first, len(book))
    count = kernels.match_pages(pages, bits_of(fulfilled), 7, -1, kernels.Outlet(*out), 0)
    asked = defaultdict(list)
    for conjunction in range(first, len(ends)):
        begin = ends[conjunction - 1] if conjunction else 0
        asked[int(owners[conjunction])].append(predicates[begin : ends[conjunction]].tolist())
    expected = [slot for slot, ways in asked.items() if any(set(way) <= set(fulfilled) for way in ways)]
    assert out[1][:count].tolist() == expected
    assert out[0][:count].tolist() == [7] * count


# -- Counting


@given(book=st.lists(st.lists(st.integers(0, NUMBERS - 1), max_size=6), max_size=20))
def test_the_association_table_is_a_multiset(book):
    predicates, ends = (
        u32([number for record in book for number in record]),
        u32(np.cumsum([len(each) for each in book])),
    )
    starts, lists = associations(predicates, ends, NUMBERS)
    for number in range(NUMBERS):
        expected = [record for record, numbers in enumerate(book) for each in numbers if each == number]
        assert lists[starts[number] : starts[number + 1]].tolist() == expected
    shuffled_starts, shuffled = associations(predicates, ends, NUMBERS, is_shuffled=True)
    assert shuffled_starts.tolist() == starts.tolist()
    for number in range(NUMBERS):
        span = slice(starts[number], starts[number + 1])
        assert sorted(shuffled[span].tolist()) == lists[span].tolist()


@given(hits=st.lists(st.integers(0, 6), max_size=300), data=st.data(), wide=st.booleans())
def test_candidates_are_those_with_hits_enough_and_the_hits_are_cleared(hits, data, wide):
    least = data.draw(st.lists(st.integers(0, 6), min_size=len(hits), max_size=len(hits)))
    needed = counters(np.array(least, np.int64), 300 if wide else 6)
    counted = np.zeros(len(needed), needed.dtype)
    counted[: len(hits)] = hits
    found = u32(np.zeros(len(needed) + 64))
    count = kernels.list_candidates(counted, needed, found)
    assert found[:count].tolist() == [
        slot for slot, (one, two) in enumerate(zip(hits, least, strict=True)) if one >= two
    ]
    assert not counted.any()


# -- The algorithms: one event list against one book, everything laid out, or only a part


def out_of(book, room):
    return u32(np.zeros(room or len(book) + 100)), u32(np.zeros(room or len(book) + 100))


def found_by(run, events, book, room):
    """Call a kernel until it is through; return the slots of each event."""
    starts = np.cumsum([0, *(len(event) for event in events)])
    numbers = u32([number for event in events for number in event])
    found = [[] for _ in events]
    at = 0
    while at < len(events):
        out = out_of(book, room)
        at, count = run(starts, numbers, at, *out)
        for event, slot in zip(out[0][:count].tolist(), out[1][:count].tolist(), strict=True):
            found[event].append(slot)
    return found


@pytest.mark.parametrize("name", ["counting", "cluster", "gryphon"])
@given(
    book=books, events=st.lists(some_numbers, max_size=6), known=st.integers(0, 60), tight=st.booleans(), data=st.data()
)
def test_an_algorithm_finds_each_slot_once_whatever_is_laid_out_and_however_small_the_output(
    name, book, events, known, tight, data
):
    from tamis_lab.matching.cluster import ClusterIndex
    from tamis_lab.matching.conjunctive import Pages
    from tamis_lab.matching.counting import CountingIndex
    from tamis_lab.matching.gryphon import GryphonIndex
    from tamis_lab.matching.predicates import Fulfilled
    from tamis_lab.matching.roll import Scratch

    predicates, ends, owners = written(book)
    slot_ends = u32(np.cumsum([len(ways) for ways in book]))
    pages = Pages(predicates, ends, owners, slot_ends)
    slots = min(known, len(book))
    conjunctions = int(slot_ends[slots - 1]) if slots else 0
    last = int(ends[conjunctions - 1]) if conjunctions else 0
    laid_out = Pages(predicates[:last], ends[:conjunctions], owners[:conjunctions], slot_ends[:slots])
    # Predicates 0 to 9 are equalities on one axis, of which an event fulfils one at most; 10 to 19 on another.
    axes = np.array([min(number // 10, 3) for number in range(NUMBERS)], np.int64)
    is_equality = np.arange(NUMBERS) < 20
    events = [_with_one_equality(event) for event in events]
    number_count = NUMBERS
    if name == "counting":
        index = CountingIndex(laid_out, number_count, is_shuffled=data.draw(st.booleans()))
    elif name == "cluster":
        shares = np.array(
            data.draw(st.lists(st.floats(0, 1, width=32), min_size=NUMBERS, max_size=NUMBERS)), np.float32
        )
        index = ClusterIndex(laid_out, is_equality, shares)
    else:
        index = GryphonIndex(laid_out, axes, 4, is_equality)
    scratch = Scratch()

    def run(starts, numbers, at, *out):
        return index.match(
            Fulfilled(0, Ragged(starts, numbers), number_count),
            at,
            pages.behind(index.conjunction_count),
            scratch,
            kernels.Outlet(*out),
        )

    found = found_by(run, events, book, len(book) + 1 if tight else None)
    assert [sorted(slots) for slots in found] == [matches(book, event) for event in events]


def _with_one_equality(event):
    kept, seen = [], set()
    for number in event:
        if number < 20:
            if number // 10 in seen:
                continue
            seen.add(number // 10)
        kept.append(number)
    return kept


# -- Clusters


@given(book=books, data=st.data())
def test_the_access_predicate_is_the_equality_that_holds_least_often(book, data):
    predicates, ends, _ = written(book)
    shares = np.array(
        data.draw(st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=NUMBERS, max_size=NUMBERS)), np.float32
    )
    is_equality = np.arange(NUMBERS) % 2 == 0
    access, ordered = np.empty(len(ends), np.int64), np.empty(len(predicates), np.uint32)
    kernels.choose_access(predicates, ends, is_equality, shares, NUMBERS, access, ordered)
    begin = 0
    for conjunction, end in enumerate(ends.tolist()):
        asked, kept = predicates[begin:end].tolist(), ordered[begin:end].tolist()
        assert sorted(kept) == sorted(asked)
        equal = [number for number in asked if is_equality[number]]
        if equal:
            assert access[conjunction] == kept[0]
            assert shares[kept[0]] == min(shares[number] for number in equal)
            kept = kept[1:]
        else:
            assert access[conjunction] == NUMBERS
        assert [shares[number] for number in kept] == sorted(shares[number] for number in kept)
        begin = end


def test_stamps_begin_anew_when_the_epochs_are_used_up():
    epochs, stamps = u32([2**32 - 3]), u32([5, 2**32 - 3])
    assert kernels.next_epoch(epochs, stamps) == 2**32 - 2
    assert stamps.tolist() == [5, 2**32 - 3]
    assert kernels.next_epoch(epochs, stamps) == 1
    assert stamps.tolist() == [0, 0]
    assert kernels.next_epoch(epochs, stamps) == 2


# -- Gryphon


@given(book=books, data=st.data())
def test_conjunctions_are_sorted_by_their_ranks(book, data):
    predicates, ends, _ = written(book)
    ranks = np.array(data.draw(st.permutations(range(NUMBERS))), np.int64)
    ordered = np.empty(len(predicates), np.uint32)
    kernels.order_by_rank(predicates, ends, ranks, ordered)
    sequences = [[int(ranks[number]) for number in each] for each in np.split(ordered, ends)[: len(ends)]]
    assert all(each == sorted(each) for each in sequences)
    order = np.arange(len(ends))
    kernels.sort_conjunctions(ends, ordered, ranks, order, np.empty((256, 3), np.int64))
    assert [sequences[conjunction] for conjunction in order] == sorted(sequences)
    assert sorted(order.tolist()) == list(range(len(ends)))


def test_sorting_many_keeps_the_stack_small():
    chance = np.random.default_rng(1)
    count = 200_000
    predicates = np.sort(chance.integers(0, 50, (count, 3)), axis=1).astype(np.uint32)
    predicates[: count // 2] = predicates[0]  # half of them are equal
    ends = (np.arange(count, dtype=np.uint32) + 1) * 3
    order = np.arange(count)
    kernels.sort_conjunctions(ends, predicates.ravel(), np.arange(50), order, np.empty((64, 3), np.int64))
    rows = predicates[order].astype(np.int64)
    keys = rows[:, 0] * 2500 + rows[:, 1] * 50 + rows[:, 2]
    assert (np.diff(keys) >= 0).all()


@given(book=books)
def test_the_tree_has_a_node_for_every_prefix(book):
    predicates, ends, _ = written(book)
    ranks = np.arange(NUMBERS)
    ordered = np.empty(len(predicates), np.uint32)
    kernels.order_by_rank(predicates, ends, ranks, ordered)
    order = np.arange(len(ends))
    kernels.sort_conjunctions(ends, ordered, ranks, order, np.empty((256, 3), np.int64))
    parents, labels = np.empty(len(ordered), np.uint32), np.empty(len(ordered), np.uint32)
    nodes_of = np.empty(len(order), np.int64)
    count = kernels.grow_tree(order, ends, ordered, np.empty(10, np.int64), parents, labels, nodes_of)
    prefixes = {0: ()}
    for edge in range(count):
        prefixes[edge + 1] = (*prefixes[int(parents[edge])], int(labels[edge]))
    sequences = [tuple(sorted(way)) for ways in book for way in ways]
    assert len(set(prefixes.values())) == count + 1
    assert set(prefixes.values()) == {()} | {each[:length] for each in sequences for length in range(len(each) + 1)}
    assert [prefixes[int(node)] for node in nodes_of] == sorted(sequences)
    assert (np.diff(nodes_of) >= 0).all()


# -- The predicate phase


@st.composite
def axes_of_intervals(draw):
    """Axes with their last codes, and intervals of codes on them."""
    tops = draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))
    intervals = []
    for number in range(draw(st.integers(0, 25))):
        axis = draw(st.integers(0, len(tops) - 1))
        low = draw(st.integers(1, tops[axis]))
        intervals.append((axis, low, draw(st.integers(low, tops[axis])), number))
    return tops, intervals


@given(found=axes_of_intervals(), data=st.data())
def test_pieces_are_found_at_the_codes_they_cover(found, data):
    tops, intervals = found
    pieces = np.array([each[:3] for each in intervals], np.int64).reshape(-1, 3)
    owners, numbers = np.arange(len(intervals)), u32([each[3] for each in intervals])
    axes = np.zeros((len(tops), 5), np.int64)
    axes[1:, phase.ROWS] = np.cumsum(np.array(tops[:-1]) + 2)
    rows = np.zeros((sum(tops) + 2 * len(tops) + 1, 3), np.int64)
    entries, kinds = np.empty(len(intervals), np.uint32), np.empty(len(intervals), np.uint8)
    count = phase.lay_out_pieces(
        phase.PieceTable(pieces, owners), numbers, np.array(tops), axes, rows, np.empty_like(rows), entries, kinds
    )
    inside = kinds == phase.AS_INSIDE
    assert count == len(intervals) - inside.sum()
    leaf_count = 32
    bases = pieces[inside, 0] * 2 * leaf_count
    counts = np.zeros(2 * leaf_count * len(tops) + 1, np.int64)
    interval_arrays = (bases, np.full(len(bases), leaf_count), pieces[inside, 1], pieces[inside, 2])
    phase.count_tree_entries(*interval_arrays, counts)
    starts = np.cumsum(counts) - counts
    more = np.empty(int(counts.sum()), np.uint32)
    phase.write_tree_entries(*interval_arrays, numbers[inside], starts.copy(), more)
    axes[:, phase.TREE], axes[:, phase.LEAVES] = np.arange(len(tops)) * 2 * leaf_count, leaf_count
    index = axes, rows.astype(np.uint32), u32(starts + count)
    entries = np.concatenate([entries[:count], more])

    codes = u32([[data.draw(st.integers(0, top)) for top in tops] for _ in range(4)])
    expected = [sorted(n for axis, low, high, n in intervals if low <= event[axis] <= high) for event in codes.tolist()]
    counted = np.zeros(len(codes), np.int64)
    phase.count_fulfilled(codes, *index, counted)
    assert counted.tolist() == [len(each) for each in expected]
    cursors = np.cumsum(counted) - counted
    begins = cursors.copy()
    out = np.empty(int(counted.sum()), np.uint32)
    phase.write_fulfilled(codes, 0, *index, entries, cursors, out)
    assert [sorted(out[b:e].tolist()) for b, e in zip(begins, cursors, strict=True)] == expected
