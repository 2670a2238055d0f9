"""The block matcher's loops, beside plain versions of themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.matching.block import kernels, probing
from tamis.matching.block.kernels import FEW, INTERVAL, LISTED, MEMBER, NONE, OUTSIDE, UNLISTED
from tamis.ragged import Ragged

CODES = 12
"""Codes are 0 to 11 here."""

# A leaf as people see it: its kind, and the codes in its interval or set.
intervals = (
    st.tuples(st.integers(0, CODES - 1), st.integers(0, CODES - 1)).map(sorted).map(lambda it: range(it[0], it[1] + 1))
)
code_sets = st.sets(st.integers(1, CODES - 1))
leaves = st.one_of(
    st.tuples(st.sampled_from([INTERVAL, OUTSIDE]), intervals),
    st.tuples(st.sampled_from([MEMBER, LISTED, UNLISTED]), code_sets),
    st.tuples(st.just(FEW), st.sets(st.integers(1, CODES // 2 - 1).map(lambda operand: 2 * operand))),
)
blocks = st.integers(1, 70).flatmap(
    lambda count: st.lists(st.lists(st.integers(0, CODES - 1), min_size=count, max_size=count), min_size=2, max_size=2)
)


def is_true(leaf, code):
    """Does a leaf hold?"""
    kind, codes = leaf
    if kind in (OUTSIDE, UNLISTED):
        return code != 0 and code not in codes
    return code in codes


class Program:
    """Leaves as the kernels take them: rows, and one array of words for all sets."""

    def __init__(self):
        self.words = [0]

    def row(self, axis, leaf):
        kind, codes = leaf
        if kind in (INTERVAL, OUTSIDE):
            return (8 * axis + kind, codes[0], codes[-1] - codes[0])
        if kind == FEW:
            return (8 * axis + kind, sum(1 << code // 2 for code in codes), 0)
        first = len(self.words)
        self.words += [sum(1 << code for code in codes)] if kind == MEMBER else sorted(codes)
        return (8 * axis + kind, first, len(codes))

    @property
    def bitmaps(self):
        return np.array(self.words, np.uint64)


@given(leaf=leaves, code=st.integers(0, CODES - 1))
def test_a_leaf_holds_where_its_codes_say(leaf, code):
    program = Program()
    kind, first, span = program.row(0, leaf)
    assert kernels.holds(np.uint32(code), kind, np.uint32(first), np.uint32(span), program.bitmaps) == is_true(
        leaf, code
    )


@given(codes=st.lists(st.integers(0, CODES - 1)))
def test_sort_by_code_gives_each_code_its_slice(codes):
    starts, order = np.empty(CODES + 1, np.int32), np.empty(len(codes), np.uint16)
    kernels.sort_by_code(np.array(codes, np.uint16), len(codes), starts, order)
    for code in range(CODES):
        assert order[starts[code] : starts[code + 1]].tolist() == [i for i, each in enumerate(codes) if each == code]


# -- Clauses

clause_lists = st.lists(st.lists(st.tuples(st.integers(0, 1), leaves), max_size=4), min_size=1, max_size=5)


def laid_out(clauses):
    """Lay out clauses, each of an owner of its own and without a tree."""
    program = Program()
    rows = [program.row(axis, leaf) for clause in clauses for axis, leaf in clause]
    table = np.zeros((len(clauses) + 1, 4), np.uint32)
    table[:, kernels.LEAVES] = np.cumsum([0, *map(len, clauses)])
    table[:, kernels.TREE] = NONE
    table[:-1, kernels.OWNER] = np.arange(len(clauses))
    empty = np.zeros((0, 5), np.uint32)
    numbers = np.arange(len(clauses), dtype=np.uint32)
    return kernels.Program(table, np.array(rows, np.uint32).reshape(-1, 3), empty, program.bitmaps, numbers, numbers)


def matches(clauses, codes):
    """Return the events and owners that match."""
    return {
        (event, owner)
        for owner, clause in enumerate(clauses)
        for event in range(len(codes[0]))
        if all(is_true(leaf, codes[axis][event]) for axis, leaf in clause)
    }


@given(clauses=clause_lists, codes=blocks)
def test_a_clause_holds_where_all_its_leaves_do(clauses, codes):
    program = laid_out(clauses)
    columns = np.array(codes, np.uint16)
    found = {
        (event, clause)
        for clause in range(len(clauses))
        for event in range(columns.shape[1])
        if kernels.clause_holds(columns, event, np.uintp(clause), program)
    }
    assert found == matches(clauses, codes)


@given(clauses=clause_lists, codes=blocks, dead=st.sets(st.integers(0, 4)), room=st.sampled_from([70, 1000]))
def test_match_keys_finds_the_events_of_each_key_that_pass_its_clauses(clauses, codes, dead, room):
    # Clause number i lies under the key "axis 0 has code i".
    count = len(codes[0])
    columns = np.array(codes, np.uint16)
    starts, order = np.empty(CODES + 1, np.int32), np.empty(count, np.uint16)
    kernels.sort_by_code(columns[0], count, starts, order)
    keys = np.arange(len(clauses))
    alive = np.array([number not in dead for number in keys])
    is_broad = np.zeros(len(clauses), np.bool_)
    out = kernels.Matches(np.empty(room, np.uint16), np.empty(room, np.uint32))
    block = kernels.SortedBlock(columns, order, starts)
    runs = kernels.Runs(0 * keys, keys, keys + 1, np.arange(len(clauses) + 1), is_broad)
    survivors = np.empty(count + 1, np.uint16)
    found, run, row = set(), 0, 0
    while run < len(clauses):
        run, row, written = kernels.match_keys(block, runs, laid_out(clauses), alive, survivors, (run, row), out, None)
        found |= set(zip(out.events[:written].tolist(), out.owners[:written].tolist(), strict=True))
    assert found == {
        (event, owner) for event, owner in matches(clauses, codes) if codes[0][event] == owner and owner not in dead
    }


@given(
    clauses=clause_lists,
    event=st.lists(st.integers(0, CODES - 1), min_size=2, max_size=2),
    room=st.integers(0, 5),
    way=st.sampled_from(["range", "cell", "scan"]),
)
def test_match_event_finds_the_clauses_that_its_codes_lead_to(clauses, event, room, way):
    # Clause number i lies under a range, "axis 0 has a code from i to i + 5", in buckets of two codes each; or in the
    # cell of operand i of axis 0; or is found by nothing. Probes let everything through, and name its row.
    count = len(clauses)
    firsts = np.tile(np.array([0, 0, 0xFFFF, 2], np.uint16), (count, 1))
    rows = np.tile(np.array([0, 0, 0xFFFF] * 2 + [1, 0, 0, 0, 0, 0], np.uint16), (count, 1))
    rows[:, probing.WHOSE] = np.arange(count)
    reaching = [
        [i for i in range(count) if i <= 2 * bucket + 1 and i + 5 >= 2 * bucket] for bucket in range(CODES // 2)
    ]
    cells = np.minimum(np.arange(CODES // 2 + 1), count) if way == "cell" else np.zeros(1)
    finders = probing.Finders(
        np.zeros(2, np.uint8),
        np.array([(0, 2, 1, 0)] if way == "cell" else [], np.uint32).reshape(-1, 4),
        cells.astype(np.uint32),
        np.array([(0, 1, 0)] if way == "range" else [], np.uint32).reshape(-1, 3),
        np.cumsum([0, *map(len, reaching)]).astype(np.uint32),
        np.array([i for some in reaching for i in some], np.uint32),
        np.array([(i, 5) for i in range(count)], np.uint32),
        count if way == "cell" else 0,
        0 if way == "scan" else count,
    )
    found_by = {
        "range": lambda code, i: code and i <= code <= i + 5,
        "cell": lambda code, i: code == 2 * i + 2,
        "scan": lambda code, i: True,
    }[way]
    out = np.empty(room, np.uint32)
    written = probing.match_event(
        np.array(event, np.uint32).reshape(-1, 1), finders, probing.Probes(np.zeros(2, np.uint8), firsts, rows),
        laid_out(clauses), np.ones(count, np.bool_), out, None,
    )  # fmt: skip
    expected = [owner for _, owner in sorted(matches(clauses, [[code] for code in event])) if found_by(event[0], owner)]
    assert written == len(expected)
    assert out[: min(written, room)].tolist() == expected[:room]


def chosen_probes(table, hulls, shifts, demanded=-1):
    """Choose the probe of one clause that has all leaves and is found by none of them."""
    count = len(table.kinds)
    leaves_of_clause = Ragged(np.array([0, count]), np.arange(count, dtype=np.uint32))
    probes = probing.Probes(
        shifts, np.empty((1, probing.FIRST_PART), np.uint16), np.empty((1, probing.SECOND_PART), np.uint16)
    )
    probing.choose_probes(leaves_of_clause, np.full((1, 2), -1), np.array([demanded]), table, hulls, shifts, probes)
    return probes


@given(
    clause=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 200_000), st.integers(0, 200_000)), max_size=5),
    event=st.tuples(st.integers(0, 200_000), st.integers(0, 200_000)),
    data=st.data(),
)
def test_probes_let_through_whatever_their_leaves_let_through(clause, event, data):
    count = len(clause)
    firsts, lasts = (np.array(bounds, np.uint32) for bounds in zip(*((min(a, b), max(a, b)) for _, a, b in clause), strict=True)) if count else (np.zeros(0, np.uint32),) * 2  # fmt: skip
    shifts = np.array([2, 2], np.uint8)
    axes, costs = np.array([axis for axis, _, _ in clause], np.uint32), np.arange(count, dtype=np.float32)
    table = probing_table(axes, firsts, lasts, costs)
    demanded = data.draw(st.integers(-1, count - 1))
    probes = chosen_probes(table, probing.Hulls(firsts, lasts, costs), shifts, demanded)
    intervals_of_probe = [*probes.firsts[0, :3].tolist(), *probes.rows[0, :6].tolist()]
    passes = [
        (event[axis] >> 2) - first in range(span + 1)
        for axis, first, span in np.reshape(intervals_of_probe, (3, 3)).tolist()
    ]
    assert all(passes) or not all(first <= event[axis] <= last for (axis, _, _), first, last in zip(clause, firsts, lasts, strict=True))  # fmt: skip
    assert (probes.rows[0, probing.WHOSE + 1] != 0) == (not clause)  # shifted codes do not tell all
    first_ones = [number for number in range(count) if number == demanded] + [
        number for number in range(count) if number != demanded
    ]
    for number, is_passed in zip(first_ones[:3], passes, strict=False):
        axis, low, high = clause[number]
        assert is_passed == (min(low, high) >> 2 <= event[axis] >> 2 <= max(low, high) >> 2)


def probing_table(axes, firsts, lasts, costs):
    return kernels.LeafTable(axes, np.zeros(len(axes), np.uint8), firsts, lasts - firsts, costs)


@given(
    sets=st.lists(st.sets(st.integers(0, 62)), min_size=1, max_size=3),
    event=st.lists(st.integers(0, 127), min_size=3, max_size=3),
)
def test_a_probe_tells_all_of_one_small_set(sets, event):
    count = len(sets)
    firsts, spans = np.empty(count, np.uint32), np.empty(count, np.uint32)
    numbers, starts = np.arange(count), np.cumsum([0, *map(len, sets)])
    operands = np.array([each for some in sets for each in some], np.int32)
    kernels.write_few(numbers, numbers, Ragged(starts, operands), firsts, spans)
    shares = np.array([len(each) for each in sets], np.float32)
    axes = np.arange(count, dtype=np.uint32)
    table = kernels.LeafTable(axes, np.full(count, FEW, np.uint8), firsts, spans, shares)
    hulls = probing.Hulls(np.zeros(count, np.uint32), np.full(count, 127, np.uint32), shares)
    probes = chosen_probes(table, hulls, np.zeros(count, np.uint8))
    assert (probes.rows[0, probing.WHOSE + 1] != 0) == (count == 1)
    assert probes.firsts[0, probing.FEW_AXIS] == int(np.argmin(shares))
    probes.rows[0, probing.WHOSE :] = 0  # row 0, whatever it asks itself
    leaves_of_clause = np.array([(8 * axis + FEW, firsts[axis], spans[axis]) for axis in range(count)], np.uint32)
    clauses = np.array([(0, NONE, 0, 0), (count, 0, 0, 0)], np.uint32)
    none = np.zeros(1, np.uint32)
    program = kernels.Program(
        clauses, leaves_of_clause, np.zeros((1, 5), np.uint32), np.zeros(1, np.uint64), none, none
    )
    table_of_none = np.zeros((0, 4), np.uint32)
    finders = probing.Finders(
        np.zeros(count, np.uint8), table_of_none, none, table_of_none[:, :3], none, none, table_of_none[:, :2], 0, 0
    )
    shifts = np.zeros(3, np.uint8)
    written = probing.match_event(
        np.array(event, np.uint32).reshape(-1, 1), finders._replace(truths=np.zeros(3, np.uint8)),
        probes._replace(shifts=shifts), program, np.ones(1, np.bool_), np.empty(1, np.uint32), None,
    )  # fmt: skip
    assert written == all(code in {2 * each + 2 for each in some} for some, code in zip(sets, event, strict=False))


# Trees as people see them: a leaf on an axis, or a list of trees that must all hold ("all") or any of them ("any").
trees = st.recursive(
    st.tuples(st.integers(0, 1), leaves),
    lambda below: st.tuples(st.sampled_from(["all", "any"]), st.lists(below, min_size=1, max_size=3)),
    max_leaves=6,
)


def tree_is_true(tree, codes):
    kind, rest = tree
    if kind == "all":
        return all(tree_is_true(child, codes) for child in rest)
    if kind == "any":
        return any(tree_is_true(child, codes) for child in rest)
    return is_true(rest, codes[kind])


def jumps(tree, program, on_true, on_false, rows):
    """Write a tree's program backwards, and return where it starts."""
    kind, rest = tree
    if kind == "all":
        for child in reversed(rest):
            on_true = jumps(child, program, on_true, on_false, rows)
        return on_true
    if kind == "any":
        for child in reversed(rest):
            on_false = jumps(child, program, on_true, on_false, rows)
        return on_false
    rows.append((*program.row(kind, rest), on_true, on_false))
    return len(rows) - 1


def tree_rows(tree, program):
    """Write a tree's program with its entry first, as `tree_holds` takes it."""
    rows = []
    jumps(tree, program, kernels.ACCEPT, kernels.REJECT, rows)
    last = len(rows) - 1
    turned = [
        (*row[:3], *(target if target >= kernels.REJECT else last - target for target in row[3:])) for row in rows
    ]
    return turned[::-1]


@given(tree=trees, event=st.lists(st.integers(0, CODES - 1), min_size=2, max_size=2), before=trees)
def test_a_tree_holds_where_its_jumps_end_in_accept(tree, event, before):
    program = Program()
    other, mine = tree_rows(before, program), tree_rows(tree, program)
    rows = np.array(other + mine, np.uint32)
    codes = np.array(event, np.uint32).reshape(-1, 1)
    start = np.uint32(len(other))
    assert kernels.tree_holds(codes, np.uintp(0), start, rows, program.bitmaps) == tree_is_true(tree, event)


@given(clauses=clause_lists, event=st.lists(st.integers(0, CODES - 1), min_size=2, max_size=2), missing=st.booleans())
def test_a_match_is_repeated_where_an_earlier_clause_of_its_owner_holds(clauses, event, missing):
    # All clauses are one owner's; perhaps the first can never hold and has no row.
    rows = np.arange(len(clauses), dtype=np.uint32)
    if missing:
        rows[0] = NONE
    codes = np.array(event, np.uint32).reshape(-1, 1)
    hold = {owner for _, owner in matches(clauses, [[code] for code in event])} - ({0} if missing else set())
    for ordinal in range(len(clauses)):
        program = laid_out(clauses)._replace(owner_clauses=np.zeros(1, np.uint32), clause_rows=rows)
        found = kernels.is_repeated(codes, np.uintp(0), np.uint32(0), np.uint32(ordinal), program)
        assert found == any(earlier < ordinal for earlier in hold)


@given(
    clauses=st.lists(st.tuples(st.integers(0, 2), st.lists(st.tuples(st.integers(0, 1), leaves), max_size=3))),
    codes=blocks,
    dead=st.sets(st.integers(0, 2)),
    room=st.sampled_from([128, 1000]),
)
def test_match_maps_finds_what_the_clauses_of_each_owner_hold_for_once(clauses, codes, dead, room):
    clauses = sorted(clauses, key=lambda clause: clause[0])  # those of an owner lie side by side
    count, words = len(codes[0]), (len(codes[0]) + 63) // 64
    columns = np.array(codes, np.uint16)
    # One map for each code of each axis, and the running unions; sets are left to the exact check.
    maps = np.empty(2 * (2 * CODES + 1) * words, np.uint64)
    each = np.arange(CODES, dtype=np.uint16)
    for axis in range(2):
        base = axis * (2 * CODES + 1)
        kernels.fill_maps(
            columns[axis], count, each, 0, CODES, words, maps[base * words : (base + 2 * CODES + 1) * words]
        )
    program = laid_out([leaves_of for _, leaves_of in clauses])
    program.clauses[:-1, kernels.OWNER] = [owner for owner, _ in clauses]
    terms = np.zeros((len(program.leaves), 2), np.uint32)
    for index, (axis, (kind, asked)) in enumerate(pair for _, leaves_of in clauses for pair in leaves_of):
        if kind == INTERVAL:
            base = axis * (2 * CODES + 1) + CODES
            terms[index] = (kernels.EXACT_BIT + (kernels.DIFFERENCE << kernels.KIND_SHIFT) + base + asked[-1] + 1, base + asked[0])  # fmt: skip
    everything = np.array([(1 << min(64, count - 64 * word)) - 1 for word in range(words)], np.uint64)
    alive = np.array([owner not in dead for owner in range(3)])
    out = kernels.Matches(np.empty(room, np.uint16), np.empty(room, np.uint32))
    broad = kernels.Broad(
        np.arange(len(clauses), dtype=np.int32), terms, np.zeros(1, np.uint32), np.zeros((0, 4), np.uint32),
        np.zeros(len(clauses) + 1, np.uint32),
    )  # fmt: skip
    block, work = kernels.MappedBlock(columns, maps, everything), kernels.Room(*np.empty((4, words), np.uint64))
    found, at = [], 0
    while at < len(clauses):
        at, written = kernels.match_maps(block, broad, program, alive, work, at, out, None)
        found += zip(out.events[:written].tolist(), out.owners[:written].tolist(), strict=True)
    expected = {
        (event, clauses[number][0]) for event, number in matches([leaves_of for _, leaves_of in clauses], codes)
    }
    assert sorted(found) == sorted(pair for pair in expected if pair[1] not in dead)


@given(
    twins=st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=6),
    before=st.lists(st.integers(0, 2**10 - 1), min_size=4, max_size=4),
    event=st.integers(0, 9),
)
def test_an_event_reaches_the_destinations_of_the_living_and_is_asked_until_it_reached_all(twins, before, event):
    # One row, whose owner has these twins: each a destination, and whether it lives. Ten events, one word.
    destinations = np.array([destination for destination, _ in twins], np.uint32)
    members = np.unique(destinations)
    reached = np.array([0, *before], np.uint64)
    shortcut = kernels.Reaching(
        np.zeros(len(twins), np.uint32), np.zeros(1, np.uint32),
        Ragged(np.array([0, len(members)], np.uint32), members), destinations,
        Ragged(np.array([0, len(twins)], np.uint32), np.arange(len(twins), dtype=np.uint32)),
        np.array([is_alive for _, is_alive in twins]), 1, reached, np.zeros(10, np.uint32),
    )  # fmt: skip
    is_asked = any(not int(reached[each]) >> event & 1 for each in members)
    assert is_asked == (not int(kernels.reached_word(np.uintp(0), np.uintp(0), shortcut)) >> event & 1)
    living = {destination for destination, is_alive in twins if is_alive}
    assert kernels.reach(np.uintp(event), kernels.find_targets(np.uint32(0), shortcut), shortcut) == (0 in living)
    after = [bits | (1 << event) * (number in living) for number, bits in enumerate(before, 1)]
    assert reached.tolist() == [0, *after]
    assert not shortcut.targets[5:].any()


@given(maps=st.lists(st.sets(st.integers(0, 127)), max_size=4), room=st.sampled_from([1, 600]))
def test_the_events_of_maps_are_written_map_by_map(maps, room):
    words = [sum(1 << (event % 64) for event in each if event // 64 == word) for each in maps for word in (0, 1)]
    events, rows = np.empty((2, room), np.int64)
    written = kernels.events_of_maps(np.array(words, np.uint64), 2, events, rows)
    expected = [(event, row) for row, each in enumerate(maps) for event in sorted(each)]
    assert written == len(expected)
    assert list(zip(events.tolist(), rows.tolist(), strict=True))[:written] == expected[:room]


@given(sets=st.lists(st.sets(st.integers(0, 4)).map(sorted), min_size=1), longest=st.integers(1, 4))
def test_the_buckets_of_a_set_are_listed_each_once(sets, longest):
    buckets = np.array([0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4], np.uint16)
    starts, lists = np.empty(len(sets) + 1, np.int64), np.empty(longest * len(sets) + 1, np.uint32)
    is_exact = np.empty(len(sets), np.bool_)
    members = np.array([member for each in sets for member in each], np.int32)
    sizes = np.bincount(buckets)
    table = Ragged(np.cumsum([0, *map(len, sets)]), members)
    written = kernels.list_buckets(np.arange(len(sets)), table, buckets, sizes, longest, starts, lists, is_exact)
    assert starts[-1] == written
    for index, each in enumerate(sets):
        mine = lists[starts[index] : starts[index + 1]].tolist()
        wanted = sorted({int(buckets[2 * member + 2]) for member in each})
        assert mine == (wanted if len(wanted) <= longest else [])
        if mine:
            assert is_exact[index] == all(sizes[bucket] == 1 for bucket in wanted)


@given(
    rows=st.lists(st.lists(st.tuples(st.booleans(), st.floats(0, 1, width=32)), max_size=4)),
    enough=st.floats(0, 1, width=32),
)
def test_maps_are_left_alone_once_few_events_survive(rows, enough):
    shares = np.array([share for row in rows for _, share in row], np.float32)
    helps = [helps for row in rows for helps, _ in row]
    term = kernels.EXACT_BIT + (kernels.ONE_MAP << kernels.KIND_SHIFT) + 5
    terms = np.array([(term if each else 0, 0) for each in helps], np.uint32).reshape(-1, 2)
    survival = np.empty(len(rows), np.float32)
    kernels.stop_early(np.cumsum([0, *map(len, rows)]), shares, np.float32(enough), terms, survival)
    at = 0
    for index, row in enumerate(rows):
        surviving = np.float32(1)
        for has_map, share in row:
            kept = bool(terms[at, 0])
            assert kept == (has_map and surviving >= np.float32(enough))
            if kept:
                surviving *= np.float32(share)
            at += 1
        assert survival[index] == surviving


@given(owners=st.lists(st.integers(0, 5)).map(sorted))
def test_repeated_owners_are_dropped(owners):
    array = np.array(owners, np.uint32)
    assert array[: kernels.drop_repeated(array)].tolist() == sorted(set(owners))


# -- Bitmaps


def events_in(words):
    return {64 * index + bit for index, word in enumerate(words.tolist()) for bit in range(64) if word >> bit & 1}


@given(codes=st.lists(st.integers(0, CODES - 1), min_size=1, max_size=150))
def test_fill_maps_writes_a_map_for_each_bucket_and_for_each_union_of_the_first(codes):
    count, words = len(codes), (len(codes) + 63) // 64
    buckets = np.array([0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4], np.uint16)
    maps = np.full(11 * words, 7, np.uint64)
    kernels.fill_maps(np.array(codes, np.uint16), count, buckets, 0, 5, words, maps)
    for bucket in range(5):
        mine = maps[bucket * words : (bucket + 1) * words]
        assert events_in(mine) == {event for event, code in enumerate(codes) if buckets[code] == bucket}
    for bound in range(6):
        union = maps[(5 + bound) * words : (6 + bound) * words]
        assert events_in(union) == {event for event, code in enumerate(codes) if buckets[code] < bound}


@pytest.mark.parametrize("bit", range(64))
def test_bit_number_is_the_position_of_the_only_bit(bit):
    assert kernels.bit_number(np.uint64(1 << bit)) == bit


@given(maps=st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=6), data=st.data())
def test_load_and_run_steps_are_set_operations(maps, data):
    flat = np.array(maps, np.uint64)
    into = np.empty(1, np.uint64)
    lists = np.array([0, 2, 4], np.uint32)
    for kind, expected in (
        (kernels.ONE_MAP, maps[1]),
        (kernels.DIFFERENCE, maps[1] & ~maps[2]),
        (kernels.ANY_MAP, maps[2] | maps[4]),
        (kernels.EVERY, 2**64 - 1),
    ):
        kernels.load(kind, 1, 2, flat, lists, np.uintp(1), into)
        assert int(into[0]) == expected
    # (m0 AND m1) OR (m2 OR m3), in postfix order
    steps = [
        (kernels.START, 0), (kernels.INTERSECT, 1), (kernels.START, 2), (kernels.UNITE, 3), (kernels.UNITE_TOP, 0),
        (kernels.START, 4), (kernels.INTERSECT_TOP, 0),
    ]  # fmt: skip
    rows = np.array([(action, kernels.ONE_MAP, a, 0) for action, a in steps], np.uint32)
    stack = np.empty(4, np.uint64)
    kernels.run_steps(np.uintp(0), np.uintp(len(rows)), rows, flat, lists, np.uintp(1), into, stack)
    assert int(stack[0]) == ((maps[0] & maps[1]) | maps[2] | maps[3]) & maps[4]


# -- Laying out


@given(sets=st.lists(st.sets(st.integers(0, 4)).map(sorted), min_size=1, max_size=5), data=st.data())
def test_write_sets_writes_bitmaps_and_lists(sets, data):
    count = len(sets)
    kinds = np.array(data.draw(st.lists(st.sampled_from([MEMBER, LISTED]), min_size=count, max_size=count)), np.uint8)
    is_in = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    lengths = np.where(kinds == MEMBER, 1, [len(each) for each in sets])
    places = np.cumsum(lengths) - lengths
    words = np.zeros(int(lengths.sum()), np.uint64)
    starts = np.cumsum([0, *map(len, sets)])
    members = np.array([member for each in sets for member in each], np.int32)
    numbers = np.arange(count)
    table = Ragged(starts, members)
    kernels.write_sets(numbers, table, np.full(count, CODES), is_in, places, kinds, words)
    for index, each in enumerate(sets):
        codes = {2 * member + 2 for member in each}
        mine = words[places[index] : places[index] + lengths[index]].tolist()
        if kinds[index] == LISTED:
            assert mine == sorted(codes)
        else:
            wanted = codes if is_in[index] else set(range(1, CODES)) - codes
            assert {code for code in range(64) if mine[0] >> code & 1} == wanted


@given(clauses=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True)), data=st.data())
def test_the_cheapest_leaf_is_chosen_and_the_others_follow_in_order(clauses, data):
    costs = np.array(data.draw(st.lists(st.floats(0, 1, width=32), min_size=10, max_size=10)), np.float32)
    starts = np.cumsum([0, *map(len, clauses)])
    flat = np.array([leaf for clause in clauses for leaf in clause], np.uint32)
    chosen = np.empty(len(clauses), np.int64)
    kernels.choose_access(Ragged(starts, flat), costs, chosen)
    assert all(costs[leaf] == min(costs[clause]) for leaf, clause in zip(chosen, clauses, strict=True))
    rows = np.arange(len(clauses))
    keeps = rows % 2 == 0
    leaf_starts, placed = np.empty(len(clauses) + 1, np.int64), np.empty(len(flat), np.uint32)
    layout = kernels.Layout(rows, chosen, Ragged(leaf_starts, placed))
    written = kernels.lay_out_leaves(Ragged(starts, flat), keeps, costs, layout)
    assert written == leaf_starts[-1]
    for row, clause in enumerate(clauses):
        mine = placed[leaf_starts[row] : leaf_starts[row + 1]].tolist()
        assert sorted(mine) == sorted(leaf for leaf in clause if keeps[row] or leaf != chosen[row])
        assert costs[mine].tolist() == sorted(costs[mine].tolist())


@given(matches=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3))))
def test_matches_are_placed_by_event(matches):
    events = np.array([event for event, _ in matches], np.uint16)
    owners = np.array([owner for _, owner in matches], np.uint32)
    counts, placed = np.zeros(5, np.int64), np.empty(len(matches), np.int64)
    kernels.count_events(events, counts)
    assert counts.tolist() == [sum(event == each for each, _ in matches) for event in range(5)]
    starts, numbers = np.empty(5, np.int64), np.empty(len(matches), np.int64)
    kernels.number_matches(counts, 100, starts, numbers)
    assert numbers.tolist() == sorted(100 + event for event, _ in matches)
    assert starts.tolist() == (np.cumsum(counts) - counts).tolist()
    kernels.place_matches(events, owners, np.array([10, 20, 30, 40]), starts.copy(), placed)
    for event in range(5):
        mine = placed[starts[event] : starts[event] + counts[event]].tolist()
        assert mine == [10 * owner + 10 for each, owner in matches if each == event]
