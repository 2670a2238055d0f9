"""The benchmarks of sequences and changes at toy size: what they tell is what the definition tells."""

from __future__ import annotations

from benchmarks.standing import standing_memory, standing_sequences, standing_thresholds


def test_sequences_and_thresholds_are_measured_and_right():
    rows = [*standing_sequences(300, 400, 3), *standing_thresholds(300, 400, 3)]
    assert [row["wrong"] for row in rows] == [0] * 6
    assert all(row["matches"] > row["told"] > 0 for row in rows if "changes" in row)
    assert all(row["told"] > 0 and row["promised"] is None for row in rows)


def test_what_is_kept_does_not_grow_with_the_events():
    rows = list(standing_memory(20, 10_000, 5))
    assert [row["events"] for row in rows] == list(range(1_000, 10_001, 1_000))
    kept = [row["sequence_states"] + row["open_events"] + row["alarms"] + row["change_states"] for row in rows]
    assert max(kept[5:]) <= 2 * max(kept[:5]) and rows[-1]["told"] > 0
