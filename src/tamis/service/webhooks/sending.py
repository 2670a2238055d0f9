"""Who posts the events of a subscriber? A task in the loop for each webhook, which consumes like any client.

It takes one event at a time, or one batch of those that wait, in order, says *done* when the receiver has it, and
*again* with a pause otherwise; the subscriber's `attempts` and `ordered` count as for every consumer. A receiver that
answers 410 is not posted to any more: its events wait, and the webhook can be put again.
"""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import aiohttp

from tamis.service.errors import ConflictError, ForbiddenError, NotFoundError, ServiceError
from tamis.service.http.consuming import Mailbox
from tamis.service.http.holding import Caller, Hold
from tamis.service.messages import Acknowledge, Attach, Deliveries, Ended, Principal
from tamis.service.webhooks.addresses import CheckedResolver, networks
from tamis.service.webhooks.forms import batches
from tamis.service.webhooks.posting import permitted, posted, wait_s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tamis.service.changes import WebhookKept
    from tamis.service.http.front import Front
    from tamis.service.messages import Delivery

IDLE_S = 60.0
RETRY_S = 2.0
TIMEOUT_S = 10.0
_LOGGER = logging.getLogger("tamis.service.webhooks")


class Health(NamedTuple):
    """How a webhook fares."""

    state: str
    """`waiting` (nothing was posted yet), `good`, `failing` or `over`."""
    reason: str = ""
    posted: int = 0
    failed: int = 0


class Webhooks:
    """All webhooks of a broker."""

    def __init__(self, front: Front, chance: Callable[[], float] | None = None) -> None:
        self._front = front
        self._chance = chance or Random().random
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.kept: dict[str, WebhookKept] = {}
        """By subscriber."""
        self.health: dict[str, Health] = {}

    def start(self, kept: Iterable[WebhookKept]) -> None:
        """Begin what was kept."""
        for webhook in kept:
            self.put(webhook)

    def put(self, webhook: WebhookKept) -> None:
        """Begin a webhook, or go on with another address or other secrets."""
        self.remove(webhook.subscriber)
        self.kept[webhook.subscriber] = webhook
        self.health[webhook.subscriber] = Health("waiting")
        self._tasks[webhook.subscriber] = asyncio.create_task(self._consume(webhook))

    def remove(self, subscriber: str) -> None:
        """End a webhook, if there is one; its subscriber stays."""
        self.kept.pop(subscriber, None)
        self.health.pop(subscriber, None)
        if (task := self._tasks.pop(subscriber, None)) is not None:
            task.cancel()

    async def stop(self) -> None:
        """End all; what was not posted is posted after the next start."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def resolver(self) -> CheckedResolver:
        """Return what says which addresses may be reached, as the settings are now."""
        return CheckedResolver(networks(self._front.settings.webhooks.allow))

    # -- One webhook

    async def _consume(self, webhook: WebhookKept) -> None:
        principal = Principal(webhook.by, webhook.roles, webhook.is_admin)
        while True:
            try:
                resolver = self.resolver()
                await resolver.check(webhook.url)
                connector = aiohttp.TCPConnector(resolver=resolver, limit=1)
                timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
                async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
                    permission = await permitted(session, webhook.url)
                    if permission.verdict != "taken":
                        raise ForbiddenError(permission.reason, "a receiver that wants to be posted to")
                    hold = Hold(Caller(principal, lambda: principal))
                    with Mailbox(self._front, principal, hold) as mailbox:
                        if await self._served(webhook, session, mailbox):
                            return
            except (ForbiddenError, ConflictError) as error:
                self._note(webhook, "failing", str(error))
            except NotFoundError:  # the subscriber is forgotten
                self.kept.pop(webhook.subscriber, None)
                self.health.pop(webhook.subscriber, None)
                return
            except ServiceError as error:
                self._note(webhook, "failing", str(error))
            except Exception:
                _LOGGER.exception("the webhook of %r failed", webhook.subscriber)
            await asyncio.sleep(RETRY_S)

    async def _served(self, webhook: WebhookKept, session: aiohttp.ClientSession, mailbox: Mailbox) -> bool:
        """Post what comes; return whether that is for ever."""
        name = webhook.subscriber
        most = webhook.most if webhook.mode == "batch" else 1
        _, waiting = await mailbox.answers_to([Attach(1, name, credit=most, is_durable=True)])
        attempts: dict[object, int] = {}
        failed: dict[object, object] = {}
        """The batch in which an event was posted in vain, by position."""
        while True:
            items = [each for item in waiting if isinstance(item, Deliveries) for each in item.items]
            for batch in batches(items, most, failed):
                if await self._deliver(webhook, session, mailbox, batch, attempts, failed):
                    return True
            for item in waiting:
                if isinstance(item, Ended):
                    return False
                if isinstance(item, ServiceError):
                    raise item
            waiting = await mailbox.take(IDLE_S)

    async def _deliver(
        self,
        webhook: WebhookKept,
        session: aiohttp.ClientSession,
        mailbox: Mailbox,
        batch: Sequence[Delivery],
        attempts: dict[object, int],
        failed: dict[object, object],
    ) -> bool:
        """Post events, and say what became of them; return whether the receiver wants nothing more."""
        name, epoch = webhook.subscriber, self._front.core.epoch
        positions = tuple(delivery.position for delivery in batch)
        first, last = positions[0], positions[-1]
        message_id = f"{name}/{first.text(epoch)}"
        if webhook.mode == "batch":
            message_id += f"..{last.text(epoch)}/{len(batch)}"
        answer = await posted(session, webhook.url, batch, message_id, webhook.secrets, webhook.mode, epoch)
        if answer.verdict == "taken":
            for position in positions:
                attempts.pop(position, None)
                failed.pop(position, None)
            self._note(webhook, "good")
            await mailbox.hear(Acknowledge(0, name, done=positions))
            return False
        self._note(webhook, "over" if answer.verdict == "over" else "failing", answer.reason)
        if answer.verdict == "over":
            _LOGGER.warning("the receiver of %r wants nothing more (%s)", name, answer.reason)
            return True
        attempt = attempts[first] = attempts.get(first, -1) + 1
        failed.update(dict.fromkeys(positions, message_id))
        pause = wait_s(attempt, answer.retry_after, self._chance())
        await mailbox.hear(Acknowledge(0, name, again=positions, in_s=pause))
        if len(attempts) + len(failed) > 10_000:  # of dead letters nothing more is heard
            attempts.clear()
            failed.clear()
        return False

    def _note(self, webhook: WebhookKept, state: str, reason: str = "") -> None:
        before = self.health.get(webhook.subscriber)
        if before is not None:
            posted_count, failed = before.posted + (state == "good"), before.failed + (state != "good")
            self.health[webhook.subscriber] = Health(state, reason, posted_count, failed)
