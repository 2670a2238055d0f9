"""What is a subscriber told?"""

from __future__ import annotations

from typing import Any, NamedTuple


class Notification(NamedTuple):
    """Some events for a subscription. There may be very many of them, so it is a plain tuple.

    >>> Notification("s1", ("e1", "e2"), 1.0)
    Notification(subscription='s1', events=('e1', 'e2'), at=1.0, change=None)
    """

    subscription: Any
    """The subscription's id."""
    events: tuple[Any, ...]
    """The ids of the events: one each for the steps of a sequence, else a single one."""
    at: float
    """When there was something to tell: when the last event came, or when the time for it had passed."""
    change: bool | None = None
    """For a change whether the condition became true or ceased to be."""
