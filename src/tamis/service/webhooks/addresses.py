"""Where may a broker post to? Only to addresses of the open internet, unless the settings allow others.

Who may make a webhook could otherwise let the broker ask for things that only the broker reaches: services of its own
machine, of its network, the metadata service of a cloud (server-side request forgery). A name is looked up once, the
addresses are checked, and the connection goes to an address that was checked: a name that says something else a moment
later (DNS rebinding) gains nothing. Redirects are not followed.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver
from aiohttp.resolver import ThreadedResolver

from tamis.service.errors import BadRequestError, ForbiddenError

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from aiohttp.abc import ResolveResult

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_TRANSLATED = (
    ipaddress.ip_network("64:ff9b::/96"),
    ipaddress.ip_network("2002::/16"),
    ipaddress.ip_network("2001::/32"),
)
"""Prefixes behind which an IPv4 address is hidden (NAT64, 6to4, Teredo)."""
LONGEST_URL = 2_000


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return the networks that a setting names."""
    return tuple(ipaddress.ip_network(text, strict=False) for text in texts)


def may_be_reached(address: str, allowed: Iterable[Network] = ()) -> bool:
    """May the broker post to an address?

    >>> [may_be_reached(each) for each in ("93.184.216.34", "127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1")]
    [True, False, False, False]
    >>> may_be_reached("10.1.2.3", networks(["10.0.0.0/8"]))
    True
    """
    parsed: Address = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if any(parsed in network for network in allowed if network.version == parsed.version):
        return True
    is_hidden = any(parsed in prefix for prefix in _TRANSLATED if prefix.version == parsed.version)
    return parsed.is_global and not parsed.is_multicast and not is_hidden


def checked_url(url: str) -> str:
    """Return the host of an address that can be posted to; raise an error if it is none."""
    expected = "an address such as https://host.example/path"
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good or len(url) > LONGEST_URL or any(not "!" <= character <= "~" for character in url):
        raise BadRequestError(f"{url!r:.100} is not the address of a webhook", expected)
    if "@" in parts.netloc:
        raise BadRequestError("the address of a webhook holds no name and password", expected)
    return str(parts.hostname)


class CheckedResolver(AbstractResolver):
    """Looks names up, and gives only addresses that may be reached."""

    def __init__(self, allowed: Iterable[Network] = (), resolver: AbstractResolver | None = None) -> None:
        self.allowed = tuple(allowed)
        self._resolver = resolver or ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily | int = 0) -> list[ResolveResult]:
        """Return the addresses of a name; raise an error if none of them may be reached."""
        addresses = await self._resolver.resolve(host, port, family)  # type: ignore[arg-type]
        reached = [each for each in addresses if may_be_reached(each["host"], self.allowed)]
        if not reached:
            raise refusal(host)
        return reached

    async def check(self, url: str) -> None:
        """Raise an error if an address may not be posted to; a name that cannot be looked up now may be, later."""
        host = checked_url(url)
        try:
            ipaddress.ip_address(host)
        except ValueError:
            try:
                await self.resolve(host)
            except OSError:
                return
        else:
            if not may_be_reached(host, self.allowed):
                raise refusal(host)

    async def close(self) -> None:
        """Let go of what looks names up."""
        await self._resolver.close()


def refusal(host: str) -> ForbiddenError:
    """Return why nothing is posted to a host."""
    return ForbiddenError(
        f"the host {host!r:.100} is in a private network, and webhooks may not reach those",
        "an address of the internet, or its network in the setting webhooks.allow",
    )
