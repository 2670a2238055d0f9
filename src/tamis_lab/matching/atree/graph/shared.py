r"""How do a million expressions become one graph?

Every sub-expression is a node, and equal ones are one node, with edges up to all that it is a part of. A new expression
takes what exists: the node of each AND, OR, ... that is there already, whatever the order of its operands; for what is
not, the largest parts that are. Existing nodes never change, so neither do their levels. Each node counts the
subscriptions that it is a part of, and goes when the last of them does.

    S1 = A AND B AND C        level 3    [AND] S1   [XOR] S2
    S2 = (A AND B) XOR D                  |   \    /   |
                              level 2     |   [AND]    |      used by 2 subscriptions
                                          |   /   \    |
                              level 1     C  A     B   D

Nodes have as many operands as there are: nested ANDs are one. So a part that many ANDs have in common would never be
seen. Therefore each insertion notes down the parts of its operand lists, and what comes a second time gets a node.

Source: Jewel 2004, sections 3.3, 3.6 and 3.8 (docs/bibliography.md).
Departs: operands are any number, not two, and are looked up in a hash table by what they are together. The source
  intersects the sorted lists of parents, which are long where predicates are popular, and arranges binary trees by
  dynamic programming, which misses nodes once equal expressions have two shapes.
Departs: leaves are counted too; a removed subscription leaves the list of its node, a freed node those of its children.
  The source leaves all of that unsaid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis_lab.matching.atree.graph import kernels
from tamis_lab.matching.atree.graph.kernels import Graph, Work

if TYPE_CHECKING:
    from collections.abc import Sequence

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

_FIRST_ROOM = 1024
"""A new graph has room for so many nodes, leaves and subscriptions."""
_SMALLEST_MEMORY = 1 << 12
_LARGEST_MEMORY = 1 << 20
"""Of parts of operand lists that were met before: 8 MB at most."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Expressions as instructions, for `SharedGraph.insert`."""

    code: Codes
    """Of each instruction: a kind, a label, the number of operands, the operands. One that is not negative is a leaf,
    -1 the result of the expression's first instruction, -2 that of its second, ..."""
    starts: Ints
    """The instructions of expression i are `code[starts[i] : starts[i + 1]]`."""
    roots: Codes
    """The root of each expression, as an operand; or one of the two constants."""

    def __len__(self) -> int:
        return len(self.roots)


class SharedGraph:
    """The graph, and who uses it. Whoever reads its tables must keep others from inserting and removing meanwhile."""

    def __init__(self, band_count: int = 1) -> None:
        self.band_count = band_count
        meta = np.zeros(kernels.META, np.int64)
        meta[[kernels.FREE, kernels.ALWAYS_AT]] = -1
        self._tables: Any = Graph(
            inner=np.zeros((_FIRST_ROOM, 8), np.int32),
            rises=np.zeros((_FIRST_ROOM, 4), np.int32),
            books=np.zeros((_FIRST_ROOM, 4), np.int32),
            leaves=np.zeros((_FIRST_ROOM, 4), np.int32),
            leaf_books=_no_books(_FIRST_ROOM),
            keys=np.zeros(_FIRST_ROOM, np.uint64),
            children=np.zeros((_FIRST_ROOM, 2), np.int32),
            parents=np.zeros((_FIRST_ROOM, 2), np.int32),
            parent_edges=np.zeros(_FIRST_ROOM, np.int32),
            holders=np.zeros((_FIRST_ROOM, 1), np.int64),
            subscriptions=np.full((_FIRST_ROOM, 3), kernels.NEVER, np.int32),
            table=np.full(2 * _FIRST_ROOM, -1, np.int32),
            seen=np.zeros(_SMALLEST_MEMORY, np.uint64),
            level_counts=np.zeros(64, np.int64),
            standing=np.zeros(16, np.int32),
            band_uses=np.zeros((0, band_count), np.int32),
            leaf_band_uses=np.zeros((0, band_count), np.int32),
            bands=np.zeros(0, np.uint8),
            leaf_bands=np.zeros(0, np.uint8),
            heads=np.full((3, kernels.CLASSES), -1, np.int64),
            meta=meta,
        )
        self._work: Any = _work(_FIRST_ROOM)
        self.subscription_count = 0

    # -- What is there

    @property
    def tables(self) -> Any:
        """The present tables (see `kernels.Graph`); insertion replaces those that become too small."""
        return self._tables

    @property
    def leaf_count(self) -> int:
        return int(self._tables.level_counts[1]) - int(self._tables.meta[kernels.ALWAYS_AT] >= 0)

    @property
    def inner_count(self) -> int:
        """How many nodes there are that are not leaves."""
        return int(self._tables.meta[kernels.LIVE])

    @property
    def edge_count(self) -> int:
        return int(self._tables.meta[kernels.EDGES])

    @property
    def level_counts(self) -> Ints:
        """How many nodes there are on each level, from level 1 on, which is that of the leaves."""
        counts: Ints = self._tables.level_counts[1 : self._tables.meta[kernels.LEVELS] + 1]
        return counts

    @property
    def standing(self) -> Codes:
        """The nodes that hold subscriptions and are true when no predicate is."""
        nodes: Codes = self._tables.standing[: self._tables.meta[kernels.STANDING_COUNT]]
        return nodes

    def uses_of_leaves(self, numbers: npt.NDArray[np.uint32]) -> Codes:
        """Return how many subscriptions use each of some predicates."""
        self._enlarge_leaves(int(numbers.max(initial=0)) + 1)
        uses: Codes = self._tables.leaf_books[numbers, kernels.USES]
        return uses

    def payload_bytes(self) -> dict[str, int]:
        """Return the bytes in use, by structure: without room to grow, and without what only insertion needs."""
        tables = self._tables
        inner, leaves = self.inner_count, self.leaf_count
        return {
            "inner nodes": inner * _row_bytes(tables.inner, tables.rises, tables.books, tables.keys),
            "leaves": leaves * _row_bytes(tables.leaves, tables.leaf_books),
            "edges": self.edge_count * _row_bytes(tables.children, tables.parents, tables.parent_edges),
            "table of expressions": int(tables.meta[kernels.ENTRIES]) * _row_bytes(tables.table),
            "subscriptions": self.subscription_count * _row_bytes(tables.holders, tables.subscriptions),
        }

    def memory(self) -> int:
        """Return the bytes of all tables."""
        return sum(array.nbytes for array in (*self._tables, *self._work))

    # -- Insertion and removal

    def insert(self, handles: Sequence[int], programs: Programs, numbers: npt.NDArray[np.uint32]) -> None:
        """Insert expressions; the leaves that the programs speak of are the predicates `numbers`."""
        if not len(programs):
            return
        longest = self._longest(programs)
        self._enlarge(subscriptions=(max(handles) + 1, kernels.NEVER))
        self._enlarge_leaves(int(numbers.max(initial=0)) + 1)
        if longest > len(self._work.created):
            self._work = _work(2 * longest)
        self._tables.meta[[kernels.NEXT, kernels.PHASE]] = 0
        handle_array = np.array(handles, np.int64)
        while True:
            status = self._inserted(programs, handle_array, numbers)
            if status == kernels.DONE:
                break
            self._grow(status, longest)
        self.subscription_count += len(programs)

    def _longest(self, programs: Programs) -> int:
        """Return how many words of code an expression has at most, and some more."""
        return int(np.diff(programs.starts).max()) + 4

    def _inserted(self, programs: Programs, handles: Ints, numbers: npt.NDArray[np.uint32]) -> int:
        """Insert what is not inserted yet; return `DONE`, or which table is full."""
        status: int = kernels.insert_many(
            programs.code, programs.starts, programs.roots, handles, numbers, self._tables, self._work
        )
        return status

    def remove(self, handles: Sequence[int]) -> list[int]:
        """Remove subscriptions; return the predicates that no node uses any more."""
        dropped = np.empty(int(self._tables.level_counts[1]), np.int64)  # as many as there are leaves
        count = kernels.remove_many(np.array(handles, np.int64), self._tables, self._work.visited, dropped)
        self.subscription_count -= len(handles)
        numbers: list[int] = dropped[:count].tolist()
        return numbers

    def move_to_bands(self, handles: Ints, bands: npt.NDArray[np.uint8]) -> None:
        """Put subscriptions into bands of priority; a new one is in the lowest, which is 0."""
        if not len(self._tables.bands):
            if not bands.any():
                return
            self._tell_bands_apart()
        self._enlarge(subscriptions=(int(handles.max(initial=0)) + 1, kernels.NEVER))
        kernels.move_to_bands(handles, bands, self._tables, self._work.visited)

    # -- Room

    def _grow(self, status: int, longest: int) -> None:
        """Make room in what is full."""
        meta = self._tables.meta
        if status == kernels.NO_ROWS:
            self._enlarge_inner(int(meta[kernels.ROWS]) + longest)
            self._enlarge(level_counts=(int(meta[kernels.LEVELS]) + longest + 1, 0))
            self._enlarge_table(2 * (int(meta[kernels.ENTRIES]) + longest))
        elif status == kernels.NO_CHILDREN:
            self._enlarge(children=(int(meta[kernels.CHILD_TOP]) + 3 * longest, 0))
        elif status == kernels.NO_PARENTS:
            wanted = int(meta[kernels.PARENT_TOP]) + 2 * self._most(kernels.PARENT_COUNT) + 2
            self._enlarge(parents=(wanted, 0), parent_edges=(wanted, 0))
        else:
            wanted = int(meta[kernels.HOLDER_TOP]) + 2 * self._most(kernels.HOLDER_COUNT) + 2
            self._enlarge(holders=(wanted, 0), standing=(int(meta[kernels.STANDING_COUNT]) + 1, 0))

    def _most(self, column: int) -> int:
        """Return the greatest count of parents or holders; asked only when a pool is full, which is rare."""
        return max(int(table[:, column].max(initial=0)) for table in (self._tables.rises, self._tables.leaves))

    def _enlarge_inner(self, wanted: int) -> None:
        self._enlarge(inner=(wanted, 0), rises=(wanted, 0), books=(wanted, 0), keys=(wanted, 0))
        if len(self._tables.bands):
            count = len(self._tables.inner)
            self._enlarge(band_uses=(count, 0), bands=(count, 0))

    def _enlarge_leaves(self, wanted: int) -> None:
        self._enlarge(leaves=(wanted, 0))
        old = self._tables.leaf_books
        if len(old) < len(self._tables.leaves):
            books = _no_books(len(self._tables.leaves))
            books[: len(old)] = old
            self._tables = self._tables._replace(leaf_books=books)
        if len(self._tables.bands):
            count = len(self._tables.leaves)
            self._enlarge(leaf_band_uses=(count, 0), leaf_bands=(count, 0))

    def _enlarge_table(self, wanted: int) -> None:
        size = len(self._tables.table)
        if size >= wanted:
            return
        while size < wanted:
            size *= 2
        self._tables = self._tables._replace(table=np.full(size, -1, np.int32))
        kernels.enter_all(self._tables.inner, self._tables.keys, self._tables.table, self._tables.meta)
        memory = min(_LARGEST_MEMORY, 2 * size)
        if memory > len(self._tables.seen):
            self._tables = self._tables._replace(seen=np.zeros(memory, np.uint64))

    def _enlarge(self, **wanted: tuple[int, int]) -> None:
        """Replace tables that have fewer rows than wanted by larger ones, filled up with some value."""
        larger = {}
        for name, (count, filler) in wanted.items():
            old = getattr(self._tables, name)
            if len(old) < count:
                new = np.empty((max(count, len(old) + len(old) // 2), *old.shape[1:]), old.dtype)
                new[: len(old)] = old
                new[len(old) :] = filler
                larger[name] = new
        if larger:
            self._tables = self._tables._replace(**larger)

    def _tell_bands_apart(self) -> None:
        """Begin to count uses by band; so far all subscriptions are in the lowest."""
        made: dict[str, Any] = {}
        for name, table in (("", self._tables.books), ("leaf_", self._tables.leaf_books)):
            made[f"{name}band_uses"] = np.zeros((len(table), self.band_count), np.int32)
            made[f"{name}band_uses"][:, 0] = table[:, kernels.USES]
            made[f"{name}bands"] = np.zeros(len(table), np.uint8)
        self._tables = self._tables._replace(**made)


def _row_bytes(*tables: Any) -> int:
    return sum(table.itemsize * int(np.prod(table.shape[1:])) for table in tables)


def _no_books(count: int) -> Codes:
    books = np.zeros((count, 4), np.int32)
    books[:, [kernels.PARENT_ROOM, kernels.HOLDER_ROOM]] = -1
    return books


def _work(size: int) -> Any:
    arrays: list[Any] = [np.zeros(size + 1, np.int64) for _ in range(14)]
    arrays[5] = np.zeros(size + 1, np.uint64)
    arrays.append(np.zeros(2 * size + 2, np.int64))
    return Work._make(arrays)
