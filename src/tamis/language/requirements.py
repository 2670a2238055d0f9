"""Which attributes can a predicate not do without?

Most functions and predicates are *strict*: they have no value, or are unknown, as soon as an operand is NULL or of a
kind that they do not take. So what they are made of must be present wherever they are true or false. Functions whose
rows say that they take NULLs, `<=>` and IS NULL are not strict, and nothing below them is required.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.expressions import (
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsA,
    Like,
    Literal,
    Not,
    RLike,
    Test,
    Xor,
)
from tamis.language.functions import function_of
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY: frozenset[str] = frozenset()
"""No kind in particular: that it is there is enough."""
ORDERED = frozenset({"boolean", "number", "string", "time"})
"""The kinds that compare."""
_TEXT = frozenset({"string"})


def required_kinds(node: Expression) -> Iterator[tuple[Attribute, frozenset[str]]]:
    """Return the attributes that must be present for a term to have a value or a predicate to be true or false.

    Each comes with the kinds of which its value must then be, as often as it is required.

    >>> import tamis
    >>> is_longer = tamis.parse("length(title) > least(low, high)")
    >>> [(str(attribute), *kinds) for attribute, kinds in required_kinds(is_longer)]
    [('title', 'string')]
    """
    stack: list[tuple[Expression, frozenset[str]]] = [(node, ANY)]
    while stack:
        inner, kinds = stack.pop()
        match inner:
            case Attribute():
                yield inner, kinds
            case Call(name, arguments) | Test(name, arguments) if not function_of(name).takes_nulls:
                takes = function_of(name).kinds(len(arguments))
                stack += [
                    (argument, ANY if kind == "any" else frozenset({kind}))
                    for argument, kind in zip(arguments, takes, strict=True)
                ]
            case Compare(operator, left, right) if operator != "<=>":
                stack += [(left, _comparable(right)), (right, _comparable(left))]
            case Between(value) | In(value) | Not(value):
                stack.append((value, ANY))
            case Like(value) | RLike(value) | IsA(value):
                stack.append((value, _TEXT))
            case Xor(operands):
                stack += [(operand, ANY) for operand in operands]


def _comparable(other: Expression) -> frozenset[str]:
    if isinstance(other, Literal) and other.value is not None:
        return frozenset({kind_of(other.value)})
    return ORDERED
