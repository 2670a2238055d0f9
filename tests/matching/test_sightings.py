"""Rules that can never match what comes are told: attributes that no event had, and comparisons with another type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher, Unmet
from tamis.matching.algorithms import ALGORITHMS

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
VALUES = {
    "number": [1, 2.5, Decimal("1.5")],
    "string": ["x", ""],
    "boolean": [True, False],
    "time": [dt.date(2026, 1, 31), dt.datetime(2026, 1, 31, 12)],
}
RULES = {
    "number": "{name} > 5",
    "string": "{name} = 'abc'",
    "boolean": "{name} = TRUE",
    "time": "{name} < DATE '2026-01-01'",
}
ways = pytest.mark.parametrize("way", ["one by one", "rows", "table"])


def shown(matcher, events, way):
    if way == "one by one":
        for event in events:
            matcher.match(event)
    else:
        matcher.match_batch(events if way == "rows" else pa.Table.from_pylist(events))


@every_algorithm
@ways
def test_attributes_that_no_event_had_and_comparisons_with_another_type_are_told(algorithm, way):
    matcher = Matcher(algorithm)
    matcher.add_many(
        {
            1: "prize < 20",
            2: "price < 20 AND title LIKE '%house%'",
            3: "position.x > 1 OR position.y > 1",
            4: "deleted IS NULL",
            5: "lower(author) = 'x'",
            6: "nothing > 3",
        }
    )
    assert matcher.unmet() == [], "there was no event yet"
    events = [
        {"price": "12", "title": 5, "position": {"x": 1}, "author": "y", "nothing": None},
        {"price": "7", "title": 6, "position": {"x": 2}, "author": "z", "nothing": None},
    ]
    shown(matcher, events, way)
    assert matcher.unmet() == [
        Unmet("nothing"),
        Unmet("position.y"),
        Unmet("price", "number", ("string",)),
        Unmet("prize"),
        Unmet("title", "string", ("number",)),
    ]
    told = matcher.statistics()
    assert told["events"] == 2
    assert told["unmet"][2] == "price is compared with numbers, and events had only texts"
    shown(matcher, [{"price": 3, "prize": 1, "title": "x", "position": {"y": 1}, "nothing": 1}], way)
    assert matcher.unmet() == []


@every_algorithm
def test_removed_rules_are_not_told_of(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many(dict.fromkeys(range(30), "a > 1"))
    matcher.add("wrong", "b > 1")
    matcher.match_batch([{"a": 5}] * 40)
    assert matcher.unmet() == [Unmet("b")]
    matcher.remove("wrong")
    assert matcher.unmet() == []
    matcher.add("new", "c > 1")
    assert matcher.unmet() == [Unmet("c")]


@ways
@given(
    kinds=st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3),
    asked=st.sampled_from(list(RULES)),
    data=st.data(),
)
@settings(max_examples=40)
def test_a_comparison_is_told_exactly_if_no_value_had_its_kind(way, kinds, asked, data):
    if way == "table":
        kinds = kinds[:1]
    events = [{"v": data.draw(st.sampled_from(VALUES[kind]))} for kind in kinds] + [{}]
    matcher = Matcher()
    matcher.add(1, RULES[asked].format(name="v"))
    shown(matcher, events, way)
    expected = [] if asked in kinds else [Unmet("v", asked, tuple(sorted(set(kinds))))]
    assert matcher.unmet() == expected


@every_algorithm
@ways
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("array_contains(tags, 'rare')", [Unmet("tags", "array", ("string",))]),
        ("NOT array_contains(tags, 'rare')", [Unmet("tags", "array", ("string",))]),
        ("array_contains(tags, word)", [Unmet("tags", "array", ("string",)), Unmet("word")]),
        ("arrays_overlap(tags, array('rare', word))", [Unmet("tags", "array", ("string",)), Unmet("word")]),
        ("arrays_overlap(list, tags)", [Unmet("tags", "array", ("string",))]),
        ("array_contains(list, 'rare') AND arrays_overlap(list, array('new'))", []),
    ],
)
def test_an_attribute_that_is_searched_as_an_array_is_told_if_events_had_something_else(algorithm, way, text, expected):
    matcher = Matcher(algorithm)
    matcher.add(1, text)
    shown(matcher, [{"tags": "rare", "list": ["rare"]}, {"tags": "new", "list": []}], way)
    assert matcher.unmet() == expected


def test_what_is_told_never_matched():
    """The property that matters: a rule of one comparison that is told of matched no event."""
    matcher = Matcher()
    values = [1, 2.5, "a", True, None, dt.date(2026, 1, 1), [1], {"x": 1}, Decimal(3)]
    texts = ["v = 1", "v = 'a'", "v = TRUE", "v >= DATE '2025-01-01'", "v.x = 1", "w = 1", "array_contains(v, 1)"]
    for value in values:
        for text in texts:
            matcher.clear()
            matcher = Matcher()
            matcher.add(1, text)
            is_matched = matcher.match({"v": value}) == [1]
            assert is_matched == tamis.holds(tamis.parse(text), {"v": value})
            assert not (is_matched and matcher.unmet()), (value, text)


def test_events_of_ever_new_shapes_and_columns_of_one_name_are_looked_at():
    matcher = Matcher()
    matcher.add(1, "last = 1 AND n1999 = 1")
    for number in range(2000):
        matcher.match({f"n{number}": 1})
    assert matcher.unmet() == [Unmet("last")]
    matcher.match_batch(pa.Table.from_arrays([pa.array(["x"]), pa.array([1])], ["last", "last"]))
    assert matcher.unmet() == [Unmet("last", "number", ("string",))]


def test_chunks_dictionaries_and_null_records_of_arrow():
    matcher = Matcher()
    matcher.add_many({1: "s = 'x'", 2: "p.x > 1", 3: "p.y > 1", 4: "array_contains(l, 1)"})
    records = pa.array([None, {"x": 1, "y": None}], pa.struct({"x": pa.int64(), "y": pa.int64()}))
    table = pa.table(
        {
            "s": pa.chunked_array(
                [pa.array([None], pa.string()).dictionary_encode(), pa.array(["x"]).dictionary_encode()]
            ),
            "p": records,
            "l": pa.array([None, [1]], pa.large_list(pa.int64())),
        }
    )
    matcher.match_batch(table)
    assert matcher.unmet() == [Unmet("p.y")]


def test_of_events_that_long_looked_alike_a_new_shape_is_seen_soon_and_another_length_at_once():
    matcher = Matcher()
    matcher.add_many({1: "late = 1", 2: "price > 'a'", 3: "title = 'x'"})
    for number in range(2000):
        matcher.match({"price": number, "title": "t"})
    assert matcher.unmet() == [Unmet("late"), Unmet("price", "string", ("number",))]
    matcher.match({"price": 1, "title": "t", "late": 1})
    assert matcher.unmet() == [Unmet("price", "string", ("number",))], "it is longer than the one before"
    for number in range(2000):
        matcher.match({"price": number, "title": "t"})
    for _ in range(16):
        matcher.match({"price": "b", "title": "t"})
    assert matcher.unmet() == [], "one of them had its turn"
    assert matcher.statistics()["events"] == 4017
