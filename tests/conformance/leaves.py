"""One leaf of every kind: each operator, pattern and function, beside attributes and beside literals.

The attributes come in pairs of one type, so that columns meet columns, and each has its literals; one of them is NULL
in all events, and one is never there.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
NAN, INFINITY = float("nan"), float("inf")

COLUMNS = {
    "i": "int",
    "j": "int",
    "d": "double",
    "e": "double",
    "n": "decimal",
    "m": "decimal",
    "s": "string",
    "t": "string",
    "b": "boolean",
    "c": "boolean",
    "day": "date",
    "eve": "date",
    "ts": "timestamp",
    "us": "timestamp",
    "tags": "array<string>",
    "more": "array<string>",
    "nums": "array<int>",
    "many": "array<int>",
    "here": "array<double>",
    "there": "array<double>",
    "pos.x": "double",
    "pos.name": "string",
}
"""The attributes and their types; `nil` is NULL everywhere, `absent` nowhere."""

SMALL: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, 5, 10, 100],
    "double": [0.0, -0.0, 0.5, 1.0, 2.0, -1.5, 45.5, NAN, INFINITY, -INFINITY],
    "decimal": [Decimal(text) for text in ("0.00", "1.00", "0.50", "-1.50", "2.00", "99.99")],
    "string": [
        "",
        "a",
        "b",
        "ab",
        "abc",
        "The Hobbit",
        "é",
        "😀",
        "Quote",
        "StockQuote",
        "10.1.2.3",
        "::1",
        "10.0.0.0/8",
    ],
    "boolean": [True, False],
    "date": [dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(1970, 1, 1)],
    "timestamp": [dt.datetime(2024, 2, 29), dt.datetime(2024, 3, 1, 12, 30, 5), dt.datetime(1970, 1, 1)],
    "array<string>": [["a", "b"], ["b", None], ["é", ""], [None, None]],
    "array<int>": [[1, 2], [2, None], [3, 3], [None, None]],
    "array<double>": [[1.0, 2.0], [0.5, None], [0.0, 0.0], [3.0, -4.0]],
}
"""Values that every column of their type takes."""
UGLY: dict[str, list[Any]] = {
    "int": [-1, -7, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0, 1],
    "double": [0.1, 1e300, 5e-324, float(2**53), 9.2e18, -1e308, 0.0, NAN],
    "decimal": [Decimal(text) for text in ("12345678.91", "-0.01", "0.10", "1.00")],
    "string": ["a%b", "a_b", "\\", "a\nb", "\0", "ß", "İ", " a ", "x'y", "A" * 40, "a", ""],
    "boolean": [True, False],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31)],
    "timestamp": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 29, 0, 0, 0, 1)],
    "array<string>": [[], ["a"], ["a%b", "b", None], ["\0"]],
    "array<int>": [[], [2**63 - 1], [-1, 2**53 + 1, None], [1]],
    "array<double>": [[], [NAN], [INFINITY, 1e300, 0.5], [1.0]],
}
LITERALS = {
    "int": ("1", "2", "9007199254740993", "-9223372036854775808"),
    "double": ("0.5e0", "2D", "double('NaN')", "-0.0e0", "9007199254740992D"),
    "decimal": ("1.00", "0.5", "-1.5", "0.001", "12345678901234567890.5"),
    "string": ("'a'", "'ab'", "''", "'é'", "'😀'"),
    "boolean": ("TRUE", "FALSE"),
    "date": ("DATE '2024-02-29'", "TIMESTAMP '2024-02-29 00:00:00'"),
    "timestamp": ("TIMESTAMP '2024-03-01 12:30:05'", "DATE '2024-02-29'"),
}
NUMBERS = ("i", "j", "d", "e", "n", "m", "pos.x", "nil", "absent")
TEXTS = ("s", "t", "pos.name", "nil", "absent")
ARRAYS = ("tags", "more", "nums", "many", "here", "nil", "absent")
_LIKES = ("a%", "%b", "%b%", "a_c", "_", "%", "", "ab", "a\\\\%b", "%o%b%", "__%")
_REGEXES = ("a", "^a", "b$", "[ab]+", "^$", "H.b+it", "(?i)THE", "\\\\d+", "^.$")


def rows(count: int, values: dict[str, list[Any]], chance: Random) -> list[dict[str, Any]]:
    """Return events over all attributes; NULLs stand alone, in pairs, and in nearly whole rows."""
    found = []
    for _ in range(count):
        share = chance.choice((0.0, 0.1, 0.3, 0.9))
        event: dict[str, Any] = {"nil": None}
        for name, kind in COLUMNS.items():
            value = None if chance.random() < share else chance.choice(values[kind])
            *record, field = name.split(".")
            (event.setdefault(record[0], {}) if record else event)[field] = value
        if chance.random() < 0.1:
            event["pos"] = None
        found.append(event)
    return found


def leaves() -> list[str]:
    """Return the texts of all leaves."""
    return [*_comparisons(), *_memberships(), *_of_texts(), *_of_numbers(), *_of_arrays(), *_choices(), *_nested()]


def _pairs() -> list[tuple[str, str]]:
    names = [*COLUMNS, "nil", "absent"]
    alike = [(one, two) for one in names for two in names if COLUMNS.get(one) == COLUMNS.get(two) and one != two]
    mixed = [("i", "d"), ("i", "n"), ("d", "n"), ("day", "ts"), ("s", "i"), ("b", "s"), ("i", "nil"), ("absent", "s")]
    return [*alike, *mixed]


def _comparisons() -> list[str]:
    columns = [f"{one} {operator} {two}" for one, two in _pairs() for operator in OPERATORS]
    constants = [
        f"{name} {operator} {literal}"
        for name, kind in (*COLUMNS.items(), ("nil", "int"), ("absent", "string"))
        for operator in OPERATORS
        for literal in LITERALS.get(kind, ())
    ]
    mixed = [f"{name} {operator} {literal}" for operator in OPERATORS for name, literal in (
        ("i", "0.5e0"), ("i", "1.5"), ("d", "1"), ("d", "0.5"), ("n", "1"), ("n", "0.5e0"), ("s", "1"), ("i", "'a'"), ("b", "1")
    )]  # fmt: skip
    return [*columns, *constants, *mixed]


def _memberships() -> list[str]:
    found = []
    for name, kind in COLUMNS.items():
        literals = LITERALS.get(kind)
        if literals:
            found += [
                f"{name} IN ({', '.join(literals)})",
                f"{name} NOT IN ({literals[0]}, NULL)",
                f"{name} BETWEEN {literals[-1]} AND {literals[0]}",
                f"{name} NOT BETWEEN {literals[0]} AND {literals[-1]}",
                f"{name} IN ({literals[0]}, 'another kind', 7)",
            ]
        found += [f"{name} IS NULL", f"{name} IS NOT NULL"]
    for one, two in _pairs():
        found += [f"{one} BETWEEN {two} AND {one}", f"{one} IN ({two}, {one})", f"{one} NOT IN ({two})"]
    return [*found, "pos IS NULL", "nil IS NULL", "absent IS NULL", "nil IN (1, 2)", "d IN (i, n, 1)", "i IN (0.5, 1D)"]


def _of_texts() -> list[str]:
    found = [f"{text} LIKE '{pattern}'" for text in ("s", "lower(t)", "nil") for pattern in _LIKES]
    found += [f"{text} NOT RLIKE '{pattern}'" for text in ("s", "upper(t)", "absent") for pattern in _REGEXES]
    found += [f"{text} IS A 'Quote'" for text in TEXTS]
    for test in ("startswith", "endswith", "contains", "in_cidr"):
        found += [f"{test}({one}, {two})" for one in TEXTS for two in TEXTS]
        found += [f"NOT {test}({one}, {two})" for one, two in (("s", "t"), ("trim(s)", "lower(t)"))]
        found += [f"{test}({literal}, {text})" for text in TEXTS for literal in ("'ab'", "'10.1.2.3'")]
    found += [
        f"{test}({text}, {part})"
        for test in ("startswith", "endswith", "contains")
        for text in TEXTS
        for part in ("'a'", "''", "'é'")
    ]
    found += [f"in_cidr({text}, '{network}')" for text in TEXTS for network in ("10.0.0.0/8", "::/0")]
    for name in ("lower", "upper", "trim"):
        found += [f"{name}({one}) = {two}" for one in TEXTS for two in ("t", "'a'", "lower(s)")]
    return [
        *found,
        "length(s) = length(t)",
        "length(s) > 1",
        "length(nil) = 0",
        "length(lower(s)) = i",
        "s LIKE 'a!%b' ESCAPE '!'",
    ]


def _of_numbers() -> list[str]:
    found = []
    for sign in "+-*/%":
        found += [f"{one} {sign} {two} > 1" for one in NUMBERS for two in NUMBERS]
        found += [
            f"i {sign} 2 = j",
            f"2 {sign} i < j",
            f"n {sign} 0.5 <> m",
            f"d {sign} 0.5e0 >= e",
            f"i {sign} nil IS NULL",
        ]
    for name in NUMBERS:
        found += [f"-{name} < 1", f"abs({name}) > 0.5", f"abs(-{name}) = {name}"]
    for function in ("least", "greatest", "avg"):
        found += [f"{function}({one}, {two}) > 1" for one in NUMBERS for two in NUMBERS]
        found += [f"{function}(i, j, 3) = 3", f"{function}(n, 0.5, m) <= 1", f"{function}(d, 1, n) < e"]
    for function in ("least", "greatest"):
        found += [
            f"{function}({one}, {two}) <=> {one}"
            for one, two in (("s", "t"), ("ts", "us"), ("day", "eve"), ("day", "ts"), ("s", "i"))
        ]
    places = (("d", "e"), ("i", "j"), ("pos.x", "d"), ("n", "m"), ("d", "nil"), ("absent", "i"))
    found += [f"distance({lat}, {lon}, 45.5, 2) < {most}" for lat, lon in places for most in (0, 4800, 20000)]
    found += [f"distance(0, 0, {lat}, {lon}) > 100" for lat, lon in places]
    return [*found, "distance(d, e, i, j) < 5000", "distance(45, 2, 45, 2) = 0"]


def _of_arrays() -> list[str]:
    found = [f"size({array}) = {count}" for array in ARRAYS for count in ("0", "2", "i")]
    for test in ("array_contains", "NOT array_contains"):
        found += [
            f"{test}({one}, {two})"
            for one in ("tags", "more")
            for two in ("s", "t", "'a'", "''", "pos.name", "nil", "absent")
        ]
        found += [
            f"{test}({one}, {two})"
            for one in ("nums", "many", "here")
            for two in ("i", "d", "n", "1", "2D", "0.5", "nil", "absent")
        ]
        found += [
            f"{test}({one}, {two})"
            for one, two in (
                ("array(1, 2, NULL)", "i"),
                ("array('a', 'b')", "s"),
                ("nil", "s"),
                ("absent", "i"),
                ("array(i, j)", "d"),
                ("array(s, t)", "pos.name"),
                ("array()", "s"),
            )
        ]
    for test in ("arrays_overlap", "NOT arrays_overlap"):
        found += [f"{test}({one}, {two})" for one in ARRAYS for two in ARRAYS if one != two]
        found += [
            f"{test}({array}, array({members}))"
            for array in ARRAYS
            for members in ("'a', 'x'", "1, 3", "NULL", "s, t", "i", "")
        ]
    vectors = ("here", "there", "nums", "nil", "array(d, e)", "array(i, j)", "array(3, 0.5)", "array(n, 1)")
    for one in vectors:
        for two in vectors:
            found += [f"euclidean({one}, {two}) < 3", f"cosine({one}, {two}) > 0.5"]
        found += [f"euclidean({one}, array(0, 0), array(1, 2)) < 3", f"euclidean({one}, here, there) > 0"]
    return [*found, "euclidean(here, array(0)) < 3", "cosine(there, array(1, 2, 3)) < 3"]


def _choices() -> list[str]:
    deciding = ("b", "i > 1", "s = 'a' OR c", "nil", "d IS NULL")
    of_numbers = [
        form
        for one, two in (
            ("i", "2"),
            ("d", "0"),
            ("i", "d"),
            ("n", "0.25"),
            ("d", "n"),
            ("nil", "i"),
            ("absent", "0.5D"),
        )
        for form in (f"coalesce({one}, {two})", f"nullif({one}, {two})", f"if(b, {one}, {two})")
    ]
    cases = [f"CASE WHEN {each} THEN i WHEN c THEN d ELSE 9007199254740993 END" for each in deciding]
    texts = ["coalesce(s, t, 'none')", "CASE s WHEN 'a' THEN t WHEN t THEN 'b' END", "if(b, s, 'é')", "nullif(s, t)"]
    return [
        *(f"{each} >= 1" for each in (*of_numbers, *cases)),
        *(f"{each} + {each} < 3" for each in (*of_numbers, *cases)),
        *(f"{each} IS NULL" for each in (*of_numbers, *cases, *texts)),
        *(f"{each} = 'a'" for each in texts),
        *(f"{each} < 'b'" for each in texts),
        "if(b, 2, 0) + CASE WHEN i > 1 THEN 1 ELSE 0 END >= 2",
        "coalesce(i > 1, c, FALSE)",
        "coalesce(day, ts) > DATE '2024-02-29'",
        "size(coalesce(tags, more)) = 2",
        "size(if(b, tags, array('a'))) = 1",
    ]


def _nested() -> list[str]:
    return [
        "b",
        "NOT b",
        "b AND NOT c",
        "b OR c",
        "b XOR c",
        "xor(b, c, i > 1)",
        "NOT (b XOR s = t)",
        "at_least(2, b, c, i < j)",
        "NOT at_least(2, b, nil, s < t)",
        "at_least(0, b)",
        "(s = t) IS NULL",
        "(b AND c) <=> (i < j)",
        "(s < t) = b",
        "(i < j) IN (TRUE)",
        "(contains(s, t) OR array_contains(tags, s)) IS NOT TRUE",
        "least(b, c) <=> (s > t)",
        "NULL OR b",
        "s = t AND startswith(s, t) AND i = j",
        "(d + e) * n > i - j",
        "TRUE",
        "FALSE",
        "NULL",
    ]  # fmt: skip
