r"""What does a function of texts, or a pattern, give for a column?

It is asked once for each distinct text. Substrings, and patterns of which all versions of RE2 think alike, are left to
Arrow, which has RE2 inside; what depends on the tables of Unicode (`lower`, `(?i)`, `\p{...}`) stays with the
functions of the reference meaning, whose answers about recent texts are remembered where they are dear.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.language.functions import FUNCTIONS
from tamis.language.patterns import ANY_TEXT, like_expression, like_pieces
from tamis.matching.closures import remembered_cidr, remembered_like, remembered_regex
from tamis.matching.columnwise.series import NULL, Series, Words, both, by_text, exact

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.schema import Schema

_OF_UNICODE = re.compile(r"\\[pP]|\(\?[^)]*i")
"""What may be found in a regular expression whose meaning depends on tables that grow with every version."""

_IN_ARROW: dict[str, Callable[..., Any]] = {
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
    "contains": pc.match_substring,
}


def of_text(name: str, text: Series) -> Series | None:
    """Return `lower`, `upper`, `trim` or `length` of texts."""
    if text.kind != "string":
        return None if text.kind == "object" else NULL
    results = [FUNCTIONS[name].meaning(each) for each in text.words.strings]
    if name == "length":
        return exact("int", by_text(np.array(results, np.int64), text), text.values >= 0)
    return Series("string", text.values, words=Words.of(results))


def test(name: str, text: Series, part: Series) -> Series | None:
    """Return whether texts start with, end with, contain others, or lie in a network."""
    if not {text.kind, part.kind} <= {"string", "object"}:
        return NULL
    if text.kind == "object" or part.kind == "object" or not (text.is_constant or part.is_constant):
        return None
    constant = part.constant_text() if part.is_constant else text.constant_text()
    if constant is None:
        return NULL
    if part.is_constant and name in _IN_ARROW:
        answers = _IN_ARROW[name](text.words.arrow, pattern=constant).to_numpy(zero_copy_only=False)
        return Series("boolean", by_text(answers, text), text.values >= 0)
    meaning = remembered_cidr if name == "in_cidr" else FUNCTIONS[name].meaning
    if part.is_constant:
        return _spread([meaning(each, constant) for each in text.words.strings], text)
    return _spread([meaning(constant, each) for each in part.words.strings], part)


def like(text: Series, pattern: str, escape: str) -> Series | None:
    """Return where the whole text fits a LIKE pattern."""
    if text.kind != "string":
        return None if text.kind == "object" else NULL
    match like_pieces(pattern, escape):
        case [first, str(part), last] if first is ANY_TEXT is last:
            answers = pc.match_substring(text.words.arrow, part)
        case [first, str(part)] if first is ANY_TEXT:
            answers = pc.ends_with(text.words.arrow, part)
        case [str(part), last] if last is ANY_TEXT:
            answers = pc.starts_with(text.words.arrow, part)
        case _:
            answers = _searched(text.words, like_expression(pattern, escape))
    if answers is None:
        return _spread([remembered_like(each, pattern, escape) for each in text.words.strings], text)
    return Series("boolean", by_text(answers.to_numpy(zero_copy_only=False), text), text.values >= 0)


def rlike(text: Series, pattern: str) -> Series | None:
    """Return where a regular expression is found in a text."""
    if text.kind != "string":
        return None if text.kind == "object" else NULL
    answers = None if _OF_UNICODE.search(pattern) else _searched(text.words, pattern)
    if answers is None:
        return _spread([remembered_regex(each, pattern) for each in text.words.strings], text)
    return Series("boolean", by_text(answers.to_numpy(zero_copy_only=False), text), text.values >= 0)


def is_a(name: Series, event_type: str, schema: Schema | None) -> Series | None:
    """Return where a text names an event type or a subtype of it."""
    if name.kind != "string":
        return None if name.kind == "object" else NULL
    if schema is None:
        return _spread([each == event_type for each in name.words.strings], name)
    return _spread([schema.is_a(each, event_type) for each in name.words.strings], name)


def _searched(words: Words, expression: str) -> Any:
    """Search texts for a regular expression; None where Arrow's RE2 does not take it."""
    try:
        return pc.match_substring_regex(words.arrow, expression)
    except pa.ArrowInvalid:  # it allows an expression other memory than we do
        return None


def _spread(answers: list[bool | None], text: Series) -> Series:
    """Spread answers about distinct texts over the rows."""
    values = np.array([answer is True for answer in answers], np.bool_)
    known = np.array([answer is not None for answer in answers], np.bool_)
    return Series("boolean", by_text(values, text), both(by_text(known, text), text.values >= 0))
