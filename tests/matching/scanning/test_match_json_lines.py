"""Events in JSON, one in each line, match what the same events do when `json.loads` has read them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Matcher
from tamis.errors import EventError
from tamis.matching.block import algorithm
from tests.matching.scanning.test_match_json import RULES, documents, registered

EVENTS = [
    {"a": 1, "b": True, "s": "é"}, {"a": 2.5, "c": -3, "s": "xyz"}, {}, {"a": 12345678901234567890, "s": 'q"\\uote'}, {"ü": "ü", "odd name": 1},
    {"p": {"x": 2, "q": {"r": "deep"}}, "l": [1, 2]}, {"lat": 45.001, "lon": 16, "t": "2024-01-01"}, {"a": None, "b": False, "s": ""},
    {"a": "1", "s": 7, "b": {"c": []}}, {"a": 1e300, "c": 0},
]  # fmt: skip


@pytest.fixture(scope="module")
def matcher():
    return registered(RULES)


def expected(matcher, events):
    return [(number, each) for number, event in enumerate(events) for each in matcher.match(event)]


def found(matcher, document, **options):
    columns = matcher.match_json_lines(document, **options).to_pydict()
    return sorted(zip(columns["event"], columns["subscription"], strict=True))


def lines_of(events, end="\n"):
    return end.join(json.dumps(event, ensure_ascii=False) for event in events).encode()


@pytest.mark.parametrize("most", [0, 512])
@given(chosen=st.lists(st.sampled_from(EVENTS), max_size=40), end=st.sampled_from(["\n", "\r\n", " \n\n\t\n"]))
def test_lines_match_what_their_events_do(matcher, most, chosen, end):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algorithm, "MOST_CODED", most)
        assert found(matcher, lines_of(chosen, end)) == expected(matcher, chosen)


@given(st.lists(documents, max_size=5))
def test_every_document_matches_in_a_line_what_it_does_decoded(matcher, chosen):
    lines = [each.replace("\n", " ") for each in chosen]
    assert found(matcher, "\n".join(lines)) == expected(matcher, map(json.loads, lines))


def test_many_lines_are_matched_in_portions_and_read_without_the_decoder(matcher, monkeypatch):
    events = EVENTS * 60
    wanted = expected(matcher, events)
    matcher.learn(events[:300])
    monkeypatch.setattr(algorithm, "BLOCK", 64)
    monkeypatch.setattr("tamis.matching.scanning.scanner._LINES_AT_A_TIME", 50)
    decoded = []
    monkeypatch.setattr("tamis.matching.scanning.lines.decoded", lambda line: decoded.append(line) or json.loads(line))
    assert found(matcher, lines_of(events)) == wanted
    assert not decoded


def test_the_first_batch_of_some_size_is_learnt_from_and_the_next_is_read_as_it_is():
    matcher, events = registered(RULES), EVENTS * 30
    assert not matcher.statistics()["is_informed"]
    for _ in range(2):
        assert found(matcher, lines_of(events)) == expected(matcher, events)
        assert matcher.statistics()["is_informed"]


@pytest.mark.parametrize(
    ("document", "line", "words"),
    [
        (b'{"a": 1}\n{"a": }\n{}', 2, "JSON object"),
        (b"\n\n[1]\n", 3, "not list"),
        (b'{"a": 1}\n"\xff"', 2, "JSON object"),
        (b'{"a": 1} {"a": 2}', 1, "JSON object"),
    ],
)
def test_a_line_that_is_no_event_is_named(matcher, document, line, words):
    with pytest.raises(EventError, match=f"line {line}: .*{words}"):
        matcher.match_json_lines(document)


def test_what_is_neither_bytes_nor_text_is_refused(matcher):
    with pytest.raises(EventError, match="not list"):
        matcher.match_json_lines(['{"a": 1}'])


def test_nothing_matches_nothing(matcher):
    for document in (b"", b"\n \n", ""):
        assert matcher.match_json_lines(document).num_rows == 0


def test_lines_are_asked_as_batches_are():
    matcher = Matcher()
    matcher.add_many([(1, "a < 3", 0, "one"), (2, "a < 5", 2, None)])
    document = b'{"a": 4}\n{"a": 1}'
    for _ in range(2):  # open, and laid out
        assert found(matcher, document, among=[1]) == [(1, 1)]
        table = matcher.match_json_lines(document, metadata=True)
        assert table.sort_by("metadata")["metadata"].to_pylist() == ["one", None, None]
        matcher.compile()


def test_lines_are_counted_and_their_attributes_known():
    matcher = registered({1: "a < 3", 2: "prize > 1"})
    matcher.match_json_lines(lines_of([{"a": 1, "note": {"x": 1}}] * 5 + [{"a": "x", "\\n": 1}]))
    assert matcher.statistics()["events"] == 6
    assert [str(each) for each in matcher.unmet()] == ["no event had the attribute prize"]


def test_a_matcher_that_is_watched_looks_at_lines():
    matcher = registered({1: "a < 3"})
    matcher.watch(every=1)
    assert found(matcher, b'{"a": 1}\n{"a": 4}') == [(0, 1)]
    assert matcher.watched_count == 2


def test_subscriptions_in_several_segments_and_other_algorithms_are_asked(matcher):
    several = registered({number: text for number, text in RULES.items() if number < 9})
    several._engine._merge = lambda: None
    several.add_many({number: text for number, text in RULES.items() if number >= 9})
    several._engine._flush()
    assert len(several.statistics()["segments"]) == 2
    plain = Matcher("naive")
    plain.add_many(RULES)
    for each in (several, plain):
        assert found(each, lines_of(EVENTS)) == expected(matcher, EVENTS)
