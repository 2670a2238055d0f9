"""What is done where a column has no answer? The reference meaning is asked, row by row.

It happens to values of several kinds in one column, to quotients of decimals, to functions that nobody has written for
columns. The tests count how often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.matching.columnwise.series import Series


def row_by_row(function: Callable[..., Any], arguments: Sequence[Series]) -> list[Any]:
    """Return what a function gives for the arguments of each row.

    >>> from tamis.language.values import divide
    >>> from tamis.matching.columnwise.series import from_values, literal
    >>> row_by_row(divide, [from_values([1, None, 3]), literal(2)])
    [0.5, None, 1.5]
    """
    lists = [argument.tolist() for argument in arguments]
    count = max(map(len, lists), default=1) if all(lists) else 0
    return list(map(function, *(values if len(values) == count else values * count for values in lists)))
