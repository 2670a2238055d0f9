"""How do rows go to a webhook, and not twice? Idempotency keys in requests.

As lists of JSON objects, of limited size. What is sent again has the key (`Idempotency-Key`) that it had before, so at
a receiver that passes over keys it knows, everything comes once; at any other at least once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from tamis.sources.errors import OptionError
from tamis.sources.json_rows import json_rows
from tamis.sources.posting import Posting, checked_url
from tamis.sources.schemes.table import WEBHOOK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tamis.sources.options import Options
    from tamis.sources.place import TaskNames


@dataclass
class Posted:
    """What a task has sent: rows, requests, and attempts that did not succeed."""

    rows: int
    requests: int
    failures: int


@dataclass(frozen=True)
class WebhookWriting:
    """Where rows go, and how many at once."""

    url: str
    headers: Mapping[str, str]
    batch_rows: int
    batch_bytes: int
    timeout_s: float
    patience_s: float
    run: str

    @classmethod
    def asked(cls, options: Options) -> WebhookWriting:
        headers = options.beginning_with("header.")
        for name, value in headers.items():
            if not name or any(character in name + value for character in "\r\n\0"):
                raise OptionError(f"header.{name!r} of webhook is not a header")
        return cls(
            url=checked_url(options.text("url") or options.text("path")),
            headers=headers,
            batch_rows=options.number("batch_rows", 500),
            batch_bytes=options.number("batch_bytes", 1 << 20),
            timeout_s=options.seconds("timeout_s", 10),
            patience_s=options.seconds("patience_s", 60),
            run=str(uuid4()),
        )

    def write(self, batches: Iterable[pa.RecordBatch], place: TaskNames) -> Posted:
        """Post rows; return when all of them are taken."""
        posting = Posting(self.url, self.headers, self.timeout_s, self.patience_s)
        done = Posted(0, 0, 0)
        for part in portions((row for batch in batches for row in json_rows(batch)), self.batch_rows, self.batch_bytes):
            body = b"[" + b",".join(part) + b"]"
            rows = range(done.rows, done.rows + len(part))
            attempts = posting.post(body, place.portion(done.requests, rows, body))
            done = Posted(done.rows + len(part), done.requests + 1, done.failures + attempts - 1)
        return done


def portions(rows: Iterable[str], most_rows: int, most_bytes: int) -> Iterator[list[bytes]]:
    """Put rows together, as many as may be sent at once; a row that is too large alone goes alone.

    >>> list(portions(["1", "22", "333", "4"], most_rows=2, most_bytes=6))
    [[b'1', b'22'], [b'333'], [b'4']]
    """
    part: list[bytes] = []
    size = 1  # a bracket, and with each row a comma or the other one
    for row in rows:
        written = row.encode()
        if part and (len(part) == most_rows or size + len(written) + 1 > most_bytes):
            yield part
            part, size = [], 1
        part.append(written)
        size += len(written) + 1
    if part:
        yield part


def asked_writing(options: Mapping[str, str]) -> WebhookWriting:
    """Read what options say, the address among them."""
    return WebhookWriting.asked(WEBHOOK.sink_options(options))


def webhook_writing(url: str, options: Mapping[str, str], columns: Sequence[str] = ()) -> WebhookWriting:
    """Return how rows are written to an address, whatever columns they have."""
    return asked_writing({**options, "url": url})


def require_address(url: str, options: Mapping[str, str]) -> None:
    """Raise if an address or an option means nothing."""
    webhook_writing(url, options)
