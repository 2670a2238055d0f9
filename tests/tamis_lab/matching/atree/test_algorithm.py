"""The A-Tree behind the matcher: what its thesis promises users, and what happens while others register."""

from __future__ import annotations

import gc
import itertools
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import EventError
from tamis.matching import Matcher
from tamis.matching.columns import Events
from tamis.workloads import Expressions
from tamis.workloads.expressions import AND_OR_XOR
from tamis_lab.matching.atree import algorithm as module
from tamis_lab.matching.atree.algorithm import ATree, ATreeGeneral, ATreeZero
from tamis_lab.matching.atree.graph import kernels
from tests.matching.histories import CONDITIONS, EVENTS, HOLDS, History
from tests.strategies import conditions, conditions_over, events, simple_predicates
from tests.tamis_lab.matching.atree.plain import check

every_filter = pytest.mark.parametrize("algorithm", ["atree", "atree-zero", "atree-general"])


# -- The thesis' examples, as people write them


@every_filter
def test_apartments(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many(
        {
            "S2": "(city = 'TOR' AND bedroom = 2) OR (city = 'YORK' AND bedroom = 3)",
            "S1": "type = 'APT' AND city = 'TOR' AND bedroom = 2",
            "S3": "city = 'TOR' AND bedroom = 2 AND rent <= 1500",
            "S4": "(city = 'TOR' AND rent <= 1500) OR city = 'YORK'",
        }
    )
    assert matcher.match({"bedroom": 2, "type": "APT", "city": "TOR", "rent": 1600}) == ["S2", "S1"]
    assert matcher.statistics()["levels"] == [6, 3, 4]


@every_filter
def test_constraint_expressions_hold_where_every_predicate_and_the_aggregate_do(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many(
        {
            "sum": "priceA >= 200 AND priceB >= 100 AND priceC >= 600 AND priceA + priceB + priceC <= 1000",
            "least": "least(a, b, c) > least(d, e, f, g)",
            "nested": "least(a, least(b, c)) > least(least(d, e), least(f, g))",
            "mean": "avg(a, b, c) >= 2.5",
            "difference": "priceC - priceA > 400",
            "quotient": "priceC / priceA > 2.5",
        }
    )
    prices = [(300, 170, 500), (300, 170, 630), (240, 120, 630)]
    named = [dict(zip(("priceA", "priceB", "priceC"), each, strict=True)) for each in prices]
    assert ["sum" in matcher.match(event) for event in named] == [False, False, True]
    letters = dict(zip("abcdefg", (2, 3, 4, 5, 1, 7, 8), strict=True))
    assert matcher.match(letters) == ["least", "nested", "mean"]
    assert matcher.match({key: value for key, value in letters.items() if key != "b"}) == ["least", "nested"]
    assert matcher.match({"priceA": 100, "priceC": 501}) == ["difference", "quotient"]
    assert matcher.match({"priceA": 100}) == [], "what is undefined makes the relation so"


@every_filter
def test_terms_that_many_constraints_share_are_one_axis(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many({limit: f"a + b <= {limit} AND c = {limit % 3}" for limit in range(300)})
    assert len({axis.key for level in matcher._engine.snapshot().view.levels for axis in level.axes}) == 2
    assert matcher.match({"a": 100, "b": 150, "c": 1}) == [limit for limit in range(250, 300) if limit % 3 == 1]


@every_filter
def test_partial_matches_take_any_k_of_n(algorithm):
    matcher = Matcher(algorithm)
    letters = "pqrstu"
    matcher.add_many({k: f"at_least({k}, {', '.join(f'{name} = 1' for name in letters)})" for k in range(1, 7)})
    for chosen in itertools.chain(*(itertools.combinations(letters, size) for size in range(7))):
        event = dict.fromkeys(letters, 0) | dict.fromkeys(chosen, 1)
        assert matcher.match(event) == list(range(1, len(chosen) + 1))


@every_filter
def test_the_urgent_ones_are_found_without_looking_at_the_others(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many([(f"low {n}", f"a > {n} AND b > {n}", 0) for n in range(50)])
    matcher.add_many([("high", "a > 10 AND b > 10", 9), ("middle", "a > 20", 2)])
    event = {"a": 30, "b": 30}
    engine = matcher._engine
    groups = matcher.match_in_order(event)
    assert next(groups) == ["high"]
    assert next(groups) == ["middle"]
    assert next(groups) == [f"low {n}" for n in range(30)]
    assert next(groups, None) is None
    assert [key for group in matcher.match_in_order(event) for key in group] == matcher.match(event)
    matcher.remove("high")
    assert next(matcher.match_in_order(event)) == ["middle"]
    assert len(engine._graph.tables.bands)


@every_filter
@given(subscriptions=st.lists(st.tuples(conditions, st.integers(-2, 100)), max_size=8), event=events())
@settings(max_examples=60)
def test_groups_by_priority_are_the_matches_in_order(algorithm, subscriptions, event):
    matcher = Matcher(algorithm)
    matcher.add_many([(number, each, priority) for number, (each, priority) in enumerate(subscriptions)])
    groups = list(matcher.match_in_order(event))
    assert [key for group in groups for key in group] == matcher.match(event)
    assert all(groups)
    among = [number for number in range(len(subscriptions)) if number % 2]
    asked = [key for group in matcher.match_in_order(event, among=among) for key in group]
    assert asked == matcher.match(event, among=among)


def test_priorities_survive_a_file(tmp_path):
    matcher = Matcher("atree")
    matcher.add_many([("a", "n > 1", 0), ("b", "n > 2", 7), ("c", "n > 3", 1), ("gone", "n > 0", 9)])
    matcher.remove("gone")
    matcher.save(tmp_path / "saved")
    assert list(Matcher.load(tmp_path / "saved").match_in_order({"n": 9})) == [["b"], ["c"], ["a"]]


def test_other_algorithms_yield_one_group_in_order():
    matcher = Matcher("naive")
    matcher.add_many([("a", "n > 1", 0), ("b", "n > 2", 7)])
    assert list(matcher.match_in_order({"n": 9})) == [["b", "a"]]
    assert list(matcher.match_in_order({"n": 0})) == []
    with pytest.raises(EventError):
        list(matcher.match_in_order("no event"))


# -- Expressions of the generator, all operators


@every_filter
@pytest.mark.parametrize("has_schema", [True, False])
def test_generated_expressions_with_xor_match_what_the_definition_matches(algorithm, has_schema):
    workload = Expressions(predicate_count=6, connectives=AND_OR_XOR, match_share=0.2, shared_nodes=0.4)
    subscriptions = workload.subscriptions(300, seed=1)
    events_table = workload.events(20, seed=2)
    matcher = Matcher(algorithm, workload.schema if has_schema else None)
    matcher.add_many(subscriptions)
    expressions = [tamis.parse(text) for text in subscriptions["condition"].to_pylist()]
    expected = [
        [number for number, each in enumerate(expressions) if tamis.holds(each, event)]
        for event in events_table.to_pylist()
    ]
    assert matcher.list_batch(events_table).to_pylist() == expected
    assert [matcher.match(event) for event in events_table.to_pylist()] == expected
    has_native = has_schema and algorithm != "atree"
    kinds = set(matcher._engine._graph.tables.inner[:, kernels.KIND].tolist())
    assert (kernels.XOR in kinds) is has_native
    if not has_native:
        assert len(matcher._engine._promises) == 0


# -- Predicates have one user: the graph


@given(data=st.data())
@settings(max_examples=60)
def test_predicates_live_as_long_as_their_leaves(data):
    engine = data.draw(st.sampled_from([ATree, ATreeZero, ATreeGeneral]))()
    present: set[int] = set()
    handle = 0
    for _ in range(data.draw(st.integers(1, 6))):
        if present and data.draw(st.booleans()):
            gone = data.draw(st.lists(st.sampled_from(sorted(present)), unique=True))
            engine.remove_many(gone)
            present -= set(gone)
            engine.snapshot()
        else:
            new = data.draw(st.lists(conditions_over(simple_predicates), max_size=5))
            engine.add(range(handle, handle + len(new)), engine.prepare(new))
            present |= set(range(handle, handle + len(new)))
            handle += len(new)
        check(engine._graph, dict.fromkeys(present))
        used = np.flatnonzero(engine._graph.tables.leaf_books[:, kernels.USES] > 0).tolist()
        assert len(engine._predicates) == len(used)
        assert all(engine._predicates.users(number) == 1 for number in used)
    engine.remove_many(sorted(present))
    engine.snapshot()
    assert len(engine._predicates) == engine._graph.leaf_count == 0
    assert not engine._trusting and not engine._leaving


# -- Snapshots


def seen_by(snapshot):
    numbers, handles = snapshot.match_events(Events(EVENTS))
    batch = [sorted(handles[numbers == index].tolist()) for index in range(len(EVENTS))]
    assert batch == [sorted(snapshot.match_event(event).tolist()) for event in EVENTS]
    return batch


@every_filter
def test_a_snapshot_stays_what_it_was(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many(dict(enumerate(CONDITIONS)))
    snapshot = matcher._engine.snapshot()
    expected = [[number for number, is_true in enumerate(holds) if is_true] for holds in HOLDS]
    assert seen_by(snapshot) == expected
    matcher.add_many({f"new {number}": text for number, text in enumerate(CONDITIONS * 3)})
    assert seen_by(snapshot) == expected
    matcher.remove_many(range(0, len(CONDITIONS), 2))
    matcher.add_many({f"newer {number}": text for number, text in enumerate(CONDITIONS)})
    assert seen_by(snapshot) == expected
    assert matcher.statistics()["leaving"] == len(range(0, len(CONDITIONS), 2)), "they stay while somebody sees them"
    assert seen_by(matcher._engine.snapshot()) != expected
    del snapshot
    gc.collect()
    matcher.match(EVENTS[0])
    assert matcher.statistics()["leaving"] == 0


def test_removed_subscriptions_do_not_pile_up():
    matcher = Matcher("atree")
    matcher.add_many({number: f"a = {number}" for number in range(3_000)})
    for number in range(2_900):
        matcher.remove(number)
    assert matcher.statistics()["leaving"] < module._REMOVED
    assert matcher.statistics()["leaves"] < 3_000 - 1_024
    assert matcher.match({"a": 2_950}) == [2_950]
    assert matcher.statistics()["leaves"] == 100


@every_filter
def test_every_match_sees_the_set_of_one_moment(algorithm, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_INSERTED", 3)  # readers come in between
    monkeypatch.setattr(module, "_EVENTS", 2)
    monkeypatch.setattr(module, "_BLOCK", 64)
    monkeypatch.setattr(module, "_REMOVED", 4)
    warm = Matcher(algorithm)
    warm.add_many(dict(enumerate(CONDITIONS)))
    warm.match(EVENTS[0])
    warm.match_batch(EVENTS * 5)
    list(warm.match_in_order(EVENTS[0]))
    matcher = Matcher(algorithm)
    history = History(matcher, tmp_path)
    seen = history.run([history.one_event, history.by_priority, history.a_batch, history.a_file], 200)
    assert len(seen) > 50
    present = history.check(seen)
    check(matcher._engine._graph, dict.fromkeys(matcher._register.handles[each] for each in present))


def test_threads_find_what_one_thread_finds(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 50)
    matcher = Matcher("atree")
    matcher.add_many({number: CONDITIONS[number % len(CONDITIONS)] for number in range(300)})
    batch = [Random(1).choice(EVENTS) for _ in range(777)]
    assert matcher.match_batch(batch, threads=3).equals(matcher.match_batch(batch))


def test_what_is_registered_can_be_told_in_numbers():
    matcher = Matcher("atree")
    matcher.add_many({1: "a = 1 AND b = 2", 2: "b = 2 AND a = 1", 3: "TRUE"})
    told = matcher.statistics()
    assert told["leaves"] == 2
    assert told["inner_nodes"] == 2
    assert told["edges"] == 2
    assert told["levels"] == [3, 1]
    assert told["standing"] == 1
    assert matcher.memory() > sum(told["payload_bytes"].values()) > 0


def test_the_filters_with_queues_take_more_memory_than_the_one_without():
    sizes = {}
    for algorithm in ("atree", "atree-zero", "atree-general"):
        matcher = Matcher(algorithm)
        matcher.add_many({number: f"a = {number} AND b > {number % 7}" for number in range(500)})
        sizes[algorithm] = matcher.statistics()["payload_bytes"]
    assert sizes["atree-zero"] == sizes["atree-general"]
    assert sizes["atree"]["states and queues"] < sizes["atree-zero"]["states and queues"]
    del sizes["atree"]["states and queues"], sizes["atree-zero"]["states and queues"]
    assert sizes["atree"] == sizes["atree-zero"]
