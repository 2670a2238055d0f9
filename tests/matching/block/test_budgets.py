"""What is not taken apart is asked as a whole, and means the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import LimitError
from tamis.language.expressions import And
from tamis.matching import Matcher
from tamis.matching.block import budgets, plans
from tamis.matching.block.draft import Drafting
from tamis.matching.block.segment import arrays_of
from tests.strategies import conditions, conditions_over, events, simple_predicates
from tests.worst_texts import WORST_TEXTS


@pytest.mark.parametrize("steps", [0, 3, 10])
@given(
    subscriptions=st.lists(st.one_of(conditions, conditions_over(simple_predicates, 20)), min_size=1, max_size=6),
    batch=st.lists(events(), min_size=1, max_size=4),
)
@settings(max_examples=30)
def test_a_small_budget_changes_no_answer(steps, subscriptions, batch):
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (budgets, "_MOST_STEPS", steps),
            (budgets, "_MOST_TIMES", 0),
            (budgets, "_LOOKED_AT", 1),
            (plans, "_MOST_WRITTEN", steps),
        ):
            patch.setattr(module, name, value)
        plans._kept_plan.cache_clear()
        matcher = Matcher()
        matcher.add_many(enumerate([*subscriptions, And((subscriptions[0], *subscriptions))]))
        wanted = [
            [number for number, each in enumerate(subscriptions) if tamis.holds(each, event)]
            + [len(subscriptions)] * all(tamis.holds(each, event) for each in subscriptions)
            for event in batch
        ]
        assert matcher.list_batch(batch * 12).to_pylist() == wanted * 12
        assert [matcher.match(event) for event in batch] == wanted
    plans._kept_plan.cache_clear()


@pytest.mark.parametrize("worst", WORST_TEXTS, ids=lambda worst: worst.name)
def test_a_draft_grows_no_faster_than_its_text(worst):
    drafting = Drafting()
    drafting.add_many([0], [tamis.parse(worst.bad)])
    words = sum(array.size for array in arrays_of(drafting.finished()))
    assert words <= 60 * len(worst.bad)


def test_beside_what_is_asked_whole_the_other_operands_are_leaves():
    nest = "p0"
    for number in range(1, 40):
        nest = f"(p{number} XOR {nest})"
    drafting = Drafting()
    drafting.add_many([0], [tamis.parse(f"x = 7 AND {nest} AND y > 2")])
    draft = drafting.finished()
    assert [axis.key.kind for axis in draft.axes] == ["number", "number", "truth"]
    assert draft.clauses.leaves.starts.tolist() == [0, 3]
    assert not len(draft.jumps.leaves)


def test_a_condition_that_repeats_itself_beyond_all_measure_is_refused_when_it_is_registered():
    doubled = tamis.parse("a = 1")
    for number in range(60):
        doubled = (doubled | tamis.parse(f"b = {number}")) & ~doubled
    matcher = Matcher()
    matcher.add("good", "a = 1")
    with pytest.raises(LimitError, match="nodes"):
        matcher.add("bad", doubled)
    assert matcher.match({"a": 1}) == ["good"]


def test_at_least_has_a_step_for_each_operand_and_number_that_may_be_needed():
    outline, predicates = plans.sketched(tamis.parse("at_least(9, " + ", ".join(f"p{n}" for n in range(10)) + ")"))
    clauses = plans.plan_of(outline, (0,) * len(predicates))
    assert all(len(clause.tree_leaves) <= 2 * 9 for clause in clauses)
