"""Many events at once come to the same as one after the other: outputs, state and counters."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import EventError
from tamis.pruning import Goal
from tamis.routing import (
    Adaptation,
    Advertise,
    Broker,
    Deliver,
    Entry,
    MessageError,
    OtherSchemaError,
    Publish,
    Reject,
    ResumeFiltering,
    Send,
    Subscribe,
    UnknownPeerError,
    Unsubscribe,
)
from tamis.routing.messages import Hello, plain

CLIENTS, NEIGHBOURS = ("ann", "bob", "cid"), ("north", "south")
PEERS = CLIENTS + NEIGHBOURS
TEXTS = ("x = 1", "x > 1 AND y = 1", "y = 1 OR x = 2", "TRUE", "x IS NULL", "x = 1 AND y = 1", "type LIKE 'tamis.%'")
FILTERS = [tamis.parse(text) for text in TEXTS]
SCHEMA = tamis.Schema(
    {"x": "double", **dict.fromkeys(("type", "broker", "client", "key", "filter"), "string"), "y": "int"}
)

an_event = st.fixed_dictionaries(
    {},
    optional={
        "x": st.sampled_from([1, 1.0, 2, 2.5, "cheap", None]),
        "y": st.sampled_from([1, 2, None]),
        "type": st.sampled_from(["tamis.Subscribed", "Offer"]),
    },
)
a_key = st.one_of(st.integers(0, 8), st.sampled_from(["a", "b", "tamis/c", ""]))
groups = st.tuples(
    st.just("group"), st.sampled_from(PEERS), st.lists(st.tuples(a_key, an_event), max_size=12), st.integers(0, 2)
)
changes = st.tuples(
    st.sampled_from(["subscribe", "subscribe", "subscribe", "unsubscribe", "advertise", "filter", "leave", "prune"]),
    st.sampled_from(PEERS),
    st.integers(0, len(FILTERS) - 1),
    st.integers(0, 3),
)
options = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(["simple", "covering", "flooding"]),
        "algorithm": st.sampled_from(["block", "naive"]),
        "advertisements": st.sampled_from([None, "simple"]),
        "schema": st.sampled_from([None, SCHEMA]),
        "announces": st.booleans(),
        "adaptation": st.sampled_from([None, Adaptation(0.6, 0.5, event_count=3, wait_s=1.0)]),
        "pruning": st.sampled_from([None, Goal(threshold=0.3)]),
        "remembered": st.sampled_from([1, 3, 100]),
        "link_lease_s": st.sampled_from([None, 2.0]),
    }
)


def broker_of(options):
    broker = Broker("me", **options)
    for client in CLIENTS:
        broker.attach(client)
    for neighbour in NEIGHBOURS:
        broker.connect(neighbour, 0.0)
        digest = SCHEMA.digest if options["schema"] else tamis.language.schema.NO_SCHEMA
        broker.receive(Hello((), (Entry(0, FILTERS[3]),), digest, options["link_lease_s"]), neighbour, 0.0)
    return broker


def changed(broker, what, peer, number, choice, count, now):
    """Let a peer say something that is no event; return what the broker says."""
    is_neighbour = peer in NEIGHBOURS
    if peer not in broker.neighbours + broker.clients:
        return []
    # A client calls its filters as it likes, a neighbour by numbers that only grow.
    key = count if is_neighbour else choice
    match what:
        case "subscribe":
            lease_s = None if is_neighbour or choice else 1.0
            return broker.receive(Subscribe((Entry(key, FILTERS[number]),), lease_s=lease_s), peer, now)
        case "unsubscribe":
            present = list(broker.table.of(peer))
            return broker.receive(Unsubscribe(tuple(present[choice : choice + 1])), peer, now)
        case "advertise":
            return broker.receive(Advertise((Entry(key, FILTERS[number]),)), peer, now)
        case "filter" if is_neighbour:
            return broker.receive(ResumeFiltering(), peer, now)
        case "leave" if choice == 3:
            outputs = broker.disconnect(peer, now)
            return outputs + (broker.connect(peer, now) if is_neighbour else broker.attach(peer) or [])
        case "prune":
            return [broker.prune(Goal(share=choice / 3))]
    return []


def state(broker):
    links = {
        name: None
        if link.rates is None
        else {key: value for key, value in vars(link.rates).items() if key != "_settings"}
        for name, link in broker._links.items()
    }
    table, silence = broker.table, broker._silence
    return {
        "seen": list(broker._seen),
        "misfits": broker.misfit_count,
        "matches": table.match_count,
        "looked at": (table._matcher.watched_count, table.counters.event_count),
        "rates": links,
        "muted": table._muted,
        "matched": {peer: table.matched(peer) for peer in PEERS},
        "heard": (silence._heard_s, silence._said_s, broker.next_due),
        "peers": (broker.clients, broker.neighbours, broker.lease_count, broker._announced_count),
    }


@given(options=options, steps=st.lists(st.one_of(groups, changes, groups), max_size=14))
@settings(max_examples=250, deadline=None)
def test_a_group_of_events_comes_to_the_same_as_one_after_the_other(options, steps):
    singly, together, routing = (broker_of(options) for _ in range(3))
    now = 0.0
    for count, (what, peer, *rest) in enumerate(steps, 1):
        if what != "group":
            said = [changed(broker, what, peer, *rest, count, now) for broker in (singly, together, routing)]
            assert said[0] == said[1] == said[2]
        elif peer in singly.clients + singly.neighbours:
            pairs, later = rest
            now += later * 0.5
            expected = [singly.receive(Publish(key, event), peer, now) for key, event in pairs]
            found = together.receive_many([Publish(key, event) for key, event in pairs], peer, now)
            assert found == [output for outputs in expected for output in outputs]
            agrees(routing, pairs, peer, now, expected)
        assert state(singly) == state(together) == state(routing)


def agrees(broker, pairs, peer, now, expected):
    """Routed as arrays, a group gives what its events gave one by one."""
    keys, events = [key for key, _ in pairs], [event for _, event in pairs]
    routed = broker.route_many(keys, events, peer, now)
    starts = routed.clients.starts().tolist()
    delivered = [{} for _ in pairs]
    for begin, end in pairwise(starts):
        number, client = int(routed.clients.events[begin]), int(routed.clients.clients[begin])
        entries = routed.clients.entries[begin:end].tolist()
        delivered[number][broker.table.client_name(client)] = tuple(map(broker.table.key, entries))
    forwarded = [[] for _ in pairs]
    sends = routed.sends(keys)
    for number, send in zip(routed.neighbours.events.tolist(), sends, strict=True):
        forwarded[number].append(send)
    for number, outputs in enumerate(expected):
        delivers = [
            output for output in outputs if isinstance(output, Deliver) and output.publication.key == keys[number]
        ]
        assert delivered[number] == {output.client: output.subscriptions for output in delivers}
        published = [output for output in outputs if is_event(output) and output.message.key == keys[number]]
        assert forwarded[number] == published
        for output in delivers:
            assert plain(output.publication.event) == routed.events[number]
    rest = Counter(
        str(output)
        for number, outputs in enumerate(expected)
        for output in outputs
        if not (is_event(output) and output.message.key == keys[number])
        and not (isinstance(output, Deliver) and output.publication.key == keys[number])
    )
    assert rest == Counter(map(str, routed.outputs))
    assert routed.taken.tolist() == sorted(set(routed.taken.tolist()))


def is_event(output):
    return isinstance(output, Send) and isinstance(output.message, Publish)


def broker_with(client_filters, neighbours=(), **options):
    broker = Broker("me", **options)
    for client, filters in client_filters.items():
        broker.attach(client)
        broker.receive(Subscribe([Entry(key, tamis.parse(text)) for key, text in filters.items()]), client, 0.0)
    for neighbour in neighbours:
        broker.connect(neighbour, 0.0)
    return broker


def test_nothing_has_happened_if_one_of_a_group_is_no_event():
    broker = broker_with({"ann": {"s": "x > 0"}}, ["north"])
    good = Publish("e", {"x": 1})
    for group, error in (
        ([good, ResumeFiltering()], MessageError),
        ([good, Publish(True, {"x": 1})], MessageError),
        ([good, Publish("f", 5)], EventError),
    ):
        with pytest.raises(error):
            broker.receive_many(group, "ann", 0.0)
        assert not broker.knows("e")
    with pytest.raises(MessageError, match="2 keys of 1 events; expected a key for each event"):
        broker.route_many(["e", "f"], [{"x": 1}], "ann", 0.0)
    with pytest.raises(EventError, match="an event is a mapping from names to values, not str"):
        broker.route_many(["e", "f"], [{"x": 1}, "x"], "ann", 0.0)
    with pytest.raises(UnknownPeerError):
        broker.route_many([], [], "nobody", 0.0)
    assert broker.receive_many([good], "ann", 0.0) == [Deliver("ann", good, ("s",))]


def test_a_neighbour_of_another_schema_sends_no_groups_either():
    broker = broker_with({}, ["north"])
    with pytest.raises(OtherSchemaError):
        broker.receive(Hello(schema="another"), "north", 0.0)
    with pytest.raises(OtherSchemaError):
        broker.receive_many([Publish("e", {})], "north", 0.0)


def test_no_events_are_no_word_of_anybody():
    broker = broker_with({"ann": {"s": "x > 0"}}, ["north"], link_lease_s=2.0)
    assert broker.receive_many([], "ann", 9.0) == []
    routed = broker.route_many([], [], "ann", 9.0)
    assert routed.outputs == routed.sends([]) == [] and len(routed.clients.events) == len(routed.taken) == 0
    assert broker.neighbours == ("north",)


def test_events_that_are_routed_are_not_copied_unless_they_must_be_read_otherwise():
    broker = broker_with({"ann": {"s": "x > 0"}}, schema=SCHEMA)
    events = [{"x": 1.5}, {"x": 2}, {"x": "cheap"}]
    routed = broker.route_many(["e", "f", "g"], events, "ann", 0.0)
    assert routed.events[0] is events[0] and routed.events[1] == {"x": 2.0} and type(routed.events[1]["x"]) is float
    assert routed.taken.tolist() == [0, 1] and routed.clients.events.tolist() == [0, 1]
    assert [type(output) for output in routed.outputs] == [Reject] and broker.misfit_count == 1


def test_a_broker_remembers_what_it_is_told_was_there_before_and_no_more_than_it_may():
    broker = broker_with({"ann": {"s": "x > 0"}}, remembered=3)
    broker.remember(["a", "b"])
    broker.receive(Publish("c", {"x": 1}), "ann", 0.0)
    assert [broker.knows(key) for key in "abcd"] == [True, True, True, False]
    broker.remember(iter(["b", "d", 5]))
    assert [broker.knows(key) for key in ("a", "b", "c", "d", 5)] == [False, False, True, True, True]
    assert broker.receive(Publish(5, {"x": 1}), "ann", 0.0) == []
    with pytest.raises(MessageError, match="is not a key"):
        broker.remember(["e", None])
    assert not broker.knows("e")


def test_a_client_keeps_its_handle_while_it_is_attached():
    broker = broker_with({"ann": {"s": "x > 0"}, "bob": {}})
    ann, bob = broker.table.client_handle("ann"), broker.table.client_handle("bob")
    assert {ann, bob} == {0, 1}
    broker.receive(Unsubscribe(("s",)), "ann", 0.0)
    broker.receive(Subscribe((Entry("t", FILTERS[3]),)), "bob", 0.0)
    assert (broker.table.client_handle("ann"), broker.table.client_handle("bob")) == (ann, bob)
    broker.disconnect("ann", 0.0)
    assert broker.table.client_handle("ann") is None


@pytest.mark.parametrize("way", ["receive_many", "route_many"])
def test_a_link_that_stops_filtering_within_a_group_is_not_matched_for_from_there_on(way):
    def made():
        broker = broker_with({"ann": {}}, ["north"], adaptation=Adaptation(0.6, 0.5, event_count=3))
        broker.receive(Subscribe((Entry(1, tamis.parse("x > 0")),)), "north", 0.0)
        return broker

    singly, together = made(), made()
    keys, events = list(range(10)), [{"x": 1 if number != 1 else 0} for number in range(10)]
    for key, event in zip(keys, events, strict=True):
        singly.receive(Publish(key, event), "ann", 0.0)
    if way == "route_many":
        assert together.route_many(keys, events, "ann", 0.0).neighbours.events.tolist() == [0, *range(2, 10)]
    else:
        sent = together.receive_many(map(Publish, keys, events), "ann", 0.0)
        assert [output.message.key for output in sent] == [0, *range(2, 10)]
    assert state(singly) == state(together)
    assert not together.is_filtering("north") and together.table.match_count == 2, "two of three, and none after that"
