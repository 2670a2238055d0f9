"""What does it save not to ask again for a destination that is reached?

A broker wants to know which neighbours want an event, not by which of their filters. Before, all matches were listed
and each looked up; `match_destinations` stops asking for whoever is reached. Both ways are measured in one run, with
one matcher.

    one neighbour   all subscriptions match every event, and go to one destination: what the shortcut is for
    w1, auction     generated traffic, destinations drawn at random: few matches, and little to leave out
"""

from __future__ import annotations

from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.cases import CASES, best_times, events_of
from tamis.matching.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ONE_NEIGHBOUR = "one neighbour"


def destinations(
    names: Sequence[str] = (ONE_NEIGHBOUR, "w1", "auction"),
    subscription_count: int = 20_000,
    destination_count: int = 10,
    batch_size: int = 8_192,
    single_event_count: int = 300,
    most_pairs: int = 20_000_000,
    passes: int = 3,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What does it save not to ask again for a destination that is reached?"""
    for name in names:
        conditions, sample, batch = _scene(name, subscription_count, batch_size, seed)
        count = 1 if name == ONE_NEIGHBOUR else destination_count
        chosen = np.random.default_rng(seed).integers(count, size=len(conditions)).tolist()
        # Ids as a broker has them, no numbers: a number would not even be looked up.
        directions = {f"filter {number}": f"neighbour {each}" for number, each in enumerate(chosen)}
        matcher = Matcher()
        matcher.add_many(zip(directions, conditions, strict=True), destinations=directions)
        matcher.learn(sample)
        matches = int(np.sum(matcher.count_batch(batch.slice(0, 64)).to_numpy())) / min(64, batch.num_rows)
        batch = batch.slice(0, max(64, min(batch.num_rows, int(most_pairs / max(1.0, matches)))))
        events = events_of(batch)
        few = events[: max(16, min(single_event_count, int(most_pairs / 20 / max(1.0, matches))))]
        listed = partial(_listed, matcher, directions)
        listed_batch = partial(_listed_batch, matcher, directions, batch)
        reached_batch = partial(matcher.match_destinations_batch, batch)
        wrong = sum(listed(event) != sorted(matcher.match_destinations(event)) for event in few)
        wrong += not _sorted(listed_batch()).equals(_sorted(reached_batch()))
        before_us, after_us = _median_us(listed, few), _median_us(matcher.match_destinations, few)
        best = best_times(passes, {"listed": listed_batch, "reached": reached_batch})
        yield {
            "scene": name,
            "subscriptions": len(directions),
            "destinations": count,
            "matches_per_event": matches,
            "listed_us": before_us,
            "destinations_us": after_us,
            "times_as_fast": before_us / after_us,
            "batch": batch.num_rows,
            "batch_listed_us": best["listed"] / batch.num_rows * 1e6,
            "batch_destinations_us": best["reached"] / batch.num_rows * 1e6,
            "batch_times_as_fast": best["listed"] / best["reached"],
            "wrong": wrong,
        }


def _scene(name: str, count: int, batch_size: int, seed: int) -> tuple[list[str], pa.Table, pa.Table]:
    """Return conditions, events to learn from, and events."""
    if name != ONE_NEIGHBOUR:
        workload = CASES[name]()
        conditions = workload.subscriptions(count, seed)["condition"].to_pylist()
        return conditions, workload.events(2_048, seed + 1), workload.events(batch_size, seed + 2)
    chance = np.random.default_rng(seed)
    conditions = [f"price < {1_000 + number} AND bids >= {number % 7}" for number in range(count)]

    def traffic(size: int) -> pa.Table:
        return pa.table({"price": chance.integers(1_000, size=size), "bids": chance.integers(10, 100, size=size)})

    return conditions, traffic(2_048), traffic(batch_size)


def _listed(matcher: Matcher, directions: Mapping[str, str], event: Mapping[str, Any]) -> list[str]:
    """The way without a shortcut: all matches, and the destination of each."""
    return sorted({directions[each] for each in matcher.match(event)})


def _listed_batch(matcher: Matcher, directions: Mapping[str, str], batch: pa.Table) -> pa.Table:
    matches = matcher.match_batch(batch)
    filters = matches["subscription"].combine_chunks().dictionary_encode()
    named = pa.array([directions[each] for each in filters.dictionary.to_pylist()], pa.string())
    pairs = pa.table({"event": matches["event"], "destination": named.take(filters.indices)})
    return pairs.group_by(["event", "destination"]).aggregate([])


def _sorted(pairs: pa.Table) -> pa.Table:
    return pairs.sort_by([("event", "ascending"), ("destination", "ascending")]).combine_chunks()


def _median_us(match: Callable[[Mapping[str, Any]], object], events: Sequence[Mapping[str, Any]]) -> float:
    times = []
    for event in events:
        start = perf_counter()
        match(event)
        times.append(perf_counter() - start)
    return median(times) * 1e6
