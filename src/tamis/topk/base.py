"""What does every algorithm promise?

A *ranking* is what one subscription remembers of its window: the best k events, and *candidates*, events that may still
become so when better ones leave. A ranking is told of arrivals and of the passing of its clock, and answers with the
events that enter the best k for the first time. Its clock is time, or, for a count window, the position in the
subscription's own stream; a ranking does not know which.

An *algorithm* keeps the rankings of all subscriptions. Most keep one `Ranking` each (`per_subscription`); `block` keeps
them all in arrays. What an algorithm reports is turned into deliveries by the processor (`processor`), which knows ids,
clients, withdrawals and expiry.

Source: Pripužić 2010, sections 3.2 and 3.3 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from tamis.topk.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    import numpy.typing as npt

    from tamis.language.meaning import Event
    from tamis.topk.guard import OrderReport
    from tamis.topk.ranked import Ranked


class Candidate(NamedTuple):
    """An event as a ranking sees it. Candidates sort by rank: the better key first, then the younger."""

    key: float
    age: int
    """The opposite of the event's number: smaller is younger."""
    leaves: float
    """When it leaves the window, by the subscription's clock."""

    @property
    def number(self) -> int:
        """The event's number, in order of arrival."""
        return -self.age


class Ranking(ABC):
    """The best k events of one window, and who may follow them.

    `items` is sorted by rank; the first k are the best. What else it holds is where the algorithms differ.
    """

    is_exact: ClassVar[bool] = True
    """Does it report what the definition reports, on every stream?"""
    threshold: float = math.inf
    """An arrival with a greater key would change nothing, now or later. Infinite: every arrival may."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.items: list[Candidate] = []
        self.entered: set[int] = set()
        """Which of the items have been among the best k before."""
        self.due = math.inf
        """When something leaves whose leaving matters."""

    @abstractmethod
    def insert(self, candidate: Candidate) -> list[int]:
        """Take an arrival that has a key. Return the numbers of the events that enter the best k: itself, or nobody."""

    def leave(self, clock: float) -> list[int]:
        """Forget what leaves at this moment or before; return the numbers of the events that enter the best k, by rank.

        What leaves at one moment leaves at once: nobody is promoted in between who leaves too.
        """
        self.items = [item for item in self.items if item.leaves > clock]
        entering = [item.number for item in self.items[: self.k] if item.number not in self.entered]
        self.entered.intersection_update(item.number for item in self.items)
        self.entered.update(entering)
        self._schedule()
        return entering

    def expect(self, n: int) -> None:  # noqa: B027
        """Be prepared for `n` events in the window. What an exact ranking keeps does not depend on it."""

    def _schedule(self) -> None:
        """Note when the next of the best k leaves: what leaves from further down leaves unnoticed."""
        self.due = min((item.leaves for item in self.items[: self.k]), default=math.inf)

    def _place(self, candidate: Candidate) -> tuple[int, list[int]]:
        """Insert a candidate at its rank; return its place, and its number if that makes it one of the best k."""
        place = bisect_left(self.items, candidate)
        self.items.insert(place, candidate)
        if place >= self.k:
            return place, []
        self.entered.add(candidate.number)
        self._schedule()
        return place, [candidate.number]

    def beats_the_best(self, candidate: Candidate) -> bool:
        """Would this be one of the best k of what is held?"""
        return len(self.items) < self.k or candidate < self.items[self.k - 1]

    def held(self) -> Iterable[int]:
        """The numbers of the events that it still refers to."""
        return (item.number for item in self.items)

    def __len__(self) -> int:
        """How many events it keeps, the best k included."""
        return len(self.items)


class Arrival(NamedTuple):
    """An event on its way to the rankings."""

    number: int
    at: float
    event: Event
    guarded: npt.NDArray[np.int64]
    """The handles of the subscriptions whose filter it passes, those without a filter not included."""


Report: TypeAlias = tuple[int, float, int, int]
"""An event enters the best k of a subscription for the first time: (step, at, handle, number).

The step is the place, in the call, of the arrival that brought it about. There may be very many, so they are plain
tuples.
"""


class RankingAlgorithm(ABC):
    """A way to keep the rankings of many subscriptions. A handle is a subscription's number; handles only grow."""

    @abstractmethod
    def add(self, handle: int, ranked: Ranked, number: int) -> None:
        """Start a ranking with an empty window. `number` is that of the next event."""

    @abstractmethod
    def remove(self, handle: int) -> None:
        """End a ranking."""

    @abstractmethod
    def arrive(self, arrivals: Sequence[Arrival]) -> list[Report]:
        """Take arrivals, in order of time, and everything that leaves before them.

        Reports come in order of the step, then of time, then of the handle.
        """

    @abstractmethod
    def advance(self, now: float, *, inclusive: bool) -> list[Report]:
        """Let leave what leaves before `now` (or then), in order of time; reports are ordered as those of arrivals."""

    @property
    @abstractmethod
    def due(self) -> float:
        """Before this moment nothing is to be told because time passes; infinite if nothing ever is."""

    @abstractmethod
    def held(self) -> set[int]:
        """Return the numbers of all events that some ranking refers to."""

    @abstractmethod
    def candidates(self, handle: int) -> int:
        """Return how many events a subscription's ranking keeps, the best k included."""

    @abstractmethod
    def kept(self, handle: int) -> list[int]:
        """Return the numbers of the events that a subscription's ranking keeps, by rank."""

    def expect(self, handle: int, n: int) -> None:  # noqa: B027
        """Let a subscription's ranking be prepared for `n` events in its window."""

    def retry(self, arrival: Arrival, now: float) -> list[Report]:
        """Let filtered rankings look at an event that comes only now, when it has left a recent buffer elsewhere."""
        raise SettingError("only subscriptions behind a filter look at an event a second time")

    def threshold(self, handle: int) -> float:
        """Return the key beyond which an arrival does not interest a subscription, now or later."""
        return math.inf

    def saved(self, handle: int) -> list[Any]:
        """Return what a ranking holds, as numbers and lists that `restore` takes."""
        raise SettingError("only windows of the algorithm 'block' can be saved")

    def restore(self, handle: int, state: list[Any]) -> list[int]:
        """Let a new ranking hold what another one held; return the numbers of its events."""
        raise SettingError("only windows of the algorithm 'block' can be restored")

    def order_reports(self) -> dict[int, OrderReport]:
        """Return what the guard of each subscription has found, if there is a guard."""
        return {}

    def statistics(self) -> dict[str, Any]:
        """Return what an operator may want to see."""
        return {}
