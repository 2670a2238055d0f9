"""Which events does a ranked subscription choose from?

Those of the last hour, or the last five: a window is a span of time or a number of events. A time window holds an event
from its arrival until the span has passed, both ends included; a count window holds the latest so many events that pass
the subscription's filter, and each arrival beyond that makes the oldest leave.

Source: Pripužić 2010, sections 1.3 and 3.2 (docs/bibliography.md).
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import TypeAlias

from tamis.errors import did_you_mean
from tamis.topk.errors import WindowError

UNITS_S: dict[str, float] = {
    "MILLISECOND": 0.001,
    "SECOND": 1.0,
    "MINUTE": 60.0,
    "HOUR": 3600.0,
    "DAY": 86_400.0,
    "WEEK": 604_800.0,
}
"""How many seconds a unit has. All of them may be written in the plural."""
_WHOLE = ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
_MOST_EVENTS = 2**53
"""Positions are compared as doubles, which count exactly so far."""


@dataclass(frozen=True, slots=True)
class CountWindow:
    """The latest so many events that pass the filter.

    >>> print(CountWindow(5))
    5 EVENTS
    """

    events: int

    def __post_init__(self) -> None:
        if isinstance(self.events, bool) or not isinstance(self.events, int) or not 1 <= self.events <= _MOST_EVENTS:
            raise WindowError(f"a window must count a whole number of events, at least 1, not {self.events!r}")

    @property
    def span(self) -> float:
        """How far, by its own clock, an event's stay reaches: by positions."""
        return float(self.events)

    def __str__(self) -> str:
        return f"{self.events} EVENT{'' if self.events == 1 else 'S'}"


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The events of the latest so many seconds.

    >>> print(TimeWindow(5400))
    90 MINUTES
    """

    seconds: float

    def __post_init__(self) -> None:
        if isinstance(self.seconds, bool) or not isinstance(self.seconds, int | float):
            raise WindowError(f"a window must last a number of seconds, not {self.seconds!r}")
        object.__setattr__(self, "seconds", float(self.seconds))
        if not 0 < self.seconds < math.inf:
            raise WindowError(f"a window must last a finite time of more than 0 seconds, not {self.seconds} seconds")

    @property
    def span(self) -> float:
        """How far, by its own clock, an event's stay reaches: in seconds."""
        return self.seconds

    def __str__(self) -> str:
        for unit in _WHOLE:
            count = self.seconds / UNITS_S[unit]
            if count.is_integer() and count * UNITS_S[unit] == self.seconds:
                return f"{int(count)} {unit}{'' if count == 1 else 'S'}"
        return f"{self.seconds!r} SECONDS"


Window: TypeAlias = CountWindow | TimeWindow


def window_of(written: object) -> Window:
    """Return the window that a text, a timedelta or a window says.

    >>> window_of("1 hour"), window_of("5 EVENTS"), window_of(dt.timedelta(minutes=1))
    (TimeWindow(seconds=3600.0), CountWindow(events=5), TimeWindow(seconds=60.0))
    """
    match written:
        case CountWindow() | TimeWindow():
            return written
        case dt.timedelta():
            return TimeWindow(written.total_seconds())
        case str():
            words = written.split()
            if len(words) == 2:
                return window_in_units(words[0], words[1])
    raise WindowError(f"{written!r} is not a window", hint="Write '1 HOUR' or '5 EVENTS', or give a timedelta.")


def window_in_units(number: str, unit: str) -> Window:
    """Return the window of a number and a unit as they are written."""
    try:
        count = float(number)
    except ValueError:
        raise WindowError(f"{number} is not a number", hint="Write '1 HOUR' or '5 EVENTS'.") from None
    word = unit.upper()
    singular = word[:-1] if word.endswith("S") else word
    if singular == "EVENT":
        if not count.is_integer():
            raise WindowError(f"a window must count whole events, not {number}")
        return CountWindow(int(number) if number.isdecimal() else int(count))
    if singular not in UNITS_S:
        known = [f"{each}S" for each in ("EVENT", *UNITS_S)]
        hint = did_you_mean(word, known) or f"Units are {', '.join(known)}."
        raise WindowError(f"there is no unit {unit}", hint=hint)
    return TimeWindow(count * UNITS_S[singular])
