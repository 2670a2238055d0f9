"""What do people write who filter CloudEvents elsewhere? The filter dialects of the CloudEvents Subscriptions API.

| dialect | true if |
|---|---|
| `{"exact": {"type": "offer", …}}` | each attribute is this text |
| `{"prefix": {…}}`, `{"suffix": {…}}` | each attribute begins or ends with this text |
| `{"all": […]}`, `{"any": […]}`, `{"not": {…}}` | all, one, or none of the filters inside are true |
| `{"sql": "…"}`, `{"cesql": "…"}` | the condition is, in this language |

They are translated, so that they are compared, merged and indexed like every other filter. A list of filters means all
of them.

>>> str(from_dialect({"all": [{"exact": {"type": "offer"}}, {"not": {"prefix": {"source": "/test"}}}]}))
"type = 'offer' AND NOT startswith(source, '/test') <=> TRUE"

Departs: in these dialects a filter is true or false, and that of an absent attribute is false. So `not` asks whether
what is inside is *true*; anything else would lose events without the attribute. Attributes that are numbers or
Booleans compare as texts there, so `exact` also compares with the number that the text denotes. `sql` is the language
of Tamis, which lacks a few functions of CESQL and has many more.

Source: CloudEvents Subscriptions API 0.1-wip, section 3.2.4.1 (filter dialects).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tamis.language.builder import Value, all_of, any_of, attr
from tamis.language.expressions import Compare, Literal, Not
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.service.errors import BadRequestError

if TYPE_CHECKING:
    from datetime import datetime

    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema

DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not", "sql", "cesql")
_FORMS = 'a filter such as {"exact": {"type": "offer"}}, with one of ' + ", ".join(DIALECTS)
_ALWAYS_TEXTS = frozenset({"id", "source", "type", "specversion", "subject", "datacontenttype", "dataschema"})


def from_dialect(
    document: Any, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS, depth: int = 0
) -> Expression:
    """Return the expression of a filter in a dialect, or raise an error that says which part is none."""
    if depth > limits.depth:
        raise BadRequestError("the filter is nested too deeply", f"at most {limits.depth} levels")
    if type(document) is list:
        document = {"all": document}
    if type(document) is not dict or len(document) != 1:
        raise BadRequestError("this JSON is not a filter", _FORMS)
    [(dialect, content)] = document.items()
    if dialect in ("exact", "prefix", "suffix"):
        return all_of(*_comparisons(dialect, content))
    if dialect in ("all", "any"):
        if type(content) is not list or not content:
            raise BadRequestError(f"{dialect} has no filters", "a list with at least one filter")
        inner = [from_dialect(part, schema, limits, depth + 1) for part in content]
        return all_of(*inner) if dialect == "all" else any_of(*inner)
    if dialect == "not":
        return Not(Compare("<=>", from_dialect(content, schema, limits, depth + 1), Literal(True)))
    if dialect in ("sql", "cesql"):
        if type(content) is not str:
            raise BadRequestError(f"{dialect} is not a text", "a condition as a text")
        return parse(content, schema, limits=limits)
    raise BadRequestError(f"there is no filter dialect {dialect!r:.60}", _FORMS)


def _comparisons(dialect: str, content: Any) -> list[Expression]:
    if type(content) is not dict or not content:
        raise BadRequestError(f"{dialect} has no attributes", "an object of attributes and texts")
    comparisons: list[Expression] = []
    for name, text in content.items():
        if not name or type(text) is not str or not text:
            raise BadRequestError(
                f"{dialect} of {name!r:.60} is not a text", "an attribute's name and a text that is not empty"
            )
        attribute = attr(name)
        if dialect == "exact":
            comparisons.append(any_of(*(attribute == value for value in _readings(name, text))))
        elif name == "time":
            raise BadRequestError(
                f"{dialect} of time has no meaning here", "exact, or sql such as time > TIMESTAMP '…'"
            )
        else:
            comparison = Value.startswith if dialect == "prefix" else Value.endswith
            comparisons.append(comparison(attribute, text))
    return comparisons


def _readings(name: str, text: str) -> list[Any]:
    """Return the values that are written as this text."""
    if name == "time":
        return [_moment(text)]
    if name in _ALWAYS_TEXTS:
        return [text]
    readings: list[Any] = [text]
    if text in ("true", "false"):
        readings.append(text == "true")
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 18 and str(int(text)) == text:
        readings.append(int(text))
    return readings


def _moment(text: str) -> datetime:
    from datetime import UTC, datetime

    try:
        return msgspec.convert(text, datetime).astimezone(UTC).replace(tzinfo=None)
    except (msgspec.ValidationError, OverflowError, ValueError):
        raise BadRequestError(f"{text!r:.60} is not a time", "one such as 2026-01-31T12:00:00Z") from None
