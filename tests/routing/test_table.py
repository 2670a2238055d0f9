"""Which peers want an event, after any coming and going, pruning and muting."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import Goal
from tamis.routing import Broker, RoutingTable
from tamis.simulation import Scenario, simulate
from tests.strategies import conditions, events

FILTERS = [
    tamis.parse(text)
    for text in ("x = 1 AND y = 1", "x = 1", "y = 1 AND (x = 2 OR z = 1)", "TRUE", "x = 1 AND y = 1 AND z = 1")
]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["toggle", "toggle", "mute", "unmute", "prune", "match"]),
        st.sampled_from("pqr"),
        st.integers(0, 4),
    ),
    max_size=20,
)
WORLD = [{"x": x, "y": y, "z": z} for x in (1, 2, None) for y in (1, 2) for z in (1, 2)]


NEIGHBOURS = "pq"


@pytest.mark.parametrize("algorithm", ["naive", "block"])
@given(STEPS)
@settings(max_examples=80, deadline=None)
def test_a_table_matches_what_each_peer_wants_and_more_only_for_those_that_are_pruned(algorithm, steps):
    table, wanted, muted, is_pruned = RoutingTable(algorithm=algorithm), {}, set(), False
    for peer in NEIGHBOURS:
        table.connect(peer)
    for what, peer, number in steps:
        if what == "toggle":
            if (peer, number) in table:
                assert table.remove(peer, number) == wanted.pop((peer, number))
            else:
                wanted[peer, number] = FILTERS[number]
                table.add(peer, number, FILTERS[number], hops=number % 2)
        elif what == "mute" and peer not in muted:
            muted.add(peer)
            table.mute(peer)
        elif what == "unmute" and peer in muted:
            muted.discard(peer)
            table.unmute(peer)
        elif what == "prune":
            is_pruned = is_pruned or number > 0
            measure = ("accuracy", "occurrence", "distance")[number % 3]
            table.prune(Goal(share=number / 4), None if number % 2 else lambda _: 0.5, measure)
        elif what == "match":
            table.match(WORLD[number])
    assert len(table) == len(wanted) and {(p, k): f for p, k, f in table.entries()} == wanted
    for event in WORLD:
        found = table.match(event)
        needed = {source for source, each in wanted.items() if source[0] not in muted and tamis.holds(each, event)}
        clients = {(peer, key) for peer, keys in found.items() for key in keys}
        assert clients == {source for source in needed if source[0] not in NEIGHBOURS}
        neighbours = {peer for peer, keys in found.items() if not keys}
        assert {peer for peer, _ in needed if peer in NEIGHBOURS} <= neighbours
        assert not neighbours & muted and (is_pruned or neighbours <= {peer for peer, _ in needed})
    for peer, key in wanted:
        assert table.remove(peer, key) == wanted[peer, key]
    assert not table._matched and not table._numbers and not table._counts and not table._holders and not table._handles
    assert set(table._versions) <= {-1} and len(table._matcher) == 0


@given(wanted=st.lists(st.tuples(st.sampled_from("pqr"), conditions), max_size=6), event=events())
@settings(max_examples=40, deadline=None)
def test_what_is_matched_for_a_neighbour_covers_what_it_said(wanted, event):
    table = RoutingTable()
    for peer in "pqr":
        table.connect(peer)
    for number, (peer, each) in enumerate(wanted):
        table.add(peer, number, each)
    table.prune(Goal(share=0.6), lambda _: 0.5)
    found = table.match(event)
    for number, (peer, each) in enumerate(wanted):
        assert table.of(peer)[number] == each
        if tamis.holds(each, event):
            assert tamis.holds(table.matched(peer)[number], event) and peer in found


@given(wanted=st.lists(conditions, max_size=6), event=events())
@settings(max_examples=40)
def test_a_table_of_ugly_filters_matches_as_they_mean(wanted, event):
    table = RoutingTable()
    for number, each in enumerate(wanted):
        table.add(f"peer {number % 2}", number, each)
    found = {key for keys in table.match(event).values() for key in keys}
    assert found == {number for number, each in enumerate(wanted) if tamis.holds(each, event)}


def table_of(filters, **options):
    table = RoutingTable(**options)
    table.connect("p")
    for number, each in enumerate(filters):
        table.add("p", number, tamis.parse(each) if isinstance(each, str) else each)
    return table


def test_a_smaller_goal_takes_prunings_back():
    table = table_of([FILTERS[4]], algorithm="naive")
    assert table.prune(Goal(share=1), lambda _: 0.5) == 1 and table.matched_bytes("p") < table.bytes_of("p")
    assert table.prune(Goal(count=0), lambda _: 0.5) == 1 and table.matched_bytes("p") == table.bytes_of("p")


def test_a_table_needs_nobody_to_tell_it_how_often_predicates_are_true():
    table = table_of([f"rare = {number} AND common < 9" for number in range(20)])
    for number in range(3_000):
        table.match({"rare": number % 20, "common": number % 10})
    table.prune(Goal(count=20))
    assert {str(each) for each in table.matched("p").values()} == {f"rare = {number}" for number in range(20)}
    assert table.share(tamis.parse("common < 9")) == pytest.approx(0.9, abs=0.1)


def test_what_comes_later_is_pruned_as_it_comes_once_events_were_seen():
    table = table_of(["rare = 1 AND common < 9"])
    table.prune_new(0.15)
    for number in range(1_500):
        table.match({"rare": number % 50, "common": number % 10})
    table.add("p", "late", tamis.parse("rare = 7 AND common < 8"))
    table.add("p", "broad", tamis.parse("common < 5 AND rare > 3"))
    assert table.match({"rare": 7, "common": 9}) == {"p": []}
    assert {key: str(each) for key, each in table.matched("p").items()} == {
        0: "rare = 1",
        "late": "rare = 7",
        "broad": "common < 5 AND rare > 3",
    }
    assert str(table.remove("p", "late")) == "rare = 7 AND common < 8"
    assert table.match({"rare": 7, "common": 9}) == {}


def test_nothing_is_pruned_by_a_guess_as_it_comes():
    table = table_of(["rare = 1 AND common < 9"])
    table.prune_new(0.5)
    assert table.match({"rare": 1, "common": 9}) == {}


def test_far_subscribers_are_pruned_first_by_distance():
    table = RoutingTable()
    table.connect("p")
    table.add("p", "near", tamis.parse("a = 1 AND b = 1"), hops=0)
    table.add("p", "far", tamis.parse("a = 2 AND b = 2"), hops=4)
    table.prune(Goal(count=1), lambda _: 0.5, "distance")
    assert {key: len(str(each)) for key, each in table.matched("p").items()} == {"near": 15, "far": 5}


def test_many_matching_entries_of_a_neighbour_are_one_answer():
    table = table_of([f"a >= {-number}" for number in range(500)])
    table.add("ann", "mine", tamis.parse("a >= -3"))
    assert table.match({"a": 1}) == {"ann": ["mine"], "p": []}
    assert table.match_count == 2


@pytest.mark.parametrize("strategy", ["imperfect merging", "flooding"])
def test_brokers_that_prune_what_they_keep_lose_nothing(strategy):
    class Pruning(Broker):
        def receive(self, message, source, now):
            self.prune(Goal(share=0.5))
            return super().receive(message, source, now)

    for seed in range(6):
        run = simulate(
            Scenario.of_seed(seed, broker_count=4, schema=None),
            lambda scenario, number, name: Pruning(
                name, strategy, advertisements=scenario.advertisements, algorithm="naive"
            ),
        )
        assert run.problems == [], f"replay with {run.scenario}"


@given(st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 4)), max_size=12), st.integers(0, 12))
def test_whether_a_filter_mentions_an_attribute_is_known_whenever_it_is_asked_first(happenings, asked_first):
    table = RoutingTable(None, "naive")
    for peer in "pqr":
        table.connect(peer) if peer in NEIGHBOURS else table.attach(peer)
    held = set()
    for number, (peer, index) in enumerate(happenings):
        if number == asked_first:
            assert table.mentions("y") == any("y" in str(FILTERS[each]) for _, each in held)
        if (peer, index) in held:
            table.remove(peer, index)
        else:
            table.add(peer, index, FILTERS[index])
        held ^= {(peer, index)}
    for name in ("y", "z", "unwanted"):
        assert table.mentions(name) == any(name in str(FILTERS[each]) for _, each in held)
