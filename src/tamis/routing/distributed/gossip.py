"""How does an event spread where nobody keeps routes? By chance: basic and informed gossiping.

Who gets an event for the first time matches it for its own clients and sends it to some neighbours, drawn by chance,
for so many rounds. That needs no state, stands any failure, and promises nothing. *Informed* nodes know what their
neighbours' clients want, one hop far, and send them that for sure.

A ranked subscription's window holds what reached its node. An event that is lost may so change later answers too.

Source: Pripužić 2010, sections 6.2.5, 6.2.6, 6.3.5 and 6.3.6 (docs/bibliography.md).
Departs: a step for sure uses up a round as a step by chance does; to draw somebody who gets the event anyway costs
nothing; a second attempt goes one hop far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.matching.matcher import Matcher
from tamis.routing.distributed.base import RoutingNode, SummarisingNode
from tamis.routing.distributed.recent import ServedEvents
from tamis.routing.errors import MessageError
from tamis.routing.memory import LatestKeys
from tamis.routing.messages import Gossiped, Key, Message, Output, Passed, Send, Spread, Subscribe, Unsubscribe
from tamis.routing.strategies import strategy_of

if TYPE_CHECKING:
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.routing.base import Strategy


class BasicGossiper(RoutingNode):
    """A node that sends events to some neighbours by chance.

    >>> from tamis.routing import Publish
    >>> node = BasicGossiper("A", fan_out=1, rounds=3)
    >>> _ = node.connect("B", 0.0), node.attach("ann")
    >>> node.receive(Publish("e", {"x": 1}), "ann", 0.0)[0].message.rounds
    2
    """

    name_of_strategy: ClassVar[str] = "basic gossiping"
    hears: ClassVar[frozenset[type[Message]]] = frozenset({Gossiped})
    sees_all: ClassVar[bool] = True
    keeps_recent: ClassVar[bool] = True

    def __init__(self, name: str, *args: Any, fan_out: int = 1, rounds: int = 3, **settings: Any) -> None:
        super().__init__(name, *args, **settings)
        for what, number in (("fan-out", fan_out), ("number of rounds", rounds)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise MessageError(f"a {what} of {number!r:.40}", "a whole number, at least 1")
        self._fan_out = fan_out
        self._rounds = rounds
        self._seen = LatestKeys(self._remembers)
        self.duplicates = 0
        """How many events came again."""

    def _publish(self, passed: Passed, now: float) -> list[Output]:
        self._seen.add(passed.key)
        return self._taken(passed, None, self._rounds, now)

    def _hear(self, message: Message, source: str, now: float) -> list[Output]:
        assert isinstance(message, Gossiped)
        if message.publication.key in self._seen:
            self.duplicates += 1
            return []
        self._seen.add(message.publication.key)
        return self._taken(message.publication, source, message.rounds, now)

    def _taken(self, passed: Passed, source: str | None, rounds: int, now: float) -> list[Output]:
        """Take an event that is here for the first time, with so many rounds to go."""
        outputs = self._settle(self.residents.take(passed, now), now)
        return outputs + (self._passed_on(passed, source, rounds - 1) if rounds else [])

    def _passed_on(self, passed: Passed, source: str | None, rounds: int) -> list[Output]:
        but = () if source is None else (source,)
        return [Spread(Gossiped(passed, rounds, False), self._fan_out, but)]


class InformedGossiper(SummarisingNode, BasicGossiper):
    """A node that sends events to those neighbours whose clients want them, and to some by chance."""

    name_of_strategy: ClassVar[str] = "informed gossiping"
    hears: ClassVar[frozenset[type[Message]]] = frozenset({Gossiped, Subscribe, Unsubscribe})
    sees_all: ClassVar[bool] = False

    def __init__(self, name: str, *args: Any, strategy: str | Strategy = "simple", **settings: Any) -> None:
        super().__init__(name, *args, **settings)
        self._summary = strategy_of(strategy, self._schema).summary()
        self._wanted = Matcher(schema=self._schema)
        self._keys: dict[str, dict[Key, None]] = {}
        self._recent = ServedEvents(self.settings)
        self._again = LatestKeys(self._remembers)

    # -- What own clients want, and neighbours'

    def _tell(self, now: float) -> list[Output]:
        changes = self._changes()
        if not changes:
            return []
        message: Message = Subscribe(changes.added, changes.removed) if changes.added else Unsubscribe(changes.removed)
        return [Send(neighbour, message) for neighbour in self.neighbours]

    def _greet(self, neighbour: str, now: float) -> list[Output]:
        self._keys[neighbour] = {}
        return [Send(neighbour, Subscribe(self._summary.entries))] if len(self._summary) else []

    def _part(self, neighbour: str, now: float) -> list[Output]:
        for key in self._keys.pop(neighbour):
            self._wanted.remove((neighbour, key))
        return []

    def wanted_of(self, neighbour: str) -> dict[Key, Expression]:
        """Return what a neighbour's clients want, as this node knows it."""
        return {key: self._wanted.expression((neighbour, key)) for key in self._keys[neighbour]}

    def _hear(self, message: Message, source: str, now: float) -> list[Output]:
        match message:
            case Subscribe(entries, keys) | Unsubscribe(keys, entries):
                for key in {*keys, *(entry.key for entry in entries)} & self._keys[source].keys():
                    self._wanted.remove((source, key))
                    del self._keys[source][key]
                for entry in entries:
                    self._wanted.add((source, entry.key), entry.condition)
                    self._keys[source][entry.key] = None
                return []
            case Gossiped(publication) if publication.attempt == 2:
                if publication.key in self._again or publication.key in self._seen:
                    self.duplicates += 1
                    return []
                self._again.add(publication.key)
                return self._settle(self.residents.take(publication, now), now)
        return super()._hear(message, source, now)

    # -- Events

    def _satisfied(self, passed: Passed) -> list[str]:
        """Return the neighbours whose clients want an event."""
        matches = self._wanted.match(passed.event) if len(self._wanted) else []
        return list(dict.fromkeys(neighbour for neighbour, _ in matches))

    def _taken(self, passed: Passed, source: str | None, rounds: int, now: float) -> list[Output]:
        outputs = super()._taken(passed, source, rounds, now)
        served = {
            output.peer for output in outputs if isinstance(output, Send) and isinstance(output.message, Gossiped)
        }
        self._recent.push(passed, served | ({source} if source is not None else set()))
        return outputs

    def _passed_on(self, passed: Passed, source: str | None, rounds: int) -> list[Output]:
        certain = [neighbour for neighbour in self._satisfied(passed) if neighbour != source]
        sent: list[Output] = [Send(neighbour, Gossiped(passed, rounds, True)) for neighbour in certain]
        but = () if source is None else (source,)
        return [*sent, Spread(Gossiped(passed, rounds, False), self._fan_out, but, tuple(certain))]

    def _second_attempts(self, now: float, clock: float) -> list[Output]:
        outputs: list[Output] = []
        for kept in self._recent.leaving(clock):
            satisfied = [each for each in self._satisfied(kept.passed) if each not in kept.served]
            outputs += [Send(neighbour, Gossiped(kept.again, 0, True)) for neighbour in satisfied]
        return outputs

    @property
    def _due(self) -> float:
        return min(super()._due, self._recent.due)

    def advance(self, now: float) -> list[Output]:
        return self._second_attempts(now, now) + super().advance(now)

    def try_again(self, number: int, now: float) -> list[Output]:
        return self._second_attempts(now, number)
