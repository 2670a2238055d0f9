"""Statistics are near what is counted, and exact where all values are frequent."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.selectivity import Sample, Statistics
from tests.strategies import conditions, events, predicates


def made(count=4_000):
    chance = Random(1)
    return [
        {
            "price": round(chance.expovariate(0.05), 2),
            "bids": chance.choice([0, 0, 0, 1, 2, 5, 9]),
            "title": f"Title {chance.randrange(1_000):04}",
            "sold": chance.random() < 0.3,
            **({"rare": 1} if chance.random() < 0.1 else {}),
            "at": {"day": dt.date(2024, 1, 1) + dt.timedelta(days=chance.randrange(100))},
        }
        for _ in range(count)
    ]


EVENTS = made()


@pytest.mark.parametrize(
    "text",
    ["price < 20", "price >= 3.5", "price BETWEEN 5 AND 25", "price <> 4", "bids = 0", "bids IN (1, 9, 17)", "sold", "NOT sold",
     "title < 'Title 0300'", "title LIKE 'Title 01%'", "rare IS NULL", "rare IS NOT NULL", "rare = 1", "bids > 1 AND TRUE",
     "at.day < DATE '2024-02-01'", "at.day = DATE '2024-02-01'", "20 > price", "bids NOT IN (0, 1)", "bids <=> NULL", "rare <=> NULL",
     "bids = 'text'", "nobody = 1", "nobody IS NULL", "contains(title, '99')", "bids + 1 = 2"],
)  # fmt: skip
def test_statistics_are_near_what_is_counted(text):
    predicate = tamis.parse(text)
    predicate = getattr(predicate, "operands", (predicate,))[0]
    assert Statistics.of(EVENTS).share(predicate) == pytest.approx(Sample(EVENTS).share(predicate), abs=0.02)


def test_where_all_values_are_frequent_comparisons_are_exact():
    statistics, sample = Statistics.of(EVENTS), Sample(EVENTS)
    for text in (
        "bids = 0",
        "bids < 2",
        "bids <= 2",
        "bids > 1",
        "bids >= 1",
        "bids BETWEEN 1 AND 5",
        "bids <> 9",
        "bids IN (0, 9)",
    ):
        assert statistics.share(tamis.parse(text)) == sample.share(tamis.parse(text)), text


def test_statistics_survive_being_written():
    mixed = [
        *EVENTS[:50],
        {"d": Decimal("1.50")},
        {"t": dt.datetime(2024, 2, 29, 12)},
        {"array": [1, 2]},
        {"b": True},
        {"b": 1},
    ]
    statistics = Statistics.of(mixed, frequent_count=8, bucket_count=4)
    again = Statistics.from_json(statistics.to_json())
    assert again.event_count == statistics.event_count
    for text in (
        "price < 20",
        "d = 1.5",
        "t < DATE '2025-01-01'",
        "at.day > DATE '2024-01-10'",
        "title > 'Title 05'",
        "b = TRUE",
    ):
        assert again.share(tamis.parse(text)) == statistics.share(tamis.parse(text)), text


@given(predicate=predicates | conditions, some_events=st.lists(events(), max_size=6))
def test_a_share_is_a_share_whatever_the_events(predicate, some_events):
    assert 0 <= Statistics.of(some_events, frequent_count=2, bucket_count=2).share(predicate) <= 1


def test_no_events_make_nothing_true():
    assert Statistics.of([]).share(tamis.parse("a = 1")) == 0
