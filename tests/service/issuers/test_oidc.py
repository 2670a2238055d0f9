"""A whole broker beside a whole provider, both on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time

import aiohttp
import msgspec
import pytest
import trustme
from aiohttp import web

from tamis import AsyncClient
from tamis.service.errors import IssuerError, SettingsError, UnauthenticatedError
from tamis.service.issuers.fetching import KeySource
from tamis.service.issuers.verifying import Issuers
from tamis.service.settings import Duration, Issuer, Publishing, Role, Settings
from tests.service.broker_processes import BrokerProcess, in_a_loop, until
from tests.service.http.brokers import Talk, eventually, running

from .provider import EC_KEY, OTHER_RSA_KEY, RSA_KEY, Provider, jwk, key_set, providing

ROLES = {
    "shop": Role(publish=Publishing(), receive="region = 'EU'"),
    "wide": Role(publish=Publishing(), receive="TRUE"),
}


def settings_for(provider, **changes):
    facts = {"issuer": provider.issuer, "audience": ("tamis",), "pause": Duration(0), "timeout": Duration(2)}
    return {"roles": ROLES, "issuers": {"company": Issuer(**facts | changes)}}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def source_of(provider, **changes):
    clock = [1_000.0]
    facts = {"issuer": provider.issuer, "audience": ("tamis",), "pause": Duration(10), "timeout": Duration(2)}
    return KeySource("company", Issuer(**facts | changes), lambda: clock[0]), clock


@eventually
async def test_a_token_of_a_provider_that_was_discovered_opens_what_its_roles_open(tmp_path):
    async with providing() as provider, running(tmp_path, **settings_for(provider)) as broker:
        ann = provider.token()
        await broker.ask(
            "POST", "/events", [{"n": 1, "region": "EU"}, {"n": 2, "region": "US"}], 200, headers=bearer(ann)
        )
        _, seen = await broker.ask("GET", "/events", status=200, headers=bearer(ann))
        assert [json.loads(line)["event"]["data"]["n"] for line in seen.splitlines()] == [1]
        await broker.ask("POST", "/reload", status=403, headers=bearer(ann))
        await broker.ask("GET", "/events", status=401, headers=bearer(provider.token(aud="other")))
        await broker.ask("GET", "/events", status=401, headers=bearer(provider.token(ends_s=-31)))
        await broker.ask("GET", "/events", status=401, headers=bearer(provider.token(key=OTHER_RSA_KEY)))
        opaque = broker.tokens.create("bob", ("wide",))
        await broker.ask("GET", "/events", status=200, headers=bearer(opaque))
        assert provider.asked == ["discovery", "keys"], "keys are kept"


@eventually
async def test_web_sockets_tickets_and_clients_take_it_like_any_other_token(tmp_path):
    async with providing() as provider, running(tmp_path, **settings_for(provider)) as broker:
        token = provider.token("bob")
        async with broker.connect() as socket_:
            talk = Talk(socket_)
            await talk.say({"hello": {"as": "bob", "token": token}}, {"subscribe": {"all": "TRUE"}, "id": 1})
            await talk.hear_until("ok")
            async with AsyncClient(broker.url, token=token) as client:
                await client.publish({"n": 7, "region": "EU"})
            assert (await talk.events(1))[0]["event"]["data"]["n"] == 7
        _, answer = await broker.ask("POST", "/tickets", headers=bearer(token), status=201)
        async with broker.session.get(f"{broker.url}/listen", params={"ticket": answer["ticket"]}) as response:
            assert response.status == 200
        async with broker.connect() as socket_:
            talk = Talk(socket_)
            await talk.say({"hello": {"as": "bob", "token": provider.token("bob", key=OTHER_RSA_KEY)}})
            assert (await talk.hear_until("error"))["error"]["status"] == 401


@eventually
async def test_keys_that_the_provider_changes_are_fetched_when_a_token_names_one(tmp_path):
    async with providing() as provider, running(tmp_path, **settings_for(provider)) as broker:
        old = provider.token()
        await broker.ask("GET", "/events", status=200, headers=bearer(old))
        provider.keys = [jwk(RSA_KEY, "one"), jwk(OTHER_RSA_KEY, "two")]
        new = provider.token(key=OTHER_RSA_KEY, kid="two")
        await broker.ask("GET", "/events", status=200, headers=bearer(new))
        await broker.ask("GET", "/events", status=200, headers=bearer(old))
        provider.keys = [jwk(OTHER_RSA_KEY, "two"), jwk(RSA_KEY, "three")]
        await broker.ask("GET", "/events", status=200, headers=bearer(provider.token(kid="three")))
        await broker.ask("GET", "/events", status=401, headers=bearer(old))


@eventually
async def test_a_connection_ends_when_its_key_is_taken_back_or_its_token_ends(tmp_path):
    async with providing() as provider, running(tmp_path, **settings_for(provider)) as broker:
        for end in ("key", "time"):
            async with broker.connect() as socket_:
                talk = Talk(socket_)
                await talk.say({"hello": {"as": "ann", "token": provider.token()}})
                assert "welcome" in await talk.hear()
                if end == "key":
                    provider.keys = [jwk(OTHER_RSA_KEY, "two")]
                    await broker.service.reload()
                else:
                    clock = broker.service.authenticator
                    clock._now = clock.issuers._now = lambda: time.time() + 3_600
                assert (await talk.hear_until("error"))["error"]["status"] == 401
            provider.keys = [jwk(RSA_KEY, "one")]
            await broker.service.reload()


@eventually
async def test_a_provider_that_is_down_at_the_start_is_asked_until_it_answers(tmp_path):
    provider = Provider()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    provider.url = f"http://127.0.0.1:{port}"
    async with running(tmp_path, **settings_for(provider, pause=Duration(0.2))) as broker:
        opaque = broker.tokens.create("bob", ("wide",))
        await broker.ask("GET", "/events", status=200, headers=bearer(opaque))
        async with broker.session.get(f"{broker.url}/events", headers=bearer(provider.token())) as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert (await response.json())["title"] == "An issuer of tokens does not answer"
        await provider.start(port)
        try:
            while broker.service.authenticator.issuers._sources[provider.issuer].keys is None:
                await asyncio.sleep(0.05)
            await broker.ask("GET", "/events", status=200, headers=bearer(provider.token()))
            await provider.stop()
            await broker.service.reload()
            (
                await broker.ask("GET", "/events", status=200, headers=bearer(provider.token("eve"))),
                "the keys of before count",
            )
        finally:
            await provider.stop()


@eventually
async def test_invented_names_of_keys_make_nobody_ask_the_provider_all_day():
    async with providing() as provider:
        source, clock = source_of(provider)
        await source.fetch()
        for kid in ("a", "b", "c"):
            await source.ensure(kid)
        assert provider.asked.count("keys") == 1, "the pause is not over"
        clock[0] += 10
        await asyncio.gather(*(source.ensure(f"k{number}") for number in range(50)))
        assert provider.asked.count("keys") == 2, "once for all who ask at a time"
        await source.ensure("one")
        await source.ensure(None)
        assert provider.asked.count("keys") == 2, "of a known key nobody asks"


@eventually
async def test_keys_are_fetched_again_when_they_are_old():
    async with providing() as provider:
        source, clock = source_of(provider, refresh=Duration(100))
        await source.fetch()
        first, provider.keys = source.edition, [jwk(EC_KEY, "e")]
        clock[0] += 99
        await source.refresh()
        assert source.edition == first
        clock[0] += 1
        await source.refresh()
        assert source.edition == first + 1
        clock[0] += 100
        await source.refresh()
        assert source.edition == first + 1, "the same keys change nothing"
        assert provider.asked.count("keys") == 3


async def silence(request):
    await asyncio.sleep(2)  # longer than anybody waits; the provider ends only when this has


async def redirect(request):
    raise web.HTTPFound("/elsewhere")


async def too_much(request):
    return web.Response(body=b"[" * (2 << 20))


async def nonsense(request):
    return web.Response(text="<html>")


async def failure(request):
    return web.Response(status=500)


@pytest.mark.parametrize("answer", [silence, redirect, too_much, nonsense, failure])
@eventually
async def test_a_provider_that_answers_badly_changes_no_key(answer):
    async with providing() as provider:
        source, _ = source_of(provider, timeout=Duration(0.3))
        await source.fetch()
        before, provider.answer = source.keys, answer
        with pytest.raises((IssuerError, SettingsError)):
            await source.fetch()
        assert source.keys is before


@pytest.mark.parametrize(
    "changes",
    [{"issuer": "http://127.0.0.1:1"}, {"issuer": None}, {"jwks_uri": "http://id.example/keys"}, {"jwks_uri": 7}, {"jwks_uri": "file:///etc/passwd"}],
)  # fmt: skip
@eventually
async def test_a_discovery_that_names_another_issuer_or_an_open_address_is_refused(changes):
    async with providing() as provider:
        provider.discovery_changes = changes
        source, _ = source_of(provider)
        with pytest.raises(IssuerError):
            await source.fetch()
        assert "keys" not in provider.asked
        with pytest.raises(IssuerError, match="the keys of the issuer company are not there"):
            source.usable()


@eventually
async def test_the_certificate_of_an_address_is_verified_with_the_authorities_of_the_settings(tmp_path):
    authority, other = trustme.CA(), trustme.CA()
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    async def keys(request):
        return web.Response(body=key_set(jwk(RSA_KEY, "one")))

    application = web.Application()
    application.router.add_get("/keys", keys)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    url = f"https://localhost:{site._server.sockets[0].getsockname()[1]}/keys"
    try:
        for which, is_good in ((authority, True), (other, False)):
            file = tmp_path / f"{is_good}.pem"
            which.cert_pem.write_to_path(str(file))
            source = KeySource("company", Issuer(issuer="x", audience=("tamis",), keys=url, ca=str(file)))
            if is_good:
                await source.fetch()
                assert source.keys.knows("one")
            else:
                with pytest.raises(IssuerError, match="cannot be reached"):
                    await source.fetch()
    finally:
        await runner.cleanup()


@eventually
async def test_keys_of_a_file_are_read_at_the_start_and_at_a_reload(tmp_path):
    file = tmp_path / "keys.json"
    file.write_bytes(key_set(jwk(RSA_KEY, "one")))
    provider = Provider()
    provider.url = "https://login.example"
    async with running(tmp_path / "data", **settings_for(provider, keys=str(file), pause=Duration(3_600))) as broker:
        await broker.ask("GET", "/events", status=200, headers=bearer(provider.token()))
        file.write_bytes(key_set(jwk(OTHER_RSA_KEY, "two")))
        two = provider.token(key=OTHER_RSA_KEY, kid="two")
        await broker.ask("GET", "/events", status=401, headers=bearer(two))
        await broker.service.reload()
        await broker.ask("GET", "/events", status=200, headers=bearer(two))
        await broker.ask("GET", "/events", status=401, headers=bearer(provider.token()))
        file.write_text("nonsense")
        with pytest.raises(SettingsError, match="is not a key set"):
            await broker.service.reload()
        await broker.ask("GET", "/events", status=200, headers=bearer(two)), "everything stays as it was"
        file.unlink()
        with pytest.raises(SettingsError, match="cannot be read"):
            await broker.service.reload()


@eventually
async def test_roles_and_issuers_of_the_settings_change_by_a_reload(tmp_path):
    async with providing() as provider, running(tmp_path, **settings_for(provider)) as broker:
        token = provider.token(roles=["staff"])
        await broker.ask("GET", "/events", status=200, headers=bearer(token))
        before = broker.service.settings
        after = settings_for(provider, role_names={"staff": ("admin",)})
        broker.service._read_settings = lambda: msgspec.structs.replace(before, **after)
        assert await broker.service.reload()
        await broker.ask("GET", "/links", status=200, headers=bearer(token))
        broker.service._read_settings = lambda: msgspec.structs.replace(before, issuers={})
        await broker.service.reload()
        await broker.ask("GET", "/links", status=401, headers=bearer(token))


@eventually
async def test_an_owner_whose_token_has_fewer_roles_does_not_get_what_the_old_ones_allowed(tmp_path):
    async with providing() as provider, running(tmp_path, **settings_for(provider)) as broker:
        wide, narrow = provider.token(roles=["wide"]), provider.token(roles=["shop"])
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE", 201, headers=bearer(wide))
        await broker.ask("POST", "/events", [{"n": 1, "region": "US"}], 200, headers=bearer(wide))
        take = {"most": 10, "wait_s": 0.1}
        await broker.ask("POST", "/subscribers/ann/take", take, 403, headers=bearer(narrow))
        _, taken = await broker.ask("POST", "/subscribers/ann/take", take, 200, headers=bearer(wide))
        assert [each["event"]["data"]["n"] for each in taken["events"]] == [1]


def test_a_broker_without_issuers_imports_nothing_of_them():
    import subprocess
    import sys

    program = "import sys, tamis.service.serving; print([m for m in sys.modules if m == 'jwt' or m.startswith('cryptography')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@eventually
async def test_without_the_library_the_start_says_what_to_install(tmp_path, monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith("tamis.service.issuers.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jwt", None)
    provider = Provider()
    provider.url = "https://login.example"
    with pytest.raises(SettingsError, match=r"pip install 'tamis\[jwt\]'"):
        async with running(tmp_path, **settings_for(provider)):
            pass


@in_a_loop
async def test_a_real_process_takes_new_keys_by_sighup(forge, tmp_path):
    """`tamis serve` with a file of settings; the connection of an opaque token stays."""
    async with providing() as provider:
        config = f"""
[roles.shop]
publish = {{}}
receive = "TRUE"
[issuers.company]
issuer = "{provider.issuer}"
audience = ["tamis"]
pause = "1h"
"""
        broker = BrokerProcess(forge, tmp_path, config=config)
        await asyncio.to_thread(broker.start)
        try:
            one, two = provider.token(), provider.token(key=OTHER_RSA_KEY, kid="two")
            ask = asyncio.to_thread
            assert (await ask(broker.ask, "GET", "/events", token=one))[0] == 200
            assert (await ask(broker.ask, "GET", "/events", token=two))[0] == 401
            async with aiohttp.ClientSession() as session, session.ws_connect(f"{broker.url}/ws") as stays:
                talk = Talk(stays)
                await talk.say({"hello": {"as": "admin", "token": broker.first_token}})
                assert "welcome" in await talk.hear()
                provider.keys = [jwk(OTHER_RSA_KEY, "two")]
                os.kill(broker.process, signal.SIGHUP)
                await until(lambda: "reloaded" in broker.said())
                assert (await ask(broker.ask, "GET", "/events", token=two))[0] == 200
                assert (await ask(broker.ask, "GET", "/events", token=one))[0] == 401
                await talk.say({"subscribe": {"all": "TRUE"}, "id": 1})
                assert (await talk.hear_until("ok"))["ok"] == 1
        finally:
            await asyncio.to_thread(broker.kill)


def test_a_reload_keeps_the_keys_of_an_issuer_that_is_the_same():
    issuer = Issuer(issuer="https://login.example", audience=("tamis",))
    settings = Settings(roles=ROLES, issuers={"a": issuer})
    old = Issuers(settings)
    assert Issuers(settings, old)._sources[issuer.issuer] is old._sources[issuer.issuer]
    other = msgspec.structs.replace(issuer, keys="https://login.example/keys")
    new = Issuers(msgspec.structs.replace(settings, issuers={"a": other}), old)
    assert new._sources[issuer.issuer] is not old._sources[issuer.issuer]
    with pytest.raises(UnauthenticatedError):
        new.identity_of("nonsense")
