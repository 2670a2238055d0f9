"""Are expressions that are walked level by level the expressions that they were?"""

from __future__ import annotations

from decimal import Decimal
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import TRUE, And, AtLeast, Attribute, Between, Compare, In, Literal, Not, Or
from tamis.matching.block import plans, read_conditions
from tamis.matching.operations import GUESSES
from tamis.matching.reading import kernels, walker
from tamis.matching.reading.kernels import UNREAD
from tamis.matching.reading.reader import KINDS, NO_KIND, expression_of
from tamis.matching.reading.walker import Walker
from tamis.ragged import Ragged
from tests.strategies import conditions


def read(walked, number):
    """Return an expression as its structure and its predicates say it; None if it was left out."""
    structure = walked.structures[number]
    if structure == UNREAD:
        return None
    predicates = map(walked.predicate, walked.leaves.members(number).tolist())
    return expression_of(walked.shapes.members(structure).tolist(), iter(predicates))


def said(walked, number):
    """Return what a predicate asks, by its columns; None if only it knows that itself."""
    form, *operands = walked.predicates.members(number).tolist()
    if walked.predicate_kinds()[number] == NO_KIND:
        return None
    assert set(walked.operand_kinds()[operands].tolist()) == {int(walked.predicate_kinds()[number])}
    terms = [walked.term(name) for name in walked.operand_names[operands].tolist()]
    values = walked.values(np.array(operands))
    assert terms == terms[:1] * len(terms)
    if form == kernels.BETWEEN:
        return Between(terms[0], *map(Literal, values))
    if form == kernels.AMONG:
        return In(terms[0], tuple(values))
    operator = next(each for each, known in walker._FORMS.items() if known == form)
    return Compare(operator, terms[0], Literal(values[0]))


@given(st.lists(conditions, max_size=8))
def test_what_was_walked_is_what_it_was_or_left_out(expressions):
    walked = Walker(expressions)
    assert len(walked.structures) == len(expressions)
    for number, expression in enumerate(expressions):
        assert read(walked, number) in (None, expression)
    for number in range(walked.predicates.list_count):
        assert said(walked, number) in (None, walked.predicate(number))


def test_everyday_expressions_are_walked_and_their_predicates_are_columns():
    texts = [
        "a = 1", "a <> 'x' AND NOT b BETWEEN 1 AND 2", "c", "NOT (c OR NOT a IN (1.5, 2.5))", "a < 1 XOR a >= 2 XOR NOT c",
        "at_least(2, a = 1, b = 2, NOT c)", "a LIKE 'x%' OR b IS NULL", "a <= DATE '2024-02-29'", "type IS A 'Bid' AND (a > 1 OR (b < 2 AND c))",
    ]  # fmt: skip
    expressions = list(map(tamis.parse, texts))
    walked = Walker(expressions)
    assert [read(walked, number) for number in range(len(texts))] == expressions
    odd = [str(walked.predicate(number)) for number in np.flatnonzero(walked.predicate_kinds() == NO_KIND)]
    assert sorted(odd) == ["a LIKE 'x%'", "b IS NULL", "c", "type IS A 'Bid'"]


A, B = Attribute(("a",)), Attribute(("b",))


@pytest.mark.parametrize(
    "expression",
    [
        TRUE,
        Or((A, TRUE)),
        tamis.parse("lower(a) = 'x' AND b"),
        tamis.parse("b OR a BETWEEN length(b) AND 7"),
        tamis.parse("length(a) IN (1, 2)"),
        AtLeast(1 << 30, (A, B)),
        tamis.parse(" OR ".join(f"a = {number}" for number in range(walker.MOST_NODES))),
    ],
    ids=lambda expression: str(expression)[:20],
)
def test_what_is_odd_is_left_out_and_harms_no_other(expression):
    others = [tamis.parse("a = 1 AND NOT b"), tamis.parse("a")]
    walked = Walker([others[0], expression, others[1]])
    assert [read(walked, number) for number in range(3)] == [others[0], None, others[1]]


def test_nests_of_shared_expressions_are_left_out_before_they_take_memory():
    doubled, deep = Compare("=", A, Literal(1)), B
    for _ in range(60):
        doubled = And((doubled, Not(doubled)))
    for _ in range(walker.MOST_LEVELS + 1):
        deep = Not(deep)
    walked = Walker([doubled, deep, deep.value, A])
    assert [read(walked, number) for number in range(4)] == [None, None, deep.value, A]


def test_operands_that_are_not_told_from_others_as_doubles_are_no_columns():
    operands = [2**53, 2**53 + 1, -(2**70), 5, True, None, Decimal("1.5"), Decimal("1." + "1" * 20), float("nan"), "x"]
    walked = Walker([Compare("<", A, Literal(operand)) for operand in operands])
    kinds = [None if kind == NO_KIND else KINDS[kind] for kind in walked.predicate_kinds().tolist()]
    assert kinds == ["number", None, None, "number", None, None, "number", None, "double", "string"]


def test_predicates_have_one_number_each_over_many_portions(monkeypatch):
    monkeypatch.setattr(walker, "AT_A_TIME", 7)
    shared = [Compare("=", A, Literal(number)) for number in range(5)]
    expressions = [And((shared[number % 5], Between(B, Literal(number), Literal(9)))) for number in range(40)]
    walked = Walker(expressions)
    assert [read(walked, number) for number in range(40)] == expressions
    assert walked.predicates.list_count == 5 + 40


def test_nothing_is_walked_of_nothing():
    walked = Walker([])
    assert (len(walked.structures), walked.predicates.list_count, walked.shapes.list_count) == (0, 0, 0)


@given(seed=st.integers(0, 10_000), data=st.data())
def test_conditions_with_one_key_have_one_plan(seed, data):
    chance = Random(seed)
    outline = read_conditions._outline_of(drawn_shape(chance))
    if outline is None or outline.outline is None:
        return
    count = len(outline.positions)
    some = st.lists(st.integers(0, len(GUESSES) - 1), min_size=count, max_size=count)
    operations = np.array([data.draw(some) for _ in range(6)])
    costs = np.unique(GUESSES, return_inverse=True)[1]
    conjunctions = Ragged.of_counts([count], np.array(read_conditions._conjunctions_of(outline), np.int64))
    keys, (begins, ends) = np.empty(6 * (count + 1), np.int64), np.empty((2, 6), np.int64)
    asked = operations.ravel().astype(np.uint32)
    kernels.keys_of_plans(np.zeros(6, np.int32), asked, costs, np.ones(1, np.bool_), conjunctions, keys, begins, ends)
    plan_of_key = {}
    for number, asks in enumerate(operations.tolist()):
        plan = plans.plan_of(outline.outline, tuple(asks))
        assert plan_of_key.setdefault(tuple(keys[begins[number] : ends[number]].tolist()), plan) == plan


def drawn_shape(chance, depth=0):
    """Return a structure of AND, OR and `at_least`, in postfix order."""
    if depth > 3 or (depth and chance.random() < 0.4):
        return [kernels.LEAF]
    arity = chance.randint(2, 4)
    kind = chance.choice((kernels.CONJUNCTION, kernels.CONJUNCTION, kernels.DISJUNCTION, kernels.COUNT))
    needed = chance.randint(1, arity) if kind == kernels.COUNT else 0
    below = [word for _ in range(arity) for word in drawn_shape(chance, depth + 1)]
    return [*below, kind | arity << 3 | needed << kernels.COUNT_SHIFT]
