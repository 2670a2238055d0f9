"""What do people write who filter CloudEvents elsewhere? The filter dialects of the CloudEvents Subscriptions API.

They are translated (`tamis.language.foreign.cloud_events`), so that they are compared, merged and indexed like every
other filter. A list of filters means all of them.

>>> str(from_dialect({"all": [{"exact": {"type": "offer"}}, {"not": {"prefix": {"source": "/test"}}}]}))
"type = 'offer' AND NOT startswith(source, '/test') <=> TRUE"

`cesql` is CloudEvents SQL. Departs: `sql` is the language of Tamis, which reads the data of events, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import TranslationError
from tamis.language.foreign import cloud_events
from tamis.language.foreign.cesql import from_cesql
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.language.parser import parse
from tamis.service.errors import BadRequestError

if TYPE_CHECKING:
    from tamis.language.expressions import Expression
    from tamis.language.schema import Schema


def from_dialect(document: Any, schema: Schema | None = None, limits: Limits = DEFAULT_LIMITS) -> Expression:
    """Return the expression of a filter in a dialect, or raise an error that says which part is none."""

    def sql(dialect: str, text: str) -> Expression:
        return parse(text, schema, limits=limits) if dialect == "sql" else from_cesql(text, (), schema).condition

    try:
        return cloud_events.from_dialect(document, sql, deepest=limits.depth)
    except TranslationError as error:
        if error.text is not None:  # it is about a place in a text
            raise
        raise BadRequestError(error.message, " or ".join(error.expected)) from None
