"""How fast is a text parsed, beside sqlglot on the same texts?

Our parser remembers simple predicates it has seen. `cold` forgets them before every pass, as if no two
subscriptions had a predicate in common; `warm` is a system that has seen such texts before.
"""

from __future__ import annotations

from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, Any

import sqlglot

import tamis
from tamis.language import parser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ATTRIBUTES = ("price", "bids", "category", "title", "author", "seller.rating", "ending_within", "format", "condition")
LEAST_RATIO = 5
"""What we promise: at least this many times as fast as sqlglot, on texts that were never seen before."""


def texts(count: int, seed: int) -> list[str]:
    """Return subscriptions of 5 to 12 predicates."""
    chance = Random(seed)
    return [_text(chance.randint(5, 12), chance) for _ in range(count)]


def _text(predicates: int, chance: Random) -> str:
    if predicates == 1:
        return _predicate(chance)
    left = chance.randrange(1, predicates)
    operator = chance.choice(["AND", "AND", "OR"])
    one, two = _text(left, chance), _text(predicates - left, chance)
    return f"({one}) {operator} {two}" if chance.random() < 0.4 else f"{one} {operator} {two}"


def _predicate(chance: Random) -> str:
    name = chance.choice(ATTRIBUTES)
    match chance.randrange(10):
        case 0:
            return f"{name} BETWEEN {chance.randrange(50)} AND {chance.randrange(50, 100)}"
        case 1:
            return f"{name} IN ({', '.join(repr(f'v{chance.randrange(1000)}') for _ in range(chance.randint(2, 5)))})"
        case 2:
            return f"{name} LIKE '{chance.choice(['The', 'A', 'My'])} {chance.randrange(1000)}%'"
        case 3:
            return f"{name} IS NOT NULL"
        case 4:
            return f"NOT {name} = {chance.randrange(1000)}"
        case 5 | 6:
            return f"{name} {chance.choice(['=', '<>'])} 'w{chance.randrange(10_000)}'"
        case _:
            return f"{name} {chance.choice(['<', '<=', '>', '>=', '='])} {chance.randrange(100_000) / 100}"


def parsing(text_count: int = 1_000, passes: int = 5, seed: int = 1) -> Iterator[dict[str, Any]]:
    """Yield microseconds per text for each parser, and how many times as fast as sqlglot it is."""
    generated = texts(text_count, seed)

    def cold() -> int:
        parser._simple_predicates.clear()
        return sum(tamis.parse(text) is not None for text in generated)

    def warm() -> int:
        return sum(tamis.parse(text) is not None for text in generated)

    def others() -> int:
        return sum(sqlglot.parse_one(text, into=sqlglot.exp.Condition) is not None for text in generated)

    runs: dict[str, Callable[[], int]] = {"tamis, cold": cold, "tamis, warm": warm, "sqlglot": others}
    best: dict[str, float] = {}
    parsed: dict[str, int] = {}
    for _ in range(passes):  # interleaved, so that a busy moment hits all of them
        for name, run in runs.items():
            start = perf_counter()
            parsed[name] = run()
            best[name] = min(best.get(name, float("inf")), perf_counter() - start)
    for name, elapsed in best.items():
        yield {
            "parser": name,
            "text_us": elapsed / text_count * 1e6,
            "times_as_fast_as_sqlglot": best["sqlglot"] / elapsed,
            "parsed": parsed[name],
        }
