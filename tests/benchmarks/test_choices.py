"""The benchmark of choices at toy size: conditions with CASE find what the same conditions without find."""

from __future__ import annotations

import doctest

import benchmarks.choices as module
from benchmarks.choices import FORMS, choices


def test_the_examples_run():
    assert doctest.testmod(module).failed == 0


def test_choices_match_what_the_same_conditions_match():
    rows = list(choices(subscription_count=200, event_count=500, passes=1))
    assert [row["form"] for row in rows] == list(FORMS)
    assert [row["wrong"] for row in rows] == [0] * len(FORMS)
    assert all(row["matches"] > 0 for row in rows)
    assert [row["promised"] for row in rows] == [None] * len(FORMS), "nothing is promised for so few"
