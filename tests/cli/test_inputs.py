from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tamis.cli.inputs import InputError, schema_file

if TYPE_CHECKING:
    from pathlib import Path

    from tamis import Schema


def schema_of(written: Any, directory: Path) -> Schema:
    path = directory / "schema.json"
    path.write_text(written if isinstance(written, str) else json.dumps(written), encoding="utf-8")
    return schema_file(path)


def test_a_schema_is_attributes_and_what_schema_takes(tmp_path: Path):
    schema = schema_of(
        {
            "kind": "string",
            "price": "decimal(10,2)",
            "seller": {"rating": "double"},
            "mandatory": ["kind"],
            "hierarchy": {"Quote": None, "StockQuote": "Quote"},
            "mandatory_by_type": {"Quote": ["price"]},
            "type_attribute": "kind",
        },
        tmp_path,
    )
    assert schema.names() == ["kind", "price", "seller.rating"]
    assert schema.is_a("StockQuote", "Quote")
    assert schema.is_mandatory(("price",), "StockQuote")
    assert schema.type_attribute == "kind"


def test_attributes_may_be_named_like_the_keys(tmp_path: Path):
    schema = schema_of(
        {"attributes": {"mandatory": "int", "hierarchy": "string"}, "mandatory": ["mandatory"]}, tmp_path
    )
    assert schema.names() == ["mandatory", "hierarchy"]
    assert schema.is_mandatory(("mandatory",))


def test_a_json_schema_is_known_by_its_properties(tmp_path: Path):
    written = {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]}
    schema = schema_of(written, tmp_path)
    assert str(schema.type_of(("day",))) == "date"
    assert schema.is_mandatory(("day",))


def test_an_attribute_may_be_called_properties(tmp_path: Path):
    assert schema_of({"properties": "string"}, tmp_path).names() == ["properties"]


@pytest.mark.parametrize(
    "written",
    [
        "",
        "{",
        "[]",
        "5",
        "[" * 100_000,
        '{"a":' * 900 + '"int"' + "}" * 900,
        {"price": 5},
        {"price": None},
        {"price": "duble"},
        {"seller": {"rating": []}},
        {"price": "int", "mandatory": "price"},
        {"price": "int", "mandatory": [["price"]]},
        {"price": "int", "mandatory": ["prize"]},
        {"hierarchy": []},
        {"hierarchy": {"a": ["b"]}},
        {"hierarchy": {"a": "a"}},
        {"mandatory_by_type": {"a": 5}},
        {"type_attribute": 5},
        {"type": "array<string>", "hierarchy": {"Quote": None}},
        {"properties": {"price": 5}},
        {"properties": {"price": {"type": {"x": 1}}}},
        {"properties": {"price": {"type": "number"}}, "required": 5},
    ],
    ids=lambda written: str(written)[:40],
)
def test_what_is_no_schema_is_a_mistake(written: Any, tmp_path: Path):
    with pytest.raises(InputError, match=r"schema\.json"):
        schema_of(written, tmp_path)
