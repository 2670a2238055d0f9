"""By which numbers are clients and their entries known? Handles, given out again when their owners are gone.

Who wants an event is computed for hundreds of events at once, in arrays; arrays have numbers in them, and names and
keys are looked up when somebody asks. A client has a handle as long as it is attached or has an entry, an entry as long
as it is there. A handle that is free is given out again, so that arrays by handle stay as long as there are owners.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.routing.errors import UnknownHandleError

if TYPE_CHECKING:
    from tamis.routing.messages import Key

Integers = npt.NDArray[np.int64]


class EntryHandles:
    """Clients and their entries by handle.

    >>> handles = EntryHandles()
    >>> handles.attach("ann"), handles.enter("bob", "cheap"), handles.enter("ann", "dear")
    (0, 0, 1)
    >>> handles.clients_of(np.array([0, 1])).tolist(), handles.key(1), handles.client_name(1)
    ([1, 0], 'dear', 'bob')
    >>> handles.leave("bob", "cheap")
    >>> handles.enter("cid", "cheap"), handles.client_name(1)
    (0, 'cid')
    """

    def __init__(self) -> None:
        self._clients: dict[str, int] = {}
        self._names: list[str | None] = []
        self._free_clients: list[int] = []
        self._attached: set[str] = set()
        self._entries: dict[str, dict[Key, int]] = {}
        self._keys: list[Key | None] = []
        self._free_entries: list[int] = []
        self._owners: Integers = np.zeros(64, np.int64)
        """The client of each entry, with room for more."""
        self._priorities: dict[int, int] = {}
        """By entry, where they are not 0."""

    @property
    def client_count(self) -> int:
        """How many client handles there are, the free ones included."""
        return len(self._names)

    def __len__(self) -> int:
        """How many entries there are."""
        return len(self._keys) - len(self._free_entries)

    # -- Clients

    def attach(self, client: str) -> int:
        """Keep a client's handle, whether it has entries or not; return it."""
        self._attached.add(client)
        return self._client(client)

    def detach(self, client: str) -> None:
        """Let a client's handle go with its last entry."""
        self._attached.discard(client)
        self._release(client)

    def _client(self, client: str) -> int:
        handle = self._clients.get(client)
        if handle is None:
            if self._free_clients:
                handle = self._free_clients.pop()
                self._names[handle] = client
            else:
                handle = len(self._names)
                self._names.append(client)
            self._clients[client] = handle
        return handle

    def _release(self, client: str) -> None:
        if client in self._clients and client not in self._attached and client not in self._entries:
            handle = self._clients.pop(client)
            self._names[handle] = None
            self._free_clients.append(handle)

    # -- Entries

    def enter(self, client: str, key: Key) -> int:
        """Give a new entry its handle."""
        owner = self._client(client)
        if self._free_entries:
            handle = self._free_entries.pop()
            self._keys[handle] = key
        else:
            handle = len(self._keys)
            self._keys.append(key)
            if handle == len(self._owners):
                self._owners = np.concatenate([self._owners, np.zeros_like(self._owners)])
        self._owners[handle] = owner
        self._entries.setdefault(client, {})[key] = handle
        return handle

    def leave(self, client: str, key: Key) -> None:
        """Take back the handle of an entry that is gone."""
        entries = self._entries[client]
        handle = entries.pop(key)
        self._keys[handle] = None
        self._priorities.pop(handle, None)
        self._free_entries.append(handle)
        if not entries:
            del self._entries[client]
            self._release(client)

    # -- Priorities

    def prioritise(self, client: str, key: Key, priority: int) -> None:
        """Give an entry another priority."""
        handle = self._entries[client][key]
        if priority:
            self._priorities[handle] = priority
        else:
            self._priorities.pop(handle, None)

    @property
    def has_priorities(self) -> bool:
        """Is the priority of any entry other than 0?"""
        return bool(self._priorities)

    def priority(self, client: str, key: Key) -> int:
        """Return the priority of an entry."""
        return self._priorities.get(self._entries[client][key], 0) if self._priorities else 0

    def order(self, events: Integers, entries: Integers) -> Integers | None:
        """Return the places of matches that are sorted by event, of one event the highest priority first.

        Those of one priority stay in their order. None: all stay where they are.
        """
        if not self._priorities:
            return None
        priorities = np.fromiter(map(self._priorities.get, entries.tolist(), repeat(0)), np.int64, len(entries))
        return np.lexsort((-priorities, events))

    # -- Looking up

    def entry(self, client: str, key: Key) -> int:
        """Return the handle of an entry."""
        return self._entries[client][key]

    def client(self, client: str) -> int | None:
        """Return the handle of a client; None if it has none."""
        return self._clients.get(client)

    def clients_of(self, entries: Integers) -> Integers:
        """Return whose some entries are."""
        return self._owners[entries]

    def key(self, entry: int) -> Key:
        """Return what its client calls an entry."""
        key = self._keys[entry] if 0 <= entry < len(self._keys) else None
        if key is None:
            raise UnknownHandleError("entry", entry)
        return key

    def client_name(self, client: int) -> str:
        """Return the name of a client."""
        name = self._names[client] if 0 <= client < len(self._names) else None
        if name is None:
            raise UnknownHandleError("client", client)
        return name
