"""Settings are measured in a loop, or wherever somebody spreads them, with the same rows."""

from __future__ import annotations

import pickle

import pytest

from tamis_lab.experiments.base import SCALES
from tamis_lab.experiments.filtering import normal_forms
from tamis_lab.experiments.running import LABS
from tamis_lab.experiments.statements import statements
from tamis_lab.experiments.sweeping import is_timed, spreading, swept
from tests.cli.conftest import tamis


def elsewhere(function, settings):
    """Call a function as if it were far away: backwards, and after a journey."""
    function = pickle.loads(pickle.dumps(function))
    return [pickle.loads(pickle.dumps(function(each))) for each in reversed(settings)][::-1]


def test_an_experiment_that_is_spread_has_the_same_rows():
    scale, heard = SCALES["quick"], []
    here = normal_forms.run(scale, 1, heard.append)
    heard.clear()
    with spreading(elsewhere):
        there = normal_forms.run(scale, 1, heard.append)
    assert here == there
    assert heard == ["6 settings elsewhere"]
    assert normal_forms.run(scale, 1, heard.append) == here
    assert len(heard) > 1, "afterwards they are measured here again"


def test_a_setting_that_fails_fails_the_experiment():
    def failing(setting, scale, seed, tell):
        raise ValueError(setting)

    with pytest.raises(ValueError, match="3"):
        swept(failing, [3], SCALES["quick"], 1, print)


def test_experiments_that_measure_times_are_known_by_their_statements():
    timed = {lab: {key for key in statements(lab) if is_timed(lab, key)} for lab in LABS}
    assert {"operators", "overlap", "length"} <= timed["filtering"]
    assert timed["filtering"].isdisjoint({"normal forms", "commonality", "turning points", "persistence"})
    assert not is_timed("filtering", "nothing of that name")


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (("--only", "overlap", "--spark", "local[1]"), "measures times"),
        (("--times",), "--times goes with --spark"),
    ],
)
def test_times_are_measured_elsewhere_only_where_asked(options, wrong):
    result = tamis("lab", "filtering", "--quick", *options)
    assert result.exit_code == 2
    assert wrong in result.stderr
