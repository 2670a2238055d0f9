"""Which of many filters overlap this one, or does any?

As in matching, there are three steps. The predicates of all filters that are disjoint to a predicate of the query are
found term by term, in sorted lists of where their values begin and end. Counting says which filters have enough
predicates left to be true; and those that were hit at all are evaluated. The first filter found ends it if all that
is asked is whether there is one.

What was added lately waits in a list and is compared one by one, until it becomes a segment; segments of like size
become one, so that each filter is laid out a few times only; what was removed is marked.

Source: Bittner 2008, sections 7.2.4 and 7.2.5: the function problem and the decision problem (docs/bibliography.md).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.checking import check
from tamis.language.expressions import FALSE, And, AtLeast, Expression, Literal, Or, is_condition
from tamis.language.measures import least_hits
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import leaves_of, monotone
from tamis.relations.advertisements import kernels
from tamis.relations.advertisements.disjoint import (
    alternatives,
    are_disjoint,
    overlaps_by_predicates,
    predicate_formula,
)
from tamis.relations.errors import DuplicateKeyError, NotAFilterError, UnknownKeyError
from tamis.relations.forms import Context
from tamis.relations.formulas import NEVER, Conjunction, Fact, Formula, Within
from tamis.relations.relations import overlaps
from tamis.relations.value_sets import is_disjoint

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from tamis.language.schema import Schema
    from tamis.relations.domains import Axis
    from tamis.relations.relations import Filter
    from tamis.relations.value_sets import Values

_FEW = 16
"""So many filters may wait before they are laid out."""


class OverlapIndex:
    """Filters by key, and which of them overlap a filter.

    >>> subscriptions = OverlapIndex()
    >>> subscriptions.add("cheap", "price < 20")
    >>> subscriptions.add("new or dear", "new OR price > 50")
    >>> subscriptions.overlapping("price BETWEEN 30 AND 40 AND NOT new"), subscriptions.overlaps_any("price > 50")
    ([], True)

    With `is_exact`, what single predicates cannot tell is decided by the relation.
    """

    def __init__(self, schema: Schema | None = None, *, is_exact: bool = False, context: Context | None = None) -> None:
        self._schema = schema
        self._is_exact = is_exact
        self._context = context or Context(schema)
        self._filters: dict[Hashable, Expression] = {}
        self._waiting: dict[Hashable, None] = {}
        self._segments: list[_Segment] = []
        self._places: dict[Hashable, _Segment] = {}
        self.candidate_count = 0
        """How many filters had enough predicates left so far, once for each alternative."""
        self.evaluated_count = 0
        """How many of these were hit at all, and their trees evaluated."""

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._filters

    def __iter__(self) -> Iterator[Any]:
        return iter(self._filters)

    def expression(self, key: Hashable) -> Expression:
        """Return the filter under a key."""
        if key not in self._filters:
            raise UnknownKeyError(key)
        return self._filters[key]

    def add(self, key: Hashable, given: Filter) -> None:
        """Add a filter under a key of its own."""
        if key in self._filters:
            raise DuplicateKeyError(key)
        self._filters[key] = self._checked(given)
        self._waiting[key] = None

    def _checked(self, given: Filter) -> Expression:
        if isinstance(given, str):
            return parse(given, self._schema)
        if not (isinstance(given, Expression) and is_condition(given)):
            raise NotAFilterError(given)
        if self._schema is not None:
            check(given, self._schema)
        return given

    def remove(self, key: Hashable) -> None:
        """Remove the filter under a key."""
        if key not in self._filters:
            raise UnknownKeyError(key)
        del self._filters[key]
        if key in self._waiting:
            del self._waiting[key]
        else:
            self._places.pop(key).remove(key)

    def overlapping(self, given: Filter) -> list[Any]:
        """Return the keys of the filters that overlap another, in the order in which they were added."""
        query = self._asked(given)
        tree = monotone(query)
        found = []
        for segment in self._segments:
            found += segment.overlapping(tree, is_decision=False)
            self._count(segment)
        found += [key for key in self._waiting if overlaps_by_predicates(query, self._filters[key], self._schema)]
        if self._is_exact:
            found = [key for key in found if overlaps(query, self._filters[key], self._schema)]
        return found

    def overlaps_any(self, given: Filter) -> bool:
        """Does a filter overlap any of those that are here?"""
        if self._is_exact:
            return bool(self.overlapping(given))
        query = self._asked(given)
        tree = monotone(query)
        for segment in self._segments:
            is_found = bool(segment.overlapping(tree, is_decision=True))
            self._count(segment)
            if is_found:
                return True
        return any(overlaps_by_predicates(query, self._filters[key], self._schema) for key in self._waiting)

    def _count(self, segment: _Segment) -> None:
        self.candidate_count += segment.candidate_count
        self.evaluated_count += segment.evaluated_count

    def _asked(self, given: Filter) -> Expression:
        if len(self._waiting) > _FEW:
            self._lay_out()
        return self._checked(given)

    def _lay_out(self) -> None:
        """Make a segment of those who wait, and of the latest segments as long as they are no larger together."""
        keys = list(self._waiting)
        while self._segments and len(self._segments[-1]) <= len(keys):
            keys = self._segments.pop().keys + keys
        segment = _Segment(keys, [self._filters[key] for key in keys], self._context)
        self._segments.append(segment)
        self._places.update(dict.fromkeys(keys, segment))
        self._waiting.clear()


class _Segment:
    """Filters laid out for the compiled loop, in the order in which they were added."""

    def __init__(self, keys: list[Any], filters: list[Expression], context: Context) -> None:
        self._keys = keys
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._context = context
        self._predicates = Predicates(context)
        self.candidate_count = self.evaluated_count = 0
        starts = [0]
        rows: list[tuple[int, int, int]] = []
        owners: list[int] = []
        used: list[int] = []
        needed: list[int] = []
        leaf_counts: list[int] = []
        for number, expression in enumerate(filters):
            tree = monotone(expression)
            begin = len(rows)
            stack: list[tuple[Expression, int]] = [(tree, 0)]
            while stack:
                node, parent = stack.pop()
                row = len(rows) - begin
                if isinstance(node, And | Or | AtLeast):
                    need = len(node.children) if isinstance(node, And) else 1
                    rows.append((parent, node.count if isinstance(node, AtLeast) else need, -1))
                    stack.extend((child, row) for child in reversed(node.children))
                elif isinstance(node, Literal):
                    rows.append((parent, 0 if node.value is True else 1, -1))
                else:
                    predicate = self._predicates.number(node)
                    rows.append((parent, 0, predicate))
                    owners.append(number)
                    used.append(predicate)
            starts.append(len(rows))
            # A filter that is never true would pass for one that needs no hits.
            needed.append(least_hits(tree) if tree != FALSE else len(rows) + 1)
            leaf_counts.append(0 if isinstance(tree, Literal) else len(leaves_of(tree)))
        self._starts = np.array(starts, np.int64)
        self._rows = np.array(rows, np.int32).reshape(-1, 3)
        order = np.argsort(np.array(used, np.int64), kind="stable")
        self._owners = np.array(owners, np.int32)[order]
        count = len(self._predicates)
        self._owner_starts = np.concatenate([[0], np.cumsum(np.bincount(used, minlength=count))]).astype(np.int64)
        self._least_hits = np.array(needed, np.int32)
        self._leaf_counts = np.array(leaf_counts, np.int32)
        self._is_there = np.ones(len(keys), np.bool_)
        self._hits = np.zeros(len(keys), np.int32)
        self._trues = np.zeros(int(np.diff(self._starts).max(initial=1)), np.int32)
        self._predicates.sort()

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def keys(self) -> list[Any]:
        """The keys of those who were not removed."""
        return list(self._numbers)

    def remove(self, key: Hashable) -> None:
        """Mark a filter as removed."""
        self._is_there[self._numbers.pop(key)] = False

    def overlapping(self, query: Expression, *, is_decision: bool) -> list[Any]:
        """Return the keys of the filters that overlap a query; if it is a decision, of one of them."""
        self.candidate_count = self.evaluated_count = 0
        found = np.zeros(len(self._keys), np.bool_)
        if not self._keys:
            return []
        for disjoint in alternatives(query, self._predicates.disjoint):
            false = np.array(sorted(disjoint | self._predicates.never), np.int32)
            is_false = np.zeros(len(self._predicates), np.bool_)
            is_false[false] = True
            count, candidates, evaluated = kernels.find_overlaps(
                false,
                is_false,
                self._owner_starts,
                self._owners,
                self._hits,
                self._least_hits,
                self._leaf_counts,
                self._is_there,
                self._starts,
                self._rows,
                self._trues,
                found,
                is_decision,
            )
            self.candidate_count += candidates
            self.evaluated_count += evaluated
            if is_decision and count:
                break
        return [self._keys[number] for number in np.flatnonzero(found).tolist()]


class Predicates:
    """The predicates of many filters, by number, and which of them are disjoint to another.

    After the last `number` and before the first `disjoint`, they are put in order by `sort`.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._numbers: dict[Expression, int] = {}
        self._lines: dict[Axis, _Line] = {}
        self._facts: dict[Expression, list[tuple[int, Fact]]] = {}
        self._known: dict[Formula, frozenset[int]] = {}
        self.never: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, predicate: Expression) -> int:
        """Return the number of a predicate, a new one if it was not seen before."""
        number = self._numbers.get(predicate)
        if number is not None:
            return number
        number = self._numbers[predicate] = len(self._numbers)
        formula = predicate_formula(predicate, self._context)
        if formula is NEVER:
            self.never |= {number}
        for part in formula.children if isinstance(formula, Conjunction) else (formula,):
            if isinstance(part, Within):
                self._lines.setdefault(part.axis, _Line()).members.append((part.values, number))
            elif isinstance(part, Fact):
                self._facts.setdefault(part.predicate, []).append((number, part))
        return number

    @property
    def expressions(self) -> list[Expression]:
        """The predicates, in the order of their numbers."""
        return list(self._numbers)

    def sort(self) -> None:
        """Put all lines in order."""
        for line in self._lines.values():
            line.sort()

    def disjoint(self, predicate: Expression) -> frozenset[int]:
        """Return the numbers of the predicates that are disjoint to another."""
        formula = predicate_formula(predicate, self._context)
        found = self._known.get(formula)
        if found is None:
            found = self._known[formula] = self._disjoint(formula)
        return found

    def _disjoint(self, formula: Formula) -> frozenset[int]:
        if formula is NEVER:
            return frozenset(range(len(self._numbers)))
        if isinstance(formula, Within):
            line = self._lines.get(formula.axis)
            return line.disjoint(formula.values) if line is not None else frozenset()
        if isinstance(formula, Fact):
            rivals = self._facts.get(formula.predicate, ())
            return frozenset(number for number, fact in rivals if are_disjoint(formula, fact))
        if isinstance(formula, Conjunction):
            return frozenset[int]().union(*map(self._disjoint, formula.children))
        return frozenset()


class _Line:
    """The sets of values of one term, in order of where they begin, and of where they end."""

    def __init__(self) -> None:
        self.members: list[tuple[Values, int]] = []
        self._by_start: list[tuple[Values, int]] = []
        self._by_end: list[tuple[Values, int]] = []
        self._gappy: list[tuple[Values, int]] = []

    def sort(self) -> None:
        self._by_start = sorted(self.members, key=lambda each: each[0][0])
        self._by_end = sorted(self.members, key=lambda each: each[0][-1])
        self._gappy = [each for each in self.members if len(each[0]) > 2]

    def disjoint(self, values: Values) -> frozenset[int]:
        """Return the numbers of the sets that have no value in common with another."""
        beyond = bisect_left(self._by_start, values[-1], key=lambda each: each[0][0])
        before = bisect_right(self._by_end, values[0], key=lambda each: each[0][-1])
        found = {number for _, number in self._by_start[beyond:]}
        found.update(number for _, number in self._by_end[:before])
        suspects = self.members if len(values) > 2 else self._gappy
        found.update(number for other, number in suspects if number not in found and is_disjoint(other, values))
        return frozenset(found)
