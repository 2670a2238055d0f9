"""Events that break what a schema promises are matched as the language says, all the same."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher
from tamis.matching.columns import Events
from tamis_lab.matching.atree.algorithm import ATreeGeneral, ATreeZero
from tamis_lab.matching.atree.unknowns import broken_by, is_kept
from tests.strategies import conditions, events
from tests.tamis_lab.matching.atree.test_translation import SCHEMA

TEXTS = {
    "xor": "xor(a > 1, b > 1)",
    "not": "NOT (a > 1 AND b > 1)",
    "inside": "c = 'x' OR (a = 5 AND NOT (b > 1 OR c = 'y'))",
    "twice": "NOT (a > 1 AND b > 1) AND NOT (a > 1 AND b > 1 AND `für`)",
    "count": "NOT at_least(2, a > 1, b > 1, `für`)",
    "plain": "a > 1",
    "never unknown": "NOT (a IS NULL AND b IS NULL)",
}
KEPT = {"a": 1, "b": 2.5, "c": "x", "für": True}
BROKEN = [{}, {"a": 5}, {"b": 0.5, "c": "x"}, KEPT | {"a": "five"}, KEPT | {"b": None}, KEPT | {"c": 7, "a": 5}]


@pytest.mark.parametrize("algorithm", ["atree-zero", "atree-general", "atree"])
def test_missing_and_misplaced_values_make_not_and_xor_unknown(algorithm):
    matcher = Matcher(algorithm, SCHEMA)
    matcher.add_many(TEXTS)
    batch = [KEPT, *BROKEN, KEPT]
    expected = [[key for key, text in TEXTS.items() if tamis.holds(tamis.parse(text), event)] for event in batch]
    assert [matcher.match(event) for event in batch] == expected
    assert matcher.list_batch(batch).to_pylist() == expected
    assert [[key for group in matcher.match_in_order(event) for key in group] for event in batch] == expected
    matcher.remove("inside")
    assert matcher.match(KEPT | {"c": "x", "a": "no number"}) == ["never unknown"]


@given(
    subscriptions=st.lists(conditions, max_size=10),
    batch=st.lists(events(), max_size=4),
    engine_type=st.sampled_from([ATreeZero, ATreeGeneral]),
)
@settings(max_examples=60)
def test_whatever_an_event_lacks_the_definition_is_kept(subscriptions, batch, engine_type):
    engine = engine_type(SCHEMA)  # not behind a matcher, which would refuse what the schema knows to be never true
    engine.add(range(len(subscriptions)), engine.prepare(subscriptions))
    snapshot = engine.snapshot()
    expected = [
        [number for number, each in enumerate(subscriptions) if tamis.holds(each, event, SCHEMA)] for event in batch
    ]
    assert [sorted(snapshot.match_event(event).tolist()) for event in batch] == expected
    numbers, handles = snapshot.match_events(Events(batch))
    assert sorted(zip(numbers.tolist(), handles.tolist(), strict=True)) == [
        (number, handle) for number, found in enumerate(expected) for handle in found
    ]


@given(batch=st.lists(events(), min_size=1, max_size=6))
def test_a_batch_breaks_what_its_events_break(batch):
    promises = {("a",): "number", ("c",): "string", ("für",): "boolean", ("odd name",): "time", ("pos", "x"): "number"}
    for path, kind in promises.items():
        broken = broken_by({path: kind}, Events(batch)).tolist()
        assert broken == [index for index, event in enumerate(batch) if not is_kept({path: kind}, event)]


def test_the_columns_of_a_table_break_what_is_null_or_of_another_kind():
    table = pa.table(
        {"a": [1, None, 3], "c": ["x", "y", None], "d": pa.array([1.5, 2.5, 3.5]), "e": [True, None, False]}
    )
    assert broken_by({("a",): "number"}, Events(table)).tolist() == [1]
    assert broken_by({("c",): "string"}, Events(table)).tolist() == [2]
    assert broken_by({("d",): "number"}, Events(table)).tolist() == []
    assert broken_by({("d",): "time"}, Events(table)).tolist() == [0, 1, 2]
    assert broken_by({("e",): "boolean", ("a",): "number"}, Events(table)).tolist() == [1]
    assert broken_by({("z",): "number"}, Events(table)).tolist() == [0, 1, 2]
