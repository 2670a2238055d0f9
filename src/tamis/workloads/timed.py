"""When do events happen, if only their rate is known?

Independent publishers make a Poisson process: given how many events fall into a span, their times are uniform in it. So
times are drawn so, and put in order: as many events as asked for, in the time that they take at the rate.

The auction scenario has rates that were counted: of events about US fiction, all books, and all auctions, and of hourly
messages about the state of each auction of US fiction.

Source: Bittner 2008, section 3.2.3 (docs/bibliography.md).
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from tamis.workloads.auction_tables import read_document
from tamis.workloads.base import generator
from tamis.workloads.errors import require

PUBLISHED_AT = "published_at"
"""The column of the times."""
START = datetime(2005, 7, 8, tzinfo=UTC)
"""The day of the snapshot that the rates are of."""
_NAMES = {
    "fiction": "messages_per_second_fiction_us",
    "books": "messages_per_second_all_books_recomputed",
    "auctions": "messages_per_second_all_auctions",
    "status": "hourly_status_events_per_second_fiction",
}


def published_rates() -> dict[str, float]:
    """Return the counted rates of events a second, by name.

    >>> published_rates()
    {'fiction': 0.37, 'books': 24.61, 'auctions': 146.58, 'status': 39.33}
    """
    rates = read_document("event_model.json")["event_rates"]
    return {name: rates[key] for name, key in _NAMES.items()}


def timed(events: pa.Table, rate_per_s: float, seed: int, before: int = 0) -> pa.Table:
    """Return events with the times at which they are published, ascending; `before` have been published earlier.

    >>> timed(pa.table({"a": [1, 2]}), rate_per_s=0.5, seed=1).column_names
    ['published_at', 'a']
    """
    require(0 < rate_per_s <= 1e9, "rate", rate_per_s, "more than 0, and at most 1e9 a second")
    require(PUBLISHED_AT not in events.column_names, "rate", rate_per_s, "left out where events have times")
    chance = generator(seed, "times of events")
    places = np.sort(chance.random(events.num_rows)) * events.num_rows + before
    first = np.datetime64(START.replace(tzinfo=None), "us").astype(np.int64)
    times = pa.array(first + np.floor(places / rate_per_s * 1e6).astype(np.int64)).cast(pa.timestamp("us", tz="UTC"))
    return events.add_column(0, PUBLISHED_AT, times)
