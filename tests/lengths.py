"""How much of what they can do do the slow tests do?

    make test-all                   a tenth of it, which is meant to end within an hour and a half on two cores
    make test-all SLOW_SHARE=1      all of it: 20,000 worlds of a node, 500 kills of a broker, 10,000 simulated networks

A test that repeats the same thing with other seeds names its full number and takes its share of it; the first seeds are
always the same ones. Tests that do one long thing do it whole.
"""

from __future__ import annotations

import os

NAME = "SLOW_SHARE"
USUAL = 0.1


def share(given: str | None) -> float:
    """Return the share that is asked for.

    >>> share(None), share("1"), share("0.05")
    (0.1, 1.0, 0.05)
    >>> share("5")
    Traceback (most recent call last):
        ...
    ValueError: SLOW_SHARE is 5; it must be a number above 0, and 1 at most
    """
    try:
        value = float(given or USUAL)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise ValueError(f"{NAME} is {given}; it must be a number above 0, and 1 at most")
    return value


SHARE = share(os.environ.get(NAME))


def so_many(full: int, share: float = SHARE) -> int:
    """Return the share of a number, rounded, and at least 1.

    >>> so_many(500, 0.2), so_many(500, 1.0), so_many(2, 0.2)
    (100, 500, 1)
    """
    return max(1, round(full * share))
