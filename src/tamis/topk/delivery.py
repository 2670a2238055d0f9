"""What is a subscriber told?"""

from __future__ import annotations

from typing import Any, NamedTuple


class Delivery(NamedTuple):
    """An event for a subscription. There may be very many of them, so it is a plain tuple.

    >>> Delivery("s1", "e1", 1.0)
    Delivery(subscription='s1', event='e1', at=1.0)
    """

    subscription: Any
    """The subscription's id."""
    event: Any
    """The event's id."""
    at: float
    """When the event came to belong to the best k, or, for a Boolean subscription, when it came."""
