"""How much of what a merger matches does nobody want? False positives of mergers, estimated.

The *imperfection* of a merger is the share of what it matches that none of its members matches. On a sample of events
it is counted. Where the sample shows too few matches, or there is none, events are drawn inside the merger: each term
takes one of the values that the sample has there, or one of the stretches into which all filters cut the term, and
the terms are taken to be independent. Of two filters, that can be computed instead of drawn. Where an estimator of
shares is given, it is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.language.ranges.value_sets import Values, is_member, points, union
from tamis.language.rewrites.junctions import disjunction
from tamis.relations.formulas import Within, leaves
from tamis.relations.samples import EventSample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from tamis.language.expressions import Expression
    from tamis.language.ranges.lines import Cut
    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box, Context, Form
    from tamis.relations.formulas import Formula
    from tamis.relations.parts import Conjunct

_FEWEST_MATCHES = 20
_DRAWN = 256
_REMEMBERED = 1 << 14

_Flags = npt.NDArray[np.bool_]


def imperfection_of_two(one: Box, two: Box) -> float:
    """Return which share of the box around two is in neither, guessed from their cuts alone.

    Both cut each term into stretches, all of which count the same; terms are taken to be independent.

    >>> from tamis.relations.forms import context_of
    >>> boxes = [context_of(None).form(text).box for text in ("x < 10 AND y = 1", "x < 11 AND y = 2")]
    >>> imperfection_of_two(*boxes)
    0.25
    """
    first, second, both = shares_of_two(one, two)
    return min(1.0, max(0.0, 1 - (first + second - both)))


def shares_of_two(one: Box, two: Box) -> tuple[float, float, float]:
    """Return which shares of the box around two are in the first, in the second, and in both, guessed likewise."""
    first = second = both = 1.0
    for axis in dict.fromkeys((*one, *two)):  # in an order that is the same in every process
        shares = _shares(axis, one.get(axis, axis.values), two.get(axis, axis.values))
        first, second, both = first * shares[0], second * shares[1], both * shares[2]
    return first, second, both


def share_within(inner: Box, outer: Box) -> float:
    """Return which share of a box lies in another that is part of it, guessed likewise.

    >>> from tamis.relations.forms import context_of
    >>> boxes = [context_of(None).form(text).box for text in ("x = 1 AND y = 1", "x IN (1, 2, 3, 4)")]
    >>> share_within(*boxes) < 0.25
    True
    """
    share = 1.0
    for axis, values in inner.items():
        share *= _shares(axis, values, outer.get(axis, axis.values))[0]
    return share


@lru_cache(_REMEMBERED)
def _shares(axis: TermAxis, one: Values, two: Values) -> tuple[float, float, float]:
    """Return which shares of the stretches of two sets are in the first, in the second, and in both."""
    if one == two:
        return 1.0, 1.0, 1.0
    singles, others = _singles(axis, one), _singles(axis, two)
    if singles is not None and others is not None:  # no cut of the one lies within a stretch of the other
        around = len(singles | others)
        return len(singles) / around, len(others) / around, len(singles & others) / around
    counts = [0, 0, 0]
    around = 0
    for cut in {*one, *two, *axis.values}:
        is_first, is_second = is_member(cut, one), is_member(cut, two)
        around += is_first or is_second
        counts[0] += is_first
        counts[1] += is_second
        counts[2] += is_first and is_second
    return counts[0] / around, counts[1] / around, counts[2] / around


@lru_cache(_REMEMBERED)
def _singles(axis: TermAxis, values: Values) -> frozenset[Cut] | None:
    cuts = points(values, axis.line, len(values))
    return None if cuts is None else frozenset(cuts)


class ImperfectionMeasure(ABC):
    """A way to tell how imperfect a merger is."""

    needs_words: ClassVar[bool] = False
    """Must a merger be written down before it can be measured? What cannot be written is all in vain then."""

    @abstractmethod
    def of_part(self, part: Conjunct) -> float:
        """Return the imperfection of a conjunction that stands for its members."""

    @abstractmethod
    def of_expression(self, expression: Expression, members: Sequence[int]) -> float:
        """Return the imperfection of any merger of these members."""


def measure_of(
    forms: Sequence[Form],
    context: Context,
    events: Iterable[Mapping[str, Any]] | None,
    share: Callable[[Expression], float] | None,
) -> ImperfectionMeasure:
    """Return the best measure that there is."""
    if share is not None:
        return ByShare(forms, context, share)
    return BySample(forms, context, EventSample(events if events is not None else (), context.schema))


def _is_tight(part: Conjunct, boxes: Sequence[Box]) -> bool:
    """Is a part no wider than the union of two sets on every term?"""
    one, two = boxes
    common = {axis: union(values, two[axis]) for axis, values in one.items() if axis in two}
    return part.box == {axis: values for axis, values in common.items() if values != axis.values}


class BySample(ImperfectionMeasure):
    """Count in a sample, and draw where it shows too little."""

    def __init__(self, forms: Sequence[Form], context: Context, sample: EventSample, seed: int = 1) -> None:
        self._forms = forms
        self._context = context
        self._sample = sample
        self._chance = np.random.default_rng(seed)
        self._wanted: dict[int, _Flags] = {}
        self._cuts_of: dict[TermAxis, set[Cut]] = {}
        for form in forms:
            for leaf in leaves(form.formula):
                if isinstance(leaf, Within):
                    self._cuts_of.setdefault(leaf.axis, set()).update(leaf.values)
        self._places: dict[TermAxis, tuple[list[Cut], npt.NDArray[np.float64]]] = {}
        self._flags: dict[tuple[TermAxis, Values], _Flags] = {}

    def of_part(self, part: Conjunct) -> float:
        counted = self._counted(part.formula(), part.members)
        return self._drawn(part) if counted is None else counted

    def of_expression(self, expression: Expression, members: Sequence[int]) -> float:
        counted = self._counted(self._context.form(expression).formula, members)
        # Without matches there is nothing to count; that all of it is irrelevant is then the careful answer.
        return 1.0 if counted is None else counted

    def _counted(self, formula: Formula, members: Sequence[int]) -> float | None:
        if not len(self._sample):
            return None
        matched = self._sample.matched(formula)
        count = int(matched.sum())
        if count < _FEWEST_MATCHES:
            return None
        for member in members:
            if member not in self._wanted:
                self._wanted[member] = self._sample.matched(self._forms[member].formula)
        wanted = np.logical_or.reduce([self._wanted[member] for member in members])
        return float((matched & ~wanted).sum() / count)

    # -- Drawn events

    def _drawn(self, part: Conjunct) -> float:
        members = [self._forms[member] for member in part.members]
        boxes = [form.box for form in members if form.box is not None]
        if len(boxes) < len(members):
            return 1.0  # what it matches beyond its members is not known
        if len(boxes) == 2 and not len(self._sample) and len(self._forms) == 2 and _is_tight(part, boxes):
            return imperfection_of_two(*boxes)
        if len(boxes) <= 2:
            return self._computed(part, boxes)
        drawn: dict[TermAxis, npt.NDArray[np.int64]] = {}
        wanted = np.zeros(_DRAWN, np.bool_)
        for box in boxes:
            inside = np.ones(_DRAWN, np.bool_)
            for axis, values in box.items():
                if axis not in drawn:
                    chances = self._chances(axis, part.box.get(axis, axis.values))
                    drawn[axis] = self._chance.choice(len(chances), _DRAWN, p=chances)
                inside &= self._inside(axis, values)[drawn[axis]]
            wanted |= inside
        return float(1 - wanted.mean())

    def _computed(self, part: Conjunct, boxes: Sequence[Box]) -> float:
        """Return what drawing comes to in the end: one or the other, less what both match."""
        shares, both = [1.0] * len(boxes), 1.0
        for axis in dict.fromkeys(axis for box in boxes for axis in box):
            chances = self._chances(axis, part.box.get(axis, axis.values))
            inside = [self._inside(axis, box.get(axis, axis.values)) for box in boxes]
            shares = [share * float(chances[each].sum()) for share, each in zip(shares, inside, strict=True)]
            both *= float(chances[np.logical_and.reduce(inside)].sum())
        return min(1.0, max(0.0, 1 - (sum(shares) - both if len(boxes) == 2 else shares[0])))

    def _chances(self, axis: TermAxis, values: Values) -> npt.NDArray[np.float64]:
        """Return how likely each place of a set is: as often as the sample is there, evenly where it never is."""
        _, counts = self._all_places(axis)
        inside = self._inside(axis, values)
        weights = counts * inside
        weights = weights if weights.any() else inside.astype(np.float64)
        chances: npt.NDArray[np.float64] = weights / weights.sum()
        return chances

    def _inside(self, axis: TermAxis, values: Values) -> _Flags:
        known = self._flags.get((axis, values))
        if known is None:
            places, _ = self._all_places(axis)
            known = np.zeros(len(places), np.bool_)
            for low, high in zip(values[::2], values[1::2], strict=True):
                known[bisect_left(places, low) : bisect_left(places, high)] = True
            self._flags[axis, values] = known
        return known

    def _all_places(self, axis: TermAxis) -> tuple[list[Cut], npt.NDArray[np.float64]]:
        """Return where the sample's values lie, and where stretches begin; and how often the sample is there."""
        known = self._places.get(axis)
        if known is None:
            cuts, ranks = self._sample.ranks(axis) if len(self._sample) else ([], np.zeros(0, np.int64))
            often = dict(zip(cuts, np.bincount(ranks, minlength=len(cuts)).tolist(), strict=True))
            starts = (*self._cuts_of.get(axis, ()), *axis.values)
            places = sorted({*cuts, *(cut for cut in starts if is_member(cut, axis.values))})
            known = self._places[axis] = (places, np.array([often.get(cut, 0) for cut in places], np.float64))
        return known


class ByShare(ImperfectionMeasure):
    """Ask an estimator how often the merger is true, and how often one of its members is."""

    needs_words = True

    def __init__(self, forms: Sequence[Form], context: Context, share: Callable[[Expression], float]) -> None:
        self._forms = forms
        self._context = context
        self._share = share

    def of_part(self, part: Conjunct) -> float:
        written = part.written(self._context)
        return 1.0 if written is None else self.of_expression(written, part.members)

    def of_expression(self, expression: Expression, members: Sequence[int]) -> float:
        matched = self._share(expression)
        wanted = self._share(disjunction(dict.fromkeys(self._forms[member].expression for member in members)))
        return min(1.0, max(0.0, 1 - wanted / matched)) if matched > 0 else 1.0
