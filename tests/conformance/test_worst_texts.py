"""Short texts that would stall everybody: within the limits of the language, and bad for whoever takes trees for granted."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random

import pytest

import tamis
from tamis.matching.algorithms import ALGORITHMS
from tests.conformance.feeding import texts
from tests.worst_texts import WORST_TEXTS, event

every_text = pytest.mark.parametrize("worst", WORST_TEXTS, ids=lambda worst: worst.name)


@every_text
def test_a_worst_text_is_within_the_limits_of_the_language_and_its_small_one_is_true_and_not_true(worst):
    tamis.parse(worst.worst)
    chance = Random(1)
    assert {tamis.holds(tamis.parse(worst.tame), event(chance)) for _ in range(300)} == {True, False}


def fed(how, *algorithms):
    """Feed algorithms in a process of limited memory and work; return what it said of each text."""
    command = [sys.executable, "-m", "tests.conformance.feeding", how, *algorithms]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in process.stdout.splitlines()]
    last = rows[-1] if rows else "nothing"
    assert process.returncode == 0, f"{process.returncode} after {last}: {process.stderr[-2000:]}"
    assert [(row["algorithm"], row["text"]) for row in rows] == [
        (algorithm, text.name) for algorithm in algorithms for text in texts(how)
    ]
    return rows


def check_rows(rows):
    assert [row for row in rows if row.get("wrong")] == []
    for row in rows:
        assert row.get("wrong") == 0 or row["refused"] in ("UnsupportedExpressionError", "LimitError", "BudgetError"), (
            row
        )
        assert row["algorithm"] not in ("block", "naive") or row.get("wrong") == 0, "these take every text"


def test_the_flagship_takes_the_worst_texts_and_answers_right():
    check_rows(fed("bad", "block"))


def test_no_short_text_stalls_any_algorithm_and_those_that_are_taken_are_answered_right():
    check_rows(fed("short", *(each for each in ALGORITHMS if each != "block")))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_worst_texts_take_no_more_than_in_proportion_to_their_length(algorithm):
    check_rows(fed("bad", algorithm))
    if algorithm in ("block", "atree"):
        check_rows(fed("worst", algorithm))
