"""Which changes need not be asked whether they become false? Those of which the group and the known values say it.

A change that is true in a group, and whose entry condition an event of the group does not match, becomes false if its
exit condition is true. Often that is clear without looking at the condition:

    a part of WHERE or of the condition that equates an attribute of PER with a constant was true in this group before,
    so it is true for all events of the group;
    what remains of a condition without UNTIL is made of comparisons of attributes with numbers: where all of these
    attributes are numbers, none of the comparisons is unknown, so a condition that is not true is false;
    and UNTIL with a single such comparison is compared with its number.

WHERE symbol = 'IBM' without PER is the same as with PER symbol: only events of that group concern the change. So it is
kept by group, too, and an event costs what is true in its own group.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.language.expressions import (
    MIRRORED,
    TRUE,
    And,
    Attribute,
    Compare,
    Expression,
    Literal,
    Not,
    Or,
)
from tamis.standing.kernels import (
    ASKED,
    EQUAL,
    GREATER,
    GREATER_OR_EQUAL,
    IF_KNOWN,
    KNOWN,
    LESS,
    LESS_OR_EQUAL,
    NOT_EQUAL,
    UNKNOWN,
    UNUSUAL,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.matching.columns import Events, Path
    from tamis.standing.change import Change
    from tamis.standing.groups import Paths

_WAYS = {
    "<": LESS,
    "<=": LESS_OR_EQUAL,
    "=": EQUAL,
    ">=": GREATER_OR_EQUAL,
    ">": GREATER,
    "<>": NOT_EQUAL,
}
_KNOWLEDGE = {int: KNOWN, float: KNOWN, type(None): UNKNOWN}
_NUMBERS = (int, float, Decimal)
_EXACT = 2**53
"""Integers below it are the same as floats."""


class ExitForm(NamedTuple):
    """How it is decided whether a change becomes false."""

    per: Paths
    """By which attributes it is kept."""
    extra: tuple[str | int, ...]
    """The values of those that are not in its own PER, which come last."""
    way: int = ASKED
    paths: tuple[Path, ...] = ()
    """What has to be known."""
    limit: float = 0.0


def exit_form(change: Change) -> ExitForm:
    """Look at a change.

    >>> from tamis.standing import Change
    >>> exit_form(Change("price > 30", where="symbol = 'IBM'"))
    ExitForm(per=(('symbol',),), extra=('IBM',), way=1, paths=(('price',),), limit=0.0)
    >>> exit_form(Change("price > 30", until="price < 28", per=["symbol"])).limit
    28.0
    >>> exit_form(Change("price > 30", where="volume > 3")).way
    0
    """
    per, extra, remaining = change.per, [], []
    for part in _parts(change.where):
        key = _equated(part)
        if key is None:
            remaining.append(part)
        elif key[0] not in per:
            if change.forget_after is not None:
                remaining.append(part)
                continue
            per = (*per, key[0])
            extra.append(key[1])
    kept = ExitForm(per, tuple(extra))
    if remaining:
        return kept
    if change.until is not None:
        compared = _compared(change.until)
        if compared is None:
            return kept
        path, way, limit = compared
        return kept._replace(way=way, paths=(path,), limit=limit)
    asked: set[Path] = set()
    for part in _parts(change.condition):
        key = _equated(part)
        if key is None or key[0] not in per:
            paths = _compared_paths(part)
            if paths is None:
                return kept
            asked |= paths
    return kept._replace(way=IF_KNOWN, paths=tuple(sorted(asked)))


def _parts(condition: Expression) -> tuple[Expression, ...]:
    if condition == TRUE:
        return ()
    return tuple(condition.children) if isinstance(condition, And) else (condition,)


def _sides(condition: Expression) -> tuple[Path, str, Any] | None:
    """Return attribute, operator and constant of a comparison; None for whatever else."""
    if not isinstance(condition, Compare):
        return None
    match condition.left, condition.right:
        case Attribute(path), Literal(value):
            return path, condition.operator, value
        case Literal(value), Attribute(path):
            return path, MIRRORED[condition.operator], value
    return None


def _equated(condition: Expression) -> tuple[Path, str | int] | None:
    """Return attribute and value of an equation all of whose values are one group; None for whatever else."""
    sides = _sides(condition)
    if sides is None or sides[1] != "=":
        return None
    path, _, value = sides
    # A float equals several huge integers, which are groups of their own.
    if type(value) is str or (type(value) is int and abs(value) < _EXACT):
        return path, value
    return None


def _compared(condition: Expression) -> tuple[Path, int, float] | None:
    """Return attribute, operator and number of a comparison that floats decide; None for whatever else."""
    sides = _sides(condition)
    if sides is None or sides[1] not in _WAYS:
        return None
    path, operator, value = sides
    if isinstance(value, float):
        is_exact = not math.isnan(value)
    elif isinstance(value, int | Decimal) and not isinstance(value, bool):
        # A float is compared with it as a float, and an integer exactly: for that a decimal must not be rounded to an
        # integer that it is not.
        is_exact = -_EXACT < value < _EXACT and (float(value) == value or not float(value).is_integer())
    else:
        return None
    return (path, _WAYS[operator], float(value)) if is_exact else None


def _compared_paths(condition: Expression) -> set[Path] | None:
    """Return which attributes a condition compares with numbers; None if it is made of anything else, too."""
    if isinstance(condition, And | Or | Not):
        below = [_compared_paths(child) for child in condition.children]
        return None if None in below else set().union(*(paths for paths in below if paths is not None))
    sides = _sides(condition)
    if sides is None or sides[1] not in _WAYS or type(sides[2]) not in _NUMBERS:
        return None
    return {sides[0]}


def knowledge(events: Events, profiles: list[tuple[Path, ...]]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float64]]:
    """Return by profile and row whether all values of its attributes are known numbers, and the first of them.

    >>> from tamis.matching.columns import Events
    >>> [each.tolist() for each in knowledge(Events([{"a": 1}, {}]), [(("a",),), (("b",),)])]
    [[[0, 1], [1, 1]], [[1.0, 0.0], [0.0, 0.0]]]
    """
    states = np.full((len(profiles), events.count), KNOWN, np.int8)
    values = np.zeros((len(profiles), events.count))
    for index, paths in enumerate(profiles):
        for place, path in enumerate(paths):
            column = events.column(path)
            if column is None:
                states[index] = np.maximum(states[index], UNKNOWN)
            elif column.kind in ("int", "double"):
                if column.valid is not None:
                    states[index][~column.valid] = np.maximum(states[index][~column.valid], UNKNOWN)
                if place == 0:
                    values[index] = column.values
            elif column.kind == "object":  # integers and floats, perhaps
                known = [_KNOWLEDGE.get(type(value), UNUSUAL) for value in column.values]
                states[index] = np.maximum(states[index], known)
                if place == 0:
                    values[index] = [value if type(value) in (int, float) else 0.0 for value in column.values]
            else:
                states[index] = UNUSUAL
        if len(paths) > 1:  # where some are known, a condition of several may be false nevertheless
            states[index][states[index] == UNKNOWN] = UNUSUAL
    return states, values
