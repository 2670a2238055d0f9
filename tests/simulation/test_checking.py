"""What a checker says of things that happen, one at a time; and what it must not say."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.routing import STRATEGIES, Broker, Publish
from tamis.simulation import Checker, Network, Scenario, simulate
from tamis.simulation.occurrences import ClientSubscribed, EventDelivered, EventPublished, Failed, MessageCarried, Quiet

E1 = Publish("e1", {"x": 5})
FAULT = Failed("something")


def watched(**options):
    """Return a checker of a quiet line of three brokers; ann, at a, wants x > 1."""
    network = Network(
        "abc", [("a", "b"), ("b", "c")], lambda name: Broker(name, algorithm="naive", **options), Random(1)
    )
    checker = Checker(network)
    for client, broker in (("ann", "a"), ("bob", "c")):
        network.attach(client, broker)
    network.subscribe("ann", "s", tamis.parse("x > 1"))
    network.run()
    assert checker.problems == []
    return checker


def told(checker, *occurrences):
    for each in occurrences:
        checker.notice(each)
    return checker.problems


CROSSED = [MessageCarried("c", "b", E1), MessageCarried("b", "a", E1)]
PUBLISHED = EventPublished("bob", "c", E1)
ARRIVED = EventDelivered("ann", E1, ("s",), 2, 0.1)


def test_an_event_that_arrives_is_no_problem_and_one_that_does_not_is_lost():
    assert told(watched(), PUBLISHED, *CROSSED, ARRIVED, Quiet()) == []
    assert told(watched(), PUBLISHED, *CROSSED, Quiet()) == ["lost: ann did not get e1"]
    assert told(watched(), PUBLISHED, CROSSED[0], Quiet()) == [
        "lost: ann did not get e1",
        "detour: e1 did not cross a-b",
    ]


@pytest.mark.parametrize("back", [("c", "b"), ("b", "c")], ids=["again", "back"])
def test_an_event_may_cross_a_link_twice_only_if_something_fails_while_it_is_under_way(back):
    again = MessageCarried(*back, E1)
    said = [f"twice: e1 crossed {'-'.join(back)} again"]
    assert told(watched(), PUBLISHED, *CROSSED, again) == said
    assert told(watched(), FAULT, Quiet(), PUBLISHED, *CROSSED, again) == said, "all had settled again"
    assert told(watched(), FAULT, PUBLISHED, *CROSSED, again) == said, "the tree was chosen before"
    assert told(watched(), PUBLISHED, *CROSSED, FAULT, again) == []


def test_an_event_that_something_fails_under_may_be_lost_and_none_after_that():
    assert told(watched(), PUBLISHED, FAULT, Quiet()) == []
    assert told(watched(), FAULT, PUBLISHED, Quiet()) == []
    problems = told(watched(), FAULT, Quiet(), PUBLISHED, *CROSSED, Quiet())
    assert problems == ["lost: ann did not get e1"]


def test_a_client_gets_an_event_again_only_from_a_broker_that_was_started_anew_and_was_told_again():
    before = [PUBLISHED, *CROSSED, ARRIVED, Quiet()]
    restarted = Failed("restarted a", restarted="a")
    assert told(watched(), *before, restarted, PUBLISHED, ARRIVED) == []
    assert told(watched(), *before, restarted, ARRIVED) == ["unasked: e1 goes on from a, though it was at rest"]
    assert told(watched(), *before, FAULT, PUBLISHED, ARRIVED) == ["twice: ann got e1 again"]


def test_an_event_that_was_not_advertised_goes_nowhere():
    checker = watched(advertisements="simple")
    problems = told(checker, PUBLISHED, CROSSED[0])
    assert problems == ["unasked: e1 goes on from c, though it was refused"]
    assert told(checker, Quiet()) == [*problems]


def test_an_event_that_is_published_again_after_it_was_advertised_is_another_matter():
    checker = watched(advertisements="simple")
    network = checker._network
    network.publish("bob", "e1", {"x": 5})
    network.advertise("bob", "a", tamis.parse("x = 5"))
    network.publish("bob", "e1", {"x": 5})
    network.run()
    assert checker.problems == [] and len(network.rejected) == 1


def test_an_announcement_that_reaches_somebody_must_reach_everybody_who_wants_it():
    event = {"type": "tamis.Subscribed", "broker": "c", "client": "bob", "key": "t", "filter": "x = 1", "x": 5}
    said = Publish("tamis/c/0.0/1", event)
    assert told(watched(), MessageCarried("c", "b", said), Quiet())[0] == "lost: ann did not get tamis/c/0.0/1"
    problems = told(watched(), MessageCarried("b", "a", said))
    assert problems == ["unasked: tamis/c/0.0/1 goes on from b, though it was at rest"], "it is not b's to announce"


def test_a_subscription_that_is_said_again_stays_one_that_has_spread():
    renewed = ClientSubscribed("ann", "s", tamis.parse("x > 1"))
    assert told(watched(), renewed, PUBLISHED, Quiet())[0] == "lost: ann did not get e1"
    changed = ClientSubscribed("ann", "s", tamis.parse("x > 2"))
    assert not any(each.startswith("lost") for each in told(watched(), changed, PUBLISHED, Quiet()))


@pytest.mark.parametrize("advertisements", STRATEGIES)
@pytest.mark.parametrize("strategies", [("flooding",), ("simple",), ("flooding", "covering", "imperfect merging")])
def test_what_brokers_always_want_and_advertise_is_no_problem_at_the_end(strategies, advertisements):
    for seed, prunes in ((6, False), (2, True)):
        scenario = Scenario(
            seed,
            strategies=strategies,
            prunes=prunes,
            advertisements=advertisements,
            prunes_advertisements=prunes,
            announces=True,
        )
        run = simulate(scenario)
        assert run.problems == [], f"replay with simulate({scenario})"
        left = [broker.advertised_by(each) for broker in run.network.brokers.values() for each in broker.neighbours]
        assert all(left), "brokers advertise what they announce"


def test_what_is_left_of_brokers_that_neither_flood_nor_announce_is_a_problem():
    run = simulate(Scenario(6, strategies=("simple",), advertisements="simple", topology="line"))
    assert run.problems == []
    everything = tamis.parse("TRUE")
    run.network.brokers["b1"].table.add("b0", 99, everything)
    run.network.brokers["b1"]._links["b2"].advertise(99, everything, everything)
    run.checker.check_empty()
    assert run.problems == [
        "tables: b1 still knows 99, TRUE of b0",
        "tables: b1 still knows that TRUE may come from b2",
    ]
