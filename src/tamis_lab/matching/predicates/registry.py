"""Which predicates are there, and who uses them?

Equal predicates of different subscriptions are one, known by a *number*; a number is given back when nobody uses it any
more, and given out again. `PredicateRegistry` keeps the numbers and counts
the users; its *view* is an immutable index that tells, for an event or a batch, the numbers that are fulfilled.

    predicates   a = 1  b < 5  c LIKE ...      add and release, one at a time
                   0      1      2
    levels       [ 0 1 2 3 4 5 6 7 8 ] [ 9 10 ] [ 11 ]      each an index of its own, never changed

An index in sorted arrays cannot grow. So new predicates become a small *level* when somebody next looks, and a level
is merged with its neighbour as soon as that is less than four times as large: each predicate is laid out a logarithm
of times, and there are a logarithm of levels. A predicate without users stays where it is, found for nobody, until a
quarter of all are dead. Only then its number is free: a number must not mean two predicates in one view.

Source: Bittner 2008, sections 4.2.1, 4.2.3 and 4.4 (docs/bibliography.md).
Departs: levels instead of one ordered map per attribute and function, because a sorted array is the fastest index
  that compiled code can read while others register.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

from tamis_lab.matching.predicates.levels import Level
from tamis_lab.matching.predicates.spelling import spelled
from tamis_lab.matching.predicates.view import PredicateView

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema

_RATIO = 4
"""Neighbouring levels are merged where the older is not so many times as large."""
_LEVEL_KEPT = 64
"""Levels of so few are always merged, and so few dead predicates are left where they are."""
_MOST_ALIASES = 1 << 14


class PredicateRegistry:
    """Distinct predicates, by numbers, with how many use each.

    >>> from tamis.language import parse
    >>> predicates = PredicateRegistry()
    >>> [predicates.add(parse(text)) for text in ("price < 20", "bids = 0", "20 > price", "NOT price >= 20")]
    [0, 1, 0, 0]
    >>> predicates.view().fulfilled_by({"price": 12, "bids": 3}).tolist()
    [0]
    >>> for _ in range(3):
    ...     predicates.release(0)
    >>> len(predicates), predicates.users(1)
    (1, 1)
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self._schema = schema
        self._numbers: dict[Expression, int] = {}
        self._aliases: dict[Expression, int] = {}
        """Other spellings of predicates that were met lately."""
        self._predicates: list[Expression | None] = []
        self._users: list[int] = []
        self._free: list[int] = []
        self._dead = 0
        """How many numbers have no user and are not free yet."""
        self._new: list[int] = []
        """Numbers that are in no level yet."""
        self._levels: list[Level] = []
        self._view: PredicateView | None = None

    def __len__(self) -> int:
        """How many predicates have users."""
        return len(self._numbers) - self._dead

    @property
    def number_count(self) -> int:
        """All numbers are less: the size of an array with an entry for each predicate."""
        return len(self._predicates)

    def users(self, number: int) -> int:
        """Return how many use a predicate."""
        return self._users[number]

    def predicate(self, number: int) -> Expression:
        """Return the predicate of a number."""
        registered = self._predicates[number]
        assert registered is not None, f"{number} is not a predicate's number"
        return registered

    # -- Registration

    def add(self, predicate: Expression) -> int:
        """Return the number of a predicate, and count one more user.

        A predicate is what `nnf` leaves of a condition below AND, OR and the like: no connective but NOT, no constant.
        """
        number = self._numbers.get(predicate)
        if number is None:
            number = self._aliases.get(predicate)
            if number is None:
                number = self._numbered(predicate)
        if not self._users[number]:
            self._dead -= 1
        self._users[number] += 1
        return number

    def add_all(self, predicates: Iterable[Expression]) -> list[int]:
        """Return the numbers of some predicates, and count one more user for each."""
        known, users = self._numbers, self._users
        numbers = []
        for predicate in predicates:
            number = known.get(predicate)
            if number is None or not users[number]:
                numbers.append(self.add(predicate))
            else:
                users[number] += 1
                numbers.append(number)
        return numbers

    def release(self, number: int) -> None:
        """Count one user less."""
        assert self._users[number] > 0, f"predicate {number} has no users"
        self._users[number] -= 1
        if not self._users[number]:
            self._dead += 1

    def release_all(self, numbers: Iterable[int]) -> None:
        """Count one user less for each of some predicates."""
        for number in numbers:
            self.release(number)

    def _numbered(self, predicate: Expression) -> int:
        spelling = spelled(predicate)
        if spelling == predicate:
            spelling = predicate  # which the parser will give out again, and identity is quickly seen
        number = self._numbers.get(spelling)
        if number is None:
            if self._free:
                number = self._free.pop()
                self._predicates[number] = spelling
            else:
                number = len(self._predicates)
                self._predicates.append(spelling)
                self._users.append(0)
            self._numbers[spelling] = number
            self._new.append(number)
            self._dead += 1  # nobody uses it yet
        if spelling is not predicate:
            if len(self._aliases) >= _MOST_ALIASES:
                self._aliases.clear()
            self._aliases[predicate] = number
        return number

    # -- Levels

    def view(self) -> PredicateView:
        """Return an index of the present predicates; it stays what it is, whatever is added and released later."""
        is_stale = self._view is None or bool(self._new)
        if self._dead > max(_LEVEL_KEPT, len(self) // 3):
            self._bury()
            is_stale = True
        if is_stale:
            self._open_levels()
            self._view = PredicateView(tuple(self._levels), self.number_count, self._schema)
        assert self._view is not None
        return self._view

    def _open_levels(self) -> None:
        """Make a level of what is new, together with the levels before it that are not much larger."""
        if not self._new:
            return
        size = len(self._new)
        first = len(self._levels)
        while first > 0 and len(self._levels[first - 1]) < max(_RATIO * size, _LEVEL_KEPT):
            first -= 1
            size += len(self._levels[first])
        merged = [number for level in self._levels[first:] for number in level.numbers.tolist()]
        self._levels[first:] = [self._level(merged + self._new)]
        self._new = []

    def _level(self, numbers: list[int]) -> Level:
        return Level([self.predicate(number) for number in numbers], numbers)

    def _bury(self) -> None:
        """Give back the numbers that nobody uses."""
        users = np.array(self._users, np.int64)
        for place, level in enumerate(self._levels):
            is_used = users[level.numbers] > 0
            if not is_used.all():
                self._levels[place] = self._level(level.numbers[is_used].tolist())
        self._levels = [level for level in self._levels if len(level)]
        self._new = [number for number in self._new if self._users[number]]
        gone = [number for number in self._numbers.values() if not self._users[number]]
        self._numbers = {predicate: number for predicate, number in self._numbers.items() if self._users[number]}
        for number in gone:
            self._predicates[number] = None
        self._free += gone
        self._free.sort(reverse=True)  # the least is given out first
        self._aliases.clear()
        self._dead = 0

    # -- Told to others

    def memory(self) -> int:
        """Return how many bytes it takes, roughly; the expressions are not counted, they share their parts."""
        own = sum(map(sys.getsizeof, (self._numbers, self._predicates, self._users, self._aliases)))
        return own + sum(level.memory() for level in self._levels)
