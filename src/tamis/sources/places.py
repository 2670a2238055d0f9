"""Can events come from this address, or matches go there? What the table of schemes says, asked and done.

A place that events come from or matches go to is a path or an address with a scheme. What can be seen of it without an
event is looked at before anything takes time: a wrong address costs a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tamis.sources.addresses import without_secrets
from tamis.sources.errors import OptionError
from tamis.sources.options import Options
from tamis.sources.schemes.row import Sink, Source
from tamis.sources.schemes.table import FILES, scheme_at

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    import pyarrow as pa

    from tamis.sources.place import TaskNames


class Writing(Protocol):
    """How rows are written to an address."""

    @property
    def run(self) -> str:
        """The name of this writing, where no query has one."""

    def write(self, batches: Iterable[pa.RecordBatch], place: TaskNames) -> Any:
        """Write rows; return, when all of them are taken, a dataclass of counts."""


def takes_messages(out: str | os.PathLike[str]) -> bool:
    """Is it the address of a server that takes matches, and not a folder?

    >>> [takes_messages(out) for out in ("https://example.org/hook", "nats://localhost/MATCHES", "matches")]
    [True, True, False]
    """
    sink = scheme_at(out).sink
    return isinstance(sink, Sink) and not sink.are_files


def source_at(events: str) -> Source:
    """Return how the events of a place are read; raise if they are not."""
    source = scheme_at(events).source
    if isinstance(source, Source):
        return source
    raise OptionError(f"{source.told}. {source.hint}")


def sink_at(out: str | os.PathLike[str]) -> Sink:
    """Return how matches are written to a place; raise if they are not."""
    sink = scheme_at(out).sink
    if isinstance(sink, Sink):
        return sink
    raise OptionError(f"{sink.told.format(without_secrets(str(out)))}: {sink.hint}")


def require_place(out: str | os.PathLike[str], options: Mapping[str, str]) -> None:
    """Raise if matches cannot go to a place, or its options mean nothing, as far as that can be seen without rows."""
    sink_at(out).require(str(out), options)


def require_no_options(out: str, options: Mapping[str, str]) -> None:
    """Raise if something is said to a folder."""
    Options(FILES.name, options, ())


def writing_to(url: str, options: Mapping[str, str], columns: Sequence[str]) -> Writing:
    """Return how rows with these columns are written to the address of a server."""
    sink = sink_at(url)
    assert sink.writing is not None, "files are written by their format"
    writing: Writing = sink.writing(url, options, columns)
    return writing
