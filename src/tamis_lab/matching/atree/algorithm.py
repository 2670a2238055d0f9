"""How are subscriptions registered and removed while others are matched?

The graph is changed in place, by one at a time. A snapshot is a view of the predicates, a limit, and a list: it sees
the subscriptions whose handles are below the limit and not on the list of those that were removed but are still
there. A subscription that was removed stays in the graph until no snapshot is left that still sees it; what was added
since is found and left out. So a match may let go of the graph between any two events and still see one consistent
set.

Source: Jewel 2004 (docs/bibliography.md); the concurrency is ours.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet

import numpy as np

from tamis.matching.base import Algorithm, Handles, Pairs, Snapshot
from tamis.ragged import Ragged
from tamis_lab.matching.atree.bands import Bands
from tamis_lab.matching.atree.filters import General, Paths, TruthFilter, Zero
from tamis_lab.matching.atree.gate import ReadersWriterLock
from tamis_lab.matching.atree.graph import Programs, SharedGraph, kernels
from tamis_lab.matching.atree.translation import NodeTranslator, Translated
from tamis_lab.matching.atree.unknowns import broken_by, is_kept, true_roots
from tamis_lab.matching.predicates import PredicateRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.columns import Events
    from tamis_lab.matching.predicates import Fulfilled, PredicateView

_INSERTED = 4096
"""How many subscriptions are inserted before waiting readers get their turn."""
_REMOVED = 1024
"""How many removed subscriptions may wait for the next match before they are taken out of the graph."""
_EVENTS = 64
"""How many events are matched before a waiting writer gets its turn."""
_BLOCK = 4096
"""How many events of a batch are taken at once, by one thread."""

BAND_COUNT = 8
"""How many bands of priority there are; which priorities share one follows what is in use."""

_NONE = np.zeros(0, np.int64)


class ATree(Algorithm):
    """One shared graph of sub-expressions, and the true-value path filter, which is the fastest of the three."""

    name: ClassVar[str] = "atree"
    filter_type: ClassVar[type[TruthFilter]] = Paths

    def __init__(self, schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._predicates = PredicateRegistry(schema)
        self._graph = SharedGraph(BAND_COUNT)
        self._bands = Bands(BAND_COUNT)
        self._gate = ReadersWriterLock()
        self._idle: list[TruthFilter] = []
        self._limit = 0
        self.highest = 0
        """All handles in the graph are below this, those of an insertion that is going on included."""
        self._leaving: list[tuple[int, int]] = []
        """Handles that were removed and are still in the graph, each with the number of its removal."""
        self._removals = 0
        self._snapshots: WeakSet[ATreeSnapshot] = WeakSet()
        self._snapshot: ATreeSnapshot | None = None
        self._promises: dict[tuple[str, ...], str] = {}
        self._trusting: set[int] = set()
        """Subscriptions that are matched otherwise where an event breaks a promise."""

    # -- Registration

    def prepare(self, expressions: Iterable[Expression]) -> Translated:
        return NodeTranslator(self.name, self.schema, has_not=self.filter_type.has_not).translated(expressions)

    def add(self, handles: Sequence[int], prepared: Translated) -> None:
        self._snapshot = None
        self._take_out()
        numbers = np.array(self._predicates.add_all(prepared.predicates), np.uint32)
        was_used = self._graph.uses_of_leaves(numbers) > 0
        if len(handles):
            self.highest = handles[-1] + 1
        programs = prepared.programs
        for begin in range(0, len(programs), _INSERTED):
            end = min(len(programs), begin + _INSERTED)
            part = Programs(programs.code, programs.starts[begin : end + 1], programs.roots[begin:end])
            with self._gate.writing():
                self._graph.insert(handles[begin:end], part, numbers)
                if self._bands.of_zero:  # a new one is in the lowest band, and there are priorities below 0
                    self._move(np.array(handles[begin:end], np.int64), self._bands.of_zero)
        # The graph is one user of a predicate, however many expressions speak of it, and none of one that fell out.
        is_new = ~was_used & (self._graph.uses_of_leaves(numbers) > 0)
        _, first = np.unique(numbers, return_index=True)
        is_counted = np.zeros(len(numbers), np.bool_)
        is_counted[first] = is_new[first]
        self._predicates.release_all(numbers[~is_counted].tolist())
        self._limit = self.highest
        self._promises = self._promises | prepared.promises
        self._trusting |= {handles[index] for index in prepared.trusting}

    def prioritise(self, handles: Sequence[int], priorities: Handles) -> None:
        """Sort subscriptions into bands, all of them if others suit the range in use by now."""
        bands = self._bands
        bands.note(handles, priorities)
        with self._gate.writing():
            if bands.is_outgrown:
                before = bands.of_zero
                bands.choose(self._graph.subscription_count)
                if bands.of_zero != before:
                    others = np.setdiff1d(np.arange(self.highest), np.array(list(bands.priorities), np.int64))
                    self._move(others, bands.of_zero)
                handles, priorities = list(bands.priorities), np.array(list(bands.priorities.values()), np.int64)
            self._move(np.array(handles, np.int64), bands.of(priorities))

    def _move(self, handles: Handles, bands: Any) -> None:
        """Move subscriptions to bands, those that are in another."""
        known = self._graph.tables.subscriptions
        wanted = np.broadcast_to(np.asarray(bands, np.uint8), handles.shape)
        are_new = handles >= len(known)  # what is never true may have no place yet
        moves = are_new.copy()
        moves[~are_new] = known[handles[~are_new], 2] != wanted[~are_new]
        self._graph.move_to_bands(handles[moves], wanted[moves])

    def remove(self, handle: int) -> None:
        self.remove_many([handle])

    def remove_many(self, handles: Iterable[int]) -> None:
        self._snapshot = None
        for handle in handles:
            self._removals += 1
            self._leaving.append((self._removals, handle))
        if len(self._leaving) >= _REMOVED:
            self._take_out()

    def _take_out(self) -> None:
        """Take out of the graph what no snapshot can see any more."""
        if not self._leaving:
            return
        oldest = min((snapshot.removals for snapshot in self._snapshots), default=self._removals)
        unseen = [handle for number, handle in self._leaving if number <= oldest]
        if unseen:
            self._leaving = self._leaving[len(unseen) :]
            self._snapshot = None  # the next one need not leave them out
            with self._gate.writing():
                dropped = self._graph.remove(unseen)
            self._predicates.release_all(dropped)
            self._trusting.difference_update(unseen)
            self._bands.forget(unseen)

    # -- Matching

    def snapshot(self) -> ATreeSnapshot:
        self._take_out()
        if self._snapshot is None:
            self._snapshot = ATreeSnapshot(self, self._predicates.view())
            self._snapshots.add(self._snapshot)
        return self._snapshot

    @contextmanager
    def filtering(self) -> Iterator[TruthFilter]:
        """Lend a filter."""
        try:
            lent = self._idle.pop()
        except IndexError:
            lent = self.filter_type()
        try:
            yield lent
        finally:
            self._idle.append(lent)

    def after_fork(self) -> None:
        self._gate = ReadersWriterLock()  # those who were reading stayed with the parent

    # -- Told to others

    def memory(self) -> int:
        return self._graph.memory() + self._predicates.memory() + sum(each.memory() for each in self._idle)

    def statistics(self) -> dict[str, Any]:
        graph = self._graph
        counters = sum((each.counters for each in self._idle), np.zeros(2, np.int64))
        return {
            "leaves": graph.leaf_count,
            "inner_nodes": graph.inner_count,
            "edges": graph.edge_count,
            "levels": graph.level_counts.tolist(),
            "standing": len(graph.standing),
            "leaving": len(self._leaving),
            "touches": int(counters[0]),
            "visits": int(counters[1]),
            "payload_bytes": graph.payload_bytes()
            | {"states and queues": self.filter_type.node_bytes * graph.inner_count},
        }


class ATreeZero(ATree):
    """The graph, with the filter that suppresses zeros; NOT and XOR are nodes where a schema allows it."""

    name: ClassVar[str] = "atree-zero"
    filter_type: ClassVar[type[TruthFilter]] = Zero


class ATreeGeneral(ATree):
    """The graph, with the general filter; NOT and XOR are nodes where a schema allows it."""

    name: ClassVar[str] = "atree-general"
    filter_type: ClassVar[type[TruthFilter]] = General


class ATreeSnapshot(Snapshot):
    """Subscriptions below a limit, but for some."""

    def __init__(self, owner: ATree, view: PredicateView) -> None:
        self._owner = owner
        self.view = view
        self._limit = owner._limit
        self._gone = np.array([handle for _, handle in owner._leaving], np.int64)
        self._promises = owner._promises
        self.removals = owner._removals
        """How many removals there were before: these it does not see."""

    def match_event(self, event: Mapping[str, Any], among: Handles | None = None) -> Handles:
        numbers = self.view.fulfilled_by(event)
        fulfilled = Ragged(np.array([0, len(numbers)], np.int64), numbers)
        owner = self._owner
        with owner.filtering() as one, owner._gate.reading():
            _, matched = one.matched(owner._graph, fulfilled, 0, 1)
            handles = matched.copy()
        if self._promises and not is_kept(self._promises, event):
            handles = self._corrected(handles, event)
        seen: Handles = handles[self._is_seen(handles, among)]
        return seen

    def match_event_in_order(self, event: Mapping[str, Any], among: Handles | None = None) -> Iterator[Handles]:
        """Yield the handles band by band; lower bands are not looked at before they are asked for."""
        if self._promises and not is_kept(self._promises, event):
            yield self.match_event(event, among)
            return
        numbers = self.view.fulfilled_by(event)
        with self._owner.filtering() as one:
            for handles in one.in_order(self._owner._graph, numbers, self._owner._gate):
                seen = handles[self._is_seen(handles, among)]
                if len(seen):
                    yield seen

    def match_events(self, events: Events, among: Handles | None = None, threads: int = 1) -> Pairs:
        starts = range(0, events.count, _BLOCK)

        def block(start: int) -> Pairs:
            part = events if events.count <= _BLOCK else events.slice(start, _BLOCK)
            numbers, handles = self._match_block(part, among)
            return numbers + start, handles

        if threads > 1 and len(starts) > 1:
            with ThreadPoolExecutor(threads) as pool:
                pairs = list(pool.map(block, starts))
        else:
            pairs = [block(start) for start in starts]
        return (
            np.concatenate([_NONE, *(numbers for numbers, _ in pairs)]),
            np.concatenate([_NONE, *(handles for _, handles in pairs)]),
        )

    def _match_block(self, events: Events, among: Handles | None) -> Pairs:
        broken = broken_by(self._promises, events) if self._promises else _NONE
        pairs = [self._all_of(part) for part in self.view.fulfilled(events)]
        numbers = np.concatenate([_NONE, *(numbers for numbers, _ in pairs)])
        handles = np.concatenate([_NONE, *(handles for _, handles in pairs)])
        if len(broken):
            numbers, handles = self._all_corrected(events, broken, numbers, handles)
        is_seen = self._is_seen(handles, among)
        return (numbers, handles) if is_seen is Ellipsis else (numbers[is_seen], handles[is_seen])

    def _all_of(self, part: Fulfilled) -> Pairs:
        """Return the matches of some events, given the predicates that they fulfil, and of those who are not seen."""
        owner = self._owner
        pieces: list[Handles] = []
        counts = [_NONE]
        begin = 0
        with owner.filtering() as one:
            while begin < part.event_count:
                with owner._gate.reading():
                    ends, handles = one.matched(owner._graph, part.lists, begin, min(part.event_count, begin + _EVENTS))
                    pieces.append(handles.copy())
                counts.append(np.diff(ends, prepend=0))
                begin += len(ends)
        numbers = np.repeat(np.arange(part.first, part.first + part.event_count), np.concatenate(counts))
        return numbers, np.concatenate([_NONE, *pieces])

    def match_part(self, part: Fulfilled) -> Pairs:
        """Return the matches of some events that keep all promises, given the predicates that they fulfil."""
        numbers, handles = self._all_of(part)
        is_seen = self._is_seen(handles, None)
        return (numbers, handles) if is_seen is Ellipsis else (numbers[is_seen], handles[is_seen])

    def _is_seen(self, handles: Handles, among: Handles | None) -> Any:
        """Return which handles belong to this snapshot, and to those that were asked for; `...` for all of them."""
        if self._limit == self._owner.highest and not len(self._gone) and among is None:
            return ...
        is_seen = handles < self._limit
        if len(self._gone):
            is_seen &= ~np.isin(handles, self._gone)
        if among is not None:
            is_seen &= np.isin(handles, among)
        return is_seen

    # -- Events that break a promise

    def _corrected(self, handles: Handles, event: Mapping[str, Any]) -> Handles:
        """Put right which of the subscriptions match that rely on a promise."""
        owner = self._owner
        with owner._gate.reading():
            tables = owner._graph.tables
            roots = {handle: int(tables.subscriptions[handle, 0]) for handle in list(owner._trusting)}
            known = {root for root in roots.values() if root != kernels.NEVER}
            true = true_roots(known, tables, owner._predicates.predicate, event, owner.schema)
        trusting = np.array(list(roots), np.int64)
        right = [handle for handle, root in roots.items() if root in true]
        return np.concatenate([handles[~np.isin(handles, trusting)], np.array(right, np.int64)])

    def _all_corrected(self, events: Events, broken: Handles, numbers: Handles, handles: Handles) -> Pairs:
        mappings = events.mappings()
        pieces = np.split(handles, np.searchsorted(numbers, np.arange(1, events.count)))
        for index in broken.tolist():
            pieces[index] = self._corrected(pieces[index], mappings[index])
        counts = [len(piece) for piece in pieces]
        return np.repeat(np.arange(events.count), counts), np.concatenate([_NONE, *pieces])
