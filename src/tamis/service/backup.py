"""What if the disk of a broker is gone? A backup: its folder as it was at one position, made while it runs.

Three things belong together: the log, the state (who is subscribed to what, and has what), and the tokens. They are
copied in an order that makes one position of them:

1. The newest position in the log is looked up: the backup is as of this one, or of the newest that the state names.
2. The state is copied by SQLite's own means, in one transaction. So every subscription that was acknowledged before
   that position is in it, and nobody has more than is in the log.
3. The log is copied through the position.

What comes behind the position is not in the backup; what came before it and was acknowledged is. Whoever has got events
between the state and the position gets them again, as after a crash.

A restored log has another name (epoch). Otherwise the broker would give positions again that it gave to other events
after the backup, and a subscriber that has those would never see the new ones.

    backup/backup.json       what it is, with digests
    backup/state.db          backup/tokens.db          backup/log/…          backup/edges/1/…
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import sqlite3
import tempfile
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.service.errors import ConflictError, LogError, StorageFullError
from tamis.service.log.copying import checked_through, copy_log, head_of, renamed
from tamis.service.log.segments import force_folder, is_full

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 1
MANIFEST = "backup.json"
_ROOM_BYTES = 64 << 10
"""A disk with less room than this is taken for a full one, if something could not be written to it."""
_DATABASES = ("state.db", "tokens.db")
_NEWEST_NAMED = """
SELECT max(position) FROM (SELECT max(head, event) AS position FROM floors
    UNION ALL SELECT since FROM subscriptions UNION ALL SELECT since FROM replays)"""
_LIMITED = (
    "UPDATE subscriptions SET since = min(since, ?)", "UPDATE replays SET since = min(since, ?)"
)  # fmt: skip


class BackupPart(msgspec.Struct, frozen=True):
    """One data folder of a backup: that of the broker, or of one of its edge brokers."""

    folder: str
    """Within the backup; `.` is the broker's own."""
    epoch: str
    first: int
    last: int
    digests: dict[str, str]
    """SHA-256 of its databases; blocks of the log have checksums of their own."""


class Backup(msgspec.Struct, frozen=True):
    """What a backup says of itself."""

    name: str
    taken: float
    """In seconds since 1970."""
    parts: tuple[BackupPart, ...]
    format: int = FORMAT

    @property
    def position(self) -> str:
        """The position that the backup is as of."""
        return f"{self.parts[-1].epoch}-{self.parts[-1].last}"


def back_up(data: Path | str, target: Path | str, is_linked: bool = True) -> Backup:
    """Copy the data folder of a broker, which may run, into a new folder; return what was made.

    `is_linked` is to link files that will not change, where that is possible, and not to copy them. Raise a
    `ConflictError` if the target is there, a `StorageFullError` if there is no room, a `LogError` if there is no broker
    or its log is damaged. In any case there is either a whole backup or none.
    """
    home, goal = Path(data), Path(target)
    if not (home / "state.db").is_file() or not (home / "log").is_dir():
        raise LogError(
            f"there is no broker with a log of its own in {home}", "the folder of a broker (its setting data)"
        )
    with _made(goal) as draft:
        # Edge brokers first: what they have handed on is in the log of the first, which is copied later.
        edges = sorted(each.parent for each in home.glob("edges/*/log"))
        parts = tuple(_copied(each, draft / each.relative_to(home), home, is_linked) for each in (*edges, home))
        backup = Backup(_name_of(draft / "state.db"), time.time(), parts)
        (draft / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(backup)) + b"\n")
        force_folder(draft / MANIFEST)
    return backup


def restore(backup: Path | str, data: Path | str, keeps_epoch: bool = False) -> Backup:
    """Make a data folder of a backup, for a broker to start with; return the backup.

    `keeps_epoch` is to let positions of before go on to mean the same. It is right only if nobody has seen a position
    behind that of the backup: the broker had been stopped when the backup was made, and has not run since. Raise a
    `ConflictError` if there is something in the folder, and a `LogError` if the backup is damaged.
    """
    source, goal = Path(backup), Path(data)
    made = _manifest(source)
    with _made(goal) as draft:
        for part in made.parts:
            origin, place = source / part.folder, draft / part.folder
            place.mkdir(parents=True, exist_ok=True)
            for name, digest in part.digests.items():
                _verify(origin / name, digest)
                shutil.copy(origin / name, place / name)  # with its rights: tokens are for their owner alone
            shutil.copytree(
                origin / "log", place / "log", ignore=shutil.ignore_patterns("lock", "*-wal", "*-shm", "*.new")
            )
            held = checked_through(place / "log")
            if tuple(held) != (part.epoch, part.first, part.last):
                raise LogError(
                    f"{origin / 'log'} holds {held.epoch}-{held.first} to {held.last}, and the backup was made of "
                    f"{part.epoch}-{part.first} to {part.last}",
                    "a backup that has not been changed since it was made",
                )
            if not keeps_epoch:
                epoch = secrets.token_hex(4)
                renamed(place / "log", epoch)
                _change(place / "state.db", ("UPDATE meta SET value = ? WHERE name = 'epoch'", (epoch,)))
    return made


def _copied(home: Path, draft: Path, broker: Path, is_linked: bool) -> BackupPart:
    draft.mkdir(parents=True, exist_ok=True)
    head = head_of(home / "log")
    names = [name for name in _DATABASES if (home / name).exists()]
    for name in names:
        _copy_database(home / name, draft / name)
    with closing(sqlite3.connect(draft / "state.db")) as state:
        named = state.execute(_NEWEST_NAMED).fetchone()[0] or 0
    log = copy_log(home / "log", draft / "log", max(head, named), is_linked)
    # A subscription may name a position that was given to an event which did not come to the disk.
    _change(draft / "state.db", *((statement, (log.last,)) for statement in _LIMITED))
    digests = {name: _digest(draft / name) for name in names}
    return BackupPart(str(home.relative_to(broker)), log.epoch, log.first, log.last, digests)


def _copy_database(path: Path, target: Path) -> None:
    """Copy a database that others write to: all of it as of one moment."""
    with (
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(target)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, and nothing beside it
    target.chmod(path.stat().st_mode & 0o777)
    force_folder(target)


def _change(path: Path, *statements: tuple[str, tuple[object, ...]]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(*statement)


def _name_of(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str((connection.execute("SELECT value FROM meta WHERE name = 'name'").fetchone() or ("",))[0])


def _manifest(source: Path) -> Backup:
    try:
        made = msgspec.json.decode((source / MANIFEST).read_bytes(), type=Backup)
    except OSError:
        raise LogError(f"there is no backup in {source}", "a folder that 'tamis backup' has made") from None
    except ValueError as error:
        raise LogError(f"{source / MANIFEST} is damaged: {error}", "as 'tamis backup' has written it") from None
    if made.format != FORMAT:
        raise LogError(f"{source} was made by another version: format {made.format}", f"format {FORMAT}")
    outside = [part.folder for part in made.parts if Path(part.folder).is_absolute() or ".." in Path(part.folder).parts]
    if outside or not made.parts or any(set(part.digests) - set(_DATABASES) for part in made.parts):
        raise LogError(f"{source / MANIFEST} names what is not of a backup", "as 'tamis backup' has written it")
    return made


def _verify(path: Path, digest: str) -> None:
    try:
        is_good = _digest(path) == digest
    except OSError as error:
        raise LogError(f"{path} cannot be read: {error.strerror}", "a whole backup") from None
    if not is_good:
        raise LogError(f"{path} is damaged: it is not what was written", "another backup")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _made(goal: Path) -> Iterator[Path]:
    """Give a folder to fill, which becomes `goal` when it is whole; if anything fails there is none."""
    if goal.is_symlink() or (goal.exists() and not (goal.is_dir() and not any(goal.iterdir()))):
        raise ConflictError(f"{goal} is there already", "the name of a folder that is not there, or is empty")
    try:
        goal.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{goal.name}.", dir=goal.parent))
    except OSError as error:
        raise LogError(f"{goal} cannot be made: {error.strerror}", "a folder that can be written to") from None
    try:
        yield draft
        force_folder(draft)
        os.replace(draft, goal)
        force_folder(goal.parent)
    except BaseException as error:
        # SQLite's own copy says of a full disk only that it could not write.
        is_without_room = is_full(error) or shutil.disk_usage(goal.parent).free < _ROOM_BYTES
        shutil.rmtree(draft, ignore_errors=True)
        if is_without_room and isinstance(error, OSError | sqlite3.Error):
            raise StorageFullError(f"there is no room for {goal}", "free space on that disk") from None
        if isinstance(error, OSError | sqlite3.Error):
            raise LogError(f"{goal} could not be made: {error}", "folders that can be read and written") from None
        raise
