"""What is matched against what, and who says that the answer is right?

A *case* is a workload at one size: a matcher that knows its subscriptions and has seen some of its events, events that
it has not seen, and a judge. Where the subscriptions fit into the yardstick, that is the judge; otherwise it is the
reference meaning, on so many subscriptions as can be asked in a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

import tamis
from benchmarks.yardstick import Yardstick
from tamis.matching.matcher import Matcher
from tamis.workloads import WORKLOADS, Expressions, Synthetic
from tamis.workloads.synthetic import CODES, NUMBERS, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from benchmarks.yardstick import Codes
    from tamis.language.expressions import Expression
    from tamis.workloads import Workload

CASES: dict[str, Callable[..., Workload]] = {
    **WORKLOADS,
    "w1-sparse": partial(Synthetic, "W1", attributes_per_event=20),
    "expressions-rare": partial(Expressions, match_share=0.001),
}
"""The workloads, and two more settings of them: few attributes in an event, and few matches where Jewel has many."""
MEASURED = ("w1", "w2", "w3", "w4", "w1-sparse", "templates", "auction", "expressions", "expressions-rare", "flights")
WITH_YARDSTICK = ("w1", "w2", "w3", "w4", "w1-sparse", "templates")

MOST_MATCHES = 20_000_000
"""A batch is cut to so many matches: of 100,000 of Jewel's expressions an event matches 15,000."""

_SAMPLE_COUNT = 2_048
_PROBE_COUNT = 64
_JUDGED_COUNT = 10_000
_MANY_JUDGED, _FEW_JUDGED = 40, 3
"""How many events are judged: by the yardstick, and by the reference meaning."""


@dataclass
class Case:
    """A workload at one size, ready for the clock."""

    name: str
    subscriptions: pa.Table
    matcher: Matcher
    events: pa.Table
    yardstick: Yardstick | None
    lean_yardstick: Yardstick | None
    matches_per_event: float
    """An estimate."""

    def batch(self, count: int, most_matches: int = MOST_MATCHES) -> pa.Table:
        """Return `count` events, or as many as have `most_matches` matches: not everything fits into memory."""
        affordable = int(most_matches / max(self.matches_per_event, 1e-9))
        return self.events.slice(0, max(1, min(count, affordable)))

    def wrong_in(self, found: Sequence[npt.NDArray[np.int64]]) -> int:
        """Return how many of the matches of the first events, in order of the subscriptions, are wrong or missing."""
        judge = self.yardstick or self.subscriptions
        judged = found[: _MANY_JUDGED if self.yardstick else _FEW_JUDGED]
        return wrong_matches(judge, events_of(self.events.slice(0, len(judged))), judged)


def built(name: str, subscription_count: int, event_count: int, seed: int, *, with_yardstick: bool = True) -> Case:
    """Make a case. The matcher learns from other events than those that it is measured with."""
    workload = CASES[name]()
    subscriptions = workload.subscriptions(subscription_count, seed)
    matcher = Matcher()
    yardstick = lean = None
    if with_yardstick and name in WITH_YARDSTICK:
        expressions = parsed(subscriptions)
        yardstick, lean = Yardstick(expressions, NUMBERS, CODES + WORDS), Yardstick(expressions)
        matcher.add_many(enumerate(expressions))
    else:
        matcher.add_many(subscriptions)
    sample = workload.events(_SAMPLE_COUNT, seed + 1)
    matcher.learn(sample)
    probe = sample.slice(0, _PROBE_COUNT)
    matches_per_event = matcher.match_batch(probe).num_rows / probe.num_rows  # and compiles
    matcher.match(events_of(probe)[0])
    events = workload.events(event_count, seed + 2)
    return Case(name, subscriptions, matcher, events, yardstick, lean, matches_per_event)


def parsed(subscriptions: pa.Table) -> list[Expression]:
    """Return the expressions of a table of subscriptions."""
    return [tamis.parse(text) for text in subscriptions["condition"].to_pylist()]


def events_of(table: pa.Table) -> list[dict[str, Any]]:
    """Return events as Python sees them; what is NULL is absent.

    >>> import pyarrow as pa
    >>> events_of(pa.table({"price": [12, None], "bids": [1, 2]}))
    [{'price': 12, 'bids': 1}, {'bids': 2}]
    """
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


# -- Judges


def matches_of(table: pa.Table, event_count: int) -> list[npt.NDArray[np.int64]]:
    """Split the matches of a batch into those of its first events, each in order of the subscriptions."""
    bounds = np.searchsorted(table["event"].to_numpy(), np.arange(event_count + 1))
    found = table["subscription"].to_numpy()
    return [np.sort(found[begin:end]) for begin, end in pairwise(bounds)]


def wrong_matches(
    judge: Yardstick | pa.Table, events: Sequence[Mapping[str, Any]], found: Sequence[npt.NDArray[np.int64]]
) -> int:
    """Return how many matches are wrong, missing, or found twice.

    The judge is the yardstick, or a table of subscriptions, of which the first some thousands are evaluated.
    """
    wrong = 0
    if isinstance(judge, Yardstick):
        for codes, positions in zip(judge.encoded(events), found, strict=True):
            wrong += _differences(positions, judge.match(codes))
        return wrong
    expressions = parsed(judge.slice(0, _JUDGED_COUNT))
    for event, positions in zip(events, found, strict=True):
        expected = [index for index, expression in enumerate(expressions) if tamis.holds(expression, event)]
        wrong += _differences(positions[positions < len(expressions)], np.array(expected, np.int64))
    return wrong


def _differences(found: npt.NDArray[np.int64], expected: npt.NDArray[np.int64]) -> int:
    distinct = np.unique(found)
    return len(np.setxor1d(distinct, expected, assume_unique=True)) + len(found) - len(distinct)


def differing_events(one: Sequence[npt.NDArray[np.int64]], two: Sequence[npt.NDArray[np.int64]]) -> int:
    """Return how many events have different matches here and there."""
    return sum(not np.array_equal(mine, theirs) for mine, theirs in zip(one, two, strict=True))


# -- Clocks


def best_times(passes: int, runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the best time of each run, in seconds. They take turns, so that a busy moment hits all of them."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(passes):
        for name, run in runs.items():
            start = perf_counter()
            run()
            best[name] = min(best[name], perf_counter() - start)
    return best


def percentile_us(times: Sequence[float] | npt.NDArray[np.float64], percent: float) -> float:
    """Return a percentile of seconds, in microseconds."""
    return float(np.percentile(times, percent)) * 1e6


def yardstick_runs(case: Case) -> tuple[dict[str, Callable[[], object]], int]:
    """Return what counts some events' matches with the yardsticks, and of how many events."""
    if case.yardstick is None or case.lean_yardstick is None:
        return {}, 0
    events = events_of(case.events.slice(0, _MANY_JUDGED))
    yardsticks = {"plain": case.yardstick, "lean": case.lean_yardstick, "sliced": case.lean_yardstick.sliced()}

    def counted(yardstick: Yardstick, encoded: Iterable[Codes]) -> int:
        return sum(map(yardstick.count, encoded))

    return {name: partial(counted, each, each.encoded(events)) for name, each in yardsticks.items()}, len(events)
