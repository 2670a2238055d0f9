"""How does an expression look as a disjunction of conjunctions? Disjunctive normal form, within a budget.

Only algorithms that know nothing but conjunctions need this form, because it can be exponentially larger:
`(a OR b) AND (c OR d) AND ...` doubles with every factor. Hence the budget, and a typed error beyond it.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

from tamis.errors import BudgetError
from tamis.language.expressions import FALSE, TRUE, And, AtLeast, Expression, Or, fold_shared
from tamis.language.rewrites.constants import fold_constants
from tamis.language.rewrites.flattening import flatten
from tamis.language.rewrites.junctions import conjunction, disjunction
from tamis.language.rewrites.negation import nnf

DEFAULT_BUDGET = 10_000
_STEPS = 100
"""So many predicates may be written on the way for each that the result may have."""

Conjunction = tuple[Expression, ...]


def dnf(expression: Expression, *, budget: int = DEFAULT_BUDGET) -> Expression:
    """Return the disjunctive normal form, if it has no more than `budget` predicates.

    >>> import tamis
    >>> print(dnf(tamis.parse("a = 1 AND (b = 2 OR c = 3)")))
    a = 1 AND b = 2 OR a = 1 AND c = 3
    """
    return disjunction(conjunction(each) for each in disjuncts(expression, budget=budget))


def disjuncts(expression: Expression, *, budget: int = DEFAULT_BUDGET) -> list[Conjunction]:
    """Return the conjunctions of the disjunctive normal form, each a tuple of distinct predicates.

    The empty list is FALSE, and a list with an empty conjunction is TRUE.
    """
    work = _Work(budget)

    def expand(node: Expression, below: list[list[Conjunction]]) -> list[Conjunction]:
        match node:
            case Or():
                return work.united([each for part in below for each in part])
            case And():
                return work.product(below)
            case AtLeast(count, operands):
                # Each choice has so many predicates at least.
                if comb(len(operands), count) * max(1, count) > budget:
                    raise BudgetError("disjunctive normal form", budget)
                chosen = [work.product(list(some)) for some in combinations(below, count)]
                return work.united([each for part in chosen for each in part])
            case _ if node == TRUE:
                return [()]
            case _ if node == FALSE:
                return []
            case _:
                return [(node,)]

    prepared = flatten(fold_constants(nnf(expression, budget=max(budget, 1000) * 100)))
    return fold_shared(prepared, expand)


class _Work:
    """What an expansion may have as predicates, and what it may take to get there."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._left = budget * _STEPS

    def product(self, parts: list[list[Conjunction]]) -> list[Conjunction]:
        """Return the conjunctions that have one of each part."""
        # What has no choice is joined at once: one after the other, a long conjunction would be copied again and again.
        certain = tuple(dict.fromkeys(each for part in parts if len(part) == 1 for each in part[0]))
        product = self.united([certain])
        for part in parts:
            if len(part) == 1:
                continue
            if len(product) * len(part) > self._budget:
                raise BudgetError("disjunctive normal form", self._budget)
            product = self.united([tuple(dict.fromkeys((*one, *two))) for one in product for two in part])
        return product

    def united(self, conjunctions: list[Conjunction]) -> list[Conjunction]:
        """Drop conjunctions with the same predicates, and see that the rest keeps to the budget."""
        self._left -= sum(len(each) for each in conjunctions)
        distinct = list({frozenset(each): each for each in reversed(conjunctions)}.values())[::-1]
        if self._left < 0 or sum(len(each) for each in distinct) > self._budget:
            raise BudgetError("disjunctive normal form", self._budget)
        return distinct
