"""How does a damaged log become usable again? By leaving out exactly what is damaged, and saying so.

Every segment that is not what was written is written anew with the blocks that are (`carving`), and with *gaps*: the
ranges of positions that are lost, which subscribers are told. The damaged file stays beside it, with `.damaged` behind
its name. Nothing is done while a broker uses the folder.

Positions are never given twice. So where nobody can say how many events were lost at the end of the log, the gap is as
long as it can have been, by the size of the file, and the next event comes behind it.

    NAME.db.new         being written
    NAME.db.repaired    whole; it takes the place of NAME.db, also if that is interrupted and done by the next repair
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamis.service.errors import DamagedLogError, LogError
from tamis.service.log.base import Gap
from tamis.service.log.blocks import block_of, record_of
from tamis.service.log.carving import Carved, carve
from tamis.service.log.folder_lock import FolderLock
from tamis.service.log.segments import (
    Facts,
    content_of,
    create,
    discard,
    facts_of,
    firsts_in,
    force_folder,
    path_of,
    reading,
    recover,
    rows_of,
    side_files,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST_EVENT_BYTES = 5
"""An event takes at least the four bytes that say where it ends, and its flags."""


class Mended(NamedTuple):
    """What was done, or is to be done, to one segment."""

    path: Path
    what: str
    """What is wrong with it."""
    gaps: tuple[Gap, ...]
    """The positions that are lost by it."""
    kept: int
    """How many events of it are left."""
    copy: Path
    """Where the damaged file is afterwards."""

    def __str__(self) -> str:
        lost = ", ".join(f"{gap.first} to {gap.last}" if gap.first < gap.last else f"{gap.first}" for gap in self.gaps)
        return (
            f"{self.path.name}: {self.what}. Events {lost or 'none'} are left out, {self.kept} are kept; "
            f"the damaged file is {self.copy.name}"
        )


def repair(folder: str | Path, epoch: str = "", only_look: bool = False) -> tuple[Mended, ...]:
    """Leave out what is damaged in the log of a folder; return what was done, segment by segment.

    `epoch` is the name of the log, as the state of the broker knows it, in case that no segment knows it any more.
    Only to look is to return what would be done. Raise `FolderInUseError` while a broker is running.
    """
    home = Path(folder)
    if not home.is_dir():
        raise LogError(f"there is no log in {home}", "the folder of a log")
    lock = FolderLock(home)
    try:
        if not only_look:
            _finish(home)
        plans = list(_plans(home, epoch))
        if not only_look:
            for plan in plans:
                plan.carry_out()
        return tuple(plan.mended for plan in plans)
    finally:
        lock.release()


class _Plan(NamedTuple):
    mended: Mended
    facts: Facts
    carved: Carved
    gaps: tuple[Gap, ...]
    """All gaps of the segment, also those of earlier repairs."""
    following: int | None

    def carry_out(self) -> None:
        """Write the segment anew beside the damaged one, keep a copy of that, and put the new one into its place."""
        path, copy = self.mended.path, self.mended.copy
        fresh = path.with_name(path.name + ".repaired")
        ahead = side_files(path)[0]
        for source, target in ((path, copy), (ahead, side_files(copy)[0])):
            if source.exists():
                shutil.copy2(source, target)
        force_folder(path.parent)
        blocks = (record_of(block) for block in self.carved.blocks if self._is_inside(block.first, block.last))
        create(fresh, self.facts, blocks, self.gaps)
        _finish(path.parent)
        content_of(path, self.following, is_thorough=True)  # or the repair was in vain, and says so

    def _is_inside(self, first: int, last: int) -> bool:
        return first >= self.facts.first and not any(gap.first <= last and first <= gap.last for gap in self.gaps)


def _finish(folder: Path) -> None:
    """Put repaired segments into their places. A write-ahead log of the old one must be gone before."""
    for fresh in folder.glob("*.db.repaired"):
        path = fresh.with_suffix("")
        for side in side_files(path):
            side.unlink(missing_ok=True)
        force_folder(folder)
        os.replace(fresh, path)
        discard(fresh)
        force_folder(folder)


def _plans(folder: Path, epoch: str) -> Iterator[_Plan]:
    firsts = firsts_in(folder)
    epoch = _epoch_of(folder, firsts) or epoch or secrets.token_hex(4)
    time_us = 0
    for first, following in pairwise((*firsts, None)):
        assert first is not None
        path = path_of(folder, first)
        try:
            recover(path)
            facts = facts_of(path)
            if facts.epoch != epoch:
                raise DamagedLogError(str(path), first, first, "it belongs to another log")
            time_us = max(time_us, content_of(path, following, is_thorough=True).time_us)
        except DamagedLogError as error:
            plan = _plan(path, following, epoch, time_us, error)
            time_us = max([time_us, *(block.time_us for block in plan.carved.blocks)])
            yield plan


def _epoch_of(folder: Path, firsts: list[int]) -> str:
    """Return the epoch that most segments name."""
    names: Counter[str] = Counter()
    for first in firsts:
        with suppress(DamagedLogError):
            names[facts_of(path_of(folder, first)).epoch] += 1
    if not names:
        names.update(facts.epoch for first in firsts if (facts := carve(path_of(folder, first)).facts) is not None)
    return names.most_common(1)[0][0] if names else ""


def _plan(path: Path, following: int | None, epoch: str, time_us: int, error: DamagedLogError) -> _Plan:
    first = int(path.stem)
    carved = carve(path)
    if carved.facts is not None and (carved.facts.epoch != epoch or carved.facts.first != first):
        carved = carved._replace(blocks=(), gaps=(), claims={}, facts=None)  # it is of another log, or of elsewhere
    last = (1 << 62) if following is None else following - 1
    blocks = tuple(block for block in carved.blocks if first <= block.first and block.last <= last)
    carved = carved._replace(blocks=blocks)
    old = tuple(gap for gap in carved.gaps if first <= gap.first and gap.last <= last)
    end = last if following is not None else _end(path, carved, old, first)
    gaps = tuple(_holes(sorted([*((block.first, block.last) for block in blocks), *old]), first, end))
    facts = Facts(epoch, first, carved.facts.is_forced if carved.facts else True, time_us)
    kept = sum(len(block.events) for block in blocks)
    mended = Mended(path, error.what, gaps, kept, path.with_name(path.name + ".damaged"))
    return _Plan(mended, facts, carved, tuple(sorted({*gaps, *old})), following)


def _holes(ranges: list[tuple[int, int]], first: int, end: int) -> Iterator[Gap]:
    """Yield what ranges leave out between two positions."""
    for begin, last in ranges:
        if begin > first:
            yield Gap(first, begin - 1)
        first = max(first, last + 1)
    if first <= end:
        yield Gap(first, end)


def _end(path: Path, carved: Carved, gaps: tuple[Gap, ...], first: int) -> int:
    """Return the last position that the last segment can have had."""
    last = max([first - 1, *(block.last for block in carved.blocks), *(gap.last for gap in gaps)])
    if _is_end_certain(path, carved, last):
        return last
    if last + 1 in carved.claims:  # a block with a wrong content, but with a form that tells its length
        return carved.claims[last + 1]
    kept = sum(block.size_bytes + _LEAST_EVENT_BYTES * len(block.events) for block in carved.blocks)
    return last + max(1, (carved.size_bytes - kept) // _LEAST_EVENT_BYTES)


def _is_end_certain(path: Path, carved: Carved, last: int) -> bool:
    """Is the last block that was found the last one that there was?"""
    if carved.write_ahead.is_damaged:
        ends = [index for index, frame in enumerate(carved.write_ahead.frames) if frame.is_commit]
        newest = carved.write_ahead.frames[(ends[-2] + 1 if len(ends) > 1 else 0) :]
        return all(frame.is_good for frame in newest)
    with suppress(sqlite3.DatabaseError), closing(reading(path)) as connection:
        sealed = connection.execute("SELECT max(last) FROM seals").fetchone()[0] or 0
        row = list(rows_of(connection, 1 << 62, 1 << 62))
        block = block_of(row[-1]) if row else None
        return block is not None and block.last == last >= sealed
    return False
