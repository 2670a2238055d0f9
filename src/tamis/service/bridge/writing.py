"""How do rows become events of a broker, and not twice? Deterministic keys of CloudEvents.

Each row is the data of a CloudEvent, as JSON, and the task ends when the broker has all of its rows on disk. A broker
takes an event whose source and id it knows for the one that it has. The id says where in the query a row stands, so a
batch that is run again after a crash, while the broker remembers its keys (`limits.keys`), adds only what was missing.

What an aborted batch has published stays published, and the batch that is run again says the same under the same ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from tamis.errors import did_you_mean
from tamis.service import wire
from tamis.service.bridge.address import BrokerAddress, asked_address
from tamis.service.bridge.connection import BrokerConnection
from tamis.service.bridge.reading import LOOKING_PATIENCE_S
from tamis.service.client.events import DEFAULT_TYPE
from tamis.sources.errors import ColumnError, OptionError
from tamis.sources.json_rows import json_rows, json_writer
from tamis.sources.schemes.table import BROKER
from tamis.sources.webhook import portions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tamis.sources.options import Options
    from tamis.sources.place import TaskNames

DEFAULT_SOURCE = "/tamis"
_ATTRIBUTES = ("type", "source", "subject", "time")
"""The context attributes that options say, each as a text with columns in braces."""
_GAP = re.compile(r"\{([^{}]*)\}")


@dataclass
class PublishedEvents:
    """What a task has published: how many events, and how many of them the broker had already."""

    events: int
    known: int


@dataclass(frozen=True)
class EventWriting:
    """Where rows go, and as what events."""

    address: BrokerAddress
    attributes: Mapping[str, str]
    id_columns: tuple[str, ...]
    batch_rows: int
    batch_bytes: int
    patience_s: float
    run: str

    @classmethod
    def asked(cls, options: Options, columns: Sequence[str] | None) -> EventWriting:
        """Read options; refuse them before anything is written if they name columns that are not there."""
        attributes = {name: text for name in _ATTRIBUTES if (text := options.text(name)) is not None}
        for name, text in attributes.items():
            if not text:
                raise OptionError(f"{name} of tamis is empty; expected a text, perhaps with {{column}} in it")
        id_columns = tuple(name.strip() for name in (options.text("id") or "").split(",") if name.strip())
        named = [gap for text in attributes.values() for gap in _GAP.findall(text)]
        for name in (*named, *id_columns):
            if columns is not None and name not in columns:
                hint = did_you_mean(name, columns)
                known = ", ".join(columns)
                raise ColumnError(f"there is no column {name!r}, only {known}" + (f". {hint}" if hint else ""))
        return cls(
            address=asked_address(options),
            attributes={"source": DEFAULT_SOURCE, **attributes},
            id_columns=id_columns,
            batch_rows=options.number("batch_rows", 500),
            batch_bytes=options.number("batch_bytes", 1 << 20),
            patience_s=options.seconds("patience_s", 60),
            run=str(uuid4()),
        )

    def write(self, batches: Iterable[pa.RecordBatch], place: TaskNames) -> PublishedEvents:
        """Publish rows; return when all of them are on the broker's disk."""
        done = PublishedEvents(0, 0)
        with BrokerConnection(self.address, self.patience_s) as connection:
            for batch in batches:
                for part in portions(self._events(batch, place, done.events), self.batch_rows, self.batch_bytes):
                    answer = connection.ask("POST", "/events", body=[msgspec.Raw(event) for event in part])
                    done = PublishedEvents(done.events + len(part), done.known + int(answer.get("known", 0)))
        return done

    def _events(self, batch: pa.RecordBatch, place: TaskNames, count: int) -> Iterator[str]:
        """Yield the events of rows as JSON; `count` rows of the task came before."""
        context = {name: filled(text, batch) for name, text in self.attributes.items()}
        if "type" not in context:
            context["type"] = _own_types(batch)
        named = [batch.column(name).to_pylist() for name in self.id_columns]
        for number, row in enumerate(json_rows(batch)):
            members: dict[str, Any] = {"specversion": "1.0", "id": ""}
            members |= {name: texts[number] for name, texts in context.items() if texts[number] is not None}
            if named:
                members["id"] = "-".join(str(values[number]) for values in named)
            else:
                members["id"] = place.name(count + number, wire.encode(members), row.encode())
            members["data"] = msgspec.Raw(row.encode())
            yield wire.encode(members).decode()


def filled(text: str, batch: pa.RecordBatch) -> list[str | None]:
    """Return a text for every row, with the values of columns put in; None where a column alone is asked for and NULL.

    >>> import pyarrow as pa
    >>> batch = pa.RecordBatch.from_pydict({"n": [1, None], "s": ["a", "b"]})
    >>> filled("{n}", batch), filled("x.{n}.{s}", batch), filled("x", batch)
    (['1', None], ['x.1.a', 'x..b'], ['x', 'x'])
    """
    gaps = {name: _texts(batch.column(name)) for name in _GAP.findall(text)}
    if whole := _GAP.fullmatch(text):
        return gaps[whole[1]]
    return [_GAP.sub(lambda gap, row=row: gaps[gap[1]][row] or "", text) for row in range(batch.num_rows)]  # type: ignore[misc]


def _texts(column: pa.Array) -> list[str | None]:
    write = json_writer(column.type)
    return [
        value if isinstance(value, str) else None if value is None else write(value).strip('"')
        for value in column.to_pylist()
    ]


def _own_types(batch: pa.RecordBatch) -> list[str | None]:
    """Return the types of events that do not say otherwise: the column `type` of a row, as for objects anywhere."""
    if "type" not in batch.schema.names:
        return [DEFAULT_TYPE] * batch.num_rows
    values = batch.column("type").to_pylist()
    return [value if isinstance(value, str) and value and value.isprintable() else DEFAULT_TYPE for value in values]


def event_writing(url: str, options: Mapping[str, str], columns: Sequence[str]) -> EventWriting:
    """Return how rows with these columns are written to an address."""
    return EventWriting.asked(BROKER.sink_options({**options, "url": url}), columns)


def require_address(url: str, options: Mapping[str, str]) -> EventWriting:
    """Raise if an address or an option means nothing."""
    return EventWriting.asked(BROKER.sink_options({**options, "url": url}), None)


def require_sink(url: str, options: Mapping[str, str]) -> None:
    """Raise unless a broker answers at an address, and knows us."""
    writing = require_address(url, options)
    with BrokerConnection(writing.address, LOOKING_PATIENCE_S) as connection:
        connection.ask("GET", "/log")
