"""A table of moving filters finds just the filters that an event passes, however they move."""

from __future__ import annotations

import math
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Compare, Literal
from tamis.language.meaning import holds
from tamis.topk.index.choice import INDEXES
from tamis.topk.proxy_table import MovingFilter, ProxyTable

SCORES = (
    "euclidean(array(x, y), array(0.25D, 0.9D))",
    "euclidean(array(x, y), array(3, 0))",
    "euclidean(array(x, y), array(1, 2), array(2, 0.5D))",
    "cosine(array(x, y), array(1, 2))",
    "distance(x, y, 45.8, 15.97)",
    "2 * x - y",
    "0.1 * x + 2D * y",
    "greatest(abs(x - 1), 2 * abs(y - 2))",
    "abs(x - 1.5D) + abs(y)",
    "y / x",
    "x * y",
)
thresholds = st.sampled_from(["0", "0.1", "0.5D", "1", "2.0D", "2", "3.25", "-1", "100000000000000000000000", "1e300D"])
filters = st.builds(
    "{}{} {} {}".format,
    st.sampled_from(["", "", "c = 1 AND ", "c = 1 AND d IS NULL AND ", "x < 1 OR y < 1 AND NOT ", "2 * x <= 3 AND "]),
    st.sampled_from(SCORES),
    st.sampled_from(["<=", "<=", ">=", "<", "="]),
    thresholds,
).map(tamis.parse)
values = st.one_of(
    st.integers(-1, 4),
    st.sampled_from([0.5, 1.0, 1.5, 2.25, 0.1, -0.0, 1e200, math.inf, -math.inf, math.nan, None, "x", True, 10**40]),
    st.sampled_from([Decimal("0.1"), Decimal("1.50"), 2**53 + 1, [1, 2], [math.nan, 1.0]]),
)
events = st.fixed_dictionaries({"c": st.integers(0, 1)}, optional={"x": values, "y": values, "d": values})


def passed(known, event):
    return {id for id, expression in known.items() if holds(expression, event)}


@given(
    steps=st.lists(st.one_of(st.tuples(st.integers(0, 5), st.none() | filters), events), max_size=40),
    index=st.sampled_from(sorted(INDEXES)),
)
def test_an_event_passes_the_filters_that_it_passes_by_the_definition(steps, index):
    table, known = ProxyTable(index=index), {}
    for step in steps:
        if isinstance(step, dict):
            wanted = list(table.wanted(step))
            assert len(wanted) == len(set(wanted)) and set(wanted) == passed(known, step)
            continue
        id, expression = step
        if known.pop(id, None) is not None:
            table.remove(id)
        if expression is not None and table.add(id, expression):
            known[id] = expression
    assert len(table) == len(known) and all(id in table for id in known)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("score", ["euclidean(array(x, y), array({}D, {}D))", "{}D * x - {}D * y"])
@pytest.mark.parametrize("operator", ["<=", ">="])
def test_thresholds_that_move_to_and_fro_behind_an_index_are_those_that_count(index, score, operator):
    chance = Random(5)
    places = [(chance.random(), chance.random()) for _ in range(60)]
    table, known = ProxyTable(index=index), {}

    def move(number):
        threshold = chance.choice([0.05, 0.2, 0.6]) * chance.random()
        filter_ = known[number] = tamis.parse(f"{score.format(*places[number])} {operator} {threshold!r}D")
        if number in table:
            table.remove(number)
        assert table.add(number, filter_)

    for number in range(len(places)):
        move(number)
    counted = 0
    for _ in range(300):  # enough for an index, which is made after 64 events
        event = {"x": chance.random(), "y": chance.random()}
        assert set(table.wanted(event)) == passed(known, event)
        counted += len(passed(known, event))
        move(chance.randrange(len(places)))
    assert counted > 300, "there was something to find"


def test_a_threshold_that_moves_changes_one_number_and_takes_no_other_place():
    table = ProxyTable()
    near = "c = 1 AND euclidean(array(x, y), array(0, 0)) <= {}"
    table.add("old", tamis.parse(near.format(1)))
    (seat,) = table._seats.values()
    columns = seat.column.group.numbers.copy()
    for threshold in (2, 0.5, 3):
        table.remove("old")
        table.add("old", tamis.parse(near.format(threshold)))
        assert list(table._seats.values()) == [seat] and seat.slot == 0 and table.seat_count == 1
    assert (seat.column.group.numbers == columns)[:, 0].all()
    # Brokers add before they remove; meanwhile both count.
    table.add("new", tamis.parse(near.format(1)))
    assert set(table.wanted({"x": 0, "y": 2, "c": 1})) == {"old"}
    table.remove("old")
    assert list(table.wanted({"x": 0, "y": 2, "c": 1})) == [] and list(table.wanted({"x": 1, "y": 0, "c": 1})) == [
        "new"
    ]
    table.remove("new")
    assert list(table.wanted({"x": 1, "y": 0, "c": 1})) == [] and table.seat_count == 0


def test_what_need_not_be_looked_at_is_skipped():
    table = ProxyTable()
    for number in range(6):
        table.add(number, tamis.parse(f"euclidean(array(x), array({number})) <= 10"))
    owners, reached = {number: number % 2 for number in range(6)}, []
    wanted = table.wanted({"x": 0.0}, lambda number: owners[number] in reached)
    reached.extend(map(owners.__getitem__, wanted))
    assert sorted(reached) == [0, 1]


@pytest.mark.parametrize("text", ["x <= 1", "x = 2", "x < 1 OR euclidean(array(x), array(1)) <= 1", "TRUE",
                                  "lower(a) <= 'b'", "2 * x < 5"])  # fmt: skip
def test_filters_of_another_form_are_left_to_others(text):
    assert MovingFilter.of(tamis.parse(text)) is None and not ProxyTable().add(1, tamis.parse(text))


def test_an_infinite_threshold_is_left_to_others():
    score = tamis.parse("2 * x <= 1").left
    for bound in (math.inf, -math.inf, math.nan, 10**400):
        assert not ProxyTable().add(1, Compare("<=", score, Literal(bound)))
