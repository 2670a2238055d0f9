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
    st.tuples(st.sampled_from(["toggle", "mute", "unmute", "prune"]), st.sampled_from("pqr"), st.integers(0, 4)),
    max_size=20,
)
WORLD = [{"x": x, "y": y, "z": z} for x in (1, 2, None) for y in (1, 2) for z in (1, 2)]


@given(STEPS)
@settings(max_examples=80)
def test_a_table_matches_what_each_peer_wants_and_more_only_for_those_that_are_pruned(steps):
    table, wanted, muted = RoutingTable(algorithm="naive"), {}, set()
    for what, peer, number in steps:
        if what == "toggle":
            if (peer, number) in table:
                assert table.remove(peer, number) == wanted.pop((peer, number))
            else:
                wanted[peer, number] = FILTERS[number]
                table.add(peer, number, FILTERS[number])
        elif what == "mute" and peer not in muted:
            muted.add(peer)
            table.mute(peer)
        elif what == "unmute" and peer in muted:
            muted.discard(peer)
            table.unmute(peer)
        elif what == "prune":
            table.prune("p", Goal(share=number / 4), lambda _: 0.5)
    assert len(table) == len(wanted) and {(p, k): f for p, k, f in table.entries()} == wanted
    for event in WORLD:
        found = {(peer, key) for peer, keys in table.match(event).items() for key in keys}
        expected = {source for source, each in wanted.items() if source[0] not in muted and tamis.holds(each, event)}
        assert expected <= found and {source for source in found - expected if source[0] != "p"} == set()
        assert not {peer for peer, _ in found} & muted


@given(wanted=st.lists(conditions, max_size=6), event=events())
@settings(max_examples=40)
def test_a_table_of_ugly_filters_matches_as_they_mean(wanted, event):
    table = RoutingTable()
    for number, each in enumerate(wanted):
        table.add(f"peer {number % 2}", number, each)
    found = {key for keys in table.match(event).values() for key in keys}
    assert found == {number for number, each in enumerate(wanted) if tamis.holds(each, event)}


def test_a_smaller_goal_takes_prunings_back():
    table = RoutingTable(algorithm="naive")
    table.add("p", 1, FILTERS[4])
    assert table.prune("p", Goal(share=1), lambda _: 0.5) == 1 and table.matched_bytes("p") < table.bytes_of("p")
    assert table.prune("p", Goal(count=0), lambda _: 0.5) == 1 and table.matched_bytes("p") == table.bytes_of("p")


@pytest.mark.parametrize("strategy", ["imperfect merging", "flooding"])
def test_brokers_that_prune_what_they_keep_lose_nothing(strategy):
    class Pruning(Broker):
        def receive(self, message, source, now):
            self.prune(Goal(share=0.5), lambda _: 0.5)
            return super().receive(message, source, now)

    for seed in range(6):
        run = simulate(
            Scenario.of_seed(seed, broker_count=4, schema=None),
            lambda scenario, number, name: Pruning(
                name, strategy, advertisements=scenario.advertisements, algorithm="naive"
            ),
        )
        assert run.problems == [], f"replay with {run.scenario}"
