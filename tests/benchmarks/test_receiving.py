"""The benchmarks of groups of events at toy size: every row is right, and a wrong one would be noticed."""

from __future__ import annotations

from benchmarks.receiving import batch_sizes, receiving

from tamis.matching import Matcher
from tamis.routing import table

TOY = {"subscription_counts": (400,), "group_sizes": (1, 7, 40), "client_count": 20, "event_count": 60, "passes": 1}


def test_groups_are_delivered_as_their_events_are():
    rows = list(receiving(**TOY))
    assert [(row["group"], row["wrong"]) for row in rows] == [(1, 0), (7, 0), (40, 0)]
    assert len({row["deliveries"] for row in rows}) == 1 and rows[0]["deliveries"] > 0


def test_a_group_that_forgets_somebody_is_noticed(monkeypatch):
    whole = table.by_event_and_client
    monkeypatch.setattr(table, "by_event_and_client", lambda *given: whole(*(each[1:] for each in given[:3]), given[3]))
    assert all(row["wrong"] > 0 for row in receiving(**TOY))


def test_batches_of_all_sizes_find_what_single_matches_find():
    rows = list(batch_sizes(subscription_counts=(300,), sizes=(2, 64), event_count=128, passes=1))
    assert [(row["workload"], row["batch"], row["wrong"]) for row in rows] == [
        (name, size, 0) for name in ("auction", "w1") for size in (2, 64)
    ]


def test_a_batch_that_forgets_a_match_is_noticed(monkeypatch):
    whole = Matcher.match_batch
    monkeypatch.setattr(Matcher, "match_batch", lambda self, events: whole(self, events).slice(1))
    rows = list(batch_sizes(("auction",), (2_000,), sizes=(64,), event_count=128, passes=1))
    assert rows[0]["wrong"] > 0
