"""How good is an event?

The score is the value of an expression of the language, read as a double. Everything below ranks by *keys*: the score
itself where the lowest is best, its opposite where the highest is, so that a smaller key is always better. An event
whose score is NULL, NaN, or neither a number nor a time has no key (NaN): it is in the window, ranks below all others,
and is never told to anybody.

Ranks are a total order: by key, and of two equal ones the younger first.

Source: Pripužić 2010, sections 2.3.3 and 3.2 (docs/bibliography.md).
Departs: the score that never matches is "none", not the worst number of the range; an infinite score is a score.
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import Attribute
from tamis.language.meaning import attribute_value, value
from tamis.language.values import instant, is_number
from tamis.topk.ageing import aged, published_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression
    from tamis.language.meaning import Event
    from tamis.language.schema import Schema
    from tamis.topk.ranked import Ranked

NO_SCORE = math.nan
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)


def key(ranked: Ranked, event: Event, schema: Schema | None = None) -> float:
    """Return the key of an event: the smaller the better, NaN for none. This is the definition.

    >>> from tamis.topk.ranked import Ranked
    >>> [key(Ranked("price", 1, "1 HOUR", order="DESC"), event) for event in ({"price": 3}, {"price": "3"})]
    [-3.0, nan]
    """
    score = as_score(value(ranked.score, event, schema))
    if ranked.half_life_s is not None:
        score = aged(score, published_at(event), ranked.half_life_s, is_ascending=ranked.is_ascending)
    return score if ranked.is_ascending else -score


def as_score(value: Any) -> float:
    """Read a value as a score: a number as a double, a time as microseconds since 1970, all else as none."""
    if is_number(value):
        return float(value)
    if isinstance(value, dt.date):
        return float((instant(value) - _EPOCH) // _MICROSECOND)
    return NO_SCORE


def reader(term: Expression, schema: Schema | None = None) -> Callable[[Event], Any]:
    """Return a function that reads a term's value from an event."""
    if isinstance(term, Attribute):
        path = term.path
        return lambda event: attribute_value(event, path)
    return lambda event: value(term, event, schema)
