"""How does a program receive that comes now and then, and not all the time? Long polls over HTTP.

A poll takes some deliveries of a durable subscriber, at once or when there are some, and ends. What becomes of each is
said in a request of its own, perhaps by another process; what nobody says anything of comes again after a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tamis.service import wire
from tamis.service.client.endpoints import subscriber_path
from tamis.service.client.events import Event, Told
from tamis.service.client.subscribing import Gap
from tamis.service.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.service.client.dialling import Dialler


class _Taken(msgspec.Struct, frozen=True):
    """The answer to a poll."""

    events: list[wire.Delivered]
    gaps: list[dict[str, Any]] = []


_decode = msgspec.json.Decoder(_Taken).decode


class TakenDelivery(Event):
    """An event that a poll has taken."""

    def __init__(self, dialler: Dialler, subscriber: str, delivered: wire.Delivered) -> None:
        super().__init__(delivered.at, bytes(delivered.event))
        self.keys = tuple(delivered.keys)
        """The keys of the subscriptions that want it."""
        self.is_again = delivered.again
        """Whether it may have been delivered before."""
        self.told = tuple(map(Told, delivered.told))
        """What those subscriptions say of it that remember earlier events."""
        self._dialler = dialler
        self._path = f"{subscriber_path(subscriber)}/done"

    async def done(self) -> None:
        """Acknowledge it: it does not come again."""
        await self._say({"done": [self.at]})

    async def again(self, in_s: float = 0.0) -> None:
        """Ask for it once more, after so many seconds."""
        await self._say({"again": [self.at], "in_s": in_s})

    async def never(self, reason: str = "") -> None:
        """Give it up: it goes to the dead letters, with the reason."""
        await self._say({"never": [self.at], "reason": reason})

    async def _say(self, verdict: dict[str, Any]) -> None:
        async with self._dialler.request("POST", self._path, body=verdict):
            return


async def take(
    dialler: Dialler, subscriber: str, most: int, wait_s: float, on_gap: Callable[[Gap], None]
) -> list[TakenDelivery]:
    """Take deliveries of a subscriber; tell first of what it will not get."""
    body = {"most": most, "wait_s": wait_s}
    async with dialler.request("POST", f"{subscriber_path(subscriber)}/take", body=body) as response:
        try:
            taken = _decode(await response.read())
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ServiceError(f"the broker answered a poll with something else: {error}") from None
    for facts in taken.gaps:
        on_gap(Gap(facts))
    return [TakenDelivery(dialler, subscriber, delivered) for delivered in taken.events]
