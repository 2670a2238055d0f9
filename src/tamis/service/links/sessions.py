"""What has the other end of a link heard, and what must be said once more? Sessions of numbered control messages.

A connection that breaks is not a neighbour that is lost. What a broker says on a link is numbered and waits until the
other end has it; when they meet again, each says which session it is in and what of the other's session it has, and
both go on behind that. Nothing is told anew. Only if one of them does not know the other's session, because it was
started anew or too much had to wait, both begin a session: each tells everything that it wants (`Hello`), which
replaces in one step what it had told before.

Both ends see both `Join`s, so they always agree whether they go on or begin.

>>> north, south = LinkSession("n1"), LinkSession("s1")
>>> north.say(b"hello"), north.meet(south.join(())), south.meet(north.join(()))
(1, False, False)
>>> north.begin(), north.say(b"hello again"), north.unsent()
(None, 2, [(2, b'hello again')])
>>> south.begin(), south.take(2), south.take(2)
(None, True, False)
>>> north.meet(south.join(())), north.unsent()
(True, [])
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tamis.service.links.frames import Join, LinkError

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_WAITING = 10_000
"""Control messages that wait for a neighbour that is away, before a new session is cheaper."""


class LinkSession:
    """One end of a link.

    Invariant: the numbers in `_waiting` ascend without a gap and end with the last that was said, unless the session
    is spent. Numbers are never used twice by one end, in however many sessions.
    """

    def __init__(self, life: str, most_waiting: int = MOST_WAITING) -> None:
        self._life = life
        """A name of this broker since its start that nobody else has."""
        self._count = 0
        """Of sessions that were spent."""
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._sent_through = 0
        """On the present connection."""
        self._begun_at = 0
        """What had been said before this session."""
        self.said = 0
        """The number of the last message that was said, or would have been."""
        self.is_begun = False
        """Whether the other end was told everything in this session. Until then nothing waits."""
        self.heard_session = ""
        self.heard_control = 0

    @property
    def name(self) -> str:
        """What this session is called."""
        return f"{self._life}.{self._count}"

    @property
    def waiting_count(self) -> int:
        """How many messages the other end has not acknowledged."""
        return len(self._waiting)

    # -- Saying

    def say(self, payload: bytes) -> int:
        """Let a message be sent when it can be; return its number."""
        self.said += 1
        if self.is_begun:
            self._waiting.append((self.said, payload))
            if len(self._waiting) > self._most_waiting:
                self.spend()
        return self.said

    def spend(self) -> None:
        """Give the session up: what waits is forgotten, and everything is told anew when the two meet."""
        self._count += 1
        self._waiting.clear()
        self.is_begun = False

    def unsent(self) -> list[tuple[int, bytes]]:
        """Return what is to be sent on this connection now, and take it as sent."""
        unsent = [each for each in self._waiting if each[0] > self._sent_through]
        if unsent:
            self._sent_through = unsent[-1][0]
        return unsent

    def acknowledge(self, through: int) -> None:
        """The other end has everything up to a number."""
        if through > self._sent_through:
            raise LinkError(f"an acknowledgement of the control message {through}", f"at most {self._sent_through}")
        while self._waiting and self._waiting[0][0] <= through:
            self._waiting.popleft()

    # -- Hearing

    def take(self, number: int) -> bool:
        """Take note of a message that came; return whether it is new."""
        if number <= self.heard_control:
            return False
        if self.heard_control and number != self.heard_control + 1:
            raise LinkError(f"the control message {number} behind {self.heard_control}", "all of them in order")
        self.heard_control = number
        return True

    # -- Meeting

    def join(self, behind: Iterable[str], events_through: int = 0) -> Join:
        """Return what to say when a connection is made."""
        return Join(self.name, self.heard_session, self.heard_control, events_through, tuple(behind))

    def meet(self, join: Join) -> bool:
        """Hear what the other end says when a connection is made; return whether both go on where they were."""
        goes_on = self.is_begun and (join.heard_session, join.session) == (self.name, self.heard_session)
        if goes_on:
            through = join.control_through or self._begun_at  # 0 is for nothing of this session
            least = self._waiting[0][0] - 1 if self._waiting else self.said
            if not least <= through <= self.said:
                raise LinkError(f"the control messages up to {through} were heard", f"{least} to {self.said}")
            self._sent_through = through
            self.acknowledge(through)
        else:
            self.heard_session, self.heard_control = join.session, 0
        return goes_on

    def begin(self) -> None:
        """Begin to tell everything: what is said from now on is what the other end knows."""
        self._waiting.clear()
        self._sent_through = self._begun_at = self.said
        self.is_begun = True
