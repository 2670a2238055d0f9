"""Whatever happens to the process or the disk: what was acknowledged is there, in order, and nothing is torn."""

from __future__ import annotations

import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.service.errors import FolderInUseError, LogError, SettingsError, StorageFullError
from tamis.service.log.segments import facts_of, firsts_in, path_of
from tamis.service.log.sqlite import SqliteLog, sync_seconds
from tests.lengths import so_many
from tests.service.log.drawn import block

ROOT = Path(__file__).parents[3]


class Snapshots:
    """Copies of a folder, one for each state that it had while something ran: what a process leaves that is killed.

    A profile function looks at the folder after every call, of Python or of C, and copies it if it has changed.
    """

    def __init__(self, folder, target):
        self.folder, self.target = folder, target
        self.acknowledged = 0
        self.states = []
        self.seen = None

    def __enter__(self):
        sys.setprofile(self.look)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)

    def look(self, frame, event, argument):
        if not event.endswith("return"):
            return
        sys.setprofile(None)
        try:
            state = [(entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in os.scandir(self.folder)]
            state = (sorted(state), self.acknowledged)
            if state != self.seen:
                self.seen = state
                copy = self.target / str(len(self.states))
                shutil.copytree(self.folder, copy)
                self.states.append((copy, self.acknowledged))
        finally:
            sys.setprofile(self.look)


@pytest.mark.parametrize("sync_s", [0.0, math.inf], ids=["always", "never"])
def test_every_state_of_the_files_opens_with_all_that_was_acknowledged(tmp_path, sync_s):
    folder = tmp_path / "log"
    folder.mkdir()
    blocks = []
    dropped = 0
    with Snapshots(folder, tmp_path) as snapshots:
        log = SqliteLog(folder, sync_s=sync_s, segment_bytes=600)
        for number in range(12):
            group = [block(log.last + 1, 1 + number % 3, number, 20 if number % 4 else 5000)]
            if number % 5 == 0:
                group.append(block(group[0].last + 1, 2, number))
            blocks += group
            log.append(group)
            snapshots.acknowledged = log.last
            if number == 7:
                dropped = log.drop(log.last - 4) - 1
        log.close()
    assert len(snapshots.states) > 40
    assert dropped > 0
    for copy, acknowledged in snapshots.states:
        log = SqliteLog(copy)
        kept = list(log.read(0, log.last))
        assert kept == [one for one in blocks if log.first <= one.first and one.last <= log.last], copy
        assert log.last >= acknowledged, copy
        assert log.first <= dropped + 1, copy
        log.append([block(log.last + 1, 1, 100)])  # and it goes on
        log.close()
        shutil.rmtree(copy)


@pytest.mark.parametrize("kills", [10, pytest.param(so_many(300), marks=pytest.mark.slow)])
def test_a_process_that_is_killed_loses_nothing_that_it_acknowledged(tmp_path, kills):
    chance = random.Random(7)
    acknowledged, droppable = 0, 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    for _ in range(kills):
        program = [sys.executable, "-m", "tests.service.log.appending_program", str(tmp_path)]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT)
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert line[:1] == ["open"]
        assert int(line[2]) >= acknowledged
        for _ in range(chance.randrange(1, 40)):
            said, position = process.stdout.readline().split()
            acknowledged = max(acknowledged, int(position) if said == "last" else 0)
            droppable = max(droppable, int(position) if said == "drop" else 0)
        process.send_signal(signal.SIGKILL)
        for line in process.stdout.read().splitlines(keepends=True):
            if line.endswith("\n"):
                said, position = line.split()
                acknowledged = max(acknowledged, int(position) if said == "last" else 0)
                droppable = max(droppable, int(position) if said == "drop" else 0)
        process.wait()
        process.stdout.close()
        log = SqliteLog(tmp_path)
        assert log.last >= acknowledged
        assert log.first <= max(1, droppable)
        position = log.first
        for kept in log.read(0, log.last):
            assert kept.first == position
            assert kept == block(kept.first, len(kept.events), kept.time_us, len(kept.events[0]))
            position = kept.last + 1
        assert position == log.last + 1
        log.close()


def test_a_second_process_is_refused(tmp_path):
    log = SqliteLog(tmp_path)
    program = (
        "import sys; from tamis.service.log.sqlite import SqliteLog; from tamis.service.errors import FolderInUseError\n"
        "try: SqliteLog(sys.argv[1])\n"
        "except FolderInUseError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    answer = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
    )
    assert f"is in use by the process {os.getpid()}" in answer.stdout
    with pytest.raises(FolderInUseError):  # nor a second time in this one
        SqliteLog(tmp_path)
    log.append([block(1)])
    log.close()
    SqliteLog(tmp_path).close()


# -- Disks


@pytest.mark.parametrize("together", [1, 3])
def test_a_full_disk_takes_nothing_and_takes_events_again_when_there_is_room(tmp_path, together):
    log = SqliteLog(tmp_path)
    pages = log._writer.execute("PRAGMA page_count").fetchone()[0]
    log._writer.execute(f"PRAGMA max_page_count = {pages + 6}")  # what SQLite says then is what a full disk says
    blocks = []

    def append():
        group = []
        for _ in range(together):
            group.append(block(group[-1].last + 1 if group else log.last + 1, 2, len(blocks), 2000))
        log.append(group)
        blocks.extend(group)

    refused = 0
    for _ in range(20):
        try:
            append()
        except StorageFullError:
            refused += 1
    assert 0 < refused < 20
    assert list(log.read(0, log.last)) == blocks
    log._writer.execute("PRAGMA max_page_count = 100000")
    append()
    log.close()
    log = SqliteLog(tmp_path)
    assert list(log.read(0, log.last)) == blocks
    log.close()


FULL_PROGRAM = """
import os, shutil, sys
from pathlib import Path
from tamis.service.errors import StorageFullError
from tamis.service.log.sqlite import SqliteLog
from tests.service.log.drawn import block

folder = Path(sys.argv[1]) / "log"
(folder.parent / "ballast").write_bytes(bytes(200_000))
log = SqliteLog(folder, segment_bytes=300_000)
blocks, refused = [], 0
while refused < 5:
    try:
        blocks += log.append([block(log.last + 1, 3, log.last, 3000)])
    except StorageFullError:
        refused += 1
assert list(log.read(0, log.last)) == blocks
(folder.parent / "ballast").unlink()
for _ in range(5):
    blocks += log.append([block(log.last + 1, 3, log.last, 3000)])
try:
    while True:
        blocks += log.append([block(log.last + 1, 3, log.last, 3000)])
except StorageFullError:
    pass
first = log.drop(log.last // 2)
blocks = [kept for kept in blocks if kept.first >= first]
assert first > 1
for _ in range(5):
    blocks += log.append([block(log.last + 1, 3, log.last, 3000)])
log.close()
log = SqliteLog(folder)
assert list(log.read(0, log.last)) == blocks
log.close()
print("whole", len(blocks))
"""


def test_a_disk_that_is_really_full_takes_nothing_and_goes_on_when_there_is_room(tmp_path):
    mount = f"mount -t tmpfs -o size=2m tmpfs {tmp_path}"
    if subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    command = f'{mount} && exec "$0" -c "$1" {tmp_path}'
    answer = subprocess.run(
        ["unshare", "-m", "sh", "-c", command, sys.executable, FULL_PROGRAM],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert answer.stdout.startswith("whole"), answer.stderr[-2000:]


BROKEN_PROGRAM = """
import resource, sys
from tamis.service.errors import LogError, StorageFullError
from tamis.service.log.sqlite import SqliteLog
from tests.service.log.drawn import block

log = SqliteLog(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    while True:
        log.append([block(log.last + 1, 3, 0, 3000)])
except LogError as error:
    first = error
assert not isinstance(first, StorageFullError)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
try:
    log.append([block(log.last + 1, 3, 0, 3000)])
except LogError as error:
    assert error is first
    print(log.last, error)
"""


def test_a_write_that_fails_is_final_and_what_was_acknowledged_is_there(tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    answer = subprocess.run(
        [sys.executable, "-c", BROKEN_PROGRAM, str(tmp_path)], capture_output=True, text=True, env=environment,
        check=False,
    )  # fmt: skip
    assert "cannot be written to" in answer.stdout, answer.stderr[-2000:]
    log = SqliteLog(tmp_path)
    assert log.last >= int(answer.stdout.split()[0]) > 3
    assert list(log.read(0, log.last)) == [block(first, 3, 0, 3000) for first in range(1, log.last, 3)]
    log.close()


# -- When it is on disk


@pytest.mark.parametrize(("text", "level"), [("always", 2), ("never", 1), ("0.05s", 1)])
def test_a_commit_waits_for_the_disk_as_it_was_asked(tmp_path, text, level):
    log = SqliteLog(tmp_path, sync_s=sync_seconds(text))
    assert log._writer.execute("PRAGMA synchronous").fetchone() == (level,)
    assert log._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    log.append([block(1)])
    log.close()
    assert facts_of(path_of(tmp_path, 1)).is_forced == (level == 2)


def test_what_was_not_forced_is_forced_soon_after(tmp_path, monkeypatch):
    import threading

    forced = threading.Event()
    real = os.fdatasync

    def noticed(descriptor):
        real(descriptor)
        forced.set()

    monkeypatch.setattr(os, "fdatasync", noticed)
    log = SqliteLog(tmp_path, sync_s=0.02)
    log.append([block(1)])
    assert forced.wait(30)
    log.close()


def test_another_promise_begins_another_segment(tmp_path):
    blocks = []
    for sync_s in (0.0, math.inf, math.inf, 0.0):
        log = SqliteLog(tmp_path, sync_s=sync_s)
        blocks += log.append([block(log.last + 1)])
        log.close()
    assert firsts_in(tmp_path) == [1, 2, 4]
    log = SqliteLog(tmp_path)
    assert list(log.read(0, 9)) == blocks
    log.close()


@pytest.mark.parametrize("text", ["", "often", "0s", "-1s", "1e3s", "5 minutes", "nan"])
def test_a_wrong_promise_is_refused(text):
    with pytest.raises(SettingsError, match="is not a setting of sync"):
        sync_seconds(text)


def test_a_reader_of_somebody_else_keeps_nobody_from_writing(tmp_path):
    log = SqliteLog(tmp_path, segment_bytes=2000)
    log.append([block(1)])
    other = sqlite3.connect(f"file:{path_of(tmp_path, 1)}?mode=ro", uri=True, isolation_level=None)
    other.execute("BEGIN")
    assert other.execute("SELECT count(*) FROM blocks").fetchone() == (1,)
    for first in range(2, 20):
        log.append([block(first, size=500)])
    log.drop(15)  # in vain: the segment cannot be closed
    assert (log.first, firsts_in(tmp_path)) == (1, [1])
    assert other.execute("SELECT count(*) FROM blocks").fetchone() == (1,)
    other.execute("COMMIT")
    for first in range(20, 40):
        log.append([block(first, size=500)])
    other.close()
    assert len(firsts_in(tmp_path)) > 1
    assert [kept.first for kept in log.read(0, 50)] == list(range(1, 40))
    log.close()
    with pytest.raises(LogError, match="the log is closed"):
        log.append([block(40)])
