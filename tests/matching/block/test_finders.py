"""By what single events find clauses: cells of two values, buckets of ranges; beside the definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher
from tamis.matching.block import finders
from tamis.workloads import Synthetic
from tests.strategies import conditions, events

PLACES = ["a", "b", "c"]
leaves = st.one_of(
    st.tuples(st.sampled_from(PLACES), st.integers(0, 3)).map(lambda it: f"{it[0]} = {it[1]}"),
    st.tuples(st.sampled_from(["s", "t"]), st.sampled_from("xyz")).map(lambda it: f"{it[0]} = '{it[1]}'"),
    st.tuples(st.sampled_from(["s", "t"]), st.lists(st.sampled_from("wxyz"), min_size=1, max_size=4)).map(
        lambda it: f"{it[0]} IN ({', '.join(repr(each) for each in it[1])})"
    ),
    st.tuples(st.sampled_from(PLACES), st.integers(0, 3), st.integers(0, 3)).map(
        lambda it: f"{it[0]} BETWEEN {it[1]} AND {it[2]}"
    ),
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["<", ">", "<>", ">="]), st.integers(0, 3)).map(
        lambda it: f"{it[0]} {it[1]} {it[2]}"
    ),
    st.sampled_from(["s LIKE '%y%'", "NOT u", "u", "a < b", "a IS NULL", "t IS NOT NULL"]),
)
conjunctions = st.lists(leaves, min_size=2, max_size=6).map(" AND ".join)
texts = st.one_of(conjunctions, st.lists(conjunctions, min_size=2, max_size=3).map(lambda it: f"({') OR ('.join(it)})"))
values = {
    **dict.fromkeys(PLACES, st.one_of(st.none(), st.integers(-1, 4), st.just(1.5), st.just("x"), st.booleans())),
    **dict.fromkeys(["s", "t"], st.one_of(st.none(), st.sampled_from("wxyz"), st.just(1), st.just("why"))),
    "u": st.one_of(st.none(), st.booleans()),
}
rows = st.fixed_dictionaries({}, optional=values)


@pytest.fixture(autouse=True)
def every_pair(monkeypatch):
    """Every pair of axes has cells that any clause would lie in, so that few subscriptions use all ways."""
    monkeypatch.setattr(finders, "_LOOK", -1.0)
    monkeypatch.setattr(finders, "_CELLS_PER_CLAUSE", 1e9)
    monkeypatch.setattr(finders, "_COPY", 0.0)


@given(subscriptions=st.lists(texts, min_size=1, max_size=30), batch=st.lists(rows, min_size=1, max_size=8))
@settings(max_examples=150)
def test_whoever_lies_in_cells_of_two_values_is_matched_as_by_the_definition(subscriptions, batch):
    matcher = Matcher()
    destinations = {number: f"to {number % 3}" for number in range(0, len(subscriptions), 2)}
    matcher.add_many(dict(enumerate(subscriptions)), destinations=destinations)
    matcher.compile()
    expressions = [tamis.parse(text) for text in subscriptions]
    for event in batch:
        wanted = [number for number, each in enumerate(expressions) if tamis.holds(each, event)]
        assert matcher.match(event) == wanted
        assert matcher.match_shortcut(event)[0] == [number for number in wanted if number % 2]
        assert set(matcher.match_destinations(event)) == {f"to {number % 3}" for number in wanted if number % 2 == 0}
    singly = matcher.match_batch(batch).to_pydict()
    pairs = [(n, i) for n, event in enumerate(batch) for i, each in enumerate(expressions) if tamis.holds(each, event)]
    assert sorted(zip(singly["event"], singly["subscription"], strict=True)) == pairs


@given(subscriptions=st.lists(conditions, min_size=1, max_size=30), batch=st.lists(events(), min_size=1, max_size=4))
@settings(max_examples=50)
def test_whatever_the_language_has_is_matched_as_by_the_definition(subscriptions, batch):
    reference, matcher = Matcher("naive"), Matcher()
    for each in (reference, matcher):
        each.add_many(dict(enumerate(subscriptions)))
    matcher.compile()
    for event in batch:
        assert matcher.match(event) == reference.match(event)


def segment_of(texts, sample=None):
    matcher = Matcher()
    matcher.add_many(dict(enumerate(texts)))
    matcher.compile()
    if sample is not None:
        matcher.learn(sample)
    return matcher._engine._parts[0].segment


def test_two_equalities_lie_in_a_cell_and_a_range_in_buckets():
    texts = [f"a = {n % 7} AND b = {n % 5} AND c < {100 + n}" for n in range(35)] + [f"c > {n}" for n in range(20)]
    segment = segment_of(texts, [{"a": n % 7, "b": n % 5, "c": n % 140} for n in range(1_000)])
    pairs, axes = segment.finders.pairs, len(segment.draft.axes)
    assert [tuple(pair) for pair in pairs[:, :3].tolist() if pair[1] != axes] == [(0, 1, 5)]
    # Each of the 35 cells has one clause, and all that is asked else is in its probe.
    assert np.diff(segment.finders.cells.astype(int)).tolist()[:35] == [1] * 35
    owners = finders.owners_of(segment.probes, segment.program)
    assert sorted(owners.tolist()) == list(range(55))
    assert (segment.probes.rows[:, -1] >= 0x8000).all()
    # A range that nothing bounds above reaches into all buckets behind its first.
    assert len(segment.finders.bounds) == 20
    assert len(segment.finders.members) <= finders._BUCKETS_PER_RANGE * 20


def test_an_event_tries_a_third_of_what_lies_under_single_values():
    """Measured by counting probes, not time."""
    workload = Synthetic("W3")
    matcher = Matcher()
    matcher.add_many(workload.subscriptions(5_000, seed=1))
    matcher.learn(workload.events(2_048, seed=2))
    segment = matcher._engine._parts[0].segment
    encoder, keys = segment.encoder(None), segment.keys
    tried = single = 0
    for event in workload.events(100, seed=3).to_pylist():
        codes = np.array(encoder.codes(event))
        tried += len(_tried(segment.finders, codes))
        for key, axis in enumerate(segment.key_axes.tolist()):
            if axis >= 0 and keys.firsts[key] <= codes[axis] <= keys.lasts[key]:
                single += int(keys.rows[key + 1] - keys.rows[key])
    assert 0 < tried < single / 3


def _tried(tables, codes):
    """Return the probes of the cells of an event, by hand."""
    places = [*((code // 2 - 1 if code and code % 2 == 0 else None) for code in codes.tolist()), 0]
    tried = []
    for one, other, width, first in tables.pairs.tolist():
        if places[one] is not None and places[other] is not None:
            cell = first + places[one] * width + places[other]
            tried += range(int(tables.cells[cell]), int(tables.cells[cell + 1]))
    return tried


def test_a_block_and_a_single_event_may_find_a_clause_by_different_leaves():
    # A block finds them by the range, which fewer events pass than either equality; both together fewer still.
    texts = [f"r BETWEEN {n} AND {n + 10} AND a = {n % 10} AND b = {n // 10 % 10}" for n in range(200)]
    sample = [{"r": n % 211, "a": n % 10, "b": n // 10 % 10} for n in range(2_000)]
    segment = segment_of(texts, sample)
    ranges = [axis for axis in segment.key_axes.tolist() if str(segment.draft.axes[axis].key.term) == "r"]
    assert len(ranges) == len(segment.key_axes)
    assert not len(segment.finders.bounds), "no single event needs the ranges"
    matcher = Matcher()
    matcher.add_many(dict(enumerate(texts)))
    matcher.learn(sample)
    for n in range(215):
        for event in ({"r": n, "a": n % 10, "b": n // 10 % 10}, {"r": n + 11, "a": n % 10, "b": n // 10 % 10}):
            assert matcher.match(event) == [n for n, text in enumerate(texts) if tamis.holds(tamis.parse(text), event)]
