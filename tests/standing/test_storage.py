"""What a processor remembers outlives its process."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.standing import SavedStateError, Standing, storage
from tests.standing.stories import play, stories


@settings(max_examples=200, deadline=None)
@given(stories(lateness=1.0), st.data())
def test_a_processor_that_is_saved_and_loaded_anywhere_goes_on_as_if_nothing_had_been(tmp_path_factory, story, data):
    path = tmp_path_factory.getbasetemp() / "standing.json"
    cut = data.draw(st.integers(0, len(story)))
    whole = Standing(lateness=1.0, retention=3)
    expected = play(whole, story)
    first = Standing(lateness=1.0, retention=3)
    told = play(first, story[:cut])
    first.save(path)
    second = Standing.load(path)
    told += play(second, story[cut:])
    assert told == expected
    assert second._sequences.statistics() == whole._sequences.statistics()
    assert second._changes.statistics()["change_states"] == whole._changes.statistics()["change_states"]


@given(
    st.recursive(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(),
            st.text(),
            st.decimals(allow_nan=False, allow_infinity=False),
            st.dates(),
            st.datetimes().map(lambda moment: moment.replace(fold=0)),
        ),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    )
)
def test_values_are_read_as_they_were_written(value):
    assert repr(storage.decoded(json.loads(json.dumps(storage.encoded(value))))) == repr(value)


def test_groups_of_every_kind_are_kept(tmp_path):
    values = ["x", 1, 1.5, None, True, float("nan"), Decimal("1.10"), dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12),
              [1, "a"], {"x": [1]}]  # fmt: skip
    processor = Standing()
    processor.add("s", "SEQUENCE a THEN b PER g")
    processor.add("c", "CHANGE OF a PER g")
    for number, value in enumerate(values):
        processor.process({"a": True, "g": value}, 0.0, number)
    processor.save(tmp_path / "state")
    again = Standing.load(tmp_path / "state")
    for number, value in enumerate(values):
        told = again.process({"a": False, "b": True, "g": value}, 1.0, f"b{number}")
        assert [(each.events, each.change) for each in told] == [
            ((number, f"b{number}"), None),
            ((f"b{number}",), False),
        ]


def test_what_cannot_be_saved_is_a_typed_error_and_leaves_no_file(tmp_path):
    processor = Standing()
    processor.add("r", "TOP 1 BY price OVER 1 HOUR")
    with pytest.raises(SavedStateError, match="ranked"):
        processor.save(tmp_path / "state")
    processor.remove("r")
    processor.add(frozenset([object()]), "a")
    with pytest.raises(SavedStateError):
        processor.save(tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"tamis": 1}', '{"tamis": 2, "standing": {}}', '{"tamis": 1, "standing": {}}',
     '{"tamis": 1, "standing": {"settings": {"lateness": "x"}}}'],
)  # fmt: skip
def test_a_file_that_holds_something_else_is_a_typed_error(tmp_path, content):
    (tmp_path / "state").write_text(content)
    with pytest.raises(SavedStateError):
        Standing.load(tmp_path / "state")


def test_a_damaged_file_is_a_typed_error(tmp_path):
    processor = Standing()
    processor.add("s", "SEQUENCE a AS x THEN b > x.b WITHIN 1 HOUR PER g")
    processor.add("c", "CHANGE TO a FORGET AFTER 1 DAY")
    processor.process({"a": True, "b": 1.5, "g": 2}, 0.0, "e")
    processor.save(tmp_path / "whole")
    data = json.loads((tmp_path / "whole").read_text())

    def places(node, path=()):
        yield path
        for key, inner in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            yield from places(inner, (*path, key))

    def damaged(path, value):
        copy = json.loads(json.dumps(data))
        inner = copy
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return copy

    refused = 0
    for path in list(places(data))[1:]:
        for value in ({"no": 1}, "x", [[]]):
            (tmp_path / "state").write_text(json.dumps(damaged(path, value)))
            try:
                Standing.load(tmp_path / "state")  # a changed value may be as good as the one before
            except SavedStateError:
                refused += 1
    assert refused > 60
