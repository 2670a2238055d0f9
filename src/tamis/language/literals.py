"""Which value does a literal denote, and how is a value written as a literal? Lexing and printing of constants.

Numbers are Spark SQL's: `5` is an integer (beyond 64 bits a decimal), `5.0` a decimal, `5e0` and
`5D` are doubles, and the suffixes L, S, Y, F, D and BD say the type outright.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from decimal import Decimal
from typing import TYPE_CHECKING

from tamis.errors import LiteralError
from tamis.language.values import DIGITS, GREATEST_INTEGER, LEAST_INTEGER, decimal_from

if TYPE_CHECKING:
    from tamis.language.expressions import Scalar

_INTEGER_BITS = {"L": 64, "S": 16, "Y": 8}
_SPECIAL_DOUBLES = {"nan": math.nan, "infinity": math.inf, "inf": math.inf, "+infinity": math.inf, "+inf": math.inf}
_SPECIAL_DOUBLES |= {"-infinity": -math.inf, "-inf": -math.inf}


def number(piece: str) -> int | Decimal | float:
    """Return the number that a text denotes, sign included.

    >>> number("5"), number("5.0"), number("5e0"), number("9223372036854775808")
    (5, Decimal('5.0'), 5.0, Decimal('9223372036854775808'))
    """
    if piece.isdigit() and len(piece) < 19:
        return int(piece)
    plain = piece.upper()
    if plain.endswith("BD"):
        return _decimal(plain[:-2], piece)
    suffix = plain[-1]
    if suffix in "DF":
        return _double(plain[:-1], piece, single=suffix == "F")
    if suffix in _INTEGER_BITS:
        return _sized_integer(plain[:-1], _INTEGER_BITS[suffix], piece)
    if "E" in plain:
        return _double(plain, piece, single=False)
    if "." in plain:
        return _decimal(plain, piece)
    if len(plain) < 19:
        return int(plain)
    exact = _decimal(plain, piece)
    return int(exact) if LEAST_INTEGER <= exact <= GREATEST_INTEGER else exact


def _decimal(digits: str, piece: str) -> Decimal:
    exact = decimal_from(digits)
    if exact is None:
        raise LiteralError(
            f"{_short(piece)} needs more than {DIGITS} digits",
            hint="Write it with an exponent if a double will do: 1e40.",
        )
    return exact


def _double(digits: str, piece: str, single: bool) -> float:
    try:
        number = float(digits)
        if single:
            number = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise LiteralError(f"{_short(piece)} is beyond the range of a double", hint="Infinity is double('Infinity').")
    return number


def _sized_integer(digits: str, bits: int, piece: str) -> int:
    if not digits.lstrip("+-").isdigit() or len(digits) > 25 or not -(2 ** (bits - 1)) <= int(digits) < 2 ** (bits - 1):
        raise LiteralError(f"{_short(piece)} is not an integer of {bits} bits")
    return int(digits)


def special_double(word: str) -> float:
    """Return the double of `double('NaN')`, `double('Infinity')` or of a number in quotes."""
    number = _SPECIAL_DOUBLES.get(word.strip().lower())
    if number is not None:
        return number
    try:
        return float(word)
    except ValueError:
        raise LiteralError(
            f"{_short(repr(word))} is not a double",
            hint="Write double('NaN'), double('Infinity') or double('-Infinity').",
        ) from None


_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_TIMESTAMP = re.compile(
    r"(?P<date>\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](?P<hour>\d{1,2}):(?P<minute>\d{1,2}):(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|\s?UTC|[+-]\d{1,2}:\d{2})?)?"
)


def date(text: str) -> dt.date:
    """Read the text of `DATE '...'`.

    >>> date("2024-2-29")
    datetime.date(2024, 2, 29)
    """
    parts = _DATE.fullmatch(text.strip())
    if parts:
        try:
            return dt.date(int(parts[1]), int(parts[2] or 1), int(parts[3] or 1))
        except ValueError:
            pass
    raise LiteralError(f"{_short(repr(text))} is not a date", hint="Write a day that exists, as in DATE '2024-02-29'.")


def timestamp(text: str) -> dt.datetime:
    """Read the text of `TIMESTAMP '...'`; without a zone it is UTC.

    >>> timestamp("2024-02-29 12:00:00+02:00")
    datetime.datetime(2024, 2, 29, 10, 0)
    """
    parts = _TIMESTAMP.fullmatch(text.strip())
    if parts:
        try:
            day = date(parts["date"])
            if parts["hour"] is None:
                return dt.datetime(day.year, day.month, day.day)
            clock = dt.time(
                int(parts["hour"]),
                int(parts["minute"]),
                int(parts["second"]),
                int((parts["fraction"] or "").ljust(6, "0")[:6]),  # finer than microseconds is cut, as in Spark
            )
            return dt.datetime.combine(day, clock) - _offset(parts["zone"] or "Z")
        except (ValueError, OverflowError):
            pass
    raise LiteralError(
        f"{_short(repr(text))} is not a timestamp",
        hint="Write TIMESTAMP '2024-02-29 12:00:00', with an offset such as +02:00 if it is not UTC.",
    )


def _offset(zone: str) -> dt.timedelta:
    if zone[0] not in "+-":
        return dt.timedelta()
    hours, minutes = zone[1:].split(":")
    offset = dt.timedelta(hours=int(hours), minutes=int(minutes))
    if offset > dt.timedelta(hours=18):
        raise ValueError(zone)
    return offset if zone[0] == "+" else -offset


def to_text(value: Scalar) -> str:
    r"""Write a value as a literal that denotes just this value.

    >>> to_text(5.0), to_text(Decimal("5.0")), to_text("it"), to_text(float("nan"))
    ('5.0D', '5.0', "'it'", "double('NaN')")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, float):
        return _double_text(value)
    if isinstance(value, dt.datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return quoted(value)


def _decimal_text(value: Decimal) -> str:
    plain = format(value, "f")
    if "." in plain:
        return plain
    return plain if not LEAST_INTEGER <= value <= GREATEST_INTEGER else f"{plain}BD"


def _double_text(value: float) -> str:
    if math.isnan(value):
        return "double('NaN')"
    if math.isinf(value):
        return "double('Infinity')" if value > 0 else "double('-Infinity')"
    return f"{value!r}D"


_TO_ESCAPE = {
    "\\": "\\\\",
    "'": "\\'",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\0": "\\u0000",
    "\x1a": "\\Z",
    "\b": "\\b",
}
# NUL as \0 would swallow digits behind it: \010 is an octal escape.
_ESCAPABLE = re.compile(r"[\\'\n\r\t\0\x1a\x08]")


def quoted(text: str) -> str:
    """Write a text in quotes, with what needs an escape escaped."""
    return f"'{_ESCAPABLE.sub(lambda found: _TO_ESCAPE[found[0]], text)}'"


def _short(piece: str) -> str:
    return piece if len(piece) <= 60 else f"{piece[:57]}..."
