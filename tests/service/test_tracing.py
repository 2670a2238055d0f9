"""Spans of traced events: in memory, and posted to a real receiver of OTLP on loopback."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tamis.service.errors import SettingsError
from tamis.service.settings import LinkListener, LinkSettings
from tamis.service.settings.shapes import TracingSettings
from tamis.service.tracing import Tracing

from .http.brokers import Talk, eventually, running

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def traced(number=1, flags="01", trace=TRACE, **members):
    return {
        "specversion": "1.0", "id": str(number), "source": "/shop", "type": "offer", "data": {"n": number},
        "traceparent": f"00-{trace}-{PARENT}-{flags}", "tracestate": "shop=1", **members,
    }  # fmt: skip


async def publish(broker, *events):
    headers = {"Content-Type": "application/cloudevents-batch+json"}
    return (await broker.ask("POST", "/events", list(events), 200, headers=headers))[1]


def watched(broker):
    """Let the spans of a broker come to memory."""
    exporter = InMemorySpanExporter()
    broker.core.tracing = Tracing("north", exporter=exporter)
    return exporter


async def spans_of(exporter, count):
    while len(spans := exporter.get_finished_spans()) < count:
        await asyncio.sleep(0.01)
    return sorted(spans, key=lambda span: (span.start_time, span.name))


@eventually
async def test_a_sampled_event_has_spans_from_its_publisher_to_its_subscribers(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        exporter = watched(broker)
        talk = Talk(socket)
        await talk.say({"hello": {"as": "ann"}}, {"subscribe": {"all": "TRUE", "none": "n > 5"}, "id": 1})
        await talk.hear_until("ok")
        answer = await publish(broker, traced())
        delivered = (await talk.events(1))[0]["event"]
        spans = {span.name: span for span in await spans_of(exporter, 4)}
        assert set(spans) == {"publish", "match", "disk", "deliver"}
        assert {f"{span.context.trace_id:032x}" for span in spans.values()} == {TRACE}
        assert f"{spans['publish'].parent.span_id:016x}" == PARENT and spans["publish"].parent.is_remote
        for name in ("match", "disk", "deliver"):
            assert spans[name].parent.span_id == spans["publish"].context.span_id
        assert spans["publish"].attributes["tamis.position"] == int(answer["position"].partition("-")[2])
        assert spans["deliver"].attributes["tamis.subscriber"] == "ann"
        assert spans["deliver"].attributes["tamis.subscriptions"] == ("all",)
        assert spans["deliver"].start_time >= spans["disk"].end_time, "nothing is delivered before it is on disk"
        for span in spans.values():
            assert span.start_time <= span.end_time
        assert (delivered["traceparent"], delivered["tracestate"]) == (f"00-{TRACE}-{PARENT}-01", "shop=1")


@eventually
async def test_an_event_that_is_not_sampled_has_none(tmp_path):
    async with running(tmp_path) as broker:
        exporter = watched(broker)
        plain = {name: value for name, value in traced(1).items() if not name.startswith("trace")}
        wrong = [
            traced(number, traceparent=text)
            for number, text in enumerate(["", "x", "00-0-0-01", f"00-{TRACE}-{PARENT}-0101"], 10)
            if text
        ]
        inside = {**plain, "id": "inside", "data": {"traceparent": f"00-{TRACE}-{PARENT}-01"}}
        await publish(broker, plain, traced(2, flags="00"), inside, *wrong)
        await broker.ask("PUT", "/subscribers/ann/subscriptions/all?from=first", "TRUE", status=201)
        await broker.ask("POST", "/subscribers/ann/take", {"most": 10, "wait_s": 5}, 200)
        await publish(broker, traced(3))
        spans = await spans_of(exporter, 3)
        assert {span.name for span in spans} <= {"publish", "match", "disk", "deliver"}
        assert all(f"{span.parent.span_id:016x}" == PARENT for span in spans if span.name == "publish")
        assert len([span for span in spans if span.name == "publish"]) == 1, "of the sampled one alone"


@eventually
async def test_an_event_that_is_known_has_spans_once_and_its_deliveries_each(tmp_path):
    async with running(tmp_path) as broker:
        exporter = watched(broker)
        for name in ("ann", "bob"):
            await broker.ask("PUT", f"/subscribers/{name}/subscriptions/all", "TRUE", status=201)
        for _ in range(3):
            await publish(broker, traced())
        for name in ("ann", "bob"):
            await broker.ask("POST", f"/subscribers/{name}/take", {"most": 10, "wait_s": 5}, 200)
        names = sorted(span.name for span in exporter.get_finished_spans())
        assert names.count("publish") == names.count("disk") == names.count("match") == 1, names


@eventually
async def test_what_is_delivered_long_after_is_a_span_of_the_publishers_trace(tmp_path):
    async with running(tmp_path) as broker, broker.connect() as socket:
        await publish(broker, traced())  # before anybody watches, as before a restart
        exporter = watched(broker)
        talk = Talk(socket)
        await talk.say({"hello": {"as": "ann"}}, {"subscribe": {"all": "TRUE"}, "from": "first", "id": 1})
        await talk.events(1)
        (span,) = await spans_of(exporter, 1)
        assert (span.name, f"{span.parent.span_id:016x}") == ("deliver", PARENT)


@eventually
async def test_a_trace_goes_on_at_the_next_broker(tmp_path):
    listening = {"link_listeners": (LinkListener(port=0),), "name": "north"}
    async with running(tmp_path / "north", **listening) as north:
        url = north.service.links.addresses[0]
        async with running(tmp_path / "south", name="south", links={"north": LinkSettings(url=url)}) as south:
            exporter = watched(south)
            async with south.connect() as socket:
                talk = Talk(socket)
                await talk.say({"hello": {"as": "ann"}})
                await talk.hear_until("welcome")
                await south.ask("PUT", "/subscribers/ann/subscriptions/all?settle=30s", "TRUE", status=201)
                await publish(north, traced())
                event = (await talk.events(1))[0]["event"]
            assert event["traceparent"] == f"00-{TRACE}-{PARENT}-01"
            spans = {span.name: span for span in await spans_of(exporter, 3)}
            assert {"link", "disk", "deliver"} <= set(spans)
            assert f"{spans['link'].parent.span_id:016x}" == PARENT
            assert spans["deliver"].parent.span_id == spans["link"].context.span_id


@asynccontextmanager
async def collecting():
    """A receiver of OTLP over HTTP; gives its address and what came."""
    requests = []

    async def take(request):
        assert request.content_type == "application/x-protobuf"
        body = await request.read()
        if request.headers.get("Content-Encoding") == "gzip":
            raise AssertionError("aiohttp has unpacked it already")
        requests.append(ExportTraceServiceRequest.FromString(body))
        return web.Response(content_type="application/x-protobuf")

    application = web.Application()
    application.add_routes([web.post("/v1/traces", take)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1/traces", requests
    finally:
        await runner.cleanup()


@eventually
async def test_spans_are_posted_to_a_receiver_of_otlp_also_those_of_the_last_moment(tmp_path):
    async with collecting() as (url, requests):
        async with running(tmp_path, name="north", tracing=TracingSettings(endpoint=url)) as broker:
            await publish(broker, *(traced(number) for number in range(3)), traced(9, flags="00"))
        found = [
            (resource, span)
            for each in requests
            for resource in each.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        assert sorted(span.name for _, span in found) == sorted(["publish", "match", "disk"] * 3)
        assert {span.trace_id.hex() for _, span in found} == {TRACE}
        assert {span.trace_state for _, span in found} == {"shop=1"}
        facts = {each.key: each.value.string_value for each in found[0][0].resource.attributes}
        assert (facts["service.name"], facts["service.instance.id"]) == ("tamis", "north")


@eventually
async def test_a_receiver_that_is_not_there_keeps_no_event_and_no_stop_waiting(tmp_path, monkeypatch):
    from tamis.service import tracing

    monkeypatch.setattr(tracing, "EXPORT_S", 0.3)
    async with running(tmp_path, tracing=TracingSettings(endpoint="http://127.0.0.1:1/v1/traces")) as broker:
        for number in range(5):
            assert (await publish(broker, traced(number)))["durable"]


def test_a_broker_that_does_not_trace_imports_nothing_for_it():
    program = (
        "import sys, tamis.service.serving; print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@eventually
async def test_without_the_libraries_the_start_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "tamis.service.tracing")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"pip install 'tamis\[otel\]'"):
        async with running(tmp_path, tracing=TracingSettings(endpoint="http://127.0.0.1:1")):
            pass
