"""Which subscribers want which events? The matches of a group, by subscriber.

What is in force now is matched by the broker's routing table. Versions of subscriptions that were replaced, by which
events of the past are judged, lie in a matcher of their own that only the pass over the log asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.service.subscribers import Version

Hits: TypeAlias = "dict[str, list[tuple[int, list[str]]]]"
"""By subscriber: the index of an event in its group, and the keys of the subscriptions that want it; ascending."""


class Interest:
    """What a broker's clients want of a group of events."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def hits(self, records: Sequence[Mapping[str, Any]], names: Set[str]) -> tuple[Hits, list[int]]:
        """Return what these subscribers want of a group, and how many subscribers in all want each event."""
        hits: Hits = {}
        counts = []
        for index, record in enumerate(records):
            wanted = self._broker.table.match(record)
            counts.append(len(wanted))
            for name, keys in wanted.items():
                if name in names:
                    hits.setdefault(name, []).append((index, [str(key) for key in keys]))
        return hits, counts

    def all_of(self, record: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return everybody who wants an event, with the keys."""
        return {name: [str(key) for key in keys] for name, keys in self._broker.table.match(record).items()}


class PastVersions:
    """Subscriptions that were replaced, while events that they count for are not done."""

    def __init__(self, schema: Schema | None) -> None:
        self._matcher = Matcher(schema=schema)
        self._versions: dict[int, tuple[str, Version]] = {}
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._versions)

    def add(self, name: str, version: Version) -> None:
        """Keep a version of a subscriber's subscription."""
        self._versions[self._next] = name, version
        self._numbers[name, version.key, version.number] = self._next
        self._matcher.add(self._next, version.effective)
        self._next += 1

    def remove(self, name: str, version: Version) -> None:
        """Forget a version."""
        number = self._numbers.pop((name, version.key, version.number))
        del self._versions[number]
        self._matcher.remove(number)

    def hits(self, records: Sequence[Mapping[str, Any]], firsts: Sequence[int], names: Set[str]) -> Hits:
        """Return what old versions want of events at these positions, each of the events that it counts for."""
        hits: Hits = {}
        if not self._versions:
            return hits
        for index, (record, position) in enumerate(zip(records, firsts, strict=True)):
            for number in self._matcher.match(record):
                name, version = self._versions[number]
                if name not in names or not version.counts_for(position):
                    continue
                of_name = hits.setdefault(name, [])
                if of_name and of_name[-1][0] == index:
                    of_name[-1][1].append(version.key)
                else:
                    of_name.append((index, [version.key]))
        return hits
