"""Which of many filters cover this one, and which does it cover? A containment index.

Comparing a filter with each of the others takes as long as there are others. An index asks a few. Two things are known
of every filter: *clauses*, boxes in which everything lies that it matches, and *witnesses*, events that it matches.
Whoever covers a filter matches its witnesses, so each witness lies in one of the other's clauses. Clauses are
found by one of their attributes and the values they have there, witnesses likewise; a compiled loop compares
sketches of all attributes; the few filters that remain are compared exactly. So the answer is the same as that of
comparing all pairs.

The witnesses of a conjunction are its corners, where all attributes have their least values, or their greatest: what
lies around both lies around all.

Source: that covering filters are found through their attribute filters, by counting, is Mühl et al. 2002,
  section 3.6 (docs/bibliography.md).
Departs: one attribute finds the candidates, the one that fewest share; all of them together confirm.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.expressions import Attribute
from tamis.language.ranges.lines import NULL, cut_at
from tamis.language.ranges.value_sets import Values, points
from tamis.language.values import value_of
from tamis.relations.deciding import DEFAULT_BUDGET, ask
from tamis.relations.errors import DuplicateKeyError, UnknownKeyError
from tamis.relations.forms import Context, Form
from tamis.relations.relations import covers_forms
from tamis.relations.rows import (
    ALL_MARKS,
    Bag,
    Ints,
    Reach,
    ReachRows,
    contents,
    discard,
    grown,
    marks_of,
    new_bag,
    sketch,
)
from tamis.relations.witnesses import plain_event

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box, Corner
    from tamis.relations.relations import Filter

_MOST_POINTS = 16

_Spot = tuple[Any, ...]
"""Where something is posted: an attribute, or an attribute and a value; () for what fits nowhere else."""


class _IndexedFilter:
    """What the index keeps of a filter."""

    __slots__ = ("clause_rows", "clause_spots", "expression", "has_witnesses", "number")

    def __init__(self, expression: Expression, number: int) -> None:
        self.expression = expression
        self.number = number
        self.clause_rows: tuple[int, ...] = ()
        self.clause_spots: tuple[list[_Spot], ...] = ()
        self.has_witnesses = False


class CoveringIndex:
    """Filters by key, and which of them cover a filter or are covered by it.

    >>> index = CoveringIndex()
    >>> index.add("cheap", "price < 20")
    >>> index.add("cheap thrillers", "price < 10 AND category = 'Thriller'")
    >>> index.covering("price BETWEEN 5 AND 9"), index.covered_by("price < 15")
    (['cheap'], ['cheap thrillers'])

    Whoever has many indexes of one schema gives them one `context`, and each filter is prepared once.
    """

    def __init__(
        self, schema: Schema | None = None, *, budget: int = DEFAULT_BUDGET, context: Context | None = None
    ) -> None:
        self._context = context or Context(schema)
        self._budget = budget
        self._slots: dict[Hashable, int] = {}
        self._keys_of: list[Any] = []  # by slot, and so are entries
        self._entries: list[_IndexedFilter | None] = []
        self._free: list[int] = []
        self._added = 0
        self._axis_numbers: dict[TermAxis, int] = {}
        self._defaults: Ints = np.zeros(16, np.int64)  # what an attribute is that a witness does not name
        self._latest: tuple[Form | None, Any] = (None, None)
        self._clauses = ReachRows()
        self._owners: Ints = np.zeros(64, np.int64)  # the filter of each clause
        self._is_alone = np.zeros(64, np.bool_)  # is it the filter's only one?
        self._clause_count = 0
        self._free_rows: list[int] = []
        self._by_clause: dict[_Spot, Bag[int]] = {}
        self._firsts, self._seconds = ReachRows(), ReachRows()  # two witnesses of each filter
        self._by_witness: dict[_Spot, Bag[int]] = {}
        self._unwitnessed: set[int] = set()
        self._empty: set[int] = set()

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._slots

    def __iter__(self) -> Iterator[Any]:
        return iter(self._slots)

    def expression(self, key: Hashable) -> Expression:
        """Return the filter under a key."""
        return self._entry(self._slot(key)).expression

    def _slot(self, key: Hashable) -> int:
        try:
            return self._slots[key]
        except KeyError:
            raise UnknownKeyError(key) from None

    def _entry(self, slot: int) -> _IndexedFilter:
        entry = self._entries[slot]
        assert entry is not None
        return entry

    # -- Registration

    def add(self, key: Hashable, given: Filter) -> None:
        """Add a filter under a key of its own."""
        if key in self._slots:
            raise DuplicateKeyError(key)
        form = self._context.form(given)
        boxes, witnesses = self._known_of(form)
        if self._free:
            slot = self._free.pop()
        else:
            slot = len(self._entries)
            self._entries.append(None)
            self._keys_of.append(None)
        entry = self._entries[slot] = _IndexedFilter(form.expression, self._added)
        self._keys_of[slot] = key
        self._slots[key] = slot
        self._added += 1
        if witnesses == []:
            self._empty.add(slot)
            return
        for box in boxes:
            self._add_clause(entry, slot, box, is_alone=len(boxes) == 1)
        if witnesses is None:
            self._unwitnessed.add(slot)
            return
        entry.has_witnesses = True
        self._firsts.put(slot, self._witness_row(witnesses[0]))
        self._seconds.put(slot, self._witness_row(witnesses[-1]))
        for spot in _witness_spots(witnesses[0]):
            _post(self._by_witness, spot, slot)

    def _add_clause(self, entry: _IndexedFilter, slot: int, box: Box, *, is_alone: bool) -> None:
        if self._free_rows:
            row = self._free_rows.pop()
        else:
            row = self._clause_count
            self._clause_count += 1
            if row == len(self._owners):
                self._owners, self._is_alone = grown(self._owners, row + 1), grown(self._is_alone, row + 1)
        self._owners[row], self._is_alone[row] = slot, is_alone
        spots = self._clause_spots(box, is_alone)
        for spot in spots:
            _post(self._by_clause, spot, row)
        self._clauses.put(row, self._box_row(box))
        entry.clause_rows += (row,)
        entry.clause_spots += (spots,)

    def remove(self, key: Hashable) -> None:
        """Remove the filter under a key."""
        slot = self._slot(key)
        del self._slots[key]
        entry = self._entry(slot)
        for row, spots in zip(entry.clause_rows, entry.clause_spots, strict=True):
            self._clauses.drop(row)
            self._free_rows.append(row)
            _unpost(self._by_clause, spots, row)
        if entry.has_witnesses:
            self._firsts.drop(slot)
            self._seconds.drop(slot)
            _, witnesses = self._known_of(self._context.form(entry.expression))
            assert witnesses
            _unpost(self._by_witness, _witness_spots(witnesses[0]), slot)
        self._empty.discard(slot)
        self._unwitnessed.discard(slot)
        self._entries[slot] = self._keys_of[slot] = None
        self._free.append(slot)

    # -- Questions

    def covering(self, given: Filter) -> list[Any]:
        """Return the keys of the filters that cover this one, in the order in which they were added."""
        form = self._context.form(given)
        return self._keys(slot for slot in self._around(form) if self._covers(self._form(slot), form))

    def is_covered(self, given: Filter) -> bool:
        """Is there a filter that covers this one?"""
        return self.first_covering(given) is not None

    def first_covering(self, given: Filter) -> Any | None:
        """Return the key of one filter that covers this one, the first that is found; None if there is none."""
        form = self._context.form(given)
        slots = sorted(self._around(form))
        return next((self._keys_of[slot] for slot in slots if self._covers(self._form(slot), form)), None)

    def covered_by(self, given: Filter) -> list[Any]:
        """Return the keys of the filters that this one covers, in the order in which they were added."""
        form = self._context.form(given)
        return self._keys(slot for slot in self._inside(form) if self._covers(form, self._form(slot)))

    def candidates_around(self, given: Filter) -> list[Any]:
        """Return the keys of the filters that may cover this one, in no order; all others do not."""
        return [self._keys_of[slot] for slot in self._around(self._context.form(given))]

    def candidates_inside(self, given: Filter) -> list[Any]:
        """Return the keys of the filters that this one may cover, in no order; it covers no others."""
        return [self._keys_of[slot] for slot in self._inside(self._context.form(given))]

    def _covers(self, general: Form, special: Form) -> bool:
        return covers_forms(general, special, self._budget).holds

    def _form(self, slot: int) -> Form:
        return self._context.form(self._entry(slot).expression)

    def _keys(self, slots: Iterable[int]) -> list[Any]:
        in_order = sorted(slots, key=lambda slot: self._entry(slot).number)
        return [self._keys_of[slot] for slot in in_order]

    # -- Candidates

    def _around(self, form: Form) -> set[int]:
        """Return the filters that may cover this one: they have a clause around each of its witnesses."""
        _, witnesses = self._known_of(form)
        if not witnesses:  # nothing is known of it, or nothing matches it
            return set(self._slots.values())
        first, *others = witnesses
        rows = self._clauses_around(first)
        alone, rows = rows[self._is_alone[rows]], rows[~self._is_alone[rows]]
        owners = set(self._owners[rows].tolist())
        for witness in others:
            if len(alone):  # what is around the next witness, too, must be the same clause
                alone = self._clauses.reaching_around(alone, self._witness_row(witness), self._defaults)
            if owners:
                owners &= set(self._owners[self._clauses_around(witness)].tolist())
        return owners.union(self._owners[alone].tolist())

    def _clauses_around(self, witness: Corner) -> Ints:
        postings = [self._by_clause.get(())]
        for axis, cut in witness.items():
            postings += (self._by_clause.get((axis,)), self._by_clause.get((axis, cut)))
        rows = contents(posting for posting in postings if posting is not None)
        if not len(rows):
            return rows
        return self._clauses.reaching_around(rows, self._witness_row(witness), self._defaults)

    def _inside(self, form: Form) -> set[int]:
        """Return the filters that this one may cover: their witnesses lie in its clauses."""
        boxes, _ = self._known_of(form)
        is_alone = len(boxes) == 1
        rows = [self._box_row(box) for box in boxes]
        needed = [[not _may_be_unnamed(axis, values, is_alone) for axis, values in box.items()] for box in boxes]
        firsts = [
            self._firsts.staying_within(self._witnessed_at(box, is_alone), row, each, len(self._axis_numbers))
            for box, row, each in zip(boxes, rows, needed, strict=True)
        ]
        candidates: Ints = np.unique(np.concatenate([np.empty(0, np.int64), *firsts]))
        owners = {*self._unwitnessed, *self._empty}
        for row, each in zip(rows, needed, strict=True):
            owners.update(self._seconds.staying_within(candidates, row, each, len(self._axis_numbers)).tolist())
        return owners

    def _witnessed_at(self, box: Box, is_alone: bool) -> Ints:
        """Return the filters whose first witness may lie in a box, by the attribute that leaves the fewest."""
        best: list[Bag[int]] | None = None
        for axis, values in box.items():
            if _may_be_unnamed(axis, values, is_alone):
                continue
            postings = [self._by_witness[spot] for spot in _spots(axis, values) if spot in self._by_witness]
            if best is None or sum(map(len, postings)) < sum(map(len, best)):
                best = postings
        if best is not None:
            return contents(best)
        return np.array([slot for slot in self._slots.values() if self._entry(slot).has_witnesses], np.int64)

    # -- What is known of a filter

    def _known_of(self, form: Form) -> tuple[list[Box], list[Corner] | None]:
        """Return a filter's clauses and witnesses; no witnesses if nothing matches it, None if none was found."""
        boxes, _ = form.clauses
        if not boxes or form.corners:
            return boxes, form.corners
        if self._latest[0] is not form:
            self._latest = (form, self._asked(form))
        return self._latest[1]  # type: ignore[no-any-return]

    def _asked(self, form: Form) -> tuple[list[Box], list[Corner] | None]:
        answer = ask([form], [], self._context, self._budget)
        if not answer.is_possible:
            return [], []
        if answer.event is None and answer.box is None:
            return form.clauses[0], None
        event = answer.event if answer.box is None else plain_event(answer.box, self._context.schema)
        return form.clauses[0], [self._witness(event or {})]

    def _witness(self, event: dict[str, Any]) -> Corner:
        witness: Corner = {}
        stack: list[tuple[tuple[str, ...], Any]] = [((name,), value) for name, value in event.items()]
        while stack:
            path, inner = stack.pop()
            axis = self._context.axis(Attribute(path))
            witness[axis] = cut_at(value_of(inner), axis.line)
            if isinstance(inner, dict):
                stack += [((*path, name), value) for name, value in inner.items()]
        return witness

    def _witness_row(self, witness: Corner) -> list[Reach]:
        return [(self._number(axis), at := sketch(cut), at, marks_of(cut)) for axis, cut in witness.items()]

    def _box_row(self, box: Box) -> list[Reach]:
        return [
            (self._number(axis), sketch(values[0]), sketch(values[-1]), _marks(axis, values))
            for axis, values in box.items()
        ]

    def _number(self, axis: TermAxis) -> int:
        number = self._axis_numbers.get(axis)
        if number is None:
            number = self._axis_numbers[axis] = len(self._axis_numbers)
            if number == len(self._defaults):
                self._defaults = grown(self._defaults, number + 1)
            self._defaults[number] = sketch(axis.values[0])
        return number

    def _clause_spots(self, box: Box, is_alone: bool) -> list[_Spot]:
        """Return where to post a clause so that every witness in it finds it: by the attribute that fewest share."""
        best: list[_Spot] = [()]
        fewest: tuple[bool, int] | None = None
        for axis, values in box.items():
            if _may_be_unnamed(axis, values, is_alone):
                continue
            spots = _spots(axis, values)
            count = sum(len(self._by_clause[spot]) for spot in spots if spot in self._by_clause)
            if fewest is None or (len(spots[0]) == 1, count) < fewest:
                best, fewest = spots, (len(spots[0]) == 1, count)
        return best


def _may_be_unnamed(axis: TermAxis, values: Values, is_alone: bool) -> bool:
    """May a witness that does not name an attribute lie in a clause that does?

    An unnamed attribute is absent, or has its least value where a schema does not let it be absent. In the latter case
    a filter with a single clause is out: an attribute that it limits is limited, and named, by all that it covers.
    """
    return values[0] == axis.values[0] and (not is_alone or values[0] == (NULL,))


def _marks(axis: TermAxis, values: Values) -> int:
    cuts = points(values, axis.line, _MOST_POINTS)
    return ALL_MARKS if cuts is None else reduce(or_, map(marks_of, cuts))


def _spots(axis: TermAxis, values: Values) -> list[_Spot]:
    """Return one spot for each value of a set if they are few, else one for the attribute."""
    cuts = points(values, axis.line, _MOST_POINTS)
    return [(axis,)] if cuts is None else [(axis, cut) for cut in cuts]


def _witness_spots(witness: Corner) -> list[_Spot]:
    return [spot for axis, cut in witness.items() for spot in ((axis,), (axis, cut))]


def _post(postings: dict[_Spot, Bag[int]], spot: _Spot, number: int) -> None:
    bag = postings.get(spot)
    if bag is None:
        bag = postings[spot] = new_bag()
    bag.append(number)


def _unpost(postings: dict[_Spot, Bag[int]], spots: list[_Spot], number: int) -> None:
    for spot in spots:
        discard(postings[spot], number)
        if not postings[spot]:
            del postings[spot]
