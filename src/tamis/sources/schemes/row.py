"""What is known of a scheme? The record of a connector.

How its addresses look, which options it takes, how events are read from it and matches written to it, in one process
and on Spark, and what is said where that cannot be done. What does the work is named, not imported (`Deferred`): the
table is read by every command, and most commands need neither Arrow nor a client of NATS, and never Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.sources.options import Options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ANY = "<name>"
"""How the name of an option ends that stands for many."""


@dataclass(frozen=True)
class Deferred:
    """A function or class by its name, imported when it is called: "module:name".

    >>> Deferred("tamis.sources.webhook:portions").resolved().__name__
    'portions'
    """

    name: str

    def resolved(self) -> Callable[..., Any]:
        """Return what the name stands for."""
        module, _, name = self.name.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.resolved()(*arguments, **named)


class Refusal(NamedTuple):
    """Why something cannot be done with an address, and what can be done instead."""

    told: str
    hint: str


class Requirement(NamedTuple):
    """A module that has to be installed, and what is said where it is not."""

    module: str
    told: str

    def is_met(self) -> bool:
        """Is the module there? Nothing of it is imported to know that."""
        return find_spec(self.module) is not None


@dataclass(frozen=True)
class Source:
    """How events are read from an address.

    on_spark      `(session, url, *, schema, keep, streaming, remembered, options) -> DataFrame`: as a table of what is
                  there, or as a stream. Files take two more: `kind` and `files`
    look          `(url, options, *, streaming)`: raises if the address or an option means nothing, or nobody answers
    table         `(url, options, schema, keep) -> pyarrow.Table`: what is there, in this process
    arriving      `(url, options, bad_lines) -> Iterator[ArrivedBatch]`: event by event, in this process
    durable       `(url, options, bad_lines, name, ack_wait_s) -> Iterator[ArrivedBatch]`: the same, by a source that
                  remembers what was done
    settings      `() -> dict`: how a session of Spark gets what it needs to read it
    options       what may be said to it; None: whatever Spark's own reader takes
    of_tables     those of the options that mean nothing to a stream
    are_files     whether events lie in files, whose endings say what they hold

    What is None cannot be done; only `on_spark` is there for all.
    """

    on_spark: Deferred
    look: Deferred | None = None
    table: Deferred | None = None
    arriving: Deferred | None = None
    durable: Deferred | None = None
    settings: Deferred | None = None
    options: tuple[str, ...] | None = None
    of_tables: tuple[str, ...] = ()
    are_files: bool = False


@dataclass(frozen=True)
class Sink:
    """How matches are written to an address.

    require       `(url, options)`: raises if the address or an option means nothing; asks nobody
    ask           `(url, options)`: raises unless somebody is there who takes matches; None where only rows can tell
    writing       `(url, options, columns) -> Writing`, whose `write(batches, names)` returns when all rows are taken,
                  in this process and in tasks of Spark; None for files, which are written by their format
    options       what may be said to it; "header.<name>" stands for all that begin with "header."
    """

    require: Deferred
    options: tuple[str, ...]
    ask: Deferred | None = None
    writing: Deferred | None = None

    @property
    def are_files(self) -> bool:
        """Whether matches become files of a folder, and not messages."""
        return self.writing is None


@dataclass(frozen=True)
class Scheme:
    """Everything that is known of one kind of address.

    name          what it is called where options and formats of Spark are named
    title         what people call it
    prefixes      what stands before `://` in its addresses
    form          how an address looks
    source        how events are read; a `Refusal` where they are not
    sink          how matches are written; a `Refusal` where they are not
    formats       the classes that Spark registers for it
    requires      what has to be installed
    """

    name: str
    title: str
    prefixes: tuple[str, ...]
    form: str
    source: Source | Refusal
    sink: Sink | Refusal
    formats: tuple[Deferred, ...] = field(default=())
    requires: Requirement | None = None

    @property
    def is_server(self) -> bool:
        """Whether somebody has to answer at its addresses, as opposed to files."""
        return not (isinstance(self.source, Source) and self.source.are_files)

    def source_options(self, given: Mapping[str, str], *, streaming: bool = False) -> Options:
        """Return what is said to the source, or raise if nobody knows what an option means."""
        assert isinstance(self.source, Source)
        assert self.source.options is not None, "they are those of Spark's reader, which knows them"
        of_tables = self.source.of_tables if streaming else ()
        return Options(self.name, given, [name for name in self.source.options if name not in of_tables])

    def sink_options(self, given: Mapping[str, str]) -> Options:
        """Return what is said to the sink, or raise if nobody knows what an option means."""
        assert isinstance(self.sink, Sink)
        prefixes = tuple(name.removesuffix(_ANY) for name in self.sink.options if name.endswith(_ANY))
        return Options(self.name, given, self.sink.options, prefixes)
