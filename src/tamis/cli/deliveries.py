"""Where do the matches of `tamis run` go, and when have they arrived? Sinks, and acknowledgements from them.

To standard output, to NATS, to a webhook or to a folder. JSON lines in a folder are written part by part: each is
there, and whole, when its batch is done. What has columns (Parquet, CSV) has those of all matches, so these wait in a
file beside the folder, not in memory, until the last one has come.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from tamis.sources import durable
from tamis.sources.inferring import Columns, json_table
from tamis.sources.match_names import MatchNames
from tamis.sources.places import takes_messages, writing_to
from tamis.sources.tables import format_of, written_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PORTION = 16_384

Event = dict[str, Any]


@contextmanager
def delivering(out: str, options: dict[str, str]) -> Iterator[Callable[[list[Event], list[str]], None]]:
    """Give what takes matches with their names, and returns when they have arrived."""
    if out == "-":
        yield _to_pipe
    elif takes_messages(out):
        yield _to_address(out, options)
    elif format_of(out) == "json":
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        yield lambda rows, names: _write_part(folder, rows, names)
        (folder / "_SUCCESS").touch()
    else:
        with _spooled(out) as take:
            yield take


def _lines(rows: list[Event]) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    return "".join(lines).encode(errors="backslashreplace")


def _to_pipe(rows: list[Event], _: list[str]) -> None:
    sys.stdout.buffer.write(_lines(rows))
    sys.stdout.buffer.flush()


def _to_address(out: str, options: dict[str, str]) -> Callable[[list[Event], list[str]], None]:
    def take(rows: list[Event], names: list[str]) -> None:
        table = json_table(_plain(rows))
        writing_to(out, options, table.schema.names).write(table.to_batches(), MatchNames(names))

    return take


def _plain(rows: list[Event]) -> list[Event]:
    """Return rows as JSON has them: dates and exact numbers of files are texts there."""
    plain: list[Event] = json.loads(json.dumps(rows, default=str))
    return plain


def _write_part(folder: Path, rows: list[Event], names: list[str]) -> None:
    """Add a file; a batch that comes again has the name that it had, and replaces what it wrote."""
    name = f"part-{MatchNames(names).batch_name}.json"
    durable.put(folder / name, _lines(rows))


@contextmanager
def _spooled(out: str) -> Iterator[Callable[[list[Event], list[str]], None]]:
    """Take rows to a file of no name, and write the table when all are there and its columns are known."""
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    columns = Columns()
    with TemporaryFile(dir=Path(out).parent) as spool:

        def take(rows: list[Event], _: list[str]) -> None:
            columns.note(_plain(rows))
            spool.write(_lines(rows))

        yield take
        spool.seek(0)
        with written_table(out) as add:
            is_any = False
            for rows in _portions(spool):
                add(columns.table(rows))
                is_any = True
            if not is_any:
                add(columns.table([]))


def _portions(lines: Any) -> Iterator[list[Event]]:
    rows: list[Event] = []
    for line in lines:
        rows.append(json.loads(line))
        if len(rows) == _PORTION:
            yield rows
            rows = []
    if rows:
        yield rows
