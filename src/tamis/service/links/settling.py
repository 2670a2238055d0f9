"""Does every broker that matters know of a subscription? Acknowledgements that travel back up the tree.

A control message of a neighbour is *settled* here when everything that was told to the other neighbours up to then is
settled there. At a leaf, which has no others, that is at once. What was told before a message counts too, though it may
have another cause: a filter that is covered by one that was told an instant earlier is in force only when that one is.
Since a link keeps its order, one number for each neighbour says it all.

A neighbour that is away delays what is to be settled; one that is gone for good does not count.

>>> settling = LinkSettling()
>>> settling.told("north", 1), settling.told("south", 4)
(None, None)
>>> settling.heard("north", 9), settling.conclude(), settling.through("north")     # south must settle 4 first
(None, None, 0)
>>> settling.settled("south", 4), settling.through("north")
(None, 9)
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Marks: TypeAlias = "Mapping[str, int]"
"""By neighbour: the number up to which it must have settled what it was told."""


class LinkSettling:
    """What neighbours were told, what of it they have settled, and what waits for that."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._heard: dict[str, deque[tuple[int, Marks | None]]] = {}
        self._through: dict[str, int] = {}

    def told(self, neighbour: str, number: int) -> None:
        """A neighbour was told something, or is to be; it counts from now on."""
        self._told[neighbour] = max(number, self._told.get(neighbour, 0))

    def heard(self, neighbour: str, number: int) -> None:
        """A control message of a neighbour was dealt with. What it causes is told to the others by `conclude`."""
        self._heard.setdefault(neighbour, deque()).append((number, None))

    def conclude(self) -> None:
        """Everything has been told that was caused by what was heard."""
        for neighbour, waiting in self._heard.items():
            if waiting and waiting[-1][1] is None:
                marks = self.marks(besides=neighbour)
                self._heard[neighbour] = deque(
                    (number, marks if earlier is None else earlier) for number, earlier in waiting
                )

    def reopen(self) -> None:
        """What is not settled yet has other neighbours to wait for, as `conclude` finds."""
        for neighbour, waiting in self._heard.items():
            self._heard[neighbour] = deque((number, None) for number, _ in waiting)

    def begin(self, neighbour: str) -> None:
        """A neighbour begins a session: its numbers may be any from now on."""
        self._heard.pop(neighbour, None)
        self._through.pop(neighbour, None)

    def settled(self, neighbour: str, through: int) -> None:
        """A neighbour has settled what it was told up to a number."""
        self._settled[neighbour] = max(through, self._settled.get(neighbour, 0))

    def forget(self, neighbour: str) -> None:
        """A neighbour is gone: nothing waits for it any more."""
        for table in (self._told, self._settled, self._heard, self._through):
            table.pop(neighbour, None)

    def marks(self, besides: str = "") -> Marks:
        """Return what must be settled so that everything that was told up to now is."""
        return {name: number for name, number in self._told.items() if name != besides and number}

    def are_settled(self, marks: Marks) -> bool:
        """Is everything settled that was to be? Who is gone does not count."""
        return all(self._settled.get(name, 0) >= number for name, number in marks.items() if name in self._told)

    def through(self, neighbour: str) -> int:
        """Return the number up to which everything that a neighbour said is settled; 0 if nothing is."""
        waiting = self._heard.get(neighbour, deque())
        while waiting and (marks := waiting[0][1]) is not None and self.are_settled(marks):
            self._through[neighbour] = waiting.popleft()[0]
        return self._through.get(neighbour, 0)
