"""Which algorithm suits these subscriptions?

They are measured once: what the formulas of memory know of a set of subscriptions, and how much an event would set in
motion. Counting adds to a counter for each predicate that holds and each conjunction that asks for it, Boolean
filtering for each subscription; the cluster algorithm looks at the conjunctions whose rarest equality holds, and at all
that have none. Boolean filtering and the cluster algorithm also note down what holds, to ask for it later. These are
counts of steps, which no machine changes; how long a step takes, one does. The evaluation of trees is left out, for few
are evaluated.

How often a predicate holds is told by a sample of events, or else guessed from the operands.

Source: Bittner 2008, sections 5.1 to 5.6, on characteristics and turning points (docs/bibliography.md).
Departs: the steps of an event are ours.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import BudgetError
from tamis.matching.errors import UnsupportedExpressionError
from tamis_lab.matching.cluster import equalities
from tamis_lab.matching.formulas import (
    boolean_bytes,
    characteristics,
    cluster_bytes,
    counting_bytes,
    leanest,
    turning_point,
)
from tamis_lab.matching.predicates import PredicateRegistry
from tamis_lab.matching.shapes import conjunctions, shaped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.columns import Events
    from tamis_lab.matching.formulas import SubscriptionCharacteristics

BOOLEAN, COUNTING, CLUSTER = "boolean", "counting", "cluster"
_COMPARED = 64
"""Counters are compared with what is needed so many at a time, which is one step."""
_NEAR = 1.1
"""What takes less than so many times as much takes as good as the same."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What was measured of some subscriptions, and what follows from it."""

    characteristics: SubscriptionCharacteristics
    refused: int
    """How many an algorithm of the literature cannot take, because written out they are too large."""
    constant: int
    """How many ask for nothing, or for what cannot be."""
    boolean_share: float
    """How many of the subscriptions are more than one conjunction."""
    with_equality: float
    """How many of the conjunctions have an equality, which gives access to them."""
    bytes: dict[str, float]
    """Bytes for each subscription, by algorithm and formula."""
    turning_points: dict[str, float]
    """Beyond how many conjunctions for each subscription Boolean filtering takes less than another."""
    steps: dict[str, float]
    """How many steps an event takes, by algorithm."""
    is_sampled: bool
    """Whether events told how often predicates hold."""

    @property
    def leanest(self) -> str:
        """The algorithm that takes the least memory."""
        return leanest(self.characteristics)

    @property
    def quickest(self) -> str:
        """The algorithm whose events take the fewest steps."""
        return min(self.steps, key=lambda name: self.steps[name])

    @property
    def reasons(self) -> list[str]:
        """Return why, in sentences."""
        some = self.characteristics
        against = self.turning_points[COUNTING]
        side = "more" if some.conjunctions > against else "no more"
        sentences = [
            f"Boolean filtering takes less memory than counting beyond {against:.1f} conjunctions a subscription; "
            f"these have {some.conjunctions:.1f}, which is {side}."
        ]
        if self.with_equality < 0.5:
            sentences.append(
                f"Only {self.with_equality:.0%} of the conjunctions compare anything by equality, so the cluster "
                "algorithm asks most of them every time."
            )
        elif self.quickest == CLUSTER:
            sentences.append(
                f"{self.with_equality:.0%} of the conjunctions compare something by equality, and few of these "
                "equalities hold for an event: the cluster algorithm looks at few conjunctions."
            )
        if some.commonality > 0.5:
            sentences.append(
                f"{some.commonality:.0%} of the predicates are others' too: an algorithm that shares them evaluates "
                "each once."
            )
        near = [name for name, steps in self.steps.items() if steps <= _NEAR * self.steps[self.quickest]]
        if len(near) > 1:
            sentences.append(f"The events of {' and '.join(near)} take as good as the same number of steps.")
        return sentences

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as data."""
        return asdict(self) | {"leanest": self.leanest, "quickest": self.quickest, "reasons": self.reasons}


def advise(expressions: Iterable[Expression], events: Events | None = None, schema: Schema | None = None) -> Advice:
    """Measure subscriptions, and say which of the published algorithms suits them.

    >>> from tamis.language import parse
    >>> advice = advise([parse(f"title = '{n}' AND (price < {n} OR bids > {n})") for n in range(100)])
    >>> advice.quickest, advice.leanest, round(advice.with_equality, 2)
    ('cluster', 'counting', 1.0)
    """
    taken: list[Expression] = []
    refused = constant = 0
    for expression in expressions:
        try:
            tree = shaped(expression, "advise")
            conjunctions(tree.shape)
        except (UnsupportedExpressionError, BudgetError):
            refused += 1
            continue
        if tree.predicates:
            taken.append(expression)
        else:
            constant += 1
    if not taken:
        raise ValueError("no subscription has a predicate")
    some = characteristics(taken)
    registry = PredicateRegistry(schema)
    of_trees: Counter[int] = Counter()
    of_conjunctions: Counter[int] = Counter()
    rows: list[list[int]] = []
    several = 0
    for expression in taken:
        tree = shaped(expression, "advise")
        numbers = registry.add_all(tree.predicates)
        of_trees.update(numbers)
        ways = conjunctions(tree.shape)
        several += len(ways) > 1
        for way in ways:
            part = [numbers[place] for place in way]
            of_conjunctions.update(part)
            rows.append(part)
    view = registry.view()
    shares = (view.guessed_shares() if events is None else view.shares(events)).astype(np.float64)
    is_equality = equalities(view)
    access = [_access(part, shares, is_equality) for part in rows]
    holding = float(shares.sum())
    return Advice(
        characteristics=some,
        refused=refused,
        constant=constant,
        boolean_share=several / len(taken),
        with_equality=sum(share is not None for share in access) / len(access),
        bytes={BOOLEAN: boolean_bytes(some), COUNTING: counting_bytes(some), CLUSTER: cluster_bytes(some)},
        turning_points={name: turning_point(some, against=name) for name in (COUNTING, CLUSTER)},
        steps={
            BOOLEAN: holding + _hits(of_trees, shares) + len(taken) / _COMPARED,
            COUNTING: _hits(of_conjunctions, shares) + len(rows) / _COMPARED,
            CLUSTER: holding + sum(1.0 if share is None else share for share in access),
        },
        is_sampled=events is not None,
    )


def _access(part: Sequence[int], shares: Any, is_equality: Any) -> float | None:
    """Return how often the rarest equality of a conjunction holds; None if it has none."""
    return min((float(shares[number]) for number in part if is_equality[number]), default=None)


def _hits(uses: Counter[int], shares: Any) -> float:
    return float(sum(count * shares[number] for number, count in uses.items()))
