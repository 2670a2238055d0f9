"""Later steps are asked for while a run is open, and nothing if a step cannot come; at rest nothing is missed by that."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.routing import STRATEGIES, Broker, StepRequests, Subscribe, Unsubscribe, advertised_to
from tamis.simulation import Network, simulate_requests
from tamis.simulation.occurrences import MessageCarried
from tamis.standing import Sequence
from tests.lengths import so_many

GUESS = "SEQUENCE kind = 'bad' THEN kind = 'good' WITHIN 2 SECONDS"


def run_of(seed, strategy, **options):
    run = simulate_requests(seed, strategy, **options)
    assert run.problems == [], seed
    return run


# -- Random networks


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_at_rest_steps_asked_for_while_a_run_is_open_are_enough(strategy):
    assert sum(run_of(seed, strategy).reported for seed in range(2)) > 10


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_at_rest_nothing_is_missed_of_what_can_come_by_advertisements(strategy):
    runs = [
        run_of(seed, strategy, advertisements="covering", while_open=bool(seed % 2), needs_all=seed > 1)
        for seed in range(3)
    ]
    assert sum(run.reported for run in runs) > 0


@pytest.mark.parametrize("advertisements", sorted(set(STRATEGIES) - {"flooding"}))  # which tells that anything may come
def test_it_does_not_matter_by_which_strategy_advertisements_spread(advertisements):
    run_of(5, "covering", advertisements=advertisements)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_holds_again_at_rest_after_brokers_crashed_and_links_failed(strategy):
    run_of(1, strategy, has_faults=True)
    run_of(2, strategy, has_faults=True, advertisements="covering")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_under_way_only_events_within_one_way_there_and_back_of_the_first_are_missed(strategy):
    runs = [run_of(seed, strategy, is_at_rest=False) for seed in range(3)]
    assert sum(run.reported for run in runs) > 10


def test_under_way_something_is_missed_so_the_window_of_loss_is_real():
    assert sum(run_of(seed, "covering", is_at_rest=False).missed for seed in range(12)) > 0


def test_fewer_events_cross_links_if_steps_are_asked_for_only_while_a_run_is_open():
    always, now_and_then = (
        sum(run_of(seed, "covering", while_open=while_open).crossed for seed in range(8))
        for while_open in (False, True)
    )
    assert 0 < now_and_then < always


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_homes_that_ask_now_and_then_in_thousands_of_networks(part):
    for seed in range(1000 + 1000 * part, 1000 + 1000 * part + so_many(300)):
        strategy = sorted(STRATEGIES)[seed % len(STRATEGIES)]
        run_of(seed, strategy, is_at_rest=seed % 2 == 0, has_faults=seed % 3 == 0)
        options = {"while_open": seed % 2 == 0, "needs_all": seed % 5 == 0, "has_faults": seed % 3 == 0}
        run_of(seed, strategy, advertisements="covering", **options)


# -- Broken on purpose


class _ClosesEarly(StepRequests):
    """Takes every run for over when half of its time has passed."""

    def see(self, keys, event, at):
        within = max(each.within for each in self._sequences.values())
        super().see(keys, event, at - self._lateness - within / 2)


class _NeverOpens(StepRequests):
    """Asks for first steps only."""

    def see(self, keys, event, at):
        pass


class _HearsAdvertisementsOnce(StepRequests):
    """Takes no note of advertisements that come later."""

    def know(self, advertised, now):
        if self._advertised is None:
            super().know(advertised, now)


class _DropsAtOnce(StepRequests):
    """Forgets at once what is advertised no longer, though it may have come before."""

    def _linger(self, steps, now):
        self._dirty.update(dict.fromkeys(key for key, _ in steps))


class _NeverCloses(StepRequests):
    """Asks for later steps for ever."""

    def advance(self, now):
        pass


@pytest.mark.parametrize(
    ("broken", "advertisements"),
    [
        (_ClosesEarly, None),
        (_NeverOpens, None),
        (_NeverCloses, None),
        (_HearsAdvertisementsOnce, "covering"),
        (_DropsAtOnce, "covering"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_requests_that_are_broken_on_purpose_are_found_out(broken, advertisements):
    assert any(
        simulate_requests(seed, "covering", advertisements=advertisements, make=broken).problems for seed in range(20)
    )


@pytest.mark.parametrize("broken", [_ClosesEarly, _NeverOpens], ids=lambda each: each.__name__)
def test_requests_that_miss_more_than_the_window_of_loss_are_found_out_under_way(broken):
    assert any(simulate_requests(seed, "covering", is_at_rest=False, make=broken).problems for seed in range(20))


# -- One home on a line


class Home:
    """A client with a sequence at one end of a line of three, a publisher at the other."""

    def __init__(self, strategy="covering", advertisements=None, **options):
        self.controls = []
        self.network = Network(
            ["b0", "b1", "b2"],
            [("b0", "b1"), ("b1", "b2")],
            lambda name: Broker(name, strategy, advertisements=advertisements),
            Random(1),
            observers=[self._count],
        )
        self.network.attach("ann", "b0")
        self.network.attach("shop", "b2")
        self.network.run()
        self.requests = StepRequests(**options)
        self.requests.add("guess", Sequence.parse(GUESS))

    def _count(self, occurrence):
        if isinstance(occurrence, MessageCarried) and isinstance(occurrence.message, Subscribe | Unsubscribe):
            self.controls.append((occurrence.source, occurrence.target))

    def say(self):
        """Say what changed; return over which links control messages went because of it."""
        self.controls.clear()
        for message in self.requests.messages():
            if isinstance(message, Subscribe):
                self.network.subscribe_many("ann", {entry.key: entry.filter for entry in message.entries})
            else:
                for key in message.keys:
                    self.network.unsubscribe("ann", key)
        self.network.run()
        return list(self.controls)

    def hear(self, now):
        """Let the home know what is advertised."""
        self.network.run()
        self.requests.know(advertised_to(self.network.brokers["b0"]), now)

    def wanted_at(self, broker):
        names = self.network.brokers[broker].neighbours
        return sorted(str(each) for name in names for each in self.network.brokers[broker].wanted_by(name).values())


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"flooding"}))
def test_a_run_that_opens_or_ends_costs_one_control_message_on_each_link(strategy):
    home = Home(strategy, while_open=True, lateness=1.0)
    one_each = [("b0", "b1"), ("b1", "b2")]
    assert home.say() == one_each
    assert home.wanted_at("b2") == ["kind = 'bad'"]
    home.requests.see(["guess"], {"kind": "bad"}, 10.0)
    assert home.say() == one_each
    assert "good" in "".join(home.wanted_at("b2"))
    home.requests.see(["guess"], {"kind": "bad"}, 11.0)
    assert home.say() == [], "it is open already"
    home.requests.advance(13.5)
    assert home.say() == [], "the second run is open until 14"
    home.requests.advance(14.0)
    assert home.say() == one_each
    assert home.wanted_at("b2") == ["kind = 'bad'"]


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"flooding"}))
def test_no_step_is_forwarded_if_one_step_overlaps_no_advertisement(strategy):
    home = Home(strategy, advertisements="covering", needs_all=True, lateness=1.0)
    home.network.advertise("shop", "bads", tamis.parse("kind = 'bad' AND x > 3"))
    home.hear(0.0)
    assert home.say() == []
    assert home.wanted_at("b2") == home.wanted_at("b1") == []
    home.network.advertise("shop", "others", tamis.parse("kind <> 'bad'"))
    home.hear(1.0)
    assert home.say() == [("b0", "b1"), ("b1", "b2")]
    assert home.wanted_at("b2")
    home.network.unadvertise("shop", "bads")
    home.hear(10.0)
    assert home.say() == [], "a bad of before may still be followed by a good"
    home.requests.advance(12.9)
    assert home.say() == []
    home.requests.advance(13.0)
    home.say()
    assert home.wanted_at("b2") == home.wanted_at("b1") == []


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"flooding"}))
def test_steps_behind_one_that_cannot_come_are_not_forwarded(strategy):
    home = Home(strategy, advertisements="covering")
    home.network.advertise("shop", "goods", tamis.parse("kind = 'good'"))
    home.hear(0.0)
    assert home.say() == []
    home.network.advertise("shop", "bads", tamis.parse("kind = 'bad'"))
    home.network.unadvertise("shop", "goods")
    home.hear(1.0)
    home.say()
    assert home.wanted_at("b2") == ["kind = 'bad'"]


def test_what_must_not_happen_need_not_be_advertised():
    requests = StepRequests(needs_all=True, while_open=True)
    requests.add("unpaid", Sequence.parse("SEQUENCE kind = 'order' THEN NOT kind = 'payment' WITHIN 1 HOUR"))
    requests.know({"shop": tamis.parse("kind = 'order'")}, 0.0)
    (said,) = requests.messages()
    assert [str(entry.filter) for entry in said.entries] == ["kind = 'order' OR kind = 'payment'"]


def test_what_follows_in_time_is_asked_for_again_and_a_removed_sequence_no_longer():
    requests = StepRequests(while_open=True)
    requests.add("a", Sequence.parse(GUESS))
    requests.see(["a"], {"kind": "bad"}, 0.0)
    requests.remove("a")
    assert requests.messages() == []
    assert requests.next_due is None
    requests.add("a", Sequence.parse("SEQUENCE x = 1 THEN x = 2"))
    (said,) = requests.messages()
    assert [str(entry.filter) for entry in said.entries] == ["x = 1"]
    requests.see(["a"], {"x": 1}, 0.0)
    requests.advance(1e9)
    (said,) = requests.messages()
    assert [str(entry.filter) for entry in said.entries] == ["x = 1 OR x = 2"], "without WITHIN a run never ends"
    requests.remove("a")
    assert requests.messages() == [Unsubscribe(("a",))]
