"""What neighbours are told is pruned by all filters of the link, for each neighbour as far as it is wanted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import Goal, UnknownMeasureError
from tamis.routing import Advertise, Broker, Covering, Entry, Pruned, Publish, Send, Simple, Subscribe, Unsubscribe
from tests.pruning.test_sequencing import filters
from tests.strategies import events


def told(strategy, texts):
    return [str(each) for each in strategy.told(map(tamis.parse, texts))]


def test_rare_predicates_go_first_by_occurrence_though_each_filter_alone_would_lose_another():
    texts = ["b = 1 AND a = 1", *[f"a = 1 AND c = {number}" for number in range(5)]]
    share = {"a": 0.30, "b": 0.29, "c": 0.30}
    by_accuracy = Pruned(Simple(), Goal(count=1), lambda each: share[str(each)[0]])
    by_occurrence = Pruned(Simple(), Goal(count=1), lambda each: share[str(each)[0]], "occurrence")
    assert told(by_accuracy, texts)[0] == "b = 1" and told(by_occurrence, texts) == ["a = 1"] * 6
    assert told(by_occurrence, texts[:1]) == ["b = 1"]


def test_a_goal_for_all_filters_of_a_link_is_reached_by_the_cheapest_steps_of_all():
    texts = ["rare = 1 AND common = 1", "odd = 1 AND even = 1"]
    share = {"rare": 0.001, "common": 0.9, "odd": 0.5, "even": 0.5}
    strategy = Pruned(Simple(), Goal(reduction=0.25), lambda each: share[str(each).split()[0]])
    assert told(strategy, texts) == ["rare = 1", "odd = 1 AND even = 1"]


def connected(strategy, **options):
    broker = Broker("here", strategy, **options)
    for neighbour in ("north", "south", "west"):
        broker.connect(neighbour, 0.0)
    return broker


def test_each_neighbour_may_have_another_goal():
    goals = {"south": Goal(count=1), "west": Goal(share=1)}
    broker = connected(Pruned(Simple(), goals, lambda _: 0.5))
    broker.attach("ann")
    broker.receive(Subscribe([Entry("s", tamis.parse("a = 1 AND b = 1 AND c = 1"))]), "ann", 0.0)
    lengths = {name: len(str(broker.told(name)[0].filter)) for name in broker.neighbours}
    assert lengths == {"north": 25, "south": 15, "west": 5}


def test_filters_of_far_subscribers_are_pruned_first_by_distance():
    broker = connected(Pruned(Simple(), Goal(threshold=0.1), lambda _: 0.5, "distance"))
    near, far = Entry(0, tamis.parse("a = 1 AND b = 1")), Entry(1, tamis.parse("a = 2 AND b = 2"), hops=9)
    broker.receive(Subscribe([near, far]), "north", 0.0)
    assert [(str(each.filter), each.hops) for each in broker.told("south")] == [("a = 1 AND b = 1", 1), ("b = 2", 10)]


def test_without_a_share_it_goes_by_what_the_broker_has_counted():
    broker = connected(Pruned(Simple(), Goal(count=1)))
    broker.attach("ann")
    broker.receive(Subscribe([Entry("first", tamis.parse("common < 9 AND rare = 1"))]), "ann", 0.0)
    for number in range(1_000):
        broker.receive(Publish(number, {"rare": number % 20, "common": number % 10}), "north", 0.0)
    broker.receive(Subscribe([Entry("later", tamis.parse("common < 8 AND rare = 1"))]), "ann", 0.0)
    assert str(broker.told("south")[-1].filter) == "rare = 1"


def test_an_unknown_measure_is_refused_at_once():
    with pytest.raises(UnknownMeasureError):
        Pruned(Simple(), Goal(count=1), measure="beauty")


@given(
    steps=st.lists(st.one_of(filters, st.integers(0, 9)), max_size=10),
    goal=st.sampled_from(
        [Goal(count=1), Goal(share=0.5), Goal(threshold=0.4), Goal(reduction=0.5), Goal(memory_bytes=20)]
    ),
    measure=st.sampled_from(["accuracy", "occurrence", "distance"]),
    event=events(),
)
@settings(max_examples=60, deadline=None)
def test_what_is_told_covers_what_is_wanted_and_leaves_with_it(steps, goal, measure, event):
    summary = Pruned(Covering(), goal, lambda _: 0.5, measure).summary()
    wanted, known = {}, {}
    for number, step in enumerate(steps):
        if isinstance(step, int):
            if wanted:
                source = list(wanted)[step % len(wanted)]
                del wanted[source]
                summary.remove(source)
        else:
            wanted[number] = step
            summary.add(number, step)
        if number % 2:
            changes = summary.changes()
            known |= {entry.key: entry.filter for entry in changes.added}
            for key in changes.removed:
                del known[key]
    changes = summary.changes()
    known |= {entry.key: entry.filter for entry in changes.added}
    for key in changes.removed:
        del known[key]
    assert known == {entry.key: entry.filter for entry in summary.entries} and len(summary) == len(known)
    if any(tamis.holds(each, event) for each in wanted.values()):
        assert any(tamis.holds(each, event) for each in known.values())
    for source in wanted:
        summary.remove(source)
    assert set(summary.changes().removed) == set(known) and summary.entries == ()


# -- Advertisements


OFFER = tamis.parse("author = 'Herbert' AND condition = 'Used' AND price > 20")
WANTED = [tamis.parse("condition = 'New' AND price < 15"), tamis.parse("price < 12"), tamis.parse("author = 'Ende'")]


def offering(**options):
    broker = connected("simple", **options)
    broker.attach("ann")
    broker.receive(Subscribe([Entry(number, each) for number, each in enumerate(WANTED)]), "ann", 0.0)
    outputs = broker.receive(Advertise([Entry(0, OFFER)]), "north", 0.0)
    told = [each.message for each in outputs if isinstance(each, Send) and isinstance(each.message, Advertise)]
    return broker, {str(entry.filter) for message in told for entry in message.entries}


def test_advertisements_are_pruned_before_they_are_sent_by_what_keeps_out_least():
    goal = Goal(count=1)
    broker, told = offering(advertisements=Pruned(Simple(), goal, measure="overlap"))
    assert told == {"author = 'Herbert' AND price > 20"} or told == {"condition = 'Used' AND price > 20"}
    assert broker.heeded_of("north") == {0: OFFER}


def test_advertisements_are_pruned_where_they_are_kept_and_go_on_as_they_came():
    broker, told = offering(advertisements="simple", advertisement_pruning=Goal(share=1))
    assert told == {str(OFFER)} and broker.advertised_by("north") == {0: OFFER}
    (heeded,) = broker.heeded_of("north").values()
    assert len(str(heeded)) < len(str(OFFER)) / 2
    exact, _ = offering(advertisements="simple")
    assert len(broker.told("north")) > len(exact.told("north")) == 0
    broker.receive(Unsubscribe(tuple(range(3))), "ann", 0.0)
    assert broker.told("north") == ()


def test_advertisements_are_pruned_in_bulk_and_a_smaller_goal_takes_that_back():
    broker, _ = offering(advertisements="simple")
    broker.receive(Advertise([Entry(1, tamis.parse("author = 'Lem' AND price > 30"))]), "north", 0.0)
    assert broker.told("north") == ()
    (sent,) = broker.prune_advertisements(Goal(share=1), now=1.0)
    assert sent.peer == "north" and [entry.filter for entry in sent.message.entries] == [WANTED[2]]
    assert broker.advertised_by("north")[0] == OFFER != broker.heeded_of("north")[0]
    assert broker.prune_advertisements(Goal(share=1), now=2.0) == [], "nothing is left to prune"
    (sent,) = broker.prune_advertisements(Goal(count=0), now=3.0)
    assert isinstance(sent.message, Unsubscribe) and broker.told("north") == ()
    assert broker.heeded_of("north") == broker.advertised_by("north")


def test_bulk_pruning_of_advertisements_prunes_first_what_keeps_the_fewest_subscriptions_out():
    broker, _ = offering(advertisements="simple")
    other = tamis.parse("author = 'Nobody' AND colour = 'red'")
    broker.receive(Advertise([Entry(1, other)]), "north", 0.0)
    broker.prune_advertisements(Goal(count=1), now=1.0)
    assert broker.heeded_of("north")[0] == OFFER and str(broker.heeded_of("north")[1]) == "author = 'Nobody'"


def test_advertisements_are_pruned_in_bulk_where_there_are_none():
    broker = connected("simple", advertisements="simple")
    assert broker.prune_advertisements(now=0.0) == []
