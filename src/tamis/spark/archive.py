"""How does Java start without reading Spark's classes one by one? Class data sharing (AppCDS).

A Java machine can write down the classes that it has loaded, ready for use, and map that *archive* the next time. It
saves a third to a half of what starting Spark costs. The archive is made once, by a process that does a little of
everything, and kept in the user's cache folder under a name that depends on Java, on Spark and on every jar; beside
it lies a checksum, because Java checks little of what it maps. An archive that is missing, damaged or another's is not
used, and Spark starts as it would without.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from tamis.sources import durable
from tamis.spark.java import java_program, java_says

SWITCH = "TAMIS_SPARK_ARCHIVE"
"""Set this variable to `off`, and there is no archive."""
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""Java would tell on standard output why it does not use an archive."""
_CHUNK = 1 << 22
_LEFT_S = 3600
"""After so long what somebody left behind, and did not finish, is in nobody's way."""


def cache_folder() -> Path:
    """Return where tamis keeps what can be made again."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "tamis" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "tamis"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tamis"


def place() -> Path | None:
    """Return where the archive of this Java and this Spark lies, or would lie; None where there can be none."""
    java = java_program()
    says = java_says(java) if java else ""
    is_known = "HotSpot" in says or "OpenJDK" in says  # others have other ways
    if not is_known or os.environ.get(SWITCH) == "off" or "SPARK_HOME" in os.environ:
        return None
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    key = sha256(f"{java}\n{says}\n{pyspark.__version__}\n{jars}\n".encode())
    for jar in sorted(jars.glob("*.jar")):
        about = jar.stat()
        key.update(f"{jar.name} {about.st_size} {about.st_mtime_ns}\n".encode())
    return cache_folder() / f"spark-{pyspark.__version__}-{key.hexdigest()[:16]}.jsa"


def whole_archive() -> Path | None:
    """Return the archive, if it is there and whole."""
    path = place()
    if path is None:
        return None
    try:
        mark = durable.record(_mark(path))
        return path if mark is not None and mark == _sum(path) else None
    except (OSError, ValueError):
        return None


def java_options(path: Path | None) -> str:
    """Return what Java is told: to use an archive if it can, and to say nothing if it cannot.

    >>> java_options(None)
    '-Xshare:auto -Xlog:disable -Xlog:all=error:stderr'
    """
    named = "" if path is None else f" -XX:SharedArchiveFile={_quoted(path)}"
    return f"-Xshare:auto{named} {_QUIET}"


def made() -> Path | None:
    """Make the archive, unless it is there; return it, or None where it cannot be made."""
    path = place()
    if path is None or whole_archive() is not None:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    beside = path.with_name(f".{token_hex(4)}.part")
    options = f"-XX:ArchiveClassesAtExit={_quoted(beside)} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC {_QUIET}"
    with tempfile.TemporaryDirectory() as folder:
        # Java writes the archive when it ends, a while after Python has: who reads its output to the end has waited.
        command = [sys.executable, "-c", _REHEARSAL, options, folder]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    try:
        mark = _sum(beside)
        _mark(path).unlink(missing_ok=True)
        os.replace(beside, path)
        durable.put_record(_mark(path), mark)
    except OSError:
        return None
    return path


def made_later() -> None:
    """Let a process of its own make the archive, gently, while nobody waits for it."""
    path = place()
    if path is None or path.exists() or not _may_write(path.parent):
        return
    if any(path.parent.glob(".*.part")):
        return  # somebody is at it
    with suppress(OSError):
        subprocess.Popen(
            [sys.executable, "-m", "tamis.spark.archive", "--gently"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip


_REHEARSAL = """
import sys
from tamis import spark as on_spark

options, folder = sys.argv[1:]
config = {"spark.driver.extraJavaOptions": options}
session = on_spark.session("local[2]", log=folder + "/log", config=config)
rules = session.createDataFrame([(1, "id % 2 = 0"), (2, "id < 10")], "subscription_id int, condition string")
rules.write.parquet(folder + "/rules.parquet")
rules.write.option("header", "true").csv(folder + "/rules.csv")
rules.write.json(folder + "/rules.json")
session.read.option("header", "true").option("inferSchema", "true").csv(folder + "/rules.csv").count()
session.read.json(folder + "/rules.json").count()
session.range(1000).write.parquet(folder + "/events")
read = session.read.parquet(folder + "/rules.parquet")
pairs = on_spark.match(session.read.parquet(folder + "/events"), read)
pairs.write.parquet(folder + "/pairs")
session.read.parquet(folder + "/pairs").groupBy("subscription_id").count().collect()
log = on_spark.SubscriptionLog(folder + "/log-of-subscriptions")
log.add({1: "id % 2 = 0"})
events = session.readStream.schema("id bigint").parquet(folder + "/events")
once = {"availableNow": True}
on_spark.match_stream(events, log, out=folder + "/out", checkpoint=folder + "/checkpoint", trigger=once).await_end()
session.stop()
"""


def _mark(path: Path) -> Path:
    return path.with_suffix(".json")


def _sum(path: Path) -> list[int]:
    """Return the size and the checksum of a file."""
    size = checksum = 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
    return [size, checksum]


def _quoted(path: Path) -> str:
    """Write a path as Spark reads options: a quotation where there are blanks."""
    return json.dumps(str(path)) if any(each in str(path) for each in " \"'\\") else str(path)


def _may_write(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 1 << 30


def _sweep(folder: Path) -> None:
    """Remove what somebody began long ago, and archives that nothing has used for months."""
    from time import time

    for each in (*folder.glob(".*.part"), *folder.glob("spark-*.jsa")):
        with suppress(OSError):
            about = each.stat()
            age_s = time() - max(about.st_mtime, about.st_atime)
            if age_s > (_LEFT_S if each.name[0] == "." else 5000 * _LEFT_S):
                each.unlink()
                _mark(each).unlink(missing_ok=True)


def main() -> None:
    """Make the archive, and say where it is."""
    if "--gently" in sys.argv[1:] and hasattr(os, "nice"):
        os.nice(10)
    path = made()
    print("no archive can be made here" if path is None else f"the archive of Spark's classes is {path}")


if __name__ == "__main__":
    main()
