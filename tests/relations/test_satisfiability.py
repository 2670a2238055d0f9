"""The solver's clauses say what the formulas say, however often a node occurs, as one object or as equal ones."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.relations.formulas import ALWAYS, NEVER, Conjunction, Disjunction, Fact, Formula, Threshold, opposite
from tamis.relations.satisfiability import Model, SatProblem

PREDICATES = [tamis.parse(f"p{number} LIKE '%a%b%'") for number in range(4)]

leaves = st.builds(Fact, st.sampled_from(PREDICATES), st.just(True), st.booleans()) | st.sampled_from([ALWAYS, NEVER])


def junctions(children: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    """Return junctions as they stand: nothing is joined or left out, and a threshold may have an operand twice."""
    operands = st.lists(children, min_size=1, max_size=4).map(tuple)
    counted = operands.flatmap(lambda some: st.builds(Threshold, st.integers(1, len(some)), st.just(some)))
    return st.builds(Conjunction, operands) | st.builds(Disjunction, operands) | counted


formulas = st.recursive(leaves, junctions, max_leaves=12)


def holds(formula: Formula, facts: dict[object, bool]) -> bool:
    """The definition."""
    below = [holds(child, facts) for child in formula.children]
    match formula:
        case Conjunction():
            return all(below)
        case Disjunction():
            return any(below)
        case Threshold(count=count):
            return sum(below) >= count
        case Fact(predicate=predicate, is_so=is_so):
            return facts[predicate] is is_so
    return formula is ALWAYS


def copied(formula: Formula) -> Formula:
    """The same from new objects."""
    children = tuple(map(copied, formula.children))
    match formula:
        case Conjunction() | Disjunction():
            return type(formula)(children)
        case Threshold(count=count):
            return Threshold(count, children)
        case Fact(predicate=predicate, truth=truth, is_so=is_so):
            return Fact(predicate, truth, is_so)
    return formula


@given(given=st.lists(formulas, min_size=1, max_size=3))
def test_the_solver_finds_what_some_facts_make_true_and_nothing_else(given):
    worlds = [dict(zip(PREDICATES, truths, strict=True)) for truths in product([True, False], repeat=len(PREDICATES))]
    expected = any(all(holds(each, facts) for each in given) for facts in worlds)
    with SatProblem([*given, *map(copied, given)]) as question:
        model = question.solve(10_000)
        assert isinstance(model, Model) is expected
        if isinstance(model, Model):
            found = dict.fromkeys(PREDICATES, False) | {key: is_so for (key, _), is_so in model.facts.items()}
            assert all(holds(each, found) for each in given)


@given(formula=formulas)
def test_a_formula_and_the_opposite_of_its_copy_never_hold_at_once(formula):
    with SatProblem([formula, opposite(copied(formula))]) as question:
        assert question.solve(10_000) is False


@given(formula=formulas)
def test_models_ruled_out_one_by_one_are_as_many_as_there_are(formula):
    worlds = [dict(zip(PREDICATES, truths, strict=True)) for truths in product([True, False], repeat=len(PREDICATES))]
    named = [predicate for predicate in PREDICATES if any(each == predicate for each in _predicates(formula))]
    expected = {tuple(facts[each] for each in named) for facts in worlds if holds(formula, facts)}
    found = set()
    with SatProblem([formula]) as question:
        while isinstance(model := question.solve(10_000), Model):
            found.add(tuple(model.facts[each, True] for each in named))
            question.add([Fact(predicate, truth, not is_so) for (predicate, truth), is_so in model.facts.items()])
            if not model.facts:
                break
    assert found == expected


def _predicates(formula: Formula) -> list[object]:
    if isinstance(formula, Fact):
        return [formula.predicate]
    return [each for child in formula.children for each in _predicates(child)]
