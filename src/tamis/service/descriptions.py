"""What can be asked, and how, for programs? OpenAPI of the HTTP routes, AsyncAPI of the WebSocket.

Both are made from the Structs that decode requests and messages, so that what is described is what is read. Every
example in them is a request that works; the tests send them all.

Source: OpenAPI 3.1.0, AsyncAPI 3.0.0.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

import msgspec

from tamis.service import wire
from tamis.service.cloud_events import CloudEvent
from tamis.service.http.answers import PROBLEM, Problem
from tamis.service.http.bodies import (
    AgainBody,
    CheckedBody,
    DoneBody,
    MatchedBody,
    PublishedBody,
    SubscribedBody,
    SubscriberBody,
    TakeBody,
)

ABOUT = "A content-based broker: whoever wants events that fulfil a condition gets them."
OFFER = {
    "specversion": "1.0", "id": "7", "source": "/shop", "type": "offer", "time": "2026-01-31T12:00:00Z",
    "data": {"price": 12, "category": "Thriller"},
}  # fmt: skip
_MOMENT = "`-10m`, `-1h`, a time such as 2026-01-31T12:00:00Z, a position such as k3f9-812, `first`, or `now`"
_WHERE = ("where", "a condition, as in SQL behind WHERE", "price < 20")
_FROM = ("from", f"from where on: {_MOMENT}", "-1h")


class Body(NamedTuple):
    """What is sent: its media type, the name of its schema (empty for any) and an example."""

    media_type: str
    schema: str
    example: Any
    is_list: bool = False


class Operation(NamedTuple):
    """A route, for whoever calls it."""

    method: str
    path: str
    summary: str
    answers: str = ""
    """The Struct of the answer, if it has one."""
    bodies: tuple[Body, ...] = ()
    options: tuple[tuple[str, str, str], ...] = ()
    """Options of the address: name, meaning and an example."""
    status: str = "200"
    media_type: str = "application/json"


_JSON = "application/json"
_EVENTS = (
    Body("application/cloudevents+json", "CloudEvent", OFFER),
    Body("application/cloudevents-batch+json", "CloudEvent", [OFFER, OFFER | {"id": "8"}], is_list=True),
    Body(_JSON, "", {"price": 12}),
    Body("application/x-ndjson", "", '{"price": 12}\n{"price": 25}\n'),
)
_FILTERS = (
    Body("text/plain", "", "price < 20"),
    Body(_JSON, "", {"all": [{"exact": {"type": "offer"}}, {"sql": "price < 20"}]}),
)
_STREAM = "application/x-ndjson"
_NAMED = "/subscribers/{subscriber}"

OPERATIONS = (
    Operation("GET", "/", "What this is, and how to try it", media_type="text/plain"),
    Operation(
        "POST", "/events", "Publish events, all of them or none", "PublishedBody", _EVENTS,
        (("wanted", "whether to say how many subscribers want each event", "true"),),
    ),
    Operation(
        "GET", "/events", "Read what has happened", "", (),
        (_FROM, ("until", f"up to where, not included: {_MOMENT}", "now"), _WHERE, ("most", "at most so many", "10")),
        media_type=_STREAM,
    ),
    Operation(
        "GET", "/listen", "Hear what happens, for as long as the connection lasts", "", (),
        (_WHERE, _FROM, ("most", "end after so many", "1")), media_type=_STREAM,
    ),
    Operation("GET", "/ws", "A WebSocket of the protocol tamis.v1; see /asyncapi.json", status="101"),
    Operation("GET", "/subscribers", "All subscribers that you may use"),
    Operation(
        "PUT", _NAMED, "Make a durable subscriber, or change how it is served", "",
        (Body(_JSON, "SubscriberBody", {"wait_s": 30, "attempts": 5}),),
    ),
    Operation("GET", _NAMED, "What is known of a subscriber"),
    Operation("DELETE", _NAMED, "Forget a subscriber with all that belongs to it", status="204"),
    Operation(
        "PUT", f"{_NAMED}/subscriptions", "Make these all its subscriptions", "SubscribedBody",
        (Body(_JSON, "", {"cheap": "price < 20"}),), (_FROM,),
    ),
    Operation(
        "POST", f"{_NAMED}/subscriptions", "Add or replace subscriptions, all of them or none", "SubscribedBody",
        (Body(_JSON, "", {"cheap": "price < 20", "new": {"exact": {"type": "offer"}}}),), (_FROM,),
    ),
    Operation(
        "PUT", f"{_NAMED}/subscriptions/{{key}}", "Add or replace a subscription", "SubscribedBody", _FILTERS, (_FROM,)
    ),
    Operation("GET", f"{_NAMED}/subscriptions/{{key}}", "What is known of a subscription"),
    Operation("DELETE", f"{_NAMED}/subscriptions/{{key}}", "End a subscription", status="204"),
    Operation(
        "GET", f"{_NAMED}/events", "Deliveries as server-sent events, or over a WebSocket",
        media_type="text/event-stream",
    ),
    Operation(
        "POST", f"{_NAMED}/take", "Take some events, at once or when there are some", "",
        (Body(_JSON, "TakeBody", {"most": 10, "wait_s": 0}),),
    ),
    Operation(
        "POST", f"{_NAMED}/done", "Say what became of deliveries", "",
        (Body(_JSON, "DoneBody", {"done": []}),), status="204",
    ),
    Operation("GET", f"{_NAMED}/dead", "Events that were given up"),
    Operation("POST", f"{_NAMED}/dead/again", "Deliver dead letters once more", "", (Body(_JSON, "AgainBody", {}),)),
    Operation("POST", "/check", "Is this filter right?", "CheckedBody", _FILTERS),
    Operation(
        "POST", "/match", "Which subscriptions want these events?", "MatchedBody",
        (Body(_JSON, "", [OFFER, {"price": 12}]), Body(_JSON, "", {"price": 12})),
    ),
    Operation("POST", "/tickets", "A ticket for addresses: ?ticket=…, once, within a minute", status="201"),
    Operation("POST", "/reload", "Read the settings again (admin)"),
    Operation("GET", "/live", "Does the process run?"),
    Operation("GET", "/ready", "Does it take events?"),
    Operation("GET", "/metrics", "Figures for Prometheus", media_type="text/plain"),
    Operation("GET", "/openapi.json", "This description"),
    Operation("GET", "/asyncapi.json", "The description of the WebSocket"),
)  # fmt: skip

STRUCTS = (
    CloudEvent, Problem, SubscriberBody, TakeBody, DoneBody, AgainBody, PublishedBody, SubscribedBody, CheckedBody,
    MatchedBody,
)  # fmt: skip


def _schemas(structs: tuple[type, ...]) -> dict[str, Any]:
    """Return the JSON Schemas of Structs, by name."""

    def hook(kind: type) -> dict[str, Any]:
        if kind is msgspec.Raw:
            return {"description": "a CloudEvent, or any object"}
        raise NotImplementedError(kind)

    _, components = msgspec.json.schema_components(
        structs, schema_hook=hook, ref_template="#/components/schemas/{name}"
    )
    return dict(components)


@cache
def openapi() -> dict[str, Any]:
    """Return the description of the HTTP routes."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tamis", "version": version("tamis"), "summary": ABOUT, "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": _schemas(STRUCTS),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "certificate": {"type": "mutualTLS"},
            },
        },
        "security": [{"token": []}, {"certificate": []}, {}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}, "example": example}
        for name, example in (("subscriber", "ann"), ("key", "cheap"))
        if f"{{{name}}}" in operation.path
    ]
    parameters += [
        {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"}, "example": example}
        for name, meaning, example in operation.options
    ]
    success: dict[str, Any] = {"description": operation.summary}
    if operation.status not in ("101", "204"):
        schema = _reference(operation.answers) if operation.answers else {}
        success["content"] = {operation.media_type: {"schema": schema}}
    responses = {operation.status: success}
    if operation.answers == "SubscribedBody":
        responses["201"] = success
    responses["default"] = {
        "description": "Refused, and why",
        "content": {PROBLEM: {"schema": _reference("Problem")}},
    }
    described: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{operation.method.lower()}{operation.path}").strip("_"),
        "summary": operation.summary,
        "responses": responses,
    }
    if parameters:
        described["parameters"] = parameters
    if operation.bodies:
        content: dict[str, Any] = {}
        for body in operation.bodies:
            examples = content.setdefault(body.media_type, {"schema": _body_schema(body), "examples": {}})["examples"]
            examples[f"example{len(examples) + 1}"] = {"value": body.example}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _body_schema(body: Body) -> dict[str, Any]:
    if not body.schema:
        return {}
    return {"type": "array", "items": _reference(body.schema)} if body.is_list else _reference(body.schema)


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


FROM_CLIENT: dict[str, Any] = {
    "hello": {"hello": {"as": "ann", "durable": True, "credit": 256}},
    "subscribe": {"subscribe": {"cheap": "price < 20"}, "from": "-10m", "id": 1},
    "unsubscribe": {"unsubscribe": ["cheap"], "id": 2},
    "publish": {"publish": [OFFER, {"price": 12}], "wanted": True, "id": 3},
    "done": {"done": [], "id": 4},
    "again": {"again": [], "in_s": 5, "id": 5},
    "never": {"never": [], "reason": "cannot be read", "id": 6},
}
"""An example of every message of a client, in an order in which they can be sent."""
FROM_BROKER: dict[str, Any] = {
    "welcome": {"welcome": {"broker": "tamis", "epoch": "k3f9", "at": "k3f9-812", "limits": {"credit": 256}}},
    "ok": {"ok": 3, "position": "k3f9-814", "positions": ["k3f9-813", "k3f9-814"], "known": 0, "durable": True},
    "events": {"events": [{"at": "k3f9-813", "for": ["cheap"], "event": OFFER}]},
    "gap": {"gap": {"first": "k3f9-1", "last": "k3f9-90", "reason": "retention"}},
    "caught_up": {"caught_up": "k3f9-812"},
    "error": {"error": {"title": "The filter has no meaning", "status": 400, "detail": "…"}, "id": 1},
    "bye": {"bye": "the broker stops", "retry_s": 1},
}
"""An example of every message of a broker."""


@cache
def asyncapi() -> dict[str, Any]:
    """Return the description of the WebSocket."""
    messages: dict[str, Any] = {}
    sides = (("FromClient", FROM_CLIENT), ("FromBroker", FROM_BROKER))
    for schema, examples in sides:
        for name, example in examples.items():
            messages[name] = {"name": name, "payload": _reference(schema), "examples": [{"payload": example}]}

    def named(names: dict[str, Any], place: str) -> list[dict[str, str]]:
        return [{"$ref": f"{place}/{name}"} for name in names]

    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Tamis", "version": version("tamis"), "description": ABOUT},
        "defaultContentType": "application/json",
        "channels": {
            "ws": {
                "address": wire.PATH,
                "description": f"Subprotocol {wire.SUBPROTOCOL}; a frame is one message or a list of them.",
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        "operations": {
            "hear": {
                "action": "receive",
                "channel": {"$ref": "#/channels/ws"},
                "summary": "What a client says",
                "messages": named(FROM_CLIENT, "#/channels/ws/messages"),
            },
            "say": {
                "action": "send",
                "channel": {"$ref": "#/channels/ws"},
                "summary": "What the broker says",
                "messages": named(FROM_BROKER, "#/channels/ws/messages"),
            },
        },
        "components": {"messages": messages, "schemas": _schemas((wire.FromClient, wire.FromBroker))},
    }
