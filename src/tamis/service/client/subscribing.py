"""How does a program receive, and say what became of it? A subscription that goes on after a break.

Deliveries to a durable subscriber wait in a queue that is bounded by the credit: the broker sends no more than so many
that are not done. A program says of each delivery *done*, *again* or *never*; these verdicts are collected and sent
once per turn of the loop, and again on the next connection if there is none.

After a break the broker delivers again whatever is not done. Of that the program sees only what it has not yet seen:

    waiting here, not handed out      forgotten; comes again, marked
    handed out, no verdict yet        swallowed once: the program still has it in its hands
    done, but that has not arrived    swallowed once, and said again

A passing subscriber acknowledges nothing: what the broker has written counts as done. If the program is slow, no more
is read and the broker waits. Once its connection is gone, nobody knows it any more; it subscribes anew, from behind the
last event that it has.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Self

import msgspec

from tamis.service import wire
from tamis.service.client.conversation import Broken, Conversation, logger
from tamis.service.client.events import Event, Told
from tamis.service.client.problems import rebuilt
from tamis.service.errors import ClosedError, GoneError, TooManyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from tamis.errors import TamisError
    from tamis.service.client.dialling import Dialler

DEFAULT_KEY = "default"
"""The key of a subscription that is given as a text alone."""
_REMEMBERED = 16_384
"""So many deliveries are remembered as done."""


class Gap(msgspec.Struct, frozen=True):
    """Events that a subscriber will not get, as the broker tells of them."""

    facts: dict[str, Any]


class Delivery(Event):
    """An event for a subscription."""

    def __init__(self, subscription: Subscription, delivered: wire.Delivered) -> None:
        super().__init__(delivered.at, bytes(delivered.event))
        self.keys = tuple(delivered.keys)
        """The keys of the subscriptions that want it."""
        self.is_again = delivered.again
        """Whether it may have been delivered before."""
        self.told = tuple(map(Told, delivered.told))
        """What those subscriptions say of it that remember earlier events."""
        self._subscription = subscription

    async def done(self) -> None:
        """Acknowledge it: it does not come again."""
        self._subscription.judge(self.at)

    async def again(self, in_s: float = 0.0) -> None:
        """Ask for it once more, after so many seconds."""
        self._subscription.judge(self.at, wire.FromClient(again=[self.at], in_s=in_s))

    async def never(self, reason: str = "") -> None:
        """Give it up: it goes to the dead letters, with the reason."""
        self._subscription.judge(self.at, wire.FromClient(never=[self.at], reason=reason))


class Subscription(Conversation):
    """Events as they come, for `async for`. As a context manager it waits until it is in force, and ends at the end."""

    def __init__(
        self,
        dialler: Dialler,
        subscriptions: Mapping[str, Any],
        name: str = "",
        since: str = "",
        is_durable: bool = False,
        credit: int = 256,
        on_gap: Callable[[Gap], None] | None = None,
        lease_s: float = 0.0,
    ) -> None:
        super().__init__(dialler)
        self.name = name
        self.keys = tuple(subscriptions)
        self.since = ""
        """The position behind which every event is judged; known when the broker has answered."""
        self.is_caught_up = False
        """Whether all that was asked of the past has come."""
        self._subscriptions = dict(subscriptions)
        self._asked_from = since
        self._is_durable = is_durable
        self._credit = credit
        self._on_gap = on_gap or tell_of_gap
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._lease_s = lease_s
        self._renewal: asyncio.TimerHandle | None = None
        self._number = 0
        self._is_asked = self._is_remembering = False
        self._epoch = ""
        self._last: tuple[str, int] | None = None
        self._waiting: OrderedDict[str, wire.Delivered] = OrderedDict()
        self._has_news = asyncio.Event()
        self._in_hand: set[str] = set()
        self._done: OrderedDict[str, None] = OrderedDict()
        self._unsaid_done: list[str] = []
        self._unsaid: list[wire.FromClient] = []
        # What may come again because the connection broke, and has been seen: its own, once each.
        self._held_at_break: set[str] = set()
        self._done_at_break: set[str] = set()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._most_waiting = 4 * credit

    # -- For who receives

    async def ready(self) -> Self:
        """Wait until the broker has the subscriptions; raise what it objects to."""
        self.start()
        await asyncio.shield(self._ready)
        return self

    async def __aenter__(self) -> Self:
        return await self.ready()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        self.start()
        return self

    async def __anext__(self) -> Delivery:
        self.start()
        while not self._waiting:
            if isinstance(self.failure, ClosedError):
                raise StopAsyncIteration
            if self.failure is not None:
                raise self.failure
            self._has_news.clear()
            await self._has_news.wait()
        at, delivered = self._waiting.popitem(last=False)
        if self._is_durable:
            self._in_hand.add(at)
        if len(self._waiting) <= self._most_waiting // 2:
            self._has_room.set()
        return Delivery(self, delivered)

    def judge(self, at: str, verdict: wire.FromClient | None = None) -> None:
        """Take what the program says of a delivery; without a verdict, that it is done."""
        self._in_hand.discard(at)
        if not self._is_durable or not at.startswith(f"{self._epoch}-"):
            return  # nobody asks, or the broker does not know it any more: it has another log
        if verdict is None:
            self._done[at] = None
            while len(self._done) > _REMEMBERED:
                self._done.popitem(last=False)
            self._unsaid_done.append(at)
        else:
            self._unsaid.append(verdict)
        self.wake()

    # -- The conversation

    def hello(self) -> wire.Hello:
        """Introduce ourselves as a consumer."""
        past = not self._is_asked and bool(self._asked_from)
        return wire.Hello(self.name, self._dialler.token, self._is_durable, self._credit, past=past)

    def opened(self, welcome: wire.Welcome) -> None:
        """Subscribe again, say the verdicts that were not said, and prepare for what comes again."""
        if self._epoch and welcome.epoch != self._epoch:
            self._on_gap(Gap({"reason": "another log", "was": self._epoch, "is": welcome.epoch}))
            self._last = None
            self._is_asked = False  # a position of the other log means nothing here, anything else does
            if self._asked_from.startswith(f"{self._epoch}-"):
                self._asked_from = ""
            self._forget()
        if self._is_durable:
            self._waiting.clear()
        self._epoch = welcome.epoch
        self._held_at_break = set(self._in_hand)
        self._done_at_break = set(self._done)
        self._subscribe()

    def before_writing(self) -> None:
        """Say of all deliveries at once that they are done, then what else was said of others."""
        if self._unsaid_done:
            self.say(wire.FromClient(done=self._unsaid_done))
            self._unsaid_done = []
        for verdict in self._unsaid:
            self.say(verdict)
        self._unsaid.clear()

    def _forget(self) -> None:
        self._in_hand.clear()
        self._done.clear()
        self._unsaid_done.clear()
        self._unsaid.clear()

    def _subscribe(self) -> None:
        self._number += 1
        place = self._place()
        self.say(wire.FromClient(subscribe=self._subscriptions, since=place, lease_s=self._lease_s, id=self._number))
        self._renew_later()

    def _renew_later(self) -> None:
        """Subscribe again when a third of the lease is over, so that it lasts as long as somebody listens."""
        if self._renewal is not None:
            self._renewal.cancel()
        if self._lease_s:
            self._renewal = asyncio.get_running_loop().call_later(self._lease_s / 3, self._renew)

    def _renew(self) -> None:
        if self.failure is None and self._is_asked:
            self.say(wire.FromClient(subscribe=self._subscriptions, lease_s=self._lease_s))
            self.wake()
        if self.failure is None:
            self._renew_later()

    def _place(self) -> str:
        """Return from where on to ask for events: once what the program said, then what is missing."""
        if not self._is_asked:
            return self._asked_from
        if self._is_durable or self._is_remembering:
            return ""  # the broker knows; or there is no past, and what is remembered begins anew
        if self._last is not None:
            return f"{self._last[0]}-{self._last[1] + 1}"
        if self._asked_from:
            return self._asked_from
        epoch, number = _event_of(self.since)
        return f"{epoch}-{number + 1}"

    async def wait_for_room(self) -> None:
        """Wait until the program has taken enough of what waits.

        If that takes long, the broker may give the connection up: then it is made again, and nothing is missing.
        """
        await self._has_room.wait()

    def hear(self, message: wire.FromBroker) -> None:
        """Take deliveries and answers in."""
        if isinstance(message.events, list):
            for delivered in message.events:
                self._deliver(delivered)
        elif isinstance(message.ok, int):
            if message.ok == self._number and not self._is_asked:
                self.since = message.since
                self._is_asked = True
                self._is_remembering = bool(message.remembering)
                if not self._ready.done():
                    self._ready.set_result(None)
        elif isinstance(message.gap, dict):
            self._on_gap(Gap(message.gap))
        elif message.caught_up is not msgspec.UNSET:
            self.is_caught_up = True
        elif isinstance(message.error, dict) and message.id == self._number:
            self._refused(rebuilt(message.error, message.retry_s, self._only_text()))

    def _refused(self, error: TamisError) -> None:
        if isinstance(error, TooManyError):
            raise Broken(str(error), error.retry_s)
        if isinstance(error, GoneError) and self._is_asked:
            # Retention has passed the place where a passing subscriber was: it goes on from now.
            self._on_gap(Gap({"reason": str(error)}))
            self._last, self._asked_from, self._is_asked = None, "", False
            self._subscribe()
            return
        raise error

    def _deliver(self, delivered: wire.Delivered) -> None:
        at = delivered.at
        if at in self._waiting:
            return  # the program is slow, and the broker has lost patience; it is here already
        if not self._is_durable and not self._take_if_new(at):
            return
        if at in self._held_at_break:
            self._held_at_break.discard(at)
        elif at in self._done_at_break:
            self._done_at_break.discard(at)
            self._unsaid_done.append(at)
            self.wake()
        else:
            self._waiting[at] = delivered
            self._has_news.set()
            if len(self._waiting) >= self._most_waiting:
                self._has_room.clear()

    def _take_if_new(self, at: str) -> bool:
        """Note the latest event of a passing subscriber; return whether it is new. Events come in order of the log."""
        epoch, number = _event_of(at)
        if self._last is not None and self._last[0] == epoch and number <= self._last[1]:
            return False
        self._last = (epoch, number)
        return True

    def _only_text(self) -> str | None:
        texts = [text for text in self._subscriptions.values() if isinstance(text, str)]
        return texts[0] if len(texts) == 1 else None

    def ended(self, failure: TamisError) -> None:
        """Tell who waits: for the answer, or for an event."""
        if self._renewal is not None:
            self._renewal.cancel()
        if not self._ready.done():
            self._ready.set_exception(failure)
            self._ready.exception()  # so that nobody is told who did not ask
        self._has_news.set()


def _event_of(at: str) -> tuple[str, int]:
    """Return the epoch and the number of the event of a position.

    >>> _event_of("k3f9-812"), _event_of("k3f9-812.97")
    (('k3f9', 812), ('k3f9', 97))
    """
    epoch, _, numbers = at.partition("-")
    return epoch, int(numbers.rpartition(".")[2])


def tell_of_gap(gap: Gap) -> None:
    """Log a warning: what a program is told that has not asked to be."""
    logger.warning("events were lost to this subscriber: %s", gap.facts)
