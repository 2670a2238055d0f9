"""The steps of the compiled loop over rankings, each beside its plain twin. The loop as a whole: test_conformance."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.relations.families import recognised
from tamis.topk import Ranked
from tamis.topk.block import kernels, tables
from tamis.topk.index import kernels as searching
from tamis.topk.kernels import Edges, measures_of_subscriptions
from tamis.topk.scoring import Group

LINEAR_SCORES = Group(recognised(Ranked("2 * x", 1, "9 EVENTS").score)[0]).scores
measures = st.lists(st.one_of(st.integers(0, 30).map(float), st.sampled_from([math.nan, math.inf])), max_size=150)


@given(values=measures, k=st.integers(1, 4), data=st.data())
def test_of_what_waits_only_those_are_kept_that_fewer_than_k_younger_ones_beat(values, k, data):
    low = data.draw(st.integers(0, len(values)))
    high = data.draw(st.integers(low, len(values)))
    settled = data.draw(st.integers(low, high))
    work = tables.workspace(len(values), 0, k)
    work.measures[:] = values
    count = kernels._undominated(LINEAR_SCORES, k, work, low, settled, high)
    expected = [
        place
        for place in range(settled - 1, low - 1, -1)
        if sum(values[other] <= values[place] for other in range(place + 1, high)) < k
        and values[place] == values[place]
    ]
    assert work.kept_places[:count].tolist() == expected


@given(times=st.lists(st.integers(0, 9), max_size=30), time=st.integers(-1, 10))
def test_the_first_event_after_a_time_is_found_by_halving(times, time):
    ordered = np.array(sorted(times), float)
    found = kernels._first_after(ordered, float(time))
    assert found == sum(each <= time for each in times)


@given(leaves=st.lists(st.integers(0, 9), max_size=20), clock=st.integers(0, 9))
def test_what_leaves_is_taken_out_and_the_others_keep_their_order(leaves, clock):
    size = len(leaves)
    ranking = tables.candidates(size)
    ranking.numbers[:], ranking.leaves[:] = np.arange(size), leaves
    count = kernels._without_departed(ranking, size, float(clock))
    assert ranking.numbers[:count].tolist() == [place for place, each in enumerate(leaves) if each > clock]
    assert kernels._soonest(ranking, count) == min((each for each in leaves if each > clock), default=math.inf)


@given(centres=st.lists(st.integers(-5, 5), min_size=1, max_size=20), x=st.integers(-5, 5), data=st.data())
def test_the_subscriptions_that_an_event_concerns_are_found_in_columns_and_among_some(centres, x, data):
    group = None
    for centre in centres:
        ranked = Ranked(f"euclidean(array(x), array({centre}))", 1, "1 HOUR")
        family, numbers = recognised(ranked.score, ranked.is_ascending)
        group = group or Group(family)
        group.add(ranked, numbers)
    column = np.full((group.coordinate_rows, 1), math.nan)
    group.read({"x": x}, column, 0)
    size = len(centres)
    bounds = np.array(data.draw(st.lists(st.integers(0, 30), min_size=size, max_size=size)), float)
    dues = np.array(data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size)), float)
    is_timed = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
    found = np.zeros(size, np.int64)
    edges = Edges(bounds, dues, is_timed)
    count = searching.interesting_slots(group.scores, column, 0, edges, size, 3.0, 2.0, found)
    wanted = [(x - centre) ** 2 <= bound for centre, bound in zip(centres, bounds, strict=True)]
    leaving = [due < 3 if timed else due <= 2 for due, timed in zip(dues, is_timed, strict=True)]
    assert found[:count].tolist() == [slot for slot in range(size) if wanted[slot] or leaving[slot]]
    asked = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=size)), np.int64)
    found = np.zeros(size, np.int64)
    count = searching.concerned_slots(asked, group.scores, column, 0, bounds, np.zeros(size, np.int64), 1, found)
    assert found[:count].tolist() == [slot for slot in dict.fromkeys(asked.tolist()) if wanted[slot]]


@given(passing=st.lists(st.lists(st.integers(0, 3), unique=True), max_size=8), done=st.integers(0, 2))
def test_events_wait_for_those_whose_filter_they_pass_until_there_is_no_room(passing, done):
    ranked = Ranked("2 * x", 1, "9 EVENTS")
    family, numbers = recognised(ranked.score, ranked.is_ascending)
    group = Group(family)
    for _ in range(4):
        group.add(ranked, numbers)
    column = np.full((group.coordinate_rows, 1), math.nan)
    group.read({"x": 5.0}, column, 0)
    measure = np.zeros(1)
    measures_of_subscriptions(group.scores, column, 0, 0, 1, measure)
    assert measure[0] == 10.0
    table = tables.slot_table(4, waiting=3)
    table.edges.bounds[:] = 9.0
    expected = {slot: [] for slot in range(4)}
    for slots in passing:
        slots = [slot for slot in slots if len(expected[slot]) < 3]
        found = np.zeros(4, np.int64)
        count = kernels.note_arrival(np.array(slots, np.int64), 0, group.scores, column, table, found)
        for slot in slots:
            expected[slot].append(0)
        assert found[:count].tolist() == [slot for slot in slots if len(expected[slot]) == 3]  # the bound is below it
    assert table.counts.tolist() == [len(expected[slot]) for slot in range(4)] == table.positions.tolist()
    table.cursors[:] = np.minimum(done, table.counts)
    kernels.forget_waiting(np.arange(4), table)
    assert table.counts.tolist() == [len(expected[slot]) - min(done, len(expected[slot])) for slot in range(4)]
