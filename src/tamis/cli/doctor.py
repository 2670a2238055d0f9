"""Is everything here that tamis needs, and what helps if not?

What is essential (Python, the libraries, kernels that compile and match) decides the exit code; what only some commands
need (Java, Spark, NATS, a port for `tamis serve`) is told, with the command that installs it.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from tamis import __version__
from tamis.cli.lessons import Example
from tamis.cli.output import NO, AsJson, to_complain, to_people, to_programs, visible
from tamis.service.ports import occupant

EXAMPLES = (
    Example("tamis doctor", "What is installed, what is missing, and what to do."),
    Example("tamis doctor --json", "The same for a program, or for a bug report."),
)
NOTES = (
    "It exits with 1 if something essential does not work. The first run compiles kernels, which takes some seconds.",
)

LEAST_PYTHON = (3, 11)
DEFAULT_PORT = 7410
SERVICE = ("aiohttp", "msgspec", *(() if sys.platform == "win32" else ("uvloop",)))
ESSENTIAL = ("numpy", "numba", "pyarrow", "google-re2", "msgpack", "python-sat")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    found: str
    is_well: bool
    is_essential: bool
    advice: str = ""


def doctor(as_json: AsJson = False) -> None:
    """Check that everything tamis needs is installed, and say what to do if it is not."""
    with to_complain().status("Looking, and compiling kernels if this is the first time"):
        findings = [_python(), *map(_library, ESSENTIAL), _cache(), _kernels(), *_spark(), _nats(), *_service()]
    is_well = all(finding.is_well for finding in findings if finding.is_essential)
    if as_json:
        to_programs({"well": is_well, "version": __version__, "findings": [asdict(each) for each in findings]})
    else:
        _show(findings, is_well)
    if not is_well:
        raise typer.Exit(NO)


def _python() -> Finding:
    version = platform.python_version()
    is_well = sys.version_info[:2] >= LEAST_PYTHON
    least = ".".join(map(str, LEAST_PYTHON))
    advice = "" if is_well else f"install Python {least}"
    return Finding("Python", f"{version}, {sys.executable}", is_well, True, advice)


def _library(name: str) -> Finding:
    try:
        return Finding(name, metadata.version(name), True, True)
    except metadata.PackageNotFoundError:
        return Finding(name, "missing", False, True, "pip install tamis")


def _cache() -> Finding:
    """Look where compiled kernels are kept; without such a place every process compiles them anew."""
    try:
        from tamis.compilation import kernel_cache

        folder = kernel_cache()
    except Exception as error:  # what is broken is told; a doctor that dies of it helps nobody
        return Finding("kernel cache", f"{type(error).__name__}: {error}", False, False, _CACHE_ADVICE)
    if folder is None:
        return Finding("kernel cache", "in memory only", False, False, _CACHE_ADVICE)
    return Finding("kernel cache", f"{folder}, writable", True, False)


_CACHE_ADVICE = "name a folder that you may write to: export NUMBA_CACHE_DIR=~/.cache/numba"


def _kernels() -> Finding:
    """Match something, and look whether the answer is right."""
    start = perf_counter()
    events: list[dict[str, Any]] = [{"price": 12, "title": "The House"}, {"price": 25, "title": "The House"}, {}]
    try:
        from tamis.matching import Matcher

        matcher = Matcher()
        matcher.add("cheap", "price < 20 AND title LIKE 'The %'")
        answer = matcher.match(events[0]), matcher.match_batch(events)["event"].to_pylist()
    except Exception as error:
        cause = f"{type(error).__name__}: {error}"
        return Finding("matching", cause, False, True, "install it again: pip install --force-reinstall tamis")
    if answer != (["cheap"], [0]):
        return Finding("matching", f"a wrong answer: {answer}", False, True, "report it, with tamis doctor --json")
    return Finding("matching", f"works, after {perf_counter() - start:.1f} s", True, True)


def _spark() -> list[Finding]:
    """Look for what streams and large tables need."""
    install = "for tamis stream and large tables: pip install 'tamis[spark]'"
    try:
        pyspark = Finding("pyspark", metadata.version("pyspark"), True, False)
    except metadata.PackageNotFoundError:
        pyspark = Finding("pyspark", "missing", False, False, install)
    try:
        from tamis.spark.errors import JavaError
        from tamis.spark.java import java_program, java_version, require_java
    except ImportError:
        return [pyspark]
    try:
        require_java()
    except JavaError as error:
        cause, _, how = str(error).partition("\n")
        return [pyspark, Finding("Java", cause.removesuffix(" Install it:"), False, False, how.strip())]
    return [pyspark, Finding("Java", f"{java_version()}, {java_program()}", True, False)]


def _nats() -> Finding:
    try:
        return Finding("nats-py", metadata.version("nats-py"), True, False)
    except metadata.PackageNotFoundError:
        return Finding("nats-py", "missing", False, False, "for streams of NATS: pip install 'tamis[nats]'")


def _service() -> list[Finding]:
    """Look for what brokers and their clients need: libraries, and a port."""
    return [*map(_service_library, SERVICE), _port(DEFAULT_PORT)]


def _service_library(name: str) -> Finding:
    try:
        return Finding(name, metadata.version(name), True, False)
    except metadata.PackageNotFoundError:
        advice = "for tamis serve and tamis.Client: pip install 'tamis[service]'"
        return Finding(name, "missing", False, False, advice)


def _port(port: int) -> Finding:
    """Look whether a broker could listen where it does if nobody says otherwise."""
    name, advice = f"port {port}", f"end what listens there, or take another one: tamis serve --port {port + 1}"
    try:
        who = occupant(port)
    except OSError as error:
        return Finding(name, f"cannot be used: {error.strerror}", False, False, advice)
    if not who:
        return Finding(name, "free", True, False)
    is_well = who == "a broker"
    return Finding(name, f"{who} listens there", is_well, False, "" if is_well else advice)


def _show(findings: list[Finding], is_well: bool) -> None:
    console = to_people()
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(Text("✓", "bold green"), Text("tamis", "cyan"), f"{__version__}, {Path(__file__).parent.parent}")
    for finding in findings:
        mark, colour = ("✓", "green") if finding.is_well else ("✗", "red") if finding.is_essential else ("–", "yellow")
        table.add_row(Text(mark, f"bold {colour}"), Text(finding.name, "cyan"), visible(finding.found))
        if finding.advice:
            table.add_row("", "", Text(finding.advice, "yellow"))
    console.print(table)
    console.print()
    verdict = "Everything that is essential works." if is_well else "Something essential does not work: see above."
    console.print(Text(verdict, "bold green" if is_well else "bold red"))
