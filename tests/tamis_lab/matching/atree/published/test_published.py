"""The compiled tree of pairs: what the plain one has, and what the language means."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language import parse
from tamis.ragged import Ragged
from tamis_lab.matching.atree.filters import General, Paths, Zero
from tamis_lab.matching.atree.filters import kernels as filter_kernels
from tamis_lab.matching.atree.gate import ReadersWriterLock
from tamis_lab.matching.atree.graph import kernels as graph_kernels
from tamis_lab.matching.atree.published import kernels
from tamis_lab.matching.atree.published.algorithm import ATreePublished
from tamis_lab.matching.atree.published.descent import TopDown
from tamis_lab.matching.atree.published.graph import ARRANGEMENTS, LOOK_UPS, PARENTS, PRINTED, REPAIRED, BinaryGraph
from tests.tamis_lab.matching.atree.plain import holds, insert, nodes_of
from tests.tamis_lab.matching.atree.published.test_operands import (
    STORE,
    WORKED,
    A,
    B,
    C,
    D,
    E,
    OperandTree,
    expressions,
    inner,
    stored,
    written,
)
from tests.tamis_lab.matching.atree.published.test_operands import grown as plainly_grown
from tests.tamis_lab.matching.atree.published.test_operands import leaf as predicate

every_way = pytest.mark.parametrize(
    ("arrangement", "look_up"), [(one, other) for one in ARRANGEMENTS for other in LOOK_UPS]
)
FILTERS = (General, Zero, TopDown)


def flat(expression):
    """Take what an operand of the same kind has for operands of the whole, as the translator does."""
    if isinstance(expression, int):
        return expression
    kind, *operands = expression
    found = []
    for operand in map(flat, operands):
        found += operand[1:] if not isinstance(operand, int) and operand[0] == kind else [operand]
    return (kind, *found)


def grown(population, **options):
    graph = BinaryGraph(4, **options)
    for number, expression in population.items():
        insert(graph, {number: flat(expression)})
    return graph


def matches(one, graph, numbers) -> list[int]:
    numbers = np.array(sorted(numbers), np.uint32)
    ends, found = one.matched(graph, Ragged(np.array([0, len(numbers)]), numbers), 0, 1)
    assert ends.tolist() == [len(found)]
    return sorted(found.tolist())


def is_whole(graph):
    nodes = nodes_of(graph)
    for ref, node in nodes.items():
        parents = [other for other, above in nodes.items() for child in above.children if child == ref]
        assert sorted(node.parents) == sorted(parents)
        if graph.look_up == PARENTS:
            assert node.parents == sorted(node.parents)
        if ref >= 0:
            assert len(node.children) == 2
            assert node.level == 1 + max(nodes[child].level for child in node.children)
        assert all(nodes[child].uses >= node.uses > 0 for child in node.children)
    return True


@every_way
def test_the_worked_example_has_the_published_nodes_levels_pushes_and_updates(arrangement, look_up):
    graph = grown(WORKED, arrangement=arrangement, look_up=look_up)
    assert (graph.leaf_count, graph.inner_count) == (5, 6)
    assert sorted(node.level for ref, node in nodes_of(graph).items() if ref >= 0) == [2, 2, 3, 3, 3, 4]
    for filter_type, updates in ((General, 10), (Zero, 8)):
        one = filter_type()
        assert matches(one, graph, [A, B, C]) == [1, 2, 4, 6]
        assert one.counters[filter_kernels.TOUCHES] == updates
        assert one.counters[filter_kernels.VISITS] == 6
    assert matches(TopDown(), graph, [A, B, C]) == [1, 2, 4, 6]
    assert is_whole(graph)


def test_from_the_roots_nearly_all_nodes_are_looked_at_and_most_of_them_twice():
    graph = grown(WORKED)
    one, paths = TopDown(), General()
    matches(one, graph, [E])
    matches(paths, graph, [E])
    assert one.counters[filter_kernels.VISITS] >= 2 * 6
    assert paths.counters[filter_kernels.VISITS] == 1


TRUE_PATHS = {  # figures 3.6 to 3.8, rebuilt
    1: ("and", 1, ("and", 2, 3)),
    2: ("and", ("and", 1, ("and", 2, 3)), ("and", ("and", 2, 3), ("or", 4, 5))),
    3: ("and", ("or", ("and", 2, 3), ("or", 4, 5)), ("and", 5, 6)),
}


def test_the_worked_example_of_true_value_paths_finds_what_every_filter_finds():
    graph = grown(TRUE_PATHS)
    for one in (Paths(), Zero(), General(), TopDown()):
        assert matches(one, graph, [1, 2, 3, 5]) == [1, 2]


@pytest.mark.parametrize(("arrangement", "made"), [(PRINTED, 1), (REPAIRED, 0)])
@pytest.mark.parametrize("look_up", LOOK_UPS)
def test_as_printed_the_dynamic_program_misses_a_node_that_exists(arrangement, made, look_up):
    graph = BinaryGraph(arrangement=arrangement, look_up=look_up)
    for number, expression in STORE.items():  # with the brackets that they have
        insert(graph, {number: expression})
    before = graph.inner_count
    insert(graph, {4: ("and", A, B, C, D)})
    assert graph.inner_count - before == made


@given(
    population=st.lists(expressions, max_size=8),
    true=st.sets(st.integers(0, 6)),
    gone=st.sets(st.integers(0, 7)),
    way=st.tuples(st.sampled_from(ARRANGEMENTS), st.sampled_from(LOOK_UPS)),
)
@settings(max_examples=80)
def test_every_filter_finds_what_holds_and_removal_leaves_no_trace(population, true, gone, way):
    graph = grown(dict(enumerate(population)), arrangement=way[0], look_up=way[1])
    if way[0] == PRINTED:
        plain = plainly_grown(dict(enumerate(population)), arrangement=PRINTED, look_up=way[1])
        if all(is_plain(each) for each in population):
            assert graph.inner_count == len(inner(plain))
            assert graph.level_counts.tolist()[1:] == levels(plain)
    gone &= set(range(len(population)))
    graph.remove(sorted(gone))
    assert is_whole(graph)
    left = [number for number in range(len(population)) if number not in gone]
    for number in gone:  # rows that were free are used again
        insert(graph, {number: flat(population[number])})
    assert is_whole(graph)
    graph.remove(sorted(gone))
    wanted = [number for number in left if holds(population[number], true)]
    for filter_type in FILTERS:
        assert matches(filter_type(), graph, true) == wanted
    graph.remove(left)
    assert graph.inner_count == graph.leaf_count == graph.edge_count == 0


def is_plain(expression):
    """Is there no operand that stands twice? Of those the one tree makes nothing, and the other a node."""
    operands = flat(expression)[1:]
    inner_ones = [each for each in operands if not isinstance(each, int)]
    return len(set(map(repr, operands))) == len(operands) and all(map(is_plain, inner_ones))


def levels(plain):
    most = max((node.level for node in plain.nodes.values()), default=1)
    return [sum(node.level == level for node in plain.nodes.values()) for level in range(2, most + 1)]


@cache
def published(arrangement, look_up):
    chance = Random(7)
    tree = ATreePublished(arrangement=arrangement, look_up=look_up)
    conditions = [" AND ".join(f"a{chance.randrange(6)} = {chance.randrange(3)}" for _ in range(5)) for _ in range(300)]
    tree.add(range(300), tree.prepare(map(parse, conditions)))
    return tree


def test_both_look_ups_find_the_same_nodes_and_only_one_reads_lists():
    for arrangement in ARRANGEMENTS:
        by_parents, by_table = (published(arrangement, look_up) for look_up in LOOK_UPS)
        assert by_parents.statistics()["inner_nodes"] == by_table.statistics()["inner_nodes"]
        assert by_parents.statistics()["look_ups"] == by_table.statistics()["look_ups"]
        assert by_parents.statistics()["parents_read"] > 0 == by_table.statistics()["parents_read"]


def test_repaired_takes_fewer_nodes_than_printed():
    printed, repaired = (published(arrangement, "table").statistics()["inner_nodes"] for arrangement in ARRANGEMENTS)
    assert repaired < printed


def test_more_operands_than_a_group_are_arranged_in_groups():
    graph = BinaryGraph(look_up=PARENTS)
    operands = tuple(range(kernels.GROUP + 5))
    insert(graph, {1: ("and", *operands)}, 64)
    assert graph.inner_count == len(operands) - 1
    assert is_whole(graph)
    assert matches(Paths(), graph, operands) == [1]
    assert matches(Paths(), graph, operands[1:]) == []


def test_at_least_and_not_stay_one_node():
    graph = BinaryGraph()
    insert(graph, {1: ("at_least", 2, 0, 1, 2), 2: ("not", ("and", 0, 1, 2)), 3: ("at_least", 1, 0, 1, 2), 4: True})
    for one in (Zero(), General(), TopDown()):
        assert matches(one, graph, [0, 1]) == [1, 2, 3, 4]
        assert matches(one, graph, []) == [2, 4]
        assert matches(one, graph, [0, 1, 2]) == [1, 3, 4]


def test_bands_are_told_apart_from_the_roots_down():
    graph = BinaryGraph(4)
    insert(graph, {1: ("and", 0, 1), 2: 0, 3: ("or", 0, 1)})
    graph.move_to_bands(np.array([2]), np.array([3], np.uint8))
    found = [each.tolist() for each in TopDown().in_order(graph, np.array([0, 1], np.uint32), ReadersWriterLock())]
    assert found == [[2], [1, 3]]


def test_the_columns_are_where_the_graph_has_them():
    assert len(BinaryGraph().tables.meta) == graph_kernels.META


@pytest.mark.parametrize("wrong", [{"arrangement": "best"}, {"look_up": "luck"}])
def test_a_wrong_choice_is_refused(wrong):
    with pytest.raises(ValueError, match="must be one of"):
        BinaryGraph(**wrong)


def test_a_constant_with_parts_is_a_constant():
    tree = ATreePublished()
    tree.add([0, 1], tree.prepare([parse("(a = 1 OR b = 1) AND FALSE"), parse("(a = 1 AND b = 1) OR TRUE")]))
    assert tree.snapshot().match_event({"a": 1, "b": 1}).tolist() == [1]


def test_an_emptied_tree_has_the_same_choices():
    tree = ATreePublished(arrangement=PRINTED, look_up=PARENTS).emptied()
    assert (tree._graph.arrangement, tree._graph.look_up) == (PRINTED, PARENTS)


def test_the_plain_tree_misses_the_same_node():
    tree = stored(OperandTree(arrangement=PRINTED), STORE)
    tree.add(4, written(("and", A, B, C, D)))
    assert len(inner(tree)) == 6
    assert tree.match({f"p{number}": 1 for number in (A, B, C, D)}) == [4]
    assert predicate(A) in tree.leaves
