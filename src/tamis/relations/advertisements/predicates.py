"""Which of many predicates are disjoint to one?

The predicates of many filters have numbers. The values of each term that they take are kept in order of where they
begin and of where they end, so that those beyond or before another set are found by a search in a sorted list.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from tamis.language.expressions import Test
from tamis.language.ranges.value_sets import is_disjoint
from tamis.relations.advertisements.disjoint import Effort, facts_clash, facts_of
from tamis.relations.confinement import skeleton_of

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.ranges.value_sets import Values
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Context, Form
    from tamis.relations.formulas import Fact, Formula

_MOST_REMEMBERED = 1 << 18
"""So many numbers of disjoint predicates are remembered, of all that was asked."""


class Predicates:
    """The predicates of many filters, by number, and which of them are disjoint to another.

    After the last `number` and before the first `disjoint`, they are put in order by `sort`.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._numbers: dict[Expression, int] = {}
        self._lines: dict[TermAxis, _TermSets] = {}
        self._facts: dict[Expression, list[tuple[int, Fact]]] = {}
        self._known: dict[Formula, frozenset[int]] = {}
        self._known_count = 0
        self.never: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, predicate: Expression) -> int:
        """Return the number of a predicate, a new one if it was not seen before."""
        number = self._numbers.get(predicate)
        if number is not None:
            return number
        number = self._numbers[predicate] = len(self._numbers)
        form = self._context.form(predicate)
        if form.is_never:
            self.never |= {number}
            return number
        for axis, values in form.hull.items():
            if values:
                self._lines.setdefault(axis, _TermSets()).members.append((values, number))
            else:
                self.never |= {number}
        for fact in facts_of(form.formula):
            self._facts.setdefault(_kin(fact.predicate), []).append((number, fact))
        return number

    @property
    def expressions(self) -> list[Expression]:
        """The predicates, in the order of their numbers."""
        return list(self._numbers)

    def sort(self) -> None:
        """Put all lines in order."""
        for line in self._lines.values():
            line.sort()

    def disjoint(self, predicate: Expression, effort: Effort | None = None) -> frozenset[int]:
        """Return the numbers of the predicates that are disjoint to another; none once the effort is spent."""
        effort = effort or Effort(len(self._numbers))
        if effort.left <= 0:
            return frozenset()
        form = self._context.form(predicate)
        numbers = self._known.get(form.formula)
        if numbers is None:
            numbers = self._disjoint(form, effort)
            self._known_count += len(numbers) + 1
            if self._known_count > _MOST_REMEMBERED:
                self._known.clear()
                self._known_count = len(numbers) + 1
            self._known[form.formula] = numbers
        effort.left -= len(numbers) + 1
        return numbers

    def _disjoint(self, form: Form, effort: Effort) -> frozenset[int]:
        if form.is_never:
            return frozenset(range(len(self._numbers)))
        hull = form.hull
        if not all(hull.values()):
            return frozenset(range(len(self._numbers)))
        numbers = set(self.never)
        for axis, values in hull.items():
            line = self._lines.get(axis)
            if line is not None:
                numbers |= line.disjoint(values, effort)
        for fact in facts_of(form.formula):
            rivals = self._facts.get(_kin(fact.predicate), ())
            effort.left -= len(rivals)
            numbers.update(number for number, other in rivals if facts_clash(fact, other))
        return frozenset(numbers)


def _kin(predicate: Expression) -> Expression:
    """Return what a call has in common with others that its function may exclude; of other predicates, themselves."""
    return skeleton_of(predicate) if isinstance(predicate, Test) else predicate


class _TermSets:
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

    def disjoint(self, values: Values, effort: Effort) -> frozenset[int]:
        """Return the numbers of the sets that have no value in common with another."""
        beyond = bisect_left(self._by_start, values[-1], key=lambda each: each[0][0])
        before = bisect_right(self._by_end, values[0], key=lambda each: each[0][-1])
        numbers = {number for _, number in self._by_start[beyond:]}
        numbers.update(number for _, number in self._by_end[:before])
        suspects = self.members if len(values) > 2 else self._gappy
        effort.left -= len(suspects)
        numbers.update(number for other, number in suspects if number not in numbers and is_disjoint(other, values))
        return frozenset(numbers)
