"""What is left of a damaged SQLite file? Rows, carved out of its pages one by one.

SQLite finds rows by way of a tree. If a page high in the tree is damaged, everything below it is lost to SQLite,
although it is there. Here no tree is followed: every page that may be a leaf, in the database and in the write-ahead
log, is looked at, and each entry that has the form of a row is read, with the pages that continue it. Some of what such
a look yields may be nonsense; the checksum that every row of ours carries tells.

Source: the SQLite documentation, "Database File Format", sections 1.6 (B-tree Pages) and 2.1 (Record Format).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.service.log.base import Block, Gap
from tamis.service.log.blocks import block_of
from tamis.service.log.segments import FORMAT, PAGE_BYTES, Facts, gap_checksum, side_files
from tamis.service.log.write_ahead import WriteAhead, read_write_ahead

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MOST_LOCAL = PAGE_BYTES - 35
_LEAST_LOCAL = (PAGE_BYTES - 12) * 32 // 255 - 23
_LEAF = 0x0D
"""The first byte of a leaf of a table."""
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)
"""By the serial type of a column."""


class Carved(NamedTuple):
    """What was found in a file: all of it as it was written."""

    blocks: tuple[Block, ...]
    """In order, none twice."""
    gaps: tuple[Gap, ...]
    facts: Facts | None
    claims: dict[int, int]
    """Blocks that are not what was written: what they say of their first position and their last one."""
    write_ahead: WriteAhead
    size_bytes: int


def carve(path: Path) -> Carved:
    """Return what can be trusted of a segment, however damaged it is."""
    content = path.read_bytes() if path.exists() else b""
    ahead = read_write_ahead(side_files(path)[0], PAGE_BYTES)
    pages = {
        start // PAGE_BYTES + 1: content[start : start + PAGE_BYTES]
        for start in range(0, len(content) - PAGE_BYTES + 1, PAGE_BYTES)
    }
    versions = list(pages.values())
    for is_good in (False, True):  # good ones last, so that they count
        for frame in ahead.frames:
            if frame.is_good == is_good:
                pages[frame.page] = frame.content
                versions.append(frame.content)
    blocks: dict[int, Block] = {}
    gaps: set[Gap] = set()
    claims: dict[int, int] = {}
    facts: Facts | None = None
    for row in (row for page in versions for row in _rows_in(page, pages)):
        match row:
            case key, None, int(), int(), int(), bytes(), bytes() as flags, bytes():
                block = block_of((key, *row[2:]))
                if block is not None:
                    blocks[key] = block
                elif row[3] == len(flags) > 0:
                    claims[key] = key + len(flags) - 1
            case key, None, int() as last, int() as checksum if (
                0 < key <= last and gap_checksum(Gap(key, last)) == checksum
            ):
                gaps.add(Gap(key, last))
            case _, int() as version, bytes() as epoch, int() as first, int() as is_forced, int() as after_us, checksum:
                head = Facts(epoch.decode("utf-8", "replace"), first, bool(is_forced), after_us)
                if version == FORMAT and head.crc32 == checksum:
                    facts = head
    ordered = tuple(blocks[first] for first in sorted(blocks))
    claims = {first: last for first, last in claims.items() if first not in blocks}
    return Carved(ordered, tuple(sorted(gaps)), facts, claims, ahead, len(content) + len(ahead.frames) * PAGE_BYTES)


def _rows_in(page: bytes, pages: dict[int, bytes]) -> Iterator[tuple[Any, ...]]:
    """Yield the key and the columns of each entry of a page that has the form of a row."""
    if (page[0] ^ _LEAF).bit_count() > 1:  # not even one with a flipped bit
        return
    lowest = len(page)
    for place in range(8, len(page) - 1, 2):
        start = int.from_bytes(page[place : place + 2], "big")
        if place >= lowest or (start == 0 and place > 8):
            return
        if start > place:
            row = _row_at(page, start, pages)
            if row is not None:
                lowest = min(lowest, start)
                yield row


def _row_at(page: bytes, start: int, pages: dict[int, bytes]) -> tuple[Any, ...] | None:
    try:
        size, place = _varint(page, start)
        key, place = _varint(page, place)
        if size > 1 << 30:
            return None
        payload = _payload(page, place, size, pages)
        return None if payload is None else (key, *_columns(payload))
    except (IndexError, ValueError):
        return None


def _payload(page: bytes, place: int, size: int, pages: dict[int, bytes]) -> bytes | None:
    """Return the bytes of a row: what lies in its page, and in those that continue it."""
    if size <= _MOST_LOCAL:
        return page[place : place + size] if place + size <= len(page) else None
    local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % (PAGE_BYTES - 4)
    local = local if local <= _MOST_LOCAL else _LEAST_LOCAL
    parts = [page[place : place + local]]
    following = int.from_bytes(page[place + local : place + local + 4], "big")
    remaining = size - local
    while remaining > 0:
        if following not in pages:
            # A page is lost. What follows the gap cannot be found, but the length of the row still tells its columns.
            parts.append(bytes(remaining))
            break
        content = pages[following]
        parts.append(content[4 : 4 + remaining])
        following = int.from_bytes(content[:4], "big")
        remaining -= PAGE_BYTES - 4
    return b"".join(parts)


def _columns(payload: bytes) -> list[Any]:
    end, place = _varint(payload, 0)
    if not 2 <= end <= 80:
        raise ValueError("no head of a row")
    columns: list[Any] = []
    content = end
    while place < end:
        kind, place = _varint(payload, place)
        if kind in (8, 9):
            columns.append(kind - 8)
            continue
        if kind in (7, 10, 11):
            raise ValueError("a column of a type that is never written")
        size = _INTEGER_BYTES[kind] if kind < 7 else (kind - 12) // 2
        value = payload[content : content + size]
        if len(value) < size:
            raise ValueError("a column that is too long")
        columns.append(value if kind >= 12 else int.from_bytes(value, "big", signed=True) if kind else None)
        content += size
    if content != len(payload):
        raise ValueError("columns that do not fill the row")
    return columns


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, seven bits each, and where it ends."""
    value = 0
    for index in range(8):
        byte = content[place + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place + index + 1
    return value << 8 | content[place + 8], place + 9
