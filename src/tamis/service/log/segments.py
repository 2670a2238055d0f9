"""How is a part of the log kept in one file? A segment: a SQLite database with one row a block.

    segment   one row: format, epoch, first position, whether commits are forced, time of the block before; a checksum
    blocks    one row a block, by its first position (`tamis.service.log.blocks`)
    gaps      ranges that a repair has left out
    seals     "everything through here was written", written before the write-ahead log is folded into the database

Invariant: blocks and gaps tile the positions from the segment's first (its name) to its last without a hole, and those
of the next segment follow. So a row that is missing is noticed like one that is changed; at the open end of the last
segment the seals notice it.

A segment is made under another name, filled with its tables and renamed, so that one with its right name is whole.
While it is written to, it has a write-ahead log; a closed one has none and is only read, by connections that take no
locks (`immutable`).
"""

from __future__ import annotations

import errno
import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from struct import pack
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote
from zlib import crc32

from tamis.service.errors import DamagedLogError
from tamis.service.log.base import Block, Gap
from tamis.service.log.blocks import block_of
from tamis.service.log.write_ahead import read_write_ahead

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FORMAT = 1
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
PAGE_BYTES = 4096
_FETCHED_BYTES = 4 << 20
"""So much is read from a segment at once."""
_TABLES = """
CREATE TABLE segment (format INTEGER, epoch TEXT, first INTEGER, is_forced INTEGER, after_us INTEGER, crc32 INTEGER);
CREATE TABLE blocks (first INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, count INTEGER NOT NULL,
    crc32 INTEGER NOT NULL, ends BLOB NOT NULL, flags BLOB NOT NULL, events BLOB NOT NULL);
CREATE TABLE gaps (first INTEGER PRIMARY KEY, last INTEGER NOT NULL, crc32 INTEGER NOT NULL);
CREATE TABLE seals (last INTEGER PRIMARY KEY);
"""
INSERT = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?, ?)"
_SEAL_ALL = (
    "INSERT INTO seals SELECT max(last) FROM "
    "(SELECT first + count - 1 AS last FROM blocks UNION ALL SELECT last FROM gaps) HAVING max(last) IS NOT NULL"
)
_COLUMNS = "first, time_us, count, crc32, ends, flags, events"
_FROM_BLOCK_OF = (
    f"SELECT {_COLUMNS} FROM blocks WHERE first >= "
    "coalesce((SELECT max(first) FROM blocks WHERE first <= ?), 0) AND first <= ? ORDER BY first"
)
_BLOCK_AT = "SELECT first, count, time_us FROM blocks WHERE first <= ? ORDER BY first DESC LIMIT 1"


class Facts(NamedTuple):
    """What a segment says of itself, in its table `segment`."""

    epoch: str
    first: int
    is_forced: bool
    """Whether a transaction waits for the disk."""
    after_us: int
    """When the last block of the segment before was taken."""

    @property
    def crc32(self) -> int:
        """The checksum of it."""
        return crc32(repr((FORMAT, *self)).encode())


class Content(NamedTuple):
    """What a whole segment holds: through which position, when its last block was taken, what is left out."""

    last: int
    time_us: int
    gaps: tuple[Gap, ...]


def path_of(folder: Path, first: int) -> Path:
    """Return where the segment is that begins with a position."""
    return folder / f"{first:020d}.db"


def firsts_in(folder: Path) -> list[int]:
    """Return the first positions of the segments in a folder, in order."""
    return sorted(int(path.stem) for path in folder.glob("*.db") if path.stem.isdigit() and len(path.stem) == 20)


def side_files(path: Path) -> tuple[Path, Path]:
    """Return where SQLite keeps the write-ahead log of a segment and its index."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def create(path: Path, facts: Facts, blocks: Iterable[tuple[object, ...]] = (), gaps: Iterable[Gap] = ()) -> None:
    """Write a new segment file, with what it holds from the beginning; return when it is on disk."""
    draft = path.with_name(path.name + ".new")
    discard(draft)
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(f"BEGIN; {_TABLES}")
            connection.execute("INSERT INTO segment VALUES (?, ?, ?, ?, ?, ?)", (FORMAT, *facts, facts.crc32))
            connection.executemany(INSERT, blocks)
            connection.executemany("INSERT INTO gaps VALUES (?, ?, ?)", [(*gap, gap_checksum(gap)) for gap in gaps])
            connection.execute(_SEAL_ALL)
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = WAL")
        _force(draft)
        os.replace(draft, path)
        force_folder(path.parent)
    except BaseException:
        discard(draft)
        raise


def discard(path: Path) -> None:
    """Remove a file and what SQLite keeps beside it."""
    for each in (*side_files(path), path.with_name(path.name + "-journal"), path):
        each.unlink(missing_ok=True)


def gap_checksum(gap: Gap) -> int:
    """Return the checksum of a gap."""
    return crc32(pack("<QQ", *gap))


def force_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    _force(folder)


def _force(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- Opening


def reading(path: Path, is_immutable: bool = True) -> sqlite3.Connection:
    """Connect to a segment that is only read."""
    options = "mode=ro&immutable=1" if is_immutable else "mode=ro"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{options}", uri=True, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = bytes  # nothing is decoded that was not checked
    connection.execute("SELECT 1 FROM segment").fetchone()  # opens it now
    return connection


def writing(path: Path, is_forced: bool) -> sqlite3.Connection:
    """Connect to the segment that is written to.

    Without force a commit does not wait for the disk. Folding the write-ahead log in waits in any case, so a power
    failure may cost the newest blocks, and never the others.
    """
    connection = sqlite3.connect(path, timeout=0.1, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if is_forced else 'NORMAL'}")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def reserve(path: Path, size: int) -> None:
    """Make the write-ahead log of a segment as long as it will be, before SQLite writes to it.

    Then a commit writes over what is there, and the file system has nothing of its own to force: half of what a small
    commit takes. Zeros are no frames, so a file of them is an empty log to SQLite. Without room it stays as it is.
    """
    descriptor = os.open(side_files(path)[0], os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if os.fstat(descriptor).st_size == 0:
            try:
                os.pwrite(descriptor, bytes(size), 0)
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def fold(connection: sqlite3.Connection, last: int) -> None:
    """Fold the write-ahead log into the database, with a seal of how far it goes."""
    connection.execute("INSERT OR IGNORE INTO seals VALUES (?)", (last,))
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


def recover(path: Path) -> None:
    """Fold in what a crash has left in a write-ahead log; raise `DamagedLogError` if it is damaged."""
    ahead = side_files(path)[0]
    if ahead.exists():
        if facts_of(path).is_forced and read_write_ahead(ahead, PAGE_BYTES).is_damaged:
            raise DamagedLogError(str(ahead), int(path.stem), int(path.stem), "a page in it is not what was written")
        with malformed(path, int(path.stem)), closing(writing(path, is_forced=True)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    for each in side_files(path):
        each.unlink(missing_ok=True)


class malformed:  # noqa: N801 - reads as an adjective
    """Say `DamagedLogError` where SQLite cannot make sense of a file."""

    def __init__(self, path: Path, first: int, last: int = 0) -> None:
        self._path, self.first, self.last = path, first, last

    def __enter__(self) -> malformed:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        # An error whose text is not even text quotes what is in the file.
        if isinstance(error, sqlite3.DatabaseError | UnicodeDecodeError) and not is_full(error):
            raise DamagedLogError(str(self._path), self.first, max(self.first, self.last), str(error)) from None


def is_full(error: BaseException) -> bool:
    """Does an error say that there is no room left on the disk?"""
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL or getattr(error, "errno", None) in _NO_ROOM


# -- Checking


def facts_of(path: Path, is_immutable: bool = True) -> Facts:
    """Return what a closed segment says of itself; raise `DamagedLogError` if that is not what was written."""
    first = int(path.stem)
    with malformed(path, first), closing(reading(path, is_immutable)) as connection:
        rows = connection.execute("SELECT format, epoch, first, is_forced, after_us, crc32 FROM segment").fetchall()
    if len(rows) == 1 and rows[0][0] == FORMAT and isinstance(rows[0][1], bytes):
        _, epoch, begin, is_forced, after_us, stored_sum = rows[0]
        facts = Facts(epoch.decode("utf-8", "replace"), begin, bool(is_forced), after_us)
        if facts.crc32 == stored_sum and begin == first:
            return facts
    raise DamagedLogError(str(path), first, first, "its head is not what was written")


def content_of(path: Path, next_first: int | None, is_thorough: bool) -> Content:
    """Return what a closed segment holds; raise `DamagedLogError` if that is not what was written.

    `next_first` is where the next segment begins; none if there is no next one. Thorough is to look at every block;
    otherwise only at the last one.
    """
    first = int(path.stem)
    end = 0 if next_first is None else next_first - 1
    with malformed(path, first, end) as trouble, closing(reading(path)) as connection:
        if next_first is None:
            state = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if state not in (b"ok", "ok"):
                raise sqlite3.DatabaseError(state.decode("utf-8", "replace"))
        gaps = _gaps(connection, path, first)
        seal = connection.execute("SELECT max(last) FROM seals").fetchone()[0] or 0
        if is_thorough:
            last, time_us = first - 1, 0
            for block in checked(rows_of(connection, first, 1 << 62), path, gaps, first):
                last, time_us = block.last, block.time_us
                trouble.first = last + 1
        else:
            last, time_us = _newest(connection, path, first)
        last = behind(gaps, last + 1) - 1
    expected = max(end, seal, *(gap.last for gap in gaps), 0)
    if last < expected or (end and last != end):
        wrong = (last + 1, expected) if last < expected else (end + 1, last)
        raise DamagedLogError(str(path), *wrong, "it does not end where it should")
    return Content(last, time_us, gaps)


def _gaps(connection: sqlite3.Connection, path: Path, first: int) -> tuple[Gap, ...]:
    gaps = []
    for begin, end, stored_sum in connection.execute("SELECT first, last, crc32 FROM gaps ORDER BY first"):
        if not (isinstance(begin, int) and isinstance(end, int) and 0 < begin <= end < 1 << 62) or (
            gap_checksum(Gap(begin, end)) != stored_sum
        ):
            raise DamagedLogError(str(path), first, first, "its table of gaps is not what was written")
        gaps.append(Gap(begin, end))
    return tuple(gaps)


def _newest(connection: sqlite3.Connection, path: Path, first: int) -> tuple[int, int]:
    row = connection.execute(f"SELECT {_COLUMNS} FROM blocks ORDER BY first DESC LIMIT 1").fetchone()
    if row is None:
        return first - 1, 0
    block = block_of(row)
    if block is None:
        raise DamagedLogError(str(path), row[0], row[0], "its last block is not what was written")
    return block.last, block.time_us


def rows_of(connection: sqlite3.Connection, first: int, last: int) -> sqlite3.Cursor:
    """Return the rows of the blocks with an event from `first` to `last`."""
    return connection.execute(_FROM_BLOCK_OF, (first, last))


def behind(gaps: tuple[Gap, ...], position: int) -> int:
    """Return a position, or the one behind the gaps that begin there.

    >>> behind((Gap(3, 4), Gap(5, 5), Gap(8, 9)), 3)
    6
    """
    for gap in gaps:
        if gap.first == position:
            position = gap.last + 1
    return position


def checked(
    rows: Iterable[tuple[object, ...]], path: Path, gaps: tuple[Gap, ...], expected: int | None = None
) -> Iterator[Block]:
    """Yield the blocks of rows; raise `DamagedLogError` where one is not what was written, or where one is missing."""
    remaining = iter(rows)
    for row in remaining:
        block = block_of(row)
        expected = None if expected is None else behind(gaps, expected)
        if block is None or (expected is not None and block.first != expected):
            good = block or next(filter(None, map(block_of, remaining)), None)
            begin = expected if expected is not None else row[0] if isinstance(row[0], int) else int(path.stem)
            what = "a block is not what was written" if block is None else "a block is missing"
            raise DamagedLogError(str(path), begin, max(begin, good.first - 1) if good else begin, what)
        yield block
        expected = block.last + 1


class LogSegment:
    """A segment in use: what is known of it, and connections that read it."""

    def __init__(self, path: Path, content: Content, is_closed: bool) -> None:
        self.path = path
        self.first = int(path.stem)
        self.last, self.time_us, self.gaps = content
        self.is_closed = is_closed
        self.is_dropped = False
        self._idle: list[sqlite3.Connection] = []
        self._lock = Lock()
        """Held while the open segment is read, so that it is not closed meanwhile."""

    @property
    def size_bytes(self) -> int:
        """How much of the disk it takes."""
        sizes = 0
        for path in (self.path, side_files(self.path)[0]):
            with suppress(FileNotFoundError):
                sizes += path.stat().st_size
        return sizes

    def fetch(self, first: int, last: int) -> list[Block]:
        """Return blocks with an event from `first` to `last`: the first of them, so many as fit some megabytes."""
        if not self.is_closed:
            with self._lock:
                if not self.is_closed:
                    return self._fetched(first, last)
        return self._fetched(first, last)

    def begin_at(self, time_us: int) -> int | None:
        """Return the first position of the first block that was taken at or after a time, if there is one.

        Times grow with positions, so the place is found by halving, on the table's own order.
        """
        if self.is_closed:
            return self._halved(time_us)
        with self._lock:
            return self._halved(time_us)

    def close_readers(self) -> None:
        """Close the connections that nobody uses."""
        while self._idle:
            self._idle.pop().close()

    def finish(self, connection: sqlite3.Connection) -> bool:
        """Fold everything into the database and close it for writing; return whether that was possible.

        It is not while another program reads the file. Then the segment stays as it is.
        """
        with self._lock:
            self.close_readers()
            connection.execute("INSERT OR IGNORE INTO seals VALUES (?)", (self.last,))
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                return False
            connection.close()
            self.is_closed = True
            return True

    def _fetched(self, first: int, last: int) -> list[Block]:
        blocks: list[Block] = []
        size = 0
        with self._borrowed(first, last) as connection:
            if connection is None:
                return []
            # A cursor that is closed early ends its transaction, so a slow reader does not keep the file from folding.
            with closing(connection.cursor()) as cursor:
                cursor.execute(_FROM_BLOCK_OF, (first, last))
                for block in checked(cursor, self.path, self.gaps):
                    if block.last >= first:  # else it ends before a gap that `first` lies in
                        blocks.append(block)
                        size += block.size_bytes
                    if size >= _FETCHED_BYTES:
                        break
        return blocks

    def _halved(self, time_us: int) -> int | None:
        with self._borrowed(self.first, self.last) as connection:
            if connection is None:
                return None
            low, high = self.first, self.last + 1  # blocks before `low` are too early, one at `high` is not
            while low < high:
                middle = (low + high) // 2
                row = connection.execute(_BLOCK_AT, (middle,)).fetchone()
                if row is None or row[2] < time_us:
                    low = max(middle, row[0] + row[1] - 1 if row else 0) + 1
                else:
                    high = row[0]
            begin: int | None = connection.execute("SELECT min(first) FROM blocks WHERE first >= ?", (low,)).fetchone()[
                0
            ]
            return begin

    @contextmanager
    def _borrowed(self, first: int, last: int) -> Iterator[sqlite3.Connection | None]:
        """Lend a connection for reading; none if the segment has been dropped."""
        with malformed(self.path, max(first, self.first), min(last, self.last)):
            try:
                connection = self._idle.pop()
            except IndexError:
                opened = self._connected()
                if opened is None:
                    yield None
                    return
                connection = opened
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
        if self.is_dropped or len(self._idle) >= 4:
            connection.close()
        else:
            self._idle.append(connection)

    def _connected(self) -> sqlite3.Connection | None:
        """Connect; return none if the segment has been dropped meanwhile."""
        try:
            return reading(self.path, self.is_closed)
        except sqlite3.DatabaseError:
            if self.is_dropped:
                return None
            raise
