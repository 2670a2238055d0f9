"""Which conditions must be true for a sum of weights to be large enough? Weighted partial matches as trees.

`if(a, 2, 0) + if(b, 1, 0) + if(c, 1, 0) >= 2` asks nothing of the event but which of `a`, `b` and `c` are true. If more
of them being true never makes it false, it is a monotone tree over them, `a OR b AND c`, which matchers index as they
index every other; a sum they would have to compute for each subscription and each event. If a weight is negative, as in
`if(a, 2, 0) - if(b, 1, 0) >= 2`, some of them must not be true: `a AND b IS NOT TRUE`.

What it becomes is true for the same events, and no more than that: use it where nobody asks for false.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING

from tamis.language.expressions import (
    FALSE,
    TRUE,
    AtLeast,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    Literal,
    Not,
    as_condition,
)
from tamis.language.functions import function_of
from tamis.language.meaning import truth
from tamis.language.measures import size
from tamis.language.rewrites.junctions import conjunction, disjunction

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_CONDITIONS = 6
_MOST_NODES = 64
"""Of a predicate without its conditions, and of each condition, which the tree may have more than once."""
_MOST_ALTERNATIVES = 8
"""More than so many ways to have enough of them are counted; fewer are asked one by one, which is quicker."""
_CHOOSING = frozenset({"case", "if"})


def weighed(predicate: Expression) -> Expression | None:
    """Return a tree over the conditions that alone decide a predicate; None if something else has a say in it.

    >>> import tamis
    >>> print(weighed(tamis.parse("if(a, 2, 0) + bids >= 2")))
    None
    >>> print(weighed(tamis.parse("if(a, 2, 0) + if(b = 1, 1, 0) + CASE WHEN c THEN 1 ELSE 0 END >= 2")))
    a OR b = 1 AND c
    >>> print(weighed(tamis.parse("if(a, 2, 0) - if(b = 1, 1, 0) >= 2")))
    a AND NOT b = 1 <=> TRUE
    """
    if not isinstance(predicate, Compare | Between | In) or not any(type(each) is Call for each in predicate.children):
        return None
    conditions: dict[Expression, Attribute] = {}
    shape = _shape(predicate, conditions)
    if shape is None or not conditions:
        return None
    is_true = _truths(shape, len(conditions))
    needed = _needed(is_true)
    if needed is not None:
        return _tree(needed, list(conditions))
    alternatives = _alternatives(is_true)
    return None if alternatives is None else _choice(alternatives, list(conditions))


def _shape(predicate: Expression, conditions: dict[Expression, Attribute]) -> Expression | None:
    """Return a predicate with attributes `0`, `1`, … for its conditions; None if it has anything else but literals."""
    budget = _MOST_NODES

    def shaped(node: Expression) -> Expression | None:
        nonlocal budget
        budget -= 1
        if isinstance(node, Literal):
            return node
        if budget < 0 or not isinstance(node, Call):
            return None
        deciding = function_of(node.function).deciding(len(node.arguments)) if node.function in _CHOOSING else ()
        arguments: list[Expression] = []
        for index, argument in enumerate(node.arguments):
            inner = named(argument) if index in deciding else shaped(argument)
            if inner is None:
                return None
            arguments.append(inner)
        return Call(node.function, tuple(arguments))

    def named(condition: Expression) -> Expression | None:
        stands = as_condition(condition)
        if stands is None or isinstance(stands, Literal):
            return stands
        if stands not in conditions and (len(conditions) == _MOST_CONDITIONS or size(stands) > _MOST_NODES):
            return None
        return conditions.setdefault(stands, Attribute((str(len(conditions)),)))

    children = []
    for child in predicate.children:
        inner = shaped(child)
        if inner is None:
            return None
        children.append(inner)
    return predicate.with_children(tuple(children))


@lru_cache(1 << 14)
def _truths(shape: Expression, count: int) -> tuple[bool, ...]:
    """Return whether a shape is true for each set of conditions that are, which are the bits of its number."""
    return tuple(
        truth(shape, {str(index): bool(some >> index & 1) for index in range(count)}) is True
        for some in range(1 << count)
    )


@lru_cache(1 << 14)
def _needed(is_true: tuple[bool, ...]) -> tuple[tuple[int, ...], ...] | None:
    """Return the least sets of conditions that make it true; None if one more may make it false again."""
    count = len(is_true).bit_length() - 1
    least: list[int] = []
    for some in sorted(range(1 << count), key=int.bit_count):
        if is_true[some]:
            if not all(is_true[some | 1 << index] for index in range(count)):
                return None
            if not any(each & some == each for each in least):
                least.append(some)
    return tuple(tuple(index for index in range(count) if some >> index & 1) for some in least)


@lru_cache(1 << 14)
def _alternatives(is_true: tuple[bool, ...]) -> tuple[tuple[int, int], ...] | None:
    """Return of some alternatives which conditions each asks for, and which of these must be true, as bits.

    They are prime implicants, the shortest that cover what is still open; None if there are too many.
    """
    whole = range(len(is_true))
    open_sets = {some for some in whole if is_true[some]}
    chosen: list[tuple[int, int]] = []
    for asked in sorted(whole, key=int.bit_count):
        for wanted in sorted({some & asked for some in open_sets}):
            covered = {some for some in whole if some & asked == wanted}
            if covered & open_sets and all(is_true[some] for some in covered):
                chosen.append((asked, wanted))
                open_sets -= covered
        if not open_sets:
            return tuple(chosen) if len(chosen) <= _MOST_ALTERNATIVES else None
    return None


def _choice(alternatives: Sequence[tuple[int, int]], conditions: list[Expression]) -> Expression:
    """Return a tree of alternatives, in which a condition that must not be true may be unknown."""
    return disjunction(
        conjunction(
            condition if wanted >> index & 1 else Not(Compare("<=>", condition, TRUE))
            for index, condition in enumerate(conditions)
            if asked >> index & 1
        )
        for asked, wanted in alternatives
    )


def _tree(needed: Sequence[tuple[int, ...]], conditions: list[Expression]) -> Expression:
    if not needed:
        return FALSE
    if not needed[0]:
        return TRUE
    everyone = sorted({index for each in needed for index in each})
    count = len(needed[0])
    are_all = len(needed) == comb(len(everyone), count) and all(len(each) == count for each in needed)
    if are_all and len(needed) > _MOST_ALTERNATIVES:
        return AtLeast(count, tuple(conditions[index] for index in everyone))
    return disjunction(conjunction(conditions[index] for index in each) for each in needed)
