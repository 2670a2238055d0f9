"""What happens in a publish/subscribe system?

Clients publish, withdraw, subscribe and unsubscribe; the system tells clients of events, and drops events from windows.

Source: Pripužić 2010, section 2.3, equations 2.48 to 2.54 (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable


@dataclass(frozen=True, slots=True)
class PublishStep:
    """A client publishes an event."""

    at: float
    client: Hashable
    event: Hashable


@dataclass(frozen=True, slots=True)
class UnpublishStep:
    """A client withdraws an event."""

    at: float
    client: Hashable
    event: Hashable


@dataclass(frozen=True, slots=True)
class SubscribeStep:
    """A client activates a subscription."""

    at: float
    client: Hashable
    subscription: Hashable


@dataclass(frozen=True, slots=True)
class UnsubscribeStep:
    """A client deactivates a subscription."""

    at: float
    client: Hashable
    subscription: Hashable


@dataclass(frozen=True, slots=True)
class NotifyStep:
    """The system tells a client of an event."""

    at: float
    client: Hashable
    event: Hashable


@dataclass(frozen=True, slots=True)
class Drop:
    """The system drops an event from the window of a subscription."""

    at: float
    subscription: Hashable
    event: Hashable


Happening: TypeAlias = PublishStep | UnpublishStep | SubscribeStep | UnsubscribeStep | NotifyStep | Drop


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken: which, when, and about whom."""

    promise: str
    at: float
    client: Hashable
    event: Hashable
    subscription: Hashable = None
