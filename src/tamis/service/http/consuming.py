"""How do the core's answers reach a connection? A mailbox that one task empties.

The core calls the listener of a session with several answers at a time. They wait here until the task that writes to
the connection takes all of them at once, so that one write carries whatever has come meanwhile. How much can wait is
bounded by the credit of the consumer: the core sends no more than so many deliveries that were not written or done.

That something was written need not be said at once: a quarter of the credit may be used by what nobody has heard of,
and so a thousand connections that are sent one event each do not wake the core a thousand times.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tamis.service.errors import ServiceError
from tamis.service.messages import Attach, Attached, Refused, Subscribed, Wrote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.service.http.front import Front
    from tamis.service.http.holding import Hold
    from tamis.service.messages import Answer, Deliveries, Principal, Request


class Mailbox:
    """The answers that wait for one connection. A context: leaving it ends the session."""

    def __init__(self, front: Front, principal: Principal, hold: Hold) -> None:
        self.front = front
        self.session = front.core.open(principal, self._listen)
        self._waiting: list[Any] = []
        self._is_awaited = False
        """Does the task that writes wait for something to write?"""
        self.write_at_once: Callable[[Sequence[Answer]], bool] | None = None
        """Writes what has come when nothing waits, without waking the task, and returns whether it could."""
        self._arrived = asyncio.Event()
        self._unsaid = self._unsaid_bytes = 0
        """What was written, and the core has not heard of."""
        self._most_unsaid = self._most_unsaid_bytes = 1
        hold.on_end(self.put)

    def __enter__(self) -> Mailbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.front.core.close(self.session)

    def __len__(self) -> int:
        return len(self._waiting)

    def _listen(self, answers: Sequence[Answer]) -> None:
        if self._is_awaited and not self._waiting and self.write_at_once is not None and self.write_at_once(answers):
            return
        self._waiting.extend(answers)
        self._arrived.set()

    def put(self, item: object) -> None:
        """Add something that does not come from the core, behind what waits."""
        self._waiting.append(item)
        self._arrived.set()

    async def hear(self, request: Request) -> None:
        """Hand a request to the core."""
        if isinstance(request, Attach):
            self._most_unsaid = max(1, request.credit // 4)
            self._most_unsaid_bytes = max(1, request.credit_bytes // 4)
        await self.front.hear(self.session, request)

    async def take(self, wait_s: float | None = None) -> list[Any]:
        """Return everything that waits, as soon as there is something; nothing if there is none in this time."""
        if not self._waiting:
            self._arrived.clear()
            if wait_s is None:
                self._is_awaited = True
                try:
                    await self._arrived.wait()
                finally:
                    self._is_awaited = False
            else:
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

    def note_written(self, deliveries: Deliveries) -> bool:
        """Take note that deliveries were written; return False, and do not, if the core has to be told of so many."""
        unsaid = self._unsaid + len(deliveries.items)
        unsaid_bytes = self._unsaid_bytes + sum([len(delivery.body) for delivery in deliveries.items])
        if unsaid >= self._most_unsaid or unsaid_bytes >= self._most_unsaid_bytes:
            return False
        self._unsaid, self._unsaid_bytes = unsaid, unsaid_bytes
        return True

    async def wrote(self, deliveries: Deliveries) -> None:
        """Tell the core that deliveries were written, so that it sends more; several together if there is time."""
        if not self.note_written(deliveries):
            self._unsaid += len(deliveries.items)
            self._unsaid_bytes += sum([len(delivery.body) for delivery in deliveries.items])
            said = Wrote(deliveries.subscriber, self._unsaid, self._unsaid_bytes)
            self._unsaid = self._unsaid_bytes = 0
            await self.hear(said)
