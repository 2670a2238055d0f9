"""Which settings change while the broker runs, and which wait for a start? A comparison of two settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tamis.service.settings.quantities import KeepLimits

if TYPE_CHECKING:
    from tamis.service.settings.shapes import Settings

AT_ONCE = (
    "roles", "principals", "origins", "logging", "catch_up", "webhooks", "log.keep", "log.hold", "listeners.*.tls",
    "links", "neighbours", "issuers",
    *(
        f"limits.{name}"
        for name in (
            "event_bytes", "batch_events", "batch_bytes", "depth", "attributes", "subscriptions", "subscribers",
            "texts", "text_length", "connections", "connections_each", "events_per_s", "bytes_per_s",
            "subscriptions_per_s", "burst", "wait",
        )
    ),
)  # fmt: skip
"""What a reload changes, by name; a table stands for all that is in it, * for any number."""


class Differences(NamedTuple):
    """The names of the settings in which two differ."""

    at_once: tuple[str, ...]
    """What a reload changes."""
    at_start: tuple[str, ...]
    """What counts from the next start on."""


def differences(old: Settings, new: Settings) -> Differences:
    """Return what differs, and whether a reload can change it.

    >>> from tamis.service.settings import read_settings
    >>> differences(read_settings(), read_settings(overrides={"limits.depth": 8, "listeners.0.port": 8000}))
    Differences(at_once=('limits.depth',), at_start=('listeners.0.port',))
    """
    before, after = dict(_leaves(old, ())), dict(_leaves(new, ()))
    absent = object()
    names = [path for path in {**before, **after} if before.get(path, absent) != after.get(path, absent)]
    at_once = tuple(".".join(path) for path in names if changes_at_once(path))
    return Differences(at_once, tuple(".".join(path) for path in names if not changes_at_once(path)))


def renewed(old: Settings, new: Settings) -> Settings:
    """Return the settings of a broker that runs with the old ones, after a reload: what waits for a start stays.

    >>> from tamis.service.settings import read_settings
    >>> after = renewed(read_settings(), read_settings(overrides={"limits.depth": 8, "name": "north"}))
    >>> after.limits.depth, after.name
    (8, 'tamis')
    """
    settings: Settings = _renewed(old, new, ())
    return settings


def _renewed(old: Any, new: Any, path: tuple[str, ...]) -> Any:
    if path and changes_at_once(path):
        return new
    if path == ("listeners",):
        pairs = [_renewed(*pair, (*path, str(number))) for number, pair in enumerate(zip(old, new, strict=False))]
        return (*pairs, *old[len(pairs) :])
    if isinstance(old, msgspec.Struct) and type(old) is type(new):
        names = [field.name for field in msgspec.structs.fields(old)]
        members = {name: _renewed(getattr(old, name), getattr(new, name), (*path, name)) for name in names}
        return msgspec.structs.replace(old, **members)
    return old


def changes_at_once(path: tuple[str, ...]) -> bool:
    """Whether a reload changes a setting. Encryption cannot be switched on or off below a listener, only renewed.

    Nor can it whether clients must show a certificate.

    >>> changes_at_once(("roles", "shop", "receive")), changes_at_once(("data",))
    (True, False)
    """
    if path[0] == "listeners" and path[2:] in (("tls",), ("tls", "clients")):
        return False
    general = ("listeners", "*", *path[2:]) if path[0] == "listeners" else path
    return any(".".join(general[:length]) in AT_ONCE for length in range(1, len(general) + 1))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, msgspec.Struct) and not isinstance(value, KeepLimits):
        if path[2:] == ("tls",):
            yield path, True  # so that a table that appears or goes is seen as such
        for field in msgspec.structs.fields(value):
            yield from _leaves(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _leaves(member, (*path, name))
    elif isinstance(value, tuple) and path in (("listeners",), ("link_listeners",)):
        for number, listener in enumerate(value):
            yield from _leaves(listener, (*path, str(number)))
    else:
        yield path, value
