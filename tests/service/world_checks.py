"""What must clients be able to rely on? Checkers that know only what clients said and were told.

A subscription's filter at a position is known as far as its owner was told: an operation that was answered with `since`
is in force from there on; one that had no answer may be in force, or not. So an event *must* come if every filter that
may be in force at its position wants it, and *may* come if one of them does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import tamis
from tamis.service.positions import START, Position

if TYPE_CHECKING:
    from collections.abc import Collection, Sized

    from tamis.service.messages import Delivery, Lost


class BrokenPromiseError(AssertionError):
    """A promise that was not kept."""


@dataclass
class Era:
    """A filter of a key that came into force at a position between two."""

    low: int
    high: int | None
    """None while nobody knows."""
    filter: object
    """None: there is no subscription."""
    asked: object = None
    """What the owner wrote, without what permissions leave of it."""
    by_role: bool = False
    """Whether it came with a change of roles, and not from its owner."""
    is_closed: bool = False
    """Whether its owner was told that there is no subscription any more."""


@dataclass
class ReplayAsked:
    """Events of the past that were asked for."""

    keys: tuple[str, ...]
    first: int
    low: int
    since: int | None = None
    ended: set = field(default_factory=set)
    """Keys for which something was asked later that ends it."""
    filters: dict = field(default_factory=dict)
    """By key, all filters that its events may be judged by."""


@dataclass
class Told:
    """What is known of one subscriber."""

    name: str
    is_durable: bool
    eras: dict[str, list[Era]] = field(default_factory=dict)
    replays: list[ReplayAsked] = field(default_factory=list)
    emitted: dict[Position, int] = field(default_factory=dict)
    consumer_count: int = 1
    highest: dict[int, Position] = field(default_factory=dict)
    """By session, or for all of them if there is one consumer: what was sent to it."""
    unordered_through: Position = START
    done: set[Position] = field(default_factory=set)
    """What somebody who had received it said is done; of a stream, what was received."""
    claimed: set[Position] = field(default_factory=set)
    never: set[Position] = field(default_factory=set)
    buried: set[Position] = field(default_factory=set)
    revived: set[Position] = field(default_factory=set)
    lost: list[Lost] = field(default_factory=list)
    """What clients were told to be lost."""
    lost_on_the_way: list[Lost] = field(default_factory=list)
    """What was said to be lost, whether or not anybody has heard it."""
    attempts: set[int] = field(default_factory=lambda: {0})
    is_gone: bool = False
    is_streamed: bool = False
    counts: dict[Position, int] = field(default_factory=dict)
    """How often a position was sent since the node was started."""

    def filters_at(self, key: str, event: int, *, is_certain: bool) -> list:
        """Return the filters that may be in force for an event; None among them if there may be none.

        When a subscription has ended, nothing of the past comes for it any more either: after the end was asked for
        that is possible, after it was told it is certain.
        """
        filters: list = []
        for era in reversed(self.eras.get(key, ())):
            if era.filter is None and (era.is_closed or is_certain):
                break
            if era.low < event:
                filters.append(era.filter)
                if era.high is not None and era.high < event:
                    return filters
        return [*filters, None]


class Checker:
    """All that was said and told, and what follows from it."""

    def __init__(self, schema=None) -> None:
        self.schema = schema
        self.names: dict[str, Told] = {}
        self.bodies: dict[int, bytes] = {}
        """What a position names."""
        self.records: dict[int, dict] = {}
        self.positions: dict[str, int] = {}
        """Of events that were acknowledged, by key."""
        self.acknowledged = 0
        self.first_of_key: dict[str, int] = {}
        """Where an event stands first in a shared log, in which it may stand twice."""
        self.matched_count = 0
        self.is_shared = False
        self.forgotten: set[int] = set()
        """Positions that the log no longer has: by them no repetition is recognised after a restart."""
        self._truths: dict = {}

    # -- Events

    def names_event(self, position: int, body: bytes, record: dict) -> None:
        known = self.bodies.setdefault(position, body)
        if known != body:
            raise BrokenPromiseError(f"position {position} names another event than before: {body!r}, {known!r}")
        self.records.setdefault(position, record)

    def published(self, position: int, key: str, body: bytes, record: dict) -> None:
        self.names_event(position, body, record)
        before = self.positions.get(key, position)
        if not self.is_shared and before != position and before not in self.forgotten:
            raise BrokenPromiseError(f"{key!r} was acknowledged at {self.positions[key]} and at {position}")
        self.positions[key] = self.first_of_key.get(key, position)
        self.names_event(self.positions[key], body, record)
        self.acknowledged = max(self.acknowledged, position)

    def wants(self, filter_, event: int) -> bool:
        truth = self._truths.get((filter_, event))
        if truth is None:
            truth = self._truths[filter_, event] = tamis.holds(filter_, self.records[event], self.schema)
        return truth

    # -- Subscribers

    def of(self, name: str, is_durable: bool = True) -> Told:
        if name not in self.names:
            self.names[name] = Told(name, is_durable)
        return self.names[name]

    def asked(self, name: str, key: str, filter_, low: int, asked=None) -> Era:
        """Somebody has asked for a filter, or for none, under a key."""
        era = Era(low, None, filter_, asked)
        self.of(name).eras.setdefault(key, []).append(era)
        return era

    def ends_replays(self, name: str, key: str) -> None:
        """A subscription was replaced or taken back: what of the past it still wanted may come or not."""
        for replay in self.of(name).replays:
            if key in replay.keys:
                replay.ended.add(key)

    # -- What goes out of a node

    def emits_delivery(self, name: str, delivery: Delivery, record: dict, session: int, sessions: Sized) -> None:
        told = self.of(name)
        place = session if told.consumer_count > 1 else 0
        if len(sessions) > 1:  # one consumer has come back, and the node does not know yet that it was gone
            told.unordered_through = max(told.unordered_through, delivery.position, *told.highest.values())
        position = delivery.position
        self.names_event(position.event, delivery.body, record)
        is_revival = position in told.revived
        if not is_revival:
            for key in delivery.keys:
                if not self._may_come(told, key, position):
                    raise BrokenPromiseError(f"{name} is sent {position} for {key!r}, which does not want it")
            if position.head == position.event and (left := self.must_come(told, position.event) - {*delivery.keys}):
                raise BrokenPromiseError(f"{name} is sent {position} for {delivery.keys}, but {left} want it, too")
            if len(set(delivery.keys)) != len(delivery.keys) or not delivery.keys:
                raise BrokenPromiseError(f"{name} is sent {position} for {delivery.keys}")
        if position in told.emitted:
            if not delivery.is_again:
                raise BrokenPromiseError(f"{name} is sent {position} again, and it is not marked")
        else:
            highest = told.highest.get(place, Position(0, 0))
            if told.unordered_through < position < highest and not is_revival:
                raise BrokenPromiseError(f"{name} is sent {position} for the first time, after {highest}")
            told.highest[place] = max(highest, position)
        told.emitted[position] = told.emitted.get(position, 0) + 1
        told.counts[position] = told.counts.get(position, 0) + 1
        most = max(told.attempts) if 0 not in told.attempts else 0
        if most and not told.is_streamed and told.counts[position] > most and not is_revival:
            raise BrokenPromiseError(
                f"{name} is sent {position} for the {told.counts[position]}th time; {most} are allowed"
            )

    def _may_come(self, told: Told, key: str, position: Position) -> bool:
        head, event = position
        if head == event:
            return any(
                each is not None and self.wants(each, event) for each in told.filters_at(key, event, is_certain=False)
            )
        for replay in told.replays:
            is_its = replay.since == head - 1 if replay.since is not None else replay.low <= head - 1
            if not is_its or key not in replay.keys or not replay.first <= event < head:
                continue
            if any(each is not None and self.wants(each, event) for each in replay.filters[key]):
                return True
        return False

    def must_come(self, told: Told, event: int) -> set[str]:
        """Return the keys for which an event must come."""
        keys = set()
        for key in told.eras:
            filters = told.filters_at(key, event, is_certain=True)
            if None not in filters and all(self.wants(each, event) for each in filters):
                keys.add(key)
        return keys

    def _is_excused(self, told: Told, position: Position, lost: list[Lost]) -> bool:
        if position in told.claimed or position in told.buried:
            return True
        if self.is_shared and position.event in self.forgotten:  # so its repetition may have come instead of it
            return True
        return any(loss.gap.first <= position.event <= loss.gap.last for loss in lost)

    def missing(
        self, told: Told, came: Collection[Position], lost: list[Lost], through: int | None = None
    ) -> list[Position]:
        """Return what must have come to a subscriber and has not."""
        missing = []
        for event in sorted(set(self.positions.values())):
            if through is not None and event > through:
                break
            if self.must_come(told, event):
                position = Position.of(event)
                if position not in came and not self._is_excused(told, position, lost):
                    missing.append(position)
        for replay in told.replays:
            if replay.since is None:
                continue
            for event in sorted(set(self.positions.values())):
                if not replay.first <= event <= replay.since:
                    continue
                position = Position(replay.since + 1, event)
                if position in came or self._is_excused(told, position, lost):
                    continue
                if any(
                    key not in replay.ended and None not in filters and all(self.wants(each, event) for each in filters)
                    for key, filters in replay.filters.items()
                ):
                    missing.append(position)
        return missing

    def caught_up(self, told: Told, at: int) -> None:
        if missing := self.missing(told, told.emitted, told.lost_on_the_way, at):
            raise BrokenPromiseError(f"{told.name} is said to have caught up at {at}, without {missing[:5]}")

    def emits_loss(self, name: str, loss: Lost, first: int, gaps) -> None:
        told, gap = self.of(name), loss.gap
        told.lost_on_the_way.append(loss)
        if gap.first > gap.last:
            raise BrokenPromiseError(f"{loss} is empty")
        if loss.reason == "retention" and gap.last >= first:
            raise BrokenPromiseError(f"{loss}, but the log begins at {first}")
        if loss.reason == "damage" and not any(each.first <= gap.first and gap.last <= each.last for each in gaps):
            raise BrokenPromiseError(f"{loss}, but the damage is {gaps}")
        if loss.reason == "slow" and told.is_durable:
            raise BrokenPromiseError(f"{loss}, but it is durable")

    def buries(self, name: str, position: Position) -> None:
        told = self.of(name)
        told.buried.add(position)
        if position in told.never:
            return
        least = min((each for each in told.attempts if each), default=0)
        if not least or told.emitted.get(position, 0) < least:
            raise BrokenPromiseError(
                f"{position} of {name} is a dead letter after {told.emitted.get(position, 0)} deliveries"
            )
