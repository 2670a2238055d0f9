"""What may pass a link, whatever is wanted? Guards: a filter for each direction.

What must not leave a department does not, and what must not enter it is not let in. A guard is conjoined to what is
told: what a neighbour wants counts only as far as it may leave, and what it is told is only what may enter. So nobody
asks for what will not come. It is also kept: an event that may not enter goes no further, whoever sent it. A link with
a guard never stops filtering.

What is advertised is not guarded: a neighbour may hear that there are such events, and ask in vain.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import TRUE, And, Expression, is_condition
from tamis.language.meaning import holds
from tamis.routing.errors import MessageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.schema import Schema

_REMEMBERED = 1 << 14


class Guard:
    """What may leave to a neighbour, and what may enter from it; None if everything may.

    >>> import tamis
    >>> guard = Guard(may_leave=tamis.parse("region = 'EU'"), may_enter=tamis.parse("price < 20"))
    >>> print(guard.passed(tamis.parse("price > 5")), "|", guard.asked(tamis.parse("x = 1 OR y = 2")))
    region = 'EU' AND price > 5 | price < 20 AND (x = 1 OR y = 2)
    >>> guard.admits({"price": 99}, None), OPEN.admits({"price": 99}, None)
    (False, True)
    """

    def __init__(self, may_leave: Expression | None = None, may_enter: Expression | None = None) -> None:
        for each in (may_leave, may_enter):
            if each is not None and (not isinstance(each, Expression) or not is_condition(each)):
                raise MessageError(f"{each!r:.80} as a guard", "an expression that is true or not, or None")
        self.may_leave, self.may_enter = may_leave, may_enter
        self._conjoined = lru_cache(_REMEMBERED)(_conjoined)

    def passed(self, wanted: Expression) -> Expression:
        """Return what of that goes to the neighbour which it wants."""
        return wanted if self.may_leave is None else self._conjoined(self.may_leave, wanted)

    def asked(self, wanted: Expression) -> Expression:
        """Return what of that the neighbour is asked for which others want."""
        return wanted if self.may_enter is None else self._conjoined(self.may_enter, wanted)

    def admits(self, event: Mapping[str, Any], schema: Schema | None) -> bool:
        """May an event enter that the neighbour sent?"""
        return self.may_enter is None or holds(self.may_enter, event, schema)


def _conjoined(guard: Expression, wanted: Expression) -> Expression:
    if wanted == TRUE:
        return guard
    parts = wanted.operands if isinstance(wanted, And) else (wanted,)
    return And((*(guard.operands if isinstance(guard, And) else (guard,)), *parts))


OPEN = Guard()
"""Everything may pass."""
