"""Where do the figures of a running stream go? To a page that Prometheus looks at, or to a file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.text import Text

from tamis.cli.output import show, to_complain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tamis.spark.metrics import Metrics


@contextmanager
def served(metrics: Metrics, port: int | None) -> Iterator[None]:
    """Serve the figures meanwhile, if a port is named, and say where."""
    if port is None:
        yield
        return
    from tamis.spark.exposition import MetricsPage

    with MetricsPage(metrics, port) as page:
        show(to_complain(), Text.assemble("Figures for Prometheus: ", (page.url, "cyan")))
        yield


def write_figures(path: Path | None, metrics: Metrics) -> None:
    """Write the figures to a file, if one is named; whoever reads it meanwhile sees all of them."""
    if path is not None:
        beside = path.with_name(f".{path.name}.part")
        beside.write_text(metrics.prometheus(), encoding="utf-8")
        beside.replace(path)
