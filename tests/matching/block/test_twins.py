"""Subscriptions that ask the same are asked once, and every one of them is told."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.meaning import holds
from tamis.matching.block import kernels
from tamis.matching.block.draft import Drafting
from tamis.matching.block.joining import joined
from tamis.matching.block.segment import compiled
from tamis.matching.block.twins import twins_in
from tamis.ragged import Ragged

TEXTS = (
    "x = 1",
    "x = 2",
    "x IN (1, 3)",
    "x IN (1, 2, 4)",
    "x NOT IN (1, 3)",
    "x <> 1",
    "x BETWEEN 1 AND 3",
    "x NOT BETWEEN 1 AND 3",
    "x < 3 AND y = 'a'",
    "y = 'a' OR x = 1 AND y = 'b'",
    "(x = 1 OR y = 'a') AND (x < 3 OR y = 'b')",
    "(x = 1 OR y = 'a') AND (x < 3 OR y = 'c')",
    "at_least(2, x = 1, y = 'a', x < 4)",
    "x IS NULL",
    "y LIKE '%b%'",
    "TRUE",
    "FALSE",
)
EVENTS = [{"x": x, "y": y} for x in (None, 0, 1, 2, 3, 4) for y in (None, "a", "b", "c", "abc")]


def drafted(texts):
    drafting = Drafting()
    drafting.add_many(range(len(texts)), map(tamis.parse, texts))
    return drafting.finished()


def groups(draft):
    twins = twins_in(draft)
    return [twins.members(number).tolist() for number in range(twins.list_count) if len(twins.members(number))]


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=40))
def test_twins_are_those_with_equal_texts(texts):
    expected = [[n for n, other in enumerate(texts) if other == text] for text in dict.fromkeys(texts)]
    found = groups(drafted(texts))
    assert found == (expected if len(expected) < len(texts) else [])


@given(st.lists(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=12), min_size=1, max_size=4))
def test_twins_find_each_other_in_joined_drafts(lists):
    drafts = [drafted(texts) for texts in lists]
    texts = [text for some in lists for text in some]
    expected = [[n for n, other in enumerate(texts) if other == text] for text in dict.fromkeys(texts)]
    found = groups(joined(drafts, [np.ones(len(some), np.bool_) for some in lists]))
    assert found == (expected if len(expected) < len(texts) else [])


def test_where_hardly_anybody_has_a_twin_nothing_is_kept_for_them():
    assert groups(drafted([f"x = {number}" for number in range(99)] + ["x = 0"])) == []
    assert len(groups(drafted([f"x = {number}" for number in range(9)] + ["x = 0"]))) == 9


@given(st.data())
def test_every_living_twin_is_told_and_no_other(data):
    texts = data.draw(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=60))
    matcher = tamis.Matcher()
    matcher._engine.merge_always = True
    living = {}
    for number, text in enumerate(texts):
        matcher.add(number, text)
        living[number] = tamis.parse(text)
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(living)))
            matcher.remove(gone)
            del living[gone]
        if data.draw(st.integers(0, 9)) == 0:
            matcher.match({"x": 1})  # lays out what came
    among = data.draw(st.sets(st.sampled_from(range(len(texts)))))
    expected = [{key for key, wanted in living.items() if holds(wanted, event)} for event in EVENTS]
    assert [set(matcher.match(event)) for event in EVENTS] == expected
    found = matcher.match_batch(pa.Table.from_pylist(EVENTS * 2))
    pairs = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert [{key for event, key in pairs if event == number} for number in range(60)] == expected * 2
    asked = among & living.keys()
    snapshot, handles = matcher._engine.compiled_snapshot(), np.array(sorted(asked), np.int64)
    assert [set(snapshot.match_event(event, handles).tolist()) for event in EVENTS] == [
        each & asked for each in expected
    ]


def test_the_clauses_of_twins_are_laid_out_once():
    once, often = compiled(drafted(TEXTS)), compiled(drafted(TEXTS * 50))
    assert len(often.program.clauses) == len(once.program.clauses) and len(often) == 50 * len(once)
    matcher = tamis.Matcher()
    matcher.add_many(enumerate(TEXTS * 50))
    matcher.match({})
    assert matcher._engine.statistics()["twins"] == 49 * len(TEXTS)


@given(st.lists(st.lists(st.integers(0, 3) | st.just(2**32 - 1), max_size=4), max_size=40), st.integers(0, 3))
def test_the_first_equal_row_is_found(rows, spare):
    starts = np.cumsum([0, *map(len, rows)])
    words = np.array([word for row in rows for word in row], np.uint32)
    firsts = np.empty(len(rows), np.int64)
    table = np.full(1 << (len(rows) + 1 + spare).bit_length(), -1, np.int64)
    kernels.find_first_equal(Ragged(starts, words), table, firsts)
    assert firsts.tolist() == [rows.index(row) for row in rows]


@pytest.mark.parametrize("alive", [[True] * 5, [True, False, True, True, False], [False] * 5])
def test_matches_are_handed_on_to_living_twins(alive):
    starts, twins = np.array([0, 3, 3, 3, 4, 5], np.uint32), np.array([0, 1, 2, 3, 4], np.uint32)
    alive, owners, events = np.array(alive), np.array([0, 3, 4, 0], np.uint32), np.array([7, 7, 8, 9], np.uint16)
    expected = [
        (event, twin)
        for event, owner in zip(events.tolist(), owners.tolist(), strict=True)
        for twin in twins[starts[owner] : starts[owner + 1]].tolist()
        if alive[twin]
    ]
    count = kernels.count_twins(owners, Ragged(starts, twins), alive)
    out_events, out_owners = np.empty(count, np.uint16), np.empty(count, np.uint32)
    kernels.write_twins(
        kernels.Matches(events, owners), Ragged(starts, twins), alive, kernels.Matches(out_events, out_owners)
    )
    assert list(zip(out_events.tolist(), out_owners.tolist(), strict=True)) == expected
