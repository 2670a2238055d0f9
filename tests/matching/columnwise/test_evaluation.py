"""Columns give what the reference meaning gives for each event, for every expression and every type of column."""

from __future__ import annotations

import datetime as dt
import gc
import tracemalloc
import weakref
from collections import Counter
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Or,
    RLike,
    Test,
)
from tamis.language.meaning import as_truth, value
from tamis.language.values import instant
from tamis.matching.columns import Events
from tamis.matching.columnwise import BatchSeries, comparison, evaluation, term_column, truth_codes
from tamis.matching.columnwise.rows import row_by_row
from tests.matching.columnwise.tables import ARRAYS, NUMBERS, TEXTS, TIMES, tables, words
from tests.strategies import (
    COMPARISONS,
    arrays,
    attributes,
    conditions,
    conditions_over,
    events,
    like_patterns,
    number_terms,
    numbers,
    predicates,
    regexes,
    scalars,
    text_terms,
    times,
)

SCHEMA = tamis.Schema({"a": "string"}, hierarchy={"Quote": None, "StockQuote": "Quote", "Other": None})
CODES = {None: 0, False: 1, True: 2}


def predicates_of(value, constant):
    """Predicates that compare."""
    return st.one_of(
        st.builds(Compare, st.sampled_from(COMPARISONS), value, value),
        st.builds(Compare, st.sampled_from(COMPARISONS), value, constant.map(Literal)),
        st.builds(Between, value, st.one_of(value, constant.map(Literal)), constant.map(Literal)),
        st.builds(In, value, st.lists(st.one_of(constant, constant, constant, scalars), max_size=4).map(tuple)),
        st.builds(IsNull, value),
    )


def calls_of(names, one, two):
    return st.builds(lambda name, left, right: Test(name, (left, right)), st.sampled_from(names), one, two)


extremes = st.builds(
    lambda name, parts: Call(name, tuple(parts)),
    st.sampled_from(["least", "greatest"]),
    st.lists(attributes, min_size=1, max_size=3),
)
booleans = st.one_of(attributes, extremes, st.builds(Compare, st.sampled_from(COMPARISONS), attributes, attributes))
THEMES = {
    "numbers": ((NUMBERS,), predicates_of(number_terms, numbers)),
    "texts": (
        (TEXTS,),
        st.one_of(
            predicates_of(text_terms, words),
            st.builds(Like, text_terms, like_patterns),
            st.builds(RLike, text_terms, regexes),
            st.builds(IsA, text_terms, st.sampled_from(["Quote", "StockQuote", "Other"])),
            calls_of(["startswith", "endswith", "contains"], text_terms, text_terms),
            calls_of(["in_cidr"], text_terms, st.sampled_from(["10.0.0.0/8", "::/0", "no network"]).map(Literal)),
            calls_of(["in_cidr"], st.just(Literal("10.1.2.3")), attributes),
        ),
    ),
    "times": ((TIMES,), predicates_of(st.one_of(attributes, extremes), times)),
    "booleans": (
        ({pa.bool_(): st.booleans()},),
        st.one_of(conditions_over(booleans), predicates_of(booleans, st.booleans())),
    ),
    "arrays": (
        (ARRAYS, ARRAYS, ARRAYS, NUMBERS, TEXTS),
        st.one_of(
            calls_of(["array_contains"], arrays, st.one_of(attributes, st.one_of(numbers, words, times).map(Literal))),
            calls_of(["arrays_overlap"], arrays, arrays),
            st.builds(
                lambda array, count: Compare(">", Call("size", (array,)), Literal(count)), arrays, st.integers(0, 2)
            ),
            st.builds(IsNull, attributes),
        ),
    ),
}


terms = st.one_of(number_terms, text_terms, arrays)


@contextmanager
def watched(calls: Counter):
    """Count how often a node is computed row by row."""

    def counting(function, arguments):
        calls["row by row"] += 1
        return row_by_row(function, arguments)

    with patch.object(evaluation, "row_by_row", counting), patch.object(comparison, "row_by_row", counting):
        yield


class Tally:
    """How many expressions were computed without the reference meaning, and how many gave anything but NULL."""

    def __init__(self) -> None:
        self.all = self.columnwise = self.telling = 0

    @contextmanager
    def counted(self, expected: list):
        calls: Counter = Counter()
        with watched(calls):
            yield
        self.all += 1
        if not calls["row by row"]:
            self.columnwise += 1
            self.telling += any(each is not None for each in expected)


def same(one, two):
    """Are two values the same value of the language, of the same type, to the last bit?"""
    if isinstance(one, dt.date) and isinstance(two, dt.date):
        return instant(one) == instant(two)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    if type(one) is not type(two):
        return False
    return repr(one) == repr(two) if isinstance(one, float) else one == two


def check_truths(batch, expressions, schema, tally):
    rows = Events(batch).mappings()
    found = Events(batch)  # shared, so that what is remembered of one expression is used by the next
    for expression in expressions:
        expected = [as_truth(value(expression, row, schema)) for row in rows]
        with tally.counted(expected):
            codes = truth_codes(expression, found, schema)
        assert codes.dtype == np.uint32
        assert codes.tolist() == [CODES[truth] for truth in expected], expression


def check_values(batch, expressions, tally):
    rows = Events(batch).mappings()
    found = Events(batch)
    for expression in expressions:
        expected = [value(expression, row) for row in rows]
        with tally.counted(expected):
            series = BatchSeries.of(found).evaluated(expression)
        values = series.tolist()
        values = values * len(expected) if len(values) == 1 else values
        assert len(values) >= len(expected) and all(map(same, values, expected)), (expression, values, expected)
        column = term_column(expression, found)
        assert len(column.values) == len(expected)


FEWER = settings(max_examples=settings.default.max_examples // 2)
"""For checks inside of tests, whose numbers `tests/conftest.py` does not see: 25 batches in the quick suite, else 100."""


def test_the_truth_of_a_condition_over_arrow_columns_is_the_reference_meaning_s():
    tally = Tally()

    @FEWER
    @given(table=tables(), asked=st.lists(st.one_of(predicates, conditions), min_size=1, max_size=8))
    def check(table, asked):
        check_truths(table, asked, SCHEMA, tally)

    check()
    assert tally.columnwise > 0.7 * tally.all


@pytest.mark.parametrize("theme", THEMES)
def test_the_truth_of_a_predicate_over_columns_of_its_kind_is_the_reference_meaning_s(theme):
    tally = Tally()
    kinds, asked_of_kind = THEMES[theme]

    @FEWER
    @given(table=tables(*kinds, least=1), asked=st.lists(asked_of_kind, min_size=2, max_size=10))
    def check(table, asked):
        check_truths(table, asked, SCHEMA, tally)

    check()
    assert tally.columnwise > 0.5 * tally.all
    assert tally.telling > 0.2 * tally.all


def test_the_truth_of_a_condition_over_python_events_of_any_kind_is_the_reference_meaning_s():
    tally = Tally()

    @FEWER
    @given(batch=st.lists(events(), max_size=6), asked=st.lists(st.one_of(predicates, conditions), max_size=6))
    def check(batch, asked):
        check_truths(batch, asked, SCHEMA, tally)

    check()
    assert tally.columnwise > 0.5 * tally.all


def test_the_value_of_a_term_over_arrow_columns_is_the_reference_meaning_s_in_value_and_type():
    tally = Tally()

    @FEWER
    @given(table=tables(NUMBERS, NUMBERS, TEXTS, least=1), asked=st.lists(terms, min_size=2, max_size=10))
    def check(table, asked):
        check_values(table, asked, tally)

    check()
    assert tally.columnwise > 0.5 * tally.all
    assert tally.telling > 0.2 * tally.all


def test_the_value_of_a_term_over_python_events_is_the_reference_meaning_s_in_value_and_type():
    tally = Tally()

    @FEWER
    @given(table=tables(), asked=st.lists(terms, min_size=1, max_size=6), is_absent=st.booleans())
    def check(table, asked, is_absent):
        rows = Events(table).mappings()
        if is_absent:
            rows = [{name: found for name, found in row.items() if found is not None} for row in rows]
        check_values(list(rows), asked, tally)

    check()
    assert tally.columnwise > 0.5 * tally.all
    assert tally.telling > 0.2 * tally.all


@settings(max_examples=100)
@given(batch=st.lists(events(), max_size=6), asked=st.lists(terms, min_size=1, max_size=6))
def test_the_value_of_a_term_over_values_of_several_kinds_is_the_reference_meaning_s(batch, asked):
    check_values(batch, asked, Tally())


def test_inner_nodes_are_computed_once_for_all_expressions_of_a_batch():
    events = Events([{"a": 1, "b": 2.5}, {"a": 3, "b": 0.5}])
    calls = []
    add = evaluation.COLUMN_FORMS["add"]
    with patch.dict(evaluation.COLUMN_FORMS, {"add": lambda *arguments: calls.append(1) or add(*arguments)}):
        for limit in range(100):
            codes = truth_codes(
                Compare("<", Call("add", (Attribute(("a",)), Attribute(("b",)))), Attribute(("a",))), events
            )
            assert codes.tolist() == [1, 1]
            column = term_column(tamis.parse(f"(a + b) * {limit} > 0").left, events)
            assert column.values.tolist() == [3.5 * limit, 3.5 * limit]
    assert len(calls) == 1


def test_what_is_remembered_of_a_batch_is_bounded():
    events = Events([{"a": 1}, {"a": 2}])
    for number in range(3 * evaluation._MOST_REMEMBERED):
        assert truth_codes(tamis.parse(f"a + {number} < a"), events).tolist() == [1, 1]
    assert len(BatchSeries.of(events)._known) <= evaluation._MOST_REMEMBERED


def test_an_expression_of_very_many_nodes_is_computed_for_some_events_at_a_time():
    asked = Or(
        tuple(
            And((Compare("<", Attribute(("a",)), Literal(n)), Compare(">", Attribute(("b",)), Literal(n))))
            for n in range(50)
        )
    )
    batch = [{"a": number % 60, "b": number % 45} for number in range(100)] + [{}]
    whole = truth_codes(asked, Events(batch))
    sizes = []
    evaluated = BatchSeries.evaluated
    with (
        patch.object(evaluation, "_MOST_VALUES", 2_000),
        patch.object(
            BatchSeries, "evaluated", lambda self, *rest: sizes.append(self._events.count) or evaluated(self, *rest)
        ),
    ):
        parts = truth_codes(asked, Events(batch))
    assert parts.tolist() == whole.tolist() == [CODES[tamis.truth(asked, event)] for event in batch]
    assert len(sizes) > 5 and max(sizes) * 101 <= 2_000


def test_a_long_sum_does_not_keep_all_its_parts():
    term = Attribute(("a",))
    for number in range(1_000):
        term = Call("add", (term, Literal(number)))
    events = Events(pa.table({"a": np.arange(10_000)}))
    tracemalloc.start()
    column = term_column(term, events)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert column.values.tolist()[:2] == [sum(range(1_000)), sum(range(1_000)) + 1]
    assert peak < 1.5 * evaluation._MOST_REMEMBERED * 10_000 * 8  # all parts would be more than twice that


def test_depth_is_no_limit():
    asked = Attribute(("a",))
    for _ in range(5_000):
        asked = Call("negate", (asked,))
    column = term_column(asked, Events([{"a": 5}, {}, {"a": "x"}]))
    assert column.values.tolist()[:1] == [5] and column.valid.tolist() == [True, False, False]


def test_a_graph_whose_tree_is_huge_is_walked_once():
    node = tamis.parse("a < b")
    for _ in range(200):
        node = And((node, Or((node, Compare("=", Attribute(("a",)), Literal(1))))))
    assert truth_codes(node, Events([{"a": 1, "b": 2}, {"a": 2, "b": 1}, {}])).tolist() == [2, 1, 0]


@pytest.mark.parametrize("batch", [[], [{}], [{}] * 3, [{"b": 1}] * 3])
def test_events_without_the_attribute_and_no_events_at_all(batch):
    for text, code in (("a < b", 0), ("a IS NULL", 2), ("a + 1 < 2", 0), ("a LIKE '%x_'", 0), ("size(a) = 1", 0)):
        assert truth_codes(tamis.parse(text), Events(batch)).tolist() == [code] * len(batch)
        column = term_column(tamis.parse("a + 1 > 0").left, Events(batch))
        assert column.valid is not None and not column.valid.any() and len(column.values) == len(batch)


def test_a_batch_ends_with_its_last_user_and_not_when_cycles_are_collected():
    gc.disable()
    try:
        batch = Events([{"a": 1, "b": 2}, {"a": 3}])
        is_there = weakref.ref(batch)
        truth_codes(tamis.parse("a + 1 < b * 2"), batch)
        assert BatchSeries.of(batch).evaluated(tamis.parse("a < b").left) is not None
        del batch
        assert is_there() is None
    finally:
        gc.enable()
