"""Which settings change while the broker runs, and which wait for a start? A comparison of two settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tamis.service.settings.quantities import Keep

if TYPE_CHECKING:
    from tamis.service.settings.shapes import Settings

AT_ONCE = (
    "roles", "principals", "origins", "logging", "catch_up", "log.keep", "log.hold", "listeners.*.tls",
    "links", "neighbours",
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


def changes_at_once(path: tuple[str, ...]) -> bool:
    """Whether a reload changes a setting. Encryption cannot be switched on or off below a listener, only renewed.

    >>> changes_at_once(("roles", "shop", "receive")), changes_at_once(("data",))
    (True, False)
    """
    if path[0] == "listeners" and path[2:] == ("tls",):
        return False
    general = ("listeners", "*", *path[2:]) if path[0] == "listeners" else path
    return any(".".join(general[:length]) in AT_ONCE for length in range(1, len(general) + 1))


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, msgspec.Struct) and not isinstance(value, Keep):
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
