"""A client's subscriptions have priorities: at its broker, and nowhere else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.routing import Broker, Deliver, Entry, MessageError, Publish, Send, Subscribe, Unsubscribe, decode, encode
from tamis.routing.acceptance import check_message


def entry(key, text, priority=0):
    return Entry(key, tamis.parse(text), priority=priority)


def broker_with(**clients):
    broker = Broker("home")
    for client, entries in clients.items():
        broker.attach(client)
        broker.receive(Subscribe(entries), client, 0.0)
    return broker


def told(broker, event, key="e"):
    outputs = broker.receive(Publish(key, event), "publisher", 0.0)
    return [(each.client, each.subscriptions, each.priorities) for each in outputs if isinstance(each, Deliver)]


def attached(broker, client="publisher"):
    broker.attach(client)
    return broker


def test_an_event_is_delivered_with_priorities_the_highest_first():
    broker = attached(broker_with(ann=[entry("a", "x > 0"), entry("b", "x > 1", 5), entry("c", "x > 2", -1)]))
    assert told(broker, {"x": 9}) == [("ann", ("b", "a", "c"), (5, 0, -1))]
    assert told(broker, {"x": 1}, "f") == [("ann", ("a",), ())]


def test_of_the_deliveries_of_one_event_the_highest_comes_first():
    broker = attached(broker_with(ann=[entry("a", "x > 0")], bob=[entry("b", "x > 0", 7)], cid=[entry("c", "x > 0")]))
    assert [client for client, *_ in told(broker, {"x": 1})] == ["bob", "ann", "cid"]


def test_a_priority_changes_with_what_is_said_again_and_goes_with_what_is_taken_back():
    broker = attached(broker_with(ann=[entry("a", "x > 0"), entry("b", "x > 0", 2)]))
    broker.receive(Subscribe([entry("a", "x > 0", 3)]), "ann", 0.0)  # the same filter, more urgent
    assert told(broker, {"x": 1}) == [("ann", ("a", "b"), (3, 2))]
    broker.receive(Subscribe([entry("a", "x > 0")]), "ann", 0.0)
    assert told(broker, {"x": 1}, "f") == [("ann", ("b", "a"), (2, 0))]
    broker.receive(Unsubscribe(("b",)), "ann", 0.0)
    broker.receive(Subscribe([entry("c", "x > 0")]), "ann", 0.0)  # which may get the handle of b
    assert told(broker, {"x": 1}, "g") == [("ann", ("a", "c"), ())]


def test_neighbours_are_not_told_of_priorities():
    broker = attached(Broker("home"), "ann")
    broker.connect("north", 0.0)
    outputs = broker.receive(Subscribe([entry("a", "x > 0", 9)]), "ann", 0.0)
    sent = [each.message for each in outputs if isinstance(each, Send)]
    assert sent
    assert {each.priority for message in sent for each in message.entries} == {0}
    with pytest.raises(MessageError, match="a neighbour's filter has a priority"):
        check_message(Subscribe([Entry(1, tamis.parse("x"), priority=1)]), "neighbour")


@pytest.mark.parametrize("priority", [2**31, -(2**31), 1.5, True, None, "1"])
def test_what_is_no_priority_is_refused(priority):
    with pytest.raises(MessageError, match="an integer of 32 bits"):
        check_message(Subscribe([Entry("k", tamis.parse("x"), priority=priority)]))


@given(priority=st.integers(-(2**31) + 1, 2**31 - 1), imperfection=st.sampled_from([0.0, 0.5]), hops=st.integers(0, 3))
def test_a_priority_survives_the_wire_and_none_is_not_written(priority, imperfection, hops):
    message = Subscribe([Entry("k", tamis.parse("x > 1"), imperfection, hops, priority)])
    assert decode(encode(message)) == message
    if not priority:
        before = Subscribe([Entry("k", tamis.parse("x > 1"), imperfection, hops)])
        assert encode(message) == encode(before)


def test_an_entry_with_a_priority_has_these_bytes():
    written = "a7040193919503a178cb00000000000000000007" + "90" + "c0"
    message = Subscribe([Entry(3, tamis.parse("x"), 0.0, 0, 7)])
    assert encode(message).hex() == written
    assert decode(bytes.fromhex(written)) == message


subscriptions = st.lists(
    st.tuples(st.sampled_from(["ann", "bob"]), st.integers(0, 5), st.integers(0, 3), st.integers(-2, 2)), max_size=12
)


@given(subscriptions=subscriptions, values=st.lists(st.integers(0, 4), min_size=2, max_size=4))
@settings(max_examples=60, deadline=None)
def test_by_the_group_and_one_by_one_the_same_is_delivered_in_the_order_of_a_matcher(subscriptions, values):
    one, many, last = attached(Broker("one")), attached(Broker("many")), {}
    for broker in (one, many):
        broker.attach("ann"), broker.attach("bob")
    for client, key, limit, priority in subscriptions:
        last[client, key] = f"x > {limit}", priority
        for broker in (one, many):
            broker.receive(Subscribe([entry(key, *last[client, key])]), client, 0.0)
    publications = [Publish(f"e{number}", {"x": value}) for number, value in enumerate(values)]
    singly = [each for message in publications for each in one.receive(message, "publisher", 0.0)]
    assert many.receive_many(publications, "publisher", 0.0) == singly
    for each in singly:
        wanted = {key: priority for (client, key), (_, priority) in last.items() if client == each.client}
        priorities = [wanted[key] for key in each.subscriptions]
        assert priorities == sorted(priorities, reverse=True)
        assert list(each.priorities or [0] * len(priorities)) == priorities
