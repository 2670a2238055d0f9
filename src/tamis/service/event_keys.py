"""Has this event come before? The idempotency keys of publishers.

A publisher that had no answer sends its events again, under the same source and id. The keys of the latest events are
remembered with their positions, so that such an event is answered and not taken twice. Remembered are the last `most`
keys, and those of the last `least_s` seconds if that is more, but never more than `ceiling`.

A publisher may be as quick as it likes, so a key must cost little: 32 bytes of a page that holds thousands, for a
digest, the position, and the number of the key before it in the same chain of a hash table. A chain goes from the
newest key to the oldest, so to forget the oldest is to stop sooner, and pages are given back whole: many small objects
that grow and go would leave holes in the memory, as large as themselves.

The digest is of 128 bits (BLAKE2b). Two keys of one digest would be taken for one event. Among two million keys the
chance of any such pair is 1 in 10^26, and nobody can look for one in less than 2^64 tries.
"""

from __future__ import annotations

from array import array
from collections import deque
from hashlib import blake2b
from struct import Struct
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
"""More keys than this are not kept for the sake of time alone: they would take the memory of everything else."""

_RECORD = Struct("16sQQ")
"""A digest, the position, and the number of the next older key of the same chain."""
_PAGE_BITS = 12
_PAGE_KEYS = 1 << _PAGE_BITS
_FORGOTTEN = b"\0" * 16
_GROUPS = 128
"""`most` keys are forgotten in about so many steps, which bounds what is written down of when keys came."""


class _Group(msgspec.Struct):
    """Keys that came one behind the other, and are forgotten together."""

    latest_us: int
    first: int
    """The number of its first key; keys are numbered from 1 on as they come."""
    count: int


class EventKeys:
    """The keys of the latest events.

    >>> keys = EventKeys(most=2, least_s=0)
    >>> for position, key in enumerate("abc", 1):
    ...     keys.remember([(key, position)], now_us=position)
    >>> keys.get("a"), keys.get("c")
    (None, 3)
    """

    def __init__(self, most: int = MOST, least_s: float = LEAST_S, ceiling: int = CEILING) -> None:
        chain_bits = min(max(most, 64), CEILING).bit_length()
        self._chains = array("Q", bytes(8 << chain_bits))
        """The number of the newest key of each chain; 0 if there is none."""
        self._chain_mask = (1 << chain_bits) - 1
        self._pages: dict[int, bytearray] = {}
        self._groups: deque[_Group] = deque()
        self._first, self._last = 1, 0
        """Numbers of the oldest key that is remembered, and of the newest."""
        self._count = 0
        self._most, self._least_us, self._ceiling = most, int(least_s * 1e6), ceiling

    def __len__(self) -> int:
        return self._count

    def get(self, key: str) -> int | None:
        """Return the position of the event that has a key; None if it is not known."""
        remembered = self._find(_digest(key))
        return None if remembered is None else remembered[1]

    def _find(self, digest: bytes) -> tuple[int, int] | None:
        """Return the number and the position of a key that is remembered."""
        number, pages, first = self._chains[self._chain_of(digest)], self._pages, self._first
        while number >= first:
            known, position, older = _RECORD.unpack_from(pages[number >> _PAGE_BITS], _place(number))
            if known == digest:
                return number, position
            number = older
        return None

    def _chain_of(self, digest: bytes) -> int:
        return int.from_bytes(digest[:4]) & self._chain_mask

    def remember(self, keys: Iterable[tuple[str, int]], now_us: int) -> None:
        """Remember keys that are not known, with their positions."""
        for key, position in keys:
            self._write(_digest(key), position)
            if not self._groups or self._last - self._groups[-1].first > self._most // _GROUPS:
                self._groups.append(_Group(now_us, self._last, 0))
            group = self._groups[-1]
            group.latest_us = now_us
            group.count += 1
        while self._groups and self._may_go(now_us):
            self._count -= self._groups.popleft().count
            self._let_go(self._groups[0].first if self._groups else self._last + 1)

    def _write(self, digest: bytes, position: int) -> None:
        self._last += 1
        self._count += 1
        chain, page = self._chain_of(digest), self._pages.get(self._last >> _PAGE_BITS)
        if page is None:
            page = self._pages[self._last >> _PAGE_BITS] = bytearray(_PAGE_KEYS * _RECORD.size)
        _RECORD.pack_into(page, _place(self._last), digest, position, self._chains[chain])
        self._chains[chain] = self._last

    def _let_go(self, first: int) -> None:
        """Forget all keys before a number."""
        for page in range(self._first >> _PAGE_BITS, first >> _PAGE_BITS):
            self._pages.pop(page, None)
        self._first = first

    def _may_go(self, now_us: int) -> bool:
        """May the oldest group be forgotten, and is it time to?"""
        oldest = self._groups[0]
        if self._last - self._first >= self._ceiling:
            return True
        return self._count - oldest.count >= self._most and oldest.latest_us < now_us - self._least_us

    def forget(self, keys: Iterable[str]) -> None:
        """Forget keys of events that were not written after all."""
        for key in reversed(list(keys)):  # the newest first: those can be taken back without a trace
            digest = _digest(key)
            if (remembered := self._find(digest)) is not None:
                number = remembered[0]
                page, place = self._pages[number >> _PAGE_BITS], _place(number)
                # What was not written has only just come.
                group = next(group for group in reversed(self._groups) if group.first <= number)
                group.count -= 1
                self._count -= 1
                if number == self._last:
                    self._chains[self._chain_of(digest)] = _RECORD.unpack_from(page, place)[2]
                    self._last -= 1
                    if number == group.first:
                        self._groups.pop()
                else:
                    page[place : place + len(_FORGOTTEN)] = _FORGOTTEN


def _digest(key: str) -> bytes:
    return blake2b(key.encode(errors="surrogatepass"), digest_size=16).digest()


def _place(number: int) -> int:
    return (number & _PAGE_KEYS - 1) * _RECORD.size
