"""What may an operator ask of the network? Links of this broker, and the brokers that are reached over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aiohttp import web

from tamis.errors import LanguageError
from tamis.language.parser import parse
from tamis.service.errors import BadRequestError, ForbiddenError, NotFoundError
from tamis.service.http.answers import answer
from tamis.service.http.bodies import LinkBody
from tamis.service.http.front import FRONT
from tamis.service.http.guarding import PRINCIPAL
from tamis.service.links.terms import LinkTerms
from tamis.service.settings.checking import is_broker_name

if TYPE_CHECKING:
    from tamis.service.links.server import LinkServer


def _links(request: web.Request) -> LinkServer:
    front = request.app[FRONT]
    if not front.permissions.is_admin(request[PRINCIPAL]):
        raise ForbiddenError("only an admin may see and change links", "a token with the role admin")
    if front.links is None:
        raise NotFoundError("this broker has no links", "a broker that 'tamis serve' started")
    return front.links


async def list_links(request: web.Request) -> web.Response:
    """Answer with what is known of all links."""
    return answer(await _links(request).describe())


async def list_brokers(request: web.Request) -> web.Response:
    """Answer with the brokers of the network that are reached from here, and over which neighbour."""
    described = await _links(request).describe()
    brokers: list[dict[str, Any]] = [{"name": described["broker"], "over": "", "carries": True}]
    for link in described["links"]:
        carries = link.get("carries", False)
        brokers += [{"name": name, "over": link["name"], "carries": carries} for name in link.get("behind", ())]
    return answer({"network": described["network"], "brokers": brokers})


async def put_link(request: web.Request) -> web.Response:
    """Begin a link, or change what may pass over it; it is remembered."""
    links, front, name = _links(request), request.app[FRONT], request.match_info["link"]
    if not is_broker_name(name) or name == front.settings.name:
        raise BadRequestError(f"{name!r:.80} is not the name of another broker", "up to 63 letters, digits, _ . -")
    if name in front.settings.links:
        raise BadRequestError(f"the link to {name!r} stands in the settings", "[links.NAME] in the file, and a reload")
    body = await front.struct(request, LinkBody)
    for place in ("may_send", "may_receive"):
        try:
            parse(getattr(body, place), front.schema, limits=front.filter_limits, functions=front.functions or None)
        except LanguageError as error:
            raise BadRequestError(f"{place}: {error}", "a filter") from None
    terms = LinkTerms(body.may_send, body.may_receive, body.rate, body.patience_s, body.strategy)
    await links.put(name, body.url, terms)
    return answer(await links.describe())


async def delete_link(request: web.Request) -> web.Response:
    """End a link for good: what the neighbour wanted is taken back everywhere."""
    await _links(request).delete(request.match_info["link"])
    return web.Response(status=204)
