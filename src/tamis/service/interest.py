"""Which subscribers want which events? The matches of a group, by subscriber.

What is in force now is matched by the broker's routing table, a group at once, as arrays of handles; names and keys are
looked up only for those who are asked about, because most subscribers are not connected. Versions of subscriptions that
were replaced, by which events of the past are judged, lie in a matcher of their own that only the pass over the log
asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis.matching import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence, Set

    import numpy.typing as npt

    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.routing.wanted import Wanted
    from tamis.service.subscribers import Version

Hits: TypeAlias = "dict[str, list[tuple[int, list[str]]]]"
"""By subscriber: the index of an event in its group, and the keys of the subscriptions that want it; ascending."""


class Interest:
    """What a broker's clients want of a group of events."""

    def __init__(self, broker: Broker) -> None:
        self._table = broker.table
        self._is_followed = np.zeros(64, np.bool_)
        """Of each client's handle, whether what it wants is asked for as events come."""

    def follow(self, name: str) -> None:
        """Ask for what a subscriber wants as events come."""
        handle = self._table.client_handle(name)
        if handle is None:
            return  # a neighbour, about which the broker is asked
        while handle >= len(self._is_followed):
            self._is_followed = np.concatenate([self._is_followed, np.zeros_like(self._is_followed)])
        self._is_followed[handle] = True

    def leave(self, name: str) -> None:
        """Ask no more for what a subscriber wants; before it is detached, because its handle is given out again."""
        handle = self._table.client_handle(name)
        if handle is not None and handle < len(self._is_followed):
            self._is_followed[handle] = False

    def hits(
        self, records: Sequence[Mapping[str, Any]], names: Set[str] | None = None
    ) -> tuple[Hits, list[int], Wanted]:
        """Return what these subscribers, or those that are followed, want of a group, and how many want each event.

        The last of the three is all of it as the routing table has it, from which the broker decides what neighbours
        get.
        """
        table = self._table
        wanted = table.match_many(records)
        matches = wanted.clients
        starts = matches.starts()[:-1]
        counts = np.bincount(matches.events[starts], minlength=len(records))
        counts += np.bincount(wanted.neighbours.events, minlength=len(records))
        is_asked = self._is_followed if names is None else self._mask(names)
        inside = matches.clients < len(is_asked)
        rows = np.flatnonzero(inside & is_asked[np.where(inside, matches.clients, 0)])
        hits: Hits = {}
        last: tuple[int, int] | None = None
        keys: list[str] = []
        for event, client, entry in zip(
            matches.events[rows].tolist(), matches.clients[rows].tolist(), matches.entries[rows].tolist(), strict=True
        ):
            key = str(table.key(entry))
            if (event, client) == last:
                keys.append(key)
            else:
                last, keys = (event, client), [key]
                hits.setdefault(table.client_name(client), []).append((event, keys))
        return hits, counts.tolist(), wanted

    def _mask(self, names: Set[str]) -> npt.NDArray[np.bool_]:
        """Return of each client's handle whether it is asked about."""
        handles = [handle for handle in map(self._table.client_handle, names) if handle is not None]
        mask = np.zeros(max(handles, default=0) + 1, np.bool_)
        mask[handles] = True
        return mask

    def all_of(self, record: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return everybody who wants an event, with the keys."""
        return {name: [str(key) for key in keys] for name, keys in self._table.match(record).items()}

    def compile(self) -> None:
        """Lay out what came last, so that single events need not look for it."""
        self._table.compile()


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

    def hits(self, records: Sequence[Mapping[str, Any]], positions: Iterable[int], names: Set[str]) -> Hits:
        """Return what old versions want of events at these positions, each of the events that it counts for."""
        hits: Hits = {}
        if not self._versions:
            return hits
        for index, (record, position) in enumerate(zip(records, positions, strict=True)):
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
