"""How are events kept on this machine? A log of SQLite files, one row for each group commit.

A block is a row, so SQLite's cost is paid once a group and not once an event; blocks that wait together are one
transaction, with one wait for the disk. What is hard about files (torn writes, recovery, readers beside a writer) is
left to the library. What it does not do, checksums find: every block is checked when it is read, and all of them when
the log is opened. A log with damage is not opened, because nobody could say what was lost; `repair` leaves out exactly
what is damaged.

The log is cut into segments (`segments`), files of their own, so that dropping what is old is removing a file.

    folder/lock                           the process that uses it
    folder/00000000000000000001.db        closed: only read
    folder/00000000000000070211.db        the last one is written to
    folder/00000000000000070211.db-wal    what is not folded in yet
"""

from __future__ import annotations

import math
import os
import re
import secrets
import sqlite3
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Literal, NoReturn

from tamis.service.errors import DamagedLogError, LogError, SettingsError, StorageFullError
from tamis.service.log.base import VOID, Block, Extent, Gap
from tamis.service.log.blocks import Record, record_of
from tamis.service.log.folder_lock import FolderLock
from tamis.service.log.segments import (
    INSERT,
    Content,
    Facts,
    LogSegment,
    content_of,
    create,
    discard,
    facts_of,
    firsts_in,
    fold,
    force_folder,
    is_full,
    path_of,
    recover,
    reserve,
    side_files,
    writing,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_FOLDED_BYTES = 4 << 20
"""After so many bytes the write-ahead log is folded into the database."""


def sync_seconds(text: str) -> float:
    """Return how long an acknowledged block may be without the disk: 0 for "always", infinite for "never".

    >>> sync_seconds("always"), sync_seconds("0.2s"), sync_seconds("never")
    (0.0, 0.2, inf)
    """
    if text == "always":
        return 0.0
    if text == "never":
        return math.inf
    form = re.fullmatch(r"(\d+(?:\.\d+)?) ?s", text)
    if form is None or not 0 < float(form[1]) <= 3600:
        raise SettingsError(f"{text!r:.60} is not a setting of sync", '"always", "never" or such as "0.2s"')
    return float(form[1])


class SqliteLog:
    """A durable log of events in the files of a folder.

    `sync_s` is how long an acknowledged block may be without the disk (`sync_seconds`); a process that is killed loses
    nothing in any case. A new segment begins after `segment_bytes`, or when the first block of the old one is older
    than `segment_s`. `check="last"` looks only at the last segment when the log is opened.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = SqliteLog(folder)
    ...     _ = log.append([Block(1, 1_700_000_000_000_000, (b'{"price": 12}', b"{}"), bytes(2))])
    ...     [block.events for block in log.read(2, 2)], log.last
    ...     log.close()
    ([(b'{"price": 12}', b'{}')], 2)
    """

    is_shared = False
    block_positions = 1

    def __init__(
        self,
        folder: str | Path,
        sync_s: float = 0.0,
        segment_bytes: int = 64 << 20,
        segment_s: float = 3600.0,
        check: Literal["all", "last"] = "all",
    ) -> None:
        self._folder = Path(folder)
        self._segment_bytes, self._segment_us = segment_bytes, int(segment_s * 1e6)
        self._sync_s = sync_s
        self._is_forced = sync_s == 0
        self._guard = RLock()
        """Held by whoever changes the list of segments or writes."""
        self._failure: LogError | None = None
        self._last_time_us = 0
        self._unfolded_bytes = 0
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder_lock = FolderLock(self._folder)
        try:
            self._segments = self._opened(check)
            self._begin_writing()
        except BaseException:
            self._folder_lock.release()
            raise
        self._is_closing = Event()
        self._forcing: Thread | None = None
        if 0 < sync_s < math.inf:
            self._forcing = Thread(target=self._force_regularly, name="tamis-log-sync", daemon=True)
            self._forcing.start()

    # -- What is there

    @property
    def first(self) -> int:
        """The position of the oldest event that may still be there; 1 more than the last one if there is none."""
        return self._segments[0].first

    @property
    def last(self) -> int:
        """The position of the newest event; 0 if there never was one. At the end of a repaired log: what it lost."""
        return self._segments[-1].last

    @property
    def last_time_us(self) -> int:
        """When the newest block was taken, also if it has been dropped; 0 if there never was one."""
        return self._last_time_us

    def read(self, first: int, last: int) -> Iterator[Block]:
        """Yield the blocks that have an event from `first` to `last`, whole, in order. Raise `DamagedLogError`."""
        for segment in tuple(self._segments):
            position = max(first, segment.first)
            end = min(last, segment.last)
            while position <= end:
                blocks = segment.fetch(position, end)
                yield from (block for block in blocks if block.flags[0] != VOID)
                if not blocks:  # what is left is a gap, or was dropped
                    break
                position = blocks[-1].last + 1

    def gaps(self) -> tuple[Gap, ...]:
        """Return what a repair has left out."""
        return tuple(gap for segment in self._segments for gap in segment.gaps)

    def position_at(self, time_us: int) -> int:
        """Return the position of the first event taken at or after a time; 1 more than the last if none was."""
        for segment in tuple(self._segments):
            if segment.time_us >= time_us and segment.last >= segment.first:
                begin = segment.begin_at(time_us)
                if begin is not None:
                    return begin
        return self.last + 1

    def extents(self) -> tuple[Extent, ...]:
        """Return the segments that have an event, oldest first."""
        return tuple(
            Extent(segment.first, segment.last, segment.time_us, segment.size_bytes)
            for segment in tuple(self._segments)
            if segment.last >= segment.first
        )

    # -- Writing

    def append(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Write blocks as one transaction; return them when they are on disk as `sync_s` promises.

        Positions are given by who appends: each block begins behind the one before.
        """
        with self._guard:
            if self._failure is not None:
                raise self._failure
            position, time_us = self.last + 1, self._last_time_us
            tiles = []
            for block in blocks:
                assert block.first >= position, f"position {block.first} does not follow {position - 1}"
                assert block.time_us >= time_us, "time does not go backwards"
                if block.first > position:  # nothing may be missing, so what is left out on purpose is said
                    tiles.append(_void(position, block.first - position, block.time_us))
                tiles.append(block)
                position, time_us = block.last + 1, block.time_us
            records = [record_of(block) for block in tiles]
            try:
                self._prepare(blocks)
                if len(records) == 1:
                    self._writer.execute(INSERT, records[0])
                else:
                    self._write_together(records)
            except (sqlite3.Error, OSError) as error:
                self._fail(error)
            size = sum(len(record.events) + 5 * record.event_count + 64 for record in records)
            self._open_bytes += size
            self._unfolded_bytes += size
            self._is_unforced = True
            segment = self._segments[-1]
            if blocks:
                if segment.last < segment.first:
                    self._open_since_us = blocks[0].time_us
                segment.last, segment.time_us = position - 1, time_us
                self._last_time_us = time_us
            return tuple(blocks)

    def drop(self, before: int) -> int:
        """Drop the segments all of whose events come before a position; return the new `first`."""
        with self._guard:
            if self._failure is not None:
                raise self._failure
            newest = self._segments[-1]
            try:
                if newest.first <= newest.last < before:
                    self._rotate()
                while len(self._segments) > 1 and self._segments[0].last < before:
                    segment = self._segments[0]
                    self._segments = self._segments[1:]  # a new list: who reads goes on with the old one
                    segment.is_dropped = True
                    discard(segment.path)
                    segment.close_readers()
                    force_folder(self._folder)
            except (sqlite3.Error, OSError) as error:
                self._fail(error)
            return self.first

    def close(self) -> None:
        """Let go of the files; what was appended stays."""
        with self._guard:
            self._is_closing.set()
            if self._writer is not None and self._failure is None:
                is_finished = False
                with suppress(sqlite3.Error, OSError):  # no room for a seal: the write-ahead log has everything
                    is_finished = self._segments[-1].finish(self._writer)
                if not is_finished:
                    self._writer.close()
            for segment in self._segments:
                segment.close_readers()
            self._failure = self._failure or LogError("the log is closed")
            self._folder_lock.release()
        if self._forcing is not None:
            self._forcing.join()

    def _write_together(self, records: Sequence[Record]) -> None:
        self._writer.execute("BEGIN")
        try:
            self._writer.executemany(INSERT, records)
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise

    def _prepare(self, blocks: Sequence[Block]) -> None:
        """Make room before a transaction, so that a full disk is noticed while nothing is written yet."""
        segment = self._segments[-1]
        if blocks and segment.last >= segment.first:
            age_us = blocks[0].time_us - self._open_since_us
            if self._open_bytes >= self._segment_bytes or age_us >= self._segment_us:
                self._rotate()
                return
        if self._unfolded_bytes >= _FOLDED_BYTES:
            fold(self._writer, segment.last)
            self._unfolded_bytes = 0

    def _fail(self, error: Exception) -> NoReturn:
        if is_full(error):
            raise StorageFullError(
                f"there is no room for events in {self._folder}", "free space on that disk"
            ) from None
        # Nobody knows what a failed write or a failed wait has left: what is on disk decides, at the next start.
        self._failure = LogError(f"the log in {self._folder} cannot be written to: {error}", "a disk that works")
        raise self._failure from error

    # -- Segments

    def _opened(self, check: str) -> list[LogSegment]:
        """Return the segments of the folder, all whole; make the first one if there is none."""
        for path in self._folder.glob("*.db.repaired"):
            raise LogError(f"a repair of {path.stem} was interrupted", "'tamis repair' to finish it")
        for path in self._folder.glob("*.new"):
            discard(path)
        firsts = firsts_in(self._folder)
        if not firsts:
            epoch = secrets.token_hex(4)
            create(path_of(self._folder, 1), Facts(epoch, 1, self._is_forced, 0))
            firsts = [1]
        self.epoch = ""
        segments = []
        for first, following in pairwise((*firsts, None)):
            assert first is not None
            path = path_of(self._folder, first)
            recover(path)
            facts = facts_of(path)
            if facts.epoch != (self.epoch or facts.epoch):
                raise DamagedLogError(str(path), first, first, "it belongs to another log")
            self.epoch = facts.epoch
            content = content_of(path, following, check == "all" or following is None)
            self._last_time_us = max(facts.after_us, content.time_us)
            segments.append(LogSegment(path, content, is_closed=True))
        return segments

    def _begin_writing(self) -> None:
        """Open the last segment for writing; begin another one if it was written with another promise."""
        segment = self._segments[-1]
        if facts_of(segment.path).is_forced != self._is_forced:
            if segment.last >= segment.first:
                segment = self._created()
                self._segments.append(segment)
            else:
                create(segment.path, Facts(self.epoch, segment.first, self._is_forced, self._last_time_us))
        self._write_to(segment)

    def _write_to(self, segment: LogSegment) -> None:
        segment.is_closed = False
        segment.close_readers()
        self._open_bytes = segment.size_bytes if segment.last >= segment.first else 0
        self._writer = writing(segment.path, self._is_forced)
        if self._is_forced:
            reserve(segment.path, min(_FOLDED_BYTES + (1 << 20), self._segment_bytes))
        self._unfolded_bytes = 0
        self._is_unforced = False
        begin = next(iter(segment.fetch(segment.first, segment.first)), None)
        self._open_since_us = begin.time_us if begin else self._last_time_us

    def _created(self) -> LogSegment:
        first = self.last + 1
        path = path_of(self._folder, first)
        create(path, Facts(self.epoch, first, self._is_forced, self._last_time_us))
        return LogSegment(path, Content(first - 1, 0, ()), is_closed=True)

    def _rotate(self) -> None:
        """Close the last segment, and begin another one behind it; not now, if another program reads the last one."""
        segment = self._created()
        is_finished = False
        try:
            is_finished = self._segments[-1].finish(self._writer)
        finally:
            if not is_finished:
                discard(segment.path)
        if is_finished:
            self._segments = [*self._segments, segment]
            self._write_to(segment)
        else:
            self._open_bytes, self._open_since_us = 0, self._last_time_us  # tried again when it has grown once more

    def _force_regularly(self) -> None:
        while not self._is_closing.wait(self._sync_s):
            if self._is_unforced:
                self._is_unforced = False
                try:
                    descriptor = os.open(side_files(self._segments[-1].path)[0], os.O_RDONLY)
                except FileNotFoundError:  # folded in meanwhile, which waits for the disk itself
                    continue
                try:
                    os.fdatasync(descriptor)
                except OSError as error:
                    self._failure = LogError(f"the disk of {self._folder} does not take events: {error}")
                finally:
                    os.close(descriptor)


def _void(first: int, count: int, time_us: int) -> Block:
    """Return a block that fills positions which were given to no event."""
    return Block(first, time_us, (b"",) * count, bytes((VOID,)) * count)
