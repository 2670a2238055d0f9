"""What a broker does with single messages, without any network."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tamis.language.schema import NO_SCHEMA
from tamis.pruning import Goal
from tamis.routing import (
    STRATEGIES,
    Adaptation,
    Advertise,
    Answer,
    Ask,
    Broker,
    Covering,
    Deliver,
    Entry,
    Hello,
    KnownPeerError,
    LeaseOfLinksError,
    LostNeighbour,
    MemoryOfEventsError,
    MessageError,
    NamelessError,
    OtherSchemaError,
    Publish,
    Reject,
    Renew,
    ResumeFiltering,
    SchemaOfAnnouncementsError,
    SchemaOfStrategyError,
    Send,
    Subscribe,
    Unadvertise,
    UnknownPeerError,
    UnknownStrategyError,
    Unsubscribe,
)
from tamis.routing.adaptation import AdaptationError
from tamis.routing.announcements import is_reminder
from tamis.simulation import Network
from tamis.simulation.occurrences import EventDelivered


def entry(key, text):
    return Entry(key, tamis.parse(text))


def subscribe(key, text, **options):
    return Subscribe((entry(key, text),), **options)


def broker_between(*neighbours, clients=(), **options):
    broker = Broker("me", algorithm="naive", **options)
    for neighbour in neighbours:
        broker.connect(neighbour, 0.0)
    for client in clients:
        broker.attach(client)
    return broker


def sent(outputs):
    return [(output.peer, output.message) for output in outputs if isinstance(output, Send)]


def test_an_event_never_goes_back_to_where_it_came_from():
    broker = broker_between("north", "south")
    for neighbour in ("north", "south"):
        broker.receive(subscribe(0, "x > 1"), neighbour, 0.0)
    assert [peer for peer, _ in sent(broker.receive(Publish("e", {"x": 5}), "north", 0.0))] == ["south"]


def test_an_event_that_comes_again_goes_no_further():
    broker = broker_between("north", clients=["ann"])
    broker.receive(subscribe("s", "x > 1"), "ann", 0.0)
    assert broker.receive(Publish("e", {"x": 5}), "north", 0.0) == [Deliver("ann", Publish("e", {"x": 5}), ("s",))]
    assert broker.receive(Publish("e", {"x": 5}), "north", 0.0) == []


def test_only_the_latest_events_are_remembered():
    broker = broker_between(clients=["ann"], remembered=2)
    broker.receive(subscribe("s", "TRUE"), "ann", 0.0)
    for key in "abc":
        broker.receive(Publish(key, {}), "ann", 0.0)
    assert broker.receive(Publish("c", {}), "ann", 0.0) == [] != broker.receive(Publish("a", {}), "ann", 0.0)


def test_a_message_that_comes_twice_at_any_time_changes_nothing():
    broker = broker_between("north", "south", strategy="simple")
    first = [
        Hello((entry(0, "x = 1"),)),
        subscribe(1, "x = 2"),
        Unsubscribe((0,), (entry(2, "x = 3"),)),
        Unsubscribe((2,)),
    ]
    for message in first:
        broker.receive(message, "north", 0.0)
    known = dict(broker.table.of("north"))
    assert [str(each) for each in known.values()] == ["x = 2"]
    for message in first * 2:
        assert broker.receive(message, "north", 0.0) == []
    assert broker.table.of("north") == known


def test_a_subscription_under_the_same_key_replaces_the_former_in_one_message():
    broker = broker_between("north", clients=["ann"])
    broker.receive(subscribe("s", "x = 1"), "ann", 0.0)
    assert sent(broker.receive(subscribe("s", "x = 2"), "ann", 0.0)) == [
        ("north", Subscribe((entry(1, "x = 2"),), replaces=(0,)))
    ]
    assert broker.receive(subscribe("s", "x = 2"), "ann", 0.0) == []


def test_a_lease_ends_unless_it_is_renewed():
    broker = broker_between("north", clients=["ann"])
    broker.receive(subscribe("s", "x = 1", lease_s=10), "ann", 0.0)
    assert broker.next_due == 10
    broker.receive(subscribe("s", "x = 1", lease_s=10), "ann", 6.0)
    assert broker.advance(10.0) == [] and broker.next_due == 16
    assert sent(broker.advance(16.0)) == [("north", Unsubscribe((0,)))]
    assert broker.next_due is None and len(broker.table) == 0


def test_what_ends_together_gets_no_word_of_each_other():
    broker = broker_between(clients=["ann", "bob"], announces=True)
    for client, key in (("ann", "s"), ("ann", "t"), ("bob", "w")):
        broker.receive(subscribe(key, "TRUE", lease_s=5 if client == "ann" else None), client, 0.0)
    delivered = broker.advance(6.0)
    assert [(each.client, each.publication.event["key"]) for each in delivered] == [("bob", "s"), ("bob", "t")]


def test_another_filter_under_the_same_key_has_the_new_lease():
    broker = broker_between(clients=["ann"])
    broker.receive(subscribe("s", "x = 1", lease_s=10), "ann", 0.0)
    broker.receive(subscribe("s", "x = 2", lease_s=10), "ann", 5.0)
    assert broker.next_due == 15


def test_an_advertisement_may_have_a_lease_too():
    broker = broker_between("north", clients=["ann"], advertisements="simple")
    broker.receive(Advertise((entry("a", "x = 1"),), lease_s=5), "ann", 0.0)
    assert sent(broker.advance(5.0)) == [("north", Unadvertise((0,)))]


def test_a_subscription_without_a_lease_stays_though_it_once_had_one():
    broker = broker_between(clients=["ann"])
    broker.receive(subscribe("s", "x = 1", lease_s=10), "ann", 0.0)
    broker.receive(subscribe("s", "x = 1"), "ann", 1.0)
    broker.advance(100.0)
    assert len(broker.table) == 1


def test_a_late_advertisement_fetches_the_subscriptions_that_it_concerns_and_its_end_lets_them_go():
    broker = broker_between("north", clients=["ann"], advertisements="covering")
    broker.receive(Hello(), "north", 0.0)
    assert sent(broker.receive(subscribe("s", "x < 5"), "ann", 0.0)) == []
    assert sent(broker.receive(subscribe("t", "x > 50"), "ann", 0.0)) == []
    (told,) = sent(broker.receive(Advertise((entry(0, "x BETWEEN 0 AND 9"),)), "north", 0.0))
    assert told == ("north", Subscribe((entry(0, "x < 5"),)))
    assert sent(broker.receive(Unadvertise((0,)), "north", 0.0)) == [("north", Unsubscribe((0,)))]


def test_who_has_not_advertised_an_event_may_not_publish_it():
    broker = broker_between(clients=["ann"], advertisements="simple")
    (output,) = broker.receive(Publish("e", {"x": 1}), "ann", 0.0)
    assert isinstance(output, Reject) and "advertise a filter that matches it first" in output.reason
    broker.receive(Advertise((entry("a", "x = 1"),)), "ann", 0.0)
    broker.receive(subscribe("s", "x = 1"), "ann", 0.0)
    assert [type(each) for each in broker.receive(Publish("e", {"x": 1}), "ann", 0.0)] == [Deliver]


def test_brokers_with_and_without_advertisements_get_along():
    plain, careful = Broker("plain", algorithm="naive"), Broker("careful", advertisements="simple", algorithm="naive")
    ((_, hello),) = sent(plain.connect("careful", 0.0))
    careful.connect("plain", 0.0)
    careful.receive(hello, "plain", 0.0)
    careful.attach("ann")
    assert [peer for peer, _ in sent(careful.receive(subscribe("s", "x = 1"), "ann", 0.0))] == ["plain"]


def test_what_clients_do_is_announced_to_those_who_ask():
    broker = broker_between("north", clients=["ann", "bob"], announces=True)
    broker.receive(subscribe("watch", "type LIKE 'tamis.%' AND client = 'bob'"), "ann", 0.0)
    outputs = []
    for message in (
        subscribe("s", "x = 1"),
        Advertise((entry("a", "x = 2"),)),
        Unsubscribe(("s",)),
        Unadvertise(("a",)),
        Unsubscribe(("s",)),
    ):
        outputs += [each for each in broker.receive(message, "bob", 1.0) if isinstance(each, Deliver)]
    said = [each.publication.event for each in outputs]
    assert [each["type"] for each in said] == [
        f"tamis.{kind}" for kind in ("Subscribed", "Advertised", "Unsubscribed", "Unadvertised")
    ]
    assert said[0]["filter"] == "x = 1" and said[0]["broker"] == "me"
    assert len({each.publication.key for each in outputs}) == 4


def test_clients_may_not_publish_announcements_nor_use_their_keys():
    broker = broker_between(clients=["ann"])
    (output,) = broker.receive(Publish("tamis/me/1.0/1", {"x": 1}), "ann", 0.0)
    assert isinstance(output, Reject) and "does not begin with 'tamis/'" in output.reason
    (output,) = broker.receive(Publish("e", {"type": "tamis.Subscribed"}), "ann", 0.0)
    assert isinstance(output, Reject) and "by brokers alone" in output.reason


def test_announcements_are_advertised_where_advertisements_are_used():
    broker = Broker("me", advertisements="simple", announces=True, algorithm="naive")
    ((_, hello),) = sent(broker.connect("north", 0.0))
    assert tamis.relations.overlaps(hello.advertisements[0].filter, "type = 'tamis.Subscribed'")


def test_a_sender_stops_filtering_when_nearly_everything_matches_and_starts_when_it_is_asked():
    settings = Adaptation(stop_above=0.8, ask_above=0.5, event_count=10, wait_s=5)
    broker = broker_between("north", "south", adaptation=settings)
    broker.receive(subscribe(0, "x < 9"), "north", 0.0)
    for number in range(10):
        broker.receive(Publish(f"a{number}", {"x": number}), "south", 0.0)
    assert not broker.is_filtering("north")
    assert [peer for peer, _ in sent(broker.receive(Publish("b", {"x": 99}), "south", 0.0))] == ["north"]
    broker.receive(subscribe(1, "x = 50"), "north", 0.0)  # what is said meanwhile counts later
    broker.receive(ResumeFiltering(), "north", 1.0)
    assert broker.is_filtering("north")
    assert sent(broker.receive(Publish("c", {"x": 99}), "south", 1.0)) == []
    assert sent(broker.receive(Publish("d", {"x": 50}), "south", 1.0)) != []
    for number in range(28):
        broker.receive(Publish(f"d{number}", {"x": 1}), "south", 2.0)
    assert broker.is_filtering("north"), "it was asked a moment ago"
    for number in range(10):
        broker.receive(Publish(f"f{number}", {"x": 1}), "south", 9.0)
    assert not broker.is_filtering("north")


def test_a_receiver_asks_for_filtering_when_too_much_comes_in_vain():
    broker = broker_between("north", clients=["ann"], adaptation=Adaptation(ask_above=0.3, event_count=10))
    broker.receive(subscribe("s", "x < 5"), "ann", 0.0)
    said = [sent(broker.receive(Publish(number, {"x": number}), "north", 0.0)) for number in range(20)]
    assert [index for index, each in enumerate(said) if ("north", ResumeFiltering()) in each] == [9, 19]


def test_bounds_that_make_brokers_quarrel_are_refused():
    for options in ({"stop_above": 0.5, "ask_above": 0.5}, {"stop_above": 2}, {"event_count": 0}, {"wait_s": -1}):
        with pytest.raises(AdaptationError):
            Adaptation(**options)


def test_mistakes_of_the_driver_are_named():
    broker = broker_between("north", clients=["ann"])
    with pytest.raises(UnknownPeerError, match="connect a neighbour, or attach a client, first"):
        broker.receive(Publish("e", {}), "bob", 0.0)
    with pytest.raises(KnownPeerError, match="disconnect it first"):
        broker.connect("ann", 0.0)
    with pytest.raises(KnownPeerError):
        broker.attach("north")
    with pytest.raises(KnownPeerError, match="'me' is its own name"):
        broker.connect("me", 0.0)
    with pytest.raises(UnknownStrategyError, match="there are: flooding, simple, identity"):
        Broker("me", "magic")
    for remembered in (0, -1, 1.5):
        with pytest.raises(MemoryOfEventsError, match="at least 1"):
            Broker("me", remembered=remembered)
    for name in ("", None):
        with pytest.raises(NamelessError, match="must be a text that is not empty"):
            Broker(name)
        with pytest.raises(NamelessError):
            broker.attach(name)


def test_a_client_that_leaves_gets_nothing_any_more():
    broker = broker_between(clients=["ann"], announces=True)
    for key in ("s", "t"):
        broker.receive(subscribe(key, "type = 'tamis.Unsubscribed'"), "ann", 0.0)
    assert not [each for each in broker.disconnect("ann", 1.0) if isinstance(each, Deliver)]


def test_a_neighbour_that_names_filters_as_clients_do_is_refused():
    with pytest.raises(MessageError, match="expected a number that grows"):
        broker_between("north").receive(subscribe("s", "x = 1"), "north", 0.0)


@pytest.mark.parametrize("said", [Hello(), ResumeFiltering(), Renew()])
def test_what_only_neighbours_say_is_refused_from_a_client(said):
    with pytest.raises(MessageError, match=r"a client said .*expected Subscribe"):
        broker_between(clients=["ann"]).receive(said, "ann", 0.0)


@pytest.mark.parametrize("said", ["what", None, Deliver("ann", Publish("e", {}), ()), Subscribe((("s", "x = 1"),))])
@pytest.mark.parametrize("peer", ["ann", "north"])
def test_what_is_no_message_is_refused(said, peer):
    with pytest.raises(MessageError):
        broker_between("north", clients=["ann"]).receive(said, peer, 0.0)


@pytest.mark.parametrize("lease_s", [float("nan"), float("inf"), 0, -5, 10**400, True, "10"])
@pytest.mark.parametrize("kind", [Subscribe, Advertise])
def test_a_lease_that_is_none_is_refused_before_anything_is_done(lease_s, kind):
    broker = broker_between("north", clients=["ann"], advertisements="simple")
    with pytest.raises(MessageError, match="expected seconds, more than 0"):
        broker.receive(kind((entry("s", "x = 1"),), lease_s=lease_s), "ann", 0.0)
    assert len(broker.table) == 0 and broker.advertised_by("ann") == {} and broker.next_due is None


@pytest.mark.parametrize("strategy", ["simple", "covering", "merging"])
def test_a_filter_that_the_schema_does_not_know_is_refused_and_the_others_count(strategy):
    schema = tamis.Schema({"x": "bigint"})
    broker = broker_between("north", clients=["ann"], strategy=strategy, schema=schema)
    broker.receive(subscribe("s", "x = 1"), "ann", 0.0)
    message = Subscribe((entry("s", "y = 1"), entry("t", "x > 5")), lease_s=9)
    rejected, told = broker.receive(message, "ann", 0.0)[::-1]
    assert (rejected.client, rejected.key) == ("ann", "s") and "there is no attribute y" in rejected.reason
    assert tamis.relations.covers(told.message.entries[-1].filter, "x > 5", schema)
    (delivered,) = broker.receive(Publish("e", {"x": 1}), "north", 0.0)
    assert delivered.subscriptions == ("s",), "what was there before stays, without a lease"
    assert broker.next_due == 9.0
    (rejected,) = broker.receive(Advertise((entry("a", "z = 1"),)), "ann", 0.0)
    assert isinstance(rejected, Reject) and "there is no attribute z" in rejected.reason


def test_a_neighbour_whose_filter_the_schema_does_not_know_is_told_before_anything_is_done():
    broker = broker_between("north", "south", schema=tamis.Schema({"x": "bigint"}))
    with pytest.raises(MessageError, match="there is no attribute y"):
        broker.receive(Subscribe((entry(0, "x = 1"), entry(1, "y = 1"))), "north", 0.0)
    assert len(broker.table) == 0 and broker.told("south") == ()


def test_a_filter_that_the_algorithm_does_not_take_is_refused():
    either = " AND ".join(f"(a{number} = 1 OR b{number} = 1)" for number in range(20))
    broker = Broker("me", "simple", algorithm="counting")
    broker.attach("ann")
    (rejected,) = broker.receive(subscribe("s", either), "ann", 0.0)
    assert isinstance(rejected, Reject) and "counting" in rejected.reason
    assert broker.receive(Publish("e", {"a1": 1}), "ann", 0.0) == []


X = tamis.Schema({"x": "int", "y": "double", "day": "date"}, mandatory=["y"])


@pytest.mark.parametrize("advertisements", [None, "covering"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_event_that_breaks_the_schema_is_refused_whatever_the_strategy(strategy, advertisements):
    network = Network(
        ["a", "b", "c"],
        [("a", "b"), ("b", "c")],
        lambda name: Broker(name, strategy, advertisements=advertisements, schema=X, algorithm="naive"),
        Random(1),
    )
    got = []
    network.observers.append(lambda each: got.append(each) if isinstance(each, EventDelivered) else None)
    for client, home in (("ann", "a"), ("bob", "a"), ("cat", "b"), ("shop", "c")):
        network.attach(client, home)
    network.advertise("shop", "all", tamis.parse("TRUE"))
    network.run()
    network.subscribe("ann", "s", tamis.parse("x >= 5"))
    network.subscribe("bob", "s", tamis.parse("x > 4"))
    network.subscribe("cat", "s", tamis.parse("y IS NOT NULL"))
    network.subscribe("bob", "all", tamis.parse("TRUE"))
    network.run()
    network.publish("shop", "e1", {"x": 4.5, "y": 0.0})
    network.publish("shop", "e2", {"x": 5})
    network.publish("shop", "e3", {"x": 5, "y": 1})
    network.run()
    assert [(each.client, each.key, each.reason) for each in network.rejected] == [
        ("shop", "e1", "x is int, and 4.5 is not"),
        ("shop", "e2", "the event lacks the mandatory y"),
    ]
    assert network.brokers["c"].misfit_count == 2
    assert sorted((each.client, each.publication.key, tuple(sorted(each.subscriptions))) for each in got) == [
        ("ann", "e3", ("s",)),
        ("bob", "e3", ("all", "s")),
        ("cat", "e3", ("s",)),
    ]


def test_an_event_is_read_in_the_types_of_the_schema_once_and_neighbours_are_trusted():
    broker = broker_between("north", clients=["ann"], schema=X)
    broker.receive(Hello((), (entry(0, "TRUE"),), X.digest), "north", 0.0)
    broker.receive(subscribe("s", "TRUE"), "ann", 0.0)
    (delivered,) = broker.receive(Publish("e", {"x": 5.0, "y": 1, "day": "2024-02-29"}), "ann", 0.0)
    assert repr(dict(delivered.publication.event)) == "{'x': 5, 'y': 1.0, 'day': datetime.date(2024, 2, 29)}"
    (passed,) = broker.receive(Publish("f", {"x": 4.5}), "north", 0.0)
    assert passed.publication.event == {"x": 4.5} and broker.misfit_count == 0


def test_a_neighbour_with_another_schema_is_refused_and_all_that_it_says_then():
    for own, theirs in ((X, None), (None, X), (X, tamis.Schema({"x": "int"}))):
        broker = Broker("me", schema=own, algorithm="naive")
        (sent_hello,) = broker.connect("north", 0.0)
        assert sent_hello.message.schema == (NO_SCHEMA if own is None else own.digest)
        hello = Hello((entry(0, "x > 1"),), (), NO_SCHEMA if theirs is None else theirs.digest)
        for said in (hello, subscribe(1, "x > 2"), Publish("e", {"x": 1})):
            with pytest.raises(OtherSchemaError, match="expected the same schema at both ends of a link"):
                broker.receive(said, "north", 0.0)
        assert len(broker.table) == 0 and isinstance(OtherSchemaError("a", "b", "c", "d"), MessageError)
        broker.disconnect("north", 0.0)
        broker.connect("north", 0.0)
        broker.receive(Hello((entry(0, "x > 1"),), (), sent_hello.message.schema), "north", 0.0)
        assert len(broker.table) == 1


def test_a_strategy_may_not_conclude_from_a_schema_that_its_broker_does_not_keep():
    for schema in (None, tamis.Schema({"x": "int"})):
        with pytest.raises(SchemaOfStrategyError, match="'covering' has a schema, which broker 'me' does not have"):
            Broker("me", Covering(X), schema=schema)
    assert Broker("me", Covering(), schema=X).strategy.schema is None
    assert Broker("me", Covering(tamis.Schema({"x": "int"})), schema=tamis.Schema({"x": "integer"}))


def test_a_schema_has_room_for_announcements_where_there_are_any():
    with pytest.raises(SchemaOfAnnouncementsError, match="no attribute type"):
        Broker("me", announces=True, schema=X)
    attributes = dict.fromkeys(("type", "broker", "client", "key", "filter"), "string") | {"x": "int"}
    with pytest.raises(SchemaOfAnnouncementsError, match="lacks the mandatory x"):
        Broker("me", announces=True, schema=tamis.Schema(attributes, mandatory=["x"]))
    assert Broker("me", announces=True, schema=tamis.Schema(attributes)).name == "me"


def test_a_lease_is_over_at_its_end_though_nobody_told_the_broker_of_the_time():
    broker = broker_between("north", clients=["ann", "bob"])
    broker.receive(subscribe("s", "x > 1", lease_s=5.0), "ann", 0.0)
    broker.receive(subscribe("t", "x > 2"), "bob", 0.0)
    assert len(broker.receive(Publish("e1", {"x": 5}), "north", 4.9)) == 2
    taken_back, delivered = broker.receive(Publish("e2", {"x": 5}), "ann", 5.0)
    assert taken_back == Send("north", Unsubscribe((0,), (entry(1, "x > 2"),)))
    assert delivered == Deliver("bob", Publish("e2", {"x": 5}), ("t",))
    assert broker.next_due is None and broker.lease_count == 0


def test_what_a_neighbour_said_ends_when_it_was_silent_for_its_lease():
    broker = broker_between("north", "south", advertisements="simple")
    broker.receive(Hello((entry(0, "x > 1"),), (entry(0, "TRUE"),), lease_s=4.0), "north", 0.0)
    broker.receive(Hello((), (entry(0, "TRUE"),)), "south", 0.0)
    assert [str(each.filter) for each in broker.told("south")] == ["x > 1"]
    assert broker.advance(4.0)[-1] == LostNeighbour("north")
    assert broker.neighbours == ("south",) and not broker.told("south") and len(broker.table) == 0
    with pytest.raises(UnknownPeerError):
        broker.receive(subscribe(1, "x > 2"), "north", 5.0)
    broker.connect("north", 6.0)
    broker.receive(Hello((entry(0, "x > 1"),), (), lease_s=4.0), "north", 6.0)
    assert [str(each.filter) for each in broker.told("south")] == ["x > 1"]


@pytest.mark.parametrize(
    "said", [Renew(), Publish("e", {"x": 5}), subscribe(1, "x > 2"), ResumeFiltering(), Unsubscribe((7,)), Hello()]
)
def test_whatever_a_neighbour_says_renews_its_lease(said):
    broker = broker_between("north")
    broker.receive(Hello((entry(0, "x > 1"),), lease_s=4.0), "north", 0.0)
    broker.receive(said, "north", 3.0)
    assert broker.advance(4.0) == [] and broker.next_due == 7.0
    broker.receive(Renew(), "north", 9.0)  # it was late, and is there
    assert broker.next_due == 13.0 and broker.advance(13.0) == [LostNeighbour("north")]


def test_a_broker_that_has_nothing_to_say_says_so_in_time():
    broker = broker_between("north", "south", clients=["ann"], link_lease_s=4.0)
    (greeting,) = broker.connect("west", 0.0)
    assert greeting.message.lease_s == 4.0 and broker.next_due == 2.0
    broker.receive(Hello((entry(0, "x > 1"),)), "north", 0.5)
    broker.receive(Publish("e", {"x": 5}), "ann", 1.0)
    assert sent(broker.advance(2.0)) == [], "some heard of a filter, and one got an event"
    assert sorted(peer for peer, _ in sent(broker.advance(2.5))) == ["south", "west"]
    assert sent(broker.advance(3.0)) == [("north", Renew())]
    broker.disconnect("north", 3.0)
    assert sorted(peer for peer, _ in sent(broker.advance(100.0))) == ["south", "west"]


def test_leases_of_links_that_are_none_are_refused():
    for lease_s in (0, -1, float("nan"), float("inf"), True, "1", 1e-9):
        with pytest.raises(LeaseOfLinksError, match="seconds or more, or None"):
            Broker("me", link_lease_s=lease_s)
    broker = broker_between("north")
    with pytest.raises(MessageError, match="a neighbour leases single filters; expected a lease of the whole link"):
        broker.receive(subscribe(0, "x > 1", lease_s=1.0), "north", 0.0)
    with pytest.raises(MessageError, match="a lease of -1"):
        broker.receive(Hello(lease_s=-1), "north", 0.0)
    assert len(broker.table) == 0


def test_who_starts_to_listen_learns_what_is_there_already_and_nobody_else_does():
    broker = broker_between("north", clients=["ann", "bob", "shop", "old"], announces=True, advertisements="simple")
    broker.receive(Hello((entry(0, "z > 1"),), (entry(0, "y > 5"),)), "north", 0.0)
    broker.receive(subscribe("all", "type = 'tamis.Subscribed'"), "old", 0.0)
    broker.receive(subscribe("s", "x > 1"), "ann", 1.0)
    broker.receive(subscribe("t", "x > 2"), "bob", 1.0)
    broker.receive(Unsubscribe(("t",)), "bob", 1.0)
    broker.receive(Advertise((entry("a", "x < 9"),)), "bob", 1.0)
    outputs = broker.receive(subscribe("who", "type IN ('tamis.Subscribed', 'tamis.Advertised')"), "shop", 2.0)
    heard = [each for each in outputs if isinstance(each, Deliver) and is_reminder(each.publication.key)]
    assert {(each.client, each.subscriptions) for each in heard} == {("shop", ("who",))}
    assert sorted(tuple(each.publication.event.values()) for each in heard) == [
        ("tamis.Advertised", "me", "bob", "a", "x < 9"),
        ("tamis.Advertised", "north", "", "0", "y > 5"),
        ("tamis.Subscribed", "me", "ann", "s", "x > 1"),
        ("tamis.Subscribed", "me", "old", "all", "type = 'tamis.Subscribed'"),
        ("tamis.Subscribed", "north", "", "0", "z > 1"),
    ]
    assert len({each.publication.key for each in heard}) == 5
    again = broker.receive(subscribe("who", "type IN ('tamis.Subscribed', 'tamis.Advertised')"), "shop", 3.0)
    assert again == [], "it listens already"
    narrow = broker.receive(subscribe("n", "type = 'tamis.Subscribed' AND client = 'ann'"), "shop", 4.0)
    assert [each.publication.event["key"] for each in narrow if is_reminder(each.publication.key)] == ["s"]
    quiet = broker.receive(subscribe("p", "price < 20"), "shop", 5.0)
    assert not [each for each in quiet if isinstance(each, Deliver) and is_reminder(each.publication.key)]


def test_whether_anybody_wants_something_is_answered_by_what_the_broker_knows():
    broker = broker_between("north", clients=["ann", "bob"], schema=tamis.Schema({"x": "int"}))

    def asked(client, text):
        (answer,) = broker.receive(Ask("q", tamis.parse(text)), client, 0.0)
        return answer.is_wanted if isinstance(answer, Answer) else answer.reason.splitlines()[0]

    assert asked("bob", "x > 4") is False is broker.is_wanted(tamis.parse("TRUE"))
    broker.receive(subscribe("s", "x > 4"), "ann", 0.0)
    assert asked("bob", "x BETWEEN 1 AND 5") is True and asked("bob", "x < 5") is False
    assert asked("ann", "x > 4") is False, "anybody else"
    assert broker.is_wanted(tamis.parse("x = 7")) and not broker.is_wanted(tamis.parse("x = 7"), besides="ann")
    broker.receive(Hello((entry(0, "x < 3"),), (), tamis.Schema({"x": "int"}).digest), "north", 0.0)
    assert asked("ann", "x = 2") is True and asked("ann", "x = 3") is False
    broker.receive(Unsubscribe((0,)), "north", 0.0)
    broker.receive(Unsubscribe(("s",)), "ann", 0.0)
    assert asked("bob", "TRUE") is False
    assert asked("bob", "colour = 'red'") == "there is no attribute colour"
    for message, peer in ((Ask("q", tamis.parse("x = 1")), "north"), (Ask(None, tamis.parse("x = 1")), "ann")):
        with pytest.raises(MessageError):
            broker.receive(message, peer, 0.0)


def test_what_a_lost_neighbour_wanted_is_taken_back_from_others():
    broker = broker_between("north", "south", clients=["ann"])
    broker.receive(subscribe(0, "x > 1"), "north", 0.0)
    broker.receive(subscribe("s", "x > 5"), "ann", 0.0)
    for peer in ("north", "south"):
        broker.receive(Hello(), peer, 0.0)  # after which the other knows all that there is
    assert sent(broker.disconnect("north", 1.0)) == [("south", Unsubscribe((0,), (entry(1, "x > 5"),)))]
    assert broker.neighbours == ("south",)
    ((_, hello),) = sent(broker.connect("north", 2.0))
    assert [str(each.filter) for each in hello.entries] == ["x > 5"]
    broker.disconnect("ann", 3.0)
    assert broker.clients == () and len(broker.table) == 0


def test_a_filter_carries_how_many_links_it_has_come():
    run = Network(["a", "b", "c", "d"], [("a", "b"), ("b", "c"), ("c", "d")], lambda name: Broker(name), Random(1))
    run.attach("ann", "a")
    run.attach("bob", "b")
    run.run()
    run.subscribe("ann", 1, tamis.parse("x = 1"))
    run.subscribe("ann", 2, tamis.parse("y = 1"))
    run.subscribe("bob", 1, tamis.parse("y = 1"))
    run.run()
    told = {(one, two): {str(e.filter): e.hops for e in run.brokers[one].told(two)} for one, two in ("ab", "bc", "cd")}
    assert told["a", "b"] == {"x = 1": 0, "y = 1": 0}
    assert told["b", "c"]["x = 1"] == 1 and told["c", "d"]["x = 1"] == 2
    (key,) = (key for key, each in run.brokers["d"].table.of("c").items() if str(each) == "x = 1")
    assert run.brokers["d"].table.hops("c", key) == 2


def test_a_client_cannot_say_that_its_filter_came_over_links():
    broker = Broker("a")
    broker.attach("ann")
    with pytest.raises(MessageError, match="no hops"):
        broker.receive(Subscribe((Entry("s", tamis.parse("x = 1"), hops=2),)), "ann", 0.0)


def test_a_broker_prunes_with_nothing_from_outside():
    broker = Broker("a", "simple", pruning=Goal(reduction=0.5))
    broker.connect("north", 0.0)
    broker.connect("south", 0.0)
    wanted = Subscribe([Entry(number, tamis.parse(f"rare = {number} AND common < 9")) for number in range(20)])
    broker.receive(wanted, "north", 0.0)
    for number in range(1_500):
        broker.receive(Publish(number, {"rare": number % 20, "common": number % 10}), "south", 0.0)
    assert broker.prune() == 20
    assert {str(each) for each in broker.table.matched("north").values()} == {f"rare = {each}" for each in range(20)}
    assert [str(entry.filter) for entry in broker.told("south")] == [str(entry.filter) for entry in wanted.entries]
