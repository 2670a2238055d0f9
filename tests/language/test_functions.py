"""What the row of a function says is true of its meaning."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import TamisError
from tamis.language.expressions import Attribute, Call, Test, postorder
from tamis.language.functions import FUNCTIONS, callable_names, is_callable
from tamis.language.values import kind_of
from tests.strategies import scalars

values = st.one_of(scalars, st.lists(scalars, max_size=3))

every_function = pytest.mark.parametrize("row", FUNCTIONS.values(), ids=FUNCTIONS.keys())


def arguments(row):
    count = st.integers(len(row.takes), len(row.takes) + 2) if row.variadic else st.just(len(row.takes))
    return count.flatmap(lambda number: st.lists(values, min_size=number, max_size=number))


def is_written(row, count):
    """Can the function be written with so many arguments? Some take one more, but not two."""
    try:
        row.check((Attribute(("a",)),) * count)
    except TamisError:
        return False
    return row.accepts(count)


@every_function
@settings(max_examples=100)
@given(data=st.data())
def test_a_function_gives_what_its_row_says_and_never_raises(row, data):
    given_values = data.draw(arguments(row))
    assume(is_written(row, len(given_values)))
    result = row.meaning(*given_values)
    if result is None:
        return
    assert row.gives == "any" or kind_of(result) == row.gives
    if row.bounds is not None:
        least, limit = row.bounds
        assert least is None or result >= least
        assert limit is None or result < limit
    if not row.takes_nulls:
        assert None not in given_values
        for value, kind in zip(given_values, row.kinds(len(given_values)), strict=True):
            assert kind in ("any", kind_of(value))


TYPES = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(),
    "decimal": st.decimals(-(10**9), 10**9, places=3),
}


@pytest.mark.parametrize("row", [row for row in FUNCTIONS.values() if callable(row.result)], ids=lambda row: row.name)
@given(data=st.data())
def test_the_type_of_a_result_follows_from_those_of_the_arguments(row, data):
    types = data.draw(st.lists(st.sampled_from(list(TYPES)), min_size=len(row.takes), max_size=len(row.takes)))
    result = row.meaning(*(data.draw(TYPES[name]) for name in types))
    written = {int: "int", float: "double"}.get(type(result), "decimal")
    promised = row.result_type(frozenset(row.chosen(types)))
    assert result is None or promised == "number" or written == promised or (row.deciding(3) and promised == "decimal")


@pytest.mark.parametrize("row", [row for row in FUNCTIONS.values() if row.takes_nulls], ids=lambda row: row.name)
def test_what_takes_nulls_has_a_value_beside_one(row):
    given_values = {"case": (None, 1, 2), "if": (None, 1, 2), "nullif": (1, None)}.get(row.name, (None, 1))
    assert row.meaning(*given_values) is not None


@every_function
def test_the_example_uses_the_function(row):
    nodes = postorder(tamis.parse(row.example))
    assert row.name in {node.function for node in nodes if isinstance(node, Call | Test)}


def test_what_has_a_symbol_is_not_called_by_its_name():
    assert not is_callable("add")
    assert all(map(is_callable, callable_names()))
    assert {"xor", "at_least", "double"} <= set(callable_names())


def test_spark_has_the_functions_that_rows_say_it_has(spark):
    known = {row.function for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert {row.spark for row in FUNCTIONS.values() if row.spark is not None} <= known
