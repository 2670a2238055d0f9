"""A driver whose folders are all in a bucket: a log, changes as a stream, matches, rejected rows, statistics. Run by `test_s3`."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import tamis
from tamis import spark as on_spark
from tamis.spark.folders import folder_at

WRITERS, NAMES = 6, 4
CHANGES = "operation string, subscription_id string, condition string, sequence bigint"
SAID = [("add", "even", "id % 2 = 0", 1), ("add", "low", "id < 5", 2), ("add", "bad", "id <", 3), ("remove", "low", None, 4)]  # fmt: skip


def check_files(place):
    """Files appear whole; of writers that come at once with one name, one has it."""
    folder = folder_at(f"{place}/deep/er")
    assert (folder.names(), folder.read("a"), folder.record("a")) == ([], None, None)
    assert folder.put_new("a", b"[1]")
    assert not folder.put_new("a", b"[2]")
    folder.put("b", bytes(range(256)))
    folder.put_record("a", [3])
    assert (folder.names(), folder.record("a"), folder.read("b")) == (["a", "b"], [3], bytes(range(256)))
    folder.remove("b")
    assert folder.names() == ["a"]
    with ThreadPoolExecutor(WRITERS) as pool:
        for name in map(str, range(NAMES)):
            tries = pool.map(lambda each, name=name: folder_at(f"{place}/race").put_new(name, each.encode()), "abcdef")
            won = [each for each, is_ours in zip("abcdef", tries, strict=True) if is_ours]
            assert [folder_at(f"{place}/race").read(name)] == [each.encode() for each in won]
        versions = list(pool.map(lambda each: on_spark.SubscriptionLog(f"{place}/many").add({each: "TRUE"}), "abcdef"))
    assert sorted(versions) == list(range(1, WRITERS + 1))
    assert set(on_spark.SubscriptionLog(f"{place}/many").at(WRITERS)) == {*"abcdef"}


def check_streams(session, place):
    """A log and, beside it, changes that come as a stream."""
    session.range(0, 20, 1, 2).write.parquet(f"{place}/events")
    events = session.readStream.schema("id bigint").parquet(f"{place}/events")
    log = on_spark.SubscriptionLog(f"{place}/rules")
    log.add({1: "id % 2 = 0", 2: "id >= 18"})
    once = {"availableNow": True}
    on_spark.match_stream(events, log, out=f"{place}/out", checkpoint=f"{place}/checkpoint", trigger=once).await_end()
    log.change(add={3: "id = 20"}, remove=[1])
    session.range(20, 22).write.mode("append").parquet(f"{place}/events")
    on_spark.match_stream(events, log, out=f"{place}/out", checkpoint=f"{place}/checkpoint", trigger=once).await_end()
    rows = sorted(tuple(row)[:3] for row in on_spark.read_matches(session, f"{place}/out").collect())
    first = [(each, 1, 1) for each in range(0, 20, 2)] + [(18, 2, 1), (19, 2, 1)]
    assert rows == sorted([*first, (20, 2, 2), (20, 3, 2), (21, 2, 2)])

    session.createDataFrame(SAID, CHANGES).coalesce(1).write.parquet(f"{place}/said")
    changes = session.readStream.schema(CHANGES).parquet(f"{place}/said")
    stream = on_spark.match_stream(
        events, changes, out=f"{place}/fed", checkpoint=f"{place}/feeding", rejected=f"{place}/rejected", trigger=once
    )
    stream.await_end()
    fed = sorted(tuple(row)[:2] for row in on_spark.read_matches(session, f"{place}/fed").collect())
    assert fed == [(each, "even") for each in range(0, 22, 2)]
    assert [row.id for row in on_spark.read_rejected(session, f"{place}/rejected").collect()] == ["bad"]


def main(place: str) -> None:
    session = on_spark.session("local[2]", quick=True)
    check_files(place)
    check_streams(session, place)
    found = tamis.selectivity.Statistics.of([{"price": 5}, {"price": 7}])
    on_spark.save_statistics(found, f"{place}/statistics.parquet")
    assert on_spark.load_statistics(f"{place}/statistics.parquet").to_json() == found.to_json()
    print("done", flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])
