"""How does a ranked subscription travel as JSON?

    {"tamis": 1, "ranked": {"k": 2, "by": ..., "order": "ASC", "window": {"events": 5}, "where": ...}}

Score and condition are written as the language writes its expressions; a window is `{"events": n}` or `{"seconds": s}`.
A score that ages has its `half_life` besides, in seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.errors import JsonFormError
from tamis.language import json_form
from tamis.language.expressions import TRUE, IsNull
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.topk.ranked import Ranked
from tamis.topk.windows import CountWindow, TimeWindow

if TYPE_CHECKING:
    from tamis.language.expressions import Expression

# A term is not a document of the language, but an operand of one is: so a score travels as what is asked to be NULL.
_BEFORE, _AFTER = f'{{"tamis":{json_form.VERSION},"expression":{{"is_null":', "}}"
_OUTSIDE = f'{{"tamis":{json_form.VERSION},"expression":', "}"
_FIELDS = {"k", "by", "order", "window", "where", "half_life"}


def to_json(ranked: Ranked) -> str:
    """Write a ranked subscription as a JSON document.

    >>> to_json(Ranked("price", 2, "5 EVENTS"))
    '{"tamis":1,"ranked":{"k":2,"by":{"attribute":["price"]},"order":"ASC","window":{"events":5},"where":true}}'
    """
    by = json_form.to_json(IsNull(ranked.score)).removeprefix(_BEFORE).removesuffix(_AFTER)
    where = json_form.to_json(ranked.where).removeprefix(_OUTSIDE[0]).removesuffix(_OUTSIDE[1])
    match ranked.window:
        case CountWindow(events):
            window = f'{{"events":{events}}}'
        case TimeWindow(seconds):
            window = f'{{"seconds":{seconds!r}}}'
    half_life = "" if ranked.half_life_s is None else f'"half_life":{ranked.half_life_s!r},'
    return (
        f'{{"tamis":{json_form.VERSION},"ranked":{{"k":{ranked.k},"by":{by},"order":"{ranked.order}",'
        f'{half_life}"window":{window},"where":{where}}}}}'
    )


def from_json(document: str | bytes | dict[str, Any], *, limits: Limits = DEFAULT_LIMITS) -> Ranked:
    """Read a ranked subscription from a JSON document, given as text or as the object it denotes.

    >>> print(from_json({"tamis": 1, "ranked": {"k": 2, "by": {"attribute": ["price"]}, "window": {"events": 5}}}))
    TOP 2 BY price ASC OVER 5 EVENTS
    """
    data = json_form.loaded(document, limits) if isinstance(document, str | bytes) else document
    match data:
        case {"tamis": json_form.VERSION, "ranked": dict(fields)} if len(data) == 2:
            pass
        case _:
            raise JsonFormError('a ranked subscription is {"tamis": 1, "ranked": {...}}')
    if set(fields) - _FIELDS or {"k", "by", "window"} - set(fields):
        raise JsonFormError(
            f"a ranked subscription has k, by and window, perhaps order, half_life and where, not {sorted(fields)}"
        )
    match fields["window"]:
        case {"events": int(events), **rest} if not rest:
            window: CountWindow | TimeWindow = CountWindow(events)
        case {"seconds": int() | float() as seconds, **rest} if not rest:
            window = TimeWindow(seconds)
        case other:
            raise JsonFormError(f'a window is {{"events": 5}} or {{"seconds": 3600}}, not {other!r:.200}')
    asked = json_form.from_json(_document({"is_null": fields["by"]}), limits=limits)
    assert isinstance(asked, IsNull)
    where: Expression = TRUE
    if "where" in fields:
        where = json_form.from_json(_document(fields["where"]), limits=limits)
    half_life = fields.get("half_life")
    if half_life is not None and (isinstance(half_life, bool) or not isinstance(half_life, int | float)):
        raise JsonFormError(f"a half life is a number of seconds, not {half_life!r:.200}")
    return Ranked(asked.value, fields["k"], window, where, order=fields.get("order", "ASC"), half_life=half_life)


def _document(expression: Any) -> dict[str, Any]:
    return {"tamis": json_form.VERSION, "expression": expression}
