"""What does a filter of the CloudEvents Subscriptions API say? Its dialects as conditions.

| dialect | true if |
|---|---|
| `{"exact": {"type": "offer", …}}` | each attribute is this text |
| `{"prefix": {…}}`, `{"suffix": {…}}` | each attribute begins or ends with this text |
| `{"all": […]}`, `{"any": […]}`, `{"not": {…}}` | all, one, or none of the filters inside are true |
| `{"sql": "…"}`, `{"cesql": "…"}` | the expression is (`cesql`) |

A list of filters means all of them, and an empty one everything.

Departs: in these dialects a filter is true or false, and that of an absent attribute is false. So `not` asks whether
what is inside is *true*; anything else would lose events without the attribute. Attributes that are numbers or
Booleans compare as texts there, so `exact` also compares with the number that the text denotes.

Source: CloudEvents Subscriptions API 0.1-wip, section 3.2.4.1 (filter dialects).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tamis.errors import TranslationError
from tamis.language.builder import Value, all_of, any_of
from tamis.language.expressions import Attribute, Compare, Expression, Literal, Not
from tamis.language.foreign.cesql import TEXTS, from_cesql
from tamis.language.foreign.translation import Assumption, Path, Translation
from tamis.language.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from tamis.language.schema import Schema

DIALECTS = ("exact", "prefix", "suffix", "all", "any", "not", "sql", "cesql")
FORMS = 'a filter such as {"exact": {"type": "offer"}}, with one of ' + ", ".join(DIALECTS)
Sql = Callable[[str, str], Expression]
"""What reads the texts of a dialect: its name and a text, to a condition."""


def from_cloud_events(document: Any, below: Path = (), schema: Schema | None = None) -> Translation:
    """Return what a filter says: an object or a list in a dialect, its JSON, or a text of CESQL.

    >>> print(from_cloud_events({"all": [{"exact": {"type": "offer"}}, {"not": {"prefix": {"source": "/test"}}}]}))
    type = 'offer' AND NOT startswith(source, '/test') <=> TRUE
    >>> print(from_cloud_events("type = 'offer'"))
    type = 'offer'
    """
    assumed: dict[Path, frozenset[str]] = {}

    def sql(_: str, text: str) -> Expression:
        translation = from_cesql(text, below, schema)
        for each in translation.assumes:
            assumed[each.path] = assumed.get(each.path, frozenset()) | each.never
        return translation.condition

    if isinstance(document, str):
        document = _parsed(document) if document.lstrip()[:1] in ("{", "[") else {"cesql": document}
    condition = from_dialect(document, sql, below)
    return Translation(condition, tuple(Assumption(path, assumed[path]) for path in sorted(assumed)))


def from_dialect(
    document: Any, sql: Sql, below: Path = (), deepest: int = DEFAULT_LIMITS.depth, depth: int = 0
) -> Expression:
    """Return the condition of a filter in a dialect, or raise an error that says which part is none."""
    if depth > deepest:
        raise TranslationError("the filter is nested too deeply", expected=(f"at most {deepest} levels",))
    if type(document) is list:
        document = {"all": document}
    if type(document) is not dict or len(document) != 1:
        raise TranslationError("this JSON is not a filter", expected=(FORMS,))
    [(dialect, content)] = document.items()
    if dialect in ("exact", "prefix", "suffix"):
        return all_of(*_comparisons(dialect, content, below))
    if dialect in ("all", "any"):
        if type(content) is not list or not content:
            raise TranslationError(f"{dialect} has no filters", expected=("a list with at least one filter",))
        inner = [from_dialect(part, sql, below, deepest, depth + 1) for part in content]
        return all_of(*inner) if dialect == "all" else any_of(*inner)
    if dialect == "not":
        return Not(Compare("<=>", from_dialect(content, sql, below, deepest, depth + 1), Literal(True)))
    if dialect in ("sql", "cesql"):
        if type(content) is not str:
            raise TranslationError(f"{dialect} is not a text", expected=("an expression as a text",))
        return sql(dialect, content)
    raise TranslationError(f"there is no filter dialect {dialect!r:.60}", expected=(FORMS,))


def _comparisons(dialect: str, content: Any, below: Path) -> list[Expression]:
    if type(content) is not dict or not content:
        raise TranslationError(f"{dialect} has no attributes", expected=("an object of attributes and texts",))
    comparisons: list[Expression] = []
    for name, text in content.items():
        if not name or type(text) is not str or not text:
            expected = "an attribute's name and a text that is not empty"
            raise TranslationError(f"{dialect} of {name!r:.60} is not a text", expected=(expected,))
        attribute = Value(Attribute((*below, name)))
        if dialect == "exact":
            comparisons.append(any_of(*(attribute == value for value in _readings(name, text))))
        elif name == "time":
            raise TranslationError(
                f"{dialect} of time has no meaning here", expected=("exact, or sql such as time > TIMESTAMP '…'",)
            )
        else:
            comparison = Value.startswith if dialect == "prefix" else Value.endswith
            comparisons.append(comparison(attribute, text))
    return comparisons


def _readings(name: str, text: str) -> list[Any]:
    """Return the values that are written as this text."""
    if name == "time":
        return [_moment(text)]
    if name in TEXTS:
        return [text]
    readings: list[Any] = [text]
    if text in ("true", "false"):
        readings.append(text == "true")
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= 18 and str(int(text)) == text:
        readings.append(int(text))
    return readings


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
        return moment.astimezone(UTC).replace(tzinfo=None)
    except (OverflowError, ValueError):
        raise TranslationError(f"{text!r:.60} is not a time", expected=("one such as 2026-01-31T12:00:00Z",)) from None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TranslationError(f"the filter is not JSON: {error}", expected=(FORMS,)) from None
