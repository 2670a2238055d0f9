"""How is a table matched in this process, with the answers and the files of Spark?

The tables are read whole, the subscriptions registered in the order of their ids, and the events matched in portions,
so that the pairs of millions of events need not be in memory at once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.language import Schema
from tamis.matching.admission import CandidateRow, admitted
from tamis.sources.errors import ColumnError
from tamis.sources.places import source_at
from tamis.sources.tables import read_table, require, written_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tamis.matching import Matcher
    from tamis.matching.rejections import Rejected

_PORTION = 16_384
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


class Rules:
    """The subscriptions of a table, ready to match."""

    def __init__(self, table: pa.Table, id: str, where: str, schema: Schema | None) -> None:
        require(table, (id, where), "subscriptions")
        self.id, self.id_type = id, table.schema.field(id).type
        if self.id_type not in (*_INTEGERS, pa.string(), pa.large_string(), pa.null()):
            raise ColumnError(f"ids must be integers or strings, but {id!r} is {self.id_type}")
        if table.schema.field(where).type not in (pa.string(), pa.large_string(), pa.null()):
            raise ColumnError(f"conditions must be strings, but {where!r} is {table.schema.field(where).type}")
        columns = [table[id].to_pylist(), table[where].to_pylist()]
        if "priority" in table.schema.names and {"priority"}.isdisjoint((id, where)):
            kind = table.schema.field("priority").type
            if not pa.types.is_integer(kind) and kind != pa.null():
                raise ColumnError(f"priorities must be integers, but 'priority' is {kind}")
            columns.append(table["priority"].to_pylist())
        rows = zip(*columns, strict=True)
        self.matcher: Matcher
        self.rejected: list[Rejected]
        self.matcher, self.rejected = admitted((CandidateRow(*row) for row in rows), schema)


def read_events(
    events: str, options: Mapping[str, str], schema: str | None = None, keep: Sequence[str] | None = None
) -> pa.Table:
    """Return the events of files, or of what a server holds now.

    Columns to `keep` that only messages have (sequence, subject, ...) are added to the events of a server.
    """
    source = source_at(events)
    assert source.table is not None, "that was looked at first"
    table: pa.Table = source.table(events, options, schema, keep)
    return table


def rules_for(events: pa.Table, subscriptions: str, id: str, where: str) -> Rules:
    """Read the subscriptions of files, and check them against the columns of events."""
    return Rules(read_table(subscriptions), id, where, Schema.from_arrow(events.schema))


def write_matches(
    events: pa.Table,
    rules: Rules,
    keep: Sequence[str] | None,
    result: str,
    out: str,
    advance: Callable[[int], None] = lambda count: None,
) -> int:
    """Match events and write the matches; return how many rows that are. `advance` gets the size of every portion."""
    names = list(events.schema.names if keep is None else dict.fromkeys(keep))
    require(events, names, "events")
    added = {"pairs": rules.id, "lists": "subscription_ids", "counts": "matches"}[result]
    if added in names:
        raise ColumnError(
            f"the events have a column {added!r} already, and the result would have two of that name: "
            "keep others (keep=[...]), or rename it"
        )
    count = 0
    with written_table(out) as add:
        for start in range(0, max(events.num_rows, 1), _PORTION):
            portion = events.slice(start, _PORTION)
            answers = _answered(portion, rules, names, result, added)
            count += answers.num_rows
            add(answers)
            advance(portion.num_rows)
    return count


def _answered(events: pa.Table, rules: Rules, names: list[str], result: str, added: str) -> pa.Table:
    kept, threads = events.select(names), os.cpu_count() or 1
    kind = pa.string() if rules.id_type not in _INTEGERS else rules.id_type
    column: Any
    if result == "counts":
        column = rules.matcher.count_batch(events, threads=threads)
    elif result == "lists":
        lists = rules.matcher.list_batch(events, threads=threads)
        column = pa.ListArray.from_arrays(lists.offsets, lists.values.cast(kind))
    else:
        pairs = rules.matcher.match_batch(events, threads=threads)
        kept = kept.take(pairs["event"]) if names else kept
        column = pairs["subscription"].cast(kind)
    return kept.append_column(added, column) if names else pa.table({added: column})
