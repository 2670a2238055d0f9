"""How does an expression look as a disjunction of conjunctions?

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

    def expand(node: Expression, below: list[list[Conjunction]]) -> list[Conjunction]:
        match node:
            case Or():
                return _united([each for part in below for each in part], budget)
            case And():
                return _product(below, budget)
            case AtLeast(count, operands):
                if comb(len(operands), count) > budget:
                    raise BudgetError("disjunctive normal form", budget)
                chosen = [_product(list(some), budget) for some in combinations(below, count)]
                return _united([each for part in chosen for each in part], budget)
            case _ if node == TRUE:
                return [()]
            case _ if node == FALSE:
                return []
            case _:
                return [(node,)]

    prepared = flatten(fold_constants(nnf(expression, budget=max(budget, 1000) * 100)))
    return fold_shared(prepared, expand)


def _product(parts: list[list[Conjunction]], budget: int) -> list[Conjunction]:
    product: list[Conjunction] = [()]
    for part in parts:
        if len(product) * len(part) > budget:
            raise BudgetError("disjunctive normal form", budget)
        product = _united([tuple(dict.fromkeys((*one, *two))) for one in product for two in part], budget)
    return product


def _united(conjunctions: list[Conjunction], budget: int) -> list[Conjunction]:
    """Drop conjunctions with the same predicates, and see that the rest keeps to the budget."""
    distinct = list({frozenset(each): each for each in reversed(conjunctions)}.values())[::-1]
    if sum(len(each) for each in distinct) > budget:
        raise BudgetError("disjunctive normal form", budget)
    return distinct
