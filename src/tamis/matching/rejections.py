"""Which rows of a table become subscriptions where some of them cannot? Validation, with one error record a row.

One rule for everybody who registers tables (`Matcher.add_many(on_error="skip")`, the command line, Spark, the log of a
stream): the rows are taken one after the other, as if each were added alone. A row that is bad is rejected with the
reason; so is a row whose id a row before it has, if that one was taken. The first stays, whatever comes later. Who
wants the last one to win says so (`Matcher.upsert_many`).
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import TamisError
from tamis.language.expressions import TRUE
from tamis.matching.errors import BadTableError, DuplicateIdError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from tamis.language.expressions import Expression
    from tamis.matching.base import Algorithm, TextsRead
    from tamis.matching.tables import Rows


class Rejected(NamedTuple):
    """A row that became no subscription, and why."""

    id: Any
    condition: Any
    """As it came: a text, an expression, or whatever stood in its place."""
    error: str
    """The kind of mistake: the name of the error that `add` would have raised."""
    reason: str
    """What it would have said."""
    row: Any = None
    """Which row of those that were given it is, from 0 on; of rows that say where they stand, their place."""

    @classmethod
    def because(cls, subscription_id: Any, condition: Any, error: TamisError, row: int) -> Rejected:
        """Say why a row was rejected.

        >>> Rejected.because(1, "price < 20", DuplicateIdError(1), row=7).error
        'DuplicateIdError'
        """
        return cls(subscription_id, condition, type(error).__name__, str(error), row)

    def described(self) -> str:
        """Name the row and its mistake, in one line or a few.

        >>> Rejected(1, "price <", "ExpressionSyntaxError", "unexpected end of text").described()
        '1: ExpressionSyntaxError: unexpected end of text'
        """
        return f"{self.id!r}: {self.error}: {self.reason}"


class Sieve:
    """Rows, taken one after the other; `accepted` and `rejected` are complete when all expressions were asked for."""

    def __init__(
        self,
        rows: Rows,
        taken: Container[Any],
        understood: Callable[[Any], Expression],
        *,
        keeps_last: bool = False,
        texts: TextsRead | None = None,
    ) -> None:
        self._rows, self._taken, self._understood, self._keeps_last = rows, taken, understood, keeps_last
        self._texts = texts
        self.accepted: list[int] = []
        """The numbers of the rows that become subscriptions, in their order."""
        self.rejected: list[Rejected] = []

    def expressions(self) -> Iterator[Expression]:
        """Yield what the accepted rows ask, as far as somebody wants to know."""
        self._is_usual = self._rows.first_objection() is None
        overwritten = self._overwritten() if self._keeps_last else set()
        ids: set[Any] = set()
        for number, subscription_id in enumerate(self._rows.ids):
            if number in overwritten:
                continue
            try:
                expression = self._expression(number, () if self._keeps_last else ids)
            except TamisError as error:
                self.rejected.append(Rejected.because(subscription_id, self._rows.conditions[number], error, number))
                continue
            ids.add(subscription_id)
            self.accepted.append(number)
            yield expression

    def prepared(self, engine: Algorithm) -> Any:
        """Return the accepted rows as the algorithm takes them."""
        if self._texts is None:
            return engine.prepare(self.expressions())
        expressions = list(self.expressions())
        parsed = dict(zip(self.accepted, expressions, strict=True))
        return self._texts.prepared(self.accepted, parsed.__getitem__)

    def _expression(self, number: int, ids: Container[Any] = ()) -> Expression:
        subscription_id = self._rows.ids[number]
        objection = None if self._is_usual else self._rows.objection(number)
        if objection is not None:
            raise BadTableError(objection)
        if subscription_id in ids or subscription_id in self._taken:
            raise DuplicateIdError(subscription_id)  # of a row with two mistakes this one is told
        if self._texts is not None and self._texts.is_understood(number):
            return TRUE  # nobody asks what it is
        return self._understood(self._rows.conditions[number])

    def _overwritten(self) -> set[int]:
        """Return the good rows behind which another good row has the same id."""
        lasts: dict[Any, int] = {}
        overwritten: set[int] = set()
        usable = [number for number in range(len(self._rows)) if self._is_usual or not self._rows.objection(number)]
        counts = Counter(self._rows.ids[number] for number in usable)
        for number in usable:
            subscription_id = self._rows.ids[number]
            if counts[subscription_id] > 1:
                with suppress(TamisError):
                    self._expression(number)
                    if subscription_id in lasts:
                        overwritten.add(lasts[subscription_id])
                    lasts[subscription_id] = number
        return overwritten


def latest(ids: list[Any]) -> list[int]:
    """Return the last place of each id, in order.

    >>> latest(["a", "b", "a"])
    [1, 2]
    """
    return sorted({each: place for place, each in enumerate(ids)}.values())
