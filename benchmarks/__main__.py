"""Run the benchmarks, print a table for each, and write the rows with all that is needed to read them later.

python -m benchmarks                                                        all of them
python -m benchmarks parsing churn                                          these
python -m benchmarks growth --full                                          with a million subscriptions too
python -m benchmarks service --rows S7 S9                                   these rows of it
python -m benchmarks network --rows trees --subscriptions 1000 10000        a tree of seven brokers
python -m benchmarks throughput --workloads w1 w2 --subscriptions 10000     smaller, or larger

A row whose `wrong` is not 0 makes it fail: a fast wrong answer is not a result.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.algorithms import against_published, algorithms, phases
from benchmarks.cases import CASES
from benchmarks.changes import changes
from benchmarks.choices import choices
from benchmarks.destinations import destinations
from benchmarks.imperfection import routing_imperfection
from benchmarks.json_events import json_events, json_lines
from benchmarks.living import replaced_rules, sighted, updates_left
from benchmarks.logging_events import logging_events
from benchmarks.matching import growth, single_events, threads, throughput
from benchmarks.network import ROWS as NETWORK_ROWS
from benchmarks.network import network
from benchmarks.otherwise import otherwise
from benchmarks.parsing import parsing
from benchmarks.pipelining import pipelining
from benchmarks.pruned_brokers import one_neighbour, pruned_brokers
from benchmarks.pruning import advertised, any_overlap, bulk_pruning, overlap, pruning_on_spark
from benchmarks.ranked_desk import ranked_desk
from benchmarks.reading_texts import reading_a_million, reading_texts
from benchmarks.receiving import batch_sizes, receiving
from benchmarks.registration import churn, registration
from benchmarks.relations import covering, hard_relations, relations, solvers, worst_texts
from benchmarks.routing import routing_costs, routing_events, routing_slices, routing_tables
from benchmarks.service import ROWS as SERVICE_ROWS
from benchmarks.service import service
from benchmarks.shares_of_time import shares_of_time
from benchmarks.spark import spark, spark_growth, spark_start
from benchmarks.spark_forests import spark_forests
from benchmarks.spark_keeping import spark_keeping
from benchmarks.spark_latency import spark_compiling, spark_latency, spark_scaling
from benchmarks.spark_reducing import spark_reducing
from benchmarks.spark_sql import spark_sql
from benchmarks.standing import standing_memory, standing_sequences, standing_thresholds
from benchmarks.topk import ranked, ranked_growth, ranked_indexes
from benchmarks.topk_scores import ranked_arriving, ranked_scores
from benchmarks.trees_of_graphs import trees_of_graphs
from benchmarks.warm_up import warm_up
from benchmarks.watching import watching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.status import Status

BENCHMARKS: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "parsing": parsing,
    "throughput": throughput,
    "single_events": single_events,
    "growth": growth,
    "threads": threads,
    "otherwise": otherwise,
    "shares_of_time": shares_of_time,
    "registration": registration,
    "churn": churn,
    "reading_texts": reading_texts,
    "reading_a_million": reading_a_million,
    "warm_up": warm_up,
    "json_events": json_events,
    "json_lines": json_lines,
    "watching": watching,
    "destinations": destinations,
    "batch_sizes": batch_sizes,
    "changes": changes,
    "choices": choices,
    "replaced_rules": replaced_rules,
    "updates_left": updates_left,
    "sighted": sighted,
    "algorithms": algorithms,
    "against_published": against_published,
    "phases": phases,
    "pipelining": pipelining,
    "relations": relations,
    "solvers": solvers,
    "hard_relations": hard_relations,
    "worst_texts": worst_texts,
    "covering": covering,
    "bulk_pruning": bulk_pruning,
    "pruning_on_spark": pruning_on_spark,
    "overlap": overlap,
    "any_overlap": any_overlap,
    "advertised": advertised,
    "pruned_brokers": pruned_brokers,
    "one_neighbour": one_neighbour,
    "routing_tables": routing_tables,
    "routing_costs": routing_costs,
    "routing_slices": routing_slices,
    "routing_events": routing_events,
    "ranked_desk": ranked_desk,
    "receiving": receiving,
    "routing_imperfection": routing_imperfection,
    "logging_events": logging_events,
    "ranked": ranked,
    "ranked_growth": ranked_growth,
    "ranked_indexes": ranked_indexes,
    "ranked_scores": ranked_scores,
    "ranked_arriving": ranked_arriving,
    "standing_sequences": standing_sequences,
    "standing_thresholds": standing_thresholds,
    "standing_memory": standing_memory,
    "service": service,
    "network": network,
    "trees_of_graphs": trees_of_graphs,
    "spark": spark,
    "spark_forests": spark_forests,
    "spark_keeping": spark_keeping,
    "spark_latency": spark_latency,
    "spark_scaling": spark_scaling,
    "spark_compiling": spark_compiling,
    "spark_reducing": spark_reducing,
    "spark_sql": spark_sql,
    "spark_growth": spark_growth,
    "spark_start": spark_start,
}
FULL: dict[str, dict[str, Any]] = {
    "throughput": {"subscription_counts": (100_000, 1_000_000)},
    "single_events": {"subscription_counts": (100_000, 1_000_000)},
    "growth": {"subscription_counts": (1_000, 10_000, 100_000, 1_000_000)},
    "threads": {"subscription_counts": (100_000, 1_000_000)},
    "shares_of_time": {"subscription_counts": (1_000, 10_000, 100_000, 1_000_000)},
    "registration": {"subscription_count": 1_000_000},
    "algorithms": {"subscription_counts": (1_000, 10_000, 100_000, 1_000_000)},
    "against_published": {"subscription_counts": (100_000, 1_000_000)},
    "phases": {"subscription_counts": (100_000, 1_000_000)},
    "covering": {"subscription_counts": (1_000, 10_000, 100_000, 1_000_000)},
    "bulk_pruning": {"names": ("auction",), "subscription_counts": (10_000, 100_000, 1_000_000)},
    "pruning_on_spark": {"subscription_counts": (10_000, 100_000, 1_000_000)},
    "network": {"subscription_counts": (1_000, 10_000, 100_000)},
    "routing_tables": {
        "subscription_counts": (1_000, 10_000, 100_000, 1_000_000),
        "names": ("similar",),
        "most_s": 1_800.0,
        "most_gb": 16.0,
    },
    "ranked_growth": {"ks": (1, 3, 9, 27, 81), "ns": (500, 2_000, 8_000, 40_000)},
}
"""What `--full` asks for; it takes gigabytes, and most of an hour, the tables of brokers two hours."""
RESULTS = Path("artifacts/benchmarks")
_PACKAGES = ("tamis", "numba", "numpy", "pyarrow", "sqlglot")
_WIDTH = 120


def main(words: Sequence[str]) -> int:
    """Run the named benchmarks, or all; return how many had a wrong row."""
    options = _options(words)
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    wrong = 0
    names = options.names or list(BENCHMARKS)
    for name in names:
        benchmark = BENCHMARKS[name]
        arguments = _arguments(name, options)
        question = (benchmark.__doc__ or "").splitlines()[0]
        told = {**_circumstances(), "arguments": _defaults(benchmark) | arguments}
        rows: list[dict[str, Any]] = []
        RESULTS.mkdir(parents=True, exist_ok=True)
        try:
            with console.status(f"{name}: {question}") as status:
                for row in benchmark(**arguments, **_progress(benchmark, console, status, name)):
                    rows.append(row)
                    status.update(f"{name}, {len(rows)} rows; the last: {' '.join(map(_cell, row.values()))}")
                    # Written with every row: some benchmarks take most of an hour, and may be stopped before their end.
                    (RESULTS / f"{options.file or name}.json").write_text(
                        json.dumps({**told, "rows": rows}, indent=2) + "\n"
                    )
        finally:
            if rows:
                console.print(_table(name, rows))
            if rows and find_spec("matplotlib"):
                from benchmarks.charts import draw_rows

                if drawn := draw_rows(options.file or name, rows, RESULTS):
                    console.print(f"drawn: {drawn}")
        wrong += any(row.get("wrong") for row in rows)
    if find_spec("matplotlib"):
        from benchmarks.plots import draw, draw_otherwise

        for drawing, sources in ((draw, {"growth", "shares_of_time"}), (draw_otherwise, {"otherwise"})):
            if sources & set(names) and (drawn := drawing(RESULTS)):
                console.print(f"drawn: {drawn}")
    return wrong


def _options(words: Sequence[str]) -> Namespace:
    about, _, usage = (__doc__ or "").partition("\n\n")
    options = ArgumentParser("benchmarks", description=about, epilog=usage, formatter_class=RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}")
    options.add_argument("--full", action="store_true", help="with a million subscriptions too")
    options.add_argument("--workloads", nargs="+", metavar="NAME", help=f"some of {', '.join(CASES)}")
    options.add_argument(
        "--rows",
        nargs="+",
        metavar="NAME",
        help=f"of service: some of {', '.join(SERVICE_ROWS)}; of network: {', '.join(NETWORK_ROWS)}",
    )
    options.add_argument("--strategies", nargs="+", metavar="NAME", help="of networks and routing: some of them")
    options.add_argument("--patience", type=float, metavar="SECONDS", help="of network: how long to wait for a tree")
    options.add_argument("--file", metavar="NAME", help="the results are in artifacts/benchmarks/NAME.json")
    options.add_argument("--subscriptions", nargs="+", type=int, metavar="COUNT", help="how many")
    found = options.parse_intermixed_args(words)
    for given, known, what in (
        (found.names, BENCHMARKS, "benchmark"),
        (found.workloads or (), CASES, "workload"),
        (found.rows or (), (*SERVICE_ROWS, *NETWORK_ROWS), "row"),
    ):
        for name in given:
            if name not in known:
                options.error(f"there is no {what} {name!r}; there are: {', '.join(known)}")
    return found


def _arguments(name: str, options: Namespace) -> dict[str, Any]:
    """Return what the options say, as far as the benchmark asks for it."""
    wanted = dict(FULL.get(name, {})) if options.full else {}
    if options.workloads:
        wanted |= {"names": tuple(options.workloads), "name": options.workloads[0]}
    if options.rows:
        wanted |= {"rows": tuple(options.rows)}
    if options.strategies:
        wanted |= {"strategies": tuple(options.strategies)}
    if options.patience:
        wanted |= {"patience_s": options.patience}
    if options.subscriptions:
        wanted |= {"subscription_counts": tuple(options.subscriptions), "subscription_count": options.subscriptions[-1]}
    return {key: value for key, value in wanted.items() if key in signature(BENCHMARKS[name]).parameters}


def _progress(benchmark: Callable[..., Any], console: Console, status: Status, name: str) -> dict[str, Any]:
    """Return whom a benchmark whose rows take long tells what it does, if it wants to tell."""
    if "progress" not in signature(benchmark).parameters:
        return {}

    def tell(text: str) -> None:
        status.update(f"{name}: {text}")
        if not console.is_terminal:
            print(f"{datetime.now(UTC):%H:%M:%S} {name}: {text}", file=sys.stderr, flush=True)

    return {"progress": tell}


def _defaults(benchmark: Callable[..., Any]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in signature(benchmark).parameters.items()}


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    # Headings are broken between words, values not at all; where that is too wide, columns stand closer.
    columns = {column: [_cell(row[column]) for row in rows] for column in rows[0]}
    widths = [max(map(len, [*column.split("_"), *cells])) for column, cells in columns.items()]
    gap = 1 if sum(widths) + 2 * len(widths) <= _WIDTH else 0
    table = Table(title=name, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, gap, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        is_text = any(isinstance(row[column], str) for row in rows)
        table.add_column(column.replace("_", " "), justify="left" if is_text else "right", width=width)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*cells)
    return table


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 1_000 else f"{value:,.0f}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _circumstances() -> dict[str, Any]:
    return {
        "commit": _git("rev-parse", "HEAD") or None,
        "is_changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {platform.system()}",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in _PACKAGES},
    }


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
