"""What does an address on the command line stand for, and is anybody there?

Events may come from a stream of NATS or a topic of Kafka, and matches go to a stream of NATS or to a webhook: whatever
the table of schemes says (`tamis.sources.schemes`). All that can be seen without Spark is looked at before Spark
starts: a wrong address costs a moment, not half a minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.inputs import InputError
from tamis.sources.schemes import Refusal, Sink, Source, scheme_at, table

if TYPE_CHECKING:
    from collections.abc import Sequence

SchemaOption = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="COLUMNS",
        help="The columns of the events: 'price double, title string'. The default is inferred from the first events.",
    ),
]
EventsOption = Annotated[
    list[str] | None,
    typer.Option("--events-option", metavar="NAME=VALUE", help="An option of the source; may be repeated."),
]
OutOption = Annotated[
    list[str] | None,
    typer.Option("--out-option", metavar="NAME=VALUE", help="An option of the sink; may be repeated."),
]
JarsOption = Annotated[
    str | None,
    typer.Option("--jars", metavar="PATHS", help="Comma-separated jars for Spark, such as its Kafka connector."),
]


_IN_ADDRESSES = ("url", "stream")
"""What an address says already."""


def read_options(written: Sequence[str] | None, flag: str) -> dict[str, str]:
    """Read NAME=VALUE pairs.

    >>> read_options(["start=latest", "header.X-Key=a=b"], "--events-option")
    {'start': 'latest', 'header.X-Key': 'a=b'}
    """
    options = {}
    for each in written or ():
        name, separator, value = each.partition("=")
        if not separator or not name:
            raise InputError(f"{flag} takes NAME=VALUE, not {each!r}")
        options[name] = value
    return options


def options_help() -> str:
    """Say which options the schemes have, beside what stands in an address.

    >>> print(options_help())
    Of NATS as a source: subject, ... Of webhooks as a sink: batch_rows, ...
    """
    sentences = []
    for scheme in table.SCHEMES:
        ways = []
        if isinstance(scheme.source, Source):
            ways.append(("as a source", scheme.source.options or (), scheme.source.of_tables))
        if isinstance(scheme.sink, Sink):
            ways.append(("as a sink", scheme.sink.options, ()))
        names = [
            (way, [name for name in options if name not in (*_IN_ADDRESSES, *left)]) for way, options, left in ways
        ]
        parts = [f"{way}: {', '.join(some)}" for way, some in names if some]
        sentences += [f"Of {scheme.title} {'; '.join(parts)}."] if parts else []
    return " ".join(sentences)


def is_stream(events: str) -> bool:
    """Do events come from a server, and not from files?"""
    scheme = scheme_at(events)
    return scheme.is_server and isinstance(scheme.source, Source)


def look_at_events(events: str, options: dict[str, str], *, streaming: bool) -> None:
    """Raise unless a server of events is addressed as it should be and, as far as that can be seen now, answers."""
    source = scheme_at(events).source
    if isinstance(source, Refusal):
        raise InputError(source.told, hint=source.hint)
    if source.look is not None:
        source.look(events, options, streaming=streaming)


def look_at_out(out: str, options: dict[str, str]) -> None:
    """Raise if matches cannot be written to a place, as far as that can be seen now."""
    from tamis.sources.places import sink_at

    sink = sink_at(out)
    sink.require(out, options)
    if sink.ask is not None:
        sink.ask(out, options)


def connector(events: str, jars: str | None) -> dict[str, str]:
    """Return how Spark gets what it needs to read these events, such as its connector to Kafka."""
    if jars:
        return {"spark.jars": jars}
    source = scheme_at(events).source
    settings: dict[str, str] = {}
    if isinstance(source, Source) and source.settings is not None:
        settings = source.settings()
    return settings


def events_of(
    session: Any,
    events: str,
    options: dict[str, str],
    schema: str | None,
    keep: list[str] | None,
    remembered: str | None = None,
    *,
    streaming: bool,
    **of_files: Any,
) -> Any:
    """Return the events of a place on Spark, as a table or as a stream; `of_files` is for those that are files."""
    from tamis.sources.places import source_at

    source = source_at(events)
    return source.on_spark(
        session,
        events,
        schema=schema,
        keep=keep or (),
        streaming=streaming,
        remembered=remembered,
        options=options,
        **(of_files if source.are_files else {}),
    )
