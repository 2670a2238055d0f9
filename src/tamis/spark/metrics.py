"""What does an operator see of a running stream?

Counters and the figures of the last batch, for a program (`Metrics.last`) and as the text that Prometheus reads.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

_TOLD = {
    "batches_total": ("counter", "micro-batches that were committed"),
    "events_total": ("counter", "events that were matched"),
    "rows_total": ("counter", "rows that came out"),
    "batch_seconds_total": ("counter", "time spent in micro-batches"),
    "kernel_seconds_total": ("counter", "time that workers spent matching, all of them together"),
    "compile_seconds_total": ("counter", "time spent on new versions of the subscriptions"),
    "version": ("gauge", "the version of the subscriptions that the last micro-batch saw"),
    "subscriptions": ("gauge", "how many subscriptions that version has"),
    "rejected": ("gauge", "how many rows of that version are no subscriptions"),
}
_SUMS = {
    "events_total": "rows_in",
    "rows_total": "rows_out",
    "batch_seconds_total": "batch_s",
    "kernel_seconds_total": "kernel_s",
    "compile_seconds_total": "compile_s",
}


class Metrics:
    """What has happened so far.

    >>> metrics = Metrics()
    >>> metrics.count({"rows_in": 10, "rows_out": 3, "version": 2, "subscriptions": 5, "batch_s": 0.5})
    >>> print(metrics.prometheus().splitlines()[5])
    tamis_stream_events_total 10
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, float] = dict.fromkeys(_TOLD, 0)
        self.last: dict[str, Any] | None = None
        """The record of the last batch."""

    def count(self, record: dict[str, Any]) -> None:
        """Take note of a batch."""
        with self._lock:
            self.last = record
            self._values["batches_total"] += 1
            for name, key in _SUMS.items():
                self._values[name] += record.get(key) or 0
            for name in ("version", "subscriptions", "rejected"):
                self._values[name] = record.get(name) or 0

    def as_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        with self._lock:
            return dict(self._values)

    def prometheus(self, labels: str = "") -> str:
        """Return the figures as Prometheus reads them; labels such as '{stream="auctions"}' if you like."""
        lines = []
        for name, value in self.as_dict().items():
            kind, told = _TOLD[name]
            lines += [f"# HELP tamis_stream_{name} {told}", f"# TYPE tamis_stream_{name} {kind}"]
            lines.append(f"tamis_stream_{name}{labels} {value:.15g}")
        return "\n".join(lines) + "\n"
