"""The published A-Tree as matching algorithms, with everything that may be chosen differently.

    >>> from tamis.language import parse
    >>> tree = ATreePublished(arrangement="printed", look_up="parents")
    >>> tree.add([0, 1], tree.prepare([parse("a = 1 AND b = 2 AND c = 3"), parse("a = 1 AND b = 2")]))
    >>> tree.statistics()["inner_nodes"]  # a = 1 AND (b = 2 AND c = 3) came first, and has no a = 1 AND b = 2
    3

Source: Jewel 2004, chapter 3 (docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from tamis_lab.matching.atree.algorithm import BAND_COUNT, ATree
from tamis_lab.matching.atree.filters import General, Zero
from tamis_lab.matching.atree.published.descent import TopDown
from tamis_lab.matching.atree.published.graph import REPAIRED, TABLE, BinaryGraph

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis_lab.matching.atree.filters import TruthFilter


class ATreePublished(ATree):
    """Nodes of two operands, and the true-value path filter."""

    name: ClassVar[str] = "atree-published"

    def __init__(self, schema: Schema | None = None, *, arrangement: str = REPAIRED, look_up: str = TABLE) -> None:
        super().__init__(schema)
        self._graph: BinaryGraph = BinaryGraph(BAND_COUNT, arrangement=arrangement, look_up=look_up)

    def emptied(self) -> ATreePublished:
        return type(self)(self.schema, arrangement=self._graph.arrangement, look_up=self._graph.look_up)

    def statistics(self) -> dict[str, Any]:
        look_ups, steps = self._graph.look_ups
        return super().statistics() | {"look_ups": look_ups, "parents_read": steps}


class ATreePublishedZero(ATreePublished):
    """Nodes of two operands, and zero suppression."""

    filter_type: ClassVar[type[TruthFilter]] = Zero


class ATreePublishedGeneral(ATreePublished):
    """Nodes of two operands, and the general filter."""

    filter_type: ClassVar[type[TruthFilter]] = General


class ATreeTopDown(ATreePublished):
    """Nodes of two operands, evaluated from the roots down."""

    filter_type: ClassVar[type[TruthFilter]] = TopDown
