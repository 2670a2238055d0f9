"""Time is that of this thread, and whoever is measured finds what the others find."""

from __future__ import annotations

import gc
import time

import numpy as np
import pytest

from tamis.matching.naive import Naive, NaiveSnapshot
from tamis.workloads import Auction
from tamis_lab.experiments import DisagreementError
from tamis_lab.experiments.measuring import Field, cpu_s, undisturbed
from tamis_lab.matching.counting import Counting
from tests.tamis_lab.experiments.scales import TINY, quiet

WORKLOAD = Auction()
TEXTS = [*WORKLOAD.subscriptions(80, seed=1)["condition"].to_pylist(), "price > 0", "price > 1"]
EVENTS = WORKLOAD.events(8, seed=2)


class Liar(Naive):
    """Leaves one match out."""

    def snapshot(self):
        return Forgetful(self._expressions, self.schema)


class Forgetful(NaiveSnapshot):
    def match_events(self, events, among=None, threads=1):
        numbers, handles = super().match_events(events, among, threads)
        return numbers[1:], handles[1:]


class Stutterer(Naive):
    """Says everything twice."""

    def snapshot(self):
        return Repeating(self._expressions, self.schema)


class Repeating(NaiveSnapshot):
    def match_events(self, events, among=None, threads=1):
        numbers, handles = super().match_events(events, among, threads)
        return np.repeat(numbers, 2), np.repeat(handles, 2)


def test_waiting_takes_no_time():
    assert cpu_s(lambda: time.sleep(0.2)) < 0.1


def test_everybody_has_the_same_subscriptions_and_finds_the_same():
    field = Field.of({"counting": Counting(), "naive": Naive()})
    field.register(TEXTS, quiet)
    assert {subject.count for subject in field.subjects.values()} == {len(TEXTS)}
    assert all(subject.insertions_per_s > 0 for subject in field.subjects.values())
    times = field.event_s(EVENTS, TINY, quiet)
    assert list(times) == ["counting", "naive"]
    assert min(times.values()) > 0
    assert list(field.event_s(EVENTS, TINY, quiet, among=["naive"])) == ["naive"]


@pytest.mark.parametrize(("liar", "told"), [(Liar, "find different subscriptions"), (Stutterer, "Stutterer")])
def test_a_wrong_answer_is_no_result(liar, told):
    field = Field.of({"naive": Naive(), liar.__name__: liar()})
    field.register(TEXTS, quiet)
    with pytest.raises(DisagreementError, match=told):
        field.event_s(EVENTS, TINY, quiet)


def test_more_subscriptions_come_later_and_others_go_once():
    field = Field.of({"counting": Counting(), "naive": Naive()})
    field.register(TEXTS[:50], quiet)
    field.register(TEXTS[50:], quiet)
    for _ in range(3):
        rates = field.removals_per_s(20, seed=1)
        assert min(rates.values()) > 0
    assert len(field.removed) == 60
    field.event_s(EVENTS, TINY, quiet)
    assert len(field["naive"].engine.snapshot()._expressions) == len(TEXTS) - 60


def test_bytes_are_those_of_the_structures():
    field = Field.of({"counting": Counting()})
    field.register(TEXTS, quiet)
    assert 0 < field["counting"].payload() < field["counting"].engine.memory()


@pytest.mark.parametrize("was_enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(was_enabled):
    (gc.enable if was_enabled else gc.disable)()
    try:
        with undisturbed():
            assert not gc.isenabled()
        assert gc.isenabled() is was_enabled
    finally:
        gc.enable()
