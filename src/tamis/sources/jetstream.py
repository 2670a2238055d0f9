"""How does a plain program talk to JetStream?

NATS's client is asynchronous; Spark's workers are not. A `JetStreamClient` is a connection with a loop of its own
that runs only while it is asked something. It reads a range of a stream by sequence, through a consumer that lives
only for that and acknowledges nothing: where a query is, Spark's checkpoint knows. It publishes many messages at once
and returns when the server has acknowledged all of them.

A connection that breaks is made again for some seconds. Nothing is lost or doubled by that: reading goes on behind
the last sequence that came, and a message that is published again has the same id.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from random import random
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from tamis.sources.addresses import without_secrets
from tamis.sources.errors import NatsError
from tamis.sources.schemes.table import NATS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence

    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from tamis.sources.nats_address import NatsAddress

T = TypeVar("T")

_PULLED = 1_000
"""How many messages are asked for at once, at most."""
_PULLED_BYTES = 8 << 20
_ATTEMPTS = 3
"""How often reading may break off at the same place."""
_IN_FLIGHT = 512
"""How many messages are published before the first acknowledgement is waited for."""


class StreamMessage(NamedTuple):
    """A message of a stream."""

    subject: str
    sequence: int
    published_us: int
    """When the server took it, in microseconds since 1970."""
    headers: dict[str, str]
    body: bytes


class OutgoingMessage(NamedTuple):
    """A message to publish."""

    subject: str
    id: str
    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True)
class StreamState:
    """What a stream holds: the first sequence that is there, and the one that the next message gets."""

    first: int
    next: int
    created: str
    subjects: tuple[str, ...]
    duplicate_window_s: float
    retention: str


class JetStreamClient:
    """A connection to the stream of an address; `with` closes it."""

    def __init__(self, address: NatsAddress, timeout_s: float = 10.0) -> None:
        if NATS.requires is not None and not NATS.requires.is_met():
            raise NatsError(NATS.requires.told)
        self.address, self.timeout_s = address, timeout_s
        self._loop = asyncio.new_event_loop()
        self._client: Client | None = None
        self._is_closed = asyncio.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._drop()
        left = asyncio.all_tasks(self._loop)  # what the client has cancelled, but what has not run since
        for task in left:
            task.cancel()
        if left:
            self._run(asyncio.wait(left, timeout=2))
        self._loop.close()

    def state(self) -> StreamState:
        """Look at the stream."""
        answer = self.persistently(lambda client: self._asked(client, f"STREAM.INFO.{self.address.stream}", {}))
        state, config = answer["state"], answer["config"]
        return StreamState(
            first=max(state["first_seq"], 1),  # an empty stream that never had a message says 0
            next=state["last_seq"] + 1,
            created=answer["created"],
            subjects=tuple(config.get("subjects") or ()),
            duplicate_window_s=config.get("duplicate_window", 0) / 1e9,
            retention=config["retention"],
        )

    def messages(self, start: int, end: int) -> Iterator[list[StreamMessage]]:
        """Yield the messages of a range of sequences, `end` not among them, in order, as lists of moderate size.

        Those that were deleted or have expired are not there, and are not waited for.
        """
        position, in_vain = start, 0
        while position < end:
            # A new reading where the last one broke off.
            reading = self.persistently(partial(_RangeConsumer.started, owner=self, start=position))
            try:
                while position < end and not reading.is_done:
                    pulled = self._run(self._while_connected(reading.pulled(end - position)))
                    if pulled:
                        position, in_vain = pulled[-1].sequence + 1, 0
                        yield [message for message in pulled if message.sequence < end]
                if reading.is_done:
                    return
            except _BrokenError as broken:
                self._drop()
                in_vain += 1
                if in_vain == _ATTEMPTS:
                    raise NatsError(str(broken)) from None
            finally:
                with suppress(Exception):
                    self._run(reading.ended())

    def publish(self, messages: Sequence[OutgoingMessage]) -> int:
        """Publish messages; return, when all of them are acknowledged, how many the stream had already."""
        known = 0
        for first in range(0, len(messages), _IN_FLIGHT):
            part = messages[first : first + _IN_FLIGHT]
            known += self.persistently(partial(self._published, messages=part))
        return known

    # -- Asking

    def ask(self, what: str, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the API of JetStream."""
        return self.persistently(lambda client: self._asked(client, what, request))

    def persistently(self, asking: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        """Ask, and connect anew and ask again while there is time."""
        deadline = monotonic() + self.timeout_s
        attempt = 0
        while True:
            try:
                return self._run(self._connected_and(asking))
            except _BrokenError as broken:
                self._drop()
                attempt += 1
                pause_s = random() * min(2.0, 0.1 * 2**attempt)
                if monotonic() + pause_s >= deadline:
                    raise NatsError(str(broken)) from None
                sleep(pause_s)

    async def _connected_and(self, asking: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        if self._client is None:
            self._client = await self._connected()
        with translated(self.address):
            return await self._while_connected(asking(self._client))

    async def _while_connected(self, doing: Coroutine[Any, Any, T]) -> T:
        """Wait for an answer as long as one can come: on a broken connection the client would wait in vain."""
        task, end = asyncio.ensure_future(doing), asyncio.ensure_future(self._is_closed.wait())
        await asyncio.wait((task, end), return_when=asyncio.FIRST_COMPLETED)
        end.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
            raise _BrokenError(f"no NATS server answers at {self.address}: the connection broke")
        return task.result()

    async def _connected(self) -> Client:
        from nats.aio.client import Client

        troubles: list[Exception] = []

        async def noted(trouble: Exception) -> None:
            troubles.append(trouble)

        closed = self._is_closed = asyncio.Event()

        async def ended() -> None:
            closed.set()

        client = Client()
        with translated(self.address, troubles):
            await asyncio.wait_for(
                client.connect(
                    servers=list(self.address.servers),
                    name="tamis",
                    error_cb=noted,
                    disconnected_cb=ended,
                    closed_cb=ended,
                    allow_reconnect=False,
                    connect_timeout=max(1, int(min(self.timeout_s, 5))),
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    user_credentials=self.address.credentials,
                ),
                timeout=self.timeout_s,
            )
        return client

    async def _asked(self, client: Client, what: str, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the API of JetStream."""
        answer = await client.request(f"$JS.API.{what}", json.dumps(request).encode(), timeout=self.timeout_s)
        answered: dict[str, Any] = json.loads(answer.data)
        if "error" in answered:
            description = answered["error"].get("description", "an error without a description")
            hint = "; make it first, or name another" if answered["error"].get("err_code") == 10059 else ""
            raise NatsError(f"{self.address}: {description}{hint}")
        return answered

    async def _published(self, client: Client, messages: Sequence[OutgoingMessage]) -> int:
        answers = await asyncio.gather(
            *(
                client.request(
                    message.subject,
                    message.body,
                    timeout=self.timeout_s,
                    headers={
                        **message.headers,
                        "Nats-Msg-Id": message.id,
                        "Nats-Expected-Stream": self.address.stream,
                    },
                )
                for message in messages
            ),
            return_exceptions=True,  # no request stays behind when another one fails
        )
        duplicates = 0
        for message, answer in zip(messages, answers, strict=True):
            if isinstance(answer, BaseException):
                if type(answer).__name__ == "NoRespondersError":
                    raise NatsError(f"{self.address}: no stream accepts the subject {message.subject!r}") from None
                if type(answer).__name__ == "MaxPayloadError":
                    size = len(message.body)
                    raise NatsError(
                        f"{self.address}: a message of {size:,} bytes is more than the server accepts "
                        f"({client.max_payload:,}); keep fewer columns, or raise its max_payload"
                    ) from None
                raise answer
            acknowledgement = json.loads(answer.data)
            if "error" in acknowledgement:
                raise NatsError(f"{self.address}: {acknowledgement['error'].get('description')} ({message.subject})")
            duplicates += bool(acknowledgement.get("duplicate"))
        return duplicates

    def _run(self, doing: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(doing)

    def _drop(self) -> None:
        if self._client is not None:
            with suppress(Exception):
                self._run(asyncio.wait_for(self._client.close(), timeout=2))
            self._client = None


class _RangeConsumer:
    """A consumer of the stream that lives for one range."""

    def __init__(
        self, client: Client, owner: JetStreamClient, name: str, inbox: str, arrived: Any, pending: int
    ) -> None:
        self._client, self._owner, self._name, self._inbox, self._arrived = client, owner, name, inbox, arrived
        self._count = 0
        self.is_done = pending == 0

    @classmethod
    async def started(cls, client: Client, owner: JetStreamClient, start: int) -> _RangeConsumer:
        address = owner.address
        config: dict[str, Any] = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": start,
            "ack_policy": "none",
            "replay_policy": "instant",
            "max_deliver": 1,
            "inactive_threshold": int(60e9),
            "num_replicas": 1,
            "mem_storage": True,
        }
        if address.subject:
            config["filter_subject"] = address.subject
        made = await owner._asked(
            client, f"CONSUMER.CREATE.{address.stream}", {"stream_name": address.stream, "config": config}
        )
        inbox = client.new_inbox()
        arrived = await client.subscribe(inbox, pending_msgs_limit=-1, pending_bytes_limit=-1)
        return cls(client, owner, made["name"], inbox, arrived, made.get("num_pending", 0))

    async def pulled(self, most: int) -> list[StreamMessage]:
        """Return the next messages; none, and `is_done`, when nothing is left."""
        address, timeout_s = self._owner.address, self._owner.timeout_s
        asked = {
            "batch": min(most, _PULLED),
            "max_bytes": max(_PULLED_BYTES, self._client.max_payload + (1 << 16)),
            "no_wait": True,
        }
        messages: list[StreamMessage] = []
        with translated(address):
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{address.stream}.{self._name}"
            await self._client.publish(subject, json.dumps(asked).encode(), reply=self._inbox)
            while len(messages) < asked["batch"]:
                message = await self._arrived.next_msg(timeout=timeout_s)
                status = (message.headers or {}).get("Status") if not message.reply else None
                if status == "100":
                    continue
                if status is not None:
                    self._ended_by(status, message, bool(messages))
                    break
                sequence, count, published_ns, left = reply_numbers(message.reply)
                self._count += 1
                if count != self._count:  # one got lost on its way: read from there again
                    raise _BrokenError(f"{address}: messages were lost on the way")
                headers = dict(message.headers or {})
                messages.append(StreamMessage(message.subject, sequence, published_ns // 1000, headers, message.data))
                if left == 0:
                    self.is_done = True
                    break
        return messages

    def _ended_by(self, status: str, message: Msg, is_any: bool) -> None:
        """Take note of why the server ends a pull."""
        description = (message.headers or {}).get("Description", "")
        if status == "404":
            self.is_done = not is_any
        elif status == "409" and "Deleted" in description:
            raise _BrokenError(f"{self._owner.address}: the consumer was deleted")
        elif status not in ("408", "409"):
            raise NatsError(f"{self._owner.address}: {status} {description}")

    async def ended(self) -> None:
        await self._arrived.unsubscribe()
        await self._owner._asked(self._client, f"CONSUMER.DELETE.{self._owner.address.stream}.{self._name}", {})


def reply_numbers(reply: str) -> tuple[int, int, int, int]:
    """Return what JetStream writes into the reply subject: sequence, its number at the consumer, time, how many follow.

    >>> reply_numbers("$JS.ACK.EVENTS.abc.1.17.3.1700000000000000000.5")
    (17, 3, 1700000000000000000, 5)
    """
    tokens = reply.split(".")
    rest = tokens[4:] if len(tokens) == 9 else tokens[6:]  # newer servers add a domain and an account
    return int(rest[1]), int(rest[2]), int(rest[3]), int(rest[4])


class _BrokenError(Exception):
    """The connection is of no use any more; another one may be."""


class translated:  # noqa: N801 - reads as a verb
    """Turn what the client raises into what a reader understands."""

    def __init__(self, address: NatsAddress, troubles: Sequence[Exception] = ()) -> None:
        self._address, self._troubles = address, troubles

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        from nats.errors import AuthorizationError, Error, InvalidUserCredentialsError, NoRespondersError

        if error is None or isinstance(error, NatsError | _BrokenError):
            return
        refused = next((each for each in (error, *self._troubles) if isinstance(each, AuthorizationError)), None)
        if refused or "Authorization" in str(error):
            raise NatsError(
                f"{self._address}: the server rejected the login; give a user name and a password"
            ) from None
        if isinstance(error, InvalidUserCredentialsError | FileNotFoundError):
            raise NatsError(f"{self._address}: the credentials cannot be read: {error}") from None
        if isinstance(error, NoRespondersError):
            raise NatsError(f"{self._address}: this server has no JetStream; start it with -js") from None
        if isinstance(error, Error | OSError | TimeoutError | EOFError):
            cause = self._troubles[-1] if self._troubles else error
            reason = without_secrets(str(cause).strip() or type(cause).__name__)
            raise _BrokenError(f"no NATS server answers at {self._address}: {reason}") from None
