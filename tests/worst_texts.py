"""The worst texts within the limits of the language: short to write, and hard on whoever takes them apart.

Each has a size. At `size` it is as bad as the limits allow, or as bad as it needs to be to stall what takes the tree
of a rewritten expression for granted: a budget, the shared graph, or a typed error is what it takes. At `small` it is
so small that every combination of its attributes can be tried, and a plain evaluation is quick.

The attributes are p0, p1, ... (Booleans), a0, a1, ..., x, y, z (numbers), s, t (texts) and tags (texts); `event` draws
values for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


LONG = 60_000
"""Characters of a text that takes seconds even where the work is in proportion to its length."""


@dataclass(frozen=True, slots=True)
class WorstText:
    """A text by its size."""

    name: str
    text: Callable[[int], str]
    size: int
    small: int

    @property
    def worst(self) -> str:
        """The text at its worst."""
        return self.text(self.size)

    @property
    def bad(self) -> str:
        """The text, a tenth as long where it is a long one: what grows faster than its text shows there too."""
        return self.worst if len(self.worst) < LONG else self.text(self.size // 10 or 1)

    @property
    def tame(self) -> str:
        """The same kind of text, small enough for plain evaluation."""
        return self.text(self.small)


def event(chance: Random, flags: int = 300) -> dict[str, Any]:
    """Return an event over the attributes of the texts; in every other one some are absent or NULL."""
    values: dict[str, Any] = {f"p{number}": chance.random() < 0.5 for number in range(flags)}
    for name in ("x", "y", "z"):
        values[name] = chance.choice([0, 1, 2, 3, 7, -1, 2.5, float("nan"), 10**6])
    for name in ("s", "t"):
        values[name] = chance.choice(["", "a", "b", "ab", "aab", "1231", "aaa", "a" * 30, "a" * 30 + "b"])
    for number in range(8):
        values[f"a{number}"] = number + chance.choice([0, 0, 0, -1, 1])
    values["tags"] = chance.choice([[], ["a"], ["a", "b", "1"]])
    if chance.random() < 0.5:
        for name in list(values):
            fate = chance.random()
            if fate < 0.1:
                del values[name]
            elif fate < 0.15:
                values[name] = None
    return values


def _nested(opening: Callable[[int], str], depth: int, innermost: str) -> str:
    """Return each level around the next; what closes is one parenthesis each."""
    return "".join(map(opening, range(depth))) + innermost + ")" * depth


def _flags(count: int, first: int = 0) -> str:
    return ", ".join(f"p{number}" for number in range(first, first + count))


# -- XOR: negation normal form holds both polarities of each operand, so its tree doubles with each level.


def nested_xor(depth: int) -> str:
    return _nested(lambda level: f"(p{level} XOR ", depth, f"p{depth}")


def nested_negated_xor(depth: int) -> str:
    return _nested(lambda level: f"NOT (p{level} XOR ", depth, f"p{depth}")


def nested_xor_under_and(depth: int) -> str:
    return _nested(lambda level: f"(p{level} XOR (x > {level} AND ", depth, f"p{depth}") + ")" * depth


def nested_xor_beside_a_key(depth: int) -> str:
    return f"x = 7 AND {nested_xor(depth)}"


def wide_xor(count: int) -> str:
    return " XOR ".join(f"p{number}" for number in range(count))


def xor_of_counts(count: int) -> str:
    return " XOR ".join(f"at_least(5, {_flags(10, number)})" for number in range(count))


def nested_xor_of_counts(depth: int) -> str:
    return _nested(lambda level: f"(at_least(2, {_flags(3, level)}) XOR ", depth, f"p{depth}")


# -- Counting: a program of jumps has a row for each number that is still needed.


def nested_counts(depth: int) -> str:
    return _nested(lambda level: f"at_least(2, p{level}, p{level + 1}, ", depth, f"p{depth}")


def nested_wide_counts(depth: int) -> str:
    return _nested(lambda level: f"at_least(4, {_flags(7, level)}, ", depth, f"p{depth}")


def wide_count(count: int) -> str:
    return f"at_least({count // 2}, " + ", ".join(f"x > {number}" for number in range(count)) + ")"


def counts_of_counts(count: int) -> str:
    inner = ", ".join(f"at_least({count // 2}, {_flags(count, number)})" for number in range(count))
    return f"at_least({count // 2}, {inner})"


def counts_of_sums(count: int) -> str:
    inner = ", ".join(f"(p{number} OR x > {number} AND p{number + 1})" for number in range(count))
    return f"at_least({count // 2}, {inner})"


# -- Width and depth


def conjunction_of_disjunctions(count: int) -> str:
    return " AND ".join(f"(p{number} OR x > {number})" for number in range(count))


def disjunction_of_conjunctions(count: int) -> str:
    return " OR ".join(f"p{number % 40} AND x > {number}" for number in range(count))


def alternating(depth: int) -> str:
    return _nested(lambda level: f"(p{level} {'AND' if level % 2 else 'OR'} ", depth, f"p{depth}")


def balanced_alternation(depth: int) -> str:
    """A full binary tree of AND and OR."""

    def tree(depth: int, number: int) -> str:
        if depth == 0:
            return f"p{number % 40}"
        left, right = tree(depth - 1, 2 * number), tree(depth - 1, 2 * number + 1)
        return f"({left} {'AND' if depth % 2 else 'OR'} NOT {right})"

    return tree(depth, 1)


def many_negations(depth: int) -> str:
    return "NOT " * depth + "p0"


def wide_conjunction(count: int) -> str:
    return " AND ".join(f"a{number} = {number}" for number in range(count))


def wide_disjunction(count: int) -> str:
    return " OR ".join(f"a{number} > {number}" for number in range(count))


def many_exceptions(count: int) -> str:
    return " AND ".join(f"x <> {3 * number}" for number in range(count))


def long_lists(count: int) -> str:
    members = ", ".join(map(str, range(0, 2 * count, 2)))
    return f"x IN ({members}) OR y NOT IN ({members})"


def nested_truths(depth: int) -> str:
    """Conditions compared with conditions: no connective, so nothing takes them apart."""
    return _nested(lambda level: f"(p{level} <=> ", depth, f"p{depth}")


def truths_of_xors(depth: int) -> str:
    return f"({nested_xor(depth)}) <=> ({nested_counts(depth)})"


# -- Terms


def deep_sum(depth: int) -> str:
    return _nested(lambda level: "(x + ", depth, "y") + " > 5"


def wide_greatest(count: int) -> str:
    return f"greatest({', '.join(f'x + {number}' for number in range(count))}) > 5"


def wildcards(count: int) -> str:
    return f"s LIKE '{'%a' * count}%b'"


def repeated_alternatives(count: int) -> str:
    return f"s RLIKE '^({'(a|a)?' * count}){'a' * count}b?$'"


def many_patterns(count: int) -> str:
    return " OR ".join(f"s LIKE '%{number}%{number}%'" for number in range(count))


WORST_TEXTS = (
    WorstText("nested XOR", nested_xor, 240, 6),
    WorstText("nested negated XOR", nested_negated_xor, 110, 6),
    WorstText("nested XOR and AND", nested_xor_under_and, 110, 5),
    WorstText("nested XOR beside a key", nested_xor_beside_a_key, 240, 6),
    WorstText("wide XOR", wide_xor, 20_000, 7),
    WorstText("XOR of counts", xor_of_counts, 12, 3),
    WorstText("nested XOR of counts", nested_xor_of_counts, 120, 4),
    WorstText("nested counts", nested_counts, 240, 5),
    WorstText("nested wide counts", nested_wide_counts, 240, 3),
    WorstText("wide count", wide_count, 20_000, 8),
    WorstText("counts of counts", counts_of_counts, 100, 4),
    WorstText("counts of sums", counts_of_sums, 10_000, 6),
    WorstText("AND of ORs", conjunction_of_disjunctions, 15_000, 6),
    WorstText("OR of ANDs", disjunction_of_conjunctions, 15_000, 6),
    WorstText("AND and OR by turns", alternating, 240, 8),
    WorstText("full tree of AND and OR", balanced_alternation, 12, 4),
    WorstText("many NOTs", many_negations, 249, 5),
    WorstText("wide AND", wide_conjunction, 30_000, 5),
    WorstText("wide OR", wide_disjunction, 30_000, 5),
    WorstText("many exceptions", many_exceptions, 30_000, 5),
    WorstText("long lists", long_lists, 60_000, 5),
    WorstText("truth of truth", nested_truths, 240, 6),
    WorstText("truth of XOR", truths_of_xors, 110, 4),
    WorstText("deep sum", deep_sum, 240, 5),
    WorstText("wide greatest", wide_greatest, 20_000, 5),
    WorstText("many wildcards", wildcards, 900, 3),
    WorstText("regular expression that would back-track", repeated_alternatives, 100, 3),
    WorstText("many patterns", many_patterns, 10_000, 5),
)
