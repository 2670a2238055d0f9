"""A table is a table, whoever made it; what is none is refused with an error that says what would be right."""

from __future__ import annotations

import datetime as dt
import pickle
from collections import UserDict, namedtuple
from decimal import Decimal

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import EventError
from tamis.matching import BadTableError, DuplicateIdError, Matcher, MatcherOptionError, Rejected
from tamis.matching.tables import arrow_table

RULES = {"subscription_id": [7, 8, 9], "condition": ["a > 1", "s = 'é'", "a IS NULL"], "priority": [0, 2, None]}
EVENTS = {"a": [1, 2, None, 5], "s": ["é", None, "", "x"]}
EXPECTED = [[8], [7], [9], [7]]


class OnlyInterchange:
    """A table that speaks nothing but the dataframe interface."""

    def __init__(self, table):
        self._table = table

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self._table.__dataframe__(nan_as_null, allow_copy)


class OnlyArray:
    """A table that speaks nothing but Arrow's C array."""

    def __init__(self, batch):
        self._batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self._batch.__arrow_c_array__(requested_schema)


def reader(table):
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))


def saved(table):
    return pyarrow.dataset.dataset(table)


MAKERS = {
    "pyarrow table": lambda columns: pa.table(columns),
    "pyarrow chunks": lambda columns: pa.Table.from_batches(pa.table(columns).to_batches(max_chunksize=1)),
    "pyarrow record batch": lambda columns: pa.RecordBatch.from_pydict(columns),
    "pyarrow reader": lambda columns: reader(pa.table(columns)),
    "pyarrow dataset": lambda columns: saved(pa.table(columns)),
    "pyarrow scanner": lambda columns: saved(pa.table(columns)).scanner(),
    "pyarrow structs": lambda columns: pa.RecordBatch.from_pydict(columns).to_struct_array(),
    "polars": polars.DataFrame,
    "pandas": pandas.DataFrame,
    "pandas with Arrow types": lambda columns: pandas.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with an index": lambda columns: pandas.DataFrame(columns, index=list("wxyz")[: len(columns[min(columns)])]),
    "dataframe interface": lambda columns: OnlyInterchange(pa.table(columns)),
    "C array": lambda columns: OnlyArray(pa.RecordBatch.from_pydict(columns)),
    "DuckDB": lambda columns: duckdb.connect().from_arrow(pa.table(columns)),
    "list of mappings": lambda columns: rows_of(columns),
    "generator of mappings": lambda columns: (row for row in rows_of(columns)),
    "other mappings": lambda columns: tuple(map(UserDict, rows_of(columns))),
}
every_maker = pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)


def rows_of(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@every_maker
def test_subscriptions_come_as_whatever_is_a_table(maker):
    matcher = Matcher()
    matcher.add_many(maker(RULES))
    assert matcher.list_batch(rows_of(EVENTS)).to_pylist() == EXPECTED
    assert matcher.match({"a": 2, "s": "é"}) == [8, 7], "priorities are taken too"
    assert matcher.expression(9) == tamis.parse("a IS NULL")


@every_maker
def test_the_columns_of_subscriptions_have_the_names_that_were_said(maker):
    columns = {"id": [0, 0, 0], "rule": RULES["subscription_id"], "says": RULES["condition"], "rank": [0, 2, 1]}
    matcher = Matcher()
    matcher.add_many(maker(columns), id="rule", where="says", priority="rank")
    assert matcher.list_batch(rows_of(EVENTS)).to_pylist() == EXPECTED
    assert matcher.match({"a": 2, "s": "é"}) == [8, 7]


@every_maker
def test_columns_have_usual_names(maker):
    matcher = Matcher()
    matcher.add_many(maker({"id": [1], "where": ["a > 1"]}))
    matcher.add_many(maker({"subscription_id": [2], "id": [1], "condition": ["a > 2"], "where": ["a > 9"]}))
    assert matcher.match({"a": 5}) == [1, 2], "and of two usual names the longer one counts"


@every_maker
def test_events_come_as_whatever_is_a_table(maker):
    matcher = Matcher()
    matcher.add_many(dict(zip(RULES["subscription_id"], RULES["condition"], strict=True)))
    matcher.learn(maker(EVENTS))
    pairs = [(number, each) for number, ids in enumerate(EXPECTED) for each in ids]
    found = matcher.match_batch(maker(EVENTS)).to_pydict()
    assert sorted(zip(found["event"], found["subscription"], strict=True)) == pairs
    assert matcher.list_batch(maker(EVENTS)).to_pylist() == EXPECTED
    assert matcher.count_batch(maker(EVENTS)).to_pylist() == [1, 1, 1, 1]
    assert matcher.any_batch(maker(EVENTS)).to_pylist() == [True] * 4


@every_maker
def test_a_table_without_rows_is_a_table(maker):
    matcher = Matcher()
    matcher.add(1, "a > 1")
    if maker in (MAKERS["list of mappings"], MAKERS["generator of mappings"], MAKERS["other mappings"]):
        empty = maker({"subscription_id": [], "condition": []})
    else:
        empty = MAKERS["pyarrow table"](
            {"subscription_id": pa.array([], pa.int64()), "condition": pa.array([], "string")}
        )
    matcher.add_many(empty)
    assert len(matcher) == 1
    assert matcher.count_batch(empty).to_pylist() == []


def values_of(column):
    return [None if value is None or value != value else value for value in column]


@given(
    numbers=st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=4, max_size=4),
    doubles=st.lists(st.one_of(st.none(), st.floats(allow_nan=False)), min_size=4, max_size=4),
    texts=st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=4, max_size=4),
)
def test_values_of_other_libraries_mean_the_same(numbers, doubles, texts):
    columns = {
        "n": pa.array(numbers, pa.int64()),
        "d": pa.array(doubles, pa.float64()),
        "s": pa.array(texts, pa.string()),
        "t": pa.array([None if number is None else number % 10**12 for number in numbers], pa.timestamp("us")),
        "m": pa.array([None, Decimal("1.50"), Decimal("-0.01"), Decimal(7)], pa.decimal128(9, 2)),
        "l": pa.array([["a"], [], None, ["a", "b"]], pa.list_(pa.string())),
        "p": pa.array([{"x": 1}, None, {"x": None}, {"x": 3}], pa.struct({"x": pa.int64()})),
    }
    table = pa.table(columns)
    matcher = Matcher()
    texts_of_rules = ["n > 0", "d >= 0.5", "s < 'm'", "t > TIMESTAMP '1970-01-02'", "m > 1", "array_contains(l, 'a')"]
    matcher.add_many([*enumerate(texts_of_rules), (6, "p.x >= 1"), (7, "s IS NULL")])
    expected = [
        [
            number
            for number, text in enumerate([*texts_of_rules, "p.x >= 1", "s IS NULL"])
            if tamis.holds(tamis.parse(text), row)
        ]
        for row in table.to_pylist()
    ]
    assert matcher.list_batch(polars.from_arrow(table)).to_pylist() == expected
    assert matcher.list_batch(duckdb.connect().from_arrow(table)).to_pylist() == expected
    assert matcher.list_batch(reader(table)).to_pylist() == expected
    assert matcher.list_batch(table.to_pandas(types_mapper=pandas.ArrowDtype)).to_pylist() == expected


Pair = namedtuple("Pair", "id condition")


def test_rows_are_tuples_lists_and_mappings_even_mixed():
    matcher = Matcher()
    matcher.add_many([("a", "x > 1"), ["b", "x > 2", 1], {"id": "c", "condition": "x > 3"}, Pair("d", "x > 4")])
    matcher.add_many(iter([("e", "x > 5", np.int64(3))]))
    assert matcher.match({"x": 9}) == ["e", "b", "a", "c", "d"]


# -- What is not a table


NO_EVENTS = [
    "a > 1", b"ab", bytearray(b"ab"), 5, 2.5, None, {"a": 1}, ["a", "b"], [1, 2], [("a", 1)], [{"a": 1}, "b"], {"a", "b"},
    np.array([1, 2]), pa.array([1, 2]), polars.Series([1]), polars.DataFrame({"a": [1]}).lazy(), pandas.Series([1, 2]),
    object(), dt.date(2026, 1, 1), len, [pa.table({"a": [1]})], [None],
]  # fmt: skip


@pytest.mark.parametrize("thing", NO_EVENTS, ids=lambda thing: type(thing).__name__)
def test_what_are_no_events_is_one_typed_error(thing):
    matcher = Matcher()
    matcher.add(1, "a > 1")
    for way in (matcher.match_batch, matcher.count_batch, matcher.list_batch, matcher.any_batch, matcher.learn):
        with pytest.raises(EventError, match=r"mapping|table"):
            way(thing)


NO_RULES = [
    "a > 1", b"a > 1", 5, None, ["ab", "cd"], [1, 2], [(1,)], [()], [(1, "a > 1", 0, None, 5)], [{"a": 1}], {1, 2},
    {"id": 1, "condition": "a > 1"}, {"id": [1, 2], "condition": ["a > 1", "a > 2"]}, [("a", "a > 1"), "bc"],
    np.array([1, 2]), pa.array([1, 2]), polars.Series(["a > 1"]), polars.DataFrame({"id": [1]}).lazy(), object(),
    polars.DataFrame({"x": [1], "y": ["a > 1"]}), pandas.DataFrame({"id": [1]}), pa.table({"condition": ["a > 1"]}),
    [(1, None)], [(None, "a > 1")], [([1], "a > 1")], [(1, 5)], [(1, "a > 1", "high")], [(1, "a > 1", 1.5)],
    [(1, "a > 1", 2**31)], [(1, "a > 1", True)], pa.table({"id": [1, None], "condition": ["a > 1", "a > 2"]}),
    pa.table({"id": [1, 2], "condition": ["a > 1", None]}), pa.table({"id": [1], "condition": [5]}),
]  # fmt: skip


@pytest.mark.parametrize("thing", NO_RULES, ids=lambda thing: f"{type(thing).__name__}")
def test_what_are_no_subscriptions_is_one_typed_error(thing):
    matcher = Matcher()
    with pytest.raises(BadTableError):
        matcher.add_many(thing)
    assert len(matcher) == 0


@pytest.mark.parametrize(
    ("thing", "options", "message"),
    [
        ("a > 1", {}, "not as str"),
        (polars.DataFrame({"a": [1]}).lazy(), {}, r"not as polars LazyFrame; call collect\(\) on it first"),
        ({"id": 1, "condition": "a > 1"}, {}, "'id' has int; for a single subscription there is add"),
        ({"id": [1]}, {}, r"'id' has list; if these are columns, make a table of them"),
        ([("a",)], {}, "row 0 .*not a tuple of 1"),
        ([("a", "x > 1"), "bc"], {}, "row 1 .*not str"),
        (
            pa.table({"ident": [1], "condition": ["a"]}),
            {},
            "no column 'subscription_id' or 'id', only 'ident', 'condition'; name it with id=...",
        ),
        (pa.table({"ident": [1], "condition": ["a"]}), {"id": "idnt"}, "no column 'idnt', .*Did you mean ident"),
        (pa.table({"id": [1], "condition": ["a"]}), {"priority": "rank"}, "no column 'rank'"),
        ([("a", "x > 1")], {"id": "rule"}, "id='rule' names a column, but tuples have none"),
        ({"a": "x > 1"}, {"where": "rule"}, "where='rule' names a column, but a mapping"),
        ([{"id": 1, "condition": "a > 1"}, {"id": 2}], {}, "row 1 .*no column 'condition' or 'where', only 'id'"),
        (pa.table({"id": [1, None], "condition": ["a > 1", "a > 2"]}), {}, r"row 1 \(None\): a subscription has an id"),
        ([(1, "a > 1", "high")], {}, r"row 0 \(1\): a priority is an integer of 32 bits, not 'high'"),
    ],
)
def test_the_error_says_what_would_be_right(thing, options, message):
    with pytest.raises(BadTableError, match=message):
        Matcher().add_many(thing, **options)


def test_a_table_that_cannot_be_read_says_so():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise RuntimeError("the line is cut")

    with pytest.raises(EventError, match=r"Broken cannot be read as a table of Arrow's: .*the line is cut"):
        Matcher().match_batch(Broken())
    mixed = pandas.DataFrame({"a": [1, "x", 2.5]})
    with pytest.raises(EventError, match="pandas DataFrame cannot be read as a table"):
        Matcher().match_batch(mixed)
    with pytest.raises(BadTableError, match="pandas DataFrame cannot be read as a table"):
        Matcher().add_many(mixed)


def test_an_error_in_a_generator_is_the_generators():
    def events():
        yield {"a": 1}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Matcher().match_batch(events())


def test_a_priority_that_pandas_made_a_double_of_is_a_priority():
    matcher = Matcher()
    matcher.add_many(pandas.DataFrame({"id": [1, 2], "condition": ["a > 1"] * 2, "priority": [None, 3]}))
    assert matcher.match({"a": 2}) == [2, 1]


def test_arrow_tables_are_taken_as_they_are():
    table = pa.table({"a": [1]})
    assert arrow_table(table, EventError) is table


# -- Rows that are rejected


def one_by_one(rows, algorithm="block"):
    """The definition: every row as if it were added alone."""
    matcher = Matcher(algorithm)
    rejected = []
    for row in rows:
        try:
            if isinstance(row[0], int | str) and row[0] in matcher and row[1] is not None and row[2] != "high":
                raise DuplicateIdError(row[0])  # of a row with two mistakes this one is told
            matcher.add_many([row])
        except tamis.errors.TamisError as error:
            rejected.append(type(error).__name__)
    return matcher, rejected


ROWS = st.lists(
    st.tuples(
        st.one_of(st.integers(0, 4), st.sampled_from(["x", None, [1]])),
        st.sampled_from(["a > 1", "a > 2", "a >", "b LIKE 'x%'", None, 7, tamis.parse("a = 2")]),
        st.sampled_from([0, 1, None, "high"]),
    ),
    max_size=10,
)


@pytest.mark.parametrize("algorithm", ["block", "naive", "atree"])
@given(rows=ROWS)
def test_what_is_skipped_is_what_would_be_refused_one_by_one(algorithm, rows):
    expected, errors = one_by_one(rows, algorithm)
    matcher = Matcher(algorithm)
    rejected = matcher.add_many(rows, on_error="skip")
    assert [each.error for each in rejected] == errors
    for event in ({"a": 2}, {"a": 3, "b": "xy"}, {}):
        assert matcher.match(event) == expected.match(event)
    assert len(matcher) == len(expected)


def test_the_first_of_two_with_one_id_stays_and_the_later_ones_are_rejected():
    matcher = Matcher()
    matcher.add(0, "a > 0")
    rows = [(1, "a >"), (1, "a > 1"), (1, "a > 2"), (0, "a > 3"), (2, "a > 4")]
    rejected = matcher.add_many(rows, on_error="skip")
    assert [each.id for each in rejected] == [1, 1, 0]
    assert [each.row for each in rejected] == [0, 2, 3]
    assert [each.error for each in rejected] == ["ExpressionSyntaxError", "DuplicateIdError", "DuplicateIdError"]
    assert rejected[0].condition == "a >"
    assert "column 4" in rejected[0].reason
    assert rejected[1].reason == "there is a subscription 1 already; replace it, or choose another id"
    assert [str(matcher.expression(each)) for each in (0, 1, 2)] == ["a > 0", "a > 1", "a > 4"]
    with pytest.raises(DuplicateIdError):
        matcher.add_many([(3, "a > 1"), (3, "a > 1")])
    assert 3 not in matcher, "all or nothing"


def test_rejected_rows_survive_pickling():
    rejected = Matcher().add_many([(1, "a >")], on_error="skip")
    assert pickle.loads(pickle.dumps(rejected)) == rejected
    assert isinstance(rejected[0], Rejected)


def test_what_an_algorithm_refuses_is_skipped_too():
    wide = " XOR ".join(f"a{number} > 0" for number in range(14))
    matcher = Matcher("counting")
    rejected = matcher.add_many([(1, "a > 1"), (2, wide), (2, "a > 2"), (3, "a >")], on_error="skip")
    assert [(each.id, each.error) for each in rejected] == [
        (2, "UnsupportedExpressionError"),
        (3, "ExpressionSyntaxError"),
    ]
    assert matcher.match({"a": 3}) == [1, 2]


def test_a_schema_decides_what_is_skipped():
    matcher = Matcher(schema=tamis.Schema({"a": "int"}))
    rejected = matcher.add_many({1: "a > 1", 2: "b > 1", 3: "a LIKE 'x'"}, on_error="skip")
    assert [each.error for each in rejected] == ["UnknownAttributeError", "TypeMismatchError"]


def test_there_are_two_ways_to_meet_an_error():
    with pytest.raises(MatcherOptionError, match="'raise' or 'skip', not 'ignore'"):
        Matcher().add_many([], on_error="ignore")


def test_who_registers_an_id_meanwhile_is_first(monkeypatch):
    matcher = Matcher()
    plain = matcher._engine.prepare
    hurry = []

    def prepare(expressions):
        prepared = plain(expressions)
        if not hurry:
            hurry.append(True)
            matcher.add(2, "a > 5")
        return prepared

    monkeypatch.setattr(matcher._engine, "prepare", prepare)
    rejected = matcher.add_many({1: "a > 1", 2: "a > 2"}, on_error="skip")
    assert [each.id for each in rejected] == [2]
    assert matcher.match({"a": 3}) == [1]


def test_ids_of_several_types_are_a_union_whatever_matched():
    matcher = Matcher()
    matcher.add_many({1: "a > 0", "one": "a > 1", 2.5: "a > 2", b"x": "a > 3", 7: "a > 9"})
    found = matcher.match_batch([{"a": 4}, {"a": 1}])
    assert found["subscription"].to_pylist() == [1, "one", 2.5, b"x", 1]
    assert [type(each) for each in found["subscription"].to_pylist()] == [int, str, float, bytes, int]
    nothing, lists = matcher.match_batch([{"a": 0}]), matcher.list_batch([{"a": 2}, {}])
    assert nothing["subscription"].type == found["subscription"].type == lists.type.value_type
    assert lists.to_pylist() == [[1, "one"], []]
    assert pa.concat_tables([found, nothing]).num_rows == 5


def test_ids_without_a_column_say_what_would_be_right():
    matcher = Matcher()
    matcher.add_many({("a", 1): "a > 0", "b": "a > 0"})
    with pytest.raises(BadTableError, match="ids of several types cannot share a column; match events one by one"):
        matcher.match_batch([{"a": 1}])
    matcher = Matcher()
    matcher.add_many({2**70: "a > 0", "b": "a > 0"})
    with pytest.raises(BadTableError, match="an id of type int has no column"):
        matcher.match_batch([{"a": 1}])
    assert matcher.match_shortcut_batch([{"a": 1}]).subscriptions.tolist() == [2**70, "b"]
