"""How does a score age, if the order of two events must never change? Forward decay.

With a half life, what is old counts less: where the highest score is best, it halves with every half life that has
passed since the event was published; where the lowest is best, it doubles. So events do not matter fully until their
window ends, and then not at all.

Rankings forget what enough younger events beat, and that is right only if these beat it for ever. All scores age by the
same factor, whatever they are and whenever it is, so their order stays as it is; and for that order it does not matter
at which moment they are compared. So an event's key is computed once, when it is published: the logarithm of its score,
with the time of publication, in half lives, added or taken away.

A score below zero has no such key, and counts as none. Keys are doubles: scores that differ by less than rounding does
at times of so many half lives are equal, and the younger event is better.

Source: ageing of scores is the first of the extensions that chapter 7 of Pripužić 2010 names; the order that does not
change is forward decay, Cormode et al. 2009 (docs/bibliography.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Literal
from tamis.relations.families import Family, Number, recognised
from tamis.topk.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.meaning import Event
    from tamis.topk.ranked import Ranked

AGED = "aged"
"""The kind of a family of scores that age: of one score, half life and order."""


class DatedEvent(dict[str, Any]):
    """An event that knows when it was published.

    >>> DatedEvent({"stars": 4}, 12.5).at
    12.5
    """

    __slots__ = ("at",)

    def __init__(self, event: Mapping[str, Any], at: float) -> None:
        super().__init__(event)
        self.at = at


def published_at(event: Event) -> float:
    """Return when an event was published, or raise where nobody has said so."""
    if not isinstance(event, DatedEvent):
        raise SettingError("a score with a half life needs the time of publication, and this event has none")
    return event.at


def aged(score: float, at: float, half_life_s: float, *, is_ascending: bool) -> float:
    """Return the score of an event, by which those published at any times are ranked; NaN for none.

    >>> [aged(score, at, 10.0, is_ascending=False) for score, at in ((8, 0.0), (4, 10.0), (2, 10.0))]
    [3.0, 3.0, 2.0]
    """
    if not score >= 0:
        return math.nan
    if score in (0, math.inf):
        return math.inf if score else -math.inf
    mantissa, exponent = math.frexp(score)  # so that scores that are powers of two apart are so exactly
    return math.log2(mantissa) + (exponent + (-at if is_ascending else at) / half_life_s)


def family_of(ranked: Ranked) -> tuple[Family, tuple[Number, ...]]:
    """Return the family of a subscription's score, and the numbers that are its own.

    >>> from tamis.topk.ranked import Ranked
    >>> family_of(Ranked("stars", 3, "1 DAY", order="DESC", half_life="1 HOUR"))[0].kind
    'aged'
    """
    if ranked.half_life_s is None:
        return recognised(ranked.score, ranked.is_ascending)
    sign = 1 if ranked.is_ascending else -1
    return Family(AGED, (ranked.score, Literal(ranked.half_life_s), Literal(sign)), 1, 1), (sign,)


def check_order(ranked: Ranked, algorithm: str) -> None:
    """Raise an error if an algorithm needs random order: scores that age have none, the newer ones are better.

    >>> from tamis.topk.ranked import Ranked
    >>> check_order(Ranked("stars", 3, "1 DAY", order="DESC", half_life="1 HOUR"), "probabilistic")
    Traceback (most recent call last):
        ...
    tamis.topk.errors.SettingError: with a half life newer events are better, and 'probabilistic' needs random ...
    """
    if ranked.half_life_s is not None and algorithm == "probabilistic":
        raise SettingError(
            "with a half life newer events are better, and 'probabilistic' needs random order; choose another algorithm"
        )
