"""A schema finds mistakes when a subscription is written, and knows the hierarchy of event types."""

from __future__ import annotations

import datetime as dt
import os
import pickle
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis import errors
from tamis.language.schema import NO_SCHEMA

SCHEMA = tamis.Schema(
    {
        "type": "string",
        "price": "double",
        "bids": "int",
        "title": "string",
        "sold": "bool",
        "day": "date",
        "at": "timestamp",
        "cost": "decimal(10,2)",
        "tags": "array<string>",
        "position": {"x": "double", "y": "double"},
    },
    mandatory=["type", "price"],
    hierarchy={"Event": None, "Quote": "Event", "StockQuote": "Quote", "News": "Event"},
    mandatory_by_type={"Quote": ["cost"], "StockQuote": ["title"]},
)


@pytest.mark.parametrize(
    "text",
    [
        "price < 20 AND bids = 3.5",
        "sold AND NOT sold = FALSE",
        "day < TIMESTAMP '2024-01-01 00:00:00' OR at = day",
        "array_contains(tags, 'x') AND size(tags) > bids",
        "position.x + cost <= price",
        "type IS A 'Quote'",
        "title LIKE 'The %' AND length(trim(title)) < 20",
        "price = NULL",
    ],
)
def test_a_good_text_passes(text):
    assert tamis.parse(text, SCHEMA) == tamis.parse(text)


@pytest.mark.parametrize(
    ("text", "kind", "column", "words"),
    [
        ("prize < 20", errors.UnknownAttributeError, 1, "Did you mean price?"),
        ("price < 20 AND Title = 'x'", errors.UnknownAttributeError, 16, "Did you mean title?"),
        ("position.z < 20", errors.UnknownAttributeError, 1, "Did you mean position."),
        ("zzz = 1", errors.UnknownAttributeError, 1, "Known: "),
        ("position = 1", errors.TypeMismatchError, 1, "records cannot be compared"),
        ("price = 'x'", errors.TypeMismatchError, 1, "without quotes"),
        ("title = 5", errors.TypeMismatchError, 1, "a text cannot be compared with a number"),
        ("day = '2024-02-29'", errors.TypeMismatchError, 1, "Write DATE '2024-02-29'"),
        ("sold = 'true'", errors.TypeMismatchError, 1, "TRUE or FALSE"),
        ("price AND sold", errors.TypeMismatchError, 1, "price, which is a number"),
        ("NOT title", errors.TypeMismatchError, 5, "title, which is a text"),
        ("tags = 'x'", errors.TypeMismatchError, 1, "array_contains"),
        ("array_contains(tags, 5)", errors.TypeMismatchError, 1, "holds strings"),
        ("array_contains(price, 5)", errors.TypeMismatchError, 16, "array_contains takes an array"),
        ("price LIKE 'x'", errors.TypeMismatchError, 1, "LIKE takes a text"),
        ("lower(price) = 'x'", errors.TypeMismatchError, 7, "lower takes a text"),
        ("title + 1 = 2", errors.TypeMismatchError, 1, "+ takes a number"),
        ("bids IN (1, 'x')", errors.TypeMismatchError, 1, "cannot be compared"),
        ("type IS A 'Quot'", errors.UnknownEventTypeError, 1, "Did you mean Quote?"),
        ("price IS A 'Quote'", errors.TypeMismatchError, 1, "IS A takes a text"),
    ],
)
def test_a_mistake_against_the_schema_is_named_and_placed(text, kind, column, words):
    with pytest.raises(kind) as caught:
        tamis.parse(text, SCHEMA)
    assert words in str(caught.value)
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("event_type", "truth"),
    [("Quote", True), ("StockQuote", True), ("Event", False), ("Unheard of", False), (None, None), (5, None)],
)
def test_is_a_matches_subtypes(event_type, truth):
    assert tamis.truth(tamis.parse("type IS A 'Quote'"), {"type": event_type}, SCHEMA) is truth


def test_without_a_schema_a_type_is_only_itself():
    assert tamis.holds(tamis.parse("type IS A 'Quote'"), {"type": "Quote"})
    assert not tamis.holds(tamis.parse("type IS A 'Quote'"), {"type": "StockQuote"})


def test_mandatory_attributes_are_inherited():
    assert SCHEMA.is_mandatory(("price",))
    assert not SCHEMA.is_mandatory(("cost",))
    assert SCHEMA.is_mandatory(("cost",), "StockQuote")
    assert not SCHEMA.is_mandatory(("cost",), "News")
    assert SCHEMA.subtypes("Quote") == ("Quote", "StockQuote")


def test_a_schema_is_compared_hashed_and_pickled():
    again = pickle.loads(pickle.dumps(SCHEMA))
    assert again == SCHEMA
    assert hash(again) == hash(SCHEMA)
    assert again != tamis.Schema({"price": "double"})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tamis.Schema({"a": "strin"}), "string"),
        (lambda: tamis.Schema({"a": "decimal(39,2)"}), "1 to 38"),
        (lambda: tamis.Schema({"a": "array<array<int>>"}), "holds scalars"),
        (lambda: tamis.Schema({"a": "int"}, mandatory=["b"]), "'b' is not in the schema"),
        (lambda: tamis.Schema({"a": 5}), "not 5"),
        (lambda: tamis.Schema({}, hierarchy={"A": ["B"]}), "event types and their parents"),
        (lambda: tamis.Schema.from_json_schema({"properties": {"a": True}, "required": 5}), "list of names"),
        (lambda: tamis.Schema({}, hierarchy={"A": "B", "B": "A"}), "cycle"),
        (lambda: tamis.Schema({}, hierarchy={"A": "B"}), "not in the hierarchy"),
        (lambda: tamis.Schema({"a": "int"}, mandatory_by_type={"A": ["a"]}), "not in the hierarchy"),
    ],
)
def test_a_schema_that_contradicts_itself_is_refused(make, words):
    with pytest.raises(errors.SchemaError, match=words.replace("(", r"\(")):
        make()


def test_an_event_is_read_in_the_declared_types():
    event = {
        "type": "Quote", "price": 12, "cost": 3.1, "day": "2024-02-29", "at": "2024-02-29T12:00:00+02:00",
        "tags": ["a", None], "position": {"x": "NaN"}, "sold": None,
    }  # fmt: skip
    read = SCHEMA.conform(event)
    assert read["price"] == 12.0
    assert isinstance(read["price"], float)
    assert read["cost"] == Decimal("3.1")
    assert read["day"] == dt.date(2024, 2, 29)
    assert read["at"] == dt.datetime(2024, 2, 29, 10)
    assert read["tags"] == ["a", None]
    assert read["position"]["x"] != read["position"]["x"]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"type": "News"}, "lacks the mandatory price"),
        ({"type": "Quote", "price": 1}, "lacks the mandatory cost"),
        ({"type": "News", "price": "cheap"}, "price is double"),
        ({"type": "News", "price": 1, "bids": 1.5}, "bids is int"),
        ({"type": "News", "price": 1, "bids": 2**63}, "bids is int"),
        ({"type": "News", "price": 1, "bids": True}, "bids is int"),
        ({"type": "News", "price": 1, "tags": "x"}, "not an array"),
        ({"type": "News", "price": 1, "position": 5}, "position is a record"),
        ({"type": "News", "price": 1, "day": "today"}, "day is date"),
        ({"type": "News", "price": 1, "prize": 5}, "Did you mean price?"),
    ],
)
def test_an_event_that_does_not_fit_is_refused(event, words):
    with pytest.raises(errors.EventError, match=words.replace("?", r"\?")):
        SCHEMA.conform(event)


FITTING = {"type": "News", "price": 1.0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, None),
        ({"price": float("nan"), "bids": -(2**63), "cost": 5, "tags": ("a", None), "position": {"x": 2.0}}, None),
        ({"cost": Decimal("3.123"), "day": dt.date(2024, 2, 29), "at": dt.datetime(2024, 2, 29), "sold": True}, None),
        ({"bids": np.int64(3), "price": np.float64(2), "tags": np.array(["a"])}, None),
        ({"price": None}, "lacks the mandatory price"),
        ({"type": "Quote"}, "lacks the mandatory cost"),
        ({"type": "StockQuote", "cost": None}, "lacks the mandatory cost"),
        ({"price": 12}, "price is double, and 12 is not"),
        ({"bids": 4.0}, "bids is int, and 4.0 is not"),
        ({"bids": 2**63}, "bids is int"),
        ({"bids": True}, "bids is int, and True is not"),
        ({"price": True}, "price is double"),
        ({"sold": 1}, "sold is bool"),
        ({"cost": 3.5}, "cost is decimal"),
        ({"cost": Decimal("NaN")}, "cost is decimal"),
        ({"cost": 10**39}, "cost is decimal"),
        ({"day": dt.datetime(2024, 2, 29)}, "day is date"),
        ({"day": "2024-02-29"}, "day is date"),
        ({"at": dt.date(2024, 2, 29)}, "at is timestamp"),
        ({"at": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-2)))}, "at is timestamp"),
        ({"type": "\ud800"}, "type is string"),
        ({"type": b"News"}, "type is string"),
        ({"tags": "x"}, "not an array"),
        ({"tags": ["a", 5]}, "tags is array<string>, and 5 is not of type string"),
        ({"position": 5}, "position is a record, not int"),
        ({"position": {"x": "here"}}, "position.x is double, and 'here' is not"),
        ({"position": {"z": 1.0}}, "no attribute position.z"),
        ({"prize": 5}, "no attribute prize. Did you mean price?"),
        ({5: 5}, "no attribute 5"),
    ],
)
def test_an_objection_says_what_does_not_fit_and_changes_nothing(changes, words):
    event = {**FITTING, **changes}
    before = repr(event)
    found = SCHEMA.objection(event)
    assert found is None if words is None else words in found
    assert repr(event) == before


class Hostile:
    def __repr__(self):
        raise ZeroDivisionError

    @property
    def tolist(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "event", [None, 5, "x", [], Hostile(), {"price": Hostile()}, {Hostile(): 1}, {"tags": Hostile()}]
)
def test_an_objection_is_answered_whatever_the_event_is(event):
    assert isinstance(SCHEMA.objection(event), str)


def test_what_is_mandatory_may_be_a_record_or_have_a_dot_in_its_name():
    schema = tamis.Schema({"at": {"x": "int"}, "a.b": "int"}, mandatory=["at", "a.b"])
    assert schema.objection({"at": {}, "a.b": 1}) is None
    assert schema.objection({"a.b": 1}) == "the event lacks the mandatory at"
    assert schema.objection({"at": {}}) == "the event lacks the mandatory a.b"
    nested = tamis.Schema({"at": {"x": "int"}}, mandatory=["at.x"])
    assert nested.objection({"at": {}}) == "the event lacks the mandatory at.x" == nested.objection({})


def test_what_is_read_in_the_declared_types_fits():
    event = {"type": "Quote", "price": 12, "cost": 3.1, "day": "2024-02-29", "tags": ["a", None], "position": {"x": 1}}
    assert SCHEMA.objection(event) is not None
    assert SCHEMA.objection(SCHEMA.conform(event)) is None


def test_a_digest_tells_schemas_apart_by_all_that_they_say():
    attributes = {"type": "string", "x": "int", "at": {"y": "double"}}
    hierarchy = {"Quote": None, "StockQuote": "Quote"}
    variants = [
        tamis.Schema(attributes),
        tamis.Schema({**attributes, "x": "double"}),
        tamis.Schema({**attributes, "z": "int"}),
        tamis.Schema({**attributes, "at": {"y": "int"}}),
        tamis.Schema(attributes, mandatory=["x"]),
        tamis.Schema(attributes, hierarchy=hierarchy),
        tamis.Schema(attributes, hierarchy={"Quote": None, "StockQuote": None}),
        tamis.Schema(attributes, hierarchy=hierarchy, mandatory_by_type={"Quote": ["x"]}),
        tamis.Schema(attributes, hierarchy=hierarchy, mandatory_by_type={"StockQuote": ["x"]}),
        tamis.Schema(attributes, type_attribute="kind"),
        tamis.Schema({}),
    ]
    assert len({NO_SCHEMA, *(each.digest for each in variants)}) == len(variants) + 1
    again = tamis.Schema(
        dict(reversed(attributes.items())),
        hierarchy=dict(reversed(hierarchy.items())),
        mandatory_by_type={"Quote": ["x"]},
    )
    assert again.digest == variants[7].digest == pickle.loads(pickle.dumps(variants[7])).digest


def test_a_digest_is_the_same_in_every_process():
    told = "import tamis; print(tamis.Schema({'x': 'int', 'y': 'string'}, mandatory=['y', 'x']).digest)"
    found = {
        subprocess.run(
            [sys.executable, "-c", told],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1 and len(found.pop().strip()) == 32


def test_a_schema_from_arrow():
    arrow = pa.schema(
        [
            pa.field("price", pa.float32(), nullable=False),
            ("bids", pa.uint8()),
            ("title", pa.dictionary(pa.int32(), pa.large_string())),
            ("cost", pa.decimal128(10, 2)),
            ("day", pa.date32()),
            ("at", pa.timestamp("ns", "Europe/Zagreb")),
            ("tags", pa.list_(pa.string())),
            ("position", pa.struct([("x", pa.float64()), ("raw", pa.binary())])),
            ("raw", pa.binary()),
        ]
    )
    assert tamis.Schema.from_arrow(arrow) == tamis.Schema(
        {
            "price": "double", "bids": "int", "title": "string", "cost": "decimal(10,2)", "day": "date",
            "at": "timestamp", "tags": "array<string>", "position": {"x": "double"},
        },
        mandatory=["price"],
    )  # fmt: skip


@pytest.mark.spark
def test_a_schema_from_spark(spark):
    frame = spark.sql(
        "SELECT 1D AS price, 1 AS bids, 'x' AS title, DATE '2024-01-01' AS day, TIMESTAMP '2024-01-01' AS at, "
        "array('a') AS tags, named_struct('x', 1D) AS position, 1.5BD AS cost, X'00' AS raw"
    )
    read = tamis.Schema.from_spark(frame)
    assert read == tamis.Schema.from_spark(frame.schema)
    assert {name: str(kind) for name, kind in read.attributes.items()} == {
        "price": "double", "bids": "int", "title": "string", "day": "date", "at": "timestamp", "tags": "array<string>",
        "position": "record<x: double>", "cost": "decimal(2,1)",
    }  # fmt: skip
    with pytest.raises(errors.SchemaError, match="not a schema of Spark"):
        tamis.Schema.from_spark(5)


def test_a_schema_from_json_schema():
    schema = tamis.Schema.from_json_schema(
        {
            "type": "object",
            "required": ["price"],
            "properties": {
                "price": {"type": "number"},
                "bids": {"type": ["integer", "null"]},
                "format": {"enum": ["hardcover", "paperback"]},
                "at": {"type": "string", "format": "date-time"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "position": {"type": "object", "properties": {"x": {"type": "number"}}},
                "anything": {},
            },
        }
    )
    assert schema == tamis.Schema(
        {
            "price": "double",
            "bids": "int",
            "format": "string",
            "at": "timestamp",
            "tags": "array<string>",
            "position": {"x": "double"},
        },
        mandatory=["price"],
    )
    with pytest.raises(errors.SchemaError, match="properties"):
        tamis.Schema.from_json_schema({"type": "string"})
