"""How does an expression become nodes of two operands each?

In the published tree a node has two operands, and `A AND B AND C` is one of two trees that are not the same:

    (A AND B) AND C          A AND (B AND C)

An insertion looks for the brackets for which the fewest nodes are to be made. Operands stay in the order in which they
came, and dynamic programming finds for each interval of them the price of the best cut. A node is found among the
parents of its operands: their lists are sorted, and merged until a common parent is met.

Source: Jewel 2004, sections 3.6.2 (algorithms 6 to 8) and 3.8 (docs/bibliography.md).
Departs: the printed index runs and prices are mended. As *printed*, an interval keeps the first of its best trees, and
  which it was decides what is found above: a node that exists may be missed. As *repaired*, it keeps all nodes that
  exist for the interval, and operands are put in order first, which finds more of them.
Departs: the table of expressions, which the source rejects for its memory, is kept in either case, because a removal
  takes nodes out of it; with `look_up="parents"` it is not asked while expressions are arranged.
Departs: more than 24 operands are arranged in groups. `at_least`, which the source has not, is one node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis_lab.matching.atree.graph import Programs, SharedGraph
from tamis_lab.matching.atree.graph import kernels as graph_kernels
from tamis_lab.matching.atree.published import kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis_lab.matching.atree.graph.shared import Ints

PRINTED, REPAIRED = "printed", "repaired"
ARRANGEMENTS = (PRINTED, REPAIRED)
PARENTS, TABLE = "parents", "table"
LOOK_UPS = (PARENTS, TABLE)
_WORDS_OF_A_PAIR = 5
"""Of an instruction with two operands."""


class BinaryGraph(SharedGraph):
    """The graph of nodes with two operands."""

    def __init__(self, band_count: int = 1, *, arrangement: str = REPAIRED, look_up: str = TABLE) -> None:
        if arrangement not in ARRANGEMENTS:
            raise ValueError(f"arrangement must be one of {', '.join(ARRANGEMENTS)}, not {arrangement!r}")
        if look_up not in LOOK_UPS:
            raise ValueError(f"look_up must be one of {', '.join(LOOK_UPS)}, not {look_up!r}")
        super().__init__(band_count)
        self.arrangement, self.look_up = arrangement, look_up
        is_by_parents = look_up == PARENTS
        self._tables.meta[graph_kernels.IS_BINARY] = 1
        self._tables.meta[graph_kernels.IS_SORTED] = is_by_parents
        self._switches = np.zeros(kernels.SWITCHES, np.int64)
        self._switches[kernels.BY_PARENTS] = is_by_parents
        self._switches[kernels.IS_REPAIRED] = arrangement == REPAIRED
        self._slate: Any = _slate(64, self._switches)

    @property
    def look_ups(self) -> tuple[int, int]:
        """How often a node was looked for while expressions were arranged, and how many entries of lists were read."""
        return int(self._switches[kernels.LOOK_UPS]), int(self._switches[kernels.STEPS])

    def _longest(self, programs: Programs) -> int:
        longest = _WORDS_OF_A_PAIR * super()._longest(programs)
        if longest > len(self._slate.code):
            self._slate = _slate(2 * longest, self._switches)
        self._switches[[kernels.PROGRESS, kernels.IS_OPEN]] = 0
        return longest

    def _inserted(self, programs: Programs, handles: Ints, numbers: npt.NDArray[np.uint32]) -> int:
        status: int = kernels.insert_arranged(
            programs.code, programs.starts, programs.roots, handles, numbers, self._tables, self._work, self._slate
        )
        return status


def _slate(words: int, switches: Ints) -> kernels.Slate:
    group = kernels.GROUP
    return kernels.Slate(
        code=np.zeros(words, np.int32),
        starts=np.zeros(2, np.int64),
        roots=np.zeros(1, np.int32),
        handles=np.zeros(1, np.int64),
        results=np.zeros((words, 2), np.int64),
        operands=np.zeros((words, 2), np.int64),
        costs=np.zeros((group, group), np.int64),
        counts=np.zeros((group, group), np.int64),
        candidates=np.zeros((group, group, kernels.CANDIDATES, 4), np.int64),
        pairs=np.zeros((2 * group, 6), np.int64),
        sought=np.zeros(2, np.int64),
        switches=switches,
    )
