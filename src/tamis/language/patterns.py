"""How is a LIKE pattern or a regular expression matched in time linear in the text? Automata, without backtracking.

Both run on RE2, which does not back-track: no subscriber can write a pattern that stalls the system.
The price is that look-around and back-references do not exist; such a pattern is refused when it is
written, not when it runs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import re2

from tamis.errors import LimitError, PatternError
from tamis.language.limits import DEFAULT_LIMITS, Limits

ANY_TEXT: Final = object()
ANY_CHARACTER: Final = object()
_SURELY_SMALL = 200  # a LIKE pattern of so few characters compiles to some kilobytes at most


def like_pieces(pattern: str, escape: str) -> list[Any]:
    """Cut a LIKE pattern into literal texts and the wild cards between them.

    >>> [piece if isinstance(piece, str) else "*" for piece in like_pieces("100/% %", "/")]
    ['100% ', '*']
    """
    pieces: list[Any] = []
    literal: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise PatternError(f"the LIKE pattern {pattern!r} ends with its escape character {escape!r}")
            if escaped not in (escape, "%", "_"):
                raise PatternError(
                    f"the LIKE pattern {pattern!r} escapes {escaped!r}, which needs no escape",
                    hint=f"Only %, _ and {escape} itself can be escaped; write {escape}{escape} for a plain {escape}.",
                )
            literal.append(escaped)
        elif character in "%_":
            if literal:
                pieces.append("".join(literal))
                literal.clear()
            pieces.append(ANY_TEXT if character == "%" else ANY_CHARACTER)
        else:
            literal.append(character)
    if literal:
        pieces.append("".join(literal))
    return pieces


def least_text_above(prefix: str) -> str | None:
    """Return the least text that is greater than every text with this prefix; None if there is none.

    >>> least_text_above("ab"), least_text_above("")
    ('ac', None)
    """
    while prefix:
        last = ord(prefix[-1])
        if last < 0x10FFFF:
            following = last + 1 if last + 1 != 0xD800 else 0xE000  # surrogates are not characters
            return prefix[:-1] + chr(following)
        prefix = prefix[:-1]
    return None


def like_expression(pattern: str, escape: str) -> str:
    """Return the regular expression of a LIKE pattern."""
    wild = {ANY_TEXT: ".*", ANY_CHARACTER: "."}
    pieces = (wild.get(piece) or re2.escape(piece) for piece in like_pieces(pattern, escape))
    return f"(?s)^(?:{''.join(pieces)})$"


@lru_cache(maxsize=4096)
def _compiled(expression: str, memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory
    try:
        return re2.compile(expression, options)
    except re2.error as refusal:
        reason = refusal.args[0] if refusal.args else "it cannot be compiled"
        message = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise PatternError(
            f"the regular expression {expression!r} cannot be used: {message}",
            hint="Patterns are RE2's: they run in linear time, without look-around and back-references.",
        ) from None


def like_matches(text: str, pattern: str, escape: str) -> bool:
    r"""Does the whole text fit the LIKE pattern?

    >>> like_matches("The Hobbit", "The %", "\\")
    True
    """
    return _compiled(like_expression(pattern, escape), 8 * DEFAULT_LIMITS.pattern_memory).search(text) is not None


def regex_matches(text: str, pattern: str) -> bool:
    """Is the regular expression found anywhere in the text?

    >>> regex_matches("The Hobbit", "H.b+it")
    True
    """
    return _compiled(pattern, 8 * DEFAULT_LIMITS.pattern_memory).search(text) is not None


def check_like(pattern: str, escape: str, limits: Limits) -> None:
    """Raise a typed error unless the pattern can be used."""
    _check_length(pattern, limits)
    if len(escape) != 1:
        raise PatternError(f"ESCAPE takes one character, found {escape!r}")
    if escape in pattern:
        like_pieces(pattern, escape)
    if len(pattern) > _SURELY_SMALL:
        _compiled(like_expression(pattern, escape), limits.pattern_memory)


def check_regex(pattern: str, limits: Limits) -> None:
    """Raise a typed error unless the regular expression can be used."""
    _check_length(pattern, limits)
    _compiled(pattern, limits.pattern_memory)


def _check_length(pattern: str, limits: Limits) -> None:
    if len(pattern) > limits.pattern_length:
        raise LimitError("pattern_length", limits.pattern_length, f"{len(pattern):,} characters")
