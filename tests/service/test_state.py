"""What was kept is there again: the state against a plain dictionary."""

from __future__ import annotations

import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.service import state as state_module
from tamis.service.changes import (
    Buried,
    Exhumed,
    FloorKept,
    LeaseKept,
    LinkGone,
    LinkKept,
    ReplayGone,
    ReplayKept,
    Stored,
    SubscriberGone,
    SubscriberKept,
    SubscriptionGone,
    SubscriptionKept,
)  # fmt: skip
from tamis.service.errors import LogError
from tamis.service.links.terms import LinkTerms
from tamis.service.positions import Position
from tamis.service.state import State

NAMES = st.sampled_from(["", "ann", "bob", "Ünï\x00cødé 🙂", "ann'; DROP TABLE subscribers"])
KEYS = st.sampled_from(["cheap", "", "ж"])
NUMBERS = st.integers(0, 2)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LARGE = st.integers(0, 3) | st.just((1 << 63) - 1)
SECONDS = st.sampled_from([0.0, 0.1, 30.0, 1e300, float("inf")])
POSITIONS = st.builds(Position, LARGE, LARGE)
CHANGES = st.one_of(
    st.builds(SubscriberKept, NAMES, TEXTS, SECONDS, NUMBERS, st.booleans(), SECONDS),
    st.builds(SubscriberGone, NAMES),
    st.builds(FloorKept, NAMES, POSITIONS, st.lists(POSITIONS, max_size=3).map(tuple), LARGE),
    st.builds(SubscriptionKept, NAMES, KEYS, NUMBERS, TEXTS, TEXTS, LARGE, LARGE),
    st.builds(SubscriptionGone, NAMES, KEYS, NUMBERS),
    st.builds(ReplayKept, NAMES, KEYS, NUMBERS, LARGE, LARGE),
    st.builds(ReplayGone, NAMES, KEYS, NUMBERS),
    st.builds(
        Buried, NAMES, POSITIONS, st.lists(TEXTS, max_size=2).map(tuple), st.binary(max_size=9), TEXTS, NUMBERS, LARGE
    ),
    st.builds(Exhumed, NAMES, POSITIONS),
    st.builds(LeaseKept, NAMES, KEYS, LARGE),
)
"""Few names, so that changes meet what is there."""


class Plain:
    """What is kept, as dictionaries."""

    def __init__(self):
        self.kept = {kind: {} for kind in (SubscriberKept, FloorKept, SubscriptionKept, ReplayKept, Buried, LeaseKept)}

    def apply(self, change):
        match change:
            case SubscriberKept(name=name) | FloorKept(name=name):
                self.kept[type(change)][name,] = change
            case SubscriptionKept() | ReplayKept():
                self.kept[type(change)][change.subscriber, change.key, change.number] = change
            case LeaseKept():
                self.kept[LeaseKept].pop((change.subscriber, change.key), None)
                if change.ends_us:
                    self.kept[LeaseKept][change.subscriber, change.key] = change
            case SubscriptionGone():
                self.kept[SubscriptionKept].pop((change.subscriber, change.key, change.number), None)
            case ReplayGone():
                self.kept[ReplayKept].pop((change.subscriber, change.key, change.number), None)
            case Buried():
                self.kept[Buried][change.subscriber, change.position] = change
            case Exhumed():
                self.kept[Buried].pop((change.subscriber, change.position), None)
            case SubscriberGone(name=name):
                for rows in self.kept.values():
                    for key in [key for key in rows if key[0] == name]:
                        del rows[key]

    def sorted(self, kind):
        # SQLite compares texts by their bytes in UTF-8, which is the order of code points, as here.
        return tuple(row for _, row in sorted(self.kept[kind].items()))

    def stored(self):
        dead = self.sorted(Buried)
        names = sorted({letter.subscriber for letter in dead})
        return Stored(
            *map(self.sorted, (SubscriberKept, FloorKept, SubscriptionKept, ReplayKept)),
            tuple((name, sum(letter.subscriber == name for letter in dead)) for name in names),
            leases=self.sorted(LeaseKept),
        )


@settings(max_examples=100)
@given(groups=st.lists(st.tuples(st.lists(CHANGES, max_size=6), st.booleans()), max_size=6), reopens=st.booleans())
def test_what_was_kept_is_there_again_after_a_restart(groups, reopens):
    plain = Plain()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.db"
        state = State(path, "k3f9", "north")
        for changes, is_urgent in groups:
            state.write(changes, is_urgent)
            for change in changes:
                plain.apply(change)
            if reopens:
                state.close()
                state = State(path, "k3f9")
        assert state.load() == plain.stored()
        state.close()
        state = State(path, "k3f9")
        assert state.load() == plain.stored()
        for name in {key[0] for key in plain.kept[Buried]} | {"nobody"}:
            assert state.dead(name) == [row for row in plain.sorted(Buried) if row.subscriber == name]
        assert (state.name, state.epoch) == ("north", "k3f9")
        state.close()


def subscriber(name):
    return SubscriberKept(name, "owner", 30.0, 0, False, 0.0)


def test_changes_are_written_all_or_none():
    state = State(":memory:", "k3f9")
    with pytest.raises(LogError):
        state.write([subscriber("ann"), subscriber(["no text"])], is_urgent=True)
    assert state.load() == Stored()
    state.write([subscriber("bob")], is_urgent=False)
    assert [kept.name for kept in state.load().subscribers] == ["bob"]


def test_an_urgent_transaction_waits_for_the_disk_and_another_does_not():
    state = State(":memory:", "k3f9")
    settings = []
    state._connection.set_trace_callback(settings.append)
    state.write([subscriber("ann")], is_urgent=False)
    state.write([subscriber("ann")], is_urgent=True)
    pragmas_and_commits = [text for text in settings if text.startswith(("PRAGMA", "COMMIT"))]
    assert pragmas_and_commits == ["PRAGMA synchronous = NORMAL", "COMMIT", "PRAGMA synchronous = FULL", "COMMIT"]
    assert state._connection.execute("PRAGMA synchronous").fetchone() == (2,)


def test_the_state_of_another_log_is_refused(tmp_path):
    State(tmp_path / "state.db", "k3f9").close()
    with pytest.raises(LogError, match="belongs to the log k3f9, and not to a7x2"):
        State(tmp_path / "state.db", "a7x2")


@pytest.mark.parametrize(("found", "message"), [("99", "a newer version: format 99"), ("0", "an unknown older")])
def test_another_format_is_refused(tmp_path, found, message):
    path = tmp_path / "state.db"
    State(path, "k3f9").close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE meta SET value = ? WHERE name = 'format'", (found,))
    connection.commit()
    connection.close()
    with pytest.raises(LogError, match=message):
        State(path, "k3f9")


def test_an_older_format_is_migrated_step_by_step(tmp_path, monkeypatch):
    path = tmp_path / "state.db"
    state = State(path, "k3f9")
    state.write([subscriber("ann")], is_urgent=True)
    state.close()
    now = state_module.FORMAT
    monkeypatch.setattr(state_module, "FORMAT", now + 2)
    monkeypatch.setattr(
        state_module,
        "MIGRATIONS",
        {
            now: "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('one')",
            now + 1: "UPDATE notes SET text = 'two'",
        },
    )
    state = State(path, "k3f9")
    assert state._connection.execute("SELECT text FROM notes").fetchall() == [("two",)]
    assert [kept.name for kept in state.load().subscribers] == ["ann"]
    state.close()


def test_a_state_from_before_there_were_links_is_taken_over(tmp_path):
    path = tmp_path / "state.db"
    state = State(path, "k3f9")
    state.write([subscriber("ann")], is_urgent=True)
    state._connection.execute("DROP TABLE resumes")
    state._connection.execute("DROP TABLE webhooks")
    state._connection.execute("DROP TABLE links")
    state._connection.execute("ALTER TABLE subscribers DROP COLUMN backoff_s")
    state._connection.execute("ALTER TABLE dead DROP COLUMN told")
    state._connection.execute("UPDATE meta SET value = '1' WHERE name = 'format'")
    state.close()
    state = State(path, "k3f9")
    link = LinkKept("north", 1, "tamis://north", LinkTerms(rate=5.0))
    state.write([link], is_urgent=True)
    assert state.load().links == (link,)
    assert [kept.name for kept in state.load().subscribers] == ["ann"]
    state.write([LinkGone("north")], is_urgent=True)
    assert state.load().links == ()
    state.close()


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "state.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(LogError, match="cannot be read: file is not a database"):
        State(tmp_path / "state.db", "k3f9")
