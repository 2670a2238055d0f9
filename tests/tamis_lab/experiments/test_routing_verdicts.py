"""The verdicts on networks are computed: other measurements, other verdicts."""

from __future__ import annotations

from collections import Counter

import pytest

from tamis.relations.advertisements import OverlapIndex
from tamis_lab.experiments import DisagreementError
from tamis_lab.experiments.base import Judgement
from tamis_lab.experiments.routing import (
    advertised,
    brokers,
    covered_then_pruned,
    covering,
    growing,
    measures,
    overlap,
    pruned_either_side,
    similarity,
    simulated,
)
from tamis_lab.experiments.routing import conjunctive as conjunctions
from tamis_lab.experiments.routing.covered_tables import Covered
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import FINE
from tamis_lab.experiments.routing.sizes import SIZES
from tamis_lab.experiments.routing.traffic import auctions
from tests.tamis_lab.experiments.scales import TINY, claim_of, quiet


def verdict(result, key):
    return claim_of(result.claims, key).verdict


@pytest.mark.parametrize(
    ("slow", "expected"), [(0.47, Judgement.AGREES), (1.0, Judgement.SAME), (1.4, Judgement.TURNED)]
)
def test_pruning_wins_or_loses_by_the_clock(monkeypatch, slow, expected):
    monkeypatch.setattr(
        measures, "network_s", lambda name, pruning, share, line, scale: 1.0 if share in (0.0,) else slow
    )
    monkeypatch.setattr(measures, "central_s", lambda name, pruning, share, scale: (1.0, 0.5))
    result = measures.run(TINY, 1, quiet)
    best = Judgement.SAME if slow > 1 else expected
    assert verdict(result, "best-time (accuracy)") is best
    assert verdict(result, "occurrence-time-after-all") is (expected if slow != 0.47 else Judgement.AGREES)


def test_all_measures_begin_with_one_time_the_best_of_several(monkeypatch):
    drifting = iter([1.34, 1.21, 1.11, 1.12, 1.3])  # one system, measured once for each curve
    monkeypatch.setattr(
        measures, "network_s", lambda name, pruning, share, line, scale: 0.5 if share else next(drifting)
    )
    monkeypatch.setattr(measures, "central_s", lambda name, pruning, share, scale: (1.0, 0.5))
    rows = [row for row in measures.run(TINY, 1, quiet).rows if "ms" in row]
    firsts = [row["ms"] for row in rows if row["share of prunings"] == 0]
    assert firsts == [1110.0] * len(measures.TIMED) and next(drifting, None) is None
    assert [row["measure"] for row in rows if row["share of prunings"] == 0] == list(measures.TIMED)


def clocked(monkeypatch, module, slow, fast=1.0):
    """Let some module's brokers take one time before pruning with Boolean filtering, and another in all other cases."""

    def taken(name, pruning, share, *given, **options):
        return slow if name == "boolean" and share == 0 and options.get("has_shortcut", True) else fast

    monkeypatch.setattr(module, "network_s", taken)


@pytest.mark.parametrize(
    ("slow", "expected"), [(0.75, Judgement.AGREES), (1.0, Judgement.SAME), (2.0, Judgement.TURNED)]
)
def test_boolean_filtering_or_counting_wins_by_the_clock(monkeypatch, slow, expected):
    clocked(monkeypatch, conjunctions, slow)
    result = conjunctions.run(TINY, 1, quiet)
    assert verdict(result, "time-unpruned") is expected
    clocked(monkeypatch, growing, slow)
    monkeypatch.setattr(growing, "central_s", lambda name, *given: (1.0, 0.5))
    result = growing.run(TINY, 1, quiet)
    assert verdict(result, "time-unpruned") is expected
    best = {0.75: Judgement.SAME, 1.0: Judgement.SAME, 2.0: Judgement.AGREES}[
        slow
    ]  # nothing is faster than not to prune
    assert verdict(result, "best-time (100,000)") is best


def test_larger_networks_gain_or_lose_by_the_clock(monkeypatch):
    clocked(monkeypatch, brokers, 2.0)
    result = brokers.run(TINY, 1, quiet)
    assert verdict(result, "best-time (star, 10)") is Judgement.AGREES
    assert verdict(result, "longer-after-all (star)") is Judgement.SAME
    monkeypatch.setattr(
        brokers, "network_s", lambda name, pruning, share, overlay, *given, **options: 1 + share * overlay.count
    )
    result = brokers.run(TINY, 1, quiet)
    assert verdict(result, "best-time (star, 10)") is Judgement.SAME
    assert verdict(result, "longer-with-more-brokers") is Judgement.AGREES


@pytest.mark.parametrize(("covered_s", "expected"), [(0.1, 0.0), (9.0, 1.0)])
def test_covering_or_pruning_wins_by_the_clock(monkeypatch, covered_s, expected):
    clocked(monkeypatch, covering, 2.0)
    monkeypatch.setattr(Covered, "network_s", lambda self, name, share, scale: covered_s * (1 + share))
    result = covering.run(TINY, 1, quiet)
    claim = claim_of(result.claims, "time-crossing")
    assert claim.verdict is Judgement.DIFFERS and float(claim.ours) == expected
    assert verdict(result, "pruned-time") is Judgement.AGREES
    wins = verdict(result, "pruning-beats-covering")
    assert wins is (Judgement.AGREES if expected else Judgement.TURNED)


@pytest.mark.parametrize(("factor", "expected"), [(0.5, Judgement.AGREES), (2.0, Judgement.TURNED)])
def test_pruning_after_covering_gains_or_loses_by_the_clock(monkeypatch, factor, expected):
    monkeypatch.setattr(Covered, "network_s", lambda self, name, share, scale: factor if share else 1.0)
    assert verdict(covered_then_pruned.run(TINY, 1, quiet), "faster-still") is expected


@pytest.mark.parametrize(
    ("any_s", "expected"), [(0.2, Judgement.AGREES), (1.0, Judgement.SAME), (3.0, Judgement.TURNED)]
)
def test_to_know_whether_any_is_faster_by_the_clock(monkeypatch, any_s, expected):
    def taken(ask, queries, passes):
        return any_s if ask.__name__ == "overlaps_any" else 1.0

    monkeypatch.setattr(overlap, "asked_s", taken)
    assert verdict(overlap.run(TINY, 1, quiet), "boolean-any-to-all") is expected


def test_pruned_advertisements_are_compared_faster_or_not_by_the_clock(monkeypatch):
    times = iter([1.0, 1.0, 0.9, 0.8, 0.8, 0.5])  # all and any, after each share of the prunings
    monkeypatch.setattr(advertised, "asked_s", lambda *given: next(times))
    result = advertised.run(TINY, 1, quiet)
    assert verdict(result, "time-of-all") is Judgement.AGREES
    assert verdict(result, "time-of-any-falls") is Judgement.AGREES
    monkeypatch.setattr(advertised, "asked_s", lambda *given: 1.0)
    result = pruned_either_side.run(TINY, 1, quiet)
    assert verdict(result, "all-subscriptions-pruned") is Judgement.SAME


@pytest.mark.parametrize(
    ("power", "expected"), [(1.0, Judgement.AGREES), (0.5, Judgement.DIRECTION), (0.0, Judgement.SAME)]
)
def test_time_grows_linearly_only_if_it_grows_in_proportion(monkeypatch, power, expected):
    def taken(ask, queries, passes):
        return len(ask.__self__.index) ** power

    monkeypatch.setattr(overlap, "asked_s", taken)
    result = overlap.run(TINY, 1, quiet)
    assert verdict(result, "time-grows (boolean, all)") is verdict(result, "time-grows (conjunctive, all)") is expected


def counted(rows, **others):
    """Return rows of the similarity experiment: messages of each strategy, in all settings."""
    row = {"entries": 1, "cancel messages": 0, "filters and keys in a cancellation": 1, "event messages": 1,
           "delivered": 1, **others}  # fmt: skip
    return [
        {"shares": shares, "strategy": strategy, **row, "subscribe messages": rows.get((strategy, shares), 10)}
        for shares in similarity.SHARE_COUNTS
        for strategy in similarity.STRATEGIES
    ]


@pytest.mark.parametrize(
    ("fewer", "expected"),
    [((3,), Judgement.TURNED), ((3, 10, 30), Judgement.DIRECTION), (similarity.SHARE_COUNTS, Judgement.AGREES)],
)
def test_merging_sends_fewer_messages_only_if_it_does_in_all_settings(fewer, expected):
    rows = counted({("merging", shares): 7 for shares in fewer})
    claim = claim_of(similarity._claims(rows, 1), "merging-fewer-messages")
    assert claim.verdict is expected
    assert all(f"with {shares} shares" in claim.ours for shares in similarity.SHARE_COUNTS), "all settings are told"


class Curve:
    """Stands for prunings of which only the load matters, over what is gone."""

    def __init__(self, load):
        self.load = load
        self.traffic = auctions(SIZES["tiny"], seed=1, count=30)

    def loads_over(self, line, gone):
        return [self.load(each) for each in gone]

    def rise(self, line):
        return 0.0  # a bend that means nothing

    def reduction(self, share):
        return share

    def rise_remark(self, line, published):
        return "It rises all along."


@pytest.mark.parametrize(("slope", "expected"), [(2.0, Judgement.AGREES), (0.5, Judgement.TURNED)])
def test_which_load_rises_earlier_is_seen_on_the_curves_not_by_their_bends(slope, expected):
    row = {"table gone": 0.8, "ms": 1.0, "load": 0.1}
    rows = [{**row, "filtering": name, "share of prunings": share, "bytes": bytes_ * (2 - share)}
            for name, bytes_ in (("boolean", 90), ("counting", 130)) for share in (0.0, 1.0)]  # fmt: skip
    curves = {"boolean": Curve(lambda gone: 0.1 + 0.1 * gone), "counting": Curve(lambda gone: 0.1 + 0.1 * slope * gone)}
    claims = conjunctions._claims(rows, curves, LabOverlay("line", 5))
    claim = claim_of(claims, "load-rises-earlier")
    assert claim.verdict is expected


def grown(counts, boolean, shortcut=0.9):
    row = {"boolean, one broker": 0.7, "counting, one broker": 1.0, "counting": 1.0, "best, pruned": 0.5 * boolean,
           "all pruned": 0.6 * boolean, "load": 0.09, "load, best, pruned": 0.1, "load, all pruned": 0.12,
           "table gone": 0.85, "table gone where the load rises": 0.75, "matching filters": 2.0, "conjunctions": 9,
           "boolean": boolean, "boolean, without the shortcut": boolean / shortcut}  # fmt: skip
    return [{"subscriptions": count, **row} for count in counts]


def grown_claims(rows):
    curves = {row["subscriptions"]: Curve(lambda gone: 0.1) for row in rows}
    return growing._claims(rows, curves, LabOverlay("line", 5))


def test_what_was_published_for_a_number_is_compared_at_that_number():
    claims = grown_claims(grown((100_000, 200_000, 500_000), 0.85))
    for number, keys in (
        ("100,000", ("best-time (100,000)", "time-after-all", "load-unpruned", "load-after-all")),
        ("200,000", ("best-time (200,000)",)),
        ("500,000", ("time-unpruned",)),
    ):
        assert all(claim_of(claims, key).ours.endswith(f", at {number}") for key in keys), number
    slightly = claim_of(claims, "gains-more-with-more")
    assert slightly.ours.endswith("at 200,000 and 100,000")


@pytest.mark.parametrize(("boolean", "expected"), [(0.85, Judgement.AGREES), (1.5, Judgement.PREMISE)])
def test_who_does_not_lead_does_not_lead_by_less(boolean, expected):
    claim = claim_of(grown_claims(grown((100, 200), boolean)), "leads-by-less")
    assert claim.verdict is expected
    assert ("does not lead" in claim.remark) is (expected is Judgement.PREMISE)


def test_a_shortcut_that_saves_nothing_does_not_save_more_and_more():
    claims = grown_claims(grown((100, 200), 0.85, shortcut=1.1))
    claim = claim_of(claims, "shortcut-saves-more")
    assert claim.verdict is Judgement.PREMISE


def test_events_that_are_added_are_counted_without_those_before():
    loads = [0.05 + 0.05 * share for share in FINE]
    found = measures.PruningCourse(loads, list(FINE), 0.75)
    assert found.added(0.5) == pytest.approx(0.5) and found.added(0.0) == 0


def test_an_index_that_contradicts_itself_stops_the_lab(monkeypatch):
    monkeypatch.setattr(OverlapIndex, "overlaps_any", lambda self, given: False)
    with pytest.raises(DisagreementError):
        overlap.run(TINY, 1, quiet)


def test_a_strategy_that_loses_events_stops_the_lab(monkeypatch):
    monkeypatch.setattr(simulated, "published", lambda *given: Counter())
    with pytest.raises(DisagreementError, match="one matcher that knows everything"):
        similarity.run(TINY, 1, quiet)
