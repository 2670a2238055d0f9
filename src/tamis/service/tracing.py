"""Where does the time of one event go? Spans for OpenTelemetry, of events that come with a sampled trace.

A publisher that traces puts `traceparent` (and `tracestate`) into its CloudEvent, as the extension for distributed
tracing has it. They are stored, delivered and sent to neighbours with the event in any case. With `[tracing]` in the
settings the broker adds spans, below that of the publisher, for events whose `traceparent` says *sampled*:

    publish   from the request until the event is on disk, and acknowledged
      match   which subscribers want it; of the whole group of events that were taken together
      disk    from the hand-over to the log until the disk has it
      deliver from the disk until it is handed to a subscriber's connection; one for each subscriber
    link      in place of `publish`, of an event that came from a neighbour

Other events cost a search for one word in their bytes. Without the setting nothing of this is imported, or asked.

Source: W3C Trace Context 1; CloudEvents 1.0.2, extension "Distributed Tracing".
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.trace import SpanKind, get_current_span, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tamis.service.log.base import MARK_MOST, MARK_SHIFT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

    from tamis.service.log.base import Block
    from tamis.service.messages import Delivery, Publish

REMEMBERED = 10_000
"""Traced events that are on their way, or were lately; of older ones a delivery is a span below the publisher's."""
EXPORT_S = 10.0
_WORD = b'"traceparent"'
_PROPAGATOR = TraceContextTextMapPropagator()


class _Trace(msgspec.Struct):
    """What an event says of its trace."""

    traceparent: str = ""
    tracestate: str = ""


class _OnItsWay(NamedTuple):
    """A traced event between the request and the disk."""

    span: Span
    disk: Span


class Tracing:
    """Makes spans. The loop says what it hears, the core says the rest; times are in nanoseconds since 1970."""

    def __init__(self, name: str, endpoint: str = "", exporter: SpanExporter | None = None) -> None:
        """`exporter` takes spans at once, and is for tests; otherwise they are posted to the endpoint, in groups."""
        self._provider = TracerProvider(
            resource=Resource.create({"service.name": "tamis", "service.instance.id": name})
        )
        if exporter is not None:
            self._provider.add_span_processor(SimpleSpanProcessor(exporter))
        else:
            self._provider.add_span_processor(
                BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_S), schedule_delay_millis=1_000)
            )
        self._tracer = self._provider.get_tracer("tamis")
        self._heard: OrderedDict[bytes, int] = OrderedDict()
        """When the loop heard of traced events that are not taken yet, by their bytes."""
        self._writing: dict[int, _OnItsWay] = {}
        self._written: OrderedDict[int, tuple[Span, int]] = OrderedDict()
        """Spans of traced events that are on disk, and since when, by position."""

    def heard(self, request: Publish) -> None:
        """Note when a publication came."""
        for event in request.events:
            if _WORD in event.body:
                self._heard[event.body] = time.time_ns()
                if len(self._heard) > REMEMBERED:
                    self._heard.popitem(last=False)

    def appended(self, block: Block) -> list[int]:
        """Begin the spans of a block that goes to the log; return the positions of what is traced in it."""
        positions = []
        now = time.time_ns()
        for position, body in enumerate(block.events, block.first):
            parent = _parent(body)
            if parent is None:
                continue
            since = self._heard.pop(body, None)
            is_passed_on = block.flags[position - block.first] >> MARK_SHIFT & MARK_MOST
            name, kind = ("link", SpanKind.CONSUMER) if is_passed_on else ("publish", SpanKind.SERVER)
            facts: dict[str, Any] = {
                "messaging.system": "tamis",
                "tamis.position": position,
                "tamis.group": len(block.events),
            }
            span = self._tracer.start_span(name, parent, kind, facts, start_time=since or now)
            disk = self._tracer.start_span("disk", set_span_in_context(span), start_time=now)
            self._writing[position] = _OnItsWay(span, disk)
            positions.append(position)
        return positions

    def matched(self, positions: Iterable[int], begun: int) -> None:
        """Tell that subscribers of some traced events are found."""
        now = time.time_ns()
        for position in positions:
            way = self._writing.get(position)
            if way is not None:
                span = self._tracer.start_span("match", set_span_in_context(way.span), start_time=begun)
                span.end(now)

    def on_disk(self, last: int) -> None:
        """End the spans of events that are on disk."""
        if not self._writing:
            return
        now = time.time_ns()
        for position in [position for position in self._writing if position <= last]:
            way = self._writing.pop(position)
            way.disk.end(now)
            way.span.end(now)
            self._written[position] = way.span, now
            if len(self._written) > REMEMBERED:
                self._written.popitem(last=False)

    def not_written(self, block: Block, reason: str) -> None:
        """End the spans of a block for which there was no room."""
        for position in range(block.first, block.last + 1):
            if (way := self._writing.pop(position, None)) is not None:
                for span in (way.disk, way.span):
                    span.set_attribute("error.type", reason)
                    span.end()

    def delivered(self, subscriber: str, items: Sequence[Delivery]) -> None:
        """Tell that events are handed to the connection of a subscriber, or to the link to a neighbour."""
        for item in items:
            if _WORD not in item.body:
                continue
            span, since = self._written.get(item.position.event, (None, 0))
            parent = _parent(item.body) if span is None else set_span_in_context(span)
            if parent is not None:
                now = time.time_ns()
                facts: dict[str, Any] = {
                    "tamis.subscriber": subscriber,
                    "tamis.subscriptions": item.keys,
                    "tamis.again": item.is_again,
                }
                delivery = self._tracer.start_span("deliver", parent, SpanKind.PRODUCER, facts, start_time=since or now)
                delivery.end(now)

    def close(self) -> None:
        """Send what is left; this waits for the receiver, though not for long."""
        self._provider.shutdown()


def _parent(body: bytes) -> Context | None:
    """Return the context of the publisher's span, if it is sampled; None for all other events.

    >>> sampled = b'{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'
    >>> _parent(sampled) is None, _parent(sampled.replace(b"-01", b"-00")) is None
    (False, True)
    """
    if _WORD not in body:
        return None
    try:
        said = msgspec.json.decode(body, type=_Trace)
    except msgspec.MsgspecError:  # a member of that name whose value is no text
        return None
    context = _PROPAGATOR.extract({"traceparent": said.traceparent, "tracestate": said.tracestate})
    facts = get_current_span(context).get_span_context()
    return context if facts.is_valid and facts.trace_flags.sampled else None
