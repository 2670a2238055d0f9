"""Long work on a terminal shows how far it is; pipes and logs see nothing of that."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

from tamis.cli import local, notifying
from tests.cli.conftest import tamis


@pytest.fixture
def tables(tmp_path):
    """Five events and two rules, as files."""
    parquet.write_table(pa.table({"price": [1.0, 30.0, 2.0, 40.0, 3.0], "at": [1, 2, 3, 4, 5]}), tmp_path / "a.parquet")
    (tmp_path / "rules.csv").write_text("subscription_id,condition\ncheap,price < 20\nrich,price > 20\n")
    return tmp_path


def match(tables, *more, **options):
    places = ("--events", str(tables / "a.parquet"), "--subscriptions", str(tables / "rules.csv"))
    return tamis("match", *places, "--out", str(tables / "pairs.parquet"), "--engine", "local", *more, **options)


@pytest.mark.parametrize("more", [(), ("--time", "at")])
def test_matching_shows_how_far_it_is_on_a_terminal_and_nowhere_else(tables, more):
    shown = match(tables, *more, terminal=True)
    assert shown.exit_code == 0
    assert "Matching" in shown.stderr and "100%" in shown.stderr
    assert "Matching" not in shown.stdout
    piped = match(tables, *more, "--overwrite")
    assert piped.exit_code == 0
    assert "Matching" not in piped.stderr + piped.stdout


@pytest.mark.parametrize("count", [0, 1, 2, 4, 5])
def test_the_steps_of_matching_add_up_to_the_events(tables, monkeypatch, count):
    monkeypatch.setattr(local, "_PORTION", 2)
    monkeypatch.setattr(notifying, "_PORTION", 2)
    events = parquet.read_table(tables / "a.parquet").slice(0, count)
    rules = local.rules_for(events, str(tables / "rules.csv"), "subscription_id", "condition")
    steps: list[int] = []
    assert local.write_matches(events, rules, None, "pairs", str(tables / "pairs.parquet"), steps.append) == count
    assert sum(steps) == count and max(steps) <= 2
    processor, _, ordered = notifying.notified(
        events, str(tables / "rules.csv"), "subscription_id", "condition", "at", None
    )
    steps.clear()
    out = str(tables / "notifications.parquet")
    notifying.write_notifications(processor, ordered, "subscription_id", pa.string(), pa.int64(), out, steps.append)
    assert sum(steps) == count and max(steps) <= 2
