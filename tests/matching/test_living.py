"""A matcher one can live with: changed in one step, looked into, copied, forked, and no larger than what is in it."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import sleep

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import SchemaError, TamisError
from tamis.matching import (
    BadTableError,
    DuplicateIdError,
    Matcher,
    MatcherOptionError,
    SavedMatcherError,
    Subscription,
    UnknownIdError,
    UnsupportedExpressionError,
    register,
)
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.block import algorithm as block
from tests.matching.histories import CONDITIONS, EVENTS, HOLDS
from tests.strategies import conditions, events

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)


@pytest.fixture
def worn(monkeypatch):
    """Places are renumbered at once, not when a thousand are lost."""
    monkeypatch.setattr(register, "_FREE_PLACES_KEPT", 0)


# -- One step


@every_algorithm
def test_a_match_sees_the_old_rule_or_the_new_one_never_neither_or_both(algorithm):
    # With remove and add instead of one step, half of the matches miss the rule.
    matcher = Matcher(algorithm)
    matcher.add_many({number: f"a > {number}" for number in range(40)})
    matcher.add("rule", "a >= 0", metadata=0)
    is_over = threading.Event()
    steps = [
        lambda number: matcher.replace("rule", f"a >= {-number}", metadata=number),
        lambda number: matcher.upsert("rule", f"a > {-number - 1}", metadata=number),
        lambda number: matcher.change(remove=["rule"], add=[("rule", f"a >= {-number}", 0, number)]),
        lambda number: matcher.upsert_many([("rule", "a < 0"), ("rule", f"a >= {-number}", 0, number)]),
    ]

    def change():
        for number in range(400):
            steps[number % len(steps)](number)
        is_over.set()

    def look(is_batch):
        seen = []
        while not is_over.is_set():
            if is_batch:
                found = matcher.match_batch([{"a": 5}, {"a": 6}], metadata=True)["subscription"].to_pylist()
                seen.append(found.count("rule") / 2)
            else:
                found = [value for name, value in matcher.match({"a": 5}, metadata=True, among=["rule"])]
                seen.append(len(found))
                assert found[0] is not None
        return seen

    for number in range(40):
        matcher.change(remove=[number], add={f"r{number}": f"a > {number}"})  # texts, for a column of one type
    with ThreadPoolExecutor(3) as pool:
        looking = [pool.submit(look, is_batch) for is_batch in (False, True)]
        pool.submit(change).result()
        for future in looking:
            seen = future.result()
            assert set(seen) == {1}, f"{len([each for each in seen if each != 1])} of {len(seen)} missed or doubled it"


def test_remove_and_add_in_two_steps_would_be_seen():
    """The test above can fail: this is what it would find."""
    matcher = Matcher()
    matcher.add("rule", "a >= 0")
    is_over, match_count = threading.Event(), 0

    def change():
        for _ in range(20):
            matcher.remove("rule")
            before = match_count
            while match_count < before + 2:  # until a match has begun and ended in between
                sleep(0)
            matcher.add("rule", "a >= 0")
        is_over.set()

    missed = 0
    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        while not is_over.is_set():
            missed += matcher.match({"a": 5}) != ["rule"]
            match_count += 1
        changing.result()
    assert missed >= 20


MODEL_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "replace", "upsert", "change", "remove", "clear", "save", "pickle", "copy"]),
        st.lists(st.integers(0, 5), min_size=1, max_size=4),
        st.lists(conditions, min_size=4, max_size=4),
    ),
    max_size=8,
)


@every_algorithm
@given(steps=MODEL_STEPS, event=events())
@settings(max_examples=40)
def test_every_change_does_what_it_does_to_a_dictionary(algorithm, steps, event, tmp_path_factory):
    matcher = Matcher(algorithm)
    expected: dict[int, tuple] = {}
    few, register._FREE_PLACES_KEPT = register._FREE_PLACES_KEPT, 0
    try:
        for step, ids, texts in steps:
            pairs = dict(zip(ids, texts, strict=False))
            with suppress(UnsupportedExpressionError, SavedMatcherError):
                matcher, expected = changed(matcher, expected, step, pairs, tmp_path_factory)
            assert matcher.ids() == list(matcher) == list(expected)
            assert len(matcher) == len(expected)
            wanted = [each for each, (expression, _, _) in expected.items() if tamis.holds(expression, event)]
            assert matcher.match(event, metadata=True) == [
                (each, expected[each][2]) for each in sorted(wanted, key=lambda each: -expected[each][1])
            ]
            for each, (expression, priority, metadata) in expected.items():
                record = matcher.get(each)
                assert (record.priority, record.metadata) == (priority, metadata)
                assert matcher.expression(each) == expression
    finally:
        register._FREE_PLACES_KEPT = few


def changed(matcher, expected, step, pairs, folders):
    """Make a step to both; return both."""
    after = dict(expected)
    match step:
        case "add":
            after |= {each: (pairs[each], each % 3, [each]) for each in pairs}
            rows = [(each, pairs[each], each % 3, [each]) for each in pairs]
            if pairs.keys() & expected.keys():
                with pytest.raises(DuplicateIdError):
                    matcher.add_many(rows)
                return matcher, expected
            matcher.add_many(rows)
        case "replace":
            each, condition = next(iter(pairs.items()))
            if each not in expected:
                with pytest.raises(UnknownIdError):
                    matcher.replace(each, condition)
                return matcher, expected
            _, *rest = after.pop(each)
            after[each] = (condition, *rest)
            matcher.replace(each, condition)
        case "upsert":
            for each, condition in pairs.items():
                after.pop(each, None)
                after[each] = (condition, 0, None)
            matcher.upsert_many(pairs)
        case "change":
            gone = [each for each in pairs if each in expected]
            for each in gone:
                del after[each]
            after |= {each: (condition, 0, None) for each, condition in pairs.items()}
            matcher.change(remove=gone, add=pairs)
        case "remove":
            gone = [each for each in pairs if each in expected]
            for each in gone:
                del after[each]
            matcher.remove_many(gone)
        case "clear":
            after = {}
            matcher.clear()
        case "save":
            path = folders.mktemp("saved") / "matcher"
            matcher.save(path)
            matcher = Matcher.load(path)
        case "pickle":
            matcher = pickle.loads(pickle.dumps(matcher))
        case "copy":
            before, matcher = matcher, copy.deepcopy(matcher)
            before.clear()
    return matcher, after


def test_a_change_happens_as_a_whole_or_not_at_all():
    matcher = Matcher()
    matcher.add_many({1: "a > 1", 2: "a > 2"})
    bad = [
        ({"remove": [1], "add": {3: "a >"}}, TamisError),
        ({"remove": [1, 9]}, UnknownIdError),
        ({"remove": [1, 1]}, UnknownIdError),
        ({"remove": [1], "add": {2: "a > 5"}}, DuplicateIdError),
        ({"add": {3: "a > 1"}, "upsert": {3: "a > 2"}}, DuplicateIdError),
        ({"upsert": [(1, "a >"), (1, "a > 5")]}, TamisError),
        ({"remove": "12"}, MatcherOptionError),
        ({"add": "12"}, BadTableError),
    ]
    for change, error in bad:
        with pytest.raises(error):
            matcher.change(**change)
        assert dict(matcher.items()) == {1: "a > 1", 2: "a > 2"}
        assert matcher.match({"a": 5}) == [1, 2]


@every_algorithm
def test_an_algorithm_that_fails_in_the_middle_leaves_the_old_rule(algorithm, monkeypatch):
    matcher = Matcher(algorithm)
    matcher.add("rule", "a > 1")

    def fail(*_):
        raise MemoryError("as an example")

    with monkeypatch.context() as patch:
        patch.setattr(matcher._engine, "add", fail)
        with pytest.raises(MemoryError):
            matcher.replace("rule", "a > 2")
    assert matcher.match({"a": 2}) == ["rule"]
    assert matcher.text("rule") == "a > 1"


def test_upserted_rows_that_are_bad_are_skipped_and_the_last_good_one_counts():
    matcher = Matcher()
    matcher.add_many({1: "a > 1", 2: "a > 2"})
    rows = [
        (1, "a > 10"),
        (1, "a > 11"),
        (1, "a >"),
        (3, "a <"),
        (None, "a"),
        (4, "a > 4"),
        ([], "a > 1"),
        ([], "a > 1"),
    ]
    rejected = matcher.upsert_many(rows, on_error="skip")
    assert [(each.id, each.error) for each in rejected] == [
        (1, "ExpressionSyntaxError"),
        (3, "ExpressionSyntaxError"),
        (None, "BadTableError"),
        ([], "BadTableError"),
        ([], "BadTableError"),
    ]
    assert dict(matcher.items()) == {2: "a > 2", 1: "a > 11", 4: "a > 4"}


# -- Looking inside


def test_a_matcher_says_what_is_in_it():
    matcher = Matcher(schema={"a": "int", "s": "string"})
    assert repr(matcher) == "<Matcher 'block': 0 subscriptions, 2 attributes>"
    matcher.add("x", "a > 1", priority=3, metadata={"mail": "x@example.org"})
    matcher.add("y", tamis.attr("a") > 2)
    assert repr(matcher) == "<Matcher 'block': 2 subscriptions, 2 attributes>"
    assert matcher.ids() == list(matcher) == ["x", "y"]
    assert list(matcher.items()) == [("x", "a > 1"), ("y", "a > 2")]
    assert matcher.get("x") == Subscription("x", "a > 1", 3, {"mail": "x@example.org"})
    assert matcher.get("z") is None
    assert matcher.get("z", 7) == 7
    assert matcher.text("y") == "a > 2"
    with pytest.raises(UnknownIdError):
        matcher.text("z")
    matcher.clear()
    assert len(matcher) == 0
    assert matcher.match({"a": 5}) == []
    matcher.add("x", "a > 4")
    assert matcher.match({"a": 5}) == ["x"]
    assert {"change", "get", "upsert"} <= set(dir(matcher))


@every_algorithm
def test_destinations_live_through_changes_renumbering_and_copies(algorithm, worn):
    matcher = Matcher(algorithm)
    rows = dict.fromkeys(range(20), "a >= 0")
    matcher.add_many(rows, destinations=[("way", number % 4) for number in range(20)])
    matcher.remove_many(range(14))
    matcher.replace(15, "a > 5")
    matcher.replace(16, "a > 0", destination="new")
    matcher.upsert_many({17: "a >= 0"})
    matcher.change(upsert={18: "a >= 0"}, destinations={18: ("way", 9)})
    expected = {14: ("way", 2), 19: ("way", 3), 15: ("way", 3), 16: "new", 17: None, 18: ("way", 9)}
    for each in (matcher, pickle.loads(pickle.dumps(matcher))):
        assert {number: each.destination(number) for number in each} == expected
        assert each.match_shortcut({"a": 1})[0] == [17]
        assert set(each.match_destinations({"a": 1})) == set(expected.values()) - {None}
        assert set(each.match_destinations({"a": 0})) == {("way", 2), ("way", 3), ("way", 9)}
        assert each.get(16).destination == "new"


def test_tamis_lists_the_names_that_it_has():
    assert set(tamis.__all__) <= set(dir(tamis))
    for name in dir(tamis):
        assert getattr(tamis, name) is not None or name in (
            "__path__",
            "__file__",
            "__loader__",
            "__spec__",
            "__cached__",
        )


def test_listing_the_names_of_tamis_imports_nothing():
    look = "import sys, tamis; names = dir(tamis); assert 'Matcher' in names; print(sorted({'numba', 'aiohttp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def test_a_schema_may_be_a_dict():
    matcher = Matcher(schema={"price": "double", "position": {"x": "int"}})
    assert matcher.schema == tamis.Schema({"price": "double", "position": {"x": "int"}})
    with pytest.raises(tamis.errors.UnknownAttributeError, match="Did you mean price"):
        matcher.add(1, "prize > 1")
    for wrong in ([("price", "double")], "price double", 5):
        with pytest.raises(SchemaError, match="or a dict of names and types"):
            Matcher(schema=wrong)
    with pytest.raises(SchemaError):
        Matcher(schema={"price": "doubel"})


# -- Metadata


def test_metadata_comes_back_with_matches(tmp_path):
    matcher = Matcher()
    matcher.add_many(
        [{"id": 1, "where": "a > 1", "mail": "x@example.org", "shop": 3}, {"id": 2, "where": "a > 2", "mail": None}],
        metadata=["mail", "shop"],
    )
    matcher.add(3, "a > 3")
    expected = [(1, {"mail": "x@example.org", "shop": 3}), (2, {"mail": None, "shop": None}), (3, None)]
    assert matcher.match({"a": 9}, metadata=True) == expected
    assert matcher.match({"a": 9}) == [1, 2, 3]
    table = matcher.match_batch([{"a": 9}, {"a": 0}, {"a": 2}], metadata=True)
    assert table.column_names == ["event", "subscription", "metadata"]
    assert table["metadata"].to_pylist() == [*(value for _, value in expected), expected[0][1]]
    assert matcher.match_batch([{"a": 0}], metadata=True).num_rows == 0
    matcher.save(tmp_path / "saved")
    assert Matcher.load(tmp_path / "saved").match({"a": 9}, metadata=True) == expected
    assert Matcher.load(tmp_path / "saved", recompile=True).match({"a": 9}, metadata=True) == expected


@pytest.mark.parametrize("metadata", [(1, 2), {1: 2}, float("nan"), object(), {1}, b"x", "\ud800"])
def test_metadata_that_json_has_no_form_for_is_pickled_but_not_saved(tmp_path, metadata):
    matcher = Matcher()
    matcher.add(1, "a > 1", metadata=metadata)
    with pytest.raises(SavedMatcherError, match=r"only metadata with a JSON form|half a surrogate"):
        matcher.save(tmp_path / "saved")
    if type(metadata) is not object:
        found = pickle.loads(pickle.dumps(matcher)).get(1).metadata
        assert found == metadata or metadata != metadata


def test_metadata_without_a_common_type_has_no_column():
    matcher = Matcher()
    matcher.add(1, "a > 1", metadata="x")
    matcher.add(2, "a > 1", metadata=5)
    with pytest.raises(BadTableError, match="metadata of several types"):
        matcher.match_batch([{"a": 2}], metadata=True)


# -- Copies


@every_algorithm
def test_a_pickled_matcher_is_the_same_whatever_its_ids_are(algorithm):
    matcher = Matcher(algorithm, schema={"a": "int"})
    matcher.add_many([(("x", 1), "a > 1"), (None.__class__, "a > 2", 4), ("gone", "a > 0"), (2.5, "a > 3")])
    matcher.remove("gone")
    for other in (pickle.loads(pickle.dumps(matcher)), copy.deepcopy(matcher), copy.copy(matcher)):
        assert other.match({"a": 9}) == [type(None), ("x", 1), 2.5]
        assert other.schema == matcher.schema
        other.add("new", "a > 5")
        other.remove(2.5)
        assert other.match({"a": 9}) == [type(None), ("x", 1), "new"]
    assert "new" not in matcher


def test_a_pickle_that_is_damaged_says_so():
    matcher = Matcher()
    matcher.add(1, "a > 1")
    rebuild, (kind, content, given) = matcher.__reduce__()
    for broken in (content[:40], b"", content[:-1] + b"\x01x", content.replace(b"a > 1", b"a < 1")):
        with pytest.raises(SavedMatcherError):
            rebuild(kind, broken, given)


# -- Slots


@every_algorithm
def test_places_of_removed_subscriptions_are_used_again(algorithm, tmp_path):
    matcher = Matcher(algorithm)
    matcher.add_many({number: CONDITIONS[number % len(CONDITIONS)] for number in range(100)})
    matcher.match_batch(EVENTS * 3)
    after_some = None
    for turn in range(7):
        for number in range(100):
            matcher.replace(number, CONDITIONS[(number + turn) % len(CONDITIONS)], priority=number % 2)
        matcher.remove_many(range(100))
        matcher.add_many([(number, CONDITIONS[(number + turn) % len(CONDITIONS)], number % 2) for number in range(100)])
        for _ in range(10):
            matcher.upsert_many(
                [(number, CONDITIONS[(number + turn) % len(CONDITIONS)], number % 2) for number in range(100)]
            )
        matcher.match_batch(EVENTS * 3)
        assert len(matcher._register) <= 100 + 2 * register._FREE_PLACES_KEPT
        for event, holds in zip(EVENTS, HOLDS, strict=True):
            present = [number for number in range(100) if holds[(number + turn) % len(CONDITIONS)]]
            assert matcher.match(event) == sorted(present, key=lambda number: -(number % 2))
        if turn == 2:
            after_some = matcher.memory()
    assert matcher.memory() < 1.6 * after_some
    matcher.save(tmp_path / "saved")
    loaded = Matcher.load(tmp_path / "saved")
    assert len(loaded._register) <= 164, "what was removed is not saved"
    assert loaded.ids() == matcher.ids()
    assert [loaded.match(event) for event in EVENTS] == [matcher.match(event) for event in EVENTS]


@every_algorithm
def test_the_column_of_no_matches_has_the_type_of_ids(algorithm, worn, tmp_path):
    matcher = Matcher(algorithm)
    matcher.add_many({1: "a > 1", 2: "a > 2"})
    matcher.remove_many([1, 2])
    matcher.save(tmp_path / "saved")
    for each in (matcher, Matcher.load(tmp_path / "saved"), pickle.loads(pickle.dumps(matcher))):
        assert str(each.match_batch([{"a": 5}])["subscription"].type) == "int64"


def test_many_updates_leave_nothing_behind(tmp_path):
    matcher = Matcher()
    matcher.add_many({number: f"a > {number}" for number in range(100)})
    before = matcher.memory()
    for turn in range(300):
        matcher.upsert_many({number: f"a > {number + turn % 2}" for number in range(100)})
        if turn % 10 == 0:
            matcher.match({"a": 5})
    matcher.match_batch([{"a": 5}] * 2)
    assert matcher.memory() < 2 * before + 200_000
    matcher.save(tmp_path / "saved")
    assert os.path.getsize(tmp_path / "saved") < 200_000


def test_removals_one_by_one_do_not_renumber_all_again_and_again(monkeypatch):
    # A segment holds its dead until it is merged, so new handles free nothing before that.
    matcher = Matcher()
    matcher.add_many({number: f"a > {number}" for number in range(6_000)})
    matcher.match({"a": 5})
    renumberings = []
    renumber = Matcher._renumber
    monkeypatch.setattr(Matcher, "_renumber", lambda self: renumberings.append(len(self)) or renumber(self))
    for number in range(5_990):
        matcher.remove(number)
    assert 1 <= len(renumberings) <= 8
    assert matcher.match({"a": 5_995}) == [5_990, 5_991, 5_992, 5_993, 5_994]


@every_algorithm
def test_a_match_that_began_before_goes_on_with_the_old_handles(algorithm, worn):
    matcher = Matcher(algorithm)
    matcher.add_many({f"r{number}": CONDITIONS[number % len(CONDITIONS)] for number in range(60)})
    expected = [matcher.match(event) for event in EVENTS]
    snapshot, names, _ = matcher._snapshot(None)
    matcher.remove_many([f"r{number}" for number in range(40)])
    matcher.add("late", "n >= 0")
    assert matcher._register is not names, "they were renumbered"
    for event, ids in zip(EVENTS, expected, strict=True):
        assert names.names(names.in_order(snapshot.match_event(event))) == ids
    present = range(40, 60)
    for event, holds in zip(EVENTS, HOLDS, strict=True):
        wanted = [f"r{number}" for number in present if holds[number % len(CONDITIONS)]]
        assert matcher.match(event) == [*wanted, "late"]


def test_a_merge_behind_a_renumbering_changes_nothing(worn, monkeypatch):
    is_reached, is_free = threading.Event(), threading.Event()
    plain = block.BlockAlgorithm._merged

    def held(self, parts, opened=()):
        merged = plain(self, parts, opened)
        if threading.current_thread() is not threading.main_thread():
            is_reached.set()
            assert is_free.wait(60)
        return merged

    monkeypatch.setattr(block.BlockAlgorithm, "_merged", held)
    matcher = Matcher()
    for first in (0, 40):
        matcher.add_many({number: CONDITIONS[number % len(CONDITIONS)] for number in range(first, first + 40)})
        matcher.match_batch(EVENTS[:2])
    assert is_reached.wait(60)
    matcher.remove_many(range(45))
    assert len(matcher._register) < 80 + 1
    is_free.set()
    matcher._engine.settle()
    for event, holds in zip(EVENTS, HOLDS, strict=True):
        assert matcher.match(event) == [number for number in range(45, 80) if holds[number % len(CONDITIONS)]]


# -- Forks

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def in_child(work, timeout_s=60):
    """Run something in a forked child, and return what it returned, as JSON; a child that hangs is an error."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.write(writing, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    end = time.monotonic() + timeout_s
    while (done := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child hangs")
        sleep(0.01)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    assert done[1] == 0, "the child failed"
    return json.loads(text)


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_during_a_merge_merges_again(monkeypatch):
    is_reached, is_free = threading.Event(), threading.Event()
    plain, parent = block.BlockAlgorithm._merged, os.getpid()

    def held(self, parts, opened=()):
        merged = plain(self, parts, opened)
        if threading.current_thread() is not threading.main_thread() and os.getpid() == parent:
            is_reached.set()
            assert is_free.wait(60)
        return merged

    monkeypatch.setattr(block.BlockAlgorithm, "_merged", held)
    matcher = Matcher()
    for first in (0, 40):
        matcher.add_many({number: CONDITIONS[number % len(CONDITIONS)] for number in range(first, first + 40)})
        matcher.match_batch(EVENTS[:2])
    assert is_reached.wait(60)

    def work():
        before = [matcher.match(event) for event in EVENTS]
        matcher.add_many({number: CONDITIONS[number % len(CONDITIONS)] for number in range(80, 120)})
        matcher.match_batch(EVENTS[:2])
        matcher._engine.settle()
        return before, matcher.statistics()["segments"], [matcher.match(event) for event in EVENTS]

    before, segments, after = in_child(work)
    is_free.set()
    matcher._engine.settle()
    assert segments == [120], "the child merged"
    assert before == [[n for n in range(80) if holds[n % len(CONDITIONS)]] for holds in HOLDS]
    assert after == [[n for n in range(120) if holds[n % len(CONDITIONS)]] for holds in HOLDS]


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@every_algorithm
def test_a_child_forked_while_threads_register_and_match_is_whole(algorithm):
    matcher = Matcher(algorithm)
    matcher.add_many({f"r{number}": CONDITIONS[number % len(CONDITIONS)] for number in range(50)})
    matcher.watch()
    expected = [f"r{number}" for number in range(50) if HOLDS[3][number % len(CONDITIONS)]]
    is_over = threading.Event()

    def write():
        while not is_over.is_set():
            matcher.add_many({f"pair {side}": "n >= 0" for side in "ab"})
            matcher.remove_many(["pair a", "pair b"])

    def look():
        while not is_over.is_set():
            matcher.match(EVENTS[3])
            matcher.list_batch(EVENTS * 3)

    def work():
        found = matcher.match(EVENTS[3])
        pairs = [each for each in found if each.startswith("pair")]
        if pairs:
            matcher.remove_many(pairs)
        matcher.add("child", "n = 3")
        return len(pairs), matcher.match(EVENTS[3]), matcher.list_batch(EVENTS * 3).to_pylist()[3]

    threads = [threading.Thread(target=target) for target in (write, look, look)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            pair_count, one, many = in_child(work)
            assert pair_count in (0, 2), "half a change"
            assert one == many == [*expected, "child"]
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert "child" not in matcher


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_the_parent_goes_on_after_a_fork():
    matcher = Matcher()
    matcher.add(1, "a > 1")
    assert in_child(lambda: matcher.match({"a": 5})) == [1]
    with ThreadPoolExecutor(1) as pool:  # another thread may take all locks
        pool.submit(matcher.add, 2, "a > 2").result(timeout=30)
        assert pool.submit(matcher.match, {"a": 5}).result(timeout=30) == [1, 2]


def test_sizes_are_those_of_what_is_there():
    assert sys.getsizeof(Matcher()) < 1000
    assert np.array_equal(Matcher()._register.living(), [])
