"""How do sequences and changes travel as JSON?

    {"tamis": 1, "sequence": {"steps": [{"condition": ..., "name": "high"}, {"condition": ..., "same": true}, ...,
        {"absent": ...}], "after": 1.0, "within": 300.0, "per": [["user"]], "taking": "LATEST"}}
    {"tamis": 1, "change": {"to": ..., "until": ..., "per": [["symbol"]], "where": ..., "forget_after": 86400.0}}

Conditions are written as the language writes its expressions, spans in seconds, attributes by their paths. What a
sequence or a change does not have is left out; a change is `to` a condition or `of` it.
"""

from __future__ import annotations

import json
from typing import Any

from tamis.errors import JsonFormError
from tamis.language import json_form
from tamis.language.expressions import TRUE, Expression
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.standing.change import Change
from tamis.standing.sequence import Sequence, Step

_OUTSIDE = f'{{"tamis":{json_form.VERSION},"expression":', "}"
_SEQUENCE = {"steps", "after", "within", "per", "taking"}
_CHANGE = {"to", "of", "until", "per", "where", "forget_after"}


def to_json(subscription: Sequence | Change) -> str:
    """Write a sequence or a change as a JSON document.

    >>> to_json(Change("sold", per=["shop"]))
    '{"tamis":1,"change":{"to":{"attribute":["sold"]},"per":[["shop"]]}}'
    """
    kind = "sequence" if isinstance(subscription, Sequence) else "change"
    fields = _sequence_fields(subscription) if isinstance(subscription, Sequence) else _change_fields(subscription)
    if subscription.per:
        fields["per"] = json.dumps(subscription.per, ensure_ascii=False, separators=(",", ":"))
    return f'{{"tamis":{json_form.VERSION},"{kind}":{_object(fields)}}}'


def _sequence_fields(sequence: Sequence) -> dict[str, str]:
    steps = []
    for step in sequence.steps:
        written = {"absent" if step.is_absent else "condition": _written(step.condition)}
        if step.name is not None:
            written["name"] = json.dumps(step.name, ensure_ascii=False)
        if step.is_same:
            written["same"] = "true"
        steps.append(_object(written))
    fields = {"steps": f"[{','.join(steps)}]"}
    for name, span in (("after", sequence.after), ("within", sequence.within)):
        if span is not None:
            fields[name] = repr(span)
    if sequence.taking != "LATEST":
        fields["taking"] = json.dumps(sequence.taking)
    return fields


def _change_fields(change: Change) -> dict[str, str]:
    fields = {"of" if change.is_both_ways else "to": _written(change.condition)}
    if change.until is not None:
        fields["until"] = _written(change.until)
    if change.where != TRUE:
        fields["where"] = _written(change.where)
    if change.forget_after is not None:
        fields["forget_after"] = repr(change.forget_after)
    return fields


def _object(fields: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"


def _written(expression: Expression) -> str:
    return json_form.to_json(expression).removeprefix(_OUTSIDE[0]).removesuffix(_OUTSIDE[1])


def from_json(document: str | bytes | dict[str, Any], *, limits: Limits = DEFAULT_LIMITS) -> Sequence | Change:
    """Read a sequence or a change from a JSON document, given as text or as the object it denotes.

    >>> print(from_json({"tamis": 1, "change": {"of": {"attribute": ["sold"]}, "per": [["shop"]]}}))
    CHANGE OF sold PER shop
    """
    data = json_form.loaded(document, limits) if isinstance(document, str | bytes) else document
    match data:
        case {"tamis": json_form.VERSION, "sequence": dict(fields)} if len(data) == 2:
            _require(fields, _SEQUENCE, {"steps"}, "a sequence")
            return _sequence(fields, limits)
        case {"tamis": json_form.VERSION, "change": dict(fields)} if len(data) == 2:
            _require(fields, _CHANGE, set(), "a change")
            return _change(fields, limits)
    raise JsonFormError('a standing subscription is {"tamis": 1, "sequence": {...}} or {"tamis": 1, "change": {...}}')


def _sequence(fields: dict[str, Any], limits: Limits) -> Sequence:
    if not isinstance(fields["steps"], list):
        raise JsonFormError("the steps of a sequence are a list")
    steps = []
    for step in fields["steps"]:
        match step:
            case {"absent": absent, **rest} if not rest:
                steps.append(Step(_read(absent, limits), is_absent=True))
            case {"condition": condition, **rest} if not rest.keys() - {"name", "same"}:
                name, is_same = step.get("name"), step.get("same", False)
                if not isinstance(is_same, bool):
                    raise JsonFormError(f"a step is the same or not: true or false, not {is_same!r:.80}")
                steps.append(Step(_read(condition, limits), name, is_same=is_same))
            case _:
                raise JsonFormError(
                    f'a step is {{"condition": ..., "name": "a", "same": true}} or {{"absent": ...}}, not {step!r:.200}'
                )
    return Sequence(
        steps,
        after=_span(fields, "after"),
        within=_span(fields, "within"),
        per=_paths(fields),
        taking=fields.get("taking", "LATEST"),
    )


def _change(fields: dict[str, Any], limits: Limits) -> Change:
    if ("to" in fields) is ("of" in fields):
        raise JsonFormError("a change is either `to` a condition or `of` it")
    conditions = {name: _read(fields[name], limits) for name in ("to", "of", "until", "where") if name in fields}
    return Change(**conditions, per=_paths(fields), forget_after=_span(fields, "forget_after"))


def _read(data: Any, limits: Limits) -> Expression:
    return json_form.from_json({"tamis": json_form.VERSION, "expression": data}, limits=limits)


def _span(fields: dict[str, Any], name: str) -> float | None:
    span = fields.get(name)
    if span is None:
        return None
    if isinstance(span, bool) or not isinstance(span, int | float):
        raise JsonFormError(f"{name} is a number of seconds, not {span!r:.80}")
    return float(span)


def _paths(fields: dict[str, Any]) -> list[tuple[str, ...]]:
    written = fields.get("per", [])
    if not isinstance(written, list) or not all(
        isinstance(path, list) and path and all(isinstance(name, str) and name for name in path) for path in written
    ):
        raise JsonFormError(f'per is a list of paths such as ["position", "x"], not {written!r:.200}')
    return [tuple(path) for path in written]


def _require(fields: dict[str, Any], known: set[str], needed: set[str], what: str) -> None:
    if fields.keys() - known or needed - fields.keys():
        raise JsonFormError(f"{what} has {', '.join(sorted(known))}, not {sorted(map(str, fields))}")
