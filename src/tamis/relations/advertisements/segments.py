"""Which filters of an immutable set can still be true without some predicates?

The filters are laid out as rows for the compiled loop; what is removed is marked. The loop hands candidates out in
portions: those first of which no predicate is disjoint to the query, because they overlap it nearly always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import BudgetError
from tamis.language.expressions import FALSE, TRUE, And, AtLeast, Expression, Literal, Or
from tamis.language.measures import least_hits
from tamis.language.rewrites.monotone import leaf_count, leaves_of, monotone
from tamis.ragged import Ragged
from tamis.relations.advertisements import kernels
from tamis.relations.advertisements.disjoint import MOST_LEAVES, Effort, alternatives
from tamis.relations.advertisements.kernels import Falsehoods, FilterForest, OverlapScratch
from tamis.relations.advertisements.predicates import Predicates

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from numpy.typing import NDArray

    from tamis.relations.forms import Context


_MOST_COMPARED = 1_000_000
_MOST_TIMES = 50
"""So many predicates are compared with those of one query, or all of them so many times."""
_GROWTH = 8
"""Each portion is so many times as large as the one before: what is handed out again and again is counted anew."""


def laid_out_form(expression: Expression) -> Expression:
    """Return the tree of a filter by which it is found: TRUE if that would be too large, and it is found always.

    >>> import tamis
    >>> print(laid_out_form(tamis.parse("NOT sold OR price < 5")))
    sold = FALSE OR price < 5
    """
    try:
        tree = monotone(expression)
    except BudgetError:
        return TRUE
    return tree if leaf_count(tree) <= MOST_LEAVES else TRUE


def laid_out(filters: list[Expression], predicates: Predicates) -> FilterForest:
    """Lay filters out as trees, whose predicates are given numbers."""
    row_counts: list[int] = []
    rows: list[tuple[int, int, int]] = []
    owners: list[int] = []
    used: list[int] = []
    needed: list[int] = []
    leaf_counts: list[int] = []
    for number, expression in enumerate(filters):
        tree = laid_out_form(expression)
        begin = len(rows)
        stack: list[tuple[Expression, int]] = [(tree, 0)]
        while stack:
            node, parent = stack.pop()
            row = len(rows) - begin
            if isinstance(node, And | Or | AtLeast):
                need = len(node.children) if isinstance(node, And) else 1
                rows.append((parent, node.count if isinstance(node, AtLeast) else need, -1))
                stack.extend((child, row) for child in reversed(node.children))
            elif isinstance(node, Literal):
                rows.append((parent, 0 if node.value is True else 1, -1))
            else:
                predicate = predicates.number(node)
                rows.append((parent, 0, predicate))
                owners.append(number)
                used.append(predicate)
        row_counts.append(len(rows) - begin)
        # A filter that is never true would pass for one that needs no hits.
        needed.append(least_hits(tree) if tree != FALSE else len(rows) + 1)
        leaf_counts.append(0 if isinstance(tree, Literal) else len(leaves_of(tree)))
    return FilterForest(
        rows=Ragged.of_counts(np.array(row_counts, np.int64), np.array(rows, np.int32).reshape(-1, 3)),
        owners=Ragged.grouped(np.array(used, np.int64), np.array(owners, np.int32), len(predicates)),
        least_hits=np.array(needed, np.int32),
        leaf_counts=np.array(leaf_counts, np.int32),
    )


class FilterSegment:
    """Filters laid out for the compiled loop, in the order in which they were added."""

    def __init__(self, keys: list[Any], filters: list[Expression], context: Context) -> None:
        self._keys = keys
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._context = context
        self._predicates = Predicates(context)
        self.candidate_count = self.evaluated_count = 0
        self._forest = laid_out(filters, self._predicates)
        self._is_there = np.ones(len(keys), np.bool_)
        largest = int(self._forest.rows.counts.max(initial=1))
        self._scratch = OverlapScratch(np.zeros(len(keys), np.int32), np.zeros(largest, np.int32))
        self._predicates.sort()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def keys(self) -> list[Any]:
        """The keys of those who were not removed."""
        return list(self._numbers)

    def remove(self, key: Hashable) -> None:
        """Mark a filter as removed."""
        self._is_there[self._numbers.pop(key)] = False

    def overlapping(self, query: Expression) -> list[Any]:
        """Return the keys of the filters that overlap a query, in the order in which they were added."""
        numbers = {self._numbers[key] for portion in self.portions(query, len(self._keys)) for key in portion}
        return [self._keys[number] for number in sorted(numbers)]

    def portions(self, query: Expression, first: int) -> Iterator[list[Any]]:
        """Yield the keys of the filters that overlap a query, the likeliest first, so many and then more at a time."""
        self.candidate_count = self.evaluated_count = 0
        if not self._numbers:
            return
        effort = Effort(max(_MOST_COMPARED, _MOST_TIMES * len(self._predicates)))
        false_sets = alternatives(query, lambda each: self._predicates.disjoint(each, effort))
        if len(false_sets) > 1:
            # Who is false without what is disjoint to all alternatives is false for each: mostly one look is enough.
            everybody = np.zeros(len(self._keys), np.bool_)
            if not self._possible(frozenset.intersection(*false_sets), everybody, 1):
                return
        is_found = np.zeros(len(self._keys), np.bool_)
        most = first
        for disjoint in false_sets:
            while True:
                numbers = self._possible(disjoint, is_found, most)
                if numbers:
                    yield [self._keys[number] for number in numbers]
                if len(numbers) < most:
                    break
                most = min(most * _GROWTH, len(self._keys))

    def _possible(self, disjoint: frozenset[int], marks: NDArray[np.bool_], most: int) -> list[int]:
        """Return the numbers of some filters that can be true without some predicates; they are marked as found."""
        false = np.array(sorted(disjoint | self._predicates.never), np.int32)
        is_false = np.zeros(len(self._predicates), np.bool_)
        is_false[false] = True
        order = np.empty(most, np.int32)
        count, candidates, evaluated = kernels.find_overlaps(
            self._forest, Falsehoods(false, is_false), self._is_there, self._scratch, marks, order
        )
        self.candidate_count += candidates
        self.evaluated_count += evaluated
        numbers: list[int] = order[:count].tolist()
        return numbers
