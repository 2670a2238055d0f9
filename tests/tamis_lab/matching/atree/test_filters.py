"""Three filters find the same subscriptions, and do the work that their source says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.ragged import Ragged
from tamis_lab.matching.atree.filters import General, Paths, Zero, kernels
from tamis_lab.matching.atree.gate import ReadersWriterLock
from tamis_lab.matching.atree.graph import SharedGraph
from tamis_lab.matching.atree.graph import kernels as graph_kernels
from tests.tamis_lab.matching.atree.plain import by_levels, by_paths, holds, insert, nodes_of
from tests.tamis_lab.matching.atree.test_graph import (
    APARTMENTS,
    RENT,
    TORONTO,
    TWO,
    TYPE,
    WORKED,
    A,
    B,
    C,
    anything,
    grown,
    leaves,
    monotone,
    node_for,
)


def matches(one, graph, numbers) -> list[int]:
    numbers = np.array(numbers, np.uint32)
    ends, found = one.matched(graph, Ragged(np.array([0, len(numbers)]), numbers), 0, 1)
    assert ends.tolist() == [len(found)]
    return sorted(found.tolist())


def test_the_columns_are_where_the_graph_has_them():
    for name in (
        "NEED",
        "LEVEL",
        "BASE",
        "DEFAULT",
        "ODD",
        "PARENT_START",
        "PARENT_COUNT",
        "HOLDER_START",
        "HOLDER_COUNT",
    ):
        assert getattr(kernels, name) == getattr(graph_kernels, name)


# -- The worked examples


@pytest.mark.parametrize(("filter_type", "touches"), [(General, 10), (Zero, 8)])
def test_the_worked_example_of_zero_suppression(filter_type, touches):
    graph = grown(WORKED)
    one = filter_type()
    assert matches(one, graph, [A, B, C]) == [1, 2, 4, 6]
    assert one.counters[kernels.TOUCHES] == touches
    assert one.counters[kernels.VISITS] == 6


def test_the_queues_of_the_worked_example():
    graph = grown(WORKED)
    nodes = nodes_of(graph)
    six, seven, nine = (node_for(graph, ("and", *each)) for each in ((A, B), (C, 3), (A, B, C)))
    ten = node_for(graph, WORKED[1])
    eleven, eight = node_for(graph, WORKED[2]), node_for(graph, WORKED[3])
    for is_general, touches in ((True, 10), (False, 8)):
        trace = by_levels(nodes, [A, B, C], is_general=is_general)
        assert trace.queues[1] == [-1 - A, -1 - B, -1 - C]
        assert trace.queues[2] == [six, seven]
        assert trace.queues[3] == [eleven, nine, ten]
        assert trace.queues[4] == [eight]
        assert (len(trace.touches), trace.pushes) == (touches, 6)
        assert sorted(trace.found) == [1, 2, 4, 6]


def test_the_worked_example_of_true_value_paths():
    # 7 = 2 3   8 = 4 | 5   9 = 7 8   10 = 5 6   11 = 1 7   12 = 11 9   13 = 7 | 8   14 = 13 10
    expressions = {
        7: ("and", 2, 3),
        11: ("and", 1, ("and", 2, 3)),
        8: ("or", 4, 5),
        9: ("and", ("and", 2, 3), ("or", 4, 5)),
        13: ("or", ("and", 2, 3), ("or", 4, 5)),
        10: ("and", 5, 6),
        12: ("and", 1, 2, 3, ("or", 4, 5)),
        14: ("and", ("or", ("and", 2, 3), 4, 5), 5, 6),
    }
    graph = grown(expressions)
    named = {int(graph.tables.subscriptions[handle, 0]): handle for handle in expressions}
    nodes = nodes_of(graph)
    # 12 is made of 11 and 8 here, not of 11 and 9: one node less is touched, and the same are true.
    trace = by_paths(nodes, [1, 2, 3, 5])
    assert {named[ref] for ref in trace.true if ref >= 0} == {7, 8, 9, 11, 12, 13}
    touched = {named[ref]: trace.touches.count(ref) for ref in trace.touches}
    assert touched[10] == touched[14] == 1, "touched once, never true"
    assert matches(Paths(), graph, [1, 2, 3, 5]) == [7, 8, 9, 11, 12, 13]


def test_the_narrated_touches_of_the_published_tree():
    """The tree as it is drawn in the source: binary nodes, 12 = 11 and 9, 13 = 7 or 8."""
    from tests.tamis_lab.matching.atree.plain import Node

    drawn = {
        7: ("and", -3, -4), 8: ("or", -5, -6), 9: ("and", 7, 8), 10: ("and", -6, -7), 11: ("and", -2, 7),
        12: ("and", 11, 9), 13: ("or", 7, 8), 14: ("and", 13, 10),
    }  # fmt: skip
    nodes = {-1 - leaf: Node("leaf", []) for leaf in range(1, 7)}
    nodes |= {ref: Node(kind, children, need=2 if kind == "and" else 1) for ref, (kind, *children) in drawn.items()}
    for parent, child in (
        (11, -2),
        (7, -3),
        (7, -4),
        (8, -5),
        (8, -6),
        (10, -6),
        (10, -7),
        (11, 7),
        (9, 7),
        (13, 7),
        (9, 8),
        (13, 8),
        (12, 11),
        (12, 9),
        (14, 13),
        (14, 10),
    ):
        nodes[child].parents.append(parent)
    touches = []
    for leaf in (1, 2, 3, 5):
        trace = by_paths(nodes, [1, 2, 3, 5][: [1, 2, 3, 5].index(leaf) + 1])
        touches.append(trace.touches[sum(map(len, touches)) :])
    assert touches == [[11], [7], [7, 11, 12, 9, 13, 14], [8, 9, 12, 13, 10]]
    assert {ref for ref in trace.true if ref > 0} == {7, 8, 9, 11, 12, 13}


@pytest.mark.parametrize("filter_type", [General, Zero, Paths])
def test_apartments(filter_type):
    graph = grown(APARTMENTS)
    assert matches(filter_type(), graph, [TYPE, TORONTO, TWO]) == [1, 2]
    assert matches(filter_type(), graph, [TYPE, TORONTO, TWO, RENT]) == [1, 2, 3, 4]


# -- Any graph, any event

leaf_sets = st.lists(leaves, unique=True)


@given(expressions=st.lists(monotone, max_size=8), batch=st.lists(leaf_sets, min_size=1, max_size=4))
def test_paths_find_what_the_definition_finds(expressions, batch):
    compare(Paths(), dict(enumerate(expressions)), batch)


@given(
    expressions=st.lists(anything, max_size=8),
    batch=st.lists(leaf_sets, min_size=1, max_size=4),
    is_general=st.booleans(),
)
def test_levels_find_what_the_definition_finds(expressions, batch, is_general):
    compare(General() if is_general else Zero(), dict(enumerate(expressions)), batch)


def compare(one, expressions, batch):
    graph = SharedGraph()
    insert(graph, expressions, 8)
    nodes = nodes_of(graph)
    starts = np.cumsum([0, *map(len, batch)])
    numbers = np.array([number for event in batch for number in event], np.uint32)
    ends, found = one.matched(graph, Ragged(starts, numbers), 0, len(batch))
    assert len(ends) == len(batch)
    touches = visits = 0
    for event, begin, end in zip(batch, [0, *ends], ends, strict=False):
        wanted = [handle for handle, each in expressions.items() if holds(each, frozenset(event))]
        assert sorted(found[begin:end].tolist()) == wanted
        trace = (
            by_paths(nodes, event)
            if isinstance(one, Paths)
            else by_levels(nodes, event, is_general=isinstance(one, General))
        )
        assert sorted(trace.found) == wanted
        touches += len(trace.touches)
        visits += trace.pushes
    assert one.counters.tolist() == [touches, visits], "the compiled loop does the work of its plain twin"


@given(expressions=st.lists(monotone, min_size=1, max_size=8), event=leaf_sets)
def test_paths_and_zero_suppression_touch_the_same_nodes_and_the_general_filter_no_fewer(expressions, event):
    graph = SharedGraph()
    insert(graph, dict(enumerate(expressions)), 8)
    counters = []
    for filter_type in (General, Zero, Paths):
        one = filter_type()
        matches(one, graph, event)
        counters.append(one.counters.tolist())
    assert counters[1] == counters[2]
    assert counters[0][0] >= counters[1][0]


def test_without_defaults_the_published_filters_miss_what_is_true_of_silence():
    """The repair is needed: NOT A is true where A is silent, and then nobody ever looks at it."""
    graph = grown({1: ("not", A), 2: ("and", B, ("not", ("and", A, C)))})
    nodes = nodes_of(graph)
    for is_general in (True, False):
        assert by_levels(nodes, [B], is_general=is_general, has_defaults=False).found == []
        assert sorted(by_levels(nodes, [B], is_general=is_general).found) == [1, 2]
    assert matches(Zero(), graph, [B]) == matches(General(), graph, [B]) == [1, 2]
    assert matches(Zero(), graph, [A, B]) == [2]
    assert matches(Zero(), graph, [A, B, C]) == []
    assert matches(Zero(), graph, []) == [1]


def test_where_nothing_is_negated_the_published_filters_are_right():
    graph = grown(WORKED)
    nodes = nodes_of(graph)
    for is_general in (True, False):
        published = by_levels(nodes, [A, B, C], is_general=is_general, has_defaults=False)
        assert published.touches == by_levels(nodes, [A, B, C], is_general=is_general).touches
        assert sorted(published.found) == [1, 2, 4, 6]


# -- Working memory


@pytest.mark.parametrize("filter_type", [General, Zero, Paths])
def test_stamps_begin_again_after_the_last(filter_type):
    graph = grown(WORKED)
    one = filter_type()
    for event in ([A, B, C], [A], [B], [A, B], []):
        expected = matches(filter_type(), graph, event)
        one._stamp = one._last_stamp - 2
        for _ in range(4):
            assert matches(one, graph, event) == expected
        assert one._stamp < 10


@pytest.mark.parametrize("filter_type", [General, Zero, Paths])
def test_a_row_that_is_used_again_remembers_nothing(filter_type):
    graph = grown({1: ("and", A, B)})
    one = filter_type()
    for stamp in range(5):
        one._stamp = 7  # as if the same event came again
        assert matches(one, graph, [A]) == []
        graph.remove([1])
        insert(graph, {1: ("and", A, C)} if stamp % 2 else {1: ("and", A, B)})
        one._states[:] = 0
        assert matches(one, graph, [B]) == []


@pytest.mark.parametrize("filter_type", [General, Zero, Paths])
def test_a_batch_with_many_matches_comes_in_pieces(filter_type):
    graph = SharedGraph()
    insert(graph, dict.fromkeys(range(9000), A))
    one = filter_type()
    numbers, starts = np.zeros(10, np.uint32), np.arange(11)
    begin, pieces = 0, 0
    while begin < 10:
        ends, found = one.matched(graph, Ragged(starts, numbers), begin, 10)
        assert ends.tolist() == [9000 * (1 + index) for index in range(len(ends))]
        assert sorted(found[:9000].tolist()) == list(range(9000))
        begin += len(ends)
        pieces += 1
    assert pieces == 5


def test_a_predicate_that_has_no_leaf_yet_is_passed_over():
    graph = grown({1: A})
    for filter_type in (General, Zero, Paths):
        assert matches(filter_type(), graph, [900_000, A, 5]) == [1]


# -- Priorities


def prioritised(expressions, bands):
    graph = SharedGraph(8)
    insert(graph, expressions)
    graph.move_to_bands(np.array(list(bands), np.int64), np.array(list(bands.values()), np.uint8))
    return graph


def in_order(one, graph, numbers):
    return [sorted(group.tolist()) for group in one.in_order(graph, np.array(numbers, np.uint32), ReadersWriterLock())]


def test_a_node_has_the_priority_of_its_most_important_subscription():
    # S1 = (r1 r2) | (r3 r4)   priority 2      S2 = (r3 r4) | r5   priority 3, and reuses c = r3 r4
    graph = prioritised({1: ("or", ("and", 1, 2), ("and", 3, 4))}, {1: 2})
    insert(graph, {2: ("or", ("and", 3, 4), 5)})
    graph.move_to_bands(np.array([2]), np.array([3], np.uint8))
    c, b = node_for(graph, ("and", 3, 4)), node_for(graph, ("and", 1, 2))
    bands = {ref: node.band for ref, node in nodes_of(graph).items()}
    assert (bands[c], bands[-4], bands[-5], bands[-6]) == (3, 3, 3, 3)
    assert (bands[b], bands[-2], bands[-3]) == (2, 2, 2)
    assert graph.remove([2]) == [5]
    bands = {ref: node.band for ref, node in nodes_of(graph).items()}
    assert set(bands.values()) == {2}


@pytest.mark.parametrize("filter_type", [General, Zero, Paths])
def test_the_important_ones_come_first_even_where_one_expression_contains_another(filter_type):
    graph = prioritised({1: ("and", A, B, C, 3), 2: ("and", B, C), 3: A}, {1: 5, 2: 1, 3: 0})
    assert in_order(filter_type(), graph, [A, B, C, 3]) == [[1], [2], [3]]


@given(
    expressions=st.lists(st.tuples(anything, st.integers(0, 7)), max_size=10),
    event=leaf_sets,
    filter_type=st.sampled_from([General, Zero, Paths]),
)
def test_by_priority_the_same_is_found_and_none_before_a_more_important_one(expressions, event, filter_type):
    if filter_type is Paths:
        expressions = [
            (each, band) for each, band in expressions if "not" not in repr(each) and "xor" not in repr(each)
        ]
    bands = {handle: band for handle, (_, band) in enumerate(expressions)}
    graph = prioritised({handle: each for handle, (each, _) in enumerate(expressions)}, bands)
    groups = in_order(filter_type(), graph, event)
    found = [handle for group in groups for handle in group]
    assert sorted(found) == [h for h, (each, _) in enumerate(expressions) if holds(each, frozenset(event))]
    if any(bands.values()):
        assert [bands[handle] for handle in found] == sorted((bands[handle] for handle in found), reverse=True)


@given(data=st.data())
@settings(max_examples=60)
def test_what_changes_between_two_bands_does_not_disturb_the_next(data):
    expressions = dict(enumerate(data.draw(st.lists(anything, min_size=2, max_size=8))))
    filter_type = data.draw(st.sampled_from([General, Zero]))
    bands = {handle: data.draw(st.integers(0, 7)) for handle in expressions}
    graph = prioritised(expressions, bands)
    event = data.draw(leaf_sets)
    wanted = [handle for handle, each in expressions.items() if holds(each, frozenset(event))]
    found = []
    handle = 100
    for group in filter_type().in_order(graph, np.array(event, np.uint32), ReadersWriterLock()):
        found += group.tolist()
        for each in data.draw(st.lists(anything, max_size=6), label="new"):
            insert(graph, {handle: each})
            graph.move_to_bands(np.array([handle]), np.array([data.draw(st.integers(0, 7))], np.uint8))
            handle += 1
    assert sorted(each for each in found if each < 100) == wanted
