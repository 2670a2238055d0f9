"""Several runs of an experiment: what they come to has the middle, and how far it reaches."""

from __future__ import annotations

import json

import pytest

from tamis_lab.experiments import running
from tamis_lab.experiments.base import Curve, Experiment, Judgement, Plot, Result
from tamis_lab.experiments.page import written
from tamis_lab.experiments.plots import drawn
from tamis_lab.experiments.repeats import merged
from tamis_lab.experiments.statements import statements
from tamis_lab.experiments.verdicts import by_direction, by_ratio

OURS = {1: 1.9, 2: 0.5, 3: 2.3}
HEIGHTS = {1: (1.0, 2.0), 2: (3.0, 8.0), 3: (2.0, 4.0)}


def result(seed, x=(1.0, 2.0)) -> Result:
    claims = (
        by_ratio("A", 2.0, OURS[seed], where="5"),
        by_direction("B", "faster", OURS[seed], is_more=True, where="5"),
    )
    lines = (Curve("a", x, HEIGHTS[seed]),)
    return Result("Setup.", claims, (Plot("t", "x", "y", lines),), ({"n": seed},))


def test_the_claim_of_the_middle_stands_for_all():
    ratio, direction = merged([result(seed) for seed in OURS], list(OURS)).claims
    assert (ratio.ours, ratio.verdict, ratio.repeats, ratio.agreed_of) == (
        "1.90 times", Judgement.AGREES, (0.5, 1.9, 2.3), (2, 3),
    )  # fmt: skip
    assert (direction.verdict, direction.agreed_of, direction.repeats) == (Judgement.AGREES, (2, 3), ())


def test_lines_become_medians_with_error_bars_and_rows_say_their_seed():
    together = merged([result(seed) for seed in OURS], list(OURS))
    (line,) = together.plots[0].lines
    assert (line.y, line.low, line.high) == ((2.0, 4.0), (1.0, 2.0), (3.0, 8.0))
    assert together.rows == ({"seed": 1, "n": 1}, {"seed": 2, "n": 2}, {"seed": 3, "n": 3})
    assert drawn(together.plots[0]).count("LineCollection") > drawn(result(1).plots[0]).count("LineCollection")


def test_lines_over_other_places_are_not_mixed():
    together = merged([result(1), result(2, x=(1.0, 9.0))], [1, 2])
    assert together.plots[0].lines == result(1).plots[0].lines


def test_one_run_is_returned_as_it_is():
    assert merged([result(1)], [1]) == result(1)


def test_a_lab_runs_each_experiment_as_often_as_asked_with_other_seeds(monkeypatch):
    seeds = []
    experiment = Experiment("e", "Is it?", "5", lambda scale, seed, tell: (seeds.append(seed), result(seed))[1])
    monkeypatch.setitem(running.LABS, "filtering", (experiment,))
    report = running.run("filtering", scale="quick", seed=1, repeats=3)
    assert seeds == [1, 2, 3]
    data = json.loads(json.dumps(report.as_dict()))
    assert data["repeats"] == 3 and data["experiments"][0]["claims"][0]["repeats"] == [0.5, 1.9, 2.3]
    assert "runs of each experiment: 3" in written(report)


@pytest.mark.parametrize("lab", running.LABS)
def test_every_statement_has_a_caveat(lab):
    for experiment in statements(lab).values():
        assert all(statement.caveat for statement in experiment.values())
