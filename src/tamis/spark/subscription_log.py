"""How do subscriptions change while a stream runs, and which were in force when? A versioned log.

A *subscription log* is a folder of numbered Parquet files. Each is one version: what was added (or given another text)
and what was removed since the version before. Nothing in it ever changes, so a batch that recorded the number of its
version can be matched again and gives the same pairs.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from tamis.language import parse
from tamis.matching.admission import CandidateRow, admitted
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.folders import folder_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from tamis.language import Schema
    from tamis.matching.rejections import Rejected
    from tamis.spark.folders import Place

Changes: TypeAlias = "dict[int | str, str | None]"
"""The text of each subscription that was added, None for one that was removed."""

ADD, REMOVE = "add", "remove"


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

    def __init__(self, path: Place, schema: Schema | None = None, spark: SparkSession | None = None) -> None:
        """Take the log of a folder: a path, or an address that Spark reaches, in the session that runs or `spark`."""
        self.folder = folder_at(path, spark)
        self.schema = schema
        """What texts are checked against when they are added."""
        self._sources: dict[int, str] = {}

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

    def add(self, subscriptions: Mapping[Any, str]) -> int:
        """Add subscriptions, or give them another text; return the version from which on they are in force."""
        return self.change(add=subscriptions)

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove subscriptions, as far as they are there; return the version from which on they are gone."""
        return self.change(remove=ids)

    def change(self, add: Mapping[Any, str] | None = None, remove: Iterable[Any] = ()) -> int:
        """Remove some and add others, in one version."""
        added = dict(add or {})
        for text in added.values():
            parse(text, self.schema)  # nothing half-registers
        changes: Changes = dict.fromkeys(remove) | added
        return self.append(changes)

    def load(self, rows: Iterable[tuple[Any, Any]], schema: Schema | None = None) -> list[Rejected]:
        """Bring the set to what the ids and conditions of a table say, in one version; return the rows that are none.

        Within a table the first usable row of an id stays, as everywhere; against the version before, another text is
        a change. Where nothing changes there is no new version.

        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     log = SubscriptionLog(folder)
        ...     rejected = log.load([(1, "price < 20"), (1, "price < 30"), (2, "price <")])
        ...     log.at(log.version), [row.error for row in rejected]
        ({1: 'price < 20'}, ['DuplicateIdError', 'ExpressionSyntaxError'])
        """
        asked = [CandidateRow(each, text, 0, number) for number, (each, text) in enumerate(rows)]
        _, rejected = admitted(asked, schema or self.schema)
        lost = {row.row for row in rejected}
        wanted = {row.id: row.condition for row in asked if row.place not in lost}
        present = self.at(self.version)
        changes: Changes = dict.fromkeys(each for each in present if each not in wanted)
        changes |= {each: text for each, text in wanted.items() if present.get(each) != text}
        if changes:
            self.append(changes)
        return rejected

    def append(self, changes: Changes, source: str = "", sequences: Mapping[Any, int] | None = None) -> int:
        """Write a version; a `source` that wrote one before writes none again, and gets the version it wrote.

        `sequences` says when changes were made, if somebody knows.
        """
        kinds = {type(each) for each in changes}
        if kinds - {int, str} or len(kinds) > 1:
            raise ColumnError(
                f"ids must be integers or texts; these are {', '.join(sorted(k.__name__ for k in kinds))}"
            )
        kind = self.id_type or (str if kinds == {str} else int)
        if kinds - {kind}:
            raise ColumnError(f"the ids of {self.folder} are of the type {kind.__name__}, and these are not")
        content = _encoded(changes, pa.string() if kind is str else pa.int64(), source, sequences or {})
        while True:
            if source and (written := self.version_of(source)):
                return written
            version = self.version + 1
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


def _encoded(changes: Changes, kind: Any, source: str, sequences: Mapping[Any, int]) -> bytes:
    columns = {
        "operation": pa.array([REMOVE if text is None else ADD for text in changes.values()], pa.string()),
        "id": pa.array(list(changes), kind),
        "condition": pa.array(list(changes.values()), pa.string()),
    }
    if sequences:
        columns["sequence"] = pa.array([sequences.get(each) for each in changes], pa.int64())
    table = pa.table(columns)
    if source:
        table = table.replace_schema_metadata({"tamis.source": source})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()
