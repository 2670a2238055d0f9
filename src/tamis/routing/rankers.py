"""Who ranks the events at a broker? A ranker: what a desk needs of the algorithms for the best k.

A *ranker* has the ranked subscriptions of one broker. It is told of events in the order in which they were published,
and of the time, and answers with what enters the best k of whom. `FullSight` is for a broker that is sent every event
which passes a subscription's filter: all of `TopK`'s algorithms do. Where neighbours are told thresholds as well,
`owners` has a ranker that does with what passes those.

Source: the heavyweight processor of Pripužić 2010, section 4.2 (docs/bibliography.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.topk.processor import TopK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.functions import Functions
    from tamis.language.schema import Schema
    from tamis.routing.messages import Key, Passed
    from tamis.topk.ranked import Ranked

Id: TypeAlias = "tuple[str, Key]"
"""A ranked subscription: its client, and what the client calls it."""


class RankedEvent(NamedTuple):
    """An event as a ranker sees it: numbers are in the order in which events come to be ranked."""

    number: int
    at: float
    passed: Passed


class Entrance(NamedTuple):
    """An event enters the best k of a subscription for the first time."""

    id: Id
    number: int
    at: float


class Ranker(ABC):
    """The ranked subscriptions of a broker's clients."""

    @abstractmethod
    def objection(self, ranked: Ranked) -> str | None:
        """Return why a subscription cannot be ranked here; None if it can."""

    @abstractmethod
    def start(self, id: Id, ranked: Ranked, moment: float) -> None:
        """Rank for a subscription from a moment on, with an empty window."""

    @abstractmethod
    def stop(self, id: Id) -> None:
        """Rank for it no longer, if that has begun."""

    @abstractmethod
    def number(self, passed: Passed, at: float) -> int:
        """Return the number of an event that counts as published at a moment; no other event has it."""

    @abstractmethod
    def take(self, events: Sequence[RankedEvent]) -> list[Entrance]:
        """Take events in order of time, and before each of them what leaves."""

    @abstractmethod
    def take_again(self, event: RankedEvent, moment: float) -> list[Entrance]:
        """Take an event that has left its first broker's recent buffer at a moment."""

    @abstractmethod
    def advance(self, moment: float) -> list[Entrance]:
        """Let leave what leaves up to a moment."""

    @property
    @abstractmethod
    def due(self) -> float:
        """When something may leave next; infinite if nothing does."""

    @abstractmethod
    def held(self) -> set[int]:
        """Return the numbers of the events that may still enter."""

    @abstractmethod
    def filter(self, id: Id, ranked: Ranked) -> Expression:
        """Return what others are to know in place of a subscription."""

    @abstractmethod
    def moved(self) -> list[tuple[Id, Expression]]:
        """Return in place of which subscriptions others are to know another filter now."""


class FullSight(Ranker):
    """Ranks everything that passes a subscription's filter, which never moves.

    >>> from tamis.routing.messages import Passed
    >>> from tamis.topk import Ranked
    >>> ranker = FullSight(None, None, {"algorithm": "strict"})
    >>> ranker.start(("ann", "best"), Ranked("price", 1, "5 SECONDS"), 0.0)
    >>> events = [RankedEvent(n, at, Passed(n, {"price": price})) for n, at, price in ((0, 1.0, 7), (1, 2.0, 9))]
    >>> ranker.take(events), ranker.due, ranker.advance(6.0)
    ([Entrance(id=('ann', 'best'), number=0, at=1.0)], 6.0, [Entrance(id=('ann', 'best'), number=1, at=6.0)])
    """

    def __init__(self, schema: Schema | None, functions: Functions | None, settings: Mapping[str, Any]) -> None:
        # An event comes here once, whatever its publisher called it: the broker sees to that.
        self._processor = TopK(**{**settings, "schema": schema, "functions": functions, "remember": 1})
        self._next_number = 0

    def objection(self, ranked: Ranked) -> str | None:
        return None

    def start(self, id: Id, ranked: Ranked, moment: float) -> None:
        self._processor.add(id, ranked)

    def stop(self, id: Id) -> None:
        if id in self._processor:
            self._processor.remove(id)

    def number(self, passed: Passed, at: float) -> int:
        self._next_number += 1
        return self._next_number - 1

    def take(self, events: Sequence[RankedEvent]) -> list[Entrance]:
        if len(events) == 1:
            number, at, passed = events[0]
            deliveries = self._processor.process(passed.event, at, number)
        else:
            deliveries = self._processor.process_batch(
                [each.passed.event for each in events],
                [each.at for each in events],
                [each.number for each in events],
            )
        return [Entrance(*each) for each in deliveries]

    def take_again(self, event: RankedEvent, moment: float) -> list[Entrance]:
        return []

    def advance(self, moment: float) -> list[Entrance]:
        return [Entrance(*each) for each in self._processor.advance(moment)]

    @property
    def due(self) -> float:
        return self._processor.due

    def held(self) -> set[int]:
        ids = self._processor._ids
        return {ids[number] for number in self._processor._engine.held()}

    def filter(self, id: Id, ranked: Ranked) -> Expression:
        return ranked.where

    def moved(self) -> list[tuple[Id, Expression]]:
        return []
