"""How does every batch of a stream come out exactly once? An idempotent sink: commits by batch.

Each micro-batch has a number, and its rows a folder of that number. The folder counts only once a commit of
the same number lies beside it; a batch that is run again after a crash finds its commit and does nothing, or finds
none and writes its folder anew. So whoever reads what is committed sees every batch once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql.types import LongType, StructType

from tamis.sources import durable
from tamis.spark.columns import column
from tamis.spark.errors import ColumnError, OptionError
from tamis.spark.folders import Folder, Place, folder_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ParquetSink:
    """A folder of Parquet files, one folder a batch, with commits."""

    columns: tuple[str, ...] = ("version", "batch")
    """What the matches have beside what is kept of the events."""

    def __init__(self, path: Place | Folder, own: str) -> None:
        self.folder = path if isinstance(path, Folder) else folder_at(path)
        self._commits = self.folder.below("_tamis", "commits")
        self._belong(own)

    def _belong(self, own: str) -> None:
        """Raise if the batches of another stream lie here: their numbers would be taken for ours."""
        owner = self.folder.below("_tamis").record("owner.json")
        if owner is None:
            self.folder.below("_tamis").put_record("owner.json", own)
        elif owner != own:
            raise OptionError(
                f"{self.folder} holds what another stream wrote: go on with its checkpoint, or name another folder"
            )

    def commit_of(self, batch: int) -> dict[str, Any] | None:
        """Return what was committed with a batch; None if it was not."""
        commit: dict[str, Any] | None = self._commits.record(f"{batch:012}.json")
        return commit

    def write(self, frame: DataFrame, batch: int) -> dict[str, Any]:
        """Write the rows of a batch; what a former try left there is replaced. There is nothing more to say of it."""
        frame.write.mode("overwrite").parquet(self.folder.below(f"batch={batch}").place)
        return {}

    def commit(self, batch: int, record: dict[str, Any]) -> None:
        """Let a batch count."""
        self._commits.put_record(f"{batch:012}.json", record)

    def is_first(self, batch: int, record: dict[str, Any]) -> bool:
        """Let a batch count unless it does already; return whether what counts is this."""
        return self._commits.put_new(f"{batch:012}.json", durable.written(record))


def identity(checkpoint: Folder) -> str:
    """Return the name of the stream that a checkpoint belongs to; it gets one the first time."""
    beside = checkpoint.below("tamis")
    own = beside.record("identity.json")
    if own is None:
        own = str(uuid4())
        beside.put_record("identity.json", own)
    return str(own)


def commits(path: Place, spark: SparkSession | None = None) -> list[dict[str, Any]]:
    """Return what was committed with every batch, in order."""
    folder = folder_at(path, spark).below("_tamis", "commits")
    return [folder.record(name) for name in folder.names()]


def read_matches(spark: SparkSession, path: Place) -> DataFrame:
    """Return all that a stream has committed, with the columns `batch` and `version`."""
    folder = folder_at(path, spark)
    committed = commits(path, spark)
    if not committed:
        raise OptionError(f"nothing is committed in {path} yet")
    frames = [_read(spark, folder, schema, records) for schema, records in _alike(committed)]
    whole = frames[0]
    for frame in frames[1:]:
        try:
            whole = whole.unionByName(frame, allowMissingColumns=True)  # of two types, the one that holds both
        except AnalysisException as error:
            raise ColumnError(_conflict_of_types(whole, frame, path)) from error
    order = [*StructType.fromJson(committed[-1]["schema"]).names, "batch"]  # as the last batch has them
    return whole.select(*map(column, [*order, *(name for name in whole.columns if name not in order)]))


def _alike(commits: list[dict[str, Any]]) -> list[tuple[StructType, list[dict[str, Any]]]]:
    """Put the records of batches together that were written with one schema: a stream may go on with another."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for record in commits:
        groups.setdefault(str(record["schema"]), []).append(record)
    return [(StructType.fromJson(records[0]["schema"]), records) for records in groups.values()]


def _read(spark: SparkSession, folder: Folder, schema: StructType, records: list[dict[str, Any]]) -> DataFrame:
    whole = schema.add("batch", LongType())
    paths = [folder.below(name).place for record in records if record["rows_out"] for name in belonging(record)]
    if not paths:
        return spark.createDataFrame([], whole)
    return spark.read.schema(whole).option("basePath", folder.place).parquet(*paths)


def _conflict_of_types(former: DataFrame, later: DataFrame, path: Place) -> str:
    known = {field.name: field.dataType.simpleString() for field in former.schema.fields}
    changed = [
        f"{field.name!r} was {known[field.name]} and became {field.dataType.simpleString()}"
        for field in later.schema.fields
        if known.get(field.name, field.dataType.simpleString()) != field.dataType.simpleString()
    ]
    return (
        f"the batches in {path} have types that no column holds together: {', '.join(changed)}. Read them apart: "
        f"the folders batch=... of tamis.spark.commits(...)"
    )


def belonging(record: dict[str, Any]) -> list[str]:
    """Return what belongs to a batch: the files that its commit names, or its folder."""
    named: list[str] = record.get("files") or [f"batch={record['batch']}"]
    return named
