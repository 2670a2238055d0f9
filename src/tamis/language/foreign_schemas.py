"""How do Arrow's, Spark's and JSON Schema's types read as ours? Schema conversion.

Each function returns what `Schema` takes: the attributes, and which of them are mandatory. A column of
a type that the language does not have (bytes, maps, intervals) is an error only if it is asked for by
name, so it is simply left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tamis.errors import SchemaError

Read = tuple[dict[str, Any], list[str]]


def from_arrow(schema: Any) -> Read:
    """Read a `pyarrow.Schema`.

    >>> import pyarrow as pa
    >>> from_arrow(pa.schema([pa.field("price", pa.float64(), nullable=False), ("raw", pa.binary())]))
    ({'price': 'double'}, ['price'])
    """
    return _read((field.name, _arrow_type(field.type), field.nullable) for field in schema)


def _arrow_type(arrow: Any) -> Any:
    import pyarrow.types as is_a

    if is_a.is_dictionary(arrow):
        return _arrow_type(arrow.value_type)
    if is_a.is_struct(arrow):
        return from_arrow([arrow.field(index) for index in range(arrow.num_fields)])[0]
    if is_a.is_list(arrow) or is_a.is_large_list(arrow) or is_a.is_fixed_size_list(arrow):
        return _array(_arrow_type(arrow.value_type))
    if is_a.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})" if 0 <= arrow.scale <= arrow.precision <= 38 else None
    checks = (
        ("string", (is_a.is_string, is_a.is_large_string, is_a.is_string_view)),
        ("int", (is_a.is_integer,)),
        ("double", (is_a.is_floating,)),
        ("bool", (is_a.is_boolean,)),
        ("date", (is_a.is_date,)),
        ("timestamp", (is_a.is_timestamp,)),
    )
    return next((name for name, tests in checks if any(test(arrow) for test in tests)), None)


def from_spark(schema: Any) -> Read:
    """Read a PySpark `StructType`, or the schema of a DataFrame. PySpark itself is not imported."""
    struct = getattr(schema, "schema", schema)
    if not hasattr(struct, "jsonValue"):
        raise SchemaError(f"this is not a schema of Spark: {type(schema).__name__}")
    return _spark_fields(struct.jsonValue()["fields"])


def _spark_fields(fields: list[dict[str, Any]]) -> Read:
    return _read((field["name"], _spark_type(field["type"]), field["nullable"]) for field in fields)


def _spark_type(spark: Any) -> Any:
    if isinstance(spark, dict):
        if spark["type"] == "struct":
            return _spark_fields(spark["fields"])[0]
        return _array(_spark_type(spark["elementType"])) if spark["type"] == "array" else None
    name = spark.partition("(")[0]
    plain = {"integer": "int", "long": "int", "short": "int", "byte": "int", "float": "double", "boolean": "bool"}
    plain |= {"varchar": "string", "char": "string", "timestamp_ntz": "timestamp", "decimal": spark}
    same = ("string", "double", "date", "timestamp")
    return name if name in same else plain.get(name)


def from_json_schema(schema: Mapping[str, Any]) -> Read:
    """Read a JSON Schema of an object.

    >>> from_json_schema({"properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]})
    ({'day': 'date'}, ['day'])
    """
    if not isinstance(schema.get("properties"), Mapping):
        raise SchemaError("a JSON Schema of events describes an object: it has 'properties'")
    required = schema.get("required", [])
    if not isinstance(required, list):
        raise SchemaError("'required' is a list of names")
    return _read((name, _json_type(inner), name not in required) for name, inner in schema["properties"].items())


def _json_type(inner: Any) -> Any:
    if isinstance(inner, bool):
        return None  # true and false are schemas too: anything, and nothing
    if not isinstance(inner, Mapping):
        raise SchemaError(f"a property is described by an object, not by {inner!r}")
    named = inner.get("type")
    if isinstance(named, list):  # ["string", "null"]
        named = next((name for name in named if name != "null"), None)
    if named == "object":
        return from_json_schema(inner)[0] if inner.get("properties") else None
    if named == "array":
        return _array(_json_type(inner.get("items", {})))
    if named == "string":
        return {"date": "date", "date-time": "timestamp"}.get(inner.get("format", ""), "string")
    if named is None and inner.get("enum") and all(isinstance(choice, str) for choice in inner["enum"]):
        return "string"
    return {"integer": "int", "number": "double", "boolean": "bool"}.get(named or "")


def _array(element: Any) -> str | None:
    return f"array<{element}>" if isinstance(element, str) and not element.startswith("array") else None


def _read(fields: Iterable[tuple[str, Any, bool]]) -> Read:
    attributes: dict[str, Any] = {}
    mandatory: list[str] = []
    for name, kind, is_nullable in fields:
        if kind is not None:
            attributes[name] = kind
            if not is_nullable:
                mandatory.append(name)
    return attributes, mandatory
