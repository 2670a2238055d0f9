"""Numbers in columns: where they would overflow, divide by zero, lose a digit or change their type, and do not."""

from __future__ import annotations

import math
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language import values
from tamis.language.meaning import value
from tamis.matching.columns import Events
from tamis.matching.columnwise import BatchSeries, comparison, evaluation, numbers, truth_codes
from tamis.matching.columnwise.series import from_values, literal
from tests.matching.columnwise.tables import decimals, doubles, integers
from tests.matching.columnwise.test_evaluation import same

LEAST, GREATEST = -(2**63), 2**63 - 1
edges = st.one_of(
    st.sampled_from(
        [0, 1, -1, 2, 3, -7, LEAST, LEAST + 1, GREATEST, GREATEST - 1, 2**31, 2**32, 3037000499, 3037000500]
    ),
    st.integers(LEAST, GREATEST),
    st.integers(-(2**33), 2**33),
)
short_decimals = st.one_of(decimals(5, 2), decimals(17, 0), decimals(17, 17), decimals(9, 4))
columns = st.one_of(
    *(st.lists(st.one_of(st.none(), kind, kind), min_size=3, max_size=3) for kind in (edges, doubles, short_decimals)),
    *(st.lists(kind, min_size=3, max_size=3) for kind in (edges, doubles, integers(16))),
)
OPERATIONS = {
    "add": (numbers.add, values.add),
    "subtract": (numbers.subtract, values.subtract),
    "multiply": (numbers.multiply, values.multiply),
    "divide": (numbers.divide, values.divide),
    "remainder": (numbers.remainder, values.remainder),
}


@pytest.fixture(autouse=True)
def silent():
    with np.errstate(all="ignore"):  # as during an evaluation
        yield


def agree(found, expected):
    listed = found.tolist()
    return all(map(same, listed * len(expected) if len(listed) == 1 else listed, expected))


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=150)
@given(left=columns, right=st.one_of(columns, edges, doubles, short_decimals))
def test_operations_on_columns_are_those_on_numbers(name, left, right):
    columnwise, one_by_one = OPERATIONS[name]
    beside = right if isinstance(right, list) else [right] * 3
    found = columnwise(from_values(left), from_values(right) if isinstance(right, list) else literal(right))
    if found is not None:
        assert agree(found, [one_by_one(*pair) for pair in zip(left, beside, strict=True)])


EDGES = {
    "integers": (pa.int64(), [None, 0, 1, -1, 7, -7, 2**53, 2**53 + 1, LEAST, GREATEST, 3037000500]),
    "doubles": (
        pa.float64(),
        [None, 0.0, -0.0, 1.0, -1.5, float(2**53), 9.3e18, math.nan, math.inf, -math.inf, 5e-324, 1e308],
    ),
    "decimals": (pa.decimal128(17, 2), [None, *map(Decimal, ("0.00", "1.00", "-1.50", "999999999999999.99", "0.01"))]),
    "fractions": (
        pa.decimal128(18, 18),
        [None, *map(Decimal, ("0", "0.1", "-0.000000000000000001", "0.999999999999999999"))],
    ),
}


@pytest.mark.parametrize("left", EDGES)
@pytest.mark.parametrize("right", EDGES)
def test_any_two_numbers_compute_and_compare_as_the_reference_meaning_says(left, right):
    (left_type, lefts), (right_type, rights) = EDGES[left], EDGES[right]
    pairs = [(one, two) for one in lefts for two in rights]
    table = pa.table(
        {"a": pa.array([one for one, _ in pairs], left_type), "b": pa.array([two for _, two in pairs], right_type)}
    )
    rows = [{"a": one, "b": two} for one, two in pairs]
    texts = ["a + b", "a - b", "a * b", "a / b", "a % b", "least(a, b)", "greatest(a, b)", "avg(a, b)", "abs(a)", "-a"]
    for term in [tamis.parse(f"{text} = 0").left for text in texts]:
        assert agree(BatchSeries.of(Events(table)).evaluated(term), [value(term, row) for row in rows]), term
    for operator in ("=", "<>", "<", "<=", ">", ">=", "<=>"):
        asked = tamis.parse(f"a {operator} b")
        assert agree(BatchSeries.of(Events(table)).evaluated(asked), [value(asked, row) for row in rows]), asked


@given(arguments=st.lists(columns, min_size=1, max_size=3), sign=st.sampled_from([-1, 1]))
def test_extremes_of_columns_are_those_of_numbers_in_value_and_type(arguments, sign):
    found = numbers.extreme(list(map(from_values, arguments)), sign)
    if found is not None:
        assert agree(found, [values.extreme(row, sign) for row in zip(*arguments, strict=True)])


@given(arguments=st.lists(columns, min_size=1, max_size=3))
def test_means_of_columns_are_those_of_numbers(arguments):
    found = numbers.mean(list(map(from_values, arguments)))
    if found is not None:
        assert agree(found, [values.mean(list(row)) for row in zip(*arguments, strict=True)])


@given(numbers_of_a_column=columns)
def test_opposites_and_sizes_of_columns_are_those_of_numbers(numbers_of_a_column):
    for columnwise, one_by_one in ((numbers.negate, values.negate), (numbers.absolute, values.absolute)):
        found = columnwise(from_values(numbers_of_a_column))
        if found is not None:
            assert agree(found, list(map(one_by_one, numbers_of_a_column)))


@pytest.mark.parametrize("name", OPERATIONS)
def test_integers_and_doubles_never_need_the_reference_meaning(name):
    integer, double = from_values([LEAST, GREATEST, 0]), from_values([math.nan, -0.0, 1e308])
    for left in (integer, double):
        for right in (integer, double):
            assert OPERATIONS[name][0](left, right) is not None


def test_short_decimals_need_it_for_quotients_only():
    short = from_values([Decimal("1.25"), Decimal("-3.50")])
    needed = [name for name, (columnwise, _) in OPERATIONS.items() if columnwise(short, short) is None]
    assert needed == ["divide"]


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("a + b", {"a": GREATEST, "b": 1}, None),
        ("a + b", {"a": GREATEST, "b": -1}, GREATEST - 1),
        ("a - b", {"a": LEAST, "b": 1}, None),
        ("a - b", {"a": 0, "b": LEAST}, None),
        ("a * b", {"a": LEAST, "b": -1}, None),
        ("a * b", {"a": 3037000500, "b": 3037000500}, None),
        ("a * b", {"a": 3037000499, "b": 3037000499}, 3037000499**2),
        ("a * b", {"a": -(2**62), "b": 2}, LEAST),
        ("a * b", {"a": 2**62, "b": 2}, None),
        ("a * b", {"a": 7, "b": GREATEST // 7}, GREATEST),
        ("-a", {"a": LEAST}, None),
        ("abs(a)", {"a": LEAST}, None),
        ("abs(a)", {"a": -0.0}, -0.0),
        ("-a", {"a": 0.0}, 0.0),
        ("a % b", {"a": LEAST, "b": -1}, 0),
        ("a % b", {"a": -7, "b": 3}, -1),
        ("a % b", {"a": 7, "b": 0}, None),
        ("a % b", {"a": math.inf, "b": 2.0}, math.nan),
        ("a % b", {"a": -3.5, "b": math.inf}, -3.5),
        ("a / b", {"a": 1, "b": 0}, None),
        ("a / b", {"a": 1.0, "b": -0.0}, None),
        ("a / b", {"a": 2**53 + 1, "b": 1}, float(2**53)),
        ("a + b", {"a": 2**53 + 1, "b": 0.0}, float(2**53)),
        ("a + b", {"a": Decimal("0.10"), "b": 2}, Decimal("2.10")),
        ("a * b", {"a": Decimal("0.1"), "b": 0.1}, 0.1 * 0.1),
        ("least(a, b)", {"a": 1, "b": 2.5}, 1.0),
        ("least(a, b)", {"a": 1}, 1),
        ("greatest(a, b)", {"a": math.nan, "b": math.inf}, math.nan),
        ("least(a, b)", {"a": math.nan, "b": math.inf}, math.inf),
        ("greatest(a, b)", {"a": -0.0, "b": 0.0}, -0.0),
        ("avg(a, b)", {"a": GREATEST, "b": 1}, None),
        ("avg(a, b)", {"a": 1, "b": 2}, 1.5),
        ("avg(a, b)", {"a": 1}, None),
    ],
)
def test_an_example_gives_the_same_in_any_company(text, event, expected):
    term = tamis.parse(f"{text} = 0").left
    assert same(values_of(term, [event])[0], expected)
    # Other events may have wider bounds, NULLs and the other type, and nothing changes.
    company = [{"a": 1, "b": 2}, event, {"a": 2.5, "b": 3.5}, {"a": LEAST, "b": GREATEST}, {}]
    assert same(values_of(term, company)[1], expected)
    alike = [event, dict.fromkeys(event), event]
    assert same(values_of(term, alike)[2], expected)


def values_of(term, events):
    found = BatchSeries.of(Events(events)).evaluated(term).tolist()
    return found * len(events) if len(found) == 1 else found


def test_least_of_integers_and_doubles_is_a_column_as_long_as_every_row_has_a_double():
    term = tamis.parse("least(a, b) = 0").left
    table = pa.table({"a": pa.array([1, 2, None]), "b": pa.array([0.5, 2.5, None])})
    with patch.object(evaluation, "row_by_row", side_effect=AssertionError("rows were asked")):
        assert list(map(repr, BatchSeries.of(Events(table)).evaluated(term).tolist())) == ["0.5", "2.0", "None"]


def test_least_of_integers_and_doubles_has_the_type_of_what_is_there_row_by_row():
    term = tamis.parse("least(a, b) = 0").left
    table = pa.table({"a": pa.array([1, 2, None]), "b": pa.array([0.5, None, None])})
    found = BatchSeries.of(Events(table)).evaluated(term).tolist()
    assert list(map(repr, found)) == ["0.5", "2", "None"]


@given(left=st.lists(decimals(18, 18), min_size=2, max_size=4), right=st.lists(edges, min_size=2, max_size=4))
def test_decimals_of_many_digits_compare_with_integers_to_the_last_digit(left, right):
    count = min(len(left), len(right))
    table = pa.table({"a": pa.array(left[:count], pa.decimal128(18, 18)), "b": pa.array(right[:count], pa.int64())})
    for operator in ("=", "<", ">=", "<>", ">", "<="):
        for text in (f"a {operator} b", f"b {operator} a", f"a {operator} 0.000000000000000001"):
            asked = tamis.parse(text)
            expected = [tamis.truth(asked, event) for event in Events(table).mappings()]
            assert BatchSeries.of(Events(table)).evaluated(asked).tolist() == expected


def test_the_last_digit_of_a_decimal_decides_beside_integers_of_any_size():
    least = Decimal(1).scaleb(-18)
    table = pa.table(
        {
            "a": pa.array([least, -least, Decimal(0), least], pa.decimal128(18, 18)),
            "b": pa.array([0, 0, 0, GREATEST], pa.int64()),
        }
    )
    for text, expected in (("a > b", [2, 1, 1, 1]), ("a < b", [1, 2, 1, 2]), ("b = a", [1, 1, 2, 1])):
        with patch.object(comparison, "row_by_row", side_effect=AssertionError("rows were asked")):
            assert truth_codes(tamis.parse(text), Events(table)).tolist() == expected


@pytest.mark.parametrize("right", ["b", "double('NaN')", "1e0", "b + 0"])
@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">=", "<=>"])
def test_nan_is_equal_to_itself_and_greater_than_every_other_number(operator, right):
    line = [math.nan, math.inf, 1.0, -0.0, 0.0, -math.inf, None]
    pairs = [(one, two) for one in line for two in line]
    table = pa.table({"a": [one for one, _ in pairs], "b": [two for _, two in pairs]})
    for text in (f"a {operator} {right}", f"{right} {operator} a"):
        asked = tamis.parse(text)
        expected = [tamis.truth(asked, {"a": one, "b": two}) for one, two in pairs]
        assert truth_codes(asked, Events(table)).tolist() == [{None: 0, False: 1, True: 2}[truth] for truth in expected]


@given(numbers=st.lists(st.one_of(edges, doubles), min_size=1, max_size=4))
def test_a_set_of_numbers_holds_what_is_equal_to_one_of_them(numbers):
    table = pa.table(
        {
            "a": pa.array([0, 1, 2**53, 2**53 + 1, GREATEST, None]),
            "b": pa.array([0.0, 1.0, math.nan, 2.0**53, 9.2e18, None]),
        }
    )
    for name in "ab":
        asked = tamis.language.expressions.In(tamis.language.expressions.Attribute((name,)), tuple(numbers))
        expected = [tamis.truth(asked, event) for event in Events(table).mappings()]
        assert BatchSeries.of(Events(table)).evaluated(asked).tolist() == expected
