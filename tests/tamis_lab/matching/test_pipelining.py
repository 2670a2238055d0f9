"""Two phases in two threads find what one finds, and what goes wrong in the first is told in the second."""

from __future__ import annotations

import threading

import pytest

from tamis.language import parse
from tamis.matching.columns import Events
from tamis_lab.matching import pipelining
from tamis_lab.matching.atree.algorithm import ATree
from tamis_lab.matching.counting import Counting


@pytest.mark.parametrize("kind", [ATree, Counting])
def test_a_batch_of_many_pieces_matches_as_it_does_in_one_thread(kind, monkeypatch):
    monkeypatch.setattr(pipelining, "PIECE", 3)
    engine = kind()
    engine.add(range(5), engine.prepare(parse(f"a > {n} AND b < {8 - n}") for n in range(5)))
    snapshot = engine.compiled_snapshot()
    engine.remove(2)
    batch = [{"a": number % 7, "b": number % 5} for number in range(20)]
    numbers, handles = pipelining.match_pipelined(snapshot, Events(batch))
    expected = snapshot.match_events(Events(batch))
    assert sorted(zip(numbers.tolist(), handles.tolist(), strict=True)) == sorted(
        zip(expected[0].tolist(), expected[1].tolist(), strict=True)
    )
    empty = pipelining.match_pipelined(snapshot, Events([]))
    assert [len(each) for each in empty] == [0, 0]


def test_an_error_of_the_first_phase_is_raised_in_the_second():
    def failing():
        yield 1
        raise ValueError("spoilt")

    items = pipelining.ahead(failing())
    assert next(items) == 1
    with pytest.raises(ValueError, match="spoilt"):
        next(items)


def test_whoever_stops_early_leaves_no_thread_behind():
    before = threading.active_count()
    items = pipelining.ahead(iter(range(1_000)))
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    items.close()
    assert threading.active_count() == before
