"""A running system counts, and interpolates what it has not counted yet."""

from __future__ import annotations

import pytest

import tamis
from tamis.selectivity import Counters
from tamis.selectivity.statistics import GUESS

parse = tamis.parse
EVENTS = [{"price": price, "sold": price % 4 == 0} for price in range(100)]


def counted(*texts):
    counters = Counters()
    counters.observe(EVENTS, map(parse, texts))
    return counters


def test_what_was_counted_is_told_exactly():
    counters = counted("price > 20", "sold", "price > 1000")
    assert [counters.share(parse(text)) for text in ("price > 20", "sold", "price > 1000")] == [0.79, 0.25, 0]
    assert counters.count(parse("price > 20")) == 79 and len(counters) == 3 and counters.event_count == 100


@pytest.mark.parametrize(
    ("text", "share"),
    [("price > 40", 0.59), ("price < 40", 0.41), ("price >= 30", 0.69), ("price = 40", 0.01), ("price <> 40", 0.99)],
)
def test_a_new_predicate_lies_between_its_neighbours(text, share):
    assert counted("price > 20", "price > 60", "price < 80").share(parse(text)) == pytest.approx(share, abs=0.011)


def test_known_equalities_are_left_out_of_what_is_spread():
    counters = Counters()
    limit = [parse("x > 0"), parse("x > 4")]
    counters.observe([{"x": 2}] * 7 + [{"x": 1}, {"x": 3}, {"x": 9}], [*limit, parse("x = 2")])
    assert counters.share(parse("x = 3")) == pytest.approx(0.2 / 3)  # 0.9 lies in (0, 4], of which x = 2 has 0.7


def test_beyond_the_known_limits_half_of_the_rest_is_left():
    counters = counted("price > 20", "price > 60")
    assert counters.share(parse("price > 90")) == pytest.approx(0.39 / 2)
    assert counters.share(parse("price < 3")) == pytest.approx(0.21 / 2)


def test_counters_of_several_brokers_are_added():
    one, two = Counters(), Counters()
    one.observe(EVENTS[:50], [parse("price < 10")])
    two.observe(EVENTS[50:], [parse("price < 10"), parse("sold")])
    one.merge(two)
    assert one.share(parse("price < 10")) == 0.1 and one.event_count == 100


def test_nothing_known_is_a_guess():
    assert Counters().share(parse("a = 1")) == GUESS == counted("price > 1").share(parse("a LIKE '%b%'"))
    counters = counted("price > 20")
    assert counters.share(parse("NOT price > 20 OR x").operands[0]) == pytest.approx(0.21)
    counters.forget(parse("price > 20"))
    assert len(counters) == 0
