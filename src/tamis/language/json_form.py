"""How does an expression travel as JSON? Serialisation, with a JSON Schema.

A document is `{"tamis": 1, "expression": ...}`. Every node is an object with one telling key; texts,
Booleans, integers and null stand for themselves, and the other literals carry their type. The JSON Schema
is `expression.schema.json` beside this module (`json_schema()`), and is published with the documentation.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from importlib.resources import files
from typing import Any

from tamis.errors import JsonFormError, LanguageError, LimitError
from tamis.language import literals, patterns
from tamis.language.checking import check, check_size
from tamis.language.expressions import (
    And,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
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
    fold_shared,
)
from tamis.language.functions import FUNCTIONS, Functions, HostedName, function_of, in_use, written_name
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.values import GREATEST_INTEGER, LEAST_INTEGER, decimal_from

VERSION = 1
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the JSON form.

    The file beside this module has the structure; the names of the functions come from their table.
    """
    schema: dict[str, Any] = json.loads(files("tamis.language").joinpath("expression.schema.json").read_text("utf-8"))
    for definition, is_test in (("call", False), ("test", True)):
        names = [name for name, function in FUNCTIONS.items() if function.is_test is is_test]
        schema["$defs"][definition] = {"enum": names}
    return schema


# -- Writing


def to_json(expression: Expression) -> str:
    """Write an expression as a JSON document."""
    # Built from strings, not from nested objects: the json module recurses.
    return f'{{"tamis":{VERSION},"expression":{fold_shared(expression, _written)}}}'


def _written(node: Expression, below: list[str]) -> str:
    listed = f"[{','.join(below)}]"
    match node:
        case Literal(constant):
            return _dumps(_literal(constant))
        case Attribute(path):
            return f'{{"attribute":{_dumps(list(path))}}}'
        case Call(name):
            return f'{{"call":"{written_name(name)}","arguments":{listed}}}'
        case Test(name):
            return f'{{"test":"{written_name(name)}","arguments":{listed}}}'
        case Compare(operator):
            return f'{{"compare":"{operator}","arguments":{listed}}}'
        case Between():
            return f'{{"between":{listed}}}'
        case In(_, members):
            return f'{{"in":{below[0]},"values":{_dumps([_literal(member) for member in members])}}}'
        case IsNull():
            return f'{{"is_null":{below[0]}}}'
        case IsA(_, event_type):
            return f'{{"is_a":{below[0]},"type":{_dumps(event_type)}}}'
        case Like(_, pattern, escape):
            return f'{{"like":{below[0]},"pattern":{_dumps(pattern)},"escape":{_dumps(escape)}}}'
        case RLike(_, pattern):
            return f'{{"rlike":{below[0]},"pattern":{_dumps(pattern)}}}'
        case Not():
            return f'{{"not":{below[0]}}}'
        case And():
            return f'{{"and":{listed}}}'
        case Or():
            return f'{{"or":{listed}}}'
        case Xor():
            return f'{{"xor":{listed}}}'
        case AtLeast(count):
            return f'{{"at_least":{count},"of":{listed}}}'
    raise AssertionError(f"a node of an unknown class: {type(node).__name__}")


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _literal(value: Scalar) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": format(value, "f")}
    if isinstance(value, float):
        return {"double": value if math.isfinite(value) else repr(value)}
    if isinstance(value, dt.datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, dt.date):
        return {"date": value.isoformat()}
    return value


# -- Reading


def from_json(
    document: str | bytes | dict[str, Any], *, limits: Limits = DEFAULT_LIMITS, functions: Functions | None = None
) -> Expression:
    """Read an expression from a JSON document, given as text or as the object it denotes.

    A function of the host stands there with its version; `functions` says which one it is.

    >>> print(from_json('{"tamis": 1, "expression": {"compare": "<", "arguments": [{"attribute": ["price"]}, 20]}}'))
    price < 20
    """
    if functions is not None:
        with functions.in_use():
            return from_json(document, limits=limits)
    data = loaded(document, limits) if isinstance(document, str | bytes) else document
    if not isinstance(data, dict) or "expression" not in data:
        raise JsonFormError('a document is {"tamis": 1, "expression": ...}')
    if data.get("tamis") != VERSION or set(data) - {"tamis", "expression"}:
        raise JsonFormError(f"this is not version {VERSION} of the JSON form: tamis is {data.get('tamis')!r}")
    expression = _read(data["expression"], limits)
    condition = as_condition(expression)
    if condition is None:
        raise JsonFormError(f"the expression is a value, not a condition: {expression}")
    check_size(condition, limits)
    check(condition)
    return condition


def loaded(document: str | bytes, limits: Limits) -> Any:
    """Return what a JSON text denotes, within the limits.

    >>> from tamis.language.limits import DEFAULT_LIMITS
    >>> loaded('{"tamis": 1}', DEFAULT_LIMITS)
    {'tamis': 1}
    """
    if len(document) > limits.text_length:
        raise LimitError("text_length", limits.text_length, f"{len(document):,} characters")
    try:
        return json.loads(document)
    except RecursionError:
        raise LimitError("depth", limits.depth, "more") from None
    except ValueError as error:
        raise JsonFormError(f"this is not JSON: {error}") from None


_Maker = Callable[[list[Expression]], Expression]


def _read(root: Any, limits: Limits) -> Expression:
    """Build the nodes bottom-up from a stack: (what to make, how many made nodes it takes)."""
    made: list[Expression] = []
    stack: list[tuple[Any, _Maker | None, int]] = [(root, None, 0)]
    count = 0
    while stack:
        data, make, taken = stack.pop()
        if make is not None:
            below = made[len(made) - taken :]
            del made[len(made) - taken :]
            made.append(make(below))
            continue
        count += 1
        if count > limits.nodes:
            raise LimitError("nodes", limits.nodes, "more")
        maker, children = _maker(data, limits)
        stack.append((None, maker, len(children)))
        stack.extend((child, None, 0) for child in reversed(children))
    return made[0]


def _maker(data: Any, limits: Limits) -> tuple[_Maker, list[Any]]:
    """Return how to make the node of one JSON value, and the JSON values of its children."""
    if not isinstance(data, dict):
        constant = Literal(_scalar(data))
        return (lambda _: constant), []
    match data:
        case {"attribute": [*path], **rest} if path and all(isinstance(part, str) and part for part in path):
            maker: _Maker = lambda _: Attribute(tuple(map(_text, path)))  # noqa: E731
            children: list[Any] = []
        case {"call": str(name), "arguments": [*children], **rest}:
            maker = _function(Call, name, len(children))
        case {"test": str(name), "arguments": [*children], **rest}:
            maker = _function(Test, name, len(children))
        case {"compare": str(operator), "arguments": [_, _] as children, **rest} if operator in _COMPARISONS:
            maker = lambda below: Compare(operator, *below)  # noqa: E731
        case {"between": [_, _, _] as children, **rest}:
            maker = lambda below: Between(*below)  # noqa: E731
        case {"in": value, "values": [*members], **rest} if 1 <= len(members) <= limits.list_length:
            scalars = tuple(map(_scalar, members))
            maker, children = (lambda below: In(below[0], scalars)), [value]
        case {"is_null": value, **rest}:
            maker, children = (lambda below: IsNull(below[0])), [value]
        case {"is_a": value, "type": str(event_type), **rest}:
            maker, children = (lambda below: IsA(below[0], _text(event_type))), [value]
        case {"like": value, "pattern": str(pattern), "escape": str(escape), **rest}:
            patterns.check_like(_text(pattern), escape, limits)
            maker, children = (lambda below: Like(below[0], pattern, escape)), [value]
        case {"rlike": value, "pattern": str(pattern), **rest}:
            patterns.check_regex(_text(pattern), limits)
            maker, children = (lambda below: RLike(below[0], pattern)), [value]
        case {"not": value, **rest}:
            maker, children = (lambda below: Not(_conditions(below)[0])), [value]
        case {"and": [_, _, *_] as children, **rest}:
            maker = lambda below: And(_conditions(below))  # noqa: E731
        case {"or": [_, _, *_] as children, **rest}:
            maker = lambda below: Or(_conditions(below))  # noqa: E731
        case {"xor": [_, _, *_] as children, **rest}:
            maker = lambda below: Xor(_conditions(below))  # noqa: E731
        case {"at_least": int(count), "of": [_, *_] as children, **rest} if count >= 0 and count is not True:
            maker = lambda below: AtLeast(count, _conditions(below))  # noqa: E731
        case _:
            constant = Literal(_scalar(data))
            return (lambda _: constant), []
    if rest:
        raise _unknown(data)
    return maker, children


def _function(kind: type[Call] | type[Test], name: str, count: int) -> _Maker:
    if "@" in name:
        name = in_use().hosted(name)
    function = function_of(name) if isinstance(name, HostedName) else FUNCTIONS.get(name)
    if function is None or function.is_test is not (kind is Test) or not function.accepts(count):
        raise JsonFormError(f"there is no such function: {name!r} of {count} arguments")

    def make(below: list[Expression]) -> Expression:
        function.check(tuple(below))
        return kind(name, tuple(below))

    return make


def _conditions(below: list[Expression]) -> tuple[Expression, ...]:
    conditions = []
    for node in below:
        condition = as_condition(node)
        if condition is None:
            raise JsonFormError(f"a value stands where a condition is expected: {node}")
        conditions.append(condition)
    return tuple(conditions)


def _scalar(data: Any) -> Scalar:
    match data:
        case None | bool():
            return data
        case int() if LEAST_INTEGER <= data <= GREATEST_INTEGER:
            return data
        case str():
            return _text(data)
        case {"decimal": str(digits), **rest} if not rest:
            exact = decimal_from(digits)
            if exact is not None:
                return exact
        case {"double": int() | float() as number, **rest} if not rest and not isinstance(number, bool):
            return float(number)
        case {"double": "nan" | "inf" | "-inf" as word, **rest} if not rest:
            return float(word)
        case {"date": str(day), **rest} if not rest:
            return _typed(literals.date, day)
        case {"timestamp": str(moment), **rest} if not rest:
            return _typed(literals.timestamp, moment)
    raise _unknown(data)


def _typed(read: Callable[[str], Scalar], text: str) -> Scalar:
    try:
        return read(text)
    except LanguageError as error:
        raise JsonFormError(error.message) from None


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise JsonFormError(f"this text is not valid Unicode: {text!r}") from None
    return text


def _unknown(data: Any) -> JsonFormError:
    shown = repr(data)
    return JsonFormError(
        f"this is not part of an expression: {shown if len(shown) <= 200 else shown[:197] + '...'}",
        hint="The JSON Schema of the form is tamis.json_schema().",
    )
