"""What would an event be like that every rule has something to say about? Made-up events (a warm-up).

Kernels are compiled, or read from disk, when they are called first, each for the types of its arguments; and which are
called depends on what events hold. So a matcher is warmed with events that have every attribute its rules ask for, with
values of the kinds that they compare with: whole numbers and doubles are two.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from tamis.matching.axes import BOOLEAN, STRING, TIME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.matching.sightings import Asked

SIZES = (1, 2, 5, 24, 255)
"""Of groups. From 256 events on a matcher would take them as a sample of the traffic, which they are not."""
_MIDNIGHT = dt.datetime(2000, 1, 1)


def made_up(asked: Iterable[Asked], count: int, *, is_whole: bool) -> list[dict[str, Any]]:
    """Return so many events that have all of what is asked for; numbers are whole ones, or doubles.

    >>> from tamis.matching.sightings import Asked
    >>> made_up([Asked(("price",), "number"), Asked(("at", "city"), "string")], 2, is_whole=True)
    [{'price': 0, 'at': {'city': 'word 0'}}, {'price': 1, 'at': {'city': 'word 1'}}]
    """
    paths = list(asked)
    events: list[dict[str, Any]] = []
    for number in range(count):
        event: dict[str, Any] = {}
        for path, kind in paths:
            record: Any = event
            for name in path[:-1]:
                record = record.setdefault(name, {})
                if type(record) is not dict:  # asked for as a value, and as a record
                    break
            else:
                record.setdefault(path[-1], _value(kind, number, is_whole))
        events.append(event)
    return events


def _value(kind: str | None, number: int, is_whole: bool) -> Any:
    if kind == STRING:
        return f"word {number}"
    if kind == BOOLEAN:
        return number % 2 == 0
    if kind == TIME:
        return _MIDNIGHT + dt.timedelta(hours=number)
    return number if is_whole else number + 0.5
