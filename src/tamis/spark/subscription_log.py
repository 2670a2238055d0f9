"""How do subscriptions change while a stream runs, and which were in force when? A versioned log.

A *subscription log* is a folder of numbered Parquet files. Each is one version: what was added (or given another text)
and what was removed since the version before. Nothing in it ever changes, so a batch that recorded the number of its
version can be matched again and gives the same pairs.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from tamis.errors import UnknownFunctionError
from tamis.language import parse
from tamis.language.expressions import postorder
from tamis.language.functions import functions_of, hosted_in
from tamis.matching.admission import CandidateRow, admitted
from tamis.matching.errors import BadTableError
from tamis.matching.tables import Rows, lifetime_error
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.folders import folder_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from tamis.language import Functions, Schema
    from tamis.matching.rejections import Rejected
    from tamis.spark.folders import Place

Changes: TypeAlias = "dict[int | str, str | None]"
"""The text of each subscription that was added, None for one that was removed."""

ADD, REMOVE = "add", "remove"


class Terms(NamedTuple):
    """What a subscription of a log has beside its text."""

    priority: int = 0
    until: float | None = None
    """When it ends, in seconds since 1970; None if it does not by itself."""
    functions: tuple[str, ...] = ()
    """The functions of the host that it calls, each with its version: score@1."""


_USUAL = Terms()


class SubscriptionLog:
    """A set of subscriptions with a history.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     log = SubscriptionLog(folder)
    ...     log.add({"cheap": "price < 20", "signed": "signed"})
    ...     log.remove(["signed"])
    ...     log.at(1), log.at(2)
    1
    2
    ({'cheap': 'price < 20', 'signed': 'signed'}, {'cheap': 'price < 20'})
    """

    def __init__(
        self,
        path: Place,
        schema: Schema | None = None,
        spark: SparkSession | None = None,
        functions: Functions | None = None,
    ) -> None:
        """Take the log of a folder: a path, or an address that Spark reaches, in the session that runs or `spark`.

        Texts may call these `functions` of the host, without them those of the schema; names and versions are kept.
        """
        self.folder = folder_at(path, spark)
        self.schema = schema
        """What texts are checked against when they are added."""
        self.functions = functions_of(functions, schema)
        self._sources: dict[int, str] = {}
        self._since: dict[int, float | None] = {}
        self._latest_terms: tuple[int, dict[Any, Terms]] = (0, {})

    @property
    def path(self) -> str:
        """Where the log lies: a path, or an address."""
        return self.folder.place

    @property
    def version(self) -> int:
        """The newest version; 0 is the empty set."""
        return max((int(name[:-8]) for name in self.folder.names() if name[:-8].isdigit()), default=0)

    @property
    def id_type(self) -> type | None:
        """What the ids are, integers or texts; None as long as there are none."""
        if not self.version:
            return None
        return str if parquet.read_schema(self._file(1)).field("id").type == pa.string() else int

    def add(
        self,
        subscriptions: Mapping[Any, str],
        *,
        priorities: Mapping[Any, int] | None = None,
        untils: Mapping[Any, float] | None = None,
    ) -> int:
        """Add subscriptions, or give them another text; return the version from which on they are in force.

        Some may have a priority, and an end in seconds since 1970, by id; what is not said is 0, and no end.
        """
        return self.change(add=subscriptions, priorities=priorities, untils=untils)

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove subscriptions, as far as they are there; return the version from which on they are gone."""
        return self.change(remove=ids)

    def change(
        self,
        add: Mapping[Any, str] | None = None,
        remove: Iterable[Any] = (),
        *,
        priorities: Mapping[Any, int] | None = None,
        untils: Mapping[Any, float] | None = None,
        since: float | None = None,
    ) -> int:
        """Remove some and add others, in one version, which is in force from a moment on if `since` says so.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     log = SubscriptionLog(folder)
        ...     log.change(add={"cheap": "price < 20"}, since=60.0)
        ...     log.change(add={"cheap": "price < 15"}, since=90.0)
        ...     log.since(1), log.since(2)
        1
        2
        (60.0, 90.0)
        """
        added = dict(add or {})
        for text in added.values():
            parse(text, self.schema, functions=self.functions or None)  # nothing half-registers
        changes: Changes = dict.fromkeys(remove) | added
        return self.append(changes, terms=_terms(added, priorities or {}, untils or {}), since=since)

    def advance(self, now: float) -> int:
        """Remove the subscriptions that have ended by now, in one version; return the newest.

        A log has no clock: whoever reads it says what time it is, as a stream does before each of its batches. What
        has ended is removed by a version as anything else is, so a batch that is matched again gives the same.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     log = SubscriptionLog(folder)
        ...     log.add({"sale": "price < 20"}, untils={"sale": 60.0})
        ...     log.advance(59.9), log.advance(60.0), log.at(2)
        1
        (1, 2, {})
        """
        while True:
            version = self.version
            ended = [
                each for each, terms in self.terms(version).items() if terms.until is not None and terms.until <= now
            ]
            if not ended:
                return version
            content = _encoded(dict.fromkeys(ended), pa.string() if self.id_type is str else pa.int64(), {}, {}, {})
            if self.folder.put_new(f"{version + 1:012}.parquet", content):
                return version + 1
            # Somebody wrote that version meanwhile, and may have given one of them a longer life.

    def load(self, rows: Iterable[Sequence[Any]], schema: Schema | None = None) -> list[Rejected]:
        """Bring the set to what the ids and conditions of a table say, in one version; return the rows that are none.

        A row may have a priority behind its condition. Within a table the first usable row of an id stays, as
        everywhere; against the version before, another text or priority is a change. Where nothing changes there is no
        new version.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     log = SubscriptionLog(folder)
        ...     rejected = log.load([(1, "price < 20"), (1, "price < 30"), (2, "price <")])
        ...     log.at(log.version), [row.error for row in rejected]
        ({1: 'price < 20'}, ['DuplicateIdError', 'ExpressionSyntaxError'])
        """
        asked = [
            CandidateRow(each, text, rest[0] if rest else 0, number) for number, (each, text, *rest) in enumerate(rows)
        ]
        functions = self.functions if schema is None else schema.functions or self.functions
        with functions.in_use():
            _, rejected = admitted(asked, schema or self.schema)
        lost = {row.row for row in rejected}
        wanted = {row.id: row.condition for row in asked if row.place not in lost}
        terms = {row.id: Terms(row.priority or 0) for row in asked if row.place not in lost and row.priority}
        terms = _with_calls(wanted, terms, functions)
        version = self.version
        present, known = self.at(version), self.terms(version)
        changes: Changes = dict.fromkeys(each for each in present if each not in wanted)
        changes |= {
            each: text
            for each, text in wanted.items()
            if present.get(each) != text or known.get(each, _USUAL) != terms.get(each, _USUAL)
        }
        if changes:
            self.append(changes, terms=terms, functions=functions)
        return rejected

    def append(
        self,
        changes: Changes,
        source: str = "",
        sequences: Mapping[Any, int] | None = None,
        terms: Mapping[Any, Terms] | None = None,
        functions: Functions | None = None,
        since: float | None = None,
    ) -> int:
        """Write a version; a `source` that wrote one before writes none again, and gets the version it wrote.

        `sequences` says when changes were made, if somebody knows; `terms` what some have beside their text;
        `functions` are those that texts may call, without them the log's own; `since` is the moment from which on the
        version is in force, in seconds since 1970, for those who ask later what was in force when (`times`).
        """
        terms = _with_calls(changes, terms or {}, self.functions if functions is None else functions)
        kinds = {type(each) for each in changes}
        if kinds - {int, str} or len(kinds) > 1:
            raise ColumnError(
                f"ids must be integers or texts; these are {', '.join(sorted(k.__name__ for k in kinds))}"
            )
        kind = self.id_type or (str if kinds == {str} else int)
        if kinds - {kind}:
            raise ColumnError(f"the ids of {self.folder} are of the type {kind.__name__}, and these are not")
        notes = {"tamis.source": source} if source else {}
        if since is not None:
            notes["tamis.since"] = repr(float(since))
        content = _encoded(changes, pa.string() if kind is str else pa.int64(), notes, sequences or {}, terms)
        while True:
            if source and (written := self.version_of(source)):
                return written
            version = self.version + 1
            if since is not None and (last := self.since(version - 1)) is not None and since < last:
                raise OptionError(f"{self.folder} has a version that is in force since {last}, later than {since}")
            if self.folder.put_new(f"{version:012}.parquet", content):
                return version

    def changes(self, version: int) -> Changes:
        """Return what changed with a version."""
        return {each: text if operation == ADD else None for operation, each, text, _ in self.rows(version)}

    def rows(self, version: int) -> list[tuple[str, Any, str | None, int | None]]:
        """Return the rows of a version: operation, id, condition, and the sequence if the change had one."""
        table = parquet.read_table(self._file(version))
        known = [table[name].to_pylist() for name in ("operation", "id", "condition")]
        sequences = table["sequence"].to_pylist() if "sequence" in table.column_names else [None] * table.num_rows
        return list(zip(*known, sequences, strict=True))

    def at(self, version: int) -> dict[Any, str]:
        """Return the subscriptions of a version."""
        texts: dict[Any, str] = {}
        for number in range(1, version + 1):
            for each, text in self.changes(number).items():
                if text is None:
                    texts.pop(each, None)
                else:
                    texts[each] = text
        return texts

    def terms_of(self, version: int) -> dict[Any, Terms]:
        """Return what came with a version beside texts: priorities, ends, functions; of what was added and has any."""
        table = parquet.read_table(self._file(version))
        columns = [
            table[name].to_pylist() if name in table.column_names else [empty] * table.num_rows
            for name, empty in (("id", None), ("priority", 0), ("until", None), ("functions", ""))
        ]
        terms = (
            (each, Terms(priority or 0, until, tuple((called or "").split())))
            for each, priority, until, called in zip(*columns, strict=True)
        )
        return {each: own for each, own in terms if own != _USUAL}

    def terms(self, version: int) -> dict[Any, Terms]:
        """Return the priorities, ends and functions of the subscriptions of a version, of those that have any.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     log = SubscriptionLog(folder)
        ...     log.add({"cheap": "price < 20", "signed": "signed"}, priorities={"signed": 3})
        ...     log.terms(1)
        1
        {'signed': Terms(priority=3, until=None, functions=())}
        """
        known, terms = self._latest_terms if self._latest_terms[0] <= version else (0, {})
        terms = dict(terms)
        for number in range(known + 1, version + 1):  # what is written never changes
            for each in self.changes(number):
                terms.pop(each, None)
            terms |= self.terms_of(number)
        self._latest_terms = version, terms
        return dict(terms)

    def demand(self, version: int, functions: Functions) -> None:
        """Raise unless these are all functions that the subscriptions of a version call, in the versions they had."""
        for each, terms in self.terms(version).items():
            for written in terms.functions:
                try:
                    functions.hosted(written)
                except UnknownFunctionError as error:
                    error.add_note(f"the subscription {each!r} of {self.folder} calls it")
                    raise

    def since(self, version: int) -> float | None:
        """Return the moment from which on a version is in force, in seconds since 1970; None if nobody said.

        A version that says nothing, such as one that removes what has ended, is in force since the one before.
        """
        for number in range(version, 0, -1):
            if number not in self._since:  # what is written never changes
                metadata = parquet.read_schema(self._file(number)).metadata or {}
                written = metadata.get(b"tamis.since")
                self._since[number] = None if written is None else float(written)
            if self._since[number] is not None:
                return self._since[number]
        return None

    def version_of(self, source: str) -> int | None:
        """Return the version that a source has written; None if it has not."""
        for version in range(self.version, 0, -1):
            if version not in self._sources:  # what is written never changes
                metadata = parquet.read_schema(self._file(version)).metadata or {}
                self._sources[version] = metadata.get(b"tamis.source", b"").decode()
            if self._sources[version] == source:
                return version
        return None

    def _file(self, version: int) -> pa.BufferReader:
        content = self.folder.read(f"{version:012}.parquet")
        if content is None:
            raise OptionError(f"{self.folder} has no version {version}, only 1 to {self.version}")
        return pa.BufferReader(content)


def _terms(added: Changes, priorities: Mapping[Any, int], untils: Mapping[Any, float]) -> dict[Any, Terms]:
    """Return what subscriptions have beside their texts, having seen that it can be."""
    for each in (*priorities, *untils):
        if each not in added:
            raise BadTableError(f"{each!r} has a priority or an end, and is not among what is added")
    for each, until in untils.items():
        if until is None or (error := lifetime_error(until)) is not None:
            raise BadTableError(f"the subscription {each!r}: {error if until is not None else 'it has no end: None'}")
    ids = list(priorities)
    rows = Rows(ids, [added[each] for each in ids], list(priorities.values()))
    objection = rows.first_objection()
    if objection is not None:
        raise BadTableError(f"the subscription {ids[objection[0]]!r}: {objection[1]}")
    return {each: Terms(priorities.get(each, 0), untils.get(each)) for each in {**priorities, **untils}}


def _with_calls(
    changes: Mapping[Any, str | None], terms: Mapping[Any, Terms], functions: Functions
) -> dict[Any, Terms]:
    """Return what subscriptions have beside their texts, with the functions that these call."""
    own = dict(terms)
    if functions:
        for each, text in changes.items():
            if text is not None:
                called = hosted_in(postorder(parse(text, functions=functions)))
                if called:
                    written = tuple(f"{name}@{version}" for name, version in sorted(called.items()))
                    own[each] = own.get(each, _USUAL)._replace(functions=written)
    return own


def _encoded(
    changes: Changes, kind: Any, notes: dict[str, str], sequences: Mapping[Any, int], terms: Mapping[Any, Terms]
) -> bytes:
    columns = {
        "operation": pa.array([REMOVE if text is None else ADD for text in changes.values()], pa.string()),
        "id": pa.array(list(changes), kind),
        "condition": pa.array(list(changes.values()), pa.string()),
    }
    if sequences:
        columns["sequence"] = pa.array([sequences.get(each) for each in changes], pa.int64())
    own = [_USUAL if text is None else terms.get(each, _USUAL) for each, text in changes.items()]
    if any(each.priority for each in own):  # columns that say nothing are left out, as before there were any
        columns["priority"] = pa.array([each.priority for each in own], pa.int64())
    if any(each.until is not None for each in own):
        columns["until"] = pa.array([each.until for each in own], pa.float64())
    if any(each.functions for each in own):
        columns["functions"] = pa.array([" ".join(each.functions) for each in own], pa.string())
    table = pa.table(columns)
    if notes:
        table = table.replace_schema_metadata(notes)
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()
