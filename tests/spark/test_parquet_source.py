from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

pipeline = pytest.importorskip("tamis.spark")

from pyspark.sql.types import DecimalType, DoubleType, IntegerType, LongType, StringType, StructField, StructType  # noqa: E402

from tamis.spark.sources.arrivals import Arrivals, is_whole  # noqa: E402
from tamis.spark.sources.failures import plainly  # noqa: E402
from tamis.spark.sources.parquet_folder import FolderWriter, FolderWriting, WrittenFile  # noqa: E402
from tamis.spark.sources.parquet_source import FolderReading, seen_schema  # noqa: E402
from tests.spark.worlds import FolderWorld, crash_at_random_steps  # noqa: E402

ONCE = {"availableNow": True}
SCHEMA = "number bigint, price bigint"


def arrive(folder, first, rows=10, **columns):
    """Let a file of events arrive; its numbers begin with `first`."""
    numbers = range(first, first + rows)
    columns = columns or {"number": list(numbers), "price": [number % 7 for number in numbers], "unused": ["x"] * rows}
    beside = Path(folder) / f".{first}.part"
    parquet.write_table(pa.table(columns), beside, row_group_size=4)
    beside.rename(Path(folder) / f"{first:06}.parquet")


# -- Which files, in which order


@given(data=st.data())
def test_files_keep_their_numbers_whatever_comes_later(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("arrivals")
    seen = []
    for _ in range(data.draw(st.integers(1, 4))):
        for name in data.draw(st.lists(st.sampled_from("abcdefgh"), unique=True)):
            path = folder / f"{name}.parquet"
            if path.exists():
                continue
            path.write_bytes(b"PAR1" + bytes(8) + b"PAR1")
            moment_s = data.draw(st.integers(0, 3))  # an old time on a new file, or the same on many
            os.utime(path, (moment_s, moment_s))
        found = Arrivals(folder).looked()
        assert found[: len(seen)] == seen
        assert sorted(found) == sorted(path.name for path in folder.glob("*.parquet"))
        seen = found
    assert Arrivals(folder).known() == Arrivals(folder).looked() == seen


def test_of_two_who_look_at_once_the_quicker_one_counts(tmp_path):
    one, other = Arrivals(tmp_path), Arrivals(tmp_path)
    arrive(tmp_path, 0)
    assert other.known() == []
    assert one.looked() == ["000000.parquet"]
    arrive(tmp_path, 10)
    assert other.looked() == one.looked() == ["000000.parquet", "000010.parquet"]


def test_what_is_half_written_waits_and_what_is_hidden_is_not_for_us(tmp_path):
    arrive(tmp_path, 0)
    whole = (tmp_path / "000000.parquet").read_bytes()
    half = tmp_path / "half.parquet"
    for size in (0, 3, 11, len(whole) // 2, len(whole) - 1):
        half.write_bytes(whole[:size])
        assert not is_whole(half)
        assert Arrivals(tmp_path).looked() == ["000000.parquet"]
        assert Arrivals(tmp_path).unfinished() == ["half.parquet"]
    for name in ("_hidden.parquet", ".hidden.parquet", "readme.txt"):
        (tmp_path / name).write_bytes(whole)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "deep.parquet").write_bytes(whole)
    half.write_bytes(whole)
    assert sorted(Arrivals(tmp_path).looked()) == ["000000.parquet", "below/deep.parquet", "half.parquet"]


# -- Reading, without Spark


KINDS = {
    "bigint": LongType(),
    "int": IntegerType(),
    "string": StringType(),
    "double": DoubleType(),
    "dec": DecimalType(20, 0),
}


def reading(folder, schema, **options):
    if isinstance(schema, str):
        pairs = (each.split() for each in schema.split(", "))
        schema = StructType([StructField(name, KINDS[kind]) for name, kind in pairs])
    return FolderReading(str(folder), None, 100, options.get("partition_bytes", 1 << 20), schema)


def rows_of(folder, schema, **options):
    read = reading(folder, schema, **options)
    return [
        row for part in read.parts(read.arrivals().looked()) for batch in read.read(part) for row in batch.to_pylist()
    ]


def test_only_the_columns_that_are_asked_for_are_read_and_absent_ones_are_null(tmp_path):
    arrive(tmp_path, 0, rows=2)
    assert rows_of(tmp_path, "price bigint, other string") == [{"price": 0, "other": None}, {"price": 1, "other": None}]


def test_row_groups_become_parts(tmp_path):
    arrive(tmp_path, 0, rows=10)  # groups of 4, 4 and 2
    read = reading(tmp_path, SCHEMA, partition_bytes=1)
    assert [part.groups for part in read.parts(read.arrivals().looked())] == [(0,), (1,), (2,)]
    assert rows_of(tmp_path, SCHEMA, partition_bytes=1) == rows_of(tmp_path, SCHEMA)
    assert len(rows_of(tmp_path, SCHEMA)) == 10


def test_types_that_spark_has_not_become_types_that_it_has(tmp_path):
    table = {
        "small": pa.array([1, None], pa.uint8()), "huge": pa.array([2**64 - 1, 0], pa.uint64()),
        "word": pa.array(["ü", None]).dictionary_encode(), "at": pa.array([1, 2], pa.timestamp("ns")),
        "instant": pa.array([1, 2], pa.timestamp("s", "Europe/Zagreb")), "half": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
        "list": pa.array([[1], None]), "record": pa.array([{"a": 1}, None]),
    }  # fmt: skip
    arrive(tmp_path, 0, **table)
    schema = seen_schema(str(tmp_path), None)
    assert [field.dataType.simpleString() for field in schema] == [
        "smallint", "decimal(20,0)", "string", "timestamp_ntz", "timestamp", "float", "array<bigint>", "struct<a:bigint>",
    ]  # fmt: skip
    with pytest.raises(pipeline.ParquetError, match="at is timestamp"):
        rows_of(tmp_path, schema)  # one nanosecond is less than Spark can tell
    assert rows_of(tmp_path, "small int, huge dec, word string, half double")[0] == {
        "small": 1, "huge": 2**64 - 1, "word": "ü", "half": 1.5,
    }  # fmt: skip


def test_a_file_of_other_types_or_of_none_is_told_by_name(tmp_path):
    arrive(tmp_path, 0, number=["x"], price=[1])
    with pytest.raises(pipeline.ParquetError, match=r"000000\.parquet: number is string, not int64"):
        rows_of(tmp_path, SCHEMA)
    read = reading(tmp_path, SCHEMA)
    names = read.arrivals().looked()
    (tmp_path / names[0]).unlink()
    with pytest.raises(pipeline.ParquetError, match="is gone"):
        read.parts(names)
    (tmp_path / names[0]).write_bytes(b"PAR1" + b"\xff" * 20 + (8).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(pipeline.ParquetError, match="cannot be read"):
        read.parts(names)


def test_the_columns_are_seen_though_the_first_file_is_cleared_away(tmp_path):
    for first in (0, 10):
        arrive(tmp_path, first)
        Arrivals(tmp_path).looked()
    (tmp_path / "000000.parquet").unlink()
    assert seen_schema(str(tmp_path), None).names == ["number", "price", "unused"]


def test_of_two_jobs_that_write_at_once_one_is_told(tmp_path):
    jobs = [FolderWriter(FolderWriting(str(tmp_path), StructType([StructField("n", LongType())]))) for _ in range(2)]
    for number, job in enumerate(jobs):
        (tmp_path / "batch=0").mkdir(exist_ok=True)
        (tmp_path / "batch=0" / f"{number}.parquet").touch()
        message = WrittenFile("tables", f"batch=0/{number}.parquet", 1)
        if number == 0:
            job.commit([message])
        else:
            with pytest.raises(pipeline.ParquetError, match="another job"):
                job.commit([message])
    assert [record["files"] for record in pipeline.commits(tmp_path)] == [["batch=0/0.parquet"]]
    assert [path.name for path in (tmp_path / "batch=0").iterdir()] == ["0.parquet"]


# -- On Spark


@pytest.mark.spark
def test_a_folder_is_a_table(spark, tmp_path):
    pipeline.register(spark)
    with pytest.raises(pipeline.OptionError, match="no file yet"), plainly():
        spark.read.format("parquet_folder").load(str(tmp_path))
    for first in (0, 10):
        arrive(tmp_path, first)
    frame = spark.read.format("parquet_folder").load(str(tmp_path))
    assert frame.columns == ["number", "price", "unused"]
    assert sorted(row.number for row in frame.collect()) == list(range(20))
    with pytest.raises(pipeline.OptionError, match="there is no folder"), plainly():
        spark.read.format("parquet_folder").schema(SCHEMA).load(str(tmp_path / "nowhere")).collect()
    assert not (tmp_path / "_tamis").exists(), "a table leaves no traces"


@pytest.mark.spark
def test_a_stream_of_files_goes_into_a_folder_once_and_on_from_there(spark, tmp_path):
    pipeline.register(spark)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()

    def copied(source, target):
        stream = spark.readStream.format("parquet_folder").schema(SCHEMA).option("max_files", 2).load(str(source))
        checkpoint = tmp_path / f"checkpoint-{target.name}"
        writer = stream.writeStream.format("parquet_folder").option("checkpointLocation", str(checkpoint))
        with plainly():
            writer.trigger(**ONCE).start(str(target)).awaitTermination()
        return checkpoint

    for start in (0, 10, 20):
        arrive(first, start)
    checkpoint = copied(first, second)
    assert len(pipeline.commits(second)) == 2, "two files at most in a batch"
    # Spark does not know that the last batch is done, and runs it again.
    (checkpoint / "commits" / "1").unlink()
    (checkpoint / "commits" / ".1.crc").unlink(missing_ok=True)
    (second / "batch=1" / "part-00000-left-behind.parquet").write_bytes(
        next((second / "batch=0").glob("*.parquet")).read_bytes()
    )
    arrive(first, 30)
    copied(first, second)
    assert sorted(row.number for row in pipeline.read_matches(spark, second).collect()) == list(range(40))
    # What a sink has committed is a source again, and what it has not is not.
    again = spark.read.format("parquet_folder").schema(SCHEMA).load(str(second))
    assert sorted(row.number for row in again.collect()) == list(range(40))


@pytest.mark.spark
def test_tables_are_appended_as_batches(spark, tmp_path):
    pipeline.register(spark)
    out = str(tmp_path / "out")
    for first in (0, 5):
        spark.range(first, first + 5, numPartitions=2).write.format("parquet_folder").mode("append").save(out)
    assert sorted(row.id for row in pipeline.read_matches(spark, out).collect()) == list(range(10))
    assert [record["rows_out"] for record in pipeline.commits(out)] == [5, 5]
    with pytest.raises(pipeline.OptionError, match="what is committed cannot be replaced"), plainly():
        spark.range(1).write.format("parquet_folder").mode("overwrite").save(out)


@pytest.mark.spark
@pytest.mark.parametrize("crashes", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_crashes_at_random_steps_lose_and_double_no_file(spark, tmp_path, monkeypatch, crashes):
    crash_at_random_steps(FolderWorld(spark, tmp_path), monkeypatch, crashes, files=4)
