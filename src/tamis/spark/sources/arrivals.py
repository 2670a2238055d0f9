"""In which order did the files of a folder arrive, once and for all?

Times of files are of no use for that: a file may be copied with the time of another, or two may have the same. So
whoever looks first writes down what is new, in order of time and name, in a log of the folder; a file has the number
that it got there, for every query, for good. A file counts as arrived when it is whole: its footer is there. Until
then it waits.

A folder that a transactional sink writes has its own order: that of its commits.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tamis.sources import durable
from tamis.spark.errors import OptionError
from tamis.spark.folders import disk_path
from tamis.spark.sink import belonging, commits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tamis.spark.folders import Place

_MAGIC = b"PAR1"
_LEAST_BYTES = 12
"""A Parquet file has its mark at both ends and the size of its footer before the last."""


class Arrivals:
    """The files of a folder by number."""

    def __init__(self, folder: Place, log: Place | None = None) -> None:
        self.folder = disk_path(folder, "a folder that workers read by themselves")
        self._log = disk_path(log, "a log of arrivals") if log is not None else self.folder / "_tamis" / "arrivals"
        self._commits = self.folder / "_tamis" / "commits"
        self._read: list[list[str]] = []  # entries never change, so one look at each is enough

    def require(self) -> None:
        """Raise unless the folder is there."""
        if not self.folder.is_dir():
            raise OptionError(f"there is no folder {self.folder}")

    def known(self) -> list[str]:
        """Return the files that have numbers, in their order."""
        self._read_on()
        return [name for entry in self._read for name in entry]

    def looked(self) -> list[str]:
        """Give numbers to what is new; return all files that have one."""
        self.require()
        while True:
            known = self.known()
            new = self._new(set(known))
            if not new:
                return known
            if durable.put_new(self._entry(len(self._read)), durable.written(new)):
                return known + new
            # Somebody else was quicker; what they wrote counts.

    def present(self) -> list[str]:
        """Return the files that are there and whole, in order, without giving them numbers."""
        known = self.known()
        there = [name for name in known if (self.folder / name).exists()]
        return there + self._new(set(known))

    def unfinished(self) -> list[str]:
        """Return the files that wait for their end."""
        known = set(self.known())
        return [name for name in self._candidates() if name not in known and not is_whole(self.folder / name)]

    def _new(self, known: set[str]) -> list[str]:
        fresh = [name for name in self._candidates() if name not in known and is_whole(self.folder / name)]
        if self._commits.is_dir():
            return fresh
        return sorted(fresh, key=lambda name: ((self.folder / name).stat().st_mtime_ns, name))

    def _candidates(self) -> Iterator[str]:
        """Yield what could be a file of events, by its name; those of a sink in the order of its commits."""
        if self._commits.is_dir():
            for record in commits(self.folder):
                for name in belonging(record):
                    yield from (name,) if name.endswith(".parquet") else _files(self.folder, name)
        else:
            yield from _files(self.folder, "")

    def _read_on(self) -> None:
        while (entry := durable.record(self._entry(len(self._read)))) is not None:
            self._read.append(entry)

    def _entry(self, number: int) -> Path:
        return self._log / f"{number:012}.json"


def _files(folder: Path, below: str) -> Iterator[str]:
    """Yield the Parquet files of a folder and the folders in it, but for names that begin with a dot or a line."""
    try:
        entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name[0] in "._":
            continue
        name = f"{below}/{entry.name}" if below else entry.name
        if entry.is_dir():
            yield from _files(folder, name)
        elif entry.name.endswith(".parquet"):
            yield name


def is_whole(path: Path) -> bool:
    """Does a file end as a Parquet file does?

    One that is being written has no footer yet: it comes last, with its size and the mark behind it.
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size < _LEAST_BYTES:
                return False
            file.seek(-8, os.SEEK_END)
            footer_bytes, mark = int.from_bytes(file.read(4), "little"), file.read(4)
            return mark == _MAGIC and footer_bytes + _LEAST_BYTES <= size
    except OSError:
        return False
