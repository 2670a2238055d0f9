"""Who ranks the events at a broker, and what do others know of the thresholds? A ranker.

A *ranker* has the ranked subscriptions of one broker's clients. It is told of events in the order in which they were
published, and of the time, and answers with what enters the best k of whom: `TopK`, with whatever algorithm the broker
was given.

Without a policy, neighbours know a subscription's own filter, so every event that passes it comes here. With a policy
they know a threshold besides, and what is beyond it does not come. Then two things have to be made up for. A
probabilistic ranking cannot count the events of its window any more; so brokers number their events, and the numbers of
those that do come tell how many there were. And behind a filter over the recent buffer, an event that was not sent may
be needed later; so whoever published it sends it again when it has left the buffer (`recent`).

Source: the heavyweight processor of Pripužić 2010, section 4.2, and second attempts, section 5.2.2
(docs/bibliography.md).
Departs: how many events there were in a window is estimated from numbers that travel with events; the text does not say
how a home learns of it.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.errors import TamisError
from tamis.language.meaning import value
from tamis.routing.errors import DeskSettingError
from tamis.topk.ageing import check_order
from tamis.topk.owner import estimated_window
from tamis.topk.processor import TopK
from tamis.topk.recent_buffer import buffer_size
from tamis.topk.windows import CountWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.functions import Functions
    from tamis.language.schema import Schema
    from tamis.routing.messages import Key, Passed
    from tamis.topk.delivery import Delivery
    from tamis.topk.policies import Policy
    from tamis.topk.ranked import Ranked

Id: TypeAlias = "tuple[str, Key]"
"""A ranked subscription: its client, and what the client calls it."""
_GIVEN_TO_THE_BROKER = {"schema", "functions", "lateness", "remember", "buffer_s"}


class RankedEvent(NamedTuple):
    """An event as a ranker sees it, under a number of the ranker's own, and the moment from which windows count it."""

    number: int
    at: float
    passed: Passed


class Ranker:
    """The ranked subscriptions of a broker's clients.

    >>> from tamis.routing.messages import Passed
    >>> from tamis.topk import Ranked
    >>> ranker = Ranker(None, None, {"algorithm": "strict"}, None, None)
    >>> ranker.start(("ann", "best"), Ranked("price", 1, "5 SECONDS"), 0.0)
    >>> events = [RankedEvent(n, at, Passed(n, {"price": price})) for n, at, price in ((0, 1.0, 7), (1, 2.0, 9))]
    >>> ranker.take(events), ranker.due
    ([Delivery(subscription=('ann', 'best'), event=0, at=1.0)], 6.0)
    >>> ranker.advance(6.0)
    [Delivery(subscription=('ann', 'best'), event=1, at=6.0)]
    """

    def __init__(
        self,
        schema: Schema | None,
        functions: Functions | None,
        settings: Mapping[str, Any],
        policy: Callable[..., Policy] | None,
        buffer_s: float | None,
    ) -> None:
        self._schema = schema
        self._policy = policy
        self._policies: dict[Id, Policy] = {}
        self._settings = _checked(settings, policy, buffer_s)
        self._is_filtered = self._settings.get("filter") is not None
        self._guesses = "probabilistic" in (self._settings["algorithm"], self._settings.get("filter"))
        # An event comes here once, whatever its publisher called it, unless it comes for the second time.
        remembered: dict[str, Any] = {} if self._is_filtered else {"remember": 1}
        self._processor = TopK(**self._settings, schema=schema, functions=functions, **remembered)
        self._next_number = 0
        self._numbered: dict[str, _Numbered] = {}
        self._longest_s = 0.0
        self._known_from: dict[Id, float] = {}
        """Others know of no threshold before this: a probabilistic one is not reliable before a window has passed."""
        self._moment = -inf
        self._has_changed = False

    # -- Subscriptions

    def objection(self, ranked: Ranked) -> str | None:
        """Return why a subscription cannot be ranked here; None if it can."""
        if self._policy is not None and isinstance(ranked.window, CountWindow):
            return (
                f"{ranked.window} need to see every event, and brokers that know a threshold do not send all; choose "
                "an algorithm without threshold for this broker, or a time window"
            )
        try:
            ranked.checked(self._schema)
            check_order(ranked, self._settings["algorithm"])
            if self._is_filtered:
                buffer_size(ranked.window, self._processor.settings.buffer, self._processor.settings.buffer_s)
            if self._policy is not None:
                self._policy(ranked, schema=self._schema)
        except TamisError as error:
            return str(error)
        return None

    def register(self, id: Id, ranked: Ranked) -> None:
        """Know of a subscription, for which it is not ranked yet."""
        if self._policy is not None:
            self._policies[id] = self._policy(ranked, schema=self._schema)
            self._longest_s = max(self._longest_s, ranked.window.span)

    def start(self, id: Id, ranked: Ranked, moment: float) -> None:
        """Rank for a subscription from a moment on, with an empty window."""
        self._processor.add(id, ranked)
        if id in self._policies:
            self._known_from[id] = moment + ranked.window.span if self._guesses else moment

    def stop(self, id: Id) -> None:
        """Forget a subscription, and rank for it no longer if that has begun."""
        self._policies.pop(id, None)
        self._known_from.pop(id, None)
        if id in self._processor:
            self._processor.remove(id)

    # -- Events

    def next_number(self) -> int:
        """Return a number that no event has had."""
        self._next_number += 1
        return self._next_number - 1

    def take(self, events: Sequence[RankedEvent]) -> list[Delivery]:
        """Take events in order of time, and before each of them what leaves."""
        if self._policies:
            return [entrance for each in events for entrance in self._taken(each)]
        if len(events) == 1:
            return self._taken(events[0])
        return self._processor.process_batch(
            [each.passed.event for each in events], [each.at for each in events], [each.number for each in events]
        )

    def _taken(self, event: RankedEvent) -> list[Delivery]:
        number, at, passed = event
        self._moment = max(self._moment, at)
        if self._policies:
            self._has_changed = True
            self._note_times(passed)
            if self._guesses:
                self._expect(event)
        return self._processor.process(passed.event, at, number)

    def take_again(self, event: RankedEvent, moment: float) -> list[Delivery]:
        """Take an event that has left its first broker's recent buffer at a moment."""
        if not self._is_filtered:
            return []
        self._has_changed = True
        number, at, passed = event
        return self._processor.retry(passed.event, moment, number, published=at)

    def advance(self, moment: float) -> list[Delivery]:
        """Let leave what leaves up to a moment."""
        self._has_changed = True
        self._moment = max(self._moment, moment)
        return self._processor.advance(moment)

    @property
    def due(self) -> float:
        """When something may leave next; infinite if nothing does."""
        return self._processor.due

    def held(self) -> set[int]:
        """Return the numbers of the events that may still enter."""
        return self._processor.held()

    # -- What others know

    def filter(self, id: Id, ranked: Ranked) -> Expression:
        """Return what others are to know in place of a subscription."""
        return self._policies[id].filter() if id in self._policies else ranked.where

    def threshold(self, id: Id) -> float:
        """Return the key beyond which an event would change nothing; infinite where every event may."""
        if id not in self._processor:
            return inf
        threshold = self._processor.threshold(id)
        return threshold if getattr(self._processor.wanted(id), "is_ascending", True) else -threshold

    def moved(self) -> list[tuple[Id, Expression]]:
        """Return in place of which subscriptions others are to know another filter now."""
        if not self._has_changed:
            return []
        self._has_changed = False
        moved = []
        for id, policy in self._policies.items():
            is_known = id in self._known_from and self._known_from[id] <= self._moment
            if is_known and policy.moved(self.threshold(id)):
                moved.append((id, policy.filter()))
        return moved

    def _note_times(self, passed: Passed) -> None:
        """Find out whose scores are times, before others know a threshold; the schema may not say."""
        if self._schema is None:
            for id, policy in self._policies.items():
                if policy.known == inf and not policy.reads_times and id in self._processor:
                    score = getattr(self._processor.wanted(id), "score", None)
                    if score is not None and isinstance(value(score, passed.event), dt.date):
                        policy.reads_times = True

    def _expect(self, event: RankedEvent) -> None:
        """Estimate how many events there are in each window, by the numbers of those that were seen."""
        passed = event.passed
        numbered = self._numbered.setdefault(passed.origin, _Numbered())
        numbered.note(passed.at, passed.number, event.at - self._longest_s)
        for id in self._policies:
            if id in self._processor:
                span = getattr(self._processor.wanted(id), "window").span  # noqa: B009 (it is ranked)
                begin = event.at - span
                self._processor.expect(id, estimated_window([each.since(begin) for each in self._numbered.values()]))


class _Numbered:
    """What numbers of one broker's events were seen, and when."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._numbers: list[int] = []

    def note(self, at: float, number: int, needed_from: float) -> None:
        place = bisect_right(self._times, at)
        if number:
            self._times.insert(place, at)
            self._numbers.insert(place, number)
        unneeded = bisect_right(self._times, needed_from) - 1
        if unneeded > 0:
            del self._times[:unneeded], self._numbers[:unneeded]

    def since(self, begin: float) -> tuple[float, float]:
        """Return the number of the last event, and of the last one before a moment."""
        if not self._numbers:
            return 0, 0
        place = bisect_right(self._times, begin)
        return self._numbers[-1], self._numbers[place - 1] if place else self._numbers[0] - 1


def _checked(
    settings: Mapping[str, Any], policy: Callable[..., Policy] | None, buffer_s: float | None
) -> dict[str, Any]:
    """Return the settings of the processor, or raise if they do not go together."""
    chosen = {"algorithm": "block", **settings}
    if unsuitable := sorted(chosen.keys() & _GIVEN_TO_THE_BROKER):
        raise DeskSettingError(
            f"ranked has {', '.join(unsuitable)}", "what concerns the algorithm; the broker has the rest"
        )
    is_filtered = chosen.get("filter") is not None
    if policy is not None:
        if not is_filtered and chosen["algorithm"] != "probabilistic":
            raise DeskSettingError(
                f"a policy for thresholds, and the algorithm {chosen['algorithm']!r}, which has none",
                "'probabilistic', 'strict' or 'relaxed' with a filter, or no policy",
            )
        if is_filtered and buffer_s is None:
            raise DeskSettingError(
                "a policy for thresholds of a filter, and no buffer_s",
                "buffer_s, how long events stay in the recent buffer",
            )
        if chosen["algorithm"] == "probabilistic":
            if chosen.get("guard"):
                raise DeskSettingError(
                    "a policy for thresholds, and a guard", "guard=False, because a guard has to see all events"
                )
            chosen["guard"] = False
    if is_filtered and buffer_s is not None:
        chosen["buffer_s"] = buffer_s
    return chosen
