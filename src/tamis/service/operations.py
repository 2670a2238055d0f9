"""What can be asked over HTTP, and how? The table of operations, each with an example that works.

`openapi` describes them to programs, and the tests send every example. What a body is read into is a Struct, named here
by its schema.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.service.cloud_events import CloudEvent
from tamis.service.http.answers import Problem
from tamis.service.http.bodies import (
    AgainBody,
    CheckedBody,
    DoneBody,
    ExplainBody,
    ExplainedBody,
    GapBody,
    LinkBody,
    LogBody,
    MatchedBody,
    PublishedBody,
    RelatedBody,
    RelationsBody,
    SharesBody,
    SubscribedBody,
    SubscriberBody,
    TakeBody,
    TriedBody,
    TryBody,
    WebhookBody,
    WebhookFactsBody,
    WhyBody,
)

OFFER = {
    "specversion": "1.0", "id": "7", "source": "/shop", "type": "offer", "time": "2026-01-31T12:00:00Z",
    "data": {"price": 12, "category": "Thriller"},
}  # fmt: skip
_MOMENT = "`-10m`, `-1h`, a time such as 2026-01-31T12:00:00Z, a position such as k3f9-812, `first`, or `now`"
_WHERE = ("where", "a condition, as in SQL behind WHERE", "price < 20")
_FROM = ("from", f"from where on: {_MOMENT}", "-1h")
_SETTLE = ("settle", "how long to wait until every broker of the network knows: `5s`, `500ms`", "1s")
_LEASE = ("lease", "after which time it ends, unless it is subscribed to again: `60s`, `7d`; without it, never", "1h")


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
    Operation(
        "GET", "/", "What this is, and how to try it; for a browser the page of the broker", media_type="text/plain"
    ),
    Operation("GET", "/page.css", "The style of the page", media_type="text/css"),
    Operation("GET", "/page.js", "The script of the page", media_type="text/javascript"),
    Operation("GET", "/icon.svg", "The icon of the page", media_type="image/svg+xml"),
    Operation("GET", "/tamis.js", "The client for JavaScript, as a module", media_type="text/javascript"),
    Operation(
        "GET", "/overview", "How the broker fares, a line a second, as long as the connection lasts (admin)", "", (),
        (("most", "end after so many", "1"),), media_type=_STREAM,
    ),
    Operation(
        "POST", "/events", "Publish events, all of them or none", "PublishedBody", _EVENTS,
        (("wanted", "whether to say how many subscribers want each event", "true"),),
    ),
    Operation(
        "GET", "/events", "Read what has happened", "", (),
        (_FROM, ("until", f"up to where, not included: {_MOMENT}", "now"), _WHERE, ("most", "at most so many", "10")),
        media_type=_STREAM,
    ),
    Operation("GET", "/log", "What does the log hold, and where does a time begin in it?", "LogBody", (), (_FROM,)),
    Operation(
        "GET", "/listen", "Hear what happens, for as long as the connection lasts", "", (),
        (
            _WHERE, _FROM, ("most", "end after so many", "1"),
            ("when_slow", "`gap` (default): what is too much is left out and named; `close`: the answer ends", "close"),
        ),
        media_type=_STREAM,
    ),
    Operation("GET", "/ws", "A WebSocket of the protocol tamis.v1; see /asyncapi.json", status="101"),
    Operation(
        "GET", "/subscribers", "All subscribers that you may use", "", (),
        (("lag", "whether to say since when each has events that are not done", "true"),),
    ),
    Operation(
        "PUT", _NAMED, "Make a durable subscriber, or change how it is served", "",
        (Body(_JSON, "SubscriberBody", {"wait_s": 30, "attempts": 5}),),
    ),
    Operation("GET", _NAMED, "What is known of a subscriber"),
    Operation("DELETE", _NAMED, "Forget a subscriber with all that belongs to it", status="204"),
    Operation(
        "PUT", f"{_NAMED}/subscriptions", "Make these all its subscriptions", "SubscribedBody",
        (Body(_JSON, "", {"cheap": "price < 20"}),), (_FROM, _SETTLE, _LEASE),
    ),
    Operation(
        "POST", f"{_NAMED}/subscriptions", "Add or replace subscriptions, all of them or none", "SubscribedBody",
        (Body(_JSON, "", {"cheap": "price < 20", "new": {"exact": {"type": "offer"}}}),), (_FROM, _SETTLE, _LEASE),
    ),
    Operation(
        "PUT", f"{_NAMED}/subscriptions/{{key}}", "Add or replace a subscription", "SubscribedBody", _FILTERS,
        (_FROM, _SETTLE, _LEASE),
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
    Operation(
        "PUT", f"{_NAMED}/webhook", "Post its events to an address, signed (Standard Webhooks)", "WebhookFactsBody",
        (Body(_JSON, "WebhookBody", {"url": "https://receiver.example/hook", "attempts": 12}),),
    ),
    Operation("GET", f"{_NAMED}/webhook", "How its webhook fares", "WebhookFactsBody"),
    Operation("DELETE", f"{_NAMED}/webhook", "Post no more; its events wait", status="204"),
    Operation("POST", "/check", "Is this filter right?", "CheckedBody", _FILTERS),
    Operation(
        "POST", "/match", "Which subscriptions want these events?", "MatchedBody",
        (Body(_JSON, "", [OFFER, {"price": 12}]), Body(_JSON, "", {"price": 12})),
    ),
    Operation(
        "POST", "/try", "What would this filter have matched?", "TriedBody",
        (Body(_JSON, "TryBody", {"where": "price < 20", "from": "-1h"}),),
    ),
    Operation(
        "POST", "/explain", "Does this filter match an event, and why?", "ExplainedBody",
        (Body(_JSON, "ExplainBody", {"where": "price < 20 OR bids > 3", "event": {"price": 25}}),),
    ),
    Operation(
        "POST", "/relations", "How do these two filters relate?", "RelatedBody",
        (Body(_JSON, "RelationsBody", {"first": "price < 20", "second": "price < 10 AND signed"}),),
    ),
    Operation(
        "GET", f"{_NAMED}/why", "Why did a subscriber get an event, or why not?", "WhyBody", (),
        (("id", "the id of the event", "7"), ("source", "its source", "/shop")),
    ),
    Operation(
        "GET", f"{_NAMED}/shares", "How much do its subscriptions match, and which of them cover others?", "SharesBody",
        (), (_FROM,),
    ),
    Operation("POST", "/tickets", "A ticket for addresses: ?ticket=…, once, within a minute", status="201"),
    Operation("POST", "/reload", "Read the settings again (admin)"),
    Operation("GET", "/links", "What is known of the links to other brokers (admin)"),
    Operation(
        "PUT", "/links/{link}", "Begin a link to another broker, or change what may pass over it (admin)", "",
        (Body(_JSON, "LinkBody", {"may_send": "NOT confidential"}),),
    ),
    Operation("DELETE", "/links/{link}", "End a link for good (admin)", status="204"),
    Operation("GET", "/brokers", "The brokers of the network that are reached from here (admin)"),
    Operation("GET", "/live", "Does the process run?"),
    Operation("GET", "/ready", "Does it take events?"),
    Operation("GET", "/metrics", "Figures for Prometheus", media_type="text/plain"),
    Operation("GET", "/openapi.json", "This description"),
    Operation("GET", "/asyncapi.json", "The description of the WebSocket"),
)  # fmt: skip

STRUCTS = (
    CloudEvent, Problem, SubscriberBody, TakeBody, DoneBody, AgainBody, PublishedBody, SubscribedBody, CheckedBody,
    MatchedBody, LinkBody, TryBody, TriedBody, ExplainBody, ExplainedBody, RelationsBody, RelatedBody, WhyBody,
    SharesBody, WebhookBody, WebhookFactsBody, GapBody, LogBody,
)  # fmt: skip
