"""In which few boxes lies everything that a filter matches? A cover by boxes.

A conjunction lies in one box. A disjunction lies in the boxes of its parts, and a conjunction of disjunctions in their
intersections, as long as these are few; beyond that, boxes are replaced by one around them. So the clauses of a
filter are never too small, and where nothing was replaced they are exactly what the filter matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.ranges.value_sets import intersection, union_of
from tamis.relations.enclosures import enclosure
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
    from tamis.relations.forms import Box, Context

MOST_CLAUSES = 16

Clauses = tuple[list["Box"], bool]
"""Boxes over attributes, and whether they are exactly what is matched."""


def clauses(formula: Formula, context: Context, most: int = MOST_CLAUSES) -> Clauses:
    """Return boxes outside of which a formula does not hold.

    >>> from tamis.relations.forms import context_of
    >>> form = context_of(None).form("a = 1 AND (b = 2 OR c = 3)")
    >>> boxes, is_exact = clauses(form.formula, form.context)
    >>> [[str(axis.term) for axis in box] for box in boxes], is_exact
    ([['a', 'b'], ['a', 'c']], True)
    """

    def combine(node: Formula, below: list[Clauses]) -> Clauses:
        match node:
            case Constant():
                return ([{}] if node.is_true else []), True
            case Within(axis=axis, values=values):
                if axis.is_plain:
                    return [{axis: values}], True
                return _enclosed(node, context), False
            case Fact():
                return _enclosed(node, context), False
            case Conjunction():
                return _intersected(below, most)
            case Disjunction():
                return _united(below, most)
            case Threshold(count=count):
                # Among any n - count + 1 of n operands one holds, if at least `count` of all do.
                fewest = sorted(below, key=lambda each: len(each[0]))[: len(below) - count + 1]
                return _united(fewest, most)[0], False
        raise AssertionError(f"a formula of an unknown class: {type(node).__name__}")

    return fold(formula, combine)


def _enclosed(leaf: Within | Fact, context: Context) -> list[Box]:
    box = {axis: values for axis, values in enclosure(leaf, context.axis).items() if axis.is_plain}
    return [box] if all(box.values()) else []


def _intersected(parts: list[Clauses], most: int) -> Clauses:
    boxes: list[Box] = [{}]
    is_exact = True
    for part, is_part_exact in sorted(parts, key=lambda each: len(each[0])):
        is_exact &= is_part_exact
        if len(boxes) * len(part) > most:
            part = [around(part)]
            is_exact = False
        if len(part) == 1:  # no copies: thousands of conditions would be copied thousands of times
            boxes = [box for box in boxes if _narrow(box, part[0])]
        else:
            boxes = [joined for one in boxes for two in part if _narrow(joined := one.copy(), two)]
    return boxes, is_exact


def _narrow(box: Box, by: Box) -> bool:
    """Narrow a box by another, in place; return whether anything is left."""
    for axis, values in by.items():
        if axis in box:
            values = intersection(box[axis], values)
            if not values:
                return False
        box[axis] = values
    return True


def _united(parts: list[Clauses], most: int) -> Clauses:
    boxes = [box for part, _ in parts for box in part]
    if len(boxes) > most:
        return [around(boxes)], False
    return boxes, all(is_exact for _, is_exact in parts)


def around(boxes: list[Box]) -> Box:
    """Return the smallest box around some, without the attributes that may be anything.

    >>> around([])
    {}
    """
    if not boxes:
        return {}
    together = {axis: [box[axis] for box in boxes if axis in box] for axis in boxes[0]}
    united = {axis: union_of(*sets) for axis, sets in together.items() if len(sets) == len(boxes)}
    return {axis: values for axis, values in united.items() if values != axis.values}
