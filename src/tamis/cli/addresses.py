"""What does an address on the command line stand for, and is anybody there?

Events may come from a stream of NATS or a topic of Kafka, and matches go to a stream of NATS or to a webhook. All that
can be seen without Spark is looked at before Spark starts: a wrong address costs a moment, not half a minute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tamis.cli.inputs import InputError
from tamis.sources.nats_address import is_nats, scheme_of

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


def read_options(written: Sequence[str] | None, flag: str) -> dict[str, str]:
    """Read NAME=VALUE pairs.

    >>> read_options(["start=latest", "header.X-Key=a=b"], "--events-option")
    {'start': 'latest', 'header.X-Key': 'a=b'}
    """
    found = {}
    for each in written or ():
        name, separator, value = each.partition("=")
        if not separator or not name:
            raise InputError(f"{flag} takes NAME=VALUE, not {each!r}")
        found[name] = value
    return found


def is_stream(events: str) -> bool:
    """Do events come from a server, and not from files?"""
    return scheme_of(events) == "kafka" or is_nats(events)


def look_at_events(events: str, options: dict[str, str], *, streaming: bool) -> None:
    """Raise unless a server of events is addressed as it should be and, as far as that can be seen now, answers."""
    if scheme_of(events) == "kafka":
        from tamis.spark.kafka import kafka_address

        kafka_address(events)
    elif is_stream(events):
        from tamis.sources.places import require_source

        require_source(events, options, streaming=streaming)
    elif scheme_of(events) in ("http", "https"):
        raise InputError("events are not fetched from web servers", hint="Name files, or a stream: nats:// or kafka://")


def look_at_out(out: str, options: dict[str, str]) -> None:
    """Raise if matches cannot be written to a place, as far as that can be seen now."""
    from tamis.sources.places import is_url, require_place

    require_place(out, options)
    if is_url(out) and scheme_of(out) not in ("http", "https"):
        from tamis.sources.places import require_sink

        require_sink(out, options)


def connector(events: str, jars: str | None) -> dict[str, str]:
    """Return how Spark gets its connector to Kafka, if it needs one."""
    if jars:
        return {"spark.jars": jars}
    if scheme_of(events) != "kafka":
        return {}
    from tamis.spark.kafka import kafka_packages

    return kafka_packages()


def events_of(
    session: Any,
    events: str,
    options: dict[str, str],
    schema: str | None,
    keep: list[str] | None,
    remembered: str | None = None,
    *,
    streaming: bool,
) -> Any:
    """Return the events of a server, as a table or as a stream."""
    from tamis.spark.kafka import kafka_events
    from tamis.spark.sources.nats_events import nats_events

    read = kafka_events if scheme_of(events) == "kafka" else nats_events
    return read(
        session, events, schema=schema, keep=keep or (), streaming=streaming, remembered=remembered, options=options
    )
