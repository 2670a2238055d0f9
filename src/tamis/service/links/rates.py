"""How much passes over the links of others? Brokers tell each other, with the pings that go over every link anyway.

A broker counts what its own links have carried since it counted last, and puts that into its next ping, together with
what it has heard of others: so everybody knows of everybody, a ping later with every link on the way. Reports are for
eyes alone (the page of a broker, `GET /links`): they lie in no log, nothing waits for them, and who does not know them
skips them.

In a graph a report comes back on another way. It has a number that grows, so an older one does not replace it, and its
age goes with it, so that one that is not renewed is forgotten by all, and does not go round in a circle (`KEPT_S`).

Source: of telling everybody by telling one's neighbours again and again, Demers et al., "Epidemic algorithms for
replicated database maintenance" (1987).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT_S = 60.0
"""So old a report may be: some pings, with as many links between them."""
MOST_BROKERS = 256
"""Of so many brokers reports are kept; of more, a page could show nothing."""
_Name = Annotated[str, Meta(min_length=1, max_length=200)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]


class LinkCount(msgspec.Struct, frozen=True, array_like=True):
    """What a link has carried."""

    name: _Name
    """The broker at its other end."""
    sent: _Count
    received: _Count


class LinkReport(msgspec.Struct, frozen=True, array_like=True):
    """What the links of a broker have carried in some milliseconds."""

    broker: _Name
    number: _Count
    """Grows from report to report of a broker."""
    age_ms: Annotated[int, Meta(ge=0, le=2**31)]
    """How long ago it was made, when it is told."""
    took_ms: Annotated[int, Meta(ge=1, le=2**31)]
    links: Annotated[tuple[LinkCount, ...], Meta(max_length=MOST_BROKERS)]


_REPORTS = msgspec.msgpack.Decoder(Annotated[tuple[LinkReport, ...], Meta(max_length=MOST_BROKERS)])


class _Heard(NamedTuple):
    report: LinkReport
    over: str
    """The neighbour that told it."""
    made_s: float
    """When it was made, by the clock of this broker."""


class LinkRates:
    """What a broker knows of the links of all.

    >>> north, south = LinkRates("north"), LinkRates("south")
    >>> for seconds, sent in ((10, 0), (15, 50)):
    ...     north.count([("south", sent, 0)], seconds)
    >>> south.hear("north", north.said_to("south", now_s=16), now_s=16)
    >>> south.elsewhere(now_s=17)
    [{'broker': 'north', 'links': [{'name': 'south', 'sent_per_s': 10.0, 'received_per_s': 0.0}]}]
    """

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self._own: LinkReport | None = None
        self._before: dict[str, tuple[int, int]] | None = None
        self._counted_s = 0.0
        self._heard: dict[str, _Heard] = {}

    def count(self, links: Iterable[tuple[str, int, int]], now_s: float) -> None:
        """Take note of what each link has sent and received so far; what is new since the last time is told."""
        now = {name: (sent, received) for name, sent, received in links}
        took_ms = round((now_s - self._counted_s) * 1e3)
        if self._before is not None and took_ms > 0:
            counts = []
            for name, (sent, received) in now.items():
                before = self._before.get(name, (sent, received))
                counts.append(LinkCount(name, max(0, sent - before[0]), max(0, received - before[1])))
            self._own = LinkReport(self._broker, round(now_s * 1e3), 0, took_ms, tuple(counts[:MOST_BROKERS]))
        self._before, self._counted_s = now, now_s

    def said_to(self, neighbour: str, now_s: float) -> bytes:
        """Return what a neighbour is told: of this broker, and of those that were not heard of from there."""
        self._forget(now_s)
        chosen = [] if self._own is None else [(self._own, self._counted_s)]
        chosen += [(report, made_s) for report, over, made_s in self._heard.values() if over != neighbour]
        reports = [
            msgspec.structs.replace(report, age_ms=max(0, round((now_s - made_s) * 1e3))) for report, made_s in chosen
        ]
        return msgspec.msgpack.encode(reports[:MOST_BROKERS]) if reports else b""

    def hear(self, neighbour: str, said: bytes, now_s: float) -> None:
        """Take what a neighbour has said; what cannot be read is of another version, and skipped."""
        try:
            reports = _REPORTS.decode(said)
        except (msgspec.DecodeError, RecursionError):
            return
        self._forget(now_s)
        for report in reports:
            known = self._heard.get(report.broker)
            if report.broker == self._broker or (known is not None and known.report.number >= report.number):
                continue
            if known is not None or len(self._heard) < MOST_BROKERS:
                self._heard[report.broker] = _Heard(report, neighbour, now_s - report.age_ms / 1e3)

    def elsewhere(self, now_s: float) -> list[dict[str, Any]]:
        """Return the rates of the links of others, as JSON, by broker."""
        self._forget(now_s)
        return [
            {
                "broker": broker,
                "links": [
                    {
                        "name": link.name,
                        "sent_per_s": link.sent * 1e3 / report.took_ms,
                        "received_per_s": link.received * 1e3 / report.took_ms,
                    }
                    for link in report.links
                ],
            }
            for broker, (report, _, _) in sorted(self._heard.items())
        ]

    def _forget(self, now_s: float) -> None:
        self._heard = {broker: heard for broker, heard in self._heard.items() if now_s - heard.made_s <= KEPT_S}
