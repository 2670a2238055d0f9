"""Which subscribers want which events? The matches of a group, by subscriber.

What is in force now is matched by the broker's routing table, a group at once, as arrays of handles; names and keys are
looked up only for those who are asked about, because most subscribers are not connected. Versions of subscriptions that
were replaced, by which events of the past are judged, lie in a matcher of their own that only the pass over the log
asks; and so do, for a pass, the subscriptions of those it is made for, if these are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis.matching import Matcher
from tamis.routing import ClientMatches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence, Set

    import numpy.typing as npt

    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.routing.wanted import GroupMatches
    from tamis.service.subscribers import Subscriber, Version

Hits: TypeAlias = "dict[str, list[tuple[int, list[str]]]]"
"""By subscriber: the index of an event in its group, and the keys of the subscriptions that want it; ascending."""
MOST_CLOSE = 1_024
"""So many subscriptions are laid out for a pass; that takes some 30 ms, in which nothing else is done."""
_LAID_OUT_SHARE = 8
"""Subscriptions are laid out for a pass if they are at most one of so many of all."""
_WARM_SIZES = (1, 2, 8, 32, 128, 512)


class Interest:
    """What a broker's clients want of a group of events."""

    def __init__(self, broker: Broker) -> None:
        self._table = broker.table
        self._is_followed = np.zeros(64, np.bool_)
        """Of each client's handle, whether what it wants is asked for as events come."""
        self.wanted: GroupMatches = self._table.match_many([])
        """What the routing table said of the last group, from which the broker decides what neighbours get."""

    @property
    def subscription_count(self) -> int:
        """How many subscriptions are matched."""
        return len(self._table)

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

    def hits(self, records: Sequence[Mapping[str, Any]], names: Set[str] | None = None) -> Hits:
        """Return what these subscribers, or those that are followed, want of a group."""
        is_asked = self._is_followed if names is None else self._mask(names)
        self.wanted = self._table.match_many(records, is_asked)
        return self._by_name(self.wanted.clients)

    def hits_and_counts(self, records: Sequence[Mapping[str, Any]]) -> tuple[Hits, list[int]]:
        """Return what those that are followed want of a group, and how many subscribers there are for each event."""
        self.wanted = wanted = self._table.match_many(records)
        matches = wanted.clients
        starts = matches.starts()[:-1]
        counts = np.bincount(matches.events[starts], minlength=len(records))
        counts += np.bincount(wanted.neighbours.events, minlength=len(records))
        is_asked = self._is_followed
        inside = matches.clients < len(is_asked)
        rows = np.flatnonzero(inside & is_asked[np.where(inside, matches.clients, 0)])
        return self._by_name(ClientMatches(*(column[rows] for column in matches))), counts.tolist()

    def _by_name(self, matches: ClientMatches) -> Hits:
        """Return matches by subscriber, with keys."""
        table = self._table
        hits: Hits = {}
        last: tuple[int, int] | None = None
        keys: list[str] = []
        for event, client, entry in zip(*(column.tolist() for column in matches), strict=True):
            key = str(table.key(entry))
            if (event, client) == last:
                keys.append(key)
            else:
                last, keys = (event, client), [key]
                hits.setdefault(table.client_name(client), []).append((event, keys))
        return hits

    def _mask(self, names: Set[str]) -> npt.NDArray[np.bool_]:
        """Return of each client's handle whether it is asked about."""
        handles = [handle for handle in map(self._table.client_handle, names) if handle is not None]
        mask = np.zeros(max(handles, default=0) + 1, np.bool_)
        mask[handles] = True
        return mask

    def all_of(self, records: Sequence[Mapping[str, Any]]) -> list[dict[str, list[str]]]:
        """Return of each event everybody who wants it, with the keys."""
        table = self._table
        wanted = table.named(table.match_many(records), len(records)) if len(records) > 1 else map(table.match, records)
        return [{name: [str(key) for key in keys] for name, keys in of_event.items()} for of_event in wanted]

    @property
    def open_count(self) -> int:
        """How many subscriptions are not laid out yet, and asked one by one."""
        return self._table.open_count

    def warm(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Get kernels ready for groups of every size; lay subscriptions out by events that came before, if there are.

        The largest group comes first: a matcher learns from the first one of some hundred events.
        """
        self._table.warm()
        for size in (len(records), *_WARM_SIZES) if records else ():
            self.hits(records[:size])
        self.hits_and_counts(records[:1] or [{}])

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
        self._matcher.add(self._next, version.filter)
        self._next += 1

    def remove(self, name: str, version: Version) -> None:
        """Forget a version."""
        number = self._numbers.pop((name, version.key, version.number))
        del self._versions[number]
        self._matcher.remove(number)

    def hits(
        self, records: Sequence[Mapping[str, Any]], positions: Sequence[int], names: Set[str]
    ) -> tuple[Hits, Hits]:
        """Return what old versions want of events at these positions, each of the events that it counts for.

        First what conditions want, then what others need to see that remember earlier events.
        """
        hits: Hits = {}
        needed: Hits = {}
        if not self._versions:
            return hits, needed
        matches = self._matcher.match_shortcut_batch(records)
        for index, number in zip(matches.events.tolist(), matches.subscriptions.tolist(), strict=True):
            name, version = self._versions[number]
            if name in names and version.counts_for(positions[index]):
                _add(needed if version.is_stateful else hits, name, index, version.key)
        return hits, needed


class CloseInterest:
    """What a few subscribers want of the past: their subscriptions alone, in a matcher of their own.

    A pass for one subscriber need not ask the subscriptions of a hundred thousand others. The matcher is kept from one
    step to the next, for as long as it has everything that is asked about.
    """

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self._matcher = Matcher(schema=schema)
        self._versions: list[tuple[str, Version]] = []
        self._known: set[int] = set()
        """The versions that the matcher has, by identity; they are held, so that no other takes their place."""

    @staticmethod
    def suits(subscribers: Sequence[Subscriber], subscription_count: int) -> bool:
        """Are these so few, of so many subscriptions, that to lay them out anew is sooner done than to ask all?"""
        count = sum(len(subscriber.subscriptions) for subscriber in subscribers)
        return count <= min(MOST_CLOSE, subscription_count // _LAID_OUT_SHARE)

    def hits(self, records: Sequence[Mapping[str, Any]], subscribers: Sequence[Subscriber]) -> Hits:
        """Return what `Interest.hits` does of these names, perhaps with keys in another order."""
        current = {subscriber.name: subscriber.subscriptions for subscriber in subscribers}
        asked = {id(version) for versions in current.values() for version in versions.values()}
        if not asked <= self._known:
            self._versions = [(name, version) for name in current for version in current[name].values()]
            self._known = asked
            self._matcher = Matcher(schema=self._schema)
            self._matcher.add_many({number: each.filter for number, (_, each) in enumerate(self._versions)})
        hits: Hits = {}
        matches = self._matcher.match_shortcut_batch(records)
        for index, number in zip(matches.events.tolist(), matches.subscriptions.tolist(), strict=True):
            name, version = self._versions[number]
            if id(version) in asked:
                _add(hits, name, index, version.key)
        return hits


def _add(hits: Hits, name: str, index: int, key: str) -> None:
    """Add a match to hits whose events ascend."""
    of_name = hits.setdefault(name, [])
    if of_name and of_name[-1][0] == index:
        of_name[-1][1].append(key)
    else:
        of_name.append((index, [key]))
