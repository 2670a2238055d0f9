"""What is the same for every algorithm: ids, clients, mistakes, what is forgotten, what an operator sees."""

from __future__ import annotations

import math
import threading

import pyarrow as pa
import pytest

import tamis
from tamis.errors import EventError, LanguageError, TamisError, UnknownAttributeError
from tamis.matching.errors import BadTableError, DuplicateIdError, UnknownIdError
from tamis.topk import Delivery, LateEventError, Ranked, SettingError, TopK
from tamis.topk.algorithms import ALGORITHMS

ALL = pytest.mark.parametrize("algorithm", ALGORITHMS)


@ALL
def test_boolean_and_ranked_subscriptions_live_together(algorithm):
    processor = TopK(algorithm)
    processor.add_many({"cheapest": "TOP 1 BY price OVER 3 EVENTS", "cheap": "price < 20", "all": "TRUE"})
    told = [processor.process({"price": price}, float(at), at) for at, price in enumerate([10, 30, 15])]
    assert [[each.subscription for each in some] for some in told] == [
        ["cheapest", "cheap", "all"], ["all"], ["cheap", "all"],
    ]  # fmt: skip


@ALL
def test_all_of_many_are_registered_or_none(algorithm):
    processor = TopK(algorithm)
    with pytest.raises(LanguageError) as caught:
        processor.add_many([("good", "TOP 1 BY price OVER 3 EVENTS"), ("bad", "TOP 1 BY OVER")])
    assert "in the subscription 'bad'" in caught.value.__notes__
    assert len(processor) == 0
    with pytest.raises(DuplicateIdError):
        processor.add_many([("same", "a = 1"), ("same", "a = 2")])
    assert "same" not in processor
    assert processor.process({"price": 1}, 0.0) == []


def test_mistakes_are_told_with_typed_errors():
    processor = TopK("strict", schema=tamis.Schema({"price": "double"}))
    processor.add("s", "TOP 1 BY price OVER 3 EVENTS")
    for call, error in (
        (lambda: processor.add("s", "price > 1"), DuplicateIdError),
        (lambda: processor.add("t", "TOP 1 BY prize OVER 3 EVENTS"), UnknownAttributeError),
        (lambda: processor.add("t", Ranked("prize", 1, "1 HOUR")), UnknownAttributeError),
        (lambda: processor.add("t", 5), BadTableError),
        (lambda: processor.add("t", tamis.parse("price + 1 > 2").left), BadTableError),
        (lambda: processor.remove("t"), UnknownIdError),
        (lambda: processor.activate("t"), UnknownIdError),
        (lambda: processor.threshold("t"), UnknownIdError),
        (lambda: processor.process("event", 0.0), EventError),
        (lambda: processor.process({}, math.nan), EventError),
        (lambda: processor.process({}, "now"), EventError),
        (lambda: processor.process({}, True), EventError),
        (lambda: processor.process({}, 0.0, expires=math.nan), EventError),
        (lambda: processor.process_batch([{}, {}], [0.0]), EventError),
        (lambda: processor.advance(math.inf), EventError),
    ):
        with pytest.raises(error) as caught:
            call()
        assert isinstance(caught.value, TamisError)
        assert str(caught.value)
    processor.add("condition", "price > 1")
    with pytest.raises(SettingError, match="is a condition and has no threshold"):
        processor.threshold("condition")


def test_what_comes_too_late_is_refused_and_changes_nothing():
    processor = TopK("strict")
    processor.add("s", "TOP 1 BY x OVER 3 EVENTS")
    processor.process({"x": 1}, 5.0)
    with pytest.raises(LateEventError, match=r"everything before 5\.0 is settled"):
        processor.process({"x": 0}, 4.0)
    with pytest.raises(LateEventError):
        processor.process_batch([{"x": 0}, {"x": 0}], [6.0, 5.5])
    with pytest.raises(LateEventError):
        processor.advance(4.0)
    with pytest.raises(LateEventError):
        processor.withdraw(0, 4.0)
    assert processor.statistics()["events"] == 1
    waiting = TopK("strict", lateness=2.0)
    waiting.add("s", "TOP 1 BY x OVER 3 EVENTS")
    assert waiting.process({"x": 1}, 5.0, "late") == []
    assert waiting.process({"x": 2}, 4.0, "early") == []
    assert waiting.statistics()["waiting"] == 2
    assert waiting.advance(7.0) == [Delivery("s", "early", 4.0), Delivery("s", "late", 5.0)]
    assert waiting.now == 5.0


@ALL
def test_a_batch_is_the_same_as_its_events_one_by_one_also_from_arrow(algorithm):
    events = [{"x": x, "c": "ab"[x % 2]} for x in (5, 3, 8, 1, 9, 2, 2, 7, 0, 4)]
    times = [0.0, 0.0, 1.0, 2.0, 2.0, 2.0, 5.0, 6.0, 6.5, 9.0]
    wanted = {"s1": "TOP 2 BY x OVER 3 EVENTS", "s2": "TOP 1 BY x DESC OVER 2 SECONDS WHERE c = 'a'", "s3": "x > 6"}
    single, batch, arrow = TopK(algorithm), TopK(algorithm), TopK(algorithm)
    for processor in (single, batch, arrow):
        processor.add_many(wanted)
    one_by_one = [each for event, at in zip(events, times, strict=True) for each in single.process(event, at)]
    assert batch.process_batch(events, times) == one_by_one
    assert arrow.process_batch(pa.Table.from_pylist(events), times) == one_by_one
    assert len(one_by_one) > 8


@ALL
def test_a_client_is_told_once_whichever_subscription_is_first(algorithm):
    processor = TopK(algorithm)
    processor.add("wide", "TOP 3 BY x OVER 5 EVENTS", client="ann")
    processor.add("narrow", "TOP 1 BY x OVER 2 EVENTS", client="ann")
    processor.add("other", "TOP 1 BY x OVER 2 EVENTS", client="bob")
    told = [each for at, x in enumerate([1, 2, 3, 4, 5]) for each in processor.process({"x": x}, float(at), at)]
    assert [(each.subscription, each.event) for each in told if each.subscription != "other"] == [
        ("wide", 0), ("wide", 1), ("wide", 2), ("narrow", 3),
    ]  # fmt: skip
    assert sum(each.subscription == "other" for each in told) == 4


@pytest.mark.parametrize("algorithm", ["strict", "relaxed", "probabilistic", "block"])
def test_what_nobody_can_be_told_any_more_is_forgotten(algorithm):
    processor = TopK(algorithm, remember=100)
    processor.add("s", "TOP 2 BY x OVER 50 EVENTS", client="ann")
    processor.add("t", "TOP 2 BY x OVER 50 EVENTS", client="ann")
    for begin in range(0, 30_000, 1_000):
        events = [{"x": (7_919 * at) % 1_009} for at in range(begin, begin + 1_000)]
        processor.process_batch(events, [float(at) for at in range(begin, begin + 1_000)])
    assert len(processor._ids) < 15_000
    assert len(processor._numbers) < 15_000
    assert len(processor._clients["ann"].told) < 15_000
    assert len(processor._seen) <= 101


def test_an_id_that_was_long_ago_may_come_again():
    processor = TopK("strict", remember=2)
    processor.add("s", "TRUE")
    assert [len(processor.process({}, 0.0, name)) for name in "aabcaa"] == [1, 0, 1, 1, 1, 0]


def test_an_operator_sees_what_is_there():
    processor = TopK("relaxed", filter="probabilistic")
    processor.add("s", "TOP 1 BY x OVER 3 EVENTS")
    processor.add("resting", "x > 1", is_active=False)
    processor.process({"x": 1}, 0.0)
    found = processor.statistics()
    assert (found["algorithm"], found["filter"], found["subscriptions"], found["active"]) == (
        "relaxed", "probabilistic", 2, 1,
    )  # fmt: skip
    assert processor.is_active("s") and not processor.is_active("resting")
    assert processor.wanted("s") == Ranked("x", 1, "3 EVENTS")
    assert processor.candidates("s") >= 1
    assert processor.candidates("resting") == 0
    assert TopK("block").statistics()["groups"] == {}


def test_threads_may_share_a_processor():
    processor = TopK("block")
    processor.add_many({f"s{place}": f"TOP 1 BY x - {place} OVER 100 EVENTS" for place in range(20)})
    told, failed = [], []

    def publish():
        try:
            for x in range(100):
                told.extend(processor.process({"x": x}, 0.0))
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=publish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert processor.statistics()["events"] == 400
    assert len({(each.subscription, each.event) for each in told}) == len(told)
