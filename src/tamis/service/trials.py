"""What would a filter have matched? A dry run over the log, before anybody subscribes.

A trial reads a part of the log and says how much of it the filter wants, when, some examples of it, and some events
that it only just does not want. It sees what its principal may receive and nothing else: of other events not even the
number. It has a budget, of events and of time, and says how far it came; so one can go on from there.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, NamedTuple

from tamis.service.history import chosen, entries_of
from tamis.service.nearness import shortfall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.service.history import Range, Readable
    from tamis.service.log.base import Block

NEARNESS_JUDGED = 20_000
"""Of so many events that a filter does not want is it computed how near they are; then of the last of each block."""
MOST_SPANS = 120
_SPANS_S = (1, 10, 60, 300, 900, 3_600, 21_600, 86_400, 604_800)


class Budget(NamedTuple):
    """How much a trial may look at."""

    events: int = 200_000
    seconds: float = 2.0


DEFAULT_BUDGET = Budget()


class Shown(NamedTuple):
    """An event of a trial."""

    position: int
    body: bytes
    record: Mapping[str, Any]
    shortfall: int = 0
    """How many predicates would have to come out otherwise for it to be wanted."""


class Span(NamedTuple):
    """What came in a part of the time."""

    begin_s: int
    """In seconds since 1970."""
    seen: int
    matched: int


@dataclass(slots=True)
class Trial:
    """What came of trying a filter."""

    seen: int = 0
    """Events that the principal may receive."""
    matched: int = 0
    through: int = 0
    """The last position that was looked at."""
    is_complete: bool = True
    examples: deque[Shown] = field(default_factory=deque)
    """The latest events that it wants, oldest first."""
    near: list[tuple[int, int, Shown]] = field(default_factory=list)
    """A heap of the nearest events that it does not want, the farthest first."""
    seconds: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By the second since 1970: events seen, and matched."""

    @property
    def near_misses(self) -> list[Shown]:
        """The events that it only just does not want, the nearest first."""
        return [example for *_, example in sorted(self.near, reverse=True)]

    def spans(self, most: int = MOST_SPANS) -> tuple[int, list[Span]]:
        """Return the length of a span in seconds, and what came in each from the first event to the last."""
        if not self.seconds:
            return _SPANS_S[0], []
        first, last = min(self.seconds), max(self.seconds)
        length = next((each for each in _SPANS_S if last // each - first // each < most), _SPANS_S[-1])
        counts: dict[int, tuple[int, int]] = {}
        for second, (seen, matched) in self.seconds.items():
            before = counts.get(second // length, (0, 0))
            counts[second // length] = before[0] + seen, before[1] + matched
        begins = range(first // length, last // length + 1)
        spans = [Span(begin * length, *counts.get(begin, (0, 0))) for begin in begins]
        return length, spans


def tried(
    log: Readable,
    positions: Range,
    wanted: Expression,
    allowed: Expression | None,
    schema: Schema | None,
    *,
    clock: Callable[[], float],
    most: int = 5,
    budget: Budget = DEFAULT_BUDGET,
) -> Trial:
    """Try a filter on a part of the log; keep `most` examples of either kind. This reads the disk."""
    trial = Trial(through=positions.first - 1, examples=deque(maxlen=most))
    wants, may_see = chosen(wanted, schema), chosen(allowed, schema)
    ends_s, judged, read = clock() + budget.seconds, 0, 0
    if positions.first >= positions.until:
        return trial
    for block in log.read(positions.first, positions.until - 1):
        visible = [Shown(*each) for each in entries_of(block, positions, may_see)]
        is_wanted = wants([each.record for each in visible])
        _count(trial, block, len(visible), sum(is_wanted))
        trial.examples.extend(each for each, hit in zip(visible, is_wanted, strict=True) if hit)
        missed = [each for each, hit in zip(visible, is_wanted, strict=True) if not hit]
        for each in missed if judged < NEARNESS_JUDGED else missed[-1:]:
            judged += 1
            _keep_near(trial, each._replace(shortfall=shortfall(wanted, each.record, schema)), most)
        trial.through = min(block.last, positions.until - 1)
        read += len(block.events)
        if trial.through < positions.until - 1 and (read >= budget.events or clock() >= ends_s):
            trial.is_complete = False
            return trial
    trial.through = positions.until - 1
    return trial


def _count(trial: Trial, block: Block, seen: int, matched: int) -> None:
    trial.seen += seen
    trial.matched += matched
    if seen:
        second = block.time_us // 1_000_000
        before = trial.seconds.get(second, (0, 0))
        trial.seconds[second] = before[0] + seen, before[1] + matched


def _keep_near(trial: Trial, example: Shown, most: int) -> None:
    """Keep an event if it is nearer than others, or as near and later."""
    entry = (-example.shortfall, example.position, example)
    if len(trial.near) < most:
        heappush(trial.near, entry)
    elif most:
        heappushpop(trial.near, entry)
