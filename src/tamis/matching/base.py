"""What does every matching algorithm promise? The protocol of algorithms and snapshots.

An algorithm knows subscriptions by *handles*, whole numbers that only grow until all of them are renumbered.
`Matcher` gives them out, and keeps what all algorithms need alike: ids, priorities, the texts. An algorithm registers,
removes, and gives a *snapshot*: an immutable view that any number of threads may match against while others register.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from tamis.matching import forking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema
    from tamis.matching.axes import Axis
    from tamis.matching.block.access import HandlePlan
    from tamis.matching.columns import Events
    from tamis.matching.destinations import Destinations
    from tamis.matching.scanning.lines import EventLines
    from tamis.matching.watching import Encoded

Handles: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = tuple[npt.NDArray[np.int64], Handles]
"""Matches: the events' numbers, and beside each the handle of a subscription."""


def numbered(handles_of_events: list[Handles]) -> Pairs:
    """Return the handles of all events beside the number of the event of each.

    >>> numbered([np.array([3, 5]), np.array([3])])
    (array([0, 0, 1]), array([3, 5, 3]))
    """
    events = np.repeat(np.arange(len(handles_of_events)), [len(handles) for handles in handles_of_events])
    return events, np.concatenate([np.zeros(0, np.int64), *handles_of_events])


class Snapshot(ABC):
    """One consistent set of subscriptions."""

    @abstractmethod
    def match_event(self, event: Mapping[str, Any], among: Handles | None = None) -> Handles:
        """Return the handles of the subscriptions that match, in any order; only those `among` some, if asked."""

    def match_event_in_order(self, event: Mapping[str, Any], among: Handles | None = None) -> Iterator[Handles]:
        """Yield the handles in groups; none of a later group has a higher priority than one of an earlier."""
        yield self.match_event(event, among)

    @abstractmethod
    def match_events(self, events: Events, among: Handles | None = None, threads: int = 1) -> Pairs:
        """Return all matches of a batch, sorted by event. The arrays are the caller's, who may write into them."""

    def match_few(self, events: Sequence[Mapping[str, Any]], among: Handles | None = None) -> Pairs:
        """Return the matches of a few events, sorted by event: what is done once for a batch costs more than it saves.

        This is the definition; an algorithm may know a way that does not take them one by one.
        """
        return numbered([self.match_event(event, among) for event in events])

    def match_json(self, document: bytes, among: Handles | None = None) -> tuple[int, Handles] | None:
        """Return the matches of an event in JSON, and a hash of its names and kinds; None if it has to be decoded."""
        return None

    def match_json_lines(
        self, lines: EventLines, among: Handles | None = None
    ) -> tuple[npt.NDArray[np.uint64], Pairs] | None:
        """Return the matches of events in JSON, sorted by event, and a hash of each event's names and kinds.

        None if they have to be decoded; the hash is 0 where that was done.
        """
        return None

    def encoded_event(self, event: Mapping[str, Any]) -> list[Encoded] | None:
        """Return the codes of an event on the axes that predicates are laid out on; None if there are no axes."""
        return None

    def encoded_events(self, events: Events) -> list[Encoded] | None:
        """Return the same of a batch."""
        return None

    def reach_event(
        self, event: Mapping[str, Any], destinations: Destinations, among: Handles | None = None
    ) -> tuple[Handles, Handles]:
        """Return the matches that have no destination, and the numbers of all destinations of the others, in order.

        This is the definition; an algorithm may know a way that does not find all matches first.
        """
        handles = self.match_event(event, among)
        numbers = destinations.of(handles)
        return handles[numbers == 0], np.unique(numbers[numbers > 0]).astype(np.int64)

    def reach_events(
        self, events: Events, destinations: Destinations, among: Handles | None = None, threads: int = 1
    ) -> tuple[Pairs, Pairs]:
        """Return the same of a batch, both sorted by event: matches, and events with the numbers of destinations."""
        events_of_matches, handles = self.match_events(events, among, threads)
        numbers = destinations.of(handles)
        has_one = numbers > 0
        width = len(destinations)
        reached = np.unique(events_of_matches[has_one] * width + numbers[has_one])
        return (events_of_matches[~has_one], handles[~has_one]), (reached // width, reached % width)


class TextsRead(ABC):
    """Texts that an algorithm read by itself, finding in them what the parser does."""

    @abstractmethod
    def is_understood(self, number: int) -> bool:
        """Is nothing left to the parser of this text?"""

    @abstractmethod
    def prepared(self, numbers: Sequence[int], understood: Callable[[int], Expression]) -> Any:
        """Return of some texts, in order, what `Algorithm.prepare` does of their expressions.

        `understood` returns the expression of a text by its number, or raises; it is asked where the parser is needed.
        """


class Algorithm(ABC):
    """A way to find the subscriptions that match. `Matcher` calls it under a lock; snapshots are used without."""

    name: ClassVar[str]

    def __init__(self, schema: Schema | None = None) -> None:
        self.schema = schema
        forking.protect(self, forking.ENGINES)

    def prepare(self, expressions: Iterable[Expression]) -> Any:
        """Do what can be done before the subscriptions are registered, and without the lock; `add` takes the result."""
        return list(expressions)

    def read(self, texts: Sequence[str]) -> TextsRead | None:
        """Read texts without the parser, as far as the algorithm can; None if it had better be given expressions."""
        return None

    @abstractmethod
    def add(self, handles: Sequence[int], prepared: Any) -> None:
        """Register what was prepared. Handles are greater than all before."""

    def prioritise(self, handles: Sequence[int], priorities: Handles) -> None:  # noqa: B027 - most need not know
        """Take note of priorities other than 0, of subscriptions that were just added."""

    @abstractmethod
    def remove(self, handle: int) -> None:
        """Remove a subscription that is registered."""

    def remove_many(self, handles: Iterable[int]) -> None:
        """Remove subscriptions that are registered."""
        for handle in handles:
            self.remove(handle)

    def renumbered(self, living: Handles, expressions: Iterable[Expression]) -> tuple[Algorithm, Handles]:
        """Give new handles to those who live: return an algorithm, and the old handles of its handles 0, 1, ...

        These are the living, and perhaps some of the dead whose places it still has. Snapshots that were taken before
        keep the old handles. Most algorithms begin anew, with the expressions of the living.
        """
        fresh = self.emptied()
        fresh.add(range(len(living)), fresh.prepare(expressions))
        return fresh, living

    def emptied(self) -> Algorithm:
        """Return an algorithm of the same kind, that knows what this one learnt and has no subscriptions."""
        return type(self)(self.schema)

    def axes(self) -> Sequence[Axis] | None:
        """Return the axes of all predicates that are registered; None if it has none."""
        return None

    @property
    def locks(self) -> Sequence[Any]:
        """The locks that guard what it knows, to be held while the process forks."""
        return ()

    def after_fork(self) -> None:  # noqa: B027 - most have no threads that could be missing
        """Put right, in a child process, what threads of the parent had begun."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """Return the present set."""

    @property
    def open_count(self) -> int:
        """How many subscriptions are still open."""
        return 0

    def compile(self) -> bool:
        """Lay out what is still open, here and now; return whether there was anything. Most leave nothing open."""
        return False

    def compiled_snapshot(self) -> Snapshot:
        """Return the present set, prepared for batches of any size."""
        return self.snapshot()

    def snapshot_for(self, events: Events) -> Snapshot:
        """Return the present set, prepared for a batch as large as this one."""
        return self.compiled_snapshot()

    def observe(self, events: Events) -> None:  # noqa: B027 - nor anything to observe
        """Take a look at a batch that is about to be matched."""

    def parts(self) -> Sequence[Any] | None:
        """Return what can be saved instead of compiling it again, for `restore`; None if there is nothing."""
        return None

    def restore(self, parts: Sequence[Any]) -> None:
        """Take back what `parts` returned, before anything is registered."""
        raise NotImplementedError(f"{self.name} saves no parts")

    def settle(self) -> None:  # noqa: B027 - most algorithms do nothing behind one's back
        """Wait until nothing is done in the background any more."""

    @abstractmethod
    def memory(self) -> int:
        """Return how many bytes its data take, roughly."""

    def learn(self, events: Events) -> None:  # noqa: B027 - most algorithms have nothing to learn
        """Look at some events to see how often predicates are true."""

    def plan(self, handle: int) -> HandlePlan | None:
        """Return how a subscription is found; None if the algorithm has no plans to show."""
        return None

    def statistics(self) -> dict[str, Any]:
        """Return what an operator may want to see."""
        return {}
