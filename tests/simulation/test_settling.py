"""Settled: true, then a publication anywhere: delivered, in all runs."""

from __future__ import annotations

import pytest

from tamis.routing import STRATEGIES, KnownPeerError, Settling, UnknownPeerError
from tamis.simulation import Scenario, network, simulate


def settling_of(*neighbours):
    settling = Settling()
    for each in neighbours:
        settling.connect(each)
    return settling


def test_nothing_is_settled_before_all_that_was_told_by_then_is_settled_even_if_it_caused_nothing_itself():
    settling = settling_of("north", "south")
    first = settling.sent("south")
    settling.said("covered", is_worked_out=True)
    assert settling.settled() == ([], [])
    settling.sent("south")  # later, and no business of it
    settling.acknowledged("south", first)
    assert settling.settled() == ([], ["covered"])


def test_a_neighbour_is_not_waited_for_by_what_it_said_itself():
    settling = settling_of("north")
    settling.sent("north")
    settling.received("north", 1, is_worked_out=True)
    assert settling.settled() == ([("north", 1)], [])


def test_one_acknowledgement_tells_of_all_up_to_a_number():
    settling = settling_of("north", "south")
    numbers = [settling.sent("south") for _ in range(3)]
    for number in (4, 5, 6, 6, 5):
        settling.received("north", number, is_worked_out=True)
    assert settling.waiting_count == 3, "what comes twice is known by its number"
    settling.acknowledged("south", numbers[-1])
    assert settling.settled() == ([("north", 6)], [])


def test_what_is_still_worked_out_is_not_settled():
    settling = settling_of("north", "south")
    settling.received("north", 1, is_worked_out=False)
    assert settling.settled() == ([], [])
    number = settling.sent("south")
    settling.worked_out()
    assert settling.settled() == ([], [])
    settling.acknowledged("south", number)
    assert settling.settled() == ([("north", 1)], [])


def test_a_neighbour_that_is_away_delays_and_one_that_is_gone_does_not_count():
    settling = settling_of("north", "south")
    settling.sent("south")
    settling.said("s", is_worked_out=True)
    assert settling.settled() == ([], [])
    settling.disconnect("south")
    assert settling.settled() == ([], ["s"])


def test_what_was_under_way_is_settled_with_the_next_hello():
    settling = settling_of("south")
    lost = settling.sent("south")
    settling.said("s", is_worked_out=True)
    settling.renew("south", is_new=True)
    hello = settling.sent("south")
    settling.acknowledged("south", lost)
    assert settling.settled() == ([], [])
    settling.acknowledged("south", hello)
    assert settling.settled() == ([], ["s"])


def test_nobody_can_acknowledge_what_was_not_said_or_from_nowhere():
    settling = settling_of("south")
    settling.acknowledged("south", 99)
    settling.sent("south")
    settling.said("s", is_worked_out=True)
    assert settling.settled() == ([], [])
    with pytest.raises(UnknownPeerError):
        settling.acknowledged("north", 1)
    with pytest.raises(KnownPeerError):
        settling.connect("south")


@pytest.mark.parametrize("advertisements", [None, "covering"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_settled_then_a_publication_anywhere_is_delivered(strategy, advertisements):
    told = 0
    for seed in range(6):
        fixed = {"settles": True, "strategies": (strategy,), "advertisements": advertisements, "is_crowded": False}
        scenario = Scenario.of_seed(
            7_000 + seed, gradual=seed % 2 == 0, renews=seed % 3 == 0, has_faults=seed % 3 == 1, **fixed
        )
        run = simulate(scenario)
        assert run.problems == [], scenario
        told += run.checker.settled_count
    assert told > 50


class SettlesAtOnce(Settling):
    """Says that all is well without asking anybody."""

    def __init__(self):
        super().__init__()
        self._settlement.are_settled = lambda marks: True


class SettlesFarAwayTooSoon(Settling):
    """Acknowledges what neighbours say without waiting for those behind."""

    def received(self, neighbour, number, *, is_worked_out):
        super().received(neighbour, number, is_worked_out=is_worked_out)
        for pending in self._settlement._heard[neighbour]:
            pending.marks = {}


class DoesNotWaitForWork(Settling):
    """Takes what is not worked out yet for told."""

    def received(self, neighbour, number, *, is_worked_out):
        super().received(neighbour, number, is_worked_out=True)

    def said(self, what, *, is_worked_out):
        super().said(what, is_worked_out=True)


@pytest.mark.parametrize(
    ("broken", "options"),
    [
        (SettlesAtOnce, {}),
        (SettlesFarAwayTooSoon, {"topology": "line"}),
        (DoesNotWaitForWork, {"gradual": True, "has_faults": True, "topology": "graph", "broker_count": 6}),
    ],
    ids=lambda each: each.__name__ if isinstance(each, type) else "",
)
def test_settling_that_is_broken_is_found(broken, options, monkeypatch):
    for seed in range(60):
        scenario = Scenario(seed, settles=True, action_count=80, **options)
        with monkeypatch.context() as patch:
            patch.setattr(network, "Settling", broken)
            problems = simulate(scenario).problems
        if any("lost" in problem for problem in problems):
            assert simulate(scenario).problems == []
            return
    raise AssertionError("not found")
