"""How do many events travel at once, and none is lost? A window of publications under their own ids.

A *batch* goes out as one message, and at most so many batches are under way. It is under way until the broker says that
it is on disk; if the connection breaks before that, it is sent again on the next one, in the order in which batches
were given. Their events have the ids that they had, so the broker knows those that it has taken already.

A broker that is busy refuses a batch for now, and with it all that come behind it on the same connection. When all of
these have their answers, they are sent again in their order: the order of events is that of their publisher.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tamis.service import wire
from tamis.service.client.conversation import Conversation
from tamis.service.client.problems import rebuilt
from tamis.service.errors import TooManyError

if TYPE_CHECKING:
    from tamis.errors import TamisError
    from tamis.service.client.dialling import Dialler

WINDOW = 16
"""So many batches are under way at most."""
BATCH_EVENTS = 256
BATCH_BYTES = 256_000


class Largest(NamedTuple):
    """How large a batch may be; what the broker allows, if that is less than what is good."""

    events: int = BATCH_EVENTS
    size_bytes: int = BATCH_BYTES


class Batch:
    """Events that are published by one message, all of them or none."""

    def __init__(self, number: int, events: list[bytes]) -> None:
        self.message = wire.FromClient(publish=[msgspec.Raw(event) for event in events], id=number)
        self.count = len(events)
        self.answer: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()
        self.is_refused = False
        """Whether the broker was too busy for it, and it was not sent again yet."""


class Publisher(Conversation):
    """The conversation by which a client publishes."""

    def __init__(self, dialler: Dialler) -> None:
        super().__init__(dialler)
        self._under_way: dict[int, Batch] = {}
        self._room = asyncio.Semaphore(WINDOW)
        self._last_number = 0
        self._connection_number = 0
        self._is_pausing = False
        """Whether what was refused is about to be sent again: nothing else goes out before."""
        self._pause_until_s = 0.0
        self._welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.largest = Largest()

    async def publish(self, events: list[bytes]) -> list[str]:
        """Publish a batch of encoded events; return their positions when they are on disk."""
        batch = await self._begin(events)
        return await batch.answer

    async def publish_all(
        self,
        events: Iterable[Any] | AsyncIterable[Any],
        encode: Callable[[Any], bytes],
        on_progress: Callable[[int], None] | None = None,
    ) -> list[str]:
        """Publish any number of events in batches, many under way; return the positions of all events.

        If one is refused no further ones are sent, those under way are waited for, and the refusal is raised.
        """
        await asyncio.shield(self._welcomed)
        answers: list[asyncio.Future[list[str]]] = []
        try:
            async for batch in batches_of(events, encode, self.largest):
                answer = (await self._begin(batch)).answer
                answers.append(answer)
                if on_progress is not None:
                    answer.add_done_callback(lambda answer: _count(answer, on_progress))
                if any(_is_refused(earlier) for earlier in answers[-2 * WINDOW :]):
                    break
            outcomes = await asyncio.gather(*answers, return_exceptions=True)
        except BaseException:
            for answer in answers:
                answer.cancel()  # nobody waits for it, so it is not sent again
            raise
        for index, outcome in enumerate(outcomes):
            if isinstance(outcome, BaseException):
                others = sum(len(other) for other in outcomes if isinstance(other, list))
                outcome.add_note(f"batch {index + 1} of {len(outcomes)}: {others} events of the others are published")
                raise outcome
        return [position for outcome in outcomes if isinstance(outcome, list) for position in outcome]

    async def _begin(self, events: list[bytes]) -> Batch:
        """Send a batch as soon as there is room for one more."""
        await self._room.acquire()
        if self.failure is not None:
            self._room.release()
            raise self.failure
        self._last_number += 1
        batch = self._under_way[self._last_number] = Batch(self._last_number, events)
        batch.answer.add_done_callback(partial(self._finished, self._last_number))
        if any(earlier.is_refused for earlier in self._under_way.values()):
            batch.is_refused = True  # it waits for those before it
        else:
            self.say(batch.message)
        return batch

    def _finished(self, number: int, _: asyncio.Future[list[str]]) -> None:
        del self._under_way[number]
        self._room.release()
        self._send_again()

    # -- The conversation

    def hello(self) -> wire.Hello:
        """Introduce ourselves as nobody's consumer."""
        return wire.Hello(token=self._dialler.token)

    def opened(self, welcome: wire.Welcome) -> None:
        """Send again whatever was not acknowledged, in its order."""
        allowed = (welcome.limits.get("batch_events"), welcome.limits.get("batch_bytes"))
        self.largest = Largest(*map(_lesser, Largest(), allowed))
        if not self._welcomed.done():
            self._welcomed.set_result(None)
        self._connection_number += 1
        self._is_pausing = False
        for batch in self._under_way.values():
            batch.is_refused = False
            self.say(batch.message)

    def before_writing(self) -> None:
        """Nothing is collected: batches are messages already."""

    def hear(self, message: wire.FromBroker) -> None:
        """Take an answer in."""
        if isinstance(message.ok, int) and (batch := self._under_way.get(message.ok)):
            if not batch.answer.done():
                batch.answer.set_result(_positions(message, batch.count))
        elif isinstance(message.error, dict) and isinstance(message.id, int):
            self._refused(message.id, rebuilt(message.error, message.retry_s))
        self._send_again()

    def _refused(self, number: int, error: TamisError) -> None:
        batch = self._under_way.get(number)
        if batch is None or batch.answer.done():
            return
        if not isinstance(error, TooManyError):
            batch.answer.set_exception(error)
            return
        batch.is_refused = True
        self._pause_until_s = max(self._pause_until_s, monotonic() + error.retry_s)

    def _send_again(self) -> None:
        """Send what was refused for now, in its order, when nothing else is under way and the broker has rested."""
        waiting = list(self._under_way.values())
        first = next((index for index, batch in enumerate(waiting) if batch.is_refused), None)
        if first is None or self._is_pausing or not all(batch.is_refused for batch in waiting[first:]):
            return
        self._is_pausing = True
        wait_s = max(0.0, self._pause_until_s - monotonic())
        asyncio.get_running_loop().call_later(wait_s, self._go_on, self._connection_number)

    def _go_on(self, connection_number: int) -> None:
        if connection_number != self._connection_number:
            return  # the connection broke meanwhile, and all of it was sent again on the next one
        self._is_pausing = False
        for batch in self._under_way.values():
            if batch.is_refused:
                batch.is_refused = False
                self.say(batch.message)

    def ended(self, failure: TamisError) -> None:
        """Tell everybody who waits."""
        if not self._welcomed.done():
            self._welcomed.set_exception(failure)
            self._welcomed.exception()  # so that nobody is told who did not ask
        for batch in list(self._under_way.values()):
            if not batch.answer.done():
                batch.answer.set_exception(failure)


def _positions(message: wire.FromBroker, count: int) -> list[str]:
    if isinstance(message.positions, list):
        return message.positions
    return [message.position] * count if count == 1 else [*[""] * (count - 1), message.position]


def _lesser(good: int, allowed: Any) -> int:
    return min(good, allowed) if isinstance(allowed, int) and allowed > 0 else good


def _is_refused(answer: asyncio.Future[list[str]]) -> bool:
    return answer.done() and not answer.cancelled() and answer.exception() is not None


def _count(answer: asyncio.Future[list[str]], on_progress: Callable[[int], None]) -> None:
    if not answer.cancelled() and answer.exception() is None:
        on_progress(len(answer.result()))


async def batches_of(
    events: Iterable[Any] | AsyncIterable[Any], encode: Callable[[Any], bytes], largest: Largest
) -> AsyncIterator[list[bytes]]:
    """Yield events, encoded, in batches; those of an asynchronous iterable that come slowly wait for no others."""
    if isinstance(events, AsyncIterable):
        async for portion in _portions(events):
            for batch in _cut((encode(event) for event in portion), largest):
                yield batch
    else:
        for batch in _cut((encode(event) for event in events), largest):
            yield batch


def _cut(events: Iterable[bytes], largest: Largest) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size_bytes = 0
    for event in events:
        if batch and (size_bytes + len(event) > largest.size_bytes or len(batch) == largest.events):
            yield batch
            batch, size_bytes = [], 0
        batch.append(event)
        size_bytes += len(event)
    if batch:
        yield batch


async def _portions(events: AsyncIterable[Any]) -> AsyncIterator[list[Any]]:
    """Yield what has come of an asynchronous iterable, whenever something has."""
    arrived: asyncio.Queue[Any] = asyncio.Queue(BATCH_EVENTS)

    async def pump() -> None:
        try:
            async for event in events:
                await arrived.put((event,))
        finally:
            await arrived.put(())  # the end, also where the iterable fails: `await pumping` raises that

    pumping = asyncio.create_task(pump())
    try:
        while True:
            portion = [await arrived.get()]
            while not arrived.empty():
                portion.append(arrived.get_nowait())
            if events_now := [item[0] for item in portion if item]:
                yield events_now
            if () in portion:
                await pumping
                return
    finally:
        pumping.cancel()
        await asyncio.wait([pumping])
