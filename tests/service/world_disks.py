"""What is left after a crash? Disks that keep what was synced, and of the rest only what chance leaves.

A log is a list of blocks; what was handed over and not yet synced waits in `writing`. A crash leaves a prefix of it: a
torn block is cut off when the log is opened. The state is a sequence of transactions of which a crash leaves a prefix,
too; never less than what it had said is kept.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tamis.service import changes
from tamis.service.changes import Stored
from tamis.service.links.terms import LINK_SUBSCRIBER
from tamis.service.log.base import Block, Gap

if TYPE_CHECKING:
    from random import Random

    from tamis.service.messages import Keep


class StateModel:
    """The rows of a state, as dictionaries."""

    def __init__(self) -> None:
        self.subscribers: dict = {}
        self.floors: dict = {}
        self.subscriptions: dict = {}
        self.replays: dict = {}
        self.dead: dict = {}
        self.links: dict = {}
        self.resumes: dict = {}

    def apply(self, change) -> None:
        match change:
            case changes.SubscriberKept(name):
                self.subscribers[name] = change
            case changes.SubscriberGone(name):
                self.subscribers.pop(name, None)
                self.floors.pop(name, None)
                self.resumes.pop(name, None)
                for rows in (self.subscriptions, self.replays, self.dead):
                    for key in [key for key in rows if key[0] == name]:
                        del rows[key]
            case changes.FloorKept(name):
                is_kept = name.removeprefix(LINK_SUBSCRIBER) in self.links or name in self.subscribers
                assert is_kept, f"a floor of {name}, which is not kept"
                self.floors[name] = change
            case changes.SubscriptionKept(name, key, number):
                assert name in self.subscribers, f"a subscription of {name}, which is not kept"
                self.subscriptions[name, key, number] = change
            case changes.SubscriptionGone(name, key, number):
                self.subscriptions.pop((name, key, number), None)
            case changes.ResumeKept(name):
                assert name in self.subscribers, f"a resume point of {name}, which is not kept"
                self.resumes[name] = change
            case changes.ReplayKept(name, key, number):
                assert (name, key, number) in self.subscriptions, f"a replay of {name}, {key}, which is not kept"
                self.replays[name, key, number] = change
            case changes.ReplayGone(name, key, number):
                self.replays.pop((name, key, number), None)
            case changes.Buried(name, position):
                assert name in self.subscribers, f"a dead letter of {name}, which is not kept"
                self.dead[name, position] = change
            case changes.Exhumed(name, position):
                self.dead.pop((name, position), None)
            case changes.LinkKept(name):
                self.links[name] = change
            case changes.LinkGone(name):
                self.links.pop(name, None)
                self.floors.pop(LINK_SUBSCRIBER + name, None)

    def stored(self) -> Stored:
        counts: dict[str, int] = {}
        for name, _ in self.dead:
            counts[name] = counts.get(name, 0) + 1
        return Stored(
            tuple(self.subscribers.values()), tuple(self.floors.values()), tuple(self.subscriptions.values()),
            tuple(self.replays.values()), tuple(counts.items()), tuple(self.links.values()),
            resumes=tuple(self.resumes.values()),
        )  # fmt: skip

    def is_empty(self) -> bool:
        return not (self.subscribers or self.floors or self.subscriptions or self.replays or self.dead or self.resumes)


class StateDisk:
    """Transactions: those that are on disk are applied, the others wait."""

    def __init__(self) -> None:
        self.rows = StateModel()
        self.writing: deque[Keep] = deque()

    def sync(self, count: int) -> int:
        """Write the first transactions that wait; return the number of the last."""
        number = 0
        for _ in range(count):
            keep = self.writing.popleft()
            number = keep.number
            for change in keep.changes:
                self.rows.apply(change)
        return number

    def crash(self, chance: Random) -> None:
        self.sync(chance.choice((0, chance.randint(0, len(self.writing)))))
        self.writing.clear()


class LogDisk:
    """The log of one node."""

    block_positions = 1

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.writing: deque[Block] = deque()
        self.first = 1
        self.last = 0
        self.dropped_through = 0
        """The last event that retention has taken."""
        self.gaps: tuple[Gap, ...] = ()
        self.is_full = False

    def has(self, position: int) -> bool:
        """Is an event on disk, or was it, before retention took it?"""
        return position < self.first or self.body(position) is not None

    def body(self, position: int) -> bytes | None:
        for block in reversed(self.blocks):
            if block.first <= position <= block.last:
                return block.events[position - block.first]
        return None

    def sync(self, count: int) -> None:
        for _ in range(count):
            block = self.writing.popleft()
            assert block.first > self.last, f"position {block.first} was given twice"
            self.blocks.append(block)
            self.last = block.last

    def crash(self, chance: Random) -> None:
        if self.is_full:
            self.writing.clear()
        self.sync(chance.choice((0, chance.randint(0, len(self.writing)))))
        self.writing.clear()

    def drop(self, before: int) -> int:
        """Retention: let go of the blocks that end before a position."""
        while len(self.blocks) > 1 and self.blocks[0].last < before:
            self.dropped_through = self.blocks.pop(0).last
            self.first = self.blocks[0].first
        return self.first

    def damage(self, index: int) -> None:
        """A block is left out by a repair."""
        block = self.blocks.pop(index)
        self.gaps = (*self.gaps, Gap(block.first, block.last))

    def read(self, first: int, last: int, most: int) -> tuple[list[Block], int]:
        """Return blocks, and up to where everything was read."""
        blocks = [block for block in self.blocks if block.last >= first and block.first <= last]
        return (blocks[:most], blocks[most - 1].last) if len(blocks) > most else (blocks, last)


class SharedLog(LogDisk):
    """A log that several nodes append to and follow; it gives positions, and each block takes as many of them."""

    block_positions = 64

    def append(self, block: Block) -> Block:
        assert len(block.events) <= self.block_positions
        first = (self.last // self.block_positions + 1) * self.block_positions
        written = Block(
            first, max(block.time_us, self.blocks[-1].time_us if self.blocks else 0), block.events, block.flags
        )
        self.blocks.append(written)
        self.last = written.last
        return written
