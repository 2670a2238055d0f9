"""How does a broker learn what others append to a stream? A consumer that asks for what comes next.

The server sends messages as long as it was asked for some (`credit`), so a reader that is slow is not flooded. A
consumer that is lost, with the connection or because the server was started anew, is made again behind the last message
that came: nothing is left out, and nothing comes twice.

Messages of a stream are numbered without gaps. Where one is missing, somebody has dropped it before this reader came
there: it is *overtaken*, and whoever reads must know.
"""

from __future__ import annotations

import json
from collections import deque
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from tamis.service.errors import LogError
from tamis.sources.errors import NatsError
from tamis.sources.jetstream import JetStreamClient, reply_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from nats.aio.client import Client

    from tamis.service.log.base import Block
    from tamis.sources.nats_address import NatsAddress

_CREDIT = 256
_CREDIT_BYTES = 8 << 20
_EXPIRES_S = 30
_HEARTBEAT_S = 3
_SILENCE_S = 10.0
"""After so long without a sign from a server that should give one, the connection is made anew."""


class Follower:
    """Reads a stream from a sequence on, and waits for what will come. It is for one thread."""

    def __init__(
        self, address: NatsAddress, sequence: int, timeout_s: float, block_of: Callable[[int, bytes], Block]
    ) -> None:
        self._address = address
        self._next = max(1, sequence)
        self._connection = JetStreamClient(address, timeout_s)
        self._timeout_s = timeout_s
        self._block_of = block_of
        self._client: Client | None = None
        self._arrived: Any = None
        self._name = ""
        self._credit, self._count, self._silent_s = 0, 0, 0.0
        self._messages: deque[tuple[int, bytes]] = deque()
        """What has come and was not handed out. It stays here when the connection is lost in the middle."""
        self._expected = self._next
        self.is_overtaken = False
        """Whether messages are missing before the blocks that were returned last."""

    def next_blocks(self, timeout_s: float) -> list[Block]:
        """Return the blocks that come next, in order: those that are there, or the first that comes in time, or none.

        Between them nothing is missing; before the first of them there may be (`is_overtaken`).

        A connection that is lost is made anew; if that takes too long it is a `LogError`.
        """
        if not self._messages:
            try:
                self._connection.persistently(partial(self._await, timeout_s=timeout_s))
            except NatsError as error:
                raise LogError(str(error)) from None
        blocks: list[Block] = []
        while self._messages and (not blocks or self._messages[0][0] == self._expected):
            sequence, body = self._messages.popleft()
            if not blocks:
                self.is_overtaken = sequence > self._expected
            self._expected = sequence + 1
            blocks.append(self._block_of(sequence, body))
        return blocks

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.__exit__()

    async def _await(self, client: Client, timeout_s: float) -> None:
        """Wait for messages: those that are there, or the first that comes in time."""
        from nats.errors import TimeoutError as NatsTimeoutError

        if self._client is not client:
            await self._begin(client)
        deadline = monotonic() + timeout_s
        while not self._messages or self._arrived.pending_msgs:
            await self._ask_for_more(client)
            before = monotonic()
            try:
                message = await self._arrived.next_msg(timeout=max(0.001, deadline - before))
            except (NatsTimeoutError, TimeoutError):
                self._silent_s += monotonic() - before
                if self._silent_s > _SILENCE_S:
                    self._lose("it is silent")
                return
            self._silent_s = 0.0
            status = (message.headers or {}).get("Status") if not message.reply else None
            if status is None:
                sequence, count, _, _ = reply_numbers(message.reply)
                self._count += 1
                if count != self._count:
                    self._lose("messages got lost on their way")
                self._messages.append((sequence, message.data))
                self._next = sequence + 1
                self._credit -= 1
            elif status in ("408", "409") and "Deleted" not in (message.headers or {}).get("Description", ""):
                self._credit = 0
            elif status != "100":  # no consumer any more
                self._lose(f"the consumer is gone ({status})")
            if monotonic() >= deadline:
                break

    async def _begin(self, client: Client) -> None:
        """Make a consumer behind what has come."""
        from nats.errors import NoRespondersError

        config = {
            "deliver_policy": "by_start_sequence", "opt_start_seq": self._next, "ack_policy": "none",
            "replay_policy": "instant", "max_deliver": 1, "inactive_threshold": int(120e9), "num_replicas": 1,
            "mem_storage": True,
        }  # fmt: skip
        stream = self._address.stream
        request = json.dumps({"stream_name": stream, "config": config}).encode()
        try:
            reply = await client.request(f"$JS.API.CONSUMER.CREATE.{stream}", request, timeout=self._timeout_s)
        except NoRespondersError:  # a server that has just been started; it is asked again
            raise ConnectionError("the stream is not there yet") from None
        answer = json.loads(reply.data)
        if "error" in answer:
            raise ConnectionError(answer["error"].get("description", "no consumer"))
        self._name = answer["name"]
        self._inbox = client.new_inbox()
        self._arrived = await client.subscribe(self._inbox, pending_msgs_limit=-1, pending_bytes_limit=-1)
        self._client, self._credit, self._count, self._silent_s = client, 0, 0, 0.0

    async def _ask_for_more(self, client: Client) -> None:
        if self._credit > 0:
            return
        request = {
            "batch": _CREDIT, "max_bytes": max(_CREDIT_BYTES, client.max_payload + (1 << 16)),
            "expires": int(_EXPIRES_S * 1e9), "idle_heartbeat": int(_HEARTBEAT_S * 1e9),
        }  # fmt: skip
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._address.stream}.{self._name}"
        await client.publish(subject, json.dumps(request).encode(), reply=self._inbox)
        self._credit = _CREDIT

    def _lose(self, why: str) -> None:
        """Give up the connection; whoever runs this makes another one."""
        self._client = None
        raise ConnectionError(f"{self._address}: {why}")
