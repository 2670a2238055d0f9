"""Where is the other end of a link, who calls whom, and when again? Addresses, and backoff with chance.

    tamis://host:7411          TCP
    tamis+tls://host:7411      TCP, encrypted
    unix:///run/tamis.sock     a socket of this machine

An end that has an address calls; one that has none waits to be called. After a failure the wait may be twice as long,
from a tenth of a second up to half a minute, and chance, which is given from outside, decides about half of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from tamis.service.errors import SettingsError
from tamis.service.links.frames import PORT

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_S = 0.1
LONGEST_S = 30.0


class Address(NamedTuple):
    """Where a broker is called."""

    host: str = ""
    port: int = PORT
    path: str = ""
    """Of a Unix socket; then there is no host."""
    is_encrypted: bool = False

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tamis{'+tls' if self.is_encrypted else ''}://{host}:{self.port}"


def address_of(url: str) -> Address:
    """Return the address that a URL names.

    >>> address_of("tamis://north.example"), str(address_of("unix:///run/tamis.sock"))
    (Address(host='north.example', port=7411, path='', is_encrypted=False), 'unix:///run/tamis.sock')
    >>> address_of("http://north")
    Traceback (most recent call last):
        ...
    tamis.service.errors.SettingsError: 'http://north' is not the address of a broker; expected tamis://host:7411, ...
    """
    wrong = SettingsError(
        f"{url!r:.200} is not the address of a broker", "tamis://host:7411, tamis+tls://host:7411 or unix:///path"
    )
    try:
        parts = urlsplit(url)
        port = PORT if parts.port is None else parts.port
    except ValueError:
        raise wrong from None
    if parts.query or parts.fragment or parts.username is not None:
        raise wrong
    if parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/"):
        return Address(path=parts.path)
    if parts.scheme not in ("tamis", "tamis+tls") or not parts.hostname or parts.path not in ("", "/"):
        raise wrong
    return Address(parts.hostname, port, is_encrypted=parts.scheme == "tamis+tls")


class Waits:
    """The waits between calls; `chance` returns a number from 0 to 1.

    >>> waits = Waits(lambda: 0.0)
    >>> [waits.next_s() for _ in range(3)], waits.longest_s()
    ([0.05, 0.1, 0.2], 15.0)
    """

    def __init__(self, chance: Callable[[], float], first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._chance, self._first_s, self._longest_s = chance, first_s, longest_s
        self._failures = 0

    def next_s(self) -> float:
        """Return how long to wait now, after one more failure."""
        bound_s = min(self._longest_s, self._first_s * 2.0**self._failures)
        self._failures = min(self._failures + 1, 60)
        return bound_s * (0.5 + 0.5 * self._chance())

    def longest_s(self) -> float:
        """Return how long to wait if another try would most likely end the same way: the link was refused."""
        return self._longest_s * (0.5 + 0.5 * self._chance())

    def reset(self) -> None:
        """Begin anew: both ends have met."""
        self._failures = 0
