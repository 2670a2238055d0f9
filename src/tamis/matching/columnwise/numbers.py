"""How are columns of numbers added, divided and compared, exactly as one number at a time?

The rules are those of `language.values`: doubles are IEEE, integers have 64 bits and overflow to NULL, decimals are
exact up to 38 digits. Numpy follows IEEE for each single operation, so doubles agree to the last bit. Integers are
added without a look at the rows where their bounds show that nothing can overflow. Decimals are computed as integers
in units of their last digit, as long as these have 64 bits.

Every function returns None where it has no answer that is sure: then the reference meaning is asked, row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.language.values import DIGITS, GREATEST_INTEGER, LEAST_INTEGER
from tamis.matching.columnwise.series import NULL, NUMBERS, Flags, Series, both, exact, literal

Bounds = tuple[int, int]
_ZERO = literal(0)


def common_kind(*arguments: Series) -> str:
    """Return the widest kind of some numbers, `null` where one is not a number, `object` where it depends on the row.

    >>> common_kind(literal(1), literal(0.5)), common_kind(literal(1), literal("a"))
    ('double', 'null')
    """
    kinds = {argument.kind for argument in arguments}
    if kinds - {*NUMBERS, "object"}:
        return "null"
    return "object" if "object" in kinds else max(kinds, key=NUMBERS.index)


def fits(bounds: Bounds) -> bool:
    """Do the bounds have 64 bits?"""
    return bounds[0] >= LEAST_INTEGER and bounds[1] <= GREATEST_INTEGER


def add(left: Series, right: Series) -> Series | None:
    """Add."""
    bounds = left.bounds[0] + right.bounds[0], left.bounds[1] + right.bounds[1]
    match common_kind(left, right):
        case "null":
            return NULL
        case "double":
            return Series("double", left.doubles() + right.doubles(), both(left.valid, right.valid))
        case "int":
            values = left.values + right.values
            overflows = None if fits(bounds) else ((left.values ^ values) & (right.values ^ values)) < 0
            return _integers(values, both(left.valid, right.valid), bounds, overflows)
        case "decimal":
            return _of_aligned(np.add, left, right, lambda one, two: (one[0] + two[0], one[1] + two[1]))
    return None


def subtract(left: Series, right: Series) -> Series | None:
    """Subtract."""
    bounds = left.bounds[0] - right.bounds[1], left.bounds[1] - right.bounds[0]
    match common_kind(left, right):
        case "null":
            return NULL
        case "double":
            return Series("double", left.doubles() - right.doubles(), both(left.valid, right.valid))
        case "int":
            values = left.values - right.values
            overflows = None if fits(bounds) else ((left.values ^ right.values) & (left.values ^ values)) < 0
            return _integers(values, both(left.valid, right.valid), bounds, overflows)
        case "decimal":
            return _of_aligned(np.subtract, left, right, lambda one, two: (one[0] - two[1], one[1] - two[0]))
    return None


def multiply(left: Series, right: Series) -> Series | None:
    """Multiply."""
    corners = [one * two for one in left.bounds for two in right.bounds]
    bounds = min(corners), max(corners)
    valid = both(left.valid, right.valid)
    match common_kind(left, right):
        case "null":
            return NULL
        case "double":
            return Series("double", left.doubles() * right.doubles(), valid)
        case "int":
            values = left.values * right.values
            return _integers(values, valid, bounds, None if fits(bounds) else _overflowing(left.values, right.values))
        case "decimal" if fits(bounds) and left.scale + right.scale <= DIGITS:
            return Series("decimal", left.values * right.values, valid, left.scale + right.scale, bounds)
    return None


def divide(left: Series, right: Series) -> Series | None:
    """Divide; quotients of decimals have 38 digits, and so no column."""
    match common_kind(left, right):
        case "null":
            return NULL
        case "double" | "int":
            divisors = right.doubles()
            return Series("double", left.doubles() / divisors, both(both(left.valid, right.valid), divisors != 0))
    return None


def remainder(left: Series, right: Series) -> Series | None:
    """Return what remains of a division, with the sign of the dividend."""
    kind = common_kind(left, right)
    if kind == "null":
        return NULL
    if kind == "double":
        dividends, divisors = left.doubles(), right.doubles()
        valid = both(both(left.valid, right.valid), divisors != 0)
        return Series("double", np.fmod(dividends, divisors), valid)  # which is NaN for an infinite dividend too
    aligned = None if kind == "object" else _aligned(left, right)
    if aligned is None or aligned[2] > DIGITS:
        return None
    (one, _), (two, _), scale = aligned
    # What is not divided by 0 or -1 cannot fail; by -1 and by 1 nothing remains.
    rests = np.fmod(one, np.where((two == 0) | (two == -1), 1, two))
    return exact(kind, rests, both(both(left.valid, right.valid), two != 0), scale)


def negate(number: Series) -> Series | None:
    """Turn the sign."""
    return subtract(_ZERO, number)


def absolute(number: Series) -> Series | None:
    """Drop the sign; that of -0.0 stays, as it is not below zero."""
    negated = negate(number)
    if negated is None or negated is NULL:
        return negated
    is_below = number.values < 0
    values = np.where(is_below, negated.values, number.values)
    if number.kind == "double":
        return Series("double", values, number.valid)
    return exact(number.kind, values, negated.valid, number.scale)


def mean(arguments: list[Series]) -> Series | None:
    """Return the sum of some numbers divided by their count."""
    total: Series | None = _ZERO
    for argument in arguments:
        total = None if total is None else add(total, argument)
    return None if total is None else divide(total, literal(len(arguments)))


def extreme(arguments: list[Series], sign: int) -> Series | None:
    """Return the greatest (sign 1) or least (sign -1) of numbers, times or Booleans, NULLs left out.

    The reference meaning gives the widest type of the values that are there, row by row; here all rows must have it.
    """
    present = [argument for argument in arguments if argument.kind != "null"]
    if not present:
        return NULL
    kinds = {argument.kind for argument in present}
    kind = common_kind(*present) if kinds <= set(NUMBERS) else kinds.pop() if len(kinds) == 1 else "object"
    if kind not in (*NUMBERS, "time", "boolean"):
        return None
    of_kind = [_all(argument.valid) for argument in present if argument.kind == kind]
    of_any = [_all(argument.valid) for argument in present]
    if kind in NUMBERS and bool((_any_of(of_any) & ~_any_of(of_kind)).any()):
        return None
    extreme_so_far = present[0] if kind not in NUMBERS else widened(present[0], kind)
    for argument in present[1:]:
        other = argument if kind not in NUMBERS else widened(argument, kind)
        pair = (
            _aligned(extreme_so_far, other)
            if kind == "decimal"
            else ((extreme_so_far.values, None), (other.values, None), 0)
        )
        if pair is None:
            return None
        (best, _), (values, _), scale = pair
        is_better = less(best, values) if sign > 0 else less(values, best)
        takes = _all(other.valid) & (is_better | ~_all(extreme_so_far.valid))
        valid = None if extreme_so_far.valid is None or other.valid is None else extreme_so_far.valid | other.valid
        values = np.where(takes, values, best)
        extreme_so_far = (
            exact(kind, values, valid, scale) if kind in ("int", "decimal") else Series(kind, values, valid)
        )
    return extreme_so_far


def widened(number: Series, kind: str) -> Series:
    """Return a number in a kind that is not narrower than its own."""
    if number.kind == kind:
        return number
    if kind == "double":
        return Series("double", number.doubles(), number.valid)
    return Series(kind, number.values, number.valid, number.scale, number.bounds)


# -- Order


def less(left: Any, right: Any) -> Flags:
    """Is it less? NaN is greater than every other number."""
    if left.dtype != np.float64 or _is_number(right):
        return np.asarray(left < right)
    return np.asarray(~((left >= right) | (left != left)))


def equal(left: Any, right: Any) -> Flags:
    """Is it equal? NaN is equal to itself."""
    if left.dtype != np.float64 or _is_number(left) or _is_number(right):
        return np.asarray(left == right)
    return np.asarray((left == right) | ((left != left) & (right != right)))


def _is_number(doubles: Any) -> bool:
    """Is it a constant other than NaN, so that nobody has to ask?"""
    return len(doubles) == 1 and bool(doubles[0] == doubles[0])


def comparable(left: Series, right: Series) -> tuple[Any, Any] | None:
    """Return two series of numbers as arrays that compare as the numbers do."""
    kind = common_kind(left, right)
    if kind == "double":
        return left.doubles(), right.doubles()
    aligned = _aligned(left, right)
    if aligned is not None:
        return aligned[0][0], aligned[1][0]
    # One of them has more digits behind the point than fit. Both are cut to the digits of the other one, and the rest
    # of the cut one breaks the tie: units are compared first, and then a rest of zero or more with zero.
    coarse, fine = (left, right) if left.scale < right.scale else (right, left)
    if fine.scale - coarse.scale > 18:
        return None
    wholes, rests = np.divmod(fine.values, 10 ** (fine.scale - coarse.scale))
    fine_order = np.where(
        wholes == coarse.values, (rests > 0).astype(np.int64), np.where(wholes > coarse.values, 1, -1)
    )
    zeros = np.zeros(1, np.int64)
    return (zeros, fine_order) if fine is right else (fine_order, zeros)


# -- Parts


def _integers(values: Any, valid: Flags | None, bounds: Bounds, overflows: Flags | None) -> Series:
    if overflows is None:
        return Series("int", values, valid, bounds=bounds)
    return exact("int", values, both(valid, ~overflows))


def _overflowing(left: Any, right: Any) -> Flags:
    """Does a product need more than 64 bits? Doubles know, but for those at the edge."""
    size = np.abs(left.astype(np.float64) * right.astype(np.float64))
    overflows = np.asarray(size >= 2.0**64)
    for index in np.flatnonzero((size >= 2.0**63) & ~overflows):
        one, two = int(left[index % len(left)]), int(right[index % len(right)])
        overflows[index] = not LEAST_INTEGER <= one * two <= GREATEST_INTEGER
    return overflows


def _aligned(left: Series, right: Series) -> tuple[tuple[Any, Bounds], tuple[Any, Bounds], int] | None:
    """Return the units of two exact numbers, and their bounds, at one scale; None where they need more bits."""
    scale = max(left.scale, right.scale)
    aligned = []
    for number in (left, right):
        factor = 10 ** (scale - number.scale)
        bounds = number.bounds[0] * factor, number.bounds[1] * factor
        if not fits(bounds):
            return None
        aligned.append((number.values * factor if 1 < factor <= GREATEST_INTEGER else number.values, bounds))
    return aligned[0], aligned[1], scale


def aligned_units(number: Series, scale: int) -> Any:
    """Return an exact number in units of a scale that is not less than its own; None where they need more bits."""
    factor = 10 ** (scale - number.scale)
    if not fits((number.bounds[0] * factor, number.bounds[1] * factor)):
        return None
    return number.values * factor if 1 < factor <= GREATEST_INTEGER else number.values


def _of_aligned(operation: Any, left: Series, right: Series, of_bounds: Any) -> Series | None:
    aligned = _aligned(left, right)
    if aligned is None:
        return None
    (one, one_bounds), (two, two_bounds), scale = aligned
    bounds = of_bounds(one_bounds, two_bounds)
    if not fits(bounds) or scale > DIGITS:
        return None
    return Series("decimal", operation(one, two), both(left.valid, right.valid), scale, bounds)


def _all(valid: Flags | None) -> Any:
    return np.ones(1, np.bool_) if valid is None else valid


def _any_of(flags: list[Any]) -> Any:
    union = flags[0]
    for each in flags[1:]:
        union = union | each
    return union
