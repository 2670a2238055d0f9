"""What does it cost that a matcher tells which predicates were true?

    watching    events matched by a matcher that is watched, beside one that is not, one by one and in batches

`wrong` counts predicates whose share, as the matcher tells it, is not that of the events that it matched, by more than
the sample allows.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from math import sqrt
from typing import TYPE_CHECKING, Any

from benchmarks.cases import CASES, best_times, events_of, parsed
from tamis.language.expressions import Literal
from tamis.language.rewrites.monotone import leaves_of, monotone
from tamis.matching.matcher import WATCHED, Matcher
from tamis.selectivity import Counters, Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_JUDGED = 300
_ERRORS = 5
"""So many standard errors a share may be off."""


def watching(
    names: Sequence[str] = ("auction", "w1"),
    subscription_counts: Sequence[int] = (10_000, 100_000),
    every: int = WATCHED,
    event_count: int = 2_000,
    batch: int = 8_192,
    passes: int = 5,
    seed: int = 1,
) -> Iterator[dict[str, Any]]:
    """How much longer does matching take if one of so many events is looked at?"""
    for name in names:
        workload = CASES[name]()
        table = workload.events(max(event_count, batch), seed + 1)
        events = events_of(table)
        singles = events[:event_count]
        for count in subscription_counts:
            filters = parsed(workload.subscriptions(count, seed))
            plain, watched = Matcher(), Matcher()
            for matcher in (plain, watched):
                matcher.add_many(dict(enumerate(filters)))
                matcher.learn(table)
            watched.watch(every)
            runs = {
                (way, is_watched): partial(_matched, matcher, way, singles, table.slice(0, batch))
                for way in ("single", "batch")
                for is_watched, matcher in ((False, plain), (True, watched))
            }
            for run in runs.values():
                run()
            best = best_times(passes, runs)
            counters = Counters()
            counters.take(*watched.watched())
            known = Sample(events)
            judged = islice(
                dict.fromkeys(
                    leaf for each in filters for leaf in leaves_of(monotone(each)) if not isinstance(leaf, Literal)
                ),
                _JUDGED,
            )
            off = sum(_is_off(known.share(each), counters.share(each), counters.event_count) for each in judged)
            for way, size in (("single", len(singles)), ("batch", batch)):
                yield {
                    "workload": name,
                    "subscriptions": count,
                    "events": way,
                    "plain_us": best[way, False] / size * 1e6,
                    "watched_us": best[way, True] / size * 1e6,
                    "ratio": best[way, True] / best[way, False],
                    "looked_at": counters.event_count,
                    "wrong": off,
                }


def _matched(matcher: Matcher, way: str, singles: list[Any], table: Any) -> None:
    if way == "batch":
        matcher.count_batch(table)
        return
    for event in singles:
        matcher.match(event)


def _is_off(share: float, told: float, event_count: float) -> bool:
    return abs(share - told) > _ERRORS * sqrt(max(share * (1 - share), 1 / event_count) / event_count)
