"""How are columns of truths combined? Three-valued logic on columns.

A condition is true, false or unknown. Two flags say it best: where it is true, and where it is false. Then AND is true
where all are and false where one is, NOT changes the two, and nothing has to think of the third value.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.matching.columnwise.series import Series

if TYPE_CHECKING:
    from collections.abc import Sequence


class Truth(NamedTuple):
    """Where a condition is true, and where it is false."""

    true: Any
    false: Any


def truth_of(series: Series) -> Truth:
    """Read values where a condition is expected: only a Boolean has a truth, all else is unknown."""
    match series.kind:
        case "boolean":
            if series.valid is None:
                return Truth(series.values, ~series.values)
            return Truth(series.values & series.valid, ~series.values & series.valid)
        case "object":
            count = len(series.values)
            true = np.fromiter((value is True for value in series.values), np.bool_, count)
            return Truth(true, np.fromiter((value is False for value in series.values), np.bool_, count))
        case "mixed":
            true, false = np.zeros(1, np.bool_), np.zeros(1, np.bool_)
            for index, part in enumerate(series.elements):
                truth = truth_of(part)
                true = true | (truth.true & (series.values == index))
                false = false | (truth.false & (series.values == index))
            return Truth(true, false)
        case _:
            return Truth(np.zeros(1, np.bool_), np.zeros(1, np.bool_))


def from_truth(truth: Truth) -> Series:
    """Return a truth as a series."""
    return Series("boolean", truth.true, truth.true | truth.false)


def negation(operand: Series) -> Series:
    """True where its operand is false."""
    true, false = truth_of(operand)
    return from_truth(Truth(false, true))


def conjunction(operands: Sequence[Series]) -> Series:
    """True where all operands are, false where one is."""
    if _are_known_together(operands):
        return Series("boolean", reduce(and_, (each.values for each in operands)), operands[0].valid)
    truths = [truth_of(operand) for operand in operands]
    return from_truth(Truth(reduce(and_, (each.true for each in truths)), reduce(or_, (each.false for each in truths))))


def disjunction(operands: Sequence[Series]) -> Series:
    """True where one operand is, false where all are."""
    if _are_known_together(operands):
        return Series("boolean", reduce(or_, (each.values for each in operands)), operands[0].valid)
    truths = [truth_of(operand) for operand in operands]
    return from_truth(Truth(reduce(or_, (each.true for each in truths)), reduce(and_, (each.false for each in truths))))


def _are_known_together(operands: Sequence[Series]) -> bool:
    """Are all operands unknown for the same events, such as those that lack the one attribute they all ask for?"""
    valid = operands[0].valid
    return all(operand.kind == "boolean" and operand.valid is valid for operand in operands)


def parity(operands: Sequence[Series]) -> Series:
    """True where an odd number of operands is, unknown where one of them is."""
    truths = [truth_of(operand) for operand in operands]
    return Series(
        "boolean",
        reduce(xor, (each.true for each in truths)),
        reduce(and_, (each.true | each.false for each in truths)),
    )


def at_least(count: int, operands: Sequence[Series]) -> Series:
    """True where so many operands are, false where so many can no longer become true."""
    truths = [truth_of(operand) for operand in operands]
    true_count = reduce(np.add, (each.true.astype(np.int32) for each in truths))
    false_count = reduce(np.add, (each.false.astype(np.int32) for each in truths))
    return from_truth(Truth(true_count >= count, len(operands) - false_count < count))


def is_null(operand: Series) -> Series:
    """True where there is no value, and never unknown."""
    known = operand.known()
    return Series("boolean", np.zeros(1, np.bool_) if known is None else ~known)


def codes_of(series: Series, count: int) -> npt.NDArray[np.uint32]:
    """Return the truths of so many events as codes: 0 unknown, 1 false, 2 true."""
    if series.kind != "boolean":
        true, false = truth_of(series)
        codes = false.view(np.uint8) + 2 * true.view(np.uint8)
    else:
        codes = series.values.view(np.uint8) + np.uint8(1)
        if series.valid is not None:
            codes *= series.valid
    return codes.astype(np.uint32) if len(codes) == count else np.full(count, codes[0], np.uint32)
