"""A process that registers subscriptions grows by what they take."""

from __future__ import annotations

import pytest

from tamis.workloads import Auction
from tamis_lab.experiments import LabError
from tamis_lab.experiments.base import SCALES, Judgement
from tamis_lab.experiments.filtering import auction_memory, resident
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING
from tests.tamis_lab.experiments.scales import quiet

pytestmark = pytest.mark.skipif(not resident.is_readable(), reason="this system does not tell it")


def texts(count: int) -> list[str]:
    return Auction().subscriptions(count, seed=1)["condition"].to_pylist()


@pytest.mark.parametrize(
    ("boolean", "verdict"), [(72, Judgement.AGREES), (100, Judgement.SAME), (130, Judgement.TURNED)]
)
def test_the_memory_of_processes_is_judged(monkeypatch, boolean, verdict):
    taken = {resident.PREDICATES: 50.0, BOOLEAN: 50.0 + boolean, COUNTING: 150.0}
    monkeypatch.setattr(resident, "resident_bytes", lambda name, texts: taken[name])
    row: dict = {}
    claim = auction_memory._resident(row, SCALES["default"], 1, quiet)
    assert claim.verdict is verdict and row == {"boolean resident": boolean, "counting resident": 100.0}


def test_toys_start_no_processes(monkeypatch):
    monkeypatch.setattr(resident, "resident_bytes", None)
    assert auction_memory._resident({}, SCALES["quick"], 1, quiet).verdict is Judgement.UNMEASURED


def test_a_process_that_fails_says_why():
    with pytest.raises(LabError, match="nobody"):
        resident.resident_bytes("nobody", ["a > 1"])


@pytest.mark.slow
def test_more_subscriptions_take_more_of_a_process():
    few, many = (resident.grown(COUNTING, texts(count)) for count in (3_000, 24_000))
    assert 2 * few < many < 24_000 * 5_000
