"""What does an operator see of a running stream?

Counters since the start and the figures of the last micro-batch, for a program (`Metrics.last`) and as the text that
Prometheus reads. A batch is told twice: by us when it is committed, and by Spark's listener when Spark has done with
it. Only the second knows how long all of it took, so Spark's own time comes with that.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_COUNTERS = {
    "batches_total": ("", "micro-batches that were committed"),
    "events_total": ("rows_in", "events that were matched"),
    "rows_total": ("rows_out", "rows that came out"),
    "batch_seconds_total": ("batch_s", "time spent in micro-batches, from the choice of the version to the commit"),
    "compile_seconds_total": ("compile_s", "time spent on new versions of the subscriptions"),
    "kernel_seconds_total": ("kernel_s", "time that workers spent matching, all of them together"),
    "forest_seconds_total": ("forest_s", "time that workers spent opening and laying out the subscriptions"),
    "arrow_seconds_total": ("arrow_s", "time that workers spent receiving events and sending matches"),
    "trigger_seconds_total": ("trigger_s", "time that Spark spent on micro-batches, all in all"),
    "spark_seconds_total": ("spark_s", "the part of it in which no worker was at work and nothing was compiled"),
}
_GAUGES = {
    "version": ("version", "the version of the subscriptions that the last micro-batch saw"),
    "subscriptions": ("subscriptions", "how many subscriptions that version has"),
    "rejected": ("rejected", "how many rows of that version are not subscriptions"),
    "last_batch": ("batch", "the number of the last micro-batch"),
    "last_batch_events": ("rows_in", "its events"),
    "last_batch_rows": ("rows_out", "its rows"),
    "last_batch_seconds": ("batch_s", "how long it took"),
    "last_batch_kernel_seconds": ("kernel_s", "how long its workers matched"),
    "last_batch_arrow_seconds": ("arrow_s", "how long its workers received and sent"),
    "last_batch_spark_seconds": ("spark_s", "how much of it was Spark's own"),
    "last_commit_timestamp_seconds": ("committed", "when it was committed, in seconds since 1970"),
}
_WAITING = 100
"""So many batches may wait for Spark's word on them."""


class Metrics:
    """What has happened so far.

    >>> metrics = Metrics()
    >>> metrics.count({"batch": 0, "rows_in": 10, "rows_out": 3, "version": 2, "subscriptions": 5, "batch_s": 0.5})
    >>> print(metrics.prometheus({"stream": "auctions"}).splitlines()[5])
    tamis_stream_events_total{stream="auctions"} 10
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[str, float] = dict.fromkeys([*_COUNTERS, *_GAUGES], 0)
        self._waiting: dict[int, dict[str, Any]] = {}
        self.last: dict[str, Any] | None = None
        """The record of the last batch."""

    def count(self, record: dict[str, Any]) -> None:
        """Take note of a batch that is committed."""
        with self._lock:
            self.last = record
            self._values["batches_total"] += 1
            self._waiting[int(record.get("batch", -1))] = record
            while len(self._waiting) > _WAITING:
                del self._waiting[next(iter(self._waiting))]
            self._add(record, record)

    def complete(self, batch: int, durations_ms: Mapping[str, int]) -> dict[str, Any] | None:
        """Take note of what Spark says of a batch; return all that is known of it, or None if it was not ours.

        >>> metrics = Metrics()
        >>> metrics.count({"batch": 7, "compile_s": 0.25, "workers_s": 0.5})
        >>> metrics.complete(7, {"triggerExecution": 1000, "addBatch": 800})["spark_s"]
        0.25
        >>> metrics.complete(7, {"triggerExecution": 0})  # an idle trigger has the number of the batch before
        """
        with self._lock:
            record = self._waiting.pop(batch, None)
            if record is None:
                return None
            trigger_s = durations_ms.get("triggerExecution", 0) / 1000
            busy_s = (record.get("compile_s") or 0) + (record.get("workers_s") or 0)
            times = {"trigger_s": trigger_s, "spark_s": round(max(0.0, trigger_s - busy_s), 4)}
            whole = record | times | {"durations_ms": dict(durations_ms)}
            is_last = self.last is record
            if is_last:
                self.last = whole
            self._add(times, whole if is_last else {})
            return whole

    def _add(self, added: Mapping[str, Any], shown: Mapping[str, Any]) -> None:
        for name, (key, _) in _COUNTERS.items():
            self._values[name] += added.get(key) or 0
        if shown:
            for name, (key, _) in _GAUGES.items():
                self._values[name] = shown.get(key) or 0

    def as_dict(self) -> dict[str, float]:
        """Return the figures by name."""
        with self._lock:
            return dict(self._values)

    def prometheus(self, labels: Mapping[str, str] | None = None) -> str:
        """Return the figures as Prometheus reads them, with labels if you like."""
        inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in (labels or {}).items())
        inside = f"{{{inside}}}" if inside else ""
        lines = []
        for name, value in self.as_dict().items():
            kind, (_, help_text) = ("counter", _COUNTERS[name]) if name in _COUNTERS else ("gauge", _GAUGES[name])
            lines += [f"# HELP tamis_stream_{name} {help_text}", f"# TYPE tamis_stream_{name} {kind}"]
            lines.append(f"tamis_stream_{name}{inside} {value:.15g}")
        return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
