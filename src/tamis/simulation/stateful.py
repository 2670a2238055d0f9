"""Are clients with sequences and changes sent what they would be sent by one who sees every event?

Only the stateless part of such a subscription travels: the condition for what it needs to see. The state is kept where
the client is at home, by what reaches it there. So a run has two kinds of time. While links break and brokers crash,
events may be lost, and a home can only be asked not to invent anything: whatever it reports of a sequence must be a run
of events that were published. After everything is mended and at rest, homes begin anew (a broker that crashed has lost
its states), events are published under delays, and homes must report just what one who sees all events reports.

Source: filters without a state, Mühl et al. 2002, section 2.1 (docs/bibliography.md); sequences: Jewel 2004, section
4.3, and changes: section 2.5.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

from tamis.simulation.actors import Actor
from tamis.simulation.network import Network
from tamis.simulation.occurrences import EventDelivered, EventPublished
from tamis.simulation.scenarios import MOST_STEPS, broker_maker
from tamis.simulation.topologies import TOPOLOGIES, names
from tamis.standing import Notification, Standing, interest, parse_subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression
    from tamis.routing import Broker
    from tamis.routing.messages import Key
    from tamis.simulation.occurrences import Occurrence
    from tamis.simulation.scenarios import Scenario

TEXTS = (
    "SEQUENCE x < 3 THEN x > 4 WITHIN 2 SECONDS PER y",
    "SEQUENCE x = 1 OR y = 1 AS p THEN z > p.z WITHIN 1 SECOND",
    "SEQUENCE x < 6 THEN y < 5 THEN z = 0 WITHIN 3 SECONDS TAKING FIRST",
    "SEQUENCE x < 2 THEN NOT x > 3 WITHIN 0.5 SECONDS",
    "SEQUENCE length(s) > 1 SAME OR THEN x >= 1 WITHIN 1 SECOND TAKING EACH ONCE",
    "CHANGE TO x > 4",
    "CHANGE OF y > 3 PER z",
    "CHANGE OF x > 5 UNTIL x < 3 WHERE y IS NOT NULL",
    "CHANGE TO z < 4 PER s FORGET AFTER 1 SECOND",
)
"""What clients choose from: every kind, with and without groups, references, absences and an end."""
LEFT_OUT: dict[str, Any] = {
    "advertisements": None,
    "guards": False,
    "schema": None,
    "leases": False,
    "announces": False,
    "is_crowded": False,
    "adapts": False,
}
"""What scenarios draw and stateful clients do without: each may keep an event from a client though nothing fails."""
_LATENESS_S = 30.0
"""Far longer than any way through a network takes."""
_CALM_EVENTS = 12


@dataclass
class StatefulClients:
    """The states of clients at their homes, beside one who sees all events; an observer of a network."""

    network: Network
    wanted: dict[str, dict[str, str]]
    problems: list[str] = field(default_factory=list)
    reported: int = 0
    """How much was compared in calm times."""

    def __post_init__(self) -> None:
        self._times: dict[object, float] = {}
        self.network.observers.append(self)
        self.begin()

    def begin(self) -> None:
        """Start anew, as subscriptions do: without a history."""
        self._homes = {client: Standing(lateness=_LATENESS_S) for client in self.wanted}
        self._all_seeing = {client: Standing(lateness=_LATENESS_S) for client in self.wanted}
        self._every_run = {client: Standing(lateness=_LATENESS_S) for client in self.wanted}
        self._reports: dict[str, list[Notification]] = {client: [] for client in self.wanted}
        self._expected: dict[str, list[Notification]] = {client: [] for client in self.wanted}
        self._runs: dict[str, list[Notification]] = {client: [] for client in self.wanted}
        for client, texts in self.wanted.items():
            self._homes[client].add_many(texts)
            self._all_seeing[client].add_many(texts)
            self._every_run[client].add_many({key: _every(text) for key, text in texts.items() if _is_run(text)})

    def subscribe(self) -> None:
        """Let every client ask for what it needs to see, as far as it does not do so already."""
        for client, texts in self.wanted.items():
            known = self.network.clients[client].subscriptions
            wanted: dict[Key, Expression] = {
                key: interest(parse_subscription(text)) for key, text in texts.items() if key not in known
            }
            if wanted:
                self.network.subscribe_many(client, wanted)

    def __call__(self, occurrence: Occurrence) -> None:
        """Take note of what was published, and of what reaches a home."""
        if isinstance(occurrence, EventPublished):
            publication, now = occurrence.publication, self.network.now
            if publication.key not in self._times:
                self._times[publication.key] = now
                for client in self.wanted:
                    for processor, reports in (
                        (self._all_seeing[client], self._expected[client]),
                        (self._every_run[client], self._runs[client]),
                    ):
                        reports += processor.process(dict(publication.event), now, publication.key)
        elif isinstance(occurrence, EventDelivered) and occurrence.client in self.wanted:
            if not self.wanted[occurrence.client].keys() & set(occurrence.subscriptions):
                return  # it came for another subscription of the client
            publication = occurrence.publication
            at = self._times[publication.key]
            home = self._homes[occurrence.client]
            self._reports[occurrence.client] += home.process(dict(publication.event), at, publication.key)

    def _pass_time(self) -> None:
        end = self.network.now + 2 * _LATENESS_S
        for client in self.wanted:
            self._reports[client] += self._homes[client].advance(end)
            self._expected[client] += self._all_seeing[client].advance(end)
            self._runs[client] += self._every_run[client].advance(end)

    def check_nothing_is_invented(self) -> None:
        """See that every sequence that a home reported is a run of events that were published."""
        self._pass_time()
        for client, texts in self.wanted.items():
            runs = {(each.subscription, each.events) for each in self._runs[client]}
            for each in self._reports[client]:
                if _is_run(texts[each.subscription]) and (each.subscription, each.events) not in runs:
                    self.problems.append(f"{client}: {each} is not a run of what was published")

    def check_all_is_reported(self) -> None:
        """See that homes reported just what one who sees all events reports."""
        self._pass_time()
        for client in self.wanted:
            mine, theirs = (sorted(map(repr, reports[client])) for reports in (self._reports, self._expected))
            self.reported += len(theirs)
            if mine != theirs:
                self.problems.append(f"{client}: reported {mine}, expected {theirs}")


def _is_run(text: str) -> bool:
    return text.startswith("SEQUENCE") and "THEN NOT" not in text


def _every(text: str) -> str:
    return f"{text.split(' TAKING ')[0]} TAKING EVERY"


def simulate_stateful(
    scenario: Scenario, make: Callable[[Scenario, int, str], Broker] | None = None
) -> StatefulClients:
    """Run a scenario in which clients have sequences and changes; return them, with what went wrong.

    What may keep an event from a client in a network without faults is left out, whatever the scenario says of it
    (`LEFT_OUT`).

    >>> from tamis.simulation import Scenario
    >>> simulate_stateful(Scenario.of_seed(3, has_faults=True, algorithm="naive")).problems
    []
    """
    scenario = replace(scenario, **LEFT_OUT)
    chance = Random(scenario.seed)
    brokers = names(scenario.broker_count)
    maker = make or broker_maker()
    network = Network(
        brokers,
        TOPOLOGIES[scenario.topology](scenario.broker_count, chance),
        lambda name: maker(scenario, int(name[1:]), name),
        chance,
        encodes=scenario.encodes,
        gradual_share=0.5 if scenario.gradual else 0.0,
    )
    for number in range(chance.randint(2, 4)):
        network.attach(f"c{number}", chance.choice(brokers))
    wanted = {
        client: {f"t{number}": text for number, text in enumerate(chance.sample(TEXTS, chance.randint(1, 3)))}
        for client in network.clients
    }
    clients = StatefulClients(network, wanted)
    clients.subscribe()
    network.run(MOST_STEPS)
    actor = Actor(network, chance, scenario)
    for _ in range(scenario.round_count):
        for _ in range(scenario.action_count):
            network.wait(chance.uniform(0.001, 0.05))
            actor.act()
        _come_to_rest(network)
        clients.check_nothing_is_invented()
        clients.subscribe()  # what clients took back meanwhile
        network.run(MOST_STEPS)
        clients.begin()
        for _ in range(_CALM_EVENTS):
            network.wait(chance.uniform(0.001, 0.4))  # no two at one time: who is first would depend on the way
            actor.publish_new()
        network.run(MOST_STEPS)
        clients.check_all_is_reported()
        clients.begin()
    return clients


def _come_to_rest(network: Network) -> None:
    network.run(MOST_STEPS)
    network.mend()
    for client in list(network.clients.values()):
        if not client.is_connected:
            network.reconnect(client.name)
    network.run(MOST_STEPS)
