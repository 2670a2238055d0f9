"""Subscriptions come and go for as long as a service runs: nothing grows, and everybody is answered meanwhile."""

from __future__ import annotations

import gc
import resource
import threading
import tracemalloc

import pytest

from tamis.matching import Matcher

FIXED = {f"kept {number}": f"a = {number} AND b < 5" for number in range(200)}
MOST_PLACES = 4_000
"""A register is renewed when more than a thousand places belong to nobody; what is open or held comes on top."""


def cycles(matcher, begin, end):
    """Add and remove so many subscriptions, one at a time; now and then somebody matches."""
    for number in range(begin, end):
        matcher.add(number, f"a = {number % 50} AND c = {number % 7}")
        if number % 97 == 0:
            event = {"a": number % 50, "b": 1, "c": number % 7}
            assert matcher.match(event) == [f"kept {number % 50}", number]
        matcher.remove(number)
        if number % 1_009 == 0:
            assert matcher.match({"a": 3, "b": 1, "c": 1}) == ["kept 3"]


def test_memory_does_not_grow_over_some_thousand_cycles_of_add_and_remove():
    matcher = Matcher()
    matcher.add_many(FIXED)
    cycles(matcher, 0, 4_000)
    sizes, places = [], []
    tracemalloc.start()
    try:
        for turn in range(4):
            cycles(matcher, 4_000 + 2_500 * turn, 6_500 + 2_500 * turn)
            matcher._engine.settle()
            matcher.compile()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            places.append(len(matcher._register))
    finally:
        tracemalloc.stop()
    assert max(places) <= MOST_PLACES
    # What is kept of a thousand places at most comes and goes; ten thousand places would be several times as much.
    assert sizes[-1] <= sizes[0] + 300_000
    assert matcher.ids() == list(FIXED)


@pytest.mark.slow
def test_memory_does_not_grow_over_a_million_cycles_of_add_and_remove():
    matcher = Matcher()
    matcher.add_many(FIXED)
    most = {}
    for turn in range(10):
        cycles(matcher, 100_000 * turn, 100_000 * (turn + 1))
        assert len(matcher._register) <= MOST_PLACES
        most[turn] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert most[9] <= most[1] + 16_384, f"kB after each tenth: {most}"
    assert matcher.memory() < 1_000_000
    assert matcher.ids() == list(FIXED)


def register_while_matching(count, chunk):
    """Register texts in one thread and match in this one; every answer is that of some moment between two steps."""
    matcher = Matcher()
    matcher.add_many(FIXED)
    matcher.warm()  # else the first answer waits for kernels to be compiled, and all is registered before the second
    mistakes, is_over = [], threading.Event()

    def register():
        try:
            for begin in range(0, count, chunk):
                texts = [
                    f"kind = {n % 9} AND chunk = {begin // chunk} AND size > {n % 3}"
                    for n in range(begin, begin + chunk)
                ]
                matcher.add_many({f"new {n}": text for n, text in enumerate(texts, begin)})
        except BaseException as error:
            mistakes.append(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=register)
    thread.start()
    answers = seen = 0
    try:
        while not is_over.is_set():
            number = answers % 50
            at = min(seen, count // chunk - 1)
            found = matcher.match({"a": number, "b": 1, "kind": 4, "chunk": at, "size": 9})
            assert found[0] == f"kept {number}"
            wanted = [f"new {n}" for n in range(at * chunk, (at + 1) * chunk) if n % 9 == 4]
            assert found[1:] in ([], wanted), "a step is seen as a whole or not at all"
            seen += found[1:] == wanted
            if answers % 50 == 0:
                batch = matcher.match_batch([{"a": number, "b": 1}] * 300)
                assert batch["subscription"].to_pylist() == [f"kept {number}"] * 300
            answers += 1
    finally:
        thread.join()
    assert not mistakes
    assert answers > 1, "somebody was answered before all were registered"
    assert len(matcher) == count + len(FIXED)
    for at in range(0, count // chunk, max(1, count // chunk // 5)):
        found = matcher.match({"kind": 4, "chunk": at, "size": 9})
        assert found == [f"new {n}" for n in range(at * chunk, (at + 1) * chunk) if n % 9 == 4]


def test_matches_are_answered_while_another_thread_registers_some_thousand_texts():
    register_while_matching(4_000, 200)


@pytest.mark.slow
def test_matches_are_answered_while_another_thread_registers_a_hundred_thousand_texts():
    register_while_matching(100_000, 5_000)
