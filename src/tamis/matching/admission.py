"""How does a table become a matcher, and which of its rows does not? Bulk loading with error records.

By the rule that `rejections` states: the rows are taken in their order, as if each was added by itself, and a row that
cannot be added is left out with its reason. What comes on top is what tables need on a cluster and in files: the
matcher registers in the order of the ids, whatever the order of the rows, and a rejected row knows its place.

A table is loaded, and is either right or wrong about an id. That a subscription is given another text later is no
mistake: it is another operation (`tamis.spark.SubscriptionLog.change`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.matching.errors import BadTableError, DuplicateIdError
from tamis.matching.matcher import Matcher
from tamis.matching.rejections import Rejected
from tamis.matching.tables import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.language.schema import Schema


LATER = "an earlier row has this id, and the first one stays"
"""What is wrong with the second row of an id."""


class CandidateRow(NamedTuple):
    """A row that may be a subscription."""

    id: Any
    condition: Any
    priority: int | None = 0
    place: Any = None
    """Where the row stands, if that is not the order in which rows are given; places are compared."""


def admitted(rows: Iterable[CandidateRow], schema: Schema | None) -> tuple[Matcher, list[Rejected]]:
    """Return a matcher of the rows that are subscriptions, registered in the order of their ids, and the others.

    >>> texts = [(2, "price < 20"), (1, "price <"), (1, "signed"), (2, "price < 30"), (None, "signed")]
    >>> rows = [CandidateRow(id, text) for id, text in texts]
    >>> matcher, rejected = admitted(rows, None)
    >>> matcher.match({"price": 12, "signed": True})
    [1, 2]
    >>> [(row.id, row.condition, row.error) for row in rejected]
    [(1, 'price <', 'ExpressionSyntaxError'), (2, 'price < 30', 'DuplicateIdError'), (None, 'signed', 'BadTableError')]
    """
    asked = list(rows)
    columns = Rows([row.id for row in asked], [row.condition for row in asked], [row.priority or 0 for row in asked])
    numbers = list(range(len(asked)))
    rejections: dict[int, Rejected] = {}
    if columns.first_objection() is not None:  # what is not a row has no id to be in the order of
        for number in numbers:
            objection = columns.objection(number)
            if objection is not None:
                rejections[number] = _rejected(asked[number], BadTableError.__name__, objection)
        numbers = [number for number in numbers if number not in rejections]
    numbers.sort(key=lambda number: asked[number].id)  # rows of one id stay in their order
    matcher = Matcher(schema=schema)
    entries: list[Any] = [(row.id, row.condition, row.priority or 0) for row in map(asked.__getitem__, numbers)]
    for rejected in matcher.add_many(entries, on_error="skip"):
        number = numbers[rejected.row]
        rejections[number] = _rejected(asked[number], rejected.error, rejected.reason)
    return matcher, [rejections[number] for number in sorted(rejections)]


def _rejected(row: CandidateRow, error: str, reason: str) -> Rejected:
    if error == DuplicateIdError.__name__:
        reason = LATER
    return Rejected(row.id, row.condition, error, reason, row.place)
