"""How does a program follow a stream while it runs?

Spark tells a listener of every micro-batch that is done, with the time of its own steps. Ours puts that beside what
the batch's commit says (events, rows, version of the subscriptions, kernel, Arrow), so that one record holds all of it.
"""

from __future__ import annotations

import sys
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.spark.metrics import Metrics


class BatchListener(StreamingQueryListener):
    """A listener for the micro-batches of one query among those of a session."""

    def __init__(
        self,
        metrics: Metrics,
        on_batch: Callable[[dict[str, Any]], None] | None = None,
        commit_of: Callable[[int], dict[str, Any] | None] | None = None,
    ) -> None:
        """Follow batches that count themselves; or, if they run elsewhere, read their commits."""
        self._metrics, self._on_batch, self._commit_of = metrics, on_batch, commit_of
        self._lock = Lock()
        self._run: str | None = None
        self._early: list[Any] = []
        self._needed: tuple[str, Callable[[], None]] | None = None
        self.ended = Event()
        """Set once Spark has told of the end; every batch was told of before."""

    def follow(self, run: str) -> None:
        """Say which query it is. It has been running for a moment then, and what was told meanwhile is kept."""
        with self._lock:
            self._run = run
            early, self._early = self._early, []
        for progress in early:
            self._take(progress)

    def depend(self, run: str, on_failure: Callable[[], None]) -> None:
        """Say without which other query this one cannot go on, and what to do if that one fails."""
        self._needed = run, on_failure

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name for it
        """Nothing is known yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Take note of a batch."""
        with self._lock:
            if self._run is None:
                self._early.append(event.progress)
                return
        self._take(event.progress)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing has arrived."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Take note of the end, or of that of a query that this one needs."""
        if self._needed is not None and str(event.runId) == self._needed[0]:
            if event.exception is not None:
                self._needed[1]()
            return
        if self._run is None or str(event.runId) == self._run:
            self.ended.set()

    def _take(self, progress: Any) -> None:
        if str(progress.runId) != self._run:
            return
        if self._commit_of is not None and "addBatch" in progress.durationMs:  # an idle trigger has no batch of its own
            committed = self._commit_of(progress.batchId)
            if committed is not None:
                self._metrics.count(committed)
        whole = self._metrics.complete(progress.batchId, progress.durationMs)
        if whole is not None and self._on_batch is not None:
            try:
                self._on_batch(whole)
            except Exception as error:  # Spark would only log it; and a stream outlives who watches it
                print(f"tamis: on_batch failed: {type(error).__name__}: {error}", file=sys.stderr)
