r"""What did Jewel compare with, under the name of Gryphon?

A matching tree with a level for each attribute, in one fixed order, for equalities only. A node has an edge for each
value that somebody below asks for, and a star for those who do not care about its attribute; every path is as long as
there are attributes, and subscriptions stand at its end.

    title        'Emma' /        \ *
    price             * |         | 5
    category    'Poetry' |        | *
                        s1        s2

`gryphon` in this package is better: it leaves tests out that nobody below asks for, takes any predicate, and puts the
attributes in the order that suits the subscriptions. With many attributes, and few that a subscription speaks of, this
tree is mostly stars, which is where its memory goes.

Source: Jewel 2004, sections 2.1 and 5.4 (docs/bibliography.md).
Departs: it is laid out in one go; what came since is asked directly (see `conjunctive`). An attribute that is asked
  about for the first time becomes the last of the order, unless the order was given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tamis.language.expressions import Attribute, Not
from tamis.language.ranges.simple import SimplePredicate, simple
from tamis.matching.errors import UnsupportedExpressionError
from tamis_lab.matching.cluster import equalities
from tamis_lab.matching.conjunctive import Conjunctive, Pages, Prepared
from tamis_lab.matching.surveyed import kernels

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from tamis.language.expressions import Expression
    from tamis.matching.leaves import Ints
    from tamis_lab.matching.kernels import LastPages, Outlet
    from tamis_lab.matching.predicates import Fulfilled, PredicateView
    from tamis_lab.matching.roll import Scratch


class GryphonPublished(Conjunctive):
    """Conjunctions of equalities, in a tree with a level for each attribute.

    >>> from tamis.language import parse
    >>> tree = GryphonPublished()
    >>> tree.add([0, 1], tree.prepare([parse("title = 'Emma' AND price = 5"), parse("price = 5")]))
    >>> sorted(tree.snapshot().match_event({"title": "Emma", "price": 5}).tolist())
    [0, 1]
    >>> tree.statistics()["nodes"]
    5
    """

    name: ClassVar[str] = "gryphon-published"

    def prepare(self, expressions: Iterable[Expression]) -> list[Prepared]:
        prepared = super().prepare(expressions)
        for predicates, form in prepared:
            terms = [self._term(predicate) for predicate in predicates]
            for part in form.parts():
                asked = [terms[place] for place in dict.fromkeys(part)]
                if len(set(asked)) < len(asked):
                    raise UnsupportedExpressionError(self.name, "it asks about an attribute twice")
        return prepared

    def _term(self, predicate: Expression) -> Attribute:
        match simple(predicate):
            case SimplePredicate("=", Attribute() as term) if type(predicate) is not Not:
                return term
        raise UnsupportedExpressionError(self.name, f"`{predicate}` is not an equality of an attribute and a value")

    def _laid_out(self, pages: Pages, view: PredicateView) -> LevelIndex:
        axes, keys = view.axes()
        return LevelIndex(pages, axes, len(keys), equalities(view))

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            figures = super().statistics()
            index = self._index
            if index is None or index.conjunction_count < len(self._book):
                self._lay_out()
                index = self._index
            assert isinstance(index, LevelIndex)
            return figures | {"nodes": len(index.tree.levels), "levels": len(index.tree.axes)}


class LevelIndex:
    """The tree."""

    def __init__(self, pages: Pages, axes: Ints, axis_count: int, is_equality: npt.NDArray[np.bool_]) -> None:
        self.conjunction_count = len(pages.ends)
        owners = np.repeat(np.arange(self.conjunction_count), np.diff(pages.ends, prepend=np.uint32(0)))
        order = np.lexsort((axes[pages.predicates], owners))
        room = len(pages.predicates) + self.conjunction_count * axis_count + 2
        places = 1 << max(4, (2 * len(pages.predicates)).bit_length())
        tree = kernels.LevelTree(
            levels=np.zeros(room, np.int32),
            stars=np.zeros(room, np.uint32),
            keys=np.zeros((places, 2), np.uint32),
            targets=np.zeros(places, np.uint32),
            starts=np.zeros(1, np.int64),
            line=np.zeros(0, np.uint32),
            axes=np.arange(axis_count, dtype=np.int32),
            equal_axes=np.where(is_equality, axes + 1, 0).astype(np.int32),
            is_shared=np.diff(pages.slot_ends, prepend=np.uint32(0)) > 1,
        )
        nodes_of = np.zeros(self.conjunction_count, np.int64)
        count = kernels.grow_levels(pages.predicates[order], pages.ends, axes, tree, nodes_of)
        by_node = np.argsort(nodes_of, kind="stable")
        self.tree = tree._replace(
            levels=tree.levels[:count].copy(),
            stars=tree.stars[:count].copy(),
            starts=np.searchsorted(nodes_of[by_node], np.arange(count + 1)),
            line=pages.owners[by_node],
        )
        self.axis_count = axis_count

    def match(self, part: Fulfilled, begin: int, pages: LastPages, scratch: Scratch, out: Outlet) -> tuple[int, int]:
        tree = self.tree
        room = equal_room(scratch, self.axis_count, tree.equal_axes, tree.is_shared, part, len(tree.levels) + 1)
        at, written = kernels.match_level_tree_of_columns(begin, (*part.lists, *tree, *pages, *room, *out))
        return at, written

    def memory(self) -> int:
        return sum(array.nbytes for array in self.tree)


def equal_room(
    scratch: Scratch, axis_count: int, equal_axes: Any, is_shared: Any, part: Fulfilled, node_count: int
) -> kernels.EqualRoom:
    """Return the memory that a visit works in."""
    return kernels.EqualRoom(
        scratch.zeros("equal", axis_count + 1, np.uint32),
        scratch.empty("twins", len(equal_axes) + 1, np.uint32),
        scratch.empty("stack", node_count, np.uint32),
        scratch.zeros("bits", part.word_count, np.uint32),
        scratch.zeros("stamps", len(is_shared), np.uint32),
        scratch.zeros("epochs", 1, np.uint32),
    )
