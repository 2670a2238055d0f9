"""What does it cost to be ready for events?

Registering only takes subscriptions in; they are laid out when somebody matches. So there are two rates: until
`add_many` returns, and until the first event is answered. The second is the one that counts.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.cases import (
    CASES,
    built,
    differing_events,
    events_of,
    matches_of,
    parsed,
    percentile_us,
    wrong_matches,
)
from benchmarks.yardstick import Yardstick
from tamis.language import parser
from tamis.matching.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa

    from tamis.language.expressions import Expression

PROMISED_REGISTRATIONS_S = 100_000
"""What we promise: so many subscriptions per second, already parsed, until the first event is answered."""
PROMISED_BYTES = 512
"""For a subscription of five predicates, in `Matcher.memory()`."""


def registration(
    subscription_count: int = 100_000, batch_size: int = 256, first_matches: int = 100, seed: int = 1
) -> Iterator[dict[str, Any]]:
    """How fast do subscriptions come and go, and what does each take?"""
    workload = CASES["w1"]()
    table = workload.subscriptions(subscription_count, seed)
    batch = workload.events(batch_size, seed + 1)
    event = events_of(batch)[0]
    expressions = parsed(table)
    living = dict(enumerate(expressions))
    matcher = Matcher()
    matcher.add_many(enumerate(expressions[:1_000]))
    matcher.match_batch(batch)  # compiles
    matcher.match(event)

    subscriptions: dict[str, Any] = {
        "add parsed expressions": living,
        "add texts": dict(enumerate(table["condition"].to_pylist())),
        "add an Arrow table": table,
    }
    for step, given in subscriptions.items():
        parser._simple_predicates.clear()  # as if no such text had been seen before
        matcher = Matcher()
        rates = _rates(subscription_count, partial(matcher.add_many, given), partial(matcher.match, event))
        judged = _judged(matcher, batch, living)
        promised = [f"{PROMISED_REGISTRATIONS_S:,}/s"] if given is living else []
        promised.append(f"{PROMISED_BYTES} bytes")
        bytes_each = matcher.memory() / len(matcher)
        yield _step(step, subscription_count, **rates, bytes_each=bytes_each, promised=", ".join(promised), **judged)

    gone = np.random.default_rng(seed).choice(subscription_count, subscription_count // 10, replace=False).tolist()

    def remove() -> None:
        for subscription_id in gone:
            matcher.remove(subscription_id)

    rates = _rates(len(gone), remove, partial(matcher.match, event))
    living = {number: living[number] for number in living.keys() - set(gone)}
    yield _step("remove a tenth", len(gone), **rates, **_judged(matcher, batch, living))

    for match, how in (
        (partial(matcher.match, event), "match"),
        (partial(matcher.match_batch, batch), "match a batch"),
    ):
        for is_adding in (False, True):
            times = []
            for number in range(first_matches):
                subscription_id = subscription_count + len(living)
                start = perf_counter()
                if is_adding:
                    matcher.add(subscription_id, expressions[number])
                    living[subscription_id] = expressions[number]
                match()
                times.append(perf_counter() - start)
            percentiles = {"p50_us": percentile_us(times, 50), "p99_us": percentile_us(times, 99)}
            step = f"add one and {how}" if is_adding else how
            yield _step(step, first_matches, **percentiles, **_judged(matcher, batch, living))
    _settle(matcher)


def _rates(count: int, change: Callable[[], object], match: Callable[[], object]) -> dict[str, float]:
    """Return changes per second, until they are taken and until the first event is answered."""
    start = perf_counter()
    change()
    taken = perf_counter()
    match()
    return {"per_s": count / (taken - start), "answered_per_s": count / (perf_counter() - start)}


def _judged(matcher: Matcher, batch: pa.Table, living: Mapping[int, Expression]) -> dict[str, int]:
    """Compare the matches of a batch with those that the yardstick finds among what should be registered now."""
    ids = np.array(sorted(living), np.int64)
    matches = matcher.match_batch(batch)
    # What is no longer registered becomes the position of a neighbour, where it is one match too many.
    found = [np.searchsorted(ids, each) for each in matches_of(matches, batch.num_rows)]
    yardstick = Yardstick(living[number] for number in ids.tolist())
    return {"matches": matches.num_rows, "wrong": wrong_matches(yardstick, events_of(batch), found)}


def _step(step: str, count: int, **measured: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("per_s", "answered_per_s", "p50_us", "p99_us", "bytes_each", "promised"))
    return {"step": step, "count": count, **empty, **measured}


def churn(
    name: str = "w1",
    subscription_count: int = 100_000,
    share: float = 0.1,
    steps: int = 20,
    batch_size: int = 8_192,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """What does replacing a tenth of the subscriptions, step by step, cost those who match meanwhile?"""
    case = built(name, subscription_count, batch_size, seed, with_yardstick=False)
    matcher, batch = case.matcher, case.batch(batch_size)
    matcher.match_batch(batch)
    replaced = int(subscription_count * share)
    gone = np.random.default_rng(seed).choice(subscription_count, replaced, replace=False)
    new = list(enumerate(parsed(CASES[name]().subscriptions(replaced, seed + 3)), start=subscription_count))

    matching_s, found = _matched(matcher, batch, steps)
    undisturbed_s = sum(matching_s)
    wrong = case.wrong_in(matches_of(found, batch.num_rows))

    def row(phase: str, matching_s: list[float], registering_s: float, found: pa.Table, wrong: int) -> dict[str, Any]:
        event_count = steps * batch.num_rows
        return {
            "phase": phase,
            "subscriptions": len(matcher),
            "replaced": replaced if registering_s else 0,
            "match_events_per_s": round(event_count / sum(matching_s)),
            "times_undisturbed": undisturbed_s / sum(matching_s),
            "slowest_batch_ms": max(matching_s) * 1e3,
            "registration_included_per_s": round(event_count / (sum(matching_s) + registering_s)),
            "matches": found.num_rows,
            "wrong": wrong,
        }

    yield row("undisturbed", matching_s, 0, found, wrong)

    registering_s, matching_s = 0.0, []
    bounds = np.linspace(0, replaced, steps + 1).astype(int)
    for begin, end in pairwise(bounds):
        start = perf_counter()
        for subscription_id in gone[begin:end].tolist():
            matcher.remove(subscription_id)
        matcher.add_many(new[begin:end])
        registering_s += perf_counter() - start
        batch_s, found = _matched(matcher, batch, 1)
        matching_s += batch_s

    fresh = Matcher()
    texts = case.subscriptions["condition"].to_pylist()
    fresh.add_many((number, texts[number]) for number in np.setdiff1d(np.arange(len(texts)), gone).tolist())
    fresh.add_many(new)
    expected = matches_of(fresh.match_batch(batch), batch.num_rows)

    def differing(found: pa.Table) -> int:
        return differing_events(matches_of(found, batch.num_rows), expected)

    yield row("while replacing", matching_s, registering_s, found, differing(found))
    _settle(matcher)
    matching_s, found = _matched(matcher, batch, steps)
    yield row("afterwards", matching_s, 0, found, differing(found))
    matching_s, found = _matched(fresh, batch, steps)
    yield row("a fresh matcher", matching_s, 0, found, differing(found))


def _matched(matcher: Matcher, batch: pa.Table, times: int) -> tuple[list[float], pa.Table]:
    """Match a batch some times; return the seconds of each time, and what was found."""
    elapsed = []
    for _ in range(times):
        start = perf_counter()
        found = matcher.match_batch(batch)
        elapsed.append(perf_counter() - start)
    return elapsed, found


def _settle(matcher: Matcher) -> None:
    """Wait for what is merged in the background, so that it does not disturb what is measured next."""
    matcher._engine.settle()
