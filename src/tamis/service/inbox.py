"""What waits for the core? An inbox with two lanes: control comes first, then events.

Of the events everything that waits is taken at once, up to a limit, as one group: groups form by themselves under load,
and a lone event waits for nobody. There is a limit to what waits, too: then the broker says that it is busy.

What a neighbour says over its link is heard in its order. What it says behind events waits in their lane: that it has
sent all of them, say, must not be heard before the last. What it has on its disk (`LinkAcked`) need not wait for
events, but for whatever else does.

Everybody may put something in; one thread takes.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.service.errors import OverloadedError
from tamis.service.links.requests import LinkAcked, Relay
from tamis.service.messages import LinkAsked, Publish

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.service.messages import Output, Session
    from tamis.service.settings import LimitSettings

Work: TypeAlias = "tuple[Callable[..., Sequence[Output]], tuple[Any, ...]]"
"""What the node is to do: a function, and its arguments before the time."""
Publication: TypeAlias = "tuple[Session, Publish, int]"
"""Who publishes what, of so many bytes."""


class Round(NamedTuple):
    """What the core does next, in this order."""

    control: Sequence[Work]
    words: Sequence[tuple[Session, LinkAsked]]
    """What neighbours said before the first publication that waits."""
    group: Sequence[Publication]


class Inbox:
    """Control, and events with what neighbours say between theirs."""

    def __init__(self) -> None:
        self._awake = threading.Condition()
        self._control: deque[Work] = deque()
        self._events: deque[tuple[Session, Publish | LinkAsked, int]] = deque()
        self._event_count = self._event_bytes = 0
        self._relays: Counter[int] = Counter()
        self._words: Counter[int] = Counter()
        """How much waits of a neighbour, by session: events, and what it says behind them."""

    @property
    def is_empty(self) -> bool:
        """Does nothing wait?"""
        return not self._control and not self._events

    @property
    def control_count(self) -> int:
        """How much control waits."""
        return len(self._control)

    @property
    def publication_count(self) -> int:
        """How many publications wait, and what neighbours say between theirs."""
        return len(self._events)

    # -- Who puts something in

    def post(
        self, work: Callable[..., Sequence[Output]], arguments: tuple[Any, ...] = (), *, wakes: bool = True
    ) -> None:
        """Let the node do something; whoever does not wake the core now has to do so soon."""
        with self._awake:
            self._control.append((work, arguments))
            if wakes:
                self._awake.notify()

    def put(self, session: Session, request: Publish, limits: LimitSettings) -> None:
        """Let the node take events; raise an `OverloadedError` if too many wait already."""
        size, event_count = sum(len(event.body) for event in request.events), len(request.events)
        with self._awake:
            if self._events and (
                self._event_count + event_count > limits.inbox_events or self._event_bytes + size > limits.inbox_bytes
            ):
                raise OverloadedError(
                    f"{self._event_count:,} events wait", "another try later (limits.inbox_events, inbox_bytes)", 1.0
                )
            self._events.append((session, request, size))
            if isinstance(request, Relay):
                self._relays[session.number] += 1
            self._event_count += event_count
            self._event_bytes += size
            self._awake.notify()

    def put_behind_events(self, session: Session, request: LinkAsked) -> bool:
        """Put what a neighbour says behind its events, if it has to wait for some; say whether it was."""
        number = session.number
        with self._awake:
            if not self._words[number] and (isinstance(request, LinkAcked) or not self._relays[number]):
                return False
            self._events.append((session, request, 0))
            self._words[number] += 1
            self._awake.notify()
            return True

    def wake(self) -> None:
        """Let the core look up, although there is nothing new."""
        with self._awake:
            self._awake.notify()

    # -- The core

    def wait(self, timeout_s: float) -> None:
        """Wait until there is something, or the core is to look up, or the time is over."""
        with self._awake:
            if self.is_empty:
                self._awake.wait(timeout_s)

    def take(self, limits: LimitSettings) -> Round:
        """Return all control that waits, and of the events one group."""
        with self._awake:
            control, self._control = self._control, deque()
            return Round(control, self._leading_words(), self._group(limits.group_events, limits.group_bytes))

    def _leading_words(self) -> list[tuple[Session, LinkAsked]]:
        words: list[tuple[Session, LinkAsked]] = []
        while self._events and isinstance(word := self._events[0][1], LinkAsked):
            session, _, _ = self._events.popleft()
            _count_off(self._words, session)
            words.append((session, word))
        return words

    def _group(self, most_events: int, most_bytes: int) -> list[Publication]:
        """Return the publications that wait, as far as they make one group and no word of a neighbour is between."""
        group: list[Publication] = []
        count = size = 0
        while self._events and isinstance(request := self._events[0][1], Publish):
            session, _, its_size = self._events[0]
            event_count = len(request.events)
            if group and (count + event_count > most_events or size + its_size > most_bytes):
                break
            self._events.popleft()
            if isinstance(request, Relay):
                _count_off(self._relays, session)
            group.append((session, request, its_size))
            count += event_count
            size += its_size
        self._event_count -= count
        self._event_bytes -= size
        return group


def _count_off(counter: Counter[int], session: Session) -> None:
    counter[session.number] -= 1
    if not counter[session.number]:
        del counter[session.number]  # sessions come and go
