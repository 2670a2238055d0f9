"""Events and rules as Parquet files, matched on Spark: spark_parquet.py FOLDER."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import tamis
import tamis.spark

folder = Path(sys.argv[1])
folder.mkdir()

# Two files, as another job might have left them. Two of the five rules are wrong.
titles = ["The Tide", "Collected Poems", "Night Train", "Tide Tables"]
prices, bids = [12.5, 48.0, 7.0, 31.0], [2, 0, 9, 1]
events = {"auction_id": [1, 2, 3, 4], "title": titles, "price": prices, "bids": bids}
rules = {
    "cheap": "price < 20",
    "tides": "title LIKE '%Tide%' AND bids <= 3",
    "busy": "bids > 5 OR price > 40",
    "half": "price <",
    "typo": "prise < 20",
}
table = {"subscription_id": list(rules), "condition": list(rules.values())}
pq.write_table(pa.table(events), folder / "events.parquet")
pq.write_table(pa.table(table), folder / "rules.parquet")

# In a notebook that has a session, use that one.
spark = tamis.spark.session(log=folder / "spark.log")
auctions = spark.read.parquet(str(folder / "events.parquet"))
wanted = spark.read.parquet(str(folder / "rules.parquet"))

ready = tamis.spark.compiled(wanted, schema=tamis.Schema.from_spark(auctions))
print(ready.count, "rules are used, and these are not:")
for row in ready.rejected.orderBy("subscription_id").collect():
    print(f"  {row.subscription_id}: {row.error}")

pairs = tamis.spark.match(auctions, ready, keep=["auction_id"])
pairs.write.parquet(str(folder / "pairs.parquet"))
written = spark.read.parquet(str(folder / "pairs.parquet"))
written.orderBy("auction_id", "subscription_id").show()
counts = tamis.spark.match(auctions, ready, keep=["auction_id"], result="counts")
counts.orderBy("auction_id").show()
