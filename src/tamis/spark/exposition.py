"""Where does Prometheus fetch the figures of a stream?

From a small page of the driver's, on this machine alone unless another address is named: figures are no secret of
the events, but nobody asked to publish them.
"""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

from tamis.spark.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.spark.metrics import Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPage:
    """The figures of a stream under `/metrics`, as long as the page is open.

    >>> from urllib.request import urlopen
    >>> from tamis.spark.metrics import Metrics
    >>> with MetricsPage(Metrics(), port=0) as page, urlopen(page.url) as answer:
    ...     answer.read().decode().splitlines()[2]
    'tamis_stream_batches_total 0'
    """

    def __init__(
        self, metrics: Metrics, port: int, host: str = "127.0.0.1", labels: Mapping[str, str] | None = None
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] == "/metrics":
                    self._answer(200, metrics.prometheus(labels), CONTENT_TYPE)
                else:
                    self._answer(404, "the figures are under /metrics\n", "text/plain; charset=utf-8")

            def _answer(self, status: int, text: str, kind: str) -> None:
                content = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Say nothing: a scrape every few seconds is no news."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise OptionError(f"figures cannot be served on port {port} of {host}: {error}; name another") from error
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}/metrics"
        Thread(target=self._server.serve_forever, name="tamis metrics", daemon=True).start()

    def close(self) -> None:
        """Close the page."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> MetricsPage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
