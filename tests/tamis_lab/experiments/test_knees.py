"""A knee is found where two lines meet, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis_lab.experiments.base import SCALES, Judgement
from tamis_lab.experiments.filtering.knees import FEWEST_POINTS, judged_knee, judged_ratio, knee_of
from tamis_lab.experiments.statements import Judge

FULL = SCALES["full"].auction_counts
TIME = Judge("filtering", "auction time")
CLASSES = Judge("filtering", "auction classes")


def bent(counts: tuple[int, ...], at: float, steeper: float, slope: float = 1e-4, fixed: float = 0.1) -> list[float]:
    """Times that grow by a slope, and from somewhere on by a steeper one."""
    return [fixed + slope * (count + (steeper - 1) * max(0.0, count - at)) for count in counts]


@given(st.floats(30_000, 350_000), st.floats(1.6, 20), st.floats(1e-6, 1e-2), st.integers(0, 2**32 - 1))
def test_a_knee_is_found_where_the_lines_meet_though_times_vary(at, steeper, slope, seed):
    exact = np.array(bent(FULL, at, steeper, slope))
    knee = knee_of(FULL, exact)
    assert (
        knee is not None and knee.at == pytest.approx(at, rel=0.1) and knee.steeper == pytest.approx(steeper, rel=0.2)
    )
    noisy = exact * np.random.default_rng(seed).normal(1, 0.003, len(exact))
    near = knee_of(FULL, noisy)
    assume(near is not None)
    assert near is not None and near.steeper > 1.2


@given(st.floats(1e-6, 1e-2), st.floats(0, 10))
def test_a_straight_line_has_no_knee(slope, fixed):
    assert knee_of(FULL, [fixed + slope * count for count in FULL]) is None


def test_a_curve_that_flattens_has_no_knee():
    assert knee_of(FULL, bent(FULL, 100_000, 0.3)) is None


def test_among_few_points_there_is_no_knee():
    few = FULL[: FEWEST_POINTS - 1]
    assert knee_of(few, bent(few, few[1], 5)) is None


@pytest.mark.parametrize(
    ("at", "verdict"), [(50_000, Judgement.AGREES), (100_000, Judgement.DIRECTION), (400_000, Judgement.DIFFERS)]
)
def test_a_knee_is_judged_by_where_it_is(at, verdict):
    claim = judged_knee(TIME, FULL, bent(FULL, at, 3), 50_000, "counting")
    assert claim.verdict is verdict
    assert claim.ours.endswith("3.00 times as steep")


def test_where_there_is_no_knee_the_premise_does_not_hold_and_in_short_runs_it_is_not_measured():
    straight = [1e-4 * count for count in FULL]
    assert judged_knee(TIME, FULL, straight, 50_000, "counting").verdict is Judgement.PREMISE
    assert judged_knee(TIME, FULL[:5], straight[:5], 200_000, "boolean").verdict is Judgement.UNMEASURED
    assert judged_knee(TIME, FULL[:2], straight[:2], 10_000, "boolean").verdict is Judgement.UNMEASURED


@pytest.mark.parametrize(
    ("later", "verdict"), [(4, Judgement.AGREES), (2, Judgement.DIRECTION), (0.5, Judgement.TURNED)]
)
def test_knees_are_compared_with_each_other(later, verdict):
    at = 60_000
    curves = bent(FULL, at, 3), bent(FULL, at * later, 3)
    assert judged_ratio(CLASSES, FULL, *curves, "class 2").verdict is verdict
    straight = bent(FULL, at, 1)
    assert judged_ratio(CLASSES, FULL, straight, curves[1], "class 2").verdict is Judgement.PREMISE
    assert judged_ratio(CLASSES, FULL[:3], curves[0][:3], curves[1][:3], "class 2").verdict is Judgement.UNMEASURED
