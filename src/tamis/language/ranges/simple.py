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


class Simple(NamedTuple):
    """What a simple predicate asks of its term."""

    operator: str
    """One of those of `Compare`, or BETWEEN, IN or PREFIX."""
    term: Expression
    operands: tuple[Any, ...]
    """The operand of a comparison, the low and the high one of BETWEEN, the members of IN, or a prefix."""
    is_negated: bool = False
    """Whether it is true where this is false. A comparison is never negated, but for `<=>`: it has a complement."""


def simple(predicate: Expression) -> Simple | None:
    """Return what a simple predicate asks; None for any other.

    >>> import tamis
    >>> for text in ("20 > price", "NOT price >= 20", "NOT sold", "title NOT LIKE 'The %'", "a < b"):
    ...     print(simple(tamis.parse(text)))
    Simple(operator='<', term=<Attribute price>, operands=(20,), is_negated=False)
    Simple(operator='<', term=<Attribute price>, operands=(20,), is_negated=False)
    Simple(operator='=', term=<Attribute sold>, operands=(False,), is_negated=False)
    Simple(operator='prefix', term=<Attribute title>, operands=('The ',), is_negated=True)
    None
    """
    if type(predicate) is Not:
        inner = predicate.value
        if type(inner) is Attribute:
            return Simple("=", inner, (False,))
        found = None if type(inner) is Not else simple(inner)
        if found is None:
            return None
        complement = COMPLEMENTS.get(found.operator)
        return found._replace(is_negated=True) if complement is None else found._replace(operator=complement)
    found = _positive(predicate)
    return None if found is None or type(found.term) is Literal else found


def _positive(predicate: Expression) -> Simple | None:
    match predicate:
        case Compare(operator, term, Literal(operand)):
            return Simple(operator, term, (operand,))
        case Compare(operator, Literal(operand), term):
            return Simple(MIRRORED[operator], term, (operand,))
        case Attribute():
            return Simple("=", predicate, (True,))
        case Between(term, Literal(low), Literal(high)):
            return Simple(BETWEEN, term, (low, high))
        case In(term, members):
            return Simple(IN, term, members)
        case Test("startswith", (term, Literal(str(prefix)))):
            return Simple(PREFIX, term, (prefix,))
        case Like(term, pattern, escape):
            match like_pieces(pattern, escape):
                case []:
                    return Simple("=", term, ("",))
                case [str(text)]:
                    return Simple("=", term, (text,))
                case [str(prefix), wild] if wild is ANY_TEXT:
                    return Simple(PREFIX, term, (prefix,))
    return None
