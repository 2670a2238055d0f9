"""Time, links and faults of a simulated network, one at a time."""

from __future__ import annotations

import pickle
from random import Random

import pytest

import tamis
from tamis.errors import TamisError
from tamis.routing import Adaptation, Broker, Hello, ImperfectMerging, Send, Subscribe, Unsubscribe
from tamis.simulation import Checker, Network, Scenario, TrafficCounters, measured, simulate
from tamis.simulation.__main__ import main
from tamis.simulation.errors import KnownNameError, RestlessError, UnknownNameError, WrongStateError
from tamis.simulation.occurrences import Expired

RING = [("a", "b"), ("b", "c"), ("a", "c")]


def ring(seed=1, make=lambda name: Broker(name, algorithm="naive")):
    network = Network("abc", RING, make, Random(seed))
    for name in "abc":
        network.attach(f"client {name}", name)
    network.subscribe("client c", "s", tamis.parse("x > 1"))
    network.run()
    return network


def test_when_a_link_fails_a_waiting_one_takes_its_place_and_nothing_comes_twice():
    network = ring()
    checker = Checker(network)
    checker.assume_spread("client c", "s", tamis.parse("x > 1"))
    assert network.used == [("a", "b"), ("b", "c")]
    network.fail_link(("b", "c"))
    network.run()
    assert network.used == [("a", "b"), ("a", "c")]
    network.publish("client b", "e1", {"x": 5})
    network.run()
    network.mend_link(("b", "c"))
    network.publish("client b", "e2", {"x": 5})
    network.run()
    assert network.used == [("a", "b"), ("a", "c")], "what works stays in use"
    assert network.delivered_count == 2 and checker.problems == []


def test_a_restarted_broker_learns_what_its_clients_and_neighbours_want():
    network = ring()
    network.crash("b")
    network.run()
    assert network.used == [("a", "c")] and not network.is_online("client b")
    network.publish("client b", "lost", {"x": 5})
    network.subscribe("client b", "t", tamis.parse("x < 0"))
    network.restart("b")
    network.run()
    network.publish("client b", "e1", {"x": 5})
    network.publish("client a", "e2", {"x": -5})
    network.run()
    assert network.delivered_count == 2
    assert measured(network)["entries"] == 4


def test_a_broker_that_crashes_and_starts_at_once_announces_under_new_keys():
    network = ring(make=lambda name: Broker(name, algorithm="naive", announces=True))
    checker = Checker(network, announces=True)
    checker.assume_spread("client c", "s", tamis.parse("x > 1"))
    network.subscribe("client c", "all", tamis.parse("type = 'tamis.Subscribed'"))
    network.run()
    for number in range(3):
        network.subscribe("client a", number, tamis.parse("x = 1"))
    before = network.now
    network.run()
    delivered = network.delivered_count
    network.crash("a")
    network.restart("a")
    assert network.now > before
    network.run()
    network.subscribe("client a", "t", tamis.parse("x = 1"))
    network.run()
    assert network.delivered_count > delivered and checker.problems == []


def test_what_is_under_way_on_a_link_that_fails_is_lost_and_only_that():
    network = ring()
    network.publish("client a", "e1", {"x": 5})
    network.fail_link(("a", "b"))
    network.run()
    network.publish("client a", "e2", {"x": 5})
    network.run()
    assert network.delivered_count == 1


def test_messages_of_one_link_keep_their_order():
    for seed in range(20):
        network = ring(seed)
        for number in range(10):
            network.subscribe("client a", "s", tamis.parse(f"x = {number}"))
        network.run()
        assert [str(each) for each in network.brokers["b"].table.of("a").values()] == ["x = 9"]


def test_adaptive_filtering_saves_matching_and_loses_nothing():
    settings = Adaptation(stop_above=0.6, ask_above=0.5, event_count=4, wait_s=0.01)

    def make(scenario, number, name):
        return Broker(
            name, ImperfectMerging(), advertisements=scenario.advertisements, algorithm="naive", adaptation=settings
        )

    stopped = asked = 0
    for seed in range(25):
        run = simulate(Scenario.of_seed(seed, schema=None), make)
        assert run.problems == [], f"replay with {run.scenario}"
        asked += run.counters.messages["ResumeFiltering"]
        stopped += sum(
            not broker.is_filtering(each) for broker in run.network.brokers.values() for each in broker.neighbours
        )
    assert stopped > 0 and asked > 0


def test_a_network_that_answers_in_circles_is_stopped():
    class Echo(Broker):
        def receive(self, message, source, now):
            return [Send(source, message)] if source in self.neighbours else super().receive(message, source, now)

    with pytest.raises(RestlessError, match="answering in circles"):
        Network("ab", [("a", "b")], Echo, Random(1)).run(most_steps=100)


def test_counters_tell_messages_items_bytes_hops_and_delays():
    network = ring()
    counters = TrafficCounters(counts_bytes=True)
    network.observers.append(counters)
    network.subscribe("client c", "t", tamis.parse("x > 0"))
    network.run()
    network.publish("client a", "e", {"x": 3})
    network.run()
    assert counters.messages == {Subscribe.__name__: 2, "Passed": 2}
    assert counters.items[Subscribe.__name__] == 4, "each brings a filter and replaces one"
    assert counters.hop_count == 2 and 0.002 <= counters.delay_s <= 0.2
    assert counters.message_bytes["Passed"] > 10 and counters.messages[Unsubscribe.__name__] == 0
    network.publish("client c", "f", {"x": 3})
    network.publish("client b", "g", {"x": 3})
    network.run()
    assert counters.hop_count == 2 + 0 + 1 and counters.largest_hop_count == 2
    assert counters.delay_s / 3 < counters.largest_delay_s < counters.delay_s


def test_tables_of_filters_and_of_advertisements_are_measured_apart():
    network = ring(make=lambda name: Broker(name, advertisements="simple", algorithm="naive"))
    assert measured(network) == {
        "entries": 0,
        "largest_table": 0,
        "table_bytes": 0,
        "matches": 0,
        "advertisements": 0,
        "largest_advertisement_table": 0,
        "advertisement_bytes": 0,
    }
    network.advertise("client a", "a", tamis.parse("x < 5"))
    network.advertise("client a", "b", tamis.parse("y = 1"))
    network.run()
    found = measured(network)
    assert (found["advertisements"], found["largest_advertisement_table"]) == (4, 2), "b and c know both of them"
    assert found["advertisement_bytes"] == 4 * len("x < 5")
    assert (found["entries"], found["table_bytes"]) == (2, 2 * len("x > 1")), "b and a know what c wants"


# -- Leases, and clients that come and go


def test_a_lease_ends_while_messages_are_under_way_and_the_client_forgets_it():
    network = ring()
    ended = []
    network.observers.append(lambda each: ended.append(each) if isinstance(each, Expired) else None)
    checker = Checker(network)
    checker.assume_spread("client c", "s", tamis.parse("x > 1"))
    network.subscribe("client a", "t", tamis.parse("x > 3"), lease_s=0.01)
    network.publish("client c", "e", {"x": 5})
    network.run()
    assert ended == [Expired("client a", "t")] and network.clients["client a"].subscriptions == {}
    assert network.brokers["a"].next_due is None and checker.problems == []


def test_a_restarted_broker_gets_a_lease_back_for_the_rest_of_its_time_only():
    network = ring()
    checker = Checker(network)
    checker.assume_spread("client c", "s", tamis.parse("x > 1"))
    network.subscribe("client a", "short", tamis.parse("x = 1"), lease_s=5)
    network.subscribe("client a", "long", tamis.parse("x = 2"), lease_s=20)
    end = network.now + 20
    network.subscribe("client a", "ever", tamis.parse("x = 3"))
    network.crash("a")
    network.wait(10)
    assert list(network.clients["client a"].subscriptions) == ["long", "ever"], "it counts while its broker is gone"
    network.restart("a")
    network.run()
    assert list(network.brokers["a"].table.of("client a")) == ["long", "ever"]
    assert network.brokers["a"].next_due == pytest.approx(end)
    network.wait(11)
    network.run()
    assert list(network.brokers["a"].table.of("client a")) == ["ever"] and checker.problems == []


def test_a_lease_that_ran_out_while_nothing_happened_brings_no_more_events_not_even_one_s_own():
    network = Network("ab", [("a", "b")], lambda name: Broker(name, algorithm="naive"), Random(1))
    checker = Checker(network)
    for client, home in (("ann", "a"), ("bob", "b")):
        network.attach(client, home)
        network.subscribe(client, "s", tamis.parse("x > 1"), lease_s=5.0)
    network.run()
    network.now = 5.0  # a quiet network: the clock went on, and nobody asked what ends
    network.publish("ann", "e1", {"x": 5})
    network.run()
    assert network.delivered_count == 0 and checker.problems == []
    assert measured(network)["entries"] == 0 and not network.clients["bob"].subscriptions


def test_a_broker_that_dies_unnoticed_is_forgotten_when_its_lease_is_over():
    network = ring(make=lambda name: Broker(name, algorithm="naive", link_lease_s=2.0))
    checker = Checker(network)
    checker.assume_spread("client c", "s", tamis.parse("x > 1"))
    assert network.used == [("a", "b"), ("b", "c")]
    died_s = network.now
    network.crash("b", is_noticed=False)
    assert not network.is_quiet and "b" in network.brokers["a"].neighbours
    network.publish("client a", "lost", {"x": 5})
    network.run()
    assert network.used == [("a", "c")] and 1.0 <= network.now - died_s <= 2.5
    network.publish("client a", "e1", {"x": 5})
    network.run()
    network.restart("b")
    network.run()
    network.publish("client b", "e2", {"x": 5})
    network.run()
    assert network.delivered_count == 2 and checker.problems == []


@pytest.mark.parametrize("dying", ["cd", "dc", "bc", "abcd", "dcba", "bcd", "acd"])
def test_neighbours_that_die_unnoticed_together_leave_a_network_that_comes_to_rest(dying):
    network = Network(
        "abcd",
        [("a", "b"), ("b", "c"), ("c", "d")],
        lambda name: Broker(name, algorithm="naive", link_lease_s=1.0),
        Random(1),
    )
    checker = Checker(network)
    network.attach("ann", "a"), network.attach("dan", "d")
    network.subscribe("dan", "s", tamis.parse("x > 1"))
    network.run()
    for name in dying:
        network.crash(name, is_noticed=False)
    network.run(most_steps=1_000)
    assert network.is_quiet and network.crashed == sorted(dying)
    assert all(end in network.brokers for link in network.used for end in link)
    assert all(end in network.brokers for broker in network.brokers.values() for end in broker.neighbours)
    network.mend()
    network.run(most_steps=1_000)
    network.publish("ann", "e", {"x": 5})
    network.run(most_steps=1_000)
    assert network.delivered_count == 1 and checker.problems == []


def test_a_seed_by_which_two_neighbours_die_unnoticed_comes_to_rest():
    assert simulate(Scenario.of_seed(1766, has_faults=True)).problems == []


def test_neighbours_that_live_are_not_lost_however_long_nothing_happens():
    network = ring(make=lambda name: Broker(name, algorithm="naive", link_lease_s=1.0))
    counters = TrafficCounters()
    network.observers.append(counters)
    used = list(network.used)
    network.wait(60.0)
    network.run()
    assert network.used == used and 460 <= counters.messages["Renew"] <= 490, "four directions, twice a second"
    assert counters.control_count == 0
    network.publish("client a", "e", {"x": 5})
    network.run()
    assert network.delivered_count == 1


def test_a_broker_without_a_lease_does_not_die_unnoticed():
    with pytest.raises(WrongStateError, match="without a lease"):
        ring().crash("b", is_noticed=False)


def test_a_client_that_comes_back_says_again_what_it_wants_and_gets_nothing_meanwhile():
    network = ring()
    checker = Checker(network)
    checker.assume_spread("client c", "s", tamis.parse("x > 1"))
    network.disconnect("client c")
    network.run()
    assert measured(network)["entries"] == 0 and not network.is_online("client c")
    network.publish("client a", "e1", {"x": 5})
    network.subscribe("client c", "t", tamis.parse("x < 0"))
    network.run()
    assert network.delivered_count == 0
    network.reconnect("client c")
    network.run()
    network.publish("client a", "e2", {"x": 5})
    network.publish("client a", "e3", {"x": -5})
    network.run()
    assert network.delivered_count == 2 and checker.problems == []


def test_a_client_forgets_what_its_broker_refuses():
    schema = tamis.Schema({"x": "int"})
    network = ring(make=lambda name: Broker(name, schema=schema, algorithm="naive"))
    checker = Checker(network)
    checker.assume_spread("client c", "s", tamis.parse("x > 1"))
    network.subscribe("client a", "t", tamis.parse("unheard_of = 1"))
    network.run()
    assert [each.key for each in network.rejected] == ["t"] and network.clients["client a"].subscriptions == {}
    assert checker.problems == []


def test_messages_that_travel_as_bytes_make_the_same_tables():
    for seed in range(5):
        runs = [simulate(Scenario(seed, strategies=("merging",), encodes=encodes)) for encodes in (False, True)]
        assert runs[0].counters == runs[1].counters and runs[1].problems == []


def test_a_copy_of_a_message_may_come_after_later_ones_and_changes_nothing():
    network = ring()
    network.travel.duplicate_share = 1.0
    for number in range(20):
        network.subscribe("client a", "s", tamis.parse(f"x = {number}"))
        network.step()
    network.run()
    assert [str(each) for each in network.brokers["b"].table.of("a").values()] == ["x = 19"]


def test_time_stands_still_where_nothing_is_to_come():
    network = ring()
    now = network.now
    network.step()
    assert network.now == now
    network.subscribe("client a", "t", tamis.parse("x = 2"), lease_s=5)
    network.run()
    assert network.now < now + 1, "a lease is not waited for"
    network.step()
    assert network.now == now + 5 and network.brokers["a"].next_due is None


# -- What is asked of a network that it cannot do


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        (lambda network: network.fail_link(("a", "z")), UnknownNameError, "no link 'a-z'; there are: a-b, b-c, a-c"),
        (lambda network: network.mend_link(("z", "a")), UnknownNameError, "no link 'z-a'; there are: a-b, b-c, a-c"),
        (lambda network: network.crash("z"), UnknownNameError, "no broker 'z'; there are: a, b, c"),
        (lambda network: network.crash("b"), WrongStateError, "broker 'b' is down; restart it first"),
        (lambda network: network.restart("z"), UnknownNameError, "no broker 'z'; there are: a, b, c"),
        (lambda network: network.restart("a"), WrongStateError, "broker 'a' is running; crash it first"),
        (lambda network: network.attach("client a", "c"), KnownNameError, "'client a' is the name of a client at 'a'"),
        (lambda network: network.attach("c", "a"), KnownNameError, "'c' is the name of another broker already"),
        (lambda network: network.attach("new", "z"), UnknownNameError, "no broker 'z'"),
        (lambda network: network.attach("new", "b"), WrongStateError, "broker 'b' is down"),
        (lambda network: network.subscribe("bob", "s", tamis.parse("x = 1")), UnknownNameError, "no client 'bob'"),
        (lambda network: network.advertise("bob", "s", tamis.parse("x = 1")), UnknownNameError, "no client 'bob'"),
        (lambda network: network.publish("bob", "e", {}), UnknownNameError, "there are: client a, client b, client c"),
        (lambda network: network.unsubscribe("bob", "s"), UnknownNameError, "no client 'bob'"),
        (lambda network: network.unsubscribe("client c", "t"), UnknownNameError, "of 'client c' 't'; there are: s"),
        (lambda network: network.unadvertise("client c", "s"), UnknownNameError, "'s'; there are: none"),
        (lambda network: network.disconnect("bob"), UnknownNameError, "no client 'bob'"),
        (lambda network: network.reconnect("client a"), WrongStateError, "is connected; disconnect it first"),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(ask, error, says):
    network = ring()
    network.crash("b")
    network.run()
    happened = []
    network.observers.append(happened.append)
    before = measured(network), network.used, list(network.clients), list(network.brokers)
    with pytest.raises(error) as caught:
        ask(network)
    assert says in str(caught.value) and isinstance(caught.value, TamisError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert happened == [] and network.is_quiet
    assert (measured(network), network.used, list(network.clients), list(network.brokers)) == before


def test_a_link_to_a_broker_that_there_is_not_is_refused():
    with pytest.raises(UnknownNameError, match="there is no broker 'z'; there are: a, b"):
        Network("ab", [("a", "z")], Broker, Random(1))


def test_a_link_may_be_named_from_either_end():
    network = ring()
    network.fail_link(("c", "b"))
    network.run()
    assert network.used == [("a", "b"), ("a", "c")]
    network.mend_link(("b", "c"))
    network.fail_link(("b", "a"))
    network.run()
    assert network.used == [("a", "c"), ("b", "c")]


def test_many_names_are_not_all_listed():
    assert str(UnknownNameError("client", "x", range(25))).endswith("8, 9 and 15 more")


def test_a_word_that_is_no_seed_is_refused_before_anything_runs(capsys):
    assert main(["1", "abc"]) == 2
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("'abc' is not a seed; a seed is a whole number")


def test_a_checker_sees_what_is_said_when_links_come_up():
    class Mumbles(Broker):
        def connect(self, neighbour, now):
            return [Send(each.peer, Hello()) for each in super().connect(neighbour, now)]

    network = ring(make=lambda name: Mumbles(name, "flooding", algorithm="naive"))
    checker = Checker(network)
    network.run()
    assert "tables: b does not know what a sent it" in checker.problems
