"""What is open is asked by its values, and every view sees the set of its moment, however old it is."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher
from tamis.matching.block import algorithm
from tamis.matching.block.open_part import OpenPart, keys_of

TEXTS = [
    "a = 1",
    "a = 9007199254740992",
    "a = 9007199254740993",
    "a = 7 AND b = 'x'",
    "b = 'x' AND c > 2",
    "b = 'ü' OR a IN (1, 2, 3)",
    "(b = 'x' OR c = 5) AND a > 0",
    "b IN ('x', 'y') OR c > 5",
    "a IN (1, NULL)",
    "NOT a = 1",
    "a <=> NULL",
    "a = TRUE",
    "a = 1.0",
    "b LIKE 'x%' AND a = 1",
    "1 = a",
    "p.x = 1",
    "TRUE",
    "a = 1 AND FALSE",
    "at_least(2, a = 1, b = 'x', c = 5)",
]
VALUES = [
    None, 0, 1, 7, 2, -0.0, 1.0, 7.0, True, False, "x", "y", "ü", "\ud800", "", "1", Decimal(1), Decimal("1.0"),
    Decimal("1." + "0" * 45 + "1"), 2**53, 2**53 + 1, float(2**53), float("nan"), float("inf"), 2**70,
    [1], {"x": 1}, b"x", dt.date(2026, 1, 1), object(),
]  # fmt: skip
events = st.fixed_dictionaries({}, optional={name: st.sampled_from(VALUES) for name in "abcp"})


class OddText(str):
    """Neither hashed nor compared as its text is."""

    __slots__ = ()

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return self is other


def expected(present, event):
    return [handle for handle, text in present.items() if tamis.holds(tamis.parse(text), event)]


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.sampled_from(TEXTS)),
            st.tuples(st.just("remove"), st.integers(0, 30)),
            st.tuples(st.just("view"), st.none()),
            st.tuples(st.just("rebuild"), st.integers(0, 30)),
        ),
        max_size=30,
    ),
    batch=st.lists(events, min_size=1, max_size=4),
)
@settings(max_examples=150, deadline=None)
def test_every_view_sees_the_set_of_its_moment_whatever_came_later(steps, batch):
    part, present, views, handle = OpenPart(None), {}, [], 0
    for step, given_ in steps:
        if step == "add":
            part.add(handle, tamis.parse(given_))
            present[handle] = given_
            handle += 1
        elif step == "remove" and present:
            gone = list(present)[given_ % len(present)]
            assert part.remove(gone)
            assert not part.remove(gone)
            del present[gone]
        elif step == "rebuild":
            leaving = [each for each in present if each <= given_]
            part = part.without(leaving)
            present = {each: text for each, text in present.items() if each > given_}
        else:
            views.append((part.view(), dict(present)))
    views.append((part.view(), present))
    assert len(part) == len(present)
    for view, then in views:
        assert len(view) == len(then)
        assert [entry.handle for entry in view.entries()] == list(then)
        for event in batch:
            assert view.matches(event) == expected(then, event)


@pytest.mark.parametrize("text", TEXTS)
def test_an_event_that_matches_has_a_value_of_every_key(text):
    part = OpenPart(None)
    part.add(0, tamis.parse(text))
    for name in "abc":
        for value in [*VALUES, OddText("x")]:
            for other in ({}, {"a": 1, "b": "x", "c": 5}):
                event = {**other, name: value}
                assert part.view().matches(event) == expected({0: text}, event), event


def test_few_are_asked_where_events_have_other_values():
    part = OpenPart(None)
    for number in range(300):
        part.add(number, tamis.parse(f"c > 0 AND (title = 't{number}' OR author = 'a{number}') AND kind = 'book'"))
    assert part.view().matches({"title": "t5", "author": "a5", "kind": "book", "c": 1}) == [5]
    assert part.asked_count < 20
    assert not part.unkeyed


def test_who_asks_for_several_values_lies_where_the_fewest_lie():
    part = OpenPart(None)
    for number in range(100):
        part.add(number, tamis.parse(f"kind = 'book' AND number = {number}"))
    part.view().matches({"kind": "book", "number": 3})
    assert part.asked_count <= 2


def test_a_disjunction_has_a_key_where_each_of_its_operands_has_one():
    assert keys_of(tamis.parse("a = 1 OR b > 2")) == []
    assert keys_of(tamis.parse("a = 1 OR b = 2")) == [(("a", (1,)), ("b", (2,)))]
    many = " OR ".join(f"a = {number}" for number in range(17))
    assert keys_of(tamis.parse(many)) == []


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["add", "add", "add", "remove", "replace", "match", "hold", "settle", "batch", "clear"]),
            st.integers(0, 1000),
        ),
        max_size=60,
    ),
    batch=st.lists(events, min_size=1, max_size=3),
    is_small=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_snapshots_that_are_held_stay_as_they_were_through_flushes_merges_and_renumberings(steps, batch, is_small):
    with pytest.MonkeyPatch.context() as patch:
        if is_small:
            patch.setattr(algorithm, "_MOST_OPEN", 3)
            patch.setattr(algorithm, "_MOST_ASKED", 2)
            patch.setattr("tamis.matching.register._FREE_PLACES_KEPT", 4)
        matcher, present, held, number = Matcher(), {}, [], 0
        for step, choice in steps:
            text = TEXTS[choice % len(TEXTS)]
            chosen = list(present)[choice % len(present)] if present else None
            if step == "add":
                matcher.add(number, text)
                present[number] = text
                number += 1
            elif step == "remove" and present:
                matcher.remove(chosen)
                del present[chosen]
            elif step == "replace" and present:
                matcher.replace(chosen, text)
                del present[chosen]
                present[chosen] = text
            elif step == "hold":
                snapshot, register, _ = matcher._snapshot(None)
                held.append((snapshot, register, dict(present)))
            elif step == "settle":
                matcher._engine.settle()
            elif step == "batch":
                found = matcher.match_batch([{"a": 1, "b": "x"}, {"a": 7}])
                assert found.num_rows == sum(len(expected(present, each)) for each in ({"a": 1, "b": "x"}, {"a": 7}))
            elif step == "clear" and choice % 10 == 0:
                matcher.clear()
                present = {}
            else:
                assert matcher.match(batch[0]) == expected(present, batch[0])
        for event in batch:
            assert matcher.match(event) == expected(present, event)
            for snapshot, register, then in held:
                assert sorted(register.names(snapshot.match_event(event))) == sorted(expected(then, event))
        matcher._engine.settle()
        assert matcher.match(batch[0]) == expected(present, batch[0])
