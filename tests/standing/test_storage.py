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


RANKED = (
    "TOP 1 BY a OVER 2 SECONDS", "TOP 2 BY a DESC OVER 3 EVENTS", "TOP 2 BY a OVER 2 EVENTS WHERE b = 1",
    "TOP 1 BY 2 * a + b DESC OVER 3 SECONDS WHERE a IS NOT NULL", "TOP 3 BY euclidean(array(a, b), array(1, 1)) OVER 5 EVENTS",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(stories(lateness=1.0), st.lists(st.sampled_from(RANKED), min_size=1, max_size=3), st.data())
def test_ranked_windows_that_are_saved_and_loaded_anywhere_go_on_as_if_nothing_had_been(
    tmp_path_factory, story, ranked, data
):
    path = tmp_path_factory.getbasetemp() / "ranked.json"
    story = [("add", f"r{number}", text) for number, text in enumerate(ranked)] + story
    cuts = sorted(data.draw(st.lists(st.integers(0, len(story)), min_size=1, max_size=2)))
    expected = play(Standing(lateness=1.0, retention=3), story)
    processor, told = Standing(lateness=1.0, retention=3), []
    for begin, end in zip([0, *cuts], [*cuts, len(story)], strict=True):
        told += play(processor, story[begin:end])
        processor.save(path)
        processor = Standing.load(path)
    assert told == expected
    assert len(processor.ranked) == sum(text in RANKED for kind, _, text in _added(story))


CHANGES = (
    "CHANGE TO a > 5", "CHANGE TO a > 3", "CHANGE TO b = 1", "CHANGE TO a > 5 PER b", "CHANGE OF a > 4 UNTIL a < 3 PER b",
    "CHANGE OF a > 5 PER b WHERE a <> 6 FORGET AFTER 5 SECONDS", "SEQUENCE a < 5 THEN a >= 5 WITHIN 5 SECONDS PER b",
    "SEQUENCE a < 5 THEN a >= 5 WITHIN 5 SECONDS TAKING EACH ONCE", "SEQUENCE b = 1 THEN NOT b = 0 WITHIN 3 SECONDS",
)  # fmt: skip
EVENTS = st.fixed_dictionaries({"a": st.integers(0, 9) | st.none(), "b": st.integers(0, 1)})


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=5), st.lists(EVENTS, min_size=1, max_size=12), st.data())
def test_states_that_are_restored_one_by_one_go_on_as_if_nothing_had_been(texts, events, data):
    def made():
        processor = Standing()
        for number, text in enumerate(texts):
            processor.add(number, text)
        return processor

    def played(processor, first, last):
        return [processor.process(events[each], now=float(each), id=each) for each in range(first, last)]

    cut = data.draw(st.integers(0, len(events)))
    one, other = made(), made()
    told = played(one, 0, cut)
    for number, state in one.saved_states(range(len(texts))).items():
        other.restore_state(number, state)
    assert told + played(other, cut, len(events)) == played(made(), 0, len(events))


def _added(story):
    removed = {happening[1] for happening in story if happening[0] == "remove"}
    return [each for each in story if each[0] == "add" and each[1] not in removed]


def test_long_windows_are_saved_while_events_still_wait_in_the_log(tmp_path):
    """More events than are looked at one by one, so that some candidates are in the log when the file is written."""
    texts = {
        "t": "TOP 3 BY (a * 7919) % 101 OVER 40 SECONDS",
        "c": "TOP 2 BY a % 17 DESC OVER 50 EVENTS WHERE a % 3 = 0",
    }
    events = [{"a": (number * 37) % 113} for number in range(300)]
    whole, processor = Standing(), Standing()
    for each in (whole, processor):
        each.add_many(texts)
    for number, event in enumerate(events):
        if number % 71 == 70:
            processor.save(tmp_path / "state")
            processor = Standing.load(tmp_path / "state")
        assert processor.process(event, float(number), number) == whole.process(event, float(number), number)
    assert processor.advance(1000.0) == whole.advance(1000.0)


def test_windows_of_other_algorithms_cannot_be_saved_and_that_is_said(tmp_path):
    processor = Standing(ranked="strict")
    processor.add("r", "TOP 1 BY price OVER 1 HOUR")
    with pytest.raises(SavedStateError, match=r"'strict'.*'block'"):
        processor.save(tmp_path / "state")
    assert list(tmp_path.iterdir()) == []


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
    processor.add("r", "TOP 2 BY b OVER 1 HOUR")
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
