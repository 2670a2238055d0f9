"""A kind of address that the product does not have: files of JSON lines on a shelf. A record, and what it names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tamis.sources.arriving import ArrivedBatch
from tamis.sources.errors import ConnectorError
from tamis.sources.inferring import json_table
from tamis.sources.json_rows import json_rows
from tamis.sources.schemes import Deferred, Requirement, Scheme, Sink, Source

SHELF = Scheme(
    name="shelf",
    title="shelves",
    prefixes=("shelf",),
    form="shelf:///folder",
    source=Source(
        look=Deferred(f"{__name__}:look"),
        table=Deferred(f"{__name__}:table"),
        arriving=Deferred(f"{__name__}:arriving"),
        on_spark=Deferred(f"{__name__}:on_spark"),
        options=("first",),
        of_tables=("first",),
    ),
    sink=Sink(require=Deferred(f"{__name__}:require"), writing=Deferred(f"{__name__}:writing"), options=("suffix",)),
    requires=Requirement("nothing_of_this_name", "there are no shelves here"),
)


def folder(url):
    return Path(url.partition("://")[2])


def look(url, options, *, streaming):
    SHELF.source_options(options, streaming=streaming)
    if not folder(url).is_dir():
        raise ConnectorError(f"no shelf is at {url}")


def rows(url):
    return [json.loads(line) for file in sorted(folder(url).iterdir()) for line in file.read_text().splitlines()]


def table(url, options, schema, keep):
    return json_table(rows(url)).slice(int(options.get("first", 0)))


def arriving(url, options, bad):
    found = rows(url)
    yield ArrivedBatch([f"{url} {number}" for number in range(len(found))], found, lambda: None)


def on_spark(session, url, *, schema, keep, streaming, remembered, options):
    assert not streaming
    return session.read.json(str(folder(url)))


def require(url, options):
    SHELF.sink_options(options)


@dataclass(frozen=True)
class Shelved:
    """What was written."""

    rows: int


@dataclass(frozen=True)
class Shelving:
    """How rows are written."""

    url: str
    suffix: str
    run: str

    def write(self, batches, place):
        lines = [line for batch in batches for line in json_rows(batch)]
        if lines and lines[0] == '{"number":-1}':
            raise ConnectorError(f"{self.url} is full: nothing more fits")
        folder(self.url).mkdir(exist_ok=True)
        (folder(self.url) / f"{uuid4()}{self.suffix}").write_text("\n".join(lines))
        return Shelved(len(lines))


def writing(url, options, columns):
    return Shelving(url, SHELF.sink_options(options).text("suffix", ".lines"), "run")
