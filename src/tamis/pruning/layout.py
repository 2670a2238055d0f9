"""How do many trees lie side by side, so that compiled loops can prune them?

Each tree becomes rows, from the root down and from left to right; each distinct predicate becomes a number, and what is
known of it (its share, its occurrences) is asked for once. Most filters are in pruning form as they are written, and
are laid out in one walk; the others are rewritten first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import tamis.compilation  # noqa: F401 - where kernels are kept, before there is one
from tamis.errors import BudgetError
from tamis.language.expressions import FALSE, And, AtLeast, Expression, Literal, Or
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import is_plain
from tamis.pruning import kernels
from tamis.pruning.trees import MOST_LEAVES, pruning_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Floats = npt.NDArray[np.float64]

_KINDS: dict[type, int] = {And: kernels.AND, Or: kernels.OR, AtLeast: kernels.AT_LEAST}


@dataclass(slots=True)
class Layout:
    """Trees side by side."""

    trees: list[Expression | None]
    """In pruning form; None for those that are too large, which have no steps, and one leaf that is never true."""
    starts: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int32]
    predicates: list[Expression]
    row_predicates: npt.NDArray[np.int32]
    """The predicate of each row that is a leaf, -1 for the others."""

    @property
    def too_large(self) -> list[int]:
        """Which trees are too large to be pruned.

        >>> from tamis.pruning.trees import MOST_LEAVES
        >>> laid_out(["a = 1 AND b = 2", " AND ".join(f"a{n} = 1" for n in range(MOST_LEAVES + 1))]).too_large
        [1]
        """
        return [number for number, tree in enumerate(self.trees) if tree is None]

    def leaf_values(
        self, share: Callable[[Expression], float], occurrence: Callable[[Expression], float] | None = None
    ) -> Floats:
        """Ask what is known of each predicate, once, and lay it beside the rows."""
        by_row = np.zeros((len(self.nodes), 2))
        is_leaf = self.row_predicates >= 0
        numbers = self.row_predicates[is_leaf]
        shares = np.zeros(len(self.predicates))
        used = np.unique(numbers)
        shares[used] = [share(self.predicates[number]) for number in used.tolist()]
        by_row[is_leaf, 0] = shares[numbers]
        if occurrence is None:
            by_row[is_leaf, 1] = np.bincount(numbers, minlength=len(self.predicates))[numbers]
        else:
            known = np.zeros(len(self.predicates))
            known[used] = [occurrence(self.predicates[number]) for number in used.tolist()]
            by_row[is_leaf, 1] = known[numbers]
        return by_row


def laid_out(given: Iterable[str | Expression], *, most_leaves: int = MOST_LEAVES) -> Layout:
    """Lay filters out.

    >>> layout = laid_out(["a = 1 AND (b = 2 OR c = 3)", "a = 1"])
    >>> layout.starts.tolist(), layout.nodes[:, 0].tolist(), layout.row_predicates.tolist()
    ([0, 5, 6], [1, 0, 2, 0, 0, 0], [-1, 0, -1, 1, 2, 0])
    """
    trees: list[Expression | None] = []
    starts = [0]
    kinds: list[int] = []
    needs: list[int] = []
    parents: list[int] = []
    row_predicates: list[int] = []
    numbers: dict[Expression, int] = {}
    for each in given:
        expression = parse(each) if isinstance(each, str) else each
        begin = starts[-1]
        is_placed = _place(expression, begin, kinds, needs, parents, row_predicates, numbers, most_leaves)
        tree: Expression | None = expression
        if not is_placed:
            for column in (kinds, needs, parents, row_predicates):
                del column[begin:]
            try:
                tree = pruning_form(expression, most_leaves=most_leaves)
            except BudgetError:
                tree = None
            _place_anyway(FALSE if tree is None else tree, kinds, needs, parents, row_predicates, numbers)
        trees.append(tree)
        starts.append(len(kinds))
    nodes = np.zeros((len(kinds), 4), np.int32)
    nodes[:, kernels.KIND] = kinds
    nodes[:, kernels.NEED] = needs
    nodes[:, kernels.PARENT] = parents
    row_starts = np.array(starts, np.int64)
    kernels.branch_ends(row_starts, nodes)
    return Layout(trees, row_starts, nodes, list(numbers), np.array(row_predicates, np.int32))


def _place(
    expression: Expression,
    begin: int,
    kinds: list[int],
    needs: list[int],
    parents: list[int],
    row_predicates: list[int],
    numbers: dict[Expression, int],
    most_leaves: int,
) -> bool:
    """Append the rows of a tree if it is in pruning form as it stands; say whether it was."""
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
            row_predicates.append(number)
            needs.append(1)
        elif kind == above or kind == kernels.AT_LEAST:
            return False
        else:
            row = len(kinds) - begin
            row_predicates.append(-1)
            needs.append(1)
            stack.extend([(child, row, kind) for child in reversed(node.children)])
        kinds.append(kind)
        parents.append(parent)
    return len(kinds) - begin <= most_leaves


def _place_anyway(
    tree: Expression,
    kinds: list[int],
    needs: list[int],
    parents: list[int],
    row_predicates: list[int],
    numbers: dict[Expression, int],
) -> None:
    begin = len(kinds)
    stack: list[tuple[Expression, int]] = [(tree, 0)]
    while stack:
        node, parent = stack.pop()
        kind = _KINDS.get(type(node), kernels.LEAF)
        row = len(kinds) - begin
        kinds.append(kind)
        parents.append(parent)
        needs.append(node.count if isinstance(node, AtLeast) else 1)
        if kind == kernels.LEAF:
            row_predicates.append(numbers.setdefault(node, len(numbers)))
        else:
            row_predicates.append(-1)
            stack.extend([(child, row) for child in reversed(node.children)])


def constants_known(share: Callable[[Expression], float]) -> Callable[[Expression], float]:
    """Return a share that knows what is always true, and never; and that stays between the two."""

    def known(predicate: Expression) -> float:
        if isinstance(predicate, Literal):
            return 1.0 if predicate.value is True else 0.0
        found = float(share(predicate))
        return min(1.0, max(0.0, found)) if found == found else 1.0

    return known
