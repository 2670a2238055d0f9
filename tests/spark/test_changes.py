"""Changes of subscriptions that come as a stream: in order, the bad ones put aside, and never in silence."""

from __future__ import annotations

import math
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pipeline = pytest.importorskip("tamis.spark")

import tamis  # noqa: E402
from tamis.spark import changes as module  # noqa: E402
from tamis.spark import streaming  # noqa: E402
from tamis.spark.changes import RuleChange, applied  # noqa: E402
from tests.spark.test_folders import KINDS, address, quick_on_paths  # noqa: E402
from tests.spark.worlds import ONCE, ChangingWorld  # noqa: E402

TEXTS = st.sampled_from(["price < 3", "TRUE", "price <", "", "nobody = 3", "title = '☃'", None])
ROWS = st.builds(
    RuleChange, st.sampled_from(["add", "remove", "ADD", "", None]), st.sampled_from([1, 2, 3, None, 2**62]), TEXTS,
    st.integers(0, 6) | st.none(),
)  # fmt: skip
SCHEMA = tamis.Schema.from_arrow(pa.schema([("price", pa.int64()), ("title", pa.string())]))


def set_after(batches):
    """The texts in force after micro-batches of changes."""
    last = {}
    for batch in batches:
        told, _ = applied(batch, last, SCHEMA)
        last |= told
    return {each: text for each, (_, text) in last.items() if text is not None}


@given(st.lists(ROWS, max_size=12), st.randoms())
def test_the_order_of_rows_in_a_micro_batch_means_nothing_and_every_row_is_applied_or_refused(rows, chance):
    told, refused = applied(rows, {}, SCHEMA)
    shuffled = rows[:]
    chance.shuffle(shuffled)
    told_again, refused_again = applied(shuffled, {}, SCHEMA)
    assert told == told_again
    assert set(refused) == set(refused_again)
    for each, (sequence, text) in told.items():
        assert RuleChange("remove" if text is None else "add", each, text, sequence)._replace() in {
            row._replace(condition=row.text) for row in rows
        }
    good = {row.id for row in rows if row not in {change for change, _, _ in refused}}
    assert good == set(told), "something was lost without a word"


@given(st.lists(ROWS, max_size=12, unique_by=lambda row: (row.id, row.sequence)), st.lists(st.integers(0, 12)))
def test_however_changes_are_cut_into_micro_batches_the_same_subscriptions_are_in_force(rows, cuts):
    places = sorted({0, len(rows), *(cut for cut in cuts if cut <= len(rows))})
    batches = [rows[start:end] for start, end in pairwise(places)]
    plain = {}
    for row in sorted(rows, key=lambda row: math.inf if row.sequence is None else row.sequence):
        told, _ = applied([row], {}, SCHEMA)
        plain |= {each: text for each, (_, text) in told.items()}
    plain = {each: text for each, text in plain.items() if text is not None}
    assert set_after(batches) == set_after([rows]) == set_after([[row] for row in rows]) == plain


@pytest.mark.parametrize(
    ("row", "kind", "says"),
    [
        (RuleChange("replace", 1, "TRUE", 1), "OperationError", "'add' or 'remove', not 'replace'"),
        (RuleChange(None, 1, "TRUE", 1), "OperationError", "not None"),
        (RuleChange("add", None, "TRUE", 1), "NullIdError", "NULL"),
        (RuleChange("add", 1, None, 1), "NullConditionError", "NULL"),
        (RuleChange("add", 1, "TRUE", None), "NullSequenceError", "NULL"),
        (RuleChange("add", 1, "price <", 1), "ExpressionSyntaxError", "price <"),
        (RuleChange("add", 1, "nobody = 3", 1), "UnknownAttributeError", "nobody"),
    ],
)
def test_a_bad_change_is_refused_with_its_reason_and_what_was_in_force_stays(row, kind, says):
    told, refused = applied([row], {1: (0, "price < 3")}, SCHEMA)
    assert told == {}
    assert [(change, error) for change, error, _ in refused] == [(row, kind)]
    assert says in refused[0][2]


def test_changes_without_an_order_are_refused_only_where_it_matters():
    rows = [
        RuleChange("add", 1, "TRUE"),
        RuleChange("remove", 1, None),
        RuleChange("add", 2, "TRUE"),
        RuleChange("add", 2, "TRUE"),
    ]
    told, refused = applied(rows, {2: (None, "price < 3")}, SCHEMA, is_ordered=False)
    assert told == {2: (None, "TRUE")}
    assert [change for change, _, _ in refused] == rows[:2]
    assert "'sequence'" in refused[0][2]


def test_what_is_told_again_is_no_mistake_and_what_is_late_is_one():
    last = {1: (5, "TRUE"), 2: (7, None)}
    again = [RuleChange("add", 1, "TRUE", 5), RuleChange("remove", 2, None, 7)]
    assert applied(again, last, SCHEMA) == ({}, [])
    told, refused = applied([RuleChange("add", 2, "TRUE", 6), RuleChange("add", 1, "price < 3", 5)], last, SCHEMA)
    assert told == {}
    assert {(change.id, kind) for change, kind, _ in refused} == {(2, "LateChangeError"), (1, "UnorderedChangeError")}


# -- In streams


@pytest.fixture
def world(spark, tmp_path):
    return ChangingWorld(spark, tmp_path)


@pytest.mark.spark
def test_the_first_batch_of_a_stream_that_takes_what_is_there_meets_the_rules_that_are_there(world):
    world.say(("add", "cheap", "price < 3", 1))
    world.arrive()
    world.begin().await_end()
    assert world.pairs() == {(number, "cheap") for number in range(10) if number % 7 < 3}


@pytest.mark.spark
def test_an_id_that_is_added_and_then_removed_in_one_micro_batch_is_gone(world):
    world.say(("remove", "brief", None, 2), ("add", "brief", "TRUE", 1), ("remove", "again", None, 3))
    world.say(("add", "again", "price = 0", 4), ("add", "again", "TRUE", 1))
    world.arrive()
    stream = world.begin()
    stream.await_end()
    assert world.pairs() == {(0, "again"), (7, "again")}
    assert stream.rejected.count() == 0
    # A change that comes after a later one of its id is late, also in another run.
    world.say(("add", "brief", "TRUE", 1), ("add", "again", "TRUE", 3))
    world.arrive()
    stream = world.begin()
    stream.await_end()
    assert world.pairs() == {(n, "again") for n in range(20) if n % 7 == 0}
    assert {(row.id, row.error) for row in stream.rejected.collect()} == {("again", "LateChangeError"), ("brief", "LateChangeError")}  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_bad_changes_are_put_aside_with_their_reason_in_a_folder_of_any_kind_and_the_stream_goes_on(world, kind):
    place = f"{address(world.spark, world.folder, kind)}/aside"
    world.say(("add", "cheap", "price < 3", 1), ("add", "broken", "price <", 2), ("drop", "cheap", None, 3))
    world.arrive()
    stream = world.begin(rejected=place)
    stream.await_end()
    world.say(("add", "cheap", "nobody = 1", 4), ("add", "all", "TRUE", 5))
    world.arrive()
    stream = world.begin(rejected=place)
    stream.await_end()
    cheap = {(number, "cheap") for number in range(20) if number % 7 < 3}
    assert world.pairs() == cheap | {(number, "all") for number in range(10, 20)}
    rows = {(row.id, row.operation, row.error, row.batch) for row in stream.rejected.collect()}
    assert rows == {
        ("broken", "add", "ExpressionSyntaxError", 0), ("cheap", "drop", "OperationError", 0),
        ("cheap", "add", "UnknownAttributeError", 1),
    }  # fmt: skip
    assert [commit["rejected"] for commit in pipeline.commits(world.out)] == [2, 3]
    assert pipeline.read_rejected(world.spark, place).count() == 3
    assert len(list((world.folder / "aside").glob("*.parquet"))) == 2


@pytest.mark.spark
def test_times_say_the_order_too(world):
    frame = world.spark.readStream.schema(world.kind).parquet(str(world.changes))
    for sql in ("timestamp_micros(sequence)", "CAST(timestamp_micros(sequence) AS timestamp_ntz)"):
        timed = frame.selectExpr("operation", "subscription_id", "condition", f"{sql} AS time")
        world.say(("remove", "cheap", None, 2), ("add", "cheap", "TRUE", 1), ("add", "none", "number < 0", 1))
        world.arrive()
        world.start(timed).await_end()
        assert world.spark.read.parquet(str(world.out / "batch=0")).count() == 0
        (world.checkpoint, world.out) = (world.folder / "another", world.folder / "another out")
    with pytest.raises(pipeline.ColumnError, match=r"whole numbers or timestamps.*'condition' is string"):
        world.start(frame, sequence="condition")


@pytest.mark.spark
def test_if_the_changes_die_the_stream_ends_with_their_error(world, monkeypatch):
    world.say(("add", "cheap", "price < 3", 1))
    world.arrive()
    stream = world.begin(trigger={"processingTime": "0 seconds"})
    try:
        stream.await_all()
        monkeypatch.setattr(module, "applied", _dying)
        world.say(("add", "all", "TRUE", 2))
        with pytest.raises(Exception, match="the disk of the rules is full"):
            stream.await_end(timeout_s=60)
        assert not stream.query.isActive
        with pytest.raises(Exception, match="the disk of the rules is full"):
            stream.await_all()
    finally:
        stream.stop()
    monkeypatch.undo()
    world.arrive()
    world.begin().await_end()
    late = {(number, "all") for number in range(10, 20)}
    assert world.pairs() == {(number, "cheap") for number in range(20) if number % 7 < 3} | late


def _dying(*arguments, **options):
    raise OSError("the disk of the rules is full")


@pytest.mark.spark
def test_a_batch_that_starts_after_the_changes_have_died_is_not_matched(world, monkeypatch):
    world.say(("add", "cheap", "price < 3", 1))
    stream = world.begin(trigger={"processingTime": "0 seconds"})
    try:
        monkeypatch.setattr(streaming.BatchListener, "onQueryTerminated", lambda self, event: None)
        monkeypatch.setattr(module, "applied", _dying)
        world.say(("add", "all", "TRUE", 2))
        with pytest.raises(Exception, match="the disk of the rules is full"):
            stream.feeder.awaitTermination(60)
        world.arrive()
        with pytest.raises(Exception, match="the disk of the rules is full"):
            stream.await_end(timeout_s=60)
        assert pipeline.commits(world.out) == []
    finally:
        stream.stop()


POINTS = {
    "before the rejected rows": (module, "applied", False),
    "between the rejected rows and the version": (pipeline.SubscriptionLog, "append", False),
    "after the version, before Spark knows": (pipeline.SubscriptionLog, "append", True),
}


@pytest.mark.spark
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("folder", quick_on_paths)
def test_a_crash_at_any_step_of_the_changes_changes_nothing_in_the_result(world, monkeypatch, folder, point):
    world.move(address(world.spark, world.folder, folder))
    owner, name, is_after = POINTS[point]
    whole = getattr(owner, name)

    def crashing(*arguments, **options):
        if is_after:
            whole(*arguments, **options)
        raise RuntimeError("crash")

    world.say(("add", "cheap", "price < 3", 1), ("add", "broken", "price <", 2))
    world.arrive()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, crashing)
        with pytest.raises(Exception, match="crash"):
            world.begin()
    world.say(("add", "all", "TRUE", 3))
    stream = world.begin()
    stream.await_end()
    assert world.pairs() == {(n, "cheap") for n in range(10) if n % 7 < 3} | {(n, "all") for n in range(10)}
    assert [(row.id, row.batch) for row in stream.rejected.collect()] == [("broken", 0)]
    assert stream.log.version == 2


@pytest.mark.spark
def test_changes_that_cannot_be_read_at_all_are_refused_at_once(world):
    frame = world.spark.readStream.schema(world.kind).parquet(str(world.changes))
    for frame_of_changes, says in (
        (frame.drop("operation"), "no column 'operation'"),
        (
            frame.selectExpr("operation", "subscription_id", "1 AS condition"),
            "'condition' of the changes must hold texts",
        ),
        (frame.selectExpr("operation", "condition", "1.5 AS subscription_id"), "ids must be integers or strings"),
    ):
        with pytest.raises(pipeline.ColumnError, match=says):
            world.start(frame_of_changes)
    with pytest.raises(pipeline.OptionError, match="changes that come as a stream"):
        world.start(sequence="sequence", trigger=ONCE)
    assert not world.checkpoint.exists()
    assert not world.out.exists()
