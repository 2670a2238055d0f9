"""How are the trees of one event type kept and matched?

The trees stand one behind the other in one string of bytes, in the order of their slots. When they are laid out, each
predicate gets the list of those who ask for it, by occurrence, and each slot the fewest hits that its tree needs. Then
an event passes three phases:

    fulfilled     p1 p4 p5 ...               1  which predicates hold?
    hits          s0 5   s1 8   s2 2         2  one for each occurrence of a predicate that holds
    least             4      5      3           s0 and s1 are candidates
    trees         s0 true   s1 false         3  evaluated on the predicates that hold

Its time goes into the lists and into the trees of candidates, which lie all over memory. A tree whose predicates are
hit easily, though it seldom matches, is a candidate for nearly every event; then it helps that evaluation starts with
the child that most likely decides.

Source: Bittner 2008, sections 4.2 to 4.5 (docs/bibliography.md).
Departs: counters have 16 bits once somebody has more than 255 predicates. The lists are written in one go, and trees
  that came since are all evaluated. Children are ordered by the mean of the three estimates that the source keeps; it
  does not say by which.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.matching.errors import UnsupportedExpressionError
from tamis_lab.matching import kernels
from tamis_lab.matching.boolean import kernels as writing
from tamis_lab.matching.boolean.encoding import LARGEST_WITH_WIDTHS, LEAF_BYTES, WIDTH_BYTES, Bytes, plan
from tamis_lab.matching.boolean.semantics import semantic_least_hits
from tamis_lab.matching.counting import associations, counters
from tamis_lab.matching.kernels import Outlet
from tamis_lab.matching.predicates import PredicateRegistry
from tamis_lab.matching.roll import Growing, Roll, Scratch, is_due
from tamis_lab.matching.snapshots import BLOCK, ROOM, PhasedSnapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.schema import Schema
    from tamis.matching.base import Handles, Pairs
    from tamis.matching.columns import Events
    from tamis.matching.destinations import Destinations
    from tamis_lab.matching.predicates import Fulfilled, PredicateView, Shares
    from tamis_lab.matching.shapes import Shaped

_CHILD_ORDERS = {"selective": 1, "written": 0, "adverse": -1}


@dataclass(frozen=True, slots=True)
class GroveOptions:
    """How the algorithm may differ from what is best, so that somebody can measure what that is worth."""

    child_order: str = "selective"
    """`selective`: what most likely decides comes first; `written`: as registered; `adverse`: what decides least."""
    short_circuit: bool = True
    """Whether evaluation leaves out what cannot matter any more."""
    with_widths: bool = False
    """Whether the width of each child stands in front of it."""
    semantic: bool = False
    """Whether the least hits take into account which predicates follow from others."""
    is_shuffled: bool = False
    """Whether lists are in random order, as they would be after a long life of removals; by default they ascend."""

    def __post_init__(self) -> None:
        if self.child_order not in _CHILD_ORDERS:
            raise ValueError(f"child_order must be one of {', '.join(_CHILD_ORDERS)}, not {self.child_order!r}")

    @property
    def mode(self) -> int:
        if self.with_widths:
            return kernels.WITH_WIDTHS
        return kernels.SHORT_CIRCUIT if self.short_circuit else kernels.WITHOUT


class Prepared(NamedTuple):
    """A subscription that is ready to be registered."""

    shaped: Shaped
    least_hits: int


def prepared(shaped: Shaped, options: GroveOptions, algorithm: str) -> Prepared:
    """Find out how a tree will be written."""
    coded, least, leaf_count, _ = plan(shaped.shape)
    if options.with_widths and len(coded) + (LEAF_BYTES - 1 + WIDTH_BYTES) * leaf_count > LARGEST_WITH_WIDTHS:
        raise UnsupportedExpressionError(algorithm, "its tree is too long for the widths of its children")
    return Prepared(shaped, semantic_least_hits(shaped) if options.semantic else least)


_NOWHERE: npt.NDArray[np.int32] = np.zeros(0, np.int32)
"""The destinations of slots where nobody asks for them."""


class Trees(NamedTuple):
    """All trees at one moment: the bytes, where each tree starts, and the least hits by slot."""

    data: Bytes
    locations: npt.NDArray[np.uint32]
    least: npt.NDArray[np.uint16]

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        ends = np.append(self.locations, len(self.data)).astype(np.int64)
        return ends[1:] - ends[:-1]


class Grove:
    """The subscriptions of one event type."""

    def __init__(self, schema: Schema | None, options: GroveOptions) -> None:
        self._options = options
        self.predicates = PredicateRegistry(schema)
        self.roll = Roll()
        self._data, self._locations = Growing(np.uint8), Growing(np.uint32)
        self._least = Growing(np.uint16)
        self._most_leaves = self._deepest = 0
        self._sample: Events | None = None
        self._index: GroveIndex | None = None
        self._snapshot: GroveSnapshot | None = None

    def __len__(self) -> int:
        return self.roll.living

    @property
    def trees(self) -> Trees:
        return Trees(self._data.values, self._locations.values, self._least.values)

    # -- Registration

    def add(self, handles: Sequence[int], trees: Sequence[Prepared]) -> None:
        self._snapshot = None
        self.roll.enter(handles)
        numbers: list[int] = []
        shapes, sizes, least = [], [], []
        for shaped, least_hits in trees:
            coded, _, leaf_count, depth = plan(shaped.shape)
            numbers += self.predicates.add_all(shaped.predicates)
            shapes.append(coded)
            sizes.append(len(coded) + (LEAF_BYTES - 1) * leaf_count)
            least.append(least_hits)
            self._most_leaves, self._deepest = max(self._most_leaves, leaf_count), max(self._deepest, depth)
        ends = self._data.count + np.cumsum(sizes, dtype=np.int64)
        self._locations.extended(ends - sizes)
        self._least.extended(least)
        written = np.empty(sum(sizes), np.uint8)
        shapes_in_a_row = np.frombuffer(b"".join(shapes), np.uint8)
        writing.encode_trees(shapes_in_a_row, np.array(numbers, np.uint32), written)
        self._data.extended(written)

    def remove(self, handle: int) -> None:
        self._snapshot = None
        slot = self.roll.leave(handle)
        self.predicates.release_all(self._numbers_of(slot))

    def _numbers_of(self, slot: int) -> list[int]:
        """Return the predicates of a tree by occurrence, which the tree itself remembers."""
        data, locations = self._data.values, self._locations.values
        end = int(locations[slot + 1]) if slot + 1 < len(locations) else len(data)
        begin = int(locations[slot])
        numbers = np.empty((end - begin) // LEAF_BYTES, np.uint32)
        size = np.array([end - begin])
        count = writing.list_numbers(data, locations[slot : slot + 1], size, numbers, np.empty(1, np.uint32))
        return numbers[:count].tolist()  # type: ignore[no-any-return]

    # -- Layout

    def learn(self, events: Events) -> None:
        """Take a sample of events by which children are put in order."""
        self._sample = events
        self.compile()

    @property
    def is_open(self) -> bool:
        """Is there a tree that is not laid out, or one that is laid out and was removed?"""
        known = 0 if self._index is None else self._index.known
        return known != len(self.roll) or self.roll.version > 0

    def compile(self) -> None:
        """Lay everything out anew."""
        self._snapshot = None
        if self.roll.version:
            self._keep(self.roll.compacted())
        view = self.predicates.view()
        direction = _CHILD_ORDERS[self._options.child_order]
        if direction and len(self._locations.values):
            shares = view.guessed_shares() if self._sample is None else view.shares(self._sample)
            self._data = Growing(np.uint8, self._ordered(shares, direction))
        self._index = GroveIndex(self.trees, self._most_leaves, view.number_count, self._options)

    def _keep(self, slots: npt.NDArray[np.int64]) -> None:
        trees = self.trees
        sizes = trees.sizes
        is_kept = np.zeros(len(sizes), np.bool_)
        is_kept[slots] = True
        self._data = Growing(np.uint8, trees.data[np.repeat(is_kept, sizes)])
        self._locations = Growing(np.uint32, np.cumsum(sizes[slots]) - sizes[slots])
        self._least = Growing(np.uint16, trees.least[slots])

    def _ordered(self, shares: Shares, direction: int) -> Bytes:
        trees = self.trees
        ordered = np.empty_like(trees.data)
        most_nodes = int(trees.sizes.max()) // 2 + 2
        room = writing.NodeRoom(
            np.empty((most_nodes, 4), np.int64), np.empty(most_nodes, np.float32), np.empty(most_nodes, np.int64)
        )
        writing.order_children(trees.data, trees.locations, trees.sizes, shares, direction, room, ordered)
        return ordered

    def snapshot(self, scratch: Scratch) -> GroveSnapshot:
        if self._snapshot is None:
            if self._index is None or is_due(self._index.known, len(self.roll), self.roll):
                self.compile()
            assert self._index is not None
            self._snapshot = GroveSnapshot(
                self.predicates.view(), self._index, self.trees, self._deepest, self.roll, scratch
            )
        return self._snapshot

    # -- Told to others

    def memory(self) -> int:
        own = sum(each.nbytes for each in (self._data, self._locations, self._least))
        index = 0 if self._index is None else self._index.memory()
        return self.predicates.memory() + self.roll.memory() + own + index

    def payload_bytes(self) -> dict[str, int]:
        """Return the bytes of each published structure, as far as it is laid out."""
        index = self._index
        known = 0 if index is None else index.known
        width = 1 if index is None else index.least.itemsize
        trees = self._data if index is None or index.trees.mode != kernels.WITH_WIDTHS else index.trees.data
        return {
            "fulfilled predicates": (self.predicates.number_count + 7) // 8,
            "trees": trees.nbytes,
            "locations": self._locations.nbytes,
            "predicate-subscription associations": 0 if index is None else index.associations.values.nbytes,
            "hits": known * width,
            "least hits": known * width,
        }


class GroveIndex:
    """The lists of the predicates, and the least hits; immutable."""

    def __init__(self, trees: Trees, most_leaves: int, number_count: int, options: GroveOptions) -> None:
        self.known = len(trees.locations)
        numbers = np.empty(len(trees.data) // LEAF_BYTES, np.uint32)
        ends = np.empty(self.known, np.uint32)
        count = writing.list_numbers(trees.data, trees.locations, trees.sizes, numbers, ends)
        self.associations = associations(numbers[:count], ends, number_count, options.is_shuffled)
        self.least = counters(trees.least, most_leaves)
        self.trees = kernels.TreeBytes(trees.data, trees.locations, options.mode)
        if options.with_widths:
            data = np.empty(2 * len(trees.data) + 2 * self.known, np.uint8)
            locations = np.empty_like(trees.locations)
            stack = np.empty((int(trees.sizes.max(initial=0)) + 1, 2), np.int64)
            end = writing.write_all_widths(trees.data, trees.locations, data, locations, stack)
            self.trees = kernels.TreeBytes(data[:end].copy(), locations, options.mode)

    def memory(self) -> int:
        has_own_trees = self.trees.mode == kernels.WITH_WIDTHS
        widths = self.trees.data.nbytes + self.trees.locations.nbytes if has_own_trees else 0
        return sum(array.nbytes for array in (*self.associations, self.least)) + int(widths)


class GroveSnapshot(PhasedSnapshot):
    """The trees of one event type at one moment."""

    def __init__(
        self, view: PredicateView, index: GroveIndex, trees: Trees, deepest: int, roll: Roll, scratch: Scratch
    ) -> None:
        super().__init__(view, roll, scratch)
        self.index = index
        self.trees = trees
        self._deepest = deepest
        grove = kernels.GroveTable(
            index.associations,
            index.least,
            index.trees,
            kernels.TreeBytes(trees.data, trees.locations, kernels.SHORT_CIRCUIT),
            np.arange(index.known, len(trees.locations), dtype=np.uint32),
        )
        self._columns = grove.columns
        self.counts = np.zeros(3, np.int64)
        """How many candidates there were, how many trees were evaluated, and how many predicates were looked at."""
        self._directed: tuple[Destinations, npt.NDArray[np.int32]] | None = None

    def write(self, part: Fulfilled, begin: int, out: Outlet) -> tuple[int, int]:
        return self._write(part, begin, out, _NOWHERE, np.zeros((1, 1), np.uint8), is_shortcut=False)

    def _directions(self, destinations: Destinations) -> npt.NDArray[np.int32]:
        """Return the number of each slot's destination, -1 for none; what a handle has in a table never changes."""
        directed = self._directed
        if directed is None or directed[0] is not destinations:
            numbers = destinations.of(self._handles).astype(np.int32)
            directed = self._directed = destinations, np.where(numbers > 0, numbers, np.int32(-1))
        return directed[1]

    def reach(self, event: Mapping[str, Any], destinations: Destinations, reached: npt.NDArray[np.uint8]) -> Handles:
        """Match an event, leaving out who has a destination that is reached; return those who have none, as handles."""
        directions = self._directions(destinations)
        part = self.view.fulfilled_by_one(event)
        room = len(self._handles) + 1
        out = Outlet(self._scratch.empty("events", room, np.uint32), self._scratch.empty("slots", room, np.uint32))
        _, written = self._write(part, 0, out, directions, reached[None], is_shortcut=True)
        slots: npt.NDArray[np.uint32] = out.slots[:written]
        return self._handles[slots[directions[slots] < 0]]

    def reach_many(self, events: Events, destinations: Destinations, reached: npt.NDArray[np.uint8]) -> list[Pairs]:
        """Match a batch likewise; `reached` has a row for each event."""
        directions = self._directions(destinations)
        room = len(self._handles) + ROOM
        out = Outlet(self._scratch.empty("events", room, np.uint32), self._scratch.empty("slots", room, np.uint32))
        pieces: list[Pairs] = []
        for start in range(0, events.count, BLOCK):
            for part in self.view.fulfilled(events if events.count <= BLOCK else events.slice(start, BLOCK)):
                at, begin = 0, start + part.first
                while at < part.event_count:
                    rows = reached[begin : begin + part.event_count]
                    at, written = self._write(part, at, out, directions, rows, is_shortcut=True)
                    slots = out.slots[:written]
                    is_told = directions[slots] < 0
                    numbers = out.events[:written][is_told].astype(np.int64) + begin
                    pieces.append((numbers, self._handles[slots[is_told]]))
        return pieces

    def _write(
        self,
        part: Fulfilled,
        begin: int,
        out: Outlet,
        directions: npt.NDArray[np.int32],
        reached: npt.NDArray[np.uint8],
        *,
        is_shortcut: bool,
    ) -> tuple[int, int]:
        least, scratch = self.index.least, self._scratch
        room = (
            scratch.zeros("hits", len(least), least.dtype),
            scratch.empty("candidates", len(least) + 64, np.uint32),
            scratch.zeros("bits", part.word_count, np.uint32),
            scratch.empty("stack", 4 * (self._deepest + 2), np.int64).reshape(-1, 4),
            self.counts,
        )
        marks = (self._deaths, self._version, directions, is_shortcut)
        at, written = kernels.match_trees_of_columns(begin, (*part.lists, *self._columns, *marks, reached, *room, *out))
        return at, written
