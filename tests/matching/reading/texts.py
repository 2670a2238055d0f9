"""Texts of conditions as people write them, and as they get them wrong."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

NAMES = (
    "price",
    "bids",
    "a",
    "_x1",
    "seller.rating",
    "`odd name`",
    "`a``b`.c",
    "x.`é`",
    "date",
    "unknown",
    "when",
    "Title",
    "a.and",
)
STRINGS = (
    "'x'",
    "''",
    "'it''s'",
    '"dear"',
    r"'a\n\'b'",
    "'é😀'",
    r"'\u00e9'",
    r"'\uD800'",
    "'%a_'",
    "r'raw'",
    "'a' 'b'",
    r"'\\'",
)
NUMBERS = (
    "5", "-5", "0", "007", "123456789012345", "1234567890123456", "9223372036854775808", "5.0", "-0.0", ".5", "5.",
    "1e3", "1.5E-3", "5D", "5BD", "300Y", "5L", "1e400", "+7", "- 7", "1x", "9" * 40,
)  # fmt: skip
TIMES = ("DATE '2024-02-29'", "date '2024-02-30'", "TIMESTAMP '2024-02-29 12:00:00'", "timestamp'2024-02-29'", "DATE 5")
COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "=<", "!")
ODD = (
    "lower(a) = 'x'", "a + 1 < 5", "5 < a", "a < b", "a = NULL", "a = TRUE", "a IN (b, 1)", "a IN ()", "a IN (NULL, 1)",
    "a BETWEEN b AND 5", "a BETWEEN 1 AND 'x'", "a BETWEEN 1 AND 2e0", "a IN (1, 'x')", "a IN (1, 2e0)", "TRUE", "NULL",
    "a = 1 = b", "a IS NULL IS NULL", "(a) = 3", "(a = 1) = b", "a -- comment", "a /* b */ = 1", "CASE WHEN a THEN b END",
    "a IS DISTINCT FROM 5", "double('NaN') = a", "size(a) > 2", "a.b.c", "a . b = 1", "é = 1", "a\u00a0= 1", "a=1AND b",
    "xor", "at_least", "xor(a)", "at_least(2)", "at_least(-1, a)", "at_least(1.5, a)", "at_least(0, a)", "(a, b)", "a,b",
    "a = double('NaN')", "a RLIKE '('", "a LIKE 'x' ESCAPE 'yy'", "a LIKE b", "``", "`a", "'x", "a = 'x", "\ud800 = 1",
)  # fmt: skip
_SNIPPETS = (
    " ", "\n", "(", ")", ",", "'", '"', "`", "\\", ".", "-", "--", "/*", "1", "e", "AND", "NOT", " or ", "XOR", "IN", "IS",
    "NULL", "LIKE", "BETWEEN", "=", "<", ">", "!", "é", "\x1f", "\u2028", "%", "r'", "A", "DATE", "5D", "at_least(", "xor(",
)  # fmt: skip


def predicate(chance: Random) -> str:
    """Return a predicate, written one way or another."""
    name = chance.choice(NAMES)

    def literal() -> str:
        return chance.choice(chance.choice((STRINGS, NUMBERS, NUMBERS[:9], TIMES)))

    kind = chance.randrange(12)
    if kind < 4:
        return f"{name}{space(chance, 0)}{chance.choice(COMPARISONS)}{space(chance, 0)}{literal()}"
    if kind == 4:
        return f"{name}{_negation(chance)}{word('between', chance)}{space(chance)}{literal()} {word('and', chance)} {literal()}"
    if kind < 7:
        pool = chance.choice((STRINGS[:4], NUMBERS[:5], (literal(), literal())))
        members = f"{space(chance, 0)},{space(chance, 0)}".join(
            chance.choice(pool) for _ in range(chance.randint(1, 4))
        )
        return f"{name}{_negation(chance)}{word('in', chance)}{space(chance, 0)}({members})"
    if kind == 7:
        operator = chance.choice(("like", "rlike", "regexp"))
        escape = chance.choice(("", "", " ESCAPE '!'"))
        return f"{name}{_negation(chance)}{word(operator, chance)}{space(chance)}{chance.choice(STRINGS)}{escape}"
    if kind == 8:
        what = chance.choice(("null", "true", "false", "unknown", "a 'T'", "nothing"))
        return f"{name} {word('is', chance)}{_negation(chance)}{what}"
    if kind == 9:
        return chance.choice(ODD)
    return name


def condition(chance: Random, depth: int = 3) -> str:
    """Return a condition, written one way or another."""
    kind = chance.randrange(8) if depth else 7
    if kind < 4:
        connective = chance.choice(("and", "or", "xor", "and"))
        parts = [condition(chance, depth - 1) for _ in range(chance.randint(2, 4))]
        return f"{space(chance)}{word(connective, chance)}{space(chance)}".join(parts)
    if kind == 4:
        return f"({space(chance, 0)}{condition(chance, depth - 1)}{space(chance, 0)})"
    if kind == 5:
        return f"{word('not', chance)} {condition(chance, depth - 1)}"
    if kind == 6:
        parts = ", ".join(condition(chance, depth - 1) for _ in range(chance.randint(1, 3)))
        return (
            f"xor({parts})" if chance.random() < 0.4 else f"at_least{space(chance, 0)}({chance.randint(0, 3)}, {parts})"
        )
    return predicate(chance)


def mutated(text: str, chance: Random) -> str:
    """Return a text with a mistake or a few: a piece gone, doubled, moved or put in."""
    for _ in range(chance.randint(1, 3)):
        first, last = sorted(chance.randint(0, len(text)) for _ in range(2))
        last = min(last, first + 8)
        text = chance.choice(
            (
                text[:first] + text[last:],
                text[:last] + text[first:],
                text[:first] + chance.choice(_SNIPPETS) + text[first:],
                text[:first] + chance.choice(_SNIPPETS) + text[last:],
                text[:first].upper() + text[first:],
            )
        )
    return text


def space(chance: Random, least: int = 1) -> str:
    """Return white space."""
    return chance.choice(("", " ", " ", "  ", "\n", "\t ")[0 if least == 0 else 1 :])


def word(text: str, chance: Random) -> str:
    """Return a keyword in one of its spellings."""
    return chance.choice((text, text.upper(), text.upper(), text.title()))


def _negation(chance: Random) -> str:
    return f" {word('not', chance)} " if chance.random() < 0.3 else " "


def of_the_docs() -> list[str]:
    """Return the conditions of the page that defines the language."""
    page = (Path(__file__).parents[3] / "docs" / "language.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```tamis(?:-beyond)?\n(.*?)```", page, re.DOTALL)
    return [re.split(r"\s{2,}\{", line)[0] for block in blocks for line in block.splitlines() if line.strip()]
