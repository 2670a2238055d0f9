"""How does an event go straight to those who want it? Every node knows what the clients of all nodes want.

Subscriptions are flooded over the links; an event goes by the network below, one message for each node that wants it.
The filter of a ranked subscription moves, and every move is flooded too, which is why the thesis advises against it.

Source: Pripužić 2010, sections 6.2.2 and 6.3.2 (docs/bibliography.md).
Departs: what changed is numbered, so that on a graph, where it comes by several ways, nothing is taken in the wrong
order; a new neighbour is told everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.matching.matcher import Matcher
from tamis.routing.distributed.base import SummarisingNode
from tamis.routing.distributed.recent import ServedEvents
from tamis.routing.messages import Entry, Flooded, Key, Message, Output, Passed, Post, Send
from tamis.routing.strategies import strategy_of

if TYPE_CHECKING:
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.routing.base import Strategy


class SubscriptionFlooder(SummarisingNode):
    """A node that knows what everybody wants. `strategy` sums up what others have to know of its own clients.

    >>> import tamis
    >>> from tamis.routing import Publish, Subscribe
    >>> node = SubscriptionFlooder("A")
    >>> _ = node.connect("B", 0.0), node.attach("ann")
    >>> [output.message.version for output in node.receive(Subscribe((Entry(1, tamis.parse("x > 10")),)), "ann", 0.0)]
    [1]
    """

    name_of_strategy: ClassVar[str] = "subscription flooding"
    hears: ClassVar[frozenset[type[Message]]] = frozenset({Flooded, Passed})
    keeps_recent: ClassVar[bool] = True

    def __init__(self, name: str, *args: Any, strategy: str | Strategy = "simple", **settings: Any) -> None:
        super().__init__(name, *args, **settings)
        self._summary = strategy_of(strategy, self._schema).summary()
        self._version = 0
        self._known = Matcher(schema=self._schema)
        self._versions: dict[str, int] = {}
        self._entries: dict[str, dict[Key, Expression]] = {}
        self._waiting: dict[str, dict[int, Flooded]] = {}
        """What came before what it follows, by that version."""
        self._recent = ServedEvents(self.settings)

    def known(self, origin: str) -> dict[Key, Expression]:
        """Return what this node knows of another one's clients."""
        return dict(self._entries.get(origin, {}))

    # -- What own clients want

    def _tell(self, now: float) -> list[Output]:
        changes = self._changes()
        if not changes:
            return []
        before = self._version
        # A node that is started anew begins with a greater version, so that nobody takes it for old.
        self._version = max(before + 1, int(now * 1_000_000))
        flooded = Flooded(self.name, self._version, before, changes.added, changes.removed)
        return [Send(neighbour, flooded) for neighbour in self.neighbours]

    # -- What others want

    def _greet(self, neighbour: str, now: float) -> list[Output]:
        outputs: list[Output] = []
        if self._version:
            outputs.append(Send(neighbour, Flooded(self.name, self._version, 0, self._summary.entries)))
        for origin, version in self._versions.items():
            entries = tuple(Entry(key, filter_) for key, filter_ in self._entries[origin].items())
            outputs.append(Send(neighbour, Flooded(origin, version, 0, entries)))
        return outputs

    def _hear(self, message: Message, source: str, now: float) -> list[Output]:
        if isinstance(message, Passed):
            return self._settle(self.residents.take(message, now), now)
        assert isinstance(message, Flooded)
        if message.origin == self.name or message.version <= self._versions.get(message.origin, 0):
            return []
        waiting = self._waiting.setdefault(message.origin, {})
        if message.since in waiting and waiting[message.since].version >= message.version:
            return []
        waiting[message.since] = message
        while (following := self._following(waiting, self._versions.get(message.origin, 0))) is not None:
            self._apply(following)
        return [Send(neighbour, message) for neighbour in self.neighbours if neighbour != source]

    @staticmethod
    def _following(waiting: dict[int, Flooded], version: int) -> Flooded | None:
        """Take out what can be taken in now: what follows this version, or takes the place of everything."""
        for since in [since for since in waiting if since < version and since]:
            del waiting[since]
        for since in (version, 0):
            if since in waiting and (flooded := waiting.pop(since)).version > version:
                return flooded
        return None

    def _apply(self, flooded: Flooded) -> None:
        entries = self._entries.setdefault(flooded.origin, {})
        removed = list(flooded.removed) if flooded.since else list(entries)
        for key in removed:
            if entries.pop(key, None) is not None:
                self._known.remove((flooded.origin, key))
        for entry in flooded.entries:
            if entry.key in entries:
                self._known.remove((flooded.origin, entry.key))
            entries[entry.key] = entry.condition
            self._known.add((flooded.origin, entry.key), entry.condition)
        self._versions[flooded.origin] = flooded.version

    # -- Events

    def _homes(self, passed: Passed) -> list[str]:
        return list(dict.fromkeys(origin for origin, _ in self._known.match(passed.event))) if len(self._known) else []

    def _publish(self, passed: Passed, now: float) -> list[Output]:
        outputs = self._settle(self.residents.take(passed, now), now)
        homes = self._homes(passed)
        self._recent.push(passed, {self.name, *homes})
        return outputs + [Post(home, passed) for home in homes]

    def _again(self, now: float, clock: float) -> list[Output]:
        """Send what leaves the recent buffer to those who want it now; who was sent it at first tries again itself."""
        outputs: list[Output] = []
        for kept in self._recent.leaving(clock):
            outputs += [Post(home, kept.again) for home in self._homes(kept.passed) if home not in kept.served]
        return outputs

    @property
    def _due(self) -> float:
        return min(super()._due, self._recent.due)

    def advance(self, now: float) -> list[Output]:
        return self._again(now, now) + super().advance(now)

    def try_again(self, number: int, now: float) -> list[Output]:
        return self._again(now, number)
