"""Pruning before sending: a neighbour knows filters with some of their conditions left out.

Any strategy says what a neighbour must know; each of its filters is pruned before it is sent, as far as a goal says,
and goes under the same key. When it leaves, the key leaves: nothing is told again because of pruning. What is pruned
matches more, so it is imperfect, and never loses an event.

Source: Bittner 2008, section 6.5: pre-pruning (docs/bibliography.md).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from tamis.pruning.bulk import prune_many
from tamis.routing.base import Changes, Source, Strategy, Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.expressions import Expression
    from tamis.pruning.goals import Goal
    from tamis.routing.messages import Entry
    from tamis.selectivity.estimates import Share

_REMEMBERED = 1 << 15
"""So many filters are pruned once for all links that share the strategy."""


class Pruned(Strategy):
    """What another strategy tells, pruned.

    >>> import tamis
    >>> from tamis.pruning import Goal
    >>> from tamis.routing import Covering
    >>> print(*Pruned(Covering(), Goal(count=1), lambda _: 0.5).told([tamis.parse("a = 1 AND b = 2 AND c = 3")]))
    b = 2 AND c = 3
    """

    name: ClassVar[str] = "pruned"
    is_perfect = False

    def __init__(self, inner: Strategy, goal: Goal, share: Share, measure: str = "accuracy") -> None:
        super().__init__(inner.schema)
        self.comparisons = inner.comparisons
        self.inner = inner
        self._goal = goal
        self._share = share
        self._measure = measure
        self._pruned: Callable[[Expression], Expression] = lru_cache(_REMEMBERED)(self._prune)

    def summary(self) -> PrunedSummary:
        return PrunedSummary(self.inner.summary(), self._pruned)

    def told(self, filters: Iterable[Expression]) -> list[Expression]:
        return [self._pruned(each) for each in self.inner.told(filters)]

    def _prune(self, expression: Expression) -> Expression:
        return prune_many([expression], self._share, self._goal, self._measure)[0]


class PrunedSummary(Summary):
    """The entries of another summary, each of them pruned."""

    def __init__(self, inner: Summary, pruned: Callable[[Expression], Expression]) -> None:
        self._inner = inner
        super().__init__()
        self._pruned = pruned

    @property
    def hops_of(self) -> Callable[[Expression], int]:
        return self._inner.hops_of

    @hops_of.setter
    def hops_of(self, found: Callable[[Expression], int]) -> None:
        self._inner.hops_of = found

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, source: Source) -> bool:
        return source in self._inner

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(replace(each, filter=self._pruned(each.filter)) for each in self._inner.entries)

    def add(self, source: Source, expression: Expression, imperfection: float = 0.0) -> None:
        self._inner.add(source, expression, imperfection)

    def remove(self, source: Source) -> None:
        self._inner.remove(source)

    def close(self) -> None:
        self._inner.close()

    def changes(self) -> Changes:
        found = self._inner.changes()
        return Changes(tuple(replace(each, filter=self._pruned(each.filter)) for each in found.added), found.removed)
