"""Rules and auctions for the pipeline beside this file: prepare.py [FIRST_ID]."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

data = Path(__file__).parent / "data"
(data / "auctions").mkdir(parents=True, exist_ok=True)
first = int(sys.argv[1]) if len(sys.argv) > 1 else 1

titles = ["The Tide", "Collected Poems", "Night Train", "Tide Tables"]
auctions = {
    "auction_id": range(first, first + 4),
    "title": titles,
    "price": [12.5, 48.0, 7.0, 31.0],
    "bids": [2, 0, 9, 1],
}
rules = {
    "cheap": "price < 20",
    "tides": "title LIKE '%Tide%' AND bids <= 3",
    "busy": "bids > 5 OR price > 40",
    "typo": "prise < 20",
}
pq.write_table(pa.table(auctions), data / "auctions" / f"{first}.parquet")
table = {"subscription_id": list(rules), "condition": list(rules.values())}
pq.write_table(pa.table(table), data / "rules.parquet")
