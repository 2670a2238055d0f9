"""Which conditions are never unknown?

NOT and XOR can be nodes of the graph only over operands that are true or false: of an operand that may be unknown, "not
true" is not "false". Few conditions are never unknown whatever the event (`a IS NULL`, `a <=> 1`). With a schema many
more are, as long as events keep what it promises: that a mandatory attribute is there, and of its type. So each such
condition comes with its *promises*, and an event that breaks one is matched in another way (see `unknowns`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tamis.language.expressions import (
    CONNECTIVES,
    Attribute,
    Compare,
    Expression,
    IsNull,
    Like,
    Literal,
    RLike,
    Test,
    fold_shared,
)
from tamis.language.ranges.simple import SimplePredicate, simple
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.matching.columns import Path

Promises: TypeAlias = "dict[Path, str]"
"""Attributes, and the kind of value that each has in every event."""

_NOTHING: Promises = {}
_ORDERED_KINDS = ("number", "string", "boolean", "time")
_TEXT_TESTS = ("startswith", "endswith", "contains")


def promises(expression: Expression, schema: Schema | None) -> Promises | None:
    """Return what events must keep for a condition never to be unknown; None if it may be unknown even so.

    >>> from tamis.language import Schema, parse
    >>> schema = Schema({"price": "double", "sold": "bool"}, mandatory=["price"])
    >>> promises(parse("price < 20 AND title IS NULL"), schema)
    {('price',): 'number'}
    >>> promises(parse("price < 20 AND sold"), schema) is None
    True
    """

    def combined(node: Expression, below: list[Promises | None]) -> Promises | None:
        if not isinstance(node, CONNECTIVES):
            return _of_predicate(node, schema)
        together: Promises = {}
        for part in below:
            if part is None:
                return None
            together |= part
        return together

    return fold_shared(expression, combined)


def _of_predicate(node: Expression, schema: Schema | None) -> Promises | None:
    match node:
        case Literal(bool()) | IsNull() | Compare("<=>"):
            return _NOTHING
        case Like(Attribute() as term) | RLike(Attribute() as term):
            return _of_attribute(term, ["string"], schema)
        case Test(name, (Attribute() as term, Literal(str()))) if name in _TEXT_TESTS:
            return _of_attribute(term, ["string"], schema)
    match simple(node):
        case SimplePredicate(_, Attribute() as term, operands):
            return _of_attribute(term, list(map(kind_of, operands)), schema)
    return None


def _of_attribute(term: Attribute, kinds: list[str], schema: Schema | None) -> Promises | None:
    """Return the promise that an attribute is of just this kind, if the schema makes it."""
    if schema is None or not schema.is_mandatory(term.path):
        return None
    declared = schema.type_of(term.path)
    if declared is None or set(kinds) != {declared.kind} or declared.kind not in _ORDERED_KINDS:
        return None
    return {term.path: declared.kind}
