"""How does a broker fare, just now? What its page shows: counters as they stand, delays of the latest moments.

Counters only grow, so whoever looks twice knows rates. Delays are read from histograms; what counts is what came since
the last look, so each looker has a memory of its own.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.service.figures import Histogram

if TYPE_CHECKING:
    from tamis.service.figures import Figures

_DELAYS = ("publish_to_deliver_seconds", "disk_seconds", "match_seconds", "loop_lag_seconds")


class Delay(NamedTuple):
    """How long something took of late; None if it did not happen."""

    p50_s: float | None
    p99_s: float | None


class Looker:
    """Somebody who looks at figures again and again.

    >>> from tamis.service.figures import Figures
    >>> figures, looker = Figures(), Looker()
    >>> figures.disk_seconds.observe(0.004, times=3)
    >>> looker.delays(figures)["disk"]
    Delay(p50_s=0.005, p99_s=0.005)
    >>> looker.delays(figures)["disk"]
    Delay(p50_s=None, p99_s=None)
    """

    def __init__(self) -> None:
        self._before: dict[str, list[int]] = {}

    def delays(self, figures: Figures) -> dict[str, Delay]:
        """Return how long things took since the last look, by their names."""
        return {name.removesuffix("_seconds"): self._delay(name, getattr(figures, name)) for name in _DELAYS}

    def _delay(self, name: str, histogram: Histogram) -> Delay:
        now = list(histogram.counts)
        before = self._before.get(name, [0] * len(now))
        self._before[name] = now
        lately = Histogram(histogram.bounds)
        lately.counts = [after - earlier for after, earlier in zip(now, before, strict=True)]
        if not any(lately.counts):
            return Delay(None, None)
        # Beyond the last bound all that is known is that it took longer.
        p50_s, p99_s = (min(lately.quantile(share), histogram.bounds[-1]) for share in (0.5, 0.99))
        return Delay(p50_s, p99_s)


def counters(figures: Figures) -> dict[str, Any]:
    """Return the counters and sizes that a page shows."""
    return {
        "events": {
            "taken": sum(figures.events_taken.values()),
            "known": figures.events_known,
            "refused": sum(figures.events_refused.values()),
        },
        "deliveries": {state: figures.deliveries[state] for state in ("sent", "again", "done", "dead", "lost")},
        "subscribers": {state: figures.subscribers[state] for state in ("live", "behind", "far")},
        "subscriptions": figures.subscriptions,
        "connections": figures.connections,
        "waiting": figures.behind_events,
    }


def memory_bytes() -> int:
    """Return how much memory this process has resident; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0
