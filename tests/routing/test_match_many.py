"""A group of events, matched as arrays, is matched as each of its events; and what the arrays stand on."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.pruning import Goal
from tamis.routing import RoutingTable, UnknownHandleError
from tamis.routing.holders import Holders
from tamis.routing.wanted import by_event_and_client
from tests.strategies import conditions, events

NEIGHBOURS, CLIENTS = ("north", "south"), ("ann", "bob", "cid")
TEXTS = ("x = 1 AND y = 1", "x = 1", "y = 1 AND (x = 2 OR z = 1)", "TRUE", "x = 1 AND y = 1 AND z = 1")
FILTERS = [tamis.parse(text) for text in TEXTS]
WORLD = [{"x": x, "y": y, "z": z} for x in (1, 2, None) for y in (1, 2) for z in (1, 2)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["toggle", "toggle", "toggle", "replace", "mute", "unmute", "prune", "prune new", "match"]),
        st.sampled_from(NEIGHBOURS + CLIENTS),
        st.integers(0, 4),
        st.integers(0, 3),
    ),
    max_size=30,
)


def changed(table, what, peer, number, key, muted):
    match what:
        case "toggle" | "replace":
            is_there = (peer, key) in table
            if is_there:
                table.remove(peer, key)
            if not is_there or what == "replace":
                table.add(peer, key, FILTERS[number], hops=number % 2 if peer in NEIGHBOURS else 0)
        case "mute" | "unmute":
            getattr(table, what)(peer)
        case "prune":
            table.prune(Goal(share=number / 4), None if number % 2 else lambda _: 0.5)
        case "prune new":
            table.prune_new(0.3)


@pytest.mark.parametrize("algorithm", ["block", "naive"])
@given(steps=STEPS)
@settings(max_examples=100, deadline=None)
def test_a_group_is_matched_as_its_events_one_by_one(algorithm, steps):
    one, two = (RoutingTable(algorithm=algorithm) for _ in range(2))
    handles = {}
    for table in (one, two):
        for neighbour in NEIGHBOURS:
            table.connect(neighbour)
    for what, peer, number, key in steps:
        if what == "match":
            compare(one, two, WORLD[: 3 * number])
        else:
            for table in (one, two):
                changed(table, what, peer, number, key, set())
        # As long as an entry is there it has one handle, which nobody else has.
        present = {source: two._handles.entry(*source) for source in sources(two)}
        assert len(set(present.values())) == len(present)
        if what == "replace":
            handles.pop((peer, key), None)
        assert all(handles.get(source, handle) == handle for source, handle in present.items())
        handles = present
    compare(one, two, WORLD)
    for peer in NEIGHBOURS + CLIENTS:
        for key in list(two.of(peer)):
            two.remove(peer, key)
    assert not two._holders and not two._handles and two._handles._clients == {}
    assert sorted(two._free_numbers) == list(range(two._number_count))


def sources(table):
    return [(peer, key) for peer in CLIENTS for key in table.of(peer)]


def compare(one, two, group):
    expected = [one.match(event) for event in group]
    wanted = two.match_many(group)
    assert two.named(wanted, len(group)) == expected and one.match_count == two.match_count
    assert one._matcher.watched_count == two._matcher.watched_count
    clients = wanted.clients
    rows = list(zip(clients.events.tolist(), clients.clients.tolist(), strict=True))
    assert rows == sorted(rows)
    found = Counter(zip(clients.events.tolist(), clients.entries.tolist(), strict=True))
    assert set(found.values()) <= {1}
    assert [
        two._handles.entry(two.client_name(client), two.key(entry)) for _, client, entry in zip(*clients, strict=True)
    ] == (clients.entries.tolist())
    starts = clients.starts().tolist()
    assert starts[0] == 0 and starts[-1] == len(rows)
    assert [rows[start] for start in starts[:-1]] == sorted(set(rows))


@given(
    wanted=st.lists(st.tuples(st.sampled_from(CLIENTS + NEIGHBOURS), conditions), max_size=8),
    group=st.lists(events(), max_size=5),
)
@settings(max_examples=60, deadline=None)
def test_ugly_filters_and_events_are_matched_in_groups_as_they_mean(wanted, group):
    table = RoutingTable()
    for neighbour in NEIGHBOURS:
        table.connect(neighbour)
    for number, (peer, each) in enumerate(wanted):
        table.add(peer, number, each)
    for event, found in zip(group, table.named(table.match_many(group), len(group)), strict=True):
        matching = [(peer, number) for number, (peer, each) in enumerate(wanted) if tamis.holds(each, event)]
        assert sorted((peer, key) for peer, keys in found.items() for key in keys) == sorted(
            source for source in matching if source[0] in CLIENTS
        )
        assert {peer for peer in found if peer in NEIGHBOURS} == {peer for peer, _ in matching if peer in NEIGHBOURS}


def test_what_is_pruned_as_it_comes_is_pruned_within_a_group_where_it_would_be_one_by_one():
    def table():
        made = RoutingTable()
        made.connect("north")
        made.prune_new(0.15)
        made.add("north", 1, tamis.parse("rare = 1 AND common < 9"))
        return made

    one, two = table(), table()
    group = [{"rare": number % 50, "common": number % 10} for number in range(20_000)]
    expected = [one.match(event) for event in group]
    assert two.named(two.match_many(group), len(group)) == expected
    assert one.matched("north") == two.matched("north") != one.of("north")
    assert one.counters.event_count == two.counters.event_count > 0 and one.match_count == two.match_count


def test_a_handle_of_nobody_is_an_error():
    table = RoutingTable()
    table.add("ann", "a", FILTERS[0])
    assert (table.client_name(0), table.key(0), table.client_handle("ann")) == ("ann", "a", 0)
    table.remove("ann", "a")
    for ask in (table.client_name, table.key):
        for handle in (0, 1, -1):
            with pytest.raises(
                UnknownHandleError, match=f"there is no (entry|client) {handle}; handles are good until"
            ):
                ask(handle)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=200))
def test_holders_are_lists_of_what_was_added_and_not_removed(steps):
    holders, lists = Holders(), {}
    for number, entry in steps:
        members = lists.setdefault(number * 20, [])
        if entry in members:
            members.remove(entry)
            assert holders.remove(number * 20, entry) == len(members)
        else:
            members.append(entry)
            holders.add(number * 20, entry)
        assert len(holders) == sum(map(len, lists.values()))
    for asked in (list(lists), list(lists)[::-1], [number for number, members in lists.items() if len(members) == 1]):
        counts, entries = holders.of(np.array(asked, np.int64))
        assert counts.tolist() == [len(lists[number]) for number in asked]
        assert entries.tolist() == [entry for number in asked for entry in lists[number]]
    assert len(holders._members) < 1_000, "waste is swept up"


@pytest.mark.parametrize("client_count", [8, 2**60])
def test_matches_are_sorted_by_event_and_client_and_keep_their_order_otherwise(client_count):
    events, clients = np.array([0, 0, 0, 1, 1]), np.array([5, 2, 5, 7, 1])
    found = by_event_and_client(events, clients, np.array([40, 41, 42, 43, 44]), client_count)
    assert found.clients.tolist() == [2, 5, 5, 1, 7] and found.entries.tolist() == [41, 40, 42, 44, 43]
