"""Which subscriptions live here, and what is there to tell them? Residents of a node, Boolean and ranked.

Subscriptions live where they are matched: a client's at its own node, or at the node where they meet their events. A
Boolean one is told of every event that it matches. A ranked one has its window here (`topk.owner`): it may be told of
an event that came long ago, because a better one left.

Windows go by when an event was published. Those that count events go by the number of a publication, if somebody
numbers all of them (as a simulator can), and else by how many have come here that pass the subscription's filter; that
is right only where all of these come here.

Behind a filter over the recent buffer an event is tried a second time. Residents keep what came at first and try it
again themselves, unless somebody sends all of it again; what did not come at first is sent by whoever published it.

Events may overtake each other, and a ranking takes them in order of publication. So what is to be ranked waits for
`lateness_s`; Boolean subscriptions do not wait. What comes still later counts as published at the latest moment that
was settled: it is told late rather than never, and counted (`late_count`).

Source: Pripužić 2010, sections 4.2, 6.3 and 6.4 (docs/bibliography.md).
"""

from __future__ import annotations

import struct
import zlib
from bisect import bisect_left
from collections import OrderedDict, deque
from heapq import heapify, heappop, heappush
from math import inf, isfinite, nextafter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.errors import TamisError
from tamis.language.expressions import TRUE, Expression
from tamis.matching.matcher import Matcher
from tamis.routing.distributed.recent import put_in_order
from tamis.routing.errors import DeskSettingError, MessageError
from tamis.routing.memory import LatestKeys
from tamis.routing.messages import Deposit, Deposited, Key, Passed, TakeBack
from tamis.topk.owner import Owner, estimated_window
from tamis.topk.ranked import Ranked
from tamis.topk.saving import resume, state_of
from tamis.topk.scores import key as key_of
from tamis.topk.settings import TopKSettings
from tamis.topk.windows import TimeWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tamis.language.schema import Schema
    from tamis.topk.policies import Policy

Who: TypeAlias = tuple[str, str, Key]
"""Whose a subscription is: the node at home, the client, and what the client calls it."""
_SEEN_SINCE = 10_000
"""So many attempts of events are remembered that may come by two ways: far more than are under way."""
_HELD_ANYWAY = 256
"""Below so many events it does not pay to look which of them rankings still refer to."""


class Satisfied(NamedTuple):
    """An event that a subscription is to be told of."""

    who: Who
    publication: Passed


class RankingSettings(NamedTuple):
    """How ranked subscriptions are kept.

    algorithm    one that keeps a ranking for each subscription
    ranking      what may be chosen of it: its filter, gamma, sigma
    buffer       how long events stay in recent buffers: seconds, or publications where these are numbered; None: not
                 at all
    is_numbered  whether somebody numbers all publications, and says so
    lateness_s   how long events wait to be ranked, for others that were published earlier
    spread_s     a ranked subscription counts what is published so long after it was made: when all know of it
    """

    algorithm: str = "strict"
    ranking: TopKSettings = TopKSettings()
    buffer: float | None = None
    is_numbered: bool = False
    lateness_s: float = 0.0
    spread_s: float = 0.0

    def check(self) -> None:
        """Raise an error if the settings do not go together.

        >>> RankingSettings(is_numbered=True, lateness_s=1.0).check()
        Traceback (most recent call last):
            ...
        tamis.routing.errors.DeskSettingError: events are numbered, and wait 1.0 seconds; expected one of the two: ...
        """
        for name, seconds in (("lateness_s", self.lateness_s), ("spread_s", self.spread_s)):
            if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < inf:
                raise DeskSettingError(f"{name} is {seconds!r:.40}", "a number of seconds, 0 or more")
        if self.is_numbered and self.lateness_s:
            raise DeskSettingError(
                f"events are numbered, and wait {self.lateness_s} seconds",
                "one of the two: whoever numbers events lets them come in order",
            )

    def objection(self, ranked: Ranked, *, sees_all: bool) -> str | None:
        """Return why a ranked subscription cannot be kept by who sees all, or what its threshold lets in.

        >>> ranked = Ranked.parse("TOP 1 BY x OVER 9 EVENTS")
        >>> print(RankingSettings("probabilistic").objection(ranked, sees_all=False)[:43])
        a count window needs to see every event; ch
        """
        if ranked.half_life_s is not None:
            return f"a score with a half life is ranked by brokers, and not by these nodes: {ranked}"
        is_timed = isinstance(ranked.window, TimeWindow)
        goes_by_number = self.is_numbered and not is_timed and ranked.where == TRUE
        has_threshold = self.algorithm == "probabilistic" or self.ranking.filter is not None
        if has_threshold and not (is_timed or goes_by_number or sees_all):
            return (
                "a count window needs to see every event; choose an algorithm without threshold, or a time window "
                f"instead of {ranked.window}"
            )
        if self.ranking.filter is None:
            return None
        if self.buffer is None:
            return "a filter needs a recent buffer; say how long it is"
        if not (goes_by_number if self.is_numbered else is_timed):
            return f"recent buffers go by {'number' if self.is_numbered else 'time'}, and {ranked.window} do not"
        if 2 * self.buffer > ranked.window.span + (not is_timed):
            return f"the recent buffer of {self.buffer:g} is longer than half of {ranked.window}"
        return None


class _Resident:
    """A subscription, and if it is ranked, its window."""

    __slots__ = (
        "at", "first_tries", "handle", "number", "owner", "policy", "positions", "seen", "since", "waiting", "wanted",
        "who",
    )  # fmt: skip

    def __init__(self, handle: int, who: Who, wanted: Expression | Ranked, number: int) -> None:
        self.handle, self.who, self.wanted, self.number = handle, who, wanted, number
        self.owner: Owner | None = None
        self.policy: Policy | None = None
        self.at, self.since = -inf, 0
        """From when on it counts, and the number of the next publication then: nothing that was published before."""
        self.waiting: list[tuple[float, int, Passed]] = []
        """What is to be ranked, by its moment."""
        self.first_tries: deque[tuple[float, int]] = deque()
        """What its filter may hold: when and as which number it was published."""
        self.positions = 0
        self.seen: LatestKeys | None = None
        """If it has moved here, the attempts of events that have come since: they may come by two ways."""


class Residents:
    """The subscriptions that live at a node.

    >>> import tamis
    >>> residents = Residents(RankingSettings())
    >>> residents.add(("A", "ann", 1), Ranked.parse("TOP 1 BY price OVER 1 HOUR"), now=0.0)
    >>> passed = [Passed(f"e{price}", {"price": price}, float(at), "A", at) for at, price in enumerate((5, 7, 3), 1)]
    >>> [[satisfied.publication.key for satisfied in residents.take(each, each.at)] for each in passed]
    [['e5'], [], ['e3']]
    """

    def __init__(
        self,
        settings: RankingSettings,
        schema: Schema | None = None,
        policy: Callable[[Ranked], Policy] | None = None,
        *,
        keeps_recent: bool = False,
    ) -> None:
        """With a policy, `moved` says whose thresholds have moved. `keeps_recent`: the buffer is here."""
        self._settings = settings
        self._schema = schema
        self._policy = policy
        self._keeps_recent = keeps_recent and settings.ranking.filter is not None
        self._matcher = Matcher(schema=schema)
        self._open: dict[int, None] = {}
        self._residents: dict[int, _Resident] = {}
        self._handles: dict[Who, int] = {}
        self._next_handle = 0
        self._held: dict[int, Passed] = {}
        self._kept = 0
        self._recent: deque[Passed] = deque()
        self._moved: dict[Who, None] = {}
        self._origins: dict[str, deque[tuple[float, int]]] = {}
        """Of each origin, when it published what: for a guess of how many events windows hold."""
        self._elapsed = -inf
        self._waited = 0
        self.late_count = 0
        """How many events came later than they are waited for, and so count as published later than they were."""
        self._late: OrderedDict[Key, float] = OrderedDict()
        """When these count as published."""
        self._over: OrderedDict[Who, int] = OrderedDict()
        """Which subscriptions have ended, of those that may still be on their way."""
        self._offered = LatestKeys(_SEEN_SINCE)
        self._retried = LatestKeys(_SEEN_SINCE)
        """Which events have had their first attempt, and their second: they may come again, or be here, too."""
        self.number = 0
        """The number of the latest publication, if they are numbered."""

    def __len__(self) -> int:
        return len(self._residents)

    def __contains__(self, who: Who) -> bool:
        return who in self._handles

    def __iter__(self) -> Iterator[Who]:
        return iter(self._handles)

    # -- Coming and going

    def deposit(self, message: Deposit | TakeBack) -> None:
        """Let a subscription live here that was sent by its home, or end; either may come first.

        >>> import tamis
        >>> residents, cheap = Residents(RankingSettings()), tamis.parse("price < 5")
        >>> residents.deposit(TakeBack("A", "ann", 1, number=8))
        >>> residents.deposit(Deposit("A", "ann", 1, cheap, number=8)), len(residents)
        (None, 0)
        >>> residents.deposit(Deposit("A", "ann", 1, cheap, number=9)), len(residents)
        (None, 1)
        """
        who = (message.home, message.client, message.key)
        here = self._residents[self._handles[who]].number if who in self._handles else -1
        match message:
            case Deposit(wanted=wanted, at=at, number=number):
                if number > max(here, self._over.get(who, -1)):
                    if who in self._handles:
                        self.remove(who)  # it has ended; the message that says so is still on its way
                    self.add(who, wanted, at, number)
            case TakeBack(number=number):
                if 0 <= here <= number:
                    self.remove(who)
                if here != number:
                    self._over[who] = max(number, self._over.get(who, -1))
                    if len(self._over) > _SEEN_SINCE:
                        self._over.popitem(last=False)

    def add(self, who: Who, wanted: Expression | Ranked, now: float, number: int = 0) -> None:
        """Let a subscription that was made now live here; its window is empty."""
        assert who not in self._handles
        resident = _Resident(self._next_handle, who, wanted, number)
        self._next_handle += 1
        condition = wanted
        if isinstance(wanted, Ranked):
            condition = wanted.where
            resident.owner = Owner(wanted, self._settings.algorithm, self._settings.ranking)
            resident.at, resident.since = now + self._settings.spread_s, self.number + 1
            if self._policy is not None:
                resident.policy = self._policy(wanted)
        assert isinstance(condition, Expression)
        if condition == TRUE:
            self._open[resident.handle] = None
        else:
            self._matcher.add(resident.handle, condition)
        self._residents[resident.handle] = resident
        self._handles[who] = resident.handle

    def remove(self, who: Who) -> None:
        """Let a subscription go, and its window with it."""
        handle = self._handles.pop(who)
        del self._residents[handle]
        self._moved.pop(who, None)
        if handle in self._open:
            del self._open[handle]
        else:
            self._matcher.remove(handle)

    def wanted(self, who: Who) -> Expression | Ranked:
        """Return what a subscription asks for."""
        return self._residents[self._handles[who]].wanted

    def threshold(self, who: Who) -> float:
        """Return the key beyond which an event does not concern a ranked subscription."""
        owner = self._residents[self._handles[who]].owner
        return inf if owner is None else owner.threshold

    def filter(self, who: Who) -> Expression:
        """Return what others have to know of a subscription: a filter, which moves if it is ranked."""
        resident = self._residents[self._handles[who]]
        if isinstance(resident.wanted, Ranked):
            return resident.wanted.where if resident.policy is None else resident.policy.filter()
        return resident.wanted

    def moved(self) -> list[Who]:
        """Return whose filters others have to be told anew, since this was asked last."""
        moved, self._moved = list(self._moved), {}
        return moved

    # -- Events

    def take(self, passed: Passed, now: float, *, moved_only: bool = False) -> list[Satisfied]:
        """Take an event, at its first attempt or its second; return who is to be told of what.

        With `moved_only` it is for those alone who have moved here: the others have been asked.
        """
        satisfied = [] if self._waits else self._elapse(passed.at, inclusive=False)
        passed = self._as_it_counts(passed)
        if passed.attempt == 1:
            self._see(passed)
        if self._keeps_recent and passed.attempt == 1:
            put_in_order(self._recent, passed, self._number)
        satisfied += self._offer(passed, moved_only=moved_only)
        return satisfied + self.advance(now) if self._waits else satisfied

    @property
    def _waits(self) -> bool:
        return self._settings.lateness_s > 0

    def _as_it_counts(self, passed: Passed) -> Passed:
        """Return an event as rankings take it: one that is too late counts as published after all that were ranked."""
        if self._settings.is_numbered:
            return passed
        at = self._late.get(passed.key)
        if at is None and passed.attempt == 1 and passed.at < self._elapsed:
            at = self._elapsed = nextafter(self._elapsed, inf)
            self.late_count += 1
            self._late[passed.key] = at
            if len(self._late) > _SEEN_SINCE:
                self._late.popitem(last=False)
        return passed if at is None else Passed.of(passed, at, passed.origin, passed.number, passed.attempt)

    def _offer(self, passed: Passed, *, moved_only: bool = False) -> list[Satisfied]:
        """Offer an event to those whose filters it passes, at each attempt once."""
        satisfied: list[Satisfied] = []
        offered = self._retried if passed.attempt == 2 else self._offered
        is_repeated = passed.key in offered
        if not moved_only:
            offered.add(passed.key)
        for resident in self._concerned(passed):
            if resident.seen is not None:
                if f"{passed.attempt} {passed.key!r}" in resident.seen:
                    continue
                resident.seen.add(f"{passed.attempt} {passed.key!r}")
            elif moved_only or is_repeated:
                continue
            if resident.owner is not None and self._waits:
                self._wait(resident, passed)
            elif resident.owner is not None:
                satisfied += self._rank(resident, resident.owner, passed)
            elif passed.attempt == 1:
                satisfied.append(Satisfied(resident.who, passed))
        return satisfied

    def _concerned(self, passed: Passed) -> list[_Resident]:
        handles = self._matcher.match(passed.event) if len(self._matcher) else []
        return [self._residents[handle] for handle in sorted((*handles, *self._open))]

    def _wait(self, resident: _Resident, passed: Passed) -> None:
        """Let an event wait for its turn."""
        is_second = passed.attempt == 2
        moment = passed.at + (self._settings.buffer or 0.0) if is_second else passed.at
        self._waited += 1
        heappush(resident.waiting, (max(moment, self._elapsed), self._waited, passed))

    def _ranked(self, resident: _Resident, owner: Owner, moment: float) -> list[Satisfied]:
        """Rank what has waited until a moment."""
        satisfied: list[Satisfied] = []
        while resident.waiting and resident.waiting[0][0] <= moment:
            satisfied += self._rank(resident, owner, heappop(resident.waiting)[2])
        return satisfied

    def _rank(self, resident: _Resident, owner: Owner, passed: Passed) -> list[Satisfied]:
        number = self._number(passed)
        if passed.at < resident.at or (self._settings.is_numbered and passed.number < resident.since):
            return []
        if owner.is_timed and passed.at + owner.span < self._elapsed:
            return []  # it has come too late: it has left the window
        is_another = passed.attempt == 1 and self._held.get(number, passed) is not passed
        if (is_another or (resident.seen is not None and passed.attempt == 1)) and number in owner.held():
            return []  # it was ranked before the move, or somebody has given its number to two events
        clock = self._clock(resident, owner, passed)
        score = key_of(owner.ranked, passed.event, self._schema)
        self._held[number] = passed
        if passed.attempt == 2:
            owner.expel(number)
            entering = owner.retry(number, score, clock)
        else:
            self._expel(resident, owner, float(passed.number) if self._settings.is_numbered else passed.at)
            entering = owner.take(number, score, clock)
            if owner.buffer_size is not None:
                resident.first_tries.append((passed.at, number))
        if not owner.is_timed and passed.attempt == 1:
            entering = entering + owner.leave(clock)
        self._note(resident, owner)
        self._prune()
        return [Satisfied(resident.who, self._held[each]) for each in entering]

    def _is_counted(self, resident: _Resident) -> bool:
        """Does a count window go by the numbers of publications?"""
        assert isinstance(resident.wanted, Ranked)
        return self._settings.is_numbered and resident.wanted.where == TRUE

    def _clock(self, resident: _Resident, owner: Owner, passed: Passed) -> float:
        if owner.is_timed:
            if self._settings.algorithm == "probabilistic":
                owner.expect(self._expected(passed.at, owner.span))
            return passed.at
        if self._is_counted(resident):
            return float(passed.number)
        resident.positions += passed.attempt == 1
        return float(resident.positions)

    def _number(self, passed: Passed) -> int:
        """Return a number that orders publications, whoever sees which of them."""
        if self._settings.is_numbered:
            return passed.number
        (bits,) = struct.unpack(">q", struct.pack(">d", passed.at + 0.0))
        ordinal = bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)
        return (int(ordinal) << 96) + (passed.number << 32) + zlib.crc32(passed.origin.encode())

    def _see(self, passed: Passed) -> None:
        """Remember how many events there were when: windows of probabilistic rankings have to be estimated."""
        if self._settings.algorithm == "probabilistic":
            origin = "" if self._settings.is_numbered else passed.origin
            put_in_order(self._origins.setdefault(origin, deque()), (passed.at, passed.number), tuple)

    def _expected(self, at: float, span: float) -> int:
        counts = []
        longest = max((each.owner.span for each in self._residents.values() if each.owner is not None), default=0.0)
        for seen in self._origins.values():
            while len(seen) > 1 and seen[1][0] < at - longest:
                seen.popleft()
            place = bisect_left(seen, (at - span, 0))
            before = seen[place - 1][1] if place else seen[0][1] - 1
            counts.append((float(seen[-1][1]), float(before)))
        return estimated_window(counts)

    def _note(self, resident: _Resident, owner: Owner) -> None:
        if resident.policy is not None and resident.policy.moved(owner.threshold):
            self._moved[resident.who] = None

    def _prune(self) -> None:
        if len(self._held) < 2 * self._kept + _HELD_ANYWAY:
            return
        needed: set[int] = set()
        for resident in self._residents.values():
            if resident.owner is not None:
                needed.update(resident.owner.held())
        self._held = {number: passed for number, passed in self._held.items() if number in needed}
        self._kept = len(self._held)

    # -- Time

    @property
    def due(self) -> float:
        """When `advance` has something to do: something leaves a time window, or a recent buffer, or has waited."""
        return self._next_moment + self._settings.lateness_s

    def advance(self, now: float) -> list[Satisfied]:
        """Let the time pass, up to and including now; return who is to be told of what."""
        return self._elapse(now, inclusive=True)

    @property
    def _next_moment(self) -> float:
        due = min((self._due(each) for each in self._residents.values()), default=inf)
        buffer = self._settings.buffer
        if self._keeps_recent and self._recent and buffer is not None and not self._settings.is_numbered:
            due = min(due, self._recent[0].at + buffer)
        return due

    def _due(self, resident: _Resident) -> float:
        due = resident.owner.due if resident.owner is not None and resident.owner.is_timed else inf
        if resident.waiting:
            due = min(due, resident.waiting[0][0])
        buffer = self._settings.buffer
        if resident.first_tries and buffer is not None and not self._settings.is_numbered:
            due = min(due, resident.first_tries[0][0] + buffer)
        return due

    def _elapse(self, until: float, *, inclusive: bool) -> list[Satisfied]:
        """Let leave what leaves time windows and recent buffers before a time, or then, in order of time.

        All of that is as much later as events wait. What has waited is ranked in between: at one time before anything
        leaves.
        """
        satisfied: list[Satisfied] = []
        lateness_s = self._settings.lateness_s
        while (due := self._next_moment) + lateness_s < until or (inclusive and due + lateness_s <= until):
            self._elapsed = max(self._elapsed, due)
            is_buffer_timed = not self._settings.is_numbered
            if is_buffer_timed:
                satisfied += self._try_again(due)
            for resident in self._residents.values():
                owner = resident.owner
                if owner is None:
                    continue
                satisfied += self._ranked(resident, owner, due)
                if is_buffer_timed:
                    self._expel(resident, owner, due)
                if owner.is_timed and owner.due <= due:
                    satisfied += [Satisfied(resident.who, self._held[each]) for each in owner.leave(due)]
                self._note(resident, owner)
        self._elapsed = max(self._elapsed, until - lateness_s)
        return satisfied

    def count(self, number: int) -> list[Satisfied]:
        """Hear that the publication of this number has been made: windows that count go by it."""
        self.number = max(self.number, number)
        satisfied: list[Satisfied] = []
        for resident in self._residents.values():
            owner = resident.owner
            if owner is not None and not owner.is_timed and self._is_counted(resident):
                satisfied += [Satisfied(resident.who, self._held[each]) for each in owner.leave(float(number))]
                self._note(resident, owner)
        return satisfied

    def make_room(self, number: int) -> list[Satisfied]:
        """Hear that the publication of this number is about to be made: what is too old leaves recent buffers first."""
        if not self._settings.is_numbered:
            return []
        satisfied = self._try_again(number)
        for resident in self._residents.values():
            if resident.owner is not None:
                self._expel(resident, resident.owner, number)
                self._note(resident, resident.owner)
        return satisfied

    def _has_left(self, number: int, at: float, now: float) -> bool:
        """Has a publication left recent buffers by now, which is a time, or the number of the next publication?"""
        buffer = self._settings.buffer
        return buffer is not None and (number if self._settings.is_numbered else at) + buffer <= now

    def _try_again(self, now: float) -> list[Satisfied]:
        """Give what leaves the recent buffer that is kept here its second attempt."""
        satisfied: list[Satisfied] = []
        while self._recent and self._has_left(self._recent[0].number, self._recent[0].at, now):
            first = self._recent.popleft()
            again = Passed.of(first, first.at, first.origin, first.number, 2)
            satisfied += self._offer(again)
        return satisfied

    def _expel(self, resident: _Resident, owner: Owner, now: float) -> None:
        """Let a filter forget what has left recent buffers by now."""
        tries = resident.first_tries
        while tries and self._has_left(tries[0][1], tries[0][0], now):
            owner.expel(tries.popleft()[1])

    # -- Moving to another node

    def moving(self, who: Who) -> Deposited:
        """Return a subscription with all that is remembered of it, for another node; here it stays as it is."""
        resident = self._residents[self._handles[who]]
        owner = resident.owner
        if owner is None:
            return Deposited(*who, resident.wanted, number=resident.number)
        numbers = sorted(set(owner.held()) | {number for _, number in resident.first_tries})
        held = [self._held[each] for each in numbers if each in self._held]
        waiting = tuple((moment, len(held) + place) for place, (moment, _, _) in enumerate(sorted(resident.waiting)))
        held += [passed for _, _, passed in sorted(resident.waiting)]
        tries = tuple(resident.first_tries)
        state = (resident.at, resident.since, resident.positions, tries, state_of(owner), waiting)
        return Deposited(*who, resident.wanted, state, tuple(held), resident.number)

    def settle(self, moved: Iterable[Deposited], now: float) -> None:
        """Let subscriptions go on here as they were elsewhere; all of them, or none if one makes no sense."""
        settled: list[Who] = []
        try:
            for each in moved:
                who = (each.home, each.client, each.key)
                if who not in self._handles and each.number > self._over.get(who, -1):
                    self.add(who, each.wanted, now, each.number)
                    settled.append(who)
                    self._resume(self._residents[self._handles[who]], each)
        except (TamisError, TypeError, ValueError, OverflowError, IndexError) as error:
            for who in settled:
                self.remove(who)
            raise MessageError(f"a ranking that moves is broken: {error}", "what `moving` returns") from error

    def _resume(self, resident: _Resident, moved: Deposited) -> None:
        resident.seen = LatestKeys(_SEEN_SINCE)
        if resident.owner is None:
            return
        resident.at, resident.since, resident.positions, tries, state, waiting = moved.state
        if not all(isinstance(each, int | float) and isfinite(each) for each in moved.state[:3]):
            raise ValueError(f"it counts from {moved.state[:3]!r:.60}")
        resident.first_tries = deque((float(at), int(number)) for at, number in tries)
        resume(resident.owner, state)
        for moment, place in waiting:
            if not isfinite(moment):
                raise ValueError(f"an event waits for {moment!r:.40}")
            self._waited += 1
            resident.waiting.append((float(moment), self._waited, moved.held[int(place)]))
        heapify(resident.waiting)
        held = {self._number(each): each for each in moved.held}
        if missing := set(resident.owner.held()) - held.keys():
            raise ValueError(f"{len(missing)} events are ranked and not there")
        self._held |= held
        self._note(resident, resident.owner)

    @property
    def recent(self) -> tuple[Passed, ...]:
        """The events of the recent buffer, if it is here."""
        return tuple(self._recent)

    def keep(self, events: Iterable[Passed]) -> None:
        """Put events into the recent buffer here, in order of publication, that were in another's."""
        if self._keeps_recent:
            numbers: dict[Any, Passed] = {self._number(each): each for each in (*self._recent, *events)}
            self._recent = deque(numbers[number] for number in sorted(numbers))
