"""When does every broker know what was said here? Settlement: acknowledgements that travel back up the tree.

A control message is *settled* at a broker when all that it caused at other neighbours is settled there. A leaf settles
what it hears at once; its neighbour hears of that, and settles in turn. So a subscription that is settled at its
client's broker is in force wherever it has to be: an event that is published anywhere from then on is delivered.

What a message caused is not traced. It is settled when all that was told to the others *by then* is settled by them:
a subscription that is covered causes nothing, and yet what covers it may still be under way. Numbers on a link grow, so
one number per link says it all, both ways ("settled through"). A broker that still works something out (`Broker.work`),
or does not know yet what may come from a neighbour, settles nothing before that is done. A neighbour that is away
delays; one that is gone does not count.

On a link, acknowledgements keep their place among the control messages. So what an advertisement made a neighbour ask
for has come back before the advertisement is settled.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from tamis.routing.errors import KnownPeerError, UnknownPeerError

if TYPE_CHECKING:
    from collections.abc import Hashable

_HERE = ""
"""Whose tickets are of clients."""


class PendingSettlement:
    """Something that was said, and up to which numbers others have to settle before it is settled."""

    __slots__ = ("needs", "what")

    def __init__(self, what: Any) -> None:
        self.what = what
        self.needs: dict[str, int] | None = None
        """By neighbour; None while it is not worked out yet what they are told."""


class Settling:
    """What one broker was told and told others, and what of it is settled.

    >>> middle = Settling()
    >>> middle.connect("north"), middle.connect("south")
    (None, None)
    >>> number = middle.sent("south")              # what a message of north caused
    >>> middle.received("north", 7, is_worked_out=True), middle.settled()
    (None, ([], []))
    >>> middle.acknowledged("south", number), middle.settled()
    (None, ([('north', 7)], []))
    >>> middle.said("ann's subscription", is_worked_out=True), middle.settled()
    (None, ([], ["ann's subscription"]))
    """

    def __init__(self) -> None:
        self._sent: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._waiting: dict[str, deque[PendingSettlement]] = {_HERE: deque()}
        self._unworked: list[tuple[str, PendingSettlement]] = []
        self._heard: dict[str, int] = {}

    @property
    def waiting_count(self) -> int:
        """How much is not settled yet."""
        return sum(map(len, self._waiting.values()))

    # -- Neighbours

    def connect(self, neighbour: str) -> None:
        """There is a neighbour, to which nothing was said."""
        if neighbour in self._sent:
            raise KnownPeerError("settling", neighbour)
        self._sent[neighbour] = self._settled[neighbour] = 0
        self._heard[neighbour] = 0
        self._waiting[neighbour] = deque()

    def disconnect(self, neighbour: str) -> None:
        """It is gone, and nobody waits for it."""
        self._check(neighbour)
        for tickets in self._waiting.values():
            for ticket in tickets:
                if ticket.needs is not None:
                    ticket.needs.pop(neighbour, None)
        self._unworked = [each for each in self._unworked if each[0] != neighbour]
        for known in (self._sent, self._settled, self._heard, self._waiting):
            del known[neighbour]

    def renew(self, neighbour: str, *, is_new: bool) -> None:
        """Both ends begin again, before the new Hello is sent; `is_new` if the neighbour was started anew.

        Numbers go on here. What was under way is contained in the Hello, and settled with it. What the neighbour said
        before, it does not wait for any more.
        """
        self._check(neighbour)
        for tickets in self._waiting.values():
            for ticket in tickets:
                if ticket.needs is not None and neighbour in ticket.needs:
                    ticket.needs[neighbour] = self._sent[neighbour] + 1
        self._waiting[neighbour].clear()
        self._unworked = [each for each in self._unworked if each[0] != neighbour]
        self._heard[neighbour] = 0 if is_new else self._heard[neighbour]

    def _check(self, neighbour: str) -> None:
        if neighbour not in self._sent:
            raise UnknownPeerError("settling", neighbour)

    # -- What is said

    def sent(self, neighbour: str) -> int:
        """Return the number of a control message that goes to a neighbour now."""
        self._check(neighbour)
        self._sent[neighbour] += 1
        return self._sent[neighbour]

    def received(self, neighbour: str, number: int, *, is_worked_out: bool) -> None:
        """A control message of a neighbour was handled, and what it caused was sent if it `is_worked_out` (`Broker`).

        One that comes twice is known by its number.
        """
        self._check(neighbour)
        if number > self._heard[neighbour]:
            self._heard[neighbour] = number
            self._wait(neighbour, number, is_worked_out)

    def said(self, what: Hashable, *, is_worked_out: bool) -> None:
        """A client said something, and all that it caused at once was sent."""
        self._wait(_HERE, what, is_worked_out)

    def _wait(self, source: str, what: Any, is_worked_out: bool) -> None:
        ticket = PendingSettlement(what)
        self._waiting[source].append(ticket)
        self._unworked.append((source, ticket))
        if is_worked_out:
            self.worked_out()

    def worked_out(self) -> None:
        """There is nothing left to work out: neighbours were told all that they must know."""
        for source, ticket in self._unworked:
            ticket.needs = {peer: number for peer, number in self._sent.items() if peer != source}
        self._unworked.clear()

    def acknowledged(self, neighbour: str, through: int) -> None:
        """A neighbour says up to which number all is settled there."""
        self._check(neighbour)
        self._settled[neighbour] = max(self._settled[neighbour], min(through, self._sent[neighbour]))

    def settled(self) -> tuple[list[tuple[str, int]], list[Any]]:
        """Return what is settled now: up to which number to acknowledge to which neighbours, and what clients said."""
        through: list[tuple[str, int]] = []
        said: list[Any] = []
        for source, tickets in self._waiting.items():
            latest: Any = None
            while tickets and self._is_settled(tickets[0]):
                latest = tickets.popleft().what
                if source == _HERE:
                    said.append(latest)
            if latest is not None and source != _HERE:
                through.append((source, latest))
        return through, said

    def _is_settled(self, ticket: PendingSettlement) -> bool:
        # Later tickets of the same source need no less, so whoever is first is the first to be settled.
        return ticket.needs is not None and all(
            self._settled[neighbour] >= number for neighbour, number in ticket.needs.items()
        )
