"""How do subscriptions get to the workers, once?

A *forest* is a set of compiled subscriptions in a file. The driver writes it; workers map it into memory, so that all
workers of a host share one copy, and keep it open from task to task. Where driver and workers share a disk the
file is used where it lies; elsewhere it is carried to every host that needs it (`carriers`).

The forest knows nothing of the events yet. The first task of a host that sees enough of them lays it out by what it
sees and leaves the result beside the file, for the others to map. So no job over the events runs before its time.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

from tamis.language.functions import NO_FUNCTIONS, Functions
from tamis.matching.matcher import Matcher
from tamis.spark.carriers import Carrier, VersionLine, alone, carried

if TYPE_CHECKING:
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
class ForestFile:
    """Compiled subscriptions in a file, as driver and workers know them."""

    path: str
    """Where the driver has it, and the workers too; empty where it is carried to them."""
    carrier: Carrier | None
    count: int
    attributes: tuple[AttributePath, ...]
    """What any of the subscriptions mentions."""
    bytes: int
    """The size of the file."""
    is_informed: bool = False
    """Whether it is laid out by statistics already."""
    functions: Functions = NO_FUNCTIONS
    """Those of the host that the subscriptions may call; they travel with it."""

    def local_path(self) -> str:
        """Return where the file lies on this host."""
        return self.path if self.carrier is None else self.carrier.local_path()

    def matcher(self, events: pa.Table | None = None) -> Matcher:
        """Return the matcher, in a worker; events that are about to be matched may show how to lay it out."""
        path = self.local_path()
        if self.is_informed:
            return _opened(path, self.functions)
        informed = f"{path}.informed"
        if informed in _open or os.path.exists(informed):
            return _opened(informed, self.functions)
        if events is None or events.num_rows < LEAST_SAMPLE or not self.count:
            return _opened(path, self.functions)
        with alone(f"{path}.lock") as may_write:
            if not may_write:
                return _opened(path, self.functions)  # which learns for itself
            if not os.path.exists(informed):
                matcher = Matcher.load(path, functions=self.functions)
                matcher.learn(events.slice(0, _SAMPLE))
                matcher.save(informed)
        return _opened(informed, self.functions)


def _opened(path: str, functions: Functions) -> Matcher:
    matcher = _open.pop(path, None)
    if matcher is None:
        matcher = Matcher.load(path, functions=functions)
        with suppress(OSError):
            os.utime(path.removesuffix(".informed"))  # it is in use
        while len(_open) >= _MOST_OPEN:
            del _open[next(iter(_open))]
    _open[path] = matcher  # the last one used is the last one to go
    return matcher


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
    spark: SparkSession,
    matcher: Matcher,
    attributes: tuple[AttributePath, ...],
    *,
    is_informed: bool = False,
    line: VersionLine | None = None,
) -> ForestFile:
    """Write a forest, and see that the workers find it; if it is a version of a line, they drop those before."""
    path = folder() / f"{token_hex(8)}.forest"
    matcher.save(path)
    size = path.stat().st_size
    carrier = None
    if not shares_disk(spark):
        carrier = carried(spark, path, line or VersionLine())
        path.unlink(missing_ok=True)
    place = "" if carrier else str(path)
    return ForestFile(place, carrier, len(matcher), attributes, size, is_informed, matcher.functions)


def felled(forest: ForestFile) -> None:
    """Remove a forest that nobody will ask again."""
    if forest.carrier is not None:
        forest.carrier.drop()
        return
    for end in ("", ".informed", ".lock"):
        with suppress(OSError):
            os.unlink(forest.path + end)
