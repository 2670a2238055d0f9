"""A backup that is made while the broker works, and what a restored broker knows."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from tamis.service.backup import back_up, restore
from tamis.service.errors import ConflictError, DamagedLogError, LogError, StorageFullError
from tamis.service.log.base import Block
from tamis.service.log.copying import copy_log, head_of
from tamis.service.log.segments import firsts_in, path_of
from tamis.service.log.sqlite import SqliteLog
from tamis.service.positions import read_position
from tamis.service.state import State
from tests.service.broker_processes import BrokerProcess, events

SMALL = '[log]\nsegment_bytes = "20kB"\n'


def block(first, count=1, size=10):
    bodies = tuple(json.dumps({"n": first + number, "x": "y" * size}).encode() for number in range(count))
    return Block(first, 1_700_000_000_000_000 + first, bodies, bytes(count))


def filled(folder, blocks=20, count=3, size=300, segment_bytes=4_000):
    log = SqliteLog(folder / "log", segment_bytes=segment_bytes)
    State(folder / "state.db", log.epoch, "tamis").close()
    for _ in range(blocks):
        log.append([block(log.last + 1, count, size)])
    return log


def contents(folder):
    log = SqliteLog(folder / "log")
    try:
        return log.epoch, [body for each in log.read(1, log.last) for body in each.events], log.last
    finally:
        log.close()


class Publisher:
    """Publishes one event after the other, and remembers which were acknowledged, and where."""

    def __init__(self, broker, name):
        self.broker, self.name = broker, name
        self.acknowledged = {}
        self.is_stopping = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        number = 0
        while not self.is_stopping:
            status, answer = self.broker.ask(
                "POST", "/events", events(3, number, self.name), Content_Type="application/cloudevents-batch+json"
            )
            assert status == 200, answer
            for offset, position in enumerate(answer["positions"]):
                self.acknowledged[int(position.partition("-")[2])] = (self.name, str(number + offset))
            number += 3

    def stop(self):
        self.is_stopping = True
        self._thread.join()


def taken(broker, subscriber, enough):
    """Take and acknowledge what a subscriber gets, until nothing more comes; return it by position."""
    found = {}
    while len(found) < enough:
        status, answer = broker.ask("POST", f"/subscribers/{subscriber}/take", {"most": 1_000, "wait_s": 5})
        assert status == 200, answer
        if not answer["events"]:
            break
        for each in answer["events"]:
            found[int(each["at"].partition("-")[2])] = (each["event"]["source"], each["event"]["id"])
        broker.ask("POST", f"/subscribers/{subscriber}/done", {"done_through": answer["events"][-1]["at"]})
    return found


@pytest.mark.parametrize("is_linked", [True, False])
def test_a_backup_under_load_has_everything_that_was_acknowledged_before_its_position(forge, tmp_path, is_linked):
    broker = BrokerProcess(forge, tmp_path / "old", config=SMALL).start()
    publishers = []
    try:
        broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE")
        publishers = [Publisher(broker, f"/p{number}") for number in range(2)]
        while len(firsts_in(broker.data / "log")) < 4:
            time.sleep(0.02)
        seen = taken(broker, "ann", 20)
        broker.ask("PUT", "/subscribers/bob/subscriptions/all", "TRUE")
        before = {position: name for each in publishers for position, name in list(each.acknowledged.items())}
        made = back_up(broker.data, tmp_path / "saved", is_linked)
        after_backup = max(position for each in publishers for position in list(each.acknowledged))
        while max(position for each in publishers for position in list(each.acknowledged)) < after_backup + 30:
            time.sleep(0.02)
        for each in publishers:
            each.stop()
        acknowledged = {position: name for each in publishers for position, name in each.acknowledged.items()}
        cut = made.parts[-1].last
        assert max(before) <= cut, "what was acknowledged before the backup began is in it"
        assert max(acknowledged) > cut, "the broker went on"
        _, went_on = broker.ask("GET", "/ready")
        assert went_on == {"ready": True}
    finally:
        for each in publishers:
            each.stop()
        broker.kill()
    restored = restore(tmp_path / "saved", tmp_path / "new" / "data")
    assert restored == made
    again = BrokerProcess(forge, tmp_path / "new", config=SMALL).start()
    try:
        _, lines = again.ask("GET", "/events")
        found = {int(line["at"].partition("-")[2]): (line["event"]["source"], line["event"]["id"]) for line in lines}
        expected = {position: name for position, name in acknowledged.items() if position <= cut}
        assert found.items() >= expected.items(), "nothing that was acknowledged is missing, or elsewhere"
        assert max(found) == cut
        anns = taken(again, "ann", cut)
        assert {**seen, **anns}.items() >= expected.items(), "each is with its subscriber, before or now"
        _, bob = again.ask("GET", "/subscribers/bob")
        since = int(bob["subscriptions"]["all"]["since"].partition("-")[2])
        assert taken(again, "bob", cut).keys() >= {position for position in expected if position > since}
        status, answer = again.ask(
            "POST", "/events", events(1, 10**6, "/new"), Content_Type="application/cloudevents-batch+json"
        )
        assert status == 200 and int(answer["position"].partition("-")[2]) == cut + 1
        assert (cut + 1) in taken(again, "ann", 1)
        old = f"{made.parts[-1].epoch}-{cut + 1}"
        status, problem = again.ask("POST", "/subscribers/ann/done", {"done_through": old})
        assert status == 410 and "another log" in problem["detail"]
    finally:
        again.kill()


def test_positions_of_before_mean_the_same_only_if_one_asks_for_it(tmp_path):
    log = filled(tmp_path / "old")
    log.close()
    back_up(tmp_path / "old", tmp_path / "saved")
    restore(tmp_path / "saved", tmp_path / "kept", keeps_epoch=True)
    restore(tmp_path / "saved", tmp_path / "new")
    epoch, bodies, last = contents(tmp_path / "old")
    assert contents(tmp_path / "kept") == (epoch, bodies, last)
    assert contents(tmp_path / "new")[1:] == (bodies, last) and contents(tmp_path / "new")[0] != epoch
    for name in ("kept", "new"):
        log = SqliteLog(tmp_path / name / "log")
        State(tmp_path / name / "state.db", log.epoch).close()  # raises an error if they do not belong together
        log.append([block(log.last + 1)])
        log.close()


def test_a_copy_ends_at_its_position_wherever_that_lies(tmp_path):
    log = filled(tmp_path / "old", blocks=12)
    bodies = [body for each in log.read(1, log.last) for body in each.events]
    assert len(firsts_in(tmp_path / "old" / "log")) >= 3
    for through in (*range(log.last + 1), log.last + 9):
        copied = copy_log(tmp_path / "old" / "log", tmp_path / "copy" / "log", through)
        expected = min(log.last, -(-through // 3) * 3)
        assert (copied.first, copied.last) == (1, expected), "with its group"
        assert contents(tmp_path / "copy")[1:] == (bodies[:expected], expected)
    assert head_of(tmp_path / "old" / "log") == log.last
    log.close()


def test_who_writes_to_a_copy_writes_to_no_file_of_the_broker(tmp_path):
    log = filled(tmp_path / "old")
    back_up(tmp_path / "old", tmp_path / "saved")
    before = {path.name: path.read_bytes() for path in (tmp_path / "saved" / "log").glob("*.db")}
    linked = [path for path in (tmp_path / "saved" / "log").glob("*.db") if path.stat().st_nlink > 1]
    assert linked, "closed segments take no room"
    bodies = [body for each in log.read(1, log.last) for body in each.events]
    copy = SqliteLog(tmp_path / "saved" / "log")
    copy.append([block(copy.last + 1, 5)])
    copy.close()
    assert [body for each in log.read(1, log.last) for body in each.events] == bodies
    for path in linked:
        assert path.read_bytes() == before[path.name]
    log.drop(log.last)
    log.close()
    assert contents(tmp_path / "saved")[2] == len(bodies) + 5, "retention takes nothing from the backup"


def test_a_repaired_log_keeps_its_gaps(tmp_path):
    from tamis.service.log.base import Gap
    from tamis.service.log.repair import repair

    filled(tmp_path / "old", segment_bytes=64 << 20).close()
    path = path_of(tmp_path / "old" / "log", 1)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE blocks SET events = x'00' WHERE first = 7")
    repair(tmp_path / "old" / "log")
    for through in (8, 9, 30, 60):
        copy_log(tmp_path / "old" / "log", tmp_path / "copy" / "log", through)
        log = SqliteLog(tmp_path / "copy" / "log")
        assert log.gaps() == (Gap(7, min(9, through)),)
        assert log.last == max(through, min(9, through))
        log.close()


@pytest.mark.parametrize("number", [0, -1])
def test_a_damaged_log_is_not_backed_up_but_said_to_be_damaged(tmp_path, number):
    filled(tmp_path / "old").close()
    path = path_of(tmp_path / "old" / "log", firsts_in(tmp_path / "old" / "log")[number])
    with sqlite3.connect(path) as connection:
        first = connection.execute("SELECT min(first) FROM blocks").fetchone()[0]
        connection.execute("UPDATE blocks SET events = x'00' WHERE first = ?", (first,))
    with pytest.raises(DamagedLogError, match="not what was written"):
        back_up(tmp_path / "old", tmp_path / "saved")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"], "nothing is left"


def damaged(path):
    content = bytearray(path.read_bytes())
    place = content.rfind(b"yyyy") if path.parent.name == "log" else len(content) // 2
    content[place] ^= 1
    path.unlink()  # it may be a link to a file of the broker
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["state.db", "log/00000000000000000001.db", "backup.json", "last"])
def test_a_damaged_backup_is_not_restored(tmp_path, name):
    filled(tmp_path / "old").close()
    back_up(tmp_path / "old", tmp_path / "saved")
    path = tmp_path / "saved" / name
    if name == "last":
        path = [each for each in sorted((tmp_path / "saved" / "log").glob("*.db")) if b"yyyy" in each.read_bytes()][-1]
    if name == "backup.json":
        path.write_text(path.read_text().replace("{", "[", 1))
    else:
        damaged(path)
    with pytest.raises(LogError, match=r"damaged|not what was written"):
        restore(tmp_path / "saved", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert contents(tmp_path / "old")[2] == 60, "the broker's own files are as they were"


@pytest.mark.parametrize("gone", ["state.db", "log", "backup.json", "segment"])
def test_a_backup_with_something_missing_is_not_restored(tmp_path, gone):
    filled(tmp_path / "old").close()
    back_up(tmp_path / "old", tmp_path / "saved")
    path = sorted((tmp_path / "saved" / "log").glob("*.db"))[1] if gone == "segment" else tmp_path / "saved" / gone
    os.rename(path, tmp_path / "elsewhere")
    with pytest.raises(LogError):
        restore(tmp_path / "saved", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_manifest_cannot_name_files_outside_of_the_backup(tmp_path):
    filled(tmp_path / "old").close()
    back_up(tmp_path / "old", tmp_path / "saved")
    manifest = tmp_path / "saved" / "backup.json"
    whole = manifest.read_text()
    for old, new in (
        ('"folder": "."', '"folder": "../../x"'),
        ('"folder": "."', '"folder": "/x"'),
        ('"state.db"', '"../x"'),
    ):
        manifest.write_text(whole.replace(old, new))
        with pytest.raises(LogError, match="names what is not of a backup"):
            restore(tmp_path / "saved", tmp_path / "new")


def test_what_is_there_is_never_written_over(tmp_path):
    filled(tmp_path / "old").close()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    back_up(tmp_path / "old", tmp_path / "empty")
    for name in ("file", "full", "link", "empty"):
        with pytest.raises(ConflictError, match="is there already"):
            back_up(tmp_path / "old", tmp_path / name)
    for name in ("file", "full", "link", "old"):
        with pytest.raises(ConflictError, match="is there already"):
            restore(tmp_path / "empty", tmp_path / name)
    assert (tmp_path / "full" / "mine").read_text() == (tmp_path / "file").read_text() == "mine"


def test_a_folder_without_a_broker_is_refused(tmp_path):
    (tmp_path / "log").mkdir()
    for folder in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(LogError, match="no broker"):
            back_up(folder, tmp_path / "saved")
    with pytest.raises(LogError, match="no backup"):
        restore(tmp_path, tmp_path / "new")


@pytest.mark.parametrize("room", [400_000, 60_000])
@pytest.mark.parametrize("how", ["file_bytes", "disk"])
def test_a_full_disk_leaves_no_backup_and_the_broker_works(forge, tmp_path, room, how):
    """On a disk that is too small, and with a limit to the size of files, which is another error of the system."""
    broker = BrokerProcess(forge, tmp_path / "old").start()
    try:
        broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE")
        big = events(200, text="x" * 3_000)
        assert broker.ask("POST", "/events", big, Content_Type="application/cloudevents-batch+json")[0] == 200
        output = tmp_path / "output"
        place = tmp_path / "place"
        place.mkdir()
        limit = {"file_bytes": room} if how == "file_bytes" else {"disk": [str(place), room]}
        process = forge.run(["backup", place / "saved", "--data", broker.data, "--json"], output, **limit)
        assert forge.wait(process) != 0
        assert ("no room" if how == "disk" else "could not be made") in output.read_text()
        assert not any(place.iterdir()), output.read_text()
        output.unlink()
        assert broker.ask("POST", "/events", {"n": 1})[0] == 200
        process = forge.run(["backup", tmp_path / "saved", "--data", broker.data, "--json"], output)
        assert forge.wait(process) == 0
        assert re.search(r'"position": "[0-9a-f]+-201"', output.read_text()), output.read_text()
    finally:
        broker.kill()


def test_no_room_is_said_so(tmp_path, monkeypatch):
    import errno
    import shutil

    filled(tmp_path / "old").close()
    back_up(tmp_path / "old", tmp_path / "saved")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copytree", full)
    with pytest.raises(StorageFullError, match="no room"):
        restore(tmp_path / "saved", tmp_path / "new")
    assert not any(path.name.startswith(".new") for path in tmp_path.iterdir())


def test_commands_back_up_and_restore(forge, tmp_path):
    filled(tmp_path / "old").close()
    output = tmp_path / "output"
    for command, said in (
        (["backup", tmp_path / "saved", "--data", tmp_path / "old"], "holds the broker tamis as of"),
        (["restore", tmp_path / "saved", "--data", tmp_path / "new"], "is the broker tamis as of"),
    ):
        assert forge.wait(forge.run(command, output)) == 0
        assert said in " ".join(output.read_text().split())
    assert forge.wait(forge.run(["restore", tmp_path / "saved", "--data", tmp_path / "new"], output)) == 2
    assert contents(tmp_path / "new")[2] == 60


def test_tokens_and_edge_brokers_are_in_it(tmp_path):
    from tamis.service.tokens import Tokens

    filled(tmp_path / "old").close()
    filled(tmp_path / "old" / "edges" / "1", blocks=2).close()
    tokens = Tokens.in_folder(tmp_path / "old")
    secret = tokens.create("ann", ("shop",))
    made = back_up(tmp_path / "old", tmp_path / "saved")  # while somebody has it open
    tokens.close()
    restore(tmp_path / "saved", tmp_path / "new")
    again = Tokens.in_folder(tmp_path / "new")
    assert again.find(secret).principal == "ann"
    again.close()
    assert Path(tmp_path / "new" / "tokens.db").stat().st_mode & 0o077 == 0
    assert [part.folder for part in made.parts] == ["edges/1", "."]
    assert contents(tmp_path / "new" / "edges" / "1")[2] == 6
    assert read_position(made.position, made.parts[-1].epoch).event == 60
