"""Hulls and clauses hold everything that a filter matches, and corners are matched."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.meaning import holds
from tamis.language.ranges.lines import first_value
from tamis.relations import identical
from tamis.relations.clauses import MOST_CLAUSES, clauses
from tamis.relations.forms import Context, context_of
from tamis.relations.formulas import all_of, any_of, within
from tamis.relations.samples import EventSample
from tamis.relations.witnesses import completed, plain_event, readable_value
from tests.relations.worlds import WORLDS
from tests.strategies import conditions, events


def box_formula(box):
    return all_of(within(axis, values) for axis, values in box.items())


@given(condition=conditions, some_events=st.lists(events(), min_size=1, max_size=6), most=st.sampled_from([1, 3, 16]))
@settings(max_examples=200)
def test_what_a_filter_matches_lies_in_its_hull_and_in_its_clauses(condition, some_events, most):
    form = Context(None).form(condition)
    sample = EventSample(some_events, None)
    matched = sample.matched(form.formula)
    boxes, is_exact = clauses(form.formula, form.context, most)
    assert len(boxes) <= max(most, 1)
    in_clauses = sample.matched(any_of(box_formula(box) for box in boxes))
    assert not (matched & ~sample.matched(box_formula(form.hull))).any()
    assert not (matched & ~in_clauses).any()
    if is_exact:
        assert (matched == in_clauses).all()


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_filters_that_match_the_same_have_the_same_projections(world):
    chance = Random(6)
    context = Context(world.schema)
    seen = 0
    for _ in range(200):
        one, two, three = (f"({world.filter(chance, chance.randint(1, 3))})" for _ in range(3))
        for wording, other in (
            (one, f"{one} OR {one} AND {two}"),
            (one, f"{one} AND ({one} OR {two})"),
            (f"{one} AND ({two} OR {three})", f"{one} AND {two} OR {one} AND {three}"),
            (f"{one} OR {two} AND {three}", f"({one} OR {two}) AND ({one} OR {three})"),
        ):
            first, second = (context.form(each).projections for each in (wording, other))
            if first is not None and second is not None:
                assert first == second, (wording, other)
                seen += 1
    assert seen > 50 or any(context.form(f"{path[0]} IS NULL").projections is None for path in world.paths)


@given(one=conditions, two=conditions)
@settings(max_examples=200)
def test_filters_of_other_projections_are_never_proven_identical(one, two):
    context = context_of(None)
    for first, second in ((one, two), (one, tamis.parse(f"({one}) OR ({one}) AND ({two})"))):
        projections = [context.form(each).projections for each in (first, second)]
        if identical(first, second) and None not in projections:
            assert projections[0] == projections[1]


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_a_filter_matches_its_corners_and_the_event_made_of_its_box(world):
    chance = Random(5)
    context = context_of(world.schema)
    seen = 0
    for _ in range(300):
        form = context.form(world.filter(chance, chance.randint(1, 4)))
        for corner in form.corners:
            chosen = {axis.term.path: first_value(cut, (), axis.line) for axis, cut in corner.items()}
            if world.schema is not None:  # an attribute that must be there and is not named has its least value
                for path in {path for path in world.paths if world.schema.is_mandatory(path)} - chosen.keys():
                    axis = context.axis(tamis.language.expressions.Attribute(path))
                    chosen[path] = first_value(axis.values[0], (), axis.line)
            assert holds(form.expression, completed(chosen, world.schema), world.schema), form.expression
            seen += 1
        if form.box is not None and form.is_plain and form.is_independent:
            assert holds(form.expression, plain_event(form.box, world.schema), world.schema)
    assert seen > 100 or world.schema is not None


def test_a_form_is_computed_once():
    context = Context(None)
    assert context.form("a = 1") is context.form("a = 1")
    assert context.form("a = 1").axes == context.form("a = 2").axes
    assert context_of(None) is context_of(None)
    one, two = tamis.Schema({"a": "int"}), tamis.Schema({"a": "int"})
    assert context_of(one) is context_of(one) is not context_of(two)


def test_many_schemas_and_many_filters_are_forgotten_and_found_again(monkeypatch):
    monkeypatch.setattr("tamis.relations.forms._MOST_FORMS", 3)
    monkeypatch.setattr("tamis.relations.translation._MOST_REMEMBERED", 3)
    context = Context(None)
    for number in range(20):
        assert context.form(f"a = {number}").box is not None
    for _ in range(40):
        assert context_of(tamis.Schema({"a": "int"})).form("a = 1").box is not None


def test_clauses_of_many_alternatives_are_one_box_around_them():
    context = Context(None)
    form = context.form(" OR ".join(f"(a = {number} AND b{number} = 1)" for number in range(MOST_CLAUSES + 1)))
    (box,), is_exact = form.clauses
    assert not is_exact and [str(axis.term) for axis in box] == ["a"]
    assert form.corners == []


def test_a_threshold_lies_in_the_clauses_of_enough_of_its_operands():
    form = Context(None).form("at_least(2, a = 1, b = 1, c = 1)")
    boxes, is_exact = form.clauses
    assert len(boxes) == 2 and not is_exact


def test_short_values_are_preferred():
    def value(text, schema=None):
        form = Context(schema).form(text)
        return readable_value(form.formula.values, form.formula.axis.line)

    schema = tamis.Schema({"d": "double", "s": "string", "t": "date"})
    assert [value("a > 5"), value("a < 5"), value("a > 2.25"), value("a > 'x'")] == [6, 4, 3, "xa"]
    assert value("a IS NULL OR a = 1") is None
    assert value("d > 0.5", schema) == 1.0 and isinstance(value("d > 0.5", schema), float)
    assert value("s <> ''", schema) == "a"
    assert value("t IS NOT NULL", schema).year == 2000


def test_a_sample_of_no_events_matches_nothing():
    form = Context(None).form("a < b OR at_least(2, a = 1, b = 1, c LIKE '%x')")
    assert EventSample([], None).matched(form.formula).tolist() == []
    assert np.array_equal(EventSample([{"a": 1, "b": 2}, {"b": 1}], None).matched(form.formula), [True, False])
