"""Which filters lie so close that one around them does little harm?

Mergers around two filters are imperfect: the box of both holds what neither wants. The closest pair is merged first,
then the next, as long as the imperfection keeps within the budget; it is always measured against the filters
that were given, so that errors do not add up unseen. Close pairs are looked for among neighbours: on every term,
filters in the order of their values stand beside those that begin and end where they do.

For the terms on which two filters differ there are several ways to be general. The tightest that can be written is
tried first: the union of both sets, else the stretch around them. What came out of many is then said more shortly, as
a single stretch instead of several, if the budget allows.

Source: greedy merging over a graph of proximity, and the ways to be general, are Mühl et al. 2002, section 3.6
  (docs/bibliography.md); what is measured, and when to stop, it leaves open.
"""

from __future__ import annotations

import heapq
from itertools import combinations
from typing import TYPE_CHECKING

from tamis.language.expressions import In
from tamis.language.ranges.value_sets import intersection, union, without_gaps
from tamis.relations.parts import Conjunct
from tamis.relations.wording import worded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.relations.domains import TermAxis
    from tamis.relations.forms import Box, Context
    from tamis.relations.imperfection import ImperfectionMeasure

_COMPARED_PAIRWISE = 40
"""So many parts are all compared with one another."""
_NEIGHBOURS = 3
_SHORT_LIST = 16


def merged_around(
    one: Conjunct, two: Conjunct, measure: ImperfectionMeasure, budget: float, context: Context
) -> Conjunct | None:
    """Return a part around two others within the budget; None if there is none."""
    merger = _around(one, two, measure, budget, context)
    return None if merger is None else _widened(merger, measure, budget, context)


def merged_by_proximity(
    parts: list[Conjunct], measure: ImperfectionMeasure, budget: float, context: Context
) -> list[Conjunct]:
    """Merge the closest parts as long as no merger is more imperfect than the budget allows."""
    living = dict(enumerate(parts))
    near: dict[int, set[int]] = {number: set() for number in living}
    heap: list[tuple[float, int, int]] = []
    made: dict[tuple[int, int], Conjunct] = {}

    def consider(one: int, two: int) -> None:
        near[one].add(two)
        near[two].add(one)
        together = _around(living[one], living[two], measure, budget, context)
        if together is not None:
            made[one, two] = together
            heapq.heappush(heap, (together.imperfection, one, two))

    for one, two in _close_pairs(parts):
        consider(one, two)
    number = len(parts)
    while heap:
        _, one, two = heapq.heappop(heap)
        together = made.pop((one, two))
        if one not in living or two not in living:
            continue
        neighbours = {each for each in near.pop(one) | near.pop(two) if each in living} - {one, two}
        del living[one], living[two]
        living[number], near[number] = together, set()
        for other in sorted(neighbours):
            consider(other, number)
        number += 1
    return [part if part.perfect else _widened(part, measure, budget, context) for part in living.values()]


def _close_pairs(parts: list[Conjunct]) -> Iterator[tuple[int, int]]:
    if len(parts) <= _COMPARED_PAIRWISE:
        yield from combinations(range(len(parts)), 2)
        return
    seen: set[tuple[int, int]] = set()
    by_axis: dict[TermAxis, list[int]] = {}
    for number, part in enumerate(parts):
        for axis in part.box:
            by_axis.setdefault(axis, []).append(number)
    for axis, numbers in by_axis.items():
        for end in (0, -1):
            ordered = sorted(numbers, key=lambda number: parts[number].box[axis][end])
            for distance in range(1, _NEIGHBOURS + 1):
                for pair in zip(ordered, ordered[distance:], strict=False):
                    if (key := (min(pair), max(pair))) not in seen:
                        seen.add(key)
                        yield key


def _around(
    one: Conjunct, two: Conjunct, measure: ImperfectionMeasure, budget: float, context: Context
) -> Conjunct | None:
    """Return the tightest part around two that is within the budget and can be written; None if there is none."""
    rest = {formula: written for formula, written in one.rest.items() if formula in two.rest}
    members = one.members + two.members
    common = [axis for axis in one.box if axis in two.box]
    for is_union in (True, False):
        box: Box = {}
        for axis in common:
            values = union(one.box[axis], two.box[axis])
            values = values if is_union else intersection(without_gaps(values), axis.values)
            if values != axis.values:
                box[axis] = values
        if not box and not rest:
            continue
        # Measured first, because most are too imperfect, and words take longer.
        part = Conjunct(box, rest, members, perfect=False)
        part.imperfection = measure.of_part(part)
        if part.imperfection > budget and not measure.needs_words:
            return None  # what is wider is worse
        if part.written(context) is not None:
            return part if part.imperfection <= budget else None
    return None


def _widened(part: Conjunct, measure: ImperfectionMeasure, budget: float, context: Context) -> Conjunct:
    """Return a part with fewer stretches that is still within the budget."""
    for axis, values in list(part.box.items()):
        around = intersection(without_gaps(values), axis.values)
        if around in (values, axis.values):
            continue
        said = worded(axis, values, context)
        if isinstance(said, In) and len(said.values) <= _SHORT_LIST:
            continue
        wider = Conjunct(part.box | {axis: around}, part.rest, part.members, perfect=False)
        if wider.written(context) is not None:
            wider.imperfection = measure.of_part(wider)
            part = wider if wider.imperfection <= budget else part
    return part
