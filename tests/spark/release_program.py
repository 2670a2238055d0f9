"""What works with every PySpark from 4.0 on, done in a process of its own: release_program.py FOLDER."""

import json
import sys
import warnings
from pathlib import Path

from tamis import spark as pipeline


def refusal(name):
    """Return what is said where a part needs a newer PySpark."""
    try:
        getattr(pipeline, name)
    except ImportError as error:
        return str(error)
    return ""


def main() -> None:
    folder = Path(sys.argv[1])
    said = {}

    session = pipeline.session("local[2]", log=folder / "log", config={"spark.sql.shuffle.partitions": "1"})
    said["version"] = session.version
    texts = [(1, "price < 3"), (2, "number >= 95"), (3, "price <"), (4, "title LIKE 'a%'")]
    rules = session.createDataFrame(texts, "subscription_id int, condition string")
    events = session.range(100).selectExpr(
        "id AS number", "CAST(id % 7 AS double) AS price", "concat('a', id) AS title"
    )
    events.write.parquet(str(folder / "events"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pipeline.RejectedSubscriptionsWarning)
        for name, table in {"frame": events, "files": session.read.parquet(str(folder / "events"))}.items():
            said[name] = sorted(map(list, pipeline.match(table, rules, keep=["number"]).collect()))
        counts = pipeline.match(events, rules, keep=["number"], result="counts").collect()
        said["sharded"] = sorted(map(list, pipeline.match(events, rules, keep=["number"], shards=2).collect()))
        said["tally"] = sorted(map(list, pipeline.tally(events, rules).collect()))
    said["counts"] = sum(row.matches for row in counts)
    said["rejected"] = [row.subscription_id for row in pipeline.rejected(rules).collect()]
    statistics = pipeline.statistics(events)
    pipeline.save_statistics(statistics, folder / "statistics", session)
    said["statistics"] = sorted(pipeline.load_statistics(folder / "statistics", session).attributes)

    log = pipeline.SubscriptionLog(folder / "subscriptions")
    log.add({1: "price < 3"})
    arriving = session.readStream.schema(events.schema).parquet(str(folder / "events"))
    stream = pipeline.match_stream(
        arriving,
        log,
        out=folder / "out",
        checkpoint=folder / "checkpoint",
        keep="number",
        trigger={"availableNow": True},
    )
    stream.await_end()
    said["stream"] = sorted(row.number for row in pipeline.read_matches(session, folder / "out").collect())
    said["refusals"] = {name: refusal(name) for name in ("matches", "matching_step", "nats_events", "broker_events")}
    session.stop()
    print(json.dumps(said))


if __name__ == "__main__":
    main()
