"""Brokers of Tamis as a format of Spark: `spark.readStream.format("tamis").option("where", "price < 20").load(url)`.

A column is a member of an event's data or a context attribute; `_position` is the number of the event in the log. What
is written becomes the data of events, each with an id that says where its row stands.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from tamis.service.bridge.reading import LogReading
from tamis.service.bridge.writing import EventWriting
from tamis.sources.errors import OptionError
from tamis.sources.schemes import BROKER
from tamis.spark.sources.broker_source import BrokerReader, BrokerStreamReader
from tamis.spark.sources.writers import RowStreamWriter, RowWriter

if TYPE_CHECKING:
    import pyarrow as pa


class BrokerDataSource(DataSource):
    """The log of a broker."""

    @classmethod
    def name(cls) -> str:
        return "tamis"

    def schema(self) -> StructType:
        return spark_columns(self._reading().guessed())

    def reader(self, schema: StructType) -> BrokerReader:
        return BrokerReader(self._reading(), to_arrow_schema(schema, timezone="UTC"))

    def streamReader(self, schema: StructType) -> BrokerStreamReader:  # noqa: N802 - Spark's name
        return BrokerStreamReader(self._reading(), to_arrow_schema(schema, timezone="UTC"))

    def writer(self, schema: StructType, overwrite: bool) -> RowWriter:
        if overwrite:
            raise OptionError("the log of a broker can only be appended to: mode('append')")
        return RowWriter(self._writing(schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> RowStreamWriter:  # noqa: N802
        return RowStreamWriter(self._writing(schema))

    def _writing(self, schema: StructType) -> EventWriting:
        return EventWriting.asked(BROKER.sink_options(self.options), schema.names)

    def _reading(self) -> LogReading:
        return LogReading.asked(BROKER.source_options(self.options), os.cpu_count() or 1)


def spark_columns(columns: pa.Schema) -> StructType:
    """Return the columns of events as Spark's."""
    schema = from_arrow_schema(columns, prefer_timestamp_ntz=True)
    assert isinstance(schema, StructType)
    return schema
