"""The predicate phase: equal predicates are one, and an event fulfils what the definition says it fulfils."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Compare, Expression, Literal, Not
from tamis.language.rewrites import nnf
from tamis.matching.columns import Events
from tamis.matching.operations import EQUAL
from tamis_lab.matching.predicates import PredicateRegistry, spelled
from tests.strategies import attributes, betweens, events, predicates, scalars, simple_predicates

SCHEMA = tamis.Schema({"a": "string"}, hierarchy={"Quote": None, "StockQuote": "Quote", "Other": None})

plain = st.one_of(simple_predicates, betweens(), predicates)
negatable = st.builds(
    lambda predicate, is_negated: nnf(Not(predicate)) if is_negated else nnf(predicate), plain, st.booleans()
)
some_predicates = st.lists(negatable.filter(lambda each: not isinstance(each, Literal)), max_size=15)


def registered(found: list[Expression]) -> tuple[PredicateRegistry, list[int]]:
    index = PredicateRegistry()
    return index, index.add_all(found)


def expected(index: PredicateRegistry, numbers: list[int], event) -> list[int]:
    return sorted({number for number in numbers if tamis.holds(index.predicate(number), event)})


@given(found=some_predicates, event=events())
def test_an_event_fulfils_the_predicates_that_hold_each_once(found, event):
    index, numbers = registered(found)
    fulfilled = sorted(index.view().fulfilled_by(event).tolist())
    assert fulfilled == sorted(
        {number for number, each in zip(numbers, found, strict=True) if tamis.holds(each, event)}
    )


@given(found=some_predicates, batch=st.lists(events(), max_size=6), buffer=st.sampled_from([1, 7, 1000]))
def test_the_events_of_a_batch_fulfil_what_each_of_them_fulfils(found, batch, buffer):
    view = registered(found)[0].view()
    seen = []
    for part in view.fulfilled(Events(batch), buffer=buffer):
        assert part.first == len(seen)
        seen += [sorted(part.lists.members(number).tolist()) for number in range(part.event_count)]
    assert seen == [sorted(view.fulfilled_by(event).tolist()) for event in batch]


@given(
    rows=st.lists(
        st.tuples(st.one_of(st.none(), st.integers(-5, 15)), st.sampled_from([None, "", "ab", "b"])), min_size=1
    )
)
def test_arrow_columns_fulfil_what_mappings_fulfil(rows):
    texts = ["a < 3", "a >= 3", "a = 4", "a <> 4", "a BETWEEN 2 AND 9", "a NOT BETWEEN 2 AND 9", "a IN (1, 5, 9)"]
    texts += [
        "a NOT IN (1, 5, 9)",
        "a NOT BETWEEN 9 AND 2",
        "b LIKE 'a%'",
        "b = ''",
        "b IS NULL",
        "a % 3 = 1",
        "b <> 'b'",
    ]
    index, numbers = registered([tamis.parse(text) for text in texts])
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows], pa.string())}
    )
    view = index.view()
    (part,) = view.fulfilled(Events(table))
    for number, (a, b) in enumerate(rows):
        event = {"a": a, "b": b}
        found = part.lists.members(number)
        assert sorted(found.tolist()) == sorted(view.fulfilled_by(event).tolist()) == expected(index, numbers, event)


# -- Numbers


@pytest.mark.parametrize(
    "spellings",
    [
        ("price < 20", "20 > price", "NOT price >= 20", "NOT (20 <= price)"),
        ("sold", "sold = TRUE", "NOT sold <> TRUE"),
        ("NOT sold", "sold = FALSE"),
        ("a IN (1, 2)", "a IN (2, 1, 2)"),
        ("a = 1", "a IN (1)", "a = 1BD", "a = 1.0BD", "a IN (1.00BD)"),
        ("a <> 0D", "a <> -0.0D"),
        ("day < DATE '2024-02-29'", "day < TIMESTAMP '2024-02-29 00:00:00'"),
    ],
)
def test_equal_predicates_of_different_spelling_are_one(spellings):
    index = PredicateRegistry()
    assert {index.add(nnf(tamis.parse(text))) for text in spellings} == {0}
    assert index.users(0) == len(spellings)


@pytest.mark.parametrize(
    ("one", "two"),
    [("a = 1", "a = 1D"), ("a = 1", "a = '1'"), ("a < 1", "a <= 1"), ("a = 9007199254740993", "a = 9007199254740992")],
)
def test_different_predicates_are_two(one, two):
    index = PredicateRegistry()
    assert index.add(tamis.parse(one)) != index.add(tamis.parse(two))


@given(negatable.filter(lambda each: not isinstance(each, Literal)), events())
def test_a_spelling_means_what_it_spells_and_is_final(predicate, event):
    once = spelled(predicate)
    assert tamis.holds(once, event) == tamis.holds(predicate, event)
    assert spelled(once) == once


@given(
    found=st.lists(st.builds(lambda term, value: Compare("=", term, Literal(value)), attributes, scalars), max_size=20),
    event=events(),
)
def test_an_event_is_equal_to_one_operand_of_an_axis_at_most(found, event):
    index, _ = registered([each for each in map(nnf, found) if each.right.value is not None])
    view = index.view()
    operations, (axes, keys) = view.operations(), view.axes()
    equal = [int(axes[number]) for number in view.fulfilled_by(event) if operations[number] == EQUAL]
    assert all(keys[axis].kind != "truth" or count <= 2 for axis, count in Counter(equal).items())
    assert all(count == 1 for axis, count in Counter(equal).items() if keys[axis].kind != "truth")


# -- Coming and going


@given(data=st.data())
@settings(max_examples=100)
def test_adding_and_releasing_in_any_order_leaves_what_is_used(data):
    index = PredicateRegistry()
    used: Counter[int] = Counter()
    meaning: dict[int, Expression] = {}
    for _ in range(data.draw(st.integers(1, 25), label="steps")):
        step = data.draw(st.sampled_from(["add", "add", "release", "look"]), label="step")
        if step == "add":
            for each in data.draw(some_predicates, label="added"):
                number = index.add(each)
                assert number not in +used or spelled(meaning[number]) == spelled(each), "a number means one predicate"
                used[number] += 1
                meaning[number] = each
        elif step == "release" and +used:
            for number in data.draw(st.lists(st.sampled_from(sorted(+used)), unique=True), label="released"):
                index.release(number)
                used[number] -= 1
        elif step == "look":
            event = data.draw(events(), label="event")
            found = set(index.view().fulfilled_by(event).tolist()) & set(+used)
            assert found == {number for number in +used if tamis.holds(meaning[number], event)}
        assert len(index) == len(+used)
        assert all(index.users(number) == count for number, count in used.items() if count)


def test_numbers_are_given_out_again_and_nothing_is_left():
    index = PredicateRegistry()
    for turn in range(20):
        numbers = index.add_all(tamis.parse(f"a = {turn * 1000 + each}") for each in range(500))
        index.view()
        index.release_all(numbers)
    assert len(index) == 0
    assert index.number_count <= 1500, "numbers are used again"
    assert index.view().levels == ()


def test_a_number_has_one_meaning_in_every_view():
    index = PredicateRegistry()
    first = index.add_all(tamis.parse(f"a < {each}") for each in range(100))
    before = index.view()
    index.release_all(first)
    second = index.add_all(tamis.parse(f"a > {each}") for each in range(100))
    after = index.view()
    assert sorted(before.fulfilled_by({"a": 97}).tolist()) == [98, 99], "the old view stays what it was"
    found = after.fulfilled_by({"a": 3})
    assert {number for number in found.tolist() if number in second} == set(second[:3])


def test_a_predicate_that_comes_back_before_it_is_forgotten_is_the_same():
    index = PredicateRegistry()
    number = index.add(tamis.parse("a = 1"))
    index.view()
    index.release(number)
    assert len(index) == 0
    assert index.add(tamis.parse("a = 1")) == number
    assert len(index) == 1
    assert index.view().fulfilled_by({"a": 1}).tolist() == [number]


def test_registering_one_more_lays_out_few():
    # Levels grow like the digits of a number: each predicate is laid out about log4(n) times, not n times.
    index = PredicateRegistry()
    laid_out = 0
    known: set[int] = set()
    for each in range(2000):
        index.add(tamis.parse(f"a = {each}"))
        levels = index.view().levels
        laid_out += sum(len(level) for level in levels if id(level) not in known)
        known = {id(level) for level in levels}
        assert len(levels) <= 8
    assert laid_out < 2000 * 64


def test_a_connective_is_no_predicate():
    with pytest.raises(AssertionError):
        PredicateRegistry().add(tamis.parse("a = 1 AND b = 2"))


# -- What is known of predicates


def test_shares_are_what_a_sample_shows():
    index = PredicateRegistry()
    numbers = index.add_all(map(tamis.parse, ("a < 25", "a >= 25", "a = 3", "a = 1000", "b = 1")))
    view = index.view()
    shares = view.shares(Events([{"a": each} for each in range(100)]))
    assert shares[numbers[:3]] == pytest.approx([0.25, 0.75, 0.01], abs=0.006)
    assert 0 < shares[numbers[3]] < 0.006
    assert 0 < shares[numbers[4]] < 0.006
    guessed = view.guessed_shares()
    assert guessed[numbers[2]] < guessed[numbers[0]]


def test_ugly_values_have_their_place():
    values = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 5e-324, 1e308, 2**53, 2**53 + 1, 2**63 - 1, 10**40]
    values += [
        Decimal("0.1"),
        Decimal(2**63),
        "",
        "\0",
        "😀",
        True,
        False,
        None,
        dt.date(2024, 2, 29),
        [1],
        {"x": 1},
        b"x",
    ]
    literals = [each for each in values if isinstance(each, float | int | Decimal | str | dt.date) and each != 10**40]
    asked = [
        Compare(operator, Attribute(("a",)), Literal(each)) for each in literals for operator in ("=", "<>", "<", ">=")
    ]
    index, numbers = registered(asked)
    view = index.view()
    batch = [{"a": each} for each in values]
    (part,) = view.fulfilled(Events(batch))
    for place, event in enumerate(batch):
        found = np.sort(part.lists.members(place)).tolist()
        assert found == sorted(view.fulfilled_by(event).tolist()) == expected(index, numbers, event)
