"""Which types can an attribute have? The type system.

A type is written as in Spark's DDL: `double`, `decimal(10,2)`, `array<string>`; a nested record is a
mapping of names to types. Only the *kind* decides what compares with what: integers, decimals and
doubles are all numbers, dates and timestamps are both times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from tamis.errors import SchemaError, did_you_mean

KIND_OF_TYPE = MappingProxyType(
    {
        "string": "string",
        "int": "number",
        "double": "number",
        "decimal": "number",
        "bool": "boolean",
        "date": "time",
        "timestamp": "time",
    }
)
_OTHER_NAMES = {
    "integer": "int",
    "long": "int",
    "bigint": "int",
    "smallint": "int",
    "tinyint": "int",
    "short": "int",
    "byte": "int",
    "float": "double",
    "real": "double",
    "boolean": "bool",
    "str": "string",
    "text": "string",
    "varchar": "string",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp",
    "numeric": "decimal",
    "dec": "decimal",
}
_WRITTEN = re.compile(r"\s*([a-z_]+)\s*(?:\(\s*([0-9]+)\s*(?:,\s*([0-9]+)\s*)?\))?\s*")


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A type with values of its own. Precision and scale are a decimal's, 38 and 18 unless told."""

    name: str
    precision: int | None = None
    scale: int | None = None

    @property
    def kind(self) -> str:
        """What its values compare with."""
        return KIND_OF_TYPE[self.name]

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Many values of one scalar type."""

    element: ScalarType

    kind = "array"

    def __str__(self) -> str:
        return f"array<{self.element}>"


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record inside the event; `position.x` is its attribute `x`."""

    attributes: Mapping[str, AttributeType]

    kind = "record"

    def __hash__(self) -> int:
        return hash(tuple(self.attributes.items()))

    def __str__(self) -> str:
        return f"record<{', '.join(f'{name}: {kind}' for name, kind in self.attributes.items())}>"


AttributeType: TypeAlias = ScalarType | ArrayType | RecordType
Written: TypeAlias = "str | AttributeType | Mapping[str, Written]"


def attribute_type(written: Written) -> AttributeType:
    """Read a type as people write it.

    >>> str(attribute_type("array<decimal(10, 2)>"))
    'array<decimal(10,2)>'
    """
    if isinstance(written, Mapping):
        return RecordType(MappingProxyType({name: attribute_type(inner) for name, inner in written.items()}))
    if isinstance(written, ScalarType | ArrayType | RecordType):
        return written
    if not isinstance(written, str):
        raise SchemaError(f"a type must be a name or a mapping of names to types, not {written!r}")
    plain = written.strip().lower()
    if plain.startswith("array<") and plain.endswith(">"):
        element = attribute_type(plain[6:-1])
        if not isinstance(element, ScalarType):
            raise SchemaError(f"an array holds scalars, not {element}")
        return ArrayType(element)
    parts = _WRITTEN.fullmatch(plain)
    name = _OTHER_NAMES.get(parts[1], parts[1]) if parts else plain
    if not parts or name not in KIND_OF_TYPE or (parts[2] and name not in ("decimal", "string")):
        known = [*KIND_OF_TYPE, "array<…>"]
        raise SchemaError(f"there is no type {written!r}; {did_you_mean(plain, KIND_OF_TYPE) or f'known: {known}'}")
    if name != "decimal":
        return ScalarType(name)
    precision, scale = int(parts[2] or 38), int(parts[3] or (0 if parts[2] else 18))
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise SchemaError(f"{written!r}: a decimal has a precision of 1 to 38 digits and a scale of at most that")
    return ScalarType("decimal", precision, scale)
