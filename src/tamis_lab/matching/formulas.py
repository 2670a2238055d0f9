"""How much memory does an algorithm take, and when is Boolean filtering the leaner one?

The characterisation framework: a set of subscriptions is described by a dozen numbers, and each algorithm's memory is a
formula over them. All are linear in the number of subscriptions, so a comparison comes down to bytes per subscription;
and as the conjunctive algorithms pay for each conjunction, there is a *turning point*, a number of conjunctions per
subscription beyond which Boolean filtering takes less.

    >>> six = SubscriptionCharacteristics(predicates=6, operators=4, conjunctions=2, conjunctions_per_predicate=8 / 6)
    >>> boolean_bytes(six), counting_bytes(six)
    (68.0, 68.0)
    >>> turning_point(six)
    2.0

Source: Bittner 2008, sections 5.1 to 5.5: equations 5.1 to 5.3, 5.7 and 5.8 (docs/bibliography.md).
Departs: the widths of ids and addresses are parameters; with 4 bytes each the formulas are the published ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis_lab.matching.predicates import spelled
from tamis_lab.matching.shapes import conjunctions, operator_count, shaped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression


@dataclass(frozen=True, slots=True)
class Widths:
    """Bytes per subscription id, predicate id, location of a tree, and reference to a cluster."""

    subscription: int = 4
    predicate: int = 4
    location: int = 4
    cluster: int = 4


@dataclass(frozen=True, slots=True)
class SubscriptionCharacteristics:
    """What the formulas know of a set of subscriptions. All but the last two are averages per subscription."""

    predicates: float
    """|p|, by occurrence."""
    operators: float
    """|op|: ANDs and ORs, nested ones of a kind being one."""
    conjunctions: float
    """|s_s|: of the disjunctive normal form."""
    conjunctions_per_predicate: float
    """|s_p|: in how many of these conjunctions a predicate occurs."""
    subscriptions: int = 1
    """|s|."""
    distinct_predicates: int = 0
    """|p_u|: of all subscriptions together. With 0 the vector of fulfilled predicates is left out."""
    widths: Widths = field(default_factory=Widths)

    @property
    def operator_share(self) -> float:
        """op^prop: operators for each predicate."""
        return self.operators / self.predicates

    @property
    def conjunction_share(self) -> float:
        """s^prop: the share of the conjunctions in which a predicate occurs."""
        return self.conjunctions_per_predicate / self.conjunctions

    @property
    def commonality(self) -> float:
        """p_c: the share of predicates that others have too."""
        return 1 - self.distinct_predicates / (self.predicates * self.subscriptions)

    @property
    def _fulfilled_bytes(self) -> float:
        return self.distinct_predicates / 8 / self.subscriptions


def characteristics(expressions: Iterable[Expression], widths: Widths | None = None) -> SubscriptionCharacteristics:
    """Measure some subscriptions.

    >>> from tamis.language import parse
    >>> found = characteristics([parse("a = 1 AND (b = 2 OR c = 3)"), parse("a = 1")])
    >>> found.predicates, found.operators, found.conjunctions, found.distinct_predicates
    (2.0, 1.0, 1.5, 3)
    >>> found.conjunctions_per_predicate
    1.25
    """
    count = predicate_count = operators = conjunction_count = occurrences = 0
    distinct: set[Expression] = set()
    for expression in expressions:
        tree = shaped(expression, "characteristics")
        ways = conjunctions(tree.shape)
        count += 1
        predicate_count += len(tree.predicates)
        operators += operator_count(tree.shape)
        conjunction_count += len(ways)
        occurrences += sum(map(len, ways))
        distinct.update(map(spelled, tree.predicates))
    if not predicate_count or not conjunction_count:
        raise ValueError("subscriptions without a predicate have no characteristics")
    return SubscriptionCharacteristics(
        predicate_count / count,
        operators / count,
        conjunction_count / count,
        occurrences / predicate_count,
        count,
        len(distinct),
        widths or Widths(),
    )


# -- Bytes per subscription


def counting_bytes(c: SubscriptionCharacteristics) -> float:
    """Equation 5.1: two counters per conjunction, and each of its predicates in two association tables."""
    associations = (c.widths.subscription + c.widths.predicate) * c.conjunctions_per_predicate * c.predicates
    return 2 * c.conjunctions + associations + c._fulfilled_bytes


def cluster_bytes(c: SubscriptionCharacteristics) -> float:
    """Equation 5.2: a line and a cluster per conjunction, and each of its predicates in a column and a table."""
    associations = (c.widths.subscription + c.widths.predicate) * c.conjunctions_per_predicate * c.predicates
    return c.conjunctions * (c.widths.cluster + c.widths.subscription) + associations + c._fulfilled_bytes


def boolean_bytes(c: SubscriptionCharacteristics) -> float:
    """Equation 5.3: the tree, its location, two counters, and each predicate in one association table."""
    tree = tree_bytes(c.predicates, c.operators, c.widths.predicate)
    return tree + c.widths.subscription * c.predicates + c.widths.location + 2 + c._fulfilled_bytes


def tree_bytes(predicates: float, operators: float, predicate_width: int = 4) -> float:
    """Return the bytes of an encoded tree.

    >>> tree_bytes(predicates=6, operators=4)
    38
    """
    return (predicate_width + 1) * predicates + 2 * operators


# -- Turning points


def turning_point(c: SubscriptionCharacteristics, *, against: str = "counting") -> float:
    """Return beyond how many conjunctions per subscription Boolean filtering takes less memory (5.7 and 5.8).

    It depends on how many operators there are for each predicate, and on the share of the conjunctions that a predicate
    occurs in, not on the number of conjunctions itself.
    """
    if against not in ("counting", "cluster"):
        raise ValueError(f"turning points are against counting or cluster, not {against!r}")
    widths = c.widths
    both = widths.subscription + widths.predicate
    boolean = c.predicates * (2 * c.operator_share + 1 + both) + widths.location + 2
    fixed = 2 if against == "counting" else widths.cluster + widths.subscription
    return boolean / (fixed + both * c.conjunction_share * c.predicates)


def leanest(c: SubscriptionCharacteristics) -> str:
    """Return which algorithm takes the least memory; a tie goes to counting, which does less.

    >>> leanest(SubscriptionCharacteristics(12, 10, 4, 20 / 12))
    'boolean'
    >>> leanest(SubscriptionCharacteristics(predicates=5, operators=1, conjunctions=1, conjunctions_per_predicate=1))
    'counting'
    """
    sizes = {"counting": counting_bytes(c), "boolean": boolean_bytes(c), "cluster": cluster_bytes(c)}
    return min(sizes, key=lambda name: round(sizes[name], 9))
