"""How is one event posted, and what does the answer mean? A request, and its verdict.

| answer | verdict |
|---|---|
| 2xx | taken |
| 410 | over: the receiver wants nothing more, ever |
| 5xx, 408, 425, 429, none | again, not before `Retry-After` |
| anything else | again, too: receivers are mended more often than they mean it |

Source: Standard Webhooks 1.0.0, "Operational considerations"; CloudEvents HTTP Webhooks 1.0.2, sections 2.2 and 4.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import aiohttp

from tamis.service.errors import ServiceError
from tamis.service.webhooks.forms import written
from tamis.service.webhooks.signatures import signed
from tamis.sources.posting import pause_s, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.service.messages import Delivery

ORIGIN = "tamis"
"""What a receiver is asked to allow."""
LONGEST_PAUSE_S = 3_600.0
FIRST_PAUSE_FACTOR = 10
"""Pauses of webhooks are so much longer than those of a task that waits: 0.5 s in the mean, then twice as long each."""
_SHOWN_BYTES = 200


class Reply(NamedTuple):
    """What a receiver said."""

    verdict: str
    """`taken`, `again` or `over`."""
    reason: str = ""
    retry_after: str | None = None


async def permitted(session: aiohttp.ClientSession, url: str) -> Reply:
    """Ask a receiver that knows the question whether it wants to be posted to (abuse protection)."""
    try:
        async with session.options(url, headers={"WebHook-Request-Origin": ORIGIN}, allow_redirects=False) as response:
            allowed = response.headers.get("WebHook-Allowed-Origin")
    except (aiohttp.ClientError, OSError, TimeoutError):
        return Reply("taken")  # it does not know the question; whether it can be reached shows when there is an event
    if allowed is None or allowed.strip() in ("*", ORIGIN):
        return Reply("taken")
    return Reply("again", f"the receiver allows {allowed!r:.80}, and not {ORIGIN}")


async def posted(
    session: aiohttp.ClientSession,
    url: str,
    batch: Sequence[Delivery],
    message_id: str,
    secrets: Sequence[str],
    mode: str = "structured",
    epoch: str = "",
) -> Reply:
    """Post an event, or several as a batch, signed; return what the receiver says."""
    now_s = int(time.time())
    content, body = written(mode, batch, epoch)
    headers = {
        **content,
        "User-Agent": "tamis",
        "webhook-id": message_id,
        "webhook-timestamp": str(now_s),
        "webhook-signature": signed(message_id, now_s, body, secrets),
    }
    try:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            shown = (await response.content.read(_SHOWN_BYTES)).decode(errors="replace")
            return _meaning(response.status, shown, response.headers.get("Retry-After"))
    except ServiceError as error:  # of the resolver: the name is one of a private network by now
        return Reply("again", str(error))
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        return Reply("again", f"{type(error).__name__}: {error}"[:_SHOWN_BYTES])


def _meaning(status: int, shown: str, retry_after: str | None) -> Reply:
    if verdict(status) == "taken":
        return Reply("taken")
    line = " ".join("".join(each if each.isprintable() else " " for each in shown).split())
    return Reply("over" if status == 410 else "again", f"status {status}" + (f": {line}" if line else ""), retry_after)


def wait_s(attempt: int, retry_after: str | None, chance: float) -> float:
    """Return how long to wait after an attempt, the first being 0.

    >>> wait_s(0, None, 0.5), wait_s(3, None, 0.5), wait_s(3, "120", 0.5)
    (0.5, 4.0, 120.0)
    """
    asked_s = pause_s(0, retry_after, time.time(), 0.0)
    return min(LONGEST_PAUSE_S, max(asked_s, FIRST_PAUSE_FACTOR * pause_s(attempt, None, 0.0, chance)))
