"""What do the functions mean whose meaning is no more than a few lines over values?

Each is total and raises nothing: an argument of the wrong kind gives NULL. What can be said of literal arguments when
an expression is written stands beside the meaning, as a *check*, which raises a typed error.
"""

from __future__ import annotations

import contextlib
import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis.errors import LiteralError
from tamis.language import values
from tamis.language.expressions import Expression, Literal

if TYPE_CHECKING:
    from collections.abc import Callable


def of_text(meaning: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Return a meaning over texts as one over values: of anything else it is NULL."""
    return lambda text: meaning(text) if isinstance(text, str) else None


def of_texts(meaning: Callable[[str, str], bool]) -> Callable[[Any, Any], bool | None]:
    """Return a meaning over two texts as one over two values: of anything else it is NULL."""

    def of_two(text: Any, part: Any) -> bool | None:
        return meaning(text, part) if isinstance(text, str) and isinstance(part, str) else None

    return of_two


def case(*arguments: Any) -> Any:
    """Return the value behind the first condition that is true, else the last argument if it has no condition.

    The value is in the widest type among all values that could have been chosen, as `least` has it.

    >>> case(False, "a", True, "b", "c"), case(None, "a", "b"), case(False, "a"), case(True, 1, 2.5)
    ('b', 'b', None, 1.0)
    """
    pairs, rest = arguments[: len(arguments) - len(arguments) % 2], arguments[len(arguments) - len(arguments) % 2 :]
    chosen = next((value for truth, value in zip(pairs[::2], pairs[1::2], strict=True) if truth is True), None)
    if rest and not any(truth is True for truth in pairs[::2]):
        chosen = rest[0]
    return values.in_company(chosen, (*pairs[1::2], *rest))


def coalesce(*arguments: Any) -> Any:
    """Return the first value that is not NULL, in the widest type among all.

    >>> coalesce(None, 2, 3), coalesce(None, None), coalesce(None, 1, 0.5)
    (2, None, 1.0)
    """
    return values.in_company(next((value for value in arguments if value is not None), None), arguments)


def nullif(value: Any, other: Any) -> Any:
    """Return NULL where the two are equal, else the first, as it is.

    >>> nullif(1, 1.0), nullif(1, 2), nullif(1, None), nullif("a", 1)
    (None, 1, 1, 'a')
    """
    return None if values.compare(value, other) == 0 else value


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


def size(array: Any) -> int | None:
    """Return how many elements an array has."""
    return len(array) if isinstance(array, list) else None


def arrays_overlap(one: Any, two: Any) -> bool | None:
    """Do two arrays share an element? Unknown if they might, through a NULL."""
    if not isinstance(one, list) or not isinstance(two, list):
        return None
    truths = {array_contains(two, member) for member in one} if two else set()
    if True in truths:
        return True
    return None if None in truths else False


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


def is_in_network(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    """Does the second network hold the whole first one?

    >>> is_in_network(("10.1.0.0/16",), ("10.0.0.0/8",)), is_in_network(("10.0.0.0/8",), ("10.1.0.0/16",))
    (True, False)
    """
    small, large = _networks(one, two)
    return small is not None and large is not None and small.version == large.version and small.subnet_of(large)


def are_disjoint_networks(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    """Do two networks have no address in common?"""
    first, second = _networks(one, two)
    return first is not None and second is not None and (first.version != second.version or not first.overlaps(second))


def united_network(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the network that two networks make together: the larger one of the two, or that of two halves.

    >>> united_network(("10.0.0.0/9",), ("10.128.0.0/9",)), united_network(("10.0.0.0/9",), ("11.0.0.0/9",))
    (('10.0.0.0/8',), None)
    """
    first, second = _networks(one, two)
    if first is None or second is None or first.version != second.version:
        return None
    for large, small in ((first, second), (second, first)):
        if small.subnet_of(large):
            return (str(large),)
    if first.prefixlen == second.prefixlen > 0 and first.supernet() == second.supernet():
        return (str(first.supernet()),)
    return None


def _networks(one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the networks of two calls of `in_cidr` about one address; None where that is not what differs."""
    if len(one) != 1 or len(two) != 1 or not isinstance(one[0], str) or not isinstance(two[0], str):
        return None, None
    return _network(one[0]), _network(two[0])


def check_cidr(arguments: tuple[Expression, ...]) -> None:
    """Raise unless the network, if it is a literal, is one."""
    network = arguments[1]
    if not isinstance(network, Literal) or not isinstance(network.value, str) or _network(network.value):
        return
    hint = "A network is written like '10.0.0.0/8' or '2001:db8::/32'."
    with contextlib.suppress(ValueError):
        hint = f"The network of that address is '{ipaddress.ip_network(network.value, strict=False)}'."
    raise LiteralError(f"{network.value!r} is not a network address", hint=hint)


def check_distance(arguments: tuple[Expression, ...]) -> None:
    """Raise unless the coordinates that are literals are on the earth."""
    for argument, (coordinate, most) in zip(arguments, (("latitude", 90), ("longitude", 360)) * 2, strict=True):
        number: Any = argument.value if isinstance(argument, Literal) else None
        if values.is_number(number) and not abs(number) <= most:
            raise LiteralError(
                f"{number} is not a {coordinate}",
                hint="distance takes latitude, longitude, latitude, longitude, in degrees.",
            )
