"""Which rows of two columns compare as asked?

Two columns of one kind become two arrays that compare as the values do: numbers as integers or doubles, texts as their
order byte by byte, which in UTF-8 is that of the code points. Columns of different kinds never compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.language.values import EXACT, GREATEST_INTEGER, LEAST_INTEGER, compare, kind_of
from tamis.matching.columns import micros
from tamis.matching.columnwise import kernels
from tamis.matching.columnwise.numbers import comparable, equal, less
from tamis.matching.columnwise.rows import row_by_row
from tamis.matching.columnwise.series import NULL, NUMBERS, Flags, Series, both, by_text
from tamis.matching.columnwise.truths import conjunction

if TYPE_CHECKING:
    from collections.abc import Sequence

_NEVER = np.zeros(1, np.bool_)
_ORDERED = ("string", "time", "boolean")


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two arrays that compare as two series do, where they do."""

    left: Any
    right: Any
    known: Flags | None


def compared(operator: str, left: Series, right: Series) -> Series:
    """Return the truths of a comparison."""
    pair = _pair(left, right)
    if operator == "<=>":
        is_null = ~_flags(left.known()) & ~_flags(right.known())
        if pair is None:
            return Series("boolean", is_null | _NEVER)
        return Series("boolean", (equal(pair.left, pair.right) & _flags(pair.known)) | is_null)
    if pair is None:
        return NULL
    match operator:
        case "=":
            truths = equal(pair.left, pair.right)
        case "<>":
            truths = ~equal(pair.left, pair.right)
        case "<":
            truths = less(pair.left, pair.right)
        case "<=":
            truths = ~less(pair.right, pair.left)
        case ">":
            truths = less(pair.right, pair.left)
        case _:
            truths = ~less(pair.left, pair.right)
    return Series("boolean", truths, pair.known)


def between(value: Series, low: Series, high: Series) -> Series:
    """Return where a value lies between two others, both included."""
    return conjunction([compared(">=", value, low), compared("<=", value, high)])


def _pair(left: Series, right: Series) -> _Pair | None:
    """Return two arrays that compare as the series do; None where they never do."""
    known = both(left.known(), right.known())
    kinds = {left.kind, right.kind}
    if kinds <= set(NUMBERS):
        arrays = comparable(left, right)
        if arrays is not None:
            return _Pair(*arrays, known)
    elif kinds & {"null", "array"}:
        return None
    elif len(kinds) == 1 and left.kind in _ORDERED:
        return _Pair(*_text_orders(left, right) if left.kind == "string" else (left.values, right.values), known)
    elif "object" not in kinds:
        return None
    orders = row_by_row(compare, [left, right])
    known = np.fromiter((order is not None for order in orders), np.bool_, len(orders))
    return _Pair(np.array([order or 0 for order in orders], np.int8), np.zeros(1, np.int8), known)


def _text_orders(left: Series, right: Series) -> tuple[Any, Any]:
    """Return the order of texts beside zero. One text beside a column is compared with each distinct text only."""
    zero = np.zeros(1, np.int8)
    if right.is_constant or left.is_constant:
        constant, column = (right, left) if right.is_constant else (left, right)
        orders = np.empty(len(column.words), np.int8)
        all_words = np.arange(len(orders), dtype=np.int32)
        one_word = np.full(len(orders), constant.values[0], np.int32)  # not 0: it may be any, or NULL
        kernels.orders_of_texts(_texts_of(column, all_words), _texts_of(constant, one_word), orders)
        by_row = by_text(orders, column)
        return (by_row, zero) if column is left else (zero, by_row)
    orders = np.empty(len(left.values), np.int8)
    kernels.orders_of_texts(_texts_of(left, left.values), _texts_of(right, right.values), orders)
    return orders, zero


def _texts_of(column: Series, places: Any) -> kernels.TextColumn:
    """Return some of the texts of a column."""
    return kernels.TextColumn(column.words.texts.data, column.words.texts.offsets, places)


# -- Sets


def among(value: Series, members: Sequence[Any]) -> Series:
    """Return where a value is equal to one of some constants: unknown where it is not, and one does not compare."""
    if not members:
        return Series("boolean", np.zeros(1, np.bool_))
    if value.kind == "object":
        truths = row_by_row(lambda one: _is_among(one, members), [value])
        known = np.fromiter((each is not None for each in truths), np.bool_, len(truths))
        return Series("boolean", np.array([bool(each) for each in truths], np.bool_), known)
    if value.kind in ("null", "array"):
        return NULL
    kind = "number" if value.kind in NUMBERS else value.kind
    fitting = [member for member in members if kind_of(member) == kind]
    hits = _FINDERS[kind](value, fitting)
    is_doubtful = len(fitting) < len(members)
    return Series("boolean", hits, _flags(value.known()) & hits if is_doubtful else value.known())


def _is_among(one: Any, members: Sequence[Any]) -> bool | None:
    orders = {compare(one, member) for member in members}
    return True if 0 in orders else None if None in orders else False


def _number_among(value: Series, members: list[Any]) -> Any:
    inexact = np.array([member for member in members if isinstance(member, float)], np.float64)
    exact = [member for member in members if not isinstance(member, float)]
    if value.kind == "double":
        inexact = np.concatenate([inexact, np.array([float(member) for member in exact], np.float64)])
        exact = []
    is_member = np.zeros(len(value.values), np.bool_)
    if len(inexact):
        doubles = value.doubles()
        is_member |= np.isin(doubles, inexact)
        if np.isnan(inexact).any():
            is_member |= np.isnan(doubles)
    if exact:
        units = [_units(member, value.scale) for member in exact]
        fitting = [each for each in units if each is not None and LEAST_INTEGER <= each <= GREATEST_INTEGER]
        is_member |= np.isin(value.values, np.array(fitting, np.int64))
    return is_member


def _units(member: int | Decimal, scale: int) -> int | None:
    """Return an exact number in units of 10**-scale; None where it lies between two of them."""
    units = EXACT.scaleb(Decimal(member), scale)
    return int(units) if units == units.to_integral_value() else None


def _text_among(value: Series, members: list[str]) -> Any:
    wanted = set(members)
    return by_text(np.array([text in wanted for text in value.words.strings], np.bool_), value)


_FINDERS: dict[str, Any] = {
    "number": _number_among,
    "string": _text_among,
    "time": lambda value, members: np.isin(value.values, np.array([micros(each) for each in members], np.int64)),
    "boolean": lambda value, members: np.isin(value.values, np.array(members, np.bool_)),
}


def _flags(known: Flags | None) -> Any:
    return np.ones(1, np.bool_) if known is None else known
