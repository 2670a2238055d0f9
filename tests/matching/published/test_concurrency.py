"""The published algorithms, too, see the subscriptions of one moment, whatever is registered and removed meanwhile."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tamis.matching import Matcher
from tamis.matching.published import roll, snapshots
from tests.matching.test_concurrency import CONDITIONS, EVENTS, HOLDS, Writer, condition_of


@pytest.mark.parametrize("algorithm", ["counting", "cluster", "boolean", "gryphon"])
def test_every_match_sees_the_set_of_one_moment(algorithm, monkeypatch, tmp_path):
    monkeypatch.setattr(roll, "_FEW", 6)  # laid out every few steps
    monkeypatch.setattr(snapshots, "BLOCK", 64)
    warm = Matcher(algorithm)
    warm.add_many(dict(enumerate(CONDITIONS)))
    warm.match(EVENTS[0])
    warm.match_batch(EVENTS * 5)  # so that nobody waits for a compiler
    matcher = Matcher(algorithm)
    clock = itertools.count()
    writers = [Writer(name, matcher, clock, number) for number, name in enumerate("ab")]
    is_over = threading.Event()

    def one_event(chance):
        event = chance.randrange(len(EVENTS))
        return [event], [matcher.match(EVENTS[event])]

    def a_batch(chance):
        chosen = [chance.randrange(len(EVENTS)) for _ in range(chance.choice([5, 40, 300]))]
        return chosen, matcher.list_batch([EVENTS[event] for event in chosen], threads=2).to_pylist()

    def a_file(chance):
        matcher.save(tmp_path / "saved")
        loaded = Matcher.load(tmp_path / "saved")
        return list(range(len(EVENTS))), [loaded.match(event) for event in EVENTS]

    def a_sample(chance):
        is_over.wait(0.05)
        matcher.learn([chance.choice(EVENTS) for _ in range(50)])
        return [], []

    def looked(look, number):
        chance = Random(number)
        seen = []
        while not is_over.is_set():
            begin = next(clock)
            events, found = look(chance)
            seen.append((begin, next(clock), events, found))
        return seen

    looks = [one_event, one_event, a_batch, a_file, a_sample]
    with ThreadPoolExecutor(len(writers) + len(looks)) as pool:
        looking = [pool.submit(looked, look, number) for number, look in enumerate(looks)]
        writing = [pool.submit(writer.run, 250) for writer in writers]
        try:
            for future in writing:
                future.result()
        finally:
            is_over.set()
        seen = [each for future in looking for each in future.result()]
    assert len(seen) > 50
    for begin, end, events, found in seen:
        for writer in writers:
            mine = [{each for each in ids if each.startswith(writer.name)} for ids in found]
            assert writer.explain(begin, end, mine, events), f"{writer.name}, {begin} to {end}: {mine}"
    for event, holds in zip(EVENTS, HOLDS, strict=True):
        last = {each for writer in writers for each in writer.sets[-1] if holds[condition_of(each)]}
        assert set(matcher.match(event)) == last
