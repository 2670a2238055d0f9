"""Where in which log? Positions of events and of deliveries.

An event's number in the log of its broker is its *position*; numbers grow, and are never used twice in one log. A
delivery has a pair: the number `head` at which it was decided, and the number `event` of what is delivered. For a
condition both are the same. In a replay of the past, everything is decided at the position where the replay was asked
for, so its pairs follow each other in the order of the events, behind all that was decided before.

On the wire a position also names the log (its *epoch*, a random name): `k3f9-812`, or `k3f9-812.97` where the two
numbers differ. So a position of another log, after a disk was replaced, is recognised and never taken for one of this
log.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tamis.service.errors import BadRequestError, GoneError

_FORM = re.compile(r"([a-z0-9]+)-(\d{1,19})(?:\.(\d{1,19}))?")


class Position(NamedTuple):
    """A place in a subscriber's order of deliveries; pairs compare as they are delivered."""

    head: int
    """How far the log had come when the delivery was decided."""
    event: int
    """The number of the event."""

    @classmethod
    def of(cls, number: int) -> Position:
        """Return the position of an event that is delivered when it comes."""
        return cls(number, number)

    def text(self, epoch: str) -> str:
        """Return the position as it is written on the wire.

        >>> Position(812, 812).text("k3f9"), Position(812, 97).text("k3f9")
        ('k3f9-812', 'k3f9-812.97')
        """
        return f"{epoch}-{self.head}" if self.head == self.event else f"{epoch}-{self.head}.{self.event}"


START = Position(0, 0)
"""Before everything."""


def read_position(text: str, epoch: str) -> Position:
    """Return the position that a text names; raise an error if it is none, or one of another log.

    >>> read_position("k3f9-812.97", "k3f9")
    Position(head=812, event=97)
    >>> read_position("a7x2-5", "k3f9")
    Traceback (most recent call last):
        ...
    tamis.service.errors.GoneError: the position a7x2-5 is of another log; expected one that begins with k3f9-
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise BadRequestError(f"{text!r:.60} is not a position", f"one such as {epoch}-812")
    if form[1] != epoch:
        raise GoneError(f"the position {text} is of another log", f"one that begins with {epoch}-")
    head = int(form[2])
    return Position(head, head if form[3] is None else int(form[3]))
