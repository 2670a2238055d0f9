"""What does one ranked subscription's home remember, where not every event comes by?

In a network others decide by a threshold which events they send to the home of a ranked subscription; there its *owner*
ranks what comes. It is told of events by number (in order of publication, over all publishers) and by the reading of
the subscription's clock when they were published, and answers with the events that enter the best k.

Behind a recent-buffer filter an event may come a second time, when it has left the buffer of whoever published it
(`retry`); whoever drives an owner says what leaves the buffer (`expel`) before it lets arrive what comes next.

Source: Pripužić 2010, sections 4.2 and 5.2.2 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tamis.language.expressions import TRUE
from tamis.topk.algorithms import RANKINGS, ranking_for
from tamis.topk.base import Candidate
from tamis.topk.errors import SettingError
from tamis.topk.rates import WindowCount
from tamis.topk.recent_buffer import Filtered
from tamis.topk.settings import TopKSettings
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.topk.ranked import Ranked
    from tamis.topk.recent_buffer import BufferSize


class Owner:
    """One ranked subscription where it is ranked.

    >>> from tamis.topk.ranked import Ranked
    >>> owner = Owner(Ranked("x", 1, "10 SECONDS"), "strict")
    >>> owner.take(0, key=5.0, clock=0.0), owner.take(1, key=7.0, clock=1.0), owner.leave(clock=10.0)
    ([0], [], [1])
    """

    def __init__(
        self,
        ranked: Ranked,
        algorithm: str = "probabilistic",
        settings: TopKSettings | None = None,
        since: int = 0,
    ) -> None:
        """Begin with an empty window; `since` is the number of the next event.

        algorithm   one that keeps a ranking for each subscription; those behind a filter, and 'probabilistic', have a
                    threshold
        settings    a guard is never asked: it would have to see the events that are not sent
        """
        if algorithm not in RANKINGS:
            raise SettingError(f"an owner ranks by {', '.join(RANKINGS)}, not by {algorithm!r}")
        if ranked.half_life_s is not None:
            raise SettingError(f"an owner ranks by scores that do not age, and {ranked} has a half life")
        chosen = replace(settings or TopKSettings(), guard=False)
        chosen.check_filter(algorithm)
        self.ranked = ranked
        self.since = since
        self.span = ranked.window.span
        self.is_timed = isinstance(ranked.window, TimeWindow)
        self._ranking = ranking_for(algorithm, chosen, ranked)
        self._position = 0
        self._seen = WindowCount(self.span)

    # -- What it is

    @property
    def threshold(self) -> float:
        """The key beyond which an event would change nothing, now or later; infinite where every event may."""
        return self._ranking.threshold

    @property
    def due(self) -> float:
        """When, by its clock, something leaves whose leaving matters; infinite for never."""
        return self._ranking.due

    @property
    def buffer_size(self) -> BufferSize | None:
        """How long a recent buffer before it is; None where it has no filter."""
        return self._ranking.size if isinstance(self._ranking, Filtered) else None

    def held(self) -> Iterable[int]:
        """The numbers of the events that it still refers to."""
        return self._ranking.held()

    def __len__(self) -> int:
        return len(self._ranking)

    # -- What happens

    def clock(self, number: int, at: float) -> float:
        """Count an event that passes the subscription's filter; return the clock's reading for it.

        For one who sees all events that pass. Who does not gives the readings itself, and says `expect`.
        """
        if self.is_timed:
            self.expect(self._seen.add(at))
            return at
        self._position += 1
        return self._position if self.ranked.where != TRUE else number

    def take(self, number: int, key: float, clock: float) -> list[int]:
        """Take an event at its first try; return the numbers of those that enter the best k."""
        if key != key:
            return []
        return self._ranking.insert(Candidate(key, -number, clock + self.span))

    def retry(self, number: int, key: float, clock: float) -> list[int]:
        """Take an event that has left the recent buffer, whether it came before or not.

        `clock` is the reading when it was published. An event that has left the window meanwhile is let go again.
        """
        if not isinstance(self._ranking, Filtered) or key != key or number < self.since:
            return []
        return self._ranking.try_again(Candidate(key, -number, clock + self.span))

    def expel(self, number: int) -> None:
        """Let the filter forget what has left the recent buffer: this event and all before it."""
        if isinstance(self._ranking, Filtered):
            self._ranking.expel(number)

    def leave(self, clock: float) -> list[int]:
        """Let leave what leaves by this reading of the clock; return the numbers of those that enter the best k."""
        return self._ranking.leave(clock) if self._ranking.due <= clock else []

    def expect(self, n: int) -> None:
        """Be prepared for `n` events in the window: of those that pass the filter, not of those that are sent."""
        self._ranking.expect(n)


def estimated_window(counts: Iterable[tuple[float, float]]) -> int:
    """Return how many events there may be in a window, from what each publisher has numbered.

    For each publisher comes the number of its last event, and that of its last event before the window began. Too many
    cost little: twice as many cost a candidate or two.

    >>> estimated_window([(120, 20), (7, 0)])
    107
    """
    total = sum(last - before for last, before in counts)
    return max(1, math.ceil(total))
