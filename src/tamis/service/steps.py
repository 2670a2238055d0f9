"""Which steps of its subscribers' sequences does a node ask its neighbours for? With a setting, those of use just now.

A sequence is matched here by what all of its steps match together, always. Neighbours are asked for its first step
only, while no run of it can be open: from when an event for the first step was taken until WITHIN has passed, they are
asked for all steps (`routing.steps`, which says what that saves, and what it may lose). What a subscriber is told stays
a function of the log; what changes is which events of others come into it.

Events for first steps are looked for whether the subscriber is there or not. Which runs were open before a start is not
known, so for as long as one may be, all steps are asked for.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tamis.routing import StepRequests, Subscribe
from tamis.standing import Sequence

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence as Listed

    from tamis.language.schema import Schema
    from tamis.routing import Broker
    from tamis.routing.messages import Output as RoutingOutput
    from tamis.service.interest import Hits
    from tamis.service.subscribers import Version

_SLACK_S = 1.0
"""So much longer are steps asked for: what was on its way comes at once, and need not have been asked for anew."""


class Steps:
    """What neighbours are asked for in the place of the sequences of this node's subscribers."""

    def __init__(self, broker: Broker, schema: Schema | None) -> None:
        self._broker = broker
        self._requests = StepRequests(while_open=True, lateness=_SLACK_S, schema=schema)
        self._numbers: dict[tuple[str, str], int] = {}
        self._places: dict[int, tuple[str, str]] = {}
        self._names: Counter[str] = Counter()
        self._count = 0

    def follows(self, name: str) -> bool:
        """Must it be known which events a subscriber's subscriptions want, whether it is there or not?"""
        return self._names[name] > 0

    def take(self, name: str, version: Version, now: float, *, may_be_open: bool = False) -> list[RoutingOutput]:
        """Take a subscription before the broker does; return what neighbours are told. Runs may be open already."""
        place = name, version.key
        was_here = place in self._numbers
        self.forget(name, version.key)
        wanted = version.effective
        if isinstance(wanted, Sequence) and not wanted.is_absence:
            self._count += 1
            self._numbers[place], self._places[self._count] = self._count, place
            self._names[name] += 1
            self._requests.add(self._count, wanted)
            if may_be_open:
                self._requests.assume_open(self._count, now)
            return self._said(now)
        return self._broker.ask_for(name, version.key, version.filter, now) if was_here else []

    def forget(self, name: str, key: str) -> None:
        """Forget a subscription; the broker does so by itself."""
        number = self._numbers.pop((name, key), None)
        if number is not None:
            del self._places[number]
            self._names[name] -= 1
            self._names += Counter()  # without those that have none any more
            self._requests.remove(number)
            self._requests.messages()  # which would take it back

    def see(self, hits: Hits, records: Listed[Mapping[str, Any]], at_s: float) -> None:
        """Take note of which events of a group subscribers want."""
        for name in self._names:
            for index, keys in hits.get(name, ()):
                numbers = [self._numbers[name, key] for key in keys if (name, key) in self._numbers]
                self._requests.see(numbers, records[index], at_s)

    def due(self, now: float) -> list[RoutingOutput]:
        """Return what neighbours are told now: runs may have begun, or be over."""
        self._requests.advance(now)
        return self._said(now)

    def _said(self, now: float) -> list[RoutingOutput]:
        outputs: list[RoutingOutput] = []
        for message in self._requests.messages():
            if isinstance(message, Subscribe):  # the only ones: the first step is asked for in any case
                for entry in message.entries:
                    assert isinstance(entry.key, int)
                    outputs += self._broker.ask_for(*self._places[entry.key], entry.condition, now)
        return outputs
