"""What may be asked? The table of routes."""

from __future__ import annotations

from aiohttp import web

from tamis.service import wire
from tamis.service.errors import BadRequestError, UnauthenticatedError
from tamis.service.http import (
    event_routes,
    link_routes,
    operation_routes,
    page_routes,
    question_routes,
    reason_routes,
    subscriber_routes,
    webhook_routes,
)
from tamis.service.http.front import FRONT
from tamis.service.http.web_socket import WebSocket


async def web_socket(request: web.Request) -> web.StreamResponse:
    """Talk over a WebSocket. Who it is may be said in the header, or in the first message."""
    front = request.app[FRONT]
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise BadRequestError("this path is for WebSockets", "the header Upgrade: websocket")
    try:
        caller = await front.caller_of(request)
    except UnauthenticatedError:
        if "Authorization" in request.headers or "ticket" in request.query:
            raise
        caller = None
    return await WebSocket(front, request, caller).run()


SUBSCRIBER = "/subscribers/{subscriber}"
SUBSCRIPTION = SUBSCRIBER + "/subscriptions/{key}"

ROUTES = (
    web.get("/", page_routes.front_page),
    web.get("/page.css", page_routes.style),
    web.get("/page.js", page_routes.script),
    web.get("/icon.svg", page_routes.icon),
    web.get("/tamis.js", page_routes.module),
    web.get("/overview", page_routes.overview, allow_head=False),
    web.post("/events", event_routes.publish),
    web.get("/events", event_routes.read, allow_head=False),
    web.get("/log", event_routes.describe_log),
    web.get("/listen", event_routes.listen, allow_head=False),
    web.get(wire.PATH, web_socket, allow_head=False),
    web.get("/subscribers", subscriber_routes.list_subscribers),
    web.put(SUBSCRIBER, subscriber_routes.configure),
    web.get(SUBSCRIBER, subscriber_routes.describe),
    web.delete(SUBSCRIBER, subscriber_routes.forget),
    web.put(f"{SUBSCRIBER}/subscriptions", subscriber_routes.subscribe_many),
    web.post(f"{SUBSCRIBER}/subscriptions", subscriber_routes.subscribe_many),
    web.put(SUBSCRIPTION, subscriber_routes.subscribe),
    web.get(SUBSCRIPTION, subscriber_routes.describe_subscription),
    web.delete(SUBSCRIPTION, subscriber_routes.unsubscribe),
    web.get(f"{SUBSCRIBER}/events", subscriber_routes.consume, allow_head=False),
    web.post(f"{SUBSCRIBER}/take", subscriber_routes.take),
    web.post(f"{SUBSCRIBER}/done", subscriber_routes.acknowledge),
    web.get(f"{SUBSCRIBER}/dead", subscriber_routes.dead_letters),
    web.post(f"{SUBSCRIBER}/dead/again", subscriber_routes.revive),
    web.put(f"{SUBSCRIBER}/webhook", webhook_routes.put_webhook),
    web.get(f"{SUBSCRIBER}/webhook", webhook_routes.describe_webhook),
    web.delete(f"{SUBSCRIBER}/webhook", webhook_routes.delete_webhook),
    web.post("/check", question_routes.check),
    web.post("/match", question_routes.match),
    web.post("/try", reason_routes.try_filter),
    web.post("/explain", reason_routes.explain_filter),
    web.post("/relations", reason_routes.relate),
    web.get(f"{SUBSCRIBER}/why", reason_routes.why),
    web.get(f"{SUBSCRIBER}/shares", page_routes.shares),
    web.post("/tickets", operation_routes.ticket),
    web.post("/reload", operation_routes.reload),
    web.get("/links", link_routes.list_links),
    web.put("/links/{link}", link_routes.put_link),
    web.delete("/links/{link}", link_routes.delete_link),
    web.get("/brokers", link_routes.list_brokers),
    web.get("/live", operation_routes.live),
    web.get("/ready", operation_routes.ready),
    web.get("/metrics", operation_routes.metrics),
    web.get("/openapi.json", operation_routes.describe_http),
    web.get("/asyncapi.json", operation_routes.describe_web_socket),
)
