"""Are ranked subscriptions, sequences and changes a function of the log, whatever happens? A world of one node.

Chance publishes, subscribes, replaces, takes away, attaches, acknowledges, lets time pass, syncs disks, drops what the
node no longer needs of the log, fills the disk, changes roles, and kills the node between any two of its outputs. The
reference are the definitions (`NaiveStanding`, and `TopK` by its own), which see every event of the log that was ever
on disk, at the time of its block. What a block lets them tell must be what the node delivers with its position: nothing
else, the same each time, marked when it comes again, and in the end all of it.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

import tamis
from tamis.routing import Broker
from tamis.service.errors import StorageFullError
from tamis.service.filters import wanted_of
from tamis.service.log.base import end_of, is_rerouted
from tamis.service.messages import (
    Acknowledge,
    Append,
    Attach,
    Close,
    Deliveries,
    Keep,
    Principal,
    Publish,
    Published,
    Read,
    Refused,
    Say,
    Session,
    Subscribe,
    Unsubscribe,
)
from tamis.service.node import LogFacts, Node, NodeLimits
from tamis.service.permissions import Permissions
from tamis.service.positions import Position
from tamis.service.settings import Role
from tamis.service.windows import WindowLimits
from tamis.standing import NaiveStanding, parse_subscription
from tamis.topk import Ranked, TopK
from tests.service.drive import incoming, read_record
from tests.service.world_disks import LogDisk, StateDisk

TEXTS = (
    "TOP 1 BY a OVER 6 SECONDS",
    "TOP 2 BY a DESC OVER 4 SECONDS WHERE b = 'x'",
    "TOP 2 BY a OVER 3 EVENTS WHERE a > 1",
    "SEQUENCE b = 'x' THEN b = 'y' WITHIN 6 SECONDS",
    "SEQUENCE a < 4 AS low THEN a > low.a + 3 WITHIN 9 SECONDS PER b",
    "SEQUENCE b = 'x' THEN NOT b = 'y' WITHIN 3 SECONDS",
    "SEQUENCE a < 5 THEN a >= 5 WITHIN 5 SECONDS TAKING EVERY",
    "SEQUENCE a < 5 THEN a >= 5 WITHIN 5 SECONDS TAKING EACH ONCE",
    "SEQUENCE a < 3 THEN NOT a > 7 WITHIN 4 SECONDS PER b TAKING EVERY",
    "CHANGE TO a > 5",
    "CHANGE OF a > 4 UNTIL a < 3 PER b",
    "CHANGE OF a > 5 PER b WHERE a <> 6 FORGET AFTER 5 SECONDS",
    "a < 5",
    "b = 'x'",
)
RECEIVE = ("TRUE", "b = 'x'", "a < 8")
OWNER = Principal("ann", ("shop",))
NAME = "ann"
PUBLISHER = Principal("root", ("admin",), True)


class WrongError(AssertionError):
    """The node told something else than the definitions do, or nothing."""


def reference(
    text: str,
    since: int,
    until: float,
    blocks: list,
    read: Any = read_record,
    processor: Any = None,
    *,
    block_positions: int = 1,
    repetitions: Any = frozenset(),
) -> dict[Position, set]:
    """What a subscription tells of a log, by the position of the delivery: the events, when, and the change.

    Without a processor it is told by the definitions. Repetitions are positions that nobody gets.
    """
    wanted = parse_subscription(text)
    told: dict[Position, set] = {}
    if isinstance(wanted, tamis.language.expressions.Expression):
        for block in blocks:
            for position, (body, flag) in enumerate(zip(block.events, block.flags, strict=True), block.first):
                is_its = since < position <= until
                if position in repetitions or is_rerouted(flag) or not is_its:
                    continue
                if tamis.holds(wanted, read(body, flag)):
                    told[Position.of(position)] = {None}
        return told
    if processor is None:
        processor = TopK("naive") if isinstance(wanted, Ranked) else NaiveStanding()
    processor.add("it", wanted)
    before = -math.inf
    for block in blocks:
        if block.last <= since or block.first > until:
            continue
        now = block.time_us / 1e6
        if is_rerouted(block.flags[0]):
            notes = processor.advance(now)
        else:
            notes = processor.advance(math.nextafter(now, -math.inf)) if now > before else []
            for position, (body, flag) in enumerate(zip(block.events, block.flags, strict=True), block.first):
                if position in repetitions:
                    continue
                notes += processor.process(read(body, flag), now, position)
        before = now
        for note in notes:
            is_short = isinstance(processor, TopK)
            events = (note.event,) if is_short else note.events
            row = (events, round(note.at * 1e6), None if is_short else note.change)
            told.setdefault(Position(end_of(block.last, block_positions), max(events)), set()).add(row)
    return told


class Remembering:
    """Everything that happens, from one seed."""

    def __init__(self, seed: int, **options: Any) -> None:
        self.seed = seed
        self.chance = chance = Random(seed)
        self.steps = options.pop("steps", chance.choice((120, 250, 400)))
        self.is_crashing = chance.random() < 0.8
        self.has_roles = chance.random() < 0.3
        self.has_full_disks = chance.random() < 0.3
        self.has_retention = chance.random() < 0.6
        self.limits = NodeLimits(
            queue_events=chance.choice((2, 5, 50)),
            recent_bytes=chance.choice((1, 500, 100_000)),
            waiting_bytes=chance.choice((300, 64_000_000)),
        )
        self.windows = WindowLimits(mark_every_s=chance.choice((0.5, 2.0)))
        self.change_share = chance.choice((0.01, 0.06))
        for name, value in options.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        self.receive = "TRUE"
        self.now = 1_000.0
        self.log, self.state = self.make_log(), StateDisk()
        self.blocks: dict[int, Any] = {}
        """All that was ever on disk, whatever retention has taken since."""
        self.versions: dict[tuple[str, int, int, str], Any] = {}
        """All versions of subscriptions that were ever kept."""
        self.ended: set[str] = set()
        """Keys that were taken away once: what had not been delivered for them need not come."""
        self.emitted: dict[Position, dict[str, set]] = {}
        self.said: list[tuple[Position, Any]] = []
        self.done: set[Position] = set()
        self.held: list[Position] = []
        self.sessions = 0
        self.consumer = 0
        self.number = 0
        self.unanswered: dict[str, Any] = {}
        self.crashes = self.deliveries = 0
        self.reading: Read | None = None
        self.start()

    # -- The node and its disks

    def make_log(self) -> LogDisk:
        return LogDisk()

    def facts(self) -> LogFacts:
        log = self.log
        return LogFacts(log.first, log.last, log.blocks[-1].time_us if log.blocks else 0)

    def start(self) -> None:
        log = self.log
        permissions = Permissions({"shop": Role(receive=self.receive, subscribers=("*",))})
        self.node = Node(
            Broker("n", algorithm="naive"), permissions, read_record, self.state.rows.stored(), self.facts(),
            now=self.now, limits=self.limits, windows=self.windows,
        )  # fmt: skip
        self.node.remember(log.blocks)
        self.reading = None
        self.carry(self.node.start())

    def crash(self) -> None:
        self.crashes += 1
        self.crash_log()
        self.state.crash(self.chance)
        self.note_disks()
        self.consumer, self.held = 0, []
        self.highest = Position(0, 0)

    highest = Position(0, 0)

    def crash_log(self) -> None:
        self.log.crash(self.chance)

    def append(self, block: Any) -> None:
        self.log.writing.append(block)

    def carry(self, outputs: list) -> None:
        until = len(outputs)
        if self.is_crashing and self.chance.random() < 0.02:
            until = self.chance.randint(0, len(outputs))
        for output in outputs[:until]:
            match output:
                case Say(session, answer):
                    self.hear(session, answer)
                case Append(block):
                    self.append(block)
                case Keep():
                    self.state.writing.append(output)
                case Read():
                    self.reading = output
        if until < len(outputs):
            self.crash()
            self.start()

    def note_disks(self) -> None:
        self.blocks |= {block.first: block for block in self.log.blocks}
        for (_, key, number), row in self.state.rows.subscriptions.items():
            self.versions[key, number, row.since, row.effective] = row

    @property
    def is_writing(self) -> bool:
        """Does anything wait for a disk?"""
        return bool(self.log.writing or self.state.writing)

    def sync(self) -> None:
        self.sync_log()
        if self.state.writing:
            number = self.state.sync(self.chance.randint(1, len(self.state.writing)))
            self.note_disks()
            self.carry(self.node.kept(number))

    def sync_log(self) -> None:
        log = self.log
        if log.writing:
            if log.is_full:
                self.carry(self.node.not_written(log.writing.popleft(), StorageFullError("no room"), self.now))
            else:
                log.sync(self.chance.randint(1, len(log.writing)))
                self.note_disks()
                self.carry(self.node.on_disk(log.last, self.now))

    def read(self) -> None:
        if self.reading is not None:
            read, self.reading = self.reading, None
            blocks, through = self.log.read(read.first, read.last, self.chance.choice((1, 2, 9)))
            self.carry(self.node.take_read(blocks, through, self.log.first, self.now))

    # -- What is said

    def hear(self, session: int, answer: Any) -> None:
        match answer:
            case Published(_, _, positions):
                for position in positions:
                    if not self.log.has(position):
                        raise WrongError(f"{position} is acknowledged, and not on disk")
                self.unanswered.clear()
            case Refused(_, error) if error.status not in (404, 507):
                raise WrongError(f"refused: {error}")
            case Deliveries(_, items):
                for item in items:
                    self.delivered(item, session)

    def delivered(self, item: Any, session: int) -> None:
        self.deliveries += 1
        position = item.position
        if not self.is_on_disk(position.head):
            raise WrongError(f"{position} is delivered, and {position.head} is not on disk")
        told: dict[str, set] = {key: {None} for key in item.keys if key not in {each.key for each in item.told}}
        for each in item.told:
            told.setdefault(each.key, set()).add((each.events, each.at_us, each.change))
            if each.kind == "sequence" and list(each.bodies) != [self.body(event) for event in each.events]:
                raise WrongError(f"{position}: the events of a sequence are {each.bodies}")
        if item.body != self.body(position.event):
            raise WrongError(f"{position} is delivered with {item.body!r}")
        if position in self.emitted and not item.is_again:
            raise WrongError(f"{position} comes again, and is not marked")
        if position not in self.emitted and position < self.highest:
            raise WrongError(f"{position} comes for the first time, after {self.highest}")
        self.highest = max(self.highest, position)
        self.emitted.setdefault(position, {}).update(told)
        self.said.append((position, told))
        self.held.append(position)

    def is_on_disk(self, position: int) -> bool:
        return self.log.has(position)

    def body(self, position: int) -> bytes | None:
        block = max((each for each in self.blocks.values() if each.first <= position), key=lambda each: each.first)
        return block.events[position - block.first]

    def ask(self, request: Any, principal: Principal = OWNER, session: int = 0) -> None:
        self.sessions += not session
        self.carry(self.node.hear(request, Session(session or self.sessions, principal), self.now))

    # -- Steps

    def step(self) -> None:
        chance = self.chance
        kind = chance.random()
        self.now += chance.choice((0.0, 0.0, 0.01, 0.3, 1.0))
        if kind < 0.3:
            events = list(self.unanswered.values())
            if not self.versions:
                self.change(Subscribe(2, NAME, {key: wanted_of(chance.choice(TEXTS)) for key in "vwxyz"}))
            elif not events:
                for _ in range(chance.choice((1, 1, 2, 4))):
                    self.number += 1
                    event = incoming(self.number, a=chance.choice((*range(10), None)), b=chance.choice("xy"))
                    self.unanswered[event.key] = event
                    events.append(event)
            self.ask(Publish(1, tuple(events)), PUBLISHER)
        elif kind < 0.3 + self.change_share:
            if self.versions and chance.random() < 0.2:
                key = chance.choice("vwxyz")
                if NAME in self.node.roster.subscribers and key in self.node.roster.subscribers[NAME].subscriptions:
                    self.ended.add(key)
                    self.change(Unsubscribe(2, NAME, (key,)))
            else:
                keys = chance.sample("vwxyz", chance.choice((1, 2)))
                self.change(Subscribe(2, NAME, {key: wanted_of(chance.choice(TEXTS)) for key in keys}))
        elif kind < 0.48:
            if not self.consumer:
                self.attach()
            elif chance.random() < 0.15:
                self.detach()
        elif kind < 0.62:
            self.acknowledge(chance.randint(0, len(self.held)))
        elif kind < 0.75:
            self.sync()
        elif kind < 0.82:
            self.carry(self.node.tick(self.now))
        elif kind < 0.92:
            self.read()
            if self.node.has_work:
                self.carry(self.node.work(self.now))
        elif kind < 0.95 and self.has_retention:
            self.carry(self.node.tick(self.now))
            if not self.state.writing:  # as retention comes long after what was to be kept
                self.drop()
        elif kind < 0.97 and self.has_full_disks:
            self.log.is_full = not self.log.is_full
        elif self.has_roles:
            self.receive = chance.choice(RECEIVE)
            self.change(None)

    def drop(self) -> None:
        self.log.drop(self.node.needed)
        self.node.dropped(self.log.first)

    def change(self, request: Any) -> None:
        """Change subscriptions, or roles; it is kept before anything else happens (`world` has it otherwise)."""
        is_crashing, self.is_crashing = self.is_crashing, False
        if request is None:
            role = Role(receive=self.receive, subscribers=("*",))
            self.carry(self.node.permit(Permissions({"shop": role}), self.now))
        else:
            self.ask(request)
        while self.state.writing:
            number = self.state.sync(1)
            self.note_disks()
            self.carry(self.node.kept(number))
        self.is_crashing = is_crashing

    def attach(self) -> None:
        if NAME in self.node.roster.subscribers:
            self.sessions += 1
            self.consumer = self.sessions
            self.ask(Attach(3, NAME, credit=self.chance.choice((1, 3, 100))), session=self.consumer)

    def detach(self) -> None:
        session, self.consumer, self.held = self.consumer, 0, []
        self.highest = Position(0, 0)
        self.ask(Close(), session=session)

    def acknowledge(self, count: int) -> None:
        if self.consumer and count:
            chosen = self.chance.sample(self.held, count) if self.chance.random() < 0.3 else self.held[:count]
            self.held = [each for each in self.held if each not in chosen]
            self.done |= set(chosen)
            self.ask(Acknowledge(0, NAME, tuple(chosen)), session=self.consumer)

    def rest(self) -> None:
        """Everything that waits is done; time passes until nothing is due any more."""
        self.is_crashing = False
        self.log.is_full = False
        self.now += 2.0
        while self.unanswered:
            self.ask(Publish(1, tuple(self.unanswered.values())), PUBLISHER)
            while self.is_writing:
                self.sync()
        for _ in range(60):
            self.now += 0.5
            for _ in range(40):
                if not self.consumer:
                    self.attach()
                self.sync()
                self.read()
                if self.node.has_work:
                    self.carry(self.node.work(self.now))
                self.acknowledge(len(self.held))
                if not (self.is_writing or self.reading or self.node.has_work or self.held):
                    break
            self.carry(self.node.tick(self.now))

    # -- What must be

    def reference(self, text: str, since: int, until: float, blocks: list) -> dict[Position, set]:
        return reference(text, since, until, blocks)

    def check(self) -> None:
        blocks = [self.blocks[first] for first in sorted(self.blocks)]
        told: dict[Position, dict[str, set]] = {}
        expected: dict[Position, dict[str, set]] = {}
        current = {row.key: (row.number, row.since) for row in self.state.rows.subscriptions.values() if not row.until}
        rows = list(self.versions.values())
        for index, row in enumerate(rows):
            key, number = row.key, row.number
            later = [each.since for each in rows[index + 1 :] if each.key == key]
            until = min([row.until or math.inf, *later])
            of_version = self.reference(row.effective, row.since, until, blocks)
            for position, tellings in of_version.items():
                told.setdefault(position, {}).setdefault(key, set()).update(tellings)
                if key not in self.ended or current.get(key) == (number, row.since):
                    expected.setdefault(position, {}).setdefault(key, set()).update(tellings)
        for position, by_key in self.said:
            for key, tellings in by_key.items():
                defined = told.get(position, {}).get(key)
                if tellings != defined:
                    raise WrongError(f"{position} {key}: told {tellings}, by definition {defined}")
        for position, keys in expected.items():
            came = self.emitted.get(position, {})
            missing = {key: tellings for key, tellings in keys.items() if came.get(key) != tellings}
            if missing and position not in self.done:
                raise WrongError(f"{position} was never delivered with {missing}; it was with {came}")

    def run(self) -> Remembering:
        try:
            for _ in range(self.steps):
                self.step()
            self.rest()
            self.check()
        except Exception as problem:
            raise WrongError(f"seed {self.seed}: {type(problem).__name__}: {problem}") from problem
        return self
