"""What does a block look like on disk? A record: four numbers and three byte strings, under one checksum.

    first, time_us, count     who and when
    crc32                     of everything else in the record, the numbers among it
    ends                      where each event ends in `events`, as little-endian 32-bit numbers
    flags                     one byte an event
    events                    the events, one behind the other

Both logs keep blocks in this form: `sqlite` as a row, `jetstream` as a message. A record that is not exactly what was
written is not a block: `block_of` says so by returning none, and the caller knows the place that it came from.
"""

from __future__ import annotations

import sys
from array import array
from itertools import accumulate, chain
from struct import Struct, error
from typing import Any, NamedTuple
from zlib import crc32

from tamis.service.log.base import Block

_NUMBERS = Struct("<QqI")
_MESSAGE = Struct("<IqII")
_PLACE = Struct("<Q")
_IS_LITTLE = sys.byteorder == "little"


class Record(NamedTuple):
    """A block as numbers and bytes."""

    first: int
    time_us: int
    event_count: int
    crc32: int
    ends: bytes
    flags: bytes
    events: bytes


def record_of(block: Block) -> Record:
    r"""Return a block in the form in which it is kept.

    >>> record_of(Block(1, 7, (b"ab", b"c"), bytes(2)))[3:]
    (3310802767, b'\x02\x00\x00\x00\x03\x00\x00\x00', b'\x00\x00', b'abc')
    """
    count = len(block.events)
    assert count > 0, "a block has events"
    assert count == len(block.flags), "a block has a flag for each event"
    ends = array("I", accumulate(map(len, block.events)))
    if not _IS_LITTLE:
        ends.byteswap()
    parts = ends.tobytes(), block.flags, b"".join(block.events)
    return Record(block.first, block.time_us, count, checksum(block.first, block.time_us, count, *parts), *parts)


def block_of(record: tuple[Any, ...]) -> Block | None:
    r"""Return the block that a record was made of; none if the record is not what `record_of` returned.

    >>> record = record_of(Block(1, 7, (b"ab", b"c"), bytes(2)))
    >>> block_of(record)
    Block(first=1, time_us=7, events=(b'ab', b'c'), flags=b'\x00\x00')
    >>> block_of(record._replace(events=b"abd")) is None
    True
    """
    try:
        first, time_us, count, stored_sum, ends, flags, events = record
        if checksum(first, time_us, count, ends, flags, events) != stored_sum or not 0 < count == len(flags):
            return None
        places = array("I", ends)
        if not _IS_LITTLE:
            places.byteswap()
        if len(places) != count or places[-1] != len(events):
            return None
    except (TypeError, ValueError, OverflowError, ArithmeticError, error):
        return None  # a column that holds another type than was written
    return Block(first, time_us, tuple(map(events.__getitem__, map(slice, chain((0,), places), places))), flags)


def checksum(first: int, time_us: int, count: int, ends: bytes, flags: bytes, events: bytes) -> int:
    """Return the checksum of all that a record holds."""
    return crc32(events, crc32(flags, crc32(ends, crc32(_NUMBERS.pack(first, time_us, count)))))


def message_of(block: Block) -> bytes:
    """Return a block as one byte string. Whoever keeps it gives it a position; its own is where its writer expected it.

    The writer had read everything before that.
    """
    first, time_us, count, stored_sum, ends, flags, events = record_of(block)
    return b"".join((_MESSAGE.pack(stored_sum, time_us, count, len(events)), ends, flags, events, _PLACE.pack(first)))


def block_in(message: bytes) -> Block | None:
    r"""Return the block in a byte string that `message_of` made; none if it is no such one.

    >>> block_in(message_of(Block(40960, 7, (b"ab", b"c"), bytes(2))))
    Block(first=40960, time_us=7, events=(b'ab', b'c'), flags=b'\x00\x00')

    Those that were written before there was a place at their end have the position 0.
    """
    if len(message) < _MESSAGE.size:
        return None
    stored_sum, time_us, count, size = _MESSAGE.unpack_from(message)
    ends = _MESSAGE.size + 4 * count
    behind = ends + count + size
    if len(message) == behind + _PLACE.size:
        (first,) = _PLACE.unpack_from(message, behind)
    elif len(message) == behind:
        first = 0
    else:
        return None
    parts = message[_MESSAGE.size : ends], message[ends : ends + count], message[ends + count : behind]
    return block_of(Record(first, time_us, count, stored_sum, *parts))
