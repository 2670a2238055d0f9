"""How fast are ranked subscriptions, and how much do they keep?

    ranked            events per second for every algorithm, at 1, 1,000 and 100,000 subscriptions; candidates kept
    ranked_growth     what more events asked for (k), longer windows (n) and more subscriptions cost
    ranked_indexes    which index finds the subscriptions that an event concerns soonest

Subscriptions ask for the k nearest points of the last n, in four dimensions, as in the thesis; points are uniform.
Windows are full before the clock starts. For algorithms with a ranking for each subscription that takes too long at
100,000, so only `distinct` rankings are filled, and all others are copies of them; the block algorithm fills all of its
own. `wrong` compares the deliveries of the distinct ones with the closed form, which plays no stream. For
`probabilistic` it counts what is beyond its error bound. Times are the processor's.
"""

from __future__ import annotations

import gc
from copy import copy
from functools import cache, reduce
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.expressions import Attribute, Call, Literal
from tamis.topk import Ranked, TopK
from tamis.topk.algorithms import ALGORITHMS
from tamis.topk.closed_form import entering_times
from tamis.topk.index.choice import INDEXES
from tamis.topk.settings import FILTERED, FILTERS
from tamis.topk.windows import CountWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.topk.base import Ranking
    from tamis.topk.delivery import Delivery

PROMISED = 20
"""What we promise at 100,000 subscriptions: the block algorithm is so many times as fast as any other exact one."""
PROMISED_AT = 100_000
NAMES = ("x", "y", "z", "u", "v", "w", "p", "q")
VARIANTS: dict[str, dict[str, Any]] = {
    **{name: {"algorithm": name} for name in ALGORITHMS},
    **{
        f"{algorithm}, {each} filter": {"algorithm": algorithm, "filter": each}
        for algorithm in FILTERED
        for each in FILTERS
    },
}
EXACT_RIVALS = tuple(name for name in VARIANTS if name not in ("naive", "probabilistic", "block"))
_SIGMA = 1e-3
_ALONE = 300
_BATCH = 256


# -- Traffic


def nearest(centre: Sequence[float], k: int, n: int) -> Ranked:
    """Ask for the k of the last n points that are nearest to a centre."""
    point = Call("array", tuple(Attribute((name,)) for name in NAMES[: len(centre)]))
    return Ranked(Call("euclidean", (point, Call("array", tuple(map(Literal, centre))))), k, CountWindow(n))


def heaviest(weights: Sequence[float], k: int, n: int) -> Ranked:
    """Ask for the k of the last n points with the greatest weighted sum."""
    terms = [Call("multiply", (Literal(each), Attribute((name,)))) for each, name in zip(weights, NAMES, strict=False)]
    total = reduce(lambda one, two: Call("add", (one, two)), terms)
    return Ranked(total, k, CountWindow(n), order="DESC")


@cache
def points(count: int, dimensions: int, seed: int) -> np.ndarray[Any, Any]:
    """Return uniform points, a row each."""
    return np.random.default_rng(seed).random((count, dimensions))


def as_events(rows: np.ndarray[Any, Any]) -> list[dict[str, float]]:
    """Return points as events."""
    return [dict(zip(NAMES, row, strict=False)) for row in rows.tolist()]


# -- Processors with full windows


def filled(settings: dict[str, Any], rankeds: Sequence[Ranked], events: Sequence[dict[str, float]]) -> TopK:
    """Return a processor that has seen the events."""
    processor = TopK(**settings)
    processor.add_many(list(enumerate(rankeds)))
    # The block algorithm chooses an index after some single events; that is over before the clock starts.
    alone = min(_ALONE, len(events)) if settings["algorithm"] == "block" else 0
    together = events[: len(events) - alone]
    processor.process_batch(together, [float(place) for place in range(len(together))])
    for place in range(len(together), len(events)):
        processor.process(events[place], float(place))
    return processor


def multiplied(processor: TopK, rankeds: Sequence[Ranked]) -> TopK:
    """Return a processor with more subscriptions, each with a copy of the ranking of a subscription of another."""
    larger = TopK(processor.algorithm, filter=processor.settings.filter)
    engine, own = larger._engine, processor._engine
    larger._next_number, larger._seen.next_id = processor._next_number, processor._seen.next_id
    larger._ids, larger._numbers = dict(processor._ids), dict(processor._numbers)
    larger._lateness = processor._lateness
    larger.add_many(list(enumerate(rankeds)))
    for handle, query in engine._queries.items():  # type: ignore[attr-defined]
        other = own._queries[handle % len(processor)]  # type: ignore[attr-defined]
        query.ranking = _copied(other.ranking)
        query.since = other.since
    for size, buffer in own._buffers.items():  # type: ignore[attr-defined]
        engine._buffers[size]._arrivals = copy(buffer._arrivals)  # type: ignore[attr-defined]
    return larger


def _copied(ranking: Ranking) -> Ranking:
    """Copy a ranking and what belongs to it; the candidates themselves never change."""
    new = copy(ranking)
    for name, value in vars(ranking).items():
        if isinstance(value, list | dict | set):
            setattr(new, name, copy(value))
        elif name in ("ranking", "filter", "_inner"):
            setattr(new, name, _copied(value))
    for name in ("_inner", "ranking"):
        if hasattr(new, name):
            new.items, new.entered = getattr(new, name).items, getattr(new, name).entered
    return new


def made(
    settings: dict[str, Any], centres: np.ndarray[Any, Any], count: int, k: int, n: int, events: list[dict[str, float]]
) -> TopK:
    """Return a processor with full windows and `count` subscriptions: one for each centre, then copies of those."""
    rankeds = [nearest(centre, k, n) for centre in centres.tolist()]
    processor = filled(settings, rankeds, events)
    if count == len(rankeds):
        return processor
    return multiplied(processor, [rankeds[place % len(rankeds)] for place in range(count)])


# -- Measuring


def measured(
    processor: TopK, events: Sequence[dict[str, float]], at: int, most_s: float
) -> tuple[float, list[Delivery]]:
    """Return events per second, one by one, and what was delivered, after `most_s` or all events."""
    told: list[Delivery] = []
    gc.collect()
    gc.freeze()
    start, place, elapsed = process_time(), 0, 0.0
    while place < len(events) and (elapsed < most_s or place < 1):
        told += processor.process(events[place], float(at + place), at + place)
        place += 1
        elapsed = process_time() - start
    gc.unfreeze()
    return place / max(elapsed, 1e-9), told


def batched(processor: TopK, events: Sequence[dict[str, float]], at: int, most_s: float) -> float | None:
    """Return events per second by the batch."""
    start, place, elapsed = process_time(), 0, 0.0
    while place + _BATCH <= len(events) and elapsed < most_s:
        chunk = events[place : place + _BATCH]
        processor.process_batch(chunk, [float(at + place + step) for step in range(_BATCH)])
        place += _BATCH
        elapsed = process_time() - start
    return place / elapsed if place else None


def expected(
    centres: np.ndarray[Any, Any], rows: np.ndarray[Any, Any], k: int, n: int, begin: int, end: int
) -> set[tuple[int, int]]:
    """Return (subscription, event) of all deliveries from event `begin` to `end`, by the closed form."""
    times = np.arange(end, dtype=float)
    found = set()
    for name, centre in enumerate(centres):
        keys = np.zeros(end)
        for row in range(rows.shape[1]):  # in the order of the language, so that equal is equal
            keys += 1.0 * ((rows[:end, row] - centre[row]) * (rows[:end, row] - centre[row]))
        at = entering_times(np.sqrt(keys), times, k, CountWindow(n), until=float(end))
        found |= {(name, int(place)) for place in np.flatnonzero(at >= begin)}
    return found


def ranked(
    subscription_counts: Sequence[int] = (1, 1_000, 100_000),
    k: int = 9,
    n: int = 1_000,
    distinct: int = 200,
    most_s: float = 2.0,
    event_count: int = 20_000,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How many events per second does every algorithm take, and how many candidates does it keep?"""
    fill = n + n // 2
    rows = points(fill + event_count, 4, seed)
    events = as_events(rows)
    _compile(k, n)
    for count in subscription_counts:
        found: dict[str, dict[str, Any]] = {}
        for name, settings in VARIANTS.items():
            share = points(min(count, distinct), 4, seed + 1)
            centres = share
            if settings["algorithm"] == "block":  # all different, the first as those of the others
                centres = np.concatenate([share, points(count, 4, seed + 2)])[:count]
            processor = made(settings, centres, count, k, n, events[:fill])
            per_s, told = measured(processor, events[fill:], fill, most_s)
            single_count = processor._next_number - fill
            keeps = [processor.candidates(each) for each in range(len(share))]
            right = expected(share, rows, k, n, fill, fill + single_count)
            differing = {(each.subscription, each.event) for each in told if each.subscription < len(share)} ^ right
            allowed = _SIGMA * single_count * len(share) if name == "probabilistic" else 0
            batch_per_s = None
            if settings["algorithm"] == "block":
                batch_per_s = batched(processor, events[fill + single_count :], fill + single_count, most_s)
            found[name] = {
                "subscriptions": count,
                "algorithm": name,
                "events_per_s": per_s,
                "batch_events_per_s": batch_per_s,
                "events": single_count,
                "candidates": float(np.mean(keeps)),
                "deliveries": len(told),
                "block_times": None,
                "promised": None,
                "wrong": max(0, len(differing) - round(allowed)),
            }
        for name, row in found.items():
            row["block_times"] = found["block"]["events_per_s"] / row["events_per_s"]
            row["promised"] = PROMISED if count >= PROMISED_AT and name in EXACT_RIVALS else None
            yield row


def _compile(k: int, n: int) -> None:
    events = as_events(points(600, 4, 0))
    rankeds = [nearest(centre, k, n) for centre in points(3, 4, 1).tolist()]
    for settings in VARIANTS.values():
        processor = filled(settings, rankeds, events)
        for place, event in enumerate(events[:20]):
            processor.process(event, float(len(events) + place))


def ranked_growth(
    ks: Sequence[int] = (1, 3, 9, 27, 81),
    ns: Sequence[int] = (500, 2_000, 8_000),
    subscription_counts: Sequence[int] = (1_000, 10_000, 100_000),
    subscription_count: int = 200,
    most_s: float = 1.0,
    event_count: int = 4_000,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What do a larger k, a longer window and more subscriptions cost?"""
    settings_of = {name: VARIANTS[name] for name in ("strict", "relaxed", "probabilistic", "block")}
    settings_of["relaxed, probabilistic filter"] = VARIANTS["relaxed, probabilistic filter"]
    knobs = [("k", k, {"k": k, "n": 2_000, "count": subscription_count}, settings_of) for k in ks]
    knobs += [("n", n, {"k": 9, "n": n, "count": subscription_count}, settings_of) for n in ns]
    only = {"block": VARIANTS["block"]}
    knobs += [("subscriptions", count, {"k": 9, "n": 1_000, "count": count}, only) for count in subscription_counts]
    _compile(3, 100)
    for knob, value, setting, some in knobs:
        k, n, count = setting["k"], setting["n"], setting["count"]
        fill = n + n // 4
        rows = points(fill + event_count, 4, seed)
        events = as_events(rows)
        centres = points(count, 4, seed + 1)
        asked = centres[:20]
        for name, settings in some.items():
            processor = made(settings, centres, count, k, n, events[:fill])
            per_s, told = measured(processor, events[fill:], fill, most_s)
            single_count = processor._next_number - fill
            right = expected(asked, rows, k, n, fill, fill + single_count)
            differing = {(each.subscription, each.event) for each in told if each.subscription < len(asked)} ^ right
            allowed = _SIGMA * single_count * len(asked) if name == "probabilistic" else 0
            yield {
                "knob": knob,
                "value": value,
                "subscriptions": count,
                "algorithm": name,
                "event_us": 1e6 / per_s,
                "subscription_ns": 1e9 / per_s / count,
                "candidates": float(np.mean([processor.candidates(each) for each in range(len(asked))])),
                "deliveries": len(told),
                "wrong": max(0, len(differing) - round(allowed)),
            }


def ranked_indexes(
    subscription_counts: Sequence[int] = (10_000, 100_000),
    dimensions: Sequence[int] = (2, 4, 8),
    k: int = 3,
    n: int = 2_000,
    event_count: int = 1_500,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """Which index finds the subscriptions that an event concerns soonest, and does the choice find it?"""
    scores = [("distance", nearest, width) for width in dimensions] + [("weighted sum", heaviest, 3)]
    for kind, make, width in scores:
        rows = points(n + event_count, width, seed)
        events = as_events(rows)
        for count in subscription_counts:
            rankeds = [make(centre, k, n) for centre in points(count, width, seed + 1).tolist()]
            told_by: dict[str, list[Delivery]] = {}
            for index in (*INDEXES, "auto"):
                processor = filled({"algorithm": "block", "index": index}, rankeds, events[:n])
                per_s, told_by[index] = measured(processor, events[n:], n, 1e9)
                groups = processor._engine._groups.values()  # type: ignore[attr-defined]
                used = {getattr(group._index, "name", "columns") for group in groups}
                yield {
                    "score": kind,
                    "dimensions": width,
                    "subscriptions": count,
                    "index": index,
                    "used": ", ".join(sorted(used)),
                    "event_us": 1e6 / per_s,
                    "deliveries": len(told_by[index]),
                    "wrong": int(told_by[index] != told_by["columns"]),
                }
