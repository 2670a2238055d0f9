"""What has happened? Reading the log: events of a range of positions that a filter wants.

The log is read block by block, in a thread, and matched by a matcher of one subscription; the block after the next is
not read before somebody has taken what was found, so a slow reader costs no memory. What a principal may not receive
is left out by its filter, conjoined to the one it asks with.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tamis.errors import EventError
from tamis.language.builder import all_of
from tamis.language.expressions import Literal
from tamis.language.meaning import holds
from tamis.service.cloud_events import record_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.service.log.base import Block

MATCHED_TOGETHER = 64
"""From so many events on, a matcher over columns is faster than the definition, one by one."""


class Readable(Protocol):
    """What can be read like a log."""

    def read(self, first: int, last: int) -> Iterator[Block]: ...


class Found(NamedTuple):
    """An event of the past."""

    position: int
    body: bytes


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
            fitting = [_fitting(record, schema) for record in records]
            if any(record is None for record in fitting):
                return [
                    holds(expression, record) if fitted is None else holds(expression, fitted, schema)
                    for record, fitted in zip(records, fitting, strict=True)
                ]
            records = [record for record in fitting if record is not None]
        if len(records) < MATCHED_TOGETHER:
            return [holds(expression, record, schema) for record in records]
        choice: list[bool] = matcher.any_batch(list(records)).to_pylist()
        return choice

    return choose


def _fitting(record: Mapping[str, Any], schema: Schema) -> Mapping[str, Any] | None:
    """Return a record with the types of the schema; None for one of the time before the schema, which does not fit."""
    if schema.objection(record) is None:
        return record
    try:
        return schema.conform(record)
    except EventError:
        return None


async def read_events(
    log: Readable, positions: Range, expression: Expression | None, schema: Schema | None = None
) -> AsyncIterator[list[Found]]:
    """Yield the events of a range that an expression wants, some at a time, in order."""
    if positions.first >= positions.until:
        return
    blocks = iter(log.read(positions.first, positions.until - 1))
    choose = await asyncio.to_thread(chosen, expression, schema)
    while (events := await asyncio.to_thread(_next_events, blocks, positions, choose)) is not None:
        if events:
            yield events


def _next_events(
    blocks: Iterator[Block],
    positions: Range,
    choose: Callable[[Sequence[Any]], list[bool]],
) -> list[Found] | None:
    """Return what is wanted of the next block; None after the last."""
    block = next(blocks, None)
    if block is None:
        return None
    begin = max(0, positions.first - block.first)
    end = max(begin, min(len(block.events), positions.until - block.first))
    bodies = block.events[begin:end]
    records: list[Mapping[str, Any]] = [
        record_of(body, flags) for body, flags in zip(bodies, block.flags[begin:end], strict=True)
    ]
    wanted = choose(records)
    return [
        Found(block.first + begin + index, body)
        for index, (body, is_wanted) in enumerate(zip(bodies, wanted, strict=True))
        if is_wanted
    ]
