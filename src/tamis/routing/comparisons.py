"""What was found out about filters, and need not be found out again?

The links of a broker see nearly the same filters, and so do the brokers of a network that is simulated in one process.
`Comparisons` is what they share: a pool of all the filters that some neighbour knows, an index of them, and a memory of
the latest candidates and comparisons. A question that one link asked costs the next one little more than its answer.

It is a memory, nothing more: with it or without, every answer is the same. A strategy has one, and whoever gives one
strategy to several brokers shares it among them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tamis.relations.forms import context_of
from tamis.relations.relations import covers_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.relations.covering_index import CoveringIndex

_FEW = 32
"""So many filters are compared pair by pair; for more there is an index."""
_PAIRS = 1 << 16
_ANSWERS = 1 << 13
_MEMBERS = 1 << 22
"""How many pairs are remembered, how many answers, and how many filters in answers altogether."""


class Comparisons:
    """Filters that are told on some link, by number, and how they relate to others.

    >>> import tamis
    >>> comparisons = Comparisons()
    >>> cheap, cheaper = map(tamis.parse, ("price < 20", "price < 10"))
    >>> number = comparisons.enter(cheap)
    >>> number in comparisons.around(cheaper), comparisons.is_covered(cheaper, cheap)
    (True, True)
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema
        self.context = context_of(schema)
        self.is_covered: Callable[[Expression, Expression], bool] = lru_cache(_PAIRS)(self._is_covered)
        """Does the second filter match every event that the first matches, as far as that can be proven?"""
        self._numbers: dict[Expression, int] = {}
        self._told: dict[int, Expression] = {}
        self._told_counts: dict[int, int] = {}
        self._next = 0
        self._index: CoveringIndex | None = None
        self._around, self._inside = _Answers(), _Answers()

    def formula(self, expression: Expression) -> Hashable:
        """Return what is equal for filters that are seen to match the same."""
        return self.context.form(expression).formula

    def _is_covered(self, special: Expression, general: Expression) -> bool:
        form = self.context.form
        return special is general or covers_forms(form(general), form(special)).holds

    # -- The pool

    def enter(self, expression: Expression) -> int:
        """Take note that a filter is told on a link, or on one more; return its number."""
        number = self._numbers.get(expression)
        if number is None:
            number = self._numbers[expression] = self._next
            self._next += 1
            self._told[number] = expression
            self._told_counts[number] = 0
            if self._index is not None:
                self._index.add(number, expression)
            elif len(self._told) > _FEW:
                from tamis.relations.covering_index import CoveringIndex  # compiled, and many brokers need it never

                self._index = CoveringIndex(self.schema, context=self.context)
                for each, filter_ in self._told.items():
                    self._index.add(each, filter_)
        self._told_counts[number] += 1
        return number

    def leave(self, number: int) -> None:
        """Take note that a filter is no longer told on a link."""
        self._told_counts[number] -= 1
        if not self._told_counts[number]:
            del self._told_counts[number], self._numbers[self._told.pop(number)]
            if self._index is not None:
                self._index.remove(number)

    # -- Questions

    def around(self, expression: Expression) -> set[int]:
        """Return the numbers of all filters that cover one, and perhaps of others; of some that are told no more, too.

        Whoever asks compares those that it has a use for: a link wants one of them, and there may be thousands.
        """
        found, since = self._around.known(expression, self._next)
        if found is None:
            found = set(self._told if self._index is None else self._index.candidates_around(expression))
            self._around.remember(expression, found, self._next)
        self._around.grow(found, since)
        return found

    def inside(self, expression: Expression) -> set[int]:
        """Return the numbers of all filters that one covers, and perhaps of others, likewise."""
        found, since = self._inside.known(expression, self._next)
        if found is None:
            found = set(self._told if self._index is None else self._index.candidates_inside(expression))
            self._inside.remember(expression, found, self._next)
        self._inside.grow(found, since)
        return found


class _Answers:
    """The latest answers to one question, and up to which number each of them holds."""

    def __init__(self) -> None:
        self._answers: dict[Expression, tuple[set[int], int]] = {}
        self._member_count = 0

    def known(self, expression: Expression, next_number: int) -> tuple[set[int] | None, range]:
        """Return an answer, and the numbers that came since; no answer if there is none, or too many came."""
        answer = self._answers.pop(expression, None)
        if answer is None:
            return None, range(0)
        found, held_to = answer
        if next_number - held_to > _FEW:
            self._member_count -= len(found)
            return None, range(0)
        self._answers[expression] = found, next_number  # the latest is the last
        return found, range(held_to, next_number)

    def remember(self, expression: Expression, found: set[int], next_number: int) -> None:
        """Keep an answer, and forget the oldest ones if there are too many."""
        self._answers[expression] = found, next_number
        self._member_count += len(found)
        while len(self._answers) > _ANSWERS or (self._member_count > _MEMBERS and len(self._answers) > 1):
            oldest = next(iter(self._answers))
            self._member_count -= len(self._answers.pop(oldest)[0])

    def grow(self, found: set[int], numbers: Iterable[int]) -> None:
        """Add numbers to an answer."""
        count = len(found)
        found.update(numbers)
        self._member_count += len(found) - count
