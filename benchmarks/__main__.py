"""Run the benchmarks, print a table for each, and write the rows with all that is needed to read them later.

python -m benchmarks            all of them
python -m benchmarks parsing    these
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.parsing import parsing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BENCHMARKS: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {"parsing": parsing}
RESULTS = Path("artifacts/benchmarks")
_PACKAGES = ("tamis", "pyarrow", "sqlglot")


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all."""
    console = Console()
    for name in names or BENCHMARKS:
        if name not in BENCHMARKS:
            sys.exit(f"there is no benchmark {name!r}; there are: {', '.join(BENCHMARKS)}")
        question = (BENCHMARKS[name].__doc__ or "").splitlines()[0]
        with console.status(f"{name}: {question}"):
            rows = list(BENCHMARKS[name]())
        console.print(_table(name, rows))
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps({**_circumstances(), "rows": rows}, indent=2) + "\n")


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(*rows[0], title=name, title_justify="left")
    for row in rows:
        table.add_row(*(f"{value:,.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    return table


def _circumstances() -> dict[str, Any]:
    told = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return {
        "commit": told.stdout.strip() or None,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in _PACKAGES},
    }


if __name__ == "__main__":
    main(sys.argv[1:])
