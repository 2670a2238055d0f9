"""Which functions does the language have, and what does each of them mean?

One table holds everything that the parser, the checker, the evaluator, the printer and the
documentation need to know of a function. All of them are deterministic, and none of them raises:
an argument of the wrong kind gives NULL.
"""

from __future__ import annotations

import contextlib
import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis.errors import LiteralError
from tamis.language import values
from tamis.language.expressions import Expression, Literal
from tamis.language.vectors import check_vectors, cosine, euclidean

if TYPE_CHECKING:
    from collections.abc import Callable


def _no_check(arguments: tuple[Expression, ...]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Function:
    """A function: what it takes, what it gives, and its meaning over values."""

    name: str
    takes: tuple[str, ...]
    gives: str
    meaning: Callable[..., Any]
    summary: str
    variadic: bool = False
    """Whether the last parameter may be repeated."""
    in_spark: bool = True
    symbol: str = ""
    """How it is written where that is not `name(...)`."""
    check: Callable[[tuple[Expression, ...]], None] = _no_check
    """What is to be said of literal arguments when the expression is written."""

    @property
    def is_test(self) -> bool:
        """Does it give a truth value?"""
        return self.gives == "boolean"

    def accepts(self, count: int) -> bool:
        """Does it take this many arguments?"""
        return count >= len(self.takes) if self.variadic else count == len(self.takes)

    @property
    def signature(self) -> str:
        """The call as a person would write it."""
        if self.symbol:
            return f"{self.symbol}x" if len(self.takes) == 1 else f"x {self.symbol} y"
        return f"{self.name}({', '.join((*self.takes, *('…' for _ in range(self.variadic))))})"


# -- Meanings


def _of_text(meaning: Callable[[str], Any]) -> Callable[[Any], Any]:
    return lambda text: meaning(text) if isinstance(text, str) else None


def _of_texts(meaning: Callable[[str, str], bool]) -> Callable[[Any, Any], bool | None]:
    def of_two(text: Any, part: Any) -> bool | None:
        return meaning(text, part) if isinstance(text, str) and isinstance(part, str) else None

    return of_two


def array_contains(array: Any, element: Any) -> bool | None:
    """Is the element in the array? Unknown if not found among elements of which one is NULL.

    >>> array_contains(["a", None], "a"), array_contains(["a", None], "b"), array_contains(["a"], "b")
    (True, None, False)
    """
    if not isinstance(array, list) or element is None:
        return None
    orders = {values.compare(member, element) for member in array}
    if 0 in orders:
        return True
    return None if None in orders else False


def arrays_overlap(one: Any, two: Any) -> bool | None:
    """Do two arrays share an element? Unknown if they might, through a NULL."""
    if not isinstance(one, list) or not isinstance(two, list):
        return None
    found = {array_contains(two, member) for member in one} if two else set()
    if True in found:
        return True
    return None if None in found else False


@lru_cache(maxsize=4096)
def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        return None


def in_cidr(address: Any, network: Any) -> bool | None:
    """Does the network hold the address? Unknown if one of them is none.

    >>> in_cidr("10.1.2.3", "10.0.0.0/8"), in_cidr("::1", "10.0.0.0/8"), in_cidr("ten", "10.0.0.0/8")
    (True, False, None)
    """
    if not isinstance(address, str) or not isinstance(network, str):
        return None
    block = _network(network)
    if block is None:
        return None
    try:
        return ipaddress.ip_address(address) in block
    except ValueError:
        return None


def _check_cidr(arguments: tuple[Expression, ...]) -> None:
    network = arguments[1]
    if not isinstance(network, Literal) or not isinstance(network.value, str) or _network(network.value):
        return
    hint = "A network is written like '10.0.0.0/8' or '2001:db8::/32'."
    with contextlib.suppress(ValueError):
        hint = f"The network of that address is '{ipaddress.ip_network(network.value, strict=False)}'."
    raise LiteralError(f"{network.value!r} is no network address", hint=hint)


def _check_distance(arguments: tuple[Expression, ...]) -> None:
    for argument, (coordinate, most) in zip(arguments, (("latitude", 90), ("longitude", 360)) * 2, strict=True):
        number: Any = argument.value if isinstance(argument, Literal) else None
        if values.is_number(number) and not abs(number) <= most:
            raise LiteralError(
                f"{number} is no {coordinate}",
                hint="distance takes latitude, longitude, latitude, longitude, in degrees.",
            )


# -- The table

_NUMBER, _NUMBERS = ("number",), ("number", "number")
_TEXT, _TEXTS = ("string",), ("string", "string")

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("add", _NUMBERS, "number", values.add, "sum", symbol="+"),
        Function("subtract", _NUMBERS, "number", values.subtract, "difference", symbol="-"),
        Function("multiply", _NUMBERS, "number", values.multiply, "product", symbol="*"),
        Function("divide", _NUMBERS, "number", values.divide, "quotient; by zero unknown", symbol="/"),
        Function(
            "remainder",
            _NUMBERS,
            "number",
            values.remainder,
            "remainder, with the sign of x; by zero unknown",
            symbol="%",
        ),
        Function("negate", _NUMBER, "number", values.negate, "opposite", symbol="-"),
        Function("abs", _NUMBER, "number", values.absolute, "absolute value"),
        Function(
            "least",
            ("any", "any"),
            "any",
            lambda *arguments: values.extreme(arguments, -1),
            "the least value, NULLs left out",
            variadic=True,
        ),
        Function(
            "greatest",
            ("any", "any"),
            "any",
            lambda *arguments: values.extreme(arguments, 1),
            "the greatest value, NULLs left out",
            variadic=True,
        ),
        Function(
            "avg",
            _NUMBER,
            "number",
            lambda *arguments: values.mean(list(arguments)),
            "the mean of its arguments; unknown if one is NULL",
            variadic=True,
            in_spark=False,
        ),
        Function("lower", _TEXT, "string", _of_text(str.lower), "in lower case"),
        Function("upper", _TEXT, "string", _of_text(str.upper), "in upper case"),
        Function("trim", _TEXT, "string", _of_text(lambda text: text.strip(" ")), "without spaces at the ends"),
        Function("length", _TEXT, "number", _of_text(len), "number of characters"),
        Function("size", ("array",), "number", lambda a: len(a) if isinstance(a, list) else None, "number of elements"),
        Function(
            "distance",
            ("number",) * 4,
            "number",
            values.distance_km,
            "kilometres between (latitude, longitude) and (latitude, longitude)",
            in_spark=False,
            check=_check_distance,
        ),
        Function(
            "euclidean",
            ("array", "array"),
            "number",
            euclidean,
            "distance of two vectors, with a third of weights if you like",
            variadic=True,
            in_spark=False,
            check=lambda arguments: check_vectors(arguments, 3),
        ),
        Function(
            "cosine",
            ("array", "array"),
            "number",
            cosine,
            "cosine of the angle between two vectors",
            in_spark=False,
            check=lambda arguments: check_vectors(arguments, 2),
        ),
        Function("array", (), "array", lambda *elements: list(elements), "an array", variadic=True),
        Function("startswith", _TEXTS, "boolean", _of_texts(str.startswith), "does the text start so?"),
        Function("endswith", _TEXTS, "boolean", _of_texts(str.endswith), "does the text end so?"),
        Function("contains", _TEXTS, "boolean", _of_texts(str.__contains__), "is the second text in the first?"),
        Function("array_contains", ("array", "any"), "boolean", array_contains, "is the element in the array?"),
        Function("arrays_overlap", ("array", "array"), "boolean", arrays_overlap, "do the arrays share an element?"),
        Function(
            "in_cidr",
            _TEXTS,
            "boolean",
            in_cidr,
            "is the IPv4 or IPv6 address in the network?",
            in_spark=False,
            check=_check_cidr,
        ),
    )
}

CONNECTIVE_FUNCTIONS = ("xor", "at_least")
"""Functions of conditions; the parser makes connectives of them."""

CALLABLE = (
    *tuple(name for name, function in FUNCTIONS.items() if not function.symbol),
    *CONNECTIVE_FUNCTIONS,
    "double",
)
"""Every name that may stand before a parenthesis. `double('NaN')` is a literal."""
