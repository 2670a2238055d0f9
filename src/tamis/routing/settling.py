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

`Settlement` is for links that number their messages themselves; `Settling` numbers them, and remembers what clients
said.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tamis.routing.errors import KnownPeerError, UnknownPeerError

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

Marks: TypeAlias = "dict[str, int]"
"""By neighbour: the number up to which it must have settled what it was told."""


@dataclass(slots=True)
class Pending:
    """Something that was said, and what must be settled before it is."""

    what: Any
    marks: Marks | None = None
    """None while it is not worked out yet what others must be told."""


class Settlement:
    """What neighbours were told, what of it they have settled, and what of theirs waits for that.

    >>> settlement = Settlement()
    >>> settlement.told("north", 1), settlement.told("south", 4)
    (None, None)
    >>> settlement.heard("north", 9), settlement.conclude(), settlement.through("north")   # south must settle 4 first
    (None, None, 0)
    >>> settlement.settled("south", 4), settlement.through("north")
    (None, 9)
    """

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._heard: dict[str, deque[Pending]] = {}
        self._through: dict[str, int] = {}

    @property
    def waiting_count(self) -> int:
        """How many messages of neighbours are not settled yet, as far as anybody has asked."""
        return sum(map(len, self._heard.values()))

    def told(self, neighbour: str, number: int) -> None:
        """A neighbour was told something, or is to be; it counts from now on."""
        self._told[neighbour] = max(number, self._told.get(neighbour, 0))

    def heard(self, neighbour: str, number: int) -> None:
        """A control message of a neighbour was dealt with. What it causes is told to the others by `conclude`."""
        self._heard.setdefault(neighbour, deque()).append(Pending(number))

    def conclude(self) -> None:
        """Everything has been told that was caused by what was heard."""
        for neighbour, waiting in self._heard.items():
            if waiting and waiting[-1].marks is None:
                marks = self.marks(besides=neighbour)
                for pending in waiting:
                    if pending.marks is None:
                        pending.marks = dict(marks)

    def reopen(self) -> None:
        """What is not settled yet has other neighbours to wait for, as `conclude` finds."""
        for waiting in self._heard.values():
            for pending in waiting:
                pending.marks = None

    def begin(self, neighbour: str) -> None:
        """A neighbour begins a session: its numbers may be any from now on, and it waits for nothing it said before."""
        self._heard.pop(neighbour, None)
        self._through.pop(neighbour, None)

    def settled(self, neighbour: str, through: int) -> None:
        """A neighbour has settled what it was told up to a number."""
        self._settled[neighbour] = max(through, self._settled.get(neighbour, 0))

    def postpone(self, neighbour: str, number: int) -> None:
        """What waits for a neighbour waits for what it is told under this number, which contains it."""
        for waiting in self._heard.values():
            for pending in waiting:
                if pending.marks is not None and neighbour in pending.marks:
                    pending.marks[neighbour] = number

    def forget(self, neighbour: str) -> None:
        """A neighbour is gone: nothing waits for it any more, also if one of its name comes and counts anew."""
        for table in (self._told, self._settled, self._heard, self._through):
            table.pop(neighbour, None)
        for waiting in self._heard.values():
            for pending in waiting:
                if pending.marks is not None:
                    pending.marks.pop(neighbour, None)

    def marks(self, besides: str = "") -> Marks:
        """Return what must be settled so that everything that was told up to now is."""
        return {name: number for name, number in self._told.items() if name != besides}

    def are_settled(self, marks: Mapping[str, int]) -> bool:
        """Is everything settled that was to be? Who is gone does not count."""
        return all(self._settled.get(name, 0) >= number for name, number in marks.items() if name in self._told)

    def through(self, neighbour: str) -> int:
        """Return the number up to which everything that a neighbour said is settled; 0 if nothing is."""
        waiting = self._heard.get(neighbour, deque())
        # Later messages of one neighbour need no less, so the first is the first to be settled.
        while waiting and (marks := waiting[0].marks) is not None and self.are_settled(marks):
            self._through[neighbour] = waiting.popleft().what
        return self._through.get(neighbour, 0)


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
        self._settlement = Settlement()
        self._sent: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self._acknowledged: dict[str, int] = {}
        """By neighbour: up to where it was told that what it said is settled."""
        self._said: deque[Pending] = deque()

    @property
    def waiting_count(self) -> int:
        """How much is not settled yet."""
        return self._settlement.waiting_count + len(self._said)

    # -- Neighbours

    def connect(self, neighbour: str) -> None:
        """There is a neighbour, to which nothing was said."""
        if neighbour in self._sent:
            raise KnownPeerError("settling", neighbour)
        self._sent[neighbour] = self._heard[neighbour] = self._acknowledged[neighbour] = 0
        self._settlement.told(neighbour, 0)

    def disconnect(self, neighbour: str) -> None:
        """It is gone, and nobody waits for it."""
        self._check(neighbour)
        self._settlement.forget(neighbour)
        for pending in self._said:
            if pending.marks is not None:
                pending.marks.pop(neighbour, None)
        for table in (self._sent, self._heard, self._acknowledged):
            del table[neighbour]

    def renew(self, neighbour: str, *, is_new: bool) -> None:
        """Both ends begin again, before the new Hello is sent; `is_new` if the neighbour was started anew.

        Numbers go on here. What was under way is contained in the Hello, and settled with it. What the neighbour said
        before, it does not wait for any more.
        """
        self._check(neighbour)
        hello = self._sent[neighbour] + 1
        self._settlement.begin(neighbour)
        self._settlement.postpone(neighbour, hello)
        for pending in self._said:
            if pending.marks is not None and neighbour in pending.marks:
                pending.marks[neighbour] = hello
        if is_new:
            self._heard[neighbour] = self._acknowledged[neighbour] = 0

    def _check(self, neighbour: str) -> None:
        if neighbour not in self._sent:
            raise UnknownPeerError("settling", neighbour)

    # -- What is said

    def sent(self, neighbour: str) -> int:
        """Return the number of a control message that goes to a neighbour now."""
        self._check(neighbour)
        self._sent[neighbour] += 1
        self._settlement.told(neighbour, self._sent[neighbour])
        return self._sent[neighbour]

    def received(self, neighbour: str, number: int, *, is_worked_out: bool) -> None:
        """A control message of a neighbour was handled, and what it caused was sent if it `is_worked_out` (`Broker`).

        One that comes twice is known by its number.
        """
        self._check(neighbour)
        if number > self._heard[neighbour]:
            self._heard[neighbour] = number
            self._settlement.heard(neighbour, number)
            if is_worked_out:
                self.worked_out()

    def said(self, what: Hashable, *, is_worked_out: bool) -> None:
        """A client said something, and all that it caused at once was sent."""
        self._said.append(Pending(what))
        if is_worked_out:
            self.worked_out()

    def worked_out(self) -> None:
        """There is nothing left to work out: neighbours were told all that they must know."""
        self._settlement.conclude()
        for pending in self._said:
            if pending.marks is None:
                pending.marks = self._settlement.marks()

    def acknowledged(self, neighbour: str, through: int) -> None:
        """A neighbour says up to which number all is settled there."""
        self._check(neighbour)
        self._settlement.settled(neighbour, min(through, self._sent[neighbour]))

    def settled(self) -> tuple[list[tuple[str, int]], list[Any]]:
        """Return what is settled now: up to which number to acknowledge to which neighbours, and what clients said."""
        through: list[tuple[str, int]] = []
        for neighbour, before in self._acknowledged.items():
            if (number := self._settlement.through(neighbour)) > before:
                self._acknowledged[neighbour] = number
                through.append((neighbour, number))
        said: list[Any] = []
        while self._said and (marks := self._said[0].marks) is not None and self._settlement.are_settled(marks):
            said.append(self._said.popleft().what)
        return through, said
