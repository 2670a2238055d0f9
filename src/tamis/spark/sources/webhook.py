"""Webhooks as a format of Spark: `matches.writeStream.format("webhook").option("url", "https://…")`.

A task ends when all of its rows are taken (`tamis.sources.webhook`), so everything comes at least once.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tamis.sources.errors import OptionError
from tamis.sources.webhook import WebhookWriting, asked_writing
from tamis.spark.sources.tasks import WrittenCounts, this_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType


class WebhookWriter(DataSourceArrowWriter):
    """A table to a webhook."""

    def __init__(self, writing: WebhookWriting) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WrittenCounts(asdict(self._writing.write(iterator, this_place(self._writing.run))))


class WebhookStreamWriter(DataSourceStreamArrowWriter):
    """A stream to a webhook."""

    def __init__(self, writing: WebhookWriting) -> None:
        self._writing = writing

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WrittenCounts(asdict(self._writing.write(iterator, this_place(self._writing.run))))


class WebhookDataSource(DataSource):
    """An address that takes rows by POST."""

    @classmethod
    def name(cls) -> str:
        return "webhook"

    def schema(self) -> str:
        raise OptionError("a webhook is written to; it cannot be read")

    def writer(self, schema: StructType, overwrite: bool) -> WebhookWriter:
        if overwrite:
            raise OptionError("what was sent to a webhook cannot be replaced: mode('append')")
        return WebhookWriter(asked_writing(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> WebhookStreamWriter:  # noqa: N802 - Spark's name
        return WebhookStreamWriter(asked_writing(self.options))
