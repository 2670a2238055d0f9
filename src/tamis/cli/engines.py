"""Which engine matches a table: this process, or Spark? The choice of an execution engine.

This process, as long as that is what one process does in a moment: it needs no Java, and starts at once. Spark is for
what is larger, for what lies where only Spark can read it, and for whoever names a master. The answers are the same.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.inputs import InputError
from tamis.sources.disk import on_disk
from tamis.sources.schemes import Source, scheme_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SPARK_FROM_BYTES = 200_000_000
"""From so many bytes on Spark is worth its start, and Java is to run fast rather than to start soon."""


class Engine(StrEnum):
    """Who matches."""

    auto = "auto"
    local = "local"
    spark = "spark"


EngineOption = Annotated[
    Engine,
    typer.Option(help="Run in this process or on Spark; auto chooses Spark for large tables or if a master is given."),
]


def chosen(
    asked: Engine,
    events: str,
    subscriptions: str,
    out: str,
    options: Mapping[str, str],
    *,
    names_spark: bool,
    rejected: str | None = None,
) -> Engine:
    """Return the engine: the one that is asked for, or the one that fits."""
    reason = _elsewhere(events, subscriptions, out, rejected) or _only_spark(events, options, names_spark)
    if asked is Engine.local and reason is not None:
        raise InputError(f"the local engine cannot do this: {reason}", hint="Leave it to Spark: --engine spark.")
    if asked is not Engine.auto:
        return asked
    return Engine.local if reason is None and size_of((events, subscriptions)) < SPARK_FROM_BYTES else Engine.spark


def _only_spark(events: str, options: Mapping[str, str], names_spark: bool) -> str | None:
    """Return why only Spark can do it; None if one process can."""
    if names_spark or "PYSPARK_GATEWAY_PORT" in os.environ:
        return "a master or jars are named, which are Spark's"
    if _is_read_here(events):
        return None
    from tamis.sources.tables import ENDINGS, OPTIONS

    kind = ENDINGS.get(Path(events.rstrip("/")).suffix.lower())
    unknown = [name for name in options if kind is None or name.lower() not in OPTIONS[kind]]
    return f"the option {unknown[0]!r} is one of Spark's readers" if unknown else None


def _elsewhere(events: str, *others: str | None) -> str | None:
    """Return which address only Spark reaches; None if all lies on this machine, or one process reads the events."""
    for place in (None if _is_read_here(events) else events, *others):
        if place is not None and on_disk(place) is None:
            return f"{place.partition(':')[0]}: addresses are read and written by Spark"
    return None


def _is_read_here(events: str) -> bool:
    """Do events come from a server that one process reads?"""
    scheme = scheme_at(events)
    return scheme.is_server and isinstance(scheme.source, Source) and scheme.source.table is not None


def size_of(paths: Iterable[str]) -> int:
    """Return the bytes of the files that lie on this machine; what lies elsewhere counts nothing."""
    local = (on_disk(path) for path in paths)
    files = (each for path in local if path is not None for each in (path.rglob("*") if path.is_dir() else (path,)))
    return sum(each.stat().st_size for each in files if each.is_file())
