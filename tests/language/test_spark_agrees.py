"""The reference meaning equals Spark SQL's own answer, for the same text on the same rows."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import pytest

import tamis
from tamis.language.expressions import Call, fold
from tamis.language.meaning import meaning
from tests.language.spark_texts import COLUMNS, Texts, rows
from tests.lengths import so_many

pytestmark = pytest.mark.spark

_OVERFLOWING = ("add", "subtract", "multiply", "negate", "abs")
_ARITHMETIC = ("add", "subtract", "multiply", "divide", "remainder")
_WIDEST = ("least", "greatest", "coalesce")
_KEEPING = ("negate", "abs", *_WIDEST)
"""Functions whose result has the type of an operand."""


def spark_answers(spark, texts, events):
    """Ask Spark for the truth of every text on every row, in one job."""
    from pyspark.sql import Row, functions

    schema = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    data = [[_cell(event.get(name.strip("`")), Row) for name in COLUMNS] for event in events]
    frame = spark.createDataFrame(data, schema).coalesce(1)
    answers = functions.array(*(functions.expr(text).cast("boolean") for text in texts))
    return [row[0] for row in frame.select(answers).collect()]


def _cell(value, row_type):
    return row_type(**value) if isinstance(value, dict) else value


def is_beyond_comparison(expression, event):
    """Is there something of which docs/language.md says that Spark computes it otherwise?

    An integer that leaves its 64 bits: Spark raises there, or wraps when it is told not to. And arithmetic on the least
    or greatest of values of which one is NULL: Spark computes in the widest of the declared types, and the meaning,
    which knows none, in that of the values that are there. 3.0D % 0.1D is not 3 % 0.1.
    """
    found, of_some = [], set()

    def value(node, below):
        result = meaning(node, below, event, None)
        if isinstance(node, Call):
            is_of_some = not of_some.isdisjoint(node.arguments)
            may_be_narrower = (node.function in _WIDEST and None in below) or (node.function in _KEEPING and is_of_some)
            if may_be_narrower and not isinstance(result, float):
                of_some.add(node)
            if node.function in _OVERFLOWING:
                found.append(result is None and all(type(operand) is int for operand in below))
            if node.function in _ARITHMETIC:
                found.append(is_of_some)
        return result

    fold(expression, value)
    return any(found)


def test_only_what_is_computed_from_values_of_which_one_is_missing_is_not_compared():
    expression = tamis.parse("e <= least(3, pos.x) % least(m, pos.x)")
    event = {"e": 0.05, "m": Decimal("0.1000"), "pos": {"x": 7.0, "name": "a"}}
    assert not is_beyond_comparison(expression, event)
    assert is_beyond_comparison(expression, event | {"pos": None})
    assert is_beyond_comparison(tamis.parse("abs(least(3, pos.x)) % m > 0"), event | {"pos": None})
    assert not is_beyond_comparison(tamis.parse("least(3, pos.x) > m AND m % 2 = 0"), event | {"pos": None})


def compare_with_spark(spark, seed, text_count, row_count):
    chance = Random(seed)
    generator = Texts(chance)
    texts = [generator.condition(depth=index % 4) for index in range(text_count)]
    events = rows(row_count, chance)
    for name, value in {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.sizeOfNull": "false"}.items():
        spark.conf.set(name, value)
    answers = spark_answers(spark, texts, events)
    expressions = [tamis.parse(text) for text in texts]
    compared = 0
    differences = []
    for event, row in zip(events, answers, strict=True):
        for text, expression, answer in zip(texts, expressions, row, strict=True):
            if is_beyond_comparison(expression, event):
                continue
            compared += 1
            if tamis.truth(expression, event) is not answer:
                differences.append((text, event, "spark:", answer))
    assert not differences, f"seed {seed}: {len(differences)} differences, such as {differences[:3]}"
    return compared


def test_the_reference_meaning_equals_spark_sql_on_20_000_pairs(spark):
    assert compare_with_spark(spark, seed=1, text_count=400, row_count=60) >= 20_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 2 + so_many(10)))
def test_the_reference_meaning_equals_spark_sql_on_up_to_a_million_pairs(spark, seed):
    assert compare_with_spark(spark, seed, text_count=1_000, row_count=120) >= 100_000


@pytest.mark.parametrize(
    "text",
    [
        "i / 0 = 1",
        "i % 0 = 1",
        "d / 0 = 1",
        "n / 0 = 1",
        "i + 1 > 0",
        "i - -1 > 0",
        "i * 2 > 0",
        "- (-1 - i) > 0",
        "abs(-1 - i) > 0",
        "s > 3",
        "s = 3",
    ],
)
def test_where_spark_raises_the_predicate_is_unknown(spark, text):
    from pyspark.errors import PySparkException

    spark.conf.set("spark.sql.ansi.enabled", "true")
    event = {"i": 2**63 - 1, "d": 1.0, "n": 1, "s": "abc"}
    frame = spark.sql("SELECT 9223372036854775807L AS i, 1D AS d, CAST(1 AS DECIMAL(10,2)) AS n, 'abc' AS s")
    with pytest.raises(PySparkException):
        frame.selectExpr(text).collect()
    assert tamis.truth(tamis.parse(text), event) is None
