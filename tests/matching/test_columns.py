"""Events as columns: what Arrow says, what Python says, and that both say the same."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import EventError
from tamis.matching.columns import Column, Events, as_doubles, from_python, micros
from tamis.matching.columnwise.series import from_column
from tests.matching.columnwise.tables import tables
from tests.matching.columnwise.test_evaluation import same
from tests.strategies import scalars

LAST = dt.datetime.max


@given(table=tables())
def test_a_column_has_the_values_that_python_sees_in_the_events(table):
    events = Events(table)
    for name in table.schema.names:
        found = from_column(events.column((name,))).tolist()
        expected = [event[name] for event in events.mappings()]
        expected = [None if isinstance(value, dict) else value for value in expected]  # records are nobody's values
        found = [None if isinstance(value, dict) else value for value in found]
        assert all(map(same, found if len(found) == len(expected) else found * len(expected), expected))


@given(values=st.lists(scalars, max_size=6))
def test_values_of_python_are_in_their_column_what_they_were(values):
    values = [value for value in values if not isinstance(value, Decimal) or value.as_tuple().exponent <= 0]
    found = from_column(from_python(values)).tolist()
    assert all(map(same, found if len(found) == len(values) else found * len(values), values))


@pytest.mark.parametrize(
    ("column", "kind", "years"),
    [
        (pa.array([2**62, 0, -(2**62)], pa.int64()).cast(pa.timestamp("us")), "time", [None, 1970, None]),
        (pa.array([2**62, 0, -(2**62)], pa.int64()).cast(pa.timestamp("s")), "time", [None, 1970, None]),
        (pa.array([2**62, None, 5], pa.int64()).cast(pa.timestamp("ms", "UTC")), "time", [None, None, 1970]),
        (pa.array([2**62, None, 5], pa.int64()).cast(pa.timestamp("ns")), "time", [2116, None, 1970]),
        (pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32()), "time", [None, None, 1970]),
        (pa.array([2**62, -1, 0], pa.int64()).view(pa.date64()), "time", [None, 1969, 1970]),
        (pa.array([micros(LAST), micros(LAST) + 1], pa.int64()).cast(pa.timestamp("us")), "time", [9999, None]),
    ],
)
def test_a_time_beyond_python_s_years_is_null_and_leaves_the_others_alone(column, kind, years):
    events = Events(pa.table({"a": column}))
    found = from_column(events.column(("a",)))
    assert found.kind == kind
    assert [value and value.year for value in found.tolist()] == years
    assert [event["a"] and event["a"].year for event in events.mappings()] == years


def test_a_decimal_in_thousands_is_that_many_thousands():
    column = pa.array([Decimal("1200"), Decimal("-300"), None], pa.decimal128(5, -2))
    found = from_column(Events(pa.table({"a": column})).column(("a",)))
    assert found.tolist() == [Decimal(1200), Decimal(-300), None]
    assert found.doubles().tolist()[:2] == [1200.0, -300.0]


def test_decimals_of_python_share_one_scale_as_long_as_they_are_short():
    assert from_python([Decimal("1.5"), None, Decimal("-0.25")]).values.tolist() == [150, 0, -25]
    assert from_python([Decimal("1.5"), Decimal("1e-30")]).kind == "object"
    assert from_python([Decimal(10**20)]).kind == "object"


@given(units=st.lists(st.integers(-(10**18) + 1, 10**18 - 1), max_size=5), scale=st.integers(0, 38))
def test_decimals_become_the_doubles_that_float_makes(units, scale):
    doubles = as_doubles(Column("decimal", np.array(units, np.int64), scale=scale))
    assert doubles.tolist() == [float(Decimal(unit).scaleb(-scale)) for unit in units]


BROKEN = pa.StringArray.from_buffers(
    4, pa.array([0, 1, 2, 3, 5], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff\xc3\xc3\xa9")
)
SPLIT = pa.StringArray.from_buffers(2, pa.array([0, 1, 2], pa.int32()).buffers()[1], pa.py_buffer("é".encode()))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (BROKEN, ["a", None, None, "é"]),
        (BROKEN.dictionary_encode(), ["a", None, None, "é"]),
        (BROKEN.slice(1, 2), [None, None]),
        (SPLIT, [None, None]),
        (pa.array(["é", None, "a"]), ["é", None, "a"]),
        (pa.array(["é", None, "a"]).slice(2), ["a"]),
    ],
)
def test_a_text_that_is_no_unicode_is_null_and_leaves_the_others_alone(column, expected):
    events = Events(pa.table({"a": column}))
    assert from_column(events.column(("a",))).tolist() == expected
    assert events.values(("a",)) == expected


@pytest.mark.parametrize(
    "column",
    [
        pa.array([pa.MonthDayNano([1, 2, 3]), None], pa.month_day_nano_interval()),
        pa.array([5, None], pa.duration("us")),
        pa.array([5, None], pa.time64("us")),
        pa.array([b"a", None], pa.binary_view()),
        pa.array([b"ab", None], pa.binary(2)),
    ],
    ids=lambda column: str(column.type),
)
def test_values_of_types_that_the_language_does_not_have_are_null(column):
    events = Events(pa.table({"a": column}))
    assert events.column(("a",)) is None
    assert events.values(("a",)) == [None, None]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array([[1], None, []], pa.list_view(pa.int64())),
        pa.array([["a"], None, [None]], pa.list_(pa.string_view())),
        pc.run_end_encode(pa.array([1, 1, None])),
        pa.array([1, None, 2]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("is_batch", [False, True])
@pytest.mark.parametrize("rows", [[], [2], [2, 0, 0]])
def test_some_events_of_a_table_are_taken_whatever_arrow_itself_can_take(column, is_batch, rows):
    table = pa.table({"a": column})
    events = Events(table.to_batches()[0] if is_batch else table)
    assert events.take(np.array(rows, np.int64)).values(("a",)) == [column[row].as_py() for row in rows]


def test_a_record_that_is_null_has_no_attributes_in_whichever_way_they_are_written():
    is_null = pa.array([False, True, False])
    for column in (pa.array(["a", "b", "c"]), pc.run_end_encode(pa.array(["a", "b", "c"]))):
        records = pa.StructArray.from_arrays([column], ["x"], mask=is_null)
        assert Events(pa.table({"pos": records})).values(("pos", "x")) == ["a", None, "c"]
        assert Events(pa.table({"pos": records}).slice(1)).values(("pos", "x")) == [None, "c"]
    union = pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])])
    assert Events(pa.table({"pos": pa.StructArray.from_arrays([union], ["x"])})).values(("pos", "x")) == [1, "b", 3]
    with pytest.raises(EventError, match="'x' is a union inside of records"):
        Events(pa.table({"pos": pa.StructArray.from_arrays([union], ["x"], mask=is_null)})).values(("pos", "x"))
