"""Webhooks: signatures, addresses that may be reached, and a real broker that posts to a real receiver on loopback."""

from __future__ import annotations

import asyncio
import base64
import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from tamis.service.errors import BadRequestError, ForbiddenError, SettingsError
from tamis.service.settings import Role, read_settings
from tamis.service.settings.shapes import WebhookSettings
from tamis.service.webhooks import sending
from tamis.service.webhooks.addresses import CheckedResolver, checked_url, may_be_reached, networks
from tamis.service.webhooks.signatures import key_of, new_secret, signed

from .http.brokers import eventually, running

HERE = WebhookSettings(allow=("127.0.0.0/8",))


class Receiver:
    """Somebody who is posted to, and answers what the test says."""

    def __init__(self):
        self.posts, self.answers, self.allowed_origin = [], [], None

    async def take(self, request):
        self.posts.append((dict(request.headers), await request.read()))
        status = self.answers.pop(0) if self.answers else 204
        return web.Response(status=status, text="not now" if status >= 400 else None, headers={"Retry-After": "0"})

    async def permit(self, request):
        assert request.headers["WebHook-Request-Origin"]
        return web.Response(headers={"WebHook-Allowed-Origin": self.allowed_origin} if self.allowed_origin else {})

    async def count(self, number):
        async with asyncio.timeout(60):
            while len(self.posts) < number:
                await asyncio.sleep(0.02)

    @property
    def ids(self):
        return [headers["webhook-id"] for headers, _ in self.posts]

    @property
    def prices(self):
        return [json.loads(body)["data"]["price"] for _, body in self.posts]


@asynccontextmanager
async def receiving():
    receiver = Receiver()
    application = web.Application()
    application.add_routes([web.post("/hook", receiver.take), web.options("/hook", receiver.permit)])
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    try:
        yield receiver
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(sending, "wait_s", lambda attempt, retry_after, chance: 0.01)
    monkeypatch.setattr(sending, "RETRY_S", 0.05)


async def hooked(broker, receiver, **options):
    await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
    body = {"url": receiver.url} | options
    return (await broker.ask("PUT", "/subscribers/ann/webhook", body, status=201))[1]


@eventually
async def test_acceptance_12_a_receiver_that_fails_eleven_times_gets_each_event_once_by_its_id(tmp_path):
    standard = pytest.importorskip("standardwebhooks")
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        facts = await hooked(broker, receiver)
        receiver.answers = [500] * 11
        await broker.publish({"price": 30}, {"price": 12})
        await receiver.count(12)
        assert len(set(receiver.ids)) == 1 and receiver.prices == [12] * 12
        verifier = standard.Webhook(facts["secret"])
        for headers, body in receiver.posts:
            assert verifier.verify(body, headers)["data"] == {"price": 12}
            assert headers["Content-Type"] == "application/cloudevents+json"
        await broker.publish({"price": 7})
        await receiver.count(13)
        assert len(set(receiver.ids)) == 2
        await state_is(broker, "good")
        _, ann = await broker.ask("GET", "/subscribers/ann", status=200)
        assert (ann["dead"], ann["settings"]["attempts"]) == (0, 12)


@eventually
async def test_acceptance_12_what_is_refused_as_often_as_allowed_is_a_dead_letter_and_may_come_again(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await hooked(broker, receiver, attempts=3)
        receiver.answers = [400] * 3
        await broker.publish({"price": 12})
        while (await broker.ask("GET", "/subscribers/ann", status=200))[1]["dead"] < 1:
            await asyncio.sleep(0.02)
        await broker.publish({"price": 7})
        await receiver.count(4)
        assert receiver.prices == [12, 12, 12, 7]
        await broker.ask("POST", "/subscribers/ann/dead/again", {}, status=200)
        await receiver.count(5)
        assert receiver.prices[-1] == 12


@eventually
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/hook",
        "http://localhost/hook",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "http://10.0.0.1/",
    ],
)
async def test_acceptance_12_a_private_address_is_refused(tmp_path, url):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        _, problem = await broker.ask("PUT", "/subscribers/ann/webhook", {"url": url}, status=403)
        assert "private network" in problem["detail"] and "webhooks.allow" in problem["expected"]
        await broker.ask("GET", "/subscribers/ann/webhook", status=404)


@eventually
async def test_a_webhook_survives_a_restart_and_goes_on_where_it_was(tmp_path):
    async with receiving() as receiver:
        async with running(tmp_path, webhooks=HERE) as broker:
            secret = (await hooked(broker, receiver))["secret"]
            await broker.publish({"price": 1})
            await receiver.count(1)
            while (await broker.ask("GET", "/subscribers/ann", status=200))[1]["unacknowledged"]:
                await asyncio.sleep(0.02)
        async with running(tmp_path, webhooks=HERE) as broker:
            await broker.publish({"price": 2})
            await receiver.count(2)
            while 2 not in receiver.prices:
                await asyncio.sleep(0.02)
            headers, body = receiver.posts[-1]
            expected = signed(headers["webhook-id"], int(headers["webhook-timestamp"]), body, [secret])
            assert headers["webhook-signature"] == expected


@eventually
async def test_a_receiver_that_is_gone_is_not_posted_to_and_may_come_back(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await hooked(broker, receiver)
        receiver.answers = [410]
        await broker.publish({"price": 1}, {"price": 2})
        await state_is(broker, "over")
        await broker.publish({"price": 3})
        assert receiver.prices == [1]
        await broker.ask("PUT", "/subscribers/ann/webhook", {"url": receiver.url}, status=200)
        await receiver.count(4)
        assert receiver.prices[1:] == [1, 2, 3]


@eventually
async def test_a_receiver_that_allows_others_only_is_not_posted_to(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        receiver.allowed_origin = "somebody-else.example"
        await hooked(broker, receiver)
        await broker.publish({"price": 1})
        assert "somebody-else" in (await state_is(broker, "failing"))["reason"]
        assert receiver.posts == []
        receiver.allowed_origin = "*"
        await receiver.count(1)


@eventually
async def test_two_secrets_sign_while_one_replaces_the_other_and_bad_ones_are_refused(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        secrets = [new_secret(), new_secret()]
        facts = await hooked(broker, receiver, secrets=secrets)
        assert "secret" not in facts
        await broker.publish({"price": 1})
        await receiver.count(1)
        headers, body = receiver.posts[0]
        for secret in secrets:
            one = signed(headers["webhook-id"], int(headers["webhook-timestamp"]), body, [secret])
            assert one in headers["webhook-signature"].split()
        for bad in (["short"], ["whsec_c2hvcnQ="], [new_secret()] * 3):
            await broker.ask("PUT", "/subscribers/ann/webhook", {"url": receiver.url, "secrets": bad}, status=400)
        _, shown = await broker.ask("GET", "/subscribers/ann/webhook", status=200)
        assert "whsec_" not in json.dumps(shown)


@eventually
async def test_a_webhook_ends_and_its_events_wait(tmp_path):
    async with receiving() as receiver, running(tmp_path, webhooks=HERE) as broker:
        await hooked(broker, receiver)
        await broker.ask("DELETE", "/subscribers/ann/webhook", status=204)
        await broker.publish({"price": 1})
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"wait_s": 30}, status=200)
        assert [each["event"]["data"]["price"] for each in taken["events"]] == [1]
        assert receiver.posts == []
        await broker.ask("DELETE", "/subscribers/ann/webhook", status=404)
        await hooked_again(broker, receiver)
        await broker.ask("DELETE", "/subscribers/ann", status=204)
        await broker.ask("PUT", "/subscribers/ann/subscriptions/cheap", status=201, data="price < 20")
        while (await broker.ask("GET", "/subscribers/ann/webhook"))[0] != 404:
            await asyncio.sleep(0.02)


async def hooked_again(broker, receiver):
    await broker.ask("PUT", "/subscribers/ann/webhook", {"url": receiver.url}, status=201)


@eventually
async def test_acceptance_11_a_webhook_posts_what_its_maker_may_receive(tmp_path):
    roles = {"eu": Role(receive="region = 'EU'"), "admin": Role(admin=True)}
    async with receiving() as receiver, running(tmp_path, roles=roles, webhooks=HERE) as broker:
        ann = {"Authorization": f"Bearer {broker.tokens.create('ann', ('eu',))}"}
        bob = {"Authorization": f"Bearer {broker.tokens.create('bob', ('eu',))}"}
        root = {"Authorization": f"Bearer {broker.tokens.create('root', ('admin',))}"}
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", status=201, data="TRUE", headers=ann)
        await broker.ask("PUT", "/subscribers/ann/webhook", {"url": receiver.url}, status=403, headers=bob)
        await broker.ask("PUT", "/subscribers/ann/webhook", {"url": receiver.url}, status=201, headers=ann)
        events = [{"region": region, "price": price} for price, region in enumerate(["US", "EU", "US", "EU"])]
        await broker.ask("POST", "/events", events, status=200, headers=root)
        await receiver.count(2)
        assert receiver.prices == [1, 3]


async def state_is(broker, state):
    async with asyncio.timeout(60):
        while (facts := (await broker.ask("GET", "/subscribers/ann/webhook", status=200))[1])["state"] != state:
            await asyncio.sleep(0.02)
    return facts


# -- Parts


@given(st.ip_addresses())
def test_only_addresses_of_the_internet_are_reached(address):
    if may_be_reached(str(address)):
        assert address.is_global and not (address.is_private or address.is_loopback or address.is_link_local)
        assert (not address.is_multicast and not address.is_reserved) or address.is_global
    assert may_be_reached(str(address), networks(["0.0.0.0/0", "::/0"]))


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "::1",
     "fe80::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "ff02::1", "255.255.255.255"],
)  # fmt: skip
def test_addresses_that_only_the_broker_reaches_are_not(address):
    assert not may_be_reached(address)


class Names:
    """A resolver that says what the test says."""

    def __init__(self, *addresses):
        self.addresses = addresses

    async def resolve(self, host, port=0, family=0):
        if not self.addresses:
            raise OSError("no such name")
        return [
            {"hostname": host, "host": each, "port": port, "family": 2, "proto": 0, "flags": 0}
            for each in self.addresses
        ]

    async def close(self):
        pass


def test_of_the_addresses_of_a_name_only_those_that_may_be_reached_are_used():
    both = CheckedResolver(resolver=Names("10.0.0.1", "93.184.216.34"))
    assert [each["host"] for each in asyncio.run(both.resolve("twofold.example"))] == ["93.184.216.34"]
    with pytest.raises(ForbiddenError, match="inside"):
        asyncio.run(CheckedResolver(resolver=Names("10.0.0.1")).check("https://inside.example/"))
    asyncio.run(CheckedResolver(resolver=Names()).check("https://unknown.example/"))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://a.example",
        "https://",
        "https://ann:secret@a.example",
        "https://a.example/\n",
        "https://a:0/",
        "https://[::1",
        "x" * 3000,
    ],
)
def test_what_is_not_an_address_is_refused(url):
    with pytest.raises(BadRequestError):
        checked_url(url)


def test_a_secret_is_one_of_the_specification():
    assert len(key_of(new_secret())) == 32
    for bad in (
        "",
        "whsec_",
        "whsec_!!",
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        base64.b64encode(b"x" * 32).decode(),
    ):
        with pytest.raises(BadRequestError):
            key_of(bad)


def test_a_network_that_is_none_stops_the_start():
    with pytest.raises(SettingsError, match="not a network"):
        read_settings(overrides={"webhooks.allow": ["localhost"]})
