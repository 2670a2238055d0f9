"""The benchmark of logs at toy size."""

from __future__ import annotations

from benchmarks.logging_events import MAKERS, logging_events


def test_every_log_keeps_what_it_is_given():
    rows = list(logging_events(block_events=(1, 5), block_count=9))
    assert [(row["log"], row["block_events"]) for row in rows] == [(name, size) for size in (1, 5) for name in MAKERS]
    assert all(row["wrong"] == 0 for row in rows)
    assert [row["events"] for row in rows] == [9] * len(MAKERS) + [45] * len(MAKERS)
    assert {row["times_the_file"] for row in rows if row["log"] == "bare file"} == {1.0}
