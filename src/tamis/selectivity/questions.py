"""What does a predicate ask of the line that its term's values stand on?

A comparison, a BETWEEN, an IN, a prefix: each is a share of a `Line`, whatever way it is written. Whoever knows the
line knows the share of all of them, and of their complements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.expressions import Attribute, Between, Compare, Expression, In, Like, Literal, Not, Test
from tamis.language.patterns import ANY_TEXT, least_text_above, like_pieces
from tamis.language.rewrites.canonical import MIRRORED
from tamis.selectivity.lines import AFTER, BEFORE, TEXT, Line, Place, standing

if TYPE_CHECKING:
    from collections.abc import Callable


class Question(NamedTuple):
    """A term, the kind of its values, and the share of them that is asked for."""

    term: Expression
    kind: str
    share: Callable[[Line], float]


class Comparison(NamedTuple):
    """A term beside an operand of a kind."""

    operator: str
    term: Expression
    kind: str
    place: Place


def comparison(predicate: Expression) -> Comparison | None:
    """Return a predicate that compares a term with an operand, however it is written; None for any other.

    >>> import tamis
    >>> [comparison(tamis.parse(text)) for text in ("20 > price", "NOT sold", "a < b")]
    [Comparison(operator='<', ..., place=20.0), Comparison(operator='=', ..., place=0.0), None]
    """
    match predicate:
        case Compare(operator, term, Literal(operand)) if not isinstance(term, Literal):
            pass
        case Compare(mirrored, Literal(operand), term) if not isinstance(term, Literal):
            operator = MIRRORED[mirrored]
        case Attribute():
            operator, term, operand = "=", predicate, True
        case Not(Attribute() as flag):
            operator, term, operand = "=", flag, False
        case _:
            return None
    stands = standing(operand)
    return None if stands is None else Comparison("=" if operator == "<=>" else operator, term, *stands)


def question(predicate: Expression) -> Question | None:
    """Return what a predicate asks of a line; None if it is no question about one."""
    compared = comparison(predicate)
    if compared is not None:
        return Question(compared.term, compared.kind, _SHARES[compared.operator](compared.place))
    match predicate:
        case Not(inner):
            asked = question(inner)
            return None if asked is None else Question(asked.term, asked.kind, _complement(asked.share))
        case Between(term, Literal(low), Literal(high)):
            return _between(term, low, high)
        case In(term, members):
            return _among(term, members)
        case Test("startswith", (term, Literal(str(prefix)))):
            return _prefix(term, prefix)
        case Like(term, pattern, escape):
            match like_pieces(pattern, escape):
                case []:
                    return Question(term, TEXT, lambda line: line.equal(""))
                case [str(text)]:
                    return Question(term, TEXT, lambda line: line.equal(text))
                case [str(prefix), wild] if wild is ANY_TEXT:
                    return _prefix(term, prefix)
    return None


_SHARES: dict[str, Callable[[Any], Callable[[Line], float]]] = {
    "=": lambda place: lambda line: line.equal(place),
    "<>": lambda place: lambda line: line.present - line.equal(place),
    "<": lambda place: lambda line: line.below(place, BEFORE),
    "<=": lambda place: lambda line: line.below(place, AFTER),
    ">": lambda place: lambda line: line.present - line.below(place, AFTER),
    ">=": lambda place: lambda line: line.present - line.below(place, BEFORE),
}


def _complement(share: Callable[[Line], float]) -> Callable[[Line], float]:
    return lambda line: line.present - share(line)


def _between(term: Expression, low: Any, high: Any) -> Question | None:
    least, most = standing(low), standing(high)
    if least is None or most is None or least.kind != most.kind:
        return None
    return Question(
        term, least.kind, lambda line: max(0.0, line.below(most.place, AFTER) - line.below(least.place, BEFORE))
    )


def _among(term: Expression, members: tuple[Any, ...]) -> Question | None:
    stands = [standing(member) for member in members if member is not None]
    kinds = {each.kind for each in stands if each is not None}
    if None in stands or len(kinds) != 1:
        return None
    places = {each.place for each in stands if each is not None}
    return Question(term, kinds.pop(), lambda line: min(line.present, sum(map(line.equal, places))))


def _prefix(term: Expression, prefix: str) -> Question:
    above = least_text_above(prefix)

    def share(line: Line) -> float:
        end = line.present if above is None else line.below(above, BEFORE)
        return max(0.0, end - line.below(prefix, BEFORE))

    return Question(term, TEXT, share)
