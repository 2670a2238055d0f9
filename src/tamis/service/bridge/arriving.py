"""How are the events of a broker events of one process? As a table, or batch by batch.

What is there now, from a place of the log on, that a filter wants. An event is called by its source and id, so it has
the same name in every run and at every broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.service.bridge.reading import LOOKED_AT, POSITION, columns_in, guessed_columns, log_reading, rows
from tamis.sources.arriving import BATCH_EVENTS, Arrived, ArrivedBatch, BadLines, batches
from tamis.sources.columns import columns_of
from tamis.sources.match_names import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tamis.service.client.events import Event


def broker_table(url: str, options: Mapping[str, str], schema: str | None, keep: Sequence[str] | None) -> pa.Table:
    """Return what a log holds now that a filter wants; `_position` is there if it is to be kept."""
    seen = [event for portion in _events(url, options) for event in portion]
    if schema is not None:
        columns = columns_of(schema)
    else:
        columns = guessed_columns(seen[:LOOKED_AT])
        columns = columns.remove(columns.get_field_index(POSITION))
    if POSITION in (keep or ()) and POSITION not in columns.names:
        columns = columns.append(pa.field(POSITION, pa.int64()))
    return rows(seen, columns)


def broker_batches(url: str, options: Mapping[str, str], bad: BadLines) -> Iterator[ArrivedBatch]:
    """Yield what a log holds now that a filter wants, in its order; a broker takes nothing that is not an event."""

    def arrived() -> Iterator[Arrived]:
        for portion in _events(url, options):
            for event in portion:
                yield name_of(event.source, event.id), columns_in(event)

    return batches([arrived()], BATCH_EVENTS)


def _events(url: str, options: Mapping[str, str]) -> Iterator[list[Event]]:
    reading = log_reading(url, options)
    with reading.connection() as connection:
        state, end = reading.range(connection)
    return reading.events(state.epoch, state.start, end)
