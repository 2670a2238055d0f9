"""What does a reload change, and what stays until the next start?"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from tempfile import TemporaryDirectory

import aiohttp
import msgspec
import pytest
import trustme

from tamis.service.edges import EdgePlace
from tamis.service.errors import SettingsError
from tamis.service.log_lines import JsonForm, LineHandler
from tamis.service.permissions import Permissions
from tamis.service.serving import Service
from tamis.service.settings import (
    Duration,
    KeepLimits,
    LimitSettings,
    LinkListener,
    Listener,
    Logging,
    LogSettings,
    Publishing,
    Role,
    Settings,
    Size,
    Tls,
)

from .brokers import Talk, eventually, running


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@eventually
async def test_settings_that_wait_for_a_start_have_no_effect_before_it(tmp_path):
    async with running(tmp_path, schema={"n": "bigint"}) as broker:
        other = msgspec.structs.replace(
            broker.service.settings,
            schema={"n": "string"},
            name="another",
            limits=LimitSettings(depth=3, credit=7),
        )
        broker.service._read_settings = lambda: other
        for _ in range(2):  # a second reload does not take them for settings of the start
            _, content = await broker.ask("POST", "/reload", status=200)
            assert set(content["at_start"]) == {"schema.n", "name", "limits.credit"}
            await broker.ask("POST", "/check", data="n < 20", status=200)
            await broker.ask("POST", "/check", data="n < 'a'", status=400)
            await broker.publish({"n": 1})
            await broker.ask("POST", "/events", {"n": [[[1]]]}, status=413)
            async with broker.connect() as socket:
                talk = Talk(socket)
                await talk.say({"hello": {}})
                welcome = (await talk.hear())["welcome"]
                assert (welcome["broker"], welcome["limits"]["credit"]) == ("tamis", 256)


@eventually
async def test_level_and_form_of_log_lines_change_by_a_reload(tmp_path, monkeypatch):
    logger = logging.getLogger("tamis")
    ours, others = LineHandler(), Lines()
    monkeypatch.setattr(logger, "handlers", [ours, others])
    level = logger.level
    try:
        async with running(tmp_path) as broker:
            other = msgspec.structs.replace(broker.service.settings, logging=Logging(level="error", form="json"))
            broker.service._read_settings = lambda: other
            changed = await broker.service.reload()
            assert set(changed.at_once) == {"logging.level", "logging.form"}
            assert logger.level == logging.ERROR
            assert isinstance(ours.formatter, JsonForm)
            assert others.formatter is None
    finally:
        logger.setLevel(level)


@eventually
async def test_an_insecure_broker_warns_in_its_log(monkeypatch):
    lines = Lines()
    monkeypatch.setattr(logging.getLogger("tamis.service"), "handlers", [lines])
    for host, count in (("127.0.0.1", 0), ("0.0.0.0", 1)):
        service = Service(Settings(data=":memory:", insecure=True, listeners=(Listener(host=host, port=0),)))
        await service.start()
        await service.stop()
        assert len([text for text in lines.texts if "without TLS" in text]) == count


@eventually
async def test_no_line_is_logged_for_an_event(tmp_path, monkeypatch):
    lines = Lines()
    logger = logging.getLogger("tamis")
    monkeypatch.setattr(logger, "handlers", [lines])
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        async with running(tmp_path) as broker, broker.connect() as socket:
            talk = Talk(socket)
            await talk.say({"hello": {"as": "ann"}}, {"subscribe": {"all": "TRUE"}, "id": 1})
            await talk.hear_until("ok")
            await broker.publish({"secret": 1}, {"secret": 2})
            await broker.ask(
                "POST", "/events", {"secret": 1}, status=400, headers={"Content-Type": "application/cloudevents+json"}
            )
            positions = [each["at"] for each in await talk.events(2)]
            await talk.say({"never": positions, "reason": "secret", "id": 2})
            await talk.hear_until("ok")
            assert lines.texts == []
    finally:
        logger.setLevel(level)


@eventually
async def test_reading_the_past_ends_when_what_may_be_received_changes(tmp_path, monkeypatch):
    roles = {"shop": Role(receive="TRUE", publish=Publishing())}
    async with running(tmp_path, roles=roles) as broker:
        headers = {"Authorization": f"Bearer {broker.tokens.create('ann', ('shop',))}"}
        for number in range(3):
            await broker.ask("POST", "/events", {"n": number, "region": "US"}, status=200, headers=headers)
        front, read = broker.server.front, broker.core.read
        narrower = Permissions({"shop": Role(receive="region = 'EU'", publish=Publishing())})

        def read_and_change(first, last):
            for number, block in enumerate(read(first, last)):
                if number == 2:
                    front.renew(front.settings, narrower)
                yield block

        monkeypatch.setattr(broker.core, "read", read_and_change)
        numbers = set()

        async def read_all():
            async with broker.session.get(f"{broker.url}/events", headers=headers) as response:
                async for line in response.content:
                    numbers.add(json.loads(line)["event"]["data"]["n"])

        with pytest.raises(aiohttp.ClientError):
            await read_all()
        assert numbers <= {0, 1}
        _, body = await broker.ask("GET", "/events", status=200, headers=headers)
        assert body == b""


@eventually
async def test_what_a_durable_subscriber_needs_is_held_as_long_as_the_settings_say(tmp_path):
    log = LogSettings(segment_bytes=Size(1), keep=KeepLimits(None, 1))
    async with running(tmp_path, log=log) as broker:
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all", "TRUE", status=201)
        for number in range(4):
            await broker.publish({"n": number})
        await asyncio.to_thread(broker.service._drop_old)
        assert broker.core.first == 1
        other = msgspec.structs.replace(
            broker.service.settings, log=msgspec.structs.replace(log, hold=Duration(0), segment_bytes=Size(9_000))
        )
        broker.service._read_settings = lambda: other
        changed = await broker.service.reload()
        assert (changed.at_once, changed.at_start) == (("log.hold",), ("log.segment_bytes",))
        await asyncio.to_thread(broker.service._drop_old)
        while broker.core._node.first == 1:
            await asyncio.sleep(0.01)
        _, taken = await broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 5}, status=200)
        numbers = [item["event"]["data"]["n"] for item in taken["events"]]
        assert numbers == list(range(broker.core.first - 1, 4)) and len(numbers) < 4
        assert [gap["reason"] for gap in taken["gaps"]] == ["retention"]


@eventually
async def test_of_two_reloads_at_a_time_the_later_one_counts(tmp_path):
    async with running(tmp_path) as broker:
        settings, depths = broker.service.settings, iter([5, 6])

        def read_settings():
            depth = next(depths)
            if depth == 5:
                time.sleep(0.2)
            return msgspec.structs.replace(settings, limits=LimitSettings(depth=depth))

        broker.service._read_settings = read_settings
        await asyncio.gather(broker.service.reload(), broker.service.reload())
        assert broker.server.front.settings.limits.depth == 6


@eventually
async def test_a_reload_leaves_the_links_to_edge_brokers_alone(tmp_path):
    settings = Settings(name="first", data=str(tmp_path), listeners=(Listener(port=0),), edges=1)
    other = msgspec.structs.replace(settings, name="another", edges=2, limits=LimitSettings(depth=3))
    with TemporaryDirectory() as sockets:  # paths of sockets must be short
        service = Service(settings, lambda: other, EdgePlace(sockets))
        await service.start()
        try:
            links = dict(service.settings.links)
            changed = await service.reload()
            assert set(changed.at_start) == {"name", "edges"}
            assert service.settings.limits.depth == 3
            assert links and dict(service.settings.links) == links
        finally:
            await service.stop()


@eventually
async def test_a_certificate_for_neighbours_that_cannot_be_used_leaves_everything_as_it_was(tmp_path):
    authority = trustme.CA()
    certificate, ca = tmp_path / "broker.pem", tmp_path / "ca.pem"
    authority.issue_cert("tamis").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    authority.cert_pem.write_to_path(str(ca))
    tls = Tls(certificate=str(certificate), key=str(certificate), client_ca=str(ca), clients="required")
    async with running(tmp_path / "data", link_listeners=(LinkListener(port=0, tls=tls),)) as broker:
        other = msgspec.structs.replace(broker.service.settings, limits=LimitSettings(depth=3))
        broker.service._read_settings = lambda: other
        certificate.write_text("nothing")
        with pytest.raises(SettingsError, match="cannot be used"):
            await broker.service.reload()
        assert broker.service.settings.limits.depth == 32
        await broker.ask("POST", "/events", {"n": [[[[1]]]]}, status=200)
        authority.issue_cert("tamis").private_key_and_cert_chain_pem.write_to_path(str(certificate))
        assert (await broker.service.reload()).at_once == ("limits.depth",)
        await broker.ask("POST", "/events", {"n": [[[[1]]]]}, status=413)
