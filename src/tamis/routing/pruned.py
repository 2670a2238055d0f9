"""Pruning before sending: a neighbour knows filters with some of their conditions left out.

Any strategy says what a neighbour must know; its filters are pruned before they are sent, and go under the same keys.
What goes first is decided among all filters of the link: how many of them use a predicate counts (`occurrence`), and
how far away subscribers are (`distance`). What was told stays as it is. When it leaves, the key leaves: nothing is told
again because of pruning. What is pruned matches more, so it is imperfect, and never loses an event.

Advertisements are pruned in the same way, by the measure `overlap`: first what keeps the fewest subscriptions out.

Source: Bittner 2008, sections 6.5, pre-pruning, and 7.3 (docs/bibliography.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tamis.pruning.measures import measure_of
from tamis.routing.base import Changes, Strategy, Summary, WrappingSummary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.expressions import Expression
    from tamis.pruning.goals import Goal
    from tamis.routing.base import Knowledge
    from tamis.routing.messages import Entry, Key
    from tamis.selectivity.estimates import Share


class Pruned(Strategy):
    """What another strategy tells, pruned.

    >>> import tamis
    >>> from tamis.pruning import Goal
    >>> from tamis.routing import Covering
    >>> print(*Pruned(Covering(), Goal(count=1), lambda _: 0.5).told([tamis.parse("a = 1 AND b = 2 AND c = 3")]))
    b = 2 AND c = 3

    Of a goal, `count` is so many conditions of each filter, `threshold` is what each may cost, and the others are of
    all filters of the link. A mapping has goals by neighbour; who is not in it gets filters as they are. Without a
    `share` it goes by what the broker has counted.
    """

    name: ClassVar[str] = "pruned"
    is_perfect = False

    def __init__(
        self,
        inner: Strategy,
        goal: Goal | Mapping[str, Goal],
        share: Share | None = None,
        measure: str = "accuracy",
    ) -> None:
        super().__init__(inner.schema)
        self.comparisons = inner.comparisons
        self.inner = inner
        self._goal = goal
        self._share = share
        self._measure = measure_of(measure).name

    def summary(self) -> Summary:
        return self._pruning(self.inner.summary(), None if isinstance(self._goal, Mapping) else self._goal, None)

    def summary_for(self, neighbour: str, knowledge: Knowledge) -> Summary:
        goal = self._goal.get(neighbour) if isinstance(self._goal, Mapping) else self._goal
        known = knowledge.keeps_out if self._measure == "overlap" else knowledge.share
        return self._pruning(self.inner.summary_for(neighbour, knowledge), goal, known)

    def _pruning(self, inner: Summary, goal: Goal | None, known: Share | None) -> Summary:
        share = self._share or known or _evenly
        return inner if goal is None else PrunedSummary(inner, goal, share, self._measure)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        summary = self.summary()
        for number, each in enumerate(filters):
            summary.add(number, each)
        filters_sent = [entry.condition for entry in summary.entries]
        summary.close()
        return filters_sent


def _evenly(predicate: Expression) -> float:
    return 0.5


class PrunedSummary(WrappingSummary):
    """The entries of another summary, pruned when they are told."""

    def __init__(self, inner: Summary, goal: Goal, share: Share, measure: str) -> None:
        from tamis.pruning.table import PrunedTable  # which compiles

        super().__init__(inner)
        self._goal = goal
        self._table = PrunedTable(share, measure)
        self._numbers: dict[Key, int] = {}
        self._told: dict[Key, Entry] = {}
        self._waiting: dict[Key, None] = {}
        self._gone: list[Key] = []

    @property
    def entries(self) -> tuple[Entry, ...]:
        self._take_over()
        return tuple(self._told.values())

    def changes(self) -> Changes:
        self._take_over()
        changes = Changes(tuple(self._told[key] for key in self._waiting), tuple(self._gone))
        self._waiting, self._gone = {}, []
        return changes

    def _take_over(self) -> None:
        """Prune what is new among all that is told."""
        changes = self._inner.changes()
        for key in changes.removed:
            self._table.remove(self._numbers.pop(key))
            del self._told[key]
            if key in self._waiting:
                del self._waiting[key]
            else:
                self._gone.append(key)
        if not changes.added:
            return
        new: dict[int, Entry] = {}
        for entry in changes.added:
            number = self._numbers[entry.key] = self._table.add(entry.condition, distance=1.0 + entry.hops)
            new[number] = entry
        versions = dict(self._table.prune_new(self._goal))
        for number, entry in new.items():
            self._told[entry.key] = replace(entry, filter=versions.get(number, entry.filter))
            self._waiting[entry.key] = None
