"""How is a draft laid out so that events find their clauses quickly?

Every clause is found by one leaf, its *key*, the one that the fewest events pass. Clauses with the same key lie
side by side, so a block of events that is sorted by an axis meets them as a slice of events against a run of
clauses. The other leaves of a clause follow in the order of their selectivity. A clause whose key lets many events
through is *broad*: in a block it is checked with bitmaps instead (`maps.py`). A clause without a key is broad too.

Of subscriptions that ask the same only the first has its clauses laid out (`twins.py`).

Matching a block: codes for every axis, one counting sort for every axis that has keys, maps for every axis of
broad clauses, then the kernels. A single event takes the same arrays through a binary search for the keys it
passes.
"""

from __future__ import annotations

import sys
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tamis.matching.block import kernels
from tamis.matching.block.joining import thinned
from tamis.matching.block.maps import Maps, planned
from tamis.matching.block.plans import DEEPEST_STACK
from tamis.matching.block.shortcut import Arrays, Shortcut
from tamis.matching.block.twins import twins_in
from tamis.matching.distances import Distances
from tamis.matching.encoder import Encoder
from tamis.selectivity import operations as op
from tamis.selectivity.shares import default_shares, observed_shares

if TYPE_CHECKING:
    from tamis.language.schema import Schema
    from tamis.matching.axes import Codes
    from tamis.matching.block.draft import Draft
    from tamis.matching.columns import Events
    from tamis.matching.destinations import Destinations
    from tamis.matching.leaves import Ints

_MOST_KEYS_OF_A_SET = 16
_BROAD = 0.004
"""The share of events from which on a clause is checked with bitmaps: some thirty events of a block."""
_NEVER = 2**32 - 2
"""A code that no value has."""
_WIDTH_OF_A_HULL = 4
"""The interval around a set holds about so many times the events that the set holds."""
_SCANNED = np.iinfo(np.int32).max
"""Sorts behind every axis."""


@dataclass(slots=True)
class Segment:
    """An immutable set of subscriptions, compiled."""

    draft: Draft
    is_informed: bool
    """Whether its layout follows observed events."""
    program: tuple[npt.NDArray[Any], ...] = field(init=False)
    """The arrays that the kernels take: leaves, trees, bitmaps, owners."""
    key_axes: npt.NDArray[np.int32] = field(init=False)
    key_firsts: npt.NDArray[np.uint32] = field(init=False)
    key_lasts: npt.NDArray[np.uint32] = field(init=False)
    key_clauses: Ints = field(init=False)
    axis_points: Ints = field(init=False)
    axis_ranges: Ints = field(init=False)
    scan_key: int = field(init=False)
    narrow_rows: Ints = field(init=False)
    """Of each run of clauses that are not all broad: the sorted axis that finds it, where its events start and end
    among the starts of all axes, and its clauses, the runs one behind the other."""
    narrow_begins: Ints = field(init=False)
    narrow_ends: Ints = field(init=False)
    narrow_clauses: Ints = field(init=False)
    is_broad: npt.NDArray[np.bool_] = field(init=False)
    """By row."""
    broad_rows: npt.NDArray[np.int32] = field(init=False)
    maps: Maps = field(init=False)
    widest_axis: int = field(init=False)
    """The most codes that one of its axes has."""
    shifts: npt.NDArray[np.uint8] = field(init=False)
    probes: npt.NDArray[np.uint16] = field(init=False)
    """Of each row the leaves that a single event is tried on first, in codes shifted to fit into 16 bits."""
    has_several: bool = field(init=False)
    """Whether a subscription has more than one clause."""
    sorted_axes: npt.NDArray[np.int32] = field(init=False)
    start_offsets: Ints = field(init=False)
    twin_starts: npt.NDArray[np.uint32] = field(init=False)
    twins: npt.NDArray[np.uint32] = field(init=False)
    """Who asks the same as whom (`twins.py`); nothing where hardly anybody does."""
    _distances: list[Distances] | None = field(init=False, default=None)
    _shortcut: Shortcut | None = field(init=False, default=None)
    _encoder: tuple[Schema | None, Encoder] | None = field(init=False, default=None)
    _offset: tuple[npt.NDArray[np.int64], np.int64 | None] | None = field(init=False, default=None)
    _first_twins: npt.NDArray[np.uint32] | None = field(init=False, default=None)

    def __len__(self) -> int:
        return len(self.draft.handles)

    @property
    def code_type(self) -> Any:
        """The narrowest type that holds every code."""
        return np.uint16 if self.widest_axis < 1 << 16 else np.uint32

    def renumbered(self, handles: Ints) -> Segment:
        """Return the same segment under other handles, in the same order; all else is shared."""
        other = copy(self)
        other.draft = replace(self.draft, handles=handles)
        return other

    def memory(self) -> int:
        """Return the bytes of its arrays, operands included."""
        arrays = [
            *self.draft.arrays().values(),
            *self.program,
            *(getattr(self.maps, each.name) for each in fields(self.maps)),
            *(getattr(self, each.name) for each in fields(self) if not each.name.startswith("_")),
        ]
        operands = sum(8 + sys.getsizeof(operand) for axis in self.draft.axes for operand in axis.operands)
        return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray)) + operands

    # -- Matching

    def asked(self, alive: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return of which subscriptions the clauses are asked: of those alive, or of the first of their twins."""
        if not len(self.twins):
            return alive
        firsts = np.flatnonzero(np.diff(self.twin_starts))
        asked = np.zeros(len(alive), np.bool_)
        asked[firsts] = np.logical_or.reduceat(alive[self.twins], self.twin_starts[firsts])
        return asked

    def offset(self) -> np.int64 | None:
        """Return what to add to an owner to get its handle; None where some between the first and last are missing."""
        handles = self.draft.handles
        if self._offset is None or self._offset[0] is not handles:
            is_dense = len(handles) > 0 and handles[-1] - handles[0] + 1 == len(handles)
            self._offset = handles, np.int64(handles[0]) if is_dense else None
        return self._offset[1]

    def first_twins(self) -> npt.NDArray[np.uint32]:
        """Return of each subscription the first of its twins, whose clauses are asked for all of them."""
        if self._first_twins is None:
            firsts = np.empty(len(self), np.uint32)
            firsts[self.twins] = np.repeat(np.arange(len(self), dtype=np.uint32), np.diff(self.twin_starts))
            self._first_twins = firsts
        return self._first_twins

    def _with_twins(
        self, events: npt.NDArray[np.uint16], owners: npt.NDArray[np.uint32], alive: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
        """Return matches with those of the twins of their owners."""
        if not len(self.twins):
            return events.copy(), owners.copy()
        count = kernels.count_twins(owners, self.twin_starts, self.twins, alive)
        all_events, all_owners = np.empty(count, np.uint16), np.empty(count, np.uint32)
        kernels.write_twins(events, owners, self.twin_starts, self.twins, alive, all_events, all_owners)
        return all_events, all_owners

    def codes(self, events: Events, schema: Schema | None) -> npt.NDArray[Any]:
        """Return the code of every event on every axis."""
        codes = np.empty((max(1, len(self.draft.axes)), events.count), self.code_type)
        together = self.distances()
        rows = {row for distances in together for row in distances.rows.tolist()}
        for number, axis in enumerate(self.draft.axes):
            if number not in rows:
                codes[number] = axis.codes(events, schema)
        for distances in together:
            distances.write_codes(events, schema, codes)
        return codes

    def encoder(self, schema: Schema | None) -> Encoder:
        """Return what turns single events into codes, made once: it looks at every axis."""
        if self._encoder is None or self._encoder[0] is not schema:
            self._encoder = schema, Encoder(self.draft.axes, schema, self.distances())
        return self._encoder[1]

    def distances(self) -> list[Distances]:
        """Return the axes that are encoded together."""
        if self._distances is None:
            self._distances = Distances.among(self.draft.axes)
        return self._distances

    def shortcut(self, destinations: Destinations) -> Shortcut:
        """Return what its kernels need to know of the destinations of its subscriptions."""
        if self._shortcut is None or self._shortcut.table is not destinations:
            owners = self.program[0][:-1, kernels.OWNER]
            numbers = destinations.of(self.draft.handles)
            self._shortcut = Shortcut.of(destinations, numbers, owners, self.twin_starts, self.twins)
        return self._shortcut

    def match_codes(
        self,
        codes: npt.NDArray[Any],
        alive: npt.NDArray[np.bool_],
        asked: npt.NDArray[np.bool_],
        shortcut: Arrays | None = None,
    ) -> list[tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]]:
        """Match a block of events; return the events and owners of all matches, in pieces. `asked` is by `asked`.

        With a shortcut those that have a destination are not returned, but noted there.
        """
        count = codes.shape[1]
        sorted_count = len(self.start_offsets) - 1
        orders = np.empty(max(1, sorted_count) * count, np.uint16)
        starts = np.empty(int(self.start_offsets[-1]), np.int32)
        for axis, row in enumerate(self.sorted_axes):
            if row >= 0:
                part = starts[self.start_offsets[row] : self.start_offsets[row + 1]]
                kernels.sort_by_code(codes[axis], count, part, orders[row * count : (row + 1) * count])
        out_events = np.empty(max(1 << 18, 4 * count), np.uint16)
        out_owners = np.empty(len(out_events), np.uint32)
        found: list[tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]] = []
        survivors = np.empty(count + 1, np.uint16)  # one more, for the event that is tried last
        key, clause = 0, int(self.narrow_clauses[0])
        while key < len(self.narrow_rows):
            key, clause, written = kernels.match_keys(
                codes, orders, starts,
                self.narrow_rows * count, self.narrow_begins, self.narrow_ends, self.narrow_clauses,
                *self.program, self.is_broad, asked, survivors, key, clause, out_events, out_owners,
                shortcut,
            )  # fmt: skip
            found.append(self._with_twins(out_events[:written], out_owners[:written], alive))
        if len(self.broad_rows):
            maps = self.maps.filled(codes)
            words = (count + 63) // 64
            everything = np.packbits(np.arange(64 * words) < count, bitorder="little").view(np.uint64)
            held, scratch, unmatched = np.empty((3, words), np.uint64)
            stack = np.empty((DEEPEST_STACK + 1) * words, np.uint64)
            at = 0
            while at < len(self.broad_rows):
                at, written = kernels.match_maps(
                    codes, self.broad_rows, maps, everything,
                    self.maps.terms, self.maps.lists, self.maps.steps, self.maps.step_starts,
                    *self.program[:4], asked, held, scratch, stack, unmatched, at, out_events, out_owners,
                    shortcut,
                )  # fmt: skip
                found.append(self._with_twins(out_events[:written], out_owners[:written], alive))
        return found

    def match_event(
        self,
        codes: list[int] | Codes,
        alive: npt.NDArray[np.bool_],
        asked: npt.NDArray[np.bool_],
        shortcut: Arrays | None = None,
    ) -> npt.NDArray[np.uint32]:
        """Match one event, given its code on every axis; return the owners of all matches, in order."""
        column = np.array(codes if len(codes) else [0], np.uint32).reshape(-1, 1)
        out = np.empty(1024, np.uint32)
        while True:
            written = kernels.match_event(
                column, self.axis_points, self.axis_ranges, self.scan_key, self.key_firsts, self.key_lasts,
                self.key_clauses, self.shifts, self.probes, *self.program[:4], asked, out, shortcut,
            )  # fmt: skip
            if written <= len(out):
                owners = out[:written]
                if written == 0:
                    return owners
                owners.sort()
                if self.has_several:
                    owners = owners[: kernels.drop_repeated(owners)]
                if len(self.twins):
                    _, owners = self._with_twins(np.zeros(len(owners), np.uint16), owners, alive)
                    owners.sort()
                return owners
            out = np.empty(written, np.uint32)


def compiled(draft: Draft, sample: Events | None = None, schema: Schema | None = None) -> Segment:
    """Lay a draft out. A sample of events tells how often each leaf holds."""
    segment = Segment(draft, sample is not None and sample.count > 0)
    segment.twin_starts, segment.twins = twins_in(draft)
    if len(segment.twins):
        draft = thinned(draft, np.diff(segment.twin_starts) > 0)
    segment.widest_axis = max((axis.code_count for axis in draft.axes), default=0)
    kinds, firsts, spans, bitmaps = leaf_codes(draft)
    sample_codes = None
    if sample is not None and sample.count:
        sample_codes = list(segment.codes(sample, schema)[: len(draft.axes)])
        shares = observed_shares(draft, kinds, firsts, spans, sample_codes)
    else:
        shares = default_shares(draft)
    chosen, rows, row_axes, row_firsts, row_lasts = _rows(draft, kinds, firsts, spans, shares)
    is_range = row_lasts > row_firsts
    order = np.lexsort((row_lasts, row_firsts, is_range, row_axes))
    rows, row_axes, row_firsts, row_lasts = rows[order], row_axes[order], row_firsts[order], row_lasts[order]
    is_broad = np.where(chosen < 0, 1.0, shares[chosen] if len(shares) else 1.0) > _BROAD
    # All clauses of a subscription are found in the same way, so that what one matched the others can leave out.
    has_broad = np.zeros(len(draft.handles), np.bool_)
    has_broad[draft.clause_owners[is_broad]] = True
    is_broad = has_broad[draft.clause_owners]
    _set_keys(segment, row_axes, row_firsts, row_lasts, is_broad[rows])

    clause_count = len(draft.clause_owners)
    clauses_of = np.bincount(draft.clause_owners, minlength=len(draft.handles))
    is_shared = clauses_of[draft.clause_owners] > 1 if clause_count else np.zeros(0, np.bool_)
    leaf_starts = np.empty(len(rows) + 1, np.int64)
    copies = np.bincount(rows, minlength=clause_count)
    placed = np.empty(int((np.diff(draft.clause_starts) * copies).sum()) if clause_count else 0, np.uint32)
    # A broad clause is checked whole, and so is each clause of a subscription that has several, to see whether an
    # earlier one matched already.
    written = kernels.lay_out_leaves(
        rows, draft.clause_starts, draft.clause_leaves, chosen, is_shared | is_broad, shares, leaf_starts, placed
    )
    placed = placed[:written]
    # A clause that is found by the members of a set has several rows; one of them will do for the bitmaps.
    # Clauses lie in the order of their keys, but for those of a subscription that has several: these stay together.
    first_rows = np.full(clause_count, -1, np.int64)  # a clause that never holds has no row
    first_rows[rows[::-1]] = np.arange(len(rows))[::-1]
    broad_clauses = np.flatnonzero(is_broad & (first_rows >= 0))
    first_rows, together = first_rows[broad_clauses], is_shared[broad_clauses]
    segment.broad_rows = np.concatenate([np.sort(first_rows[~together]), first_rows[together]]).astype(np.int32)
    segment.maps = planned(
        draft, rows, leaf_starts, placed, segment.is_broad, shares, kinds, firsts, spans, sample_codes
    )
    row_of_clause = np.full(clause_count, kernels.NONE, np.uint32)
    row_of_clause[rows] = np.arange(len(rows))
    owner_clauses = np.concatenate([[0], np.cumsum(clauses_of)[:-1]]) if len(clauses_of) else np.zeros(0)
    clauses = np.zeros((len(rows) + 1, 4), np.uint32)
    clauses[:, kernels.LEAVES] = leaf_starts
    trees_of_rows = draft.clause_trees[rows]
    clauses[:-1, kernels.TREE] = np.where(trees_of_rows < 0, kernels.NONE, trees_of_rows)
    clauses[:-1, kernels.OWNER] = draft.clause_owners[rows]
    clauses[:-1, kernels.ORDINAL] = draft.clause_ordinals[rows]
    leaves = np.stack([(draft.leaf_axes << kernels.KIND_BITS) + kinds, firsts, spans], axis=1)
    jumps = np.stack([draft.tree_trues, draft.tree_falses], axis=1)
    trees = np.concatenate([leaves[draft.tree_leaves], jumps], axis=1).astype(np.uint32)
    segment.has_several = bool(is_shared.any())
    segment.probes = np.empty((len(rows), 16), np.uint16)
    widths = [int(axis.code_count - 1).bit_length() for axis in draft.axes]
    segment.shifts = np.array([max(0, width - 16) for width in widths], np.uint8)
    hulls = _hulls(draft, kinds, firsts, spans, shares)
    kernels.choose_probes(
        rows, leaf_starts, placed, chosen,
        draft.leaf_axes, kinds, firsts, spans, *hulls, segment.shifts, segment.probes,
    )  # fmt: skip
    segment.program = (clauses, leaves[placed], trees, bitmaps, owner_clauses.astype(np.uint32), row_of_clause)
    return segment


def leaf_codes(
    draft: Draft,
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Return the kind, first code and span of every leaf, and the words of its sets."""
    operations = draft.leaf_operations
    a, b = draft.leaf_a.astype(np.int64), draft.leaf_b.astype(np.int64)
    top = np.array([axis.code_count - 1 for axis in draft.axes] or [0], np.int64)[draft.leaf_axes]
    at_a, at_b = 2 * a + 2, 2 * b + 2
    first, last = np.ones(len(a), np.int64), top.copy()
    for operation, low, high in (
        (op.EQUAL, at_a, at_a),
        (op.UNEQUAL, at_a, at_a),
        (op.BELOW, None, at_a - 1),
        (op.AT_MOST, None, at_a),
        (op.ABOVE, at_a + 1, None),
        (op.AT_LEAST, at_a, None),
        (op.WITHIN, at_a, at_b),
        (op.BEYOND, at_a, at_b),
        (op.FROM_TO, at_a, at_b - 1),
    ):
        asked = operations == operation
        if low is not None:
            first[asked] = low[asked]
        if high is not None:
            last[asked] = high[asked]
    is_truth = np.array([axis.key.kind == "truth" for axis in draft.axes] or [False])[draft.leaf_axes]
    first[is_truth] = last[is_truth] = a[is_truth] + 1
    kinds = np.zeros(len(a), np.uint8)
    kinds[(operations == op.UNEQUAL) | (operations == op.BEYOND)] = kernels.OUTSIDE
    # An interval that ends before it starts holds nothing, and everything lies outside of it.
    is_void = last < first
    first[is_void], last[is_void] = _NEVER, _NEVER
    spans = (last - first).astype(np.uint32)
    firsts = first.astype(np.uint32)
    bitmaps = _sets(draft, kinds, firsts, spans)
    return kinds, firsts, spans, bitmaps


def _sets(
    draft: Draft, kinds: npt.NDArray[np.uint8], firsts: npt.NDArray[np.uint32], spans: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint64]:
    """Write each set into its leaf where the axis has few operands, else as a bitmap or, if shorter, as a list."""
    operand_counts = np.array([len(axis.operands) for axis in draft.axes] or [0], np.int64)[draft.leaf_axes]
    is_few = (draft.leaf_operations == op.AMONG) & (operand_counts <= kernels.MOST_FEW)
    few = np.flatnonzero(is_few)
    kinds[few] = kernels.FEW
    kernels.write_few(few, draft.leaf_a[few], draft.set_starts, draft.set_operands, firsts, spans)
    is_set = (draft.leaf_operations == op.AMONG) | (draft.leaf_operations == op.NOT_AMONG)
    leaves = np.flatnonzero(is_set & ~is_few)
    if not len(leaves):
        return np.zeros(1, np.uint64)
    is_in = draft.leaf_operations[leaves] == op.AMONG
    numbers = draft.leaf_a[leaves].astype(np.int64)
    sizes = np.diff(draft.set_starts)[numbers]
    code_counts = np.array([axis.code_count for axis in draft.axes], np.int64)[draft.leaf_axes[leaves]]
    map_sizes = (code_counts + 63) // 64
    is_map = map_sizes <= np.maximum(4, sizes)
    kinds[leaves] = np.where(is_map, kernels.MEMBER, np.where(is_in, kernels.LISTED, kernels.UNLISTED))
    lengths = np.where(is_map, map_sizes, sizes)
    places = np.cumsum(lengths) - lengths
    words = np.zeros(max(1, int(lengths.sum())), np.uint64)
    kernels.write_sets(
        leaves, numbers, draft.set_starts, draft.set_operands, code_counts, is_in, places, kinds[leaves], words
    )
    firsts[leaves], spans[leaves] = places, sizes
    return words


def _hulls(
    draft: Draft,
    kinds: npt.NDArray[np.uint8],
    firsts: npt.NDArray[np.uint32],
    spans: npt.NDArray[np.uint32],
    shares: npt.NDArray[np.float32],
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
    """Return an interval around each leaf, and roughly the share of events in it; infinite where there is none."""
    firsts, lasts = firsts.copy(), firsts + spans
    costs = np.where((kinds == kernels.INTERVAL) & (firsts < _NEVER), shares, np.float32(np.inf))
    sets = np.flatnonzero(draft.leaf_operations == op.AMONG)
    if len(sets):
        numbers = draft.leaf_a[sets]
        least = draft.set_operands[draft.set_starts[numbers]]  # members lie in order
        greatest = draft.set_operands[draft.set_starts[numbers + 1] - 1]
        firsts[sets], lasts[sets] = 2 * least + 2, 2 * greatest + 2
        costs[sets] = np.minimum(_WIDTH_OF_A_HULL * shares[sets], 1)
    return firsts, lasts, costs


def _rows(
    draft: Draft,
    kinds: npt.NDArray[np.uint8],
    firsts: npt.NDArray[np.uint32],
    spans: npt.NDArray[np.uint32],
    shares: npt.NDArray[np.float32],
) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Choose the leaf by which each clause is found; a set is found by each of its members."""
    set_sizes = np.diff(draft.set_starts)
    costs = shares.astype(np.float64).copy()
    is_small_set = np.zeros(len(kinds), np.bool_)
    among = draft.leaf_operations == op.AMONG
    is_small_set[among] = set_sizes[draft.leaf_a[among]] <= _MOST_KEYS_OF_A_SET
    costs[is_small_set] *= 1.5  # a clause that lies under several keys is read several times
    costs[(kinds != kernels.INTERVAL) & ~is_small_set] = np.inf
    chosen = np.empty(len(draft.clause_owners), np.int64)
    kernels.choose_access(draft.clause_starts, draft.clause_leaves, costs, chosen)
    clauses = np.arange(len(chosen))
    is_scanned = chosen < 0
    by_set = ~is_scanned & (is_small_set[chosen] if len(kinds) else False)
    by_interval = ~is_scanned & ~by_set
    leaf = chosen[by_interval]
    parts = [
        (
            clauses[by_interval],
            draft.leaf_axes[leaf].astype(np.int64),
            firsts[leaf].astype(np.int64),
            firsts[leaf].astype(np.int64) + spans[leaf],
        ),
        (
            clauses[is_scanned],
            np.full(int(is_scanned.sum()), _SCANNED, np.int64),
            np.zeros(int(is_scanned.sum()), np.int64),
            np.zeros(int(is_scanned.sum()), np.int64),
        ),
    ]
    leaf = chosen[by_set]
    if len(leaf):
        numbers = draft.leaf_a[leaf]
        sizes = set_sizes[numbers]
        positions = np.repeat(draft.set_starts[numbers] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
        codes = 2 * draft.set_operands[positions + np.arange(len(positions))].astype(np.int64) + 2
        parts.append(
            (np.repeat(clauses[by_set], sizes), np.repeat(draft.leaf_axes[leaf].astype(np.int64), sizes), codes, codes)
        )
    rows, axes, lows, highs = (np.concatenate(column) for column in zip(*parts, strict=True))
    # What never holds is found by no event.
    is_possible = lows < _NEVER
    return chosen, rows[is_possible], axes[is_possible], lows[is_possible], highs[is_possible]


def _set_keys(segment: Segment, axes: Ints, firsts: Ints, lasts: Ints, is_broad: npt.NDArray[np.bool_]) -> None:
    """Gather the rows, which are sorted, by their keys."""
    axis_count = len(segment.draft.axes)
    if len(axes):
        is_new = np.concatenate([[True], (np.diff(axes) != 0) | (np.diff(firsts) != 0) | (np.diff(lasts) != 0)])
        at = np.flatnonzero(is_new)
    else:
        at = np.zeros(0, np.int64)
    segment.key_clauses = np.concatenate([at, [len(axes)]]).astype(np.int64)
    key_axes = axes[at]
    segment.scan_key = len(at) - 1 if len(at) and key_axes[-1] == _SCANNED else -1
    segment.key_axes = np.where(key_axes == _SCANNED, -1, key_axes).astype(np.int32)
    segment.key_firsts = firsts[at].astype(np.uint32)
    segment.key_lasts = lasts[at].astype(np.uint32)
    # Clauses of one key may differ: it is one of a set's members for one, and a leaf of its own for another.
    segment.is_broad = is_broad
    is_narrow = ~np.logical_and.reduceat(is_broad, at) if len(at) else np.zeros(0, np.bool_)
    known = key_axes[key_axes != _SCANNED]
    segment.axis_points = np.searchsorted(known, np.arange(axis_count + 1)).astype(np.int64)
    is_range = (segment.key_lasts > segment.key_firsts)[: len(known)]
    points = np.bincount(known[~is_range], minlength=axis_count) if len(known) else np.zeros(axis_count, np.int64)
    segment.axis_ranges = (segment.axis_points[:-1] + points[:axis_count]).astype(np.int64)
    segment.sorted_axes = np.full(max(1, axis_count), -1, np.int32)
    sorted_axes = np.unique(known[is_narrow[: len(known)]])
    segment.sorted_axes[sorted_axes] = np.arange(len(sorted_axes))
    sizes = [segment.draft.axes[axis].code_count + 1 for axis in sorted_axes]
    segment.start_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    # Between two narrow keys the clauses of broad ones are passed over: they are part of the run before, and marked.
    narrow = np.flatnonzero(is_narrow)
    segment.narrow_rows = segment.sorted_axes[segment.key_axes[narrow]].astype(np.int64)
    offsets = segment.start_offsets[segment.narrow_rows]
    segment.narrow_begins = offsets + segment.key_firsts[narrow]
    segment.narrow_ends = offsets + segment.key_lasts[narrow] + 1
    segment.narrow_clauses = np.concatenate([segment.key_clauses[narrow], [len(axes)]]).astype(np.int64)
