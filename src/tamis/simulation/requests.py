"""Is it enough to ask for the steps of sequences only now and then? Homes that follow runs and advertisements.

Clients at homes have sequences, and ask by `StepRequests`: for later steps only while a run is open, and for nothing if
a step cannot come because nobody advertises it. Everybody publishes. Beside them looks one who sees every event.

At rest, that is if every message has arrived before the next event is published, homes report just what that one
reports, whatever failed before; and they ask just for what whoever sees everything would ask for. If homes ask for
nothing while any of the steps cannot come (`needs_all`), runs count of which no event was published in such a time.
Under way, they may report less, but nothing that is not a run; and of a run that they miss, a later event was published
within the window of loss, one way there and back after the first.

What can be published is a small world of events (`WORLD`), so whether a step can come is decided by trying all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from math import inf
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.language.meaning import holds
from tamis.language.parser import parse
from tamis.language.rewrites.monotone import any_of
from tamis.routing import Broker, Publish, StepRequests, Subscribe, advertised_to
from tamis.simulation.network import Network
from tamis.simulation.occurrences import EventDelivered, MessageCarried
from tamis.simulation.topologies import TOPOLOGIES, names
from tamis.standing import Notification, Sequence, Standing
from tamis.standing.references import without_references
from tamis.topk import Ranked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression
    from tamis.simulation.occurrences import Occurrence

KINDS = ("bad", "good", "bid", "noise")
WORLD = tuple({"kind": kind, "user": user, "x": x} for kind, user, x in product(KINDS, (1, 2), (1, 4, 7)))
"""All events, but for their times."""
TEXTS = (
    "SEQUENCE kind = 'bad' THEN kind = 'good' WITHIN 2 SECONDS PER user",
    "SEQUENCE kind = 'bid' AND x < 3 AS low THEN kind = 'bid' AND x > low.x THEN kind = 'good' WITHIN 4 SECONDS",
    "SEQUENCE kind = 'bad' SAME OR THEN x > 5 WITHIN 3 SECONDS",
    "SEQUENCE kind = 'good' THEN NOT kind = 'bid' WITHIN 1 SECOND PER user",
    "SEQUENCE kind = 'noise' THEN kind = 'noise' AND x > 5 WITHIN 2 SECONDS",
)
SLOW_TEXTS = (
    "SEQUENCE kind = 'bad' THEN kind = 'good' AFTER 2 SECONDS WITHIN 5 SECONDS",
    "SEQUENCE x < 3 THEN kind = 'bid' AFTER 2 SECONDS WITHIN 4 SECONDS PER user",
)
"""Of which the second event comes when the request for it has spread for long."""
ADVERTISEMENTS = (
    "kind = 'bad'",
    "kind = 'good'",
    "kind = 'bid' AND x < 5",
    "kind = 'bid'",
    "kind = 'noise'",
    "x > 5 AND kind > 'c'",
)
POLICIES = ("LATEST", "FIRST", "EVERY", "EACH ONCE")
LATENESS_S = 2.0
"""Longer than any way through these networks takes."""
MOST_DELAY_S = 0.1
_MOMENT_S = 1e-6
_MOST_UNCERTAIN_S = 2.0
"""How much later than a client a home hears that something is not advertised any more, at most, with time to spare."""
_GAPS_S = ((0.001, 0.1), (0.1, 0.8), (0.1, 0.8), (1.0, 8.0))
"""Between two events: within the window of loss, within a run, and so long that runs end."""
_EVENT_COUNT = 25
_ROUND_COUNT = 3


@dataclass
class RequestingHomes:
    """Homes of sequences, beside one who sees all events; an observer of a network."""

    network: Network
    wanted: dict[str, dict[str, str]]
    make: Callable[[], StepRequests]
    while_open: bool = True
    needs_all: bool = False
    problems: list[str] = field(default_factory=list)
    reported: int = 0
    missed: int = 0
    crossed: int = 0
    """How many events crossed a link."""

    def __post_init__(self) -> None:
        self.network.observers.append(self)
        self.begin()

    def begin(self) -> None:
        """Start anew, as homes do that have lost their state; what their broker knows of them stays."""
        self.times: dict[Any, float] = {}
        self._events: dict[Any, dict[str, Any]] = {}
        self._arrived: list[EventDelivered] = []
        self.homes = {client: Standing(lateness=LATENESS_S) for client in self.wanted}
        self._all_seeing: dict[tuple[str, str], Standing] = {}
        self._every_run = {client: Standing(lateness=LATENESS_S) for client in self.wanted}
        self._reports, self._expected, self._runs = (
            {client: list[Notification]() for client in self.wanted} for _ in range(3)
        )
        self.requests = {client: self.make() for client in self.wanted}
        self._could_come: dict[tuple[str, str, int], float] = {}
        """When each step could come for the last time, as far as was looked."""
        self._incomplete: set[tuple[str, str]] = set()
        """The sequences of which a step cannot come now."""
        self._unseen: dict[Any, set[tuple[str, str]]] = {}
        """For which sequences an event does not count, because one of their steps could not come."""
        for client, texts in self.wanted.items():
            for key, text in texts.items():
                self.requests[client].add(key, Sequence.parse(text))
                self.homes[client].add(key, text)
                self._all_seeing[client, key] = Standing(lateness=LATENESS_S)
                self._all_seeing[client, key].add(key, text)
                if "THEN NOT" not in text:
                    self._every_run[client].add(key, f"{text.split(' TAKING ')[0]} TAKING EVERY")
            for asked in list(self.network.clients[client].subscriptions):
                self.network.unsubscribe(client, asked)
        self.ask()

    def __call__(self, occurrence: Occurrence) -> None:
        """Take note of what reaches a home."""
        if isinstance(occurrence, EventDelivered) and occurrence.client in self.wanted:
            self._arrived.append(occurrence)
        elif isinstance(occurrence, MessageCarried) and isinstance(occurrence.message, Publish):
            self.crossed += 1

    def ask(self) -> None:
        """Let homes ask for what they need now."""
        for each in self._arrived:
            at = self.times[each.publication.key]
            event = dict(each.publication.event)
            self._reports[each.client] += self.homes[each.client].process(event, at, each.publication.key)
            self.requests[each.client].see(each.subscriptions, event, at)
        self._arrived.clear()
        for client, requests in self.requests.items():
            broker = self.network.brokers.get(self.network.clients[client].home)
            if broker is None:
                continue
            requests.advance(self.network.now)
            requests.know(advertised_to(broker), self.network.now)
            for message in requests.messages():
                if isinstance(message, Subscribe):
                    self.network.subscribe_many(client, {entry.key: entry.condition for entry in message.entries})
                else:
                    for key in message.keys:
                        self.network.unsubscribe(client, key)

    def rest(self) -> None:
        """Let everything arrive, homes ask, and what they ask arrive."""
        self.ask()
        while not self.network.is_quiet:
            self.network.step()
            self.ask()

    def wait(self, seconds: float) -> None:
        """Let time pass, and runs end."""
        until = self.network.now + seconds
        while True:
            now, ends = self.network.now, (each.next_due for each in self.requests.values())
            dues = [due for due in ends if due is not None and due > now]
            first = min([until, *dues, *([self.network.travel.next_s] if self.network.travel else [])])
            self.network.wait(max(0.0, first - self.network.now) + _MOMENT_S)  # or rounding might stop the clock
            self.ask()
            if first >= until:
                return

    def publish(self, client: str, key: str, event: dict[str, Any]) -> None:
        """Let a client publish an event."""
        now = self.network.now
        self.times[key], self._events[key] = now, event
        for each in self.wanted:
            self._runs[each] += self._every_run[each].process(event, now, key)
        self._unseen[key] = {place for place in self._incomplete if self.needs_all}
        for place, processor in self._all_seeing.items():
            if place not in self._unseen[key]:
                self._expected[place[0]] += processor.process(event, now, key)
        self.network.publish(client, key, event)
        self.ask()

    def end(self) -> None:
        """Let all times pass that sequences wait for."""
        end = self.network.now + 100.0
        for client in self.wanted:
            self._reports[client] += self.homes[client].advance(end)
            self._runs[client] += self._every_run[client].advance(end)
        for (client, _), processor in self._all_seeing.items():
            self._expected[client] += processor.advance(end)

    # -- What must hold

    def check_all_is_reported(self) -> None:
        """See that homes reported just what one who sees all events reports."""
        for client in self.wanted:
            mine, theirs = (sorted(map(repr, reports[client])) for reports in (self._reports, self._expected))
            self.reported += len(theirs)
            if mine != theirs:
                self.problems.append(f"{client}: reported {mine}, expected {theirs}")

    def check_what_is_missed(self) -> None:
        """See that homes report runs only, and that what they miss was published within the window of loss."""
        window_s = 2 * len(self.network.links) * MOST_DELAY_S
        for client, texts in self.wanted.items():
            runs = {(each.subscription, each.events) for each in self._runs[client]}
            mine = {(each.subscription, each.events) for each in self._reports[client]}
            expected = {(each.subscription, each.events) for each in self._expected[client]}
            for key, events in mine:
                is_absence = "THEN NOT" in texts[key]
                if (key, events) not in (expected if is_absence else runs):
                    self.problems.append(f"{client}: {key} {events} is not a run of what was published")
            self.reported += len(mine)
            for key, events in expected - mine:
                self.missed += 1
                first, *later = (self.times[each] for each in events)
                is_every = texts[key].endswith("TAKING EVERY") or "THEN NOT" in texts[key]
                # Another policy may choose another run if an event is missing that is not in this one.
                if is_every and not any(at - first < window_s for at in later):
                    self.problems.append(f"{client}: {key} {events} is missing, long after {first}")

    def check_requests(self) -> bool:
        """See that homes ask for what they need and nothing else, as one says who sees everything; at rest.

        Return whether that is certain: homes hear a little later that something is advertised no longer.
        """
        is_certain = True
        for client, texts in self.wanted.items():
            for key, text in texts.items():
                sequence = Sequence.parse(text)
                steps = [without_references(each.condition, sequence.names) for each in sequence.steps]
                missing = self._first_missing(client, key, sequence, steps)
                if missing is None:
                    is_certain = False
                    continue
                self._incomplete.discard((client, key))
                if missing < len(steps):
                    self._incomplete.add((client, key))
                expected: Expression | None = any_of(steps[:missing])
                if not missing or (self.needs_all and missing < len(steps)):
                    expected = None
                elif self.while_open and not sequence.is_absence and not self._is_open(key, client, sequence, steps[0]):
                    expected = steps[0]
                asked = self.network.clients[client].subscriptions.get(key)
                if asked != expected:
                    self.problems.append(f"{client}: asks for {asked}, not {expected}, for {text}")
        return is_certain

    def _first_missing(self, client: str, key: str, sequence: Sequence, steps: list[Expression]) -> int | None:
        """Return the number of the first step that cannot come; None if one is just about to be seen as that."""
        assert sequence.within is not None
        network = self.network
        if network.brokers[network.clients[client].home].advertising is None:
            return len(steps)
        advertised = [each for other in network.clients for each in _advertised_by(network, other)]
        missing, is_certain = len(steps), True
        for number in reversed(range(len(steps) - sequence.is_absence)):
            place = client, key, number
            if any(holds(steps[number], event) and holds(each, event) for event in WORLD for each in advertised):
                self._could_come[place] = network.now
                continue
            ago = network.now - self._could_come.get(place, -inf) - sequence.within - LATENESS_S
            is_certain &= abs(ago) > _MOST_UNCERTAIN_S
            if ago > 0:
                missing = number
        return missing if is_certain else None

    def _is_open(self, key: str, client: str, sequence: Sequence, first: Expression) -> bool:
        assert sequence.within is not None
        since = self.network.now - sequence.within - LATENESS_S
        return any(
            at > since and holds(first, self._events[each]) and (client, key) not in self._unseen.get(each, ())
            for each, at in self.times.items()
        )


def simulate_requests(
    seed: int,
    strategy: str = "covering",
    *,
    advertisements: str | None = None,
    while_open: bool = True,
    needs_all: bool = False,
    has_faults: bool = False,
    is_at_rest: bool = True,
    make: Callable[..., StepRequests] = StepRequests,
) -> RequestingHomes:
    """Run a network of a seed in which homes ask for steps now and then; return them, with what went wrong.

    `is_at_rest`, every message arrives before the next event is published, and advertisements may come and go; else
    events are published while messages are under way.

    >>> simulate_requests(1).problems
    []
    """
    chance = Random(seed)
    brokers = names(chance.randint(2, 6))
    topology = chance.choice(["line", "star", "random tree", *(["graph"] if has_faults else [])])
    network = Network(
        brokers,
        TOPOLOGIES[topology](len(brokers), chance),
        lambda name: Broker(name, strategy, advertisements=advertisements, algorithm="naive"),
        chance,
        delays_s=(0.001, MOST_DELAY_S),
    )
    clients = [f"c{number}" for number in range(chance.randint(3, 5))]
    for client in clients:
        network.attach(client, chance.choice(brokers))
    texts = TEXTS if is_at_rest else TEXTS + SLOW_TEXTS
    policies = POLICIES if is_at_rest else ("EVERY",)
    wanted = {
        client: {
            f"t{number}": text if "THEN NOT" in text else f"{text} TAKING {chance.choice(policies)}"
            for number, text in enumerate(chance.sample(texts, chance.randint(1, 3)))
        }
        for client in clients[:2]
    }
    if advertisements is not None:
        for client in clients:
            _advertise(network, chance, client)
    network.run()
    homes = RequestingHomes(
        network,
        wanted,
        lambda: make(while_open=while_open, needs_all=needs_all, lateness=LATENESS_S),
        while_open,
        needs_all,
    )
    homes.rest()
    for round_number in range(_ROUND_COUNT):
        for number in range(_EVENT_COUNT):
            homes.wait(chance.uniform(*chance.choice(_GAPS_S)))
            is_certain = True
            if is_at_rest:
                homes.rest()
                if advertisements is not None and chance.random() < 0.2:
                    homes.check_requests()  # which takes note of what could come up to now
                    _advertise(network, chance, chance.choice(clients))
                    homes.rest()
                is_certain = homes.check_requests()
            if is_certain or not needs_all:
                _publish(homes, chance, clients, f"{round_number}/{number}")
            if is_at_rest:
                homes.rest()
        homes.rest()
        homes.end()
        if is_at_rest:
            homes.check_all_is_reported()
        else:
            homes.check_what_is_missed()
        if has_faults:
            _break(network, chance)
        homes.begin()
        homes.rest()
    return homes


def _advertise(network: Network, chance: Random, client: str) -> None:
    """Let a client advertise something, or take back what it advertised."""
    text = chance.choice(ADVERTISEMENTS)
    if text in network.clients[client].advertisements:
        network.unadvertise(client, text)
    else:
        network.advertise(client, text, parse(text))


def _advertised_by(network: Network, client: str) -> list[Expression]:
    return [each for each in network.clients[client].advertisements.values() if not isinstance(each, Ranked)]


def _publish(homes: RequestingHomes, chance: Random, clients: list[str], key: str) -> None:
    """Let a client publish any event, or any that it has advertised."""
    client = chance.choice(clients)
    network = homes.network
    possible = WORLD
    if network.brokers[network.clients[client].home].advertising is not None:
        advertised = _advertised_by(network, client)
        possible = tuple(event for event in WORLD if any(holds(each, event) for each in advertised))
    if possible:
        homes.publish(client, key, dict(chance.choice(possible)))


def _break(network: Network, chance: Random) -> None:
    """Let something fail while homes ask for much, and everything be mended."""
    for _ in range(chance.randint(1, 3)):
        if chance.random() < 0.5:
            up = [name for name in network.brokers if len(network.brokers) > 1]
            if up:
                network.crash(chance.choice(up))
        else:
            network.fail_link(chance.choice(network.links))
        network.wait(chance.uniform(0.0, 0.2))
    network.mend()
    network.run()
