"""When are two predicates the same, though they are written differently?

`20 > price`, `NOT price >= 20` and `price < 20` ask the same. One spelling stands for all of them, so that the
predicate has one number. Only what agrees for every event, in truth, falsehood and doubt, is spelled alike: `x = 1` and
`x <=> 1` are true for the same events, but only the first can be unknown, so they stay two.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from tamis.language.expressions import (
    CONNECTIVES,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    RLike,
)
from tamis.language.rewrites import nnf, ordered
from tamis.matching.axes import is_distinguishable

_PLAIN = frozenset({int, str, bool})
"""Types whose values have one literal each."""
_PLAIN_SETS = ({int}, {str})


def spelled(predicate: Expression) -> Expression:
    """Return the one spelling of a predicate that has several: `20 > price` is `price < 20`.

    >>> from tamis.language import parse
    >>> [str(spelled(parse(text))) for text in ("20 > price", "sold", "kind IN (2, 1, 2)", "NOT a < 2.50BD")]
    ['price < 20', 'sold = TRUE', 'kind IN (1, 2)', 'a >= 2.5']
    """
    match predicate:
        case Compare(_, Attribute() | Call(), Literal(literal)) if literal is not None:
            return _with_plain_literal(predicate)
        case Between(Attribute() | Call(), Literal(low), Literal(high)) if type(low) in _PLAIN and type(high) in _PLAIN:
            return predicate
        case Like(Attribute()) | RLike(Attribute()) | IsNull(Attribute()) | IsA(Attribute()):
            return predicate
        case In(Attribute() | Call() as term, members) if set(map(type, members)) in _PLAIN_SETS:
            distinct = tuple(sorted(set(members)))  # type: ignore[type-var]
            if len(distinct) == 1:
                return Compare("=", term, Literal(distinct[0]))
            return predicate if distinct == members else In(term, distinct)
        case Not(Between() | In() as inner):
            again = spelled(inner)
            return nnf(Not(again)) if type(again) is not type(inner) else predicate if again is inner else Not(again)
    if isinstance(predicate, CONNECTIVES) and type(predicate) is not Not:
        raise AssertionError(f"{type(predicate).__name__} is not a predicate")
    ordinary = nnf(ordered(nnf(predicate)))
    is_plain = (
        isinstance(ordinary, Compare) and isinstance(ordinary.right, Literal) and not isinstance(ordinary.left, Literal)
    )
    return _with_plain_literal(ordinary) if is_plain else ordinary


def _with_plain_literal(predicate: Any) -> Expression:
    literal = predicate.right.value
    plain = literal if type(literal) in _PLAIN else _plain(literal)
    return predicate if plain is literal else Compare(predicate.operator, predicate.left, Literal(plain))


def _plain(literal: Any) -> Any:
    """Return the one literal of a value that has several on its axis: 2 and 2.0BD, the zeros, midnight and its day."""
    if isinstance(literal, Decimal) and literal == literal.to_integral_value() and is_distinguishable(literal):
        return int(literal) if is_distinguishable(int(literal)) else literal
    if isinstance(literal, float) and literal == 0:
        return 0.0
    if isinstance(literal, dt.date) and not isinstance(literal, dt.datetime):
        return dt.datetime(literal.year, literal.month, literal.day)
    return literal
