"""Does a broker keep its word whatever happens? A world without clocks, from one seed.

Nodes, their clients, the connections between them and the disks are models that chance drives, one small step at a
time: a request arrives, an answer is read, a block is synced, somebody changes a filter, a connection breaks, a node is
killed between two of its outputs and starts again with what its disks have. Checkers beside it know only what clients
said and were told (`world_checks`). Then everything comes to rest: all come back, acknowledge, and take back what they
asked for; nothing may be left.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language.schema import Schema
from tamis.routing import Broker
from tamis.service.changes import Buried
from tamis.service.errors import StorageFullError
from tamis.service.event_keys import event_key
from tamis.service.messages import (
    Accepted,
    Append,
    CaughtUp,
    Close,
    Deliveries,
    Forget,
    Keep,
    Lost,
    Output,
    Publish,
    Published,
    Read,
    Say,
    Session,
    Subscribe,
    Subscribed,
    Taken,
)
from tamis.service.node import LogFacts, Node, NodeLimits
from tamis.service.permissions import Permissions
from tamis.service.positions import Position
from tamis.service.settings import Role
from tests.service.world_checks import BrokenPromiseError, Checker
from tests.service.world_clients import (
    ADMIN,
    RECEIVE,
    Consumer,
    Listener,
    Owner,
    Pipe,
    Poller,
    Publisher,
    Stream,
    Worker,
    effective,
    read_record,
)
from tests.service.world_disks import LogDisk, SharedLog, StateDisk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.service.log.base import Block

SCHEMA = Schema({"a": "int", "b": "string", "id": "string", "source": "string", "type": "string"})

KINDS = ((Worker,), (Worker, Worker), (Stream,), (Poller,), (Poller, Poller), (Worker, Poller))


def permissions(receive: str, schema: Schema | None) -> Permissions:
    return Permissions({"shop": Role(receive=receive, subscribers=("*",))}, schema)


class Machine:
    """A node with its disks, and the connections that it has."""

    def __init__(self, world: World, name: str, log: LogDisk) -> None:
        self.world, self.name, self.log = world, name, log
        self.state = StateDisk()
        self.node: Node | None = None
        self.reading: Read | None = None
        self.fetched: list[Block] = []
        """What was read of a shared log and has not come to the node yet; retention may take it meanwhile."""
        self.fetched_through = self.followed = 0
        self.is_overtaken = False
        """Whether events are missing before those that were fetched."""
        self.appending: list = []
        """Blocks that were handed to a shared log."""
        self.pipes: dict[int, Pipe] = {}
        self.permitting: list[tuple[int, int, list]] = []
        """Changes of permissions that are not kept: by number of the state, since where, and what follows."""

    def start(self) -> None:
        world, log = self.world, self.log
        facts = LogFacts(
            log.first, log.last, log.blocks[-1].time_us if log.blocks else 0, world.is_shared, True, log.gaps,
            log.block_positions,
        )  # fmt: skip
        broker = Broker(self.name, schema=world.schema, algorithm="naive")
        self.node = world.make_node(
            broker, permissions(world.receive, world.schema), read_record, self.state.rows.stored(), facts,
            now=world.now, schema=world.schema, limits=world.limits,
        )  # fmt: skip
        self.fetched_through = self.followed = log.last
        world.checker.forgotten |= {each for each in world.checker.bodies if log.body(each) is None}
        world.after_start(self)
        self.carry(self.node.start())

    def crash(self) -> None:
        world = self.world
        self.node, self.reading, self.fetched, self.is_overtaken = None, None, [], False
        if world.is_shared:
            for block in self.appending[: world.chance.randint(0, len(self.appending))]:
                world.append(block)
            self.appending = []
        else:
            self.log.crash(world.chance)
        self.state.crash(world.chance)
        self.permitting = []
        for pipe in list(self.pipes.values()):
            world.cut(pipe)
            pipe.to_node.clear()
            pipe.is_closed_at_node = True
        self.pipes.clear()
        for owner in world.owners:
            if owner.home is self:
                told = world.checker.of(owner.name)
                told.counts.clear()
                if owner.pending is not None or owner.home.world.has_roles:
                    told.unordered_through = max(told.highest.values(), default=told.unordered_through)

    def carry(self, outputs: list[Output]) -> None:
        """Do what the node wants done; a crash may come between any two of its outputs."""
        world = self.world
        until = len(outputs)
        if world.is_crashing and world.chance.random() < 0.01:
            until = world.chance.randint(0, len(outputs))
        for output in outputs[:until]:
            match output:
                case Say(session, answer):
                    self._say(session, answer)
                case Append(block):
                    (self.appending if world.is_shared else self.log.writing).append(block)
                case Keep():
                    self.state.writing.append(output)
                    for change in output.changes:
                        if isinstance(change, Buried):
                            world.checker.buries(change.subscriber, change.position)
                case Read():
                    if self.reading is not None:
                        raise BrokenPromiseError(f"{output}, while {self.reading} is under way")
                    self.reading = output
        if until < len(outputs):
            self.crash()
            self.start()
        elif self.node is not None:
            world.check_bounds(self.node)

    def _say(self, session: int, answer: Any) -> None:
        world, pipe = self.world, self.pipes.get(session)
        checker = world.checker
        match answer:
            case Deliveries(name, items):
                for item in items:
                    self._check_disk(item.position.event, item.body)
                    checker.emits_delivery(name, item, read_record(item.body, 0), session, self._sessions(name))
            case Taken(_, items) if pipe is not None:
                for item in items:
                    self._check_disk(item.position.event, item.body)
                    checker.emits_delivery(pipe.client.name, item, read_record(item.body, 0), session, ())
                for loss in answer.losses:
                    self._check_loss(loss)
            case Published(_, _, positions):
                for position in positions:
                    self._check_disk(position)
            case Lost():
                self._check_loss(answer)
            case CaughtUp(name, at):
                checker.caught_up(checker.of(name), at)
            case Subscribed() if pipe is not None and isinstance(pipe.client, Owner):
                self._check_kept(pipe.client, answer)
        if pipe is not None:
            if isinstance(pipe.client, Owner):
                pipe.client.emitted(answer)
            pipe.to_client.append(answer)

    def _check_loss(self, loss: Lost) -> None:
        self.world.checker.emits_loss(loss.subscriber, loss, self.log.first, self.log.gaps)

    def _sessions(self, name: str) -> dict[int, Any]:
        """Who takes from a subscriber now."""
        return self.node.roster.subscribers[name].consumers if name in self.node.roster.subscribers else {}

    def _check_disk(self, position: int, body: bytes | None = None) -> None:
        on_disk = self.log.body(position)
        is_there = position < self.log.first or (on_disk is not None and body in (None, on_disk))
        if not is_there and not any(gap.first <= position <= gap.last for gap in self.log.gaps):
            raise BrokenPromiseError(f"{self.name} speaks of {position}, which is not on disk")
        if body is not None and self.world.is_shared:
            first = self.world.checker.first_of_key[event_key(body)]
            if first != position and self.log.body(first) == body:
                raise BrokenPromiseError(f"{self.name} delivers {position}, which is {first} once more")

    def _check_kept(self, owner: Owner, answer: Subscribed) -> None:
        request = owner.pending
        if not isinstance(request, Subscribe) or request.request != answer.request:
            return
        rows = self.state.rows.subscriptions.values()
        for key, wanted in request.subscriptions.items():
            if not any(
                (row.subscriber, row.key, row.text, row.until) == (owner.name, key, wanted.text, 0) for row in rows
            ):
                raise BrokenPromiseError(f"{owner.name} is told of {key!r} before it is kept")


class World:
    """Everything that happens, from one seed."""

    def __init__(
        self, seed: int, make_node: Callable[..., Node] = Node, *, node_count: int = 1, steps: int = 0, **options: Any
    ) -> None:
        self.seed, self.make_node = seed, make_node
        self.chance = chance = Random(f"{seed} {node_count}")
        self.is_shared = node_count > 1
        self.steps = steps or chance.choice((150, 250, 500))
        self.now = 1_000.0
        self.schema = SCHEMA if chance.random() < 0.3 else None
        self.limits = NodeLimits(
            queue_events=chance.choice((2, 3, 8)),
            queue_bytes=chance.choice((200, 10_000)),
            recent_bytes=chance.choice((1, 300, 1_000, 100_000)),
            waiting_bytes=Random(f"{seed} waiting").choice((300, 1_000, 3_000, 64_000_000)),
        )
        self.receive = "TRUE"
        self.has_roles = chance.random() < 0.3
        self.receives = RECEIVE if self.has_roles else ("TRUE",)
        self.checker = Checker(self.schema)
        self.checker.is_shared = self.is_shared
        self.is_crashing = chance.random() < 0.8
        self.has_retention = chance.random() < 0.3
        self.has_full_disks = chance.random() < 0.3
        self.replay_share = chance.choice((0.2, 0.3, 0.7))
        self.is_quiet = chance.random() < 0.15
        """Whether little is published."""
        self.break_share = chance.choice((0.005, 0.02, 0.05))
        self.kinds = KINDS
        """What consumers a subscriber may have."""
        for name, value in options.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        self.is_resting = False
        self.sessions = 0
        self.largest_block = 1
        shared = SharedLog() if self.is_shared else None
        self.machines = [Machine(self, f"n{number}", shared or LogDisk()) for number in range(node_count)]
        self.publishers = [Publisher(self, number) for number in range(chance.choice((1, 2, 3)))]
        self.owners = [
            Owner(self, f"s{number}", chance.choice(self.machines)) for number in range(chance.choice((1, 2, 3)))
        ]
        self.consumers: list[Consumer] = []
        for owner in self.owners:
            kinds = chance.choice(self.kinds)
            self.consumers += [kind(self, owner) for kind in kinds]
            self.checker.of(owner.name).consumer_count = len(kinds)
        self.listeners = [Listener(self, number) for number in range(chance.choice((0, 1)))]
        for machine in self.machines:
            machine.start()

    @property
    def clients(self) -> list:
        return [*self.publishers, *self.owners, *self.consumers, *self.listeners]

    def after_start(self, machine: Machine) -> None:
        """What a driver does before a node takes requests: it learns the keys of the log."""
        assert machine.node is not None
        machine.node.remember(machine.log.blocks)

    # -- Connections

    def known(self, machine: Machine) -> int:
        """The highest position that a node must know, which has told of it."""
        return machine.followed if self.is_shared else self.checker.acknowledged

    def connect(self, client: Any, machine: Machine) -> Pipe:
        self.sessions += 1
        pipe = Pipe(Session(self.sessions, client.principal), client, machine)
        machine.pipes[self.sessions] = pipe
        return pipe

    def cut(self, pipe: Pipe) -> None:
        """A connection breaks: of what is on its way a prefix arrives, in both directions."""
        for queue in (pipe.to_node, pipe.to_client):
            for _ in range(self.chance.randint(0, len(queue))):
                queue.pop()
        pipe.is_open = False
        while pipe.to_client:
            pipe.client.hear(pipe.to_client.popleft(), pipe)
        pipe.client.broken(pipe)

    def close(self, pipe: Pipe) -> None:
        """A client ends a connection; what it has sent arrives."""
        if pipe.is_open:
            pipe.is_open = False
            pipe.to_client.clear()
            pipe.client.broken(pipe)

    # -- Steps

    def arrive(self, machine: Machine, pipe: Pipe) -> None:
        """A node hears what is on its way to it: of several publications perhaps a group."""
        node = machine.node
        if not pipe.to_node:
            if not pipe.is_open and not pipe.is_closed_at_node:
                pipe.is_closed_at_node = True
                del machine.pipes[pipe.session.number]
                machine.carry(node.hear(Close(), pipe.session, self.now))
            return
        request = pipe.to_node.popleft()
        if not isinstance(request, Publish):
            machine.carry(node.hear(request, pipe.session, self.now))
            return
        group = [(pipe.session, request)]
        if self.chance.random() < 0.5:
            for other in machine.pipes.values():
                while other.to_node and isinstance(other.to_node[0], Publish) and self.chance.random() < 0.7:
                    group.append((other.session, other.to_node.popleft()))
        self.largest_block = max(self.largest_block, sum(len(each.events) for _, each in group))
        machine.carry(node.take(group, self.now))

    def sync_log(self, machine: Machine, count: int) -> None:
        node, log = machine.node, machine.log
        if self.is_shared:
            for _ in range(min(count, len(machine.appending))):
                block = machine.appending.pop(0)
                if log.is_full:
                    machine.carry(node.not_written(block, StorageFullError("no room"), self.now))
                else:
                    machine.carry(node.appended([self.append(block)]))
                if machine.node is not node:
                    return
            return
        if not log.writing:
            return
        if log.is_full:
            block = log.writing.popleft()
            machine.carry(node.not_written(block, StorageFullError("no room"), self.now))
            return
        log.sync(min(count, len(log.writing)))
        machine.carry(node.on_disk(log.last, self.now))

    def append(self, block: Block) -> Block:
        """A shared log gives a block its positions; where an event stands first is where everybody gets it."""
        log = self.machines[0].log
        assert isinstance(log, SharedLog)
        written = log.append(block)
        for position, body in enumerate(written.events, written.first):
            self.checker.first_of_key.setdefault(event_key(body), position)
        return written

    def fetch(self, machine: Machine, count: int) -> None:
        """Read on in a shared log, as `core_thread` does: up to where something is missing, but for the beginning."""
        log = machine.log
        if not machine.fetched:
            machine.is_overtaken = machine.fetched_through < log.dropped_through
        if machine.fetched_through >= log.dropped_through or not machine.fetched:
            machine.fetched += [block for block in log.blocks if block.first > machine.fetched_through][:count]
        if machine.fetched:
            machine.fetched_through = machine.fetched[-1].last

    def follow(self, machine: Machine, count: int) -> None:
        blocks, machine.fetched = machine.fetched[:count], machine.fetched[count:]
        if blocks:
            machine.followed = blocks[-1].last
            overtaken = machine.node.overtaken(blocks[0].first) if machine.is_overtaken else []
            machine.is_overtaken = False
            machine.carry(overtaken + machine.node.follow(blocks, self.now))

    def sync_state(self, machine: Machine, count: int) -> None:
        if machine.state.writing:
            number = machine.state.sync(min(count, len(machine.state.writing)))
            for until, since, eras in machine.permitting:
                if until <= number:
                    for era in eras:
                        era.low = era.high = since
            machine.permitting = [each for each in machine.permitting if each[0] > number]
            machine.carry(machine.node.kept(number))

    def read(self, machine: Machine) -> None:
        if machine.reading is not None:
            read, machine.reading = machine.reading, None
            blocks, through = machine.log.read(read.first, read.last, self.chance.choice((1, 2, 9)))
            if self.chance.random() < 0.2:
                self.retain(machine)
            machine.carry(machine.node.take_read(blocks, through, machine.log.first, self.now))

    def retain(self, machine: Machine) -> None:
        if self.has_retention and not self.is_resting:
            first = machine.log.drop(self.chance.randint(1, machine.log.last + 1))
            if self.chance.random() < 0.5:
                for each in self.machines if self.is_shared else [machine]:
                    each.node.dropped(first)

    def permit(self) -> None:
        """Roles change, for all nodes."""
        self.receive = self.chance.choice(RECEIVE)
        for machine in self.machines:
            eras = []
            for owner in self.owners:
                if owner.home is not machine:
                    continue
                for key, known in self.checker.of(owner.name).eras.items():
                    own = [each for each in known if not each.by_role][-1:]
                    if not own or own[0].is_closed:
                        continue
                    now = [each for each in known if each.filter is not None][-9:]
                    asked = list(dict.fromkeys(each.asked for each in now))
                    new = [
                        self.checker.asked(
                            owner.name, key, effective(each, self.receive), machine.node.gate.logged, each
                        )
                        for each in asked
                    ]
                    for era in new:
                        era.by_role = True
                    if len(new) == 1 and owner.pending is None and own[0].filter is not None:
                        eras += new
            machine.carry(machine.node.permit(permissions(self.receive, self.schema), self.now))
            if machine.state.writing and eras:
                machine.permitting.append((machine.state.writing[-1].number, machine.node.head, eras))

    def step(self) -> None:
        chance = self.chance
        machine = chance.choice(self.machines)
        kind = chance.random()
        if kind < 0.30:
            client = chance.choice(self.clients)
            if chance.random() < (0.1 if self.is_quiet and isinstance(client, Publisher) else 0.8):
                client.act()
        elif kind < 0.62:
            busy = [pipe for pipe in machine.pipes.values() if pipe.to_node or not pipe.is_open]
            if busy:
                self.arrive(machine, chance.choice(busy))
        elif kind < 0.78:
            busy = [pipe for pipe in machine.pipes.values() if pipe.to_client]
            if busy:
                pipe = chance.choice(busy)
                pipe.client.hear(pipe.to_client.popleft(), pipe)
        elif kind < 0.84:
            self.sync_log(machine, chance.randint(1, 3))
            if self.is_shared:
                self.fetch(machine, chance.randint(1, 3))
                self.follow(machine, chance.randint(0, 3))
        elif kind < 0.88:
            self.sync_state(machine, chance.randint(1, 3))
        elif kind < 0.90:
            self.read(machine)
        elif kind < 0.94:
            if machine.node.has_work:
                machine.carry(machine.node.work(self.now))
        elif kind < 0.955:
            self.now = max(1.0, self.now + chance.choice((0.05, 0.3, 0.3, 1.5, 5.0, 60.0, -2.0, 3_600.0)))
            node = machine.node
            machine.carry(node.tick(self.now))
            if machine.node is node:
                self.check_waiting(node)
        elif chance.random() < self.break_share / 0.04:
            pipes = [pipe for pipe in machine.pipes.values() if pipe.is_open]
            if pipes:
                pipe = chance.choice(pipes)
                self.close(pipe) if chance.random() < 0.3 else self.cut(pipe)
        else:
            self.mishap(machine, chance.random())

    def mishap(self, machine: Machine, kind: float) -> None:
        if kind < 0.35:
            if self.is_crashing:
                machine.crash()
                if (
                    self.has_retention
                    and self.chance.random() < 0.2
                    and len(machine.log.blocks) > 2
                    and not self.is_shared
                ):
                    machine.log.damage(self.chance.randrange(len(machine.log.blocks) - 1))
                machine.start()
        elif kind < 0.65:
            self.retain(machine)
        elif kind < 0.85:
            machine.log.is_full = self.has_full_disks and not machine.log.is_full
        elif self.has_roles:
            self.permit()

    # -- What must hold after every step

    def check_bounds(self, node: Node) -> None:
        for subscriber in node.roster:
            deliveries = subscriber.deliveries
            if deliveries.queue_count > self.limits.queue_events + self.largest_block:
                raise BrokenPromiseError(f"{subscriber.name} has a queue of {deliveries.queue_count}")
            if not subscriber.is_attended and (deliveries.queue_count or deliveries.unacknowledged_count):
                raise BrokenPromiseError(f"{subscriber.name} is not attended and holds deliveries")
            if subscriber.is_live != (node._live.get(subscriber.name) is subscriber):
                raise BrokenPromiseError(f"{subscriber.name} is live, or not: the node is not sure")
            used: dict[int, list[int]] = {}
            for sent in deliveries._sent.values():
                consumer = subscriber.consumer_of(sent.session)
                if consumer is None:
                    raise BrokenPromiseError(f"{subscriber.name} has sent to {sent.session}, which is gone")
                counts = used.setdefault(id(consumer), [0, 0])
                counts[0] += 1
                counts[1] += len(sent.delivery.body)
            for consumer in (*subscriber.consumers.values(), *filter(None, [subscriber.polled])):
                if consumer.used > consumer.credit:
                    raise BrokenPromiseError(
                        f"{subscriber.name}: {consumer.used} of a credit of {consumer.credit} are used"
                    )
                counts = used.get(id(consumer), [0, 0])
                if consumer.acknowledges and counts != [consumer.used, consumer.used_bytes]:
                    raise BrokenPromiseError(f"{subscriber.name}: {consumer} has {counts}")
        for group in (node._live, node._behind):
            for name, subscriber in group.items():
                if node.roster.subscribers.get(name) is not subscriber:
                    raise BrokenPromiseError(f"{name} is served, and gone")

    def check_waiting(self, node: Node) -> None:
        """Those who take nothing have no more memory, all together, than the limit leaves them."""
        waiting = sum(each.waiting_bytes for each in node.roster if each.is_durable and each.is_stalled)
        if waiting > self.limits.waiting_bytes:
            raise BrokenPromiseError(f"{waiting} bytes wait for subscribers who take nothing")

    # -- Rest

    def rest(self) -> None:
        """Everybody comes back, acknowledges, and waits until nothing moves."""
        self.is_resting, self.is_crashing = True, False
        for machine in self.machines:
            machine.log.is_full = False
        quiet_count = 0
        for _ in range(600):
            for client in self.clients:
                client.act(is_resting=True)
            self._settle()
            self.now += 0.7
            for machine in self.machines:
                machine.carry(machine.node.tick(self.now))
            self._settle()
            quiet_count = quiet_count + 1 if self._is_quiet() else 0
            if quiet_count == 6:
                break
        else:
            raise BrokenPromiseError("the world does not come to rest: " + ", ".join(self._restless()))

    def _settle(self) -> None:
        for machine in self.machines:
            for _ in range(200):
                moved = False
                for pipe in list(machine.pipes.values()):
                    while pipe.to_node or (not pipe.is_open and not pipe.is_closed_at_node):
                        self.arrive(machine, pipe)
                        moved = True
                    while pipe.to_client:
                        pipe.client.hear(pipe.to_client.popleft(), pipe)
                        moved = True
                self.sync_log(machine, 99)
                for each in self.machines if self.is_shared else ():
                    self.follow(each, 99)
                    self.fetch(each, 99)
                    self.follow(each, 99)
                self.sync_state(machine, 99)
                self.read(machine)
                if machine.node.has_work:
                    machine.carry(machine.node.work(self.now))
                    moved = True
                if not moved and not machine.reading:
                    break
            else:
                raise BrokenPromiseError(f"{machine.name} is busy without an end")

    def _restless(self) -> list[str]:
        restless = [
            f"{client.__class__.__name__} {getattr(client, 'name', '')}"
            for client in self.clients
            if not client.is_idle
        ]
        for machine in self.machines:
            node = machine.node
            if node.has_work or machine.reading or len(node.gate) or machine.state.writing or machine.log.writing:
                restless.append(machine.name)
            for subscriber in node.roster:
                deliveries = subscriber.deliveries
                if deliveries.queue_count or deliveries.unacknowledged_count or subscriber.replays:
                    restless.append(f"{subscriber.name}: {deliveries.queue_count}, {deliveries.unacknowledged_count}")
        return restless

    def _is_quiet(self) -> bool:
        return not self._restless()

    def check_rest(self) -> None:
        checker = self.checker
        for told in checker.names.values():
            if told.is_gone:
                continue
            if missing := checker.missing(told, told.done, told.lost):
                raise BrokenPromiseError(f"{told.name} never got {missing[:5]}")
        for machine in self.machines:
            node = machine.node
            machine.carry(node.stop())
            self._settle()
            for subscriber in node.roster:
                told = checker.of(subscriber.name)
                if subscriber.is_durable and not told.is_streamed and not subscriber.losses:
                    floor = subscriber.floor(node.gate.logged)
                    if floor < Position.of(node.gate.logged):
                        raise BrokenPromiseError(f"the floor of {subscriber.name} is {floor}, of {node.gate.logged}")
                    past = [each for each in subscriber.past.values() if each.until <= node.gate.logged]
                    if past or subscriber.ending or subscriber.replays:
                        raise BrokenPromiseError(f"{subscriber.name} still has past versions or replays")
                    head = Position.of(node.gate.logged)
                    if any(each <= head for each in subscriber.deliveries._islands) or subscriber.deliveries._open:
                        raise BrokenPromiseError(f"{subscriber.name} still has islands")
                    if any(row.subscriber == subscriber.name for row in machine.state.rows.replays.values()):
                        raise BrokenPromiseError(f"{subscriber.name} still has replays in the state")
                    if machine.state.rows.floors[subscriber.name].floor != floor:
                        raise BrokenPromiseError(f"the floor of {subscriber.name} was not kept")

    def take_back(self) -> None:
        """Everybody leaves; nothing may be left of them."""
        for machine in self.machines:
            for pipe in list(machine.pipes.values()):
                self.close(pipe)
            self._settle()
            node, session = machine.node, Session(0, ADMIN)
            for name in list(node.roster.subscribers):
                machine.carry(node.hear(Forget(0, name), session, self.now))
            self._settle()
            left = {
                "subscribers": node.roster.subscribers, "past": node.roster.past, "counts": node.roster._counts, "durable": node.roster._durable_counts,
                "principals": node.roster._principals, "table": node._broker.table, "live": node._live,
                "behind": node._behind, "dirty": node.dispatcher.dirty, "gate": node.gate,
            }  # fmt: skip
            for name, structure in left.items():
                if len(structure):
                    raise BrokenPromiseError(f"{name} is not empty: {structure}")
            if not machine.state.rows.is_empty():
                raise BrokenPromiseError(f"the state is not empty: {machine.state.rows.stored()}")

    def run(self) -> World:
        try:
            for _ in range(self.steps):
                self.step()
            self.rest()
            self.check_rest()
            self.take_back()
        except Exception as problem:
            raise BrokenPromiseError(f"seed {self.seed}: {type(problem).__name__}: {problem}") from problem
        return self


__all__ = ["Accepted", "World"]
