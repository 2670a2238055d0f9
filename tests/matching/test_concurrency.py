"""Many threads register, remove, match and save at once, and every match sees the subscriptions of one moment."""

from __future__ import annotations

import itertools
import threading
from random import Random
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.matching import Matcher
from tamis.matching.block import algorithm
from tamis.matching.block.algorithm import BlockAlgorithm
from tests.matching.histories import CONDITIONS, EVENTS, HOLDS, History, Writer


@pytest.fixture(params=[20, 4096], ids=["at once", "by and by"])
def busy(request, monkeypatch):
    """Segments are made early, of what comes together or of what was left open, and merged in the background."""
    monkeypatch.setattr(algorithm, "_COMPILED_AT_ONCE", request.param)
    monkeypatch.setattr(algorithm, "_MOST_OPEN", 4)
    monkeypatch.setattr(algorithm, "_MOST_ASKED", 4)


@pytest.fixture
def merges(monkeypatch):
    """Counts the segments that are merged in the background, and takes time for it: much can happen meanwhile."""
    done = []
    plain, plainly_merged = BlockAlgorithm._merge_behind, BlockAlgorithm._merged

    def counted(self, parts):
        plain(self, parts)
        done.append(len(parts))

    def slowly_merged(self, parts, opened=()):
        found = plainly_merged(self, parts, opened)
        if threading.current_thread() is self._merging:
            sleep(0.003)
        return found

    monkeypatch.setattr(BlockAlgorithm, "_merge_behind", counted)
    monkeypatch.setattr(BlockAlgorithm, "_merged", slowly_merged)
    return done


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_every_match_sees_the_set_of_one_moment(busy, merges, seed, tmp_path):
    matcher = Matcher()
    history = History(matcher, tmp_path, seed=seed, pause=0.1)
    looks = [history.one_event, history.one_event, history.a_batch, history.a_file, history.a_sample]
    seen = history.run(looks, 800)
    matcher._engine.settle()
    assert len(seen) > 100
    history.check(seen)
    assert merges, "nothing was merged in the background"


def test_the_checker_would_find_a_mixture():
    writer = Writer("a", Matcher(), itertools.count(), seed=1)
    writer.sets = [frozenset(), frozenset({"a:0", "a:7"}), frozenset({"a:7"})]
    writer.begins, writer.ends = [1, 5], [3, 7]
    event = [0]  # matches conditions 0 and 7
    assert writer.explain(2, 4, [set()], event), "it may have begun before the step took place"
    assert writer.explain(2, 4, [{"a:0", "a:7"}], event)
    assert not writer.explain(2, 4, [{"a:0"}], event), "half a pair"
    assert not writer.explain(2, 4, [{"a:7"}], event), "the future"
    assert not writer.explain(8, 9, [{"a:0", "a:7"}], event), "the past"
    assert writer.explain(8, 9, [{"a:7"}], event)


# -- Merging in the background, one interleaving at a time


@pytest.fixture
def held(monkeypatch):
    """Holds every merge in the background, between its work and its end, until it is let go."""
    is_reached, is_free = threading.Event(), threading.Event()
    plain = BlockAlgorithm._merged

    def merged(self, parts, opened=()):
        found = plain(self, parts, opened)
        if threading.current_thread() is not threading.main_thread():
            is_reached.set()
            assert is_free.wait(60)
        return found

    monkeypatch.setattr(BlockAlgorithm, "_merged", merged)
    yield is_reached, is_free
    is_free.set()


def registered(matcher, ids):
    """Register subscriptions as a segment of their own."""
    matcher.add_many({each: CONDITIONS[each % len(CONDITIONS)] for each in ids})
    matcher.compile()
    matcher.match(EVENTS[0])


def expected(ids):
    return [[each for each in ids if holds[each % len(CONDITIONS)]] for holds in HOLDS]


def answers(matcher):
    return [matcher.match(event) for event in EVENTS]


def test_what_is_removed_during_a_merge_stays_removed(busy, held):
    is_reached, is_free = held
    matcher = Matcher()
    registered(matcher, range(40))
    registered(matcher, range(40, 80))
    assert is_reached.wait(60)
    matcher.remove(5)
    matcher.remove(50)
    registered(matcher, [80, 81])
    matcher.remove(6)
    present = [each for each in range(82) if each not in (5, 6, 50)]
    assert answers(matcher) == expected(present)
    is_free.set()
    matcher._engine.settle()
    assert answers(matcher) == expected(present)
    assert matcher.statistics()["segments"][0] >= 77, "they are merged now"
    matcher.remove(51)
    assert answers(matcher) == expected([each for each in present if each != 51])


def test_what_is_laid_out_anew_during_a_merge_stays(busy, held):
    is_reached, is_free = held
    matcher = Matcher()
    registered(matcher, range(40))
    registered(matcher, range(40, 80))
    assert is_reached.wait(60)
    matcher.learn(EVENTS)
    matcher.remove(5)
    is_free.set()
    matcher._engine.settle()
    assert answers(matcher) == expected([each for each in range(80) if each != 5])
    assert matcher.statistics()["is_informed"]


def test_a_segment_that_dies_during_a_merge_is_gone(busy, held):
    is_reached, is_free = held
    matcher = Matcher()
    registered(matcher, range(40))
    registered(matcher, range(40, 60))
    assert is_reached.wait(60)
    for each in range(40, 60):
        matcher.remove(each)
    registered(matcher, [60])
    is_free.set()
    matcher._engine.settle()
    assert answers(matcher) == expected([*range(40), 60])


def test_segments_that_ask_the_same_are_told_apart(busy, merges):
    # segments   [0 ... 719]  [720 ... 755]  [756 ... 791]     the same conditions in all of them
    # merged                  \----------- these two -----/    the first is too large to be merged with them
    matcher = Matcher()
    count = len(CONDITIONS)
    registered(matcher, range(40 * count))
    registered(matcher, range(40 * count, 42 * count))
    matcher._engine.settle()
    registered(matcher, range(42 * count, 44 * count))
    matcher._engine.settle()
    assert merges == [2]
    assert matcher.statistics()["segments"] == [40 * count, 4 * count]
    assert answers(matcher) == expected(range(44 * count))


def test_a_merge_that_fails_is_tried_again(busy, monkeypatch):
    failures = []
    plain = BlockAlgorithm._merged

    def failing(self, parts, opened=()):
        if threading.current_thread() is not threading.main_thread() and not failures:
            raise MemoryError("as an example")
        return plain(self, parts, opened)

    monkeypatch.setattr(threading, "excepthook", lambda failure: failures.append(failure.exc_type))
    monkeypatch.setattr(BlockAlgorithm, "_merged", failing)
    matcher = Matcher()
    registered(matcher, range(40))
    registered(matcher, range(40, 80))
    for thread in [each for each in threading.enumerate() if each.name == "tamis merge"]:
        thread.join()  # until it has told of its failure
    assert failures == [MemoryError]
    assert matcher.statistics()["segments"] == [40, 40]
    assert answers(matcher) == expected(range(80))
    registered(matcher, range(80, 120))
    matcher._engine.settle()
    assert matcher.statistics()["segments"] == [120]
    assert answers(matcher) == expected(range(120))


# -- Threads of one batch


@pytest.mark.parametrize(("block", "least"), [(50, 50), (1000, 512), (8192, 7)])
def test_threads_find_what_one_thread_finds(monkeypatch, block, least):
    monkeypatch.setattr(algorithm, "BLOCK", block)
    monkeypatch.setattr(algorithm, "_LEAST_PORTION", least)
    matcher = Matcher()
    registered(matcher, range(500))
    chance = Random(1)
    batch = [chance.choice(EVENTS) for _ in range(2025)]
    one = matcher.match_batch(batch, threads=1)
    assert one.num_rows > 0
    for threads in (2, 5):
        assert matcher.match_batch(batch, threads=threads).equals(one)
        assert matcher.count_batch(batch, threads=threads).equals(matcher.count_batch(batch))
        assert matcher.list_batch(batch, threads=threads).equals(matcher.list_batch(batch))
    asked = list(range(0, 500, 7))
    among = matcher.match_batch(batch, among=asked, threads=2)
    assert among.equals(matcher.match_batch(batch, among=asked))
    assert set(among["subscription"].to_pylist()) <= set(asked)


@given(count=st.integers(1, 100_000), threads=st.integers(1, 9))
def test_portions_are_the_rows_of_a_batch_in_order_and_as_many_for_each_thread(count, threads):
    portions = algorithm._portions(count, threads)
    assert [row for portion in portions for row in portion] == list(range(count))
    assert max(map(len, portions)) <= algorithm.BLOCK
    if count >= threads * algorithm._LEAST_PORTION and threads > 1:
        assert len(portions) % threads == 0 or min(map(len, portions[:-1])) > max(map(len, portions[-1:]))
