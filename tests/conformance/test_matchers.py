"""What every matching algorithm promises: the reference meaning, whatever is registered, removed and matched in between.

The suite finds the algorithms by itself, so a new one is tested the day it is registered. An algorithm may refuse an
expression, with the error that says so, but not many.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import DuplicateIdError, Matcher, UnknownIdError, UnsupportedExpressionError
from tamis.matching.algorithms import ALGORITHMS
from tests.strategies import conditions, conditions_over, events, simple_predicates

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)
subscription_lists = st.lists(st.one_of(conditions, conditions_over(simple_predicates)), max_size=12)
event_lists = st.lists(events(), max_size=8)
SCHEMA = tamis.Schema({"a": "string"}, hierarchy={"Quote": None, "StockQuote": "Quote", "Other": None})


def takes(algorithm, expression):
    refused = None
    try:
        ALGORITHMS[algorithm]().prepare([expression])
    except UnsupportedExpressionError as error:
        refused = error
    assert refused is None or (refused.algorithm == algorithm and refused.reason)
    return refused is None


def matching(algorithm, subscriptions):
    """Register all that the algorithm takes; return the matcher, and what is registered now."""
    matcher = Matcher(algorithm)
    registered = dict(enumerate(subscriptions))
    try:
        matcher.add_many(registered)
    except UnsupportedExpressionError:
        assert len(matcher) == 0, "all or nothing"
        registered = {number: each for number, each in registered.items() if takes(algorithm, each)}
        assert len(registered) < len(subscriptions)
        matcher.add_many(registered)
    return matcher, registered


def expected(registered, event):
    return [number for number, expression in registered.items() if tamis.holds(expression, event)]


@every_algorithm
def test_an_algorithm_takes_nearly_every_condition(algorithm):
    taken = Counter()

    @given(condition=conditions)
    def ask(condition):
        taken[takes(algorithm, condition)] += 1

    ask()
    assert taken[True] > 0.95 * taken.total()


@every_algorithm
@given(subscriptions=subscription_lists, event=events())
def test_a_single_event_matches_what_the_definition_matches(algorithm, subscriptions, event):
    matcher, registered = matching(algorithm, subscriptions)
    assert matcher.match(event) == expected(registered, event)


@every_algorithm
@given(subscriptions=subscription_lists, batch=event_lists, repeat=st.sampled_from([1, 8]))
def test_a_batch_matches_what_the_definition_matches(algorithm, subscriptions, batch, repeat):
    batch = batch * repeat  # so many that they are matched as a block
    matcher, registered = matching(algorithm, subscriptions)
    found = matcher.match_batch(batch).to_pydict()
    assert sorted(zip(found["event"], found["subscription"], strict=True)) == [
        (number, each) for number, event in enumerate(batch) for each in expected(registered, event)
    ]
    assert found["event"] == sorted(found["event"])


@every_algorithm
@given(data=st.data())
@settings(max_examples=60)
def test_any_interleaving_of_add_remove_and_match(algorithm, data):
    matcher = Matcher(algorithm)
    if algorithm == "block":
        matcher._engine.merge_always = data.draw(st.booleans(), label="merge at every step")
    registered: dict[int, tamis.Expression] = {}
    priorities: dict[int, int] = {}
    number = 0
    for _ in range(data.draw(st.integers(1, 12), label="steps")):
        step = data.draw(st.sampled_from(["add", "add", "remove", "match", "batch", "learn", "again"]), label="step")
        if step == "add":
            for expression in data.draw(st.lists(conditions, min_size=1, max_size=20), label="added"):
                priority = data.draw(st.integers(-1, 1), label="priority")
                if not takes(algorithm, expression):
                    with pytest.raises(UnsupportedExpressionError):
                        matcher.add(number, expression)
                    continue
                matcher.add(number, expression, priority=priority)
                registered[number], priorities[number] = expression, priority
                number += 1
        elif step == "remove" and registered:
            chosen = data.draw(st.sampled_from(sorted(registered)), label="removed")
            matcher.remove(chosen)
            del registered[chosen]
            with pytest.raises(UnknownIdError):
                matcher.remove(chosen)
        elif step == "again" and registered:
            with pytest.raises(DuplicateIdError):
                matcher.add(data.draw(st.sampled_from(sorted(registered))), "a = 1")
        elif step == "match":
            event = data.draw(events(), label="event")
            wanted = [key for key, expression in registered.items() if tamis.holds(expression, event)]
            assert matcher.match(event) == sorted(wanted, key=lambda key: (-priorities[key], key))
        else:
            batch = data.draw(event_lists, label="batch") * 6
            if step == "learn":
                matcher.learn(batch)
            found = matcher.match_batch(batch).to_pydict()
            assert sorted(zip(found["event"], found["subscription"], strict=True)) == [
                (index, key)
                for index, event in enumerate(batch)
                for key, expression in registered.items()
                if tamis.holds(expression, event)
            ]
        assert len(matcher) == len(registered)


@every_algorithm
def test_no_subscriptions_and_no_events(algorithm):
    matcher = Matcher(algorithm)
    assert matcher.match({"a": 1}) == []
    assert matcher.match_batch([{"a": 1}] * 100).num_rows == 0
    matcher.add("x", "a = 1")
    assert matcher.match_batch([]).num_rows == 0
    assert matcher.match_batch(pa.table({"a": pa.array([], pa.int64())})).num_rows == 0
    assert matcher.match_batch(pa.table({"b": [1, 2]})).num_rows == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@every_algorithm
@given(data=st.data())
@settings(max_examples=40)
def test_a_matcher_is_the_same_after_it_was_saved_and_loaded(algorithm, folder, data):
    named = str if data.draw(st.booleans(), label="ids are texts") else int
    matcher = Matcher(algorithm)
    registered: dict[str | int, tamis.Expression] = {}
    number = 0
    batch = data.draw(event_lists, label="batch") * 6
    for _ in range(data.draw(st.integers(1, 4), label="rounds")):
        for expression in data.draw(st.lists(st.one_of(conditions, simple_predicates), max_size=20), label="added"):
            if not takes(algorithm, expression):
                continue
            matcher.add(named(number), expression, priority=data.draw(st.integers(-1, 1)))
            registered[named(number)] = expression
            number += 1
        if registered and data.draw(st.booleans(), label="remove one"):
            chosen = data.draw(st.sampled_from(list(registered)), label="removed")
            matcher.remove(chosen)
            del registered[chosen]
        if data.draw(st.booleans(), label="match before"):
            matcher.match_batch(batch)
        if data.draw(st.booleans(), label="learn before"):
            matcher.learn(batch)
        before = matcher
        before.save(folder / "matcher")
        matcher = Matcher.load(folder / "matcher", recompile=data.draw(st.booleans(), label="recompile"))
        assert len(matcher) == len(registered)
        order = [("event", "ascending"), ("subscription", "ascending")]
        assert matcher.match_batch(batch).sort_by(order).equals(before.match_batch(batch).sort_by(order))
        for event in batch[: len(batch) // 6]:
            assert matcher.match(event) == before.match(event)
            assert set(matcher.match(event)) == {key for key, each in registered.items() if tamis.holds(each, event)}
        for key, expression in registered.items():
            assert matcher.expression(key) == expression
            assert matcher.explain(key, {"a": 1}) == before.explain(key, {"a": 1})


@every_algorithm
@given(subscriptions=subscription_lists, batch=event_lists, data=st.data())
@settings(max_examples=60)
def test_counts_lists_any_and_subsets_say_the_same_as_the_pairs(algorithm, subscriptions, batch, data):
    batch = batch * 6
    matcher, registered = matching(algorithm, subscriptions)
    among = data.draw(st.lists(st.sampled_from(list(registered)), unique=True)) if registered else []
    wanted = [expected(registered, event) for event in batch]
    assert matcher.count_batch(batch).to_pylist() == [len(each) for each in wanted]
    assert matcher.any_batch(batch).to_pylist() == [bool(each) for each in wanted]
    assert matcher.list_batch(batch).to_pylist() == wanted
    some = [[key for key in each if key in among] for each in wanted]
    assert matcher.list_batch(batch, among=among).to_pylist() == some
    if batch:
        assert matcher.match(batch[0], among=among) == some[0]
    with pytest.raises(UnknownIdError):
        matcher.match_batch(batch, among=["nobody"])
