"""Every example of docs/language.md is run: by the reference evaluator, and by Spark where it has the same language."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import tamis

LANGUAGE = Path(__file__).parent.parent / "docs" / "language.md"
SCHEMA = tamis.Schema(
    {
        "price": "double", "cost": "decimal(10,2)", "bids": "int", "low": "int", "high": "int", "category": "string",
        "title": "string", "author": "string", "ip": "string", "signed": "bool", "sold": "bool", "SOLD": "bool",
        "day": "date", "ends": "timestamp", "tags": "array<string>", "position": {"x": "double", "y": "double"},
        "lat": "double", "lon": "double", "type": "string",
    },
    hierarchy={"Quote": None, "StockQuote": "Quote", "News": None},
)  # fmt: skip
TRUTHS = {"true": True, "false": False, "unknown": None}


def examples(is_beyond: bool):
    blocks = re.findall(r"^```tamis([^\n]*)\n(.*?)^```", LANGUAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for mark, block in blocks:
        if bool(mark.strip()) is is_beyond:
            for line in block.splitlines():
                text, event, truth = re.split(r"\s{2,}(?=\{)|(?<=\})\s{2,}", line.strip())
                yield pytest.param(text, json.loads(event), TRUTHS[truth], id=line.strip())


COMMON, BEYOND = list(examples(is_beyond=False)), list(examples(is_beyond=True))
assert len(COMMON) > 80 and len(BEYOND) > 20, "the examples are there to be run"


@pytest.mark.parametrize(("text", "event", "truth"), COMMON + BEYOND)
def test_an_example_of_the_language_means_what_it_says(text, event, truth):
    expression = tamis.parse(text)
    assert tamis.truth(expression, SCHEMA.conform(event), SCHEMA) is truth


@pytest.mark.spark
def test_the_examples_mean_the_same_in_spark(spark):
    from pyspark.sql import Row, functions

    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        columns = ", ".join(
            f"{name} {str(kind).replace('int', 'bigint').replace('record', 'struct').replace('bool', 'boolean')}"
            for name, kind in SCHEMA.attributes.items()
        )
        rows = []
        for _, event, _ in (example.values for example in COMMON):
            known = SCHEMA.conform(event)
            record = known.get("position")
            if record is not None:
                known["position"] = Row(x=record.get("x"), y=record.get("y"))
            rows.append([known.get(name) for name in SCHEMA.attributes])
        texts = [example.values[0] for example in COMMON]
        frame = spark.createDataFrame(rows, columns).coalesce(1)
        answers = frame.select(functions.array(*map(functions.expr, texts))).collect()
        for index, example in enumerate(COMMON):  # each text on its own event: the diagonal
            assert answers[index][0][index] is example.values[2], example.id
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")
