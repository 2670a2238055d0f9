"""How far is an event from being matched? The shortfall: the fewest predicates that would have to come out otherwise.

Whoever tries a filter wants to see not only what it matches, but also what it only just does not. Each condition has
two costs, that of being true and that of being false; a predicate that is so costs nothing, and any other one costs 1.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from tamis.language.expressions import CONNECTIVES, And, AtLeast, Not, Or
from tamis.language.meaning import truth

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema


class _Costs(NamedTuple):
    """How few predicates would have to come out otherwise."""

    to_be_true: int
    to_be_false: int


_OF_TRUTH = {True: _Costs(0, 1), False: _Costs(1, 0), None: _Costs(1, 1)}


def shortfall(expression: Expression, event: Mapping[str, Any], schema: Schema | None = None) -> int:
    """Return how few predicates would have to come out otherwise for an expression to be true of an event.

    >>> from tamis import parse
    >>> wanted = parse("category = 'Thriller' AND (price < 20 OR signed AND bids <= 3)")
    >>> [shortfall(wanted, {"category": category, "price": 12}) for category in ("Thriller", "Crime")]
    [0, 1]
    >>> shortfall(wanted, {"category": "Crime", "price": 30})
    2
    """
    costs: list[_Costs] = []
    stack: list[tuple[Expression, bool]] = [(expression, False)]
    while stack:  # without recursion: filters may be deep
        node, is_left = stack.pop()
        if not isinstance(node, CONNECTIVES):
            costs.append(_OF_TRUTH[truth(node, event, schema)])
        elif is_left:
            count = len(node.children)
            below = costs[-count:]
            del costs[-count:]
            costs.append(_joined(node, below))
        else:
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return costs[0].to_be_true


def _joined(node: Expression, below: list[_Costs]) -> _Costs:
    true, false = [each.to_be_true for each in below], [each.to_be_false for each in below]
    match node:
        case Not():
            return _Costs(false[0], true[0])
        case And():
            return _Costs(sum(true), min(false))
        case Or():
            return _Costs(min(true), sum(false))
        case AtLeast(count):
            return _Costs(_cheapest(true, count), _cheapest(false, len(below) - count + 1))
    # XOR: of no conditions an even number is true, at no cost; that an odd number is true costs more than anything.
    even, odd = 0, len(below) + sum(true) + sum(false)
    for each in below:
        even, odd = (
            min(even + each.to_be_false, odd + each.to_be_true),
            min(odd + each.to_be_false, even + each.to_be_true),
        )
    return _Costs(odd, even)


def _cheapest(costs: list[int], count: int) -> int:
    """Return what the cheapest of some conditions cost together."""
    return [0, *accumulate(sorted(costs))][max(0, min(count, len(costs)))]
