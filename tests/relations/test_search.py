"""The search and the solver say the same as brute force, each by itself; and where neither knows, they say so."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.language.meaning import holds
from tamis.relations.deciding import ask
from tamis.relations.domains import TermAxis
from tamis.relations.forms import Context, context_of
from tamis.relations.formulas import ALWAYS, NEVER, Fact, Within, any_of
from tamis.relations.satisfiability import Model, SatProblem, TooManyClausesError
from tamis.relations.search import search
from tamis.relations.witnesses import plain_event
from tests.relations.test_relations import pigeons
from tests.relations.worlds import WORLDS

in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


@in_every_world
@pytest.mark.parametrize("most_steps", [0, 3, 60])
def test_every_stage_says_what_brute_force_says_and_shows_it(world, most_steps):
    chance = Random(7)
    context = context_of(world.schema)
    decided = set()
    for _ in range(120):
        some = [world.filter(chance, chance.randint(1, 6)) for _ in range(chance.randint(1, 4))]
        count = chance.randint(0, len(some))
        matching, missing = some[:count], some[count:]
        expected = world.is_event.copy()
        for each in matching:
            expected &= world.matched(each)
        for each in missing:
            expected &= ~world.matched(each)
        answer = ask([context.form(each) for each in matching], [context.form(each) for each in missing], context,
                     most_steps=most_steps)  # fmt: skip
        assert (answer.is_possible, answer.is_proven) == (expected.any(), True)
        decided.add(answer.by)
        if answer.box is not None:
            event = plain_event(answer.box, world.schema)
            assert all(holds(each, event, world.schema) for each in matching)
            assert not any(holds(each, event, world.schema) for each in missing)
    assert ("solver" if most_steps == 0 else "search") in decided


def forms(*texts):
    context = Context(None)
    return context, [context.form(text) for text in texts]


def test_a_search_that_takes_too_long_is_given_up():
    context, (form,) = forms(" AND ".join(f"(a{n} = 1 OR b{n} = 1 OR c{n} = 1)" for n in range(40)))
    contradiction = context.form(" AND ".join(f"(a{n} <> 1 OR b{n} = 2)" for n in range(40)))
    assert search([form.formula, contradiction.formula], most_steps=2).is_possible is None
    assert search([context.form("(a = 1 OR b = 1) AND (a = 2 OR b = 2)").formula]).is_possible is True
    many = context.form(" AND ".join(f"a <> {number}" for number in range(20_000)))
    assert search([many.formula, form.formula]).is_possible is None  # too many cuts to look at
    assert ask([many, form], [], context).is_possible is True


def test_the_solver_counts_thresholds():
    context, (form,) = forms("at_least(3, a = 1, b = 1, c = 1, d = 1) AND at_least(3, a = 2, b = 2, c = 2, d = 2)")
    assert not ask([form], [], context, most_steps=0).is_possible
    possible = context.form("at_least(2, a = 1, b = 1, c = 1, d = 1) AND at_least(2, a = 2, b = 2, c = 2, d = 2)")
    answer = ask([possible], [], context, most_steps=0)
    assert answer.by == "solver"
    assert holds(possible.expression, plain_event(answer.box, None))


def test_the_solver_refuses_what_is_too_large(monkeypatch):
    context, (form,) = forms("a = 1 OR b = 2 AND c = 3")
    monkeypatch.setattr("tamis.relations.satisfiability.MOST_LITERALS", 3)
    with pytest.raises(TooManyClausesError):
        SatProblem([form.formula, any_of([form.opposite, Fact(form.expression, True)])])
    answer = ask([form], [], context, most_steps=0)
    assert (answer.is_possible, answer.is_proven, answer.by) == (True, False, "budget")
    wide = context.form(f"at_least(2, {', '.join(f'x{n} = 1' for n in range(5))})")
    assert ask([wide], [], context, most_steps=0).by == "budget"


def test_the_solver_gives_up_within_its_budget():
    general, special = pigeons(9, 8)
    context = Context(None)
    answer = ask([context.form(special)], [context.form(general)], context, budget=10)
    assert (answer.is_possible, answer.is_proven, answer.by) == (True, False, "budget")


def test_a_question_of_constants_is_answered():
    with SatProblem([ALWAYS]) as question:
        assert isinstance(question.solve(10), Model)
    with SatProblem([ALWAYS, NEVER]) as question:
        assert question.solve(10) is False


def test_a_lemma_excludes_a_model():
    _, (form,) = forms("a BETWEEN 1 AND 3 OR b = 1")
    axis = next(axis for axis in form.axes if str(axis.term) == "a")
    with SatProblem([form.formula]) as question:
        while isinstance(model := question.solve(100), Model):
            low, high = model.stretches[axis]
            below = [Within(axis, (axis.values[0], low))] if axis.values[0] < low else []
            above = [Within(axis, (high, axis.values[-1]))] if high < axis.values[-1] else []
            assert question.around(axis, low) == (low, high)
            question.add([*below, *above])
        assert model is False


def test_the_solver_learns_from_values_that_a_function_does_not_have():
    # Both lists are tried out, value by value: nothing but the reference meaning knows these functions.
    context, (one, two) = forms("a IN ('x', 'yy', 'zzz') AND length(a) = 3", "a IN ('x', 'yy') OR a RLIKE '^[a-y]+$'")
    assert ask([one], [], context).is_proven
    answer = ask([one, two], [], context)
    assert (answer.is_possible, answer.is_proven) == (False, True)
    context, (one, two) = forms("a IN (1, 2, 3) AND b IN (10, 20)", "a * b = 60 AND a + b > 23")
    assert (ask([one, two], [], context).is_possible, ask([one, two], [], context).is_proven) == (False, True)
    context, (one, two) = forms("a IN (1, 2, 3) AND b IN (10, 20)", "a * b = 60 AND a + b >= 23")
    answer = ask([one, two], [], context)
    assert (answer.is_possible, answer.is_proven, answer.event) == (True, True, {"a": 3, "b": 20})


@pytest.mark.parametrize(
    "text",
    [
        "length(title) = 5 AND title LIKE '%x%'",
        "lower(title) = 'the hobbit' AND title <> 'the hobbit'",
        "distance(lat, lon, 45.8, 15.97) < 10",
        "a + b <= 10 AND a > 7",
        "a < b AND b < 5 AND a > 3",
        "array_contains(tags, 'x') AND array_contains(tags, 'y') AND NOT array_contains(tags, 'z')",
        "size(tags) = 3",
        "title LIKE 'a%' AND title LIKE '%b%' AND title LIKE '%c'",
        "title LIKE '_b_'",
        "least(a, b) = 3",
        "in_cidr(ip, '10.0.0.0/8') IS NULL",
        "a = b AND b = c",
        "abs(a) = 3 AND a < 0",
    ],
)
def test_an_event_is_found_for_functions_and_patterns(text):
    context, (form,) = forms(text)
    answer = ask([form], [], context)
    assert (answer.is_possible, answer.is_proven) == (True, True)
    assert holds(tamis.parse(text), answer.event)


def test_an_order_is_an_axis():
    _, (form,) = forms("a < b")
    (axis,) = form.axes
    assert isinstance(axis, TermAxis) and axis.is_order
    assert [axis.cut_in(event, None) for event in ({"a": 1, "b": 2}, {"a": 2, "b": 2}, {"a": 3, "b": 2}, {})] == [
        (1,), (1, 1), (1, 2), (0,),
    ]  # fmt: skip
