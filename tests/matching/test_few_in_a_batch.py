"""Is a batch of a few events what so many single matches are? Mappings that are matched without further ado."""

import datetime as dt
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Matcher
from tamis.matching.matcher import MATCHED_SINGLY

RULES = {
    1: "price < 20", 2: "price >= 5 AND name = 'a'", 3: "name IS NULL", 4: "NOT (price < 20 OR is_new)",
    5: "at.x > 2", 6: "name LIKE '%é%'", 7: "price <=> NULL", 8: "made > TIMESTAMP '2020-01-01 00:00:00'",
}  # fmt: skip
values = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 30), st.sampled_from([2**63, -(2**70), 10**40]), st.floats(),
    st.sampled_from(["", "a", "é", "\ud800", "\x00"]), st.just(b"bytes"), st.just(Decimal("7.5")),
    st.just(dt.datetime(2024, 1, 1)), st.just([1, "a"]), st.just({"x": math.nan}),
)  # fmt: skip
events = st.dictionaries(
    st.sampled_from(["price", "name", "is_new", "made", "at"]), st.one_of(values, st.just({"x": 3})), max_size=5
)


def answers(table, count):
    found = [[] for _ in range(count)]
    for event, each in zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True):
        found[event].append(each)
    return found


@pytest.mark.parametrize("ids", ["numbers", "texts", "both"])
@given(batch=st.lists(events, max_size=MATCHED_SINGLY + 2), open_count=st.integers(0, 3))
def test_a_batch_of_a_few_mappings_answers_as_single_matches_do(ids, batch, open_count):
    names = {number: number if ids == "numbers" or (ids == "both" and number % 2) else f"r{number}" for number in RULES}
    matcher = Matcher()
    rules = list(RULES.items())
    matcher.add_many([(names[number], text, number % 3) for number, text in rules[open_count:]])
    matcher.compile()
    matcher.add_many([(names[number], text, number % 3) for number, text in rules[:open_count]])
    expected = [set(matcher.match(event)) for event in batch]
    few = matcher.match_batch(batch)
    assert list(map(set, answers(few, len(batch)))) == expected
    assert few.num_rows == sum(map(len, expected))
    general = matcher.match_batch(tuple(batch))  # which takes the way of every batch
    assert list(map(set, answers(general, len(batch)))) == expected
    assert few.schema.names == general.schema.names
    chosen = [names[1], names[4]]
    among = matcher.match_batch(batch, among=chosen)
    assert list(map(set, answers(among, len(batch)))) == [each & set(chosen) for each in expected]
    assert few["event"].to_pylist() == sorted(few["event"].to_pylist())


def test_a_batch_of_a_few_is_counted_among_the_events_that_were_seen():
    matcher = Matcher()
    matcher.add("cheap", "price < 20")
    matcher.match_batch([{"price": 1}, {"price": 30}])
    assert matcher.statistics()["events"] == 2
    assert matcher.unmet() == []


def test_a_few_events_with_many_matches_and_twins_answer_as_single_matches_do():
    matcher = Matcher()
    matcher.add_many([(number, f"a > {number % 700} OR b = {number % 5}") for number in range(4_000)])
    matcher.remove_many(range(0, 4_000, 3))  # some twins are gone
    matcher.compile()
    batch = [{"a": 699}, {"b": 3}, {}, {"a": 5, "b": 5}, {"a": None, "b": 0}]
    expected = [matcher.match(event) for event in batch]
    assert len(expected[0]) > 1_024, "more than there is room for at first"
    assert answers(matcher.match_batch(batch), len(batch)) == expected
    asked = range(1, 400)
    among = [identity for identity in asked if identity in matcher]
    assert answers(matcher.match_batch(batch, among=among), len(batch)) == [
        matcher.match(event, among=among) for event in batch
    ]
