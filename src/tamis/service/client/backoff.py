"""When is a broken connection tried again? Exponential backoff with jitter.

After each failure the wait may be twice as long, up to a bound, and chance decides about half of it: clients
that lost one broker at one moment do not come back at one moment.
"""

from __future__ import annotations

from random import Random

FIRST_S = 0.1
LONGEST_S = 30.0


class Backoff:
    """The waits between attempts to connect.

    >>> waits = Backoff(Random(1))
    >>> [round(waits.next_s(), 2) for _ in range(3)]
    [0.06, 0.18, 0.35]
    >>> waits.reset()
    >>> waits.next_s(at_least_s=2.0) >= 2.0
    True
    """

    def __init__(self, chance: Random | None = None) -> None:
        self._chance = chance or Random()
        self._failures = 0

    def next_s(self, at_least_s: float = 0.0) -> float:
        """Return how long to wait now; `at_least_s` is what a broker asked for."""
        bound_s = min(LONGEST_S, FIRST_S * 2.0**self._failures)
        self._failures = min(self._failures + 1, 30)
        return at_least_s + bound_s * (0.5 + 0.5 * self._chance.random())

    def reset(self) -> None:
        """Begin anew: the connection was made."""
        self._failures = 0
