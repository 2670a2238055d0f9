"""How are many trees laid out, so that compiled loops can prune them? As one forest in preorder, its leaves numbered.

Each tree becomes rows, from the root down and from left to right; each distinct predicate becomes a number, and what is
known of it (its share, its occurrences) is asked for once. Most filters are in pruning form as they are written, and
are laid out in one walk; the others are rewritten first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.errors import BudgetError
from tamis.language.expressions import FALSE, And, AtLeast, Expression, Literal, Or
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import is_plain
from tamis.pruning import kernels
from tamis.pruning.kernels import Forest, LeafFacts
from tamis.pruning.trees import MOST_LEAVES, pruning_form
from tamis.ragged import Ragged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

_KINDS: dict[type, int] = {And: kernels.AND, Or: kernels.OR, AtLeast: kernels.AT_LEAST}


@dataclass(slots=True)
class ForestLayout:
    """Trees side by side."""

    trees: list[Expression | None]
    """In pruning form; None for those that are too large, which have no steps, and one leaf that is never true."""
    forest: Forest
    """Their rows."""
    predicates: list[Expression]
    """By number."""

    @property
    def too_large(self) -> list[int]:
        """Which trees are too large to be pruned.

        >>> from tamis.pruning.trees import MOST_LEAVES
        >>> laid_out(["a = 1 AND b = 2", " AND ".join(f"a{n} = 1" for n in range(MOST_LEAVES + 1))]).too_large
        [1]
        """
        return [number for number, tree in enumerate(self.trees) if tree is None]

    @property
    def row_count(self) -> int:
        """How many rows all trees have together."""
        return len(self.forest.predicates)

    def leaf_numbers(self, tree: int | None = None) -> npt.NDArray[np.int32]:
        """Return the numbers of the predicates of a tree's leaves, or of all leaves, by occurrence."""
        starts, numbers = self.forest.nodes.starts, self.forest.predicates
        if tree is not None:
            numbers = numbers[starts[tree] : starts[tree + 1]]
        return numbers[numbers >= 0]

    def leaves(
        self, share: Callable[[Expression], float], occurrence: Callable[[Expression], float] | None = None
    ) -> LeafFacts:
        """Ask what is known of each predicate, once, and lay it beside the rows."""
        is_leaf = self.forest.predicates >= 0
        numbers = self.leaf_numbers()
        used = np.unique(numbers)

        def by_row(known: Callable[[Expression], float]) -> npt.NDArray[np.float64]:
            by_number = np.zeros(len(self.predicates))
            by_number[used] = [known(self.predicates[number]) for number in used.tolist()]
            values = np.zeros(self.row_count)
            values[is_leaf] = by_number[numbers]
            return values

        if occurrence is not None:
            return LeafFacts(by_row(share), by_row(occurrence))
        counted = np.zeros(self.row_count)
        counted[is_leaf] = np.bincount(numbers, minlength=len(self.predicates))[numbers]
        return LeafFacts(by_row(share), counted)


class _Rows:
    """Rows that are being written, before they become a forest."""

    def __init__(self) -> None:
        self.starts = [0]
        self.kinds: list[int] = []
        self.needs: list[int] = []
        self.parents: list[int] = []
        self.predicates: list[int] = []
        self.numbers: dict[Expression, int] = {}

    def end_tree(self) -> None:
        self.starts.append(len(self.kinds))

    def take_back(self) -> None:
        """Forget the rows of the tree that is being written."""
        for column in (self.kinds, self.needs, self.parents, self.predicates):
            del column[self.starts[-1] :]

    def forest(self) -> Forest:
        nodes = np.zeros((len(self.kinds), 4), np.int32)
        nodes[:, kernels.KIND] = self.kinds
        nodes[:, kernels.NEED] = self.needs
        nodes[:, kernels.PARENT] = self.parents
        lists: Ragged[np.int32] = Ragged(np.array(self.starts, np.int64), nodes)
        kernels.branch_ends(lists)
        return Forest(lists, np.array(self.predicates, np.int32))


def laid_out(given: Iterable[str | Expression], *, most_leaves: int = MOST_LEAVES) -> ForestLayout:
    """Lay filters out.

    >>> layout = laid_out(["a = 1 AND (b = 2 OR c = 3)", "a = 1"])
    >>> nodes, predicates = layout.forest
    >>> nodes.starts.tolist(), nodes.values[:, kernels.KIND].tolist(), predicates.tolist()
    ([0, 5, 6], [1, 0, 2, 0, 0, 0], [-1, 0, -1, 1, 2, 0])
    """
    trees: list[Expression | None] = []
    rows = _Rows()
    for each in given:
        expression = parse(each) if isinstance(each, str) else each
        tree: Expression | None = expression
        if not _place(expression, rows, most_leaves):
            rows.take_back()
            try:
                tree = pruning_form(expression, most_leaves=most_leaves)
            except BudgetError:
                tree = None
            _place_anyway(FALSE if tree is None else tree, rows)
        trees.append(tree)
        rows.end_tree()
    return ForestLayout(trees, rows.forest(), list(rows.numbers))


def _place(expression: Expression, rows: _Rows, most_leaves: int) -> bool:
    """Append the rows of a tree if it is in pruning form as it stands; say whether it was."""
    kinds, needs, parents, predicates, numbers = rows.kinds, rows.needs, rows.parents, rows.predicates, rows.numbers
    begin = len(kinds)
    stack: list[tuple[Expression, int, int]] = [(expression, 0, kernels.LEAF)]
    while stack:
        node, parent, above = stack.pop()
        kind = _KINDS.get(type(node), kernels.LEAF)
        if kind == kernels.LEAF:
            number = numbers.get(node)
            if number is None:
                if not is_plain(node):
                    return False
                number = numbers[node] = len(numbers)
            predicates.append(number)
            needs.append(1)
        elif kind == above or kind == kernels.AT_LEAST:
            return False
        else:
            row = len(kinds) - begin
            predicates.append(-1)
            needs.append(1)
            stack.extend([(child, row, kind) for child in reversed(node.children)])
        kinds.append(kind)
        parents.append(parent)
    return len(kinds) - begin <= most_leaves


def _place_anyway(tree: Expression, rows: _Rows) -> None:
    """Append the rows of a tree that is in pruning form."""
    begin = len(rows.kinds)
    stack: list[tuple[Expression, int]] = [(tree, 0)]
    while stack:
        node, parent = stack.pop()
        kind = _KINDS.get(type(node), kernels.LEAF)
        row = len(rows.kinds) - begin
        rows.kinds.append(kind)
        rows.parents.append(parent)
        rows.needs.append(node.count if isinstance(node, AtLeast) else 1)
        if kind == kernels.LEAF:
            rows.predicates.append(rows.numbers.setdefault(node, len(rows.numbers)))
        else:
            rows.predicates.append(-1)
            stack.extend([(child, row) for child in reversed(node.children)])


def constants_known(share: Callable[[Expression], float]) -> Callable[[Expression], float]:
    """Return a share that knows what is always true, and never; and that stays between the two."""

    def known(predicate: Expression) -> float:
        if isinstance(predicate, Literal):
            return 1.0 if predicate.value is True else 0.0
        estimate = float(share(predicate))
        return min(1.0, max(0.0, estimate)) if estimate == estimate else 1.0

    return known
