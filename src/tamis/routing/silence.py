"""Which neighbours have been silent for too long, and to whom must one say something? Failure detection by heartbeats.

A broker that dies is not always seen to die: the link stays up, nothing comes any more, and what it wanted would stay
in tables for ever. So the word of a neighbour has a lease, which its `Hello` names. Any message renews it. A broker
that had nothing to say for half of its own lease says just that (`Renew`); a neighbour that was silent for all of it is
forgotten with everything that it said, and the driver is asked to close the link.

Messages are far more frequent than ends of leases, so a message only leaves its time; it is looked at when the lease
would have ended without it.

Source: leases are Mühl et al. 2002, section 5 (docs/bibliography.md).
Departs: the link has the lease, and not each filter on it. What is told again and again there is a word here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.matching.leases import Leases

if TYPE_CHECKING:
    from collections.abc import Iterator


class Silence:
    """Neighbours, when they were heard last, and when they were told something.

    >>> silence = Silence(lease_s=4.0)
    >>> silence.begin("north", 0.0), silence.lease("north", 6.0, 0.0), silence.next_s
    (None, None, 2.0)
    >>> list(silence.unrenewed(2.0)), silence.next_s, list(silence.lost(5.0)), list(silence.lost(6.0))
    (['north'], 4.0, [], ['north'])
    """

    def __init__(self, lease_s: float | None) -> None:
        self.lease_s = lease_s
        """How long this broker may be silent; None if for ever."""
        self._leases_s: dict[str, float] = {}
        self._heard_s: dict[str, float] = {}
        self._said_s: dict[str, float] = {}
        self._ends: Leases[str] = Leases()
        self._renewals: Leases[str] = Leases()

    def begin(self, neighbour: str, now: float) -> None:
        """A neighbour is greeted."""
        if self.lease_s is not None:
            self._said_s[neighbour] = now
            self._renewals.lease(neighbour, now + self.lease_s / 2)

    def lease(self, neighbour: str, lease_s: float | None, now: float) -> None:
        """A neighbour greets, and says how long it may be silent."""
        if lease_s is not None:
            self._leases_s[neighbour] = lease_s
            self._heard_s[neighbour] = now
            self._ends.lease(neighbour, now + lease_s)

    def heard(self, neighbour: str, now: float) -> None:
        """A neighbour said something."""
        if neighbour in self._heard_s:
            self._heard_s[neighbour] = now

    def said(self, neighbour: str, now: float) -> None:
        """A neighbour is told something."""
        if neighbour in self._said_s:
            self._said_s[neighbour] = now

    def forget(self, neighbour: str) -> None:
        """A neighbour is gone."""
        for times in (self._leases_s, self._heard_s, self._said_s):
            times.pop(neighbour, None)
        self._ends.forget(neighbour)
        self._renewals.forget(neighbour)

    @property
    def next_s(self) -> float | None:
        """When there may be something to do next; None if never."""
        ends = [each for each in (self._ends.next_end, self._renewals.next_end) if each is not None]
        return min(ends, default=None)

    def lost(self, now: float) -> Iterator[str]:
        """Yield the neighbours that were silent for too long."""
        for neighbour in list(self._ends.ended(now)):
            end = self._heard_s[neighbour] + self._leases_s[neighbour]
            if end > now:
                self._ends.lease(neighbour, end)
            else:
                yield neighbour

    def unrenewed(self, now: float) -> Iterator[str]:
        """Yield the neighbours that were told nothing for a while, and are told now that there is nothing to tell."""
        assert self.lease_s is not None or self._renewals.next_end is None
        for neighbour in list(self._renewals.ended(now)):
            due = self._said_s[neighbour] + (self.lease_s or 0.0) / 2
            if due <= now:
                self._said_s[neighbour] = now
                due = now + (self.lease_s or 0.0) / 2
                yield neighbour
            self._renewals.lease(neighbour, due)
