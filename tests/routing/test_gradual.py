"""Neighbours that are told step by step, greeted in parts, and renewed: in the end all is as it is in one piece."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import FALSE, TRUE
from tamis.relations import identical
from tamis.routing import (
    STRATEGIES,
    Advertise,
    Broker,
    Entry,
    Hello,
    LengthOfMessagesError,
    MessageError,
    Publish,
    Send,
    Subscribe,
    Unadvertise,
    UnknownPeerError,
    Unsubscribe,
    links,
)
from tamis.routing.greeting import PartialHello, in_parts
from tamis.routing.messages import INCOMPLETE, PROVISIONAL
from tamis.simulation import Scenario, simulate
from tamis.simulation.actors import _pool, world
from tamis.simulation.occurrences import MessageCarried

EXACT = ["flooding", "simple", "identity", "covering"]


def filters(texts):
    return tuple(Entry(number, tamis.parse(text)) for number, text in enumerate(texts))


def sent(outputs):
    return [(each.peer, each.message) for each in outputs if isinstance(each, Send)]


def drained(broker, budget=1):
    outputs = []
    while broker.work_count:
        outputs += broker.work(budget, 0.0)
    return outputs


def changed(broker, chance, keys):
    """Let a client, or a neighbour, come or go with something."""
    number = chance.randrange(6)
    if chance.random() < 0.7:
        return Subscribe((Entry(f"s{number}", chance.choice(_pool())),))
    return Unsubscribe((f"s{number}",))


@pytest.mark.parametrize("advertisements", [None, "covering"])
@pytest.mark.parametrize("strategy", STRATEGIES)
@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_what_is_worked_out_in_slices_is_in_the_end_what_it_is_in_one_piece(strategy, advertisements, seed):
    """Of exact strategies the same filters, up to identity; of all of them, what covers the same or more."""
    plain, gradual = (Broker("b", strategy, advertisements=advertisements, algorithm="naive") for _ in range(2))
    for broker in (plain, gradual):
        broker.attach("ann")
        broker.connect("north", 0.0)
        broker.receive(Hello(), "north", 0.0)
    chance = Random(seed)

    def both(message, source):
        plain.receive(message, source, 0.0)
        gradual.receive(message, source, 0.0)

    for _ in range(10):
        both(changed(plain, chance, "ann"), "ann")
    both(Subscribe(tuple(Entry(number, chance.choice(_pool())) for number in range(8))), "north")
    plain.connect("south", 0.0)
    gradual.connect("south", 0.0, gradually=True)
    both(Hello((), (Entry(0, chance.choice(_pool())), Entry(1, chance.choice(_pool())))), "south")
    for number in range(12):
        gradual.work(chance.randrange(4), 0.0)
        both(changed(plain, chance, "ann"), "ann")
        if number == 5:
            both(Unsubscribe((0, 1, 2, 3, 4, 5), (Entry(8, chance.choice(_pool())),)), "north")
        if number == 7:
            both(Unadvertise((0,), (Entry(2, chance.choice(_pool())),)), "south")
    drained(gradual)
    one, two = ([entry.filter for entry in each.told("south")] for each in (plain, gradual))
    if strategy in EXACT:
        assert len(one) == len(two)
        for each in one:
            assert any(identical(each, other) for other in two)
    if strategy == "merging":
        assert world().anywhere(one) == world().anywhere(two)
    wanted = world().anywhere(filter_ for peer, _, filter_ in gradual.table.entries() if peer != "south")
    if advertisements is None:
        assert not wanted & ~world().anywhere(two)


def test_a_link_carries_events_before_anything_is_worked_out():
    one, two = Broker("one"), Broker("two")
    for broker in (one, two):
        broker.attach("client")
    one.receive(Subscribe(filters(["x = 1", "x < 3"])), "client", 0.0)
    (hello,) = one.connect("two", 0.0, gradually=True)
    two.connect("one", 0.0)
    assert hello.message.entries == (Entry(PROVISIONAL, TRUE, 1.0),)
    two.receive(hello.message, "one", 0.0)
    assert [each.peer for each in two.receive(Publish("e", {"x": 99}), "client", 0.0)] == ["one"]
    for each in drained(one):
        two.receive(each.message, "one", 0.0)
    assert two.receive(Publish("f", {"x": 99}), "client", 0.0) == []
    assert [each.peer for each in two.receive(Publish("g", {"x": 2}), "client", 0.0)] == ["one"]


def test_a_unit_of_work_looks_at_one_filter_and_tells_of_no_more_than_a_message_has(monkeypatch):
    broker = Broker("b", "covering", most_entries=3)
    broker.attach("ann")
    broker.receive(Subscribe(filters([f"x = {number}" for number in range(40)])), "ann", 0.0)
    broker.connect("north", 0.0, gradually=True)
    summary = broker._links["north"].wanted
    counts, add = [], summary._inner.add
    monkeypatch.setattr(summary._inner, "add", lambda *each: counts.append(each) or add(*each))
    for number in range(1, 41):
        assert broker.work(1, 0.0) == [] and len(counts) == number
    told = []
    while broker.work_count:
        (output,) = broker.work(1, 0.0)
        assert len(output.message.entries) <= 3 and len(counts) == 40
        told.append(output.message)
    assert [each.replaces for each in told] == [()] * 13 + [(PROVISIONAL,)]
    assert sum(len(each.entries) for each in told) == 40


def test_many_filters_of_one_message_do_not_hold_a_gradual_link_up_later_either():
    broker = Broker("b", "simple")
    for neighbour in ("north", "south"):
        broker.connect(neighbour, 0.0, gradually=neighbour == "south")
        broker.receive(Hello(), neighbour, 0.0)
    drained(broker)
    many = Subscribe(filters([f"x = {number}" for number in range(100)]))
    assert sum(len(message.entries) for _, message in sent(broker.receive(many, "north", 0.0))) == links.AT_ONCE
    assert sum(len(each.message.entries) for each in drained(broker, 7)) == 100 - links.AT_ONCE


def test_true_is_told_to_one_neighbour_and_not_told_on():
    broker = Broker("b")
    for neighbour in ("north", "south"):
        broker.connect(neighbour, 0.0)
    broker.receive(Hello(), "south", 0.0)
    outputs = broker.receive(Hello((Entry(PROVISIONAL, TRUE),)), "north", 0.0)
    assert not any(entry.filter == TRUE for _, message in sent(outputs) for entry in message.entries)
    (greeting,) = broker.connect("east", 0.0)
    assert greeting.message.entries == (Entry(INCOMPLETE, FALSE),), "a newcomer is not told either"
    assert [each.peer for each in broker.receive(Publish("e", {"x": 1}), "south", 0.0)] == ["north"]


def test_an_unfinished_hello_changes_nothing():
    broker = Broker("b")
    broker.attach("ann")
    for neighbour in ("north", "south"):
        broker.connect(neighbour, 0.0)
    for part in list(in_parts(Hello(filters([f"x = {number}" for number in range(9)])), 2))[:-1]:
        assert broker.receive(part, "north", 0.0) == []
    assert len(broker.table) == 0 and broker.advertised_by("north") == {}
    assert broker.receive(Publish("e", {"x": 1}), "ann", 0.0) == []


def test_a_part_that_comes_twice_or_too_early_does_not_count():
    parts = list(in_parts(Hello(filters(["x = 1", "x = 2", "x = 3"])), 1))
    greeting = PartialHello()
    assert [greeting.take(each) for each in (parts[1], parts[0], parts[2], parts[0], parts[1], parts[1])] == [False] * 6
    assert greeting.take(parts[2]) and [entry.key for entry in greeting.entries] == [0, 1, 2]


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_said_between_the_parts_of_a_hello_counts_with_it_as_if_it_had_come_after(data):
    whole = Hello(
        filters([f"x = {number}" for number in range(data.draw(st.integers(0, 6)))]),
        filters([f"y = {number}" for number in range(data.draw(st.integers(0, 4)))]),
    )
    parts = list(in_parts(whole, data.draw(st.integers(1, 3))))
    later = [
        Subscribe((Entry(10, tamis.parse("x > 5")),), (0,)),
        Publish("e", {"x": 1}),
        Unsubscribe((1, 10), (Entry(11, tamis.parse("x > 6")),)),
        Advertise((Entry(10, tamis.parse("y > 5")),), (1,)),
        Unadvertise((0,), ()),
    ]
    later = later[: data.draw(st.integers(0, len(later)))]
    places = sorted(data.draw(st.integers(1, len(parts))) for _ in later)
    interleaved = []
    for number, part in enumerate(parts):
        interleaved += [each for place, each in zip(places, later, strict=True) if place == number]
        interleaved.append(part)
    interleaved += [each for place, each in zip(places, later, strict=True) if place == len(parts)]
    one, two = (Broker("b", advertisements="simple", algorithm="naive") for _ in range(2))
    for broker, messages in ((one, [whole, *later]), (two, interleaved)):
        broker.connect("north", 0.0)
        for message in messages:
            broker.receive(message, "north", 0.0)
    assert one.wanted_by("north") == two.wanted_by("north")
    assert one.advertised_by("north") == two.advertised_by("north")


@pytest.mark.parametrize(
    ("hello", "says"),
    [
        (Hello(part=-1), "part -1 of a Hello; expected a whole number from 0"),
        (Hello(part=True), "part True of a Hello"),
        (Hello(more=1), "field more is 1; expected true or false"),
        (Hello((Entry(-3, TRUE),)), "calls a filter -3; expected a number from -2 on"),
    ],
)
def test_a_part_that_is_none_is_refused(hello, says):
    broker = Broker("b")
    broker.connect("north", 0.0)
    with pytest.raises(MessageError, match=says):
        broker.receive(hello, "north", 0.0)


@pytest.mark.parametrize("count", [0, -1, 1.5, None])
def test_a_message_has_room_for_a_filter(count):
    with pytest.raises(LengthOfMessagesError, match="at least 1 filter"):
        Broker("b", most_entries=count)


# -- Renewals


def test_a_neighbour_that_nobody_knows_cannot_be_renewed():
    with pytest.raises(UnknownPeerError):
        Broker("b").renew("north", 0.0)


def network_at_rest(strategy, seed, broker_count=6, **options):
    scenario = Scenario(seed, strategies=(strategy,), broker_count=broker_count, round_count=1, **options)
    run = simulate(scenario)
    assert run.problems == []
    network = run.network
    chance = Random(seed)
    for name in network.clients:
        network.subscribe_many(name, {f"s{number}": chance.choice(_pool()) for number in range(3)})
    network.run()
    return run


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if "merging" not in name])
@pytest.mark.parametrize("seed", range(3))
def test_when_a_broker_is_renewed_and_nothing_has_changed_nobody_but_its_neighbours_hears_of_it(strategy, seed):
    run = network_at_rest(strategy, seed)
    network = run.network
    for name in list(network.brokers):
        heard = []
        network.observers.append(lambda each, heard=heard: heard.append(each))
        network.renew(name)
        network.run()
        network.observers.pop()
        links = {(each.source, each.target) for each in heard if isinstance(each, MessageCarried)}
        assert links and all(name in link for link in links)
    assert run.problems == []


class SaysThatThisIsAll(Broker):
    """Greets as if it knew all, while its own neighbours have not told it anything yet."""

    def _conclude(self):
        for link in self._links.values():
            link.conclude(filters=True, advertisements=True)


def test_a_broker_that_says_too_soon_that_this_is_all_is_heard_of_everywhere():
    run = network_at_rest("covering", 1)
    network = run.network
    network._make = lambda name: SaysThatThisIsAll(name, algorithm="naive")
    strangers = set()
    for name in list(network.brokers):
        heard = []
        network.observers.append(lambda each, heard=heard: heard.append(each))
        network.renew(name)
        network.run()
        network.observers.pop()
        strangers |= {
            (each.source, each.target)
            for each in heard
            if isinstance(each, MessageCarried) and name not in (each.source, each.target)
        }
    assert strangers


def test_what_a_renewed_neighbour_does_not_say_again_is_gone_in_one_step_with_its_hello():
    broker = Broker("b", "simple")
    for neighbour in ("north", "south"):
        broker.connect(neighbour, 0.0)
        broker.receive(Hello(), neighbour, 0.0)
    broker.receive(Subscribe(filters(["x = 1", "x = 2", "x = 1"])), "north", 0.0)
    assert [peer for peer, _ in sent(broker.renew("north", 1.0))] == ["north"]
    assert broker.receive(Subscribe((Entry(3, tamis.parse("x = 9")),)), "north", 1.0) == [], "it is from before"
    assert len(broker.table.of("north")) == 3
    outputs = sent(broker.receive(Hello(filters(["x = 3", "x = 1"])), "north", 2.0))
    assert outputs == [("south", Subscribe((Entry(3, tamis.parse("x = 3"), 0.0, 1),), outputs[0][1].replaces))]
    assert len(outputs[0][1].replaces) == 2
    assert {number: str(each) for number, each in broker.wanted_by("north").items()} == {0: "x = 3", 1: "x = 1"}
    broker.receive(Unsubscribe((0, 1)), "north", 3.0)
    assert len(broker.table) == 0 and broker.told("south") == ()


@pytest.mark.parametrize("at_once", [0, 1, links.AT_ONCE])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gradual_links_and_renewals_keep_the_promises(strategy, at_once, monkeypatch):
    monkeypatch.setattr(links, "AT_ONCE", at_once)
    for seed in range(4):
        fixed = {"strategies": (strategy,), "gradual": True, "renews": True, "is_crowded": False}
        scenario = Scenario.of_seed(5_000 + 10 * at_once + seed, has_faults=seed % 2 == 0, **fixed)
        assert simulate(scenario).problems == [], scenario
