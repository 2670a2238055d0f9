"""Where do our files lie, and how do they get there whole? File systems of Hadoop, with atomic commits.

Where Spark's lie. A stream has a checkpoint, a log of subscriptions and a folder of matches, on a disk or on whatever
Hadoop's file systems reach: a folder is a path, a `file:` address, or an address such as `hdfs://…` or `s3a://…`,
which the Java machine of the session opens, with the session's settings and credentials. A plain path means what it
means to Spark: a folder of the default file system, which is the disk unless somebody has set another.

A file is there whole or not at all. On a disk it is written beside its place and moved; elsewhere Spark's own manager
of checkpoint files does that, the one that the session's streams use. Object stores have no cheap rename and need
none: there an object appears when its stream is closed, so where a file system says that it can abort a write, the
file is written in its place. Which of two writers of one name comes first is decided by the file system: by a rename,
by a file that is made only where there is none, or, on S3, by a conditional write, which fails when it ends if
somebody else was quicker.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.sources import durable
from tamis.sources.disk import file_path
from tamis.spark.errors import FolderError, OptionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Place: TypeAlias = "str | os.PathLike[str]"
"""A path or an address."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""Two letters at least: one is a drive."""
_ABORTABLE = "fs.capability.outputstream.abortable"
_MANAGERS = ("streaming.checkpointing", "streaming")
"""Where Spark keeps its manager of checkpoint files: its place has changed with 4.1."""
_CONDITIONAL = "fs.option.create.conditional.overwrite"
"""Whether a file system can decide when a write ends that there must be nothing yet. S3 looks before it, too, but of
two writers that both saw nothing the second would replace what the first wrote."""
_EXISTS = "FileAlreadyExistsException"
_OVERTAKEN = "RemoteFileChangedException"
"""What a conditional write throws when it ends and the name is taken."""


class Folder(ABC):
    """A folder of small files that appear whole."""

    place: str
    """What Spark is told."""

    @abstractmethod
    def below(self, *names: str) -> Folder:
        """Return a folder in it, which need not be there yet."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the names of what is in it, in order, but for those that begin with a dot."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None where there is none."""

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all; one that is there is replaced."""

    @abstractmethod
    def put_new(self, name: str, content: bytes) -> bool:
        """Write a file that must not be there yet; return whether it is ours."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file or a folder, if it is there."""

    def record(self, name: str) -> Any:
        """Read a record; None where there is none."""
        content = self.read(name)
        return None if content is None else json.loads(content)

    def put_record(self, name: str, record: Any) -> None:
        """Write a record as JSON."""
        self.put(name, durable.written(record))

    def __str__(self) -> str:
        return self.place


class DiskFolder(Folder):
    """A folder on a disk of this machine.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as path:
    ...     folder = folder_at(f"file://{path}").below("records")
    ...     folder.put_new("1.json", b"[1]"), folder.put_new("1.json", b"[2]"), folder.names(), folder.record("1.json")
    (True, False, ['1.json'], [1])
    """

    def __init__(self, path: Path, place: str | None = None) -> None:
        self.path = path
        self.place = str(path) if place is None else place

    def below(self, *names: str) -> DiskFolder:
        return DiskFolder(self.path.joinpath(*names), "/".join([self.place.rstrip("/"), *names]))

    def names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self.path) if name[0] != ".")
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def put(self, name: str, content: bytes) -> None:
        durable.put(self.path / name, content)

    def put_new(self, name: str, content: bytes) -> bool:
        return durable.put_new(self.path / name, content)

    def remove(self, name: str) -> None:
        path = self.path / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def record(self, name: str) -> Any:
        return durable.record(self.path / name)

    def put_record(self, name: str, record: Any) -> None:
        durable.put_record(self.path / name, record)


class HadoopFolder(Folder):
    """A folder of any file system that the Java machine of a session reaches."""

    def __init__(self, place: str, spark: SparkSession | None = None) -> None:
        self.place = place.rstrip("/")
        self._spark = spark
        self._opened: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return HadoopFolder, (self.place,)

    def below(self, *names: str) -> HadoopFolder:
        return HadoopFolder("/".join([self.place, *names]), self._spark)

    def names(self) -> list[str]:
        jvm, manager, _ = self._open()
        whole = self._path("")
        try:
            if not manager.exists(whole):
                return []
            paths = jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(manager.list(whole))
            joined = jvm.scala.Predef.genericWrapArray(paths).mkString("\n")  # one call, however many there are
        except Exception as error:
            raise self._failed("listed", error) from error
        entries = (line.rpartition("/")[2] for line in joined.splitlines())
        return sorted(name for name in entries if name[:1] not in ("", "."))

    def read(self, name: str) -> bytes | None:
        jvm, manager, _ = self._open()
        try:
            stream = manager.open(self._path(name))
            try:
                return bytes(jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
            finally:
                stream.close()
        except Exception as error:
            if "FileNotFoundException" in _kinds(error):
                return None
            raise self._failed("read", error) from error

    def put(self, name: str, content: bytes) -> None:
        try:
            self._write(name, content, overwrite=True)
        except Exception as error:
            raise self._failed("written", error) from error

    def put_new(self, name: str, content: bytes) -> bool:
        _, manager, _ = self._open()
        try:
            if manager.exists(self._path(name)):  # a write that fails at its very end leaves something beside the file
                return False
            self._write(name, content, overwrite=False)
        except Exception as error:
            kinds = _kinds(error)
            if _EXISTS in kinds:
                return False
            if _OVERTAKEN in kinds:  # maybe by ourselves: a write whose answer got lost is tried again
                return self.read(name) == content
            raise self._failed("written", error) from error
        return True

    def remove(self, name: str) -> None:
        _, manager, _ = self._open()
        try:
            manager.delete(self._path(name))
        except Exception as error:
            raise self._failed("cleared", error) from error

    def _write(self, name: str, content: bytes, *, overwrite: bool) -> None:
        _, manager, system = self._open()
        path = self._path(name)
        if system.hasPathCapability(path, _ABORTABLE):
            if not overwrite and system.hasPathCapability(path, _CONDITIONAL):
                stream = system.createFile(path).must(_CONDITIONAL, True).build()
            else:
                stream = system.create(path, overwrite)
            give_up = "abort"
        else:
            if not manager.exists(path.getParent()):
                manager.mkdirs(path.getParent())
            stream, give_up = manager.createAtomic(path, overwrite), "cancel"
        try:
            stream.write(content)
            stream.close()
        except Exception:
            with suppress(Exception):  # what went wrong first is what counts
                getattr(stream, give_up)()
            raise

    def _path(self, name: str) -> Any:
        jvm, _, _ = self._open()
        return jvm.org.apache.hadoop.fs.Path(f"{self.place}/{name}" if name else self.place)

    def _open(self) -> Any:
        """Return the Java machine, Spark's manager of checkpoint files, and the file system."""
        if self._opened is None:
            spark = _session(self._spark)
            if spark is None:
                raise OptionError(
                    f"{self.place} is reached through Spark, and none is running here: start a session first, "
                    f"tamis.spark.session(). A client of Spark Connect cannot reach it: give a folder on a disk that "
                    f"client and server share"
                )
            jvm: Any = spark._jvm
            settings = spark._jsparkSession.sessionState().newHadoopConf()
            try:
                path = jvm.org.apache.hadoop.fs.Path(self.place)
                system = path.getFileSystem(settings)
                manager = _manager(jvm).create(path, settings)
            except Exception as error:
                raise self._failed(
                    "reached",
                    error,
                    "; its jar and its credentials belong to the session (spark.jars, spark.hadoop.fs...)",
                ) from error
            self._opened = jvm, manager, system
        return self._opened

    def _failed(self, what: str, error: Exception, hint: str = "") -> Exception:
        if isinstance(error, OptionError):
            return error
        java = getattr(error, "java_exception", None)
        cause = str(error) if java is None else str(java.getMessage() or java.getClass().getName())
        return FolderError(f"{self.place} cannot be {what}: {cause.strip().splitlines()[0]}{hint}")


def folder_at(place: Place, spark: SparkSession | None = None) -> Folder:
    """Return the folder at a path or an address; nothing is made of it yet."""
    text = os.fspath(place)
    scheme = scheme_of(text)
    if scheme == "file":
        return DiskFolder(file_path(text), text)
    if scheme is not None:
        if not isinstance(place, str):
            raise OptionError(
                f"a path of pathlib cannot hold an address, and {text!r} looks like one: give it as a text"
            )
        return HadoopFolder(text, spark)
    session = _session(spark)
    if session is not None:
        settings = session._jsparkSession.sessionState().newHadoopConf()
        if not str(settings.get("fs.defaultFS", "file:///")).startswith("file:"):
            jvm: Any = session._jvm
            path = jvm.org.apache.hadoop.fs.Path(text)
            return HadoopFolder(str(path.getFileSystem(settings).makeQualified(path).toString()), spark)
    return DiskFolder(Path(os.path.abspath(text)))


def file_at(place: Place, spark: SparkSession | None = None) -> tuple[Folder, str]:
    """Return the folder of a file, and its name.

    >>> folder, name = file_at("/kept/columns.json")
    >>> str(folder), name
    ('/kept', 'columns.json')
    """
    parent, slash, name = os.fspath(place).replace(os.sep, "/").rpartition("/")
    if not isinstance(place, str) and scheme_of(parent) not in (None, "file"):
        folder_at(place, spark)  # which says why not
    return folder_at(parent + slash if parent in ("", "file:", "file://") else parent or ".", spark), name


def disk_path(place: Place, what: str) -> Path:
    """Return the path of a folder that Python opens by itself; raise if it is not on a disk."""
    text = os.fspath(place)
    scheme = scheme_of(text)
    if scheme is None:
        return Path(text)
    if scheme != "file":
        raise OptionError(f"{what} is a folder on a disk that driver and workers share, not {text}")
    return file_path(text)


def scheme_of(place: str) -> str | None:
    """Return the scheme of an address; None for a path.

    >>> scheme_of("s3a://bucket/x"), scheme_of("FILE:/x"), scheme_of("C:/x"), scheme_of("x/y:z"), scheme_of("./a:b")
    ('s3a', 'file', None, None, None)
    """
    match = _SCHEME.match(place)
    return match[1].lower() if match else None


def _session(spark: Any) -> Any:
    """Return a session with a Java machine of its own: the one that is given, or the one that runs; None if none."""
    from pyspark.sql import SparkSession

    session = spark
    if session is None:
        with suppress(Exception):  # a process without Spark, or whose Spark has ended
            session = SparkSession.getActiveSession() or getattr(SparkSession, "_instantiatedSession", None)
    return session if hasattr(session, "_jsparkSession") and getattr(session, "_jvm", None) is not None else None


def _manager(jvm: Any) -> Any:
    """Return Spark's factory of managers for checkpoint files."""
    for package in _MANAGERS:
        with suppress(Exception):
            within = jvm.org.apache.spark.sql.execution
            for name in package.split("."):
                within = getattr(within, name)
            return getattr(getattr(within, "CheckpointFileManager$"), "MODULE$")
    raise OptionError("this Spark has no manager of checkpoint files: tamis needs Spark 4")


def _kinds(error: Exception) -> list[str]:
    """Return the names of a Java exception and of its causes."""
    names: list[str] = []
    java = getattr(error, "java_exception", None)
    while java is not None and len(names) < 10:
        names.append(java.getClass().getSimpleName())
        java = java.getCause()
    return names
