from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher, MatcherOptionError, UnknownIdError
from tests.strategies import conditions, conditions_over, events, simple_predicates

subscription_lists = st.lists(st.one_of(conditions, conditions_over(simple_predicates)), min_size=1, max_size=8)


def laid_out(subscriptions, sample=()):
    matcher = Matcher()
    matcher.add_many(subscriptions)
    matcher.compile()
    if sample:
        matcher.learn(sample)
    return matcher


def plan_holds(plan, event):
    """Do what the plan says, with the reference meaning at the leaves, and nothing of the matcher's own."""
    return any(
        all(leaf_holds(leaf, event) for leaf in clause.leaves) and tree_holds(clause.tree, event)
        for clause in plan.clauses
    )


def leaf_holds(leaf, event):
    return tamis.holds(tamis.parse(leaf.text), event)


def tree_holds(tree, event):
    at = 1 if tree else None
    while at is not None:
        step = tree[at - 1]
        way = step.if_true if leaf_holds(step.leaf, event) else step.if_false
        if not way.startswith("go to "):
            return way == "holds"
        at = int(way.removeprefix("go to "))
    return True


@given(subscriptions=subscription_lists, sample=st.lists(events(), max_size=4), event=events())
def test_who_follows_a_plan_by_hand_matches_what_the_definition_matches(subscriptions, sample, event):
    registered = dict(enumerate(subscriptions))
    matcher = laid_out(registered, sample)
    for number, condition in registered.items():
        plan = matcher.plan(number)
        assert plan_holds(plan, event) == tamis.holds(condition, event)
        assert all(0 <= leaf.share <= 1 for clause in plan.clauses for leaf in clause.leaves)
        assert json.loads(json.dumps(plan.as_dict()))["text"] == plan.text
        assert str(plan)


def test_a_selective_clause_is_found_by_its_key_and_a_broad_one_by_bitmaps():
    sample = [{"price": number % 50, "title": f"t{number}"} for number in range(1_000)]
    matcher = laid_out({"rare": "price < 40 AND title = 't7'", "common": "price < 40", "all": "TRUE"}, sample)
    (rare,), (common,), (everything,) = (matcher.plan(each).clauses for each in ("rare", "common", "all"))
    assert rare.path == "key"
    assert [(leaf.text, leaf.is_key) for leaf in rare.leaves] == [("title = 't7'", True), ("price < 40", False)]
    assert rare.share == pytest.approx(0.001, abs=0.001)
    assert (common.path, common.leaves[0].share) == ("bitmap", pytest.approx(0.8, abs=0.01))
    assert (everything.path, everything.share, everything.leaves) == ("bitmap", 1.0, ())


def test_a_set_that_is_a_key_has_a_row_for_each_member():
    sample = [{"city": f"c{number}"} for number in range(2_000)]
    (clause,) = laid_out({1: "city IN ('c1', 'c2', 'c3')"}, sample).plan(1).clauses
    assert (clause.path, clause.rows, clause.leaves[0].is_key) == ("key", 3, True)


def test_twins_are_told_with_the_one_that_is_asked_and_without_those_that_left():
    matcher = laid_out({"first": "price < 20", "second": "price < 20", "third": "price < 20", "other": "price > 3"})
    assert (matcher.plan("first").twin_of, matcher.plan("first").twin_count) == (None, 3)
    assert (matcher.plan("second").twin_of, matcher.plan("second").twin_count) == ("first", 3)
    matcher.remove("first")
    assert (matcher.plan("second").twin_of, matcher.plan("second").twin_count) == (None, 2)
    assert matcher.plan("third").clauses == matcher.plan("second").clauses != ()


def test_what_is_open_and_what_never_holds_have_no_clauses():
    matcher = Matcher()
    matcher.add("new", "price < 20")
    assert (matcher.plan("new").segment, matcher.plan("new").clauses) == (None, ())
    matcher.add("never", "price < 20 AND FALSE")
    matcher.compile()
    assert matcher.plan("new").segment == 0
    assert matcher.plan("never").clauses == ()
    assert "no event can match" in str(matcher.plan("never"))


def test_who_has_no_plan_is_told_so():
    matcher = Matcher("naive")
    matcher.add(1, "price < 20")
    with pytest.raises(MatcherOptionError, match="'naive' cannot show plans, only 'block' can"):
        matcher.plan(1)
    with pytest.raises(UnknownIdError):
        matcher.plan(2)
