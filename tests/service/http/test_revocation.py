"""A token that is revoked opens nothing any more, and what it has opened ends soon."""

from __future__ import annotations

import asyncio
import json
import time

import aiohttp
import msgspec
import pytest

from tamis import AsyncClient
from tamis.service.errors import ForbiddenError, UnauthenticatedError
from tamis.service.settings import Publishing, Role
from tamis.service.tokens import Tokens, digest_of

from .brokers import Talk, eventually, running

SHOP = {"shop": Role(receive="TRUE", publish=Publishing()), "other": Role(receive="TRUE")}


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def revoke_elsewhere(folder, secret):
    """Do what `tamis token revoke` does, which is another process."""
    tokens = Tokens(folder / "tokens.db")
    tokens.revoke(digest_of(secret)[:12])
    tokens.close()


async def removed_role(broker, folder, secret):
    """A reload without the role."""
    kept = {"other": SHOP["other"]}
    broker.service._read_settings = lambda: msgspec.structs.replace(broker.service.settings, roles=kept)
    await broker.service.reload()


async def revoked(broker, folder, secret):
    revoke_elsewhere(folder, secret)


async def ended(broker, folder, secret):
    broker.service.authenticator._now = lambda: time.time() + 3_600


ENDS = [(revoked, 401), (removed_role, 403), (ended, 401)]


@pytest.mark.parametrize(("end", "status"), ENDS)
@eventually
async def test_a_web_socket_is_told_why_and_closed(tmp_path, end, status):
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",), time.time() + 1_800)
        other = broker.tokens.create("bob", ("other",))
        async with broker.connect() as socket, broker.connect(headers=bearer(other)) as bobs:
            talk = Talk(socket)
            await talk.say({"hello": {"as": "ann", "token": secret}})
            assert "welcome" in await talk.hear()
            await end(broker, tmp_path, secret)
            refusal = await talk.hear_until("error")
            assert refusal["error"]["status"] == status
            assert refusal["error"]["detail"]
            farewell = await socket.receive()
            # What the frame says: `close_code` becomes 1006 where the connection is gone before it is answered.
            assert (farewell.type, farewell.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.POLICY_VIOLATION)
            bob = Talk(bobs)
            await bob.say({"hello": {"as": "bob"}})
            assert "welcome" in await bob.hear(), "others stay"


@pytest.mark.parametrize(("end", "status"), ENDS)
@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
@eventually
async def test_listening_ends_with_the_reason(tmp_path, end, status, accept):
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",), time.time() + 1_800)
        headers = {**bearer(secret), "Accept": accept}
        async with broker.session.get(f"{broker.url}/listen", headers=headers) as response:
            await end(broker, tmp_path, secret)
            text = await response.text()
        line = next(line for line in text.splitlines() if str(status) in line)
        problem = json.loads(line.removeprefix("data: "))
        assert problem.get("error", problem)["status"] == status


@eventually
async def test_server_sent_events_of_a_subscriber_end_with_the_reason(tmp_path):
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",))
        async with broker.session.get(f"{broker.url}/subscribers/ann/events", headers=bearer(secret)) as response:
            revoke_elsewhere(tmp_path, secret)
            assert "event: error" in await response.text()


@eventually
async def test_a_ticket_ends_with_the_token_that_asked_for_it(tmp_path):
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",))
        _, answer = await broker.ask("POST", "/tickets", headers=bearer(secret), status=201)
        async with broker.session.get(f"{broker.url}/listen", params={"ticket": answer["ticket"]}) as response:
            assert response.status == 200
            revoke_elsewhere(tmp_path, secret)
            assert '"status":401' in await response.text()
        _, answer = await broker.ask("POST", "/tickets", headers=bearer(broker.tokens.create("b", ("shop",))))


@pytest.mark.parametrize(("end", "status"), ENDS)
@eventually
async def test_a_long_poll_is_answered_with_the_reason(tmp_path, end, status):
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",), time.time() + 1_800)
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE", status=201, headers=bearer(secret))
        body = {"most": 1, "wait_s": 60}
        polling = asyncio.ensure_future(
            broker.ask("POST", "/subscribers/ann/take", body, status, headers=bearer(secret))
        )
        while not any(each.polls for each in broker.core._node.roster):
            await asyncio.sleep(0.01)
        await end(broker, tmp_path, secret)
        assert (await polling)[1]["detail"]


async def published_for_ever(client):
    while True:
        await client.publish({"n": 2})
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("end", "kind"), [(revoked, UnauthenticatedError), (removed_role, ForbiddenError), (ended, UnauthenticatedError)]
)
@eventually
async def test_clients_raise_a_typed_error_and_do_not_try_for_ever(tmp_path, end, kind):
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",), time.time() + 1_800)
        async with AsyncClient(broker.url, token=secret, patience_s=600) as client:
            durable = await client.subscribe("TRUE", name="ann").ready()
            passing = await client.subscribe("TRUE").ready()
            await client.publish({"n": 1})
            await anext(durable)
            await anext(passing)
            await end(broker, tmp_path, secret)
            for subscription in (durable, passing):
                with pytest.raises(kind):
                    await anext(subscription)
            with pytest.raises(kind):
                await published_for_ever(client)


@eventually
async def test_who_has_other_roles_comes_back_with_those(tmp_path):
    """A certificate's roles are in the settings; here everybody on loopback is one, as a stand-in."""
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",))
        async with broker.connect(headers=bearer(secret)) as socket:
            talk = Talk(socket)
            await talk.say({"hello": {"as": "ann"}})
            await talk.hear_until("welcome")
            named = broker.service.authenticator._named
            broker.service.authenticator._named = lambda name, roles: named(name, ("other",))
            broker.tokens.create("somebody", ())
            bye = await talk.hear_until("bye")
            assert "other roles" in bye["bye"] and bye["retry_s"] > 0


@eventually
async def test_other_rights_of_the_same_role_close_nothing(tmp_path):
    async with running(tmp_path, roles=SHOP) as broker:
        secret = broker.tokens.create("ann", ("shop",))
        async with broker.connect(headers=bearer(secret)) as socket:
            talk = Talk(socket)
            await talk.say({"hello": {"as": "ann"}}, {"subscribe": {"all": "TRUE"}, "id": 1})
            await talk.hear_until("ok")
            narrower = {**SHOP, "shop": Role(receive="price < 20", publish=Publishing())}
            broker.service._read_settings = lambda: msgspec.structs.replace(broker.service.settings, roles=narrower)
            await broker.service.reload()
            await talk.say({"publish": [{"price": 30}, {"price": 10}], "id": 2})
            assert [each["event"]["data"]["price"] for each in await talk.events(1)] == [10]
