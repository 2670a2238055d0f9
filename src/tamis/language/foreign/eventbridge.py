"""What does a pattern of EventBridge say? Its operators as conditions.

A pattern is an object like the events: every field of it has to match, and a field matches if one of its values does. A
value is a text, a number, a Boolean or null, or an object with one operator. An array in an event stands for its
elements, one of which has to match.

| in the list | condition |
|---|---|
| `"a"`, `5`, `true` | `x = 'a'`, or an array that has it |
| `null`, `{"exists": false}`, `{"exists": true}` | `x IS NULL`, `x IS NULL`, `x IS NOT NULL` |
| `{"prefix": "a"}`, `{"suffix": "a"}` | `startswith(x, 'a')`, `endswith(x, 'a')` |
| `{"equals-ignore-case": "A"}`, also in a prefix or a suffix | `lower(x) = lower('A')` |
| `{"wildcard": "a*z"}` | `x LIKE 'a%z'` |
| `{"numeric": [">", 0, "<=", 5]}` | `x > 0 AND x <= 5` |
| `{"cidr": "10.0.0.0/8"}` | `in_cidr(x, '10.0.0.0/8')` |
| `{"anything-but": …}` | there is a value, and it is not this |

`$or` with several objects means one of them. Everything else is refused, as EventBridge refuses it.

Source: Amazon EventBridge user guide, "Comparison operators for use in event patterns"; Event Ruler, its README.
Departs: numbers are compared as numbers, where the guide compares how they are written (300, 300.0). Two fields of one
pattern may match in different objects of an array only where arrays on the way are allowed, which they are not here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_network
from math import isfinite
from typing import TYPE_CHECKING, Any

from tamis.errors import TranslationError
from tamis.language.builder import Value, all_of, any_of, call, lit
from tamis.language.expressions import Attribute, Compare, Expression, IsNull, Literal, Not
from tamis.language.foreign.translation import Assumptions, Path, Translation, declared

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.schema import Schema

_COMPARISONS = {"<": Value.__lt__, "<=": Value.__le__, ">": Value.__gt__, ">=": Value.__ge__, "=": Value.__eq__}


def from_eventbridge(pattern: Any, below: Path = (), schema: Schema | None = None) -> Translation:
    """Return what a pattern says, as a mapping or as JSON.

    >>> print(from_eventbridge('{"name": [{"wildcard": "a*z"}]}'))
    name LIKE 'a%z'
    >>> from_eventbridge({"name": "a"})
    Traceback (most recent call last):
        ...
    tamis.errors.TranslationError: name is a text, expected a list of values, or an object of fields
    """
    if isinstance(pattern, str | bytes):
        pattern = _parsed(pattern)
    reader = _PatternReader(schema)
    condition = reader.fields(pattern, below)
    return Translation(condition, reader.assumptions.all())


class _PatternReader:
    """A walk through a pattern, which collects assumptions."""

    def __init__(self, schema: Schema | None) -> None:
        self._schema = schema
        self.assumptions = Assumptions(schema)

    def fields(self, pattern: Any, path: Path) -> Expression:
        """Return the condition of an object of fields."""
        if not isinstance(pattern, Mapping) or not pattern:
            raise _wrong(path, pattern, "an object with at least one field")
        if path:
            self.assumptions.add(path, "an array")
        return all_of(*(self._field(path, name, pattern[name]) for name in sorted(pattern)))

    def _field(self, path: Path, name: str, content: Any) -> Expression:
        if name == "$or" and _is_choice(content):
            return any_of(*(self.fields(each, path) for each in content))
        here = (*path, name)
        if isinstance(content, Mapping):
            return self.fields(content, here)
        if not isinstance(content, list):
            raise _wrong(here, content, "a list of values, or an object of fields")
        if not content:
            raise TranslationError(f"the list of {Attribute(here)} is empty", expected=("at least one value",))
        return self._values(here, content)

    def _values(self, path: Path, content: list[Any]) -> Expression:
        """Return the condition that one of several values is there."""
        value = Value(Attribute(path))
        scalars = [each for each in content if isinstance(each, str | int | float)]
        others = [each for each in content if not isinstance(each, str | int | float)]
        choices = self._equal(path, scalars)
        if None in others and {"exists": False} in others:
            self.assumptions.add(path, "an object", "an array")  # absent or null is what NULL is
            choices.append(IsNull(value.expression))
            others = [each for each in others if each is not None and each != {"exists": False}]
        for each in others:
            if each is None:
                self.assumptions.add(path, "absent", "an array")
                choices.append(IsNull(value.expression))
            elif isinstance(each, Mapping):
                choices.append(self._operator(path, value, each))
            else:
                raise _wrong(path, each, "a value or an operator")
        return any_of(*dict.fromkeys(choices))

    def _equal(self, path: Path, values: list[Any]) -> list[Expression]:
        """Return the conditions that a value, or an element of an array, is one of these, kind by kind."""
        kinds: dict[type, dict[Any, None]] = {str: {}, bool: {}, float: {}}
        for each in values:
            kind = type(each) if isinstance(each, str | bool) else float
            kinds[kind][each if kind is not float else _number(path, each)] = None
        return [choice for group in kinds.values() if group for choice in self._one(path, *group)]

    def _one(self, path: Path, *values: Any) -> list[Expression]:
        value, kind = Value(Attribute(path)), declared(self._schema, path)
        self.assumptions.add(path, "an array of arrays")
        choices: list[Expression] = []
        if kind != "array":
            choices.append(_among(value, values))
        if kind in (None, "array"):
            choices.append(value.array_contains(values[0]) if len(values) == 1 else value.arrays_overlap(list(values)))
        return choices

    def _operator(self, path: Path, value: Value, content: Mapping[str, Any]) -> Expression:
        if len(content) != 1:
            raise _wrong(path, content, "an object with one operator")
        [(operator, operand)] = content.items()
        if operator not in _OPERATORS:
            raise TranslationError(
                f"{Attribute(path)} has an operator {operator!r:.60} that is not known", expected=tuple(_OPERATORS)
            )
        return _OPERATORS[operator](self, path, value, operand)

    # -- Operators: of each value that is there, so of arrays nothing can be said

    def _prefix(self, path: Path, value: Value, operand: Any) -> Expression:
        return self._part(path, value, operand, Value.startswith, "prefix")

    def _suffix(self, path: Path, value: Value, operand: Any) -> Expression:
        return self._part(path, value, operand, Value.endswith, "suffix")

    def _part(
        self, path: Path, value: Value, operand: Any, test: Callable[[Value, Any], Expression], name: str
    ) -> Expression:
        self.assumptions.add(path, "an array")
        if isinstance(operand, Mapping) and operand.keys() == {"equals-ignore-case"}:
            return test(value.lower(), _lowered(_text(path, operand["equals-ignore-case"], name)))
        return test(value, _text(path, operand, name))

    def _ignore_case(self, path: Path, value: Value, operand: Any) -> Expression:
        self.assumptions.add(path, "an array")
        return value.lower() == _lowered(_text(path, operand, "equals-ignore-case"))

    def _wildcard(self, path: Path, value: Value, operand: Any) -> Expression:
        self.assumptions.add(path, "an array")
        return value.like(_like(path, _text(path, operand, "wildcard")))

    def _numeric(self, path: Path, value: Value, operand: Any) -> Expression:
        if not isinstance(operand, list) or len(operand) not in (2, 4):
            raise _wrong(path, operand, 'comparisons and numbers in turn, such as [">", 0, "<=", 5]')
        pairs = list(zip(operand[::2], operand[1::2], strict=True))
        for comparison, number in pairs:
            if not isinstance(comparison, str) or comparison not in _COMPARISONS:
                message = f"numeric of {Attribute(path)} has no comparison {comparison!r:.40}"
                raise TranslationError(message, expected=tuple(_COMPARISONS))
            if isinstance(number, bool) or not isinstance(number, int | float):
                raise _wrong(path, number, "a number")
        if len(pairs) == 2:
            (low_sign, low), (high_sign, high) = pairs
            if low_sign not in (">", ">=") or high_sign not in ("<", "<=") or not low < high:
                raise _wrong(path, operand, "a range: greater than a number, and less than a larger one")
        elif pairs[0][0] == "=":
            return any_of(*self._one(path, _number(path, pairs[0][1])))
        self.assumptions.add(path, "an array")
        return all_of(*(_COMPARISONS[comparison](value, _number(path, number)) for comparison, number in pairs))

    def _cidr(self, path: Path, value: Value, operand: Any) -> Expression:
        self.assumptions.add(path, "an array")
        text = _text(path, operand, "cidr")
        try:
            if "/" not in text:
                raise ValueError
            network = ip_network(text, strict=False)
        except ValueError:
            raise _wrong(path, operand, "a network such as 10.0.0.0/24") from None
        return value.in_cidr(str(network))

    def _exists(self, path: Path, value: Value, operand: Any) -> Expression:
        if not isinstance(operand, bool):
            raise _wrong(path, operand, "true or false")
        self.assumptions.add(path, "null", "an object", "an array without values")
        return Not(IsNull(value.expression)) if operand else IsNull(value.expression)

    def _anything_but(self, path: Path, value: Value, operand: Any) -> Expression:
        """Return that there is a value, and that it is none of these; of another kind it is none of them."""
        self.assumptions.add(path, "null", "an object", "an array")
        if isinstance(operand, Mapping):
            if len(operand) != 1 or not operand.keys() <= _OF_ANYTHING_BUT.keys():
                raise _wrong(path, operand, f"a value, a list of values, or one of {', '.join(_OF_ANYTHING_BUT)}")
            [(operator, content)] = operand.items()
            contents = content if isinstance(content, list) else [content]
            if not contents or not all(isinstance(each, str) and each for each in contents):
                raise _wrong(path, content, "a text, or a list of texts, that are not empty")
            unwanted = any_of(*(_OF_ANYTHING_BUT[operator](self, path, value, each) for each in contents))
        else:
            values = operand if isinstance(operand, list) else [operand]
            is_texts = all(isinstance(each, str) for each in values)
            is_numbers = all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)
            if not values or not (is_texts or is_numbers):
                raise _wrong(path, operand, "a text, a number, or a list of either")
            unwanted = _among(value, tuple(each if is_texts else _number(path, each) for each in dict.fromkeys(values)))
        return all_of(Not(IsNull(value.expression)), Not(Compare("<=>", unwanted, Literal(True))))


_OPERATORS: dict[str, Callable[[_PatternReader, Path, Value, Any], Expression]] = {
    "prefix": _PatternReader._prefix,
    "suffix": _PatternReader._suffix,
    "equals-ignore-case": _PatternReader._ignore_case,
    "wildcard": _PatternReader._wildcard,
    "anything-but": _PatternReader._anything_but,
    "numeric": _PatternReader._numeric,
    "cidr": _PatternReader._cidr,
    "exists": _PatternReader._exists,
}
_OF_ANYTHING_BUT = {name: _OPERATORS[name] for name in ("prefix", "suffix", "equals-ignore-case", "wildcard")}
_RESERVED = frozenset({*_OPERATORS, "exactly"})
"""An `$or` whose objects have such fields is no choice, but a field of that name."""


def _is_choice(content: Any) -> bool:
    """Is what stands behind `$or` a choice, and not the values of a field that is called so?"""
    return (
        isinstance(content, list)
        and len(content) > 1
        and all(isinstance(each, Mapping) and each and _RESERVED.isdisjoint(each) for each in content)
    )


def _text(path: Path, operand: Any, operator: str) -> str:
    if not isinstance(operand, str):
        raise _wrong(path, operand, f"a text behind {operator}")
    return operand


def _lowered(text: str) -> Expression:
    """Return a text in lower case, as the language has it."""
    return call("lower", lit(text)).expression


def _like(path: Path, wildcard: str) -> str:
    r"""Return a pattern of LIKE for one with `*`.

    >>> _like(("a",), r"100%*\*_")
    '100\\%%*\\_'
    """
    pattern, rest = "", iter(wildcard)
    for character in rest:
        if character == "\\":
            character = next(rest, "")
            if character not in ("*", "\\"):
                raise _wrong(path, wildcard, "a backslash before * or another backslash only")
        elif character == "*":
            if pattern.endswith("%") and not pattern.endswith("\\%"):
                raise _wrong(path, wildcard, "no two wildcards side by side")
            pattern += "%"
            continue
        pattern += f"\\{character}" if character in "%_\\" else character
    return pattern


def _number(path: Path, value: Any) -> int | float:
    if isinstance(value, float) and not isfinite(value):
        raise _wrong(path, value, "a finite number")
    number: int | float = value
    return number


def _among(value: Value, values: tuple[Any, ...]) -> Expression:
    """Return the condition that a value is one of these."""
    return value == values[0] if len(values) == 1 else value.isin(values)


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        expected = 'a pattern such as {"state": ["open"]}'
        raise TranslationError(f"the pattern is not JSON: {error}", expected=(expected,)) from None


def _wrong(path: Path, content: Any, expected: str) -> TranslationError:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a Boolean", type(None): "null"}
    kind = names.get(type(content), "a number")
    where = str(Attribute(path)) if path else "the pattern"
    return TranslationError(f"{where} is {kind}", expected=(expected,))
