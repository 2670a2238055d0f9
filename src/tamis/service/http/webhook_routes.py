"""What may be asked of webhooks? Where a subscriber's events are posted to, and how that fares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from aiohttp import web

from tamis.service.changes import WebhookKept
from tamis.service.errors import NotFoundError
from tamis.service.http.answers import answer
from tamis.service.http.bodies import WebhookBody
from tamis.service.http.front import FRONT, Front
from tamis.service.http.guarding import PRINCIPAL
from tamis.service.http.subscriber_routes import facts_of, subscriber_of
from tamis.service.messages import Configure, KeepWebhook
from tamis.service.webhooks.signatures import key_of, new_secret

if TYPE_CHECKING:
    from tamis.service.webhooks.sending import Webhooks


def _webhooks(front: Front) -> Webhooks:
    if front.webhooks is None:
        raise NotFoundError("this broker has no webhooks", "a broker that 'tamis serve' started")
    return front.webhooks


async def put_webhook(request: web.Request) -> web.Response:
    """Post the events of a subscriber to an address from now on; 201 if there was no webhook."""
    front, principal, name = request.app[FRONT], request[PRINCIPAL], subscriber_of(request)
    webhooks = _webhooks(front)
    body = await front.struct(request, WebhookBody)
    for secret in body.secrets:
        key_of(secret)
    await webhooks.resolver().check(body.url)
    facts = await facts_of(front, principal, name)
    before = webhooks.kept.get(name)
    made = "" if body.secrets or before is not None else new_secret()
    secrets = tuple(body.secrets) or (before.secrets if before is not None else (made,))
    is_admin = front.permissions.is_admin(principal)
    kept = WebhookKept(name, body.url, secrets, principal.name, principal.roles, is_admin, body.mode, body.most)
    await front.core.ask(principal, KeepWebhook(1, name, kept))
    settings = msgspec.structs.replace(facts.settings, attempts=body.attempts)
    await front.core.ask(principal, Configure(1, name, settings))
    webhooks.put(kept)
    return answer(_facts(webhooks, name) | ({"secret": made} if made else {}), 201 if before is None else 200)


async def describe_webhook(request: web.Request) -> web.Response:
    """Answer where the events of a subscriber are posted to, and how that fares."""
    front, name = request.app[FRONT], subscriber_of(request)
    await facts_of(front, request[PRINCIPAL], name)
    return answer(_facts(_webhooks(front), name))


async def delete_webhook(request: web.Request) -> web.Response:
    """Post no more; the subscriber stays, and its events wait."""
    front, name = request.app[FRONT], subscriber_of(request)
    webhooks = _webhooks(front)
    await facts_of(front, request[PRINCIPAL], name)
    _facts(webhooks, name)
    await front.core.ask(request[PRINCIPAL], KeepWebhook(1, name))
    webhooks.remove(name)
    return web.Response(status=204)


def _facts(webhooks: Webhooks, name: str) -> dict[str, Any]:
    if name not in webhooks.kept:
        raise NotFoundError(f"{name!r:.80} has no webhook", "PUT /subscribers/…/webhook")
    kept = webhooks.kept[name]
    return {"url": kept.url, "mode": kept.mode, **webhooks.health[name]._asdict()}
