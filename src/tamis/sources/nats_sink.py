"""How do rows become messages of NATS, and not twice? Idempotent publishing.

Each row is published as JSON, and the task ends when the server has acknowledged all of its rows. Every message has
an id (`Nats-Msg-Id`); a stream drops a message whose id it has seen within its duplicate window. The id says where in
the query a row stands, so a batch that is run again after a crash, within the window, adds only what was missing.

What an aborted batch has published stays published: JetStream has no way to take it back, and the batch that is run
again says the same under the same ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from tamis.errors import did_you_mean
from tamis.sources.errors import ColumnError, OptionError
from tamis.sources.jetstream import JetStreamClient, OutgoingMessage
from tamis.sources.json_rows import json_rows
from tamis.sources.nats_address import asked_address
from tamis.sources.schemes.table import NATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tamis.sources.jetstream import StreamState
    from tamis.sources.nats_address import NatsAddress
    from tamis.sources.options import Options
    from tamis.sources.place import TaskNames

_PATIENCE_S = 3.0
"""A person waits for an answer: a server that is not there is told soon."""
_PUBLISHED_BYTES = 8 << 20
_GAP = re.compile(r"\{([^{}]*)\}")


@dataclass
class PublishedCounts:
    """What a task has published: how many messages, and how many of them the stream had already."""

    messages: int
    known: int


@dataclass(frozen=True)
class NatsWriting:
    """Where rows go, and under which subjects and ids."""

    address: NatsAddress
    timeout_s: float
    id_columns: tuple[str, ...]
    run: str

    @classmethod
    def asked(cls, options: Options, columns: Sequence[str]) -> NatsWriting:
        """Read options; refuse them before anything is written if they name columns that are not there."""
        address = asked_address(options)
        id_columns = tuple(name.strip() for name in (options.text("id") or "").split(",") if name.strip())
        for name in (*_GAP.findall(address.subject or ""), *id_columns):
            if name not in columns:
                hint = did_you_mean(name, columns)
                known = ", ".join(columns)
                raise ColumnError(f"there is no column {name!r}, only {known}" + (f". {hint}" if hint else ""))
        return cls(address, options.seconds("timeout_s", 10), id_columns, str(uuid4()))

    def connected(self) -> JetStreamClient:
        """Return a connection; `with` closes it."""
        return JetStreamClient(self.address, self.timeout_s)

    def write(self, batches: Iterable[pa.RecordBatch], place: TaskNames) -> PublishedCounts:
        """Publish rows; return when all of them are acknowledged."""
        count = known = 0
        with self.connected() as connection:
            subject: str | None = None
            for batch in batches:
                if subject is None:
                    subject = self.address.subject or only_subject(self.address, connection.state())
                for part in self._publications(batch, subject, place, count):
                    known += connection.publish(part)
                    count += len(part)
        return PublishedCounts(count, known)

    def _publications(
        self, batch: pa.RecordBatch, subject: str, place: TaskNames, count: int
    ) -> Iterator[Sequence[OutgoingMessage]]:
        """Yield messages in portions of moderate size."""
        subjects = _filled(subject, batch)
        named = [batch.column(name).to_pylist() for name in self.id_columns]
        part: list[OutgoingMessage] = []
        size = 0
        headers = {"Content-Type": "application/json", "Tamis-Batch": place.batch_name}
        for number, row in enumerate(json_rows(batch)):
            body = row.encode()
            where = subjects[number]
            if named:
                name = "-".join(str(values[number]) for values in named)
            else:
                name = place.name(count + number, where.encode(), body)
            part.append(OutgoingMessage(where, name, body, headers))
            size += len(body)
            if size >= _PUBLISHED_BYTES:
                yield part
                part, size = [], 0
        if part:
            yield part


def nats_writing(url: str, options: Mapping[str, str], columns: Sequence[str]) -> NatsWriting:
    """Return how rows with these columns are written to an address."""
    return NatsWriting.asked(NATS.sink_options({**options, "url": url}), columns)


def require_address(url: str, options: Mapping[str, str]) -> NatsAddress:
    """Return the stream that an address names; raise if it or an option means nothing."""
    asked = NATS.sink_options({**options, "url": url})
    asked.seconds("timeout_s", 10)
    return asked_address(asked)


def require_sink(url: str, options: Mapping[str, str]) -> None:
    """Raise unless there is a stream at an address that can be written to."""
    address = require_address(url, options)
    with JetStreamClient(address, _PATIENCE_S) as connection:
        state = connection.state()
    if address.subject is None:
        only_subject(address, state)


def only_subject(address: NatsAddress, state: StreamState) -> str:
    """Return the subject of a stream that has just one; which of many to take is not for us to guess."""
    if len(state.subjects) == 1 and not re.search(r"[*>]", state.subjects[0]):
        return state.subjects[0]
    takes = ", ".join(state.subjects) or "none"
    raise OptionError(f"{address} takes the subjects {takes}: say which one (?subject=..., also with {{column}} in it)")


def _filled(subject: str, batch: pa.RecordBatch) -> list[str]:
    """Return the subject of every row: `matches.{subscription_id}` with the values put in."""
    gaps = {name: batch.column(name).to_pylist() for name in _GAP.findall(subject)}
    if not gaps:
        return [subject] * batch.num_rows
    return [
        _GAP.sub(lambda gap, row=row: token(gaps[gap[1]][row]), subject)  # type: ignore[misc]
        for row in range(batch.num_rows)
    ]


def token(value: object) -> str:
    """Write a value as one token of a subject: what has a meaning there is written as in URLs.

    >>> token(17), token("a.b c"), token("Größe"), token(None)
    ('17', 'a%2Eb%20c', 'Größe', '_')
    """
    text = "_" if value is None or value == "" else str(value)
    return re.sub(r"[\s.*>%\x00-\x1f\x7f]", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), text)
