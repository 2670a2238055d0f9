"""What `Standing` promises beside the meaning: all kinds together, limits, memory, errors, nothing half-done."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import EventError, ExpressionSyntaxError, TypeMismatchError
from tamis.matching.errors import DuplicateIdError, UnknownIdError
from tamis.standing import Change, NaiveStanding, Sequence, Standing, changes
from tamis.standing.held import HeldLists
from tamis.topk import LateEventError, SettingError, TopK
from tests.standing.stories import play, stories


def test_it_hosts_every_kind_together_in_order_of_registration():
    processor = tamis.Standing()
    processor.add_many(
        {"ranked": "TOP 1 BY price OVER 1 HOUR", "change": tamis.Change("price > 30"), "boolean": tamis.attr("price") > 0,
         "sequence": tamis.Sequence(["price > 0", "price > 30"])}
    )  # fmt: skip
    assert [each.subscription for each in processor.process({"price": 10}, 0.0)] == ["ranked", "boolean"]
    assert [each.subscription for each in processor.process({"price": 31}, 1.0)] == ["change", "boolean", "sequence"]
    assert len(processor) == 4 and "ranked" in processor
    assert isinstance(processor.wanted("change"), Change) and isinstance(processor.ranked, TopK)
    for key in ("ranked", "change", "boolean", "sequence"):
        processor.remove(key)
    assert processor.process({"price": 31}, 2.0) == [] and len(processor) == 0


@pytest.mark.parametrize("processor", [Standing, NaiveStanding])
def test_an_event_that_comes_again_says_how_late_it_is(processor):
    standing = processor()
    standing.add("quiet", "SEQUENCE a < 2 THEN NOT a = 1 WITHIN 0.5 SECONDS")
    assert standing.process({"a": 0}, 0.0, "e1") == []
    assert [each.at for each in standing.process({}, 1.0, "e1")] == [0.5]
    assert standing.advance(1.0) == []


@pytest.mark.parametrize("is_withdrawn", [False, True])
def test_at_one_time_a_change_is_told_in_the_order_of_its_events(is_withdrawn):
    standing, one_by_one = Standing(), Standing()
    for each in (standing, one_by_one):
        each.add("s", "CHANGE OF a IS NULL")
    events, ids = [{}, {"a": 0}, {}, {"a": 1}], ["e1", "e2", "e3", "e4"]
    if is_withdrawn:  # then all are told one by one
        standing.process({"a": 1}, 0.0, "gone")
        standing.withdraw("gone", 0.0)
    told = standing.process_batch(events, 0.0, ids)
    assert [(each.events, each.change) for each in told] == [
        (("e1",), True), (("e2",), False), (("e3",), True), (("e4",), False)
    ]  # fmt: skip
    assert told == [
        each for event, key in zip(events, ids, strict=True) for each in one_by_one.process(event, 0.0, key)
    ]


def test_changes_that_turn_at_one_time_hide_no_others_that_forget():
    whole, one_by_one = Standing(), Standing()
    texts = {"forgets": "CHANGE TO a < 2 FORGET AFTER 1 SECOND", "turns": "CHANGE OF a < 2 UNTIL a IS NULL"}
    for each in (whole, one_by_one):
        each.add_many(texts)
    events = [{"a": 0}, {}]
    told = whole.process_batch(events, 0.0, ["e1", "e2"])
    assert [(each.subscription, each.events, each.change) for each in told] == [
        ("forgets", ("e1",), True), ("turns", ("e1",), True), ("turns", ("e2",), False)
    ]  # fmt: skip
    assert told == [
        each for key, event in zip(("e1", "e2"), events, strict=True) for each in one_by_one.process(event, 0.0, key)
    ]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=30),
    st.booleans(),
)
def test_its_ranked_part_tells_what_top_k_tells(prices, is_late):
    lateness = 1.0 if is_late else 0.0
    processor, alone = Standing(lateness=lateness), TopK("naive", lateness=lateness)
    for each in (processor, alone):
        each.add("r", "TOP 2 BY price OVER 2 SECONDS")
        each.add("c", "TOP 1 BY price DESC OVER 3 EVENTS WHERE price > 3")
    told, expected, now = [], [], 0.0
    for number, (price, gap) in enumerate(prices):
        now += gap
        at = now - (number % 2) * 0.5 if is_late else now
        told += processor.process({"price": price}, at, number)
        expected += alone.process({"price": price}, at, number)
    told += processor.advance(now + 10)
    expected += alone.advance(now + 10)
    assert sorted((each.subscription, each.events[0], each.at) for each in told) == sorted(map(tuple, expected))


@settings(max_examples=200, deadline=None)
@given(stories())
def test_exit_conditions_asked_all_at_once_say_what_they_say_one_by_one(story):
    before, changes.ASKED_ONE_BY_ONE = changes.ASKED_ONE_BY_ONE, 0
    try:
        assert play(Standing(retention=3), story) == play(NaiveStanding(retention=3), story)
    finally:
        changes.ASKED_ONE_BY_ONE = before


@given(st.dictionaries(st.integers(0, 5), st.sets(st.integers(0, 9), min_size=1), max_size=5), st.integers(0, 9))
def test_lists_of_groups_do_what_sets_do(groups, gone):
    lists = HeldLists()
    lists.restore({(group,): sorted(numbers) for group, numbers in groups.items()})
    lists.make_room(100)
    assert lists.drop(gone) == sum(gone in numbers for numbers in groups.values())
    left = {(group,): sorted(numbers - {gone}) for group, numbers in groups.items() if numbers - {gone}}
    assert dict(lists.items()) == left
    assert len(lists) == len(left)
    if left:
        assert lists.forget_oldest() > 0
        assert len(lists) == len(left) - 1


@pytest.mark.parametrize("value", [27, 28, 28.0, 28.5, math.nan, math.inf, None, "28", True, Decimal("27.9"), 2**60])
@pytest.mark.parametrize("until", ["", " UNTIL price < 28", " UNTIL price >= 28.00000000000000000001", " UNTIL b = 1"])
@pytest.mark.parametrize("condition", ["price > 30", "price > 30 OR b > 3", "g = 'x' AND NOT price <= 30"])
def test_a_change_ends_as_the_definition_says_whatever_the_value(condition, until, value):
    rows = [{"g": "x", "price": 31, "b": 2}, {"g": "x", "price": value}, {"g": "x", "price": value, "b": 1}]
    times = [0.0, 1.0, 2.0]
    for ending in (" PER g", " WHERE g = 'x'", " PER g WHERE g = 'x'", " WHERE g = 'x' AND b IS NOT NULL"):
        text = f"CHANGE OF {condition}{until}{ending}"
        fast, naive = Standing(), NaiveStanding()
        fast.add(1, text)
        naive.add(1, text)
        expected = [each for row, at in zip(rows, times, strict=True) for each in naive.process(row, at)]
        assert fast.process_batch(rows, times) == expected, text


def test_a_batch_forgets_the_groups_that_its_events_one_by_one_would():
    one, many = Standing(most_states=3), Standing(most_states=3)
    for processor in (one, many):
        processor.add_many({number: f"CHANGE OF a > {number} PER g" for number in range(3)})
        processor.add("f", "CHANGE OF a > 1 PER g FORGET AFTER 5 SECONDS")
    rows = [{"a": number * 7 % 5, "g": number % 4} for number in range(60)]
    singly = [each for at, row in enumerate(rows) for each in one.process(row, float(at))]
    assert many.process_batch(rows, [float(at) for at in range(60)]) == singly
    assert many.statistics() == one.statistics()
    assert one.statistics()["forgotten_states"] > 0


# -- State is bounded


def state(processor):
    names = ("sequence_states", "open_events", "alarms", "change_states")
    return {name: processor.statistics()[name] for name in names}


@pytest.mark.parametrize("taking", ["LATEST", "FIRST", "EVERY", "EACH ONCE"])
@pytest.mark.parametrize("last", ["b = 1", "b > x.b", "NOT b = 1"])
def test_no_state_is_left_when_the_time_has_passed(taking, last):
    processor = Standing()
    processor.add("s", f"SEQUENCE a = 1 AS x THEN a = 2 THEN {last} WITHIN 10 SECONDS PER g TAKING {taking}")
    for number in range(100):
        processor.process({"a": number % 3, "b": number % 5, "g": number % 7}, number / 10)
    assert state(processor)["sequence_states"] > 0
    processor.advance(10.1 + 10)
    assert state(processor) == dict.fromkeys(state(processor), 0)


def test_no_change_is_left_when_it_is_forgotten():
    processor = Standing()
    processor.add("s", "CHANGE TO a = 1 PER g FORGET AFTER 10 SECONDS")
    for number in range(100):
        processor.process({"a": 1, "g": number}, number / 10)
    assert state(processor)["change_states"] > 90
    processor.process({}, 21.0)
    assert state(processor)["change_states"] == 0


FLAT = {
    "latest": "SEQUENCE a = 1 THEN a = 2 WITHIN 5 SECONDS PER g",
    "every": "SEQUENCE a = 1 AS x THEN a = x.a WITHIN 1 SECOND",
    "absent": "SEQUENCE a = 1 THEN NOT a = 2 WITHIN 5 SECONDS PER g",
    "change": "CHANGE TO a = 1 PER g FORGET AFTER 5 SECONDS",
}


def take_many(processor, start):
    """Let a processor take the events of the next ten seconds, each of a group of its own."""
    numbers = range(start, start + 1_000)
    processor.process_batch(
        [{"a": number % 7, "g": number} for number in numbers], [number / 100 for number in numbers]
    )


def test_memory_is_flat_over_many_events():
    processor = Standing()
    processor.add_many(FLAT)
    sizes = []
    for start in range(0, 20_000, 1_000):
        take_many(processor, start)
        sizes.append(sum(state(processor).values()))
    assert max(sizes[2:]) <= 1.1 * sizes[2]
    assert len(processor._sequences._heap) < 3_000


@pytest.mark.slow
def test_memory_is_flat_over_a_million_events():
    processor = Standing(remember=10_000)
    processor.add_many(FLAT)
    sizes = []
    for start in range(0, 1_000_000, 1_000):
        take_many(processor, start)
        sizes.append(sum(state(processor).values()))
    assert max(sizes[2:]) <= 1.1 * sizes[2]
    assert len(processor._sequences._heap) < 3_000


def test_removed_sequences_leave_nothing_in_the_heap():
    processor = Standing(retention=math.inf)
    for number in range(5_000):
        processor.add(number, "SEQUENCE a = 1 THEN b = 1 WITHIN 52 WEEKS PER g")
        processor.process({"a": 1, "g": number}, number)
        processor.remove(number)
    assert len(processor._sequences._heap) <= 2_100


def test_what_does_not_fit_is_shed_and_counted_and_others_do_not_notice():
    processor = Standing(most_open=10)
    processor.add("greedy", "SEQUENCE a = 1 THEN b = 1 WITHIN 1 HOUR TAKING EVERY")
    processor.add("modest", "SEQUENCE a = 1 THEN b = 1 WITHIN 1 HOUR")
    processor.add("alarms", "SEQUENCE a = 1 THEN NOT c = 1 WITHIN 1 HOUR")
    for number in range(100):
        processor.process({"a": 1}, number, number)
    told = processor.process({"b": 1}, 100)
    assert [each.events[0] for each in told if each.subscription == "greedy"] == list(range(90, 100))
    assert [each.events for each in told if each.subscription == "modest"] == [(99, 100)]
    assert processor.overflows() == {"greedy": 90, "alarms": 90}
    assert len(processor.advance(1e6)) == 10


def test_so_many_changes_are_true_at_once_and_the_oldest_group_is_forgotten():
    processor = Standing(most_states=10)
    processor.add("s", "CHANGE TO a = 1 PER g")
    for number in range(100):
        assert len(processor.process({"a": 1, "g": number}, number)) == 1
    assert processor.statistics()["change_states"] == 10
    assert processor.statistics()["forgotten_states"] == 90
    assert processor.process({"a": 1, "g": 99}, 100) == []
    assert len(processor.process({"a": 1, "g": 0}, 100)) == 1


def test_repeated_events_are_counted():
    processor = Standing(remember=2)
    processor.add("s", "TRUE")
    assert [len(processor.process({}, 0.0, id)) for id in ("a", "a", "b", "c", "a")] == [1, 0, 1, 1, 1]
    assert processor.statistics()["repeated"] == 1


# -- Errors: typed, and nothing half-happens


def test_many_subscriptions_are_added_or_none():
    processor = Standing()
    with pytest.raises(ExpressionSyntaxError) as caught:
        processor.add_many({"good": "a = 1", "bad": "SEQUENCE a = 1"})
    assert "in the subscription 'bad'" in caught.value.__notes__
    assert len(processor) == 0 and processor.process({"a": 1}, 0.0) == []
    processor.add("one", "a = 1")
    with pytest.raises(DuplicateIdError):
        processor.add_many([("two", "a = 1"), ("one", "a = 1")])
    with pytest.raises(DuplicateIdError):
        processor.add_many([("two", "a = 1"), ("two", "CHANGE TO a = 1")])
    assert len(processor) == 1
    with pytest.raises(TypeMismatchError):
        processor.add("three", 5)
    with pytest.raises(UnknownIdError):
        processor.remove("nobody")
    with pytest.raises(UnknownIdError):
        processor.wanted("nobody")


def test_a_schema_is_asked_of_every_kind():
    processor = Standing(schema=tamis.Schema({"a": "int"}))
    for wanted in ("b = 1", "SEQUENCE a = 1 THEN b = 1", "CHANGE TO b = 1", "TOP 1 BY b OVER 1 HOUR",
                   Sequence(["a = 1", "b = 1"]), Change("b = 1"), tamis.parse("b = 1")):  # fmt: skip
        with pytest.raises(tamis.errors.UnknownAttributeError):
            processor.add("s", wanted)
    assert len(processor) == 0


@pytest.mark.parametrize(
    "options",
    [
        {"lateness": -1},
        {"lateness": math.nan},
        {"lateness": "1"},
        {"remember": 0},
        {"most_open": 1.5},
        {"most_states": True},
    ],
)
def test_bad_settings_are_refused(options):
    with pytest.raises(SettingError):
        Standing(**options)


def test_bad_events_are_refused_and_leave_no_trace():
    processor = Standing()
    processor.add("s", "SEQUENCE TRUE THEN TRUE")
    for call in (
        lambda: processor.process([1], 0.0), lambda: processor.process({}, math.inf), lambda: processor.process({}, "now"),
        lambda: processor.process({}, 0.0, None, math.nan), lambda: processor.process_batch([{}, {}], [0.0]),
        lambda: processor.process_batch([{}, {}], [1.0, 0.0]), lambda: processor.advance(math.nan),
    ):  # fmt: skip
        with pytest.raises((EventError, LateEventError)):
            call()
    assert processor.statistics()["events"] == 0
    processor.process({}, 5.0, "e")
    with pytest.raises(LateEventError):
        processor.process({}, 4.0, "f")
    assert processor.process({}, 5.0, "g")[0].events == ("e", "g")
