"""Who wants which event of a group? A table of arrays, in place of an object for each pair.

Of a group of some hundred events there are tens of thousands of matches. As arrays of numbers they cost nanoseconds
each, as objects a microsecond; and a driver looks at few of them by name: most clients are not connected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


class ClientMatches(NamedTuple):
    """Which entries of clients want which event. A row is an event and an entry that wants it.

    events   int64[:]   the number of the event within its group
    clients  int64[:]   the handle of the client (`RoutingTable.client_name`)
    entries  int64[:]   the handle of its entry (`RoutingTable.key`)

    Rows are sorted by event, then by client; those of one event and client stand in the order in which
    `RoutingTable.match` lists the keys. Handles are good until the table is changed.
    """

    events: Integers
    clients: Integers
    entries: Integers

    def starts(self) -> Integers:
        """Return where deliveries begin, and the end: delivery n is the rows from `starts[n]` to `starts[n + 1]`.

        A delivery is an event and a client, whatever the number of its entries that want it.

        >>> ClientMatches(np.array([0, 0, 0, 1]), np.array([4, 4, 7, 4]), np.array([1, 2, 3, 1])).starts().tolist()
        [0, 2, 3, 4]
        """
        count = len(self.events)
        is_first = np.ones(count + 1, np.bool_)
        is_first[1:count] = (np.diff(self.events) != 0) | (np.diff(self.clients) != 0)
        return np.flatnonzero(is_first) if count else np.zeros(1, np.int64)


class NeighbourMatches(NamedTuple):
    """Which neighbours want which event. A row is an event and a neighbour, each pair once.

    events      int64[:]   the number of the event within its group; rows are sorted by it
    neighbours  int64[:]   the place of the neighbour in `names`
    names       tuple      neighbours
    """

    events: Integers
    neighbours: Integers
    names: tuple[str, ...]


class GroupMatches(NamedTuple):
    """Who wants which event of a group."""

    clients: ClientMatches
    neighbours: NeighbourMatches


def by_event_and_client(events: Integers, clients: Integers, entries: Integers, client_count: int) -> ClientMatches:
    """Return matches that are sorted by event as rows sorted by event and client, otherwise in their order."""
    both = events * client_count + clients
    bits = len(both).bit_length()
    if len(both) and int(both.max()).bit_length() + bits < 63:
        # One sort of numbers that carry their place along takes a fifth of the time of a stable sort of places.
        both = (both << bits) | np.arange(len(both))
        both.sort()
        order = both & ((1 << bits) - 1)
    else:
        order = np.argsort(both, kind="stable")
    return ClientMatches(events[order], clients[order], entries[order])


def joined(parts: list[tuple[int, ClientMatches]]) -> ClientMatches:
    """Return the matches of some groups, each with the number of its first event, as those of one."""
    if len(parts) == 1 and parts[0][0] == 0:
        return parts[0][1]
    nothing = np.zeros(0, np.int64)
    return ClientMatches(
        np.concatenate([nothing, *(first + each.events for first, each in parts)]),
        np.concatenate([nothing, *(each.clients for _, each in parts)]),
        np.concatenate([nothing, *(each.entries for _, each in parts)]),
    )
