"""What did the broker object to? Errors rebuilt from problem documents (RFC 9457).

A broker says over HTTP and WebSocket alike what it refuses: `status`, `title`, `detail`, `expected`. Here that becomes
the error that the broker raised, so that who catches `TooLargeError` need not know where it was found. What is wrong
with a text of the language becomes the language's own error, with line, column and caret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tamis.errors as language_errors
from tamis.errors import LanguageError, LimitError, TamisError
from tamis.service import errors as service_errors
from tamis.service.errors import ServiceError, TooManyError


def _kinds(of: type[ServiceError]) -> list[type[ServiceError]]:
    return [of, *(kind for below in of.__subclasses__() for kind in _kinds(below))]


_NOT_TOLD = (service_errors.UnreachableError, service_errors.ClosedError)
"""What only a client says of itself."""
_BY_TITLE = {kind.title: kind for kind in _kinds(ServiceError) if kind not in _NOT_TOLD}
_BY_STATUS: dict[int, type[ServiceError]] = {}
for _kind in _BY_TITLE.values():
    _BY_STATUS.setdefault(_kind.status, _kind)


def rebuilt(problem: Mapping[str, Any], retry_s: float = 1.0, text: str | None = None) -> TamisError:
    """Return the error that a problem document tells of; `text` is what was asked, if the document does not repeat it.

    >>> rebuilt({"status": 413, "title": "Larger than the limit", "detail": "too large", "expected": "at most 1 MB"})
    TooLargeError('too large', 'at most 1 MB')
    >>> print(rebuilt({"status": 400, "detail": "found the end of the text", "expected": ["a condition"],
    ...                "error": "ExpressionSyntaxError", "where": {"line": 1, "column": 12}}, text="price < 20 "))
    line 1, column 12: found the end of the text, expected a condition
      price < 20
                 ^
    """
    where = problem.get("where")
    if isinstance(where, Mapping) or _language_kind(problem):
        return _of_language(problem, where if isinstance(where, Mapping) else {}, text)
    status = problem.get("status")
    kind = _BY_TITLE.get(str(problem.get("title", ""))) or _BY_STATUS.get(status if isinstance(status, int) else 500)
    kind = kind or ServiceError
    detail = str(problem.get("detail") or problem.get("title") or f"the broker answered {status}")
    expected = _words(problem.get("expected"))
    if issubclass(kind, service_errors.DamagedLogError):
        kind = service_errors.LogError  # its facts are in its words
    if issubclass(kind, TooManyError):
        wait = problem.get("retry_s", retry_s)
        return kind(detail, expected, float(wait) if isinstance(wait, int | float) else retry_s)
    return kind(detail, expected)


_ABOUT_TEXTS = {"The filter has no meaning": LanguageError, "The filter is too large": LimitError}


def _language_kind(problem: Mapping[str, Any]) -> type[LanguageError] | None:
    if (named := _ABOUT_TEXTS.get(str(problem.get("title", "")))) and "error" not in problem:
        return named
    kind = getattr(language_errors, str(problem.get("error", "")), None)
    return kind if isinstance(kind, type) and issubclass(kind, LanguageError) else None


def _of_language(problem: Mapping[str, Any], where: Mapping[str, Any], text: str | None) -> LanguageError:
    """Return an error about a text; of its own kind, without calling a constructor that wants to know more."""
    kind = _language_kind(problem) or LanguageError
    written = problem.get("text", where.get("text", text))
    written = written if isinstance(written, str) else None
    expected = problem.get("expected")
    error = kind.__new__(kind)
    LanguageError.__init__(
        error,
        str(problem.get("message") or problem.get("detail") or "the text has no meaning"),
        text=written,
        position=_offset(written, where) if written is not None else None,
        hint=str(problem["hint"]) if problem.get("hint") else None,
        expected=tuple(map(str, expected)) if isinstance(expected, list) else (str(expected),) if expected else (),
    )
    return error


def _offset(text: str, where: Mapping[str, Any]) -> int | None:
    """Return the offset of a line and a column in a text, or None if they are not in it."""
    line, column = where.get("line"), where.get("column")
    if not isinstance(line, int) or not isinstance(column, int) or line < 1 or column < 1:
        return None
    lines = text.split("\n")
    if line > len(lines):
        return None
    return min(sum(len(before) + 1 for before in lines[: line - 1]) + column - 1, len(text))


def _words(expected: Any) -> str:
    return " or ".join(map(str, expected)) if isinstance(expected, list) else str(expected or "")
