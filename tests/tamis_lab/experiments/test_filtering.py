"""The experiments run at any size, and their verdicts are those of the measurements."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

from tamis.workloads import AND_OR_XOR
from tamis.workloads.expression_trees import shared_shares
from tamis_lab.experiments.base import Judgement, Result
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering import (
    EXPERIMENTS,
    auction_classes,
    auction_memory,
    auction_time,
    conjunctive_load,
    operators,
    turning_points,
)
from tamis_lab.experiments.filtering.subjects import (
    A_TREES,
    BOOLEAN,
    BOOLEAN_SHUFFLED,
    COUNTING,
    COUNTING_SHUFFLED,
    GENERAL,
    PATHS,
    ZERO,
)
from tamis_lab.experiments.measuring import Field
from tamis_lab.matching.boolean.algorithm import Boolean
from tests.tamis_lab.experiments.scales import TINY, assert_agreed, assert_all_judged, assert_told, claim_of, quiet

pytestmark = pytest.mark.xdist_group("lab filtering")  # so that one process runs the experiments, once

EXACT = {
    "turning points": ("published-turning-point", "counting-below-cluster"),
    "auction memory": ("bytes (class 1)", "bytes (class 2)", "bytes (class 3)", "bytes (all three)"),
    "auction classes": ("conjunctions", "candidates"),
    "conjunctive load": ("general-memory-alike",),
    "published structures": ("general-memory-alike (any number)", "general-memory-alike (two)"),
    "operators": ("touches", "general-memory-alike (AND, OR)", "general-memory-alike (AND, OR, XOR)"),
    "overlap": ("shared-nodes",),
    "normal forms": ("eight-conjunctions", "doubles"),
    "composite events": ("within",),
    "persistence": ("same-subscribers",),
    "priorities": ("in-order", "parts-in-order"),
}
"""What is counted, not timed: it comes out as published at every size."""


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    return {experiment.key: experiment.run(TINY, 1, quiet) for experiment in EXPERIMENTS}


def test_every_experiment_runs_draws_and_judges(results):
    assert_told(results, without_claims=("shares of time",))


def test_every_published_statement_is_judged(results):
    assert_all_judged("filtering", results)


@pytest.mark.parametrize("key", EXACT)
def test_what_is_counted_comes_out_as_published_at_every_size(results, key):
    assert_agreed(results[key], EXACT[key])


def test_where_the_time_goes_is_said_of_every_algorithm(results):
    rows = results["shares of time"].rows
    assert {row["algorithm"] for row in rows} >= {"counting", "cluster", "boolean", "gryphon", *A_TREES, "block"}
    assert len(rows) == 16
    assert all(row["busiest"] for row in rows)


def test_the_published_tree_has_more_nodes_and_as_printed_the_most(results):
    equal, ranges = results["published structures"].rows
    for row in (equal, ranges):
        assert row["nodes atree"] < row["nodes atree-published"] <= row["nodes atree-published, as printed"]
        assert row["parents read atree-published, as printed"] > 0 == row["parents read atree-published"]


def test_variants_of_trees_have_a_row_each(results):
    rows = {row["variant"]: row for row in results["tree variants"].rows}
    assert len(rows) == 6
    assert rows["semantic least hits"]["candidates"] <= rows["as published"]["candidates"]
    assert rows["a grove for each type"]["candidates"] < rows["one grove"]["candidates"]


def test_a_node_with_one_event_misses_runs_once_a_least_time_lies_in_between(results):
    rows = results["composite events"].rows
    assert all(row["runs of the node"] <= row["runs of the automaton"] for row in rows)
    assert rows[-1]["runs of the node"] < rows[-1]["runs of the automaton"]
    assert all(row["runs of both"] == row["runs of the node"] > 0 for row in rows[:2])


def test_changes_save_notifications_on_every_load(results):
    rows = results["persistence"].rows
    assert {row["load"] for row in rows} >= {"prices"}
    assert all(row["notified of changes"] <= row["notified of events"] for row in rows)
    assert all(0 < row["notified of changes"] < row["notified of events"] for row in rows if row["events"] > 8)


def test_the_questions_are_asked_once():
    keys = [experiment.key for experiment in EXPERIMENTS]
    assert len(set(keys)) == len(keys)
    assert all(experiment.question.endswith("?") for experiment in EXPERIMENTS)


# -- Verdicts are computed: other measurements, other verdicts


def with_times(monkeypatch, times):
    """Let the clock show what we like."""

    def shown(self, events, scale, tell, among=None):
        return {name: times.get(name, 1.0) for name in (self.subjects if among is None else among)}

    monkeypatch.setattr(Field, "event_s", shown)


@pytest.mark.parametrize(
    ("boolean_s", "verdict"),
    [
        (0.73, Judgement.AGREES),
        (0.3, Judgement.DIRECTION),
        (0.1, Judgement.DIFFERS),
        (1.0, Judgement.SAME),
        (1.4, Judgement.TURNED),
    ],
)
def test_boolean_filtering_wins_or_loses_by_the_clock(monkeypatch, boolean_s, verdict):
    with_times(monkeypatch, {BOOLEAN: boolean_s, BOOLEAN_SHUFFLED: boolean_s, COUNTING: 1.0, COUNTING_SHUFFLED: 1.0})
    ascending, shuffled, *_ = auction_time.run(TINY, 1, quiet).claims
    assert ascending.verdict is shuffled.verdict is verdict
    assert ("caches" in ascending.remark) is (verdict is not Judgement.AGREES)


def test_the_crossing_of_class_2_is_where_the_clock_says(monkeypatch):
    def row(count, boolean_ms):
        return {"subscriptions": count, BOOLEAN: boolean_ms, COUNTING: 1.0}

    published = auction_classes._crossing([row(10_000, 1.2), row(50_000, 1.1), row(100_000, 0.9), row(200_000, 0.8)])
    assert published.verdict is Judgement.AGREES
    assert published.ours.startswith("Boolean filtering leads at 100,000")
    never = auction_classes._crossing([row(10_000, 1.2), row(100_000, 1.1), row(200_000, 1.4)])
    assert never.verdict is Judgement.TURNED
    assert never.ours.startswith("counting leads up to 200,000")
    always = auction_classes._crossing([row(10_000, 0.9), row(100_000, 0.9)])
    assert always.ours.startswith("Boolean filtering leads from the first")


@pytest.mark.parametrize(
    ("paths_s", "verdict"), [(0.5, Judgement.AGREES), (1.0, Judgement.SAME), (2.0, Judgement.TURNED)]
)
def test_true_value_paths_win_or_lose_by_the_clock(results, paths_s, verdict):
    rows = [row | {PATHS: 1 / paths_s, ZERO: 1.0, GENERAL: 1 / 1.2} for row in results["operators"].rows]
    by_load = {load: [row for row in rows if row["operators"] == load] for load in operators.LOADS}
    own = [row for row in rows if row["operators"] not in operators.LOADS]
    claims = operators._claims(by_load, own)
    assert claims[0].verdict is verdict
    assert claims[2].verdict is Judgement.AGREES


def test_a_structure_of_another_size_is_noticed(monkeypatch):
    from tamis_lab.experiments.measuring import Subject

    plain = Subject.payload
    monkeypatch.setattr(Subject, "payload", lambda self: plain(self) * (2 if self.name == BOOLEAN else 1))
    claims = turning_points.run(TINY, 1, quiet).claims
    assert claim_of(claims, "formulas").verdict is Judgement.DIFFERS


def test_memory_is_judged_by_what_was_allocated(monkeypatch, results):
    plain = Boolean.memory
    monkeypatch.setattr(Boolean, "memory", lambda self: 3 * plain(self))
    assert Judgement.AGREES not in {claim.verdict for claim in auction_memory.run(TINY, 1, quiet).claims}
    claims = turning_points.run(TINY, 1, quiet).claims
    assert claim_of(claims, "boolean-beyond-turning-point").verdict is Judgement.TURNED
    assert claim_of(claims, "formulas") == claim_of(results["turning points"].claims, "formulas")


def test_where_memory_and_formulas_differ_boolean_filtering_takes_less(results):
    rows = [row for row in results["turning points"].rows if abs(row["turning point"] - row["alternatives"]) > 0.01]
    by_formula = [row["alternatives"] > row["turning point"] for row in rows]
    allocated = [turning_points.is_boolean_smaller(row) for row in rows]
    assert by_formula != allocated
    assert all(is_smaller for is_smaller, was_expected in zip(allocated, by_formula, strict=True) if was_expected)


@pytest.mark.parametrize(("length", "count"), [(4, 120), (6, 120), (8, 450)])
def test_as_many_inner_nodes_are_shared_as_published(length, count):
    workload = conjunctive_load.load(length, count, seed=1)
    least, most = conjunctive_load.SHARED
    assert least <= shared_shares(workload.trees(count, 1))[1] <= most


def test_every_row_of_the_conjunctive_load_says_which_sharing_was_reached(results):
    least, most = conjunctive_load.SHARED
    for row in results["conjunctive load"].rows:
        assert 0 < row["shared inner nodes"] < row["shared nodes"] < 1
        assert row["sharing measured among"] == row["subscriptions"]
        if row["subscriptions"] == TINY.expression_counts[-1]:
            assert least <= row["shared inner nodes"] <= most


def test_class_3_is_judged_with_few_signed_books_and_shown_with_many(results):
    result = results["auction classes"]
    lasts = {row["class"]: row for row in result.rows}
    assert lasts.keys() == {*auction_classes.CLASSES, auction_classes.CAPTIONED}
    assert "with signed books as captioned" in claim_of(result.claims, "time (class 3)").ours
    assert "captioned" not in claim_of(result.claims, "time (class 2)").ours
    signed = [
        pc.equal(books(is_as_captioned=is_so).events(5_000, seed=1)["special_attribute"], "Signed")
        for is_so in (False, True)
    ]
    assert [pc.mean(each).as_py() for each in signed] == pytest.approx([0.018, 0.155], abs=0.02)


def rates(count: int, **times: float) -> dict:
    return {"subscriptions": count} | {f"events {name}": rate for name, rate in times.items()}


def test_gryphon_passes_counting_beyond_half_a_million_or_the_run_cannot_say_it():
    few = [rates(100_000, counting=9.0, gryphon=1.0, atree=1.0)]
    many = [
        *few,
        rates(800_000, counting=2.0, gryphon=3.0, atree=0.1),
        rates(1_000_000, counting=1, gryphon=2, atree=0.8),
    ]
    assert [claim.verdict for claim in conjunctive_load._crossing_claims(few)] == 2 * [Judgement.UNMEASURED]
    passed, level = conjunctive_load._crossing_claims(many)
    assert passed.verdict is level.verdict is Judgement.AGREES
    assert passed.ours.endswith("1.50 at 800,000, 2.00 at 1,000,000") and level.ours.endswith("0.80 at 1,000,000")
    behind = [rates(1_000_000, counting=3, gryphon=2, atree=1)]
    assert {claim.verdict for claim in conjunctive_load._crossing_claims(behind)} == {Judgement.TURNED}


@pytest.mark.parametrize("length", [6, 14])
def test_the_mixed_load_is_measured_with_the_shares_it_was_published_with(length, results):
    workload = operators._load(AND_OR_XOR, length, operators.OWN_MATCHES, operators.OWN_SHARING)
    achieved = workload.achieved(1_000, 100, seed=1)
    assert 0.15 <= achieved.shared_nodes <= 0.20 and 0.15 <= achieved.match_share <= 0.25
    rows = {row["operators"]: row for row in results["operators"].rows}
    assert rows[operators.MIXED]["shared nodes"] < rows["AND, OR, XOR"]["shared nodes"]
    assert rows[operators.CONJUNCTIVE]["match share"] < 0.02 < rows[operators.MIXED]["match share"]


def test_brute_force_keeps_what_it_is_asked_and_takes_a_time_for_each(results):
    rows = [row for row in results["brute force"].rows if "length" in row]
    assert [row["length"] for row in rows] == [6, 10, 14]
    assert all(row["bytes of half"] < row["bytes of all"] <= 2.2 * row["bytes of half"] for row in rows)
