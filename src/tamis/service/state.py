"""What must survive a restart, besides events? The state: one SQLite database of small rows.

The node names what changes (`changes`), one thread writes it here, many changes a transaction. Some of it somebody
waits for (a subscription): it is on disk when `write` returns. Floors are not: losing the newest of them costs
deliveries that come again, nothing else, so their transactions do not wait for the disk. Both kinds go through one
connection, and the write-ahead log keeps their order: an urgent transaction forces all before it too.

    meta            format, epoch of the log, name of the broker, versions of the functions that filters may call
    subscribers     who is remembered, and how each is served
    floors          what is done
    subscriptions   versions of subscriptions
    replays         who wants the past
    dead            dead letters
    links           neighbours that are remembered
    webhooks        where events are posted to
    leases          when subscriptions end
    resumes         from where on what subscriptions remember is found again
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.service.changes import (
    Buried,
    Exhumed,
    FloorKept,
    LeaseKept,
    LinkGone,
    LinkKept,
    ReplayGone,
    ReplayKept,
    ResumeKept,
    Stored,
    SubscriberGone,
    SubscriberKept,
    SubscriptionGone,
    SubscriptionKept,
    WebhookGone,
    WebhookKept,
)  # fmt: skip
from tamis.service.errors import LogError, StorageFullError
from tamis.service.links.terms import LINK_SUBSCRIBER, LinkTerms
from tamis.service.log.segments import is_full
from tamis.service.positions import Position
from tamis.service.tellings import Told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.service.changes import Change

FORMAT = 6
_TOLD = msgspec.msgpack.Decoder(tuple[Told, ...])
_LINKS = """
CREATE TABLE links (name TEXT PRIMARY KEY, number INTEGER NOT NULL, url TEXT NOT NULL, terms BLOB NOT NULL)
    WITHOUT ROWID"""
_WEBHOOKS = """
CREATE TABLE webhooks (subscriber TEXT PRIMARY KEY, url TEXT NOT NULL, secrets BLOB NOT NULL, made_by TEXT NOT NULL,
    roles BLOB NOT NULL, is_admin INTEGER NOT NULL) WITHOUT ROWID"""
_WEBHOOK_MODES = """
ALTER TABLE webhooks ADD COLUMN mode TEXT NOT NULL DEFAULT 'structured';
ALTER TABLE webhooks ADD COLUMN most INTEGER NOT NULL DEFAULT 1"""
_LEASES = """
CREATE TABLE IF NOT EXISTS leases (subscriber TEXT, key TEXT, ends_us INTEGER NOT NULL, PRIMARY KEY (subscriber, key))
    WITHOUT ROWID"""
"""Made where it is missing: a state without leases is one in which nothing ends."""
_RESUMES = """
CREATE TABLE resumes (subscriber TEXT PRIMARY KEY, at INTEGER NOT NULL, states BLOB NOT NULL) WITHOUT ROWID"""
_DEAD_TOLD = "ALTER TABLE dead ADD COLUMN told BLOB NOT NULL DEFAULT x''"
_TABLES = (
    """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE subscribers (name TEXT PRIMARY KEY, owner TEXT NOT NULL, wait_s REAL NOT NULL, attempts INTEGER NOT NULL,
    is_ordered INTEGER NOT NULL, forget_after_s REAL NOT NULL, backoff_s REAL NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE floors (name TEXT PRIMARY KEY, head INTEGER NOT NULL, event INTEGER NOT NULL, islands BLOB NOT NULL,
    seen_us INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE subscriptions (subscriber TEXT, key TEXT, number INTEGER, text TEXT NOT NULL, effective TEXT NOT NULL,
    since INTEGER NOT NULL, until INTEGER NOT NULL, made_by TEXT NOT NULL, roles BLOB NOT NULL,
    is_admin INTEGER NOT NULL, PRIMARY KEY (subscriber, key, number)) WITHOUT ROWID;
CREATE TABLE replays (subscriber TEXT, key TEXT, number INTEGER, first INTEGER NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (subscriber, key, number)) WITHOUT ROWID;
CREATE TABLE dead (subscriber TEXT, head INTEGER, event INTEGER, keys BLOB NOT NULL, body BLOB NOT NULL,
    reason TEXT NOT NULL, attempts INTEGER NOT NULL, at_us INTEGER NOT NULL, PRIMARY KEY (subscriber, head, event));
"""
    + _LINKS
    + ";"
    + _WEBHOOKS
    + ";"
    + _WEBHOOK_MODES
    + ";"
    + _RESUMES
    + ";"
    + _DEAD_TOLD
)
MIGRATIONS: dict[int, str] = {
    1: f"{_LINKS};ALTER TABLE subscribers ADD COLUMN backoff_s REAL NOT NULL DEFAULT 0",
    2: _WEBHOOKS,
    3: _WEBHOOK_MODES,
    4: _RESUMES,
    5: _DEAD_TOLD,
}
"""By the format before: the statements that make the next one of it."""


class State:
    """The small rows that a broker keeps; `:memory:` is a path too.

    >>> state = State(":memory:", epoch="k3f9", name="north")
    >>> state.write([SubscriberKept("ann", "ann", 30.0, 0, False, 0.0)], is_urgent=True)
    >>> state.load().subscribers[0].name
    'ann'
    """

    def __init__(self, path: str | Path, epoch: str = "", name: str = "") -> None:
        """Open the state that belongs to the log named `epoch`; make it if it is not there.

        A state that has none yet takes the first that is named.
        """
        self._path = path
        self._lock = RLock()
        if str(path) != ":memory:":
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._open(epoch, name)
        except sqlite3.DatabaseError as error:
            self._connection.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
                raise StorageFullError(f"there is no room for {path}", "free space on that disk") from None
            raise LogError(
                f"{path} cannot be read: {error}", "the state of a broker; restore it from a backup"
            ) from None
        except BaseException:
            self._connection.close()
            raise

    def _open(self, epoch: str, name: str) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        is_new = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if is_new:
            with _Transaction(self._connection):
                for statement in _TABLES.split(";"):
                    self._connection.execute(statement)
                rows = (("format", str(FORMAT)), ("epoch", epoch), ("name", name))
                self._connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
        meta = dict(self._connection.execute("SELECT name, value FROM meta"))
        self._migrate(int(meta.get("format", "0")))
        self._connection.execute(_LEASES)
        if epoch and not meta.get("epoch"):
            with _Transaction(self._connection):
                self._connection.execute("UPDATE meta SET value = ? WHERE name = 'epoch'", (epoch,))
                self._connection.execute("UPDATE meta SET value = ? WHERE name = 'name'", (name,))
            meta |= {"epoch": epoch, "name": name}
        if epoch and meta.get("epoch") != epoch:
            raise LogError(
                f"{self._path} belongs to the log {meta.get('epoch')}, and not to {epoch}",
                "the state and the log of one broker; restore both from one backup",
            )
        self.name: str = meta.get("name", "")
        self.epoch: str = meta.get("epoch", "")
        self.functions: dict[str, int] = msgspec.json.decode(meta.get("functions", "{}"), type=dict[str, int])
        """The versions of the functions that filters could call when the broker ran last, by name."""

    def _migrate(self, version: int) -> None:
        while version in MIGRATIONS and version < FORMAT:
            with _Transaction(self._connection):
                for statement in MIGRATIONS[version].split(";"):
                    self._connection.execute(statement)
                version += 1
                self._connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (str(version),))
        if version != FORMAT:
            age = "a newer" if version > FORMAT else "an unknown older"
            raise LogError(f"{self._path} was written by {age} version: format {version}", f"format {FORMAT}")

    def keep_functions(self, versions: dict[str, int]) -> None:
        """Remember the functions that filters may call from now on."""
        if versions != self.functions:
            with self._lock, _Transaction(self._connection):
                row = ("functions", msgspec.json.encode(versions).decode())
                self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)
            self.functions = dict(versions)

    # -- What the node keeps

    def load(self) -> Stored:
        """Return everything that was kept; of dead letters, how many each subscriber has."""
        with self._lock:
            ask = self._connection.execute
            return Stored(
                subscribers=tuple(
                    SubscriberKept(name, owner, wait_s, attempts, bool(is_ordered), forget_after_s, backoff_s)
                    for name, owner, wait_s, attempts, is_ordered, forget_after_s, backoff_s in ask(
                        "SELECT * FROM subscribers ORDER BY name"
                    )
                ),
                floors=tuple(
                    FloorKept(name, Position(head, event), _positions(islands), seen_us)
                    for name, head, event, islands, seen_us in ask("SELECT * FROM floors ORDER BY name")
                ),
                subscriptions=tuple(
                    _subscription(*row) for row in ask("SELECT * FROM subscriptions ORDER BY subscriber, key, number")
                ),
                replays=tuple(
                    ReplayKept(*row) for row in ask("SELECT * FROM replays ORDER BY subscriber, key, number")
                ),
                dead_counts=tuple(ask("SELECT subscriber, count(*) FROM dead GROUP BY subscriber ORDER BY subscriber")),
                links=tuple(
                    LinkKept(name, number, url, msgspec.msgpack.decode(terms, type=LinkTerms))
                    for name, number, url, terms in ask("SELECT * FROM links ORDER BY number, name")
                ),
                leases=tuple(LeaseKept(*row) for row in ask("SELECT * FROM leases ORDER BY subscriber, key")),
                resumes=tuple(ResumeKept(*row) for row in ask("SELECT * FROM resumes ORDER BY subscriber")),
                webhooks=tuple(
                    WebhookKept(subscriber, url, _texts(secrets), by, _texts(roles), bool(is_admin), mode, most)
                    for subscriber, url, secrets, by, roles, is_admin, mode, most in ask(
                        "SELECT * FROM webhooks ORDER BY subscriber"
                    )
                ),
            )

    def write(self, changes: Iterable[Change], is_urgent: bool) -> None:
        """Apply changes, in their order, all of them or none. Urgent ones are on disk when this returns."""
        with self._lock:
            self._write(lambda: [_APPLY[type(change)](self._connection, change) for change in changes], is_urgent)

    def dead(self, subscriber: str) -> list[Buried]:
        """Return the dead letters of a subscriber, in the order of their positions."""
        with self._lock:
            rows = self._connection.execute(
                "SELECT head, event, keys, body, reason, attempts, at_us, told FROM dead WHERE subscriber = ? "
                "ORDER BY head, event",
                (subscriber,),
            )
            return [
                Buried(
                    subscriber, Position(head, event), _texts(keys), body, reason, attempts, at_us,
                    _TOLD.decode(tellings) if tellings else (),
                )
                for head, event, keys, body, reason, attempts, at_us, tellings in rows
            ]  # fmt: skip

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def _write(self, apply: Callable[[], object], is_urgent: bool) -> None:
        # The setting counts for the commit at the end of the next transaction; between transactions it may change.
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if is_urgent else 'NORMAL'}")
        try:
            with _Transaction(self._connection):
                apply()
        except (sqlite3.Error, OSError) as error:
            if is_full(error):
                raise StorageFullError(f"there is no room for {self._path}", "free space on that disk") from None
            raise LogError(f"{self._path} cannot be written to: {error}", "a disk that works") from error


class _Transaction:
    """All of what is done in it, or nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")


# -- How each change is applied


def _keep_subscriber(connection: sqlite3.Connection, change: SubscriberKept) -> None:
    connection.execute("REPLACE INTO subscribers VALUES (?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(change))


def _forget_subscriber(connection: sqlite3.Connection, change: SubscriberGone) -> None:
    for table, column in _OF_SUBSCRIBERS:
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (change.name,))


def _keep_floor(connection: sqlite3.Connection, change: FloorKept) -> None:
    row = (change.name, *change.floor, _packed(change.islands), change.seen_us)
    connection.execute("REPLACE INTO floors VALUES (?, ?, ?, ?, ?)", row)


def _keep_subscription(connection: sqlite3.Connection, change: SubscriptionKept) -> None:
    *texts, roles, is_admin = msgspec.structs.astuple(change)
    row = (*texts, _packed(roles), is_admin)
    connection.execute("REPLACE INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _forget_subscription(connection: sqlite3.Connection, change: SubscriptionGone) -> None:
    connection.execute(
        "DELETE FROM subscriptions WHERE subscriber = ? AND key = ? AND number = ?", msgspec.structs.astuple(change)
    )


def _keep_replay(connection: sqlite3.Connection, change: ReplayKept) -> None:
    connection.execute("REPLACE INTO replays VALUES (?, ?, ?, ?, ?)", msgspec.structs.astuple(change))


def _forget_replay(connection: sqlite3.Connection, change: ReplayGone) -> None:
    connection.execute(
        "DELETE FROM replays WHERE subscriber = ? AND key = ? AND number = ?", msgspec.structs.astuple(change)
    )


def _bury(connection: sqlite3.Connection, change: Buried) -> None:
    *others, tellings = msgspec.structs.astuple(change)[3:]
    row = (change.subscriber, *change.position, _packed(change.keys), *others, _packed(tellings) if tellings else b"")
    connection.execute("REPLACE INTO dead VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)


def _exhume(connection: sqlite3.Connection, change: Exhumed) -> None:
    connection.execute(
        "DELETE FROM dead WHERE subscriber = ? AND head = ? AND event = ?", (change.subscriber, *change.position)
    )


def _keep_link(connection: sqlite3.Connection, change: LinkKept) -> None:
    row = (change.name, change.number, change.url, msgspec.msgpack.encode(change.terms))
    connection.execute("REPLACE INTO links VALUES (?, ?, ?, ?)", row)


def _forget_link(connection: sqlite3.Connection, change: LinkGone) -> None:
    connection.execute("DELETE FROM links WHERE name = ?", (change.name,))
    connection.execute("DELETE FROM floors WHERE name = ?", (LINK_SUBSCRIBER + change.name,))


def _keep_lease(connection: sqlite3.Connection, change: LeaseKept) -> None:
    if change.ends_us:
        connection.execute("REPLACE INTO leases VALUES (?, ?, ?)", msgspec.structs.astuple(change))
    else:
        connection.execute("DELETE FROM leases WHERE subscriber = ? AND key = ?", msgspec.structs.astuple(change)[:2])


def _keep_resume(connection: sqlite3.Connection, change: ResumeKept) -> None:
    connection.execute("REPLACE INTO resumes VALUES (?, ?, ?)", msgspec.structs.astuple(change))


def _keep_webhook(connection: sqlite3.Connection, change: WebhookKept) -> None:
    row = (
        change.subscriber,
        change.url,
        _packed(change.secrets),
        change.by,
        _packed(change.roles),
        change.is_admin,
        change.mode,
        change.most,
    )
    connection.execute("REPLACE INTO webhooks VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)


def _forget_webhook(connection: sqlite3.Connection, change: WebhookGone) -> None:
    connection.execute("DELETE FROM webhooks WHERE subscriber = ?", (change.subscriber,))


_OF_SUBSCRIBERS = (
    ("subscribers", "name"), ("floors", "name"), ("subscriptions", "subscriber"), ("replays", "subscriber"),
    ("dead", "subscriber"), ("webhooks", "subscriber"), ("leases", "subscriber"),
    ("resumes", "subscriber"),
)  # fmt: skip
_APPLY: dict[type, Callable[[sqlite3.Connection, Any], object]] = {
    SubscriberKept: _keep_subscriber,
    SubscriberGone: _forget_subscriber,
    FloorKept: _keep_floor,
    SubscriptionKept: _keep_subscription,
    SubscriptionGone: _forget_subscription,
    ReplayKept: _keep_replay,
    ReplayGone: _forget_replay,
    Buried: _bury,
    Exhumed: _exhume,
    LeaseKept: _keep_lease,
    LinkKept: _keep_link,
    LinkGone: _forget_link,
    WebhookKept: _keep_webhook,
    ResumeKept: _keep_resume,
    WebhookGone: _forget_webhook,
}


def _subscription(*row: Any) -> SubscriptionKept:
    *texts, roles, is_admin = row
    return SubscriptionKept(*(*texts, _texts(roles), bool(is_admin)))


def _packed(values: tuple[object, ...]) -> bytes:
    return msgspec.msgpack.encode(values)


def _positions(packed: bytes) -> tuple[Position, ...]:
    return msgspec.msgpack.decode(packed, type=tuple[Position, ...])


def _texts(packed: bytes) -> tuple[str, ...]:
    return msgspec.msgpack.decode(packed, type=tuple[str, ...])
