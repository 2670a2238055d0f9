"""How does a forest reach a host that shares no disk with the driver, and when does it go? Broadcasts.

By a broadcast: Spark's hosts fetch its blocks from the driver and from one another, a host that joins late like any
other, and only a job that uses a forest ever asks for it. The first task of a host writes the bytes to a file under the
digest of their content, beside it first and then in one step; the others map that file. Under Spark Connect, which has
no broadcasts, a small forest travels inside the plan and a large one as an artifact of the session, under its digest
too, which the server keeps until the session ends.

On a host the files lie with what Spark keeps there for the application, so they go when it goes. Before that, a new
version of a stream's subscriptions removes those that the stream has no use for, and any forest goes that nobody has
opened for a day. Removing is always safe: what is mapped stays mapped, and a task that comes too late fetches again.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_IN_PLAN = 1 << 20
"""So many bytes may travel inside a plan; more would be sent with every stage."""
UNUSED_S = 86_400
"""A forest that nobody has opened for so long leaves its host."""
ENDING = ".forest"
_OF_ONE_APPLICATION = ("executor-", "application_", "spark-")
"""How cluster managers call the folder that they give to one application on a host, and remove after it."""


@cache
def site() -> str:
    """Return the name of this driver's folder on the hosts; nobody else can guess it."""
    return f"tamis-{token_hex(8)}"


@dataclass(frozen=True, slots=True)
class VersionLine:
    """The versions of one set of subscriptions, of which only some are in use."""

    name: str = field(default_factory=lambda: token_hex(4))
    used: tuple[str, ...] = ()
    """The digests of the versions that may still be asked for."""


@dataclass(frozen=True, slots=True)
class SharedBytes:
    """Bytes that are written once on every host that needs them."""

    source: Any
    """A broadcast of the bytes, or the bytes."""
    digest: str
    site: str
    line: VersionLine

    def local_path(self) -> str:
        """Return where the file lies on this host, after writing it if it is not there."""
        folder = host_folder(self.site)
        path = folder / f"{self.line.name}-{self.digest}{ENDING}"
        if not path.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with alone(f"{path}.lock"):
                if not path.exists():
                    _write(path, _content(self.source))
                    _sweep(folder, self.line, self.digest)
        return str(path)

    def drop(self) -> None:
        """Let the driver forget the bytes; no job that uses them may be running."""
        if not isinstance(self.source, bytes):
            with suppress(Exception):  # the context may be stopped, and everything gone with it
                self.source.destroy()


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that Spark Connect carries to every host."""

    name: str

    def local_path(self) -> str:
        """Return where the file lies on this host."""
        from pyspark import SparkFiles

        return SparkFiles.get(self.name)

    def drop(self) -> None:
        """Nothing to do: a session keeps its artifacts."""


Carrier: TypeAlias = SharedBytes | Artifact


def carried(spark: Any, path: Path, line: VersionLine) -> Carrier:
    """Hand a file to Spark; it is not needed afterwards."""
    content = path.read_bytes()
    digest = blake2b(content, digest_size=16).hexdigest()
    if hasattr(spark, "_sc"):
        return SharedBytes(spark.sparkContext.broadcast(content), digest, site(), line)
    if len(content) <= MOST_IN_PLAN:
        return SharedBytes(content, digest, site(), line)
    named = path.with_name(f"{digest}{ENDING}")
    path.rename(named)
    spark.addArtifacts(str(named), file=True)
    named.unlink()
    return Artifact(named.name)


# -- On a host


def host_folder(site: str) -> Path:
    """Return where a host keeps the forests of a driver: in the folder of the application, or in Spark's own there.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, {"SPARK_LOCAL_DIRS": "/x/spark-1/executor-2/blockmgr-3,/y/blockmgr-4"}):
    ...     host_folder("s").as_posix()
    '/x/spark-1/executor-2/s'
    >>> with patch.dict(os.environ, {"SPARK_LOCAL_DIRS": "/tmp/blockmgr-3"}):
    ...     host_folder("s").as_posix()
    '/tmp/blockmgr-3/s'
    """
    first = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]
    if not first:
        return Path(tempfile.gettempdir()) / site
    own = Path(first)
    return (own.parent if own.parent.name.startswith(_OF_ONE_APPLICATION) else own) / site


def _content(source: Any) -> bytes:
    if isinstance(source, bytes):
        return source
    content: bytes = source.value
    if getattr(source, "_path", None) is not None:
        vars(source).pop("_value", None)  # a worker that lives on would keep a second copy of it
    return content


def _write(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name}.{token_hex(4)}")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    finally:
        with suppress(OSError):
            beside.unlink()


def _sweep(folder: Path, line: VersionLine, digest: str) -> None:
    """Remove what a host has no use for any more."""
    used = {*line.used, digest}
    for path in folder.glob(f"*{ENDING}"):
        name, _, its_digest = path.name.removesuffix(ENDING).partition("-")
        with suppress(OSError):
            is_old = time.time() - path.stat().st_mtime > UNUSED_S
            if (name == line.name and its_digest not in used) or is_old:
                for ending in ("", ".informed", ".lock"):
                    Path(f"{path}{ending}").unlink(missing_ok=True)


@contextmanager
def alone(path: str) -> Iterator[bool]:
    """Wait until nobody else on this host does the same; yield whether that could be had."""
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    try:
        file = open(path, "a")  # noqa: SIM115 - closed below
    except OSError:  # a disk that is not ours to write on
        yield False
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield True
