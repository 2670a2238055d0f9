"""How does a broker keep many filters of others small, with little more than the small ones?

A filter gets a number. When it is ranked, the order in which its branches would go is written down as rows of an
array, with what each step costs and saves; of the filter itself, once it is pruned, a packed text is left, and a count
of the steps that are taken. A goal is then a cut through all steps in order (`bulk`), as a queue would take them:
nothing is ranked again for it. It counts from the filters as they came, so a smaller goal takes prunings back. What
comes later is pruned as it comes, as far as the goal went.

Ranks grow old as shares change; `is_ranked_anew` computes them all again.

Source: Bittner 2008, section 6.6: ranks are computed at registration, carried out in bulk or at insertion
  (docs/bibliography.md).
Departs: ranks wait in one sorted order instead of a queue; both take the same steps.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.language.expressions import Expression
from tamis.pruning import kernels
from tamis.pruning.bulk import Cut, running_totals
from tamis.pruning.errors import GoalError, UnknownEntryError
from tamis.pruning.kernels import BYTES, LEAVES, StepTable
from tamis.pruning.layout import laid_out
from tamis.pruning.measures import measure_of
from tamis.pruning.packing import Packed
from tamis.pruning.sequencing import PruningSequences, sequences
from tamis.pruning.trees import without
from tamis.ragged import places_of, starts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.pruning.goals import Goal
    from tamis.pruning.measures import Measure
    from tamis.pruning.sequencing import Ordered
    from tamis.selectivity.estimates import Share

_UNRANKED = -1
_STALE = -2
"""In place of a count of steps: those that were taken are of an order that holds no more."""
_FIRST_ROOM = 256


class _Ranks(NamedTuple):
    """What is known of each filter, by number. There may be more rows than numbers.

    taken        int64[:]     how many of its steps are taken, or _UNRANKED or _STALE
    begins       int64[:]     where its steps begin
    step_counts  int32[:]     how many there are
    first_sizes  int32[:, 2]  its BYTES and LEAVES before the first; 0 for a number that is free or not ranked
    """

    taken: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    step_counts: npt.NDArray[np.int32]
    first_sizes: npt.NDArray[np.int32]

    @classmethod
    def made(cls, room: int) -> _Ranks:
        return cls(
            np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int32), np.zeros((room, 2), np.int32)
        )

    def doubled(self) -> _Ranks:
        return _Ranks(*(np.concatenate([column, np.zeros_like(column)]) for column in self))


class _Steps(NamedTuple):
    """What each step does, a row each; the steps of a filter lie one behind the other, in their order.

    rows   int32[:]       the row whose branch goes
    keys   float64[:, 3]  the greatest key up to it
    sizes  int32[:, 2]    the filter's BYTES and LEAVES afterwards
    """

    rows: npt.NDArray[np.int32]
    keys: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int32]

    @classmethod
    def made(cls, room: int) -> _Steps:
        return cls(np.zeros(room, np.int32), np.zeros((room, 3)), np.zeros((room, 2), np.int32))

    def moved(self, places: npt.NDArray[np.int64], room: int) -> _Steps:
        """Return the steps at some places, one behind the other, with so much room in all."""
        moved = _Steps.made(room)
        moved.rows[: len(places)] = self.rows[places]
        moved.keys[: len(places)] = self.keys[places]
        moved.sizes[: len(places)] = self.sizes[places]
        return moved


class PrunedTable:
    """Filters of others by number, and what they are pruned to.

    >>> import tamis
    >>> from tamis.pruning import Goal
    >>> shares = {"title = 'Dune'": 0.001, "price < 20": 0.6, "signed = TRUE": 0.1}
    >>> table = PrunedTable(lambda predicate: shares[str(predicate)])
    >>> numbers = [table.add(tamis.parse(f"{each} AND price < 20")) for each in ("title = 'Dune'", "signed = TRUE")]
    >>> [(number, str(version)) for number, version in table.prune(Goal(count=1))]
    [(0, "title = 'Dune'")]
    >>> print(table.original(0), "|", table.reduction)
    title = 'Dune' AND price < 20 | 0.25
    """

    def __init__(self, share: Share, measure: str | Measure = "accuracy") -> None:
        self.share = share
        self.measure = measure_of(measure)
        self._originals: list[Expression | int | None] = []
        """As it came; where it is packed, if it is pruned; None for a number that is free."""
        self._packed = Packed()
        self._free: list[int] = []
        self._new: dict[int, None] = {}
        self._distances: list[float] = []
        self._occurrences: Counter[Expression] | None = Counter() if "occurrence" in self.measure.dimensions else None
        self._ranks = _Ranks.made(_FIRST_ROOM)
        self._steps = _Steps.made(_FIRST_ROOM)
        self._used = 0  # how many steps are written
        self._bound: float | None = None

    # -- Filters

    def __len__(self) -> int:
        return len(self._originals) - len(self._free)

    def __contains__(self, number: int) -> bool:
        return 0 <= number < len(self._originals) and self._originals[number] is not None

    def __iter__(self) -> Iterator[int]:
        return (number for number, original in enumerate(self._originals) if original is not None)

    def add(self, expression: Expression, *, distance: float = 1.0) -> int:
        """Take a filter, whose subscriber is so many hops away; return its number."""
        if not distance > 0:
            raise GoalError("distance", distance, "more than 0 hops")
        if self._free:
            number = self._free.pop()
            self._originals[number], self._distances[number] = expression, distance
        else:
            number = len(self._originals)
            self._originals.append(expression)
            self._distances.append(distance)
            if number == len(self._ranks.taken):
                self._ranks = self._ranks.doubled()
        self._forget_rank(number)
        self._new[number] = None
        return number

    def remove(self, number: int) -> Expression:
        """Forget a filter, pruned or not; return what it was."""
        original = self.original(number)
        if number in self._new:
            del self._new[number]
        elif self._occurrences is not None:
            self._count_leaves([original], -1)
        kept = self._originals[number]
        if isinstance(kept, int):
            self._packed.forget(kept)
        self._originals[number] = None
        self._forget_rank(number)
        self._free.append(number)
        return original

    def _forget_rank(self, number: int) -> None:
        self._ranks.taken[number], self._ranks.step_counts[number] = _UNRANKED, 0
        self._ranks.first_sizes[number] = 0

    def original(self, number: int) -> Expression:
        """Return a filter as it came."""
        if number not in self:
            raise UnknownEntryError(number)
        kept = self._originals[number]
        return kept if isinstance(kept, Expression) else self._packed[kept]  # type: ignore[index]

    def expression(self, number: int) -> Expression:
        """Return a filter as it is pruned at present."""
        return self._version(number, self.original(number))

    @property
    def has_new(self) -> bool:
        """Has anything come that is not ranked yet?"""
        return bool(self._new)

    def is_pruned(self, number: int) -> bool:
        """Is it another filter than the one that came?"""
        return bool(self._ranks.taken[number] > 0)

    def _version(self, number: int, original: Expression) -> Expression:
        taken = int(self._ranks.taken[number])
        if taken <= 0:
            return original
        (tree,) = laid_out([original]).trees
        assert tree is not None, "what is too large has no steps"
        begin = int(self._ranks.begins[number])
        return without(tree, set(self._steps.rows[begin : begin + taken].tolist()))

    # -- Figures

    @property
    def possible_count(self) -> int:
        """How many prunings there are of all that is ranked, those that are done included."""
        return int(self._ranks.step_counts[: len(self._originals)].sum())

    @property
    def pruned_count(self) -> int:
        """How many prunings are done."""
        return int(np.maximum(self._ranks.taken[: len(self._originals)], 0).sum())

    @property
    def reduction(self) -> float:
        """The share of all predicates that are gone, by occurrence (M)."""
        ranks = self._ranks
        numbers = np.flatnonzero(ranks.first_sizes[: len(self._originals), LEAVES])
        before = int(ranks.first_sizes[numbers, LEAVES].sum())
        pruned = numbers[ranks.taken[numbers] > 0]
        after = self._sizes_now(pruned)[:, LEAVES]
        return float((ranks.first_sizes[pruned, LEAVES] - after).sum() / before) if before else 0.0

    def _sizes_now(self, pruned: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Return bytes and leaves of filters that are pruned, as they are now."""
        sizes: npt.NDArray[np.int32] = self._steps.sizes[self._ranks.begins[pruned] + self._ranks.taken[pruned] - 1]
        return sizes

    # -- Ranks

    def _rank(self, numbers: Sequence[int]) -> None:
        """Write down in which order each of some filters would be pruned."""
        originals = [self.original(number) for number in numbers]
        if self._occurrences is not None:
            self._count_leaves([self.original(number) for number in numbers if number in self._new], 1)
        occurrences = self._occurrences
        ranked = sequences(
            laid_out(originals),
            self.share,
            self.measure,
            occurrence=None if occurrences is None else lambda predicate: float(occurrences[predicate]),
            distances=[self._distances[number] for number in numbers],
        )
        table = ranked.table
        kernels.running_maxima(table.starts, table.step_counts, table.keys)
        places = places_of(table.starts[:-1], table.step_counts)
        self._make_room(len(places))
        written = slice(self._used, self._used + len(places))
        self._steps.rows[written], self._steps.keys[written] = table.rows[places], table.keys[places]
        self._steps.sizes[written] = table.sizes[places]
        ranks, at = self._ranks, np.array(numbers, np.int64)
        ranks.begins[at] = self._used + starts_of(table.step_counts)[:-1]
        ranks.step_counts[at], ranks.first_sizes[at] = table.step_counts, table.first_sizes
        ranks.taken[at] = np.where(ranks.taken[at] > 0, _STALE, ranks.taken[at])
        ranks.taken[at] = np.where(ranks.taken[at] == _UNRANKED, 0, ranks.taken[at])
        self._used += len(places)
        for number in numbers:
            self._new.pop(number, None)

    def _make_room(self, count: int) -> None:
        """Make room for more steps; those of filters that are gone are left out."""
        if self._used + count <= len(self._steps.rows):
            return
        number_count = len(self._originals)
        begins, counts = self._ranks.begins[:number_count], self._ranks.step_counts[:number_count]
        places = places_of(begins, counts)
        self._steps = self._steps.moved(places, max(_FIRST_ROOM, len(places) + len(places) // 2 + count))
        begins[:] = starts_of(counts)[:-1]
        self._used = len(places)

    def _count_leaves(self, originals: list[Expression], by: int) -> None:
        assert self._occurrences is not None
        layout = laid_out(originals)
        numbers, counts = np.unique(layout.leaf_numbers(), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            predicate = layout.predicates[number]
            self._occurrences[predicate] += by * count
            if not self._occurrences[predicate]:
                del self._occurrences[predicate]

    # -- Pruning

    def prune(self, goal: Goal, *, is_ranked_anew: bool = False) -> list[tuple[int, Expression]]:
        """Prune until a goal is reached, counted from the filters as they came; return what changed, as it is now.

        What was pruned further before is taken back as far as needed.
        """
        if is_ranked_anew:
            ranked = [number for number in self if number not in self._new]
            self._ranks.step_counts[ranked] = 0
            self._ranks.first_sizes[ranked] = 0
            self._rank([*ranked, *self._new])
        elif self._new:
            self._rank(list(self._new))
        numbers = np.flatnonzero(self._ranks.taken[: len(self._originals)] != _UNRANKED)
        ranked_steps = self._steps_of(numbers)
        ordered = ranked_steps.ordered()
        cut = Cut.of(ranked_steps, ordered, goal)
        self._bound = float(ordered.firsts[cut.step_count - 1]) if cut.step_count else None
        if goal.threshold is not None:
            self._bound = self.measure.bound(goal.threshold)
        return self._take(numbers, cut.step_counts)

    def prune_new(self, goal: Goal | None = None) -> list[tuple[int, Expression]]:
        """Prune what came since, as far as the last goal went, or as another goal says; return what changed.

        What was there before stays as it is. A `count` is of each filter; `share`, `reduction` and `memory_bytes` are
        of all filters together.
        """
        if not self._new or (goal is None and self._bound is None):
            return []
        numbers = np.array(list(self._new), np.int64)
        before = np.flatnonzero(self._ranks.taken[: len(self._originals)] != _UNRANKED)
        self._rank(numbers.tolist())
        steps = self._steps_of(numbers)
        ordered = steps.ordered()
        bound = self._bound
        if goal is not None:
            bound = None if goal.threshold is None else self.measure.bound(goal.threshold)
        last = len(ordered.filters) if bound is None else int(np.searchsorted(ordered.firsts, bound, side="right"))
        if goal is not None:
            last = min(last, self._enough(goal, before, steps, ordered))
        counts = np.bincount(ordered.filters[:last], minlength=len(numbers))
        return self._take(numbers, counts if goal is None or goal.count is None else np.minimum(counts, goal.count))

    def _enough(self, goal: Goal, before: npt.NDArray[np.int64], steps: PruningSequences, ordered: Ordered) -> int:
        """Return how many steps of new filters bring all filters to a goal, beside those that were there before."""
        leaves, memory = running_totals(steps, ordered)
        sizes = self._ranks.first_sizes[before].astype(np.int64)
        is_pruned = self._ranks.taken[before] > 0
        now = sizes.copy()
        now[is_pruned] = self._sizes_now(before[is_pruned])
        last = len(ordered.filters)
        if goal.share is not None:
            last = min(last, max(0, goal.most_of(self.possible_count) - self.pruned_count))
        if goal.reduction is not None:
            total = int(sizes[:, LEAVES].sum() + leaves[0])
            enough = np.flatnonzero(total - int(now[:, LEAVES].sum()) - leaves >= goal.reduction * total)
            last = min(last, int(enough[0]) if len(enough) else last)
        if goal.memory_bytes is not None:
            enough = np.flatnonzero(int(now[:, BYTES].sum()) + memory <= goal.memory_bytes)
            last = min(last, int(enough[0]) if len(enough) else last)
        return last

    def _steps_of(self, numbers: npt.NDArray[np.int64]) -> PruningSequences:
        """Return the steps of some filters, one filter behind the other."""
        counts = self._ranks.step_counts[numbers]
        places = places_of(self._ranks.begins[numbers], counts)
        first_sizes, steps = self._ranks.first_sizes[numbers], self._steps
        table = StepTable(
            starts_of(counts), counts, first_sizes, steps.rows[places], steps.keys[places], steps.sizes[places]
        )
        return PruningSequences(laid_out([]), self.measure, table)

    def _take(self, numbers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> list[tuple[int, Expression]]:
        """Let so many steps of each filter be taken; return those that changed, as they are now."""
        is_changed = self._ranks.taken[numbers] != counts
        changed = []
        for number, count in zip(numbers[is_changed].tolist(), counts[is_changed].tolist(), strict=True):
            original = self.original(number)
            self._ranks.taken[number] = count
            kept = self._originals[number]
            if count and isinstance(kept, Expression):
                self._originals[number] = self._packed.add(original)
            elif not count and isinstance(kept, int):
                self._packed.forget(kept)
                self._originals[number] = original
            changed.append((number, self._version(number, original)))
        return changed
