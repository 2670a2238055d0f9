"""What does a client ask without a conversation? History, matches and checks, as requests over HTTP.

History is read as JSON lines, as they come. If the connection breaks in the middle, reading goes on behind the last
event that was read: positions do not change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.service.client.backoff import Backoff
from tamis.service.client.endpoints import subscriber_path
from tamis.service.client.events import Event, encoded
from tamis.service.errors import ServiceError, TooManyError, UnreachableError

if TYPE_CHECKING:
    import aiohttp

    from tamis.service.client.dialling import Dialler

_LONGEST_LINE = 64 * 2**20
_MOST_ASKED = 1_000_000
"""So many events are asked for at once; a broker gives fewer to who says nothing."""


class _Line(msgspec.Struct, frozen=True):
    """A line of history: an event, or what is missing."""

    at: str = ""
    event: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    gap: dict[str, Any] | None = None


_decode_line = msgspec.json.Decoder(_Line).decode


def place(since: str | datetime | timedelta | None) -> str:
    """Return a place of the log as it is written on the wire.

    >>> place(timedelta(minutes=90)), place(datetime(2026, 1, 2, tzinfo=UTC)), place(None)
    ('-5400s', '2026-01-02T00:00:00Z', '')
    """
    if since is None:
        return ""
    if isinstance(since, timedelta):
        seconds = f"{abs(since).total_seconds():.6f}"
        return f"-{seconds.rstrip('0').rstrip('.')}s"
    if isinstance(since, datetime):
        moment = since.astimezone(UTC)  # a time without a zone is meant where the program runs
        return moment.isoformat().replace("+00:00", "Z")
    return since


async def history(
    dialler: Dialler,
    where: str | None,
    since: str,
    until: str,
    most: int | None,
    on_gap: Callable[[dict[str, Any]], None],
) -> AsyncGenerator[Event, None]:
    """Yield the events of a part of the log."""
    backoff, lost_at_s, left = Backoff(), monotonic(), most
    since, is_begun = since or "first", False
    while left is None or left > 0:
        asked = min(left or _MOST_ASKED, _MOST_ASKED)
        parameters = {"from": since, "until": until, "where": where or "", "most": str(asked)}
        parameters = {name: value for name, value in parameters.items() if value}
        retry_s = 0.0
        failure: ServiceError
        try:
            async with dialler.request("GET", "/events", parameters, text=where or "") as response:
                is_begun = True
                async for line in _lines(response):
                    said = _decode_line(line)
                    if said.gap is not None:
                        on_gap(said.gap)
                    if not said.at:
                        continue
                    epoch, _, numbers = said.at.partition("-")
                    since = f"{epoch}-{int(numbers.rpartition('.')[2]) + 1}"
                    asked -= 1
                    left = None if left is None else left - 1
                    backoff.reset()
                    lost_at_s = monotonic()
                    yield Event(said.at, bytes(said.event))
            if asked > 0:
                return
            continue
        except msgspec.MsgspecError as error:
            raise ServiceError(f"the broker answered with a line that is not an event: {error}") from None
        except TooManyError as error:
            retry_s, failure = error.retry_s, error
        except UnreachableError as error:
            if not is_begun and dialler.patience_s is None:
                raise
            failure = error
        wait_s = backoff.next_s(retry_s)
        if dialler.patience_s is not None and monotonic() + wait_s - lost_at_s > dialler.patience_s:
            raise failure from None
        await asyncio.sleep(wait_s)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield whole lines, however long they are and however they come."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise ServiceError("the broker answered with a line that does not end")
        for line in lines:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


async def match(dialler: Dialler, events: Any, source: str) -> Any:
    """Ask which subscriptions want an event, or each of several."""
    is_one = isinstance(events, Mapping)
    asked = [msgspec.Raw(encoded(event, source)) for event in ([events] if is_one else events)]
    async with dialler.request("POST", "/match", body=asked) as response:
        document = await _document(response)
    matches = document.get("matches")
    if not isinstance(matches, list) or len(matches) != len(asked):
        raise ServiceError("the broker answered a question about matches with something else")
    return matches[0] if is_one else matches


async def check(dialler: Dialler, text: str) -> dict[str, Any]:
    """Ask what a text comes to."""
    async with dialler.request("POST", "/check", body=text, text=text) as response:
        return await _document(response)


async def try_filter(
    dialler: Dialler, where: Any, since: str, until: str, name: str | None, most: int
) -> dict[str, Any]:
    """Ask what a filter would have matched."""
    asked: dict[str, Any] = {"where": where, "most": most}
    asked |= {key: value for key, value in (("from", since), ("until", until), ("as", name)) if value}
    text = where if isinstance(where, str) else ""
    async with dialler.request("POST", "/try", body=asked, text=text) as response:
        return await _document(response)


async def explain(dialler: Dialler, where: Any, event: Any, at: str | None, source: str) -> dict[str, Any]:
    """Ask whether a filter matches an event, and why."""
    asked: dict[str, Any] = {"where": where}
    asked |= {"at": at} if at else {"event": msgspec.Raw(encoded(event, source))}
    async with dialler.request(
        "POST", "/explain", body=asked, text=where if isinstance(where, str) else ""
    ) as response:
        return await _document(response)


async def relations(dialler: Dialler, first: Any, second: Any) -> dict[str, Any]:
    """Ask how two filters relate."""
    async with dialler.request("POST", "/relations", body={"first": first, "second": second}) as response:
        return await _document(response)


async def why(dialler: Dialler, subscriber: str, at: str, source: str) -> dict[str, Any]:
    """Ask why a subscriber got an event, or why not; `at` is its position, or with a source its id."""
    query = {"id": at, "source": source} if source else {"at": at}
    async with dialler.request("GET", f"{subscriber_path(subscriber)}/why", query) as response:
        return await _document(response)


async def dead_letters(dialler: Dialler, subscriber: str) -> list[dict[str, Any]]:
    """Ask for the events that a subscriber has given up."""
    async with dialler.request("GET", f"{subscriber_path(subscriber)}/dead") as response:
        letters = (await _document(response)).get("dead")
    if not isinstance(letters, list):
        raise ServiceError("the broker answered a question about dead letters with something else")
    return letters


async def revive(dialler: Dialler, subscriber: str, at: list[str] | None) -> dict[str, Any]:
    """Ask for dead letters to be delivered once more."""
    asked = {} if at is None else {"at": at}
    path = f"{subscriber_path(subscriber)}/dead/again"
    async with dialler.request("POST", path, body=asked) as response:
        return await _document(response)


async def links(dialler: Dialler) -> dict[str, Any]:
    """Ask how a broker is joined to others."""
    async with dialler.request("GET", "/links") as response:
        return await _document(response)


async def metrics(dialler: Dialler) -> str:
    """Ask for the figures of a broker."""
    async with dialler.request("GET", "/metrics") as response:
        return (await response.read()).decode()


async def _document(response: aiohttp.ClientResponse) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(await response.read())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ServiceError("the broker answered with something that is not a JSON object")
    return document
