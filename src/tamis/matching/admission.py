"""Which rows of a table become subscriptions, and what is said of the others?

One rule, wherever a table of ids and conditions comes in: the rows are taken in their order, as if each was added by
itself, and a row that cannot be added is left out with its reason. So the first usable row of an id stays and later
ones are rejected; a text that does not parse is rejected with the parser's words and takes no id; a NULL is no id
and no condition.

A table is loaded, and is either right or wrong about an id. That a subscription is given another text later is no
mistake: it is another operation (`tamis.spark.SubscriptionLog.change`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import TamisError
from tamis.matching.errors import DuplicateIdError
from tamis.matching.matcher import Matcher

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.schema import Schema


class Row(NamedTuple):
    """A row that may be a subscription."""

    id: Any
    condition: Any
    priority: int | None = 0
    place: Any = None
    """Where the row stands, if that is not the order in which rows are given; places are compared."""


class Rejection(NamedTuple):
    """A row that is no subscription, and why."""

    id: Any
    condition: Any
    error: str
    """The kind of mistake."""
    message: str
    place: Any = None

    def told(self) -> str:
        """Name the row and its mistake, in one line or a few."""
        return f"{self.id!r}: {self.error}: {self.message}"


def admitted(rows: Iterable[Row], schema: Schema | None) -> tuple[Matcher, list[Rejection]]:
    """Return a matcher of the rows that are subscriptions, registered in the order of their ids, and the others.

    >>> rows = [Row(2, "price < 20"), Row(1, "price <"), Row(1, "signed"), Row(2, "price < 30"), Row(None, "signed")]
    >>> matcher, rejected = admitted(rows, None)
    >>> matcher.match({"price": 12, "signed": True})
    [1, 2]
    >>> [(row.id, row.condition, row.error) for row in rejected]
    [(1, 'price <', 'ExpressionSyntaxError'), (2, 'price < 30', 'DuplicateIdError'), (None, 'signed', 'NullIdError')]
    """
    asked = list(rows)
    firsts: dict[Any, Row] = {}
    for row in asked:
        if row.id is not None and row.condition is not None:
            firsts.setdefault(row.id, row)
    matcher = Matcher(schema=schema)
    try:
        matcher.add_many(_entries(firsts))
    except TamisError:  # then it is worth the time to ask each of them
        firsts, rejected = _one_by_one(asked, matcher)
        matcher.add_many(_entries(firsts))
        return matcher, rejected
    return matcher, [_without_text_or_id(row) for row in asked if row is not firsts.get(row.id)]


def _one_by_one(rows: list[Row], judge: Matcher) -> tuple[dict[Any, Row], list[Rejection]]:
    """Go through the rows in their order; return which to register, by id, and the others."""
    taken: dict[Any, Row] = {}
    rejected = []
    for row in rows:
        if row.id is None or row.condition is None or row.id in taken:
            rejected.append(_without_text_or_id(row))
            continue
        try:
            if row.priority:
                Matcher().add(row.id, "TRUE", priority=row.priority)
            judge.check(row.condition)
        except TamisError as error:
            rejected.append(Rejection(row.id, row.condition, type(error).__name__, str(error), row.place))
        else:
            taken[row.id] = row
    return taken, rejected


def _without_text_or_id(row: Row) -> Rejection:
    """Say what is wrong with a row that lacks something, or comes after the one that has its id."""
    if row.id is None:
        error, message = "NullIdError", "a subscription has an id, and this one has NULL"
    elif row.condition is None:
        error, message = "NullConditionError", "a condition is a text, and this one is NULL"
    else:
        error, message = DuplicateIdError.__name__, "an earlier row has this id, and the first one stays"
    return Rejection(row.id, row.condition, error, message, row.place)


def _entries(rows: dict[Any, Row]) -> list[tuple[Any, Any, int]]:
    return [(each, rows[each].condition, rows[each].priority or 0) for each in sorted(rows)]
