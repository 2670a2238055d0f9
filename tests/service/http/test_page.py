"""The page of a broker and what it shows, over HTTP: files, figures, shares and lags."""

from __future__ import annotations

import json
import re

import pytest

from tamis.service.settings import Role

from .brokers import eventually, running

FILES = {
    "/page.css": "text/css",
    "/page.js": "text/javascript",
    "/tamis.js": "text/javascript",
    "/icon.svg": "image/svg+xml",
}


@eventually
async def test_a_browser_gets_the_page_and_everybody_else_a_text(tmp_path):
    async with running(tmp_path) as broker:
        headers = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        async with broker.session.get(broker.url + "/", headers=headers) as response:
            assert (response.status, response.content_type) == (200, "text/html")
            assert response.headers["Content-Security-Policy"] == "default-src 'self'"
            html = await response.text()
        assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|https?://|data:", html), "the policy forbids these"
        named = {f"/{name}" for name in re.findall(r'(?:src|href)="([^"]+)"', html)}
        assert named <= set(FILES)
        for name, media_type in FILES.items():
            async with broker.session.get(broker.url + name) as response:
                assert (response.status, response.content_type) == (200, media_type)
                assert await response.text()
        async with broker.session.get(broker.url + "/") as response:
            assert response.content_type == "text/plain"


@eventually
async def test_acceptance_11_and_15_the_page_needs_no_token_and_shows_nothing_without_one(tmp_path):
    roles = {"eu": Role(receive="region = 'EU'"), "admin": Role(admin=True)}
    async with running(tmp_path, roles=roles) as broker:
        for name in ("/", *FILES):
            await broker.ask("GET", name, status=200)
        for name in ("/overview", "/subscribers", "/listen?where=TRUE"):
            await broker.ask("GET", name, status=401)
        ann = {"Authorization": f"Bearer {broker.tokens.create('ann', ('eu',))}"}
        await broker.ask("GET", "/overview?most=1", status=403, headers=ann)
        root = {"Authorization": f"Bearer {broker.tokens.create('root', ('admin',))}"}
        events = [{"region": region} for region in ("EU", "US", "US")]
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", status=201, data="TRUE", headers=ann)
        await broker.ask("POST", "/events", events, status=200, headers=root)
        _, shares = await broker.ask("GET", "/subscribers/ann/shares", status=200, headers=ann)
        assert (shares["seen"], shares["subscriptions"]["all"]["matched"]) == (1, 1)


@eventually
async def test_the_overview_is_a_line_a_second_of_what_happens(tmp_path):
    async with running(tmp_path) as broker, broker.session.get(f"{broker.url}/overview") as overview:
        first = json.loads(await overview.content.readline())
        assert (first["broker"], first["head"], first["ready"], first["insecure"]) == ("tamis", 0, True, False)
        assert first["delays"]["disk"] == {"p50_s": None, "p99_s": None}
        await broker.publish({"price": 1}, {"price": 2})
        while (later := json.loads(await overview.content.readline()))["head"] < 2 or not later["events"]["taken"]:
            assert later["uptime_s"] > first["uptime_s"]
        assert later["events"]["taken"] == 2
        async with broker.session.get(f"{broker.url}/overview?most=2") as short:
            assert len((await short.read()).splitlines()) == 2


@eventually
async def test_shares_are_what_each_subscription_matches_and_who_covers_it(tmp_path):
    async with running(tmp_path) as broker:
        texts = {"cheap": "price < 20", "free": "price = 0", "signed": "signed"}
        await broker.ask("PUT", "/subscribers/ann/subscriptions", texts, status=201)
        await broker.publish(*({"price": price} for price in range(50)))
        _, shares = await broker.ask("GET", "/subscribers/ann/shares?from=-1h", status=200)
        matched = {key: each["matched"] for key, each in shares["subscriptions"].items()}
        assert (shares["seen"], matched) == (50, {"cheap": 20, "free": 1, "signed": 0})
        assert shares["subscriptions"]["free"]["covered_by"] == ["cheap"]
        assert shares["subscriptions"]["cheap"]["covered_by"] == []
        _, nothing = await broker.ask("GET", "/subscribers/ann/shares?from=now", status=200)
        assert nothing["subscriptions"]["cheap"] == {"matched": 0, "share": None, "per_s": 0.0, "covered_by": []}
        await broker.ask("GET", "/subscribers/nobody/shares", status=404)


@eventually
async def test_a_subscriber_waits_since_the_first_event_that_is_not_done(tmp_path):
    async with running(tmp_path) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", status=201, data="TRUE")
        _, before = await broker.ask("GET", "/subscribers?lag=true", status=200)
        assert [each["waiting_since"] for each in before["subscribers"]] == [None]
        await broker.publish({"price": 1})
        _, after = await broker.ask("GET", "/subscribers?lag=true", status=200)
        assert re.fullmatch(r"20\d\d-.*Z", after["subscribers"][0]["waiting_since"])
        _, plain = await broker.ask("GET", "/subscribers", status=200)
        assert "waiting_since" not in plain["subscribers"][0]
        await broker.ask("GET", "/subscribers?lag=perhaps", status=400)


@pytest.mark.parametrize("name", ["index.html", "page.css", "page.js", "tamis.js", "icon.svg"])
def test_what_the_page_is_made_of_is_in_the_package(name):
    from importlib.resources import files

    assert files("tamis.service.page").joinpath(name).read_text("utf-8")
