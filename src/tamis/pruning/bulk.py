"""How are a million filters pruned at once? Bulk pruning.

Their sequences are computed one by one in a compiled loop, all steps are sorted, and a goal is a cut in that order: so
many steps, or as many as stay below a threshold, or as many as it takes for the filters to be small enough. The
result is that of a queue that takes the best step of all filters again and again (`pruner`), which waits for nobody.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.language.parser import parse
from tamis.pruning.kernels import BYTES, LEAVES
from tamis.pruning.sequencing import Ordered, PruningSequences, sequences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tamis.language.expressions import Expression
    from tamis.pruning.goals import Goal
    from tamis.pruning.measures import Measure
    from tamis.selectivity.estimates import Share


def prune_many(
    filters: Iterable[str | Expression],
    share: Share,
    goal: Goal,
    measure: str | Measure = "accuracy",
    *,
    occurrence: Callable[[Expression], float] | None = None,
    distances: Sequence[float] | None = None,
    is_lexicographic: bool = True,
) -> list[Expression]:
    """Prune filters together, until a goal is reached; return them in their order.

    >>> from tamis.pruning import Goal
    >>> shares = {"a = 1": 0.1, "b = 2": 0.2, "c = 3": 0.95}
    >>> filters = ["a = 1 AND b = 2", "b = 2 AND c = 3"]
    >>> [str(each) for each in prune_many(filters, lambda predicate: shares[str(predicate)], Goal(count=1))]
    ['a = 1 AND b = 2', 'b = 2']
    """
    originals = [parse(each) if isinstance(each, str) else each for each in filters]
    ranked = sequences(originals, share, measure, occurrence=occurrence, distances=distances)
    cut = Cut.of(ranked, ranked.ordered(is_lexicographic=is_lexicographic), goal)
    return [
        ranked.expression(number, steps) if steps else original
        for number, (original, steps) in enumerate(zip(originals, cut.step_counts.tolist(), strict=True))
    ]


@dataclass(slots=True)
class Cut:
    """How far each filter is pruned, and what that makes of all of them."""

    step_count: int
    step_counts: npt.NDArray[np.int64]
    """Of each filter: how many of its steps are taken."""
    leaf_count: int
    memory_bytes: int
    reduction: float
    """The share of all predicates that are gone, by occurrence."""

    @classmethod
    def of(cls, sequences: PruningSequences, ordered: Ordered, goal: Goal) -> Cut:
        """Cut the order of all steps where a goal is reached."""
        total = len(ordered.filters)
        leaves, memory = running_totals(sequences, ordered)
        last = min(total if goal.count is None else goal.count, goal.most_of(total))
        if goal.threshold is not None:
            bound = sequences.measure.bound(goal.threshold)
            last = min(last, int(np.searchsorted(ordered.firsts, bound, side="right")))
        if goal.reduction is not None:
            enough = np.flatnonzero(leaves[0] - leaves >= goal.reduction * leaves[0])
            last = min(last, int(enough[0]) if len(enough) else total)
        if goal.memory_bytes is not None:
            enough = np.flatnonzero(memory <= goal.memory_bytes)
            last = min(last, int(enough[0]) if len(enough) else total)
        taken = np.bincount(ordered.filters[:last], minlength=len(sequences))
        gone = (leaves[0] - leaves[last]) / leaves[0] if leaves[0] else 0.0
        return cls(last, taken, int(leaves[last]), int(memory[last]), float(gone))


def running_totals(
    sequences: PruningSequences, ordered: Ordered
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the leaves and bytes of all filters together, before the first step and after each."""
    table = sequences.table
    before = np.empty_like(table.sizes)
    before[1:] = table.sizes[:-1]
    has_steps = table.step_counts > 0
    before[table.starts[:-1][has_steps]] = table.first_sizes[has_steps]
    saved = (before - table.sizes)[ordered.places].astype(np.int64)
    first = table.first_sizes.sum(0, dtype=np.int64)
    totals = np.concatenate([first[None], first[None] - np.cumsum(saved, 0)])
    return totals[:, LEAVES], totals[:, BYTES]
