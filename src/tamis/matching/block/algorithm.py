"""How are subscriptions registered while others are matched?

As a search engine does it: new subscriptions go to a small open part; when somebody matches, it becomes an
immutable segment; removals are marks beside a segment; and segments of like size are merged, the large ones by a
thread in the background. A snapshot is the list of segments with their marks, so that a match sees one consistent
set, whatever happens meanwhile.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from tamis.matching.base import Algorithm, Handles, Pairs, Snapshot
from tamis.matching.block import kernels
from tamis.matching.block.access import HandlePlan, clause_plans
from tamis.matching.block.budgets import check
from tamis.matching.block.draft import Drafting
from tamis.matching.block.joining import joined
from tamis.matching.block.parts import Flags, Part
from tamis.matching.block.segment import Segment, compiled
from tamis.matching.closures import Closure, holding, is_small
from tamis.matching.watching import PlainAxes, as_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis
    from tamis.matching.columns import Events
    from tamis.matching.destinations import Destinations
    from tamis.matching.watching import Encoded

BLOCK = 8192
"""How many events are matched at once."""
_FEW_EVENTS = 32
"""Up to so many events are matched one by one."""
_SAMPLE = 2048
_MOST_OPEN = 32
"""So many open subscriptions are laid out; fewer are asked one by one, by functions made for each."""
_MANY = 4096
"""So many subscriptions that come together are compiled as they come."""
_RATIO = 4
"""Neighbouring segments are merged where the older is not so many times as large."""
_AT_REST = 16
"""After so many matches without a change, and one for each so many subscriptions, what is left to merge is merged: it
will be used for long."""
_BACKGROUND = 2_000
"""Merges of so many subscriptions are left to the background."""

_MOST_DESTINATIONS = 1 << 14
"""Beyond so many destinations a map of each costs more than finding all matches."""

T = TypeVar("T")


class Block(Algorithm):
    """The flagship: predicates as intervals, clauses found by keys or checked by bitmaps, blocks of events at once."""

    name: ClassVar[str] = "block"

    def __init__(self, schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._parts: list[Part] = []
        self._open: dict[int, Expression] = {}
        self._closures: dict[int, Closure] = {}
        """Of what is open, as far as somebody matched since it came."""
        self._dead: list[int] = []
        self._sample: Events | None = None
        self._lock = threading.RLock()
        self._merging: threading.Thread | None = None
        self._being_merged: set[int] = set()
        """The segments that the thread works on, by identity; the thread holds them."""
        self._snapshot: BlockSnapshot | None = None
        self._uses = 0
        """How often the snapshot was used."""
        self.merge_always = False
        """Merge all segments at every step; for tests."""

    # -- Registration

    def prepare(self, expressions: Iterable[Expression]) -> list[Expression] | Segment:
        """Compile many subscriptions at once, as they come: their expressions need not all exist at the same time."""
        waiting = iter(expressions)
        first = list(islice(waiting, _MANY))
        if len(first) < _MANY:
            for expression in first:
                check(expression)  # what cannot be laid out is refused now, and not when somebody matches
            return first
        drafting = Drafting()
        drafting.add_many(count(), chain(first, waiting))
        return compiled(drafting.finished(), self._sample, self.schema)

    def add(self, handles: Sequence[int], prepared: Sequence[Expression] | Segment) -> None:
        with self._lock:
            is_used = self._snapshot is not None
            self._snapshot = None
            if not isinstance(prepared, Segment):
                self._open.update(zip(handles, prepared, strict=True))
                if is_used:  # somebody matches between changes, and should not have to wait for what is done here
                    self._ready_open(_MOST_OPEN)
                return
            self._flush()  # what came before stays before
            prepared.draft.handles = np.array(handles, np.int64)
            self._parts.append(Part.of(prepared))
            self._merge()

    def remove(self, handle: int) -> None:
        with self._lock:
            self.remove_many([handle])

    def remove_many(self, handles: Iterable[int]) -> None:
        with self._lock:
            self._snapshot = None
            for handle in handles:
                if self._open.pop(handle, None) is None:
                    self._dead.append(handle)
                else:
                    self._closures.pop(handle, None)

    def learn(self, events: Events) -> None:
        """Remember a sample of the events, and lay everything out anew by it."""
        self._learn(events, is_all=True)

    def _learn(self, events: Events, *, is_all: bool) -> None:
        with self._lock:
            self._sample = events.slice(0, _SAMPLE)
            self._flush()
            # A loaded segment knows its events already, though the sample was not saved with it.
            self._parts = [
                Part.of(compiled(part.segment.draft, self._sample, self.schema), part.alive)
                if is_all or not part.segment.is_informed
                else part
                for part in self._parts
            ]
            self._snapshot = None

    def renumbered(self, living: Handles, expressions: Iterable[Expression]) -> tuple[Block, Handles]:
        """Give new handles to all that the segments hold, the dead included: nothing need be compiled for that."""
        with self._lock:
            self._bury()
            self._snapshot = None
            self._parts = [part for part in self._parts if part.living]
            held = [part.segment.draft.handles for part in self._parts]
            kept: Handles = np.concatenate([*held, np.array(list(self._open), np.int64)])
            self._parts = [
                replace(part, segment=part.segment.renumbered(np.searchsorted(kept, part.segment.draft.handles)))
                for part in self._parts
            ]
            numbers = dict(zip(self._open, range(len(kept) - len(self._open), len(kept)), strict=True))
            self._open = {numbers[handle]: expression for handle, expression in self._open.items()}
            self._closures = {numbers[handle]: closure for handle, closure in self._closures.items()}
            return self, kept

    def emptied(self) -> Block:
        fresh = Block(self.schema)
        fresh._sample, fresh.merge_always = self._sample, self.merge_always
        return fresh

    def axes(self) -> Sequence[Axis]:
        with self._lock:
            self._bury()
            drafts = [
                part.segment.draft
                if part.living == len(part.segment)
                else joined([part.segment.draft], [part.alive])  # without those that only the dead ask about
                for part in self._parts
                if part.living
            ]
            plain = PlainAxes(self._open.values(), self.schema).axes
            return [*(axis for draft in drafts for axis in draft.axes), *plain]

    @property
    def locks(self) -> Sequence[Any]:
        return (self._lock,)

    def after_fork(self) -> None:
        self._merging, self._being_merged = None, set()  # the thread stayed with the parent

    # -- Segments

    def snapshot(self) -> BlockSnapshot:
        with self._lock:
            if self._snapshot is None:
                if self._dead:
                    self._bury()
                if len(self._open) > _MOST_OPEN or self.merge_always:
                    self._flush()
                self._ready_open(_MOST_OPEN)
                self._snapshot = BlockSnapshot(
                    tuple(self._parts), self._open.copy(), self._closures.copy(), self.schema
                )
                self._uses = 0
            self._uses += 1
            if self._uses % _AT_REST == 0:
                self._merge_at_rest()
            return self._snapshot

    def _ready_open(self, most: int) -> None:
        """Make functions of what is open, or a segment of it where it is much."""
        if len(self._open) >= most:
            self._flush()
        for handle in self._open.keys() - self._closures.keys():
            if not is_small(self._open[handle]):
                self._flush()
                return
            self._closures[handle] = holding(self._open[handle], self.schema)

    def compiled_snapshot(self) -> BlockSnapshot:
        """Return the present set with nothing left open."""
        with self._lock:
            if self._open:
                self._flush()
                self._snapshot = None
            return self.snapshot()

    def _flush(self) -> None:
        """Make a segment of the open part, and merge what should be."""
        self._bury()
        if self._open:
            drafting = Drafting()
            drafting.add_many(self._open.keys(), self._open.values())
            segment = compiled(drafting.finished(), self._sample, self.schema)
            self._parts.append(Part.of(segment))
            self._open, self._closures = {}, {}
        self._merge()

    def _bury(self) -> None:
        """Mark what was removed."""
        dead = np.array(self._dead, np.int64)
        for number, part in enumerate(self._parts):
            if not len(dead):
                break
            places, is_here = part.places(dead)
            if len(places):
                self._parts[number] = part.without(places)
                dead = dead[~is_here]
        self._dead = []

    def _merge(self) -> None:
        """Merge what should be: at once where it is little, in the background where it is much."""
        self._parts = [part for part in self._parts if part.living]
        while True:
            span = self._mergeable()
            if span is None:
                return
            first, last = span
            parts = self._parts[first:last]
            if sum(part.living for part in parts) >= _BACKGROUND and not self.merge_always:
                self._start_merging(parts)
                return
            self._parts[first:last] = [self._merged(parts)]

    def _merge_at_rest(self) -> None:
        """Merge all that is left, if it was used so often without a change that this is likely to pay."""
        if len(self._parts) > 1 or any(part.has_many_dead for part in self._parts):
            living = sum(part.living for part in self._parts)
            if self._uses * _AT_REST >= living:
                self._start_merging(self._parts)

    def _start_merging(self, parts: list[Part]) -> None:
        if self._merging is None:
            self._being_merged = {id(part.segment) for part in parts}
            self._merging = threading.Thread(
                target=self._merge_behind, args=(list(parts),), name="tamis merge", daemon=True
            )
            self._merging.start()

    def _mergeable(self) -> tuple[int, int] | None:
        """Return the segments to merge next: the newest ones that are not much smaller than their neighbours.

        Those that are being merged in the background are left alone, and so is what came before them.
        """
        sizes = [part.living for part in self._parts]
        if self.merge_always:
            return (0, len(sizes)) if len(sizes) > 1 else None
        busy = [place for place, part in enumerate(self._parts) if self._is_busy(part)]
        begin = busy[-1] + 1 if busy else 0
        first = len(sizes) - 1
        total = sizes[-1] if sizes else 0
        while first > begin and sizes[first - 1] < _RATIO * total:
            first -= 1
            total += sizes[first]
        if first < len(sizes) - 1:
            return first, len(sizes)
        # Much that is dead in one segment is worth a rewrite too.
        for number, part in enumerate(self._parts):
            if part.has_many_dead and not self._is_busy(part):
                return number, number + 1
        return None

    def _is_busy(self, part: Part) -> bool:
        return self._merging is not None and id(part.segment) in self._being_merged

    def _merged(self, parts: list[Part]) -> Part:
        draft = joined([part.segment.draft for part in parts], [part.alive for part in parts])
        segment = compiled(draft, self._sample, self.schema)
        return Part.of(segment)

    def _merge_behind(self, parts: list[Part]) -> None:
        try:
            merged = self._merged(parts)
        except BaseException:
            self._merging = None  # else nothing would ever be merged again
            raise
        with self._lock:
            self._merging = None
            # By identity: to compare segments field by field is to ask arrays for their truth.
            places = {id(part.segment): place for place, part in enumerate(self._parts)}
            first = places.get(id(parts[0].segment), -1)
            if [places.get(id(part.segment)) for part in parts] != list(range(first, first + len(parts))):
                return  # laid out anew meanwhile
            # What died while we worked is dead in the merged segment too.
            gone = [
                part.segment.draft.handles[was & ~now.alive]
                for part, was, now in zip(
                    parts, (part.alive for part in parts), self._parts[first : first + len(parts)], strict=True
                )
            ]
            self._parts[first : first + len(parts)] = [merged]
            self._dead += np.concatenate(gone).tolist()
            self._bury()
            self._snapshot = None
            self._merge()

    def settle(self) -> None:
        """Wait until nothing is merged in the background any more."""
        while (thread := self._merging) is not None:
            thread.join()

    # -- Files

    def parts(self) -> list[tuple[Segment, Flags]]:
        """Return all that is compiled, with nothing left open; neither segments nor flags are ever changed."""
        with self._lock:
            self._snapshot = None
            self._flush()
            return [(part.segment, part.alive) for part in self._parts]

    def restore(self, parts: Sequence[tuple[Segment, Flags]]) -> None:
        """Take back what `parts` returned."""
        self._parts = [Part.of(segment, alive) for segment, alive in parts]

    # -- Told to others

    def plan(self, handle: int) -> HandlePlan:
        with self._lock:
            self._bury()
            if handle in self._open:
                return HandlePlan(None, len(self._open), False, None, 1, ())
            for number, part in enumerate(self._parts):
                places, _ = part.places(np.array([handle], np.int64))
                if len(places):
                    return self._plan_in(number, part, int(places[0]))
            raise AssertionError("a handle that is in no segment")

    def _plan_in(self, number: int, part: Part, place: int) -> HandlePlan:
        segment, first, twin_count = part.segment, place, 1
        if len(segment.twins):
            first = int(segment.first_twins()[place])
            twins = segment.twins[segment.twin_starts[first] : segment.twin_starts[first + 1]]
            twin_count = int(np.count_nonzero(part.alive[twins]))
        clauses = clause_plans(segment, first, self._sample, self.schema)
        # The first of the twins may be gone: its clauses are still asked for the others.
        twin_of = int(segment.draft.handles[first]) if first != place and part.alive[first] else None
        return HandlePlan(number, part.living, segment.is_informed, twin_of, twin_count, clauses)

    def memory(self) -> int:
        with self._lock:
            return sum(part.segment.memory() + part.alive.nbytes for part in self._parts)

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            return {
                "segments": [part.living for part in self._parts],
                "open": len(self._open),
                "axes": len({axis.key for part in self._parts for axis in part.segment.draft.axes}),
                "clauses": sum(len(part.segment.draft.clause_owners) for part in self._parts),
                "broad_clauses": sum(len(part.segment.maps.broad.rows) for part in self._parts),
                "twins": sum(
                    len(part.segment) - int(np.count_nonzero(np.diff(part.segment.twin_starts)))
                    for part in self._parts
                    if len(part.segment.twins)
                ),
                "keys": sum(len(part.segment.key_axes) for part in self._parts),
                "is_informed": all(part.segment.is_informed for part in self._parts),
            }

    def observe(self, events: Events) -> None:
        """Take a first look at the traffic: what was laid out by guesses is laid out anew by what is seen."""
        if self._sample is None and events.count >= 256:
            self._learn(events, is_all=False)


@dataclass(slots=True)
class _Found:
    """The matches of a block: how many each event has, and their events and owners in pieces."""

    counts: npt.NDArray[np.int64]
    pieces: list[tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32], Handles]]
    """Each with the handles of its segment, which the owners are positions in."""


class BlockSnapshot(Snapshot):
    """Segments, and the few subscriptions that are still open."""

    def __init__(
        self,
        parts: tuple[Part, ...],
        open_part: dict[int, Expression],
        closures: dict[int, Closure],
        schema: Schema | None,
    ) -> None:
        self._parts = parts
        self._open = open_part
        self._closures = closures
        self._schema = schema
        self._encoders = [part.segment.encoder(schema) for part in parts]
        self._offsets = [part.segment.offset() for part in parts]
        self._open_axes: PlainAxes | None = None

    def match_event(self, event: Mapping[str, Any], among: Handles | None = None) -> Handles:
        found = []
        for part, encoder, offset in zip(self._parts, self._encoders, self._offsets, strict=True):
            owners = part.segment.match_event(encoder.codes(event), *part.among(among))
            found.append(part.segment.draft.handles[owners] if offset is None else owners + offset)
        if self._open:
            found.append(self._match_open(event, among))
        return found[0] if len(found) == 1 else np.concatenate([np.zeros(0, np.int64), *found])

    def _match_open(self, event: Mapping[str, Any], among: Handles | None) -> Handles:
        asked = None if among is None else set(among.tolist())
        handles = [handle for handle, holds in self._closures.items() if holds(event)]
        return np.array([handle for handle in handles if asked is None or handle in asked], np.int64)

    def reach_event(
        self, event: Mapping[str, Any], destinations: Destinations, among: Handles | None = None
    ) -> tuple[Handles, Handles]:
        if len(destinations) > _MOST_DESTINATIONS:
            return super().reach_event(event, destinations, among)
        reached = np.zeros(len(destinations), np.uint64)
        found: list[Handles] = []
        for part, encoder in zip(self._parts, self._encoders, strict=True):
            alive, asked = part.among(among)
            shortcut = part.segment.shortcut(destinations)
            owners = part.segment.match_event(encoder.codes(event), alive, asked, shortcut.arrays(alive, reached, 1))
            if len(owners):
                found.append(part.segment.draft.handles[owners[shortcut.destinations[owners] == 0]])
        if self._open:
            handles = self._match_open(event, among)
            numbers = destinations.of(handles)
            reached[numbers[numbers > 0]] = 1
            found.append(handles[numbers == 0])
        handles = found[0] if len(found) == 1 else np.concatenate([np.zeros(0, np.int64), *found])
        return handles, reached.nonzero()[0]

    def reach_events(
        self, events: Events, destinations: Destinations, among: Handles | None = None, threads: int = 1
    ) -> tuple[Pairs, Pairs]:
        if len(destinations) > _MOST_DESTINATIONS:
            return super().reach_events(events, destinations, among, threads)
        if events.count <= _FEW_EVENTS:
            each = [self.reach_event(event, destinations, among) for event in events.mappings()]
            return _numbered([handles for handles, _ in each]), _numbered([numbers for _, numbers in each])
        alive = [part.among(among) for part in self._parts]

        def block(start: int) -> tuple[_Found, Pairs]:
            part = events if events.count <= BLOCK else events.slice(start, BLOCK)
            words = (part.count + 63) // 64
            reached = np.zeros(len(destinations) * words, np.uint64)
            found = self._match_block(part, alive, destinations, reached)
            return found, _sorted_pairs(reached, words, start)

        found, reached = zip(*_of_blocks(block, events.count, threads), strict=True)
        numbers, handles = zip(*reached, strict=True)
        return _placed(found, events.count), (np.concatenate(numbers), np.concatenate(handles))

    def match_events(self, events: Events, among: Handles | None = None, threads: int = 1) -> Pairs:
        if self._open and events.count > 1:
            raise AssertionError("a batch is matched against a compiled snapshot")
        if events.count <= _FEW_EVENTS:
            return _numbered([self.match_event(event, among) for event in events.mappings()])
        alive = [part.among(among) for part in self._parts]

        def block(start: int) -> _Found:
            part = events if events.count <= BLOCK else events.slice(start, BLOCK)
            return self._match_block(part, alive)

        return _placed(_of_blocks(block, events.count, threads), events.count)

    def encoded_event(self, event: Mapping[str, Any]) -> list[Encoded]:
        encoded: list[Encoded] = [
            (part.segment.draft.axes, as_column(encoder.codes(event)))
            for part, encoder in zip(self._parts, self._encoders, strict=True)
        ]
        if self._open:
            if self._open_axes is None:
                self._open_axes = PlainAxes(self._open.values(), self._schema)
            encoded += self._open_axes.of_event(event)
        return encoded

    def encoded_events(self, events: Events) -> list[Encoded]:
        return [(part.segment.draft.axes, part.segment.codes(events, self._schema)) for part in self._parts]

    def _match_block(
        self,
        events: Events,
        alive: list[tuple[Flags, Flags]],
        destinations: Destinations | None = None,
        reached: npt.NDArray[np.uint64] | None = None,
    ) -> _Found:
        """Match a block; with destinations the events that reach them are noted, and only the others' matches found."""
        found = _Found(np.zeros(events.count, np.int64), [])
        for part, living in zip(self._parts, alive, strict=True):
            segment = part.segment
            shortcut = None if destinations is None else segment.shortcut(destinations)
            arrays = None
            if shortcut is not None and reached is not None:
                arrays = shortcut.arrays(living[0], reached, (events.count + 63) // 64)
            for numbers, owners in segment.match_codes(segment.codes(events, self._schema), *living, arrays):
                if shortcut is not None and len(segment.twins):
                    has_none = shortcut.destinations[owners] == 0  # a twin may have one
                    numbers, owners = numbers[has_none], owners[has_none]
                kernels.count_events(numbers, found.counts)
                found.pieces.append((numbers, owners, segment.draft.handles))
        return found


def _numbered(found: list[Handles]) -> Pairs:
    """Return what was found for each event beside the number of the event."""
    events = np.repeat(np.arange(len(found)), [len(each) for each in found])
    return events, np.concatenate([np.zeros(0, np.int64), *found])


def _of_blocks(block: Callable[[int], T], count: int, threads: int) -> list[T]:
    """Return what each block of events gives, which is named by its first."""
    starts = range(0, count, BLOCK)
    if threads > 1 and len(starts) > 1:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(block, starts))
    return list(map(block, starts))


def _placed(blocks: Sequence[_Found], count: int) -> Pairs:
    """Return the matches of all blocks, sorted by event."""
    counts = np.concatenate([np.zeros(0, np.int64), *(found.counts for found in blocks)])
    starts = np.cumsum(counts) - counts
    handles = np.empty(int(counts.sum()), np.int64)
    for start, found in zip(range(0, count, BLOCK), blocks, strict=True):
        for numbers, owners, handles_of in found.pieces:
            kernels.place_matches(numbers, owners, handles_of, starts[start:], handles)
    return np.repeat(np.arange(count), counts), handles


def _sorted_pairs(maps: npt.NDArray[np.uint64], words: int, first: int) -> Pairs:
    """Return the events of maps, the first of which has this number, and the maps' numbers, sorted by event."""
    events, rows = np.empty((2, 1 << 14), np.int64)
    count = kernels.events_of_maps(maps, words, events, rows)
    if count > len(events):
        events, rows = np.empty((2, count), np.int64)
        kernels.events_of_maps(maps, words, events, rows)
    order = np.argsort(events[:count], kind="stable")
    return first + events[order], rows[order]
