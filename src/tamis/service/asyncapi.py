"""What can be said over the WebSocket, for programs? A description of its messages in AsyncAPI.

It is made from the Structs that decode messages (`wire`). The examples of a client's messages can be sent in their
order, and the tests do that.

Source: AsyncAPI 3.0.0.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version
from typing import Any

from tamis.service import wire
from tamis.service.openapi import ABOUT, reference, schemas
from tamis.service.operations import OFFER

FROM_CLIENT: dict[str, Any] = {
    "hello": {"hello": {"as": "ann", "durable": True, "credit": 256}},
    "subscribe": {"subscribe": {"cheap": "price < 20"}, "from": "-10m", "id": 1},
    "unsubscribe": {"unsubscribe": ["cheap"], "id": 2},
    "publish": {"publish": [OFFER, {"price": 12}], "wanted": True, "id": 3},
    "done": {"done": ["k3f9-1"], "id": 4},
    "done_through": {"done_through": "k3f9-2", "id": 5},
    "again": {"again": ["k3f9-1", "k3f9-2"], "in_s": 5, "id": 6},
    "never": {"never": ["k3f9-2"], "reason": "cannot be read", "id": 7},
}
"""An example of every message of a client, in an order in which they can be sent to a log k3f9 of two events."""
FROM_BROKER: dict[str, Any] = {
    "welcome": {"welcome": {"broker": "tamis", "epoch": "k3f9", "at": "k3f9-812", "limits": {"credit": 256}}},
    "ok": {"ok": 3, "position": "k3f9-814", "positions": ["k3f9-813", "k3f9-814"], "known": 0, "durable": True},
    "events": {
        "events": [
            {"at": "k3f9-813", "for": ["cheap"], "event": OFFER},
            {
                "at": "k3f9-815.813",
                "for": ["best", "high"],
                "told": [
                    {"key": "best", "kind": "ranked", "at": "2026-03-01T12:00:00Z", "rank": 1},
                    {"key": "high", "kind": "change", "at": "2026-03-01T12:00:00Z", "change": True},
                ],
                "event": OFFER,
            },
        ]
    },
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
            messages[name] = {"name": name, "payload": reference(schema), "examples": [{"payload": example}]}

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
        "components": {"messages": messages, "schemas": schemas((wire.FromClient, wire.FromBroker))},
    }
