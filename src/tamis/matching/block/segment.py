"""How is a draft laid out so that events find their clauses quickly? An immutable segment: an inverted index by key.

Every clause is found by one leaf, its *key*, the one that the fewest events pass. Clauses with the same key lie
side by side, so a block of events that is sorted by an axis meets them as a slice of events against a run of
clauses. The other leaves of a clause follow in the order of their selectivity. A clause whose key lets many events
through is *broad*: in a block it is checked with bitmaps instead (`maps.py`). A clause without a key is broad too.

Of subscriptions that ask the same only the first has its clauses laid out (`twins.py`).

A segment is made in stages, each a table that does not change once it exists (`kernels`, where they are drawn):

    draft ──▶ LeafTable ──▶ Access ──▶ Layout ──▶ Program, Broad
             in codes,      a row for  the leaves  what a row asks
             with shares    each key   of a row
                               ├─────▶ Keys, Runs        which rows a block reaches
                               └─────▶ Finders, Probes   what a single event is tried on (`finders`)

Matching a block: codes for every axis, one counting sort for every axis that has keys, maps for every axis of
broad clauses, then the kernels. A single event has tables of its own, and kernels of its own (`probing`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.matching import operations as op
from tamis.matching.block import finders, kernels, probing
from tamis.matching.block.breathing import breathe
from tamis.matching.block.joining import thinned
from tamis.matching.block.kernels import Keys, Layout, LeafTable, Matches, Program, Runs
from tamis.matching.block.maps import Maps, planned
from tamis.matching.block.plans import DEEPEST_STACK
from tamis.matching.block.shortcut import Shortcut
from tamis.matching.block.twins import twins_in
from tamis.matching.distances import Distances
from tamis.matching.encoder import Encoder
from tamis.matching.scanning.scanner import Scanner
from tamis.matching.shares import default_shares, observed_shares
from tamis.ragged import Ragged, starts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis, Codes
    from tamis.matching.block.draft import Draft
    from tamis.matching.block.probing import Finders, Probes
    from tamis.matching.columns import Events
    from tamis.matching.destinations import Destinations
    from tamis.matching.leaves import Ints

Flags = npt.NDArray[np.bool_]
Found = tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]
"""The events and the owners of matches, side by side."""

_BROAD = 0.004
"""The share of events from which on a clause is checked with bitmaps: some thirty events of a block."""
_NEVER = 2**32 - 2
"""A code that no value has."""
_SCANNED = np.iinfo(np.int32).max
"""Sorts behind every axis."""
_FIRST_ROOM = 1 << 18
"""For so many matches of a block there is room at once."""


class SortedAxes(NamedTuple):
    """The axes that a block is sorted by. Invariant: `starts` has room for every code of every sorted axis, and an end.

    places   int32[axes]        where each axis stands among the sorted ones; -1 if it is none of them
    starts   int64[sorted + 1]  where the starts of each sorted axis lie among those of all
    """

    places: npt.NDArray[np.int32]
    starts: Ints


@dataclass(slots=True)
class _Caches:
    """What is derived from a segment when it is first asked for; a renumbered segment shares it."""

    distances: list[Distances] | None = None
    shortcut: Shortcut | None = None
    encoder: tuple[Schema | None, Encoder] | None = None
    scanner: tuple[Schema | None, Scanner] | None = None
    offset: tuple[npt.NDArray[np.int64], np.int64 | None] | None = None
    first_twins: npt.NDArray[np.uint32] | None = None
    matches_per_event: float = 0
    """The most that a group of a few events had on average, so that there is room for as many."""
    event_columns: tuple[Any, ...] = ()
    """The columns of finders, probes and program, side by side, for `probing.match_event_of_columns`."""


@dataclass(frozen=True, slots=True)
class Segment:
    """An immutable set of subscriptions, compiled."""

    draft: Draft
    is_informed: bool
    """Whether its layout follows observed events."""
    program: Program
    keys: Keys
    key_axes: npt.NDArray[np.int32]
    """The axis of each key, -1 for that of the rows that no key finds."""
    runs: Runs
    sorted_axes: SortedAxes
    finders: Finders
    probes: Probes
    maps: Maps
    has_several: bool
    """Whether a subscription has more than one clause."""
    twins: Ragged[np.uint32]
    """Who asks the same as whom (`twins.py`); no lists where hardly anybody does."""
    _caches: _Caches = field(default_factory=_Caches)

    def __len__(self) -> int:
        return len(self.draft.handles)

    @property
    def has_twins(self) -> bool:
        """Whether subscriptions are asked for others that ask the same."""
        return self.twins.list_count > 0

    def renumbered(self, handles: Ints) -> Segment:
        """Return the same segment under other handles, in the same order; all else is shared."""
        return replace(self, draft=replace(self.draft, handles=handles))

    def memory(self) -> int:
        """Return the bytes of its arrays, operands included."""
        operands = sum(8 + sys.getsizeof(operand) for axis in self.draft.axes for operand in axis.operands)
        return sum(array.nbytes for array in arrays_of(self)) + operands

    # -- Matching

    def asked(self, alive: Flags) -> Flags:
        """Return of which subscriptions the clauses are asked: of those alive, or of the first of their twins."""
        if not self.has_twins:
            return alive
        firsts = np.flatnonzero(self.twins.counts)
        asked = np.zeros(len(alive), np.bool_)
        asked[firsts] = np.logical_or.reduceat(alive[self.twins.values], self.twins.starts[firsts])
        return asked

    def offset(self) -> np.int64 | None:
        """Return what to add to an owner to get its handle; None where some between the first and last are missing."""
        handles, caches = self.draft.handles, self._caches
        if caches.offset is None or caches.offset[0] is not handles:
            is_dense = len(handles) > 0 and handles[-1] - handles[0] + 1 == len(handles)
            caches.offset = handles, np.int64(handles[0]) if is_dense else None
        return caches.offset[1]

    def first_twins(self) -> npt.NDArray[np.uint32]:
        """Return of each subscription the first of its twins, whose clauses are asked for all of them."""
        if self._caches.first_twins is None:
            firsts = np.empty(len(self), np.uint32)
            firsts[self.twins.values] = np.repeat(np.arange(len(self), dtype=np.uint32), self.twins.counts)
            self._caches.first_twins = firsts
        return self._caches.first_twins

    def _with_twins(self, events: npt.NDArray[np.uint16], owners: npt.NDArray[np.uint32], alive: Flags) -> Found:
        """Return matches with those of the twins of their owners."""
        if not self.has_twins:
            return events.copy(), owners.copy()
        count = kernels.count_twins(owners, self.twins, alive)
        out = Matches(np.empty(count, np.uint16), np.empty(count, np.uint32))
        kernels.write_twins(Matches(events, owners), self.twins, alive, out)
        return out.events, out.owners

    def codes(self, events: Events, schema: Schema | None) -> npt.NDArray[Any]:
        """Return the code of every event on every axis."""
        return _codes(self.draft.axes, self.distances(), events, schema)

    def columns_of_codes(self, rows: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
        """Return the codes of events, a row each, as `codes` has them."""
        columns = np.zeros((max(1, rows.shape[1]), len(rows)), _code_type(self.draft.axes))
        columns[: rows.shape[1]] = rows.T
        return columns

    def encoder(self, schema: Schema | None) -> Encoder:
        """Return what turns single events into codes, made once: it looks at every axis."""
        caches = self._caches
        if caches.encoder is None or caches.encoder[0] is not schema:
            caches.encoder = schema, Encoder(self.draft.axes, schema, self.distances())
        return caches.encoder[1]

    def scanner(self, schema: Schema | None) -> Scanner:
        """Return what turns the JSON of single events into codes, made once."""
        caches = self._caches
        if caches.scanner is None or caches.scanner[0] is not schema:
            caches.scanner = schema, Scanner(self.draft.axes, schema, self.distances())
        return caches.scanner[1]

    def distances(self) -> list[Distances]:
        """Return the axes that are encoded together."""
        if self._caches.distances is None:
            self._caches.distances = Distances.among(self.draft.axes)
        return self._caches.distances

    def shortcut(self, destinations: Destinations) -> Shortcut:
        """Return what its kernels need to know of the destinations of its subscriptions."""
        caches = self._caches
        if caches.shortcut is None or caches.shortcut.table is not destinations:
            numbers = destinations.of(self.draft.handles)
            owners = finders.owners_of(self.probes, self.program)
            caches.shortcut = Shortcut.of(destinations, numbers, owners, self.twins)
        return caches.shortcut

    def match_codes(
        self, codes: npt.NDArray[Any], alive: Flags, asked: Flags, shortcut: kernels.Reaching | None = None
    ) -> list[Found]:
        """Match a block of events; return the events and owners of all matches, in pieces. `asked` is by `asked`.

        With a shortcut those that have a destination are not returned, but noted there.
        """
        room = max(_FIRST_ROOM, 4 * codes.shape[1])
        out = Matches(np.empty(room, np.uint16), np.empty(room, np.uint32))
        pieces = chain(
            self._narrow_pieces(codes, asked, out, shortcut), self._broad_pieces(codes, asked, out, shortcut)
        )
        # Each piece is taken out of the output before the next is written there.
        return [self._with_twins(events, owners, alive) for events, owners in pieces]

    def _narrow_pieces(
        self, codes: npt.NDArray[Any], asked: Flags, out: Matches, shortcut: kernels.Reaching | None
    ) -> Iterator[Found]:
        """Yield the matches of the rows that are found by keys, as often as the output is full."""
        if not len(self.runs.orders):
            return
        count, starts_of = codes.shape[1], self.sorted_axes.starts
        orders = np.empty(max(1, len(starts_of) - 1) * count, np.uint16)
        starts = np.empty(int(starts_of[-1]), np.int32)
        for axis, place in enumerate(self.sorted_axes.places):
            if place >= 0:
                part = starts[starts_of[place] : starts_of[place + 1]]
                kernels.sort_by_code(codes[axis], count, part, orders[place * count : (place + 1) * count])
        block = kernels.SortedBlock(codes, orders, starts)
        runs = self.runs._replace(orders=self.runs.orders * count)
        survivors = np.empty(count + 1, np.uint16)  # one more, for the event that is tried last
        run, row = 0, int(runs.rows[0])
        while run < len(runs.orders):
            run, row, written = kernels.match_keys(
                block, runs, self.program, asked, survivors, (run, row), out, shortcut
            )
            yield out.events[:written], out.owners[:written]

    def _broad_pieces(
        self, codes: npt.NDArray[Any], asked: Flags, out: Matches, shortcut: kernels.Reaching | None
    ) -> Iterator[Found]:
        """Yield the matches of the rows that are checked with bitmaps, as often as the output is full."""
        broad = self.maps.broad
        if not len(broad.rows):
            return
        count = codes.shape[1]
        words = (count + 63) // 64
        everything = np.packbits(np.arange(64 * words) < count, bitorder="little").view(np.uint64)
        block = kernels.MappedBlock(codes, self.maps.filled(codes), everything)
        survivors, scratch, unmatched = np.empty((3, words), np.uint64)
        room = kernels.Room(survivors, scratch, np.empty((DEEPEST_STACK + 1) * words, np.uint64), unmatched)
        at = 0
        while at < len(broad.rows):
            at, written = kernels.match_maps(block, broad, self.program, asked, room, at, out, shortcut)
            yield out.events[:written], out.owners[:written]

    def match_event(
        self, codes: list[int] | Codes, alive: Flags, asked: Flags, shortcut: kernels.Reaching | None = None
    ) -> npt.NDArray[np.uint32]:
        """Match one event, given its code on every axis; return the owners of all matches, in order."""
        column = np.array(codes if len(codes) else [0], np.uint32).reshape(-1, 1)
        columns = self._event_columns()
        out = np.empty(1024, np.uint32)
        while True:
            written = probing.match_event_of_columns(column, columns, asked, out, shortcut)
            if written <= len(out):
                owners = out[:written]
                if self.has_twins and written:
                    _, owners = self._with_twins(np.zeros(len(owners), np.uint16), owners, alive)
                    owners.sort()
                return owners
            out = np.empty(written, np.uint32)

    def match_few(
        self, codes: Sequence[list[int] | Codes] | npt.NDArray[np.uint32], alive: Flags, asked: Flags
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]:
        """Match a few events, given the codes of each; return the number of its event and the owner of every match."""
        table = np.array(codes if len(codes[0]) else [[0]] * len(codes), np.uint32)
        columns = self._event_columns()
        room = 1024 + int(1.5 * self._caches.matches_per_event * len(codes))
        while True:
            numbers, owners = np.empty(room, np.int64), np.empty(room, np.uint32)
            written = probing.match_few_of_columns(table, columns, asked, numbers, owners)
            if written >= 0:
                break
            room = 2 * -written
        self._caches.matches_per_event = max(self._caches.matches_per_event, written / len(codes))
        numbers, owners = numbers[:written], owners[:written]
        if not self.has_twins:
            return numbers, owners
        events, owners = self._with_twins(numbers.astype(np.uint16), owners, alive)
        order = np.lexsort((owners, events))
        return events[order].astype(np.int64), owners[order]

    def _event_columns(self) -> tuple[npt.NDArray[Any], ...]:
        columns = self._caches.event_columns
        if not columns:
            columns = self._caches.event_columns = (*self.finders, *self.probes, *self.program)
        return columns


def arrays_of(record: Any) -> Iterator[npt.NDArray[Any]]:
    """Yield the arrays of a record, of its tables and of its lists of arrays; caches are none of it."""
    if isinstance(record, np.ndarray):
        yield record
    elif isinstance(record, tuple | list):
        for each in record:
            yield from arrays_of(each)
    elif hasattr(record, "__dataclass_fields__"):
        for each in fields(record):
            if not each.name.startswith("_") and each.name != "axes":
                yield from arrays_of(getattr(record, each.name))


def _codes(axes: list[Axis], together: list[Distances], events: Events, schema: Schema | None) -> npt.NDArray[Any]:
    """Return the code of every event on every axis, in the narrowest type that holds all of them."""
    codes = np.empty((max(1, len(axes)), events.count), _code_type(axes))
    rows = {row for distances in together for row in distances.rows.tolist()}
    for number, axis in enumerate(axes):
        if number not in rows:
            codes[number] = axis.codes(events, schema)
            breathe()  # a sample is encoded while a segment is laid out
    for distances in together:
        distances.write_codes(events, schema, codes)
    return codes


def _code_type(axes: list[Axis]) -> type[np.uint16] | type[np.uint32]:
    """Return the narrowest type that holds all codes."""
    widest = max((axis.code_count for axis in axes), default=0)
    return np.uint16 if widest < 1 << 16 else np.uint32


# -- Laying out


class Access(NamedTuple):
    """How each clause is found: by which leaf, and under which key its rows lie. Invariant: sorted as `Keys` are.

    chosen    int64[clauses]  the leaf, -1 where there is none to find it by
    clauses   int64[rows]     the clause of each row; none for one that never holds
    axes      int64[rows]     the axis of its key; _SCANNED where it has none
    firsts    int64[rows]     the first code that passes
    lasts     int64[rows]     and the last
    """

    chosen: Ints
    clauses: Ints
    axes: Ints
    firsts: Ints
    lasts: Ints


def compiled(draft: Draft, sample: Events | None = None, schema: Schema | None = None) -> Segment:
    """Lay a draft out. A sample of events tells how often each leaf holds.

    In the background it gives way to others between its steps.
    """
    whole = draft
    twins = twins_in(draft)
    if twins.list_count:
        draft = thinned(draft, twins.counts > 0)
    breathe()
    distances = Distances.among(draft.axes)
    sample_codes = None
    if sample is not None and sample.count:
        sample_codes = list(_codes(draft.axes, distances, sample, schema)[: len(draft.axes)])
    breathe()
    leaves, bitmaps = leaf_table(draft, sample_codes)
    breathe()
    access = _access(draft, leaves)
    breathe()
    is_shared = _is_shared(draft)
    is_broad = _is_broad(draft, leaves, access)
    breathe()
    keys, key_axes, sorted_axes, runs = _keys(draft.axes, access, is_broad[access.clauses])
    breathe()
    layout = _layout(draft, access, is_shared | is_broad, leaves)
    breathe()
    broad_rows = _broad_rows(access.clauses, is_broad, is_shared)
    program = _program(draft, leaves, layout, bitmaps)
    for_events = finders.laid_out(draft, leaves, access.chosen, is_shared | is_broad, program)
    breathe()
    return Segment(
        whole,
        sample_codes is not None,
        program,
        keys,
        key_axes,
        runs,
        sorted_axes,
        *for_events,
        planned(draft, leaves, layout, runs.is_broad, broad_rows, sample_codes),
        bool(is_shared.any()),
        twins,
        _Caches(distances=distances),
    )


def _is_shared(draft: Draft) -> Flags:
    """Return which clauses belong to a subscription that has several."""
    owners = draft.clauses.owners
    if not len(owners):
        return np.zeros(0, np.bool_)
    return np.asarray(np.bincount(owners, minlength=len(draft.handles))[owners] > 1)


def _is_broad(draft: Draft, leaves: LeafTable, access: Access) -> Flags:
    """Return which clauses are checked with bitmaps.

    All clauses of a subscription are found in the same way, so that what one matched the others can leave out.
    """
    chosen = access.chosen
    is_broad = np.where(chosen < 0, 1.0, leaves.shares[chosen] if len(leaves.shares) else 1.0) > _BROAD
    has_broad = np.zeros(len(draft.handles), np.bool_)
    has_broad[draft.clauses.owners[is_broad]] = True
    return np.asarray(has_broad[draft.clauses.owners])


def _layout(draft: Draft, access: Access, keeps_chosen: Flags, leaves: LeafTable) -> Layout:
    """Place the leaves of every row.

    A broad clause is checked whole, and so is each clause of a subscription that has several, to see whether an
    earlier one matched already.
    """
    copies = np.bincount(access.clauses, minlength=draft.clause_count)
    room = int((draft.clauses.leaves.counts * copies).sum()) if draft.clause_count else 0
    placed: Ragged[np.uint32] = Ragged(np.empty(len(access.clauses) + 1, np.int64), np.empty(room, np.uint32))
    layout = Layout(access.clauses, access.chosen, placed)
    written = kernels.lay_out_leaves(draft.clauses.leaves, keeps_chosen, leaves.shares, layout)
    return layout._replace(leaves=placed._replace(values=placed.values[:written]))


def _broad_rows(row_clauses: Ints, is_broad: Flags, is_shared: Flags) -> npt.NDArray[np.int32]:
    """Return the rows that are checked with bitmaps.

    A clause that is found by the members of a set has several rows; one of them will do. Rows lie in the order of
    their keys, but for those of a subscription that has several clauses: these stay together.
    """
    first_rows = np.full(len(is_broad), -1, np.int64)  # a clause that never holds has no row
    first_rows[row_clauses[::-1]] = np.arange(len(row_clauses))[::-1]
    broad = np.flatnonzero(is_broad & (first_rows >= 0))
    rows, together = first_rows[broad], is_shared[broad]
    return np.concatenate([np.sort(rows[~together]), rows[together]]).astype(np.int32)


def _program(draft: Draft, leaves: LeafTable, layout: Layout, bitmaps: npt.NDArray[np.uint64]) -> Program:
    """Write what every row asks."""
    rows, drafted = layout.clauses, draft.clauses
    clauses = np.zeros((len(rows) + 1, 4), np.uint32)
    clauses[:, kernels.LEAVES] = layout.leaves.starts
    trees_of_rows = drafted.trees[rows]
    clauses[:-1, kernels.TREE] = np.where(trees_of_rows < 0, kernels.NONE, trees_of_rows)
    clauses[:-1, kernels.OWNER] = drafted.owners[rows]
    clauses[:-1, kernels.ORDINAL] = drafted.ordinals[rows]
    clause_rows = np.full(draft.clause_count, kernels.NONE, np.uint32)
    clause_rows[rows] = np.arange(len(rows))
    clause_counts = np.bincount(drafted.owners, minlength=len(draft.handles))
    owner_clauses = (np.cumsum(clause_counts) - clause_counts).astype(np.uint32)
    asked = np.stack([(leaves.axes << kernels.KIND_BITS) + leaves.kinds, leaves.firsts, leaves.spans], axis=1)
    jumps = np.stack([draft.jumps.on_true, draft.jumps.on_false], axis=1)
    trees = np.concatenate([asked[draft.jumps.leaves], jumps], axis=1).astype(np.uint32)
    return Program(clauses, asked[layout.leaves.values], trees, bitmaps, owner_clauses, clause_rows)


def leaf_table(
    draft: Draft, sample_codes: list[npt.NDArray[Any]] | None = None
) -> tuple[LeafTable, npt.NDArray[np.uint64]]:
    """Return every leaf in codes, with its share of the sample or a guess, and the words of its sets."""
    operations = draft.leaves.operations
    a, b = draft.leaves.a.astype(np.int64), draft.leaves.b.astype(np.int64)
    top = np.array([axis.code_count - 1 for axis in draft.axes] or [0], np.int64)[draft.leaves.axes]
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
    is_truth = np.array([axis.key.kind == "truth" for axis in draft.axes] or [False])[draft.leaves.axes]
    first[is_truth] = last[is_truth] = a[is_truth] + 1
    kinds = np.zeros(len(a), np.uint8)
    kinds[(operations == op.UNEQUAL) | (operations == op.BEYOND)] = kernels.OUTSIDE
    # An interval that ends before it starts holds nothing, and everything lies outside of it.
    is_void = last < first
    first[is_void], last[is_void] = _NEVER, _NEVER
    spans = (last - first).astype(np.uint32)
    firsts = first.astype(np.uint32)
    bitmaps = _write_sets(draft, kinds, firsts, spans)
    if sample_codes is None:
        shares = default_shares(draft)
    else:
        shares = observed_shares(draft, kinds, firsts, spans, sample_codes)
    return LeafTable(draft.leaves.axes, kinds, firsts, spans, shares), bitmaps


def _write_sets(
    draft: Draft, kinds: npt.NDArray[np.uint8], firsts: npt.NDArray[np.uint32], spans: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint64]:
    """Write each set into its leaf where the axis has few operands, else as a bitmap or, if shorter, as a list."""
    asked, sets = draft.leaves, draft.sets
    operand_counts = np.array([len(axis.operands) for axis in draft.axes] or [0], np.int64)[asked.axes]
    is_few = (asked.operations == op.AMONG) & (operand_counts <= kernels.MOST_FEW)
    few = np.flatnonzero(is_few)
    kinds[few] = kernels.FEW
    kernels.write_few(few, asked.a[few], sets, firsts, spans)
    leaves = np.flatnonzero(asked.is_set & ~is_few)
    if not len(leaves):
        return np.zeros(1, np.uint64)
    is_in = asked.operations[leaves] == op.AMONG
    numbers = asked.a[leaves].astype(np.int64)
    sizes = sets.counts[numbers]
    code_counts = np.array([axis.code_count for axis in draft.axes], np.int64)[asked.axes[leaves]]
    map_sizes = (code_counts + 63) // 64
    is_map = map_sizes <= np.maximum(4, sizes)
    kinds[leaves] = np.where(is_map, kernels.MEMBER, np.where(is_in, kernels.LISTED, kernels.UNLISTED))
    lengths = np.where(is_map, map_sizes, sizes)
    places = np.cumsum(lengths) - lengths
    words = np.zeros(max(1, int(lengths.sum())), np.uint64)
    kernels.write_sets(numbers, sets, code_counts, is_in, places, kinds[leaves], words)
    firsts[leaves], spans[leaves] = places, sizes
    return words


def _access(draft: Draft, leaves: LeafTable) -> Access:
    """Choose the leaf by which each clause is found; a set is found by each of its members."""
    set_sizes = draft.sets.counts
    costs = leaves.shares.astype(np.float64).copy()
    is_small_set = np.zeros(len(leaves.kinds), np.bool_)
    among = draft.leaves.operations == op.AMONG
    is_small_set[among] = set_sizes[draft.leaves.a[among]] <= kernels.MOST_KEYS_OF_A_SET
    costs[is_small_set] *= 1.5  # a clause that lies under several keys is read several times
    costs[(leaves.kinds != kernels.INTERVAL) & ~is_small_set] = np.inf
    chosen = np.empty(draft.clause_count, np.int64)
    kernels.choose_access(draft.clauses.leaves, costs, chosen)
    is_scanned = chosen < 0
    by_set = ~is_scanned & (is_small_set[chosen] if len(leaves.kinds) else False)
    parts = (
        _interval_rows(np.flatnonzero(~is_scanned & ~by_set), chosen, leaves),
        _scanned_rows(np.flatnonzero(is_scanned)),
        _set_rows(np.flatnonzero(by_set), chosen, draft),
    )
    clauses, axes, firsts, lasts = (np.concatenate(column) for column in zip(*parts, strict=True))
    # What never holds is found by no event. Points lie before ranges, so that they can be found by halving.
    order = np.lexsort((lasts, firsts, lasts > firsts, axes))
    order = order[firsts[order] < _NEVER]
    return Access(chosen, clauses[order], axes[order], firsts[order], lasts[order])


def _interval_rows(clauses: Ints, chosen: Ints, leaves: LeafTable) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the clause, axis, first and last code of the rows that an interval finds."""
    leaf = chosen[clauses]
    firsts = leaves.firsts[leaf].astype(np.int64)
    return clauses, leaves.axes[leaf].astype(np.int64), firsts, firsts + leaves.spans[leaf]


def _scanned_rows(clauses: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the same of those that nothing finds."""
    zeros = np.zeros(len(clauses), np.int64)
    return clauses, zeros + _SCANNED, zeros, zeros


def _set_rows(clauses: Ints, chosen: Ints, draft: Draft) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the same of those that a set finds: a row for each member."""
    leaf = chosen[clauses]
    sets = draft.sets.chosen(draft.leaves.a[leaf])
    codes = 2 * sets.values.astype(np.int64) + 2
    axes = draft.leaves.axes[leaf].astype(np.int64)
    return np.repeat(clauses, sets.counts), np.repeat(axes, sets.counts), codes, codes


def _keys(axes: list[Axis], access: Access, is_broad: Flags) -> tuple[Keys, npt.NDArray[np.int32], SortedAxes, Runs]:
    """Gather the rows, which are sorted, by their keys; `is_broad` is by row."""
    at = np.flatnonzero(_is_new(access.axes) | _is_new(access.firsts) | _is_new(access.lasts))
    row_starts = np.concatenate([at, [len(access.axes)]]).astype(np.int64)
    key_axes, firsts, lasts = access.axes[at], access.firsts[at], access.lasts[at]
    known = key_axes[key_axes != _SCANNED]
    keys = Keys(firsts.astype(np.uint32), lasts.astype(np.uint32), row_starts)
    # Rows of one key may differ: it is one of a set's members for one, and a leaf of its own for another.
    is_narrow = ~np.logical_and.reduceat(is_broad, at) if len(at) else np.zeros(0, np.bool_)
    sorted_axes = _sorted_axes(axes, np.unique(known[is_narrow[: len(known)]]))
    shown_axes = np.where(key_axes == _SCANNED, -1, key_axes).astype(np.int32)
    # Between two narrow keys the rows of broad ones are passed over: they are part of the run before, and marked.
    narrow = np.flatnonzero(is_narrow)
    orders = sorted_axes.places[shown_axes[narrow]].astype(np.int64)
    offsets = sorted_axes.starts[orders]
    row_ends = np.concatenate([row_starts[narrow], [len(access.axes)]]).astype(np.int64)
    runs = Runs(orders, offsets + firsts[narrow], offsets + lasts[narrow] + 1, row_ends, is_broad)
    return keys, shown_axes, sorted_axes, runs


def _is_new(column: Ints) -> Flags:
    """Return where a column has another value than before."""
    return np.concatenate([np.ones(min(1, len(column)), np.bool_), np.diff(column) != 0])


def _sorted_axes(axes: list[Axis], numbers: Ints) -> SortedAxes:
    """Number the axes that blocks are sorted by, and give each room for the starts of its codes."""
    places = np.full(max(1, len(axes)), -1, np.int32)
    places[numbers] = np.arange(len(numbers))
    sizes = [axes[number].code_count + 1 for number in numbers]
    return SortedAxes(places, starts_of(sizes))
