"""What has happened? Reading the log: events of a range of positions that a filter wants.

The log is read block by block, in a thread, and matched by a matcher of one subscription; the block after the next is
not read before somebody has taken what was found, so a slow reader costs no memory. What a principal may not receive
is left out by its filter, conjoined to the one it asks with. What the log no longer has of the range, because retention
or a repair has taken it, also while somebody reads, is told in its place.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tamis.errors import EventError
from tamis.language.builder import all_of
from tamis.language.expressions import Literal
from tamis.language.meaning import holds
from tamis.service.cloud_events import record_of
from tamis.service.log.base import is_rerouted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.service.log.base import Block, Gap

MATCHED_TOGETHER = 64
"""From so many events on, a matcher over columns is faster than the definition, one by one."""


class Readable(Protocol):
    """What can be read like a log."""

    @property
    def first(self) -> int: ...
    def gaps(self) -> tuple[Gap, ...]: ...
    def read(self, first: int, last: int) -> Iterator[Block]: ...


class Found(NamedTuple):
    """An event of the past."""

    position: int
    body: bytes


class Missing(NamedTuple):
    """Positions of the past that the log no longer has."""

    first: int
    last: int
    reason: str


class Range(NamedTuple):
    """Positions from `first` up to, but not including, `until`."""

    first: int
    until: int


def conjoined(wanted: Expression | None, allowed: Expression | None) -> Expression | None:
    """Return the filter of what is wanted and allowed; None is for everything.

    >>> from tamis import parse
    >>> print(conjoined(parse("price < 20"), parse("region = 'EU'")))
    price < 20 AND region = 'EU'
    >>> conjoined(None, None) is None
    True
    """
    filters = [expression for expression in (wanted, allowed) if expression is not None]
    return all_of(*filters) if filters else None


def chosen(expression: Expression | None, schema: Schema | None = None) -> Callable[[Sequence[Any]], list[bool]]:
    """Return a function that says of each record whether an expression holds for it: a matcher of one."""
    if expression is None or expression == Literal(True):
        return lambda records: [True] * len(records)
    from tamis.matching import Matcher  # what compiles kernels is loaded by who matches

    matcher = Matcher(schema=schema)
    matcher.add("wanted", expression)

    def choose(records: Sequence[Mapping[str, Any]]) -> list[bool]:
        if schema is not None:
            fitted_records = [fitting(record, schema) for record in records]
            if any(record is None for record in fitted_records):
                return [
                    holds(expression, record) if fitted is None else holds(expression, fitted, schema)
                    for record, fitted in zip(records, fitted_records, strict=True)
                ]
            records = [record for record in fitted_records if record is not None]
        if len(records) < MATCHED_TOGETHER:
            return [holds(expression, record, schema) for record in records]
        choice: list[bool] = matcher.any_batch(list(records)).to_pylist()
        return choice

    return choose


def fitting(record: Mapping[str, Any], schema: Schema | None) -> Mapping[str, Any] | None:
    """Return a record with the types of the schema; None for one of the time before the schema, which does not fit."""
    if schema is None or schema.objection(record) is None:
        return record
    try:
        return schema.conform(record)
    except EventError:
        return None


class PastEvent(NamedTuple):
    """An event of the past, and what filters see of it."""

    position: int
    body: bytes
    record: Mapping[str, Any]


def entries_of(block: Block, positions: Range, may_see: Callable[[Sequence[Any]], list[bool]]) -> list[PastEvent]:
    """Return the events of a block that lie in a range and may be seen, once each."""
    entries = [
        PastEvent(position, body, record_of(body, flags))
        for position, body, flags in zip(range(block.first, block.last + 1), block.events, block.flags, strict=True)
        if positions.first <= position < positions.until and not is_rerouted(flags)
    ]
    return [each for each, is_seen in zip(entries, may_see([each.record for each in entries]), strict=True) if is_seen]


async def read_events(
    log: Readable, positions: Range, expression: Expression | None, schema: Schema | None = None
) -> AsyncIterator[list[Found | Missing]]:
    """Yield the events of a range that an expression wants, and what is missing of it, some at a time, in order."""
    if positions.first >= positions.until:
        return
    blocks = iter(log.read(positions.first, positions.until - 1))
    choose = await asyncio.to_thread(chosen, expression, schema)
    first = positions.first
    while first < positions.until:
        block = await asyncio.to_thread(next, blocks, None)
        end = positions.until if block is None else min(block.first, positions.until)
        some: list[Found | Missing] = [*_missing(log, first, end)]
        if block is not None:
            entries = await asyncio.to_thread(entries_of, block, positions, choose)
            some += [Found(each.position, each.body) for each in entries]
        first = end if block is None else block.last + 1
        if some:
            yield some


def _missing(log: Readable, first: int, end: int) -> Iterator[Missing]:
    """Yield what is missing of the positions from `first` up to `end`, where the log was found to have no block."""
    begins = log.first
    if first >= end:
        return
    if first < begins:
        yield Missing(first, min(begins, end) - 1, "retention")
    for gap in log.gaps():
        if gap.first < end and gap.last >= max(first, begins):
            yield Missing(max(gap.first, first, begins), min(gap.last, end - 1), "damage")
