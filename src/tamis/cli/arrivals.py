"""How do events come to `tamis run`? From a pipe, or from what the table of schemes names.

Any event is called by the attribute that `--event-id` names, if it has it, and else as its source calls it
(`tamis.sources.arriving`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.text import Text

from tamis.cli.output import show, to_complain, visible
from tamis.sources.arriving import pipe_batches
from tamis.sources.match_names import named_by
from tamis.sources.places import source_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.sources.arriving import ArrivedBatch, BadLines


def arriving(
    events: str, options: dict[str, str], bad: BadLines, event_id: str | None, durable: str | None, ack_wait_s: float
) -> Iterator[ArrivedBatch]:
    """Yield events as they come."""
    for batch in _batches(events, options, bad, durable, ack_wait_s):
        names = batch.names
        if event_id is not None:
            pairs = zip(batch.events, names, strict=True)
            names = [named_by(event_id, event) or name for event, name in pairs]
        yield batch._replace(names=names)


def _batches(
    events: str, options: dict[str, str], bad: BadLines, durable: str | None, ack_wait_s: float
) -> Iterator[ArrivedBatch]:
    if events == "-":
        return pipe_batches(sys.stdin.buffer, bad)
    source = source_at(events)
    source_batches: Iterator[ArrivedBatch]
    if durable is not None:
        assert source.durable is not None, "that was looked at first"
        source_batches = source.durable(events, options, bad, durable, ack_wait_s)
    else:
        assert source.arriving is not None, "that was looked at first"
        source_batches = source.arriving(events, options, bad)
    return source_batches


def show_bad_lines(bad: BadLines) -> None:
    """Tell of lines that are not events, if there are any."""
    if bad.count:
        lines = "1 line is not a JSON object" if bad.count == 1 else f"{bad.count:,} lines are not JSON objects"
        show(to_complain(), Text.assemble(("✗ ", "bold red"), (f"{lines}, and left out:", "bold")), below="  ")
        for line in bad.first:
            show(to_complain(), Text(f"  {visible(line)}"), below="    ")
