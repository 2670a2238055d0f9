"""What would events look like that have these statistics? Synthetic samples.

A matcher lays itself out by a sample of events. Where only statistics are left of them, a sample is drawn: each
attribute by itself, as if none knew of the others. Matchers look at one predicate at a time, so they see no difference.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.selectivity.statistics import AttributeStatistics, Statistics


def likely_events(statistics: Statistics, count: int = 2048, seed: int = 1) -> list[dict[str, Any]]:
    """Draw so many events.

    >>> from tamis.selectivity import Statistics
    >>> events = likely_events(Statistics.of([{"at": {"x": 1}}, {"at": {"x": 1}}, {}]), count=300)
    >>> 150 < sum(event.get("at") == {"x": 1} for event in events) < 250
    True
    """
    chance = Random(seed)
    events: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, about in statistics.attributes.items():
        *outer, last = name.split(".")
        for event, value in zip(events, _values(about, count, chance), strict=True):
            if value is not None:
                place = event
                for each in outer:
                    place = place.setdefault(each, {})
                place[last] = value
    return events


def _values(about: AttributeStatistics, count: int, chance: Random) -> list[Any]:
    # What was counted by its looks only, an array, says nothing of its values.
    choices: list[Any] = [None if isinstance(value, tuple) else value for value in about.frequent]
    weights = list(about.frequent.values())
    buckets = [(about.bounds[number], about.bounds[number + 1]) for number in range(len(about.counts))]
    places = [*range(len(choices) + len(buckets)), -1]
    drawn = chance.choices(places, [*weights, *about.counts, about.absent], k=count) if count else []
    values: list[Any] = []
    for place in drawn:
        if place < 0:
            values.append(None)
        elif place < len(choices):
            values.append(choices[place])
        else:
            low, high = buckets[place - len(choices)]
            values.append(_between(low, high, chance))
    return values


def _between(low: Any, high: Any, chance: Random) -> Any:
    """Return a value of a bucket."""
    if type(low) is int and type(high) is int:
        return chance.randint(min(low, high), max(low, high))
    if isinstance(low, float) or isinstance(high, float):
        return chance.uniform(float(low), float(high))
    return low if chance.random() < 0.5 else high
