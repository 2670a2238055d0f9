"""What have subscriptions of every kind to tell of a table of events, in order of time, in this process?"""

from __future__ import annotations

import datetime as dt
import math
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.cli.inputs import InputError
from tamis.cli.kinds import may_be_stateful
from tamis.errors import TamisError
from tamis.language import Schema
from tamis.matching.rejections import Rejected
from tamis.sources.errors import ColumnError
from tamis.sources.tables import read_table, require, written_table
from tamis.standing import Standing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PORTION = 16_384
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NEEDS_TIME = "it remembers earlier events, so it needs to know when events happened: --time COLUMN"


def with_hints(rejected: Iterable[Rejected], needed: str = NEEDS_TIME) -> list[Rejected]:
    """Say of texts that are good subscriptions of another kind what they need, not where they are no condition."""
    explained = []
    for row in rejected:
        if may_be_stateful(row.condition):
            from tamis.standing import parse_subscription

            try:
                parse_subscription(row.condition)
            except TamisError as error:
                explained.append(row._replace(error=type(error).__name__, reason=str(error)))
            else:
                explained.append(row._replace(error="StandingFormError", reason=needed))
        else:
            explained.append(row)
    return explained


def notified(
    events: pa.Table, subscriptions: str, id: str, where: str, time: str, event_id: str | None
) -> tuple[Standing, list[Rejected], pa.Table]:
    """Register the subscriptions of a table; return the processor, the rejected rows, and the events in order."""
    require(events, [time, *([event_id] if event_id else [])], "events")
    seconds = _seconds(events[time], time)
    table = read_table(subscriptions)
    require(table, (id, where), "subscriptions")
    processor = Standing(schema=Schema.from_arrow(events.schema), retention=math.inf)
    rejected = []
    for row, (key, text) in enumerate(zip(table[id].to_pylist(), table[where].to_pylist(), strict=True)):
        if key is None or not isinstance(text, str):
            rejected.append(Rejected(key, text, "BadTableError", "a NULL in its row", row))
            continue
        try:
            processor.add(key, text)
        except TamisError as error:
            rejected.append(Rejected.because(key, text, error, row))
    ids = events[event_id] if event_id else pa.array(range(events.num_rows))
    ordered = events.append_column(" at", seconds).append_column(" id", ids).filter(seconds.is_valid())
    return processor, rejected, ordered.sort_by([(" at", "ascending"), (" id", "ascending")])


def write_notifications(
    processor: Standing,
    events: pa.Table,
    id: str,
    id_type: pa.DataType,
    time: pa.DataType,
    out: str,
    advance: Callable[[int], None] = lambda count: None,
) -> int:
    """Let the processor take the events, and the end of time; write its notifications; return how many these are.

    `advance` gets the size of every portion of events.
    """
    count = 0
    kinds = {id: id_type, "events": pa.list_(events.schema.field(" id").type), "at": time, "change": pa.bool_()}
    attributes = events.drop_columns([" at", " id"])
    with written_table(out) as add:
        for start in range(0, max(events.num_rows, 1), _PORTION):
            part = events.slice(start, _PORTION)
            rows = attributes.slice(start, _PORTION)
            # Two events may have one id: each is an event of its own, so the processor knows them by their places.
            places = range(start, start + part.num_rows)
            notifications = (
                processor.process_batch(rows, part[" at"].to_pylist(), list(places)) if part.num_rows else []
            )
            if start + _PORTION >= events.num_rows:
                notifications += processor.advance(sys.float_info.max / 4)
            names = events[" id"]
            columns = {
                id: [each.subscription for each in notifications],
                "events": [[names[place].as_py() for place in each.events] for each in notifications],
                "at": [_written(each.at, time) for each in notifications],
                "change": [each.change for each in notifications],
            }
            add(pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()}))
            count += len(notifications)
            advance(part.num_rows)
    return count


def _seconds(times: Any, name: str) -> pa.ChunkedArray:
    """Return times in seconds: timestamps, or numbers that are seconds already."""
    kind = times.type
    if pa.types.is_timestamp(kind):
        micros = times.cast(pa.timestamp("us", kind.tz)).cast(pa.int64())
        return pa.chunked_array(
            [pa.array([None if each is None else each / 1e6 for each in micros.to_pylist()], pa.float64())]
        )
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = [None if each is None or not math.isfinite(each) else float(each) for each in times.to_pylist()]
        return pa.chunked_array([pa.array(values, pa.float64())])
    raise ColumnError(f"times must be timestamps or numbers of seconds, but {name!r} is {kind}")


def _written(at: float, kind: pa.DataType) -> Any:
    if not pa.types.is_timestamp(kind):
        return at
    moment = _EPOCH + dt.timedelta(microseconds=round(at * 1e6))
    return moment if kind.tz else moment.replace(tzinfo=None)


def require_pairs(result: str) -> None:
    """Raise unless pairs are asked for: what concerns several events has no place in a row of one."""
    if result != "pairs":
        raise InputError(f"--time and --result {result} do not go together", hint="Leave --result out.")
