"""What is a value, and how do two values compare, add and divide? The data model, and three-valued comparison.

The rules are Spark SQL's in ANSI mode, with two differences that keep matching total. First, what
Spark refuses (a division by zero, an overflow) gives NULL here. Second, there are no casts between
text and anything else: a number beside a string compares as unknown.

Numbers have three types. Integers are 64 bits wide and exact, decimals have up to 38 digits and are
exact, doubles are IEEE. An integer beside a decimal stays exact; either beside a double becomes a double
first, as in Spark, so 9007199254740993 equals 9007199254740992D. NaN equals itself and is
greater than every other number, and 0.0 equals -0.0.

A Python value that belongs to no type of the language (bytes, a set, an integer of more than 38
digits, text with half a surrogate pair) counts as NULL: an event's values never raise.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_INTEGER, GREATEST_INTEGER = -(2**63), 2**63 - 1
DIGITS = 38
"""The most digits of a decimal, before and after the point together."""

_LARGEST = Decimal(10) ** DIGITS
EXACT = Context(prec=4 * DIGITS, Emin=-999_999, Emax=999_999)
"""Wide enough that no sum, product or remainder of two 38-digit decimals is rounded before we look.

Python's own default context rounds to 28 digits, so no decimal may be touched by a plain operator."""
_ROUNDED = Context(prec=DIGITS, rounding=ROUND_HALF_UP)


def value_of(raw: Any) -> Any:
    """Return the language's value for a Python value, None for NULL and for what is not a value.

    >>> value_of(2**63)
    Decimal('9223372036854775808')
    >>> value_of(b"bytes") is None
    True
    """
    kind = type(raw)
    if kind is str:
        return raw if raw.isascii() or _is_text(raw) else None
    if kind is float or kind is bool or raw is None:
        return raw
    if kind is int:
        return raw if LEAST_INTEGER <= raw <= GREATEST_INTEGER else _wide(raw)
    return _uncommon_value(raw)


def _uncommon_value(raw: Any) -> Any:
    if isinstance(raw, Decimal):
        return decimal_or_null(raw) if raw.is_finite() else None
    if isinstance(raw, dt.datetime):
        # Time zones end here: an instant is kept as UTC without a zone, as Arrow and Spark keep it.
        try:
            return raw if raw.tzinfo is None else raw.astimezone(dt.UTC).replace(tzinfo=None)
        except (OverflowError, ValueError):
            return None
    if isinstance(raw, dt.date | Mapping):
        return raw
    if isinstance(raw, list | tuple):
        return [value_of(element) for element in raw]
    if isinstance(raw, str | float | int):  # subclasses, such as enumerations
        base = next(base for base in (bool, int, float, str) if isinstance(raw, base))
        return value_of(base.__str__(raw) if base is str else base(raw))
    if hasattr(raw, "tolist"):  # numpy's scalars and arrays
        plain = raw.tolist()
        return value_of(plain) if type(plain) is not type(raw) else None
    return None


def _is_text(raw: str) -> bool:
    try:
        raw.encode()
    except UnicodeEncodeError:
        return False
    return True


def _wide(number: int) -> Decimal | None:
    return Decimal(number) if abs(number) < 10**DIGITS else None


def decimal_or_null(number: Decimal) -> Decimal | None:
    """Return the number as a decimal of at most 38 digits, or None where its integral part is larger.

    Excess digits after the point are rounded half up.
    """
    if not number:
        return Decimal(0)
    if number.copy_abs() >= _LARGEST:
        return None
    digits = number.as_tuple()
    if len(digits.digits) <= DIGITS and -DIGITS <= int(digits.exponent) <= 0:
        return number
    rounded = number.quantize(Decimal(1).scaleb(-_scale(number)), ROUND_HALF_UP, EXACT)
    return None if rounded.copy_abs() >= _LARGEST else rounded


def _scale(number: Decimal) -> int:
    """How many digits after the point fit beside the integral part."""
    integral = max(0, number.adjusted() + 1)
    return min(DIGITS - integral, max(0, -int(number.as_tuple().exponent)))


NUMBERS = (int, float, Decimal)


def is_number(value: Any) -> bool:
    """Is this an integer, a decimal or a double? A Boolean is none of them."""
    return isinstance(value, NUMBERS) and not isinstance(value, bool)


def kind_of(value: Any) -> str:
    """Name the kind of a value. Only values of one kind compare with one another.

    >>> [kind_of(value) for value in (1, 2.5, "a", True, None)]
    ['number', 'number', 'string', 'boolean', 'null']
    """
    if value is None:
        return "null"
    for types, kind in _KINDS:
        if isinstance(value, types):
            return kind
    return "record"


_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), "boolean"),
    ((int, float, Decimal), "number"),
    ((str,), "string"),
    ((dt.date,), "time"),
    ((list, tuple), "array"),
)


def compare(left: Any, right: Any) -> int | None:
    """Return -1, 0 or 1 for less, equal or greater, and None where the two do not compare.

    >>> compare(float("nan"), float("inf")), compare(1, "1")
    (1, None)
    """
    kind = kind_of(left)
    if kind != kind_of(right):
        return None
    if kind == "number":
        return _compare_numbers(left, right)
    if kind == "time":
        return _order(instant(left), instant(right))
    if kind in ("string", "boolean"):
        return _order(left, right)
    return None  # NULLs, arrays and records have no order


def _compare_numbers(left: Any, right: Any) -> int:
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return math.isnan(left) - math.isnan(right)
    return _order(left, right)


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def instant(value: dt.date) -> dt.datetime:
    """Return the instant of a date or timestamp: a date is its first moment, in UTC."""
    return value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)


# -- Arithmetic. Every function takes values and gives a value, NULL where there is none.


def add(left: Any, right: Any) -> Any:
    """Add; an overflow gives NULL.

    >>> add(1, 2.5), add(2**63 - 1, 1), add(1, "2")
    (3.5, None, None)
    """
    return _arithmetic(left, right, "add")


def subtract(left: Any, right: Any) -> Any:
    """Subtract; an overflow gives NULL."""
    return _arithmetic(left, right, "subtract")


def multiply(left: Any, right: Any) -> Any:
    """Multiply; an overflow gives NULL."""
    return _arithmetic(left, right, "multiply")


def _arithmetic(left: Any, right: Any, operation: str) -> Any:
    if not (is_number(left) and is_number(right)):
        return None
    if isinstance(left, float) or isinstance(right, float):
        one, two = float(left), float(right)
        match operation:
            case "add":
                return one + two
            case "subtract":
                return one - two
            case _:
                return one * two
    result = getattr(EXACT, operation)(Decimal(left), Decimal(right))
    return _integer_or_null(int(result)) if _integers(left, right) else decimal_or_null(result)


def divide(left: Any, right: Any) -> Any:
    """Divide; by zero gives NULL. Two integers give a double, as in Spark.

    >>> divide(7, 2), divide(Decimal(1), 3), divide(1, 0)
    (3.5, Decimal('0.33333333333333333333333333333333333333'), None)
    """
    if not (is_number(left) and is_number(right)) or right == 0:
        return None
    if _integers(left, right) or isinstance(left, float) or isinstance(right, float):
        return float(left) / float(right)
    return decimal_or_null(_ROUNDED.divide(Decimal(left), Decimal(right)))


def remainder(left: Any, right: Any) -> Any:
    """Return what remains of a division, with the sign of the dividend; by zero gives NULL.

    >>> remainder(-7, 3), remainder(7, -3)
    (-1, 1)
    """
    if not (is_number(left) and is_number(right)) or right == 0:
        return None
    if isinstance(left, float) or isinstance(right, float):
        one, two = float(left), float(right)
        return math.nan if math.isinf(one) or math.isnan(one) or math.isnan(two) else math.fmod(one, two)
    result = EXACT.remainder(Decimal(left), Decimal(right))
    return int(result) if _integers(left, right) else decimal_or_null(result)


def negate(value: Any) -> Any:
    """Turn the sign; the smallest integer has no opposite and gives NULL."""
    return subtract(0, value)


def absolute(value: Any) -> Any:
    """Drop the sign; the smallest integer has no opposite and gives NULL."""
    return negate(value) if compare(value, 0) == -1 else value if is_number(value) else None


def extreme(values: Iterable[Any], sign: int) -> Any:
    """Return the greatest (sign 1) or least (sign -1) value, NULLs left out, in the widest type among them.

    >>> extreme([1, None, 2.5], -1)
    1.0
    """
    present = [value for value in values if value is not None]
    best: Any = None
    for value in present:
        if best is None:
            if compare(value, value) is None:
                return None
            best = value
            continue
        order = compare(value, best)
        if order is None:
            return None
        if order == sign:
            best = value
    if is_number(best):
        return widest(best, present)
    return instant(best) if any(isinstance(value, dt.datetime) for value in present) else best


def widest(number: Any, company: list[Any]) -> Any:
    """Return the number in the widest numeric type of its company: integer, decimal, double."""
    if any(isinstance(other, float) for other in company):
        return float(number)
    if any(isinstance(other, Decimal) for other in company):
        return Decimal(number)
    return number


def in_company(value: Any, company: Iterable[Any]) -> Any:
    """Return a value in the widest type among the values of which it was chosen, its own among them.

    >>> in_company(1, [1, None, 2.5]), in_company("a", ["a", 1.5]), in_company(None, [1])
    (1.0, 'a', None)
    """
    if is_number(value):
        return widest(value, list(company))
    if isinstance(value, dt.date) and any(isinstance(other, dt.datetime) for other in company):
        return instant(value)
    return value


def mean(values: list[Any]) -> Any:
    """Return the sum divided by the count; NULL if one of them is."""
    total: Any = 0
    for value in values:
        total = add(total, value)
    return divide(total, len(values))


def _integers(left: Any, right: Any) -> bool:
    return isinstance(left, int) and isinstance(right, int)


def _integer_or_null(number: int) -> int | None:
    return number if LEAST_INTEGER <= number <= GREATEST_INTEGER else None


# -- Places on the earth.

EARTH_RADIUS_KM = 6371.0088
"""The mean radius of the earth, which makes the haversine formula right to half a percent."""


def distance_km(latitude: Any, longitude: Any, to_latitude: Any, to_longitude: Any) -> float | None:
    """Return the great-circle distance in kilometres; NULL where a coordinate is none.

    >>> round(distance_km(45.815, 15.982, 48.208, 16.373))   # Zagreb to Vienna
    268
    """
    coordinates = (latitude, longitude, to_latitude, to_longitude)
    if not all(map(is_number, coordinates)):
        return None
    lat, lon, lat0, lon0 = map(float, coordinates)
    if not (abs(lat) <= 90 and abs(lat0) <= 90 and abs(lon) <= 360 and abs(lon0) <= 360):
        return None
    phi, phi0 = math.radians(lat), math.radians(lat0)
    half_chord = (
        math.sin((phi0 - phi) / 2) ** 2 + math.cos(phi) * math.cos(phi0) * math.sin(math.radians(lon0 - lon) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, half_chord)))


def decimal_from(text: str) -> Decimal | None:
    """Read a decimal exactly, or return None where it needs more than 38 digits.

    >>> decimal_from("1.50"), decimal_from("1" * 39)
    (Decimal('1.50'), None)
    """
    if len(text) > 10_000:  # nobody needs so many zeros
        return None
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    if number != 0 and number.adjusted() >= DIGITS:
        return None
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    if len(digits) > DIGITS or exponent < -DIGITS:
        return None
    return number if exponent <= 0 else number.quantize(Decimal(1), context=EXACT)
