"""What does one LIKE pattern say about another? Containment of LIKE patterns.

`title LIKE '%Hobbit%'` implies `title LIKE '%bit%'`; `'%.jpg'` and `'%.png'` exclude each other. Both are seen from the
patterns alone: a pattern is matched against another pattern as if that were a text, in which `%` and `_` are
characters that only `%`, and `_` only `_` or `%`, can stand for.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tamis.language.patterns import ANY_CHARACTER, ANY_TEXT, like_pieces

if TYPE_CHECKING:
    from tamis.language.expressions import Like

_LONGEST = 200


def implies(special: Like, general: Like) -> bool:
    """Does every text that fits the special pattern surely fit the general one?

    >>> from tamis import parse
    >>> implies(parse("a LIKE '%Hobbit%'"), parse("a LIKE '%bit%'")), implies(parse("a LIKE 'a%'"), parse("a LIKE '_'"))
    (True, False)
    """
    text, pattern = _symbols(special), _symbols(general)
    if len(text) > _LONGEST or len(pattern) > _LONGEST:
        return False
    # reached[i]: the pattern so far can stand for the first i symbols of the text
    reached = [True] + [False] * len(text)
    for symbol in pattern:
        if symbol is ANY_TEXT:
            first = next((index for index, is_reached in enumerate(reached) if is_reached), len(reached))
            reached = [index >= first for index in range(len(reached))]
        else:
            reached = [False] + [
                is_reached and (symbol == other or (symbol is ANY_CHARACTER and other is not ANY_TEXT))
                for is_reached, other in zip(reached, text, strict=False)
            ]
    return reached[-1]


def exclude(one: Like, two: Like) -> bool:
    """Is there surely no text that fits both? Their beginnings or their ends may contradict each other.

    >>> from tamis import parse
    >>> exclude(parse("a LIKE '%.jpg'"), parse("a LIKE '%.png'")), exclude(parse("a LIKE '%a'"), parse("a LIKE 'b%'"))
    (True, False)
    """
    first, second = _symbols(one), _symbols(two)
    return _contradict(first, second) or _contradict(first[::-1], second[::-1])


def _contradict(first: list[Any], second: list[Any]) -> bool:
    for mine, theirs in zip_longest(first, second):
        if mine is ANY_TEXT or theirs is ANY_TEXT:
            return False
        if mine is None or theirs is None:
            return True  # one has ended, the other wants a character more
        if mine != theirs and ANY_CHARACTER not in (mine, theirs):
            return True
    return False


def _symbols(pattern: Like) -> list[Any]:
    """Return the characters of a pattern, wild cards as such."""
    symbols: list[Any] = []
    for piece in like_pieces(pattern.pattern, pattern.escape):
        symbols.extend(piece if isinstance(piece, str) else (piece,))
    return symbols
