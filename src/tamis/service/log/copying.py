"""How is a log copied while a broker writes to it? Through one position: hard links, and one segment written anew.

A closed segment is never written to again, so a hard link to its file is a copy that takes no room and no time; where
there can be none (another file system, or one wants the bytes twice) it is copied. The segment in which the position
lies is read through SQLite, block by block with its checksum, and written as a new one that ends there. Behind the
position there is always a segment of the copy's own, so that whoever writes to the copy writes to no linked file.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from tamis.service.errors import DamagedLogError, LogError
from tamis.service.log.base import Gap
from tamis.service.log.blocks import record_of
from tamis.service.log.segments import (
    Facts,
    checked,
    content_of,
    create,
    facts_of,
    firsts_in,
    force_folder,
    malformed,
    path_of,
    reading,
    rows_of,
    side_files,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_Result = TypeVar("_Result")
_ATTEMPTS = 20
_GAPS = "SELECT first, last FROM gaps WHERE first <= ? ORDER BY first"
_NEWEST = (
    "SELECT max(last) FROM (SELECT first + count - 1 AS last FROM blocks UNION ALL SELECT last FROM gaps "
    "UNION ALL SELECT last FROM seals)"
)


class CopiedLog(NamedTuple):
    """What a copy of a log holds."""

    epoch: str
    first: int
    last: int
    """The position that it was made as of; 0 if there was no event yet."""


def head_of(folder: Path) -> int:
    """Return the newest position that is in the files of a log, also while a broker writes to them."""
    return _repeated(lambda: _head_of(folder))


def copy_log(folder: Path, target: Path, through: int, is_linked: bool = True) -> CopiedLog:
    """Copy a log through a position into a new folder; raise `DamagedLogError` if what is read is damaged.

    If the position lies within a group of events, the copy ends with that group.
    """

    def attempt() -> CopiedLog:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        return _copied(folder, target, through, is_linked)

    return _repeated(attempt)


def renamed(folder: Path, epoch: str) -> None:
    """Give a log that nobody uses another name (epoch), so that no position of before means anything in it."""
    for first in firsts_in(folder):
        path = path_of(folder, first)
        facts = facts_of(path)._replace(epoch=epoch)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("UPDATE segment SET epoch = ?, crc32 = ?", (facts.epoch, facts.crc32))
    force_folder(folder)


def checked_through(folder: Path) -> CopiedLog:
    """Read all of a log that nobody uses; raise `DamagedLogError` unless it is what was written."""
    firsts = firsts_in(folder)
    if not firsts:
        raise LogError(f"there is no log in {folder}", "a backup that 'tamis backup' has made")
    last = 0
    for first, following in pairwise((*firsts, None)):
        assert first is not None
        last = content_of(path_of(folder, first), following, is_thorough=True).last
    return CopiedLog(facts_of(path_of(folder, firsts[0])).epoch, firsts[0], last)


def _repeated(attempt: Callable[[], _Result]) -> _Result:
    """Do something again if a segment has gone meanwhile: retention drops the oldest, and a rotation closes the last.

    A file that is gone looks like a damaged one to who reads it.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return attempt()
        except (FileNotFoundError, _MovedError):
            continue
        except DamagedLogError as error:
            if Path(error.where).exists():
                raise
    return attempt()


class _MovedError(Exception):
    """A segment is not where it was a moment ago."""


def _head_of(folder: Path) -> int:
    head = 0
    for first in firsts_in(folder)[-2:]:  # the last one may be empty
        with _read(path_of(folder, first)) as connection:
            head = max(head, first - 1, connection.execute(_NEWEST).fetchone()[0] or 0)
    return head


def _copied(folder: Path, target: Path, through: int, is_linked: bool) -> CopiedLog:
    firsts = firsts_in(folder)
    if not firsts:
        raise LogError(f"there is no log in {folder}", "the folder of a broker")
    last, time_us, is_forced, epoch = firsts[0] - 1, 0, True, ""
    for first, following in pairwise((*firsts, None)):
        assert first is not None
        if first > through and last >= through:
            break
        path = path_of(folder, first)
        copy = target / path.name
        is_closed = following is not None and not side_files(path)[0].exists()
        facts = facts_of(path, is_immutable=is_closed)
        epoch, is_forced, time_us = facts.epoch, facts.is_forced, max(time_us, facts.after_us)
        if is_closed and following is not None and following - 1 <= through:
            _linked(path, copy, is_linked)
            last = following - 1
        else:
            last = _cut(path, copy, facts, through)
        # All of it is read: a backup that cannot be restored is none.
        time_us = max(time_us, content_of(copy, last + 1, is_thorough=True).time_us)
    newest = path_of(target, last + 1)
    if not newest.exists():
        create(newest, Facts(epoch, last + 1, is_forced, time_us))
    force_folder(target)
    return CopiedLog(epoch, firsts[0], last)


def _linked(path: Path, target: Path, is_linked: bool) -> None:
    if is_linked:
        with suppress(OSError):
            os.link(path, target)
            return
        if not path.exists():
            raise _MovedError
    shutil.copyfile(path, target)
    force_folder(target)


def _cut(path: Path, target: Path, facts: Facts, through: int) -> int:
    """Write the part of a segment that ends at a position anew; return the position where it ends."""
    last = facts.first - 1

    def rows() -> Iterator[tuple[object, ...]]:
        nonlocal last
        with malformed(path, facts.first, through):
            for block in checked(rows_of(connection, facts.first, through), path, gaps, facts.first):
                last = block.last
                yield record_of(block)

    with _read(path) as connection:
        with malformed(path, facts.first, through):
            gaps = tuple(Gap(first, min(end, through)) for first, end in connection.execute(_GAPS, (through,)))
        create(target, facts, rows(), gaps)
    return max([last, *(gap.last for gap in gaps)])


def _read(path: Path) -> closing[sqlite3.Connection]:
    try:
        return closing(reading(path, is_immutable=False))
    except sqlite3.OperationalError:
        if path.exists() and side_files(path)[0].exists():
            raise
        raise _MovedError from None
