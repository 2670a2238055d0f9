"""Which rules match each auction, and how often has each rule matched?"""

from pathlib import Path

from pyspark import pipelines
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructType

import tamis
import tamis.spark

data = Path(__file__).parents[1] / "data"
spark = SparkSession.active()

# Rules are compiled here, once for each run: query functions may look at no table.
columns = (
    StructType()
    .add("auction_id", LongType())
    .add("title", StringType())
    .add("price", DoubleType())
    .add("bids", LongType())
)
table = spark.read.parquet(str(data / "rules.parquet"))
rules = tamis.spark.compiled(table, schema=tamis.Schema.from_spark(columns))
print(rules.count, "rules are used,", rules.rejected_count, "are not")


@pipelines.table
def auctions() -> DataFrame:
    """Follow the files that arrive."""
    return spark.readStream.schema(columns).parquet(str(data / "auctions"))


@pipelines.table
def alerts() -> DataFrame:
    """Pair each auction with the rules that match it."""
    step = tamis.spark.matching_step(rules, keep=["auction_id", "price"])
    return spark.readStream.table("auctions").transform(step)


@pipelines.materialized_view
def busiest_rules() -> DataFrame:
    """Count what each rule has matched."""
    return spark.read.table("alerts").groupBy("subscription_id").count()
