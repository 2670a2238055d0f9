"""Random texts that Spark SQL accepts too, over typed columns, and the rows to try them on.

Texts are written token by token, not printed from expressions, so that both parsers decide by themselves what binds
tighter. They keep out of the corners that docs/language.md lists as differences: casts from text, integers of
32 bits, decimals whose declared precision overflows.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

COLUMNS = {
    "i": "bigint",
    "j": "bigint",
    "d": "double",
    "e": "double",
    "n": "decimal(10,2)",
    "m": "decimal(12,4)",
    "s": "string",
    "t": "string",
    "b": "boolean",
    "c": "boolean",
    "day": "date",
    "ts": "timestamp",
    "tags": "array<string>",
    "nums": "array<bigint>",
    "pos": "struct<x:double,name:string>",
    "`odd.name`": "bigint",
}
NAN, INFINITY = float("nan"), float("inf")
VALUES: dict[str, list[Any]] = {
    "bigint": [0, 1, 2, 3, -1, -7, 10, 100, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)],
    "small": [0, 1, 2, 3, -1, -7, 10, 100],
    "double": [0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 3.0, NAN, INFINITY, -INFINITY, 1e300, 5e-324, float(2**53), 0.1],
    "decimal(10,2)": [Decimal(x) for x in ("0.00", "1.00", "0.50", "-1.50", "2.00", "3.00", "99999999.99", "0.10")],
    "decimal(12,4)": [Decimal(x) for x in ("0.0000", "1.0000", "0.5000", "-1.5000", "0.3333", "2.0000", "0.1000")],
    "string": [
        "",
        "a",
        "b",
        "ab",
        "abc",
        "aBc",
        " a ",
        "The Hobbit",
        "é",
        "É",
        "ß",
        "😀",
        "a%b",
        "a_b",
        "a\nb",
        "\\",
        "x'y",
        "Z",
    ],
    "boolean": [True, False],
    "date": [dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(1970, 1, 1), dt.date(1999, 12, 31)],
    "timestamp": [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 0, 1), dt.datetime(1970, 1, 1)],
    "array<string>": [[], ["a"], ["a", "b"], ["a", None], [None], ["é", ""], ["b", "b"]],
    "array<bigint>": [[], [1], [1, 2, 3], [1, None], [None]],
}
_LIKES = ("a%", "%b", "_", "%", "", "a\\\\%b", "a\\\\_b", "The %", "%o%b%", "é", "__", "\\\\\\\\")
_REGEXES = ("a", "^a", "b$", "[ab]+", "^$", "(a|é)", "H.b+it", "[^a]", "\\\\d", "^.$", "(?i)ABC", "a.b")


def rows(count: int, chance: Random) -> list[dict[str, Any]]:
    """Return rows as events: some NULLs are written out, some attributes are absent."""
    return [_row(chance) for _ in range(count)]


def _row(chance: Random) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column, kind in COLUMNS.items():
        name = column.strip("`")
        if name == "pos":
            value: Any = {
                "x": chance.choice([*VALUES["double"], None]),
                "name": chance.choice([*VALUES["string"], None]),
            }
        else:
            value = chance.choice(VALUES["small" if name in ("j", "odd.name") else kind])
        if chance.random() < 0.15:
            value = None
        if value is not None or chance.random() < 0.5:
            row[name] = value
    return row


class Texts:
    """A generator of conditions, by the kind of what stands in each place."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def one_of(self, *choices: Any) -> Any:
        return self.chance.choice(choices)

    def condition(self, depth: int = 3) -> str:
        if depth == 0 or self.chance.random() < 0.25:
            return self.predicate(depth)
        parts = [self.operand(depth - 1) for _ in range(self.chance.randint(1, 3))]
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.one_of('AND', 'OR', 'and', 'Or')} {part}"
        return text

    def operand(self, depth: int) -> str:
        inner = self.condition(depth)
        return self.one_of(inner, f"({inner})", f"NOT {self.predicate(depth)}", f"not ({inner})", f"!({inner})")

    def predicate(self, depth: int) -> str:
        kind = self.chance.randrange(20)
        match kind:
            case 0 | 1 | 2 | 3 | 4:
                return self.comparison(self.number)
            case 5 | 6:
                return self.comparison(self.text)
            case 7:
                return self.comparison(self.time)
            case 8:
                return self.between(self.one_of(self.number, self.text, self.time))
            case 9 | 10:
                return self.member(self.one_of(self.number, self.text, self.time))
            case 11:
                value = self.one_of(
                    self.number(), self.text(), self.time(), "b", "tags", "pos", f"({self.condition(0)})"
                )
                return f"{value} IS {self.one_of('', 'NOT ')}NULL"
            case 12:
                return f"{self.text()} {self.one_of('', 'NOT ')}LIKE '{self.chance.choice(_LIKES)}'"
            case 13:
                return f"{self.text()} {self.one_of('', 'NOT ')}{self.one_of('RLIKE', 'regexp')} '{self.chance.choice(_REGEXES)}'"
            case 14:
                return f"{self.one_of('startswith', 'endswith', 'contains')}({self.text()}, {self.text()})"
            case 15:
                return self.array_predicate()
            case 16:
                inner = self.predicate(0) if depth else "b"
                return self.one_of(
                    *("b", "c", "TRUE", "false", "b = c", "b <> TRUE", "b < c", "b <=> NULL"),
                    self.choice(lambda: self.one_of("b", "c", "TRUE", "NULL", f"({inner})")),
                    f"coalesce({inner}, FALSE)",
                )
            case 17:
                condition = f"({self.condition(max(0, depth - 1))})"
                return self.one_of(
                    f"{condition} IS {self.one_of('', 'NOT ')}{self.one_of('TRUE', 'FALSE', 'UNKNOWN')}",
                    f"b {self.operator()} {condition}",
                    f"{condition} <=> {self.one_of('b', 'c', 'NULL')}",
                )
            case 18:
                return f"{self.number()} IS {self.one_of('', 'NOT ')}DISTINCT FROM {self.number()}"
            case _:
                return f"i {self.operator()} {self.one_of('9007199254740992D', '9007199254740993', '2147483648', '-9223372036854775808')}"

    def operator(self) -> str:
        return str(self.one_of("=", "<>", "!=", "==", "<", "<=", ">", ">=", "<=>"))

    def comparison(self, term: Any) -> str:
        return f"{term()} {self.operator()} {term()}"

    def between(self, term: Any) -> str:
        return f"{term()} {self.one_of('', 'NOT ')}BETWEEN {term()} AND {term()}"

    def member(self, term: Any) -> str:
        members = [term() for _ in range(self.chance.randint(1, 4))]
        if self.chance.random() < 0.15:
            members.append("NULL")
        return f"{term()} {self.one_of('', 'NOT ')}IN ({', '.join(members)})"

    # -- Terms

    def number(self, depth: int = 2) -> str:
        if depth == 0 or self.chance.random() < 0.6:
            return self.one_of(
                *("j", "d", "e", "n", "m", "pos.x", "`odd.name`", "i" if depth == 2 else "j") * 2, "length(s)", "size(tags)",
                *("0", "1", "2", "-1", "3", "10"), *("0.5", "1.00", ".5", "-1.5", "2."), *("1e0", "0.5D", "-1.5e0", "2d"),
                "1.0BD", "3L",
            )  # fmt: skip
        left, right = self.number(depth - 1), self.number(depth - 1)
        match self.chance.randrange(11):
            case 8 | 9 | 10:
                return self.choice(lambda: self.number(depth - 1))
            case 0 | 1 | 2:
                return f"{left} {self.one_of('+', '-', '*', '%')} {right}"
            case 3:
                return f"({left}) {self.one_of('+', '-', '*')} ({right})"
            case 4:
                return f"{left} / {self.one_of('2', 'j', 'd', '0', '4D')}"
            case 5:
                return f"abs({left})"
            case 6:
                return f"- {self.one_of('j', 'd', 'n', f'({left})')}"
            case _:
                return f"{self.one_of('least', 'greatest')}({left}, {right})"

    def text(self, depth: int = 1) -> str:
        if depth == 0 or self.chance.random() < 0.75:
            return self.one_of(
                *("s", "t", "pos.name") * 4,
                "'a'",
                "'abc'",
                "''",
                "'É'",
                '"b"',
                "'x''y'",
                r"'x\'y'",
                r"'\u00e9'",
                "'a' 'b'",
                r"r'\'",
            )
        if self.chance.random() < 0.3:
            return self.choice(lambda: self.text(depth - 1))
        return f"{self.one_of('lower', 'upper', 'trim')}({self.text(depth - 1)})"

    def choice(self, value: Any) -> str:
        """A value that depends on conditions, in every form that there is."""
        deciding = self.one_of(
            "b", "c", "b AND c", "j > 1", "s = 'a'", "d IS NULL", "NOT b", "n < 1 OR c", "NULL AND b"
        )
        match self.chance.randrange(6):
            case 0:
                return f"CASE WHEN {deciding} THEN {value()} ELSE {value()} END"
            case 1:
                return f"case when {deciding} then {value()} When j < 3 Then {value()} end"
            case 2:
                operand = self.one_of(self.number, self.text)
                return f"CASE {operand(0)} WHEN {operand(0)} THEN {value()} WHEN {operand(0)} THEN {value()} ELSE {value()} END"
            case 3:
                return f"if({deciding}, {value()}, {value()})"
            case 4:
                return f"coalesce({', '.join(value() for _ in range(self.chance.randint(1, 3)))})"
            case _:
                return f"nullif({value()}, {value()})"

    def time(self) -> str:
        if self.chance.random() < 0.1:
            return self.choice(self.time)
        return self.one_of(
            *("day", "ts") * 3, "DATE '2024-02-29'", "date '2024-3-1'", "TIMESTAMP '2024-02-29 12:30:00.000001'",
            "timestamp '2024-02-29T01:00:00+01:00'", "TIMESTAMP '1970-01-01'",
        )  # fmt: skip

    def array_predicate(self) -> str:
        return self.one_of(
            f"array_contains(tags, {self.text(0)})",
            f"array_contains(nums, {self.one_of('1', 'j', '3L', '1.0')})",
            f"arrays_overlap(tags, array({self.text(0)}, {self.text(0)}))",
            f"arrays_overlap(nums, array({self.one_of('1L', 'j', '9L')}))",
            "arrays_overlap(tags, array('q'))",
            f"size({self.one_of('tags', 'nums')}) {self.operator()} {self.one_of('0', '1', 'j')}",
        )
