"""Who is registered, and that nothing changes for those who look at an earlier moment."""

from __future__ import annotations

from random import Random
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis_lab.matching.roll import ALIVE, Growing, Roll, Scratch, is_due


@given(st.lists(st.lists(st.integers(0, 1000), max_size=40), max_size=20))
def test_what_was_handed_out_stays_what_it_was(pieces):
    growing = Growing(np.int64)
    seen = []
    expected: list[int] = []
    for piece in pieces:
        expected = expected + piece
        seen.append((growing.extended(piece), expected))
    assert all(view.tolist() == values for view, values in seen)
    assert growing.nbytes == 8 * len(expected)


def test_an_array_grows_by_factors():
    growing = Growing(np.uint8)
    arrays = {id(growing.extended([1]).base) for _ in range(10_000)}
    assert len(arrays) < 60


def test_slots_are_found_by_handle_and_moments_are_kept():
    roll = Roll()
    assert roll.enter([4, 7]) == 0
    assert roll.enter([8, 12, 13]) == 2
    early = (roll.handles, roll.deaths, roll.version)
    assert roll.leave(8) == 2
    later = (roll.handles, roll.deaths, roll.version)
    assert roll.leave(13) == 4
    roll.enter([20])

    def living(moment):
        handles, deaths, version = moment
        return handles[deaths > version].tolist()

    assert living(early) == [4, 7, 8, 12, 13]
    assert living(later) == [4, 7, 12, 13]
    assert living((roll.handles, roll.deaths, roll.version)) == [4, 7, 12, 20]
    assert roll.living == 4
    assert roll.compacted().tolist() == [0, 1, 3, 5]
    assert (roll.handles.tolist(), roll.version) == ([4, 7, 12, 20], 0)
    assert (roll.deaths == ALIVE).all()
    assert living(early) == [4, 7, 8, 12, 13], "whatever happens later"


def test_nobody_leaves_twice_or_unregistered():
    roll = Roll()
    roll.enter([1, 5])
    roll.leave(5)
    for handle in (5, 3):
        with pytest.raises(AssertionError):
            roll.leave(handle)


def test_layouts_are_due_so_rarely_that_each_change_pays_a_constant():
    roll = Roll()
    chance = Random(1)
    known = work = changes = 0
    living: list[int] = []
    for handle in range(60_000):
        changes += 1
        if living and chance.random() < 0.4:
            roll.leave(living.pop(chance.randrange(len(living))))
        else:
            roll.enter([handle])
            living.append(handle)
        if is_due(known, len(roll), roll):
            roll.compacted()
            known = len(roll)
            work += known
    assert work < 200 * changes


def test_scratch_is_kept_between_calls_and_not_shared_by_threads():
    scratch = Scratch()
    first = scratch.zeros("hits", 100, np.uint8)
    assert scratch.zeros("hits", 90, np.uint8).base is first.base
    assert scratch.zeros("hits", 100, np.uint16).dtype == np.uint16
    bases = []
    thread = Thread(target=lambda: bases.append(scratch.zeros("hits", 100, np.uint16).base))
    thread.start()
    thread.join()
    assert bases[0] is not scratch.zeros("hits", 100, np.uint16).base
