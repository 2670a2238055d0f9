"""How does a broker keep the filters of others small while they come and go? A priority queue.

A queue holds the best step of every entry. Pruning takes the best of all, carries it out, and puts the entry's next
step in; until a goal is reached. Entries may be added and removed at any time. What was registered is kept beside what
became of it: damage is measured against the original, and an entry is removed by its key, pruned or not.

What is known of predicates changes with time, and with it the ranks of the entries that wait. Ranks can be taken as
they are (*strict*), looked at again when an entry's turn comes and put back if they moved (*static*), or put back
if another entry is better by now (*dynamic*). `learn` ranks all of them anew.

Source: Bittner 2008, section 6.6: the queue, its stops and its three ways with stale ranks (docs/bibliography.md).
Departs: a whole sequence is computed at once, in a compiled loop, instead of one step each time.
"""

from __future__ import annotations

from collections import Counter
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.parser import parse
from tamis.pruning.errors import DuplicateEntryError, GoalError, UnknownEntryError
from tamis.pruning.goals import Goal
from tamis.pruning.layout import laid_out
from tamis.pruning.measures import measure_of
from tamis.pruning.sequencing import PruningSequences, sequences
from tamis.pruning.trees import without

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from tamis.language.expressions import Expression
    from tamis.pruning.measures import Measure
    from tamis.selectivity.estimates import Share

STALENESS = ("strict", "static", "dynamic")
_MOST_RETURNS = 3
_MOST_PASSED_OVER = 64
"""So many steps of removed entries may wait in the queue, besides as many as there are entries."""


class _PrunedFilter:
    """What is kept of a filter."""

    __slots__ = ("distance", "done", "key", "number", "original", "returns", "sequences", "serial", "step")

    def __init__(self, key: Hashable, original: Expression, distance: float, serial: int) -> None:
        self.key = key
        self.original = original
        self.distance = distance
        self.serial = serial
        self.done: tuple[int, ...] = ()  # the rows that went before the sequence was computed
        self.sequences: PruningSequences | None = None
        self.number = 0
        self.step = 0  # how many steps of the sequence are done
        self.returns = 0

    @property
    def ranked(self) -> PruningSequences:
        assert self.sequences is not None
        return self.sequences

    @property
    def is_pruned(self) -> bool:
        return self.step > 0 or bool(self.done)

    @property
    def is_too_large(self) -> bool:
        return self.ranked.layout.trees[self.number] is None

    @property
    def left(self) -> int:
        return int(self.ranked.table.step_counts[self.number]) - self.step

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes and leaves at present."""
        if self.step == 0:
            memory, leaf_count = self.ranked.table.first_sizes[self.number].tolist()
        else:
            memory, leaf_count = self.ranked.table.sizes[self.ranked.table.starts[self.number] + self.step - 1].tolist()
        return memory, leaf_count

    @property
    def rows(self) -> tuple[int, ...]:
        """All rows that are gone."""
        return (*self.done, *self.ranked.rows(self.number, self.step))


class Pruner:
    """Filters of others, by key, and what they are pruned to.

    >>> import tamis
    >>> shares = {"title = 'Dune'": 0.001, "price < 20": 0.6, "signed = TRUE": 0.1}
    >>> pruner = Pruner(lambda predicate: shares[str(predicate)])
    >>> pruner.add("s1", "title = 'Dune' AND price < 20")
    >>> pruner.add("s2", "signed = TRUE AND price < 20")
    >>> pruner.prune(count=1)
    ['s1']
    >>> print(pruner.expression("s1"), "|", pruner.original("s1"), "|", pruner.reduction)
    title = 'Dune' | title = 'Dune' AND price < 20 | 0.25
    """

    def __init__(
        self,
        share: Share,
        measure: str | Measure = "accuracy",
        *,
        occurrence: Callable[[Expression], float] | None = None,
        is_lexicographic: bool = True,
    ) -> None:
        self._share = share
        self.measure = measure_of(measure)
        self._occurrence = occurrence
        self._counts_occurrences = occurrence is None and "occurrence" in self.measure.dimensions
        self._occurrences: Counter[Expression] = Counter()
        self._is_lexicographic = is_lexicographic
        self._entries: dict[Hashable, _PrunedFilter] = {}
        self._by_serial: dict[int, _PrunedFilter] = {}
        self._new: dict[Hashable, _PrunedFilter] = {}
        self._serial = 0
        self._queue: list[tuple[float, ...]] = []
        self._done_count = self._left_count = self._leaf_count = self._memory_bytes = self._original_leaf_count = 0

    # -- Entries

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Any]:
        return iter(self._entries)

    def add(self, key: Hashable, given: str | Expression, *, distance: float = 1.0) -> None:
        """Register a filter, whose subscriber is so many hops away."""
        if key in self._entries:
            raise DuplicateEntryError(key)
        if not distance > 0:
            raise GoalError("distance", distance, "more than 0 hops")
        entry = _PrunedFilter(key, parse(given) if isinstance(given, str) else given, distance, self._serial)
        self._entries[key] = self._new[key] = self._by_serial[self._serial] = entry
        self._serial += 1

    def add_many(self, entries: Iterable[tuple[Hashable, str | Expression]]) -> None:
        """Register filters."""
        for key, given in entries:
            self.add(key, given)

    def remove(self, key: Hashable) -> None:
        """Forget a filter, pruned or not."""
        entry = self._entry(key)
        if key in self._new:
            del self._new[key]
        else:
            self._forget_figures(entry)
            if self._counts_occurrences:
                self._count_leaves([entry], -1)
        del self._entries[key]
        del self._by_serial[entry.serial]  # what waits in the queue is passed over when its turn comes
        if len(self._queue) > 2 * len(self._entries) + _MOST_PASSED_OVER:
            self._queue = [each for each in self._queue if int(each[-1]) in self._by_serial]
            heapify(self._queue)

    def expression(self, key: Hashable) -> Expression:
        """Return a filter as it is pruned at present."""
        entry = self._entry(key)
        if entry.sequences is None or not entry.is_pruned:
            return entry.original
        tree = entry.sequences.layout.trees[entry.number]
        assert tree is not None
        return without(tree, set(entry.rows))

    def original(self, key: Hashable) -> Expression:
        """Return a filter as it was registered."""
        return self._entry(key).original

    def step_count(self, key: Hashable) -> int:
        """Return how often a filter was pruned."""
        entry = self._entry(key)
        return len(entry.done) + entry.step

    def _entry(self, key: Hashable) -> _PrunedFilter:
        try:
            return self._entries[key]
        except KeyError:
            raise UnknownEntryError(key) from None

    # -- Figures

    @property
    def pruned_count(self) -> int:
        """How many prunings the present entries have behind them."""
        return self._done_count

    @property
    def possible_count(self) -> int:
        """How many prunings there are altogether, those that are done included."""
        self._rank_new()
        return self._done_count + self._left_count

    @property
    def share(self) -> float:
        """The share of all possible prunings that are done (pru^prop)."""
        return self._done_count / self.possible_count if self.possible_count else 0.0

    @property
    def leaf_count(self) -> int:
        """How many predicates the entries have, by occurrence."""
        self._rank_new()
        return self._leaf_count

    @property
    def memory_bytes(self) -> int:
        """How many bytes all trees take together."""
        self._rank_new()
        return self._memory_bytes

    @property
    def reduction(self) -> float:
        """The share of all predicates that are gone, by occurrence (M)."""
        self._rank_new()
        return 1 - self._leaf_count / self._original_leaf_count if self._original_leaf_count else 0.0

    @property
    def too_large(self) -> list[Any]:
        """The keys of the filters with too many predicates to be pruned: they stay as they are.

        Figures take each of them for a single predicate.

        >>> pruner = Pruner(lambda predicate: 0.5)
        >>> pruner.add("small", "at_least(2, a = 1, b = 2, c = 3)")
        >>> pruner.add("large", f"at_least(2, {', '.join(f'a = {number}' for number in range(301))})")
        >>> pruner.too_large
        ['large']
        """
        self._rank_new()
        return [key for key, entry in self._entries.items() if entry.is_too_large]

    # -- Ranks

    def learn(self, share: Share, *, is_ranked: bool = True) -> None:
        """Take note of new shares; and rank everything anew, unless ranks may stay as they are for now."""
        self._share = share
        if is_ranked:
            entries = list(self._entries.values())
            for entry in entries:
                if entry.sequences is not None:
                    self._forget_figures(entry)
            if self._counts_occurrences:
                self._count_leaves(self._new.values(), 1)
            self._new.clear()
            self._queue = []
            self._rank(entries)

    def _rank_new(self) -> None:
        if self._new:
            entries = list(self._new.values())
            self._new.clear()
            if self._counts_occurrences:
                self._count_leaves(entries, 1)
            self._rank(entries)

    def _rank(self, entries: list[_PrunedFilter]) -> None:
        ranked = self._sequences(entries)
        for number, entry in enumerate(entries):
            if entry.sequences is not None:
                entry.done = entry.rows
            entry.sequences, entry.number, entry.step = ranked, number, 0
            memory, leaf_count = entry.sizes
            self._memory_bytes += memory
            self._leaf_count += leaf_count
            self._original_leaf_count += self._first_leaf_count(entry)
            self._done_count += len(entry.done)
            self._left_count += entry.left
            if entry.left:
                self._queue.append(self._key(entry))
        heapify(self._queue)

    def _sequences(self, entries: list[_PrunedFilter]) -> PruningSequences:
        layout = laid_out(entry.original for entry in entries)
        gone = np.zeros(layout.row_count, np.bool_)
        for number, entry in enumerate(entries):
            if entry.sequences is not None and entry.is_pruned:
                gone[layout.forest.nodes.starts[number] + np.array(entry.rows)] = True
        occurrence = self._occurrences_of if self._counts_occurrences else self._occurrence
        distances = [entry.distance for entry in entries]
        return sequences(layout, self._share, self.measure, occurrence=occurrence, distances=distances, gone=gone)

    def _occurrences_of(self, predicate: Expression) -> float:
        return float(self._occurrences[predicate])

    def _first_leaf_count(self, entry: _PrunedFilter) -> int:
        return len(entry.ranked.layout.leaf_numbers(entry.number))

    def _count_leaves(self, entries: Iterable[_PrunedFilter], by: int) -> None:
        """Take note of who uses which predicates, as they were registered."""
        layout = laid_out(entry.original for entry in entries)
        numbers, counts = np.unique(layout.leaf_numbers(), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._occurrences[layout.predicates[number]] += by * count

    def _forget_figures(self, entry: _PrunedFilter) -> None:
        memory, leaf_count = entry.sizes
        self._memory_bytes -= memory
        self._leaf_count -= leaf_count
        self._original_leaf_count -= self._first_leaf_count(entry)
        self._done_count -= len(entry.done) + entry.step
        self._left_count -= entry.left

    def _key(self, entry: _PrunedFilter) -> tuple[float, ...]:
        keys: list[float] = entry.ranked.table.keys[entry.ranked.table.starts[entry.number] + entry.step].tolist()
        return (*(keys if self._is_lexicographic else keys[:1]), entry.serial)

    # -- Pruning

    def prune(
        self,
        *,
        count: int | None = None,
        share: float | None = None,
        threshold: float | None = None,
        reduction: float | None = None,
        memory_bytes: float | None = None,
        staleness: str = "strict",
        tolerance: float = 0.0,
        most_returns: int = _MOST_RETURNS,
    ) -> list[Any]:
        """Prune until a goal is reached (see `goals`); return the keys of the filters that changed, in order.

        Ranks are taken as they are (strict); or looked at again, and put back if they moved by more than a tolerance
        (static), or if they are by more than that behind the next (dynamic), though no entry more than a few times.
        """
        goal = Goal(count, share, threshold, reduction, memory_bytes)
        if staleness not in STALENESS:
            raise GoalError("staleness", staleness, f"one of {', '.join(STALENESS)}")
        self._rank_new()
        bound = None if goal.threshold is None else self.measure.bound(goal.threshold)
        most = goal.most_of(self._done_count + self._left_count)
        for entry in self._entries.values() if staleness != "strict" else ():
            entry.returns = 0
        changed: dict[Any, None] = {}
        taken = 0
        queue, by_serial = self._queue, self._by_serial
        while queue:
            if (goal.count is not None and taken >= goal.count) or self._done_count >= most:
                break
            if goal.is_small_enough(self._leaf_count, self._original_leaf_count, self._memory_bytes):
                break
            best = queue[0]
            ranked_entry = by_serial.get(int(best[-1]))
            if ranked_entry is None:
                heappop(queue)
                continue
            if bound is not None and best[0] > bound:
                break
            heappop(queue)
            if staleness != "strict" and ranked_entry.returns < most_returns:
                self._rank_again(ranked_entry)
                if not ranked_entry.left:
                    continue
                now = self._key(ranked_entry)
                is_other = abs(now[0] - best[0]) > tolerance
                if staleness == "dynamic":
                    rival = queue[0] if queue else None
                    is_other = rival is not None and now[0] > rival[0] + tolerance
                if is_other:
                    ranked_entry.returns += 1
                    heappush(queue, now)
                    continue
            self._take(ranked_entry)
            taken += 1
            changed[ranked_entry.key] = None
            if ranked_entry.left:
                heappush(queue, self._key(ranked_entry))
        return list(changed)

    def _take(self, entry: _PrunedFilter) -> None:
        memory, leaf_count = entry.sizes
        entry.step += 1
        less_memory, fewer_leaves = entry.sizes
        self._memory_bytes += less_memory - memory
        self._leaf_count += fewer_leaves - leaf_count
        self._done_count += 1
        self._left_count -= 1

    def _rank_again(self, entry: _PrunedFilter) -> None:
        self._left_count -= entry.left
        sequences = self._sequences([entry])
        entry.done, entry.sequences, entry.number, entry.step = entry.rows, sequences, 0, 0
        self._left_count += entry.left
