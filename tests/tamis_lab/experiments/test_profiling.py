"""Where the time goes is seen from outside."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from time import perf_counter

from tamis.matching.naive import Naive
from tamis.workloads import Auction
from tamis_lab.experiments.profiling import PARTS, busiest, sampled, shares


def test_most_of_the_time_is_found_where_it_is_spent():
    workload = Auction()
    engine = Naive()
    engine.add(
        range(50),
        engine.prepare(
            [__import__("tamis").parse(text) for text in workload.subscriptions(50, 1)["condition"].to_pylist()]
        ),
    )
    events = workload.events(20, 2).to_pylist()
    snapshot = engine.snapshot()
    with sampled() as found:
        end = perf_counter() + 0.3
        while perf_counter() < end:
            for event in events:
                snapshot.match_event(event)
    assert found.total() > 10
    name, share = busiest(found, 1)[0]
    assert name.startswith("naive.NaiveSnapshot.match_event")
    assert share > 0.5
    told = dict(zip(PARTS, shares(found), strict=True))
    assert told["values"] > 0.5, "a module beside the algorithms"
    assert abs(sum(told.values()) - 1) < 1e-9


def test_nothing_is_left_behind():
    interval = sys.getswitchinterval()
    with sampled():
        assert any(thread.name == "tamis profile" for thread in threading.enumerate())
    assert not any(thread.name == "tamis profile" for thread in threading.enumerate())
    assert sys.getswitchinterval() == interval


def test_shares_of_nothing_are_nothing():
    assert shares(Counter()) == (0.0,) * len(PARTS)
    assert busiest(Counter()) == []
