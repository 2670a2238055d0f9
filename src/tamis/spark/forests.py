"""How do subscriptions get to the workers, once?

A *forest* is a set of compiled subscriptions in a file. The driver writes it; workers map it into memory, so that all
workers of a host share one copy, and keep it open from task to task. Where driver and workers share a disk the
file is used where it lies; elsewhere Spark carries it to every host (`addFile`, or an artifact under Spark Connect).

The forest knows nothing of the events yet. The first task of a host that sees enough of them lays it out by what it
sees and leaves the result beside the file, for the others to map. So no job over the events runs before its time.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from tamis.matching.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from tamis.matching.columns import Path as AttributePath

LEAST_SAMPLE = 256
"""So many events are needed to lay a forest out by them."""
_SAMPLE = 2048
_MOST_OPEN = 8
"""So many forests are kept open by one worker: streams change them, and shards are several."""

_open: dict[str, Matcher] = {}


@dataclass(frozen=True, slots=True)
class Forest:
    """Compiled subscriptions in a file, as driver and workers know them."""

    path: str
    """Where the driver has it, and the workers too unless it is shipped."""
    is_shipped: bool
    count: int
    attributes: tuple[AttributePath, ...]
    """What any of the subscriptions mentions."""
    is_informed: bool = False
    """Whether it is laid out by statistics already."""

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return os.path.getsize(self.path)

    def local_path(self) -> str:
        """Return where the file lies on this host."""
        if not self.is_shipped:
            return self.path
        from pyspark import SparkFiles

        return SparkFiles.get(Path(self.path).name)

    def matcher(self, events: pa.Table | None = None) -> Matcher:
        """Return the matcher, in a worker; events that are about to be matched may show how to lay it out."""
        path = self.local_path()
        if self.is_informed:
            return _opened(path)
        informed = f"{path}.informed"
        if informed in _open or os.path.exists(informed):
            return _opened(informed)
        if events is None or events.num_rows < LEAST_SAMPLE or not self.count:
            return _opened(path)
        with _alone(f"{path}.lock") as may_write:
            if not may_write:
                return _opened(path)  # which learns for itself
            if not os.path.exists(informed):
                matcher = Matcher.load(path)
                matcher.learn(events.slice(0, _SAMPLE))
                matcher.save(informed)
        return _opened(informed)


def _opened(path: str) -> Matcher:
    matcher = _open.pop(path, None)
    if matcher is None:
        matcher = Matcher.load(path)
        while len(_open) >= _MOST_OPEN:
            del _open[next(iter(_open))]
    _open[path] = matcher  # the last one used is the last one to go
    return matcher


@contextmanager
def _alone(path: str) -> Iterator[bool]:
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


# -- In the driver


@cache
def folder() -> Path:
    """Return the driver's folder for forests, which goes when the driver goes."""
    path = Path(tempfile.mkdtemp(prefix="tamis-"))
    owner = os.getpid()

    def removed() -> None:
        if os.getpid() == owner:  # a forked worker must not take it along
            shutil.rmtree(path, ignore_errors=True)

    atexit.register(removed)
    return path


def is_connect(spark: SparkSession) -> bool:
    """Is the session a client of a Spark somewhere else?"""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def shares_disk(spark: SparkSession) -> bool:
    """Do the workers of this session see the files of this process?"""
    return not is_connect(spark) and str(spark.conf.get("spark.master", "")).startswith("local")


def planted(
    spark: SparkSession, matcher: Matcher, attributes: tuple[AttributePath, ...], *, is_informed: bool = False
) -> Forest:
    """Write a forest, and see that the workers find it."""
    path = folder() / f"{token_hex(8)}.forest"
    matcher.save(path)
    is_shipped = not shares_disk(spark)
    if is_shipped:
        ship(spark, path)
    return Forest(str(path), is_shipped, len(matcher), attributes, is_informed)


def ship(spark: Any, path: Path) -> None:
    """Let Spark carry a file to every host that runs tasks."""
    if is_connect(spark):
        spark.addArtifacts(str(path), file=True)
    else:
        spark.sparkContext.addFile(str(path))


def felled(forest: Forest) -> None:
    """Remove a forest that nobody will ask again."""
    for end in ("", ".informed", ".lock"):
        with suppress(OSError):
            os.unlink(forest.path + end)
