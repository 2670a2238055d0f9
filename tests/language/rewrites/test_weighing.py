"""A weighted partial match is the tree of conditions that it says, true for the same events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import choices_of, conditions, events, simple_predicates

import tamis
from tamis.language.expressions import Between, Call, Compare, Literal
from tamis.language.rewrites.weighing import weighed

weights = st.sampled_from([0, 1, 2, 3, -1, 0.5, None]).map(Literal)
choices = choices_of(weights, st.one_of(simple_predicates, conditions), height=2)


@st.composite
def sums(draw):
    whole = draw(choices)
    for part in draw(st.lists(st.one_of(choices, weights), max_size=3)):
        whole = Call(draw(st.sampled_from(["add", "subtract", "least", "multiply"])), (whole, part))
    return whole


@given(sums(), st.sampled_from(["<", "=", ">=", ">", "<>"]), weights, st.lists(events(), min_size=1, max_size=8))
def test_what_is_weighed_is_true_for_the_same_events(whole, operator, least, batch):
    for predicate in (Compare(operator, whole, least), Between(whole, Literal(1), Literal(5))):
        tree = weighed(predicate)
        for event in batch if tree is not None else ():
            assert tamis.holds(tree, event) is tamis.holds(predicate, event), (str(predicate), str(tree))
    matcher = tamis.Matcher()
    asked = {
        "so": predicate,
        "not": ~Compare(operator, whole, least),
        "and": Compare(operator, whole, least) & tamis.parse("a = 1"),
    }
    matcher.add_many(asked)
    matcher.compile()
    wanted = [[key for key, each in asked.items() if tamis.holds(each, event)] for event in batch]
    assert matcher.list_batch(batch * 8).to_pylist() == wanted * 8


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("if(a, 1, 0) + if(b, 1, 0) + if(c, 1, 0) >= 2", "a AND b OR a AND c OR b AND c"),
        (" + ".join(f"if({each}, 1, 0)" for each in "abcde") + " >= 2", "at_least(2, a, b, c, d, e)"),
        ("if(a, 2, 0) + if(b, 1, 0) + if(c, 1, 0) >= 2", "a OR b AND c"),
        ("if(a, 2, 0) + if(b, 1, 0) >= 0", "TRUE"),
        ("if(a, 2, 0) + if(b, 1, 0) > 3", "FALSE"),
        ("10 < CASE WHEN a THEN 20 ELSE 5 END", "a"),
        ("if(a, 0, 1) >= 1", "NOT a <=> TRUE"),
        ("if(a, 2, 0) + if(b, 1, 0) = 2", "a AND NOT b <=> TRUE"),
        ("if(a, 2, 0) + bids >= 2", "None"),
        ("coalesce(a, FALSE) = TRUE", "None"),
        ("length(title) > 2", "None"),
    ],
)
def test_what_conditions_alone_decide_becomes_a_tree(text, tree):
    assert str(weighed(tamis.parse(text))) == tree
