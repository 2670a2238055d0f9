"""The comparison with what people would do otherwise, at toy size: everybody finds the same pairs, and it is drawn."""

from __future__ import annotations

import json

import benchmarks.otherwise as measuring
import pytest
from benchmarks.otherwise import otherwise
from benchmarks.plots import draw_otherwise

from tamis.matching import Matcher


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """Nothing is repeated until it has taken long enough to be measured."""
    monkeypatch.setattr(measuring, "_LEAST_S", 0.0)


def test_a_loop_and_polars_and_the_matcher_find_the_same_pairs(tmp_path):
    rows = list(otherwise(subscription_counts=(20, 60), event_count=500))
    assert [row["wrong"] for row in rows] == [0, 0]
    assert rows[1]["matches"] > 0
    (tmp_path / "otherwise.json").write_text(json.dumps({"rows": rows}))
    drawn = draw_otherwise(tmp_path)
    assert drawn is not None and "<svg" in drawn.read_text()


def test_a_matcher_that_misses_pairs_would_be_noticed(monkeypatch):
    honest = Matcher.match_batch
    monkeypatch.setattr(Matcher, "match_batch", lambda self, events: honest(self, events).slice(1))
    assert next(iter(otherwise(subscription_counts=(60,), event_count=500)))["wrong"] > 0


def test_nothing_is_drawn_where_nothing_was_measured(tmp_path):
    assert draw_otherwise(tmp_path) is None
