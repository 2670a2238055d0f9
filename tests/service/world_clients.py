"""Who uses a broker? Publishers that send again, owners that change their minds, consumers of every temper."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

import tamis
from tamis.language.expressions import And
from tamis.service.errors import StorageFullError
from tamis.service.messages import (
    Accepted,
    Acknowledge,
    Attach,
    CaughtUp,
    Configure,
    Deliveries,
    Delivery,
    Ended,
    Forget,
    Incoming,
    Lost,
    Principal,
    Publish,
    Published,
    Refused,
    Revive,
    Session,
    Subscribe,
    Subscribed,
    SubscriberSettings,
    Take,
    Taken,
    Unsubscribe,
    Wanted,
    Wrote,
)
from tamis.service.positions import START, Position
from tests.service.world_checks import BrokenPromiseError, Era, ReplayAsked

if TYPE_CHECKING:
    from tests.service.world import Machine, World

FILTERS = ("a < 5", "a >= 5", "a = 3", "b = 'x'", "b = 'y' OR a > 7", "TRUE", "a IS NULL", "a < 8 AND b = 'x'")
EXPRESSIONS = {text: tamis.parse(text) for text in FILTERS}
RECEIVE = ("TRUE", "b = 'x'", "a < 8")
RECEIVED = {text: tamis.parse(text) for text in RECEIVE}
ADMIN = Principal("root", ("admin",), True)


def effective(asked, receive: str):
    """What is left of a filter for those who may receive only some events."""
    return asked if receive == "TRUE" else And((asked, RECEIVED[receive]))


def read_record(body: bytes, flags: int) -> dict:
    event = msgspec.json.decode(body)
    return {**event["data"], "id": event["id"], "source": event["source"], "type": event["type"]}


class Pipe:
    """A connection: two queues that keep their order, until it breaks."""

    def __init__(self, session: Session, client: Client, machine: Machine) -> None:
        self.session, self.client, self.machine = session, client, machine
        self.to_node: deque = deque()
        self.to_client: deque = deque()
        self.is_open = True
        """Whether the client can still write to it."""
        self.is_closed_at_node = False

    def send(self, request) -> None:
        if self.is_open:
            self.to_node.append(request)


class Client:
    """Somebody at the other end of connections."""

    principal = ADMIN

    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = world.chance
        self.pipe: Pipe | None = None
        self._request = 0

    def next_request(self) -> int:
        self._request += 1
        return self._request

    def machine(self) -> Machine:
        return self.chance.choice(self.world.machines)

    def connect(self) -> Pipe:
        self.pipe = self.world.connect(self, self.machine())
        return self.pipe

    def act(self, *, is_resting: bool = False) -> None:
        """Do something of its own accord."""

    def hear(self, answer, pipe: Pipe) -> None:
        """Take an answer."""

    def broken(self, pipe: Pipe) -> None:
        if self.pipe is pipe:
            self.pipe = None

    @property
    def is_idle(self) -> bool:
        return True


class Publisher(Client):
    """Sends events, several publications at a time; what has no answer is sent again under the same ids."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world)
        self.source = f"/p{number}"
        self.count = 0
        self.unanswered: dict[str, Incoming] = {}
        self.answered: list[Incoming] = []
        self.in_flight: dict[int, tuple[Incoming, ...]] = {}
        self.first_sent: list[str] = []
        """Keys that were sent for the first time in this connection, in order."""
        self.placed: dict[str, int] = {}
        """Where they are, as far as they were answered."""

    def _event(self) -> Incoming:
        self.count += 1
        chance = self.chance
        data: dict = {"a": chance.randint(0, 9), "b": chance.choice("xy")}
        if chance.random() < 0.15:
            data["a"] = None
        if chance.random() < 0.05:
            del data["a"]
        if self.world.schema is not None and chance.random() < 0.1:
            data["a"] = "many"
        body = msgspec.json.encode({"id": str(self.count), "source": self.source, "type": "t", "data": data})
        return Incoming(f"{self.source}\n{self.count}", body, read_record(body, 0))

    def act(self, *, is_resting: bool = False) -> None:
        if self.pipe is None:
            self.first_sent, self.placed, self.in_flight = [], {}, {}
            self.connect()
            return
        if len(self.in_flight) >= 3:
            return
        flying = {event.key for events in self.in_flight.values() for event in events}
        events = [event for key, event in self.unanswered.items() if key not in flying]
        if not is_resting:
            events = events[: self.chance.randint(0, len(events))]
            if self.chance.random() < 0.1 and self.answered:
                events.append(self.chance.choice(self.answered))
            if self.chance.random() < 0.15 and flying:
                events += [self.unanswered[key] for key in sorted(flying) if key in self.unanswered][:1]
            for _ in range(self.chance.choice((0, 1, 1, 2, 3))):
                event = self._event()
                self.unanswered[event.key] = event
                self.first_sent.append(event.key)
                events.append(event)
        if events:
            request = self.next_request()
            self.in_flight[request] = tuple(events)
            assert self.pipe is not None
            self.pipe.send(Publish(request, tuple(events), self.chance.random() < 0.2))

    def hear(self, answer, pipe: Pipe) -> None:
        if pipe is not self.pipe:
            return
        events = self.in_flight.pop(answer.request)
        if isinstance(answer, Refused):
            for event in events:
                if event.key in self.first_sent:
                    self.first_sent.remove(event.key)
            if isinstance(answer.error, StorageFullError):
                return
            misfits = [event for event in events if isinstance(event.record.get("a"), str)]
            if not misfits:
                raise BrokenPromiseError(f"{self.source} is refused {answer.error}") from None
            for event in misfits:
                self.unanswered.pop(event.key, None)
            return
        assert isinstance(answer, Published)
        if len(answer.positions) != len(events) or answer.last != max(answer.positions):
            raise BrokenPromiseError(f"{answer} to {len(events)} events")
        for event, position in zip(events, answer.positions, strict=True):
            self.world.checker.published(position, event.key, event.body, dict(event.record))
            if self.unanswered.pop(event.key, None) is not None:
                self.answered.append(event)
            self.placed[event.key] = position
        places = [self.placed[key] for key in self.first_sent if key in self.placed]
        if places != sorted(places) and not self.world.is_shared:
            raise BrokenPromiseError(f"{self.source} has sent {self.first_sent}, which are at {places}")

    @property
    def is_idle(self) -> bool:
        return not self.unanswered


class Owner(Client):
    """Has a durable subscriber: one operation at a time, sent until it is answered."""

    def __init__(self, world: World, name: str, machine: Machine) -> None:
        super().__init__(world)
        self.name = name
        self.home = machine
        self.principal = Principal(f"owner of {name}", ("shop",))
        self.keys: set[str] = set()
        self.pending = None
        self.sends = 0
        self.is_sent = False
        self.eras: list = []
        self.replay: ReplayAsked | None = None

    def machine(self) -> Machine:
        return self.home

    def broken(self, pipe: Pipe) -> None:
        super().broken(pipe)
        self.is_sent = False

    def act(self, *, is_resting: bool = False) -> None:
        if self.pipe is None:
            self.connect()
        elif self.pending is None and (not is_resting or not self.keys):
            self._choose()
        elif self.pending is not None and not self.is_sent:
            self._send()

    def _choose(self) -> None:
        chance, request = self.chance, self.next_request()
        kind = chance.random()
        if not self.keys or kind < 0.55:
            texts = {key: chance.choice(FILTERS) for key in chance.sample("wxyz", chance.choice((1, 1, 2)))}
            wanted = {key: Wanted(text, EXPRESSIONS[text]) for key, text in texts.items()}
            head = self.world.checker.acknowledged
            replay = chance.randint(1, head + 2) if chance.random() < self.world.replay_share else 0
            self.pending = Subscribe(request, self.name, wanted, True, replay, chance.random() < 0.05)
        elif kind < 0.7:
            keys = sorted(self.keys)
            self.pending = Unsubscribe(request, self.name, tuple(chance.sample(keys, chance.randint(1, len(keys)))))
        elif kind < 0.9:
            settings = SubscriberSettings(
                chance.choice((1.0, 4.0)), chance.choice((0, 0, 1, 2, 3)), chance.random() < 0.3
            )
            self.pending = Configure(request, self.name, settings)
        elif kind < 0.95:
            dead = [each for (name, _), each in self.home.state.rows.dead.items() if name == self.name]
            letters = tuple(Delivery(each.position, each.keys, each.body) for each in dead[:3])
            if not letters:
                return
            self.pending = Revive(request, self.name, letters)
        elif kind < 0.97:
            self.pending = Forget(request, self.name)
        else:
            return
        self.sends, self.eras, self.replay = 0, [], None
        self._send()

    def _send(self) -> None:
        checker, request = self.world.checker, self.pending
        told = checker.of(self.name)
        low = self.world.known(self.home)
        self.sends += 1
        self.is_sent = True
        assert self.pipe is not None
        self.pipe.send(request)
        match request:
            case Subscribe():
                for key, wanted in request.subscriptions.items():
                    checker.ends_replays(self.name, key)
                    for receive in self.world.receives if self.sends == 1 else ():
                        filter_ = effective(wanted.filter, receive)
                        self.eras.append((key, checker.asked(self.name, key, filter_, low, wanted.filter)))
                if request.removes_others:
                    self._ask_end([key for key in told.eras if key not in request.subscriptions], low)
                if request.replay_from:
                    keys = tuple(request.subscriptions)
                    filters = {
                        key: [effective(each.filter, receive) for receive in self.world.receives]
                        for key, each in request.subscriptions.items()
                    }
                    self.replay = ReplayAsked(keys, request.replay_from, low, filters=filters)
                    told.replays.append(self.replay)
                else:
                    self.replay = None
            case Unsubscribe():
                if self.sends == 1:
                    self._ask_end(request.keys, low)
            case Forget():
                if self.sends == 1:
                    self._ask_end(list(told.eras), low)
            case Configure():
                told.attempts.add(request.settings.attempts)
            case Revive():
                told.revived |= {letter.position for letter in request.letters}

    def _ask_end(self, keys, low: int) -> None:
        for key in keys:
            self.world.checker.ends_replays(self.name, key)
            if self.sends == 1:
                self.eras.append((key, self.world.checker.asked(self.name, key, None, low)))

    def emitted(self, answer) -> None:
        """A node has said its answer: what has ended has ended, whether or not the owner hears of it."""
        is_end = isinstance(answer, Accepted) and isinstance(self.pending, Unsubscribe | Forget)
        if not is_end and not isinstance(answer, Subscribed):
            return
        if self.pending is not None and answer.request == self.pending.request:
            for _, era in self.eras:
                era.is_closed = era.filter is None

    def hear(self, answer, pipe: Pipe) -> None:
        request = self.pending
        if request is None or pipe is not self.pipe or getattr(answer, "request", 0) != request.request:
            return
        checker = self.world.checker
        told = checker.of(self.name)
        self.pending, self.is_sent = None, False
        if isinstance(answer, Refused):
            if self.sends == 1:
                for key, era in self.eras:
                    told.eras[key] = [each for each in told.eras[key] if each is not era]
                if self.replay is not None and self.replay in told.replays:
                    told.replays.remove(self.replay)
            elif isinstance(request, Unsubscribe | Forget):
                for _, era in self.eras:
                    era.is_closed = True
            if isinstance(request, Unsubscribe | Forget) and answer.error.status == 404:
                self.keys -= set(request.keys if isinstance(request, Unsubscribe) else self.keys)
            elif answer.error.status not in (409, 404, 429, 503):
                raise BrokenPromiseError(f"{request} of {self.name} is refused: {answer.error}")
            if isinstance(request, Forget):
                self._gone()
            return
        match request:
            case Subscribe():
                assert isinstance(answer, Subscribed)
                for key, text in answer.effective.items():
                    asked = request.subscriptions[key].filter
                    filters = {str(each): each for each in (effective(asked, each) for each in self.world.receives)}
                    if text not in filters:
                        raise BrokenPromiseError(f"{self.name} {key}: {text!r} is matched")
                    uncertain = [era for other, era in self.eras if other == key]
                    place = next(index for index, era in enumerate(told.eras[key]) if era is uncertain[0])
                    if self.sends == 1:
                        told.eras[key] = [era for era in told.eras[key] if all(era is not each for each in uncertain)]
                    else:
                        place += len(uncertain)
                    told.eras[key].insert(place, Era(answer.since, answer.since, filters[text], asked))
                if self.replay is not None:
                    self.replay.since = answer.since
                if request.removes_others:
                    self.keys.clear()
                self.keys |= set(request.subscriptions)
            case Unsubscribe():
                self.keys -= set(request.keys)
            case Configure():
                told.attempts = {request.settings.attempts}
            case Forget():
                self._gone()

    def _gone(self) -> None:
        self.keys.clear()
        old = self.world.checker.names.pop(self.name)
        new = self.world.checker.of(self.name)
        new.is_streamed, new.consumer_count = old.is_streamed, old.consumer_count

    @property
    def is_idle(self) -> bool:
        return self.pending is None and bool(self.keys)


class Consumer(Client):
    """Takes deliveries of a subscriber: what it has received and not yet said anything of is `held`."""

    def __init__(self, world: World, owner: Owner) -> None:
        super().__init__(world)
        self.owner, self.name = owner, owner.name
        self.principal = owner.principal
        self.held: list[Position] = []
        self.old: list[Position] = []
        self.is_dishonest = self.chance.random() < 0.1

    def machine(self) -> Machine:
        return self.owner.home

    def broken(self, pipe: Pipe) -> None:
        super().broken(pipe)
        self.old = (self.old + self.held)[-5:]
        self.held = []

    def received(self, items) -> None:
        told = self.world.checker.of(self.name)
        for item in items:
            self.held.append(item.position)
            if told.is_streamed:
                told.done.add(item.position)

    def hear_other(self, answer) -> None:
        if isinstance(answer, Lost):
            self.world.checker.of(self.name).lost.append(answer)

    def verdict(self, *, is_resting: bool) -> Acknowledge | None:
        """Return what it says of what it has."""
        chance, told = self.chance, self.world.checker.of(self.name)
        request = self.next_request() if chance.random() < 0.3 else 0
        if is_resting:
            done, self.held = tuple(self.held), []
            told.done |= set(done)
            return Acknowledge(request, self.name, done) if done else None
        if self.is_dishonest and chance.random() < 0.2:
            event = chance.randint(1, self.world.checker.acknowledged + 2)
            position = Position(event + chance.choice((0, 0, 1)), event)
            told.claimed.add(position)
            return Acknowledge(request, self.name, (position, position))
        if self.old and chance.random() < 0.3:
            late, self.old = self.old, []
            told.done |= set(late)
            return Acknowledge(request, self.name, tuple(late))
        if not self.held:
            return None
        kind = chance.random()
        if kind < 0.35:
            position = chance.choice(self.held)
            self.held.remove(position)
            told.done.add(position)
            again = (position,) if chance.random() < 0.1 else ()
            return Acknowledge(request, self.name, (position, *again))
        if kind < 0.65:
            index = chance.randrange(len(self.held))
            position = self.held[index]
            rest = [each for each in self.held[: index + 1] if each > position]
            told.done |= {each for each in self.held[: index + 1] if each <= position}
            self.held = rest + self.held[index + 1 :]
            return Acknowledge(request, self.name, done_through=position)
        if kind < 0.8:
            chosen = tuple(chance.sample(self.held, chance.randint(1, len(self.held))))
            self.held = [each for each in self.held if each not in chosen]
            return Acknowledge(request, self.name, again=chosen, in_s=chance.choice((0.0, 0.5, 3.0)))
        if kind < 0.88:
            position = self.held.pop(chance.randrange(len(self.held)))
            told.never.add(position)
            return Acknowledge(request, self.name, never=(position,), reason="cannot be read")
        done, self.held = tuple(self.held), []
        told.done |= set(done)
        return Acknowledge(request, self.name, done)

    @property
    def is_idle(self) -> bool:
        return not self.held


class Worker(Consumer):
    """A consumer on a connection that acknowledges."""

    def act(self, *, is_resting: bool = False) -> None:
        if self.pipe is None:
            if self.owner.keys:
                credit = self.chance.choice((1, 2, 5))
                self.connect().send(
                    Attach(self.next_request(), self.name, True, credit, self.chance.choice((90, 1000)))
                )
        elif (said := self.verdict(is_resting=is_resting)) is not None:
            self.pipe.send(said)

    def hear(self, answer, pipe: Pipe) -> None:
        if isinstance(answer, Deliveries):
            self.received(answer.items)
            if pipe is not self.pipe:
                self.old += self.held
                self.held = []
        elif isinstance(answer, Ended) or (isinstance(answer, Refused) and answer.error.status in (404, 409)):
            self.world.close(pipe)
        else:
            self.hear_other(answer)


class Stream(Consumer):
    """Server-sent events: it does not acknowledge, and says when it comes back what it saw last."""

    def __init__(self, world: World, owner: Owner) -> None:
        super().__init__(world, owner)
        self.last: Position | None = None
        world.checker.of(owner.name).is_streamed = True

    def act(self, *, is_resting: bool = False) -> None:
        if self.pipe is None:
            if self.owner.keys:
                seen = None if self.chance.random() < 0.2 else self.last
                credit = self.chance.choice((1, 2, 5))
                self.connect().send(Attach(self.next_request(), self.name, False, credit, 1000, True, seen))
        elif self.held and (is_resting or self.chance.random() < 0.6):
            self.held.clear()
            self.pipe.send(Wrote(self.name, self.unwritten[0], self.unwritten[1]))
            self.unwritten = [0, 0]

    unwritten: list[int]

    def connect(self) -> Pipe:
        self.unwritten = [0, 0]
        return super().connect()

    def hear(self, answer, pipe: Pipe) -> None:
        if isinstance(answer, Deliveries):
            self.received(answer.items)
            self.last = answer.items[-1].position
            if pipe is self.pipe:
                self.unwritten[0] += len(answer.items)
                self.unwritten[1] += sum(len(item.body) for item in answer.items)
        elif isinstance(answer, Ended | Refused):
            self.world.close(pipe)
        else:
            self.hear_other(answer)

    def broken(self, pipe: Pipe) -> None:
        super().broken(pipe)
        self.held = []
        self.old = []


class Poller(Consumer):
    """Long polls: each request has a connection of its own."""

    def act(self, *, is_resting: bool = False) -> None:
        if self.pipe is not None or not self.owner.keys:
            return
        said = self.verdict(is_resting=is_resting)
        request = self.next_request()
        if said is not None:
            self.connect().send(
                Acknowledge(
                    request,
                    said.subscriber,
                    said.done,
                    said.done_through,
                    said.again,
                    said.in_s,
                    said.never,
                    said.reason,
                )
            )
        else:
            self.connect().send(Take(request, self.name, self.chance.choice((1, 3)), self.chance.choice((0.0, 2.0))))

    def hear(self, answer, pipe: Pipe) -> None:
        if isinstance(answer, Taken):
            for loss in answer.losses:
                self.hear_other(loss)
            self.received(answer.items)
        if isinstance(answer, Taken | Accepted | Refused | Ended):
            held = self.held
            self.held = []
            self.world.close(pipe)
            self.held = held
            if self.pipe is pipe:
                self.pipe = None

    def broken(self, pipe: Pipe) -> None:
        if self.pipe is pipe:
            self.pipe = None


class Listener(Client):
    """A passing subscriber: it ends with its connection."""

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world)
        self.number = number
        self.count = 0
        self.name = ""
        self.unwritten = [0, 0]
        self.held: list[Position] = []
        self.acknowledges = False
        self.asked: Era | None = None

    def act(self, *, is_resting: bool = False) -> None:
        chance, checker = self.chance, self.world.checker
        if self.pipe is None:
            if is_resting:
                return
            self.count += 1
            self.name = f"passing {self.number} {self.count}"
            told = checker.of(self.name, False)
            told.is_durable = False
            self.unwritten, self.held, self.acknowledges = [0, 0], [], chance.random() < 0.3
            text = chance.choice(FILTERS)
            self.connect()
            low = self.world.known(self.pipe.machine)
            self.asked = checker.asked(self.name, "it", EXPRESSIONS[text], low)
            first = chance.randint(1, low + 1) if chance.random() < 0.4 else 0
            self.replay = None
            if first:
                self.replay = ReplayAsked(("it",), first, low, filters={"it": [EXPRESSIONS[text]]})
                told.replays.append(self.replay)
            self.pipe.send(Subscribe(1, self.name, {"it": Wanted(text, EXPRESSIONS[text])}, False, first))
            self.pipe.send(Attach(2, self.name, self.acknowledges, chance.choice((1, 3)), 1000, False))
        elif self.acknowledges:
            if self.held:
                done, self.held = tuple(self.held), []
                self.pipe.send(Acknowledge(0, self.name, done))
        elif self.unwritten[0] and (is_resting or chance.random() < 0.5):
            self.pipe.send(Wrote(self.name, *self.unwritten))
            self.unwritten = [0, 0]

    def hear(self, answer, pipe: Pipe) -> None:
        if pipe is not self.pipe:
            return
        told = self.world.checker.of(self.name)
        match answer:
            case Subscribed():
                self.asked.low = self.asked.high = answer.since
                if self.replay is not None:
                    self.replay.since = answer.since
            case Deliveries():
                told.done |= {item.position for item in answer.items}
                self.held += [item.position for item in answer.items]
                self.unwritten[0] += len(answer.items)
                self.unwritten[1] += sum(len(item.body) for item in answer.items)
            case Lost():
                told.lost.append(answer)
            case Refused():
                raise BrokenPromiseError(f"{self.name} is refused: {answer.error}")

    def broken(self, pipe: Pipe) -> None:
        super().broken(pipe)
        self.world.checker.of(self.name).is_gone = True

    @property
    def is_idle(self) -> bool:
        return self.pipe is None or self.acknowledges or not self.unwritten[0]


__all__ = ["START", "CaughtUp", "Listener", "Owner", "Pipe", "Poller", "Publisher", "Stream", "Worker"]
