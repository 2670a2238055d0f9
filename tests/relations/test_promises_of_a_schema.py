"""What relations conclude from a schema holds for every event to which the schema has no objection."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import EventError
from tamis.language.expressions import Attribute
from tamis.language.ranges.value_sets import is_member
from tamis.relations.domains import axis_of

TYPES = ("string", "int", "double", "decimal(10,2)", "bool", "date", "timestamp", "array<int>", "array<string>")
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 2**63, -(2**63) - 1, 10**38, 10**40]),
    st.floats(),
    st.sampled_from([Decimal("1.5"), Decimal("-0"), Decimal("NaN"), Decimal(10) ** 50, Decimal("1e-40")]),
    st.sampled_from(["", "a", "\ud800", "NaN", "2024-02-29"]),
    st.sampled_from([dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1), dt.datetime(2024, 2, 29, tzinfo=dt.UTC)]),
    st.lists(st.one_of(st.none(), st.integers(-1, 1), st.just("a"), st.floats()), max_size=2),
    st.just(b"bytes"),
    st.dictionaries(st.sampled_from(["x", "y"]), st.one_of(st.integers(), st.floats()), max_size=2),
)
schemas = st.builds(
    lambda kinds, inner, mandatory: tamis.Schema(
        {**dict(zip("abcd", kinds, strict=True)), "r": {"x": inner}},
        mandatory=[name for name in mandatory if name in ("a", "b", "r", "r.x")],
    ),
    st.lists(st.sampled_from(TYPES), min_size=4, max_size=4),
    st.sampled_from(["int", "double"]),
    st.sets(st.sampled_from(["a", "b", "r", "r.x"])),
)
events = st.dictionaries(st.sampled_from(["a", "b", "c", "d", "r", "e"]), values, max_size=5)


@given(schema=schemas, event=events)
def test_every_value_of_an_event_that_fits_is_one_that_relations_count_on(schema, event):
    if schema.objection(event) is None:
        for path in (*((name,) for name in "abcdr"), ("r", "x")):
            axis = axis_of(Attribute(path), schema)
            assert is_member(axis.cut_in(event, schema), axis.values)


@given(schema=schemas, event=events)
def test_an_event_that_was_read_in_the_declared_types_fits(schema, event):
    try:
        conforming = schema.conform(event)
    except EventError:
        conforming = None
    if conforming is None:
        assert schema.objection(event) is not None
    else:
        assert schema.objection(conforming) is None
