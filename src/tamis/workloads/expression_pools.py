"""How do expressions come out of a small pool and a large one?

The large pool is as large as the demand, so each of its expressions occurs once. The small one is asked again and
again. A subscription joins two expressions; the left and the right one draw from separate attributes, in proportion to
their sizes, so that any two of them fit together without contradiction.

Source: Jewel 2004, section 5.2 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.workloads.distributions import placed, weighted
from tamis.workloads.expression_trees import Made, Material, grow

if TYPE_CHECKING:
    from tamis.workloads.base import Indexes, Numbers
    from tamis.workloads.expression_recipes import Recipe

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_CONNECTIVES = ("AND", "OR", "XOR")


@dataclass(frozen=True)
class Side:
    """The pool of one side of a recipe: how many expressions, how many predicates each, over which attributes."""

    count: int
    size: int
    first_attribute: int
    end_attribute: int

    def attributes(self, chance: np.random.Generator) -> Indexes:
        """Choose the attributes of the expressions, a row each, none twice in a row."""
        keys = chance.random((self.count, self.end_attribute - self.first_attribute))
        return self.first_attribute + np.argsort(keys, axis=1)[:, : self.size]


@dataclass(frozen=True)
class Pools:
    """What all expressions have in common. The knobs are those of `Expressions`."""

    predicate_count: int
    attribute_count: int
    connectives: tuple[float, float, float]
    comparison: str
    largest_value: int
    pooled_values: int
    pool_size: int
    popularity: float | None
    """How often an operand is the popular value of its attribute; None where no value is."""
    operand_distribution: str = "uniform"

    def grown(
        self, count: int, material: Material[Made], mix: tuple[Recipe, ...], chance: np.random.Generator
    ) -> list[Made]:
        """Grow subscriptions: for each recipe, make the pools of its two sides and join a part of each."""
        chosen = weighted(np.array([recipe.share for recipe in mix]), count, chance)
        places = [np.flatnonzero(chosen == index) for index in range(len(mix))]
        sides = [side for recipe, where in zip(mix, places, strict=True) for side in self._sides(recipe, where.size)]
        pools = self._pools(sides, material, chance)
        roots = self._connectives(count, chance)
        grown: dict[int, Made] = {}
        for where, left, right in zip(places, pools[::2], pools[1::2], strict=True):
            lefts, rights = (_picked(pool, where.size, chance) for pool in (left, right))
            for place, one, other in zip(where.tolist(), lefts, rights, strict=True):
                grown[place] = material.branch(roots[place], one, other)
        return [grown[place] for place in range(count)]

    def _sides(self, recipe: Recipe, count: int) -> tuple[Side, Side]:
        border = self.attribute_count * recipe.left_size // self.predicate_count
        right_size = self.predicate_count - recipe.left_size
        # A pool that is asked less than ten times for each expression would leave many of them unshared.
        shared_count = min(self.pool_size, -(-count // 10))
        return (
            Side(shared_count if recipe.is_left_shared else count, recipe.left_size, 0, border),
            Side(shared_count if recipe.is_right_shared else count, right_size, border, self.attribute_count),
        )

    def _pools(self, sides: list[Side], material: Material[Made], chance: np.random.Generator) -> list[list[Made]]:
        """Make a pool for each side. No predicate occurs twice, unless some values are likelier than others."""
        attributes = np.concatenate([side.attributes(chance).ravel() for side in sides])
        operands = self._operands(attributes, chance).tolist()
        leaves = list(map(material.leaf, attributes.tolist(), self._comparisons(attributes.size, chance), operands))
        cuts = iter(chance.random(attributes.size).tolist())
        connectives = iter(self._connectives(attributes.size, chance))
        pools, start = [], 0
        for side in sides:
            end = start + side.count * side.size
            parts = (leaves[at : at + side.size] for at in range(start, end, side.size))
            pools.append([grow(part, cuts, connectives, material.branch) for part in parts])
            start = end
        return pools

    def _connectives(self, count: int, chance: np.random.Generator) -> list[str]:
        return [_CONNECTIVES[index] for index in weighted(np.array(self.connectives), count, chance).tolist()]

    def _comparisons(self, count: int, chance: np.random.Generator) -> list[str]:
        if self.comparison != "any":
            return [self.comparison] * count
        return [COMPARISONS[index] for index in chance.integers(0, len(COMPARISONS), count).tolist()]

    def _operands(self, attributes: Indexes, chance: np.random.Generator) -> Indexes:
        """Draw an operand for each attribute; where all are alike, none comes twice as long as the values last."""
        if self.popularity is not None:
            return pooled(chance.random(attributes.size), self.popularity, self.pooled_values).astype(np.int64)
        if self.operand_distribution != "uniform":
            return 1 + placed(self.operand_distribution, self.largest_value, chance.random(attributes.size))
        operands = np.empty_like(attributes)
        for attribute in range(self.attribute_count):
            places = np.flatnonzero(attributes == attribute)
            is_short = places.size > self.largest_value
            operands[places] = 1 + chance.choice(self.largest_value, places.size, replace=is_short)
        return operands


def pooled(positions: Numbers, popularity: float, value_count: int) -> Numbers:
    """Turn uniform random numbers into values 1, 2, … of which the first is popular and the others are alike.

    >>> pooled(np.array([0.1, 0.7, 0.85, 0.95]), 0.8, 3)
    array([1., 1., 2., 3.])
    """
    others = 2 + np.floor((positions - popularity) / (1 - popularity) * (value_count - 1))
    return np.where(positions < popularity, 1, others)


def _picked(pool: list[Made], count: int, chance: np.random.Generator) -> list[Made]:
    """Use each expression of a pool once if it is large enough, and again and again if it is not."""
    return pool if len(pool) == count else [pool[index] for index in chance.integers(0, len(pool), count).tolist()]
