"""A removal changes marks, and nothing else."""

from __future__ import annotations

import threading

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.matching import Matcher
from tamis.matching.block import algorithm
from tamis.matching.block.draft import Drafting
from tamis.matching.block.parts import Part
from tamis.matching.block.segment import compiled

conditions = st.lists(st.sampled_from(["a = 1", "a = 2", "b > 3", "a = 1 OR b = 2"]), min_size=1, max_size=60)


def segment_of(texts):
    drafting = Drafting()
    drafting.add_many(range(0, 2 * len(texts), 2), map(tamis.parse, texts))
    return compiled(drafting.finished())


@given(texts=conditions, data=st.data())
def test_removing_step_by_step_gives_the_marks_that_all_together_give(texts, data):
    segment = segment_of(texts)
    part = Part.of(segment)
    alive = np.ones(len(texts), np.bool_)
    for _ in range(3):
        here = np.flatnonzero(alive).tolist()
        if not here:
            break
        gone = data.draw(st.lists(st.sampled_from(here), unique=True))
        before = part
        marks = part.alive.copy(), part.asked.copy()
        part = part.without(np.array(gone, np.int64))
        alive[gone] = False
        expected = Part.of(segment, alive)
        assert part.alive.tolist() == expected.alive.tolist()
        assert part.asked.tolist() == expected.asked.tolist()
        assert part.living == expected.living
        assert (before.alive.tolist(), before.asked.tolist()) == (marks[0].tolist(), marks[1].tolist())


@given(texts=conditions, asked=st.lists(st.integers(0, 130), unique=True))
def test_handles_are_found_where_they_are(texts, asked):
    places, is_here = Part.of(segment_of(texts)).places(np.array(asked, np.int64))
    assert is_here.tolist() == [handle % 2 == 0 and handle < 2 * len(texts) for handle in asked]
    assert places.tolist() == [handle // 2 for handle, here in zip(asked, is_here, strict=True) if here]


def test_a_change_makes_neither_encoders_nor_segments_anew():
    matcher = Matcher()
    matcher.add_many({number: f"a > {number} AND s = 't{number}'" for number in range(200)})
    matcher.match({"a": 1})
    matcher._engine.compiled_snapshot()
    matcher.match({"a": 1})
    before = matcher._engine.snapshot()
    matcher.remove(5)
    matcher.add("new", "a > 5")
    assert matcher.match({"a": 300, "s": "t5"}) == ["new"]
    after = matcher._engine.snapshot()
    assert after is not before
    assert [id(encoder) for encoder in after._encoders] == [id(encoder) for encoder in before._encoders]
    assert [part.segment for part in after._parts] == [part.segment for part in before._parts]


def test_what_is_open_is_asked_by_functions_and_not_by_the_reference_meaning(monkeypatch):
    matcher = Matcher()
    matcher.add("old", "a > 0")
    matcher.compile()
    matcher.match({"a": 1})
    matcher.add("new", "a > 5 AND (b = 2 OR s IN ('x', 'y')) AND NOT c < 4")
    assert matcher.statistics()["open"] == 1
    for name in ("value", "meaning"):
        monkeypatch.setattr(f"tamis.matching.closures.{name}", None)
        monkeypatch.setattr(f"tamis.language.meaning.{name}", None)
    assert matcher.match({"a": 6, "b": 3, "s": "y", "c": 4}) == ["old", "new"]


def test_whoever_adds_or_matches_between_changes_compiles_and_merges_nothing(monkeypatch):
    matcher = Matcher()
    matcher.add_many({number: f"a > {number} AND b = {number % 5}" for number in range(200)})
    matcher.compile()
    matcher.match({"a": 1})
    laid_out_by = []
    plain = algorithm.compiled
    monkeypatch.setattr(
        algorithm, "compiled", lambda *given: (laid_out_by.append(threading.current_thread().name), plain(*given))[1]
    )
    matcher.match({"a": 100})
    for number in range(300):
        matcher.add(f"new {number}", f"a > {number}")
        assert len(matcher.match({"a": 100})) == min(number + 1, 100)
        if number % 3 == 0:
            matcher.remove(number // 3)
            assert len(matcher.match({"a": -1})) == 0
        if number % 7 == 0:
            matcher.replace(f"new {number}", f"a > {number} AND a > 0")
            assert len(matcher.match({"a": 100})) == min(number + 1, 100)
    matcher._engine.settle()
    assert laid_out_by
    assert set(laid_out_by) <= {"tamis flush", "tamis merge"}
    assert len(matcher.match({"a": 100})) == 100


def test_nothing_is_laid_out_if_all_that_was_open_is_removed_before_the_background_comes_to_it(monkeypatch):
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    matcher = Matcher()
    matcher.add_many({f"{number} stays": f"c = {number}" for number in range(100)})
    matcher.compile()
    assert list(matcher.match({"a": 1})) == []
    matcher.add_many({number: f"a = 1 AND b > {number}" for number in range(12)})
    for number in (12, 13):
        matcher.add(number, f"a = 1 AND b > {number}")
        for _ in range(10):  # each of these events asks all of them, which is more than may stay open
            assert list(matcher.match({"a": 1, "b": 3})) == [0, 1, 2]
    matcher.remove_many(range(14))
    assert list(matcher.match({"a": 1, "b": 3})) == []
    matcher._engine.settle()
    assert [str(failure.exc_value) for failure in failures] == []
    matcher.add("last", "a > 0")
    assert list(matcher.match({"a": 1})) == ["last"]
