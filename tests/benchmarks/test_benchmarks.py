"""Benchmarks are run at toy size, so that they cannot rot. No test asserts a time."""

from __future__ import annotations

from benchmarks.parsing import parsing, texts


def test_the_parsing_benchmark_parses_every_text_with_every_parser():
    rows = list(parsing(text_count=20, passes=1))
    assert [row["parser"] for row in rows] == ["tamis, cold", "tamis, warm", "sqlglot"]
    assert all(row["parsed"] == 20 for row in rows)


def test_the_benchmark_texts_are_the_same_for_the_same_seed():
    assert texts(10, seed=3) == texts(10, seed=3) != texts(10, seed=4)
