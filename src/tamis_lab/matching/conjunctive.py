"""What do the algorithms share that know nothing but conjunctions?

A subscription becomes its disjunctive normal form, and each conjunction is registered as if it were a subscription of
its own; whoever finds two conjunctions of one subscription reports it once. The conjunctions stand one behind the other
in a *book*, each a run of predicate numbers:

    book     3 5 8 | 3 5 9 | 1 2 | 4 7 7 ...            predicates by their numbers
    owners     0       0      1      2                  the slot of the subscription

An algorithm lays the book out in its own way, once; the conjunctions that came since are the book's last pages, and
every event asks them one by one. When they are more than a sixty-fourth of the book, or when a quarter of the
subscriptions are gone, it is laid out anew. So registering costs the same however much is registered, and what a
snapshot reads is never changed.

Source: Bittner 2008, sections 1 and 2.3.3 on the conversion (docs/bibliography.md).
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from functools import lru_cache
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tamis.errors import BudgetError
from tamis.language.expressions import UNKNOWN, Expression
from tamis.language.rewrites.disjunctive import DEFAULT_BUDGET, disjuncts
from tamis.matching.base import Algorithm
from tamis.matching.errors import UnsupportedExpressionError
from tamis_lab.matching.kernels import LastPages, Outlet
from tamis_lab.matching.predicates import PredicateRegistry
from tamis_lab.matching.roll import Growing, Roll, Scratch, is_due
from tamis_lab.matching.shapes import conjunctions, shaped
from tamis_lab.matching.snapshots import PhasedSnapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.language.schema import Schema
    from tamis_lab.matching.predicates import Fulfilled, Numbers, PredicateView

_MOST_MERGED = 256


class NormalForm:
    """A disjunctive normal form over a list of predicates: their positions, one conjunction behind the other."""

    __slots__ = ("_merged", "lengths", "positions")

    def __init__(self, parts: Iterable[Iterable[int]]) -> None:
        distinct = list(dict.fromkeys(tuple(dict.fromkeys(part)) for part in parts))
        self.positions = tuple(chain(*distinct))
        self.lengths = tuple(map(len, distinct))
        self._merged: dict[tuple[int, ...], NormalForm] = {}

    def parts(self) -> list[tuple[int, ...]]:
        """Return the conjunctions."""
        ends = list(accumulate(self.lengths))
        return [self.positions[end - length : end] for length, end in zip(self.lengths, ends, strict=True)]

    def merged(self, firsts: tuple[int, ...]) -> NormalForm:
        """Return the form where predicates are equal, given the first position that each is equal to.

        What was a predicate twice is so once, and conjunctions that became equal are one.

        >>> form = NormalForm([(0, 1), (0, 2), (2, 0)])
        >>> form.merged((0, 0, 2)).parts()
        [(0,), (0, 2)]
        """
        form = self._merged.get(firsts)
        if form is None:
            if len(self._merged) >= _MOST_MERGED:
                self._merged.clear()
            parts = ({firsts[position] for position in part} for part in self.parts())
            form = self._merged[firsts] = NormalForm(sorted(part) for part in parts)
        return form


Prepared = tuple[tuple[Expression, ...], NormalForm]


def normal_form(expression: Expression, algorithm: str) -> Prepared:
    """Return the predicates of a condition, and its disjunctive normal form over them."""
    tree = shaped(expression, algorithm)
    try:
        return tree.predicates, _normal_form(tree.shape)
    except BudgetError:
        pass
    try:
        # Slower, but it sees where predicates are equal.
        distinct = [each for each in disjuncts(expression) if UNKNOWN not in each]
    except BudgetError:
        reason = f"its disjunctive normal form would have more than {DEFAULT_BUDGET:,} predicates"
        raise UnsupportedExpressionError(algorithm, reason) from None
    places = {predicate: place for place, predicate in enumerate(dict.fromkeys(chain(*distinct)))}
    return tuple(places), NormalForm(map(places.__getitem__, each) for each in distinct)


@lru_cache(maxsize=4096)
def _normal_form(shape: bytes) -> NormalForm:
    return NormalForm(conjunctions(shape))


class Pages(NamedTuple):
    """The book at one moment: a conjunction's predicates end at `ends`, a slot's conjunctions at `slot_ends`."""

    predicates: Numbers
    ends: npt.NDArray[np.uint32]
    owners: npt.NDArray[np.uint32]
    slot_ends: npt.NDArray[np.uint32]

    def behind(self, conjunction_count: int) -> LastPages:
        """Return what the kernels ask of the conjunctions that came after the first so many."""
        return LastPages(self.predicates, self.ends, self.owners, conjunction_count, len(self.slot_ends))


class Book:
    """The conjunctions of all subscriptions, in order of registration."""

    def __init__(self) -> None:
        self._predicates, self._ends, self._owners, self._slot_ends = (Growing(np.uint32) for _ in range(4))

    def __len__(self) -> int:
        """How many conjunctions there are."""
        return self._ends.count

    @property
    def pages(self) -> Pages:
        return Pages(self._predicates.values, self._ends.values, self._owners.values, self._slot_ends.values)

    def write(self, rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> None:
        """Append subscriptions: of each, the predicates of its conjunctions one behind the other, and their lengths."""
        slot = self._slot_ends.count
        counts = [len(lengths) for _, lengths in rows]
        flat = list(chain.from_iterable(predicates for predicates, _ in rows))
        lengths = list(chain.from_iterable(lengths for _, lengths in rows))
        self._ends.extended(self._predicates.count + np.cumsum(lengths, dtype=np.int64))
        self._slot_ends.extended(self._owners.count + np.cumsum(counts, dtype=np.int64))
        self._owners.extended(np.repeat(np.arange(slot, slot + len(rows)), counts))
        self._predicates.extended(flat)

    def predicates_of(self, slot: int) -> list[int]:
        """Return the predicates of a subscription, each once."""
        predicates, ends, _, slot_ends = self.pages
        first, last = int(slot_ends[slot - 1]) if slot else 0, int(slot_ends[slot])
        begin, end = int(ends[first - 1]) if first else 0, int(ends[last - 1]) if last else 0
        return list(set(predicates[begin:end].tolist()))

    def keep(self, slots: npt.NDArray[np.int64]) -> None:
        """Leave out all subscriptions but some, which move up to the first slots."""
        predicates, ends, owners, slot_ends = self.pages
        counts, lengths = np.diff(slot_ends, prepend=np.uint32(0)), np.diff(ends, prepend=np.uint32(0))
        is_kept = np.zeros(len(slot_ends), np.bool_)
        is_kept[slots] = True
        kept = is_kept[owners]
        self._predicates = Growing(np.uint32, predicates[np.repeat(kept, lengths)])
        self._ends = Growing(np.uint32, np.cumsum(lengths[kept]))
        self._slot_ends = Growing(np.uint32, np.cumsum(counts[slots]))
        self._owners = Growing(np.uint32, np.repeat(np.arange(len(slots)), counts[slots]))

    def memory(self) -> int:
        return self._predicates.nbytes + self._ends.nbytes + self._owners.nbytes + self._slot_ends.nbytes


class ConjunctionIndex(Protocol):
    """What an algorithm made of the first pages of the book."""

    conjunction_count: int
    """How many conjunctions it knows; those behind are asked one by one."""

    def match(self, part: Fulfilled, begin: int, pages: LastPages, scratch: Scratch, out: Outlet) -> tuple[int, int]:
        """Do what `PhasedSnapshot.write` promises."""

    def memory(self) -> int:
        """Return the bytes of its arrays."""


class Conjunctive(Algorithm):
    """An algorithm for conjunctions. What it adds is how it lays them out."""

    def __init__(self, schema: Schema | None = None) -> None:
        super().__init__(schema)
        self._predicates = PredicateRegistry(schema)
        self._roll = Roll()
        self._book = Book()
        self._index: ConjunctionIndex | None = None
        self._scratch = Scratch()
        self._snapshot: ConjunctiveSnapshot | None = None
        self._lock = threading.RLock()

    @abstractmethod
    def _laid_out(self, pages: Pages, view: PredicateView) -> ConjunctionIndex:
        """Lay out all conjunctions."""

    # -- Registration

    def prepare(self, expressions: Iterable[Expression]) -> list[Prepared]:
        return [normal_form(expression, self.name) for expression in expressions]

    def add(self, handles: Sequence[int], prepared: Sequence[Prepared]) -> None:
        with self._lock:
            self._snapshot = None
            self._roll.enter(handles)
            self._book.write([self._row(*each) for each in prepared])

    def _row(self, predicates: tuple[Expression, ...], form: NormalForm) -> tuple[Sequence[int], Sequence[int]]:
        """Return the numbers of the conjunctions' predicates, and their lengths; each predicate has one more user."""
        numbers = self._predicates.add_all(predicates)
        if len(set(numbers)) == len(numbers):
            return [numbers[position] for position in form.positions], form.lengths
        seen: dict[int, int] = {}
        form = form.merged(tuple([seen.setdefault(number, place) for place, number in enumerate(numbers)]))
        self._predicates.release_all([number for place, number in enumerate(numbers) if seen[number] != place])
        return [numbers[position] for position in form.positions], form.lengths

    def remove(self, handle: int) -> None:
        with self._lock:
            self._snapshot = None
            self._predicates.release_all(self._book.predicates_of(self._roll.leave(handle)))

    @property
    def locks(self) -> Sequence[Any]:
        return (self._lock,)

    # -- Layout

    def compile(self) -> bool:
        """Lay everything out anew, unless nothing is left to be asked one by one; return whether anything was."""
        with self._lock:
            known = 0 if self._index is None else self._index.conjunction_count
            is_open = known != len(self._book) or self._roll.version > 0
            if is_open:
                self._lay_out()
            return is_open

    def _lay_out(self) -> None:
        """Lay everything out anew."""
        with self._lock:
            self._snapshot = None
            if self._roll.version:
                self._book.keep(self._roll.compacted())
            self._index = self._laid_out(self._book.pages, self._predicates.view())

    def snapshot(self) -> ConjunctiveSnapshot:
        with self._lock:
            if self._snapshot is None:
                if self._index is None or is_due(self._index.conjunction_count, len(self._book), self._roll):
                    self._lay_out()
                assert self._index is not None
                self._snapshot = ConjunctiveSnapshot(
                    self._predicates.view(), self._index, self._book.pages, self._roll, self._scratch
                )
            return self._snapshot

    # -- Told to others

    def memory(self) -> int:
        with self._lock:
            index = 0 if self._index is None else self._index.memory()
            return self._predicates.memory() + self._roll.memory() + self._book.memory() + index

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            return {"predicates": len(self._predicates), "conjunctions": len(self._book)}


class ConjunctiveSnapshot(PhasedSnapshot):
    """The book and its layout, at one moment."""

    def __init__(
        self, view: PredicateView, index: ConjunctionIndex, pages: Pages, roll: Roll, scratch: Scratch
    ) -> None:
        super().__init__(view, roll, scratch)
        self.index = index
        self._last_pages = pages.behind(index.conjunction_count)

    def write(self, part: Fulfilled, begin: int, out: Outlet) -> tuple[int, int]:
        return self.index.match(part, begin, self._last_pages, self._scratch, out)
