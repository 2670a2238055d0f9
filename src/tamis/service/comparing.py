"""Which of the subscriptions that somebody has say the same as a filter, or more, or less?

Whoever tries a filter learns whether one of their own subscriptions covers it, so that it brings nothing new, or is
covered by it, so that it could go. Relations of long filters take time: they are compared until a time is over, and the
answer says how many were.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tamis.relations import covers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema

LONGEST_S = 1.0


class Named(NamedTuple):
    """A subscription of a subscriber."""

    subscriber: str
    key: str
    expression: Expression


@dataclass(slots=True)
class Relatives:
    """How a filter relates to subscriptions."""

    same: list[Named] = field(default_factory=list)
    covered_by: list[Named] = field(default_factory=list)
    """They match every event that the filter matches, and more."""
    covers: list[Named] = field(default_factory=list)
    """The filter matches every event that they match, and more."""
    compared: int = 0
    is_complete: bool = True


def compared(
    wanted: Expression,
    subscriptions: Iterable[Named],
    schema: Schema | None,
    *,
    clock: Callable[[], float],
    longest_s: float = LONGEST_S,
) -> Relatives:
    """Compare a filter with subscriptions; only what is proven counts.

    >>> from time import monotonic
    >>> from tamis import parse
    >>> mine = [Named("ann", "cheap", parse("price < 20")), Named("ann", "free", parse("price = 0"))]
    >>> relatives = compared(parse("price < 10"), mine, None, clock=monotonic)
    >>> [each.key for each in relatives.covered_by], [each.key for each in relatives.covers]
    (['cheap'], ['free'])
    """
    relatives, ends_s = Relatives(), clock() + longest_s
    for each in subscriptions:
        if clock() >= ends_s:
            relatives.is_complete = False
            break
        is_covered, does_cover = (
            verdict.holds and verdict.proven
            for verdict in (covers(each.expression, wanted, schema), covers(wanted, each.expression, schema))
        )
        relatives.compared += 1
        if is_covered and does_cover:
            relatives.same.append(each)
        elif is_covered:
            relatives.covered_by.append(each)
        elif does_cover:
            relatives.covers.append(each)
    return relatives
