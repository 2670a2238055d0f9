"""What would a filter match, and why does it match an event, or not? Dry runs, explanations, relations and reasons.

| | |
|---|---|
| `POST /try` | what a filter would have matched of the last hour |
| `POST /explain` | whether it matches an event, and why |
| `POST /relations` | whether one filter covers another |
| `GET /subscribers/{subscriber}/why` | why a subscriber got an event, or why not |

None of them has an effect, and none says anything of events that the one who asks may not receive.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import msgspec

from tamis.language.explanation import explain
from tamis.language.expressions import Expression
from tamis.language.meaning import holds
from tamis.relations import covers, example, identical, overlaps
from tamis.service.cloud_events import record_of
from tamis.service.comparing import Named, Relatives, compared
from tamis.service.content_modes import events_in
from tamis.service.errors import BadRequestError, NotFoundError
from tamis.service.filters import condition_of
from tamis.service.history import Range
from tamis.service.http.answers import answer
from tamis.service.http.bodies import ExplainBody, RelationsBody, TryBody
from tamis.service.http.front import FRONT, Front
from tamis.service.http.guarding import PRINCIPAL
from tamis.service.http.subscriber_routes import facts_of, subscriber_of
from tamis.service.log.base import is_rerouted
from tamis.service.messages import Describe, Described, Reasons, Why
from tamis.service.permissions import EFFECTIVE_LIMITS
from tamis.service.positions import Position, read_position
from tamis.service.reasons import judged, sentence
from tamis.service.starting_points import rfc3339
from tamis.service.trials import Trial, tried
from tamis.standing.subscriptions import parse_subscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from aiohttp import web

    from tamis.relations import Verdict
    from tamis.service.messages import Principal
    from tamis.service.trials import Shown


async def try_filter(request: web.Request) -> web.Response:
    """Answer with what a filter would have matched of a part of the past, and with how it relates to others."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    asked = await front.struct(request, TryBody)
    front.quotas.take(principal, subscriptions=1, now=time.monotonic())
    wanted = (await front.parsed({"where": asked.where}))["where"]
    condition_of(wanted, "a trial")
    effective = front.permissions.effective(principal, wanted)
    await asyncio.to_thread(front.core.refresh)
    head = front.core.head
    first = front.core.first if asked.from_ == "first" else await front.start(asked.from_)
    until = await front.start(asked.until) if asked.until else 0
    positions = Range(max(first or head + 1, front.core.first), min(until or head + 1, head + 1))
    own = await _own(front, principal, asked.as_)
    trial, relatives = await asyncio.to_thread(
        _tried, front, positions, effective, front.permissions.receive(principal), own, asked.most
    )
    return answer(_trial_json(front, str(effective), positions, effective, trial, relatives))


def _tried(
    front: Front,
    positions: Range,
    wanted: Expression,
    allowed: Expression | None,
    own: list[tuple[str, str, str]],
    most: int,
) -> tuple[Trial, Relatives]:
    with front.functions.in_use():
        trial = tried(front.core, positions, wanted, allowed, front.schema, clock=time.monotonic, most=most)
        parsed = ((name, key, parse_subscription(text, limits=EFFECTIVE_LIMITS)) for name, key, text in own)
        named = (Named(name, key, each) for name, key, each in parsed if isinstance(each, Expression))
        return trial, compared(wanted, named, front.schema, clock=time.monotonic)


async def _own(front: Front, principal: Principal, subscriber: str) -> list[tuple[str, str, str]]:
    """Return the subscriptions that the principal has, or that one of its subscribers has."""
    if subscriber:
        everybody: Iterable[Any] = [await facts_of(front, principal, subscriber)]
    else:
        described = await front.core.ask(principal, Describe(1))
        assert isinstance(described, Described)
        everybody = (facts for facts in described.subscribers if facts.owner == principal.name and facts.is_durable)
    return [(facts.name, key, known.effective) for facts in everybody for key, known in facts.subscriptions.items()]


def _trial_json(
    front: Front, text: str, positions: Range, wanted: Expression, trial: Trial, relatives: Relatives
) -> Mapping[str, Any]:
    length, spans = trial.spans()

    def at(position: int) -> str:
        return Position.of(position).text(front.core.epoch)

    def sample(each: Shown) -> dict[str, Any]:
        shown: dict[str, Any] = {"at": at(each.position), "event": msgspec.Raw(each.body)}
        if each.shortfall:
            shown |= {"changes": each.shortfall, "why": str(explain(wanted, each.record, front.schema))}
        return shown

    def own(group: list[Named]) -> list[dict[str, str]]:
        return [{"subscriber": each.subscriber, "key": each.key, "text": str(each.expression)} for each in group]

    with front.functions.in_use():
        return {
            "effective": text,
            "seen": trial.seen,
            "matched": trial.matched,
            "share": trial.matched / trial.seen if trial.seen else None,
            "first": at(positions.first),
            "through": at(trial.through),
            "complete": trial.is_complete,
            "span_s": length,
            "spans": [
                {"at": rfc3339(each.begin_s * 1_000_000), "seen": each.seen, "matched": each.matched} for each in spans
            ],
            "examples": [sample(each) for each in trial.examples],
            "near_misses": [sample(each) for each in trial.near_misses],
            "same": own(relatives.same),
            "covered_by": own(relatives.covered_by),
            "covers": own(relatives.covers),
            "compared": relatives.compared,
            "compared_all": relatives.is_complete,
        }


async def explain_filter(request: web.Request) -> web.Response:
    """Answer whether a filter matches an event, and why."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    asked = await front.struct(request, ExplainBody)
    if (asked.event is msgspec.UNSET) == (not asked.at):
        raise BadRequestError("the body has both an event and a position, or neither", 'one of "event" and "at"')
    front.quotas.take(principal, subscriptions=1, now=time.monotonic())
    wanted = condition_of((await front.parsed({"where": asked.where}))["where"], "an explanation")
    record: Mapping[str, Any]
    if asked.at:
        position = read_position(asked.at, front.core.epoch).event
        record = (await asyncio.to_thread(_event_at, front, principal, position))[1]
    else:
        (event,) = events_in([asked.event], front.settings.limits, "explain", "/explain")
        record = event.record
    with front.functions.in_use():
        explanation = await asyncio.to_thread(explain, wanted, record, front.schema)
        return answer(
            {"matches": explanation.truth is True, "text": str(explanation), "explanation": explanation.as_dict()}
        )


def _event_at(front: Front, principal: Principal, position: int) -> tuple[bytes, dict[str, Any]]:
    """Return the event at a position that a principal may receive; this reads the disk."""
    allowed = front.permissions.receive(principal)
    for block in front.core.read(position, position):
        index = position - block.first
        if not 0 <= index < len(block.events) or is_rerouted(block.flags[index]):
            continue
        body, record = block.events[index], record_of(block.events[index], block.flags[index])
        with front.functions.in_use():
            if allowed is None or holds(allowed, record, front.schema):
                return body, record
    raise NotFoundError(
        f"there is no event at {Position.of(position).text(front.core.epoch)} that you may receive",
        f"a position from {front.core.epoch}-{front.core.first} to {front.core.epoch}-{front.core.head}",
    )


async def relate(request: web.Request) -> web.Response:
    """Answer how two filters relate, with events that tell them apart."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    asked = await front.struct(request, RelationsBody)
    front.quotas.take(principal, subscriptions=2, now=time.monotonic())
    parsed = await front.parsed({"first": asked.first, "second": asked.second})
    first, second = (condition_of(each, "a comparison") for each in parsed.values())
    return answer(await asyncio.to_thread(_related, front, first, second))


def _related(front: Front, first: Expression, second: Expression) -> Mapping[str, Any]:
    schema = front.schema

    def said(verdict: Verdict) -> dict[str, bool]:
        return {"holds": verdict.holds, "proven": verdict.proven}

    def shown(event: Any) -> Any:
        return None if event is None else msgspec.Raw(msgspec.json.encode(event, enc_hook=str))

    with front.functions.in_use():
        return {
            "covers": said(covers(first, second, schema)),
            "covered": said(covers(second, first, schema)),
            "identical": said(identical(first, second, schema)),
            "overlaps": said(overlaps(first, second, schema)),
            "only_first": shown(example([first], [second], schema)),
            "only_second": shown(example([second], [first], schema)),
            "both": shown(example([first, second], [], schema)),
        }


async def why(request: web.Request) -> web.Response:
    """Answer why a subscriber got an event, or why not. The event is named by `at`, or by `id` and `source`."""
    front, principal, name = request.app[FRONT], request[PRINCIPAL], subscriber_of(request)
    at, id_, source = (request.query.get(option, "") for option in ("at", "id", "source"))
    if bool(at) == bool(id_ and source):
        raise BadRequestError("the event is not named", "at=POSITION, or id=… and source=…")
    position = read_position(at, front.core.epoch).event if at else 0
    reasons = await front.core.ask(principal, Why(1, name, position, f"{source}\n{id_}"))
    assert isinstance(reasons, Reasons)
    body, record = await asyncio.to_thread(_event_at, front, principal, reasons.position)
    dead = await asyncio.to_thread(front.core.dead, name)
    letter = next((each for each in dead if each.position.event == reasons.position), None)
    with front.functions.in_use():
        verdicts = await asyncio.to_thread(judged, reasons.versions, record, front.schema)
    delivery = reasons.delivery
    is_wanted = any(each.matches for each in verdicts)
    state = "none" if not is_wanted else "dead" if letter is not None else delivery.state
    epoch = front.core.epoch
    return answer(
        {
            "at": Position.of(reasons.position).text(epoch),
            "verdict": sentence(name, verdicts, delivery, letter is not None),
            "delivery": state,
            "attempts": delivery.attempts if letter is None else letter.attempts,
            "subscriptions": [
                {
                    "key": each.version.key,
                    "text": each.version.text,
                    "effective": str(each.version.effective),
                    "since": Position.of(each.version.since).text(epoch),
                    "until": Position.of(each.version.until).text(epoch) if each.version.until else None,
                    "in_force": each.version.counts,
                    "matches": each.matches,
                    "withheld": each.version.counts and each.is_withheld,
                    "explanation": str(each.explanation),
                }
                for each in verdicts
            ],
            "event": msgspec.Raw(body),
            **({} if letter is None else {"reason": letter.reason}),
        }
    )
