"""The smallest driver of a node: disks that are done at once, and clients that are lists of what they were told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

import tamis
from tamis.routing import Broker
from tamis.service.messages import Append, Deliveries, Incoming, Keep, Principal, Publish, Read, Say, Session, Wanted
from tamis.service.node import LogFacts, Node, NodeLimits
from tamis.service.permissions import Permissions
from tests.service.world_disks import LogDisk, StateDisk

if TYPE_CHECKING:
    from tamis.service.changes import Stored
    from tamis.service.windows import WindowLimits

ROOT = Principal("root", (), True)


def read_record(body: bytes, flags: int) -> dict[str, Any]:
    event = msgspec.json.decode(body)
    return {**event["data"], "id": event["id"], "source": event["source"]}


def incoming(number: int, **data: Any) -> Incoming:
    body = msgspec.json.encode({"id": str(number), "source": "/shop", "data": data})
    return Incoming(f"/shop\n{number}", body, read_record(body, 0))


def wanted(text: str) -> Wanted:
    return Wanted(text, tamis.parse(text))


class Drive:
    """A node whose outputs are carried out at once, unless a disk is said to be slow."""

    def __init__(
        self, permissions: Permissions | None = None, windows: WindowLimits | None = None, **limits: Any
    ) -> None:
        self.permissions = permissions or Permissions({})
        self.limits, self.windows = NodeLimits(**limits), windows
        self.log, self.state = LogDisk(), StateDisk()
        self.is_log_slow = self.is_state_slow = False
        self.now = 1_000.0
        self.said: list[tuple[int, Any]] = []
        self.reads = 0
        self.start()

    def start(self) -> None:
        facts = LogFacts(self.log.first, self.log.last, gaps=self.log.gaps)
        stored: Stored = self.state.rows.stored()
        self.node = Node(
            Broker("a", algorithm="naive"),
            self.permissions,
            read_record,
            stored,
            facts,
            now=self.now,
            limits=self.limits,
            windows=self.windows,
        )
        self.node.remember(self.log.blocks)
        self.do(self.node.start())

    def crash(self) -> None:
        """End without a word: what waits for a slow disk is lost."""
        self.log.writing.clear()
        self.state.writing.clear()
        self.said = []
        self.start()

    def do(self, outputs: list[Any]) -> None:
        for output in outputs:
            match output:
                case Say(session, answer):
                    self.said.append((session, answer))
                case Append(block):
                    self.log.writing.append(block)
                case Keep():
                    self.state.writing.append(output)
                case Read(first, last):
                    self.reads += 1
                    blocks, through = self.log.read(first, last, 1)
                    self.do(self.node.take_read(blocks, through, self.log.first, self.now))
        self.sync()

    def sync(self) -> None:
        if self.log.writing and not self.is_log_slow:
            self.log.sync(len(self.log.writing))
            self.do(self.node.on_disk(self.log.last, self.now))
        if self.state.writing and not self.is_state_slow:
            self.do(self.node.kept(self.state.sync(len(self.state.writing))))

    def hear(self, request: Any, session: int = 1, principal: Principal = ROOT) -> Any:
        """Let the node hear a request; return what it said last to that session because of it."""
        count = len(self.said)
        self.do(self.node.hear(request, Session(session, principal), self.now))
        return next((answer for number, answer in reversed(self.said[count:]) if number == session), None)

    def publish(self, *events: Incoming) -> Any:
        return self.hear(Publish(1, events), 99)

    def work(self) -> None:
        while self.node.has_work:
            self.do(self.node.work(self.now))

    def tick(self, seconds: float = 1.0) -> None:
        self.now += seconds
        self.do(self.node.tick(self.now))

    def deliveries(self, session: int) -> list[Any]:
        return [
            item
            for number, answer in self.said
            if number == session and isinstance(answer, Deliveries)
            for item in answer.items
        ]
