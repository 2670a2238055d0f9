"""How does a program go on where it was, after it was killed? Consumer offsets.

The server remembers for it: a consumer with a name knows which messages were acknowledged. They are acknowledged when
what came of them has arrived, so what was under way when the program died is delivered again, after `ack_wait_s`. Each
message is acknowledged by itself: those of somebody who died come later than what follows them, and an acknowledgement
of all up to a number would lose them. Several programs may share a name, and then share the messages.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.sources.errors import NatsError, OptionError
from tamis.sources.jetstream import reply_numbers, translated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nats.aio.client import Client

    from tamis.sources.jetstream import JetStreamClient
    from tamis.sources.nats_reading import NatsReading

_IN_FLIGHT = 100_000
"""So many messages may be delivered and not acknowledged yet, with all programs of a name taken together."""
_WAIT_NS = 10**9


class PulledMessage(NamedTuple):
    """A message that waits for its acknowledgement."""

    sequence: int
    body: bytes
    reply: str


class DurableReading:
    """The messages of a stream that no program of a name has acknowledged."""

    def __init__(self, connection: JetStreamClient, reading: NatsReading, name: str, ack_wait_s: float) -> None:
        if not name or any(letter in ".*>/\\ \t\r\n" for letter in name):
            raise OptionError(f"the name of a consumer may have letters, digits, - and _ only, not {name!r}")
        self._connection, self._name, self._stream = connection, name, reading.address.stream
        self._most = reading.max_messages
        state = connection.state()
        self._end = reading.behind(state)
        try:
            self._consumer_state()
        except NatsError as error:
            if "consumer not found" not in str(error):
                raise
            # Nobody had this name before.
            self._make(reading, max(reading.first(state), 1), ack_wait_s)

    def _make(self, reading: NatsReading, start: int, ack_wait_s: float) -> None:
        config: dict[str, Any] = {
            "durable_name": self._name,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": start,
            "ack_policy": "explicit",
            "ack_wait": int(ack_wait_s * 1e9),
            "max_deliver": -1,
            "max_ack_pending": _IN_FLIGHT,
            "replay_policy": "instant",
        }
        if reading.address.subject:
            config["filter_subject"] = reading.address.subject
        request = {"stream_name": self._stream, "config": config}
        self._connection.ask(f"CONSUMER.DURABLE.CREATE.{self._stream}.{self._name}", request)

    def _consumer_state(self) -> dict[str, Any]:
        return self._connection.ask(f"CONSUMER.INFO.{self._stream}.{self._name}", {})

    def batches(self, most: int) -> Iterator[list[PulledMessage]]:
        """Yield messages until all that the stream had at the beginning are acknowledged, by whomever."""
        while True:
            messages = self._pulled(min(most, self._most), {"no_wait": True})
            if not messages:
                state = self._consumer_state()
                if self._is_done(state):
                    return
                # Somebody else has them, or had them when it died: they come when the server has waited for it.
                messages = self._pulled(min(most, self._most), {"expires": _WAIT_NS})
            if messages:
                yield messages

    def _is_done(self, state: dict[str, Any]) -> bool:
        is_empty = not state["num_pending"] and not state["num_ack_pending"]
        return is_empty or bool(state["ack_floor"]["stream_seq"] >= self._end - 1)

    def _pulled(self, most: int, waiting: dict[str, Any]) -> list[PulledMessage]:
        async def pulling(client: Client) -> list[PulledMessage]:
            inbox = client.new_inbox()
            arriving = await client.subscribe(inbox, pending_msgs_limit=-1, pending_bytes_limit=-1)
            asked = {"batch": most, **waiting}
            messages: list[PulledMessage] = []
            with translated(self._connection.address):
                subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}"
                await client.publish(subject, json.dumps(asked).encode(), reply=inbox)
                while len(messages) < most:
                    message = await arriving.next_msg(timeout=self._connection.timeout_s + _WAIT_NS / 1e9)
                    status = (message.headers or {}).get("Status") if not message.reply else None
                    if status == "100":
                        continue
                    if status is not None:
                        break
                    messages.append(PulledMessage(reply_numbers(message.reply)[0], message.data, message.reply))
                await arriving.unsubscribe()
            return messages

        return self._connection.persistently(pulling)

    def acknowledge(self, messages: list[PulledMessage]) -> None:
        """Say that what came of messages has arrived. An acknowledgement that gets lost makes them come again."""

        async def acknowledging(client: Client) -> None:
            with translated(self._connection.address):
                for message in messages:
                    await client.publish(message.reply, b"+ACK")
                await client.flush()

        self._connection.persistently(acknowledging)
