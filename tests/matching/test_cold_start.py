"""Who finds no compiled kernels is answered at once, by Python, and later by the kernels, and always the same."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Matcher, holds, parse
from tamis.matching.block import algorithm, readiness
from tests.strategies import conditions
from tests.strategies import events as any_events


class Gate(readiness.Readiness):
    """Kernels that are compiled when a test lets them be."""

    def __init__(self):
        super().__init__()
        self._is_cold = True
        self.opens = threading.Event()
        self.begun = 0

    def look(self):
        return self._is_cold

    def compile(self, exercise):
        self.begun += 1
        assert self.opens.wait(60)
        super().compile(exercise)


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    monkeypatch.setattr(readiness, "OF_THIS_PROCESS", gate)
    monkeypatch.setattr(algorithm, "are_few", lambda parts, events: events.count <= 1)
    yield gate
    gate.opens.set()


RULES = {number: f"a = {number % 7} AND b < {number} OR c AND b > {2 * number}" for number in range(400)}
EVENTS = [{"a": number % 9, "b": number, "c": number % 2 == 0} for number in range(300)]


def expected(rules, events):
    read = {name: parse(text) for name, text in rules.items()}
    return [[name for name, rule in read.items() if holds(rule, event)] for event in events]


def test_a_batch_is_answered_before_kernels_are_there_and_by_them_when_they_are(gate, caplog):
    matcher = Matcher()
    matcher.add_many(RULES)
    right = expected(RULES, EVENTS)
    assert matcher.list_batch(EVENTS).to_pylist() == right
    assert matcher.statistics()["segments"] == [], "nothing was laid out for it"
    assert matcher.match(EVENTS[5]) == right[5]
    assert matcher.count_batch(pa.Table.from_pylist(EVENTS)).to_pylist() == list(map(len, right))
    gate.opens.set()
    matcher.settle()
    assert "being compiled in the background" in caplog.text and "tamis warm" in caplog.text
    assert gate.begun == 1, "one thread compiles, however many ask"
    assert (matcher.statistics()["segments"], matcher.open_count) == ([len(RULES)], 0)
    assert matcher.list_batch(EVENTS).to_pylist() == right
    assert matcher.match(EVENTS[5]) == right[5]


def test_subscriptions_come_and_go_while_kernels_are_compiled(gate):
    matcher = Matcher()
    matcher.add_many(RULES)
    matcher.count_batch(EVENTS)
    matcher.remove_many(range(0, 400, 2))
    matcher.add("late", "b > 290")
    rules = {name: text for name, text in RULES.items() if name % 2} | {"late": "b > 290"}
    assert matcher.list_batch(EVENTS).to_pylist() == expected(rules, EVENTS)
    gate.opens.set()
    matcher.settle()
    assert matcher.list_batch(EVENTS).to_pylist() == expected(rules, EVENTS)


def test_destinations_are_reached_before_kernels_are_there(gate):
    matcher = Matcher()
    matcher.add_many(RULES, destinations={name: name % 5 for name in RULES})
    right = [sorted({name % 5 for name in names}) for names in expected(RULES, EVENTS)]
    reached = [[] for _ in EVENTS]
    for row in matcher.match_destinations_batch(EVENTS).to_pylist():
        reached[row["event"]].append(row["destination"])
    assert list(map(sorted, reached)) == right
    assert sorted(matcher.match_destinations(EVENTS[3])) == right[3]


@pytest.mark.parametrize(("rules", "count", "at_once"), [(10, 300, True), (400, 300, True), (400, 60_000, False)])
def test_what_takes_longer_than_the_compiler_waits_for_it(gate, rules, count, at_once):
    matcher = Matcher()
    matcher.add_many({number: f"b > {number} AND c" for number in range(rules)})
    gate.opens.set() if not at_once else None
    found = matcher.count_batch([{"b": 1, "c": True}] * count)
    assert found.to_pylist() == [1] * count
    assert (matcher.statistics()["segments"] == []) == at_once


def test_many_subscriptions_of_which_few_are_asked_are_answered_at_once(gate):
    matcher = Matcher()
    matcher.add_many({number: f"a = {number} AND b > 1" for number in range(10_000)})
    assert matcher.count_batch([{"a": number, "b": 2} for number in range(600)]).to_pylist() == [1] * 600
    assert matcher.statistics()["segments"] == []


def test_more_subscriptions_than_python_should_ask_are_laid_out_at_once(gate, monkeypatch):
    monkeypatch.setattr(readiness, "MOST_OPEN", 300)
    matcher = Matcher()
    matcher.add_many(RULES)
    assert matcher.list_batch(EVENTS).to_pylist() == expected(RULES, EVENTS)
    assert matcher.statistics()["segments"] == [len(RULES)]


def test_who_wants_to_wait_says_so(monkeypatch):
    monkeypatch.setattr(readiness, "is_compiled", lambda kernel: False)
    monkeypatch.setenv(readiness.SWITCH, "wait")
    assert not readiness.Readiness().look()
    monkeypatch.delenv(readiness.SWITCH)
    assert readiness.Readiness().look() == (os.environ.get("NUMBA_DISABLE_JIT") != "1")


@given(rules=st.lists(conditions, min_size=1, max_size=12), batch=st.lists(any_events(), min_size=2, max_size=6))
def test_a_cold_start_answers_as_the_definition_does(rules, batch):
    gate = Gate()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readiness, "OF_THIS_PROCESS", gate)
        patch.setattr(algorithm, "are_few", lambda parts, events: events.count <= 1)
        gate.compile = lambda exercise: None
        matcher = Matcher()
        matcher.add_many(dict(enumerate(rules)))
        found = matcher.list_batch(batch).to_pylist()
    assert found == [[name for name, rule in enumerate(rules) if holds(rule, event)] for event in batch]


# -- In a process that is cold

WORK = f"""
import sys, threading
from tamis import Matcher
from tamis.matching.block import kernels, probing
matcher = Matcher()
matcher.add_many({RULES!r})
events = {EVENTS[:200]!r}
first = matcher.list_batch(events).to_pylist()
was_cold = not probing.match_event_of_columns.signatures and not kernels.match_maps.signatures
matcher.settle()
print(was_cold, matcher.list_batch(events).to_pylist() == first, sum(map(len, first)))
"""


def in_a_process(folder):
    env = {name: value for name, value in os.environ.items() if name != readiness.SWITCH}
    return subprocess.run(
        [sys.executable, "-c", WORK], env=env | {"NUMBA_CACHE_DIR": str(folder)}, capture_output=True, text=True,
        timeout=900, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_processes_that_start_cold_together_answer_at_once_and_leave_kernels_to_the_next(tmp_path):
    match_count = sum(map(len, expected(RULES, EVENTS[:200])))
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda _: in_a_process(tmp_path), range(2)))
    for done in both:
        assert (done.returncode, done.stdout) == (0, f"True True {match_count}\n"), done.stderr
        assert done.stderr.count("being compiled in the background") == 1
    later = in_a_process(tmp_path)
    assert (later.stdout, later.stderr) == (f"False True {match_count}\n", "")
