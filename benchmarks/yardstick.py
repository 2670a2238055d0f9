"""What must a matcher beat to be worth having?

A table of all subscriptions in numpy, read once for every event: for each attribute the lowest and the highest value
that a subscription allows, or a word of bits, one for each value that it allows. Anybody could write it instead of
using an index, and it is faster than most indexes, because nothing in it branches. It is not a straw man: bounds take
the narrowest type, and nothing is allocated while matching.

More can be gained for some sets of subscriptions. The *lean* yardstick leaves out the attributes that nobody asks for,
and keeps bounds where an attribute of few values is never asked for with a set. And a word of 64 bits is read for the
sake of one; cut into slices of 8 bits, of which an event needs one, it takes an eighth of the traffic: that is
`sliced()`. Both are reported too, because they flatter us less.

A subscription with OR has a row for each conjunction of its disjunctive form, and is counted once.
"""

from __future__ import annotations

from copy import copy
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

import tamis
from tamis.language.expressions import And, Attribute, Between, Compare, In, Literal, Or

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.language.expressions import Expression

Codes: TypeAlias = "tuple[Any, ...]"
"""An event as the yardstick sees it: a number for each attribute that is asked for."""

_BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "=": (0, 0),
    "<": (None, -1),
    "<=": (None, 0),
    ">": (1, None),
    ">=": (0, None),
}
"""How far the bounds of a comparison lie from its operand."""


class Yardstick:
    """All subscriptions in columns, for one event at a time.

    >>> yardstick = Yardstick(["price BETWEEN 5 AND 9", "price < 7 AND format IN ('hardcover', 'audio')"])
    >>> codes, = yardstick.encoded([{"price": 6, "format": "audio"}])
    >>> yardstick.match(codes).tolist(), yardstick.count(codes)
    ([0, 1], 2)
    """

    def __init__(
        self, subscriptions: Iterable[str | Expression], ranged: Iterable[str] = (), masked: Iterable[str] = ()
    ) -> None:
        """Lay subscriptions out; `ranged` and `masked` attributes have columns whether anybody asks for them or not."""
        ranges: dict[str, list[tuple[int, int | None, int | None]]] = {name: [] for name in ranged}
        sets: dict[str, list[tuple[int, tuple[Any, ...]]]] = {name: [] for name in masked}
        owners: list[int] = []
        for owner, subscription in enumerate(subscriptions):
            expression = tamis.parse(subscription) if isinstance(subscription, str) else subscription
            for conjunction in conjunctions(expression):
                for predicate in conjunction:
                    name, allowed = _allowed(predicate)
                    if name in sets and not isinstance(allowed, set) and allowed[0] == allowed[1] is not None:
                        allowed = {allowed[0]}
                    if isinstance(allowed, set):
                        sets.setdefault(name, []).append((len(owners), tuple(allowed)))
                    else:
                        ranges.setdefault(name, []).append((len(owners), *allowed))
                owners.append(owner)
        self._owners = np.array(owners, np.int64)
        self._is_one_to_one = len(owners) == (owners[-1] + 1 if owners else 0)
        self._ranges = {name: _Range(found, len(owners)) for name, found in ranges.items()}
        self._masks = {name: _Mask(*_masks(found, len(owners))) for name, found in sets.items()}
        self._is_alive = np.empty(len(owners), np.bool_)
        self._is_allowed = np.empty(len(owners), np.bool_)
        self._bits = np.empty(len(owners), np.uint64)

    def sliced(self) -> Yardstick:
        """Return the same subscriptions with masks in slices of 8 bits."""
        other = copy(self)
        other._masks = {name: _Mask(mask.masks, mask.numbers, 8) for name, mask in self._masks.items()}
        other._bits = np.empty(len(self._owners), np.uint8)
        return other

    def encoded(self, events: Sequence[Mapping[str, Any]]) -> list[Codes]:
        """Turn events into numbers. The clock need not run: the yardstick gets its events ready-made."""
        columns = [[range_.code(event.get(name)) for event in events] for name, range_ in self._ranges.items()]
        columns += [[mask.code(event.get(name)) for event in events] for name, mask in self._masks.items()]
        return list(zip(*columns, strict=True)) if columns else [()] * len(events)

    def count(self, codes: Codes) -> int:
        """Return how many subscriptions match."""
        self._read(codes)
        if self._is_one_to_one:
            return int(np.count_nonzero(self._is_alive))
        return len(self._distinct_owners())

    def match(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Return the positions of the subscriptions that match."""
        self._read(codes)
        return self._distinct_owners()

    def _read(self, codes: Codes) -> None:
        alive, allowed, bits = self._is_alive, self._is_allowed, self._bits
        alive.fill(True)
        at = iter(codes)
        for range_ in self._ranges.values():
            code = next(at)
            np.less_equal(range_.lows, code, out=allowed)
            np.logical_and(alive, allowed, out=alive)
            np.greater_equal(range_.highs, code, out=allowed)
            np.logical_and(alive, allowed, out=alive)
        for mask in self._masks.values():
            slice_, bit = next(at)
            np.bitwise_and(mask.slices[slice_], bit, out=bits)
            np.not_equal(bits, mask.zero, out=allowed)
            np.logical_and(alive, allowed, out=alive)

    def _distinct_owners(self) -> npt.NDArray[np.int64]:
        found = self._owners[np.flatnonzero(self._is_alive)]
        if self._is_one_to_one:
            return found
        is_new: npt.NDArray[np.bool_] = np.diff(found, prepend=-1) != 0  # the rows of one subscription are neighbours
        return found[is_new]


class _Range:
    """Bounds on integers, in the narrowest type. NULL is the least code of all: only who does not ask allows it."""

    def __init__(self, found: list[tuple[int, int | None, int | None]], row_count: int) -> None:
        bounds = [bound for _, low, high in found for bound in (low, high) if bound is not None]
        self.least, self.greatest = min(bounds, default=0) - 1, max(bounds, default=0) + 1
        self.type = np.int16 if self.least >= -(2**15) + 2 and self.greatest < 2**15 - 1 else np.int32
        limits = np.iinfo(self.type)
        if self.least < limits.min + 2 or self.greatest >= limits.max:
            raise ValueError("the yardstick knows integers of 32 bits only")
        self.null = self.type(limits.min)
        self.lows = np.full(row_count, limits.min, self.type)
        self.highs = np.full(row_count, limits.max, self.type)
        rows = np.array([row for row, _, _ in found], np.int64)
        lows = [limits.min + 1 if low is None else low for _, low, _ in found]
        highs = [limits.max if high is None else high for _, _, high in found]
        np.maximum.at(self.lows, rows, np.array(lows, self.type))
        np.minimum.at(self.highs, rows, np.array(highs, self.type))

    def code(self, value: Any) -> Any:
        if value is None:
            return self.null
        if type(value) is not int:
            raise ValueError(f"the yardstick compares integers, not {value!r}")
        return self.type(min(max(value, self.least), self.greatest))


class _Mask:
    """Sets of up to 63 values as bits. The last bit is for NULL and for values that nobody lists."""

    def __init__(self, masks: npt.NDArray[np.uint64], numbers: dict[Any, int], mask_bits: int = 64) -> None:
        self.masks, self.numbers, self.mask_bits = masks, numbers, mask_bits
        self.type = np.dtype(f"uint{mask_bits}").type
        self.zero = self.type(0)
        self.slices = [(masks >> np.uint64(first)).astype(self.type) for first in range(0, 64, mask_bits)]
        self.codes = {value: self._place(number) for value, number in numbers.items()}
        self.other = self._place(63)

    def _place(self, number: int) -> tuple[int, Any]:
        return number // self.mask_bits, self.type(1 << number % self.mask_bits)

    def code(self, value: Any) -> tuple[int, Any]:
        return self.codes.get(value, self.other)


def _masks(found: list[tuple[int, tuple[Any, ...]]], row_count: int) -> tuple[npt.NDArray[np.uint64], dict[Any, int]]:
    """Give each value a bit, and each row the bits that it allows: all of them where it does not ask."""
    numbers: dict[Any, int] = {}
    words = [sum(1 << numbers.setdefault(value, len(numbers)) for value in values) for _, values in found]
    if len(numbers) > 63:
        raise ValueError("the yardstick knows sets of up to 63 values only")
    masks = np.full(row_count, 2**64 - 1, np.uint64)
    np.bitwise_and.at(masks, np.array([row for row, _ in found], np.int64), np.array(words, np.uint64))
    return masks, numbers


def conjunctions(expression: Expression) -> list[tuple[Expression, ...]]:
    """Return the conjunctions of which one must hold.

    >>> [[str(each) for each in one] for one in conjunctions(tamis.parse("a = 1 AND (b = 2 OR c = 3)"))]
    [['a = 1', 'b = 2'], ['a = 1', 'c = 3']]
    """
    match expression:
        case Or(operands):
            return [each for operand in operands for each in conjunctions(operand)]
        case And(operands):
            return [sum(each, ()) for each in product(*map(conjunctions, operands))]
        case _:
            return [(expression,)]


def _allowed(predicate: Expression) -> tuple[str, Any]:
    """Return the attribute of a predicate, and what it allows: the least and the greatest number, or a set."""
    match predicate:
        case Compare("=", Attribute(path), Literal(str(value))):
            return ".".join(path), {value}
        case Compare(operator, Attribute(path), Literal(value)) if operator in _BOUNDS and type(value) is int:
            low, high = (None if offset is None else value + offset for offset in _BOUNDS[operator])
            return ".".join(path), (low, high)
        case Between(Attribute(path), Literal(low), Literal(high)) if type(low) is type(high) is int:
            return ".".join(path), (low, high)
        case In(Attribute(path), values) if {type(value) for value in values} == {str}:
            return ".".join(path), set(values)
    raise ValueError(f"the yardstick has no column for {predicate}")
