"""How do the core's answers reach a connection? A mailbox that one task empties.

The core calls the listener of a session with several answers at a time. They wait here until the task that writes to
the connection takes all of them at once, so that one write carries whatever has come meanwhile. How much can wait is
bounded by the credit of the consumer: the core sends no more than so many deliveries that were not written or done.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tamis.service.errors import ServiceError
from tamis.service.messages import Attached, Refused, Subscribed, Wrote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.service.http.front import Front
    from tamis.service.http.holding import Hold
    from tamis.service.messages import Answer, Deliveries, Principal, Request


class Mailbox:
    """The answers that wait for one connection. A context: leaving it ends the session."""

    def __init__(self, front: Front, principal: Principal, hold: Hold) -> None:
        self.front = front
        self.session = front.core.open(principal, self._listen)
        self._waiting: list[Any] = []
        self._arrived = asyncio.Event()
        hold.on_end(self.put)

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.front.core.close(self.session)

    def __len__(self) -> int:
        return len(self._waiting)

    def _listen(self, answers: Sequence[Answer]) -> None:
        self._waiting.extend(answers)
        self._arrived.set()

    def put(self, item: object) -> None:
        """Add something that does not come from the core, behind what waits."""
        self._waiting.append(item)
        self._arrived.set()

    async def hear(self, request: Request) -> None:
        """Hand a request to the core."""
        await self.front.hear(self.session, request)

    async def take(self, wait_s: float) -> list[Any]:
        """Return everything that waits, as soon as there is something; nothing if there is none in this time."""
        if not self._waiting:
            self._arrived.clear()
            try:
                async with asyncio.timeout(wait_s):
                    await self._arrived.wait()
            except TimeoutError:
                return []
        taken, self._waiting = self._waiting, []
        return taken

    async def answers_to(self, requests: Sequence[Request]) -> tuple[list[Attached | Subscribed], list[Any]]:
        """Hear requests; return their answers, and what else has come meanwhile. A refusal is raised as its error."""
        for request in requests:
            await self.hear(request)
        answers: list[Attached | Subscribed] = []
        others: list[Any] = []
        while len(answers) < len(requests):
            for item in await self.take(60.0):
                if isinstance(item, Refused):
                    raise item.error
                if isinstance(item, ServiceError):
                    raise item
                if isinstance(item, Attached | Subscribed):
                    answers.append(item)
                else:
                    others.append(item)
        return answers, others

    async def wrote(self, deliveries: Deliveries) -> None:
        """Tell the core that deliveries were written, so that it sends more."""
        size_bytes = sum(len(delivery.body) for delivery in deliveries.items)
        await self.hear(Wrote(deliveries.subscriber, len(deliveries.items), size_bytes))
