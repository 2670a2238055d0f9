"""The benchmarks of changes for ever, at toy size."""

from __future__ import annotations

from benchmarks.living import replaced_rules, sighted, updates_left


def test_no_match_misses_a_rule_that_is_replaced_in_one_step():
    two_steps, one_step = replaced_rules(changes=200)
    assert (two_steps["way"], one_step["way"]) == ("remove, add", "replace")
    assert one_step["matches"] > 0
    assert one_step["missed"] == one_step["wrong"] == 0


def test_updates_leave_nothing_behind():
    for row in updates_left(updates=6_000):
        assert row["wrong"] == 0
        assert row["file times"] < 2
        assert row["loaded times"] < 2


def test_noting_attributes_is_measured():
    (row,) = sighted(event_count=200)
    assert row["wrong"] == 0
    assert row["look µs"] > 0
