"""The A-Tree's sequence node finds what the product's automaton finds, as far as one entry can."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Standing, parse
from tamis_lab.matching.atree import AllOf, AnyOf, SequenceTree, Then

A, B, C = (parse(f"{name} = 1") for name in "abc")
CONDITIONS = ["a = 1", "a > 0", "b = 1", "a = 1 AND b = 1", "NOT a = 1", "a IS NULL", "a = 1 OR b = 2", "TRUE"]

values = st.sampled_from([0, 1, 2, None])
histories = st.lists(
    st.tuples(
        st.fixed_dictionaries({}, optional={"a": values, "b": values}), st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0])
    ),
    max_size=14,
)


@st.composite
def sequences(draw, with_after=False):
    """Draw a sequence of two or three steps, as a text and as nodes: of three, the first two are the left operand."""
    steps = [draw(st.sampled_from(CONDITIONS)) for _ in range(draw(st.integers(2, 3)))]
    links = [draw(st.sampled_from(["THEN", "SAME OR THEN"])) for _ in steps[1:]]
    within = draw(st.sampled_from([None, 0.5, 1.0, 2.0]))
    after = draw(st.sampled_from([0.0, 0.5, 1.0])) if with_after and (within is None or within >= 1) else 0.0
    text = f"SEQUENCE ({steps[0]})" + "".join(f" {link} ({step})" for link, step in zip(links, steps[1:], strict=True))
    text += (f" AFTER {after} SECONDS" if after else "") + (f" WITHIN {within} SECONDS" if within is not None else "")
    node = parse(steps[0])
    for number, (link, step) in enumerate(zip(links, steps[1:], strict=True)):
        is_last = number == len(links) - 1
        node = Then(
            node, parse(step), after if is_last else 0.0, math.inf if within is None or not is_last else within,
            is_same=link == "SAME OR THEN",
        )  # fmt: skip
    return text, node


def told(wanted, history, algorithm="naive"):
    """Return what the tree and the processor report, event by event."""
    tree, processor = SequenceTree(algorithm), Standing(retention=math.inf)
    for number, (text, node) in enumerate(wanted):
        tree.add(number, node)
        processor.add(number, text)
    found, expected, now = [], [], 0.0
    for number, (event, gap) in enumerate(history):
        now += gap
        found.append(sorted(tree.match(event, now, number)))
        expected.append(sorted((each.subscription, each.events) for each in processor.process(event, now, number)))
    return found, expected


@settings(max_examples=300, deadline=None)
@given(st.lists(sequences(), min_size=1, max_size=4), histories)
def test_a_sequence_node_reports_the_runs_of_the_automaton(wanted, history):
    found, expected = told(wanted, history)
    assert found == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(sequences(with_after=True), min_size=1, max_size=3), histories)
def test_with_a_least_time_a_sequence_node_reports_nothing_that_the_automaton_does_not(wanted, history):
    found, expected = told(wanted, history)
    for mine, theirs in zip(found, expected, strict=True):
        assert {subscription for subscription, _ in mine} <= {subscription for subscription, _ in theirs}


def test_what_one_entry_forgets_the_automaton_keeps():
    """Two left events, of which the latest is too young: the node is silent, and the processor is not."""
    wanted = [("SEQUENCE a = 1 THEN b = 1 AFTER 2 SECONDS", Then(A, B, after=2.0))]
    found, expected = told(wanted, [({"a": 1}, 0.0), ({"a": 1}, 2.0), ({"b": 1}, 1.0)])
    assert found == [[], [], []]
    assert expected == [[], [], [(0, (0, 2))]]


def test_the_shared_graph_of_the_a_tree_matches_the_leaves():
    wanted = [
        ("SEQUENCE a = 1 THEN b = 1", Then(A, B)),
        ("SEQUENCE b = 1 SAME OR THEN a = 1", Then(B, A, is_same=True)),
    ]
    history = [({"a": 1}, 0.0), ({"a": 1, "b": 1}, 1.0), ({"b": 1}, 1.0), ({"a": 1}, 0.0)]
    found, expected = told(wanted, history, "atree")
    assert found == expected and sum(map(len, found)) == 4


def test_and_and_or_stand_above_a_sequence_as_above_any_node():
    tree = SequenceTree("naive")
    tree.add("and", AllOf((Then(A, B), C)))
    tree.add("or", AnyOf((Then(A, B), C)))
    tree.add("of sequences", Then(Then(A, B), Then(B, C), within=9.0))
    reports = [tree.match(event, float(at), at) for at, event in enumerate([{"a": 1}, {"b": 1}, {"b": 1, "c": 1}])]
    assert reports[0] == []
    assert sorted(reports[1]) == [("or", (0, 1))]
    assert sorted(reports[2]) == [("and", (0, 2)), ("of sequences", (0, 1, 1, 2)), ("or", (0, 2))]


def test_equal_nodes_are_one_and_go_with_their_last_user():
    tree = SequenceTree("naive")
    tree.add(1, Then(A, B))
    assert tree.node_count == 3
    tree.add(2, AllOf((Then(A, B), C)))
    tree.add(3, Then(A, B))
    assert tree.node_count == 5
    tree.remove(1)
    tree.remove(3)
    assert tree.node_count == 5
    assert tree.match({"a": 1}, 0.0, "e1") + tree.match({"b": 1, "c": 1}, 1.0, "e2") == [(2, ("e1", "e2"))]
    tree.remove(2)
    assert (tree.node_count, len(tree)) == (0, 0)
    with pytest.raises(KeyError):
        tree.remove(2)
    tree.add(1, A)
    with pytest.raises(ValueError, match="already"):
        tree.add(1, B)
