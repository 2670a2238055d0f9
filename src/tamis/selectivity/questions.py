"""What does a predicate ask of the line that its term's values stand on?

A comparison, a BETWEEN, an IN, a prefix: each is a share of a `Line`, whatever way it is written. Whoever knows the
line knows the share of all of them, and of their complements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.patterns import least_text_above
from tamis.language.ranges.simple import BETWEEN, IN, PREFIX, SimplePredicate, simple
from tamis.selectivity.lines import AFTER, BEFORE, TEXT, Line, Place, standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.expressions import Expression


class LineQuestion(NamedTuple):
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
    asked = simple(predicate)
    return None if asked is None or asked.is_negated else _comparison(asked)


def _comparison(asked: SimplePredicate) -> Comparison | None:
    if asked.operator in (BETWEEN, IN, PREFIX):
        return None
    stands = standing(asked.operands[0])
    operator = "=" if asked.operator == "<=>" else asked.operator
    return None if stands is None else Comparison(operator, asked.term, *stands)


def line_question(predicate: Expression) -> LineQuestion | None:
    """Return what a predicate asks of a line; None if it is not a question about one."""
    asked = simple(predicate)
    if asked is None:
        return None
    question = _positive(asked)
    if question is not None and asked.is_negated:
        return question._replace(share=_complement(question.share))
    return question


def _positive(asked: SimplePredicate) -> LineQuestion | None:
    term, operands = asked.term, asked.operands
    if asked.operator == BETWEEN:
        return _between(term, *operands)
    if asked.operator == IN:
        return _among(term, operands)
    if asked.operator == PREFIX:
        return _prefix(term, operands[0])
    compared = _comparison(asked)
    if compared is None:
        return None
    return LineQuestion(compared.term, compared.kind, _SHARES[compared.operator](compared.place))


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


def _between(term: Expression, low: Any, high: Any) -> LineQuestion | None:
    least, most = standing(low), standing(high)
    if least is None or most is None or least.kind != most.kind:
        return None
    return LineQuestion(
        term, least.kind, lambda line: max(0.0, line.below(most.place, AFTER) - line.below(least.place, BEFORE))
    )


def _among(term: Expression, members: tuple[Any, ...]) -> LineQuestion | None:
    stands = [standing(member) for member in members if member is not None]
    kinds = {each.kind for each in stands if each is not None}
    if None in stands or len(kinds) != 1:
        return None
    places = {each.place for each in stands if each is not None}
    return LineQuestion(term, kinds.pop(), lambda line: min(line.present, sum(map(line.equal, places))))


def _prefix(term: Expression, prefix: str) -> LineQuestion:
    above = least_text_above(prefix)

    def share(line: Line) -> float:
        end = line.present if above is None else line.below(above, BEFORE)
        return max(0.0, end - line.below(prefix, BEFORE))

    return LineQuestion(term, TEXT, share)
