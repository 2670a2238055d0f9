"""Nodes without reverse paths: what is withdrawn, late or leased, step by step and in random runs with delays."""

from __future__ import annotations

import pytest

import tamis
from tamis.errors import TamisError
from tamis.routing import (
    Deliver,
    Deposit,
    Entry,
    MessageError,
    Passed,
    Post,
    Publish,
    Reject,
    Relayed,
    Send,
    Subscribe,
    TakeBack,
    Unsubscribe,
    Withdraw,
)
from tamis.routing.distributed import BasicGossiper, OneNode, RankingSettings, RendezvousNode, SubscriptionFlooder
from tamis.routing.distributed.base import RoutingNode
from tamis.routing.distributed.residents import Residents
from tamis.routing.distributed.withdrawals import Withdrawals
from tamis.routing.dzalaps import Peer, Space
from tamis.routing.dzalaps.zones import Zones
from tamis.simulation import NODE_STRATEGIES, Scenario, simulate_nodes
from tamis.topk import Ranked
from tests.lengths import so_many

BEST = Ranked.parse("TOP 1 BY euclidean(array(x, y), array(0, 0)) OVER 10 SECONDS")
NEAR = tamis.parse("euclidean(array(x, y), array(0, 0)) <= 0.5D")
KINDS = ["subscription flooding", "rendezvous", "basic gossiping", "D-ZaLaPS"]


def alone(kind, **settings):
    """A node by itself, which is home and meeting point, with two clients."""
    given = RankingSettings(**settings)
    node = {
        "subscription flooding": lambda: SubscriptionFlooder("A", given),
        "rendezvous": lambda: RendezvousNode("A", given, meeting=OneNode("A")),
        "basic gossiping": lambda: BasicGossiper("A", given),
        "D-ZaLaPS": lambda: Peer("A", given, space=Space(("x", "y"), 4), zones=Zones.of_one("A", 2)),
    }[kind]()
    node.attach("ann"), node.attach("shop")
    return node


def event(name, x):
    return Publish(name, {"x": x, "y": 0.0})


def told(outputs):
    return [(each.client, each.publication.key) for each in outputs if isinstance(each, Deliver)]


def subscribe(node, wanted, now, key="k", lease_s=None):
    return node.receive(Subscribe((Entry(key, wanted),), lease_s=lease_s), "ann", now)


# -- Withdrawal


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_withdrawn_keeps_its_place_in_windows_and_nobody_is_told_of_it(kind):
    node = alone(kind)
    subscribe(node, BEST, 0.0)
    assert told(node.receive(event("best", 0.1), "shop", 1.0)) == [("ann", "best")]
    assert told(node.receive(event("second", 0.2), "shop", 2.0)) == []
    assert told(node.receive(event("third", 0.3), "shop", 3.0)) == []
    assert told(node.receive(Withdraw("second"), "shop", 4.0)) == []
    assert told(node.advance(11.0)) == [], "it has become the best, and is withdrawn"
    assert told(node.receive(event("worse", 0.25), "shop", 11.5)) == [], "and it still has its place"
    assert told(node.advance(12.0)) == [("ann", "worse")]


@pytest.mark.parametrize("kind", KINDS)
def test_only_who_published_an_event_may_withdraw_it(kind):
    node = alone(kind)
    subscribe(node, BEST, 0.0)
    node.receive(event("best", 0.1), "shop", 1.0), node.receive(event("second", 0.2), "shop", 2.0)
    for client, key in (("ann", "second"), ("shop", "unknown")):
        (reject,) = node.receive(Withdraw(key), client, 3.0)
        assert isinstance(reject, Reject) and "has published no event" in reject.reason
    assert told(node.advance(11.0)) == [("ann", "second")]


def test_a_withdrawal_floods_the_links_once():
    node = alone("subscription flooding")
    for neighbour in "BCD":
        node.connect(neighbour, 0.0)
    node.receive(event("e", 0.1), "shop", 1.0)
    sent = node.receive(Withdraw("e"), "shop", 2.0)
    assert sent == [Send(each, Withdraw("e", 2.0)) for each in "BCD"]
    assert node.receive(Withdraw("e", 2.0), "B", 2.5) == []
    assert node.receive(Withdraw("f", 2.0), "B", 2.5) == [Send(each, Withdraw("f", 2.0)) for each in "CD"]


def test_a_peer_posts_a_withdrawal_to_all_and_they_pass_it_on_to_nobody():
    zones = Zones.joined([("A", ()), ("B", (0.75, 0.25)), ("C", (0.25, 0.75))], 2)
    one, other = (Peer(name, space=Space(("x", "y"), 4), zones=zones) for name in "AB")
    one.attach("shop")
    one.receive(event("e", 0.1), "shop", 1.0)
    assert one.receive(Withdraw("e"), "shop", 2.0) == [Post(peer, Withdraw("e", 2.0)) for peer in "BC"]
    assert other.receive(Withdraw("e", 2.0), "A", 2.1) == []


@pytest.mark.parametrize(
    "message", [Withdraw("e"), Withdraw("e", float("nan")), Withdraw("e", "now"), Withdraw(None, 1)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_withdrawal_that_makes_no_sense_between_nodes_is_refused(kind, message):
    with pytest.raises(MessageError):
        alone(kind).receive(message, "B", 1.0)


def test_an_event_that_comes_after_its_withdrawal_is_told_to_nobody():
    node = alone("subscription flooding")
    subscribe(node, NEAR, 0.0)
    node.connect("B", 0.0)
    node.receive(Withdraw("e", 2.0), "B", 2.1)
    assert told(node.receive(Passed("e", {"x": 0.1, "y": 0.0}, 1.0, "C", 1), "C", 2.2)) == []
    assert told(node.receive(Passed("f", {"x": 0.1, "y": 0.0}, 1.0, "C", 2), "C", 2.2)) == [("ann", "f")]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_client_publishes_again_under_its_key_is_the_same_event(kind):
    node = alone(kind)
    subscribe(node, NEAR, 0.0)
    assert told(node.receive(event("e", 0.1), "shop", 1.0)) == [("ann", "e")]
    assert node.receive(event("e", 0.1), "shop", 2.0) == []


# -- Lateness


@pytest.mark.parametrize("kind", ["subscription flooding", "rendezvous", "D-ZaLaPS"])
def test_events_that_overtake_each_other_are_ranked_in_order_of_publication(kind):
    node = alone(kind, lateness_s=1.0)
    subscribe(node, BEST, 0.0)
    passed = {
        name: Passed(name, {"x": x, "y": 0.0}, at, "B", 1) for name, x, at in (("new", 0.1, 2.0), ("old", 0.2, 1.5))
    }
    for message in (passed["new"], passed["old"]):
        arrived = Relayed("A" if kind == "rendezvous" else (0, 0), message)
        assert told(node.receive(message if kind == "subscription flooding" else arrived, "B", 2.2)) == []
    assert node.next_due == 2.5
    assert told(node.advance(2.5)) == [("ann", "old")], "it was the best until the other one was published"
    assert told(node.advance(3.0)) == [("ann", "new")]


def test_a_boolean_subscription_does_not_wait():
    node = alone("subscription flooding", lateness_s=1.0)
    subscribe(node, NEAR, 0.0)
    assert told(node.receive(event("e", 0.1), "shop", 1.0)) == [("ann", "e")]


def test_what_is_too_late_is_told_late_and_counted():
    node = alone("subscription flooding", lateness_s=1.0)
    subscribe(node, BEST, 0.0)
    node.receive(Passed("first", {"x": 0.3, "y": 0.0}, 5.0, "B", 1), "B", 5.5)
    assert told(node.advance(6.5)) == [("ann", "first")]
    assert told(node.receive(Passed("late", {"x": 0.1, "y": 0.0}, 4.0, "B", 2), "B", 6.6)) == [("ann", "late")]
    assert node.residents.late_count == 1
    assert told(node.advance(50.0)) == []


@pytest.mark.parametrize("kind", ["subscription flooding", "rendezvous", "D-ZaLaPS"])
def test_a_subscription_counts_what_is_published_when_it_has_spread(kind):
    node = alone(kind, spread_s=2.0)
    subscribe(node, BEST, 0.0)
    assert told(node.receive(event("early", 0.1), "shop", 1.9)) == []
    assert told(node.receive(event("counted", 0.2), "shop", 2.0)) == [("ann", "counted")]


@pytest.mark.parametrize(
    "settings",
    [{"lateness_s": -1.0}, {"lateness_s": float("inf")}, {"spread_s": True}, {"is_numbered": True, "lateness_s": 1.0}],
)
def test_settings_that_do_not_go_together_are_refused(settings):
    with pytest.raises(TamisError, match="expected"):
        alone("rendezvous", **settings)


def test_peers_refuse_windows_that_would_count_events_without_a_place():
    node, best = alone("D-ZaLaPS"), Ranked(BEST.score, 1, "9 EVENTS")
    (reject,) = subscribe(node, best, 0.0)
    assert "time window" in reject.reason
    assert subscribe(alone("D-ZaLaPS", is_numbered=True), best, 0.0) == []


# -- Leases


@pytest.mark.parametrize("wanted", [BEST, NEAR], ids=["ranked", "Boolean"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_leased_ends_by_itself(kind, wanted):
    node = alone(kind)
    subscribe(node, wanted, 0.0, lease_s=5.0)
    assert told(node.receive(event("e", 0.4), "shop", 4.0)) == [("ann", "e")]
    assert node.next_due == 5.0
    assert told(node.receive(event("f", 0.1), "shop", 5.0)) == [] and node.wanted_by("ann") == {}
    assert len(node.residents) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_who_renews_a_lease_keeps_its_window(kind):
    node = alone(kind)
    subscribe(node, BEST, 0.0, lease_s=5.0)
    node.receive(event("best", 0.1), "shop", 1.0), node.receive(event("second", 0.2), "shop", 2.0)
    assert subscribe(node, BEST, 4.0, lease_s=50.0) == []
    assert told(node.advance(11.0)) == [("ann", "second")]
    subscribe(node, BEST, 12.0)
    assert node.next_due == 12.0, "the second leaves the window then; the lease is forgotten"
    node.receive(Unsubscribe(("k",)), "ann", 13.0)
    assert node.next_due is None


def test_a_lease_that_ends_is_told_to_all():
    node = alone("subscription flooding")
    node.connect("B", 0.0)
    subscribe(node, NEAR, 0.0, lease_s=5.0)
    (flooded,) = node.advance(5.0)
    assert flooded.peer == "B" and flooded.message.removed


# -- Subscriptions that live elsewhere


def test_the_end_of_a_subscription_may_overtake_it_and_another_one_under_its_key():
    residents, first, second = Residents(RankingSettings()), Deposit("A", "ann", 1, NEAR, 0.0, 4), BEST
    residents.deposit(TakeBack("A", "ann", 1, 4))
    residents.deposit(first)
    assert len(residents) == 0
    residents.deposit(Deposit("A", "ann", 1, second, 1.0, 6))
    for late in (TakeBack("A", "ann", 1, 5), Deposit("A", "ann", 1, NEAR, 0.5, 5), first):
        residents.deposit(late)
        assert residents.wanted(("A", "ann", 1)) == second
    residents.deposit(TakeBack("A", "ann", 1, 7))
    assert len(residents) == 0, "a later one has ended already, and so has this"


def test_another_subscription_takes_the_place_of_one_whose_end_is_still_under_way():
    residents = Residents(RankingSettings())
    for number, wanted in ((1, NEAR), (2, BEST)):
        residents.deposit(Deposit("A", "ann", 1, wanted, 0.0, number))
    assert residents.wanted(("A", "ann", 1)) == BEST and len(residents) == 1


# -- All of it at once


@pytest.mark.parametrize("wants", ["ranked", "mixed", "conditions"])
@pytest.mark.parametrize("strategy", NODE_STRATEGIES)
def test_nodes_with_delays_withdrawals_and_leases_tell_what_one_who_sees_everything_tells(strategy, wants):
    compared = promoted = 0
    for seed in range(15):
        checker = simulate_nodes(strategy, Scenario.of_seed(seed, wants=wants, action_count=50))
        assert checker.problems == [], f"seed {seed}"
        compared, promoted = compared + checker.delivered, promoted + checker.promoted
    assert wants == "conditions" or (compared > 30 and promoted > 0), "there was something to compare"


@pytest.mark.slow
@pytest.mark.parametrize("strategy", NODE_STRATEGIES)
def test_thousands_of_runs_of_nodes(strategy):
    for seed in range(1_000, 1_000 + so_many(2_000)):
        assert simulate_nodes(strategy, Scenario.of_seed(seed)).problems == [], f"seed {seed}"


def _without_waiting(patch):
    patch.setattr(Residents, "_waits", property(lambda self: False))


def _counts_at_once(patch):
    whole = Residents.add
    patch.setattr(Residents, "add", lambda self, who, wanted, now, number=0: whole(self, who, wanted, now - 9, number))
    due = RoutingNode._is_due
    patch.setattr(RoutingNode, "_is_due", lambda self, client, key, passed, now: due(
        self, client, key, Passed.of(passed, passed.at + 9, passed.origin, passed.number), now))  # fmt: skip


def _numbers_nothing(patch):
    whole = RendezvousNode._deposit
    patch.setattr(RendezvousNode, "_deposit", lambda self, who, wanted: Deposit(*who, wanted, self._made[who[1:]].at))
    assert whole is not RendezvousNode._deposit


MUTANTS = {
    "tells what is withdrawn": (lambda patch: patch.setattr(Withdrawals, "is_over", lambda *_: False), "validity"),
    "does not wait": (_without_waiting, "due"),
    "lets leases go on": (lambda patch: patch.setattr(RoutingNode, "_ended", lambda *_: []), "never due"),
    "counts at once": (_counts_at_once, "never due"),
    "gives subscriptions no numbers": (_numbers_nothing, "was not notified"),
    "forgets whom it has told": (
        lambda patch: patch.setattr("tamis.routing.memory.LatestKeys.__contains__", lambda *_: False), "uniqueness"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_nodes_that_are_broken_on_purpose_are_found(name, monkeypatch):
    breaks, says = MUTANTS[name]
    breaks(monkeypatch)
    for seed in range(150):
        try:
            problems = simulate_nodes("rendezvous", Scenario.of_seed(seed, action_count=50)).problems
        except (TamisError, KeyError, AssertionError):
            continue
        if any(says in problem for problem in problems):
            return
    raise AssertionError(f"{name} was not found")
