"""The experiments on ranked subscriptions run at any size, and their verdicts are those of the measurements."""

from __future__ import annotations

import numpy as np
import pytest

from tamis_lab.experiments import DisagreementError
from tamis_lab.experiments.base import SCALES, Judgement
from tamis_lab.experiments.topk import EXPERIMENTS, errors_made, limits, messages, playing, thresholds, times, volume
from tamis_lab.experiments.topk.points import datasets
from tamis_lab.experiments.topk.sizes import SIZES, sizes_of
from tests.tamis_lab.experiments.scales import TINY, assert_agreed, assert_all_judged, assert_told, claim_of, quiet

pytestmark = pytest.mark.xdist_group("lab topk")  # so that one process runs the experiments, once

EXACT = {
    "limits": ("table",),
    "kept": ("strict-law", "filters-keep-fewer"),
    "errors": ("practically-no-errors (1.0)", "many-out-of-order"),
    "volume": ("rate-boolean", "radius"),
    "messages": ("running-example", "publication-flooding-alike", "order"),
}
"""What is counted, not timed: it comes out as published at every size."""


@pytest.fixture(scope="module")
def results():
    return {experiment.key: experiment.run(TINY, 1, quiet) for experiment in EXPERIMENTS}


def test_every_experiment_runs_draws_and_judges(results):
    assert_told(results)


def test_every_published_statement_is_judged(results):
    assert_all_judged("topk", results)


@pytest.mark.parametrize("key", EXACT)
def test_what_is_counted_comes_out_as_published_at_every_size(results, key):
    assert_agreed(results[key], EXACT[key])


def verdict(result, key):
    return claim_of(result.claims, key).verdict


def test_a_wrong_limit_would_be_told(monkeypatch):
    monkeypatch.setattr(limits, "candidate_limit", lambda k, n, sigma: 17)
    assert verdict(limits.run(TINY, 1, quiet), "table") is Judgement.TURNED


def test_another_clock_gives_other_verdicts(monkeypatch):
    slow = {"PA": 9.0, "RA": 3.0, "SA": 1.0}
    names = []

    def named(name, k, n, buffer):
        names.append(name)
        return playing.ranking_of(name, k, n, buffer)

    def timed(ranking, keys, n):
        found = playing.play(ranking, keys, n)
        return playing.Played(found.entered, found.size, found.filter_size, found.threshold, slow.get(names[-1], 1.0))

    monkeypatch.setattr(times, "ranking_of", named)
    monkeypatch.setattr(times, "play", timed)
    result = times.run(TINY, 1, quiet)
    assert verdict(result, "relaxed-faster") is Judgement.TURNED
    assert verdict(result, "probabilistic-fastest") is Judgement.TURNED


def test_an_algorithm_that_is_wrong_stops_the_lab():
    keys = np.random.default_rng(1).random(300)
    played = playing.play(playing.ranking_of("SA", 2, 50, 5), keys, 50)
    assert playing.checked("SA", played, playing.exact(keys, 2, 50)) is played
    with pytest.raises(DisagreementError, match="SA and the closed form"):
        playing.checked("SA", played, playing.exact(keys, 3, 50))


def test_too_few_candidates_are_noticed(monkeypatch):
    monkeypatch.setattr(errors_made, "SHARES", (1.0, 0.75, 0.5, 0.0))
    rows = errors_made.run(TINY, 1, quiet).rows
    assert max(row["error"] for row in rows if row["share"] == 0.0) > 0.01


def test_points_lie_in_the_unit_cube_and_centres_among_them():
    for draw in datasets().values():
        points = draw(500, 1)
        assert points.shape == (500, 4)
        assert points.min() >= 0 and points.max() <= 1
        assert not np.array_equal(points, draw(500, 2))


def test_every_scale_has_sizes_and_the_full_one_those_of_the_thesis():
    assert SIZES.keys() >= SCALES.keys()
    full = sizes_of(SCALES["full"])
    assert (full.n, full.buffer, full.count, full.ks) == (40_000, 2_000, 1_000_000, (1, 3, 9, 27, 81))
    assert all(module.EXPERIMENT.question.endswith("?") for module in (messages, thresholds, volume))
