"""What does an expression of CloudEvents SQL say? Its operators as conditions.

An expression has a value and errors: an attribute that is missing, or a text that is no number, is one. An event passes
if the value is true and there was no error. An error is unknown here, and only true matches; but `AND` and `OR` of
CESQL look at their left side first, and end with its error where ours would still say true or false. So what may fail
on the left is written such that its error stays: `a OR (NOT a AND b)`.

Names are context attributes, of which `id`, `source`, `type` and `specversion` are always there. These, `subject`,
`datacontenttype` and `dataschema` are texts. Extensions are texts, integers or Booleans, and CESQL makes one of the
other; here they have to be of the kind that an expression takes them for, which is assumed and named. Whatever cannot
be said (arithmetic, functions that make texts, casts of texts, `time` as a text) is an error.

Source: CloudEvents SQL Expression Language 1.0, sections 1.2, 3 and 3.7; its conformance tests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tamis.errors import TranslationError
from tamis.language.builder import Value, all_of, any_of, lit, xor
from tamis.language.expressions import Attribute, Compare, Expression, IsNull, Literal, Not
from tamis.language.foreign.cesql_reading import CesqlConstant, CesqlName, CesqlOperation, Node, read_cesql
from tamis.language.foreign.translation import Assumptions, Path, Translation

if TYPE_CHECKING:
    from tamis.language.schema import Schema

REQUIRED = frozenset({"id", "source", "type", "specversion"})
TEXTS = REQUIRED | {"subject", "datacontenttype", "dataschema"}
_ORDERS = {"<": Value.__lt__, "<=": Value.__le__, ">": Value.__gt__, ">=": Value.__ge__}
_OF_TEXTS = {"LOWER": Value.lower, "UPPER": Value.upper}


def from_cesql(text: str, below: Path = (), schema: Schema | None = None) -> Translation:
    """Return what an expression says.

    >>> print(from_cesql("type = 'offer' AND subject LIKE 'a%'"))
    type = 'offer' AND subject LIKE 'a%'
    >>> print(from_cesql("subject = 'a' OR type = 'offer'"))
    subject = 'a' OR NOT subject = 'a' AND type = 'offer'
    >>> [str(each) for each in from_cesql("level > 3").assumes]
    ['level is never a Boolean or a text']
    """
    reader = _Conditions(text, below, schema)
    condition = reader.truth(read_cesql(text))
    return Translation(condition, reader.assumptions.all())


class _Conditions:
    """A walk through an expression."""

    def __init__(self, text: str, below: Path, schema: Schema | None) -> None:
        self._text, self._below = text, below
        self.assumptions = Assumptions(schema)

    # -- Conditions

    def truth(self, node: Node) -> Expression:
        """Return the condition of what is a Boolean: unknown where CESQL has an error."""
        match node:
            case CesqlConstant(value=bool() as value):
                return any_of() if not value else all_of()
            case CesqlConstant():
                raise self._cannot(node, "a text or an integer is not a condition")
            case CesqlName():
                attribute = self._extension(node, "a text", "an integer")
                return Compare("=", attribute, Literal(True))
            case CesqlOperation("NOT", (operand,)):
                return Not(self.truth(operand))
            case CesqlOperation("AND" | "OR" as operator, (left, right)):
                return self._in_order(operator, left, right)
            case CesqlOperation("XOR", (left, right)):
                return xor(self.truth(left), self.truth(right))
            case CesqlOperation("EXISTS", (CesqlName(name),)):
                return all_of() if name in REQUIRED else Not(IsNull(self._attribute(name)))
            case CesqlOperation("LIKE", (operand, CesqlConstant(value=str() as pattern))):
                if re.search(r"\\(?![%_])", pattern):
                    raise self._cannot(node, "a backslash in a pattern of CESQL stands before % or _ only")
                return self._text_of(operand).like(pattern)
            case CesqlOperation("IN", (operand, *others)):
                return self._one_of(operand, others)
            case CesqlOperation("=" | "!=" | "<>" | "<" | "<=" | ">" | ">=" as operator, (left, right)):
                return self._comparison(operator, left, right, node)
        raise self._cannot(node, f"{node.operator} gives no condition, or none that can be said here")

    def _in_order(self, operator: str, left: Node, right: Node) -> Expression:
        first, second = self.truth(left), self.truth(right)
        if not self._may_fail(left):
            return all_of(first, second) if operator == "AND" else any_of(first, second)
        if operator == "AND":
            return all_of(first, any_of(Not(first), second))
        return any_of(first, all_of(Not(first), second))

    def _may_fail(self, node: Node) -> bool:
        """Can there be an error?"""
        match node:
            case CesqlConstant() | CesqlOperation("EXISTS"):
                return False
            case CesqlName(name):
                return name not in REQUIRED
            case CesqlOperation("NOT" | "AND" | "OR" | "XOR" | "LIKE" | "IN" | "=" | "!=" | "<>" | "LOWER" | "UPPER"):
                return any(self._may_fail(each) for each in node.operands)
        return True

    def _one_of(self, operand: Node, others: list[Node]) -> Expression:
        if not all(isinstance(each, CesqlConstant) for each in others):
            raise self._cannot(operand, "IN is translated with constants only")
        return any_of(*(self._equal(operand, each, operand) for each in others if isinstance(each, CesqlConstant)))

    def _comparison(self, operator: str, left: Node, right: Node, whole: Node) -> Expression:
        if isinstance(left, CesqlConstant) and not isinstance(right, CesqlConstant):
            mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
            left, right, operator = right, left, mirrored.get(operator, operator)
        if operator in ("=", "!=", "<>"):
            equal = self._equal(left, right, whole)
            return equal if operator == "=" else Not(equal)
        if isinstance(left, CesqlConstant):
            raise self._cannot(whole, "two constants need no comparison")
        return _ORDERS[operator](self._integer_of(left), self._integer_of(right))

    def _equal(self, left: Node, right: Node, whole: Node) -> Expression:
        if isinstance(left, CesqlConstant):
            raise self._cannot(whole, "two constants need no comparison")
        if not isinstance(right, CesqlConstant):
            return self._equal_texts(left, right, whole)
        if isinstance(right.value, bool):
            condition = self.truth(left)
            return condition if right.value else Not(condition)
        if isinstance(right.value, int):
            return self._integer_of(left) == right.value
        return self._text_of(left) == right.value

    def _equal_texts(self, left: Node, right: Node, whole: Node) -> Expression:
        for each in (left, right):
            is_text = isinstance(each, CesqlOperation) or (isinstance(each, CesqlName) and each.name in TEXTS)
            if not is_text:
                raise self._cannot(whole, "two attributes are compared only if both are texts by the specification")
        return self._text_of(left) == self._text_of(right)

    # -- Values

    def _text_of(self, node: Node) -> Value:
        """Return a text, or what stands for one."""
        match node:
            case CesqlName(name) if name in TEXTS:
                return Value(self._attribute(name))
            case CesqlName():
                return Value(self._extension(node, "an integer", "a Boolean"))
            case CesqlOperation("LOWER" | "UPPER" as function, (operand,)):
                return _OF_TEXTS[function](self._text_of(operand))
            case CesqlOperation("NOT"):
                raise self._cannot(node, "NOT binds more tightly than what follows it: write NOT (…)")
        raise self._cannot(node, "this text cannot be computed here")

    def _integer_of(self, node: Node) -> Value:
        match node:
            case CesqlConstant(value=int() as value) if type(value) is int:
                return lit(value)
            case CesqlName(name) if name not in TEXTS and name != "time":
                return Value(self._extension(node, "a text", "a Boolean"))
            case CesqlOperation("LENGTH", (operand,)):
                return self._text_of(operand).length()
        raise self._cannot(node, "this integer cannot be computed here")

    def _extension(self, node: CesqlName, *never: str) -> Expression:
        if node.name in TEXTS or node.name == "time":
            raise self._cannot(node, f"{node.name!r} is a text, and nothing else")
        self.assumptions.add((*self._below, node.name), *never)
        return self._attribute(node.name)

    def _attribute(self, name: str) -> Attribute:
        return Attribute((*self._below, name))

    def _cannot(self, node: Node, message: str) -> TranslationError:
        return TranslationError(message, text=self._text, position=node.at, hint="Write it in the language of Tamis.")
