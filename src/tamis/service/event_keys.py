"""Has this event come before? The idempotency keys of publishers.

A publisher that had no answer sends its events again, under the same source and id. The keys of the latest events are
remembered with their positions, so that such an event is answered and not taken twice. Remembered are the last `most`
keys, and those of the last `least_s` seconds if that is more, but never more than `ceiling`.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


class _Named(msgspec.Struct):
    source: str
    id: str


_DECODER = msgspec.json.Decoder(_Named)


def event_key(body: bytes) -> str:
    r"""Return the key of a stored event: its source and its id.

    >>> event_key(b'{"id": "7", "source": "/shop", "data": {"price": 3}}')
    '/shop\n7'
    """
    named = _DECODER.decode(body)
    return f"{named.source}\n{named.id}"


MOST = 200_000
LEAST_S = 600.0
CEILING = 2_000_000


class EventKeys:
    """The keys of the latest events.

    >>> keys = EventKeys(most=2, least_s=0)
    >>> for position, key in enumerate("abc", 1):
    ...     keys.remember([(key, position)], now_us=position)
    >>> keys.get("a"), keys.get("c")
    (None, 3)
    """

    def __init__(self, most: int = MOST, least_s: float = LEAST_S, ceiling: int = CEILING) -> None:
        self._positions: dict[str, int] = {}  # in the order in which they came, which is how they are forgotten
        self._groups: deque[tuple[int, int]] = deque()
        """When keys came, and how many."""
        self._most, self._least_us, self._ceiling = most, int(least_s * 1e6), ceiling

    def __len__(self) -> int:
        return len(self._positions)

    def get(self, key: str) -> int | None:
        """Return the position of the event that has a key; None if it is not known."""
        return self._positions.get(key)

    def remember(self, keys: Iterable[tuple[str, int]], now_us: int) -> None:
        """Remember keys that are not known, with their positions."""
        before = len(self._positions)
        self._positions.update(keys)
        if added := len(self._positions) - before:
            self._groups.append((now_us, added))
        while self._groups and self._may_go(now_us):
            _, count = self._groups.popleft()
            for key in list(islice(self._positions, count)):
                del self._positions[key]

    def _may_go(self, now_us: int) -> bool:
        """May the oldest group be forgotten, and is it time to?"""
        taken_us, count = self._groups[0]
        if len(self._positions) > self._ceiling:
            return True
        return len(self._positions) - count >= self._most and taken_us < now_us - self._least_us

    def forget(self, keys: Iterable[str]) -> None:
        """Forget keys of events that were not written after all."""
        for key in keys:
            if self._positions.pop(key, None) is not None:
                self._shrink()

    def _shrink(self) -> None:
        """Let the newest group count one key less: what was not written has only just come."""
        taken_us, count = self._groups.pop()
        if count > 1:
            self._groups.append((taken_us, count - 1))
