"""Which row is this, when it comes a second time? Idempotency keys of rows.

A micro-batch that is run again after a crash sends its rows again. A receiver that knows the names of what it has can
pass over what comes twice, if the names are the same both times: the query, the number of the batch, the partition
and the number in it. A digest of the content is part of every name. If a batch comes in another order the second
time, as it may behind a shuffle, then equal names never stand for different rows: something may come twice, and
nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol


class TaskNames(Protocol):
    """Who knows what rows are called."""

    @property
    def batch_name(self) -> str: ...

    def name(self, number: int, *content: bytes) -> str: ...

    def portion(self, number: int, rows: range, body: bytes) -> str: ...


@dataclass(frozen=True)
class TaskPlace:
    """A partition of a batch of a query.

    >>> place = TaskPlace("q", 7, 0)
    >>> place.name(12, b"abc") == place.name(12, b"abc"), place.name(12, b"abc") == place.name(13, b"abc")
    (True, False)
    >>> place.name(12, b"abc")
    'q-7-0-12-0b056345766a3d65'
    """

    query: str
    batch: int
    partition: int

    def name(self, number: int, *content: bytes) -> str:
        """Return the name of what stands at a number of the partition."""
        digest = blake2b(digest_size=8)
        for part in content:
            digest.update(len(part).to_bytes(8, "little") + part)
        return f"{self.query}-{self.batch}-{self.partition}-{number}-{digest.hexdigest()}"

    def portion(self, number: int, rows: range, body: bytes) -> str:
        """Return the name of several rows that are sent at once."""
        return self.name(number, body)

    @property
    def batch_name(self) -> str:
        """Return the name of the batch, which all of its partitions share."""
        return f"{self.query}-{self.batch}"
