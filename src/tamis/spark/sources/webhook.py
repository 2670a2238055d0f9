"""Webhooks as a format of Spark: `matches.writeStream.format("webhook").option("url", "https://…")`.

A task ends when all of its rows are taken (`tamis.sources.webhook`), so everything comes at least once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from tamis.sources.errors import OptionError
from tamis.sources.webhook import asked_writing
from tamis.spark.sources.writers import RowStreamWriter, RowWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class WebhookDataSource(DataSource):
    """An address that takes rows by POST."""

    @classmethod
    def name(cls) -> str:
        return "webhook"

    def schema(self) -> str:
        raise OptionError("a webhook is written to; it cannot be read")

    def writer(self, schema: StructType, overwrite: bool) -> RowWriter:
        if overwrite:
            raise OptionError("what was sent to a webhook cannot be replaced: mode('append')")
        return RowWriter(asked_writing(self.options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> RowStreamWriter:  # noqa: N802 - Spark's name
        return RowStreamWriter(asked_writing(self.options))
