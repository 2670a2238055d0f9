"""Do the knobs of the expression generator do what they say?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import tamis
from tamis.language.measures import predicate_count
from tamis.workloads import AND_ONLY, AND_OR, AND_OR_XOR, Expressions, ParameterError
from tamis.workloads.expression_recipes import recipes
from tamis.workloads.expression_trees import TEXT, Branch, Leaf, grow, nodes, shared_shares
from tests.workloads.columns import matches


@pytest.mark.parametrize("length", [4, 6, 10, 14, 18])
def test_a_subscription_has_l_predicates_over_distinct_attributes(length):
    workload = Expressions(predicate_count=length)
    for text in workload.subscriptions(50, seed=1)["condition"].to_pylist():
        expression = tamis.parse(text, workload.schema)
        assert predicate_count(expression) == length
        assert len({attribute.split(" ")[0] for attribute in text.replace("(", "").split(" AND ")}) == length


def test_trees_are_what_subscriptions_write_down():
    def text(tree):
        return (
            TEXT.branch(tree.connective, text(tree.left), text(tree.right))
            if isinstance(tree, Branch)
            else TEXT.leaf(*tree)
        )

    workload = Expressions(connectives=AND_OR_XOR)
    assert [text(tree) for tree in workload.trees(100, seed=1)] == workload.subscriptions(100, seed=1)[
        "condition"
    ].to_pylist()


def test_all_shapes_are_equally_likely():
    chance = np.random.default_rng(1)
    shapes = Counter(grow("abcd", iter(chance.random(3)), iter(["+"] * 3), TEXT.branch) for _ in range(10_000))
    assert len(shapes) == 5, "four leaves have five bracketings"
    assert all(count == pytest.approx(2_000, abs=220) for count in shapes.values())


@pytest.mark.parametrize("connectives", [AND_ONLY, AND_OR, AND_OR_XOR])
def test_connectives_come_with_their_frequencies(connectives):
    trees = Expressions(predicate_count=10, connectives=connectives, match_share=0.1).trees(3_000, seed=1)
    found = Counter(node.connective for tree in trees for node in nodes(tree) if isinstance(node, Branch))
    shares = [found[name] / found.total() for name in ("AND", "OR", "XOR")]
    assert shares == pytest.approx(connectives, abs=0.02)


# The settings of the source's experiments: X1, X5, X6 and X8.
@pytest.mark.parametrize(
    ("length", "shared_nodes"), [(6, 0.35), (10, 0.4), (14, 0.4), (10, 0.6), (10, 0.18), (14, 0.1), (14, 0.8)]
)
def test_so_many_nodes_are_shared_as_asked_for(length, shared_nodes):
    workload = Expressions(predicate_count=length, shared_nodes=shared_nodes, overlap=0.9, match_share=0.15)
    assert shared_shares(workload.trees(3_000, seed=2))[0] == pytest.approx(shared_nodes, abs=0.02)


def test_so_many_subscriptions_share_nothing_as_asked_for():
    trees = Expressions(overlap=0.9).trees(3_000, seed=1)
    uses = Counter(node for tree in trees for node in set(nodes(tree)))
    alone = [tree for tree in trees if all(uses[node] == 1 for node in nodes(tree))]
    assert len(alone) / 3_000 == pytest.approx(0.1, abs=0.02)


def test_nothing_is_shared_where_nothing_overlaps():
    trees = Expressions(overlap=0, shared_nodes=0).trees(1_000, seed=1)
    leaves = [node for tree in trees for node in nodes(tree) if isinstance(node, Leaf)]
    assert len(set(leaves)) == len(leaves) == 6_000


@pytest.mark.parametrize("overlap", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("length", [2, 3, 6, 14])
def test_recipes_give_the_wanted_average_exactly(length, overlap):
    node_count = 2 * length - 1
    for wanted in np.linspace(1 / node_count, (node_count - 1) / node_count, 9) * overlap:
        mix = recipes(length, overlap, float(wanted))
        average = sum(
            recipe.share
            * (
                (2 * recipe.left_size - 1) * recipe.is_left_shared
                + (2 * (length - recipe.left_size) - 1) * recipe.is_right_shared
            )
            for recipe in mix
        )
        assert sum(recipe.share for recipe in mix) == pytest.approx(1)
        assert average / node_count == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("knobs", "tolerance"),
    [
        ({"predicate_count": 6, "match_share": 0.05}, 0.2),
        ({"predicate_count": 14, "match_share": 0.45}, 0.15),
        ({"predicate_count": 10, "match_share": 0.13, "connectives": AND_OR, "shared_nodes": 0.5}, 0.15),
        ({"predicate_count": 10, "match_share": 0.2, "connectives": AND_OR_XOR, "shared_nodes": 0.18}, 0.15),
        ({"predicate_count": 6, "match_share": 0.1, "attributes_per_event": (12, 20)}, 0.25),
        ({"predicate_count": 6, "match_share": 0.01, "comparison": "="}, 0.4),
    ],
)
def test_so_many_subscriptions_match_as_asked_for(knobs, tolerance):
    workload = Expressions(**knobs)
    found = matches(workload.subscriptions(1_000, seed=4)["condition"], workload.events(400, seed=4), workload.schema)
    assert found.mean() == pytest.approx(knobs["match_share"], rel=tolerance)
    assert workload.achieved(1_000, 400, seed=4).match_share == pytest.approx(found.mean())


def test_a_conjunction_of_l_needs_predicates_that_are_true_with_the_l_th_root():
    for length, match_share, quantile in ((14, 0.45, 0.945), (6, 0.45, 0.875), (14, 0.05, 0.807)):
        workload = Expressions(predicate_count=length, match_share=match_share)
        assert workload._truth_share == pytest.approx(quantile, abs=0.005)


def test_events_carry_so_many_attributes_as_asked_for():
    events = Expressions(attributes_per_event=(7, 9), match_share=None).events(500, seed=1)
    sizes = [sum(value is not None for value in event.values()) for event in events.to_pylist()]
    assert set(sizes) == {7, 8, 9}
    carried = [events[name].null_count for name in events.column_names]
    assert max(carried) - min(carried) < 150, "no attribute is preferred"


def test_values_keep_to_the_range():
    workload = Expressions(largest_value=100, match_share=0.5)
    values = np.array([column.to_numpy() for column in workload.events(2_000, seed=1).columns])
    assert values.min() >= 1
    assert values.max() <= 100


@pytest.mark.parametrize(
    ("knobs", "named"),
    [
        ({"predicate_count": 1}, "predicate_count"),
        ({"attribute_count": 5}, "attribute_count must be at least 6"),
        ({"connectives": (0, 0, 0)}, "connectives"),
        ({"comparison": "<"}, "comparison must be one of >, =, any, not '<'"),
        ({"comparison": "any"}, "match_share"),
        ({"match_share": 0}, "match_share"),
        ({"attributes_per_event": (3, 21)}, "attributes_per_event"),
        ({"overlap": 1.1, "shared_nodes": 0.5}, "overlap must be a share from 0 to 1"),
        ({"overlap": 0.5, "shared_nodes": 0.6}, "shared_nodes must be from 0.045 to 0.455 at this overlap"),
        ({"overlap": 0, "shared_nodes": 0.1}, "shared_nodes must be 0, as nothing overlaps"),
        ({"pool_size": 0}, "pool_size"),
    ],
)
def test_a_knob_that_cannot_stand_so_is_named(knobs, named):
    with pytest.raises(ParameterError, match=named):
        Expressions(**knobs)


def test_a_share_of_matches_that_cannot_be_reached_is_named():
    workload = Expressions(predicate_count=14, attributes_per_event=(14, 17), match_share=0.45)
    with pytest.raises(ParameterError, match=r"match_share must be at most 0\.0"):
        workload.events(1, seed=1)
    with pytest.raises(ParameterError, match="pooled_values must be at least"):
        Expressions(predicate_count=2, comparison="=", match_share=0.0001, pooled_values=20).events(1, seed=1)
