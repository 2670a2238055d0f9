"""Can this expression mean anything? Semantic analysis: names, types, arity.

Names are looked up in the schema, and kinds are followed from the leaves up: a number beside a text
could never be true, so it is refused where both are known. Without a schema an attribute may be of
any kind, and only literals and functions are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.errors import (
    LanguageError,
    LimitError,
    TypeMismatchError,
    UnknownAttributeError,
    UnknownEventTypeError,
    did_you_mean,
)
from tamis.language.dialects import CLOCKS
from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Condition,
    Expression,
    In,
    IsA,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Test,
    Xor,
    fold_shared,
)
from tamis.language.functions import Function, function_of
from tamis.language.measures import depth, size
from tamis.language.types import ArrayType
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from tamis.language.limits import Limits
    from tamis.language.schema import Schema

ANY = "any"
_WORDS = {"string": "a text", "number": "a number", "boolean": "a Boolean", "time": "a time", "array": "an array"}
_WORDS |= {"record": "a record"}


def check(expression: Expression, schema: Schema | None = None) -> None:
    """Raise a typed error unless every name exists and every operator gets what it takes.

    >>> import tamis
    >>> tamis.parse("prize < 20", tamis.Schema({"price": "double"}))
    Traceback (most recent call last):
        ...
    tamis.errors.UnknownAttributeError: line 1, column 1: there is no attribute prize
      prize < 20
      ^
      Did you mean price?
    """
    fold_shared(expression, lambda node, below: _kind(node, below, schema))


def _kind(node: Expression, below: list[str], schema: Schema | None) -> str:
    """Return the kind of a node's values, given those of its children, or raise."""
    match node:
        case Literal(constant):
            kind = kind_of(constant)
            return ANY if kind == "null" else kind
        case Attribute():
            return _attribute_kind(node, schema)
        case Call(name) | Test(name):
            return _call_kind(node, function_of(name), below, schema)
        case Compare() | Between():
            _check_comparison(node, below)
        case In(_, members):
            for kind in {kind_of(member) for member in members} - {"null"}:
                _check_comparison(node, [below[0], kind])
        case IsA(_, event_type):
            _expect(node, below[0], "string", "IS A")
            if schema is not None and event_type not in schema.hierarchy:
                hint = did_you_mean(event_type, schema.hierarchy) or "The schema's hierarchy names the event types."
                raise _error(node, UnknownEventTypeError(f"there is no event type {event_type!r}", hint=hint))
        case Like():
            _expect(node, below[0], "string", "LIKE")
        case RLike():
            _expect(node, below[0], "string", "RLIKE")
        case And() | Or() | Xor() | AtLeast() | Not():
            for child, kind in zip(node.children, below, strict=True):
                if kind not in ("boolean", ANY):
                    raise _error(
                        child, TypeMismatchError(f"{_named(child, kind)} stands where a condition is expected")
                    )
    return "boolean"


def _attribute_kind(node: Attribute, schema: Schema | None) -> str:
    if schema is None:
        return ANY
    declared = schema.type_of(node.path)
    if declared is None:
        name = ".".join(node.path)
        known = ", ".join(sorted(schema.names())[:12]) or "none at all"
        hint = CLOCKS.get(name.lower()) or did_you_mean(name, schema.names()) or f"Known: {known}."
        raise _error(node, UnknownAttributeError(f"there is no attribute {name}", hint=hint))
    return declared.kind


def _call_kind(node: Expression, function: Function, below: list[str], schema: Schema | None) -> str:
    for child, kind, wanted in zip(node.children, below, function.kinds(len(below)), strict=True):
        if wanted != ANY and kind not in (wanted, ANY):
            where = f"{function.symbol} takes" if function.symbol else f"{function.name} takes"
            if wanted == "boolean":
                raise _error(child, TypeMismatchError(f"{_named(child, kind)} stands where a condition is expected"))
            raise _error(child, TypeMismatchError(f"{where} {_WORDS[wanted]}, not {_named(child, kind)}"))
    common = _common_kind(node, function.chosen(below)) if function.alike else ANY
    if function.name == "array" and common in ("array", "record"):
        raise _error(node, TypeMismatchError("an array holds numbers, texts, times or Booleans"))
    if function.name == "array_contains":
        element = element_kind(node.children[0], schema)
        if element not in (ANY, below[1]) and below[1] != ANY:
            raise _error(
                node, TypeMismatchError(f"the array holds {element}s, not {_named(node.children[1], below[1])}")
            )
    return common if function.gives == ANY else function.gives


def element_kind(node: Expression, schema: Schema | None) -> str:
    """Return the kind of an array's elements, as far as it is known."""
    if isinstance(node, Attribute) and schema is not None:
        declared = schema.type_of(node.path)
        return declared.element.kind if isinstance(declared, ArrayType) else ANY
    if isinstance(node, Call) and node.function == "array":
        kinds = {kind_of(child.value) for child in node.arguments if isinstance(child, Literal)} - {"null"}
        return kinds.pop() if len(kinds) == 1 else ANY
    return ANY


def _common_kind(node: Expression, below: list[str]) -> str:
    known = [kind for kind in below if kind != ANY]
    if len(set(known)) > 1:
        raise _error(
            node, TypeMismatchError(f"its {_choices(node)} are of different kinds: {', '.join(dict.fromkeys(known))}")
        )
    return known[0] if known else ANY


def _choices(node: Expression) -> str:
    return "branches" if isinstance(node, Call) and node.function in ("case", "if") else "arguments"


def _check_comparison(node: Expression, below: list[str]) -> None:
    known = [kind for kind in below if kind != ANY]
    if {"array", "record"} & set(known):
        hint = "Use array_contains, arrays_overlap or size." if "array" in known else "Compare its attributes instead."
        raise _error(node, TypeMismatchError("arrays and records cannot be compared", hint=hint))
    if len(set(known)) > 1:
        first, second = list(dict.fromkeys(known))[:2]
        raise _error(
            node,
            TypeMismatchError(
                f"{_WORDS[first]} cannot be compared with {_WORDS[second]}", hint=_mismatch_hint({first, second})
            ),
        )


def _mismatch_hint(kinds: set[str]) -> str | None:
    if kinds == {"string", "time"}:
        return "Write DATE '2024-02-29' or TIMESTAMP '2024-02-29 12:00:00'."
    if kinds == {"string", "number"}:
        return "Numbers are written without quotes; there are no casts."
    if kinds == {"number", "boolean"}:
        return "Compare a number with a number: price < 20."
    if kinds == {"string", "boolean"}:
        return "Write TRUE or FALSE, without quotes."
    return None


def _expect(node: Expression, kind: str, wanted: str, operator: str) -> None:
    if kind not in (wanted, ANY):
        raise _error(node, TypeMismatchError(f"{operator} takes {_WORDS[wanted]}, not {_WORDS[kind]}"))


def _named(node: Expression, kind: str) -> str:
    word = _WORDS.get(kind, kind)
    if isinstance(node, Attribute):
        return f"{'.'.join(node.path)}, which is {word}"
    return "a condition" if isinstance(node, Condition) else word


def _error(node: Expression, error: LanguageError) -> LanguageError:
    error.__dict__["node"] = node  # the parser turns it into a place of the text
    return error


def check_size(expression: Expression, limits: Limits) -> None:
    """Raise a `LimitError` if the expression has too many nodes or is too deep."""
    nodes = size(expression)
    if nodes > limits.nodes:
        raise LimitError("nodes", limits.nodes, f"{nodes:,}")
    levels = depth(expression)
    if levels > limits.depth:
        raise LimitError("depth", limits.depth, f"{levels:,}")
