"""How do events outlive a machine, and how do several brokers share them? A log in a stream of NATS JetStream.

A block is one message, so the server numbers, stores and replicates groups and not single events. The message with the
stream's sequence s has the events at s x 4096, s x 4096 + 1, and so on: positions grow, and are the same for everybody
who reads the stream, but there are gaps between blocks. Positions are the server's to give, so `append` returns the
blocks with other positions than it was given. Each broker also follows the stream (`follow`) and so learns what the
others append, in the one order that there is.

Every message has an id, so that one which is sent again after a broken connection is stored once. What an
acknowledgement of the server means is for its operator to decide: `sync_interval: always`, or replicas on several
machines. Old events go by `drop`, as with the other logs; a stream may have limits of its own, too.

Each broker writes the time of its own clock into a block, or that of a later block which it had read; and how far it
had read. What others wrote meanwhile may say a later time and come before. So the time of a block is the latest that it
or any before it says, and to know that nobody has to look further back than its writer had read (`_timed`): time never
goes back in a log, and is the same for everybody who reads it, wherever they begin.

Blocks that are appended together are stored one by one. If a part of them is refused, the log fails for good, because
nobody can take back what others may have read.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any

from tamis.service.errors import DamagedLogError, LogError, SettingsError, StorageFullError, TooLargeError
from tamis.service.log.base import Block, Extent, Gap
from tamis.service.log.blocks import block_in, message_of
from tamis.service.log.jetstream_following import Follower
from tamis.sources.errors import NatsError, OptionError
from tamis.sources.jetstream import JetStreamClient
from tamis.sources.nats_address import nats_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from nats.aio.client import Client

    from tamis.sources.nats_address import NatsAddress

BLOCK_EVENTS = 4096
"""So many events a message has at most, and so many positions each has."""
_EPOCH = "tamis_epoch"
_HEADER_BYTES = 1024
"""What is left free of the server's `max_payload` for headers."""
_NO_ROOM = {10023, 10047, 10077, 10122}
"""Error codes of a server or a stream that is full."""
_NO_MESSAGE = "no message found"
_SLICES = 32


class JetStreamLog:
    """A log of events in a stream, which is made if it is not there.

    `replicas` counts for a new stream. After `timeout_s` without an answer, connecting anew included, an operation
    fails with a `LogError`.
    """

    is_shared = True
    block_positions = BLOCK_EVENTS

    def __init__(self, url: str, stream: str = "", replicas: int = 1, timeout_s: float = 10.0) -> None:
        try:
            self._address: NatsAddress = nats_address(url, stream or None)
        except OptionError as error:
            raise SettingsError(str(error), "such as nats://localhost:4222/EVENTS") from None
        self._timeout_s = timeout_s
        self._session = secrets.token_hex(8)
        self._count = 0
        self._failure: LogError | None = None
        self._lock = Lock()
        """Held while something is asked that is no long reading: a connection serves one thread at a time."""
        self._idle: list[JetStreamClient] = []
        self._first = self._last = self._time_us = 0
        try:
            with self._lent() as connection:
                self._subject, self.epoch = _opened(connection, self._address, replicas)
                self._refresh(connection)
        except BaseException:
            self.close()
            raise

    # -- What is there, as far as this process knows

    @property
    def first(self) -> int:
        """The position of the oldest event that may still be there; 1 more than the last one if there is none."""
        return self._first

    @property
    def last(self) -> int:
        """The position of the newest event that was appended here, or seen by `refresh`; 0 if there was none."""
        return self._last

    @property
    def last_time_us(self) -> int:
        """When the newest block was taken; 0 if there is none."""
        return self._time_us

    def refresh(self) -> None:
        """Learn what others have appended and dropped."""
        with self._lock, self._lent() as connection:
            self._refresh(connection)

    def follow(self, position: int) -> Follower:
        """Return what reads the stream from a position on, and waits for what will come."""
        return Follower(self._address, -(-position // BLOCK_EVENTS), self._timeout_s, _Clock(self).block)

    def read(self, first: int, last: int) -> Iterator[Block]:
        """Yield the blocks that have an event from `first` to `last`, whole, in order. Raise `DamagedLogError`."""
        if last < first:
            return
        begin, end = max(1, first // BLOCK_EVENTS), last // BLOCK_EVENTS + 1
        expected = begin
        clock = _Clock(self)
        with self._lent() as connection:
            for messages in connection.messages(begin, end):
                for message in messages:
                    if message.sequence > expected:
                        self.refresh()  # others have dropped something: whoever reads this asks for `first` next
                    expected = message.sequence + 1
                    block = clock.block(message.sequence, message.body)
                    if block.first <= last and block.last >= first:
                        yield block
        if expected < end:
            self.refresh()

    def gaps(self) -> tuple[Gap, ...]:
        """Return what a repair has left out: nothing, since the server repairs its files itself."""
        return ()

    def position_at(self, time_us: int) -> int:
        """Return the position of the first event taken at or after a time; 1 more than the last if none was."""
        with self._lock, self._lent() as connection:
            state = connection.state()
            low, high = state.first, state.next
            begin = self._last + 1
            while low < high:
                middle = (low + high) // 2
                block = self._block_from(connection, middle)
                if block is None or block.time_us >= time_us:
                    begin = block.first if block else begin
                    high = middle
                else:
                    low = block.first // BLOCK_EVENTS + 1
            return begin

    def extents(self) -> tuple[Extent, ...]:
        """Return slices of the stream, oldest first, with sizes as they are on the average."""
        with self._lock, self._lent() as connection:
            state = connection.ask(f"STREAM.INFO.{self._address.stream}", {})["state"]
            first, last, count = state["first_seq"], state["last_seq"], state["messages"]
            self._first = max(self._first, first * BLOCK_EVENTS)
            if count == 0:
                return ()
            step = max(1, -(-(last - first + 1) // _SLICES))
            extents = []
            for begin in range(first, last + 1, step):
                end = min(begin + step - 1, last)
                block = self._block_from(connection, end)
                if block is not None:
                    final = min(block.last, end * BLOCK_EVENTS + BLOCK_EVENTS - 1)
                    size = state["bytes"] * (end - begin + 1) // (last - first + 1)
                    extents.append(Extent(begin * BLOCK_EVENTS, final, block.time_us, size))
            return tuple(extents)

    # -- Changes

    def append(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Store blocks; return them with the positions that the server gave, when it has acknowledged all of them.

        A block that is too large for one message comes back as several, in order.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                with self._lent() as connection:
                    stored = self._stored(connection, blocks)
            except (StorageFullError, TooLargeError):
                raise
            except LogError as error:
                self._failure = error
                raise
            if stored:
                if self._first > self._last:
                    self._first = stored[0].first
                self._last = max(self._last, stored[-1].last)
                self._time_us = max(self._time_us, stored[-1].time_us)
            return stored

    def drop(self, before: int) -> int:
        """Drop the slices all of whose events come before a position; return the new `first`."""
        ends = [extent.last for extent in self.extents() if extent.last < before]
        with self._lock, self._lent() as connection:
            if ends:
                connection.ask(f"STREAM.PURGE.{self._address.stream}", {"seq": ends[-1] // BLOCK_EVENTS + 1})
            self._refresh(connection)
            return self._first

    def close(self) -> None:
        """Let go of the connections; what was appended stays."""
        with self._lock:
            self._failure = self._failure or LogError("the log is closed")
            while self._idle:
                self._idle.pop().__exit__()

    # -- Talking to the server

    def _stored(self, connection: JetStreamClient, blocks: Sequence[Block]) -> tuple[Block, ...]:
        most_bytes = connection.persistently(_max_payload) - _HEADER_BYTES
        parts = [part for block in blocks for part in _parts(block, most_bytes)]
        messages = []
        for part in parts:
            self._count += 1
            messages.append((f"{self._session}-{self._count}", message_of(part)))
        sequences = connection.persistently(partial(self._published, messages=messages))
        if sequences != sorted(sequences):
            raise LogError(f"{self._address} took blocks in another order than they were sent", "one leader")
        return tuple(
            Block(sequence * BLOCK_EVENTS, part.time_us, part.events, part.flags)
            for sequence, part in zip(sequences, parts, strict=True)
        )

    async def _published(self, client: Client, messages: list[tuple[str, bytes]]) -> list[int]:
        """Publish, all at once, and return the sequences in the stream; those of the first time if sent again."""
        from nats.errors import NoRespondersError

        answers = await asyncio.gather(
            *(
                client.request(
                    self._subject,
                    body,
                    timeout=self._timeout_s,
                    headers={"Nats-Msg-Id": name, "Nats-Expected-Stream": self._address.stream},
                )
                for name, body in messages
            ),
            return_exceptions=True,  # no request stays behind when another one fails
        )
        sequences: list[int] = []
        refusals: list[dict[str, Any]] = []
        for answer in answers:
            if isinstance(answer, NoRespondersError):  # a server that has just been started; it is asked again
                raise ConnectionError("the stream is not there yet")
            if isinstance(answer, BaseException):
                raise answer
            content = json.loads(answer.data)
            if "error" in content:
                refusals.append(content["error"])
            else:
                sequences.append(content["seq"])
        if refusals and not sequences and refusals[0].get("err_code") in _NO_ROOM:
            raise StorageFullError(f"{self._address}: {refusals[0].get('description')}", "room in the stream")
        if refusals:
            raise LogError(f"{self._address} refuses events: {refusals[0].get('description')}")
        return sequences

    def _refresh(self, connection: JetStreamClient) -> None:
        state = connection.state()
        newest = state.next - 1
        self._first = state.first * BLOCK_EVENTS if newest else 1
        if newest == 0:
            return
        block = self._block_from(connection, newest)
        if block is not None:
            self._last, self._time_us = block.last, max(self._time_us, block.time_us)
        else:  # dropped: its length is not known any more
            self._last = max(self._last, self._first - 1)

    def _block_from(self, connection: JetStreamClient, sequence: int) -> Block | None:
        """Return the block at a sequence, or the next one that is there."""
        try:
            answer = connection.ask(
                f"STREAM.MSG.GET.{self._address.stream}", {"seq": sequence, "next_by_subj": self._subject}
            )
        except NatsError as error:
            if _NO_MESSAGE in str(error):
                return None
            raise
        message = answer["message"]
        written = self.written(message["seq"], base64.b64decode(message.get("data", "")))
        return self._timed(connection, message["seq"], written)

    def written(self, sequence: int, body: bytes) -> Block:
        """Return what a message holds: a block as its writer expected it to be, at a position that it had come to."""
        block = block_in(body)
        if block is None:
            first = sequence * BLOCK_EVENTS
            what = f"message {sequence} of the stream is not what was written"
            raise DamagedLogError(str(self._address), first, first + BLOCK_EVENTS - 1, what)
        return block

    def timed(self, sequence: int, written: Block) -> Block:
        """Return a block as everybody sees it: at its position, and not before those that came before it."""
        if not written.first or written.first // BLOCK_EVENTS >= sequence:
            return _placed(sequence, written, written.time_us)
        with self._lent() as connection:
            return self._timed(connection, sequence, written)

    def _timed(self, connection: JetStreamClient, sequence: int, written: Block) -> Block:
        time_us = written.time_us
        unread = max(1, written.first // BLOCK_EVENTS) if written.first else sequence
        if unread < sequence:  # its writer had not read these
            for messages in connection.messages(unread, sequence):
                for message in messages:
                    before = block_in(message.body)  # what is damaged says no time
                    time_us = time_us if before is None else max(time_us, before.time_us)
        return _placed(sequence, written, time_us)

    @contextmanager
    def _lent(self) -> Iterator[JetStreamClient]:
        """Lend a connection that nobody else uses."""
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = JetStreamClient(self._address, self._timeout_s)
            try:
                yield connection
            finally:
                if self._failure is None and len(self._idle) < 4:
                    self._idle.append(connection)
                else:
                    connection.__exit__()
        except NatsError as error:
            raise LogError(str(error)) from None


class _Clock:
    """Gives each block of a reader that goes on from one to the next its time."""

    def __init__(self, log: JetStreamLog) -> None:
        self._log = log
        self._time_us = -1

    def block(self, sequence: int, body: bytes) -> Block:
        """Return the block in the next message."""
        written = self._log.written(sequence, body)
        if self._time_us < 0:
            block = self._log.timed(sequence, written)
        else:
            block = _placed(sequence, written, max(self._time_us, written.time_us))
        self._time_us = block.time_us
        return block


def _placed(sequence: int, written: Block, time_us: int) -> Block:
    return Block(sequence * BLOCK_EVENTS, time_us, written.events, written.flags)


def _opened(connection: JetStreamClient, address: NatsAddress, replicas: int) -> tuple[str, str]:
    """Return the subject and the epoch of a stream; make it if it is not there, or if it is empty, take it."""
    what = f"STREAM.INFO.{address.stream}"
    try:
        stream = connection.ask(what, {})
    except NatsError as error:
        if "stream not found" not in str(error):
            raise
        config = {
            "name": address.stream, "subjects": [f"tamis.log.{address.stream}"], "retention": "limits",
            "storage": "file", "discard": "new", "num_replicas": replicas, "max_msgs": -1, "max_bytes": -1,
            "max_age": 0,
        }  # fmt: skip
        connection.ask(f"STREAM.CREATE.{address.stream}", config)  # the same answer, if another broker was quicker
        stream = connection.ask(what, {})
    config = stream["config"]
    subjects = config.get("subjects") or [""]
    metadata = config.get("metadata") or {}
    if len(subjects) != 1 or not subjects[0] or set("*>") & set(subjects[0]):
        raise LogError(f"{address} has the subjects {', '.join(subjects)}", "a stream with one subject, for this log")
    if _EPOCH not in metadata:
        if stream["state"]["last_seq"]:
            raise LogError(
                f"{address} holds messages of another program", "an empty stream, or one that holds a log of Tamis"
            )
        # Everybody who opens the new stream at once computes the same name.
        epoch = sha256(f"{address.stream}\n{stream['created']}".encode()).hexdigest()[:8]
        metadata = {**metadata, _EPOCH: epoch}
        connection.ask(f"STREAM.UPDATE.{address.stream}", {**config, "metadata": metadata})
    return subjects[0], metadata[_EPOCH]


async def _max_payload(client: Client) -> int:
    return int(client.max_payload)


def _parts(block: Block, most_bytes: int) -> Iterator[Block]:
    """Yield a block, or several that fit into messages."""
    size, begin = 0, 0
    for index, event in enumerate(block.events):
        event_bytes = len(event) + 5
        if event_bytes + 32 > most_bytes:
            raise TooLargeError(
                f"an event of {len(event):,} bytes is more than the NATS server accepts in a message",
                f"at most {most_bytes:,}, or a larger max_payload there",
            )
        if size + event_bytes + 32 > most_bytes or index - begin == BLOCK_EVENTS:
            yield Block(block.first, block.time_us, block.events[begin:index], block.flags[begin:index])
            size, begin = 0, index
        size += event_bytes
    yield Block(block.first, block.time_us, block.events[begin:], block.flags[begin:])
