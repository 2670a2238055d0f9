"""How are subscriptions registered while others are matched? LSM segments, tombstones, compaction, snapshots.

As a search engine does it: new subscriptions go to a small open part (`open_part`), which is matched as it is; a thread
in the background makes an immutable segment of it when it has grown, and merges segments of like size; removals are
marks beside a segment (`parts`). Who matches between changes neither compiles nor merges, and waits for nobody who
does. A snapshot is the list of segments with their marks and a view of the open part, so that a match sees one
consistent set, whatever happens meanwhile.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.matching.base import Algorithm, Handles, Pairs, Snapshot, TextsRead, numbered
from tamis.matching.block import kernels, readiness
from tamis.matching.block.access import HandlePlan, clause_plans
from tamis.matching.block.breathing import breathe, in_background
from tamis.matching.block.budgets import check
from tamis.matching.block.draft import Drafting
from tamis.matching.block.few_events import MOST_CODED, are_few, are_few_to_reach
from tamis.matching.block.joining import joined
from tamis.matching.block.match_rate import MatchRate
from tamis.matching.block.open_part import OpenPart
from tamis.matching.block.parts import Flags, Part
from tamis.matching.block.read_conditions import ReadConditions
from tamis.matching.block.segment import Found, Segment, compiled
from tamis.matching.columns import Events
from tamis.matching.reading import reader
from tamis.matching.sightings import asked_by
from tamis.matching.warming import SIZES, made_up
from tamis.matching.watching import PlainAxes, as_column
from tamis.ragged import starts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis
    from tamis.matching.block.draft import Draft
    from tamis.matching.block.open_part import OpenSubscription, OpenView
    from tamis.matching.destinations import Destinations
    from tamis.matching.scanning.lines import EventLines
    from tamis.matching.watching import Encoded

BLOCK = 8192
"""How many events are matched at once, at most."""
_LEAST_PORTION = 512
"""Fewer events than so many are not worth a thread of their own: each portion looks at all keys."""
_SAMPLE = 2048
_LEARNT_FROM = 256
"""From the first batch of so many events it is learnt how often predicates hold."""
_MOST_ASKED = 8
"""A segment is made of the open subscriptions when an event asks more than so many of them,"""
_MOST_OPEN = 256
"""or when there are so many, the removed included."""
_MOST_WAITING = 4096
"""Whoever adds faster than the background compiles does so himself, once so many are open."""
_MOST_FLUSHED = 4096
"""What is open is merged with the segments before it up to so many subscriptions; more would take too long."""
_COMPILED_AT_ONCE = 4096
"""So many subscriptions that come together are compiled as they come."""
_WORTH_COMPILING = reader.WORTH_COMPILING
_IN_USE = 8
"""Up to so many changes after a match another match is expected after each, and what it needs is done at once."""
_RATIO = 8
"""Neighbouring segments are merged where the older is not so many times as large."""
_AT_REST = 16
"""After so many matches without a change, and one for each so many subscriptions, what is left to merge is merged: it
will be used for long."""
_DRAFTED = 4
"""In the background so many subscriptions are drafted at a time."""

_MOST_DESTINATIONS = 1 << 14
"""Beyond so many destinations a map of each costs more than finding all matches."""
_LARGEST_MAP = 1 << 24
"""So many bytes a map of the events and destinations of a batch may take, where all matches are listed."""


class BlockAlgorithm(Algorithm):
    """The flagship: predicates as intervals, clauses found by keys or checked by bitmaps, blocks of events at once."""

    name: ClassVar[str] = "block"

    def __init__(self, schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._parts: list[Part] = []
        self._open = OpenPart(schema)
        self._has_large = False
        """Whether something open is too large to be asked by a function of its own."""
        self._dead: list[int] = []
        self._sample: Events | None = None
        self._lock = threading.RLock()
        self._flushing: threading.Thread | None = None
        """Makes a segment of what is open, with the small segments before it."""
        self._merging: threading.Thread | None = None
        """Merges segments; both may work at the same time, on different ones."""
        self._being_flushed: set[int] = set()
        self._being_merged: set[int] = set()
        """The segments that the threads work on, by identity; the threads hold them."""
        self._snapshot: BlockSnapshot | None = None
        self._uses = 0
        """How often the snapshot was used."""
        self._changes_unseen = _IN_USE
        """How many changes there were since somebody matched."""
        self.merge_always = False
        """Merge all segments at every step; for tests."""

    # -- Registration

    def prepare(self, expressions: Iterable[Expression]) -> list[Expression] | Segment:
        """Compile many subscriptions at once, as they come: their expressions need not all exist at the same time.

        While somebody matches, more than a few are compiled too: here nobody waits for it.
        """
        waiting = iter(expressions)
        is_cold = self._is_cold
        most = readiness.MOST_OPEN if is_cold else _COMPILED_AT_ONCE
        first = list(islice(waiting, most))
        if len(first) < most and (len(first) <= 4 * _MOST_ASKED or not self._is_in_use or self.merge_always or is_cold):
            for expression in first:
                check(expression)  # what cannot be laid out is refused now, and not when somebody matches
            return first
        drafting = Drafting()
        drafting.add_many(count(), chain(first, waiting))
        return compiled(drafting.finished(), self._sample, self.schema)

    def read(self, texts: Sequence[str]) -> _BlockTexts | None:
        if not self._reads(len(texts), reader.is_compiled):
            return None
        return _BlockTexts(self, ReadConditions.of_texts(texts, self.schema))

    def _reads(self, count: int, is_compiled: Callable[[], bool]) -> bool:
        """Are there so many conditions that they are sooner read in columns?"""
        if count < _COMPILED_AT_ONCE or (count < _WORTH_COMPILING and not is_compiled()):
            return False
        return not self._is_cold or count >= readiness.MOST_OPEN

    def add(self, handles: Sequence[int], prepared: Sequence[Expression] | Segment) -> None:
        with self._lock:
            self._change()
            if isinstance(prepared, Segment):
                self._flush()  # what came before stays before
                prepared.draft.handles = np.array(handles, np.int64)
                self._parts.append(Part.of(prepared))
                self._merge()
                return
            for handle, expression in zip(handles, prepared, strict=True):
                entry = self._open.add(handle, expression)
                if not entry.is_small:
                    self._has_large = True
                elif self._is_in_use:  # somebody matches between changes, and should not have to wait
                    entry.make_closure()
            if self._is_in_use:
                self._tidy_open()

    def remove(self, handle: int) -> None:
        self.remove_many([handle])

    def remove_many(self, handles: Iterable[int]) -> None:
        with self._lock:
            self._change()
            self._dead += [handle for handle in handles if not self._open.remove(handle)]
            if self._is_in_use and self._dead:
                self._bury()

    def _change(self) -> None:
        self._snapshot = None
        self._changes_unseen += 1

    @property
    def _is_in_use(self) -> bool:
        """Does somebody match between changes?"""
        return self._changes_unseen <= _IN_USE

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

    def renumbered(self, living: Handles, expressions: Iterable[Expression]) -> tuple[BlockAlgorithm, Handles]:
        """Give new handles to all that the segments hold, the dead included: nothing need be compiled for that."""
        with self._lock:
            self._bury()
            self._snapshot = None
            self._parts = [part for part in self._parts if part.living]
            held = [part.segment.draft.handles for part in self._parts]
            entries = list(self._open.entries)
            kept: Handles = np.concatenate([*held, np.array([entry.handle for entry in entries], np.int64)])
            self._parts = [
                replace(part, segment=part.segment.renumbered(np.searchsorted(kept, part.segment.draft.handles)))
                for part in self._parts
            ]
            first = len(kept) - len(entries)
            renumbered = (entry.renumbered(handle) for handle, entry in enumerate(entries, first))
            self._open = OpenPart.of(self.schema, renumbered)
            return self, kept

    def emptied(self) -> BlockAlgorithm:
        fresh = BlockAlgorithm(self.schema)
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
            plain = PlainAxes((entry.expression for entry in self._open.entries), self.schema).axes
            return [*(axis for draft in drafts for axis in draft.axes), *plain]

    @property
    def locks(self) -> Sequence[Any]:
        return (self._lock,)

    def after_fork(self) -> None:
        self._merging, self._flushing = None, None  # the threads stayed with the parent
        self._being_merged, self._being_flushed = set(), set()

    # -- Segments

    def snapshot(self) -> BlockSnapshot:
        with self._lock:
            if self._snapshot is None:
                if self._dead:
                    self._bury()
                self._tidy_open()
                self._snapshot = BlockSnapshot(tuple(self._parts), self._open.view(), self.schema)
                self._uses = self._changes_unseen = 0
            self._uses += 1
            if self._uses % _AT_REST == 0:
                self._merge_at_rest()
            return self._snapshot

    def compiled_snapshot(self) -> BlockSnapshot:
        """Return the present set with nothing left open."""
        with self._lock:
            if len(self._open):
                self._flush()
                self._snapshot = None
            return self.snapshot()

    def snapshot_for(self, events: Events) -> BlockSnapshot:
        """Return the present set; with nothing left open, unless events are matched singly: few, or at a cold start."""
        with self._lock:
            if are_few(self._parts, events):
                return self.snapshot()
            if self._answers_before_kernels_do(events):
                self._start_flushing()
                return self.snapshot()
            return self.compiled_snapshot()

    # -- A cold start

    @property
    def _is_cold(self) -> bool:
        """Is nothing laid out, so that all can be asked without kernels that would have to be compiled first?"""
        return not self._parts and not self.merge_always and readiness.OF_THIS_PROCESS.look()

    def _answers_before_kernels_do(self, events: Events) -> bool:
        """Are there no kernels yet, and would a batch wait longer for them than for an answer without?"""
        return (
            self._is_cold
            and not self._has_large
            and len(self._open.everybody) <= readiness.MOST_OPEN
            and readiness.are_answered_sooner(self._open, events)
        )

    def _exercise(self, part: Part) -> None:
        """Match made-up events in every way, so that kernels are compiled: by this layout, and a learnt one."""
        asked = asked_by(part.segment.draft.axes)
        for is_whole in (True, False):
            mappings = made_up(asked, max(SIZES), is_whole=is_whole)
            events = Events(mappings)
            for segment in (part.segment, compiled(part.segment.draft, events, self.schema)):
                snapshot = BlockSnapshot((Part.of(segment),), OpenPart(self.schema).view(), self.schema)
                snapshot.match_event(mappings[0])
                snapshot.match_few(mappings[:2])
                alive = [part.among(None)]
                _placed([snapshot._match_block(events, alive)])

    # -- What is open

    def _tidy_open(self) -> None:
        """Make a segment of what is open where it costs matches too much: in the background, if somebody matches."""
        if self._has_large or (self.merge_always and len(self._open)):
            self._flush()
        elif self._open.asks_more_than(_MOST_ASKED) or len(self._open.everybody) > _MOST_OPEN:
            if self._is_cold and len(self._open.everybody) <= readiness.MOST_OPEN:
                self._start_flushing()
            elif not self._is_in_use or len(self._open.everybody) > _MOST_WAITING:
                self._flush()
            else:
                self._start_flushing()

    def _flush(self) -> None:
        """Make a segment of the open part, here and now, and merge what should be."""
        self._bury()
        if len(self._open):
            segment = compiled(_drafted(self._open.entries), self._sample, self.schema)
            self._parts.append(Part.of(segment))
        self._open, self._has_large = OpenPart(self.schema), False
        self._merge()

    def compile(self) -> bool:
        """Make a segment of what is open, with the small segments before it, here and now.

        That is what the background would do sooner or later. What it has begun with the same subscriptions is in vain.
        """
        with self._lock:
            self._bury()
            if not len(self._open):
                return False
            parts, entries = self._last_small_parts(), list(self._open.entries)
            self._parts[len(self._parts) - len(parts) :] = [self._merged(parts, entries)]
            self._open, self._has_large, self._snapshot = OpenPart(self.schema), False, None
            self._merge()
            return True

    def _last_small_parts(self) -> list[Part]:
        """Return the segments that are so small beside what is open that they had better become one with it."""
        begin = self._first_free()
        first, total = len(self._parts), len(self._open)
        while first > begin and self._parts[first - 1].living < min(_RATIO * total, _MOST_FLUSHED - total):
            first -= 1
            total += self._parts[first].living
        return self._parts[first:]

    def _start_flushing(self) -> None:
        if self._flushing is not None:
            return
        if not len(self._open):  # all were removed; older views keep the part that they have
            self._open, self._has_large = OpenPart(self.schema), False
            return
        parts = self._last_small_parts()
        self._being_flushed = {id(part.segment) for part in parts}
        self._flushing = threading.Thread(
            target=self._flush_behind,
            args=(parts, self._open, list(self._open.entries)),
            name="tamis flush",
            daemon=not self._is_cold,  # what is compiled stays for the next process
        )
        self._flushing.start()

    def _flush_behind(self, parts: list[Part], opened: OpenPart, entries: list[OpenSubscription]) -> None:
        try:
            with in_background():
                if not parts and readiness.OF_THIS_PROCESS.look():
                    readiness.OF_THIS_PROCESS.compile(lambda: self._exercise(self._merged([], entries)))
                merged = self._merged(parts, entries)
        except BaseException:
            self._flushing = None  # else nothing would ever be flushed again
            raise
        with self._lock:
            self._flushing = None
            if opened is self._open and self._replace(parts, merged):
                gone = [entry.handle for entry in entries if entry.handle not in opened]
                self._open = opened.without(entry.handle for entry in entries)
                self._dead += gone
                self._bury()
                self._snapshot = None
            self._merge()

    # -- What was removed

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

    # -- Merging

    def _merge(self) -> None:
        """Merge what should be, in the background."""
        self._parts = [part for part in self._parts if part.living]
        span = self._mergeable()
        if span is None:
            return
        first, last = span
        parts = self._parts[first:last]
        if self.merge_always:
            self._parts[first:last] = [self._merged(parts)]
        else:
            self._start_merging(parts)

    def _merge_at_rest(self) -> None:
        """Merge all that is left, if it was used so often without a change that this is likely to pay."""
        if self._merging is not None or self._flushing is not None:
            return
        living = sum(part.living for part in self._parts)
        if self._uses * _AT_REST < living + len(self._open):
            return
        if len(self._open):
            self._start_flushing()
        elif len(self._parts) > 1 or any(part.has_many_dead for part in self._parts):
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
        begin = self._first_free()
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

    def _first_free(self) -> int:
        """Return where the segments begin that are newer than all that a thread works on."""
        busy = [place for place, part in enumerate(self._parts) if self._is_busy(part)]
        return busy[-1] + 1 if busy else 0

    def _is_busy(self, part: Part) -> bool:
        return (self._merging is not None and id(part.segment) in self._being_merged) or (
            self._flushing is not None and id(part.segment) in self._being_flushed
        )

    def _merged(self, parts: list[Part], opened: Sequence[OpenSubscription] = ()) -> Part:
        """Return one part of several and of what was open behind them, ready for the first event."""
        drafts = [part.segment.draft for part in parts]
        flags = [part.alive for part in parts]
        if opened:
            drafts.append(_drafted(opened))
            flags.append(np.ones(len(opened), np.bool_))
        segment = compiled(joined(drafts, flags), self._sample, self.schema)
        segment.encoder(self.schema)
        breathe()
        if segment.has_twins:
            segment.first_twins()
        return Part.of(segment)

    def _merge_behind(self, parts: list[Part]) -> None:
        try:
            with in_background():
                merged = self._merged(parts)
        except BaseException:
            self._merging = None  # else nothing would ever be merged again
            raise
        with self._lock:
            self._merging = None
            if self._replace(parts, merged):
                self._bury()
                self._snapshot = None
            self._merge()

    def _replace(self, parts: list[Part], merged: Part) -> bool:
        """Put a part where those are that it was made of, if they still are where they were."""
        # By identity: to compare segments field by field is to ask arrays for their truth.
        places = {id(part.segment): place for place, part in enumerate(self._parts)}
        first = places.get(id(parts[0].segment), -1) if parts else len(self._parts)
        if [places.get(id(part.segment)) for part in parts] != list(range(first, first + len(parts))):
            return False  # laid out anew meanwhile
        # What died while we worked is dead in the merged segment too.
        present = self._parts[first : first + len(parts)]
        for was, now in zip(parts, present, strict=True):
            self._dead += was.segment.draft.handles[was.alive & ~now.alive].tolist()
        self._parts[first : first + len(parts)] = [merged]
        return True

    def settle(self) -> None:
        """Wait until nothing is merged in the background any more."""
        while True:
            with self._lock:  # under which threads are started
                thread = self._flushing or self._merging
            if thread is None:
                return
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
        if segment.has_twins:
            first = int(segment.first_twins()[place])
            twin_count = int(np.count_nonzero(part.alive[segment.twins.members(first)]))
        clauses = clause_plans(segment, first, self._sample, self.schema)
        # The first of the twins may be gone: its clauses are still asked for the others.
        twin_of = int(segment.draft.handles[first]) if first != place and part.alive[first] else None
        return HandlePlan(number, part.living, segment.is_informed, twin_of, twin_count, clauses)

    def memory(self) -> int:
        with self._lock:
            return sum(part.segment.memory() + part.alive.nbytes for part in self._parts)

    @property
    def open_count(self) -> int:
        return len(self._open)

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            return {
                "segments": [part.living for part in self._parts],
                "open": len(self._open),
                "axes": len({axis.key for part in self._parts for axis in part.segment.draft.axes}),
                "clauses": sum(part.segment.draft.clause_count for part in self._parts),
                "broad_clauses": sum(len(part.segment.maps.broad.rows) for part in self._parts),
                "twins": sum(
                    len(part.segment) - int(np.count_nonzero(part.segment.twins.counts))
                    for part in self._parts
                    if part.segment.has_twins
                ),
                "keys": sum(len(part.segment.key_axes) for part in self._parts),
                "is_informed": all(part.segment.is_informed for part in self._parts),
            }

    def observe(self, events: Events) -> None:
        """Take a first look at the traffic: what was laid out by guesses is laid out anew by what is seen."""
        if self._sample is None and events.count >= _LEARNT_FROM and not self._answers_before_kernels_do(events):
            self._learn(events, is_all=False)


@dataclass(slots=True)
class _BlockMatches:
    """The matches of a block: how many each event has, and their events and owners in pieces."""

    counts: npt.NDArray[np.int64]
    pieces: list[tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32], Handles]]
    """Each with the handles of its segment, which the owners are positions in."""


class BlockSnapshot(Snapshot):
    """Segments, and the few subscriptions that are still open."""

    def __init__(self, parts: tuple[Part, ...], opened: OpenView, schema: Schema | None) -> None:
        self._parts = parts
        self._open = opened
        self._schema = schema
        self._encoders = [part.segment.encoder(schema) for part in parts]
        self._offsets = [part.segment.offset() for part in parts]
        self._open_axes: PlainAxes | None = None
        self._rate = MatchRate()

    def match_event(self, event: Mapping[str, Any], among: Handles | None = None) -> Handles:
        pieces = []
        for part, encoder, offset in zip(self._parts, self._encoders, self._offsets, strict=True):
            owners = part.segment.match_event(encoder.codes(event), *part.among(among))
            pieces.append(part.segment.draft.handles[owners] if offset is None else owners + offset)
        if self._open:
            pieces.append(self._match_open(event, among))
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.int64), *pieces])

    def match_json(self, document: bytes, among: Handles | None = None) -> tuple[int, Handles] | None:
        if self._open or not self._parts:
            return None
        pieces, shape = [], 0
        for part, offset in zip(self._parts, self._offsets, strict=True):
            scanned = part.segment.scanner(self._schema).codes(document)
            if scanned is None:
                return None
            shape, codes = scanned
            owners = part.segment.match_event(codes, *part.among(among))
            pieces.append(part.segment.draft.handles[owners] if offset is None else owners + offset)
        return shape, pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def match_json_lines(
        self, lines: EventLines, among: Handles | None = None
    ) -> tuple[npt.NDArray[np.uint64], Pairs] | None:
        is_informed = all(part.segment.is_informed for part in self._parts)
        if self._open or not self._parts or not (is_informed or len(lines) < _LEARNT_FROM) or not lines.is_utf8:
            return None
        read = [part.segment.scanner(self._schema).codes_of_lines(lines) for part in self._parts]
        alive = [part.among(among) for part in self._parts]
        if len(self._parts) == 1 and len(lines) <= MOST_CODED:
            (part,), (offset,), (living,) = self._parts, self._offsets, alive
            numbers, owners = part.segment.match_few(read[0][1], *living)
            return read[0][0], (numbers, part.segment.draft.handles[owners] if offset is None else owners + offset)
        portions = []
        for rows in _portions(len(lines), threads=1):
            matches = _BlockMatches(np.zeros(len(rows), np.int64), [])
            for part, living, (_, codes) in zip(self._parts, alive, read, strict=True):
                columns = part.segment.columns_of_codes(codes[rows.start : rows.stop])
                self._note(matches, part, part.segment.match_codes(columns, *living))
            portions.append(matches)
        return read[0][0], _placed(portions)

    def match_few(self, events: Sequence[Mapping[str, Any]], among: Handles | None = None) -> Pairs:
        if self._open or len(self._parts) != 1 or not events:
            return super().match_few(events, among)
        (part,), (encoder,), (offset,) = self._parts, self._encoders, self._offsets
        numbers, owners = part.segment.match_few([encoder.codes(event) for event in events], *part.among(among))
        handles = part.segment.draft.handles[owners] if offset is None else owners + offset
        return numbers, handles

    def _match_open(self, event: Mapping[str, Any], among: Handles | None) -> Handles:
        handles = self._open.matches(event)
        if among is not None:
            asked = set(among.tolist())
            handles = [handle for handle in handles if handle in asked]
        return np.array(handles, np.int64)

    def reach_event(
        self, event: Mapping[str, Any], destinations: Destinations, among: Handles | None = None
    ) -> tuple[Handles, Handles]:
        if len(destinations) > _MOST_DESTINATIONS:
            return super().reach_event(event, destinations, among)
        reached = np.zeros(len(destinations), np.uint64)
        pieces: list[Handles] = []
        for part, encoder in zip(self._parts, self._encoders, strict=True):
            alive, asked = part.among(among)
            shortcut = part.segment.shortcut(destinations)
            owners = part.segment.match_event(encoder.codes(event), alive, asked, shortcut.arrays(alive, reached, 1))
            if len(owners):
                pieces.append(part.segment.draft.handles[owners[shortcut.destinations[owners] == 0]])
        if self._open:
            handles = self._match_open(event, among)
            numbers = destinations.of(handles)
            reached[numbers[numbers > 0]] = 1
            pieces.append(handles[numbers == 0])
        handles = pieces[0] if len(pieces) == 1 else np.concatenate([np.zeros(0, np.int64), *pieces])
        return handles, reached.nonzero()[0]

    def reach_events(
        self, events: Events, destinations: Destinations, among: Handles | None = None, threads: int = 1
    ) -> tuple[Pairs, Pairs]:
        if len(destinations) > _MOST_DESTINATIONS:
            return super().reach_events(events, destinations, among, threads)
        if self._is_asked_singly(events) and (self._open or are_few_to_reach(self._parts, events)):
            each = [self.reach_event(event, destinations, among) for event in events.mappings()]
            return numbered([handles for handles, _ in each]), numbered([numbers for _, numbers in each])
        self._rate.sample(events, lambda event: len(self.match_event(event, among)))
        if self._rate.is_low and len(destinations) * events.count <= _LARGEST_MAP:
            return self._listed(events, destinations, among, threads)
        alive = [part.among(among) for part in self._parts]

        def portion(rows: range) -> tuple[_BlockMatches, Pairs]:
            part = events if events.count == len(rows) else events.slice(rows.start, len(rows))
            words = (part.count + 63) // 64
            reached = np.zeros(len(destinations) * words, np.uint64)
            matched = self._match_block(part, alive, destinations, reached)
            return matched, _sorted_pairs(reached, words, rows.start)

        portions = _portions(events.count, threads)
        with _workers(threads, len(portions)) as workers:
            matched, reached = zip(*workers(portion, portions), strict=True)
            pairs = _placed(matched, workers)
        numbers, handles = zip(*reached, strict=True)
        return pairs, (np.concatenate(numbers), np.concatenate(handles))

    def _listed(
        self, events: Events, destinations: Destinations, among: Handles | None, threads: int
    ) -> tuple[Pairs, Pairs]:
        """Return what `reach_events` does by finding all matches, with a map of whom each event reaches."""
        events_of_matches, handles = self.match_events(events, among, threads)
        self._rate.saw(events.count, len(handles))
        numbers = destinations.of(handles)
        width = len(destinations)
        is_reached = np.zeros(events.count * width, np.bool_)
        is_reached[events_of_matches * width + numbers] = True
        by_event = is_reached.reshape(-1, width)
        by_event[:, 0] = False
        has_none = numbers == 0
        reaching, reached = by_event.nonzero()
        return (events_of_matches[has_none], handles[has_none]), (reaching, reached)

    def _is_asked_singly(self, events: Events) -> bool:
        """Are events matched one by one? If they are few; and at a cold start, when all is open."""
        assert not (self._open and self._parts) or are_few(self._parts, events), "a batch needs a compiled snapshot"
        return bool(self._open) or are_few(self._parts, events)

    def match_events(self, events: Events, among: Handles | None = None, threads: int = 1) -> Pairs:
        if self._is_asked_singly(events):
            return self.match_few(list(events.mappings()), among)
        alive = [part.among(among) for part in self._parts]

        def portion(rows: range) -> _BlockMatches:
            part = events if events.count == len(rows) else events.slice(rows.start, len(rows))
            return self._match_block(part, alive)

        portions = _portions(events.count, threads)
        with _workers(threads, len(portions)) as workers:
            return _placed(list(workers(portion, portions)), workers)

    def encoded_event(self, event: Mapping[str, Any]) -> list[Encoded]:
        encoded: list[Encoded] = [
            (part.segment.draft.axes, as_column(encoder.codes(event)))
            for part, encoder in zip(self._parts, self._encoders, strict=True)
        ]
        if self._open:
            encoded += self._axes_of_open().of_event(event)
        return encoded

    def encoded_events(self, events: Events) -> list[Encoded]:
        encoded: list[Encoded] = [
            (part.segment.draft.axes, part.segment.codes(events, self._schema)) for part in self._parts
        ]
        if self._open:
            encoded += self._axes_of_open().of_events(events)
        return encoded

    def _axes_of_open(self) -> PlainAxes:
        if self._open_axes is None:
            self._open_axes = PlainAxes((entry.expression for entry in self._open.entries()), self._schema)
        return self._open_axes

    def _match_block(
        self,
        events: Events,
        alive: list[tuple[Flags, Flags]],
        destinations: Destinations | None = None,
        reached: npt.NDArray[np.uint64] | None = None,
    ) -> _BlockMatches:
        """Match a block; with destinations the events that reach them are noted, and only the others' matches found."""
        matches = _BlockMatches(np.zeros(events.count, np.int64), [])
        for part, living in zip(self._parts, alive, strict=True):
            segment = part.segment
            shortcut = None if destinations is None else segment.shortcut(destinations)
            arrays = None
            if shortcut is not None and reached is not None:
                arrays = shortcut.arrays(living[0], reached, (events.count + 63) // 64)
            pieces = segment.match_codes(segment.codes(events, self._schema), *living, arrays)
            if shortcut is not None and segment.has_twins:
                has_none = [shortcut.destinations[owners] == 0 for _, owners in pieces]  # a twin may have one
                pieces = [
                    (numbers[flags], owners[flags]) for (numbers, owners), flags in zip(pieces, has_none, strict=True)
                ]
            self._note(matches, part, pieces)
        return matches

    @staticmethod
    def _note(matches: _BlockMatches, part: Part, pieces: list[Found]) -> None:
        """Take note of the matches of a segment."""
        for numbers, owners in pieces:
            kernels.count_events(numbers, matches.counts)
            matches.pieces.append((numbers, owners, part.segment.draft.handles))


class _BlockTexts(TextsRead):
    """Texts that become a segment, once: what was read of them is dropped before that takes memory."""

    def __init__(self, algorithm: BlockAlgorithm, texts: ReadConditions) -> None:
        self._algorithm = algorithm
        self._texts: ReadConditions | None = texts

    def is_understood(self, number: int) -> bool:
        assert self._texts is not None, "texts are prepared once"
        return self._texts.is_understood(number)

    def prepared(self, numbers: Sequence[int], understood: Callable[[int], Expression]) -> Segment:
        assert self._texts is not None, "texts are prepared once"
        draft = self._texts.draft(numbers, understood)
        self._texts = None
        return compiled(draft, self._algorithm._sample, self._algorithm.schema)


def _drafted(entries: Iterable[OpenSubscription]) -> Draft:
    """Return a draft of open subscriptions."""
    drafting = Drafting()
    waiting = iter(entries)
    while some := list(islice(waiting, _DRAFTED)):
        drafting.add_many([entry.handle for entry in some], [entry.expression for entry in some])
        breathe()
    return drafting.finished()


def _portions(count: int, threads: int) -> list[range]:
    """Cut the rows of a batch into portions that are matched one by one, as many for each thread.

    >>> [len(portion) for portion in _portions(20_000, threads=1)]
    [8192, 8192, 3616]
    >>> [len(portion) for portion in _portions(20_000, threads=2)]
    [5000, 5000, 5000, 5000]
    """
    size, portion_count = BLOCK, -(-count // BLOCK)
    if threads > 1:
        even = -(-portion_count // threads) * threads
        size = -(-count // max(portion_count, min(even, count // _LEAST_PORTION), 1))
    return [range(start, min(start + size, count)) for start in range(0, count, max(size, 1))]


@contextmanager
def _workers(threads: int, portion_count: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Give what maps a function over portions: in so many threads, or here."""
    if threads > 1 and portion_count > 1:
        with ThreadPoolExecutor(threads) as pool:
            yield pool.map
    else:
        yield map


def _placed(portions: Sequence[_BlockMatches], workers: Callable[..., Iterable[Any]] = map) -> Pairs:
    """Return the matches of all portions, sorted by event.

    Each portion has its place among the matches, so the workers that found them can place them, too.
    """
    firsts = starts_of([len(portion.counts) for portion in portions])
    bounds = starts_of([int(portion.counts.sum()) for portion in portions])
    numbers, handles = np.empty(int(bounds[-1]), np.int64), np.empty(int(bounds[-1]), np.int64)

    def place(portion: _BlockMatches, first: int, begin: int, end: int) -> None:
        starts, placed = np.empty(len(portion.counts), np.int64), handles[begin:end]
        kernels.number_matches(portion.counts, first, starts, numbers[begin:end])
        for events, owners, handles_of in portion.pieces:
            kernels.place_matches(events, owners, handles_of, starts, placed)

    for _ in workers(place, portions, firsts.tolist(), bounds.tolist(), bounds[1:].tolist()):
        pass  # what a worker raises is raised here
    return numbers, handles


def _sorted_pairs(maps: npt.NDArray[np.uint64], words: int, first: int) -> Pairs:
    """Return the events of maps, the first of which has this number, and the maps' numbers, sorted by event."""
    events, rows = np.empty((2, 1 << 14), np.int64)
    count = kernels.events_of_maps(maps, words, events, rows)
    if count > len(events):
        events, rows = np.empty((2, count), np.int64)
        kernels.events_of_maps(maps, words, events, rows)
    order = np.argsort(events[:count], kind="stable")
    return first + events[order], rows[order]
