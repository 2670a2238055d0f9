r"""Where does a value lie among all values?

All values stand on one line: NULL, then Booleans, doubles, exact numbers, texts, times, arrays and records. Each of
these is a *rank*. A *cut* is a place on the line just before a value, written as (rank, key), and as (rank,) before
the first value of a rank. Every comparison with an operand is then a stretch of the line between two cuts.

Every rank is discrete: each value has a next one. After the text 'a' comes 'a\0', after the double 1.0 the next
double, after the integer 5 the next number of 38 digits. So "after 5" is a cut before an actual value, two different
cuts always have a value between them, and equal sets have equal cuts. Nothing rests on approximation, and the value
behind a cut is an example of what lies there.

Numbers need two ranks. Beside a double operand every number becomes a double first, beside an exact operand only the
event's doubles do. One operand therefore cuts the rank of the doubles at one place and the rank of the exact
numbers at another; beyond 2**53, where an event's double equals several integers at once, this is what keeps the
answers right.
"""

from __future__ import annotations

import datetime as dt
import re
import struct
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isnan, nextafter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tamis.language.values import DIGITS, EXACT, GREATEST_INTEGER, LEAST_INTEGER, instant, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

Cut: TypeAlias = tuple[Any, ...]

NULL, BOOLEAN, DOUBLE, NUMBER, TEXT, TIME, ARRAY, RECORD, END = range(9)

_UNIT = int(10**DIGITS)  # keys of exact numbers are whole: so many to the unit
_GREATEST_NUMBER, _BEYOND_NUMBERS = (_UNIT - 1) * _UNIT, _UNIT * _UNIT
_INFINITY = int(struct.unpack("<q", struct.pack("<d", float("inf")))[0])
_NAN: Final = _INFINITY + 1
_EPOCH = dt.datetime(1, 1, 1)
_MICRO = dt.timedelta(microseconds=1)
_DAY = 86_400_000_000
_LAST_MICRO = (dt.datetime.max - _EPOCH) // _MICRO
_LAST_DAY = _LAST_MICRO // _DAY * _DAY

Place: TypeAlias = tuple[Cut, Cut, Cut, Cut]
"""An operand on a rank: the rank's start, the cut before what equals the operand, the cut after it, the rank's end."""

_RANKS_OF_LINES: dict[str, dict[str, tuple[int, ...]]] = {
    "any": {"boolean": (BOOLEAN,), "number": (DOUBLE, NUMBER), "string": (TEXT,), "time": (TIME,)},
    "number": {"number": (DOUBLE, NUMBER)},
    "int": {"number": (NUMBER,)},
    "double": {"number": (DOUBLE,)},
    "decimal": {"number": (NUMBER,)},
    "string": {"string": (TEXT,)},
    "bool": {"boolean": (BOOLEAN,)},
    "timestamp": {"time": (TIME,)},
    "date": {"time": (TIME,)},
}
"""For each type of term, the ranks on which operands of a kind have a place; "any" is a term of unknown type."""


def ranks_of(kind: str, line: str) -> tuple[int, ...]:
    """Return the ranks of a line on which operands of a kind have a place.

    >>> ranks_of("number", "any") == (DOUBLE, NUMBER), ranks_of("string", "int")
    (True, ())
    """
    return _RANKS_OF_LINES.get(line, {}).get(kind, ())


@lru_cache(maxsize=1 << 16, typed=True)
def places(operand: Any, line: str) -> tuple[Place, ...]:
    r"""Return where an operand lies, on each rank of a line whose values compare with it.

    >>> places("b", "string")
    (((4,), (4, 'b'), (4, 'b\x00'), (5,)),)
    >>> places(2.5, "int") == places(2.7, "int")   # whole numbers are below both, or above both
    True
    """
    return tuple([_place(operand, rank, line) for rank in ranks_of(kind_of(operand), line)])


def _place(operand: Any, rank: int, line: str) -> Place:
    before, after = _keys(operand, rank, line)
    return _STARTS[rank], _cut(rank, before, line), _cut(rank, after, line), _STARTS[rank + 1]


_STARTS: tuple[Cut, ...] = tuple((rank,) for rank in range(END + 1))


def whole_cuts(numbers: Iterable[int]) -> tuple[Cut, ...]:
    """Return the cuts around some integers among all values, as their places together have them, in one pass.

    >>> whole_cuts([5])[:2] == places(5, "any")[0][1:3], whole_cuts([5])[2:] == places(5, "any")[1][1:3]
    (True, True)
    """
    import numpy as np  # only long lists need it, and who writes a filter need not wait until it is loaded

    in_order = sorted(set(numbers))
    assert max(-in_order[0], in_order[-1]) <= 2**53, "each has a double of its own"
    bits = np.array(in_order, np.float64).view(np.int64)
    ordinals = np.where(bits >= 0, bits, -(bits & np.int64(0x7FFF_FFFF_FFFF_FFFF))).tolist()
    cuts: list[Cut] = []
    for ordinal in ordinals:
        if cuts and cuts[-1][1] == ordinal:  # beyond 2**52 integers are neighbours among the doubles
            cuts[-1] = (DOUBLE, ordinal + 1)
        else:
            cuts += ((DOUBLE, ordinal), (DOUBLE, ordinal + 1))
    for number in in_order:
        key = number * _UNIT
        cuts += ((NUMBER, key), (NUMBER, _after(key, "any")))
    return tuple(cuts)


def _keys(operand: Any, rank: int, line: str) -> tuple[Any, Any]:
    """Return the keys of the least value that is not below the operand, and of the least that is above it."""
    if rank == TEXT:
        return _text_keys(operand)
    if rank == BOOLEAN:
        return int(operand), operand + 1
    if rank == TIME:
        micros = (instant(operand) - _EPOCH) // _MICRO
        return (_up_to(micros, _DAY), _up_to(micros + 1, _DAY)) if line == "date" else (micros, micros + 1)
    if rank == DOUBLE:
        ordinal = double_key(_double(operand))
        return ordinal, ordinal + 1
    if isinstance(operand, float):
        return (_exact_from(operand, line), _exact_from(_next_double(operand), line))
    if isinstance(operand, int) and -_UNIT < operand < _UNIT:  # the common case: every such integer is on the grid
        before = operand * _UNIT
        return before, _after(before, line)
    position = Fraction(operand) * _UNIT if isinstance(operand, Decimal) else operand * _UNIT
    before = _on_grid(position, line)
    return before, (_after(before, line) if before == position else before)


def _cut(rank: int, key: Any, line: str) -> Cut:
    """Return the cut before a key, in the one form that it has: rank starts and ends have no key."""
    if rank == TEXT:
        return (rank, key) if key else _STARTS[rank]
    first, last = _EXTENTS.get((rank, line)) or _EXTENTS[rank, "any"]
    return _STARTS[rank] if key <= first else _STARTS[rank + 1] if key > last else (rank, key)


_EXTENTS: dict[tuple[int, str], tuple[Any, Any]] = {
    (BOOLEAN, "any"): (0, 1),
    (DOUBLE, "any"): (-_INFINITY, _NAN),
    (NUMBER, "any"): (-_GREATEST_NUMBER, _GREATEST_NUMBER),
    (NUMBER, "int"): (LEAST_INTEGER * _UNIT, GREATEST_INTEGER * _UNIT),
    (TIME, "any"): (0, _LAST_MICRO),
    (TIME, "date"): (0, _LAST_DAY),
}
"""The first and the last key of a rank."""


# -- Texts


def _text_keys(operand: str) -> tuple[str, str]:
    surrogate = None if operand.isascii() else _SURROGATE.search(operand)
    if surrogate is not None:  # no event's text has half a pair; the next that it could have comes after all of them
        above = operand[: surrogate.start()] + "\ue000"
        return above, above
    return operand, operand + "\0"


_SURROGATE = re.compile("[\ud800-\udfff]")


def prefix_cuts(prefix: str) -> tuple[Cut, Cut]:
    """Return the cuts around all texts that start so.

    >>> prefix_cuts("ab")
    ((4, 'ab'), (4, 'ac'))
    """
    for index in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[index]) + 1
        if point <= 0x10FFFF:
            above = prefix[:index] + chr(0xE000 if 0xD800 <= point <= 0xDFFF else point)
            return (TEXT, prefix), (TEXT, above)
    return ((TEXT, prefix) if prefix else (TEXT,)), (TIME,)


# -- Doubles


def double_key(number: float) -> int:
    """Return the ordinal of a double: consecutive doubles have consecutive ordinals, and NaN comes last."""
    if isnan(number):
        return _NAN
    bits = int(struct.unpack("<q", struct.pack("<d", number))[0])
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _double_at(key: int) -> float:
    if key >= _NAN:
        return float("nan")
    bits = key if key >= 0 else (-key) | (1 << 63)
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def as_double(key: int) -> float:
    """Return the double of an exact number, given by its key."""
    return key / _UNIT


def _double(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


def _next_double(number: float) -> float:
    return float("nan") if number == float("inf") or isnan(number) else nextafter(number, float("inf"))


# -- Exact numbers: 38 digits, of which as many stand after the point as fit beside those before it


def _exact_from(least: float, line: str) -> int:
    """Return the key of the least exact number whose double is not below this one."""
    if isnan(least) or least > float(_UNIT):
        return _BEYOND_NUMBERS
    if least <= -float(_UNIT):
        return -_GREATEST_NUMBER
    # Numbers above the middle between two doubles become the upper one, the middle itself the even one.
    middle = (Fraction(nextafter(least, float("-inf"))) + Fraction(least)) / 2
    key = _on_grid(middle * _UNIT, line)
    return key if float(exact_at(key)) >= least else _after(key, line)


def _on_grid(position: Fraction | int, line: str) -> int:
    """Return the least key of a number that is not below a position."""
    if line == "int":
        return _up_to(position, _UNIT)
    if position >= 0:
        whole = -(-position // 1)
        return _up_to(whole, _step(whole))
    whole = -position // 1
    return -(whole // _step(whole) * _step(whole))


def _after(key: int, line: str) -> int:
    """Return the key of the next number."""
    if line == "int":
        return key + _UNIT
    if key >= 0:
        return key + _step(key)
    step = _step(-key)
    # The numbers just below a power of ten lie ten times as close as those from it on.
    return key + (step // 10 if step > 1 and -key == step * _UNIT // 10 else step)


def _step(key: int) -> int:
    """Return how far apart the numbers lie around a key that is not negative: one more digit before, one less after."""
    units = key // _UNIT
    digits = len(str(units))
    return (_POWERS[digits] if digits < len(_POWERS) else int(10**digits)) if units else 1


_POWERS = [int(10**digits) for digits in range(2 * DIGITS)]
"""Those of ten that are asked for all the time; operands may be longer than any number of an event."""


def _up_to(number: Any, step: int) -> int:
    return int(-(-number // step) * step)


def exact_at(key: int) -> int | Decimal:
    """Return the exact number with a key: an integer if it is one."""
    whole, rest = divmod(key, _UNIT)
    if not rest and LEAST_INTEGER <= whole <= GREATEST_INTEGER:
        return whole
    return EXACT.scaleb(Decimal(key), -DIGITS).normalize(EXACT)


def cut_at(value: Any, line: str = "any") -> Cut:
    """Return the cut before a value of an event: the value lies just behind it.

    >>> cut_at(None), cut_at("b"), cut_at(1.0) == cut_at(1)
    ((0,), (4, 'b'), False)
    """
    rank = _RANKS_OF_VALUES.get(kind_of(value), RECORD)
    if rank in (NULL, ARRAY, RECORD):
        return (rank,)
    if rank == NUMBER and isinstance(value, float):
        rank = DOUBLE
    return _cut(rank, _keys(value, rank, line)[0], line)


_RANKS_OF_VALUES = {"null": NULL, "boolean": BOOLEAN, "number": NUMBER, "string": TEXT, "time": TIME, "array": ARRAY}


# -- Back to values


def first_value(low: Cut, high: Cut, line: str = "any") -> Any:
    """Return the first value between two cuts.

    >>> first_value((TEXT, "b"), (TEXT, "c")), first_value((NULL,), (END,)) is None
    ('b', True)
    """
    rank = low[0]
    if len(low) > 1:
        key = low[1]
    elif rank == TEXT:
        key = ""
    elif rank in (NULL, ARRAY, RECORD):
        return {NULL: None, ARRAY: [], RECORD: {}}[rank]
    else:
        key = (_EXTENTS.get((rank, line)) or _EXTENTS[rank, "any"])[0]
    return _value_at(rank, key, line)


def last_value(low: Cut, high: Cut, line: str = "any") -> Any:
    """Return the last value between two cuts on one rank, or one of the last where there is no last text."""
    rank = low[0]
    if len(high) == 1:
        if rank in (NULL, ARRAY, RECORD):
            return first_value(low, high, line)
        if rank == TEXT:
            return max("\U0010ffff" * 4, first_value(low, high, line))
        return _value_at(rank, (_EXTENTS.get((rank, line)) or _EXTENTS[rank, "any"])[1], line)
    if rank == TEXT:
        return _text_before(low[1] if len(low) > 1 else "", high[1])
    return _value_at(rank, _key_before(rank, high[1], line), line)


def _text_before(low: str, high: str) -> str:
    if high.endswith("\0"):
        return high[:-1]
    # Between a text and the next of its length lie all its continuations, of which none is the last.
    point = ord(high[-1]) - 1
    near = high[:-1] + chr(0xD7FF if 0xD800 <= point <= 0xDFFF else point) + "\U0010ffff"
    return max(near, low)


def _key_before(rank: int, key: int, line: str) -> int:
    if rank == NUMBER:
        return -_after(-key, line) if line != "int" else key - _UNIT
    return key - (_DAY if line == "date" else 1)


def _value_at(rank: int, key: Any, line: str) -> Any:
    if rank == TEXT:
        return key
    if rank == BOOLEAN:
        return bool(key)
    if rank == DOUBLE:
        return _double_at(key)
    if rank == NUMBER:
        return Decimal(exact_at(key)) if line == "decimal" else exact_at(key)
    moment = _EPOCH + key * _MICRO
    return moment.date() if line == "date" else moment


def next_cut(cut: Cut, line: str = "any") -> Cut:
    """Return the cut behind the value that stands at a cut: between the two there is just that value."""
    rank = cut[0]
    if rank == TEXT:
        return (TEXT, cut[1] + "\0") if len(cut) > 1 else (TEXT, "\0")
    if rank in (NULL, ARRAY, RECORD):
        return (rank + 1,)
    key = cut[1] if len(cut) > 1 else (_EXTENTS.get((rank, line)) or _EXTENTS[rank, "any"])[0]
    step = _after(key, line) if rank == NUMBER else key + (_DAY if line == "date" else 1)
    return _cut(rank, step, line)
