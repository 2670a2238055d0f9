"""What does an expression of the language say in DuckDB's SQL?

DuckDB is an oracle that shares no code with us: another planner, other kernels, other libraries. The translation is
typed, because DuckDB casts where we do not: a text beside a number is unknown here, and so it is written as NULL. Where
DuckDB's function differs from ours in a way that SQL can mend, it is mended; where it cannot, the expression is left
out. Both are listed in one table, each with its reason, and the tests see that nothing else is left out.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

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
    Test,
    Xor,
    fold,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DIFFERENCES = {
    "in_cidr": ("left out", "it needs an extension that has to be downloaded"),
    "division of decimals": ("left out", "DuckDB divides them as doubles, we exactly to 38 digits"),
    "remainder of decimals": ("left out", "DuckDB takes it of doubles, we exactly"),
    "wide decimals": (
        "left out",
        "DuckDB's result types follow declared digits, of which there are 38; we count digits",
    ),
    "extremes of doubles and others": (
        "left out",
        "DuckDB takes the widest declared type, we that of the values present",
    ),
    "extremes of several kinds": ("left out", "an error in DuckDB; here it depends on which of them are present"),
    "choices among doubles and others": (
        "left out",
        "DuckDB takes the widest declared type, we that of the values present",
    ),
    "choices among several kinds": ("left out", "an error in DuckDB, or a cast; here each value stays what it is"),
    "weighted distance": ("left out", "DuckDB has none"),
    "arrays of several types": ("left out", "an array has one type in DuckDB; here each element has its own"),
    "overflow": ("adapted: TRY", "DuckDB raises where a sum, product or opposite leaves its 64 bits; here it is NULL"),
    "division by zero": ("adapted: NULLIF", "infinite in DuckDB, NULL here"),
    "values of different kinds": (
        "adapted: NULL",
        "DuckDB casts one to the other, or refuses; here they never compare",
    ),
    "integer literals": ("adapted: BIGINT", "they have 32 bits in DuckDB, and sums overflow there"),
    "decimal literals": ("adapted: DECIMAL(p, s)", "DuckDB reads a long one as a double"),
    "products of decimals": ("adapted: 19 digits", "DuckDB multiplies 18 digits in 64 bits, and raises beyond"),
    "dates beside timestamps": ("adapted: TIMESTAMP", "the same, said in one type"),
    "array_contains": ("adapted: CASE", "not found beside a NULL is false in DuckDB, unknown here"),
    "arrays_overlap": ("adapted: CASE", "the same"),
    "vectors": ("adapted: CASE", "DuckDB raises for vectors of different lengths and for NULL coordinates; here NULL"),
    "cosine": (
        "adapted: inner products",
        "DuckDB cuts it to [-1, 1]; rounding may exceed that, and NaN stays NaN here",
    ),
    "LIKE": ("adapted: ESCAPE", "DuckDB has no escape character unless it is named"),
    "RLIKE": ("adapted: in parentheses", "DuckDB makes a search for a text of letters and anchors: '^a^a' finds 'aa'"),
    "XOR and at_least": ("adapted", "DuckDB has neither"),
    "lower and upper": (
        "adapted: no such texts",
        "DuckDB maps letter by letter: ß has one capital, İ one small letter",
    ),
}
"""What differs between DuckDB and us: what the translation does about it, and why it is so."""


class LeftOutError(Exception):
    """An expression that DuckDB would understand differently; says which of the differences it is."""

    def __init__(self, difference: str) -> None:
        assert DIFFERENCES[difference][0] == "left out"
        super().__init__(difference)
        self.difference = difference


@dataclass(frozen=True)
class Sql:
    """A text of SQL, and what it gives: a kind, the digits of a decimal, the elements of an array."""

    text: str
    kind: str
    precision: int = 0
    scale: int = 0
    element: Sql | None = None

    def __str__(self) -> str:
        return self.text


NULL = Sql("NULL", "null")
UNKNOWN = "CAST(NULL AS BOOLEAN)"
_NUMBERS = ("int", "decimal", "double")
_TYPES = {"int": "BIGINT", "double": "DOUBLE", "string": "VARCHAR", "boolean": "BOOLEAN", "time": "TIMESTAMP"}
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "remainder": "%"}
_TESTS = {"startswith": "starts_with", "endswith": "ends_with", "contains": "contains"}
_RADIUS_KM = "6371.0088"


def type_of(sql: Sql) -> str:
    """Return the name of a type in DuckDB."""
    return f"DECIMAL({sql.precision}, {sql.scale})" if sql.kind == "decimal" else _TYPES[sql.kind]


def to_sql(expression: Expression, columns: dict[str, Sql]) -> str:
    """Return a condition as SQL over columns of known types; raises where DuckDB would say something else."""
    return _truth(fold(expression, lambda node, below: _translated(node, below, columns)))


def _translated(node: Expression, below: list[Sql], columns: dict[str, Sql]) -> Sql:
    match node:
        case Literal(value):
            return literal(value)
        case Attribute(path):
            return columns.get(".".join(path), NULL)
        case Call(name) | Test(name):
            return _call(name, below)
        case Compare(operator):
            return _boolean(_compared(operator, *below))
        case Between():
            value, low, high = below
            return _boolean(f"({_compared('>=', value, low)} AND {_compared('<=', value, high)})")
        case In(_, members):
            return _boolean("(" + " OR ".join(_compared("=", below[0], literal(member)) for member in members) + ")")
        case IsNull():
            return _boolean(f"({below[0]} IS NULL)")
        case IsA(_, event_type):
            return _boolean(_compared("=", below[0], literal(event_type)))
        case Like(_, pattern, escape):
            return _of_texts(f"({below[0]} LIKE {_quoted(pattern)} ESCAPE {_quoted(escape)})", below[0])
        case RLike(_, pattern):
            return _of_texts(f"regexp_matches({below[0]}, {_quoted(f'({pattern})')})", below[0])
        case Not():
            return _boolean(f"(NOT {_truth(below[0])})")
        case And():
            return _boolean("(" + " AND ".join(map(_truth, below)) + ")")
        case Or():
            return _boolean("(" + " OR ".join(map(_truth, below)) + ")")
        case Xor():
            return (
                _boolean("(" + " <> ".join(f"({_truth(each)})" for each in below) + ")")
                if len(below) == 2
                else _parity(below)
            )
        case AtLeast(count):
            return _at_least(count, below)
    raise AssertionError(f"a node of an unknown class: {type(node).__name__}")


def _boolean(text: str) -> Sql:
    return Sql(text, "boolean")


def _truth(sql: Sql) -> str:
    """Return SQL where a condition is expected: what is not a Boolean has no truth."""
    return sql.text if sql.kind == "boolean" else UNKNOWN


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(value: Any) -> Sql:
    """Return a constant in its own type."""
    match value:
        case None:
            return NULL
        case bool():
            return Sql(str(value).upper(), "boolean")
        case int():
            return Sql(f"CAST('{value}' AS BIGINT)", "int")
        case float():
            return Sql(f"CAST('{value!r}' AS DOUBLE)", "double")
        case str():
            return Sql(_quoted(value), "string")
        case dt.date():
            return Sql(f"CAST('{value.isoformat()}' AS TIMESTAMP)", "time")
        case Decimal():
            _, digits, exponent = value.as_tuple()
            scale = max(0, -int(exponent))
            precision = max(len(digits), scale + 1)
            if precision > 38:
                raise LeftOutError("wide decimals")
            return Sql(f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))", "decimal", precision, scale)
    raise AssertionError(f"no literal: {value!r}")


# -- Comparison


def _compared(operator: str, left: Sql, right: Sql) -> str:
    if not _compare(left, right):
        return f"({left} IS NULL AND {right} IS NULL)" if operator == "<=>" else UNKNOWN
    one, two = _in_one_type(left, right)
    return f"({one} {'IS NOT DISTINCT FROM' if operator == '<=>' else operator} {two})"


def _compare(left: Sql, right: Sql) -> bool:
    if left.kind in _NUMBERS and right.kind in _NUMBERS:
        return True
    return left.kind == right.kind and left.kind in ("string", "boolean", "time")


def _in_one_type(left: Sql, right: Sql) -> tuple[Sql, Sql]:
    """Return two values that compare in the type in which we compare them."""
    kinds = {left.kind, right.kind}
    if "double" in kinds:
        return _double(left), _double(right)
    if "decimal" in kinds:
        left, right = _decimal(left), _decimal(right)
        scale = max(left.scale, right.scale)
        if max(left.precision - left.scale, right.precision - right.scale) + scale > 38:
            raise LeftOutError("wide decimals")
    return left, right


def _double(sql: Sql) -> Sql:
    return sql if sql.kind == "double" else Sql(f"CAST({sql} AS DOUBLE)", "double")


def _decimal(sql: Sql) -> Sql:
    return sql if sql.kind == "decimal" else Sql(f"CAST({sql} AS DECIMAL(19, 0))", "decimal", 19, 0)


# -- Connectives


def _parity(below: list[Sql]) -> Sql:
    text = f"({_truth(below[0])})"
    for each in below[1:]:
        text = f"({text} <> ({_truth(each)}))"
    return _boolean(text)


def _at_least(count: int, below: list[Sql]) -> Sql:
    truths = [f"({_truth(each)})" for each in below]
    true_count = " + ".join(f"CAST(COALESCE({each}, FALSE) AS INTEGER)" for each in truths)
    possible = " + ".join(f"CAST(COALESCE({each}, TRUE) AS INTEGER)" for each in truths)
    return _boolean(f"(CASE WHEN {true_count} >= {count} THEN TRUE WHEN {possible} < {count} THEN FALSE END)")


# -- Functions


def _of_texts(text: str, *arguments: Sql) -> Sql:
    return _boolean(text if all(each.kind == "string" for each in arguments) else UNKNOWN)


def _call(name: str, below: list[Sql]) -> Sql:
    kinds = {each.kind for each in below}
    match name:
        case "add" | "subtract" | "multiply" | "divide" | "remainder":
            return _arithmetic(name, *below)
        case "negate":
            return _arithmetic("subtract", literal(0), below[0])
        case "abs":
            return _abs(below[0])
        case "least" | "greatest":
            return _extreme(name, below)
        case "case" | "if":
            return _case(below)
        case "coalesce":
            return _chosen(below, lambda values: f"coalesce({', '.join(values)})")
        case "nullif":
            value, other = below
            equal = _compared("=", value, other)
            return (
                replace(value, text=f"(CASE WHEN {equal} THEN NULL ELSE {value} END)") if value.kind != "null" else NULL
            )
        case "avg":
            total = literal(0)
            for each in below:
                total = _arithmetic("add", total, each)
            return _arithmetic("divide", total, literal(len(below)))
        case "lower" | "upper" | "trim":
            return Sql(f"{name}({below[0]})", "string") if kinds == {"string"} else NULL
        case "length":
            return Sql(f"CAST(length({below[0]}) AS BIGINT)", "int") if kinds == {"string"} else NULL
        case "size":
            return Sql(f"CAST(len({below[0]}) AS BIGINT)", "int") if kinds == {"array"} else NULL
        case "startswith" | "endswith" | "contains":
            return _of_texts(f"{_TESTS[name]}({below[0]}, {below[1]})", *below)
        case "array":
            return _array(below)
        case "array_contains":
            return _array_contains(*below)
        case "arrays_overlap":
            return _arrays_overlap(*below)
        case "distance":
            return _distance(below)
        case "euclidean" | "cosine":
            return _of_vectors(name, below)
    raise LeftOutError(name)


def _arithmetic(name: str, left: Sql, right: Sql) -> Sql:
    kinds = {left.kind, right.kind}
    if not kinds <= set(_NUMBERS):
        return NULL
    sign = _SIGNS[name]
    if "double" in kinds or (name == "divide" and kinds == {"int"}):
        one, two = _double(left), _double(right)
        if name in ("divide", "remainder"):
            return Sql(f"({one} {sign} NULLIF({two}, CAST(0 AS DOUBLE)))", "double")
        return Sql(f"({one} {sign} {two})", "double")
    if kinds == {"int"}:
        return Sql(f"TRY({left} {sign} {right})", "int")
    if name in ("divide", "remainder"):
        raise LeftOutError("division of decimals" if name == "divide" else "remainder of decimals")
    one, two = _decimal(left), _decimal(right)
    if name == "multiply":
        precision, scale = one.precision + two.precision, one.scale + two.scale
    else:
        scale = max(one.scale, two.scale)
        precision = max(one.precision - one.scale, two.precision - two.scale) + 1 + scale
    if precision > 38:
        raise LeftOutError("wide decimals")
    wide = f"CAST({one} AS DECIMAL({max(19, one.precision)}, {one.scale}))"
    return Sql(f"CAST({wide} {sign} {two} AS DECIMAL({precision}, {scale}))", "decimal", precision, scale)


def _abs(number: Sql) -> Sql:
    if number.kind not in _NUMBERS:
        return NULL
    return Sql(f"TRY(abs({number}))", number.kind, number.precision, number.scale)


def _extreme(name: str, below: list[Sql]) -> Sql:
    present = [each for each in below if each.kind != "null"]
    if not present:
        return NULL
    kinds = {each.kind for each in present}
    if "array" in kinds or (len(kinds) > 1 and not kinds <= set(_NUMBERS)):
        raise LeftOutError("extremes of several kinds")
    if "double" in kinds and len(kinds) > 1:
        raise LeftOutError("extremes of doubles and others")
    found = present[0]
    if "decimal" in kinds:
        present = [_decimal(each) for each in present]
        scale = max(each.scale for each in present)
        precision = max(each.precision - each.scale for each in present) + scale
        if precision > 38:
            raise LeftOutError("wide decimals")
        found = Sql("", "decimal", precision, scale)
    return Sql(f"{name}({', '.join(map(str, present))})", found.kind, found.precision, found.scale)


def _case(below: list[Sql]) -> Sql:
    pairs = len(below) // 2 * 2
    conditions = [_truth(each) for each in below[:pairs:2]]

    def text(values: list[str]) -> str:
        arms = " ".join(f"WHEN {condition} THEN {value}" for condition, value in zip(conditions, values, strict=False))
        rest = f" ELSE {values[-1]}" if len(values) > len(conditions) else ""
        return f"(CASE {arms}{rest} END)"

    return _chosen([*below[1:pairs:2], *below[pairs:]], text)


def _chosen(values: list[Sql], text: Callable[[list[str]], str]) -> Sql:
    """Return one of some values, which have to be of one type."""
    present = [each for each in values if each.kind != "null"]
    kinds = {each.kind for each in present}
    if not present:
        return NULL
    if "array" in kinds or (len(kinds) > 1 and not kinds <= set(_NUMBERS)):
        raise LeftOutError("choices among several kinds")
    if "double" in kinds and len(kinds) > 1:
        raise LeftOutError("choices among doubles and others")
    found = present[0]
    if "decimal" in kinds:
        values = [each if each.kind == "null" else _decimal(each) for each in values]
        wide = [each for each in values if each.kind != "null"]
        scale = max(each.scale for each in wide)
        precision = max(each.precision - each.scale for each in wide) + scale
        if precision > 38:
            raise LeftOutError("wide decimals")
        found = Sql("", "decimal", precision, scale)
    return Sql(text([f"CAST({each} AS {type_of(found)})" for each in values]), found.kind, found.precision, found.scale)


# -- Arrays


def _array(below: list[Sql]) -> Sql:
    present = [each for each in below if each.kind != "null"]
    kinds = {each.kind for each in present}
    if len(kinds) > 1 or "array" in kinds:
        raise LeftOutError("arrays of several types")
    element = present[0] if present else literal(0)
    if any((each.precision, each.scale) != (element.precision, element.scale) for each in present):
        raise LeftOutError("arrays of several types")
    return Sql(f"CAST([{', '.join(map(str, below))}] AS {type_of(element)}[])", "array", element=element)


def _array_contains(array: Sql, element: Sql) -> Sql:
    if array.kind != "array" or element.kind == "null":
        return _boolean(UNKNOWN)
    assert array.element is not None
    member = Sql("member", array.element.kind, array.element.precision, array.element.scale)
    hits = f"len(list_filter({array}, lambda member: {_compared('=', member, element)})) > 0"
    if not _compare(member, element):
        hits = "FALSE"
        doubt = f"len({array}) > 0"
    else:
        doubt = f"len(list_filter({array}, lambda member: member IS NULL)) > 0"
    return _boolean(
        f"(CASE WHEN {array} IS NULL OR {element} IS NULL THEN NULL WHEN {hits} THEN TRUE WHEN {doubt} THEN NULL "
        f"ELSE FALSE END)"
    )


def _arrays_overlap(one: Sql, two: Sql) -> Sql:
    if one.kind != "array" or two.kind != "array":
        return _boolean(UNKNOWN)
    assert one.element is not None
    assert two.element is not None
    is_null = f"{one} IS NULL OR {two} IS NULL"
    is_empty = f"len({one}) = 0 OR len({two}) = 0"
    if not _compare(one.element, two.element):
        return _boolean(f"(CASE WHEN {is_null} THEN NULL WHEN {is_empty} THEN FALSE END)")
    left, right = one.text, two.text
    if one.element.kind != two.element.kind:
        if "double" not in (one.element.kind, two.element.kind):
            raise LeftOutError("arrays of several types")
        left, right = f"CAST({one} AS DOUBLE[])", f"CAST({two} AS DOUBLE[])"
    doubt = " OR ".join(f"len(list_filter({each}, lambda member: member IS NULL)) > 0" for each in (one, two))
    return _boolean(
        f"(CASE WHEN {is_null} THEN NULL WHEN {is_empty} THEN FALSE WHEN list_has_any({left}, {right}) THEN TRUE "
        f"WHEN {doubt} THEN NULL ELSE FALSE END)"
    )


# -- Places and vectors


def _distance(below: list[Sql]) -> Sql:
    if not {each.kind for each in below} <= set(_NUMBERS):
        return NULL
    lat, lon, lat0, lon0 = map(_double, below)
    is_place = f"abs({lat}) <= 90 AND abs({lat0}) <= 90 AND abs({lon}) <= 360 AND abs({lon0}) <= 360"
    half_chord = (
        f"pow(sin((radians({lat0}) - radians({lat})) / 2), 2) + cos(radians({lat})) * cos(radians({lat0})) * "
        f"pow(sin(radians({lon0} - {lon}) / 2), 2)"
    )
    return Sql(
        f"(CASE WHEN {is_place} THEN 2 * {_RADIUS_KM}::DOUBLE * asin(sqrt(least(1::DOUBLE, {half_chord}))) END)",
        "double",
    )


def _of_vectors(name: str, below: list[Sql]) -> Sql:
    if len(below) > 2:
        raise LeftOutError("weighted distance")
    if any(each.kind != "array" or each.element is None or each.element.kind not in _NUMBERS for each in below):
        return NULL
    one, two = (f"CAST({each} AS DOUBLE[])" for each in below)
    are_vectors = f"len({one}) = len({two}) AND len({one}) > 0 AND " + " AND ".join(
        f"len(list_filter({each}, lambda member: member IS NULL)) = 0" for each in (one, two)
    )
    # DuckDB looks for NULLs in all rows, also in those that CASE leaves out.
    one, two = (f"list_transform({each}, lambda member: COALESCE(member, 0))" for each in (one, two))
    if name == "euclidean":
        return Sql(f"(CASE WHEN {are_vectors} THEN list_distance({one}, {two}) END)", "double")
    length = f"(sqrt(list_inner_product({one}, {one})) * sqrt(list_inner_product({two}, {two})))"
    cosine = f"list_inner_product({one}, {two}) / NULLIF({length}, CAST(0 AS DOUBLE))"
    return Sql(f"(CASE WHEN {are_vectors} THEN {cosine} END)", "double")
