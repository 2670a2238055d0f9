"""Conditions and events by the thousand: texts of the language over typed attributes, and values for them.

The texts are made of the leaves of `leaves`, of leaves with literals of their own, and of connectives. Half of the
values come from small pools, so that conditions are met, and half are drawn at large.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.conformance.leaves import COLUMNS, OPERATORS, SMALL, UGLY, leaves

if TYPE_CHECKING:
    from random import Random

_LETTERS = ("a", "b", "c", "A", "B", " ", "é", "😀", "%", "_", ".", "1")
_PIECES = ("a", "b", "ab", "%", "_", "%", "é", "\\\\%", "\\\\_", "T", "1")
_REGEXES = ("a", "b+", "[ab]", "^a", "b$", ".", "\\\\d", "(a|é)", "[^a]", "a?b*", "^.{2}$", "(?i)A")
_UNLIKE = ("ß", "İ", "\0")
"""Texts that DuckDB sees differently: see `lower and upper` among its differences, and it takes no NUL in a literal."""
_EPOCH = dt.datetime(1970, 1, 1)


def event(chance: Random, pools: list[dict[str, list[Any]]], drawn: float) -> dict[str, Any]:
    """Return an event; the share `drawn` of its values comes from no pool."""
    share = chance.choice((0.0, 0.05, 0.2, 0.6))
    found: dict[str, Any] = {"nil": None}
    for name, kind in COLUMNS.items():
        value = None
        if chance.random() >= share:
            value = value_of(kind, chance) if chance.random() < drawn else chance.choice(chance.choice(pools)[kind])
            if isinstance(value, str) and value in _UNLIKE:
                value = "a"
            if isinstance(value, list):
                value = ["a" if element in _UNLIKE else element for element in value]
        *record, field = name.split(".")
        (found.setdefault(record[0], {}) if record else found)[field] = value
    if chance.random() < 0.05:
        found["pos"] = None
    return found


def value_of(kind: str, chance: Random) -> Any:
    """Return any value of a type."""
    match kind:
        case "int":
            return chance.choice(
                (chance.randint(-20, 20), chance.randint(-(2**40), 2**40), chance.getrandbits(64) - 2**63)
            )
        case "double":
            return chance.choice(
                (
                    chance.randint(-20, 20) / 4,
                    chance.uniform(-200, 200),
                    chance.uniform(-1, 1) * 10.0 ** chance.randint(-300, 300),
                )
            )
        case "decimal":
            return Decimal(
                chance.choice((chance.randint(-500, 500), chance.randint(-(10**10) + 1, 10**10 - 1)))
            ).scaleb(-2)
        case "string":
            return "".join(chance.choices(_LETTERS, k=chance.randint(0, 4)))
        case "boolean":
            return chance.random() < 0.5
        case "date":
            return dt.date(1970, 1, 1) + dt.timedelta(days=chance.randint(-700_000, 2_900_000))
        case "timestamp":
            return _EPOCH + dt.timedelta(microseconds=chance.randint(-(9 * 10**15), 9 * 10**15))
    element = kind.removeprefix("array<").removesuffix(">")
    size = chance.randint(0, 4)
    return [None if chance.random() < 0.15 else value_of(element, chance) for _ in range(size)]


def literal(kind: str, chance: Random) -> str:
    """Return the text of a literal of a type."""
    pool = [value for values in (SMALL, UGLY) for value in values[kind] if value not in _UNLIKE]
    value = chance.choice(pool) if chance.random() < 0.6 else value_of(kind, chance)
    match kind:
        case "double":
            return f"double('{value}')" if value != value or value in (float("inf"), float("-inf")) else f"{value!r}D"
        case "string":
            return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
        case "boolean":
            return str(value).upper()
        case "date":
            return f"DATE '{value.isoformat()}'"
        case "timestamp":
            return f"TIMESTAMP '{value.isoformat(' ')}'"
    return str(value)


class Conditions:
    """A generator of conditions."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._leaves = leaves()
        self._scalars = [(name, kind) for name, kind in COLUMNS.items() if not kind.startswith("array")]

    def condition(self, depth: int) -> str:
        chance = self._chance
        if depth == 0 or chance.random() < 0.2:
            return self.leaf()
        parts = [f"({self.condition(depth - 1)})" for _ in range(chance.randint(2, 4))]
        match chance.randrange(10):
            case 0:
                return f"NOT {parts[0]}"
            case 1:
                return f"xor({', '.join(parts)})"
            case 2:
                return f"at_least({chance.randint(0, len(parts))}, {', '.join(parts)})"
            case 3:
                return f"{parts[0]} IS {chance.choice(('', 'NOT '))}{chance.choice(('TRUE', 'FALSE', 'UNKNOWN'))}"
            case 4 | 5 | 6:
                return " AND ".join(parts)
        return " OR ".join(parts)

    def leaf(self) -> str:
        return self._chance.choice(self._leaves) if self._chance.random() < 0.5 else self.fresh_leaf()

    def fresh_leaf(self) -> str:
        """Return a leaf with literals of its own."""
        chance = self._chance
        name, kind = chance.choice(self._scalars)
        if kind == "string" and chance.random() < 0.5:
            match chance.randrange(4):
                case 0:
                    return f"{name} LIKE '{''.join(chance.choices(_PIECES, k=chance.randint(0, 4)))}'"
                case 1:
                    return f"{name} RLIKE '{''.join(chance.choices(_REGEXES, k=chance.randint(1, 2)))}'"
                case 2:
                    return f"{chance.choice(('startswith', 'endswith', 'contains'))}({name}, {literal(kind, chance)})"
            return f"array_contains(tags, {literal(kind, chance)})"
        match chance.randrange(6):
            case 0:
                members = ", ".join(literal(kind, chance) for _ in range(chance.randint(1, 5)))
                return f"{name} {chance.choice(('', 'NOT '))}IN ({members})"
            case 1:
                return f"{name} BETWEEN {literal(kind, chance)} AND {literal(kind, chance)}"
            case 2 if kind in ("int", "double", "decimal"):
                sign = chance.choice("+-*/%")
                return f"{name} {sign} {literal(kind, chance)} {chance.choice(OPERATORS)} {literal(kind, chance)}"
        return f"{name} {chance.choice(OPERATORS)} {literal(kind, chance)}"
