"""A running system counts, and interpolates what it has not counted yet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.selectivity import Counters, HalfLifeError, Tallied
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


# -- Late, merged, at the ends, old


def test_a_predicate_that_comes_late_counts_by_the_events_since_then():
    counters = Counters()
    counters.observe(EVENTS * 10, [parse("price > 20")])
    counters.observe(EVENTS, [parse("sold")])
    assert counters.share(parse("sold")) == 0.25
    counters.know([parse("price < 60")])
    counters.observe(EVENTS, [parse("price < 60")])
    assert counters.share(parse("price < 60")) == pytest.approx(0.6)


def test_a_predicate_that_came_a_moment_ago_still_follows_its_neighbours():
    counters = counted("price > 20", "price > 60")
    counters.know([parse("price > 40")])
    assert counters.share(parse("price > 40")) == pytest.approx(0.59)
    counters.add(1, [])
    assert 0.5 < counters.share(parse("price > 40")) < 0.59


def test_a_broker_that_does_not_know_a_predicate_says_nothing_of_it():
    one, two = Counters(), Counters()
    one.observe(EVENTS, [parse("price >= 0")])
    two.observe(EVENTS, [parse("sold")])
    one.merge(two)
    assert (one.share(parse("price >= 0")), one.share(parse("sold"))) == (1.0, 0.25) and one.event_count == 200


@pytest.mark.parametrize(
    ("known", "asked", "share"),
    [
        ("price > 20", "price <= 20", 0.21),
        ("price >= 20", "price < 20", 0.2),
        ("20 < price", "price <= 20", 0.21),
        ("price = 5", "price <> 5", 0.99),
        ("price <> 5", "price = 5", 0.01),
        ("price = 5", "NOT price = 5", 0.99),
        ("sold", "NOT sold", 0.75),
        ("sold = TRUE", "sold = FALSE", 0.75),
        ("title = 'T'", "title <> 'T'", 0.5),
        ("price IN (1, 2)", "price NOT IN (1, 2)", 0.98),
        ("title LIKE '%T%'", "NOT title LIKE '%T%'", 0.5),
        ("price IS NULL", "price IS NOT NULL", 1.0),
    ],
)
def test_what_a_count_says_of_the_complement_is_exact(known, asked, share):
    counters = Counters()
    events = [{**event, "title": "T" if event["price"] % 2 else "U"} for event in EVENTS]
    counters.observe(events, [parse(known)])
    assert counters.share(parse(asked)) == pytest.approx(share)


def test_events_without_a_value_belong_to_no_complement():
    counters = Counters()
    counters.observe([*EVENTS, *[{"price": None}] * 100], [parse("price > 19"), parse("price IS NOT NULL")])
    assert counters.share(parse("price <= 19")) == pytest.approx(0.1)
    by_sums = Counters()
    by_sums.observe([*EVENTS, *[{}] * 100], [parse("price > 19"), parse("price <= 19"), parse("price > 49")])
    assert by_sums.share(parse("price <= 49")) == pytest.approx(0.25)


def test_old_events_count_less_and_less():
    counters = Counters(half_life=100)
    late = parse("price > 49")
    counters.observe([{"price": 10}] * 1000, [late])
    counters.observe([{"price": 90}] * 100, [late])
    assert counters.share(late) == pytest.approx(0.5, abs=0.01)
    counters.observe([{"price": 90}] * 5000, [late])
    assert counters.share(late) == pytest.approx(1.0) and counters.event_count < 200
    with pytest.raises(HalfLifeError, match="more than 0"):
        Counters(half_life=0)


def test_weights_stay_numbers_however_long_a_system_runs():
    counters = Counters(half_life=2)
    for _ in range(2_000):
        counters.add(1, [parse("a = 1")])
    counters.add(10**9, {parse("a = 1"): 10**9})
    assert counters.share(parse("a = 1")) == pytest.approx(1.0)


def test_what_a_matcher_tallies_answers_every_comparison_with_its_operands():
    # prices 0 to 99, and 100 events without one; codes: none, below 20, 20, between, 60, above
    tallied = Tallied(tamis.parse("price < 1").left, [20, 60], np.array([100, 20, 1, 39, 1, 39]))
    counters = Counters()
    counters.take(200, [tallied])
    for text, count in (
        ("price < 20", 20),
        ("price <= 20", 21),
        ("price > 60", 39),
        ("price = 60", 1),
        ("price <> 60", 99),
        ("price BETWEEN 20 AND 60", 41),
        ("price NOT BETWEEN 20 AND 60", 59),
        ("price IN (20, 60)", 2),
        ("price IS NULL", 100),
        ("price < 40", 40.5),
    ):
        assert counters.share(parse(text)) == pytest.approx(count / 200), text
    assert counters.share(parse("price LIKE '%1%'")) == GUESS


def test_operands_that_nobody_asks_for_any_more_are_forgotten():
    counters = Counters(half_life=100)
    term = parse("price < 1").left
    for first in range(0, 5_000, 50):
        counters.take(100, [Tallied(term, list(range(first, first + 50)), np.full(102, 1))])
    (column,) = counters._columns.values()
    assert len(column.numbers) == len(column.weights) < 2_500


operands = st.lists(st.integers(0, 9), min_size=1, max_size=4, unique=True).map(sorted)
values = st.lists(st.none() | st.integers(0, 9), min_size=20, max_size=40)


@given(operands=operands, seen=values, operator=st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]))
def test_tallies_say_of_their_operands_what_counting_says(operands, seen, operator):
    codes = [
        0 if value is None else 1 + sum(o < value for o in operands) + sum(o <= value for o in operands)
        for value in seen
    ]
    tallied, plain = Counters(), Counters()
    counts = np.bincount(codes, minlength=2 * len(operands) + 2)
    tallied.take(len(seen), [Tallied(parse("x < 1").left, operands, counts)])
    asked = [parse(f"x {operator} {operand}") for operand in operands]
    plain.observe([{"x": value} for value in seen], asked)
    for each in asked:
        assert tallied.share(each) == pytest.approx(plain.share(each))


@given(known=st.lists(st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.integers(0, 9)), max_size=6),
       operator=st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), operand=st.integers(-1, 10), seen=values)  # fmt: skip
def test_whatever_is_known_a_share_is_one_and_rises_with_its_operand(known, operator, operand, seen):
    counters = Counters()
    counters.observe([{"x": value} for value in seen], [parse(f"x {each} {value}") for each, value in known])
    share = counters.share(parse(f"x {operator} {operand}"))
    assert 0 <= share <= 1
    if not any(each in ("=", "<>") for each, _ in known):
        below, more = counters.share(parse(f"x < {operand}")), counters.share(parse(f"x < {operand + 1}"))
        assert not known or below <= more + 1e-9
