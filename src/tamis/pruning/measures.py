"""Which pruning comes first? The heuristics that rank prunings.

Every filter proposes its best pruning, and the best of these proposals is carried out: only numbers are compared,
never filters. The numbers are *degradations* and *improvements* between three versions of a filter: the original, the
current one, and the one after a pruning.

    accuracy     how much more often will it match? the largest change of least, average and most    original
    efficiency   how many fewer hits make it a candidate?                                                original
    memory       how many bytes are saved?                                                               current
    occurrence   accuracy, times how much rarer the remaining predicates are                             both
    distance     accuracy, by how far away the subscriber is
    overlap      of an advertisement: how much less it keeps subscriptions out (see `advertisements`)

Damage adds up, so it is measured against the original: many small steps would look harmless otherwise. What a step
saves is measured against the current version: an earlier step must not be paid for twice. A measure is one of these,
and two more that decide between equals.

Source: Bittner 2008, sections 6.4.2 to 6.4.8; the dimensions network load, memory and throughput are Bittner & Hinze
  2006, section 3 (docs/bibliography.md).
Departs: there is no published formula for distance; accuracy is divided by the hops, so that false positives arise
  far from the subscriber and are dropped on the way. Bittner & Hinze's throughput counts hits with the other sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tamis.language.measures import least_hits
from tamis.pruning.errors import UnknownMeasureError
from tamis.pruning.trees import fold_leaves, memory_bytes
from tamis.selectivity.estimates import Estimate, Share, estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression

Key: TypeAlias = tuple[float, float, float]
"""What prunings are ordered by, the best first."""

DIMENSIONS = ("accuracy", "efficiency", "memory", "occurrence", "distance", "overlap")


@dataclass(frozen=True, slots=True)
class FilterFigures:
    """What the measures look at in one version of a filter."""

    estimate: Estimate
    least_hits: int
    memory_bytes: int
    occurrences: float
    """How many entries use its predicates, by occurrence and added up."""


def figures(
    tree: Expression,
    share: Share,
    occurrence: Callable[[Expression], float] | None = None,
    *,
    estimator: Callable[[Expression, Share], Estimate] = estimate,
) -> FilterFigures:
    """Return the figures of a tree in pruning form."""
    occurrences = fold_leaves(tree, occurrence or (lambda _: 1.0))
    return FilterFigures(estimator(tree, share), least_hits(tree), memory_bytes(tree), occurrences)


@dataclass(frozen=True, slots=True)
class FilterVersions:
    """A filter before and after a pruning, and as it was registered."""

    original: FilterFigures
    before: FilterFigures
    after: FilterFigures
    distance: float = 1.0
    """How many hops away the subscriber's broker is."""

    @property
    def accuracy(self) -> float:
        """How much more often the filter may match, at worst (Δsel)."""
        return max(after - first for after, first in zip(self.after.estimate, self.original.estimate, strict=True))

    @property
    def efficiency(self) -> float:
        """How many fewer hits make it a candidate (Δeff)."""
        return self.original.least_hits - self.after.least_hits

    @property
    def throughput(self) -> float:
        """The same, as Bittner & Hinze 2006 count it: the greater the better."""
        return -self.efficiency

    @property
    def network(self) -> float:
        """How much more often the filter may match: how much load it adds to the network."""
        return self.accuracy

    @property
    def memory(self) -> float:
        """How many bytes the step saves (Δmem)."""
        return self.before.memory_bytes - self.after.memory_bytes

    @property
    def occurrence(self) -> float:
        """Accuracy, and how many users the step takes from the filter's predicates (Δocc)."""
        return self.before.occurrences / self.after.occurrences * self.accuracy if self.after.occurrences else 0.0

    @property
    def overlap(self) -> float:
        """How much of what kept subscriptions out is lost, at worst (Δovl); what was nothing cannot be lost."""
        both = zip(self.original.estimate, self.after.estimate, strict=True)
        return max((first - after) / first if first else 0.0 for first, after in both)

    @property
    def by_distance(self) -> float:
        """Accuracy, the less the farther away the subscriber is."""
        return self.accuracy / self.distance


@dataclass(frozen=True, slots=True)
class Measure:
    """An order of prunings: by the first dimension, and between equals by the next."""

    name: str
    dimensions: tuple[str, str, str]
    rule: str = "any"
    """Which prunings count, one of `trees.RULES`."""

    def key(self, change: FilterVersions) -> Key:
        """Return what prunings are ordered by, the least first."""
        one, two, three = (_ascending(dimension, change) for dimension in self.dimensions)
        return one, two, three

    def value(self, key: Key) -> float:
        """Return the degradation or improvement of a pruning as the measure states it, from its key."""
        return -key[0] if self.dimensions[0] == "memory" else key[0]

    def bound(self, threshold: float) -> float:
        """Return the greatest first part of a key that a threshold of the measure allows."""
        return -threshold if self.dimensions[0] == "memory" else threshold


def _ascending(dimension: str, change: FilterVersions) -> float:
    match dimension:
        case "accuracy":
            return change.accuracy
        case "efficiency":
            return float(change.efficiency)
        case "memory":
            return -float(change.memory)
        case "occurrence":
            return change.occurrence
        case "distance":
            return change.by_distance
        case "overlap":
            return change.overlap
    raise AssertionError(f"an unknown dimension: {dimension}")


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("accuracy", ("accuracy", "efficiency", "memory")),
        Measure("efficiency", ("efficiency", "accuracy", "memory")),
        Measure("memory", ("memory", "accuracy", "efficiency"), "innermost"),
        Measure("occurrence", ("occurrence", "accuracy", "efficiency")),
        Measure("distance", ("distance", "accuracy", "efficiency")),
        Measure("network", ("accuracy", "efficiency", "memory")),
        Measure("throughput", ("efficiency", "accuracy", "memory")),
        Measure("overlap", ("overlap", "memory", "efficiency")),
    )
}
"""Every measure by its name. `network`, `memory` and `throughput` are the dimensions of Bittner & Hinze 2006;
`overlap` is for advertisements."""


def measure_of(given: str | Measure) -> Measure:
    """Return a measure by its name, or as it is.

    >>> measure_of("memory").dimensions
    ('memory', 'accuracy', 'efficiency')
    """
    if isinstance(given, Measure):
        return given
    if given not in MEASURES:
        raise UnknownMeasureError(given, tuple(MEASURES))
    return MEASURES[given]
