"""Ranked subscriptions at a broker's desk: what it tells, when, and to whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.routing import (
    Advertise,
    Broker,
    Deliver,
    Desk,
    DeskSettingError,
    Entry,
    Hello,
    MessageError,
    Passed,
    Publish,
    Reject,
    Send,
    Subscribe,
    Unsubscribe,
    Withdraw,
)
from tamis.topk import Ranked, TopK
from tamis.topk.policies import BoxCells, EveryChange


def broker(*clients, **options):
    made = Broker("home", **options)
    for client in clients:
        made.attach(client)
    return made


def subscribe(made, client, now=0.0, **wanted):
    entries = tuple(Entry(key, tamis.parse(text) if not text.startswith("TOP") else Ranked.parse(text))
                    for key, text in wanted.items())  # fmt: skip
    return made.receive(Subscribe(entries), client, now)


def publish(made, client, key, event, now):
    return [
        (each.client, each.publication.key, each.subscriptions)
        for each in made.receive(Publish(key, event), client, now)
        if isinstance(each, Deliver)
    ]


def test_a_client_is_told_of_the_best_as_they_come_and_when_a_better_one_leaves():
    home = broker("ann", "shop")
    subscribe(home, "ann", best="TOP 1 BY price ASC OVER 10 SECONDS WHERE kind = 'flat'")
    assert publish(home, "shop", "e1", {"price": 300, "kind": "flat"}, 1.0) == [("ann", "e1", ("best",))]
    assert publish(home, "shop", "e2", {"price": 100, "kind": "house"}, 2.0) == []
    assert publish(home, "shop", "e3", {"price": 400, "kind": "flat"}, 3.0) == []
    assert home.next_due == 11.0 and home.advance(10.9) == []
    assert home.advance(11.0) == [Deliver("ann", Publish("e3", {"price": 400, "kind": "flat"}), ("best",))]


def test_a_client_is_told_of_an_event_once_whichever_of_its_subscriptions_wants_it():
    home = broker("ann", "bob", "shop")
    subscribe(
        home,
        "ann",
        best="TOP 1 BY price ASC OVER 10 SECONDS",
        two="TOP 2 BY price ASC OVER 10 SECONDS",
        dear="price > 5",
    )
    subscribe(home, "bob", best="TOP 1 BY price ASC OVER 10 SECONDS")
    assert publish(home, "shop", "e1", {"price": 9}, 1.0) == [
        ("ann", "e1", ("dear", "best", "two")),
        ("bob", "e1", ("best",)),
    ]
    assert publish(home, "shop", "e2", {"price": 3}, 2.0) == [("ann", "e2", ("best", "two")), ("bob", "e2", ("best",))]
    assert publish(home, "shop", "e3", {"price": 4}, 3.0) == [("ann", "e3", ("two",))]
    assert publish(home, "shop", "e4", {"price": 8}, 4.0) == [("ann", "e4", ("dear",))]
    told = [(each.client, each.publication.key) for each in home.advance(12.0)]
    assert told == [("bob", "e3")], "ann had it before, and e4 because of its price"
    assert [(each.client, each.publication.key) for each in home.advance(13.0)] == [("bob", "e4")]


def test_the_highest_priority_comes_first_ranked_or_not():
    home = broker("ann", "bob", "shop")
    best = Ranked.parse("TOP 1 BY price ASC OVER 10 SECONDS")
    entries = (Entry("low", tamis.parse("price > 0"), priority=1), Entry("high", best, priority=5))
    home.receive(Subscribe(entries), "ann", 0.0)
    home.receive(Subscribe((Entry("mine", best, priority=7),)), "bob", 0.0)
    first, second = home.receive(Publish("e", {"price": 1}), "shop", 1.0)
    assert (first.client, first.priorities) == ("bob", (7,))
    assert (second.client, second.subscriptions, second.priorities) == ("ann", ("high", "low"), (5, 1))


def test_a_subscription_that_is_said_again_keeps_its_window_and_another_one_begins_anew():
    home = broker("ann", "shop")
    text = "TOP 1 BY price ASC OVER 10 SECONDS"
    subscribe(home, "ann", best=text)
    publish(home, "shop", "e1", {"price": 1}, 1.0)
    subscribe(home, "ann", now=2.0, best=text)
    assert publish(home, "shop", "e2", {"price": 2}, 3.0) == []
    subscribe(home, "ann", now=4.0, best="TOP 1 BY price ASC OVER 9 SECONDS")
    assert publish(home, "shop", "e3", {"price": 3}, 5.0) == [("ann", "e3", ("best",))]
    assert home.ranked_by("ann") == {"best": Ranked.parse("TOP 1 BY price ASC OVER 9 SECONDS")}
    subscribe(home, "ann", now=6.0, best="price > 0")
    assert home.ranked_by("ann") == {} and publish(home, "shop", "e4", {"price": 9}, 7.0) == [("ann", "e4", ("best",))]
    home.receive(Unsubscribe(("best",)), "ann", 8.0)
    assert len(home.desk) == 0 and home.next_due is None and len(home.table) == 0


def test_who_leaves_or_lets_a_lease_end_is_told_nothing_more():
    home = broker("ann", "bob", "shop")
    best = (Entry("best", Ranked.parse("TOP 1 BY price ASC OVER 10 SECONDS")),)
    home.receive(Subscribe(best, lease_s=4.0), "ann", 0.0)
    home.receive(Subscribe(best), "bob", 0.0)
    assert len(publish(home, "shop", "e1", {"price": 5}, 1.0)) == 2
    assert publish(home, "shop", "e2", {"price": 2}, 5.0) == [("bob", "e2", ("best",))]
    home.disconnect("bob", 6.0)
    assert publish(home, "shop", "e3", {"price": 1}, 7.0) == [] and home.advance(30.0) == []


def test_withdrawn_events_are_told_to_nobody_and_keep_their_place():
    home = broker("ann", "shop", "other")
    home.connect("north", 0.0)
    subscribe(home, "ann", best="TOP 1 BY price ASC OVER 10 SECONDS")
    publish(home, "shop", "e1", {"price": 1}, 1.0)
    publish(home, "shop", "e2", {"price": 2}, 2.0)
    publish(home, "shop", "e3", {"price": 3}, 3.0)
    (refused,) = home.receive(Withdraw("e2"), "other", 4.0)
    assert isinstance(refused, Reject) and "'other' has published no event 'e2'" in refused.reason
    assert home.receive(Withdraw("e2"), "shop", 5.0) == [Send("north", Withdraw("e2", 5.0))]
    assert home.receive(Withdraw("e2"), "shop", 5.0) == [], "it was withdrawn before"
    assert home.advance(11.0) == [], "e2 is the best, and nobody is told"
    assert [each.publication.key for each in home.advance(12.0)] == ["e3"]


def test_an_event_that_comes_after_its_withdrawal_is_told_to_nobody_and_takes_its_place():
    home = broker("ann")
    home.connect("north", 0.0)
    home.receive(Hello(), "north", 0.0)
    subscribe(home, "ann", best="TOP 1 BY price ASC OVER 10 SECONDS", all="price > 0")
    home.receive(Withdraw("e1", 1.5), "north", 2.0)
    assert home.receive(Passed("e1", {"price": 1}, 1.0, "north", 1), "north", 2.5) == []
    said = home.receive(Passed("e2", {"price": 2}, 2.0, "north", 2), "north", 3.0)
    assert [each.subscriptions for each in said] == [("all",)], "the best is another one"


def test_late_events_count_when_they_were_published_if_the_desk_waits_for_them():
    home = broker("ann", lateness_s=2.0)
    home.connect("north", 0.0)
    home.receive(Hello(), "north", 0.0)
    subscribe(home, "ann", best="TOP 1 BY price ASC OVER 10 SECONDS")
    for key, price, at, now in (("e2", 5, 2.0, 2.5), ("e1", 3, 1.0, 2.9)):
        assert home.receive(Passed(key, {"price": price}, at, "north", 1), "north", now) == []
    assert home.next_due == 3.0
    assert [each.publication.key for each in home.advance(3.0)] == ["e1"] and home.advance(4.0) == []
    assert [each.publication.key for each in home.advance(13.0)] == ["e2"], "e1 left at 11"
    assert home.desk.late_count == 0


def test_what_is_later_than_the_desk_waits_is_told_late_rather_than_never():
    home = broker("ann")
    home.connect("north", 0.0)
    home.receive(Hello(), "north", 0.0)
    subscribe(home, "ann", best="TOP 1 BY price ASC OVER 10 SECONDS")
    home.receive(Passed("e2", {"price": 5}, 4.0, "north", 1), "north", 4.0)
    (told,) = home.receive(Passed("e1", {"price": 3}, 3.0, "north", 2), "north", 4.5)
    assert told.publication.key == "e1" and home.desk.late_count == 1
    (early,) = home.receive(Passed("e0", {"price": 1}, 1e11, "north", 3), "north", 5.0)
    assert early.publication.key == "e0", "a clock that is ahead does not move the windows of others"
    assert home.receive(Passed("e3", {"price": 2}, 5.5, "north", 4), "north", 6.0) == [] and home.desk.late_count == 1


def test_a_subscription_counts_from_when_it_has_spread():
    home = broker("ann", "shop", spread_s=2.0)
    subscribe(home, "ann", best="TOP 1 BY price ASC OVER 10 SECONDS")
    assert publish(home, "shop", "e1", {"price": 1}, 1.9) == []
    assert publish(home, "shop", "e2", {"price": 2}, 2.5) == [("ann", "e2", ("best",))]


RANKED_ENTRY = Entry(0, Ranked.parse("TOP 1 BY price ASC OVER 10 SECONDS"))


@pytest.mark.parametrize(
    ("said", "sender", "problem"),
    [
        (Hello((RANKED_ENTRY,)), "north", "a neighbour said 'TOP 1 BY price ASC OVER 10 SECONDS'; expected a filter"),
        (Subscribe((RANKED_ENTRY,)), "north", "a neighbour said 'TOP 1"),
        (Unsubscribe((), (RANKED_ENTRY,)), "north", "a neighbour said 'TOP 1"),
        (Advertise((RANKED_ENTRY,)), "ann", "a greeting or an advertisement said 'TOP 1"),
        (Passed("e", {}, 0.0, "north", 1), "ann", "a client said Passed"),
        (Passed("e", {}, float("nan"), "north", 1), "north", "the time nan"),
        (Passed("e", {}, float("inf"), "north", 1), "north", "the time inf"),
        (Passed("e", {}, True, "north", 1), "north", "the time True"),
        (Passed("e", {}, 1e300, "north", 1), "north", r"the time 1e\+300"),
        (Passed("e", {}, 0.0, "", 1), "north", "an event of the broker ''"),
        (Passed("e", {}, 0.0, 5, 1), "north", "an event of the broker 5"),
        (Passed("e", {}, 0.0, "b", -1), "north", "an event numbered -1"),
        (Passed("e", {}, 0.0, "b", 2**60), "north", "an event numbered 1152921504606846976"),
        (Passed("e", {}, 0.0, "b", 1, 3), "north", "attempt 3"),
        (Passed("e", {}, 0.0, "b", 1, True), "north", "attempt True"),
        (Passed(None, {}, 0.0, "b", 1), "north", "None is not a key"),
        (Withdraw("e", 5.0), "ann", "a client says when its event is withdrawn"),
        (Withdraw("e"), "north", "the time None"),
        (Withdraw(b"e", 1.0), "north", "is not a key"),
    ],
)
def test_hostile_messages_are_refused_before_anything_is_done(said, sender, problem):
    home = broker("ann")
    home.connect("north", 0.0)
    if not isinstance(said, Hello):
        home.receive(Hello(), "north", 0.0)
    with pytest.raises(MessageError, match=problem):
        home.receive(said, sender, 1.0)
    assert len(home.desk) == 0 and len(home.table) == 0 and not home.knows("e") and home.next_due is None


@pytest.mark.parametrize(
    ("options", "text", "reason"),
    [
        ({"schema": tamis.Schema({"price": "double"})}, "TOP 1 BY rent ASC OVER 1 HOUR", "no attribute rent"),
        (
            {"schema": tamis.Schema({"price": "double"})},
            "TOP 1 BY price ASC OVER 1 HOUR WHERE rent > 1",
            "no attribute rent",
        ),
        (
            {"ranked": {"algorithm": "probabilistic"}, "policy": EveryChange},
            "TOP 1 BY price ASC OVER 5 EVENTS",
            "every event",
        ),
        (
            {"ranked": {"algorithm": "strict", "filter": "strict"}, "policy": EveryChange, "buffer_s": 10.0},
            "TOP 1 BY price ASC OVER 19 SECONDS",
            "10",
        ),
        (
            {"ranked": {"algorithm": "probabilistic"}, "policy": BoxCells},
            "TOP 1 BY price ASC OVER 19 SECONDS",
            "Euclidean distances",
        ),
    ],
)
def test_a_subscription_that_cannot_be_ranked_here_is_rejected_with_the_reason(options, text, reason):
    home = broker("ann", **options)
    (refused,) = subscribe(home, "ann", best=text)
    assert isinstance(refused, Reject) and refused.key == "best" and reason in refused.reason
    assert len(home.desk) == 0 and home.ranked_by("ann") == {}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"lateness_s": -1.0}, "lateness_s is -1.0"),
        ({"spread_s": float("nan")}, "spread_s is nan"),
        ({"buffer_s": "long"}, "buffer_s is 'long'"),
        ({"ranked": {"lateness": 5}}, "ranked has lateness"),
        ({"policy": EveryChange}, "the algorithm 'block', which has none"),
        ({"ranked": {"algorithm": "strict", "filter": "strict"}, "policy": EveryChange}, "no buffer_s"),
        ({"ranked": {"algorithm": "probabilistic", "guard": True}, "policy": EveryChange}, "a guard"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options, problem):
    with pytest.raises(DeskSettingError, match=problem):
        Broker("home", **options)


EVENTS = st.lists(
    st.tuples(
        st.fixed_dictionaries({"x": st.sampled_from([0, 1, 2, 3, None, float("nan"), 10**30, -1.5])}),
        st.sampled_from([0.0, 0.1, 0.5, 3.0]),
    ),
    max_size=25,
)
TEXTS = [
    "TOP 1 BY x ASC OVER 1 SECOND",
    "TOP 2 BY x DESC OVER 2 SECONDS WHERE x > 0",
    "TOP 1 BY x ASC OVER 3 EVENTS",
    "x > 1",
]


@given(EVENTS, st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), st.sampled_from(["naive", "block", "strict"]))
def test_a_desk_tells_what_a_processor_tells_by_the_definition(events, texts, algorithm):
    home, one, now, told, expected = broker("ann", "shop", ranked={"algorithm": algorithm}), TopK("naive"), 0.0, [], []
    subscribe(home, "ann", **{f"s{place}": text for place, text in enumerate(texts)})
    for place, text in enumerate(texts):
        one.add(place, text, client="ann")
    for number, (event, later) in enumerate(events):
        now += later
        told += [key for _, key, _ in publish(home, "shop", number, event, now)]
        expected += [each.event for each in one.process(event, now, number)]
    told += [each.publication.key for each in home.advance(now + 9.0)]
    expected += [each.event for each in one.advance(now + 9.0)]
    assert told == expected


@given(EVENTS, st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), st.integers(1, 9))
def test_many_events_together_are_told_as_one_by_one(events, texts, size):
    singly, together, routed = (broker("ann", "bob", "shop", ranked={"algorithm": "strict"}) for _ in range(3))
    for each in (singly, together, routed):
        subscribe(each, "ann", **{f"s{place}": text for place, text in enumerate(texts)})
        subscribe(each, "bob", best=texts[0])
    now = 0.0
    for first in range(0, len(events), size):
        group = [(first + place, event) for place, (event, _) in enumerate(events[first : first + size])]
        now += events[first][1]
        expected = [output for key, event in group for output in singly.receive(Publish(key, event), "shop", now)]
        found = together.receive_many([Publish(*each) for each in group], "shop", now)
        assert repr(found) == repr(expected)
        arrays = routed.route_many([key for key, _ in group], [event for _, event in group], "shop", now)
        pairs = {(each.client, each.publication.key) for each in arrays.outputs}
        for event, client in zip(arrays.clients.events.tolist(), arrays.clients.clients.tolist(), strict=True):
            pairs.add((routed.table.client_name(client), group[event][0]))
        assert pairs == {(each.client, each.publication.key) for each in expected}


def test_held_events_are_forgotten_when_nobody_can_be_told_of_them_any_more():
    desk = Desk(ranked={"algorithm": "strict"})
    desk.add("ann", "best", Ranked.parse("TOP 1 BY x ASC OVER 5 SECONDS"), 0.0)
    for number in range(12_000):
        desk.take(Passed(number, {"x": number % 7}, float(number), "b", number), float(number))
    assert len(desk._events) < 9_000 and len(desk._numbers) == len(desk._events)
