"""Which events of a sample does a formula match?

Each axis of the sample is computed once, with the reference meaning, and kept as ranks: the values' order. A set of
values is then a few comparisons of integers for all events together.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.language.meaning import truth
from tamis.relations.formulas import (
    Conjunction,
    Constant,
    Disjunction,
    Fact,
    Formula,
    Threshold,
    Within,
    fold,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.language.ranges.lines import Cut
    from tamis.language.schema import Schema
    from tamis.relations.domains import TermAxis

Mask = npt.NDArray[np.bool_]


class EventSample:
    """Events that a schema allows, and which of them match.

    >>> from tamis.relations.forms import context_of
    >>> sample = EventSample([{"a": 1}, {"a": 5}, {}], None)
    >>> sample.matched(context_of(None).form("a < 3 OR a IS NULL").formula).tolist()
    [True, False, True]
    """

    def __init__(self, events: Iterable[Mapping[str, Any]], schema: Schema | None) -> None:
        self._events = list(events)
        self._schema = schema
        self._axes: dict[TermAxis, tuple[list[Cut], npt.NDArray[np.int64]]] = {}
        self._facts: dict[tuple[Expression, bool], Mask] = {}

    def __len__(self) -> int:
        return len(self._events)

    def matched(self, formula: Formula) -> Mask:
        """Return, for each event, whether it matches."""
        return fold(formula, self._matched)

    def _matched(self, node: Formula, below: list[Mask]) -> Mask:
        match node:
            case Constant():
                return np.full(len(self._events), node.is_true)
            case Within():
                return self._within(node)
            case Fact():
                return self._fact(node)
            case Conjunction():
                return np.asarray(np.logical_and.reduce(below))
            case Disjunction():
                return np.asarray(np.logical_or.reduce(below))
            case Threshold():
                return np.asarray(np.sum(below, axis=0) >= node.count)
        raise AssertionError(f"a formula of an unknown class: {type(node).__name__}")

    def _within(self, node: Within) -> Mask:
        cuts, ranks = self.ranks(node.axis)
        inside = np.zeros(len(cuts) + 1, np.bool_)
        for low, high in zip(node.values[::2], node.values[1::2], strict=True):
            inside[bisect_left(cuts, low) : bisect_left(cuts, high)] = True
        return inside[ranks]

    def _fact(self, node: Fact) -> Mask:
        key = (node.predicate, node.truth)
        if key not in self._facts:
            truths = (truth(node.predicate, event, self._schema) is node.truth for event in self._events)
            self._facts[key] = np.fromiter(truths, np.bool_, len(self._events))
        return self._facts[key] if node.is_so else ~self._facts[key]

    def ranks(self, axis: TermAxis) -> tuple[list[Cut], npt.NDArray[np.int64]]:
        """Return the places of the sample's values on an axis, in order, and which of them each event has."""
        known = self._axes.get(axis)
        if known is None:
            event_cuts = [axis.cut_in(event, self._schema) for event in self._events]
            cuts = sorted(set(event_cuts))
            numbers = {cut: number for number, cut in enumerate(cuts)}
            ranks = np.fromiter((numbers[cut] for cut in event_cuts), np.int64, len(event_cuts))
            known = self._axes[axis] = (cuts, ranks)
        return known
