"""Why is an event delivered that several events have decided about? What a subscription with a memory has to say of it.

It goes out with the delivery, and lies with a dead letter until that is delivered after all.
"""

from __future__ import annotations

import msgspec


class Told(msgspec.Struct, frozen=True):
    """What a subscription that remembers earlier events has to tell."""

    key: str
    """Of the subscription."""
    kind: str
    """`ranked`, `sequence` or `change`."""
    at_us: int
    """When there was something to tell: an event came, or the time for it had passed."""
    events: tuple[int, ...]
    """The positions of the events: one for each step of a sequence, else a single one."""
    bodies: tuple[bytes, ...] = ()
    """The events of a sequence, as JSON."""
    change: bool | None = None
    """Of a change: whether the condition became true, or ceased to be."""
    rank: int | None = None
    """Of a ranked subscription: the place of the event among the best, if others have not driven it out at once."""
