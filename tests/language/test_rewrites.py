"""Every rewrite says the same thing in another way."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import BudgetError
from tamis.language import measures
from tamis.language.expressions import CONNECTIVES, And, Compare, Not, Or, Xor, postorder
from tamis.language.rewrites import (
    Interner,
    canonical,
    disjuncts,
    dnf,
    flatten,
    fold_constants,
    monotone,
    nnf,
    ordered,
    simplify,
)
from tamis.language.rewrites.monotone import fold_monotone, is_monotone, joined
from tests.strategies import conditions, conditions_over, events, simple_predicates

SCHEMA = tamis.Schema(
    {"a": "int", "b": "double", "c": "string", "flag": "bool", "m": "int", "tags": "array<string>"}, mandatory=["m"]
)
PASSES = {
    "nnf": nnf,
    "flatten": flatten,
    "fold_constants": fold_constants,
    "ordered": ordered,
    "simplify": lambda expression: simplify(nnf(expression)),
    "canonical": canonical,
    "canonical_with_schema": lambda expression: canonical(expression, SCHEMA),
    "dnf": dnf,
    "monotone": monotone,
    "least_hits": measures.least_hits,
    "size": measures.size,
    "depth": measures.depth,
}


def fixtures():
    for path in sorted((Path(__file__).parent / "rewrites").glob("*.txt")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                given_text, expected = line.split(" => ")
                yield pytest.param(path.stem, given_text.strip(), expected.strip(), id=f"{path.stem}:{number}")


@pytest.mark.parametrize(("name", "given_text", "expected"), list(fixtures()))
def test_a_pass_rewrites_its_input_as_its_fixture_says(name, given_text, expected):
    assert str(PASSES[name](tamis.parse(given_text))) == expected


def truth_or_budget(rewrite, expression):
    try:
        return rewrite(expression)
    except BudgetError:
        return expression


@pytest.mark.parametrize("rewrite", [nnf, flatten, fold_constants, ordered, dnf], ids=lambda rewrite: rewrite.__name__)
@given(expression=conditions, event=events())
def test_a_pass_keeps_the_three_valued_truth(rewrite, expression, event):
    assert tamis.truth(truth_or_budget(rewrite, expression), event) is tamis.truth(expression, event)


@pytest.mark.parametrize("rewrite", [lambda e: simplify(nnf(e)), canonical], ids=["simplify", "canonical"])
@given(expression=conditions, event=events())
def test_simplification_keeps_what_the_expression_is_true_for(rewrite, expression, event):
    assert tamis.holds(rewrite(expression), event) is tamis.holds(expression, event)


@settings(max_examples=500)
@given(expression=conditions_over(simple_predicates), event=events())
def test_simplification_of_many_predicates_on_few_attributes_keeps_what_is_true(expression, event):
    assert tamis.holds(canonical(expression), event) is tamis.holds(expression, event)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "m"]),
            st.sampled_from(["<", "<=", "=", ">=", ">", "<>"]),
            st.sampled_from(["2", "2.5", "3", "3D", "4.0"]),
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([" AND ", " OR "]),
    st.fixed_dictionaries({"m": st.integers(1, 5)}, optional={"a": st.one_of(st.none(), st.integers(1, 5))}),
)
def test_simplification_with_a_schema_knows_integers_and_mandatory_attributes(parts, junction, event):
    expression = tamis.parse(junction.join(" ".join(part) for part in parts))
    assert tamis.holds(canonical(expression, SCHEMA), event) is tamis.holds(expression, event)


@given(conditions)
def test_negation_normal_form_has_no_xor_and_not_only_on_predicates(expression):
    for node in postorder(nnf(expression)):
        assert not isinstance(node, Xor)
        if isinstance(node, Not):
            assert not isinstance(node.value, CONNECTIVES)
            assert not isinstance(node.value, Compare) or node.value.operator == "<=>"


@given(conditions)
def test_the_canonical_form_is_a_fixed_point_of_ordering(expression):
    once = canonical(expression)
    assert ordered(once) == once


@given(conditions_over(simple_predicates), st.randoms(use_true_random=False))
def test_the_canonical_form_does_not_depend_on_the_order_of_operands(expression, chance):
    def shuffled(node):
        if isinstance(node, And | Or):
            operands = [shuffled(child) for child in node.children]
            chance.shuffle(operands)
            return type(node)(tuple(operands))
        return node

    assert canonical(shuffled(expression)) == canonical(expression)


def test_disjunctive_normal_form_beyond_its_budget_is_a_typed_error():
    wide = " AND ".join(f"(a = {n} OR b = {n})" for n in range(40))
    with pytest.raises(BudgetError, match="disjunctive normal form"):
        dnf(tamis.parse(wide))


def test_negation_normal_form_of_nested_xors_stays_a_small_graph():
    text = "a = 0"
    for level in range(1, 100):
        text = f"xor({text}, a = {level})"
    rewritten = nnf(tamis.parse(text))
    assert measures.size(rewritten) > 2**99  # as a tree; as a graph it is some hundred nodes
    assert tamis.language.expressions.fold_shared(rewritten, lambda node, below: node is not None)


def test_equal_sub_expressions_are_one_object_after_interning():
    intern = Interner()
    one, two = (intern(tamis.parse(text)) for text in ("(a = 1 OR b = 2) AND c = 3", "d = 4 AND (a = 1 OR b = 2)"))
    assert one.children[0] is two.children[1]


def test_the_disjuncts_of_true_and_false():
    assert disjuncts(tamis.parse("TRUE")) == [()]
    assert disjuncts(tamis.parse("FALSE")) == []


@given(expression=conditions_over(simple_predicates), event=events())
def test_a_match_scores_at_least_the_least_hits(expression, event):
    rewritten = fold_constants(nnf(expression))
    if tamis.holds(expression, event):
        leaves = [node for node in postorder(rewritten) if isinstance(node, Compare)]
        assert sum(tamis.holds(leaf, event) for leaf in leaves) >= measures.least_hits(expression)


@given(expression=conditions | conditions_over(simple_predicates), event=events())
def test_the_monotone_form_is_true_for_the_same_events_and_what_is_in_it_stays(expression, event):
    form = monotone(expression)
    assert tamis.holds(form, event) is tamis.holds(expression, event)
    assert monotone(form) == form
    assert form == fold_monotone(fold_constants(nnf(expression)), joined)
    if is_monotone(expression):
        assert form is expression
