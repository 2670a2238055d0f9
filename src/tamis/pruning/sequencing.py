"""In which order would a filter be pruned, if nothing else were? Greedy sequences of prunings.

The best pruning first, then the best of the result, until there is none. Such a *sequence* depends on the filter and
on what is known of predicates, and on no other filter. So sequences are computed for many filters in parallel, and one
sort puts all of their steps into the order in which a queue would have taken them (`order`).

`sequence_by_definition` is what a sequence means; `sequences` computes many of them in a compiled loop.

Source: Bittner 2008, section 6.6.2, the local decision (docs/bibliography.md).
Departs: occurrences are those before the first pruning, so that sequences stay independent of one another.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.language.rewrites.monotone import leaf_count, leaves_of
from tamis.pruning import kernels
from tamis.pruning.characteristics import characteristic
from tamis.pruning.errors import GoalError
from tamis.pruning.kernels import COLUMNS, LEAST_HITS, FigureTable, Order, StepTable, Workspace
from tamis.pruning.layout import ForestLayout, constants_known, laid_out
from tamis.pruning.measures import DIMENSIONS, FilterVersions, Key, Measure, figures, measure_of
from tamis.pruning.trees import RULES, memory_bytes, options, pruning_form, without
from tamis.ragged import places_of, starts_of
from tamis.selectivity.estimates import estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tamis.language.expressions import Expression
    from tamis.selectivity.estimates import Share


@dataclass(frozen=True, slots=True)
class PruningStep:
    """One pruning of a sequence."""

    key: Key
    """What it is ordered by, the least first."""
    expression: Expression
    """The filter afterwards."""
    memory_bytes: int
    leaf_count: int


def sequence(
    given: str | Expression,
    share: Share,
    measure: str | Measure = "accuracy",
    *,
    occurrence: Callable[[Expression], float] | None = None,
    distance: float = 1.0,
) -> list[PruningStep]:
    """Return the prunings of a filter, the best first.

    >>> import tamis
    >>> shares = {"a = 1": 0.01, "b = 2": 0.9, "c = 3": 0.5}
    >>> for step in sequence("a = 1 AND b = 2 AND c = 3", lambda predicate: shares[str(predicate)]):
    ...     print(step.expression, round(step.key[0], 4))
    a = 1 AND c = 3 0.0005
    a = 1 0.01

    A filter that is too large raises `BudgetError`.
    """
    ranked = sequences([given], share, measure, occurrence=occurrence, distances=[distance])
    if ranked.layout.too_large:
        pruning_form(given)  # says so
    return ranked.steps(0)


def sequence_by_definition(
    given: str | Expression,
    share: Share,
    measure: str | Measure = "accuracy",
    *,
    occurrence: Callable[[Expression], float] | None = None,
    distance: float = 1.0,
) -> list[PruningStep]:
    """Return the same, step by step and option by option: what `sequence` has to agree with."""
    order = measure_of(measure)
    share = constants_known(share)
    tree = pruning_form(given)
    counted = occurrence or _counted(tree)
    estimator = characteristic if order.dimensions[0] == "overlap" else estimate
    original = before = figures(tree, share, counted, estimator=estimator)
    steps = []
    while prunings := options(tree, order.rule):
        afters = [figures(each.tree, share, counted, estimator=estimator) for each in prunings]
        changes = [
            (FilterVersions(original, before, after, distance), each)
            for after, each in zip(afters, prunings, strict=True)
        ]
        change, chosen = min(changes, key=lambda pair: order.key(pair[0]))
        tree, before = chosen.tree, change.after
        steps.append(PruningStep(order.key(change), tree, memory_bytes(tree), leaf_count(tree)))
    return steps


def _counted(tree: Expression) -> Callable[[Expression], float]:
    counts = Counter(leaves_of(tree))
    return lambda predicate: float(counts[predicate])


@dataclass(slots=True)
class PruningSequences:
    """The sequences of many filters, as columns."""

    layout: ForestLayout
    measure: Measure
    table: StepTable
    """Their steps."""

    def __len__(self) -> int:
        return len(self.table.step_counts)

    @property
    def step_count(self) -> int:
        """How many steps there are together."""
        return int(self.table.step_counts.sum())

    def expression(self, number: int, step_count: int) -> Expression:
        """Return a filter after so many of its steps."""
        tree = self.layout.trees[number]
        assert tree is not None
        return without(tree, set(self.rows(number, step_count)))

    def rows(self, number: int, step_count: int | None = None) -> list[int]:
        """Return the rows that go with the steps of a filter, or with the first of them."""
        begin = self.table.starts[number]
        count = self.table.step_counts[number] if step_count is None else step_count
        rows: list[int] = self.table.rows[begin : begin + count].tolist()
        return rows

    def steps(self, number: int) -> list[PruningStep]:
        """Return all steps of a filter."""
        begin = int(self.table.starts[number])
        sequence_steps = []
        for step in range(int(self.table.step_counts[number])):
            one, two, three = self.table.keys[begin + step].tolist()
            memory, leaves = self.table.sizes[begin + step].tolist()
            sequence_steps.append(PruningStep((one, two, three), self.expression(number, step + 1), memory, leaves))
        return sequence_steps

    def ordered(self, *, is_lexicographic: bool = True) -> Ordered:
        """Put the steps of all filters into the order in which a queue takes them.

        A step cannot come before the one that it follows, so it is ordered by the greatest key up to it. Between
        filters of equal keys the first comes first. Unless the order is lexicographic, the first part of a key counts
        alone.
        """
        table = self.table
        owners = np.repeat(np.arange(len(self)), table.step_counts)
        places = places_of(table.starts[:-1], table.step_counts)
        keys = table.keys.copy() if is_lexicographic else table.keys[:, :1].copy()
        kernels.running_maxima(table.starts, table.step_counts, keys)
        keys = keys[places]
        in_order = np.lexsort((np.arange(len(places)), *keys.T[::-1]))
        return Ordered(owners[in_order], places[in_order], keys[in_order, 0])


@dataclass(slots=True)
class Ordered:
    """The steps of all filters in one order."""

    filters: npt.NDArray[np.int64]
    """Which filter each step is of."""
    places: npt.NDArray[np.int64]
    """Where it stands among the steps of all sequences."""
    firsts: npt.NDArray[np.float64]
    """The first part of its key, or of the greatest key before it."""


def sequences(
    given: Iterable[str | Expression] | ForestLayout,
    share: Share,
    measure: str | Measure = "accuracy",
    *,
    occurrence: Callable[[Expression], float] | None = None,
    distances: Sequence[float] | None = None,
    gone: npt.NDArray[np.bool_] | None = None,
) -> PruningSequences:
    """Return the sequences of many filters.

    Occurrences are counted among these filters, unless somebody knows better. `distances` are hops, one for each.
    """
    order = measure_of(measure)
    layout = given if isinstance(given, ForestLayout) else laid_out(given)
    count = len(layout.trees)
    weights = np.ones(count) if distances is None else np.array(distances, np.float64)
    if not (weights > 0).all():
        raise GoalError("distance", float(weights.min()), "more than 0 hops")
    ranked = PruningSequences(layout, order, step_table(layout))
    kernels.sequences(
        layout.forest,
        layout.leaves(constants_known(share), occurrence),
        np.zeros(layout.row_count, np.bool_) if gone is None else gone,
        weights,
        Order(np.array([DIMENSIONS.index(dimension) for dimension in order.dimensions]), RULES.index(order.rule)),
        ranked.table,
        workspace(layout),
    )
    return ranked


def step_table(layout: ForestLayout) -> StepTable:
    """Return room for the steps of all trees: each step takes one leaf or more, so there are no more than leaves."""
    count = len(layout.trees)
    leaf_counts = np.zeros(0, np.int64)
    if count:
        is_leaf = layout.forest.predicates >= 0
        leaf_counts = np.add.reduceat(is_leaf, layout.forest.nodes.starts[:-1], dtype=np.int64)
    starts = starts_of(leaf_counts)
    room = int(starts[-1])
    return StepTable(
        starts,
        step_counts=np.zeros(count, np.int32),
        first_sizes=np.zeros((count, 2), np.int32),
        rows=np.zeros(room, np.int32),
        keys=np.zeros((room, 3)),
        sizes=np.zeros((room, 2), np.int32),
    )


def workspace(layout: ForestLayout) -> Workspace:
    """Return room to work in, for the largest of some trees."""
    largest = int(layout.forest.nodes.counts.max(initial=1))
    return Workspace(
        state=np.zeros((largest, 3), np.int32),
        values=np.zeros((largest, COLUMNS)),
        operands=np.zeros((largest, LEAST_HITS + 1)),
        prunable=np.zeros(largest, np.bool_),
        saved=np.zeros((largest, COLUMNS)),
        best=np.zeros(5),
        figures=FigureTable(np.zeros(COLUMNS), np.zeros(COLUMNS), np.zeros(COLUMNS)),
    )
