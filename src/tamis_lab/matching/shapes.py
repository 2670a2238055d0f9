"""What does a subscription look like, apart from what its predicates ask?

Its *shape* is its tree of AND and OR without the predicates, and the predicates are a list beside it. A million
subscriptions have a few shapes, because people fill in forms: so what depends on the shape alone (the disjunctive
normal form, the least hits, the sizes) is found once for each shape.

    price < 20 AND (new OR signed AND bids = 0)

    shape        01 02  04  02 02  04  01 02  04  04          01 AND, 02 OR, each with how many operands; 04 a predicate
    predicates          price < 20  new     signed  bids = 0

Only AND and OR over predicates are left: NOT goes into the predicates, XOR and `at_least` are written out, constants
are folded, nested ANDs are one. What would become too large is refused.

Source: Bittner 2008, section 4.2.1 (docs/bibliography.md); the codes are those of the tree encoding, section 4.2.2.
Departs: `at_least` is split in halves, OR over how many hold in each, which is far shorter than all combinations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.errors import BudgetError
from tamis.language.expressions import (
    CONNECTIVES,
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    AtLeast,
    Expression,
    Literal,
    Not,
    Or,
    Xor,
    fold_shared,
)
from tamis.language.rewrites import flatten, fold_constants, nnf
from tamis.language.rewrites.disjunctive import DEFAULT_BUDGET
from tamis.language.rewrites.junctions import conjunction, disjunction
from tamis.matching.errors import UnsupportedExpressionError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

ALL, ANY, LEAF = 1, 2, 4
"""The codes of AND, OR and a predicate."""
ALWAYS, NEVER = b"\x05", b"\x06"
"""The shapes of TRUE and FALSE, which no larger shape has inside."""
MOST_CHILDREN = 255
MOST_PREDICATES = 2**16 - 1
"""By occurrence: counters of hits have 16 bits at most."""
_LEAF = bytes([LEAF])
_HEADS = {operator: [bytes([operator, count]) for count in range(MOST_CHILDREN + 1)] for operator in (ALL, ANY)}
_OPERATORS: dict[type, int] = {And: ALL, Or: ANY}
_REWRITTEN = frozenset({Xor, AtLeast, Literal})
_TURNED = frozenset({And, Or, Not})

Conjunctions = tuple[tuple[int, ...], ...]
"""The conjunctions of a disjunctive normal form, each a tuple of positions in the list of predicates."""


@dataclass(frozen=True, slots=True)
class Shaped:
    """A condition as its shape and its predicates, in order and by occurrence."""

    shape: bytes
    predicates: tuple[Expression, ...]


def shaped(expression: Expression, algorithm: str, budget: int = DEFAULT_BUDGET) -> Shaped:
    """Take a condition apart, for an algorithm that is named where it has to be refused.

    >>> from tamis.language import parse
    >>> found = shaped(parse("price < 20 AND NOT (sold OR bids > 3 AND old)"), "boolean")
    >>> found.shape.hex(" ")
    '01 03 04 04 02 02 04 04'
    >>> [str(predicate) for predicate in found.predicates]
    ['price < 20', 'sold = FALSE', 'bids <= 3', 'old = FALSE']
    """
    try:
        tree = _apart(expression)
        if tree is None:
            rewritten = _positive(expression, budget)
            if rewritten in (TRUE, FALSE):
                return Shaped(ALWAYS if rewritten == TRUE else NEVER, ())
            tree = _apart(rewritten)
            assert tree is not None, "only AND, OR and predicates are left"
    except BudgetError as error:
        reason = f"as a tree of AND and OR it would have more than {error.budget:,} predicates"
        raise UnsupportedExpressionError(algorithm, reason) from None
    return tree


def _apart(root: Expression) -> Shaped | None:
    """Take a tree of AND, OR and NOT apart; None where there is something else above the predicates."""
    predicates: list[Expression] = []
    parts: list[bytes] = []
    operator, operands, is_negated = 0, iter((root,)), False
    outer: list[tuple[int, Any, bool, list[bytes] | None]] = []
    while True:
        for node in operands:
            kind = type(node)
            is_turned = is_negated
            while kind is Not and type(node.value) in _TURNED:  # type: ignore[attr-defined]
                node, is_turned = node.value, not is_turned  # type: ignore[attr-defined]
                kind = type(node)
            below = _OPERATORS.get(kind)
            if below is not None:
                if is_turned:
                    below = ALL + ANY - below  # De Morgan
                # An AND inside an AND goes on with the same list.
                outer.append((operator, operands, is_negated, None if below == operator else parts))
                parts = parts if below == operator else []
                operator, operands, is_negated = below, iter(node.operands), is_turned  # type: ignore[attr-defined]
                break
            if kind in _REWRITTEN or (kind is Not and type(node.value) in _REWRITTEN):  # type: ignore[attr-defined]
                return None
            predicates.append(_negated(node) if is_turned else node)
            parts.append(_LEAF)
            if len(predicates) > MOST_PREDICATES:
                raise BudgetError("a tree of AND and OR", MOST_PREDICATES)
        else:
            if not outer:
                return Shaped(parts[0], tuple(predicates))
            above, operands, is_negated, waiting = outer.pop()
            if waiting is not None:
                waiting.append(_node(operator, parts))
                parts = waiting
            operator = above


@lru_cache(maxsize=1 << 16)
def _negated(predicate: Expression) -> Expression:
    """Return the predicate that is true where this one is false; the same object for the same predicate."""
    return nnf(Not(predicate))


def _node(operator: int, parts: list[bytes]) -> bytes:
    """Join the shapes below an operator; more than 255 become several nodes, which changes nothing but the size."""
    while len(parts) > MOST_CHILDREN:
        groups = [parts[begin : begin + MOST_CHILDREN] for begin in range(0, len(parts), MOST_CHILDREN)]
        parts = [group[0] if len(group) == 1 else _node(operator, group) for group in groups]
    return _HEADS[operator][len(parts)] + b"".join(parts)


# -- What is not AND and OR yet


def _positive(expression: Expression, budget: int) -> Expression:
    """Return AND and OR over predicates, true for the same events; a BudgetError where that would be too large."""
    # In negation normal form unknown may be read as false, and then folded away.
    known = fold_shared(fold_constants(nnf(expression)), _without_unknown)
    written, _ = fold_shared(fold_constants(known), lambda node, below: _written_out(node, below, budget))
    return flatten(fold_constants(written))


def _without_unknown(node: Expression, below: list[Expression]) -> Expression:
    if node == UNKNOWN:
        return FALSE
    return node.with_children(tuple(below)) if below and isinstance(node, CONNECTIVES) else node


_Weighed = tuple[Expression, int]
"""An expression, and how many predicates its tree has."""


def _written_out(node: Expression, below: list[_Weighed], budget: int) -> _Weighed:
    match node:
        case And() | Or():
            children = tuple(child for child, _ in below)
            weighed: _Weighed = node.with_children(children), sum(weight for _, weight in below)
        case AtLeast(count):
            weighed = _at_least(count, below, budget, {})
        case Literal():
            return node, 0
        case _:
            return node, 1
    if weighed[1] > budget:
        raise BudgetError("writing XOR and at_least out", budget)
    return weighed


def _at_least(
    count: int, operands: list[_Weighed], budget: int, known: dict[tuple[int, int, int], _Weighed], first: int = 0
) -> _Weighed:
    """At least so many of the operands: for some split of the count, so many on the left and the rest on the right."""
    last = first + len(operands)
    if (first, last, count) in known:
        return known[first, last, count]
    weight = sum(each for _, each in operands)
    if count == 1 or count == len(operands):
        way = (disjunction if count == 1 else conjunction)(child for child, _ in operands), weight
    else:
        middle = len(operands) // 2
        left, right = operands[:middle], operands[middle:]
        ways, weight = [], 0
        for on_left in range(max(0, count - len(right)), min(count, len(left)) + 1):
            halves = []
            if on_left:
                halves.append(_at_least(on_left, left, budget, known, first))
            if count - on_left:
                halves.append(_at_least(count - on_left, right, budget, known, first + middle))
            ways.append(conjunction(child for child, _ in halves))
            weight += sum(each for _, each in halves)
            if weight > budget:
                raise BudgetError("writing at_least out", budget)
        way = disjunction(ways), weight
    known[first, last, count] = way
    return way


# -- What the shape alone decides


def fold_shape(shape: bytes, leaf: Callable[[int], T], join: Callable[[int, list[T]], T]) -> T:
    """Compute a value bottom-up: `leaf(position)` of predicates, `join(operator, values)` of AND and OR."""
    open_nodes: list[tuple[int, int, list[T]]] = []
    at = position = 0
    while True:
        if shape[at] == LEAF:
            value = leaf(position)
            position += 1
            at += 1
        else:
            open_nodes.append((shape[at], shape[at + 1], []))
            at += 2
            continue
        while open_nodes:
            operator, count, values = open_nodes[-1]
            values.append(value)
            if len(values) < count:
                break
            open_nodes.pop()
            value = join(operator, values)
        else:
            return value


@lru_cache(maxsize=4096)
def least_hits(shape: bytes) -> int:
    """Return p_min: the fewest true predicates, by occurrence, with which a tree of this shape can be true.

    >>> from tamis.language import parse
    >>> least_hits(shaped(parse("price < 20 AND (format = 'hardcover' OR condition = 'new')"), "boolean").shape)
    2
    """
    if shape in (ALWAYS, NEVER):
        return 0 if shape == ALWAYS else 1

    def join(operator: int, hits: list[int]) -> int:
        return sum(hits) if operator == ALL else min(hits)

    return fold_shape(shape, lambda _: 1, join)


@lru_cache(maxsize=4096)
def operator_count(shape: bytes) -> int:
    """Return how many ANDs and ORs a shape has."""
    if shape in (ALWAYS, NEVER):
        return 0
    return fold_shape(shape, lambda _: 0, lambda _, below: 1 + sum(below))


@lru_cache(maxsize=4096)
def conjunctions(shape: bytes, budget: int = DEFAULT_BUDGET) -> Conjunctions:
    """Return the disjunctive normal form of a shape; a BudgetError beyond so many predicates in all.

    >>> from tamis.language import parse
    >>> conjunctions(shaped(parse("a = 1 AND (b = 2 OR c = 3)"), "counting").shape)
    ((0, 1), (0, 2))
    """
    if shape in (ALWAYS, NEVER):
        return ((),) if shape == ALWAYS else ()

    def join(operator: int, below: list[Conjunctions]) -> Conjunctions:
        if operator == ANY:
            ways = tuple(each for part in below for each in part)
        else:
            ways = ((),)
            for part in below:
                if len(ways) * len(part) > budget:
                    raise BudgetError("disjunctive normal form", budget)
                ways = tuple(one + two for one in ways for two in part)
        if sum(map(len, ways)) > budget:
            raise BudgetError("disjunctive normal form", budget)
        return ways

    return fold_shape(shape, lambda position: ((position,),), join)
