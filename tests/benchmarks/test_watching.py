"""The benchmark of watching at toy size: what the matcher tells is right, and a wrong tally would be noticed."""

from __future__ import annotations

from benchmarks.watching import watching

from tamis.matching.watching import Watch


def test_a_watched_matcher_tells_the_shares_of_its_events():
    rows = list(watching(names=("auction",), subscription_counts=(200,), event_count=600, batch=500, passes=2))
    assert [row["events"] for row in rows] == ["single", "batch"]
    assert all(row["wrong"] == 0 and row["ratio"] > 0 and row["looked_at"] > 100 for row in rows)


def test_a_tally_that_counts_the_wrong_codes_would_be_noticed(monkeypatch):
    honest = Watch.look
    monkeypatch.setattr(
        Watch, "look", lambda self, count, encoded: honest(self, count, [(axes, codes * 0) for axes, codes in encoded])
    )
    row = next(iter(watching(names=("auction",), subscription_counts=(100,), event_count=600, batch=500, passes=1)))
    assert row["wrong"] > 0
