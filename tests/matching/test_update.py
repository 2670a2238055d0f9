"""`Matcher.update` changes a subscription in one step, whatever of it changes."""

from __future__ import annotations

import threading

import pytest

import tamis
from tamis.errors import TamisError
from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.errors import UnknownIdError


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_condition_and_priority_change_together_or_alone(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many([("a", "x > 1", 0, {"mail": 1}), ("b", "x > 2", 1), ("c", tamis.parse("x > 3"), 2)])
    matcher.update("a", priority=5)
    assert matcher.match({"x": 9}) == ["a", "c", "b"]
    assert matcher.get("a").metadata == {"mail": 1}
    matcher.update("c", "x > 10")
    assert matcher.match({"x": 9}) == ["a", "b"]
    assert matcher.get("c").priority == 2
    matcher.update("c", "x > 8", priority=9, metadata="new")
    assert matcher.match({"x": 9}, metadata=True) == [("c", "new"), ("a", {"mail": 1}), ("b", None)]
    matcher.update("c", priority=-1)
    assert matcher.match({"x": 9}) == ["a", "b", "c"]
    assert matcher.text("c") == "x > 8"


def test_a_bad_update_changes_nothing():
    matcher = Matcher(schema={"x": "int"})
    matcher.add("a", "x > 1", priority=3)
    for call in (
        lambda: matcher.update("a", "x >"),
        lambda: matcher.update("a", "y > 1"),
        lambda: matcher.update("a", priority="high"),
    ):
        with pytest.raises(TamisError):
            call()
    with pytest.raises(UnknownIdError):
        matcher.update("nobody", priority=1)
    with pytest.raises(UnknownIdError):
        matcher.update("nobody", "x > 1")
    assert (matcher.text("a"), matcher.get("a").priority, len(matcher)) == ("x > 1", 3, 1)


def test_who_matches_meanwhile_finds_it_once_as_before_or_as_now():
    matcher = Matcher()
    matcher.add_many({number: f"x > {number}" for number in range(50)})
    matcher.add("it", "x > 0", priority=1)
    seen: list[list[object]] = []
    done = threading.Event()

    def match():
        while not done.is_set():
            seen.append(matcher.match({"x": 100}))

    reader = threading.Thread(target=match)
    reader.start()
    try:
        for turn in range(300):
            matcher.update("it", f"x > {turn % 7}" if turn % 2 else None, priority=turn % 3 + 1)
    finally:
        done.set()
        reader.join()
    assert seen
    assert all(found.count("it") == 1 and found[0] == "it" and len(found) == 51 for found in seen)
