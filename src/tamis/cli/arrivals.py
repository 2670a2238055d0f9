"""How do events come to `tamis run`, and what are they called? Sources, and their offsets.

In batches, each with the names of its events and with what to do when its matches have arrived. A message of NATS is
called by its stream and its number, a row of a file by its place and its content, and any event by the attribute that
`--event-id` names. A line of a pipe has no name that a second run would give it.
"""

from __future__ import annotations

import json
import sys
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from rich.text import Text

from tamis.cli.output import show, to_complain, visible
from tamis.sources.match_names import name_of, named_by
from tamis.sources.nats_address import is_nats
from tamis.sources.tables import files_of, json_object, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_BATCH = 4_096
_SHOWN = 3

Event = dict[str, Any]
Arrived = tuple[str, Event]
"""An event with its name."""


class ArrivedBatch(NamedTuple):
    """Events with their names, and what is to be done when all that came of them has arrived."""

    names: list[str]
    events: list[Event]
    done: Callable[[], None]


class BadLines:
    """Lines that are no events: how many, and the first of them."""

    def __init__(self) -> None:
        self.count, self.first = 0, list[str]()

    def event(self, line: bytes) -> Event | None:
        """Return the event of a line; None if it is empty, or none and noted."""
        if not line.strip():
            return None
        event = json_object(line)
        if event is None:
            self.count += 1
            if self.count <= _SHOWN:
                self.first.append(line[:80].decode(errors="replace").strip())
        return event

    def show(self) -> None:
        """Tell of them, if there are any."""
        if self.count:
            lines = "1 line is no JSON object" if self.count == 1 else f"{self.count:,} lines are no JSON objects"
            show(to_complain(), Text.assemble(("✗ ", "bold red"), (f"{lines}, and left out:", "bold")), below="  ")
            for line in self.first:
                show(to_complain(), Text(f"  {visible(line)}"), below="    ")


def arriving(
    events: str, options: dict[str, str], bad: BadLines, event_id: str | None, durable: str | None, ack_wait_s: float
) -> Iterator[ArrivedBatch]:
    """Yield events as they come."""
    if durable is not None:
        source = _durable(events, options, bad, durable, ack_wait_s)
    elif events == "-":
        source = _batches(_lines(sys.stdin.buffer, bad))
    elif is_nats(events):
        source = _messages(events, options, bad)
    else:
        source = _rows(events, options)
    for batch in source:
        names = batch.names
        if event_id is not None:
            pairs = zip(batch.events, names, strict=True)
            names = [named_by(event_id, event) or name for event, name in pairs]
        yield batch._replace(names=names)


def _batches(parts: Iterable[Iterator[Arrived]], most: int = _BATCH) -> Iterator[ArrivedBatch]:
    """Cut what comes at once into batches."""
    for part in parts:
        while batch := list(islice(part, most)):
            yield ArrivedBatch([name for name, _ in batch], [event for _, event in batch], _nothing)


def _nothing() -> None:
    """Nobody waits for an answer."""


def _lines(stream: Any, bad: BadLines) -> Iterator[Iterator[Arrived]]:
    """Yield the lines of a pipe as they come, as many as are there: whoever writes slowly is answered at once."""
    run, numbers = str(uuid4()), count()
    rest = b""
    while chunk := stream.read1(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield ((name_of(run, number), event) for number, event in zip(numbers, _parsed(lines, bad), strict=False))
    if rest:
        yield ((name_of(run, "last"), event) for event in _parsed([rest], bad))


def _parsed(lines: Iterable[bytes], bad: BadLines) -> Iterator[Event]:
    return (event for event in map(bad.event, lines) if event is not None)


def _messages(events: str, options: dict[str, str], bad: BadLines) -> Iterator[ArrivedBatch]:
    from tamis.cli.local import nats_reading, nats_stream

    def arrived() -> Iterator[Arrived]:
        with nats_stream(events, options) as (stream, parts):
            for message in chain.from_iterable(parts):
                event = bad.event(message.body)
                if event is not None:
                    yield name_of(stream, message.sequence), event

    return _batches([arrived()], min(_BATCH, nats_reading(events, options).max_messages))


def _durable(
    events: str, options: dict[str, str], bad: BadLines, name: str, ack_wait_s: float
) -> Iterator[ArrivedBatch]:
    from tamis.cli.local import nats_reading, stream_name
    from tamis.sources.durable_reading import DurableReading
    from tamis.sources.jetstream import JetStream

    reading = nats_reading(events, options)
    with JetStream(reading.address, reading.timeout_s) as connection:
        stream = stream_name(reading.address, connection.state())
        durable = DurableReading(connection, reading, name, ack_wait_s)
        for messages in durable.batches(_BATCH):
            parsed = [(name_of(stream, message.sequence), bad.event(message.body)) for message in messages]
            good = [(event_name, event) for event_name, event in parsed if event is not None]
            yield ArrivedBatch(
                [event_name for event_name, _ in good],
                [event for _, event in good],
                lambda messages=messages: durable.acknowledge(messages),  # type: ignore[misc]
            )


def _rows(events: str, options: dict[str, str]) -> Iterator[ArrivedBatch]:
    place = [str(file.resolve()) for file in files_of(events)]
    first = 0
    for batch in read_table(events, options).to_batches(_BATCH):
        rows = [{name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()]
        # The content is part of the name: a file may be another one tomorrow.
        names = [name_of(place, first + number, json.dumps(row, default=str)) for number, row in enumerate(rows)]
        yield ArrivedBatch(names, rows, _nothing)
        first += len(rows)
