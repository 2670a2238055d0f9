"""Few events are matched one by one, many as a block, and the answers are the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.matching import Matcher
from tamis.matching.block import algorithm
from tamis.matching.block.few_events import are_few
from tamis.matching.columns import Events
from tests.strategies import conditions, events


@pytest.fixture
def blocks(monkeypatch):
    """Decide as the product does; gives the sizes of all blocks."""
    sizes, match_block = [], algorithm.BlockSnapshot._match_block

    def counting(self, events, *rest):
        sizes.append(events.count)
        return match_block(self, events, *rest)

    monkeypatch.setattr(algorithm, "are_few", are_few)
    monkeypatch.setattr(algorithm.BlockSnapshot, "_match_block", counting)
    return sizes


def matcher_of(count):
    matcher = Matcher()
    matcher.add_many({number: f"a > {number} AND b = {number % 7}" for number in range(count)})
    matcher.compile()
    return matcher


def test_few_mappings_are_matched_singly_and_many_as_a_block(blocks):
    matcher, event = matcher_of(50), {"a": 9, "b": 3}
    expected = matcher.match(event)
    for count, sizes in ((0, []), (1, []), (26, []), (27, [27]), (300, [300])):
        for way in (matcher.list_batch, matcher.match_batch, matcher.count_batch, matcher.any_batch):
            blocks.clear()
            way([event] * count)
            assert blocks == sizes, (count, way)
        assert matcher.list_batch([event] * count).to_pylist() == [expected] * count


def test_of_a_table_fewer_rows_are_worth_a_block_and_more_where_there_are_many_clauses(blocks):
    rows = pa.table({"a": [9] * 25, "b": [3] * 25})
    matcher_of(50).match_batch(rows)
    assert blocks == [25]
    matcher_of(3_500).match_batch(rows)
    assert blocks == [25], "one more row is few here"


def test_a_small_batch_after_a_change_compiles_nothing_and_sees_it(blocks):
    matcher = matcher_of(50)
    matcher.match({"a": 9})
    matcher.add("new", "a = 9")
    assert matcher.list_batch([{"a": 9, "b": 0}, {"a": 8}]).to_pylist() == [[0, 7, "new"], []]
    assert matcher.statistics()["open"] == 1
    assert matcher.count_batch([{"a": 9}] * 50).to_pylist() == [1] * 50
    assert matcher.statistics()["open"] == 0


def test_what_is_open_is_watched_in_small_batches_too(blocks):
    matcher = matcher_of(50)
    matcher.match({"a": 9})
    matcher.add("new", "c = 9")
    matcher.watch(every=1)
    matcher.match_batch([{"c": 9}, {"c": 8}])
    count, tallied = matcher.watched()
    assert count == 2 and {str(each.term) for each in tallied} == {"a", "b", "c"}


@given(wanted=st.lists(conditions, max_size=6), batch=st.lists(events(), max_size=6), is_open=st.booleans())
@settings(max_examples=80, deadline=None)
def test_single_matches_and_blocks_reach_the_same(wanted, batch, is_open):
    def found(decision):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(algorithm, "are_few", decision)
            matcher = Matcher()
            matcher.add_many(
                dict(enumerate(wanted)), destinations=[(None, "n", "s")[each % 3] for each in range(len(wanted))]
            )
            if not is_open:
                matcher.compile()
            shortcut = matcher.match_shortcut_batch(batch)
            names = [shortcut.names[number] for number in shortcut.destinations.tolist()]
            return (
                matcher.list_batch(batch).to_pylist(),
                list(zip(shortcut.events.tolist(), shortcut.subscriptions.tolist(), strict=True)),
                sorted(zip(shortcut.reaching.tolist(), names, strict=True)),
                [matcher.match_shortcut(event) for event in batch],
            )

    lists, ids, reached, one_by_one = found(lambda parts, events: True)
    assert (lists, ids, reached, one_by_one) == found(lambda parts, events: events.count == 0)
    assert ids == [(number, each) for number, (matches, _) in enumerate(one_by_one) for each in matches]
    assert reached == sorted((number, each) for number, (_, names) in enumerate(one_by_one) for each in names)


def test_no_events_at_all_are_few():
    assert are_few((), Events([])) and not are_few((), Events([{}, {}]))
