"""Who takes events, and how far has everybody come? Subscribers: cursors into the log.

A subscriber has subscriptions, each in versions that count for a range of positions, and a cursor that says which
events have been looked at for it. There are three states:

    live     it has a consumer and has come to the head of the log: new events are added as they are matched
    behind   it has a consumer and has not: the pass over the log (`catching_up`) looks for it
    far      it has no consumer, or memory is short and its consumers take nothing: only its cursor is known

A replay of the past that was asked for at position `since` comes between the events up to `since` and those behind it:

    cursor   events ≤ since, one after another │ the replay: events first … since, for its subscription │ events >
    since position (n, n)                            │ (since + 1, n)                                        │ (n, n)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tamis.service.deliveries import InFlight
from tamis.service.positions import START, Position
from tamis.standing import interest

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.service.deliveries import Sent
    from tamis.service.messages import Lost, Principal, SubscriberSettings, Take
    from tamis.service.standing import Resume, StandingHost
    from tamis.standing.subscriptions import Subscription

PAIR_BYTES = 200
"""What a delivery that waits takes besides the bytes of its event, about."""


@dataclass(slots=True)
class Version:
    """A subscription as it was written at one time: it counts for the events behind `since`, up to `until`."""

    key: str
    number: int
    text: str
    asked: Subscription
    """What its owner wrote."""
    effective: Subscription
    """What of that the owner may receive."""
    since: int
    until: int = 0
    """0 while it is in force."""
    filter: Expression = field(init=False)
    """What is matched: the condition itself, or one that is true for every event that a subscription needs to see."""

    def __post_init__(self) -> None:
        self.filter = interest(self.effective)

    @property
    def is_stateful(self) -> bool:
        """Does it remember earlier events?"""
        return self.filter is not self.effective

    def counts_for(self, event: int) -> bool:
        """Is an event judged by this version?"""
        return self.since < event and (not self.until or event <= self.until)


@dataclass(slots=True)
class Replay:
    """Events of the past for subscriptions that were made together."""

    versions: dict[str, int]
    """The keys of the subscriptions, and the numbers of their versions."""
    first: int
    since: int
    looked: int = 0
    """The last event that was looked at."""
    is_kept: bool = True
    """Whether it would survive a restart; before that, nothing of it is delivered."""

    @property
    def end(self) -> Position:
        """The position of its last event, if that is delivered."""
        return Position(self.since + 1, self.since)

    def position(self, event: int) -> Position:
        """Return where one of its events comes in the subscriber's order."""
        return Position(self.since + 1, event)


def looked_of(floor: Position) -> int:
    """Return the last event that everything is done of, if that is so for everything up to a floor.

    >>> looked_of(Position(7, 7)), looked_of(Position(8, 3))
    (7, 7)
    """
    return floor.event if floor.head == floor.event else floor.head - 1


class Loss(NamedTuple):
    """Events that the log no longer had, between two positions of the cursor, and what is said of them."""

    after: Position
    until: Position
    lost: Lost


@dataclass(slots=True)
class Consumer:
    """A session that takes events of a subscriber."""

    session: int
    acknowledges: bool
    credit: int
    credit_bytes: int
    principal: Principal | None = None
    used: int = 0
    used_bytes: int = 0
    sent_through: Position = START
    """The highest position that it was sent."""
    ends_when_slow: bool = False

    @property
    def has_credit(self) -> bool:
        """May it be sent one more? However large that is, if nothing else is on its way."""
        return self.used < self.credit and (self.used_bytes < self.credit_bytes or not self.used)

    def use(self, size_bytes: int) -> None:
        """Count a delivery that was sent."""
        self.used += 1
        self.used_bytes += size_bytes

    def free(self, count: int, size_bytes: int) -> None:
        """Count deliveries that are done, or written."""
        self.used = max(0, self.used - count)
        self.used_bytes = max(0, self.used_bytes - size_bytes)


@dataclass(slots=True)
class Poll:
    """A long poll that waits for events."""

    session: int
    take: Take
    ends_s: float


@dataclass(slots=True)
class Subscriber:
    """A name with subscriptions, told of each event once.

    Invariant: `replays` are sorted by `since`; those whose events have all been found are in `ending`.
    """

    name: str
    owner: str
    is_durable: bool
    settings: SubscriberSettings
    looked: int
    """The last event that was looked at for it, unless it is live."""
    deliveries: InFlight = field(default_factory=InFlight)
    subscriptions: dict[str, Version] = field(default_factory=dict)
    past: dict[tuple[str, int], Version] = field(default_factory=dict)
    """Versions that were replaced, and that events which are not done are judged by."""
    replays: list[Replay] = field(default_factory=list)
    ending: list[Replay] = field(default_factory=list)
    consumers: dict[int, Consumer] = field(default_factory=dict)
    polls: list[Poll] = field(default_factory=list)
    polled: Consumer | None = None
    """What long polls have taken and not done."""
    is_live: bool = False
    is_catching_up: bool = False
    """Whether it is to be told when it has come to the head of the log."""
    is_far: bool = False
    """Whether what waited for it was given up to save memory; it is found again when a consumer can take it."""
    made_by: int = 0
    """The session that a passing subscriber ends with, if nobody consumes it."""
    last_replay: int = -1
    """Where a replay was asked for last."""
    next_number: int = 1
    """Of the next version of a subscription."""
    seen_us: int = 0
    saved: tuple[Position, int, int] = (START, 0, 0)
    """The floor that was kept last, how many islands above it, and when the subscriber had been seen."""
    dead_count: int = 0
    is_neighbour: bool = False
    """Whether it is a broker: what it wants is what it has told, and not kept here."""
    losses: list[Loss] = field(default_factory=list)
    """What it is told to be lost, once more to everybody who comes, until something behind that is acknowledged."""
    passed: Position = START
    """Everything up to here has been looked at, replays included."""
    stateful: dict[int, Version] = field(default_factory=dict)
    """By number: the versions, current and past ones, that remember earlier events."""
    stateful_changes: int = 0
    """How often that has changed."""
    host: StandingHost | None = None
    """What they remember, up to the cursor; made anew when it is needed, behind `resume`."""
    resume: Resume | None = None

    # -- What is remembered

    @property
    def stateful_from(self) -> int:
        """The position behind which a new host must take events."""
        begin = min((version.since for version in self.stateful.values()), default=0)
        return max(begin, 0 if self.resume is None else self.resume.at)

    def remember(self, version: Version) -> None:
        """Take note of a version, if it remembers earlier events."""
        if version.is_stateful:
            self.stateful[version.number] = version
            self.stateful_changes += 1

    def forget(self, version: Version) -> None:
        """A version is no longer needed."""
        if self.stateful.pop(version.number, None) is not None:
            self.stateful_changes += 1
            if not self.stateful:
                self.host = None

    # -- The cursor

    @property
    def replay(self) -> Replay | None:
        """The replay that is under way."""
        return self.replays[0] if self.replays and self.replays[0].since <= self.looked else None

    @property
    def is_held(self) -> bool:
        """Is it at a replay that may not begin yet?"""
        replay = self.replay
        return replay is not None and not replay.is_kept

    @property
    def next_event(self) -> int:
        """The event that is to be looked at next."""
        replay = self.replay
        return self.looked + 1 if replay is None else max(replay.looked + 1, replay.first)

    def reads_until(self, head: int) -> int:
        """Return up to which event it can go on before it turns to or from a replay."""
        replay = self.replay
        if replay is not None:
            return replay.since
        return min(head, self.replays[0].since) if self.replays else head

    def advance(self, event: int) -> None:
        """Everything up to an event has been looked at, in the present part of the order."""
        replay = self.replay
        if replay is None:
            self.looked = max(self.looked, event)
            self.passed = max(self.passed, Position.of(self.looked))
        else:
            replay.looked = max(replay.looked, event)
            self.passed = max(self.passed, replay.position(min(replay.looked, replay.since)))
            if replay.looked >= replay.since:
                self.ending.append(self.replays.pop(0))

    def settle(self, floor: Position) -> None:
        """Set the cursor behind a floor; replays that are done are over."""
        self.is_live = False
        self.passed = floor
        self.looked = looked_of(floor)
        if self.stateful:  # what they remember is found again by going through the log from the resume point on
            self.host = None
            self.looked = min(self.looked, self.stateful_from)
        self.losses = [loss for loss in self.losses if loss.until <= floor]  # the others are found again
        pending = sorted((*self.replays, *self.ending), key=lambda replay: replay.since)
        self.replays = [replay for replay in pending if replay.end > floor]
        self.ending = [replay for replay in pending if replay.end <= floor]
        for replay in self.replays:
            replay.looked = floor.event if floor.head == replay.since + 1 else replay.first - 1

    # -- Floors

    def floor(self, logged: int) -> Position:
        """Return up to where everything is done, if the log is on disk up to a position."""
        if not self.acknowledges:
            return self.deliveries.least_floor
        return self.deliveries.floor(max(self.passed, Position.of(logged)) if self.is_live else self.passed)

    def kept_floor(self, logged: int) -> Position:
        """Return the floor that a restart is to begin from: losses that nobody has confirmed are found again."""
        return min([self.floor(logged), *(loss.after for loss in self.losses)])

    def confirm_losses(self, done: Position) -> None:
        """Forget what was lost before something that was delivered and is done: whoever has that was told."""
        self.losses = [loss for loss in self.losses if loss.until > done]

    @property
    def acknowledges(self) -> bool:
        """Do its consumers say what they have done? If one of them does not, only what it says later counts."""
        return all(consumer.acknowledges for consumer in self.consumers.values())

    # -- Consumers

    @property
    def is_attended(self) -> bool:
        """Is there anybody to deliver to, or who has something to acknowledge?"""
        return bool(self.consumers or self.polls or (self.polled is not None and self.polled.used))

    def may_change(self, now: float, logged: int) -> bool:
        """May time alone have changed something for who is attended: is it behind, or is anything due?

        What is not on disk yet, the disk will see to.
        """
        return bool(
            not self.is_live
            or self.is_catching_up
            or self.polls
            or self.deliveries.is_ready(logged)
            or self.deliveries.is_due(now)
        )

    @property
    def is_served(self) -> bool:
        """Is there anybody to deliver to now?"""
        return bool(self.consumers or self.polls)

    @property
    def is_stalled(self) -> bool:
        """Can nobody take a delivery now, because all have used their credit?"""
        if self.polls and self.polled is not None and self.polled.has_credit:
            return False
        return self.consumer_with_credit() is None

    @property
    def waiting_bytes(self) -> int:
        """The memory for what was found and waits to be sent, about."""
        return self.deliveries.queue_bytes + PAIR_BYTES * self.deliveries.queue_count

    @property
    def state(self) -> str:
        """Where it is: `live`, `behind` or `far`."""
        return "live" if self.is_live else "behind" if self.is_attended and not self.is_far else "far"

    def is_used_by(self, session: int) -> bool:
        """Does anything here end with a session?"""
        if session in self.consumers or any(poll.session == session for poll in self.polls):
            return True
        return not self.is_durable and not self.consumers and self.made_by == session

    def consumer_with_credit(self) -> Consumer | None:
        """Return who is to get the next delivery: of those who have credit the one that has used least of it."""
        ready = [consumer for consumer in self.consumers.values() if consumer.has_credit]
        return min(ready, key=lambda consumer: consumer.used / consumer.credit, default=None)

    def consumer_of(self, session: int) -> Consumer | None:
        """Return the consumer that a delivery was sent to, if it is there. Long polls, below 0, are one consumer."""
        return self.polled if session < 0 else self.consumers.get(session)

    def free(self, sent: Sent | None) -> None:
        """Give the credit of a delivery back to the consumer that had it."""
        consumer = None if sent is None else self.consumer_of(sent.session)
        if sent is not None and consumer is not None:
            consumer.free(1, len(sent.delivery.body))
