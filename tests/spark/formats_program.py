"""Rules in a table of Delta or Iceberg, which a log follows: formats_program.py FORMAT FOLDER JARS."""

import datetime as dt
import json
import sys
from pathlib import Path

from tamis import spark as pipeline


def main() -> None:
    kind, folder, jars = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    config = {"spark.jars": jars, "spark.sql.shuffle.partitions": "1"}
    if kind == "delta":
        config |= {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
        name = f"delta.`{folder}/rules`"
    else:
        config |= {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.local.type": "hadoop",
            "spark.sql.catalog.local.warehouse": str(folder / "warehouse"),
        }
        name = "local.db.rules"
    session = pipeline.session("local[2]", log=folder / "log", config=config)
    said = {"version": session.version}
    log = pipeline.SubscriptionLog(folder / "subscriptions")

    def taken():
        """Follow what is new; return what each version has changed."""
        return [
            [each.added, each.changed, each.removed, each.rejected_count]
            for each in pipeline.catch_up(log, name, session, format=kind)
        ]

    session.sql(f"CREATE TABLE {name} (subscription_id BIGINT, condition STRING) USING {kind}")
    session.sql(f"INSERT INTO {name} VALUES (1, 'price < 3'), (2, 'price <'), (3, 'price > 5')")
    said["first"] = taken()
    between = dt.datetime.now(dt.UTC)
    session.sql(f"UPDATE {name} SET condition = 'price < 2' WHERE subscription_id = 1")
    session.sql(f"DELETE FROM {name} WHERE subscription_id = 3")
    session.sql(f"INSERT INTO {name} VALUES (4, 'price = 4')")
    said["then"] = taken()
    said["again"] = taken()
    said["rules"] = log.at(log.version)
    events = session.range(7).selectExpr("id AS number", "CAST(id AS double) AS price")
    for when, moment in {"before": between, "after": dt.datetime.now(dt.UTC)}.items():
        timed = events.selectExpr("*", f"timestamp_micros({int(moment.timestamp() * 1e6)}) AS time")
        pairs = pipeline.match_history(timed, log, keep="number").collect()
        said[when] = sorted([row.number, row.subscription_id] for row in pairs)
    session.stop()
    print(json.dumps(said))


if __name__ == "__main__":
    main()
