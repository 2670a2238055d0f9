"""Which of a broker's own clients want the best k? The desk.

A ranked subscription lives at its client's broker. There its window is kept, and there it is decided which event its
client is told of, and when: at the event's arrival, or long after it, when a better one leaves the window. Nobody else
hears that it is ranked. To everybody but its home, a ranked subscription is a Boolean filter that moves, and with a
ranker that sees everything it does not even move.

Windows go by the time at which an event was published, wherever that was, and events may overtake each other on their
ways. So everything waits for `lateness_s` at the desk, and goes on in order of time: events, withdrawals, and the
moments from which subscriptions count. What comes later than that counts as published at the latest moment that was
settled: it is told late rather than never, and counted (`late_count`).

A client is told of an event once, by whichever of its subscriptions wants it first, the Boolean ones included.

Source: Pripužić 2010, section 2.3 (who is told what, and withdrawing), and sections 6.3.1 and 6.3.3: ranked
subscriptions at a subscriber's broker (docs/bibliography.md).
Departs: windows go by the time of publication and not by that of arrival, so that the answer does not depend on ways.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.meaning import holds
from tamis.routing.errors import DeskSettingError
from tamis.routing.rankers import RankedEvent, Ranker
from tamis.topk.windows import CountWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.functions import Functions
    from tamis.language.schema import Schema
    from tamis.routing.messages import Key, Passed, Publish
    from tamis.routing.rankers import Id
    from tamis.topk.delivery import Delivery
    from tamis.topk.policies import Policy
    from tamis.topk.ranked import Ranked

_EVENTS_KEPT_ANYWAY = 4096
"""Below so many events it does not pay to look which of them may still be told."""


class RankedDelivery(NamedTuple):
    """Clients are to be told of an event, because of these ranked subscriptions, at a moment of their windows."""

    publication: Publish
    clients: dict[str, list[Key]]
    at: float


@dataclass(frozen=True, slots=True, eq=False)
class _Start:
    """A subscription counts from a moment on; one that was made again under the same key is another one."""

    id: Id
    ranked: Ranked
    moment: float


class _Withdrawal(NamedTuple):
    key: Key


class _Second(NamedTuple):
    passed: Passed


class Desk:
    """The ranked subscriptions of a broker's clients, and what there is to tell them.

    >>> from tamis.routing.messages import Passed
    >>> from tamis.topk import Ranked
    >>> desk = Desk()
    >>> desk.add("ann", "best", Ranked("price", 1, "5 SECONDS"), now=0.0)
    >>> desk.take(Passed("dear", {"price": 9}, at=1.0), now=1.0)
    [RankedDelivery(publication=Publish(key='dear', event=...), clients={'ann': ['best']}, at=1.0)]
    >>> [told.publication.key for told in desk.take(Passed("cheap", {"price": 7}, at=2.0), now=2.0)]
    ['cheap']
    >>> desk.take(Passed("middle", {"price": 8}, at=3.0), now=3.0), desk.due <= 7.0
    ([], True)
    >>> [told.publication.key for told in desk.advance(7.0)]
    ['middle']
    """

    def __init__(
        self,
        schema: Schema | None = None,
        functions: Functions | None = None,
        ranked: Mapping[str, Any] | None = None,
        policy: Callable[..., Policy] | None = None,
        buffer_s: float | None = None,
        lateness_s: float = 0.0,
        spread_s: float = 0.0,
    ) -> None:
        self._schema = schema
        self._lateness_s = _seconds("lateness_s", lateness_s)
        self._spread_s = _seconds("spread_s", spread_s)
        self.buffer_s = None if buffer_s is None else _seconds("buffer_s", buffer_s)
        self.late_count = 0
        """How many events came later than the desk waits, and so counted as published later than they were."""
        self._ranker = Ranker(schema, functions, ranked or {}, policy, self.buffer_s)
        self._wanted: dict[str, dict[Key, Ranked]] = {}
        self._count_windows = 0
        self._queue: list[tuple[float, int, RankedEvent | _Start | _Withdrawal | _Second]] = []
        self._queued = 0
        self._settled = -math.inf
        """What is published before this has been ranked."""
        self._starts: dict[Id, _Start] = {}
        self._latest_start = -math.inf
        """From here on, all subscriptions that there were count what is published."""
        self._events: dict[int, RankedEvent] = {}
        self._numbers: dict[Key, int] = {}
        self._ends: dict[int, float] = {}
        """When events were withdrawn."""
        self._told: dict[str, set[int]] = {}
        """Of which events clients were told that could be told again, because they have several subscriptions."""
        self._kept = 0

    # -- Subscriptions

    def __len__(self) -> int:
        """How many ranked subscriptions there are."""
        return sum(map(len, self._wanted.values()))

    def __bool__(self) -> bool:
        return bool(self._wanted)

    def of(self, client: str) -> dict[Key, Ranked]:
        """Return a client's ranked subscriptions."""
        return dict(self._wanted.get(client, {}))

    def wanted(self, client: str, key: Key) -> Ranked | None:
        """Return what a client wants the best of under a key; None if there is nothing ranked."""
        return self._wanted[client].get(key) if client in self._wanted else None

    def objection(self, ranked: Ranked) -> str | None:
        """Return why a subscription cannot be had here; None if it can.

        >>> import tamis
        >>> from tamis.topk import Ranked
        >>> Desk(tamis.Schema({"price": "double"})).objection(Ranked("rent", 1, "1 HOUR"))
        'there is no attribute rent...'
        """
        return self._ranker.objection(ranked)

    def add(self, client: str, key: Key, ranked: Ranked, now: float) -> None:
        """Take a subscription under a new key. Its window is empty, and it counts what is published from now on."""
        self._wanted.setdefault(client, {})[key] = ranked
        self._count_windows += isinstance(ranked.window, CountWindow)
        self._ranker.register((client, key), ranked)
        start = self._starts[client, key] = _Start((client, key), ranked, now + self._spread_s)
        self._latest_start = max(self._latest_start, start.moment)
        self._wait(start.moment, start)
        if not self._spread_s and not self._lateness_s:
            self._rank_what_has_waited(now)

    def remove(self, client: str, key: Key) -> None:
        """Forget a subscription, if there is one under a key, and with it its window."""
        ranked = self._wanted.get(client, {}).pop(key, None)
        if ranked is None:
            return
        self._count_windows -= isinstance(ranked.window, CountWindow)
        del self._starts[client, key]
        self._ranker.stop((client, key))
        if not self._wanted[client]:
            del self._wanted[client]
            self._told.pop(client, None)
        if not self._wanted:
            self._forget_all()

    def forget(self, client: str) -> None:
        """Forget a client."""
        for key in self.of(client):
            self.remove(client, key)

    def filter(self, client: str, key: Key) -> Expression:
        """Return what others are to know in place of a subscription."""
        return self._ranker.filter((client, key), self._wanted[client][key])

    def threshold(self, client: str, key: Key) -> float:
        """Return beyond which key an event would change nothing for a subscription, now or later.

        Infinite where every event may: under an algorithm without a threshold, and before anything was ranked.
        """
        return self._ranker.threshold((client, key))

    def moved(self) -> list[tuple[str, Key, Expression]]:
        """Return what others are to know from now on in place of subscriptions whose thresholds have moved."""
        if not self._wanted:
            return []
        return [(*id, expression) for id, expression in self._ranker.moved() if self.wanted(*id) is not None]

    def may_want(self, event: Mapping[str, Any]) -> bool:
        """Does an event pass the filter of any subscription?"""
        wheres = {ranked.where for wanted in self._wanted.values() for ranked in wanted.values()}
        return any(holds(where, event, self._schema) for where in wheres)

    # -- Events

    def take(
        self, passed: Passed, now: float, served: Collection[str] = (), *, is_withdrawn: bool = False
    ) -> list[RankedDelivery]:
        """Take an event, or one that comes for the second time; return whom to tell of what.

        `served` are the clients who are told of it in any case, because of subscriptions that are not ranked.
        """
        (tellings,) = self.take_many([passed], now, [served], [passed.key] if is_withdrawn else ())
        return tellings

    def take_many(
        self,
        group: Sequence[Passed],
        now: float,
        served: Sequence[Collection[str]],
        withdrawn: Collection[Key] = (),
    ) -> list[list[RankedDelivery]]:
        """Do what `take` does with each event in turn; return for each whom to tell of what."""
        if not self._wanted:
            return [[] for _ in group]
        if len(group) == 1 or self._lateness_s or self._count_windows or any(each.attempt == 2 for each in group):
            return [
                self._taken_singly(passed, now, clients, passed.key in withdrawn)
                for passed, clients in zip(group, served, strict=True)
            ]
        steps = [self._enter(passed, now, passed.key in withdrawn) for passed in group]
        moments = [each.at for each in steps]
        places = {each.number: step for step, each in enumerate(steps)}
        entrances: list[list[Delivery]] = [[] for _ in group]
        last_number, last_at, step = -1, -math.inf, 0
        for entrance in self._rank_what_has_waited(now):
            if entrance.event != last_number or entrance.at != last_at:
                last_number, last_at = entrance.event, entrance.at
                arrival = places.get(last_number)
                if arrival is None or last_at > moments[arrival]:  # a better one has left before the next event came
                    arrival = min(bisect_right(moments, last_at), len(group) - 1)
                step = arrival
            entrances[step].append(entrance)
        tellings: list[list[RankedDelivery]] = []
        for step, clients in enumerate(served):
            tellings.append(self._telling(entrances[step]))
            self._note_served(steps[step].number, clients)
        self._forget_some()
        return tellings

    def _taken_singly(
        self, passed: Passed, now: float, served: Collection[str], is_withdrawn: bool
    ) -> list[RankedDelivery]:
        if passed.attempt == 2:
            left = min(passed.at + (self.buffer_s or 0.0), now)
            self._wait(max(left, self._settled), _Second(passed))
            return self._telling(self._rank_what_has_waited(now))
        number = self._enter(passed, now, is_withdrawn).number
        tellings = self._telling(self._rank_what_has_waited(now))
        self._note_served(number, served)
        self._forget_some()
        return tellings

    def _enter(self, passed: Passed, now: float, is_withdrawn: bool) -> RankedEvent:
        """Let an event wait for its turn."""
        at = min(passed.at, now)  # nothing is published after it came
        if at < self._settled:
            at = self._settled
            self.late_count += 1
        event = RankedEvent(self._ranker.next_number(), at, passed)
        self._events[event.number] = event
        self._numbers[passed.key] = event.number
        if is_withdrawn:
            self._ends[event.number] = -math.inf
        self._wait(at, event)
        return event

    def withdraw(self, key: Key, at: float, now: float) -> list[RankedDelivery]:
        """Tell nobody of an event from a moment on. It keeps its place in all windows."""
        if not self._wanted:
            return []
        self._wait(max(min(at, now), self._settled), _Withdrawal(key))
        return self._telling(self._rank_what_has_waited(now))

    def advance(self, now: float) -> list[RankedDelivery]:
        """Let the time pass, up to and including now; return whom to tell of what."""
        entrances = self._rank_what_has_waited(now)
        while (due := self._ranker.due) + self._lateness_s <= now:
            entrances += self._ranker.advance(due)
            self._settled = max(self._settled, due)
            if not due < self._ranker.due:
                break
        return self._telling(entrances)

    @property
    def due(self) -> float:
        """When `advance` has something to do next; infinite if it never has, unless something comes."""
        waiting = self._queue[0][0] if self._queue else math.inf
        return min(waiting, self._ranker.due) + self._lateness_s

    # -- In order of time

    def _wait(self, moment: float, change: RankedEvent | _Start | _Withdrawal | _Second) -> None:
        self._queued += 1
        heappush(self._queue, (moment, self._queued, change))

    def _rank_what_has_waited(self, now: float) -> list[Delivery]:
        """Take all that nothing earlier can come before any more, consecutive events together."""
        entrances: list[Delivery] = []
        events: list[RankedEvent] = []
        while self._queue and self._queue[0][0] + self._lateness_s <= now:
            moment, _, change = heappop(self._queue)
            if isinstance(change, RankedEvent | _Second):
                self._settled = max(self._settled, moment)
            if isinstance(change, RankedEvent):
                events.append(change)
                continue
            if events:
                entrances += self._ranker.take(events)
                events = []
            match change:
                case _Start(id, ranked):
                    if self._starts.get(id) is change:  # it may be gone by now
                        self._ranker.start(id, ranked, moment)
                case _Withdrawal(key):
                    if (number := self._numbers.get(key)) is not None:
                        self._ends[number] = min(moment, self._ends.get(number, math.inf))
                case _Second(passed):
                    entrances += self._ranker.take_again(self._known(passed), moment)
        return entrances + (self._ranker.take(events) if events else [])

    def _known(self, passed: Passed) -> RankedEvent:
        """Return an event that comes for the second time under the number that it has."""
        number = self._numbers.get(passed.key)
        if number is not None:
            return self._events[number]
        event = RankedEvent(self._ranker.next_number(), min(passed.at, self._settled), passed)
        self._events[event.number], self._numbers[passed.key] = event, event.number
        return event

    # -- Whom to tell

    def _telling(self, entrances: Iterable[Delivery]) -> list[RankedDelivery]:
        """Return whom to tell of what: of events that were not withdrawn, once for a client.

        Hundreds may enter with one event, so all that concerns the event is looked at once for those that follow each
        other; what is left for each is to find its client.
        """
        tellings: dict[tuple[int, float], RankedDelivery] = {}
        wanted, remembered = self._wanted, self._told
        last_number, last_at = -1, -math.inf
        clients: dict[str, list[Key]] = {}
        is_withdrawn = comes_late = False
        published_at = -math.inf
        for id, number, at in entrances:
            if number != last_number or at != last_at:
                last_number, last_at = number, at
                passed = self._events[number].passed
                is_withdrawn = bool(self._ends) and self._ends.get(number, math.inf) <= at
                published_at, comes_late = passed.at, passed.at < self._latest_start
                telling = tellings.get((number, at))
                if telling is None:
                    telling = tellings[number, at] = RankedDelivery(passed.published, {}, at)
                clients = telling.clients
            if is_withdrawn or (comes_late and published_at < self._starts[id].moment):
                continue  # in vain, or it was published before the subscription counted
            client, key = id
            if client in clients:
                clients[client].append(key)
                continue
            numbers = remembered.get(client)
            if numbers is None and len(wanted[client]) > 1:
                numbers = remembered[client] = set()
            if numbers is not None:
                if number in numbers:
                    continue
                numbers.add(number)
            clients[client] = [key]
        return [telling for telling in tellings.values() if telling.clients]

    def _note_served(self, number: int, clients: Iterable[str]) -> None:
        for client in clients:
            if client in self._wanted:
                self._told.setdefault(client, set()).add(number)

    def _forget_some(self) -> None:
        """Forget the events that nobody can be told of any more, whenever they have become twice as many."""
        if len(self._events) <= max(_EVENTS_KEPT_ANYWAY, 2 * self._kept):
            return
        held = self._ranker.held()
        held.update(change.number for _, _, change in self._queue if isinstance(change, RankedEvent))
        for number in [number for number in self._events if number not in held]:
            key = self._events.pop(number).passed.key
            if self._numbers.get(key) == number:
                del self._numbers[key]
            self._ends.pop(number, None)
        for numbers in self._told.values():
            numbers &= held
        self._kept = len(self._events)

    def _forget_all(self) -> None:
        self._queue.clear()
        self._events.clear()
        self._numbers.clear()
        self._ends.clear()
        self._told.clear()


def _seconds(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise DeskSettingError(f"{name} is {value!r:.40}", "a number of seconds, 0 or more")
    return float(value)
