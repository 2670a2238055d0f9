from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tamis.errors import ExpressionSyntaxError

pipeline = pytest.importorskip("tamis.spark")


def test_every_version_stays_as_it_was(tmp_path):
    log = pipeline.SubscriptionLog(tmp_path)
    assert (log.version, log.at(0)) == (0, {})
    assert log.add({1: "price < 20", 2: "signed"}) == 1
    assert log.change(add={2: "NOT signed"}, remove=[1, 99]) == 2
    assert log.at(1) == {1: "price < 20", 2: "signed"}
    assert log.at(2) == {2: "NOT signed"}
    assert pipeline.SubscriptionLog(tmp_path).at(2) == log.at(2)


def test_a_text_that_does_not_parse_changes_nothing(tmp_path):
    log = pipeline.SubscriptionLog(tmp_path)
    with pytest.raises(ExpressionSyntaxError):
        log.add({1: "TRUE", 2: "price <"})
    assert log.version == 0


def test_ids_are_of_one_type(tmp_path):
    log = pipeline.SubscriptionLog(tmp_path)
    with pytest.raises(pipeline.ColumnError):
        log.add({1: "TRUE", "two": "TRUE"})
    log.add({1: "TRUE"})
    with pytest.raises(pipeline.ColumnError, match="type int"):
        log.add({"two": "TRUE"})


def test_writers_at_the_same_time_get_versions_of_their_own(tmp_path):
    logs = [pipeline.SubscriptionLog(tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(lambda number: logs[number % 4].add({number: "TRUE"}), range(40)))
    assert sorted(versions) == list(range(1, 41))
    assert set(logs[0].at(40)) == set(range(40))


def test_what_a_source_wrote_once_it_does_not_write_again(tmp_path):
    log = pipeline.SubscriptionLog(tmp_path)
    assert log.append({1: "TRUE"}, source="batch 0") == 1
    assert log.append({2: "TRUE"}, source="batch 1") == 2
    assert log.append({1: "TRUE"}, source="batch 0") == 1
    assert log.version == 2


def test_a_version_that_is_not_there_is_named(tmp_path):
    with pytest.raises(pipeline.OptionError, match="no version 3"):
        pipeline.SubscriptionLog(tmp_path).changes(3)
