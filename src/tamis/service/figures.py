"""How does a broker fare? Figures: integers on an object, written as text when somebody asks.

Whoever does the work adds to a counter or a histogram with fixed bounds, which costs a fraction of a microsecond;
nobody formats anything until `/metrics` is read. Each figure has one thread that changes it, so there are no locks; a
reader may see one figure newer than another.

>>> figures = Figures()
>>> figures.events_taken["http"] += 2
>>> figures.disk_seconds.observe(0.0004)
>>> print(figures.text().splitlines()[2])
tamis_events_taken_total{how="http"} 2

The text is the exposition format of Prometheus, version 0.0.4.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.functions import Functions

SECONDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
EVENTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0)


class Histogram:
    """How often was which size seen? Counts between fixed bounds.

    Invariant: one count more than bounds; `counts[i]` is of values above `bounds[i - 1]`, up to and including
    `bounds[i]`.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = SECONDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value that was seen, so many times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def quantile(self, share: float) -> float:
        """Return a bound that this share of the values does not exceed; infinite if the greatest bound does not do.

        >>> lag = Histogram(bounds=(1, 2, 4))
        >>> for value in (1, 1, 3): lag.observe(value)
        >>> lag.quantile(0.5), lag.quantile(0.99)
        (1, 4)
        """
        wanted, seen = share * sum(self.counts), 0
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            seen += count
            if seen >= wanted and seen:
                return bound
        return 0.0


class Figure(NamedTuple):
    """What there is to know of a figure, besides its value."""

    attribute: str
    kind: str
    """`counter`, `gauge` or `histogram`."""
    label: str
    """The names of the labels by which it is divided; empty if it is one number."""
    meaning: str

    @property
    def name(self) -> str:
        """Its name for Prometheus."""
        return f"tamis_{self.attribute}{'_total' if self.kind == 'counter' else ''}"


FIGURES = (
    Figure("events_taken", "counter", "how", "Events that were taken and are on disk."),
    Figure("events_known", "counter", "", "Events that were sent again and had been taken before."),
    Figure("events_refused", "counter", "why", "Events that were refused; what cannot be read counts as one."),
    Figure("deliveries", "counter", "state", "Deliveries: sent, again, done, dead; lost is gaps that were reported."),
    Figure("requests", "counter", "status", "HTTP requests that were answered."),
    Figure("disk_seconds", "histogram", "", "From handing a group of events to the log until it is on disk."),
    Figure("match_seconds", "histogram", "", "Matching a group of events."),
    Figure("group_events", "histogram", "", "Events that were taken together."),
    Figure("publish_to_deliver_seconds", "histogram", "", "From taking an event to handing it to a live connection."),
    Figure("loop_lag_seconds", "histogram", "", "How late the loop of the sockets is."),
    Figure("gc_seconds", "histogram", "", "Pauses for the collection of garbage."),
    Figure("subscribers", "gauge", "state", "Subscribers: live, behind or far."),
    Figure("behind_events", "gauge", "", "Positions that wait in memory for subscribers."),
    Figure("subscriptions", "gauge", "", "Subscriptions in force."),
    Figure("remembering", "gauge", "kind", "Subscriptions that remember earlier events: ranked, sequence, change."),
    Figure("told", "counter", "kind", "Notifications of such subscriptions, repetitions included."),
    Figure("open_subscriptions", "gauge", "", "Subscriptions that are not compiled yet."),
    Figure("connections", "gauge", "", "Open connections."),
    Figure("link_up", "gauge", "link", "1 if a neighbour is connected and both have met."),
    Figure("link_sent", "counter", "link", "Events that were sent to a neighbour, repetitions included."),
    Figure("link_received", "counter", "link", "Events that came from a neighbour."),
    Figure("link_known", "counter", "link", "Events of a neighbour that had been here before."),
    Figure("link_unacknowledged", "gauge", "link", "Events that a neighbour has not on its disk yet."),
    Figure("link_waiting_control", "gauge", "link", "Control messages that a neighbour has not heard yet."),
    Figure("link_begun", "counter", "link", "Sessions in which every filter was sent anew."),
    Figure("link_resumed", "counter", "link", "Connections that went on where the last one broke."),
    Figure("link_lost", "counter", "link", "Gaps of the log for which a neighbour was too far behind."),
    Figure("link_bytes_in", "counter", "link", "Bytes that came from a neighbour."),
    Figure("link_bytes_out", "counter", "link", "Bytes that were written to a neighbour."),
    Figure("function_failures", "counter", "function reason", "Calls of functions of the host that gave no value."),
    Figure("log_first", "gauge", "", "The position of the oldest event of the log."),
    Figure("log_head", "gauge", "", "The position of the newest event that is on disk."),
    Figure("ready", "gauge", "", "1 if the broker takes events."),
)


class Figures:
    """All figures of a broker."""

    def __init__(self) -> None:
        self.events_taken: Counter[str] = Counter()
        self.events_known = 0
        self.events_refused: Counter[str] = Counter()
        self.deliveries: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.disk_seconds = Histogram()
        self.match_seconds = Histogram()
        self.group_events = Histogram(EVENTS)
        self.publish_to_deliver_seconds = Histogram()
        self.loop_lag_seconds = Histogram()
        self.gc_seconds = Histogram()
        self.subscribers: Counter[str] = Counter()
        self.behind_events = 0
        self.subscriptions = 0
        self.remembering: Counter[str] = Counter()
        self.told: Counter[str] = Counter()
        self.open_subscriptions = 0
        self.connections = 0
        self.link_up: Counter[str] = Counter()
        self.link_sent: Counter[str] = Counter()
        self.link_received: Counter[str] = Counter()
        self.link_known: Counter[str] = Counter()
        self.link_unacknowledged: Counter[str] = Counter()
        self.link_waiting_control: Counter[str] = Counter()
        self.link_begun: Counter[str] = Counter()
        self.link_resumed: Counter[str] = Counter()
        self.link_lost: Counter[str] = Counter()
        self.link_bytes_in: Counter[str] = Counter()
        self.link_bytes_out: Counter[str] = Counter()
        self.function_failures: Counter[tuple[str, str]] = Counter()
        self.log_first = 0
        self.log_head = 0
        self.ready = 0

    def count_failures(self, functions: Functions) -> None:
        """Take over what functions of the host could not do so far."""
        for function, failures in functions.failures.items():
            for reason, count in failures.items():
                self.function_failures[function, reason] = count

    def text(self) -> str:
        """Return all figures in the exposition format of Prometheus."""
        return "".join(f"{line}\n" for figure in FIGURES for line in self._lines(figure))

    def _lines(self, figure: Figure) -> Iterator[str]:
        name, value = figure.name, getattr(self, figure.attribute)
        yield f"# HELP {name} {figure.meaning}"
        yield f"# TYPE {name} {figure.kind}"
        if isinstance(value, Histogram):
            seen = 0
            for bound, count in zip((*value.bounds, None), list(value.counts), strict=True):
                seen += count
                yield f'{name}_bucket{{le="{"+Inf" if bound is None else f"{bound:g}"}"}} {seen}'
            yield f"{name}_sum {value.total!r}"
            yield f"{name}_count {seen}"
        elif isinstance(value, Counter):
            names = figure.label.split()
            for label, count in sorted(value.copy().items()):
                values = (label,) if isinstance(label, str) else label
                labels = [f'{key}="{_escaped(each)}"' for key, each in zip(names, values, strict=True)]
                yield f"{name}{{{','.join(labels)}}} {count}"
        else:
            yield f"{name} {value}"


def _escaped(label: str) -> str:
    return label.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
