"""How does every batch of a stream come out exactly once?

Each micro-batch has a number, and its rows a folder of that number. The folder counts only once a commit of
the same number lies beside it; a batch that is run again after a crash finds its commit and does nothing, or finds
none and writes its folder anew. So whoever reads what is committed sees every batch once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.types import LongType, StructType

from tamis.spark import durable
from tamis.spark.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ParquetSink:
    """A folder of Parquet files, one folder a batch, with commits."""

    def __init__(self, path: str | os.PathLike[str], own: str) -> None:
        self.path = Path(path)
        self._commits = self.path / "_tamis" / "commits"
        self._commits.mkdir(parents=True, exist_ok=True)
        self._belong(own)

    def _belong(self, own: str) -> None:
        """Raise if the batches of another stream lie here: their numbers would be taken for ours."""
        owner = durable.record(self.path / "_tamis" / "owner.json")
        if owner is None:
            durable.put_record(self.path / "_tamis" / "owner.json", own)
        elif owner != own:
            raise OptionError(
                f"{self.path} holds what another stream wrote: go on with its checkpoint, or name another folder"
            )

    def commit_of(self, batch: int) -> dict[str, Any] | None:
        """Return what was committed with a batch; None if it was not."""
        found: dict[str, Any] | None = durable.record(self._commits / f"{batch:012}.json")
        return found

    def write(self, frame: DataFrame, batch: int) -> dict[str, Any]:
        """Write the rows of a batch; what a former try left there is replaced. There is nothing more to say of it."""
        frame.write.mode("overwrite").parquet(str(self.path / f"batch={batch}"))
        return {}

    def commit(self, batch: int, record: dict[str, Any]) -> None:
        """Let a batch count."""
        durable.put_record(self._commits / f"{batch:012}.json", record)

    def is_first(self, batch: int, record: dict[str, Any]) -> bool:
        """Let a batch count unless it does already; return whether what counts is this."""
        return durable.put_new(self._commits / f"{batch:012}.json", durable.written(record))


def identity(checkpoint: str | os.PathLike[str]) -> str:
    """Return the name of the stream that a checkpoint belongs to; it gets one the first time."""
    mark = Path(checkpoint) / "tamis" / "identity.json"
    own = durable.record(mark)
    if own is None:
        own = str(uuid4())
        durable.put_record(mark, own)
    return str(own)


def commits(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return what was committed with every batch, in order."""
    folder = Path(path) / "_tamis" / "commits"
    names = sorted(name for name in os.listdir(folder) if name[0] != ".") if folder.exists() else []
    return [durable.record(folder / name) for name in names]


def read_matches(spark: SparkSession, path: str | os.PathLike[str]) -> DataFrame:
    """Return all that a stream has committed, with the columns `batch` and `version`."""
    found = commits(path)
    if not found:
        raise OptionError(f"nothing is committed in {path} yet")
    schema = StructType.fromJson(found[-1]["schema"]).add("batch", LongType())
    written = [name for record in found if record["rows_out"] for name in belonging(record)]
    if not written:
        return spark.createDataFrame([], schema)
    paths = [str(Path(path) / name) for name in written]
    return spark.read.schema(schema).option("basePath", str(path)).parquet(*paths)


def belonging(record: dict[str, Any]) -> list[str]:
    """Return what belongs to a batch: the files that its commit names, or its folder."""
    named: list[str] = record.get("files") or [f"batch={record['batch']}"]
    return named
