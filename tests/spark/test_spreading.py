"""A function is called for each of some things, and an experiment gets the rows that it gets in a loop."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark")

from tamis.spark.spreading import spread
from tests.cli.conftest import tamis

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.spark


def test_answers_come_in_the_order_of_the_things(spark):
    assert spread(spark, partial(pow, 2), [5, 1, 3]) == [32, 2, 8]
    assert spread(spark, len, []) == []


def test_an_experiment_on_spark_has_the_same_rows(spark, tmp_path: Path):
    rows = {}
    for where, options in {"here": [], "there": ["--spark", "local[1]"]}.items():
        result = tamis(
            "lab", "filtering", "--quick", "--only", "normal forms", "--out", str(tmp_path / where), *options, "--json"
        )
        assert result.exit_code == 0, result.output
        rows[where] = json.loads(result.stdout)["experiments"][0]
        del rows[where]["seconds"]
    assert rows["here"] == rows["there"]
