"""Several nodes on one log, each with what remembers: are all of them told what the log says, whoever wrote it?

Each node is a world of its own (`remembering`), with its clock, its disk for its state, its crashes. They share the log,
which gives their blocks positions, and from which each of them follows what all have written, late and bit by bit. A
publisher that had no answer sends its events again at another node: then they lie in the log twice.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tamis.service.errors import StorageFullError
from tamis.service.event_keys import event_key
from tamis.service.log.base import end_of, is_rerouted
from tamis.service.node import LogFacts
from tests.service.remembering import Remembering, WrongError, reference
from tests.service.world_disks import SharedLog


class OneOfSeveral(Remembering):
    """A node on a log that it shares with others."""

    def __init__(self, seed: int, together: Together, number: int, **options: Any) -> None:
        self.together = together
        self.appending: list = []
        """Blocks that the log was handed."""
        self.followed = 0
        super().__init__(seed, **options)
        self.number = number * 1_000_000
        self.now += self.chance.choice((0.0, 0.2, 3.0))

    def make_log(self) -> SharedLog:
        return self.together.log

    def facts(self) -> LogFacts:
        log = self.log
        self.followed = log.last
        last_us = log.blocks[-1].time_us if log.blocks else 0
        return LogFacts(log.first, log.last, last_us, True, True, (), log.block_positions)

    def crash_log(self) -> None:
        for block in self.appending[: self.chance.randint(0, len(self.appending))]:
            self.log.append(block)
        self.appending = []

    def append(self, block: Any) -> None:
        self.appending.append(block)

    @property
    def is_writing(self) -> bool:
        return bool(self.appending or self.state.writing or self.followed < self.log.last)

    def sync_log(self) -> None:
        for _ in range(self.chance.randint(0, len(self.appending))):
            if not self.appending:  # there was a crash
                break
            block = self.appending.pop(0)
            if self.log.is_full:
                self.carry(self.node.not_written(block, StorageFullError("no room"), self.now))
            else:
                self.carry(self.node.appended([self.log.append(block)]))
        self.note_disks()
        behind = [block for block in self.log.blocks if block.first > self.followed]
        blocks = behind[: self.chance.choice((1, 2, 50))]
        if blocks:
            self.followed = blocks[-1].last
            self.carry(self.node.follow(blocks, self.now))

    def is_on_disk(self, position: int) -> bool:
        return position <= end_of(self.log.last, self.log.block_positions)

    def drop(self) -> None:
        every = self.together.nodes
        if any(each.unanswered or each.appending or each.followed < self.log.last for each in every):
            return  # retention comes long after what was published
        self.log.drop(min(each.node.needed for each in every))
        for each in every:
            each.node.dropped(self.log.first)

    def step(self) -> None:
        super().step()
        if self.unanswered and self.chance.random() < 0.05:  # whoever waits asks somebody else
            other = self.chance.choice(self.together.nodes)
            other.unanswered |= self.unanswered

    def reference(self, text: str, since: int, until: float, blocks: list) -> dict:
        repetitions, seen = set(), set()
        for block in blocks:
            for position, (body, flag) in enumerate(zip(block.events, block.flags, strict=True), block.first):
                if not is_rerouted(flag):
                    key = event_key(body)
                    repetitions |= {position} if key in seen else set()
                    seen.add(key)
        positions = self.log.block_positions
        return reference(text, since, until, blocks, block_positions=positions, repetitions=repetitions)


class Together:
    """Everything that happens to several nodes, from one seed."""

    def __init__(self, seed: int, count: int = 2, **options: Any) -> None:
        self.seed = seed
        self.chance = chance = Random(seed)
        self.log = SharedLog()
        self.nodes: list[OneOfSeveral] = []
        for number in range(count):
            self.nodes.append(OneOfSeveral(chance.getrandbits(30), self, number, **options))
        self.steps = sum(node.steps for node in self.nodes)

    def run(self) -> Together:
        try:
            for _ in range(self.steps):
                self.chance.choice(self.nodes).step()
            for node in [*self.nodes, *self.nodes]:
                node.rest()
            for node in self.nodes:
                node.note_disks()
                for other in self.nodes:
                    node.blocks |= other.blocks
                node.check()
        except Exception as problem:
            raise WrongError(f"seed {self.seed}: {type(problem).__name__}: {problem}") from problem
        return self
