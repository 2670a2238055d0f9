"""Which events were here before? A bounded memory of keys, first in, first out.

An event's key is its name in the whole network. A broker that sees a key again passes the event on no more. It
remembers so many keys and no more: who comes again after that many others is taken for a new event. Of what its own
clients published it remembers who did: nobody else may withdraw it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.routing.messages import Key


class LatestKeys:
    """The latest so many keys.

    >>> keys = LatestKeys(2)
    >>> keys.add("a"), keys.add("b"), keys.add("a"), keys.add("c")
    (None, None, None, None)
    >>> "a" in keys, list(keys)
    (False, ['b', 'c'])
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._keys: OrderedDict[Key, str | None] = OrderedDict()

    def __contains__(self, key: Key) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[Key]:
        """The oldest first."""
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, key: Key, publisher: str | None = None) -> None:
        """Remember a key, and whose it is; one that is remembered already keeps its place."""
        self._keys[key] = publisher
        if len(self._keys) > self._most:
            self._keys.popitem(last=False)

    def publisher(self, key: Key) -> str | None:
        """Return who is remembered to have published an event; None if nobody is."""
        return self._keys.get(key)

    def clear(self) -> None:
        """Forget everything."""
        self._keys.clear()
