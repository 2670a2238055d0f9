"""Overlap by disjoint predicates never misses an overlap; the index answers as pairs do, in both directions."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, Attribute, Between, Compare, Literal, Or
from tamis.language.rewrites.monotone import leaves_of, monotone
from tamis.relations import DuplicateKeyError, NotAFilterError, UnknownKeyError, overlaps
from tamis.relations.advertisements import OverlapIndex, disjoint_sets, overlaps_by_predicates
from tests.lengths import so_many
from tests.relations.worlds import WORLDS
from tests.strategies import conditions, conditions_over, events, predicates

in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)

# The worked example: the advertisement A3, and subscriptions of the classes S1, S3 and S2 (with another title).
A3 = "title = 'Goblet of Fire' AND (condition = 'Used' AND price > 11 OR price > 14 AND condition = 'New')"
S1 = "contains(title, 'Goblet') AND ending < 1440 AND (condition = 'New' AND price < 15 OR price < 12 AND condition = 'Used')"
S3 = "(category = 'Thriller' OR author = 'Rowling') AND (ending < 60 AND (bids = 0 OR special = 'signed') OR buy_now AND special = 'signed')"
S4 = (
    "title = 'Dune' AND ending < 1440 AND (format = 'hard' AND (condition = 'New' AND price < 18 OR price < 13 AND condition = 'Used')"
    " OR format = 'soft' AND (condition = 'New' AND price < 14 OR price < 10 AND condition = 'Used'))"
)


def texts(sets):
    return {frozenset(map(str, each)) for each in sets}


def parts_of(text):
    return [str(leaf) for leaf in leaves_of(monotone(tamis.parse(text)))]


def test_the_disjoint_sets_are_those_of_the_worked_example():
    assert texts(disjoint_sets(A3, parts_of(S1))) == {
        frozenset({"condition = 'New'"}), frozenset({"price < 12", "condition = 'Used'"})
    }  # fmt: skip


def test_the_overlaps_are_those_of_the_worked_example_in_both_directions():
    expected = {"s1": True, "s3": True, "s4": False}
    for name, text in (("s1", S1), ("s3", S3), ("s4", S4)):
        assert (
            overlaps_by_predicates(A3, text)
            is overlaps_by_predicates(text, A3)
            is expected[name]
            is bool(overlaps(A3, text))
        )
    subscriptions = OverlapIndex()
    for name, text in (("s1", S1), ("s3", S3), ("s4", S4)):
        subscriptions.add(name, text)
    assert subscriptions.overlapping(A3) == ["s1", "s3"] and subscriptions.overlaps_any(A3)


def test_the_candidate_test_asks_for_one_alternative_not_for_the_worst():
    # Two alternatives: to the first one predicate is disjoint, to the second three. By the largest set the filter of four
    # predicates, of which two must be true, would not be a candidate, and the overlap would be lost.
    query = "a = 1 AND z = 1 OR b = 2 AND c = 2 AND d = 2"
    target = "(b = 1 OR b = 3) AND (c = 1 OR d = 1 OR d = 3)"
    assert overlaps(query, target) and overlaps_by_predicates(query, target) and overlaps_by_predicates(target, query)


@pytest.mark.parametrize(
    ("one", "two", "is_disjoint"),
    [("x = 1", "x = 2", True), ("x = 1", "x <> 1", True), ("x = 1", "x < 1", True), ("x = 1", "x <= 1", False), ("x < 3", "x > 5", True),
     ("x < 3", "x >= 3", True), ("x <= 3", "x >= 3", False), ("x > 4", "x < 5", False), ("x IN (1, 2)", "x IN (3, 4)", True),
     ("x <> 1", "x <> 2", False), ("x IS NULL", "x = 1", True), ("x IS NULL", "x IS NOT NULL", True), ("x = 'abc'", "x LIKE 'b%'", True),
     ("x LIKE '%a%'", "NOT x LIKE '%a%'", True), ("x LIKE '%a%'", "x LIKE '%b%'", False), ("x = 1", "y = 2", False),
     ("x BETWEEN 5 AND 3", "y = 2", True), ("x", "NOT x", True), ("length(x) < 3", "length(x) > 5", True)],
)  # fmt: skip
def test_predicates_are_disjoint_if_no_value_makes_both_true(one, two, is_disjoint):
    assert overlaps_by_predicates(one, two) is not is_disjoint
    assert overlaps_by_predicates(two, one) is not is_disjoint


def test_between_two_integers_there_is_nothing():
    schema = tamis.Schema({"x": "int"})
    assert overlaps_by_predicates("x > 4", "x < 5") and not overlaps_by_predicates("x > 4", "x < 5", schema)


def check_overlaps(world, count, seed):
    """See that whatever overlaps is found; return how many were claimed, and how many there are."""
    chance = Random(seed)
    claimed = real = 0
    for _ in range(count):
        one, two = (world.filter(chance, chance.randint(1, 6)) for _ in range(2))
        found = overlaps_by_predicates(one, two, world.schema)
        is_real = world.overlaps(one, two)
        assert found or not is_real, f"{one} | {two}"
        claimed, real = claimed + found, real + is_real
    return claimed, real


@in_every_world
def test_no_overlap_of_a_small_world_is_missed(world):
    claimed, real = check_overlaps(world, 400, seed=5)
    assert real > 50 and claimed < 400


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 14))
@in_every_world
def test_no_overlap_of_up_to_a_hundred_thousand_pairs_is_missed(world, seed):
    check_overlaps(world, so_many(6_250), seed)


@given(one=conditions, two=conditions, some_events=st.lists(events(), max_size=6))
@settings(max_examples=150)
def test_no_overlap_is_missed_whatever_the_filters(one, two, some_events):
    found = overlaps_by_predicates(one, two)
    exact = overlaps(one, two)
    assert found or not (exact.holds and exact.proven)
    assert found or not any(tamis.holds(one, event) and tamis.holds(two, event) for event in some_events)


intervals = st.builds(
    lambda name, low, width: Between(Attribute((name,)), Literal(low), Literal(low + width)),
    st.sampled_from("abcdefgh"), st.integers(0, 9), st.integers(0, 5),
)  # fmt: skip


@given(
    one=st.lists(
        st.lists(intervals, min_size=2, max_size=4, unique_by=lambda each: each.value), min_size=2, max_size=3
    ),
    two=st.lists(
        st.lists(intervals, min_size=2, max_size=4, unique_by=lambda each: each.value), min_size=2, max_size=3
    ),
)
def test_intervals_in_alternatives_that_can_be_true_are_decided_exactly(one, two):
    first, second = (Or(tuple(And(tuple(clause)) for clause in each)) for each in (one, two))
    assert (
        overlaps_by_predicates(first, second) is overlaps_by_predicates(second, first) is overlaps(first, second).holds
    )


@pytest.mark.parametrize("waiting", [0, 2, 1_000_000])
@given(filters=st.lists(conditions_over(predicates | intervals, max_leaves=6), max_size=6), query=conditions_over(predicates | intervals, max_leaves=6), data=st.data())  # fmt: skip
@settings(max_examples=30)
def test_the_index_answers_as_pairs_do_as_a_function_and_as_a_decision(waiting, filters, query, data):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tamis.relations.advertisements.index._MOST_WAITING", waiting - 1)
        index = OverlapIndex()
        for number, each in enumerate(filters):
            index.add(number, each)
        for _ in range(2):
            expected = [number for number in index if overlaps_by_predicates(query, index.expression(number))]
            assert index.overlapping(query) == expected
            assert index.overlaps_any(query) is bool(expected)
            if not len(index):
                break
            index.remove(data.draw(st.sampled_from(list(index))))


@in_every_world
def test_an_exact_index_equals_brute_force(world):
    chance = Random(7)
    index = OverlapIndex(world.schema, is_exact=True)
    filters = {number: world.filter(chance, chance.randint(1, 5)) for number in range(60)}
    for number, each in filters.items():
        index.add(number, each)
    for _ in range(15):
        query = world.filter(chance, chance.randint(1, 5))
        expected = [number for number, each in filters.items() if world.overlaps(query, each)]
        assert index.overlapping(query) == expected and index.overlaps_any(query) is bool(expected)


def test_candidates_are_those_with_enough_predicates_left_and_only_those_that_were_hit_are_evaluated():
    index = OverlapIndex()
    for number in range(20):
        index.add(number, f"price > {50 + number} OR sold")
    index.add("hit", "price < 10 OR bids = 0")
    index.add("out", "price < 10 AND bids = 0")
    assert index.overlapping("price > 20") == [*range(20), "hit"]
    assert (index.candidate_count, index.evaluated_count) == (21, 1)


def test_an_index_that_is_asked_and_changed_in_turn_stays_in_few_segments():
    chance = Random(3)
    index, here = OverlapIndex(), {}
    for number in range(600):
        low = chance.randrange(100)
        here[number] = f"x BETWEEN {low} AND {low + 5} AND y = {number % 3}"
        index.add(number, here[number])
        if number % 3 == 2:
            gone = chance.choice(list(here))
            del here[gone]
            index.remove(gone)
        if number % 20 == 7:
            query = f"x > {chance.randrange(100)} AND y <> 1"
            assert index.overlapping(query) == [key for key, text in here.items() if overlaps(query, text)]
    assert len(index._segments) <= 8


def test_too_many_alternatives_are_taken_as_one():
    wide = And(
        tuple(
            Or((Compare("=", Attribute((f"a{n}",)), Literal(0)), Compare("=", Attribute((f"a{n}",)), Literal(1))))
            for n in range(40)
        )
    )
    assert not overlaps_by_predicates(wide, "a7 = 2 AND b = 1") and overlaps_by_predicates(wide, "a7 = 1 OR b = 1")
    counted = tamis.at_least(20, *(tamis.attr("a") < n for n in range(40)))
    assert overlaps_by_predicates(counted, "a = 5 OR a = 100") and overlaps_by_predicates(counted, "a = 19")
    assert not overlaps_by_predicates(counted, "a = 25 AND b = 1") and not overlaps_by_predicates("a = 100", counted)


def test_what_is_never_true_overlaps_nothing():
    index = OverlapIndex()
    for key, text in enumerate(["FALSE", "a = NULL", "TRUE", "a = 1"]):
        index.add(key, text)
    index_module_waits = [index.overlapping(query) for query in ("TRUE", "FALSE", "a = 1", "a = NULL")]
    assert index_module_waits == [[2, 3], [], [2, 3], []]


def test_keys_are_known_once():
    index = OverlapIndex()
    index.add("k", "a = 1")
    with pytest.raises(DuplicateKeyError):
        index.add("k", "a = 1")
    for ask in (index.remove, index.expression):
        with pytest.raises(UnknownKeyError):
            ask("other")
    for wrong in (5, None, Literal(5)):
        with pytest.raises(NotAFilterError):
            index.add("wrong", wrong)
    assert "k" in index and len(index) == 1 and list(index) == ["k"]
