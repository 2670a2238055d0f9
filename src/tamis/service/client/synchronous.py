"""How does a program without a loop talk to a broker? The asynchronous client, with a loop in a thread.

    with tamis.Client("http://localhost:7410") as client:
        client.publish({"price": 12}, type="auction")
        for event in client.subscribe("price < 20", name="ann"):
            print(event.data)
            event.done()

Every call is handed to the loop of the thread and waited for. Any thread may call. An interrupt (Ctrl-C) ends the wait,
and what was waited for is given up.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Self, TypeVar

from tamis.service.client.asynchronous import AsyncClient, Since, Wanted
from tamis.service.client.endpoints import DEFAULT_URL, Certificate
from tamis.service.client.events import DEFAULT_SOURCE, Event
from tamis.service.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
    from pathlib import Path
    from types import TracebackType

    from tamis.service.client.polling import TakenDelivery
    from tamis.service.client.subscribing import Delivery, Gap, Subscription

Answer = TypeVar("Answer")


class BackgroundLoop:
    """A loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tamis client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    def wait_for(self, call: Coroutine[Any, Any, Answer]) -> Answer:
        """Run a coroutine in the loop, and wait for what it returns or raises."""
        if not self._thread.is_alive():
            call.close()
            raise ClosedError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], Answer]) -> Answer:
        """Call a function in the loop's thread."""

        async def calling() -> Answer:
            return function()

        return self.wait_for(calling())

    def end(self) -> None:
        """Stop the loop and its thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


class BlockingDelivery(Event):
    """An event for a subscription; its verdicts are plain calls."""

    def __init__(self, delivery: Delivery | TakenDelivery, loop: BackgroundLoop) -> None:
        super().__init__(delivery.at, delivery.body)
        self.keys = delivery.keys
        """The keys of the subscriptions that want it."""
        self.is_again = delivery.is_again
        """Whether it may have been delivered before."""
        self.told = delivery.told
        """What those subscriptions say of it that remember earlier events."""
        self._delivery = delivery
        self._loop = loop

    def done(self) -> None:
        """Acknowledge it: it does not come again."""
        self._loop.wait_for(self._delivery.done())

    def again(self, in_s: float = 0.0) -> None:
        """Ask for it once more, after so many seconds."""
        self._loop.wait_for(self._delivery.again(in_s))

    def never(self, reason: str = "") -> None:
        """Give it up: it goes to the dead letters, with the reason."""
        self._loop.wait_for(self._delivery.never(reason))


class BlockingSubscription:
    """Events as they come, for `for`. As a context manager it waits until it is in force, and ends at the end."""

    def __init__(self, subscription: Subscription, loop: BackgroundLoop) -> None:
        self._subscription = subscription
        self._loop = loop

    @property
    def since(self) -> str:
        """The position behind which every event is judged; known when the broker has answered."""
        return self._subscription.since

    @property
    def is_caught_up(self) -> bool:
        """Whether all that was asked of the past has come."""
        return self._subscription.is_caught_up

    def ready(self) -> Self:
        """Wait until the broker has the subscriptions; raise what it objects to."""
        self._loop.wait_for(self._subscription.ready())
        return self

    def close(self) -> None:
        """End it."""
        self._loop.wait_for(self._subscription.close())

    def __enter__(self) -> Self:
        return self.ready()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[BlockingDelivery]:
        while (delivery := self._loop.wait_for(_next(self._subscription))) is not None:
            yield BlockingDelivery(delivery, self._loop)


class Client:
    """A broker, seen from a program; as `AsyncClient`, with plain calls."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        ca: str | Path | None = None,
        certificate: Certificate | None = None,
        source: str = DEFAULT_SOURCE,
        patience_s: float | None = None,
    ) -> None:
        self._client = AsyncClient(
            url, token=token, ca=ca, certificate=certificate, source=source, patience_s=patience_s
        )
        self._loop = BackgroundLoop()

    @property
    def url(self) -> str:
        """The broker's address."""
        return self._client.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all subscriptions and connections, and the thread."""
        try:
            self._loop.wait_for(self._client.close())
        except ClosedError:
            return
        finally:
            self._loop.end()

    def publish(
        self, event: Any, *, type: str | None = None, source: str | None = None, id: str | None = None, **context: Any
    ) -> str:
        """Publish an event; return its position when it is on disk. See `AsyncClient.publish`."""
        return self._loop.wait_for(self._client.publish(event, type=type, source=source, id=id, **context))

    def publish_many(
        self,
        events: Iterable[Any],
        *,
        type: str | None = None,
        source: str | None = None,
        on_progress: Callable[[int], None] | None = None,
        **context: Any,
    ) -> list[str]:
        """Publish events, many of them under way at once; return their positions when all are on disk.

        The events are taken from the iterable in another thread, so it may block. See `AsyncClient.publish_many`.
        """
        stepwise = _stepwise(iter(events))
        return self._loop.wait_for(
            self._client.publish_many(stepwise, type=type, source=source, on_progress=on_progress, **context)
        )

    def subscribe(
        self,
        wanted: Wanted,
        *,
        name: str | None = None,
        since: Since = None,
        durable: bool | None = None,
        credit: int = 256,
        on_gap: Callable[[Gap], None] | None = None,
        lease_s: float = 0.0,
    ) -> BlockingSubscription:
        """Return the events that a text wants, or one of several texts by key. See `AsyncClient.subscribe`."""
        subscription = self._loop.call(
            lambda: self._client.subscribe(
                wanted, name=name, since=since, durable=durable, credit=credit, on_gap=on_gap, lease_s=lease_s
            )
        )
        return BlockingSubscription(subscription, self._loop)

    def listen(self, wanted: Wanted, *, since: Since = None, credit: int = 256) -> BlockingSubscription:
        """Return the events that a text wants from now on, as long as one listens: a passing subscriber."""
        return self.subscribe(wanted, since=since, durable=False, credit=credit)

    def take(
        self, name: str, *, most: int = 100, wait_s: float = 0.0, on_gap: Callable[[Gap], None] | None = None
    ) -> list[BlockingDelivery]:
        """Take deliveries of a durable subscriber, and end (a long poll). See `AsyncClient.take`."""
        taken = self._loop.wait_for(self._client.take(name, most=most, wait_s=wait_s, on_gap=on_gap))
        return [BlockingDelivery(delivery, self._loop) for delivery in taken]

    def read(
        self,
        where: str | None = None,
        since: Since = None,
        until: Since = None,
        most: int | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> Iterator[Event]:
        """Yield events of the past that a text wants. See `AsyncClient.read`."""
        events = self._loop.call(lambda: self._client.read(where, since, until, most, on_gap))
        while portion := self._loop.wait_for(portion_of(events, _PORTION)):
            yield from portion

    def match(self, events: Any) -> Any:
        """Return which subscriptions want an event, or each of a list of events; nothing is published."""
        return self._loop.wait_for(self._client.match(events))

    def check(self, text: str) -> dict[str, Any]:
        """Return what a text comes to, also behind what we may receive (`effective`); raise what is wrong with it."""
        return self._loop.wait_for(self._client.check(text))

    def try_filter(
        self, where: Any, since: Since = "-1h", until: Since = None, name: str | None = None, most: int = 5
    ) -> dict[str, Any]:
        """Return what a filter would have matched of the past. See `AsyncClient.try_filter`."""
        return self._loop.wait_for(self._client.try_filter(where, since, until, name, most))

    def explain(self, where: Any, event: Any = None, *, at: str | None = None) -> dict[str, Any]:
        """Return whether a filter matches an event, and why. See `AsyncClient.explain`."""
        return self._loop.wait_for(self._client.explain(where, event, at=at))

    def relations(self, first: Any, second: Any) -> dict[str, Any]:
        """Return whether one filter covers the other, and how they differ. See `AsyncClient.relations`."""
        return self._loop.wait_for(self._client.relations(first, second))

    def why(self, name: str, at: str, *, source: str = "") -> dict[str, Any]:
        """Return why a subscriber got an event, or why not. See `AsyncClient.why`."""
        return self._loop.wait_for(self._client.why(name, at, source=source))

    def dead_letters(self, name: str) -> list[dict[str, Any]]:
        """Return the events that a durable subscriber has given up, with the reasons."""
        return self._loop.wait_for(self._client.dead_letters(name))

    def revive(self, name: str, at: list[str] | None = None) -> int:
        """Let dead letters be delivered once more. See `AsyncClient.revive`."""
        return self._loop.wait_for(self._client.revive(name, at))

    def links(self) -> dict[str, Any]:
        """Return how the broker is joined to others. See `AsyncClient.links`."""
        return self._loop.wait_for(self._client.links())

    def metrics(self) -> str:
        """Return the figures of the broker, as Prometheus reads them."""
        return self._loop.wait_for(self._client.metrics())


_PORTION = 64
"""So many events of the past cross from thread to thread at once."""


async def _next(subscription: Subscription) -> Delivery | None:
    try:
        return await anext(subscription)
    except StopAsyncIteration:
        return None


async def portion_of(events: AsyncIterator[Event], most: int) -> list[Event]:
    """Return the next events of an iterator, so many at most; none at its end."""
    portion: list[Event] = []
    async for event in events:
        portion.append(event)
        if len(portion) == most:
            break
    return portion


async def _stepwise(events: Iterator[Any]) -> AsyncIterator[Any]:
    """Yield the elements of an iterator that may block, without blocking the loop."""

    def some() -> list[Any]:
        first = next(events, _END)
        return [] if first is _END else [first]

    while portion := await asyncio.to_thread(some):
        for event in portion:
            yield event


_END = object()
