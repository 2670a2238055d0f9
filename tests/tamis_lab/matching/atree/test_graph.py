"""One graph of all expressions: what is reused, what is counted, and what is left when all are gone."""

from __future__ import annotations

from itertools import permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis_lab.matching.atree.filters import kernels as filter_kernels
from tamis_lab.matching.atree.graph import SharedGraph, kernels, shared
from tests.tamis_lab.matching.atree.plain import (
    below,
    check,
    expression_of,
    holds,
    insert,
    nodes_of,
    programs,
)

A, B, C, D, E = range(5)
WORKED = {  # the zero suppression example of section 3.5.1, in an order that lets S3 find S4
    1: ("xor", ("and", A, B), ("and", C, D)),
    2: ("or", B, ("and", C, D)),
    4: ("and", A, B, C),
    3: ("and", A, B, C, E),
    5: ("and", C, D),
    6: ("and", A, B, C),
    7: ("and", C, D),
}


def grown(expressions) -> SharedGraph:
    graph = SharedGraph(4)
    for handle, expression in expressions.items():
        insert(graph, {handle: expression})
    return graph


def root_of(graph, handle) -> int:
    return int(graph.tables.subscriptions[handle, 0])


def node_for(graph, expression):
    """Return the node of an expression, which is there already: nothing is made for it."""
    before = graph.inner_count
    insert(graph, {900: expression})
    assert graph.inner_count == before, f"there is no node for {expression}"
    node = root_of(graph, 900)
    graph.remove([900])
    return node


# -- The worked examples


def test_the_worked_example_has_the_published_nodes_and_levels():
    graph = grown(WORKED)
    check(graph, WORKED)
    assert graph.leaf_count == 5
    assert graph.inner_count == 6
    levels = {
        ("and", A, B): 2,
        ("and", C, D): 2,
        ("and", A, B, C): 3,
        ("xor", ("and", A, B), ("and", C, D)): 3,
        ("or", B, ("and", C, D)): 3,
        ("and", A, B, C, E): 4,
    }
    for expression, level in levels.items():
        assert nodes_of(graph)[node_for(graph, expression)].level == level
    assert root_of(graph, 4) == root_of(graph, 6)
    assert root_of(graph, 5) == root_of(graph, 7)


TYPE, TORONTO, TWO, YORK, THREE, RENT = range(6)
APARTMENTS = {
    2: ("or", ("and", TORONTO, TWO), ("and", YORK, THREE)),
    1: ("and", TYPE, TORONTO, TWO),
    3: ("and", TORONTO, TWO, RENT),
    4: ("or", ("and", TORONTO, RENT), YORK),
}


def test_a_part_that_exists_is_reused_whatever_the_order_of_the_operands():
    for two, three, one in permutations([TORONTO, TWO, TYPE]):
        graph = grown(APARTMENTS | {1: ("and", two, three, one)})
        shared = node_for(graph, ("and", TWO, TORONTO))
        nodes = nodes_of(graph)
        assert nodes[shared].uses == 3, "that of S1, S2 and S3, but not of S4"
        assert nodes[-1 - TORONTO].uses == 4
        assert nodes[-1 - YORK].uses == 2
        if {two, three} == {TORONTO, TWO} or {three, one} == {TORONTO, TWO}:
            assert shared in nodes[root_of(graph, 1)].children


def test_what_was_a_part_twice_gets_a_node():
    # S1 = A B C    one node, nobody has met A B before
    # S2 = A B D    A B comes a second time, and becomes a node; S1 stays as it is
    # S3 = A B E    has it as a part
    graph = grown({1: ("and", A, B, C)})
    assert graph.inner_count == 1
    insert(graph, {2: ("and", A, B, D)})
    assert graph.inner_count == 3
    insert(graph, {3: ("and", E, B, A)})
    assert graph.inner_count == 4
    nodes = nodes_of(graph)
    assert nodes[node_for(graph, ("and", A, B))].uses == 2
    assert sorted(nodes[root_of(graph, 1)].children) == sorted([-1 - A, -1 - B, -1 - C]), "existing nodes never change"


def test_equal_sets_of_operands_are_one_node_however_they_were_cut():
    # The store that makes the published dynamic program miss: (A (B C)), ((A B) C) and (((A B) C) D), then A B C D.
    graph = grown({1: ("and", A, ("and", B, C)), 2: ("and", ("and", A, B), C), 3: ("and", ("and", A, B, C), D)})
    before = graph.inner_count
    insert(graph, {4: ("and", A, B, C, D)})
    assert graph.inner_count == before
    assert root_of(graph, 4) == root_of(graph, 3)
    assert root_of(graph, 1) == root_of(graph, 2)


@given(data=st.data())
def test_as_few_parts_as_can_be_of_a_sequence_in_order(data):
    """The cut is as good as the best of all cuts into consecutive parts that exist."""
    stored = data.draw(
        st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=5, unique=True).map(sorted), max_size=6)
    )
    graph = SharedGraph()
    graph._tables = graph._tables._replace(seen=np.zeros(1, np.uint64))  # forgets at once
    for number, members in enumerate(stored):
        insert(graph, {number: ("and", *members)})
        graph.tables.seen[:] = 0
    wanted = data.draw(st.lists(st.integers(0, 6), min_size=3, max_size=7, unique=True).map(sorted))
    known = {frozenset(each) for each in stored}
    best = [0] + [len(wanted)] * len(wanted)
    for end in range(1, len(wanted) + 1):
        for begin in range(end):
            is_part = end - begin == 1 or frozenset(wanted[begin:end]) in known
            if is_part and end - begin < len(wanted):
                best[end] = min(best[end], best[begin] + 1)
    insert(graph, {99: ("and", *wanted)})
    children = nodes_of(graph)[root_of(graph, 99)].children
    if frozenset(wanted) not in known:
        # There may be more nodes than those of whole expressions: parts that an earlier insertion made.
        assert len(children) <= best[-1]


# -- Deletion


def test_use_counts_after_deletion():
    graph = grown(WORKED)
    expected = dict(WORKED)
    shared = node_for(graph, ("and", A, B))
    assert nodes_of(graph)[shared].uses == 4  # S1, S3, S4, S6
    for handle, uses in ((1, 3), (4, 2), (3, 1)):
        graph.remove([handle])
        del expected[handle]
        check(graph, expected)
        assert nodes_of(graph)[shared].uses == uses
    assert graph.remove([6]) == [A], "B is a part of S2"
    del expected[6]
    check(graph, expected)
    assert {expression_of(nodes_of(graph), ref) for ref in nodes_of(graph) if ref >= 0} == {
        ("and", C, D),
        ("or", B, ("and", C, D)),
    }


def test_a_removed_leaf_is_told_once():
    graph = grown({1: ("and", A, B), 2: ("or", B, C), 3: A})
    assert graph.remove([1]) == []
    assert sorted(graph.remove([2])) == [B, C]
    assert graph.remove([3]) == [A]
    check(graph, {})


def test_levels_fall_when_the_highest_node_goes():
    graph = grown({1: ("and", A, ("or", B, ("and", C, D))), 2: A})
    assert len(graph.level_counts) == 4
    graph.remove([1])
    assert graph.level_counts.tolist() == [1]


# -- Everything else that can be said


@pytest.mark.parametrize(
    ("expression", "simple"),
    [
        (("and", A, A), A),
        (("or", A, ("or", B, A)), ("or", A, B)),
        (("and", A, ("and", B, ("and", C, D))), ("and", D, C, B, A)),
        (("and", A, ("or", B, B)), ("and", A, B)),
        (("and", ("or", ("and", A, B)), C), ("and", A, B, C)),
        (("xor", A, A), False),
        (("xor", A, B, A), B),
        (("xor", A, A, A), A),
        (("xor", A, ("xor", B, C)), ("xor", A, B, C)),
        (("xor", A, True), ("not", A)),
        (("xor", True, A, True, True), ("not", A)),
        (("xor", True, False), True),
        (("not", ("not", A)), A),
        (("not", True), False),
        (("not", False), True),
        (("and", A, True), A),
        (("and", A, False), False),
        (("and", True, True), True),
        (("or", A, True), True),
        (("or", A, False), A),
        (("or", False, False), False),
        (("at_least", 1, A, B), ("or", A, B)),
        (("at_least", 2, A, B), ("and", A, B)),
        (("at_least", 0, A, B), True),
        (("at_least", 3, A, B), False),
        (("at_least", 2, A, B, True), ("or", A, B)),
        (("at_least", 2, A, B, C, False), ("at_least", 2, C, A, B)),
        (("at_least", 2, A, ("and", B, C)), ("and", A, B, C)),
    ],
)
def test_one_node_for_one_meaning(expression, simple):
    graph = SharedGraph()
    insert(graph, {1: simple, 2: expression})
    assert root_of(graph, 1) == root_of(graph, 2)
    check(graph, {1: simple, 2: expression})
    graph.remove([1, 2])
    check(graph, {})


def test_at_least_counts_an_operand_twice_that_stands_there_twice():
    graph = grown({1: ("at_least", 2, A, A, B), 2: ("at_least", 2, A, B, B), 3: ("at_least", 2, B, A, A)})
    assert root_of(graph, 1) == root_of(graph, 3) != root_of(graph, 2)
    assert sorted(nodes_of(graph)[root_of(graph, 1)].children) == sorted([-1 - A, -1 - A, -1 - B])
    check(graph, {1: 0, 2: 0, 3: 0})


def test_a_wide_operation_is_several_nodes_of_a_width_that_a_counter_can_count():
    count = 2 * kernels.WIDEST + 5
    numbers = np.arange(count, dtype=np.uint32)
    graph = SharedGraph()
    wide = {1: ("and", *range(count)), 2: ("or", *range(count)), 3: ("and", *reversed(range(count)))}
    graph.insert(list(wide), programs(wide.values()), numbers)
    nodes = nodes_of(graph)
    assert max(len(node.children) for node in nodes.values()) == kernels.WIDEST < 1 << filter_kernels.PATH_BITS
    assert root_of(graph, 1) == root_of(graph, 3)
    assert sorted(len(nodes[child].children) for child in nodes[root_of(graph, 2)].children) == [5, 2048, 2048]
    check(graph, wide)
    graph.remove([1, 2, 3])
    check(graph, {})


def test_a_key_that_two_nodes_have_tells_them_apart(monkeypatch):
    graph = grown({1: ("and", A, B), 2: ("and", C, D, E), 3: ("or", A, B)})
    first, second, third = (root_of(graph, handle) for handle in (1, 2, 3))
    tables = graph.tables
    key = tables.keys[first]
    for node in (second, third):
        kernels.leave(node, tables.keys, tables.table, tables.meta)
        tables.keys[node] = key
        kernels.enter(node, tables.keys, tables.table, tables.meta)
    work = graph._work
    for members, kind, found in (
        ([A, B], "and", first),
        ([A, B], "or", third),
        ([C, D, E], "and", second),
        ([A, C], "and", -1),
    ):
        refs = np.array([-1 - member for member in members], np.int64)
        code = kernels.AND if kind == "and" else kernels.OR
        assert kernels.node_of(code, 0, key, refs, 0, len(refs), tables, work) == found


def test_the_marks_of_walks_begin_again_after_the_last():
    graph = grown(WORKED)
    graph.tables.meta[kernels.WALK] = 2**31 - 2
    graph.tables.books[:, kernels.MARK] = 1
    graph.tables.leaf_books[:, kernels.MARK] = 1
    insert(graph, {8: ("and", A, B, ("or", C, A))})
    check(graph, WORKED | {8: 0})
    graph.remove(list(WORKED))
    check(graph, {8: 0})


def test_an_insertion_goes_on_where_a_table_was_full(monkeypatch):
    monkeypatch.setattr(shared, "_FIRST_ROOM", 1)
    graph = SharedGraph()
    statuses = set()
    plain = SharedGraph._grow

    def noted(self, status, longest):
        statuses.add(status)
        plain(self, status, longest)

    monkeypatch.setattr(SharedGraph, "_grow", noted)
    chance = Random(1)
    expressions = {
        handle: ("or", handle % 7, ("and", *(chance.randrange(12) for _ in range(4))), ("and", 0, handle % 5, 1))
        for handle in range(300)
    }
    insert(graph, expressions, 16)
    assert statuses == {kernels.NO_ROWS, kernels.NO_CHILDREN, kernels.NO_PARENTS, kernels.NO_HOLDERS}
    check(graph, expressions)


# -- Any sequence of insertions and removals

leaves = st.integers(0, 7)
monotone = st.recursive(
    st.one_of(leaves, st.booleans()),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner),
        st.tuples(st.just("at_least"), st.integers(0, 4), inner, inner, inner),
    ),
    max_leaves=10,
)
anything = st.recursive(
    st.one_of(leaves, st.booleans()),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["and", "or", "xor"]), inner, inner),
        st.tuples(st.sampled_from(["and", "or", "xor"]), inner, inner, inner),
        st.tuples(st.just("at_least"), st.integers(0, 4), inner, inner, inner),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=10,
)


@given(data=st.data())
@settings(max_examples=60)
def test_the_tables_agree_after_any_insertions_and_removals(data):
    graph = SharedGraph(3)
    present: dict[int, object] = {}
    levels: dict[int, int] = {}
    handle = 0
    for _ in range(data.draw(st.integers(1, 8))):
        if present and data.draw(st.booleans(), label="remove"):
            gone = data.draw(st.lists(st.sampled_from(sorted(present)), unique=True), label="gone")
            graph.remove(gone)
            for each in gone:
                del present[each]
        else:
            new = data.draw(st.lists(anything, min_size=1, max_size=5), label="new")
            added = dict(enumerate(new, handle))
            handle += len(new)
            insert(graph, added)
            present |= added
            if data.draw(st.booleans(), label="prioritise"):
                chosen = np.array(list(added), np.int64)
                graph.move_to_bands(chosen, (chosen % 3).astype(np.uint8))
        check(graph, present)
        nodes = nodes_of(graph)
        for ref, node in nodes.items():
            assert levels.get(ref, node.level) == node.level, "no operation changes the level of a node that stays"
        levels = {ref: node.level for ref, node in nodes.items()}
        for each, expression in present.items():
            root = root_of(graph, each)
            for _ in range(3):
                true = frozenset(data.draw(st.sets(leaves)))
                found = False if root == kernels.NEVER else holds(expression_of(nodes, root), true)
                assert found == holds(expression, true)
        if len(graph.tables.bands):
            bands = {each: int(graph.tables.subscriptions[each, 2]) for each in present}
            used = {
                each: below(nodes, root_of(graph, each)) for each in present if root_of(graph, each) != kernels.NEVER
            }
            for ref, node in nodes.items():
                assert node.band == max(bands[each] for each, parts in used.items() if ref in parts)
    graph.remove(list(present))
    check(graph, {})
    assert graph.inner_count == graph.leaf_count == graph.edge_count == 0


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_the_number_of_nodes_depends_little_on_the_order_of_insertion(chance):
    expressions = dict(enumerate([("and", *chance.sample(range(8), 4)) for _ in range(40)]))
    counts = []
    for _ in range(4):
        order = list(expressions)
        chance.shuffle(order)
        counts.append(grown({handle: expressions[handle] for handle in order}).inner_count)
    assert max(counts) <= 1.5 * min(counts)
