"""NATS JetStream as a format of Spark: `spark.readStream.format("nats").load("nats://localhost:4222/EVENTS")`.

Reading gives the messages as they are; `tamis.spark.json_events` makes events of JSON bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from tamis.sources.nats_reading import COLUMNS, SCHEMA, NatsReading
from tamis.sources.nats_sink import NatsWriting
from tamis.sources.schemes import NATS
from tamis.spark.errors import OptionError
from tamis.spark.sources.nats_source import NatsReader, NatsStreamReader
from tamis.spark.sources.writers import RowStreamWriter, RowWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class NatsDataSource(DataSource):
    """A stream of JetStream."""

    @classmethod
    def name(cls) -> str:
        return "nats"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> NatsReader:
        return NatsReader(self._reading(schema))

    def streamReader(self, schema: StructType) -> NatsStreamReader:  # noqa: N802 - Spark's name
        return NatsStreamReader(self._reading(schema))

    def writer(self, schema: StructType, overwrite: bool) -> RowWriter:
        if overwrite:
            raise OptionError("a NATS stream can only be appended to: mode('append')")
        return RowWriter(self._writing(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> RowStreamWriter:  # noqa: N802
        return RowStreamWriter(self._writing(schema))

    def _reading(self, schema: StructType) -> NatsReading:
        if tuple(schema.names) != COLUMNS:
            raise OptionError(
                "the columns of a NATS stream are subject, sequence, published, headers and body; "
                "for those of its events there is tamis.spark.json_events"
            )
        return NatsReading.asked(NATS.source_options(self.options))

    def _writing(self, schema: StructType) -> NatsWriting:
        return NatsWriting.asked(NATS.sink_options(self.options), schema.names)
