"""Is this predicate simple: one term beside constants, however it is written? Pattern matching on predicates.

`20 > price`, `price < 20` and `NOT price >= 20` ask the same, `NOT sold` compares with FALSE, and `title LIKE 'The %'`
asks for a prefix. Whoever wants to know what a predicate asks of one term asks here, and finds four forms: a
comparison, BETWEEN, IN and a prefix. Anything else (a regular expression, a comparison of two attributes) is not
simple.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from tamis.language.expressions import (
    COMPLEMENTS,
    MIRRORED,
    Attribute,
    Between,
    Compare,
    Expression,
    In,
    Like,
    Literal,
    Not,
    Test,
)
from tamis.language.patterns import ANY_TEXT, like_pieces

BETWEEN: Final = "between"
IN: Final = "in"
PREFIX: Final = "prefix"


class SimplePredicate(NamedTuple):
    """What a simple predicate asks of its term."""

    operator: str
    """One of those of `Compare`, or BETWEEN, IN or PREFIX."""
    term: Expression
    operands: tuple[Any, ...]
    """The operand of a comparison, the low and the high one of BETWEEN, the members of IN, or a prefix."""
    is_negated: bool = False
    """Whether it is true where this is false. A comparison is never negated, but for `<=>`: it has a complement."""


def simple(predicate: Expression) -> SimplePredicate | None:
    """Return what a simple predicate asks; None for any other.

    >>> import tamis
    >>> for text in ("20 > price", "NOT price >= 20", "NOT sold", "title NOT LIKE 'The %'", "a < b"):
    ...     print(simple(tamis.parse(text)))
    SimplePredicate(operator='<', term=<Attribute price>, operands=(20,), is_negated=False)
    SimplePredicate(operator='<', term=<Attribute price>, operands=(20,), is_negated=False)
    SimplePredicate(operator='=', term=<Attribute sold>, operands=(False,), is_negated=False)
    SimplePredicate(operator='prefix', term=<Attribute title>, operands=('The ',), is_negated=True)
    None
    """
    if type(predicate) is Not:
        inner = predicate.value
        if type(inner) is Attribute:
            return SimplePredicate("=", inner, (False,))
        asked = None if type(inner) is Not else simple(inner)
        if asked is None:
            return None
        complement = COMPLEMENTS.get(asked.operator)
        return asked._replace(is_negated=True) if complement is None else asked._replace(operator=complement)
    asked = _positive(predicate)
    return None if asked is None or type(asked.term) is Literal else asked


def _positive(predicate: Expression) -> SimplePredicate | None:
    match predicate:
        case Compare(operator, term, Literal(operand)):
            return SimplePredicate(operator, term, (operand,))
        case Compare(operator, Literal(operand), term):
            return SimplePredicate(MIRRORED[operator], term, (operand,))
        case Attribute():
            return SimplePredicate("=", predicate, (True,))
        case Between(term, Literal(low), Literal(high)):
            return SimplePredicate(BETWEEN, term, (low, high))
        case In(term, members):
            return SimplePredicate(IN, term, members)
        case Test("startswith", (term, Literal(str(prefix)))):
            return SimplePredicate(PREFIX, term, (prefix,))
        case Like(term, pattern, escape):
            match like_pieces(pattern, escape):
                case []:
                    return SimplePredicate("=", term, ("",))
                case [str(text)]:
                    return SimplePredicate("=", term, (text,))
                case [str(prefix), wild] if wild is ANY_TEXT:
                    return SimplePredicate(PREFIX, term, (prefix,))
    return None
