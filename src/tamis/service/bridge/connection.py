"""How is a broker asked by something that has no loop, and waits while the broker is away?

Requests over HTTP, in a thread's loop. What does not answer or is busy is asked again until `patience_s` is over; what
is refused is an error of places that says it in one line, because it may come from a worker of Spark's.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

import msgspec

from tamis.errors import LanguageError
from tamis.service.client.asking import history
from tamis.service.client.backoff import Backoff
from tamis.service.client.dialling import Dialler
from tamis.service.client.synchronous import BackgroundLoop, portion_of
from tamis.service.errors import GoneError, NotFoundError, ServiceError, TooManyError, UnreachableError
from tamis.sources.errors import AnotherLogError, BrokerError, OptionError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping

    from tamis.errors import TamisError
    from tamis.service.bridge.address import BrokerAddress
    from tamis.service.client.events import Event

_PORTION = 512
"""So many events cross from the thread of the loop at once."""


class BrokerConnection:
    """A broker that answers, as a context: leaving it lets go of everything."""

    def __init__(self, address: BrokerAddress, patience_s: float) -> None:
        self._address, self._patience_s = address, patience_s
        try:
            self._dialler = Dialler(
                address.url, address.token, address.ca, address.own_certificate, patience_s=patience_s
            )
        except ServiceError as error:
            raise OptionError(str(error)) from None
        self._loop = BackgroundLoop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._loop.wait_for(self._dialler.close())
        finally:
            self._loop.end()

    def ask(
        self, method: str, path: str, parameters: Mapping[str, str] | None = None, body: Any = None, text: str = ""
    ) -> dict[str, Any]:
        """Return what the broker answers; nothing, if it has nothing to say. `text` is a filter that it is about."""
        try:
            return self._loop.wait_for(self._asked(method, path, parameters, body, text))
        except (ServiceError, LanguageError) as error:
            raise plain(error, self._address) from None

    def find(self, path: str) -> dict[str, Any] | None:
        """Return what is at a path; None if nothing is."""
        try:
            return self._loop.wait_for(self._asked("GET", path))
        except NotFoundError:
            return None
        except ServiceError as error:
            raise plain(error, self._address) from None

    def read(
        self, where: str | None, since: str, until: str, on_gap: Callable[[dict[str, Any]], None]
    ) -> Iterator[list[Event]]:
        """Yield the events of a part of the log, some at a time."""
        events: AsyncGenerator[Event, None] = history(self._dialler, where, since, until, None, on_gap)
        try:
            while portion := self._loop.wait_for(portion_of(events, _PORTION)):
                yield portion
        except (ServiceError, LanguageError) as error:
            raise plain(error, self._address) from None
        finally:
            self._loop.wait_for(events.aclose())

    async def _asked(
        self, method: str, path: str, parameters: Mapping[str, str] | None = None, body: Any = None, text: str = ""
    ) -> dict[str, Any]:
        backoff, began_s = Backoff(), monotonic()
        while True:
            retry_s = 0.0
            try:
                async with self._dialler.request(method, path, parameters, body, text) as response:
                    content = await response.read()
                    return _document(content)
            except (TooManyError, UnreachableError) as error:
                failure, retry_s = error, getattr(error, "retry_s", 0.0)
            wait_s = backoff.next_s(retry_s)
            if monotonic() + wait_s - began_s > self._patience_s:
                raise failure
            await asyncio.sleep(wait_s)


def plain(error: TamisError, address: BrokerAddress) -> TamisError:
    """Return what a broker said as an error of places, in one line.

    >>> from tamis.service.bridge.address import BrokerAddress
    >>> print(plain(GoneError("the position a-1 is of another log"), BrokerAddress("http://north:7410")))
    http://north:7410: the position a-1 is of another log
    """
    if isinstance(error, LanguageError):
        place = f" (column {error.column})" if error.column is not None else ""
        expected = f"; expected {' or '.join(error.expected)}" if error.expected else ""
        return OptionError(_line(f"the filter has no meaning: {error.message}{place}{expected}"))
    kind = AnotherLogError if isinstance(error, GoneError) else BrokerError
    words = str(error)
    return kind(_line(words if address.url in words else f"{address}: {words}"))


def _line(text: str) -> str:
    return " ".join(text.split())


def _document(content: bytes) -> dict[str, Any]:
    if not content:
        return {}
    try:
        document = msgspec.json.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ServiceError("the broker answered with something that is not a JSON object")
    return document
