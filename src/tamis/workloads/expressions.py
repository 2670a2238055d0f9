"""How does an engine fare when expressions get longer, share more, or match more often?

Jewel's generator turns one knob at a time. A subscription has `predicate_count` predicates and joins two
expressions, each from one of two pools: from a small one, whose expressions are used again and again, or from a large
one, whose expressions (and even predicates) occur once. How often each pool is asked gives the share of nodes that
subscriptions have in common (SNPS); where event values lie gives the share of subscriptions that match (SMPE).

    operator sets of the source   OS_A  AND 1.0      OS_B  AND 0.8, OR 0.2      OS_C  AND 0.6, OR 0.3, XOR 0.1

Source: Jewel 2004, section 5.2, tables 5.1 and 5.2 (docs/bibliography.md).
Departs: contradictions are avoided by giving each predicate of a subscription an attribute of its own.
Departs: with `=` over two million values nothing would ever match. So the values come from a small pool of which one is
popular, and its popularity is calibrated. That makes predicates common, and SNPS larger than asked for; `achieved`
tells by how much.
Departs: the source says that 1 to 20 of 20 attributes are in an event. High SMPE is only to be had when all are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.language import Schema
from tamis.workloads.base import Flags, Numbers, generator, subscription_table
from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS, placed
from tamis.workloads.errors import ParameterError, require
from tamis.workloads.expression_pools import Pools, pooled
from tamis.workloads.expression_recipes import Recipe, recipes
from tamis.workloads.expression_trees import TEXT, TREE, Leaf, Tree, chances, nodes, shared_shares, truths

AND_ONLY = (1.0, 0.0, 0.0)
AND_OR = (0.8, 0.2, 0.0)
AND_OR_XOR = (0.6, 0.3, 0.1)
"""The source's operator sets OS_A, OS_B and OS_C: the frequencies of AND, OR and XOR."""

_CALIBRATION_TREES, _CALIBRATION_EVENTS, _CALIBRATION_STEPS = 2_000, 60, 65


class Achieved(NamedTuple):
    """What a generated workload measures, where the knobs only say what was wanted."""

    shared_nodes: float
    shared_inner_nodes: float
    match_share: float


@dataclass(frozen=True)
class Expressions:
    """Random Boolean expressions of one length.

    >>> workload = Expressions(predicate_count=4, connectives=AND_OR, match_share=0.13)
    >>> workload.subscriptions(1, seed=2)["condition"][0].as_py()
    '((a4 > 1283221 AND a7 > 1731954) OR (a20 > 1791709 OR a15 > 1747093))'
    """

    predicate_count: int = 6
    """How many predicates a subscription has, L; 4 to 18 in the source."""
    overlap: float = 0.95
    """The share of subscriptions that have a part in common with others, f_overlap."""
    shared_nodes: float = 0.4
    """The share of nodes that a subscription shares, on average over all of them, SNPS."""
    connectives: tuple[float, float, float] = AND_ONLY
    """The frequencies of AND, OR and XOR."""
    comparison: str = ">"
    """`>` or `=`; or `any`, which draws from all six, and then the share of matches cannot be steered."""
    match_share: float | None = 0.15
    """The share of subscriptions that an event matches on average, SMPE. None leaves event values uniform."""
    attribute_count: int = 20
    """How many attributes there are, L_max."""
    attributes_per_event: tuple[int, int] | None = None
    """The least and the most attributes of an event, A_E. None is all of them."""
    largest_value: int = 2_000_000
    """The largest value of an attribute, u_A; values start from 1."""
    pooled_values: int = 50
    """How many values an attribute has where `comparison` is `=` and the share of matches is steered."""
    pool_size: int = 1_000
    """How many expressions the small pools have at most, for each side."""
    operand_distribution: str = "uniform"
    """How operands are spread over the values; where they are not uniform, predicates become common by chance."""

    def __post_init__(self) -> None:
        require(self.predicate_count >= 2, "predicate_count", self.predicate_count, "at least 2")
        is_wide = self.attribute_count >= self.predicate_count
        require(is_wide, "attribute_count", self.attribute_count, f"at least {self.predicate_count}, the predicates")
        is_mix = len(self.connectives) == 3 and min(self.connectives) >= 0 and sum(self.connectives) > 0
        require(is_mix, "connectives", self.connectives, "three frequencies, not all of them 0")
        require(self.comparison in (">", "=", "any"), "comparison", self.comparison, "one of >, =, any")
        can_steer = self.match_share is None or (0 < self.match_share < 1 and self.comparison != "any")
        require(can_steer, "match_share", self.match_share, "a share between 0 and 1, or None where comparison is any")
        least, most = self._event_sizes
        is_range = 1 <= least <= most <= self.attribute_count
        require(is_range, "attributes_per_event", self.attributes_per_event, f"a range in 1..{self.attribute_count}")
        require(self.pool_size >= 1, "pool_size", self.pool_size, "at least 1")
        is_known = self.operand_distribution in OPERAND_DISTRIBUTIONS
        known = f"one of {', '.join(OPERAND_DISTRIBUTIONS)}"
        require(is_known, "operand_distribution", self.operand_distribution, known)
        is_pooled = self.comparison == "=" and self.match_share is not None  # then one value is popular, and no other
        can_skew = self.operand_distribution == "uniform" or not is_pooled
        require(can_skew, "operand_distribution", self.operand_distribution, "uniform where = has a share of matches")
        recipes(self.predicate_count, self.overlap, self.shared_nodes)  # says what is wrong with these three

    @property
    def name(self) -> str:
        return "expressions"

    @property
    def schema(self) -> Schema:
        names = self._names
        is_full = self._event_sizes[0] == self.attribute_count
        return Schema(dict.fromkeys(names, "int"), mandatory=names if is_full else ())

    def events(self, count: int, seed: int) -> pa.Table:
        """Draw events whose values lie where the calibration put them."""
        values = self._values(count, generator(seed, "expression events"))
        columns = (pa.array(np.nan_to_num(column).astype(np.int64), mask=np.isnan(column)) for column in values.T)
        return pa.table(dict(zip(self._names, columns, strict=True)))

    def subscriptions(self, count: int, seed: int) -> pa.Table:
        chance = generator(seed, "expression subscriptions")
        texts = self._pools(self._popularity).grown(count, TEXT, self._recipes, chance)
        return subscription_table(pa.array(texts, pa.string()))

    def trees(self, count: int, seed: int) -> list[Tree]:
        """Return what `subscriptions` writes down, as trees."""
        chance = generator(seed, "expression subscriptions")
        return self._pools(self._popularity).grown(count, TREE, self._recipes, chance)

    def achieved(self, subscription_count: int, event_count: int, seed: int) -> Achieved:
        """Measure SNPS and SMPE on what this seed gives.

        >>> measured = Expressions(predicate_count=6, shared_nodes=0.4).achieved(2_000, 200, seed=1)
        >>> round(measured.shared_nodes, 1)
        0.4
        """
        trees = self.trees(subscription_count, seed)
        values = self._values(event_count, generator(seed, "expression events"))
        is_true, is_false = {}, {}
        for leaf in _leaves(trees):
            column = values[:, leaf.attribute]
            is_true[leaf] = _compared(column, leaf.comparison, leaf.operand)
            is_false[leaf] = ~is_true[leaf] & ~np.isnan(column)
        return Achieved(*shared_shares(trees), _match_share(trees, is_true, is_false))

    # -- Attributes and values

    @property
    def _names(self) -> list[str]:
        return [f"a{index}" for index in range(1, self.attribute_count + 1)]

    @property
    def _event_sizes(self) -> tuple[int, int]:
        return self.attributes_per_event or (self.attribute_count, self.attribute_count)

    @cached_property
    def _popularity(self) -> float | None:
        """How often `=` asks for the popular value of an attribute, and events have it; None where none is popular.

        With popularity p and n values, a predicate is true with p² + (1 - p)² / (n - 1). Solve for p.
        """
        if self.comparison != "=" or self.match_share is None:
            return None
        odds = self._truth_share * self.pooled_values
        require(odds >= 1, "pooled_values", self.pooled_values, f"at least {1 / self._truth_share:.0f} for few matches")
        return float((1 + np.sqrt((self.pooled_values - 1) * (odds - 1))) / self.pooled_values)

    def _values(self, count: int, chance: np.random.Generator) -> Numbers:
        """Draw the attribute values of events, a row each, NaN for those that an event lacks."""
        positions = chance.random((count, self.attribute_count))
        if self._popularity is not None:
            values = pooled(positions, self._popularity, self.pooled_values)
        elif self.match_share is not None:
            # Numbers lie around the calibrated quantile, as far as fits: were all on it, all events would be the same.
            reach = min(self._truth_share, 1 - self._truth_share)
            shares = self._truth_share + reach * (2 * positions - 1)
            if self.operand_distribution == "uniform":
                values = 1 + np.floor(shares * self.largest_value)
            else:
                values = 1 + placed(self.operand_distribution, self.largest_value, shares).astype(np.float64)
        else:
            values = 1 + np.floor(positions * self.largest_value)
        return np.where(self._present(count, chance), values, np.nan)

    def _present(self, count: int, chance: np.random.Generator) -> Flags:
        """Choose the attributes that each event carries."""
        least, most = self._event_sizes
        sizes = chance.integers(least, most, (count, 1), endpoint=True)
        ranks = np.argsort(np.argsort(chance.random((count, self.attribute_count)), axis=1), axis=1)
        return np.less(ranks, sizes)

    def _pools(self, popularity: float | None) -> Pools:
        return Pools(
            self.predicate_count,
            self.attribute_count,
            self.connectives,
            self.comparison,
            self.largest_value,
            self.pooled_values,
            self.pool_size,
            popularity,
            self.operand_distribution,
        )

    @property
    def _recipes(self) -> tuple[Recipe, ...]:
        return recipes(self.predicate_count, self.overlap, self.shared_nodes)

    # -- Calibration

    @cached_property
    def _truth_share(self) -> float:
        """Find how often a predicate must be true for the wanted share of matches.

        Values lie where the operands' distribution has them, so a predicate is true with the same chance for every
        event that has its attribute, and those of a subscription are about different attributes. So chances multiply,
        once it is known which attributes an event carries; only that and the trees are sampled. XOR may bend the curve
        back: its first crossing counts.
        """
        if self.match_share is None:
            return 0.5
        chance = generator(0, "expression calibration")
        unique = tuple(recipe._replace(is_left_shared=False, is_right_shared=False) for recipe in self._recipes)
        trees = self._pools(None).grown(_CALIBRATION_TREES, TREE, unique, chance)
        is_always_full = self._event_sizes[0] == self.attribute_count
        is_present = self._present(1 if is_always_full else _CALIBRATION_EVENTS, chance)
        truth_shares = np.linspace(0, 1, _CALIBRATION_STEPS)
        by_attribute = [(np.outer(column, truth_shares), np.outer(column, 1 - truth_shares)) for column in is_present.T]
        curve = np.mean([chances(tree, by_attribute)[0] for tree in trees], axis=(0, 1))
        return _first_crossing(truth_shares, curve, self.match_share)


def _leaves(trees: list[Tree]) -> list[Leaf]:
    """Return the distinct leaves, in the order of their first occurrence."""
    leaves = (node for node in chain.from_iterable(map(nodes, trees)) if isinstance(node, Leaf))
    return list(dict.fromkeys(leaves))


def _match_share(trees: list[Tree], is_true: dict[Leaf, Flags], is_false: dict[Leaf, Flags]) -> float:
    """Return the share of pairs of a subscription and an event that match."""
    return float(np.mean([np.mean(truths(tree, is_true, is_false)[0]) for tree in trees]))


def _compared(values: Numbers, comparison: str, operand: int) -> Flags:
    """Compare. NaN, which is absent, is not true of any comparison, and of `<>` no more than of the others."""
    match comparison:
        case "=":
            return np.equal(values, operand)
        case "<>":
            return np.less(values, operand) | np.greater(values, operand)
        case "<":
            return np.less(values, operand)
        case "<=":
            return np.less_equal(values, operand)
        case ">":
            return np.greater(values, operand)
        case _:
            return np.greater_equal(values, operand)


def _first_crossing(truth_shares: Numbers, curve: Numbers, wanted: float) -> float:
    """Find the least truth share at which the curve reaches the wanted share of matches.

    >>> _first_crossing(np.array([0, 0.5, 1]), np.array([0, 0.4, 0.2]), wanted=0.3)
    0.375
    """
    if curve.max() < wanted:
        raise ParameterError("match_share", wanted, f"at most {curve.max():.4f} for these expressions and events")
    end = int(np.argmax(curve >= wanted)) + 1
    crossing = np.interp(wanted, curve[end - 2 : end], truth_shares[end - 2 : end])
    return float(min(crossing, 1 - 2**-20))
