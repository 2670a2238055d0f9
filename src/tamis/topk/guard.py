"""Is a stream in random order, as probabilistic pruning takes for granted? A test for random order.

A few keys in every window are sampled, evenly by the subscription's clock. In random order their ranks say nothing
about their places, so two statistics are near zero, in standard deviations: the rank correlation with time (does the
stream go up or down?), and how much closer neighbours are than strangers (does it wander, or come in waves?). Where one
of them is far off, the assumption is given up.

A guarded ranking starts exact, becomes probabilistic once a whole window has looked random, and turns exact for good
when the order fails. Where the rate of a time window falls further than pruning can bear (`rates`), it turns exact too,
and probabilistic again when a whole window of the new rate has looked random. The report says since when its answers
are exact again: what was forgotten before cannot be brought back, and may be missing for one window.

Source: ours. That order matters: Pripužić 2010, section 3.4.2; the serial statistic is Bartels' rank version of von
Neumann's ratio (1982).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.topk.base import Ranking
from tamis.topk.probabilistic import Probabilistic
from tamis.topk.rates import WindowCount, with_room
from tamis.topk.relaxed import Relaxed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.topk.base import Candidate

SAMPLES_PER_WINDOW = 256
SAMPLES = 2 * SAMPLES_PER_WINDOW
_FIRST_TEST = 64
_TESTED_EVERY = 32
FAR_OFF = 5.5
"""So many standard deviations are seen in random order once in ten million tests, about."""


@dataclass(frozen=True, slots=True)
class OrderReport:
    """A subscription's stream is not what probabilistic pruning presumes."""

    at: float
    """The reading of the subscription's clock: time, or the position in its stream."""
    statistic: str
    """What failed: "trend" or "serial" (the order), or "rate" (fewer events come than before)."""
    deviations: float
    """How far off the statistic is, in standard deviations."""
    exact_from: float
    """From this reading on, nothing that was forgotten before can be missing."""


class OrderTest:
    """Looks at a sample of keys, in order of arrival.

    >>> test = OrderTest(span=100)
    >>> for clock in range(200):
    ...     test.see(float(clock), float(clock))
    >>> test.verdict()[0]
    'trend'
    """

    def __init__(self, span: float) -> None:
        self._step = span / SAMPLES_PER_WINDOW
        self.next = -math.inf
        """When the next arrival is to be sampled, by the subscription's clock."""
        # The sample is a ring: subscriptions are many, so it is small, and single precision orders well enough.
        self._keys = np.zeros(SAMPLES, np.float32)
        self._count = 0
        self._seen = 0

    def see(self, clock: float, key: float) -> None:
        """Sample an arrival, if it is time for one."""
        if clock >= self.next:
            self.next = clock + self._step
            self._keys[self._count % SAMPLES] = key
            self._count += 1
            self._seen += 1

    @property
    def is_due(self) -> bool:
        """Have enough keys come since the last verdict?"""
        return self._seen >= _TESTED_EVERY and self._count >= _FIRST_TEST

    @property
    def is_informed(self) -> bool:
        """Has it seen a whole window?"""
        return self._count >= SAMPLES_PER_WINDOW

    def verdict(self) -> tuple[str, float]:
        """Return which statistic is farthest off, and how far, in standard deviations."""
        self._seen = 0
        place = self._count % SAMPLES
        keys = np.concatenate([self._keys[place:], self._keys[:place]])[-self._count :]
        _, places, counts = np.unique(keys, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[places] - (len(keys) + 1) / 2  # equal keys share a rank
        spread = float(ranks @ ranks)
        if spread == 0:
            return "trend", 0.0
        times = np.arange(len(keys)) - (len(keys) - 1) / 2
        # Keys that fall over time are events that get better, with which nothing is lost.
        trend = float(ranks @ times) / math.sqrt(spread * float(times @ times)) * math.sqrt(len(keys) - 1)
        steps = np.diff(ranks)
        serial = (2 - float(steps @ steps) / spread) * math.sqrt(len(keys)) / 2
        # A stream that only goes up is smooth, too; that it goes up says more.
        return ("trend", trend) if trend >= min(serial, FAR_OFF) else ("serial", serial)


class Guarded(Ranking):
    """A probabilistic ranking as long as the order is random, an exact one otherwise."""

    is_exact = False

    def __init__(self, k: int, n: int, span: float, sigma: float, gamma: float, *, is_timed: bool = False) -> None:
        super().__init__(k)
        self._n = n
        self._count = WindowCount(span) if is_timed else None
        """Counts the window, unless it is a count window, or somebody else says how many events it has."""
        self._is_counted_for = False
        self._span = span
        self._sigma = sigma
        self._gamma = gamma
        self._test: OrderTest | None = OrderTest(span)
        self._inner: Ranking = Relaxed(k, gamma)
        self.report: OrderReport | None = None

    @property
    def is_probabilistic(self) -> bool:
        """Does it rely on the order at present?"""
        return isinstance(self._inner, Probabilistic)

    def see(self, clock: float, key: float) -> None:
        """Look at an arrival before it is inserted."""
        if self._count is not None:
            self._n = with_room(self._count.look(clock)) if self._is_counted_for else self._count.add(clock)
            self._watch_rate(clock)
            if isinstance(self._inner, Probabilistic):
                self._inner.expect(self._n)
        if self._test is None:
            return
        self._test.see(clock, key)
        if not self._test.is_due:
            return
        statistic, deviations = self._test.verdict()
        if deviations > FAR_OFF:
            exact_from = clock + self._span if self.is_probabilistic else clock
            self.report = OrderReport(clock, statistic, deviations, exact_from)
            self._test = None
            self._become(Relaxed(self.k, self._gamma))
        elif self._test.is_informed and not self.is_probabilistic:
            self._become(Probabilistic(self.k, self._n, self._sigma))

    def _watch_rate(self, clock: float) -> None:
        """Turn exact, for a window at least, if so few events come that what was forgotten may be missed."""
        if self._count is None or not self.is_probabilistic:
            return
        deviations = self._count.fall(clock, self.k, self._sigma)
        if deviations:
            self.report = OrderReport(clock, "rate", deviations, clock + self._span)
            self._test = OrderTest(self._span)
            self._become(Relaxed(self.k, self._gamma))

    def _become(self, other: Ranking) -> None:
        other.items, other.entered = self._inner.items, self._inner.entered
        if isinstance(other, Probabilistic):
            other._bound()
        other._schedule()
        self._inner = other
        self._show()

    def expect(self, n: int) -> None:
        """Be prepared for `n` events in the window: from now on somebody else counts, and watches the rate."""
        self._count = None
        self.prepare(n)

    def share(self, count: WindowCount) -> None:
        """Let somebody else count the window, who counts for several."""
        self._count, self._is_counted_for = count, True

    @property
    def next_look(self) -> float:
        """The reading of the clock at which it wants to see an arrival, whatever its key."""
        return math.inf if self._test is None else self._test.next

    def prepare(self, n: int) -> None:
        """Keep candidates enough for `n` events in the window."""
        self._n = max(n, self._n)
        if isinstance(self._inner, Probabilistic):
            self._inner.expect(n)
            self._show()

    def insert(self, candidate: Candidate) -> list[int]:
        return self._passed_on(self._inner.insert, candidate)

    def leave(self, clock: float) -> list[int]:
        self._watch_rate(clock)
        return self._passed_on(self._inner.leave, clock)

    def _passed_on(self, method: Callable[..., list[int]], argument: object) -> list[int]:
        entering = method(argument)
        self._show()
        return entering

    def _show(self) -> None:
        inner = self._inner
        self.items, self.entered, self.due, self.threshold = inner.items, inner.entered, inner.due, inner.threshold
