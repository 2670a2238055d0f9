"""How does a program with a loop talk to a broker? The asynchronous client.

    async with tamis.AsyncClient("wss://broker.example:7410", token=token) as client:
        await client.publish({"price": 12}, type="auction", source="/shop")
        async for event in client.subscribe("price < 20", name="ann", since="-1h"):
            print(event.data)
            await event.done()

Publications go over one connection, every subscription has one of its own, and questions (`read`, `match`, `check`) are
requests over HTTP. Connections are made when they are needed, and made again when they break.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from tamis.service.client import asking, polling
from tamis.service.client.dialling import Dialler
from tamis.service.client.endpoints import DEFAULT_URL, Certificate
from tamis.service.client.events import DEFAULT_SOURCE, Event, encoded
from tamis.service.client.publishing import Publisher
from tamis.service.client.subscribing import DEFAULT_KEY, Gap, Subscription, tell_of_gap
from tamis.service.errors import ClosedError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

Since = str | datetime | timedelta | None
"""From where on: `-1h`, a position, a time, `first`; a time ago as a `timedelta`."""
Wanted = str | Mapping[str, Any]
"""A text of the language, or texts (or their JSON forms) by key."""


class AsyncClient:
    """A broker, seen from a program.

    `token` or `certificate` (a PEM file with certificate and key, or two files) say who we are, and `ca` is a file of
    certificates to trust. A broker that was never reached raises `UnreachableError` at once; one that has gone is
    waited for, as long as it takes. With `patience_s` both are waited for so long.
    """

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
        self._dialler = Dialler(url, token, ca, certificate, patience_s)
        self._source = source
        self._publisher: Publisher | None = None
        self._subscriptions: list[Subscription] = []
        self._is_closed = False

    @property
    def url(self) -> str:
        """The broker's address."""
        return self._dialler.url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End all subscriptions and connections. Publications that somebody waits for raise `ClosedError`."""
        self._is_closed = True
        for subscription in self._subscriptions:
            await subscription.close()
        if self._publisher is not None:
            await self._publisher.close()
        await self._dialler.close()

    # -- Publishing

    async def publish(
        self, event: Any, *, type: str | None = None, source: str | None = None, id: str | None = None, **context: Any
    ) -> str:
        """Publish an event; return its position when it is on disk.

        The event is data (anything JSON has), or a mapping with `specversion`: a CloudEvent. An id that is not given is
        made here, once. Further arguments are further context attributes: `subject`, `time`, extensions.
        """
        body = encoded(event, self._source, type=type, source=source, id=id, **context)
        return (await self._publishing().publish([body]))[0]

    async def publish_many(
        self,
        events: Iterable[Any] | AsyncIterable[Any],
        *,
        type: str | None = None,
        source: str | None = None,
        on_progress: Callable[[int], None] | None = None,
        **context: Any,
    ) -> list[str]:
        """Publish events, many of them under way at once; return their positions when all are on disk.

        They are published in their order, in batches. If the broker refuses one of a batch it takes none of it, and the
        error is raised; what other batches brought is published. `on_progress` is called with numbers of events taken.
        """
        shared = {"type": type, "source": source, **context}
        return await self._publishing().publish_all(
            events, lambda event: encoded(event, self._source, **shared), on_progress
        )

    def _publishing(self) -> Publisher:
        self._require_open()
        if self._publisher is None or self._publisher.failure is not None:
            self._publisher = Publisher(self._dialler)
            self._publisher.start()
        return self._publisher

    # -- Subscribing

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
    ) -> Subscription:
        """Return the events that a text wants, or one of several texts by key, as they come.

        A subscriber with a `name` is durable unless you say otherwise: the broker remembers it, and what it has not
        called `done()`. Without a name it is passing: it gets what comes while it is there, and what broke its
        connection does not matter, as long as the log has it. `since` asks for the past, too. At most `credit` events
        are delivered that are not done. `on_gap` is told of events that are lost to it; otherwise a warning is logged.
        With `lease_s`, the broker ends the subscriptions so long after you are gone, whatever they have not got by
        then; as long as you listen, they are renewed.
        """
        self._require_open()
        if not 0 <= lease_s < float("inf"):
            raise ValueError(f"a lease of {lease_s} s; lease_s is a number of seconds above 0, or 0 for no end")
        is_durable = bool(name) if durable is None else durable
        if is_durable and not name:
            raise ValueError("a durable subscriber has a name: subscribe(..., name='ann')")
        by_key = {DEFAULT_KEY: wanted} if isinstance(wanted, str) else dict(wanted)
        self._subscriptions = [each for each in self._subscriptions if each.failure is None]
        place = asking.place(since)
        subscription = Subscription(self._dialler, by_key, name or "", place, is_durable, credit, on_gap, lease_s)
        self._subscriptions.append(subscription)
        return subscription

    def listen(self, wanted: Wanted, *, since: Since = None, credit: int = 256) -> Subscription:
        """Return the events that a text wants from now on, as long as one listens: a passing subscriber."""
        return self.subscribe(wanted, since=since, durable=False, credit=credit)

    async def take(
        self, name: str, *, most: int = 100, wait_s: float = 0.0, on_gap: Callable[[Gap], None] | None = None
    ) -> list[polling.TakenDelivery]:
        """Take up to `most` deliveries of a durable subscriber, at once or when there are some, and end (a long poll).

        What is not called `done()` comes again after a while. `on_gap` is told of events that are lost to the
        subscriber, at each poll until something behind them is done; otherwise a warning is logged.
        """
        self._require_open()
        return await polling.take(self._dialler, name, most, wait_s, on_gap or tell_of_gap)

    # -- Asking

    def read(
        self,
        where: str | None = None,
        since: Since = None,
        until: Since = None,
        most: int | None = None,
        on_gap: Callable[[Gap], None] | None = None,
    ) -> AsyncIterator[Event]:
        """Yield events of the past that a text wants, from one place of the log up to another, which is not included.

        `on_gap` is told of what was there and is gone; otherwise a warning is logged.
        """
        self._require_open()
        tell = on_gap or tell_of_gap
        return asking.history(
            self._dialler, where, asking.place(since), asking.place(until), most, lambda facts: tell(Gap(facts))
        )

    async def match(self, events: Any) -> Any:
        """Return which subscriptions want an event, or each of a list of events; nothing is published."""
        self._require_open()
        return await asking.match(self._dialler, events, self._source)

    async def check(self, text: str) -> dict[str, Any]:
        """Return what a text comes to, also behind what we may receive (`effective`); raise what is wrong with it."""
        self._require_open()
        return await asking.check(self._dialler, text)

    async def try_filter(
        self, where: Any, since: Since = "-1h", until: Since = None, name: str | None = None, most: int = 5
    ) -> dict[str, Any]:
        """Return what a filter would have matched of the past, as `POST /try` says it; nothing is subscribed.

        It is compared with the subscriptions of one subscriber, if there is a `name`, or of all that are ours.
        """
        self._require_open()
        return await asking.try_filter(self._dialler, where, asking.place(since), asking.place(until), name, most)

    async def explain(self, where: Any, event: Any = None, *, at: str | None = None) -> dict[str, Any]:
        """Return whether a filter matches an event, or the event at a position, and why (`POST /explain`)."""
        self._require_open()
        return await asking.explain(self._dialler, where, event, at, self._source)

    async def relations(self, first: Any, second: Any) -> dict[str, Any]:
        """Return whether one filter covers the other, and how they differ (`POST /relations`)."""
        self._require_open()
        return await asking.relations(self._dialler, first, second)

    async def why(self, name: str, at: str, *, source: str = "") -> dict[str, Any]:
        """Return why a subscriber got an event, or why not: by its position, or by its id and source."""
        self._require_open()
        return await asking.why(self._dialler, name, at, source)

    async def dead_letters(self, name: str) -> list[dict[str, Any]]:
        """Return the events that a durable subscriber has given up, with the reasons."""
        self._require_open()
        return await asking.dead_letters(self._dialler, name)

    async def revive(self, name: str, at: list[str] | None = None) -> int:
        """Let dead letters be delivered once more: those at some positions, or all; return how many."""
        self._require_open()
        return int((await asking.revive(self._dialler, name, at)).get("again", 0))

    async def links(self) -> dict[str, Any]:
        """Return how the broker is joined to others, as `GET /links` says it; for an admin."""
        self._require_open()
        return await asking.links(self._dialler)

    async def metrics(self) -> str:
        """Return the figures of the broker, as Prometheus reads them."""
        self._require_open()
        return await asking.metrics(self._dialler)

    def _require_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the client is closed")
