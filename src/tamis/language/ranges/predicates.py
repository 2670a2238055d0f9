"""Which values make a predicate true, and which make it false?

A predicate about one term and constants is two sets of values; the values in neither make it unknown. What is not so
(a regular expression, a comparison of two attributes) has no *subject*, and no such sets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tamis.language.expressions import (
    COMPLEMENTS,
    MIRRORED,
    Attribute,
    Between,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    RLike,
    Test,
)
from tamis.language.patterns import ANY_TEXT, like_pieces
from tamis.language.ranges.kinds import ABSENT, KINDS, PRESENT, TEXTS
from tamis.language.ranges.lines import Cut, places, prefix_cuts, whole_cuts
from tamis.language.ranges.value_sets import (
    NONE,
    Values,
    complement,
    difference,
    intersection,
    union,
    union_of,
)
from tamis.language.values import kind_of

if TYPE_CHECKING:
    from tamis.language.schema import Schema


_TAKEN_SINGLY = 64
"""Of a longer list, the integers are taken all at once."""


def subject(predicate: Expression) -> Expression | None:
    """Return the term that a predicate is about if all else in it is constant, None otherwise.

    >>> import tamis
    >>> print(subject(tamis.parse("20 > price")), subject(tamis.parse("low < high")))
    price None
    """
    if type(predicate) is Compare:  # the common case
        left, right = predicate.left, predicate.right
        if type(right) is Literal:
            return None if type(left) is Literal else left
        return right if type(left) is Literal else None
    match predicate:
        case Attribute():
            return predicate
        case Between(term, Literal(), Literal()):
            return None if isinstance(term, Literal) else term
        case In(term) | IsNull(term) | IsA(term):
            return None if isinstance(term, Literal) else term
        case Like(term) | RLike(term) | Test("startswith" | "endswith" | "contains", (term, Literal(str()))):
            return None if isinstance(term, Literal) or _stretch(predicate) is None else term
    return None


def values_of(predicate: Expression, is_true: bool, line: str = "any", schema: Schema | None = None) -> Values:
    r"""Return the values of its subject that make a predicate true, or those that make it false.

    They are of the type `line`, or of any.

    >>> import tamis
    >>> values_of(tamis.parse("title NOT BETWEEN 'b' AND 'd'").value, False, "string")
    ((4,), (4, 'b'), (4, 'd\x00'), (5,))
    """
    if type(predicate) is Compare:
        return _compared_with(predicate, is_true, line)
    match predicate:
        case Between(_, Literal(low), Literal(high)):
            if is_true:
                return intersection(compared(">=", low, line), compared("<=", high, line))
            return union(compared("<", low, line), compared(">", high, line))
        case In(_, members):
            return _among(members, is_true, line)
        case Attribute():
            return compared("=", is_true, line)
        case IsNull():
            return ABSENT if is_true else PRESENT
        case IsA(_, event_type):
            names = (event_type,) if schema is None else schema.subtypes(event_type)
            true = union_of(*(compared("=", name, line) for name in names))
            return true if is_true else difference(TEXTS, true)
        case _:
            texts = _stretch(predicate)
            assert texts is not None
            return texts if is_true else difference(TEXTS, texts)


def _compared_with(predicate: Compare, is_true: bool, line: str) -> Values:
    operator, right = predicate.operator, predicate.right
    operand: Any = right.value if type(right) is Literal else predicate.left.value  # type: ignore[attr-defined]
    if operator == "<=>":
        true = ABSENT if operand is None else compared("=", operand, line)
        return true if is_true else complement(true)
    if type(right) is not Literal:
        operator = MIRRORED[operator]
    return compared(operator if is_true else COMPLEMENTS[operator], operand, line)


def compared(operator: str, operand: Any, line: str) -> Values:
    """Return the values for which a comparison with an operand is true.

    >>> compared("<", "b", "string")
    ((4,), (4, 'b'))
    """
    if operand is None:
        return NONE
    ends, ranks = _ENDS[operator], places(operand, line)
    if len(ranks) == len(ends) == 1:  # one stretch, which may be void
        low, high = ranks[0][ends[0][0]], ranks[0][ends[0][1]]
        return (low, high) if low < high else NONE
    cuts: list[Cut] = []
    for place in ranks:
        for begin, end in ends:
            _append(cuts, place[begin], place[end])
    return tuple(cuts)


_START, _BEFORE, _AFTER, _END = range(4)
_ENDS: dict[str, tuple[tuple[int, int], ...]] = {
    "=": ((_BEFORE, _AFTER),),
    "<>": ((_START, _BEFORE), (_AFTER, _END)),
    "<": ((_START, _BEFORE),),
    "<=": ((_START, _AFTER),),
    ">": ((_AFTER, _END),),
    ">=": ((_BEFORE, _END),),
}
"""Of each operator: the stretches that it asks for, by the cuts of a `Place` at which they begin and end."""


def _append(cuts: list[Cut], low: Cut, high: Cut) -> None:
    if low < high:
        if cuts and cuts[-1] == low:
            cuts[-1] = high
        else:
            cuts += (low, high)


def _among(members: tuple[Any, ...], is_true: bool, line: str) -> Values:
    true = _any_of(members, line)
    if is_true:
        return true
    kinds = {kind_of(member) for member in members}
    # One comparison that is unknown keeps the whole from being false.
    return difference(KINDS[kinds.pop()], true) if len(kinds) == 1 and None not in members else NONE


def _any_of(members: tuple[Any, ...], line: str) -> Values:
    if len(members) > _TAKEN_SINGLY and line in ("any", "number"):
        whole = [member for member in members if type(member) is int and -(2**53) <= member <= 2**53]
        if len(whole) > _TAKEN_SINGLY:
            rest = [member for member in members if type(member) is not int or not -(2**53) <= member <= 2**53]
            return union_of(whole_cuts(whole), *(compared("=", member, line) for member in rest))
    return union_of(*(compared("=", member, line) for member in members))


# -- Patterns that are stretches of texts


_PLAIN = re.compile(r"[\w \-/:,;<>=!@#%&~`'\"]*")


def _stretch(predicate: Expression) -> Values | None:
    """Return the texts that a pattern matches if they lie together: one text, or all that start so."""
    match pieces_of(predicate):
        case None:
            return None
        case []:
            return compared("=", "", "string")
        case [str(text)]:
            return compared("=", text, "string")
        case [str(prefix), wild] if wild is ANY_TEXT:
            return prefix_cuts(prefix)
        case [wild] if wild is ANY_TEXT:
            return TEXTS
    return None


def pieces_of(predicate: Expression) -> list[Any] | None:
    """Return a pattern as texts and wild cards, None where it is more than that.

    >>> import tamis
    >>> pieces_of(tamis.parse("startswith(title, 'The ')"))[0], pieces_of(tamis.parse("title RLIKE 'H.b+it'"))
    ('The ', None)
    """
    match predicate:
        case Like(_, pattern, escape):
            return _shortest(like_pieces(pattern, escape))
        case Test("startswith", (_, Literal(str(text)))):
            return [text, ANY_TEXT] if text else [ANY_TEXT]
        case Test("endswith", (_, Literal(str(text)))):
            return [ANY_TEXT, text] if text else [ANY_TEXT]
        case Test("contains", (_, Literal(str(text)))):
            return [ANY_TEXT, text, ANY_TEXT] if text else [ANY_TEXT]
        case RLike(_, pattern):
            return _regex_pieces(pattern)
    return None


def _shortest(pieces: list[Any]) -> list[Any]:
    """Of `%` signs in a row one is enough."""
    return [
        piece for index, piece in enumerate(pieces) if piece is not ANY_TEXT or pieces[index - 1 : index] != [piece]
    ]


def _regex_pieces(pattern: str) -> list[Any] | None:
    """Return the pieces of a regular expression without any operators but an anchor at either end."""
    is_start, is_end = pattern.startswith("^"), pattern.endswith("$")
    plain = pattern[is_start : len(pattern) - is_end]
    if not _PLAIN.fullmatch(plain):
        return None
    pieces = [plain] if plain else []
    return _shortest(([] if is_start else [ANY_TEXT]) + pieces + ([] if is_end else [ANY_TEXT]))


def pattern_subject(predicate: Expression) -> Expression | None:
    """Return the term of a pattern with a constant text, whether it is a stretch of texts or not."""
    match predicate:
        case Like(term) | RLike(term) | Test("startswith" | "endswith" | "contains", (term, Literal(str()))):
            return term
    return None
