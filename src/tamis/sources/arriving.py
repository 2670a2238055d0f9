"""How do events come one after another, and what are they called? Batches of events with their offsets.

Each batch has the names of its events and what to do when their matches have arrived. A row of a file is called by its
place and its content, a message of NATS by its stream and its number (`nats_events`). A line of a pipe has no name that
a second run would give it.
"""

from __future__ import annotations

import json
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

from tamis.sources.match_names import name_of
from tamis.sources.tables import files_of, json_object, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

BATCH_EVENTS = 4_096
"""So many events come at once, at most."""
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
    """Lines that are not events: how many, and the first of them.

    >>> bad = BadLines()
    >>> [bad.event(line) for line in (b'{"price": 12}', b"", b"[1]")], bad.count, bad.first
    ([{'price': 12}, None, None], 1, ['[1]'])
    """

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


def batches(parts: Iterable[Iterator[Arrived]], most: int = BATCH_EVENTS) -> Iterator[ArrivedBatch]:
    """Cut what comes at once into batches."""
    for part in parts:
        while batch := list(islice(part, most)):
            yield ArrivedBatch([name for name, _ in batch], [event for _, event in batch], _nothing)


def _nothing() -> None:
    """Nobody waits for an answer."""


def pipe_batches(stream: Any, bad: BadLines) -> Iterator[ArrivedBatch]:
    """Yield the lines of a pipe as they come, as many as are there: whoever writes slowly is answered at once."""
    return batches(_lines(stream, bad))


def _lines(stream: Any, bad: BadLines) -> Iterator[Iterator[Arrived]]:
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


def file_batches(path: str, options: Mapping[str, str], bad: BadLines) -> Iterator[ArrivedBatch]:
    """Yield the rows of files."""
    place = [str(file.resolve()) for file in files_of(path)]
    first = 0
    for batch in read_table(path, options).to_batches(BATCH_EVENTS):
        rows = [{name: value for name, value in row.items() if value is not None} for row in batch.to_pylist()]
        # The content is part of the name: a file may be another one tomorrow.
        names = [name_of(place, first + number, json.dumps(row, default=str)) for number, row in enumerate(rows)]
        yield ArrivedBatch(names, rows, _nothing)
        first += len(rows)
