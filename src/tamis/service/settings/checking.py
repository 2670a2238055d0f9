"""Do the settings make sense together, and is it safe to start with them?

*Start safe*: without roles everybody who reaches the broker may do everything, so it listens on loopback addresses
only. Any other address needs encryption and roles, or an operator who says `insecure`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tamis.errors import FunctionError, LanguageError, SchemaError, did_you_mean
from tamis.language.parser import parse
from tamis.service.errors import SettingsError
from tamis.service.links.dialling import address_of

if TYPE_CHECKING:
    from tamis.language.functions import Functions
    from tamis.language.schema import Schema
    from tamis.service.settings.shapes import LinkSettings, Listener, Settings

ADMIN = "admin"
"""The role that is always there and may do everything; the first token has it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def check(settings: Settings, source: str) -> None:
    """Raise a `SettingsError` for settings with which no broker should start; `source` says where they come from."""
    if not _NAME.fullmatch(settings.name):
        raise SettingsError(
            f"{source}: name: {settings.name!r:.80} is not the name of a broker", "up to 63 letters, digits, _ . -"
        )
    if not settings.listeners:
        raise SettingsError(
            f"{source}: listeners: there is no address to listen on", "[[listeners]] with host and port"
        )
    _check_limits(settings, source)
    for network in settings.webhooks.allow:
        try:
            ip_network(network, strict=False)
        except ValueError:
            raise SettingsError(
                f"{source}: webhooks.allow: {network!r:.80} is not a network", "one such as 10.1.0.0/16 or ::1/128"
            ) from None
    functions = _checked_functions(settings, source)
    schema = _checked_schema(settings, source)
    with functions.in_use():
        _check_roles(settings, source, schema)
        _check_issuers(settings, source)
        _check_links(settings, source, schema)
    if not settings.insecure:
        for number, listener in enumerate(settings.listeners):
            _check_address(settings, number, listener, source)


def _check_limits(settings: Settings, source: str) -> None:
    """A limit that makes another one pointless is a mistake of whoever wrote it."""
    limits = settings.limits
    pairs = (
        ("event_bytes", "batch_bytes"), ("batch_events", "inbox_events"), ("batch_bytes", "inbox_bytes"),
        ("connections_each", "connections"), ("event_bytes", "ring_bytes"),
    )  # fmt: skip
    for small, large in pairs:
        least, most = getattr(limits, small), getattr(limits, large)
        if least > most:
            raise SettingsError(
                f"{source}: limits.{small} is {least}, more than limits.{large}, which is {most}",
                f"limits.{small} of at most limits.{large}",
            )
    for name in ("event_bytes", "batch_bytes", "inbox_bytes", "group_bytes", "credit_bytes", "queue_bytes"):
        if getattr(limits, name) == 0:
            raise SettingsError(f"{source}: limits.{name} is 0, so nothing would pass", "at least 1 byte")


def _checked_functions(settings: Settings, source: str) -> Functions:
    try:
        return settings.host_functions()
    except FunctionError as error:
        raise SettingsError(
            f"{source}: functions: {error.message}", 'functions = "my_rules:functions", a module that can be imported'
        ) from error


def _checked_schema(settings: Settings, source: str) -> Schema | None:
    try:
        return settings.event_schema()
    except SchemaError as error:
        raise SettingsError(
            f"{source}: schema: {error}", 'attributes and their types, as in price = "double"'
        ) from error


def _check_roles(settings: Settings, source: str, schema: Schema | None) -> None:
    for name, role in settings.roles.items():
        if name == ADMIN:
            raise SettingsError(
                f"{source}: roles.{ADMIN}: this role is always there, and may do everything",
                "another name for the role",
            )
        where = None if role.publish is None else role.publish.where
        for place, text in ((f"roles.{name}.receive", role.receive), (f"roles.{name}.publish.where", where)):
            if text is not None:
                try:
                    parse(text, schema)
                except LanguageError as error:
                    raise SettingsError(f"{source}: {place}: {error}") from error
    for principal, roles in settings.principals.items():
        _check_names_of_roles(settings, roles, f"{source}: principals.{principal}")


def _check_names_of_roles(settings: Settings, roles: tuple[str, ...], place: str) -> None:
    known = (ADMIN, *settings.roles)
    for name in roles:
        if name not in known:
            hint = did_you_mean(name, known)
            raise SettingsError(
                f"{place}: there is no role {name!r}", f"one of {', '.join(known)}{'. ' + hint if hint else ''}"
            )


def _check_issuers(settings: Settings, source: str) -> None:
    if settings.issuers and not settings.roles:
        raise SettingsError(f"{source}: issuers: without roles nobody is asked for a token", "roles ([roles.NAME])")
    names: dict[str, str] = {}
    for name, issuer in settings.issuers.items():
        place = f"{source}: issuers.{name}"
        if (other := names.setdefault(issuer.issuer, name)) != name:
            raise SettingsError(f"{place}.issuer is that of issuers.{other}", "one table for each issuer")
        is_file = bool(issuer.keys) and "://" not in issuer.keys
        asked = issuer.keys or issuer.issuer
        if not is_file and not is_private(asked):
            raise SettingsError(
                f"{place}: others could answer for {asked!r:.200}", "keys, a file or an address with https"
            )
        if not is_file and any(algorithm.startswith("HS") for algorithm in issuer.algorithms):
            raise SettingsError(f"{place}.algorithms: HS256 and its like need a shared secret", "keys, a file")
        _check_names_of_roles(settings, issuer.default_roles, f"{place}.default_roles")
        for said, roles in issuer.role_names.items():
            _check_names_of_roles(settings, roles, f"{place}.role_names.{said}")


def _check_links(settings: Settings, source: str, schema: Schema | None) -> None:
    for url in (*settings.neighbours, *(link.url for link in settings.links.values() if link.url)):
        try:
            address_of(url)
        except SettingsError as error:
            raise SettingsError(f"{source}: links: {error.detail}", error.expected) from None
    for name, link in settings.links.items():
        if not _NAME.fullmatch(name) or name == settings.name:
            raise SettingsError(f"{source}: links.{name!s:.80} is not the name of another broker", "its name")
        for place in ("may_send", "may_receive"):
            try:
                parse(getattr(link, place), schema)
            except LanguageError as error:
                raise SettingsError(f"{source}: links.{name}.{place}: {error}") from error
        _check_terms(name, link, source)
    for number, listener in enumerate(settings.link_listeners):
        is_proved = settings.link_secret is not None or (
            listener.tls is not None and listener.tls.client_ca is not None and listener.tls.clients == "required"
        )
        is_open = not listener.path and not is_loopback(listener.host)
        if is_open and not settings.insecure and (listener.tls is None or not is_proved):
            raise SettingsError(
                f"{source}: link_listeners.{number}: others can reach {listener.host!r}, and it lacks proof or TLS",
                'tls with client_ca and clients = "required", or tls and link_secret, or insecure = true',
            )


def _check_terms(name: str, link: LinkSettings, source: str) -> None:
    pruning, adaptation = link.pruning, link.adaptation
    if pruning is not None and all(
        each is None
        for each in (pruning.reduction, pruning.share, pruning.count, pruning.threshold, pruning.memory_bytes)
    ):
        raise SettingsError(
            f"{source}: links.{name}.pruning says nothing of how far",
            "one of reduction, share, count, threshold, memory_bytes",
        )
    if adaptation is not None and adaptation.stop_above + adaptation.ask_above <= 1:
        raise SettingsError(
            f"{source}: links.{name}.adaptation: {adaptation.stop_above} of all may match, "
            f"and {adaptation.ask_above} that do not are too many already",
            "stop_above and ask_above that are together more than 1",
        )


def _check_address(settings: Settings, number: int, listener: Listener, source: str) -> None:
    if is_loopback(listener.host):
        return
    missing = []
    if listener.tls is None:
        missing.append(f"no TLS (listeners.{number}.tls with certificate and key)")
    if not settings.roles:
        missing.append("no roles ([roles.NAME])")
    if missing:
        raise SettingsError(
            f"{source}: listeners.{number}.host: others can reach {listener.host!r}, with {' and '.join(missing)}",
            "both, or a loopback address such as 127.0.0.1, or insecure = true",
        )


def is_private(url: str) -> bool:
    """Whether nobody on the way can change what an address answers: https, or http on this machine.

    >>> is_private("https://id.example/keys"), is_private("http://127.0.0.1:80/keys"), is_private("http://id.example/")
    (True, True, False)
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    is_checked = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    return bool(host) and is_checked and "@" not in parts.netloc


def is_broker_name(name: str) -> bool:
    """Whether a broker may be called so."""
    return _NAME.fullmatch(name) is not None


@lru_cache(maxsize=256)  # asked of every request, nearly always the same
def is_loopback(host: str) -> bool:
    """Whether an address is reached from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("::ffff:127.0.0.1")
    (True, True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("::"), is_loopback(""), is_loopback("localhost.example.com")
    (False, False, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
