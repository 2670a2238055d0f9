"""History is what the definition says of the events in a range."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.service.cloud_events import LARGEST, cloud_event, record_of
from tamis.service.history import Missing, Range, conjoined, read_events
from tamis.service.log.base import Block, Gap
from tamis.service.settings import Settings

VALUES = st.none() | st.integers(-3, 3) | st.floats(-3, 3) | st.text("ab", max_size=2) | st.booleans() | st.just(2**70)
FILTERS = [
    "price < 1",
    "price >= 0 OR region = 'a'",
    "NOT price < 1",
    "price IS NULL",
    "TRUE",
    "FALSE",
    "data.price = 1",
    "id = '3'",
]


class Blocks:
    """A log of blocks in memory."""

    first = 1

    def __init__(self, bodies, sizes, damaged=()):
        self.damaged = damaged
        self.blocks, first = [], 1
        bodies = list(bodies)
        for size in sizes:
            if bodies:
                events, bodies = tuple(bodies[:size]), bodies[size:]
                self.blocks.append(Block(first, 0, events, bytes(len(events))))
                first += len(events) + 2  # positions have gaps

    def gaps(self):
        return self.damaged

    def read(self, first, last):
        return (
            block for block in self.blocks if block.last >= first and block.first <= last and block.first >= self.first
        )


def bodies_of(datas):
    return [
        cloud_event({"specversion": "1.0", "id": str(index), "source": "/s", "type": "t", "data": data}, LARGEST).body
        for index, data in enumerate(datas)
    ]


async def everything(log, positions, expression, schema=None):
    return [event async for events in read_events(log, positions, expression, schema) for event in events]


@given(
    st.lists(st.fixed_dictionaries({}, optional={"price": VALUES, "region": VALUES}), max_size=90),
    st.lists(st.sampled_from([1, 2, 7, 70]), min_size=90, max_size=90),
    st.integers(1, 60),
    st.integers(1, 200),
    st.none() | st.sampled_from(FILTERS),
    st.none() | st.sampled_from(FILTERS),
)
def test_history_is_what_holds_says(datas, sizes, first, until, where, receive):
    log = Blocks(bodies_of(datas), sizes)
    wanted, allowed = (None if text is None else tamis.parse(text) for text in (where, receive))
    expected = [
        (block.first + index, body)
        for block in log.blocks
        for index, body in enumerate(block.events)
        if first <= block.first + index < until
        and all(expression is None or tamis.holds(expression, record_of(body)) for expression in (wanted, allowed))
    ]
    assert asyncio.run(everything(log, Range(first, until), conjoined(wanted, allowed))) == expected


def test_events_are_read_with_the_types_of_the_schema_and_older_ones_as_they_are():
    schema = Settings(schema={"price": "double"}).event_schema()
    log = Blocks(bodies_of([{"price": 1}, {"price": 3}, {"price": "cheap"}, {"price": 0, "colour": "red"}]), [4])
    wanted = tamis.parse("price < 2", schema)
    assert [event.position for event in asyncio.run(everything(log, Range(1, 9), wanted, schema))] == [1, 4]


def test_what_retention_and_a_repair_have_taken_is_told_in_its_place():
    log = Blocks(bodies_of([{"n": n} for n in range(4)]), [1, 1, 1, 1], damaged=(Gap(8, 9),))  # at 1, 4, 7 and 10
    log.first = 4
    read = asyncio.run(everything(log, Range(1, 11), None))
    assert [item.position if hasattr(item, "position") else item for item in read] == [
        Missing(1, 3, "retention"), 4, 7, Missing(8, 9, "damage"), 10
    ]  # fmt: skip
    assert asyncio.run(everything(log, Range(2, 4), tamis.parse("FALSE"))) == [Missing(2, 3, "retention")]
    assert asyncio.run(everything(log, Range(9, 10), None)) == [Missing(9, 9, "damage")]
    assert asyncio.run(everything(log, Range(4, 8), tamis.parse("FALSE"))) == []


def test_what_retention_takes_while_somebody_reads_is_told():
    log = Blocks(bodies_of([{"n": n} for n in range(4)]), [1, 1, 1, 1])

    async def read():
        items = []
        async for some in read_events(log, Range(1, 11), None):
            items += some
            log.first = 10  # which takes what is at 4 and 7, but not what has been read
        return items

    first, *missing, last = asyncio.run(read())
    assert (first.position, last.position) == (1, 10)
    assert missing == [Missing(2, 9, "retention")]
