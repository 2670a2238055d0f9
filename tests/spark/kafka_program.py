"""What stands at the other end of Kafka: produces events, and matches a topic as a table. Run by `test_kafka`.

It is told what to do line by line, so that one Java machine does for the whole test.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tamis import spark as on_spark


def main(url: str, jars: str, folder: Path) -> None:
    session = on_spark.session(log=folder / "other-end.log", config={"spark.jars": jars})
    brokers = url.split("/")[2]
    print("ready", flush=True)
    for line in sys.stdin:
        what, *words = line.split()
        if what == "produce":
            first, last = map(int, words)
            events = session.range(first, last).selectExpr("id AS number", "id % 7 AS price", "'Übung ☃' AS title")
            messages = on_spark.kafka_messages(events, key="number").write.format("kafka")
            messages.option("kafka.bootstrap.servers", brokers).option("topic", url.split("/")[-1]).save()
        elif what == "match":
            rows = [(1, "price < 3"), (2, "number % 2 = 0 AND title LIKE 'Ü%'")]
            rules = session.createDataFrame(rows, "subscription_id int, condition string")
            events = on_spark.kafka_events(session, url, keep=["partition", "offset"])
            pairs = on_spark.match(events, rules, keep=["number", "partition", "offset"])
            pairs.write.parquet(words[0])
        print("done", flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
