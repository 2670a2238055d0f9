"""What may be asked of subscribers? Their settings, subscriptions, deliveries and dead letters."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from tamis.language.meaning import holds
from tamis.service.cloud_events import read_json, record_of
from tamis.service.errors import BadRequestError, NotFoundError, TooLargeError
from tamis.service.http.answers import answer, deliveries_json, facts_json, told_member
from tamis.service.http.bodies import AgainBody, DoneBody, SubscriberBody, TakeBody
from tamis.service.http.consuming import Mailbox
from tamis.service.http.event_routes import flag
from tamis.service.http.event_stream import EventStream, begun, stream
from tamis.service.http.front import FRONT, Front
from tamis.service.http.guarding import CALLER, PRINCIPAL
from tamis.service.http.leasing import lease_time
from tamis.service.http.web_socket import WebSocket
from tamis.service.messages import (
    Acknowledge,
    Attach,
    Configure,
    Delivery,
    Describe,
    Described,
    Ended,
    Forget,
    Revive,
    Subscribe,
    Subscribed,
    SubscriberSettings,
    Take,
    Taken,
    Unsubscribe,
)
from tamis.service.positions import Position, read_position
from tamis.service.settings import Duration
from tamis.service.starting_points import rfc3339

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.service.changes import Buried
    from tamis.service.messages import Principal, SubscriberFacts

JSON = ("application/json", "application/cloudevents+json")
LAGS_MOST = 100
"""Of so many places of the log is it looked up when they were written; who is elsewhere has no time of waiting."""
DEAD_MOST = 1_000
"""So many dead letters are shown, and revived, at once."""


def subscriber_of(request: web.Request) -> str:
    """Return the subscriber that an address names."""
    return request.match_info["subscriber"]


async def facts_of(front: Front, principal: Principal, subscriber: str) -> SubscriberFacts:
    """Return what is known of a subscriber that the principal may use."""
    described = await front.core.ask(principal, Describe(1, subscriber))
    assert isinstance(described, Described)
    if not described.subscribers:
        raise NotFoundError(f"there is no subscriber {subscriber!r:.80}", "one of GET /subscribers")
    return described.subscribers[0]


# -- Subscribers


async def list_subscribers(request: web.Request) -> web.Response:
    """Answer with all subscribers that the principal may use."""
    front = request.app[FRONT]
    described = await front.core.ask(request[PRINCIPAL], Describe(1))
    assert isinstance(described, Described)
    known = [dict(facts_json(facts, front.core.epoch)) for facts in described.subscribers]
    fares = {} if front.webhooks is None else front.webhooks.health
    for facts in known:
        if (health := fares.get(facts["name"])) is not None:
            facts["webhook"] = {"state": health.state, "reason": health.reason}
    content: dict[str, Any] = {"subscribers": known}
    if flag(request, "lag"):
        times = await asyncio.to_thread(_waiting_since, front, described.subscribers)
        for facts, time_us in zip(known, times, strict=True):
            facts["waiting_since"] = None if time_us is None else rfc3339(time_us)
        content["at"] = Position.of(front.core.head).text(front.core.epoch)
    return answer(content)


def _waiting_since(front: Front, subscribers: Sequence[SubscriberFacts]) -> list[int | None]:
    """Return when the first event came that is not done, for each; None if everything is. This reads the disk."""
    times: dict[int, int | None] = {}
    for facts in subscribers:
        first = facts.floor.event + 1
        if first not in times:
            if len(times) >= LAGS_MOST or first > front.core.head:
                times[first] = None
            else:
                block = next(iter(front.core.read(first, front.core.head)), None)
                times[first] = None if block is None else block.time_us
    return [times[facts.floor.event + 1] for facts in subscribers]


async def configure(request: web.Request) -> web.Response:
    """Make a durable subscriber, or change how it is served."""
    front, principal, subscriber = request.app[FRONT], request[PRINCIPAL], subscriber_of(request)
    body = await front.struct(request, SubscriberBody)
    settings = SubscriberSettings(body.wait_s, body.attempts, body.ordered, body.forget_after_s, body.backoff_s)
    await front.core.ask(principal, Configure(1, subscriber, settings))
    return answer(facts_json(await facts_of(front, principal, subscriber), front.core.epoch))


async def describe(request: web.Request) -> web.Response:
    """Answer with what is known of a subscriber."""
    front = request.app[FRONT]
    facts = await facts_of(front, request[PRINCIPAL], subscriber_of(request))
    return answer(facts_json(facts, front.core.epoch))


async def forget(request: web.Request) -> web.Response:
    """Forget a subscriber and all that belongs to it."""
    front, name = request.app[FRONT], subscriber_of(request)
    await front.core.ask(request[PRINCIPAL], Forget(1, name))
    if front.webhooks is not None:  # at once, so that it does not serve another subscriber of this name
        front.webhooks.remove(name)
    return web.Response(status=204)


# -- Subscriptions


async def filter_in(request: web.Request, front: Front) -> Any:
    """Return the filter in the body of a request: a text, or JSON in one of its forms."""
    body = await front.body(request)
    if request.content_type in JSON:
        return read_json(body)
    if request.content_type not in ("text/plain", "application/octet-stream", "application/sql"):
        raise BadRequestError(f"a filter does not come as {request.content_type:.80}", "text/plain or application/json")
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise BadRequestError(f"byte {error.start} of the text is not UTF-8", "UTF-8") from None


async def subscribe(request: web.Request) -> web.Response:
    """Add or replace a subscription; 201 if it was not there in this form."""
    front = request.app[FRONT]
    return await _subscribed(request, {request.match_info["key"]: await filter_in(request, front)}, False)


async def subscribe_many(request: web.Request) -> web.Response:
    """Add or replace several subscriptions (POST), or make them all there are (PUT)."""
    given = read_json(await request.app[FRONT].body(request))
    if type(given) is not dict:
        raise BadRequestError("the body does not hold subscriptions", 'an object such as {"cheap": "price < 20"}')
    return await _subscribed(request, given, request.method == "PUT")


async def _subscribed(request: web.Request, given: dict[str, Any], removes_others: bool) -> web.Response:
    front, principal = request.app[FRONT], request[PRINCIPAL]
    wanted = await front.wanted(principal, given)
    start = await front.start(request.query.get("from", "now"))
    subscribed = await front.core.ask(
        principal,
        Subscribe(
            1,
            subscriber_of(request),
            wanted,
            True,
            start,
            removes_others,
            settle_time(request.query.get("settle")),
            lease_time(request.query.get("lease")),
        ),
    )
    assert isinstance(subscribed, Subscribed)
    content = {
        "since": Position.of(subscribed.since).text(front.core.epoch),
        "settled": subscribed.is_settled,
        "effective": subscribed.effective,
        **({"remembering": list(subscribed.remembering)} if subscribed.remembering else {}),
    }
    return answer(content, 201 if subscribed.is_new else 200)


def settle_time(text: str | None, most_s: float = 300.0) -> float:
    """Return how long somebody wants to wait until every broker knows, in seconds."""
    try:
        return 0.0 if not text else min(float(Duration.read(text)), most_s)
    except ValueError as error:
        what, _, expected = str(error).partition("; expected ")
        raise BadRequestError(f"settle: {what}", expected) from None


async def describe_subscription(request: web.Request) -> web.Response:
    """Answer with what is known of a subscription."""
    front, key = request.app[FRONT], request.match_info["key"]
    facts = await facts_of(front, request[PRINCIPAL], subscriber_of(request))
    if key not in facts.subscriptions:
        raise NotFoundError(f"{facts.name:.80} has no subscription {key!r:.80}", "one that GET /subscribers/… shows")
    return answer(facts_json(facts, front.core.epoch)["subscriptions"][key])


async def unsubscribe(request: web.Request) -> web.Response:
    """End a subscription."""
    request_ = Unsubscribe(1, subscriber_of(request), (request.match_info["key"],))
    await request.app[FRONT].core.ask(request[PRINCIPAL], request_)
    return web.Response(status=204)


# -- Deliveries


async def consume(request: web.Request) -> web.StreamResponse:
    """Deliver to this connection: as server-sent events, or over a WebSocket."""
    front, principal, subscriber = request.app[FRONT], request[PRINCIPAL], subscriber_of(request)
    if request.headers.get("Upgrade", "").lower() == "websocket":
        return await WebSocket(front, request, request[CALLER], subscriber).run()
    limits, seen = front.settings.limits, request.headers.get("Last-Event-ID", "")
    done_through = read_position(seen, front.core.epoch) if seen else None
    with front.connected(request[CALLER]) as hold, Mailbox(front, principal, hold) as mailbox:
        attach = Attach(1, subscriber, False, limits.credit, limits.credit_bytes, True, done_through)
        _, waiting = await mailbox.answers_to([attach])
        form = EventStream()
        response = await begun(request, form)
        await stream(front, mailbox, response, form, waiting)
        await response.write_eof()
    return response


async def take(request: web.Request) -> web.Response:
    """Deliver some events, at once or when there are some."""
    front, principal = request.app[FRONT], request[PRINCIPAL]
    body = await front.struct(request, TakeBody)
    wait_s = min(body.wait_s, front.settings.limits.wait)
    with front.connected(request[CALLER]) as hold:
        asked = Take(1, subscriber_of(request), body.most, wait_s)
        taken = await hold.outlast(front.core.ask(principal, asked))
    if isinstance(taken, Ended):
        raise NotFoundError(taken.reason, "the name of a subscriber that is there")
    assert isinstance(taken, Taken)
    body_json = deliveries_json(taken.items, front.core.epoch, taken.losses)
    return web.Response(body=body_json, content_type="application/json")


async def acknowledge(request: web.Request) -> web.Response:
    """Hear what a consumer says of deliveries."""
    front = request.app[FRONT]
    body = await front.struct(request, DoneBody)
    said = Acknowledge(
        1,
        subscriber_of(request),
        _positions(front, body.done),
        read_position(body.done_through, front.core.epoch) if body.done_through else None,
        _positions(front, body.again),
        body.in_s,
        _positions(front, body.never),
        body.reason,
        read_position(body.floor, front.core.epoch) if body.floor else None,
    )
    await front.core.ask(request[PRINCIPAL], said)
    return web.Response(status=204)


def _positions(front: Front, texts: Iterable[str]) -> tuple[Position, ...]:
    return tuple(read_position(text, front.core.epoch) for text in texts)


# -- Dead letters


async def dead_letters(request: web.Request) -> web.Response:
    """Answer with the events that a subscriber gave up."""
    front = request.app[FRONT]
    letters = await _letters(request, front)
    content = b",".join(
        b'{"at":"%b","for":%b,"reason":%b,"attempts":%d,%b"event":%b}'
        % (
            letter.position.text(front.core.epoch).encode(),
            _json(letter.keys),
            _json(letter.reason),
            letter.attempts,
            told_member(letter.told, front.core.epoch),
            letter.body,
        )
        for letter in letters[:DEAD_MOST]
    )
    body = b'{"dead":[%b],"count":%d}' % (content, len(letters))
    return web.Response(body=body, content_type="application/json")


async def revive(request: web.Request) -> web.Response:
    """Deliver dead letters once more."""
    front, subscriber = request.app[FRONT], subscriber_of(request)
    body = await front.struct(request, AgainBody)
    letters = await _letters(request, front)
    if body.at is not None:
        asked = set(_positions(front, body.at))
        letters = [letter for letter in letters if letter.position in asked]
        if missing := asked - {letter.position for letter in letters}:
            text = min(missing).text(front.core.epoch)
            raise NotFoundError(f"{text} is not a dead letter of {subscriber!r:.80}", "one of GET …/dead")
    if len(letters) > DEAD_MOST:
        if body.at is not None:
            raise TooLargeError(f"the request names {len(letters)} dead letters", f"at most {DEAD_MOST} at once")
        letters = letters[:DEAD_MOST]
    if letters:
        asked_again = tuple(Delivery(each.position, each.keys, each.body, told=each.told) for each in letters)
        await front.core.ask(request[PRINCIPAL], Revive(1, subscriber, asked_again))
    return answer({"again": len(letters)})


async def _letters(request: web.Request, front: Front) -> list[Buried]:
    """Return the dead letters that the principal may see, oldest first. Its role may have changed since they came."""
    principal, subscriber = request[PRINCIPAL], subscriber_of(request)
    await facts_of(front, principal, subscriber)
    letters = await asyncio.to_thread(front.core.dead, subscriber)
    allowed = front.permissions.receive(principal)
    if allowed is None:
        return letters
    return [
        letter
        for letter in letters
        if all(
            holds(allowed, record_of(body), front.schema)
            for body in (letter.body, *(body for each in letter.told for body in each.bodies))
        )
    ]


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
