"""How is an expression written in Python? A fluent builder: operator overloading.

    from tamis import attr

    cheap = (attr("price") < 20) & ~attr("title").like("The %")
    close = attr("home") + attr("away") <= 3

`attr` gives a *value*, whose operators build expressions instead of computing. What they build is the same
as what `tamis.parse` reads from text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from tamis.errors import LiteralError, TypeMismatchError
from tamis.language import patterns
from tamis.language.checking import check
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
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Scalar,
    Test,
    Xor,
    as_condition,
)
from tamis.language.functions import FUNCTIONS, HostedName, function_of
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.values import value_of

Operand: TypeAlias = "Value | Expression | Scalar"
_Node = TypeVar("_Node", bound=Expression)


def attr(name: str) -> Value:
    """Return the attribute of this name, dots leading into nested records.

    >>> print((attr("price") < 20) & attr("category").isin(["Thriller", "Crime"]))
    price < 20 AND category IN ('Thriller', 'Crime')
    >>> print(attr("position.x") > attr("`odd.name`"))
    position.x > `odd.name`
    """
    from tamis.language.parser import parse

    if _is_simple(name):
        return Value(Attribute(tuple(name.split("."))))
    node = parse(name)
    if not isinstance(node, Attribute):
        raise TypeMismatchError(
            f"{name!r} is not an attribute's name", hint="Back-quote a name with other characters in it."
        )
    return Value(node)


def _is_simple(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def lit(value: Scalar) -> Value:
    """Return a constant, for arithmetic that starts with one.

    >>> print(lit(100) - attr("discount") < 50)
    100 - discount < 50
    """
    return Value(literal(value))


def literal(value: Any) -> Literal:
    """Return the literal of a Python value, or raise where the language has no such value."""
    known = value_of(value)
    if (known is None and value is not None) or isinstance(known, list | Mapping):
        raise LiteralError(
            f"{value!r} is not a value of the language",
            hint="Values are texts, integers and decimals of up to 38 digits, floats, Booleans, dates and timestamps.",
        )
    return Literal(known)


def condition(operand: object) -> Expression:
    """Return what stands for an operand where a condition is expected."""
    node = expression(operand)
    stands = as_condition(node)
    if stands is None:
        raise TypeMismatchError(f"{node} stands where a condition is expected")
    return stands


def expression(operand: Any) -> Expression:
    """Return the expression of a value, an expression or a Python constant."""
    if isinstance(operand, Value):
        return operand.expression
    if isinstance(operand, Expression):
        return operand
    if isinstance(operand, list | tuple):
        return Call("array", tuple(map(literal, operand)))
    return literal(operand)


class Value:
    """A term under construction: its operators make expressions."""

    __slots__ = ("expression",)
    __hash__ = None  # type: ignore[assignment]  # == builds a comparison, so it cannot find equals

    def __init__(self, term: Expression) -> None:
        self.expression = term

    def __repr__(self) -> str:
        return f"<Value {self.expression}>"

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression under construction has no truth value; combine conditions with & | ~, not with and, or, not"
        )

    # -- Comparisons

    def __eq__(self, other: Operand) -> Compare:  # type: ignore[override]
        return _checked(Compare("=", self.expression, expression(other)))

    def __ne__(self, other: Operand) -> Compare:  # type: ignore[override]
        return _checked(Compare("<>", self.expression, expression(other)))

    def __lt__(self, other: Operand) -> Compare:
        return _checked(Compare("<", self.expression, expression(other)))

    def __le__(self, other: Operand) -> Compare:
        return _checked(Compare("<=", self.expression, expression(other)))

    def __gt__(self, other: Operand) -> Compare:
        return _checked(Compare(">", self.expression, expression(other)))

    def __ge__(self, other: Operand) -> Compare:
        return _checked(Compare(">=", self.expression, expression(other)))

    def same_as(self, other: Operand) -> Compare:
        """`<=>`: equal, or both NULL; never unknown."""
        return _checked(Compare("<=>", self.expression, expression(other)))

    def between(self, low: Operand, high: Operand) -> Between:
        """`BETWEEN low AND high`, both ends included."""
        return _checked(Between(self.expression, expression(low), expression(high)))

    def isin(self, values: Iterable[Scalar]) -> In:
        """`IN (...)`, one of these constants."""
        members = tuple(literal(value).value for value in values)
        if not members:
            raise LiteralError("IN needs at least one value")
        return _checked(In(self.expression, members))

    def is_null(self) -> IsNull:
        """`IS NULL`: absent, or NULL."""
        return IsNull(self.expression)

    def is_not_null(self) -> Not:
        """`IS NOT NULL`: present."""
        return Not(IsNull(self.expression))

    def is_a(self, event_type: str) -> IsA:
        """`IS A 'Type'`: this event type or a subtype of it."""
        return _checked(IsA(self.expression, event_type))

    # -- Texts

    def like(self, pattern: str, escape: str = "\\") -> Like:
        """`LIKE pattern`: `%` is any text, `_` any character."""
        patterns.check_like(pattern, escape, DEFAULT_LIMITS)
        return _checked(Like(self.expression, pattern, escape))

    def rlike(self, pattern: str) -> RLike:
        """`RLIKE pattern`: the regular expression is found somewhere."""
        patterns.check_regex(pattern, DEFAULT_LIMITS)
        return _checked(RLike(self.expression, pattern))

    def startswith(self, part: Operand) -> Condition:
        """`startswith(text, part)`."""
        return test("startswith", self, part)

    def endswith(self, part: Operand) -> Condition:
        """`endswith(text, part)`."""
        return test("endswith", self, part)

    def contains(self, part: Operand) -> Condition:
        """`contains(text, part)`."""
        return test("contains", self, part)

    def in_cidr(self, network: str) -> Condition:
        """`in_cidr(address, network)`."""
        return test("in_cidr", self, network)

    def lower(self) -> Value:
        """`lower(text)`."""
        return call("lower", self)

    def upper(self) -> Value:
        """`upper(text)`."""
        return call("upper", self)

    def trim(self) -> Value:
        """`trim(text)`."""
        return call("trim", self)

    def length(self) -> Value:
        """`length(text)`."""
        return call("length", self)

    # -- Arrays

    def array_contains(self, element: Operand) -> Condition:
        """`array_contains(array, element)`."""
        return test("array_contains", self, element)

    def arrays_overlap(self, other: Operand | list[Scalar]) -> Condition:
        """`arrays_overlap(array, array)`; a Python list is an array."""
        return test("arrays_overlap", self, other)

    def size(self) -> Value:
        """`size(array)`."""
        return call("size", self)

    # -- Arithmetic

    def __add__(self, other: Operand) -> Value:
        return call("add", self, other)

    def __radd__(self, other: Operand) -> Value:
        return call("add", other, self)

    def __sub__(self, other: Operand) -> Value:
        return call("subtract", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return call("subtract", other, self)

    def __mul__(self, other: Operand) -> Value:
        return call("multiply", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return call("multiply", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return call("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return call("divide", other, self)

    def __mod__(self, other: Operand) -> Value:
        return call("remainder", self, other)

    def __rmod__(self, other: Operand) -> Value:
        return call("remainder", other, self)

    def __neg__(self) -> Value:
        return call("negate", self)

    def __abs__(self) -> Value:
        return call("abs", self)

    # -- A Boolean attribute is a condition

    def __and__(self, other: object) -> And:
        return And((condition(self), condition(other)))

    def __or__(self, other: object) -> Or:
        return Or((condition(self), condition(other)))

    def __xor__(self, other: object) -> Xor:
        return Xor((condition(self), condition(other)))

    def __invert__(self) -> Not:
        return Not(condition(self))


def call(function: str, *arguments: Operand | list[Scalar]) -> Value:
    """Return a function of values: `least`, `greatest`, `avg`, `distance`, `abs`, ...

    >>> print(call("distance", attr("lat"), attr("lon"), 45.8, 15.97) < 10)
    distance(lat, lon, 45.8D, 15.97D) < 10
    """
    return Value(_checked(Call(function, _arguments(function, arguments, is_test=False))))


def test(function: str, *arguments: Operand | list[Scalar]) -> Test:
    """Return a function of values that is true or false: `startswith`, `array_contains`, `in_cidr`, ...

    >>> print(test("in_cidr", attr("address"), "10.0.0.0/8"))
    in_cidr(address, '10.0.0.0/8')
    """
    return _checked(Test(function, _arguments(function, arguments, is_test=True)))


test.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it


def _arguments(name: str, arguments: tuple[Any, ...], *, is_test: bool) -> tuple[Expression, ...]:
    operands = tuple(map(expression, arguments))
    function = function_of(name) if isinstance(name, HostedName) else FUNCTIONS.get(name)
    if function is None or function.is_test is not is_test or not function.accepts(len(operands)):
        gives = "a truth" if is_test else "a value"
        raise TypeMismatchError(f"there is no function {name} of {len(operands)} arguments that gives {gives}")
    function.check(operands)
    return operands


class ChoiceValue(Value):
    """A CASE under construction: NULL where no condition is true, until somebody says what it gives `otherwise`.

    It is a value already, and stays what it is: `when` and `otherwise` return another one.
    """

    __slots__ = ()

    def when(self, deciding: object, value: Operand) -> ChoiceValue:
        """`WHEN condition THEN value`: the value where the condition is true, and none before it is."""
        arguments = (*self.expression.children, condition(deciding), expression(value))
        return ChoiceValue(_checked(Call("case", arguments)))

    def otherwise(self, value: Operand) -> Value:
        """`ELSE value`: the value where no condition is true."""
        return Value(_checked(Call("case", (*self.expression.children, expression(value)))))


def when(deciding: object, value: Operand) -> ChoiceValue:
    """Return the value where the condition is true: `CASE WHEN condition THEN value END`.

    >>> points = when(attr("signed"), 2).otherwise(0) + when(attr("bids") < 3, 1).otherwise(0)
    >>> print(points >= 2)
    CASE WHEN signed THEN 2 ELSE 0 END + CASE WHEN bids < 3 THEN 1 ELSE 0 END >= 2
    """
    return ChoiceValue(_checked(Call("case", (condition(deciding), expression(value)))))


def coalesce(*values: Operand) -> Value:
    """Return the first value that is not NULL.

    >>> print(coalesce(attr("reserve"), 0) < 20)
    coalesce(reserve, 0) < 20
    """
    return call("coalesce", *values)


def all_of(*conditions: object) -> Expression:
    """All of these conditions: `AND`, of any number."""
    return _junction(And, conditions, empty=True)


def any_of(*conditions: object) -> Expression:
    """Any of these conditions: `OR`, of any number."""
    return _junction(Or, conditions, empty=False)


def _junction(kind: type[And] | type[Or], conditions: tuple[object, ...], *, empty: bool) -> Expression:
    operands = tuple(map(condition, conditions))
    if len(operands) > 1:
        return kind(operands)
    return operands[0] if operands else Literal(empty)


def xor(*conditions: object) -> Xor:
    """An odd number of these conditions."""
    return Xor(tuple(map(condition, conditions)))


def at_least(count: int, *conditions: object) -> AtLeast:
    """`count` or more of these conditions: a partial match.

    >>> print(at_least(2, attr("signed"), attr("price") < 20, attr("bids") <= 3))
    at_least(2, signed, price < 20, bids <= 3)
    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise TypeMismatchError(f"at_least takes a count that is a whole number of at least 0, not {count!r}")
    return AtLeast(count, tuple(map(condition, conditions)))


def _checked(node: _Node) -> _Node:
    """Return the node if its operands can ever meet."""
    check(node)
    return node
