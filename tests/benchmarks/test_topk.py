"""The benchmarks of ranked subscriptions at toy size: everybody delivers what the closed form says."""

from __future__ import annotations

from benchmarks.topk import VARIANTS, expected, nearest, points, ranked, ranked_growth, ranked_indexes
from benchmarks.topk_scores import FORMS, ranked_arriving, ranked_scores

from tamis.topk import TopK
from tamis.topk.index.choice import INDEXES


def test_every_algorithm_is_measured_and_right():
    rows = list(ranked((1, 12), k=2, n=40, distinct=5, most_s=0.02, event_count=80))
    assert [(row["subscriptions"], row["algorithm"]) for row in rows] == [
        (count, name) for count in (1, 12) for name in VARIANTS
    ]
    assert [row["wrong"] for row in rows] == [0] * len(rows)
    for row in rows:
        assert row["events_per_s"] > 0
        assert row["events"] >= 1
        assert row["promised"] is None  # nothing is promised for so few
    kept = {row["algorithm"]: row["candidates"] for row in rows if row["subscriptions"] == 12}
    assert kept["naive"] == 40
    assert 2 <= kept["strict"] <= kept["relaxed"] <= kept["naive"]


def test_copies_of_rankings_deliver_what_the_rankings_would():
    rows = list(ranked((40,), k=2, n=30, distinct=4, most_s=5.0, event_count=50))
    deliveries = {row["deliveries"] for row in rows if row["algorithm"] not in ("block", "probabilistic")}
    assert len(deliveries) == 1 and deliveries.pop() > 0
    assert all(row["events"] == 50 and row["wrong"] == 0 for row in rows)


def test_a_wrong_answer_would_be_seen():
    rows = points(60, 4, 1)
    centres = points(2, 4, 2)
    processor = TopK("strict")
    processor.add_many([(name, nearest(centre, 2, 20)) for name, centre in enumerate(centres.tolist())])
    told = set()
    for place, row in enumerate(rows.tolist()):
        told |= {
            (each.subscription, each.event) for each in processor.process(dict(zip("xyzu", row, strict=True)), place)
        }
    assert told == expected(centres, rows, 2, 20, 0, 60)
    assert told != expected(centres, rows, 3, 20, 0, 60)


def test_growth_and_indexes_are_measured_and_right():
    rows = list(ranked_growth((1, 2), (20,), (5, 10), 4, most_s=0.01, event_count=30))
    assert {(row["knob"], row["value"]) for row in rows} == {
        ("k", 1), ("k", 2), ("n", 20), ("subscriptions", 5), ("subscriptions", 10),
    }  # fmt: skip
    more = list(ranked_indexes((30,), (2,), k=2, n=50, event_count=350))
    assert {row["index"] for row in more} == {*INDEXES, "auto"}
    assert {row["used"] for row in more if row["index"] == "grid"} == {"grid"}
    assert not any(row["wrong"] for row in rows + more)
    assert all(row["deliveries"] for row in more)


def test_scores_of_all_forms_are_measured_and_right():
    rows = list(ranked_scores(40, k=2, n=60, event_count=350))
    assert [row["score"] for row in rows] == list(FORMS)
    assert not any(row["wrong"] for row in rows)
    assert all(row["one_by_one_us"] > 0 and row["columns_us"] > 0 for row in rows)


def test_subscriptions_that_come_while_events_come_are_measured_and_right():
    rows = list(ranked_arriving(40, (0.0, 0.5), k=2, n=400, event_count=60))
    assert [row["index_is_kept"] for row in rows] == [False, True] * 2
    assert not any(row["wrong"] for row in rows)
