"""Which events of a broker's log are read, in which parts, and what columns do they have?

The log numbers its events and never uses a number twice, so a range of numbers is a table, and reading it again gives
the same events. The filter is evaluated at the broker: only what it wants crosses the network. What the log no longer
has is an error, or is left out and counted if that is asked for (`on_loss`).

The columns of an event are those that filters see: the members of its data by name, and its context attributes by
theirs, which win where both have a name (`tamis.service.cloud_events`). `_position` is its number in the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tamis.service.bridge.address import BrokerAddress, asked_address
from tamis.service.bridge.connection import BrokerConnection
from tamis.service.cloud_events import record_of
from tamis.service.errors import BadRequestError, GoneError
from tamis.service.positions import read_position
from tamis.sources.errors import AnotherLogError, BrokerError, LostEventsError, OptionError
from tamis.sources.fitting import json_as
from tamis.sources.inferring import json_table
from tamis.sources.schemes.table import BROKER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tamis.service.client.events import Event
    from tamis.sources.options import Options

POSITION = "_position"
"""The column of the number that an event has in the log."""
LOOKED_AT = 1_000
"""So many events say which columns there are."""
LOOKING_PATIENCE_S = 3.0
"""A person waits for an answer: a broker that is not there is told soon."""
LONGEST_FILTER = 4_000
"""Bytes of a filter that fit into an address, however they are written there."""


class LogState(NamedTuple):
    """What a log holds."""

    epoch: str
    first: int
    head: int
    gaps: tuple[tuple[int, int], ...]
    start: int
    """Where what was asked for begins."""

    @property
    def next(self) -> int:
        """The number that the next event gets."""
        return self.head + 1

    def missing(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return the parts of a range, `end` not included, that the log no longer has.

        >>> LogState("k3f9", 5, 20, ((8, 9), (15, 17)), 5).missing(1, 17)
        [(1, 5), (8, 10), (15, 17)]
        """
        lost = [(start, min(self.first, end))]
        lost += [(max(first, start, self.first), min(last + 1, end)) for first, last in self.gaps]
        return [(first, behind) for first, behind in lost if first < behind]


@dataclass(frozen=True)
class LogReading:
    """What is read, and how."""

    address: BrokerAddress
    where: str | None
    name: str | None
    """The durable subscriber for whom the log is held."""
    start: str
    end: str
    max_events: int
    """The most positions of a micro-batch."""
    partitions: int
    partition_events: int
    on_loss: str
    patience_s: float

    @classmethod
    def asked(cls, options: Options, cores: int = 1) -> LogReading:
        """Read options; `cores` is in how many parts a range is read unless they say so."""
        where = options.text("where") or None
        if where is not None and len(where.encode()) > LONGEST_FILTER:
            raise OptionError(
                f"where of tamis has {len(where.encode()):,} bytes, and goes to the broker in an address: at most "
                f"{LONGEST_FILTER:,} bytes; filter the rows that come by the rest"
            )
        return cls(
            address=asked_address(options),
            where=where,
            name=options.text("name") or None,
            start=options.text("start") or "first",
            end=options.text("end") or "now",
            max_events=options.number("max_events", 100_000),
            partitions=options.number("partitions", cores),
            partition_events=options.number("partition_events", 1_000),
            on_loss=options.one_of("on_loss", ("fail", "report")),
            patience_s=options.seconds("patience_s", 60),
        )

    def connection(self, patience_s: float | None = None) -> BrokerConnection:
        """Return a connection; `with` closes it."""
        return BrokerConnection(self.address, patience_s or self.patience_s)

    def state(self, connection: BrokerConnection, start: str = "") -> LogState:
        """Return what the log holds, and where a place of it is."""
        answer = connection.ask("GET", "/log", {"from": start} if start else None)
        try:
            epoch = answer["epoch"]
            first, head = (read_position(answer[name], epoch).event for name in ("first", "at"))
            gaps = [
                (read_position(gap["first"], epoch).event, read_position(gap["last"], epoch).event)
                for gap in answer["gaps"]
            ]
            begin = read_position(answer["start"], epoch).event if start else first
        except (KeyError, TypeError, BadRequestError, GoneError):
            raise BrokerError(f"what answers at {self.address} is not a broker that describes its log") from None
        return LogState(epoch, first, head, tuple(gaps), begin)

    def range(self, connection: BrokerConnection) -> tuple[LogState, int]:
        """Return what the log holds from the start on, and before which number to end, for a table."""
        state = self.state(connection, self.start)
        end = state.next if self.end == "now" else min(state.next, self.state(connection, self.end).start)
        self.require(state, state.start, end)
        return state, end

    def check(self, connection: BrokerConnection) -> None:
        """Raise unless the filter has a meaning to the broker."""
        if self.where is not None:
            connection.ask("POST", "/check", body={"where": self.where}, text=self.where)

    def part_count(self, start: int, end: int) -> int:
        """Return in how many parts a range is read: as few as there have to be, and never more than allowed."""
        return min(self.partitions, -(-max(0, end - start) // self.partition_events))

    def require(self, state: LogState, start: int, end: int) -> int:
        """Return how many events of a range are gone; raise if none may be."""
        lost = state.missing(start, end)
        if lost and self.on_loss == "fail":
            raise lost_events(self.address, state.epoch, *lost[0])
        return sum(behind - first for first, behind in lost)

    def read(self, epoch: str, start: int, end: int, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the events of a range that the filter wants, as rows."""
        for events in self.events(epoch, start, end):
            yield from rows(events, columns).to_batches()

    def events(self, epoch: str, start: int, end: int) -> Iterator[list[Event]]:
        """Yield the events of a range that the filter wants, some at a time."""
        if start >= end:
            return
        gaps: list[dict[str, Any]] = []
        with self.connection() as connection:
            for events in connection.read(self.where, f"{epoch}-{start}", f"{epoch}-{end}", gaps.append):
                self._require_whole(gaps, epoch)
                yield events
            self._require_whole(gaps, epoch)

    def _require_whole(self, gaps: list[dict[str, Any]], epoch: str) -> None:
        if gaps and self.on_loss == "fail":
            first, last = (read_position(str(gaps[0][name]), epoch).event for name in ("first", "last"))
            raise lost_events(self.address, epoch, first, last + 1)

    def first_events(self) -> list[Event]:
        """Return the first events that there are, whatever is to be read: they say which columns events have."""
        seen: list[Event] = []
        with self.connection() as connection:
            state = self.state(connection)
            portions = connection.read(
                self.where, f"{state.epoch}-{state.first}", f"{state.epoch}-{state.next}", lambda gap: None
            )
            for portion in portions:
                seen += portion
                if len(seen) >= LOOKED_AT:
                    break
        return seen[:LOOKED_AT]

    def guessed(self) -> pa.Schema:
        """Return the columns that the first events have, in the order of their names, and `_position`."""
        seen = self.first_events()
        if not seen:
            wanted = f" that fulfils {self.where!r:.60}" if self.where else ""
            raise OptionError(
                f"{self.address} has no event yet{wanted}: the first events say which columns there are; "
                "or say it with a schema"
            )
        return guessed_columns(seen)


def cut(start: int, end: int, count: int) -> list[tuple[int, int]]:
    """Cut a range into parts. The same range in as many parts is cut the same way each time.

    >>> cut(1, 11, 3), cut(5, 5, 0)
    ([(1, 4), (4, 7), (7, 11)], [])
    """
    return list(pairwise(start + (end - start) * number // count for number in range(count + 1))) if count else []


def columns_in(event: Event) -> dict[str, Any]:
    """Return what an event has by name, as JSON has it; `time` is a datetime."""
    return record_of(event.body)


def guessed_columns(events: Sequence[Event]) -> pa.Schema:
    """Return the columns that events have."""
    records = [columns_in(event) for event in events]
    timed = any("time" in record for record in records)
    for record in records:
        record.pop("time", None)
        record.pop(POSITION, None)
    fields = list(json_table(records).schema)
    if timed:
        fields.append(pa.field("time", pa.timestamp("us", "UTC")))
    return pa.schema([*sorted(fields, key=lambda field: field.name), pa.field(POSITION, pa.int64())])


def rows(events: Sequence[Event], columns: pa.Schema) -> pa.Table:
    """Return events as rows with columns that were said; what is not a value of its column's type is NULL."""
    records = [columns_in(event) for event in events]
    own: dict[str, pa.Array] = {}
    for field in columns:
        if field.name == POSITION:
            own[POSITION] = pa.array([int(event.at.rpartition("-")[2]) for event in events]).cast(field.type)
        elif field.name == "time" and pa.types.is_timestamp(field.type):
            own["time"] = pa.array([record.get("time") for record in records], field.type)
    for record in records:
        if "time" in record:
            record["time"] = _written(record["time"])
    others = json_as(records, pa.schema([field for field in columns if field.name not in own]))
    arrays = [own[field.name] if field.name in own else others[field.name] for field in columns]
    return pa.table(arrays, schema=columns)


def _written(moment: datetime) -> str | None:
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:  # the first or the last day that there is, elsewhere
        return None


def log_reading(url: str, options: Mapping[str, str], *, streaming: bool = False) -> LogReading:
    """Return what is to be read at an address."""
    return LogReading.asked(BROKER.source_options({**options, "url": url}, streaming=streaming))


def require_source(url: str, options: Mapping[str, str], *, streaming: bool) -> BrokerAddress:
    """Return the broker at an address; raise if nobody answers, or an option or the filter means nothing."""
    reading = log_reading(url, options, streaming=streaming)
    with reading.connection(LOOKING_PATIENCE_S) as connection:
        reading.check(connection)
        reading.state(connection, reading.start)
    return reading.address


def lost_events(address: BrokerAddress, epoch: str, first: int, behind: int) -> LostEventsError:
    """Return the error that says what is gone."""
    return LostEventsError(
        f"{address} no longer has the events {epoch}-{first} to {epoch}-{behind - 1}, which were not read yet; keep "
        f"the log longer, hold it with the option name, or go on without them: on_loss=report"
    )


def another_log(address: BrokerAddress, position: str, state: LogState) -> AnotherLogError:
    """Return the error that says why a checkpoint does not fit."""
    return AnotherLogError(
        f"{address} does not have the log that the checkpoint belongs to: that goes on at {position}, and this one "
        f"ends at {state.epoch}-{state.head}; begin with another checkpoint"
    )
