"""What becomes of rows that are not subscriptions, for who runs a command?

They are left out, and never in silence: the first three are shown with their reasons, and all of them go to a file.
With `--strict` they are reason enough to do nothing: exit code 1, and nothing is written.
"""

from __future__ import annotations

import io
import json
import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from tamis.cli.output import NO, show, to_complain, to_programs, visible
from tamis.sources.disk import on_disk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.matching.rejections import Rejected

SHOWN = 3
"""So many are shown; more would push what came out of sight."""

StrictOption = Annotated[
    bool, typer.Option("--strict", help="Exit with 1, and write nothing, if a row is not a valid subscription.")
]
RejectedOption = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="The file for invalid rows and their errors; the default path is printed.",
    ),
]


def rejections_as_json(rejected: Sequence[Rejected], file: str | None) -> dict[str, Any]:
    """Return what a JSON answer says of rejected rows."""
    first = [{"id": row.id, "error": row.error, "message": row.reason} for row in rejected[:SHOWN]]
    return {"rejected": len(rejected), "first_rejected": first, "rejected_file": file if rejected else None}


def show_rejected(rejected: Sequence[Rejected], file: str | None) -> None:
    """Show the first rejected rows, and say where all of them are."""
    if not rejected:
        return
    console = to_complain()
    count = "1 row is not a subscription" if len(rejected) == 1 else f"{len(rejected):,} rows are not subscriptions"
    left_out = "and left out" if file else "so nothing is done"
    first = f"; the first {SHOWN}" if len(rejected) > SHOWN else ""
    show(console, Text.assemble(("✗ ", "bold red"), (f"{count}, {left_out}{first}:", "bold")), below="  ")
    for row in rejected[:SHOWN]:
        line, *more = row.reason.splitlines() or [""]
        name = "a row without an id" if row.id is None else visible(str(row.id))
        show(console, Text.assemble("  ", (name, "cyan"), f": {visible(line)}"), below="    ")
        for below in more:
            console.print(Text(f"    {visible(below)}"), soft_wrap=True)
    if file:
        show(console, Text.assemble("  With their reasons: ", (file, "cyan")), below="    ")
    elif len(rejected) > SHOWN:
        show(console, Text(f"  and {len(rejected) - SHOWN:,} more; without --strict all go to a file"), below="    ")


def refuse(rejected: Sequence[Rejected], as_json: bool) -> None:
    """End the command because of rejected rows; before anything is written."""
    if as_json:
        to_programs({"refused": True, **rejections_as_json(rejected, None)})
    else:
        show_rejected(rejected, None)
    raise typer.Exit(NO)


def write_rejected(rejected: Sequence[Rejected], file: str, id: str, where: str) -> None:
    """Write rejected rows with their reasons; a report of a former run is replaced, and goes if there is nothing."""
    place = on_disk(file)
    if place is None:
        from tamis.spark.folders import file_at

        folder, name = file_at(file)
        folder.remove(name)
    elif place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    if not rejected:
        return
    content = _written(rejected, file.lower().rpartition(".")[2], id, where)
    if place is None:
        folder.put(name, content)
    else:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def _written(rejected: Sequence[Rejected], ending: str, id: str, where: str) -> bytes:
    rows = [{id: row.id, where: row.condition, "error": row.error, "message": row.reason} for row in rejected]
    if ending in ("csv", "parquet"):
        import pyarrow as pa
        from pyarrow import csv, parquet

        buffer = io.BytesIO()
        (csv.write_csv if ending == "csv" else parquet.write_table)(pa.Table.from_pylist(rows), buffer)
        return buffer.getvalue()
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return "".join(lines).encode("utf-8", errors="backslashreplace")
