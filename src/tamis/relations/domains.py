"""Which values can a term have? Domains of terms.

An attribute of unknown type can have any value, or none. A schema says more: the type, and whether the attribute is
always there. A function of attributes has the type that its function gives. An *axis* is a term with the values
it can have, one axis for all predicates about the term.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.expressions import Attribute, Call, Compare, Condition, Expression, Literal, fold_shared, postorder
from tamis.language.functions import function_of
from tamis.language.meaning import truth, value
from tamis.language.ranges.kinds import ABSENT, KINDS, OF_TYPES
from tamis.language.ranges.lines import BOOLEAN, NULL, Cut, cut_at, places
from tamis.language.ranges.predicates import values_of
from tamis.language.ranges.value_sets import EVERYTHING, Values, intersection, union_of
from tamis.language.types import ArrayType, RecordType, ScalarType
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.functions.row import Bounds
    from tamis.language.schema import Schema

LESS: Final[Cut] = (BOOLEAN,)
EQUAL: Final[Cut] = (BOOLEAN, 1)
GREATER: Final[Cut] = (BOOLEAN, 2)


class TermAxis:
    """A term, and the values it can have. Axes are compared by identity: there is one for each term and schema."""

    __slots__ = ("is_nested", "is_order", "is_plain", "line", "paths", "term", "values")

    def __init__(self, term: Expression, line: str, values: Values) -> None:
        self.term = term
        self.line = line
        """The type of the values, which says where operands cut it; "any" if unknown."""
        self.values = values
        self.is_plain = isinstance(term, Attribute)
        self.is_nested = isinstance(term, Attribute) and len(term.path) > 1
        """Is it an attribute of a record, and so absent if the record is?"""
        self.is_order = False
        self.paths = paths_of(term)

    @classmethod
    def of_order(cls, pair: Expression) -> TermAxis:
        """Return the axis of a comparison of two terms: unknown, or the left one less, equal or greater."""
        axis = cls(pair, "order", union_of(ABSENT, KINDS["boolean"]))
        axis.is_order = True
        return axis

    def cut_in(self, event: Mapping[str, Any], schema: Schema | None) -> Cut:
        """Return where an event lies on the axis, as the reference meaning has it."""
        if not self.is_order:
            return cut_at(value(self.term, event, schema), self.line)
        for operator, cut in (("<", LESS), ("=", EQUAL), (">", GREATER)):
            if truth(Compare(operator, *self.term.children), event, schema):
                return cut
        return (NULL,)

    def __repr__(self) -> str:
        return f"<Axis {self.term}: {self.line}>"


def paths_of(node: Expression) -> frozenset[tuple[str, ...]]:
    """Return the attributes that a term or predicate mentions."""
    return frozenset(each.path for each in postorder(node) if isinstance(each, Attribute))


def axis_of(term: Expression, schema: Schema | None) -> TermAxis:
    """Return the axis of a term.

    >>> import tamis
    >>> axis_of(tamis.parse("price < 20").left, tamis.Schema({"price": "double"}, mandatory=["price"]))
    <Axis price: double>
    """
    if isinstance(term, Attribute):
        line, is_optional = _attribute(term.path, schema)
        values = OF_TYPES[line]
        return TermAxis(term, line, union_of(ABSENT, values) if is_optional else values)
    line = _line_of(term, schema)
    bounds = function_of(term.function).bounds if isinstance(term, Call) else None
    return TermAxis(term, line, union_of(ABSENT, OF_TYPES[line] if bounds is None else _between(bounds, line)))


def _between(bounds: Bounds, line: str) -> Values:
    """Return the values from a number on, and below another, among those of a type."""
    least, limit = bounds
    starts = [place[1] for place in places(least, line)] if least is not None else [low for low, _ in _ranks(line)]
    ends = [place[1] for place in places(limit, line)] if limit is not None else [high for _, high in _ranks(line)]
    return union_of(*zip(starts, ends, strict=True))


def _ranks(line: str) -> list[tuple[Cut, Cut]]:
    return [(place[0], place[3]) for place in places(0, line)]


def _attribute(path: tuple[str, ...], schema: Schema | None) -> tuple[str, bool]:
    declared = schema.type_of(path) if schema is not None else None
    if schema is None or declared is None:
        return "any", True
    line = (
        declared.name if isinstance(declared, ScalarType) else "array" if isinstance(declared, ArrayType) else "record"
    )
    inner = ".".join(path) + "."
    # A record that holds something mandatory is mandatory itself.
    is_held = isinstance(declared, RecordType) and any(name.startswith(inner) for name in schema.mandatory)
    return line, not (schema.is_mandatory(path) or is_held)


def _line_of(term: Expression, schema: Schema | None) -> str:
    """Return the type of a function's values, as far as it is known."""

    def line(node: Expression, below: list[str]) -> str:
        match node:
            case Literal(value):
                exact = "int" if isinstance(value, int) else "decimal"
                return ("double" if isinstance(value, float) else exact) if kind_of(value) == "number" else "any"
            case Attribute(path):
                return _attribute(path, schema)[0]
            case Call(name):
                function = function_of(name)
                return function.result_type(frozenset(function.chosen(below)))
            case _:
                return "bool" if isinstance(node, Condition) else "any"

    return fold_shared(term, line)


def values_on(axis: TermAxis, predicate: Expression, is_true: bool, schema: Schema | None) -> Values:
    """Return the values of the axis that make the predicate about its term true, or those that make it false."""
    values = values_of(predicate, is_true, axis.line, schema)
    return values if axis.values == EVERYTHING else intersection(values, axis.values)


def of_kind(axis: TermAxis, kind: str) -> Values:
    """Return the values of one kind among those that an axis has."""
    return intersection(axis.values, KINDS[kind])
