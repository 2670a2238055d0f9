"""A merger covers its members, always; a perfect one is covered by them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Compare, Literal, Or
from tamis.language.meaning import holds
from tamis.language.ranges.value_sets import union
from tamis.relations import Merger, MergingIndex, NoFiltersError, covers, covers_by_set, identical, merge, mergers
from tamis.relations.errors import DuplicateKeyError, UnknownKeyError
from tamis.relations.forms import context_of
from tamis.relations.imperfection import BySample
from tamis.relations.parts import Conjunct, part_of
from tamis.relations.samples import EventSample
from tests.relations.worlds import WORLDS
from tests.strategies import conditions, simple_predicates

SCHEMA = tamis.Schema(
    {"x": "int", "y": "int", "price": "double", "type": "string"},
    mandatory=["y"],
    hierarchy={"Quote": None, "StockQuote": "Quote", "BondQuote": "Quote"},
)
in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        # sets join
        (["x IN (2, 3)", "x IN (4, 5)"], "x IN (2, 3, 4, 5)"),
        (["x = 5 AND y IN (2, 3)", "x = 5 AND y IN (4, 5)"], "x = 5 AND y IN (2, 3, 4, 5)"),
        (["x = 1", "x = 2", "x = 3"], "x IN (1, 2, 3)"),
        # exclusions intersect
        (["x NOT IN (2, 3, 7)", "x NOT IN (3, 7, 9)"], "x NOT IN (3, 7)"),
        (["x <> 5", "x NOT IN (5, 6)"], "x <> 5"),
        # connected intervals grow together, others are listed
        (["x BETWEEN 2 AND 4", "x BETWEEN 3 AND 5"], "x BETWEEN 2 AND 5"),
        (["x < 4", "x < 7"], "x < 7"),
        (["x BETWEEN 1 AND 2", "x BETWEEN 5 AND 6"], "x BETWEEN 1 AND 2 OR x BETWEEN 5 AND 6"),
        # opposite rays leave a gap, or none
        (["x < 4", "x > 7"], "x NOT BETWEEN 4 AND 7"),
        (["x < 7", "x > 4"], "x <= double('NaN')"),
        # the same but for one attribute, twice over
        (["x = 1 AND y = 1", "x = 1 AND y = 2", "x = 2 AND y = 1", "x = 2 AND y = 2"], "x IN (1, 2) AND y IN (1, 2)"),
        # other conditions are equal, or factored out
        (["x = 1 AND t LIKE '%a%'", "x = 2 AND t LIKE '%a%'"], "x IN (1, 2) AND t LIKE '%a%'"),
        (["x = 1 AND (y = 2 OR z = 3)", "x = 1 AND (y = 2 OR z = 4)"], "x = 1 AND (y = 2 OR z = 3 OR z = 4)"),
        (["x = 1 AND y = 2", "x = 3 AND z = 4"], "x = 1 AND y = 2 OR x = 3 AND z = 4"),
        # what is covered is gone
        (["x = 1", "x = 1 AND y = 2", "FALSE"], "x = 1"),
        (["TRUE", "x = 1"], "TRUE"),
        (["x = 1"], "x = 1"),
        (["x = 1", "1 = x"], "x = 1"),
    ],
)
def test_perfect_mergers_by_constraint_class(filters, expected):
    merger = merge(filters)
    assert str(merger.expression) == expected
    assert merger == Merger(tamis.parse(expected), True, 0.0, tuple(range(len(filters)))) or merger.perfect


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (["x BETWEEN 2 AND 4", "x BETWEEN 5 AND 7"], "x BETWEEN 2 AND 7"),  # there is no integer between them
        (["x = 5", "x <> 5"], "x IS NOT NULL"),
        (["y = 5", "y <> 5"], "TRUE"),  # mandatory
        (["price > 1 AND y = 5", "price > 1 AND y <> 5"], "price > 1"),
        (["price > 1 AND x = 5", "price > 1 AND x <> 5"], "price > 1 AND x IS NOT NULL"),
        (["type = 'Quote'", "type IS A 'StockQuote'", "type = 'BondQuote'"], "type IS A 'Quote'"),
    ],
)
def test_a_schema_makes_mergers_simpler(filters, expected):
    merger = merge(filters, SCHEMA)
    assert str(merger.expression) == expected and merger.perfect and merger.imperfection == 0


@in_every_world
def test_perfect_mergers_are_identical_to_the_disjunction_of_their_members(world):
    chance = Random(21)
    for _ in range(60):
        make = world.conjunction if chance.random() < 0.7 else world.filter
        filters = [make(chance, chance.randint(1, 3)) for _ in range(chance.randint(1, 6))]
        together = np.logical_or.reduce([world.matched(each) for each in filters])
        merger = merge(filters, world.schema)
        assert merger.perfect and merger.imperfection == 0
        assert (world.matched(merger.expression) == together).all(), [*map(str, filters)]
        found = mergers(filters, world.schema)
        assert len(found) <= len(filters)
        assert sorted(member for each in found for member in each.members) == list(range(len(filters)))
        for each in found:
            mine = np.logical_or.reduce([world.matched(filters[member]) for member in each.members])
            assert each.perfect and (world.matched(each.expression) == mine).all()


@in_every_world
@pytest.mark.parametrize("budget", [0.2, 1.0])
def test_imperfect_mergers_cover_their_members_and_keep_within_the_budget(world, budget):
    chance = Random(22)
    events = [event for event in world.events if event is not None]
    for _ in range(12):
        filters = [world.conjunction(chance, chance.randint(1, 3)) for _ in range(chance.randint(2, 8))]
        found = mergers(filters, world.schema, budget=budget, events=chance.sample(events, min(400, len(events))))
        for each in found:
            mine = np.logical_or.reduce([world.matched(filters[member]) for member in each.members])
            matched = world.matched(each.expression)
            assert not (mine & ~matched).any()
            assert each.imperfection <= budget
            assert each.perfect is bool((mine == matched).all())
        assert sorted(member for each in found for member in each.members) == list(range(len(filters)))


@given(filters=st.lists(st.one_of(conditions, simple_predicates), min_size=1, max_size=4))
@settings(max_examples=80)
def test_mergers_of_anything_cover_all_of_it(filters):
    merger = merge(filters)
    assert merger.perfect
    for each in filters:
        assert covers(merger.expression, each) or not covers(merger.expression, each).proven
    assert identical(merger.expression, Or(tuple(filters)) if len(filters) > 1 else filters[0]).holds


GRID = [{"x": x, "y": y} for x in range(10) for y in range(10)]


def test_imperfection_is_the_share_of_the_sample_that_nobody_wants():
    filters = ["x <= 4 AND y <= 4", "x BETWEEN 5 AND 9 AND y BETWEEN 5 AND 9"]
    merger = merge(filters, budget=0.6, events=GRID)
    wanted = sum(any(holds(tamis.parse(text), event) for text in filters) for event in GRID)
    matched = sum(holds(merger.expression, event) for event in GRID)
    assert not merger.perfect and merger.imperfection == pytest.approx(1 - wanted / matched) == pytest.approx(0.5)
    assert merge(filters, budget=0.4, events=GRID).perfect  # then they stay apart


def test_the_closest_filters_merge_first():
    filters = ["x BETWEEN 0 AND 4 AND y = 1", "x BETWEEN 0 AND 5 AND y = 2", "x BETWEEN 7 AND 9 AND y = 9"]
    found = mergers(filters, budget=0.15, events=GRID)
    assert [each.members for each in found] == [(2,), (0, 1)]
    assert [each.perfect for each in found] == [True, False]


def test_gaps_are_closed_as_far_as_the_budget_allows():
    filters = [f"x BETWEEN {low} AND {low + 1} AND y = {low}" for low in (0, 3, 6)]
    merger = merge(filters, budget=0.9, events=GRID)
    assert str(merger.expression) == "x BETWEEN 0 AND 7 AND y IN (0, 3, 6)"  # a short list is short enough
    assert merger.imperfection <= 0.9


def test_without_a_sample_imperfection_is_guessed_and_with_an_estimator_it_is_asked_for():
    filters = ["x = 1 AND y = 1", "x = 2 AND y = 2"]
    guessed = merge(filters, budget=0.6)
    assert str(guessed.expression) == "x IN (1, 2) AND y IN (1, 2)" and 0.3 < guessed.imperfection < 0.6
    assert merge(filters, budget=0.2).perfect
    shares = {"x IN (1, 2) AND y IN (1, 2)": 0.4, "x = 1 AND y = 1 OR x = 2 AND y = 2": 0.3}
    asked = merge(filters, budget=0.6, share=lambda expression: shares[str(expression)])
    assert asked.imperfection == pytest.approx(0.25)
    assert merge(filters, budget=0.2, share=lambda expression: shares[str(expression)]).perfect
    assert merge(filters, budget=0.9, share=lambda _: 0.0).perfect  # nothing is known to be gained


def test_a_sample_that_shows_too_little_is_drawn_from():
    events = [{"x": 1, "y": 5}, {"x": 2, "y": 5}, {"x": 5, "y": 1}, {"x": 5, "y": 2}]
    merger = merge(["x = 1 AND y = 1", "x = 2 AND y = 2"], budget=0.9, events=events)
    assert 0.3 < merger.imperfection < 0.7
    general = merge(["x = 1 AND (y = 1 OR z = 1)", "x = 2 AND (y = 2 OR z = 2)"], budget=0.9, events=events)
    assert general.perfect  # what lies between them is not known, so they stay apart


def test_an_imperfect_merger_of_several_groups_is_measured_as_a_whole():
    filters = ["x <= 1 AND y <= 1", "x BETWEEN 2 AND 3 AND y BETWEEN 2 AND 3", "x = 9", "z = 9"]
    merger = merge(filters, budget=0.5, events=GRID * 2)
    assert not merger.perfect and 0 < merger.imperfection < 0.5
    unseen = merge(filters, budget=0.6, events=[])
    assert not unseen.perfect and unseen.imperfection == 1.0  # nothing to count on


def test_many_filters_merge_without_being_compared_pair_by_pair():
    filters = [f"x = {x} AND y BETWEEN {y} AND {y + 9}" for x in range(20) for y in range(0, 100, 10)]
    merger = merge(Random(1).sample(filters, len(filters)), tamis.Schema({"x": "int", "y": "int"}))
    assert str(merger.expression) == "x BETWEEN 0 AND 19 AND y BETWEEN 0 AND 99"
    assert merger.perfect
    some = [f"x BETWEEN {n} AND {n + 3} AND y = {n % 7} AND z = {n % 5}" for n in range(120)]
    found = mergers(some, budget=0.3, events=[{"x": n % 120, "y": n % 7, "z": n % 5} for n in range(4_000)])
    assert len(found) < 120
    for each in found:
        assert covers(each.expression, some[each.members[0]])
        assert each.perfect or not covers_by_set([some[member] for member in each.members], each.expression)


def test_nothing_cannot_be_merged():
    with pytest.raises(NoFiltersError, match="nothing to merge"):
        merge([])
    assert mergers([]) == []


def test_sets_without_a_wording_are_said_by_their_members():
    filters = ["NOT (a <=> 5)", "NOT (a <=> 6) AND b = 1"]
    assert merge(filters).perfect
    both = merge(["b = 1 AND NOT (a <=> 5)", "b = 2 AND NOT (a <=> 5)"])
    assert both.perfect and identical(both.expression, "b IN (1, 2) AND NOT (a <=> 5)")


# -- Candidates among many


@in_every_world
def test_candidates_for_merging_are_those_that_differ_in_one_set(world):
    chance = Random(23)
    index = MergingIndex(world.schema)
    filters = {number: world.conjunction(chance, chance.randint(1, 3)) for number in range(150)}
    for number, each in filters.items():
        index.add(number, each)
    for number in range(0, 150, 3):
        index.remove(number)
        del filters[number]
    assert list(index) == list(filters) and len(index) == 100
    context = context_of(world.schema)

    def differ_in_one(one, two):
        first, second = (part_of(context.form(each), 0) for each in (one, two))
        same = first.box.keys() == second.box.keys() and first.rest.keys() == second.rest.keys()
        return bool(first.box) and same and sum(first.box[axis] != second.box[axis] for axis in first.box) <= 1

    found_count = 0
    for _ in range(100):
        asked = world.conjunction(chance, chance.randint(1, 3))
        found = index.candidates(asked)
        assert sorted(found) == [number for number, each in filters.items() if differ_in_one(asked, each)]
        found_count += len(found)
    assert found_count > 20


def test_keys_of_a_merging_index_are_there_once_or_not_at_all():
    index = MergingIndex()
    index.add("one", "x = 1 AND y = 2")
    assert "one" in index and "two" not in index
    with pytest.raises(DuplicateKeyError, match="'one' already"):
        index.add("one", "x = 2")
    with pytest.raises(UnknownKeyError, match="no filter 'two'"):
        index.remove("two")
    assert index.expression("one") == tamis.parse("x = 1 AND y = 2")
    assert index.candidates(Compare("=", Attribute(("x",)), Literal(1))) == []
    index.remove("one")
    assert index._files == {}


@pytest.mark.parametrize("seed", range(20))
def test_what_is_computed_of_two_filters_is_what_drawing_comes_to(seed):
    chance = Random(seed)

    def some():
        low, high = sorted(chance.sample(range(10), 2))
        return f"x BETWEEN {low} AND {high} AND y IN ({chance.randrange(4)}, {chance.randrange(4)})"

    context = context_of(None)
    forms = [context.form(some()) for _ in range(2)]
    sample = EventSample(
        [{"x": chance.randrange(10), "y": chance.randrange(4)} for _ in range(chance.choice((0, 8)))], None
    )
    measure = BySample(forms, context, sample)
    box = {axis: union(forms[0].box[axis], forms[1].box[axis]) for axis in forms[0].box}
    computed = measure._drawn(Conjunct(box, {}, (0, 1)))
    drawn = np.mean([measure._drawn(Conjunct(box, {}, (0, 1, 1))) for _ in range(30)])
    assert computed == pytest.approx(drawn, abs=0.05)
