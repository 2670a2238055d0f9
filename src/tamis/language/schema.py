"""What may an event contain? A schema: attributes, types, a hierarchy of event types.

A schema is optional. With one, a misspelt attribute or a comparison that can never be true is an
error when the subscription is written, instead of silence for ever after. It also knows the
hierarchy of event types: `type IS A 'Quote'` matches every subtype of Quote.

Source: typed records and type-based filters are Mühl et al.'s, section 3 (docs/bibliography.md).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from tamis.errors import EventError, LanguageError, SchemaError, UnknownEventTypeError, did_you_mean
from tamis.language import literals
from tamis.language.functions import NO_FUNCTIONS, Functions
from tamis.language.objections import Path, misfit, shown
from tamis.language.types import ArrayType, AttributeType, RecordType, Written, attribute_type
from tamis.language.values import GREATEST_INTEGER, LEAST_INTEGER, decimal_or_null


class Schema:
    """The attributes of events, which of them are always there, and the hierarchy of event types.

    >>> schema = Schema(
    ...     {"type": "string", "price": "double", "tags": "array<string>", "position": {"x": "double"}},
    ...     mandatory=["type"],
    ...     hierarchy={"Quote": None, "StockQuote": "Quote"},
    ... )
    >>> str(schema.type_of(("position", "x")))
    'double'
    >>> schema.is_a("StockQuote", "Quote")
    True
    """

    __slots__ = (
        "_digest",
        "_needed",
        "_needed_by_type",
        "_record",
        "functions",
        "hierarchy",
        "mandatory",
        "mandatory_by_type",
        "type_attribute",
    )

    def __init__(
        self,
        attributes: Mapping[str, Written],
        *,
        mandatory: Iterable[str] = (),
        hierarchy: Mapping[str, str | None] | None = None,
        mandatory_by_type: Mapping[str, Iterable[str]] | None = None,
        type_attribute: str = "type",
        functions: Functions | None = None,
    ) -> None:
        self.functions = NO_FUNCTIONS if functions is None else functions
        """Those of the host that conditions over such events may call."""
        record = attribute_type(attributes)
        assert isinstance(record, RecordType)
        self._record = record
        self.mandatory = frozenset(mandatory)
        self.hierarchy: Mapping[str, str | None] = MappingProxyType(dict(hierarchy or {}))
        self.mandatory_by_type: Mapping[str, frozenset[str]] = MappingProxyType(
            {name: frozenset(needed) for name, needed in (mandatory_by_type or {}).items()}
        )
        self.type_attribute = type_attribute
        self._check()
        self._digest: str | None = None
        self._needed = self._paths(self.mandatory)
        self._needed_by_type = {
            name: self._paths(each for each in self._all_names() if self.is_mandatory((each,), name))
            for name in self.hierarchy
        }

    def _check(self) -> None:
        for names in (self.mandatory, *self.mandatory_by_type.values()):
            for name in names:
                if self.type_of(tuple(name.split("."))) is None and name not in self.attributes:
                    raise SchemaError(f"the mandatory attribute {name!r} is not in the schema")
        for name in self.mandatory_by_type:
            if name not in self.hierarchy:
                raise SchemaError(f"the event type {name!r} has mandatory attributes but is not in the hierarchy")
        naming = self.type_of((self.type_attribute,))
        if self.hierarchy and naming is not None and str(naming) != "string":
            raise SchemaError(f"{self.type_attribute} names the event type, so it is a string, not {naming}")
        for name, parent in self.hierarchy.items():
            if not isinstance(name, str) or not isinstance(parent, str | None):
                raise SchemaError(f"the hierarchy names event types and their parents, not {name!r}: {parent!r}")
        for name in self.hierarchy:
            seen: list[str] = []
            at: str | None = name
            while at is not None:
                if at in seen:
                    raise SchemaError(f"the event types {' < '.join([*seen, at])} inherit from one another in a cycle")
                if at not in self.hierarchy:
                    raise SchemaError(
                        f"the event type {seen[-1]!r} inherits from {at!r}, which is not in the hierarchy"
                    )
                seen.append(at)
                at = self.hierarchy[at]

    @property
    def attributes(self) -> Mapping[str, AttributeType]:
        """The attributes of an event, by name."""
        return self._record.attributes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self._record, self.mandatory))

    def __repr__(self) -> str:
        return f"Schema({{{', '.join(f'{name!r}: {str(kind)!r}' for name, kind in self.attributes.items())}}})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, self._parts())

    def _parts(self) -> tuple[Any, ...]:
        needed = {name: tuple(sorted(names)) for name, names in self.mandatory_by_type.items()}
        parts = (_plain(self._record), tuple(sorted(self.mandatory)), dict(self.hierarchy), needed, self.type_attribute)
        return parts if not self.functions else (*parts, self.functions)

    def calling(self, functions: Functions) -> Schema:
        """Return a schema over which conditions may call these functions of the host, and no others."""
        if functions == self.functions:
            return self
        attributes, mandatory, hierarchy, needed, type_attribute = self._parts()[:5]
        return _rebuild(attributes, mandatory, hierarchy, needed, type_attribute, functions)

    def type_of(self, path: tuple[str, ...]) -> AttributeType | None:
        """Return the type of an attribute, or None where there is no such attribute."""
        declared: AttributeType | None = self._record
        for name in path:
            if not isinstance(declared, RecordType):
                return None
            declared = declared.attributes.get(name)
        return declared

    def names(self) -> list[str]:
        """Every attribute that can be written in an expression, nested ones with their dots."""
        return list(_names(self._record, ""))

    def _all_names(self) -> Iterable[str]:
        return dict.fromkeys((*self.mandatory, *(name for each in self.mandatory_by_type.values() for name in each)))

    # -- Event types

    def is_a(self, event_type: str, ancestor: str) -> bool:
        """Is this event type the ancestor or one of its subtypes?"""
        at: str | None = event_type
        while at is not None:
            if at == ancestor:
                return True
            at = self.hierarchy.get(at)
        return False

    def subtypes(self, event_type: str) -> tuple[str, ...]:
        """Return the event type and everything below it.

        >>> Schema({}, hierarchy={"Quote": None, "StockQuote": "Quote"}).subtypes("Quote")
        ('Quote', 'StockQuote')
        """
        if event_type not in self.hierarchy:
            raise UnknownEventTypeError(
                f"there is no event type {event_type!r}", hint=did_you_mean(event_type, self.hierarchy)
            )
        return tuple(name for name in self.hierarchy if self.is_a(name, event_type))

    def is_mandatory(self, path: tuple[str, ...], event_type: str | None = None) -> bool:
        """Does every event (of this type, where one is given) carry the attribute?"""
        name = ".".join(path)
        if name in self.mandatory:
            return True
        at = event_type
        while at is not None:
            if name in self.mandatory_by_type.get(at, ()):
                return True
            at = self.hierarchy.get(at)
        return False

    # -- Events

    def conform(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the event with its values in the declared types, as JSON cannot say them.

        >>> Schema({"day": "date"}).conform({"day": "2024-02-29"})
        {'day': datetime.date(2024, 2, 29)}
        """
        conforming = _conform_record(event, self._record, "")
        reason = self.objection(conforming)
        if reason is not None:
            raise EventError(reason)
        return conforming

    def objection(self, event: Any) -> str | None:
        """Return why an event does not fit; None if it does. Nothing is copied, and any Python value is answered.

        An event that fits has only values of the declared types, and all that is mandatory: what relations between
        filters conclude from the schema is right for it.

        >>> schema = Schema({"x": "int", "y": "double"}, mandatory=["y"])
        >>> schema.objection({"x": 4, "y": 0.5}), schema.objection({"x": 4.5, "y": 0.5}), schema.objection({"x": 4})
        (None, 'x is int, and 4.5 is not', 'the event lacks the mandatory y')
        """
        needed = self._needed
        if self._needed_by_type and isinstance(event, Mapping):
            event_type = event.get(self.type_attribute)
            needed = self._needed_by_type.get(event_type, needed) if isinstance(event_type, str) else needed
        return misfit(event, self._record, needed)

    @property
    def digest(self) -> str:
        """A text that two schemas share if they mean the same, in every process; see `NO_SCHEMA` for none.

        >>> one, two = Schema({"x": "int", "y": "long"}), Schema({"y": "int", "x": "integer"})
        >>> one.digest == two.digest != Schema({"x": "int", "y": "double"}).digest, len(one.digest)
        (True, 32)
        """
        if self._digest is None:
            self._digest = _digest([each.versions if isinstance(each, Functions) else each for each in self._parts()])
        return self._digest

    def _paths(self, names: Iterable[str]) -> tuple[Path, ...]:
        """Return where the attributes of these names lie; with a dot, one may be in a record, or have that name."""
        paths: dict[Path, None] = {}
        for name in sorted(names):
            for path in ((name,), tuple(name.split("."))):
                if self.type_of(path) is not None:
                    paths[path] = None
        return tuple(paths)

    # -- Other people's schemas

    @classmethod
    def from_arrow(cls, schema: Any) -> Schema:
        """Read a `pyarrow.Schema`; fields that are not nullable are mandatory."""
        from tamis.language.foreign_schemas import from_arrow

        attributes, mandatory = from_arrow(schema)
        return cls(attributes, mandatory=mandatory)

    @classmethod
    def from_spark(cls, schema: Any) -> Schema:
        """Read a PySpark `StructType` or DataFrame; fields that are not nullable are mandatory."""
        from tamis.language.foreign_schemas import from_spark

        attributes, mandatory = from_spark(schema)
        return cls(attributes, mandatory=mandatory)

    @classmethod
    def from_json_schema(cls, schema: Mapping[str, Any]) -> Schema:
        """Read a JSON Schema of an object; its required properties are mandatory."""
        from tamis.language.foreign_schemas import from_json_schema

        attributes, mandatory = from_json_schema(schema)
        return cls(attributes, mandatory=mandatory)


def _rebuild(
    attributes: Mapping[str, Written],
    mandatory: tuple[str, ...],
    hierarchy: dict[str, str | None],
    mandatory_by_type: dict[str, tuple[str, ...]],
    type_attribute: str,
    functions: Functions | None = None,
) -> Schema:
    return Schema(
        attributes,
        mandatory=mandatory,
        hierarchy=hierarchy,
        mandatory_by_type=mandatory_by_type,
        type_attribute=type_attribute,
        functions=functions,
    )


def _plain(record: RecordType) -> dict[str, Any]:
    return {
        name: _plain(kind) if isinstance(kind, RecordType) else str(kind) for name, kind in record.attributes.items()
    }


def _names(record: RecordType, prefix: str) -> Iterable[str]:
    for name, kind in record.attributes.items():
        if isinstance(kind, RecordType):
            yield from _names(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _digest(parts: Any) -> str:
    """Return the same for equal parts, whatever the order of their names."""
    written = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(written.encode("ascii")).hexdigest()[:32]


NO_SCHEMA = _digest(None)
"""The digest of those who have no schema."""


def _conform_record(event: Any, record: RecordType, prefix: str) -> dict[str, Any]:
    if not isinstance(event, Mapping):
        raise EventError(f"{prefix.rstrip('.') or 'an event'} is a record, not {type(event).__name__}")
    conforming = {}
    for name, value in event.items():
        kind = record.attributes.get(name)
        if kind is None:
            near = did_you_mean(str(name), record.attributes)
            raise EventError(f"the schema has no attribute {prefix}{name}{f'. {near}' if near else ''}")
        conforming[name] = None if value is None else _conform(value, kind, f"{prefix}{name}")
    return conforming


def _conform(value: Any, kind: AttributeType, name: str) -> Any:
    if isinstance(kind, RecordType):
        return _conform_record(value, kind, f"{name}.")
    if isinstance(kind, ArrayType):
        if not isinstance(value, list | tuple):
            raise EventError(f"{name} is {kind}, and {shown(value)} is not an array")
        return [None if element is None else _conform(element, kind.element, name) for element in value]
    try:
        conforming = _READERS[kind.name](value)
    except (LanguageError, ValueError, OverflowError, ArithmeticError):
        conforming = None
    if conforming is None:
        raise EventError(f"{name} is {kind}, and {shown(value)} is not")
    return conforming


def _read_integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value != int(value):
        return None
    return int(value) if LEAST_INTEGER <= value <= GREATEST_INTEGER else None


def _read_double(value: Any) -> float | None:
    if isinstance(value, str):
        return literals.special_double(value)  # JSON has no NaN
    return float(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None


def _read_decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        return None
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return decimal_or_null(number) if number.is_finite() else None


def _read_time(value: Any) -> dt.datetime | None:
    if isinstance(value, str):
        return literals.timestamp(value)
    return value if isinstance(value, dt.datetime) else None


def _read_date(value: Any) -> dt.date | None:
    if isinstance(value, str):
        return literals.date(value)
    return value if isinstance(value, dt.date) and not isinstance(value, dt.datetime) else None


_READERS: dict[str, Any] = {
    "string": lambda found: found if isinstance(found, str) else None,
    "bool": lambda found: found if isinstance(found, bool) else None,
    "int": _read_integer,
    "double": _read_double,
    "decimal": _read_decimal,
    "date": _read_date,
    "timestamp": _read_time,
}
