"""What opens the door? Opaque tokens, of which only digests are kept.

A token is 256 random bits, shown once to whoever asked for it. What is stored is its SHA-256, with a principal, its
roles and an end: whoever reads the file cannot use what is in it. A lookup by digest tells nothing by the time
it takes, since nobody can choose digests. (A slow hash, as for passwords, protects secrets that can be guessed; these
cannot.)

The file is SQLite's, so that `tamis token` may change it while a broker runs: the broker asks SQLite at each lookup
whether somebody else has written, which takes a microsecond or two, and reads it again only then.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tamis.service.errors import BadRequestError, NotFoundError
from tamis.service.settings import ADMIN

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "tamis_"
"""How a token begins, so that those who search for secrets in the wrong places find them."""
_FORM = re.compile(r"tamis_[A-Za-z0-9_-]{43}")
_PRINCIPAL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,199}")
_FIRST_TOKEN_MADE = 1


class TokenRecord(msgspec.Struct, frozen=True):
    """What is known of a token, besides itself."""

    digest: str
    principal: str
    roles: tuple[str, ...]
    ends: float | None
    """In seconds since 1970; None is never."""

    @property
    def name(self) -> str:
        """How people refer to it."""
        return self.digest[:12]


class Tokens:
    """The tokens of a broker, in a file.

    >>> tokens = Tokens(":memory:")
    >>> secret = tokens.create("ann", roles=("shop",))
    >>> tokens.find(secret).principal, tokens.find("tamis_" + 43 * "x")
    ('ann', None)
    """

    def __init__(self, path: Path | str) -> None:
        if str(path) != ":memory:":
            Path(path).touch(mode=0o600)
        self._lock = threading.Lock()
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.execute(
            "CREATE TABLE IF NOT EXISTS tokens"
            " (digest TEXT PRIMARY KEY, principal TEXT NOT NULL, roles TEXT NOT NULL, ends REAL)"
        )
        self._version = -1
        self._edition = 0
        self._tokens: dict[str, TokenRecord] = {}

    @classmethod
    def in_folder(cls, folder: Path | str) -> Tokens:
        """Return the tokens in the data folder of a broker, which is made if it is not there."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        return cls(Path(folder) / "tokens.db")

    def create(self, principal: str, roles: tuple[str, ...] = (), ends: float | None = None) -> str:
        """Make a token and return it: this is the only time that anybody sees it."""
        if not _PRINCIPAL.fullmatch(principal):
            raise BadRequestError(f"{principal!r:.80} is not the name of a principal", "letters, digits, _ . @ -")
        with self._lock:
            return self._insert(principal, roles, ends)

    def _insert(self, principal: str, roles: tuple[str, ...], ends: float | None) -> str:
        secret = PREFIX + secrets.token_urlsafe(32)
        row = (digest_of(secret), principal, msgspec.json.encode(roles).decode(), ends)
        self._database.execute("INSERT INTO tokens VALUES (?, ?, ?, ?)", row)
        self._version = -1
        return secret

    def create_first(self) -> str | None:
        """Make a token of an admin, at the first start only; None later, also if nobody has a token any more."""
        with self._lock, self._database:  # commits, or takes both back
            self._database.execute("BEGIN IMMEDIATE")
            if self._database.execute("PRAGMA user_version").fetchone()[0] == _FIRST_TOKEN_MADE:
                return None
            self._database.execute(f"PRAGMA user_version = {_FIRST_TOKEN_MADE}")
            return self._insert(ADMIN, (ADMIN,), None)

    def find(self, secret: str) -> TokenRecord | None:
        """Return what is known of a token, whether it has ended or not; None if there is no such token."""
        return self._all().get(digest_of(secret)) if _FORM.fullmatch(secret) else None

    def revoke(self, name: str) -> TokenRecord:
        """Remove the token whose digest begins so; from now on it opens nothing."""
        candidates = [token for token in self if len(name) >= 6 and token.digest.startswith(name)]
        if len(candidates) != 1:
            raise NotFoundError(
                f"{'several tokens begin' if candidates else 'no token begins'} with {name!r:.80}",
                "at least six characters of the name of one token",
            )
        with self._lock:
            self._database.execute("DELETE FROM tokens WHERE digest = ?", (candidates[0].digest,))
            self._version = -1
        return candidates[0]

    @property
    def edition(self) -> int:
        """A number that is another one when a token was made or revoked, here or by another process."""
        self._all()
        return self._edition

    def ended_count(self, now: float) -> int:
        """Return how many tokens have ended at a time."""
        return sum(token.ends is not None and token.ends <= now for token in self._all().values())

    def __iter__(self) -> Iterator[TokenRecord]:
        """All tokens, by principal."""
        return iter(sorted(self._all().values(), key=lambda token: (token.principal, token.digest)))

    def _all(self) -> dict[str, TokenRecord]:
        with self._lock:
            version = self._database.execute("PRAGMA data_version").fetchone()[0]
            if version != self._version:
                with closing(self._database.execute("SELECT digest, principal, roles, ends FROM tokens")) as rows:
                    self._tokens = {
                        row[0]: TokenRecord(row[0], row[1], msgspec.json.decode(row[2], type=tuple[str, ...]), row[3])
                        for row in rows
                    }
                self._version = version
                self._edition += 1
            return self._tokens

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()


def digest_of(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
