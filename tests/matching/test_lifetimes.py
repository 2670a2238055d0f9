"""Subscriptions end by themselves (`until`): there before that time, and no longer at it."""

import math
import pickle

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Matcher
from tamis.matching.errors import BadTableError, LifetimeError, MatcherOptionError, UnknownIdError
from tamis.matching.uniting import united

ALGORITHMS = ("block", "naive", "atree")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_subscription_is_there_before_its_end_and_no_longer_at_it(algorithm):
    matcher = Matcher(algorithm)
    matcher.add("sale", "a > 0", until=60)
    matcher.add("always", "a > 0")
    assert matcher.next_end == 60.0
    assert matcher.advance(math.nextafter(60, 0)) == []
    assert matcher.match({"a": 1}) == ["sale", "always"]
    assert matcher.advance(60) == ["sale"]
    assert matcher.match({"a": 1}) == ["always"]
    assert matcher.match_batch([{"a": 1}] * 9)["subscription"].to_pylist() == ["always"] * 9
    assert matcher.next_end is None
    assert matcher.get("sale") is None


def test_ended_ones_are_told_in_the_order_of_their_ends_and_once():
    matcher = Matcher()
    for name, until in (("c", 3.0), ("a", 1.0), ("b", 2.0), ("d", 9.0)):
        matcher.add(name, "x > 0", until=until)
    assert matcher.advance(5) == ["a", "b", "c"]
    assert matcher.advance(5) == []
    assert matcher.ids() == ["d"]


@pytest.mark.parametrize("until", [math.nan, math.inf, -math.inf, True, "60", [1]])
def test_what_is_no_time_is_refused(until):
    matcher = Matcher()
    with pytest.raises(LifetimeError, match="finite number of seconds"):
        matcher.add("s", "a > 0", until=until)
    assert len(matcher) == 0
    with pytest.raises(MatcherOptionError, match="finite number of seconds"):
        matcher.advance(until)


def test_an_end_that_has_passed_is_refused_and_nothing_changes():
    matcher = Matcher()
    matcher.add("s", "a > 0", until=20)
    matcher.advance(10)
    for change in (
        lambda: matcher.add("t", "a > 0", until=10),
        lambda: matcher.upsert("s", "a > 5", until=9),
        lambda: matcher.update("s", until=10),
        lambda: matcher.replace("s", "a > 5", until=3),
    ):
        with pytest.raises(LifetimeError, match=r"has passed: it is 10\.0"):
            change()
    assert matcher.get("s").until == 20
    assert matcher.get("s").text == "a > 0"
    assert matcher.ids() == ["s"]
    matcher.update("s", until=math.nextafter(10, 11))
    assert pickle.loads(pickle.dumps(LifetimeError(3, 4.0))).now == 4.0


def test_time_does_not_go_back():
    matcher = Matcher()
    matcher.advance(10)
    assert matcher.advance(5) == []
    with pytest.raises(LifetimeError, match=r"it is 10\.0"):
        matcher.add("s", "a > 0", until=7)


def test_update_and_replace_keep_the_end_unless_they_say_another():
    matcher = Matcher()
    matcher.add("s", "a > 0", until=10)
    matcher.update("s", priority=3)
    assert matcher.get("s").until == 10
    matcher.replace("s", "a > 1")
    assert matcher.get("s").until == 10
    matcher.update("s", until=30)
    assert matcher.advance(10) == []
    matcher.update("s", until=None)
    assert matcher.next_end is None
    matcher.upsert("s", "a > 2", until=40)
    matcher.upsert("s", "a > 2")  # says all anew
    assert matcher.advance(1000) == []
    assert "s" in matcher


def test_a_removed_subscription_does_not_end_that_of_the_next_under_its_id():
    matcher = Matcher()
    matcher.add("s", "a > 0", until=10)
    matcher.remove("s")
    matcher.add("s", "a > 0")
    assert matcher.advance(10) == []
    assert "s" in matcher
    with pytest.raises(UnknownIdError):
        matcher.update("t", until=20)
    matcher.clear()
    assert matcher.next_end is None


def test_tables_and_mappings_have_a_column_of_ends_and_null_is_none():
    matcher = Matcher()
    matcher.add_many(pa.table({"id": [1, 2], "condition": ["a > 0"] * 2, "until": [5.0, None]}))
    matcher.add_many([{"id": 3, "condition": "a > 0", "until": 6}, {"id": 4, "condition": "a > 0"}])
    matcher.add_many(pa.table({"id": [5], "condition": ["a > 0"], "gone": [7]}), until="gone")
    assert [matcher.get(number).until for number in range(1, 6)] == [5.0, None, 6, None, 7]
    assert matcher.advance(6) == [1, 3]
    with pytest.raises(BadTableError, match=r"row 0 .*has passed"):
        matcher.add_many([{"id": 8, "condition": "a > 0", "until": 6}])
    with pytest.raises(BadTableError, match="names a column"):
        matcher.add_many([(8, "a > 0")], until="until")
    rejected = matcher.add_many(
        [{"id": 8, "condition": "a > 0", "until": "soon"}, {"id": 9, "condition": "a > 0", "until": 70}],
        on_error="skip",
    )
    assert [(each.id, each.error) for each in rejected] == [(8, "BadTableError")]
    assert matcher.get(9).until == 70


def test_ends_survive_files_pickles_and_uniting(tmp_path):
    matcher = Matcher()
    matcher.add_many([(number, f"a > {number}") for number in range(5)])
    matcher.add("s", "a > 0", until=10)
    matcher.add("t", "a > 0", until=20, priority=1)
    matcher.add("gone", "a > 0", until=30)
    matcher.remove("gone")
    matcher.advance(10)
    matcher.save(tmp_path / "saved")
    one = Matcher()
    one.add("t", "a > 0", until=20, priority=1)
    for other in (
        Matcher.load(tmp_path / "saved"),
        Matcher.load(tmp_path / "saved", recompile=True),
        pickle.loads(pickle.dumps(matcher)),
        united([Matcher(), one]),
    ):
        assert other.get("t").until == 20
        assert other.advance(20) == ["t"]
        assert other.next_end is None
    with pytest.raises(LifetimeError, match=r"it is 10\.0"):
        Matcher.load(tmp_path / "saved").add("u", "a > 0", until=9)


def test_ends_survive_new_handles():
    matcher = Matcher()
    matcher.add("last", "a > 0", until=50)
    matcher.add_many([(number, "a > 0") for number in range(3000)])
    matcher.remove_many(list(range(3000)))  # which renumbers the living
    assert matcher.get("last").until == 50
    assert matcher.advance(50) == ["last"]
    assert matcher.match({"a": 1}) == []


steps = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.integers(0, 4), st.none() | st.integers(0, 12)),
        st.tuples(st.just("update"), st.integers(0, 4), st.none() | st.integers(0, 12)),
        st.tuples(st.just("prioritise"), st.integers(0, 4), st.integers(-2, 2)),
        st.tuples(st.just("remove"), st.integers(0, 4), st.none()),
        st.tuples(st.just("advance"), st.integers(0, 12), st.none()),
    ),
    max_size=25,
)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(steps=steps)
@settings(max_examples=40, deadline=None)
def test_whatever_happens_those_are_there_whose_end_lies_ahead(algorithm, steps):
    matcher, ends, now = Matcher(algorithm), {}, -math.inf
    for kind, number, value in steps:
        is_past = kind in ("upsert", "update") and value is not None and value <= now
        if kind == "advance":
            now = max(now, number)
            expected = sorted((end, key) for key, end in ends.items() if end is not None and end <= now)
            ended = matcher.advance(number)
            assert [ends[key] for key in ended] == [end for end, _ in expected]
            assert sorted(ended) == sorted(key for _, key in expected)
            ends = {key: end for key, end in ends.items() if key not in ended}
        elif kind != "upsert" and number not in ends:
            continue
        elif is_past:
            with pytest.raises(LifetimeError):
                matcher.upsert(number, "a > 0", until=value) if kind == "upsert" else matcher.update(
                    number, until=value
                )
        elif kind == "remove":
            matcher.remove(number)
            del ends[number]
        elif kind == "prioritise":
            matcher.update(number, priority=value)
        else:
            matcher.upsert(number, "a > 0", until=value) if kind == "upsert" else matcher.update(number, until=value)
            ends[number] = value
        assert sorted(matcher.match({"a": 1})) == sorted(ends)
        assert {key: matcher.get(key).until for key in matcher} == ends
        assert matcher.next_end == min((end for end in ends.values() if end is not None), default=None)
