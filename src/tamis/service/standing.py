"""What is a subscriber told that depends on more than one event? Stateful subscriptions, as a function of the log.

A ranked subscription, a sequence or a change remembers earlier events. Its *host* is a `tamis.Standing` that goes
through the log together with its subscriber's cursor, block by block, with the times of the blocks: what it tells is
decided by the log alone, so it is the same whenever and however often somebody goes through the log again.

What is told when the block that ends at n was taken has the positions (n, e), where e is the event that is delivered;
it may be one that came long before. If something becomes due while nothing comes, the node writes a block that says
what time it is (`TIME`), and it is told with that. In a log that several nodes share, a block may come in between that
was taken earlier, so a host lets no time pass before that block has come back from there (`is_due`).

A host that is made anew begins at a *resume point*, a position of the log. Everything after it is taken once more, and
what had been done is not sent again. For a ranked subscription nothing is known there: two windows of events lie
between it and the floor. The first one fills the window, the second one shows what had been told before. A sequence
needs as much, and what has no such bound (a change; a sequence whose events are used once) has its state kept with the
resume point.

Source: of replaying a log behind a kept state, Elnozahy et al., "A survey of rollback-recovery protocols" (2002).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tamis.language.expressions import Expression
from tamis.service.log.base import MARK_MOST, MARK_SHIFT, REROUTED, VOID, end_of
from tamis.service.tellings import Told
from tamis.standing import Change, Sequence, Standing
from tamis.topk import Ranked
from tamis.topk.windows import CountWindow

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence as Listed

    from tamis.language.functions import Functions
    from tamis.language.schema import Schema
    from tamis.service.log.base import Block
    from tamis.service.subscribers import Version
    from tamis.standing.notification import Notification

TIME = VOID | REROUTED | MARK_MOST << MARK_SHIFT
"""The flag of a position that only says what time it is: nobody is sent it, as nobody is what lies there for links."""
TIME_EVENT = b'{"specversion":"1.0","id":"time","source":"tamis/clock","type":"tamis.time","data":{}}'
MOST_MARKS = 64
_BODIES_KEPT_STATES_ANYWAY = 1_024


def is_stateful(subscription: Any) -> bool:
    """Does a subscription remember earlier events?"""
    return not isinstance(subscription, Expression)


def kind_of(subscription: Any) -> str:
    """Return what kind of subscription it is.

    >>> from tamis.standing import parse_subscription
    >>> kind_of(parse_subscription("TOP 1 BY price OVER 1 HOUR")), kind_of(parse_subscription("price < 20"))
    ('ranked', 'condition')
    """
    for kind, name in ((Ranked, "ranked"), (Sequence, "sequence"), (Change, "change")):
        if isinstance(subscription, kind):
            return name
    return "condition"


def expressions_of(subscription: Any) -> list[Expression]:
    """Return everything that a subscription computes of an event."""
    match subscription:
        case Ranked(score=score, where=where):
            return [score, where]
        case Sequence(steps=steps):
            return [step.condition for step in steps]
        case Change(condition=condition, until=until, where=where):
            return [each for each in (condition, until, where) if each is not None]
    return [subscription]


def span_of(subscription: Any) -> float:
    """Return for how many seconds an event can matter to a subscription, if it has no state that is kept."""
    match subscription:
        case Ranked(window=window) if not isinstance(window, CountWindow):
            return window.span
        case Sequence(within=within) if within is not None:
            return within
    return 0.0


def events_of(subscription: Any) -> int:
    """Return how many of the latest events a count window has; 0 if there is none."""
    match subscription:
        case Ranked(window=CountWindow(events=events)):
            return events
    return 0


def is_kept(subscription: Any) -> bool:
    """Must the state be kept, because no number of events is enough to find it again?"""
    return isinstance(subscription, Change) or (
        isinstance(subscription, Sequence) and subscription.taking == "EACH ONCE"
    )


class NeededEvent(NamedTuple):
    """An event that some stateful subscription may want."""

    position: int
    record: Mapping[str, Any]
    body: bytes
    keys: Listed[str]


class DueDelivery(NamedTuple):
    """An event that is to be delivered, and why."""

    event: int
    body: bytes
    told: tuple[Told, ...]


class Resume(NamedTuple):
    """A position behind which a host can begin, and what it has to know there."""

    at: int
    states: bytes = b""
    """The states that cannot be found again from events, as JSON."""


class _KeptStates(msgspec.Struct):
    """What stands in a resume point."""

    states: dict[int, Any] = {}
    """By the number of a version."""
    bodies: dict[int, str] = {}
    """The events that somebody may still be told of, by position."""


_KEPT_STATES = msgspec.json.Decoder(_KeptStates)


class _Mark(NamedTuple):
    """A position that the host came by, which may become a resume point."""

    at: int
    time_us: int
    counts: Mapping[int, int]
    """Of versions with a count window: how many events had been in it."""
    states: bytes


class StandingHost:
    """The stateful subscriptions of one subscriber, up to a position of the log."""

    def __init__(
        self,
        resume: Resume,
        schema: Schema | None,
        functions: Functions | None,
        mark_every_s: float,
        block_positions: int = 1,
    ) -> None:
        self._processor = Standing(schema=schema, functions=functions, retention=math.inf, remember=1)
        self._resume = resume
        kept = _KEPT_STATES.decode(resume.states) if resume.states else _KeptStates()
        self._states = kept.states
        self._bodies: dict[int, bytes] = {position: body.encode() for position, body in kept.bodies.items()}
        """Of the events that somebody may still be told of, and of some others."""
        self._most_bodies = _BODIES_KEPT_STATES_ANYWAY
        self._hosted: dict[int, Version] = {}
        self._waiting: dict[int, Version] = {}
        """Versions that begin later."""
        self._numbers: dict[str, int] = {}
        """Of the versions that are hosted, by key."""
        self._synced = -1
        self._next_change = 0
        self._pending: list[Notification] = []
        """What became due, and is told with the next block."""
        self._counts: dict[int, int] = {}
        self._marks: list[_Mark] = []
        self._mark_every_s = mark_every_s
        self._longest_s = -1.0
        """The longest span of those hosted that need no state to be kept; below 0 if they have changed since."""
        self._block_positions = block_positions
        self._examined = -1
        self.due = math.inf
        """When there may be something to tell although nothing comes, in seconds."""

    # -- Which versions

    def _sync(self, versions: Mapping[int, Version], changes: int, first: int) -> None:
        """Host those versions that count for the events from a position on."""
        if changes == self._synced and first <= self._next_change:
            return
        self._synced = changes
        for number in list(self._hosted):
            version = versions.get(number)
            if version is None or 0 < version.until < first:
                self._drop(number)
        later = 1 << 62
        for number, version in versions.items():
            begin = max(version.since, self._resume.at)
            if version.until:
                if version.until < first:
                    continue
                later = min(later, version.until)
            if begin >= first:
                later = min(later, begin)
            elif number not in self._hosted:
                self._host(version, begin)
        self._next_change = later

    def _host(self, version: Version, begin: int) -> None:
        number = version.number
        self._processor.add(number, version.effective)
        self._hosted[number] = version
        self._longest_s = -1.0
        self._numbers[version.key] = number
        if events_of(version.effective):
            self._counts[number] = 0
        if version.since < begin and number in self._states:
            self._processor.restore_state(number, self._states.pop(number))

    def _drop(self, number: int) -> None:
        self._processor.remove(number)
        version = self._hosted.pop(number)
        self._longest_s = -1.0
        self._counts.pop(number, None)
        if self._numbers.get(version.key) == number:
            del self._numbers[version.key]
        self._pending = [each for each in self._pending if each.subscription != number]

    # -- The log

    def take(
        self, block: Block, candidates: Listed[NeededEvent], versions: Mapping[int, Version], changes: int
    ) -> list[DueDelivery]:
        """Take a block, of which these events may be wanted; return what is to be delivered, by position."""
        self._sync(versions, changes, block.first)
        now = block.time_us / 1e6
        notes, self._pending = self._pending, []
        is_time = block.flags[0] == TIME
        until = now if is_time else math.nextafter(now, -math.inf)
        if is_time or (self.due < now and until >= self._processor.now):
            notes += self._processor.advance(until)
        if candidates:
            for each in candidates:
                self._bodies[each.position] = each.body
                for key in each.keys:
                    number = self._numbers.get(key, -1)
                    if number in self._counts:
                        self._counts[number] += 1
            notes += self._processor.process_batch(
                [each.record for each in candidates], now, [each.position for each in candidates]
            )
        deliveries = self._deliveries(notes)
        if candidates or is_time or notes:
            self.due = self._processor.due
        self._forget_bodies()
        if not self._marks or block.time_us - self._marks[-1].time_us >= self._mark_interval_us():
            self._mark(block)
        return deliveries

    def is_due(self, now_us: int) -> bool:
        """May there be something to tell although nothing comes?"""
        return self.due <= now_us / 1e6

    def pass_time(self, now_us: int) -> bool:
        """Let time pass while nothing comes; return whether there is something to tell with the next block."""
        self._pending += self._processor.advance(now_us / 1e6)
        self.due = self._processor.due
        return bool(self._pending)

    def _deliveries(self, notes: Listed[Notification]) -> list[DueDelivery]:
        """Return what was told by the event that is delivered: the last of several."""
        by_event: dict[int, list[Told]] = {}
        for number, events, at, change in notes:
            version = self._hosted[number]
            kind = kind_of(version.effective)
            rank = self._processor.rank(number, events[-1]) if kind == "ranked" else None
            bodies = tuple(self._bodies[event] for event in events) if kind == "sequence" else ()
            each = Told(version.key, kind, round(at * 1e6), tuple(events), bodies, change, rank)
            by_event.setdefault(max(events), []).append(each)
        # The processor tells in order of registration, which is another one after a restart.
        return [
            DueDelivery(
                event,
                self._bodies[event],
                tuple(sorted(by_event[event], key=lambda each: (each.key, each.at_us, each.events))),
            )
            for event in sorted(by_event)
        ]

    def _forget_bodies(self) -> None:
        if len(self._bodies) > self._most_bodies:
            held = self._processor.held()
            self._bodies = {position: body for position, body in self._bodies.items() if position in held}
            self._most_bodies = max(_BODIES_KEPT_STATES_ANYWAY, 2 * len(self._bodies))

    # -- Beginning anew

    def _mark_interval_us(self) -> float:
        if self._longest_s < 0:
            bounded = (each.effective for each in self._hosted.values() if not is_kept(each.effective))
            self._longest_s = max(map(span_of, bounded), default=0.0)
        return max(self._mark_every_s, self._longest_s / 4) * 1e6

    def _mark(self, block: Block) -> None:
        kept = [number for number, version in self._hosted.items() if is_kept(version.effective)]
        content = b""
        if kept:
            saved = self._processor.saved_states(kept)
            has_runs = any(isinstance(self._hosted[number].effective, Sequence) for number in kept)
            held = self._processor.held() if has_runs else ()
            bodies = {position: self._bodies[position].decode() for position in held if position in self._bodies}
            content = msgspec.json.encode(_KeptStates({number: saved[number] for number in kept}, bodies))
        at = end_of(block.last, self._block_positions)
        self._marks.append(_Mark(at, block.time_us, dict(self._counts), content))
        if len(self._marks) > MOST_MARKS:
            del self._marks[1:-1:2]

    def resume_behind(self, through: int, versions: Mapping[int, Version]) -> Resume | None:
        """Return a later point to begin at, if everything up to a position is done; None if there is none yet.

        As long as an earlier version of a subscription counts for events that are not done, there is none.
        """
        reached = [mark for mark in self._marks if mark.at <= through]
        if not reached or reached[-1].at == self._examined or any(each.until for each in versions.values()):
            return None
        last = reached[-1]
        self._examined = last.at
        for index in reversed(range(len(reached))):
            if self._suits(reached[index], last, versions):
                mark = reached[index]
                self._marks = self._marks[index:]
                if mark.at <= self._resume.at:
                    return None
                return Resume(mark.at, mark.states)
        return None

    def _suits(self, mark: _Mark, last: _Mark, versions: Mapping[int, Version]) -> bool:
        """Is all that matters behind `last` known to a host that begins at a mark?"""
        passed_s = (last.time_us - mark.time_us) / 1e6
        for number, version in versions.items():
            wanted = version.effective
            if version.since >= mark.at:
                continue
            if is_kept(wanted):
                continue  # its state was kept with every mark since it was hosted
            events = events_of(wanted)
            if events:
                if last.counts.get(number, 0) - mark.counts.get(number, 0) < 2 * events:
                    return False
            elif passed_s <= 2 * span_of(wanted):
                return False
        return True
