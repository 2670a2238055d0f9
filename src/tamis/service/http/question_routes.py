"""What may be asked without any effect? Whether a filter is right, and who would want an event."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from tamis.service.cloud_events import read_json
from tamis.service.content_modes import events_in
from tamis.service.http.answers import answer
from tamis.service.http.front import FRONT
from tamis.service.http.guarding import PRINCIPAL
from tamis.service.http.subscriber_routes import filter_in
from tamis.service.messages import Match, Matched

if TYPE_CHECKING:
    from aiohttp import web


async def check(request: web.Request) -> web.Response:
    """Answer with the canonical form of a filter; what has no meaning is a problem document with the caret."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    front.quotas.take(principal, subscriptions=1, now=time.monotonic())
    wanted = (await front.parsed({"filter": await filter_in(request, front)}))["filter"]
    effective = front.permissions.effective(principal, wanted)
    document = msgspec.Raw(wanted.filter.to_json().encode())
    functions = {each.row.signature: each.row.summary for each in front.functions.values()}
    said = {"text": str(wanted.filter), "effective": str(effective), "json": document}
    return answer(said | ({"functions": functions} if functions else {}))


async def match(request: web.Request) -> web.Response:
    """Answer which subscriptions want an event, or each of several. Nothing is published."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    content = read_json(await front.body(request))
    events = events_in(content, front.settings.limits, "match", "/match")
    size_bytes = sum(len(event.body) for event in events)
    front.quotas.take(principal, events=len(events), size_bytes=size_bytes, now=time.monotonic())
    matched = await front.core.ask(principal, Match(1, tuple(event.record for event in events)))
    assert isinstance(matched, Matched)
    matches = [[{"subscriber": name, "key": key} for name, key in pairs] for pairs in matched.matches]
    return answer({"matches": matches if type(content) is list else matches[0]})
