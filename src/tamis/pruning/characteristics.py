"""How well does an advertisement keep subscriptions out? The overlapping characteristic.

A predicate of an advertisement keeps out the subscriptions that need a predicate disjoint to it. The more such
predicates there are, the more subscriptions use them, and the rarer they are true, the more it does; that is its
*overlapping characteristic*. Of a whole advertisement it is three numbers, as selectivity is:

    leaf   the sum, over the disjoint predicates, of their users by the root of how often they were true (plus one),
           as a share of all users
    AND    least the largest      average 1 - the product of 1-x     most the sum
    OR     least the smallest     average the same                   most the same

Source: Bittner 2008, section 7.3, algorithms 5 to 7 (docs/bibliography.md).
Departs: of `at_least(k, ...)` the least is the k-th smallest, of which AND and OR are the extremes.
"""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import TYPE_CHECKING

from tamis.language.expressions import And, AtLeast, Expression, Literal, Or
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import fold_monotone, monotone, occurrences
from tamis.relations.forms import context_of
from tamis.selectivity.estimates import Estimate, exactly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.schema import Schema


def characteristic(tree: Expression, value: Callable[[Expression], float]) -> Estimate:
    """Return the overlapping characteristic of a tree, given that of its predicates.

    >>> import tamis
    >>> values = {"a = 1": 0.5, "b = 1": 0.25}
    >>> characteristic(tamis.parse("a = 1 AND b = 1"), lambda predicate: values[str(predicate)])
    Estimate(least=0.5, average=0.625, most=0.75)
    """
    return fold_monotone(tree, lambda node, below: _combined(node, below, value))


def _combined(node: Expression, below: list[Estimate], value: Callable[[Expression], float]) -> Estimate:
    match node:
        case And():
            least = max(part.least for part in below)
        case Or():
            least = min(part.least for part in below)
        case AtLeast(count):
            least = sorted(part.least for part in below)[count - 1]
        case _:
            return exactly(value(node))
    average = most = 0.0
    for part in below:
        average = average + part.average - average * part.average
        most += part.most
    return Estimate(least, average, min(1.0, most))


class Characteristics:
    """What the predicates of advertisements are worth, given the subscriptions that they meet.

    `fulfilled` says how many events made a predicate true so far.

    >>> import tamis
    >>> found = Characteristics(["price < 10 AND sold", "price < 5"], lambda predicate: 3)
    >>> round(found(tamis.parse("price > 7")), 4), found(tamis.parse("price > 20")), found(tamis.parse("bids > 7"))
    (0.1667, 0.333..., 0.0)
    """

    def __init__(
        self,
        subscriptions: Iterable[str | Expression],
        fulfilled: Callable[[Expression], float],
        schema: Schema | None = None,
    ) -> None:
        from tamis.relations.advertisements import Predicates

        users: Counter[Expression] = Counter()
        for each in subscriptions:
            tree = monotone(parse(each, schema) if isinstance(each, str) else each)
            users.update({leaf: count for leaf, count in occurrences(tree).items() if not isinstance(leaf, Literal)})
        self._predicates = Predicates(context_of(schema))
        for predicate in users:
            self._predicates.number(predicate)
        self._predicates.sort()
        total = users.total()
        # Counts of a graph may be too large for a double; their quotient is not.
        self._worth = [users[each] / total / sqrt(fulfilled(each) + 1) for each in self._predicates.expressions]
        self._known: dict[Expression, float] = {}

    def __call__(self, predicate: Expression) -> float:
        """Return the overlapping characteristic of a predicate."""
        known = self._known.get(predicate)
        if known is None:
            worth = 0.0
            for number in sorted(self._predicates.disjoint(predicate)):
                worth += self._worth[number]
            known = self._known[predicate] = worth
        return known
