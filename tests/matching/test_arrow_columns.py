"""Events from Arrow match as the same events from Python do, whatever the types of the columns."""

from __future__ import annotations

from decimal import Decimal
from operator import eq, ge, gt, le, lt
from random import Random

import pyarrow as pa
import pytest

import tamis
from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS
from tests.language.spark_texts import COLUMNS, Texts, rows

TYPES = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(12,4)": pa.decimal128(12, 4),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.list_(pa.int64()),
    "struct<x:double,name:string>": pa.struct([("x", pa.float64()), ("name", pa.string())]),
}
OTHER_TYPES = TYPES | {
    "string": pa.dictionary(pa.int16(), pa.large_string()),
    "decimal(10,2)": pa.decimal128(30, 2),
    "timestamp": pa.timestamp("ns", "UTC"),
    "date": pa.date64(),
}


def table(events, types):
    columns = {name.strip("`"): types[kind] for name, kind in COLUMNS.items()}
    return pa.table({name: pa.array([event.get(name) for event in events], kind) for name, kind in columns.items()})


def pairs(found):
    return sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


@pytest.mark.parametrize("types", [TYPES, OTHER_TYPES], ids=["plain", "other"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
def test_typed_columns_match_as_the_definition_says(types, seed):
    chance = Random(seed)
    generator = Texts(chance)
    expressions = [tamis.parse(generator.condition(depth=index % 4)) for index in range(150)]
    events = rows(70, chance)
    matcher = Matcher()
    matcher.add_many(dict(enumerate(expressions)))
    expected = [
        (number, key)
        for number, event in enumerate(events)
        for key, each in enumerate(expressions)
        if tamis.holds(each, event)
    ]
    whole = table(events, types)
    assert pairs(matcher.match_batch(whole)) == expected
    chunked = pa.concat_tables([whole.slice(0, 20), whole.slice(20, 1), whole.slice(21)])
    assert pairs(matcher.match_batch(chunked)) == expected
    padded = pa.concat_tables([whole.slice(0, 5), whole])
    assert pairs(matcher.match_batch(padded.slice(5))) == expected
    assert pairs(matcher.match_batch(whole.combine_chunks().to_batches()[0])) == expected
    assert pairs(matcher.match_batch(whole.slice(3, 10))) == [
        (number - 3, key) for number, key in expected if 3 <= number < 13
    ]
    matcher.learn(whole)
    assert pairs(matcher.match_batch(whole)) == expected


@pytest.mark.parametrize(
    ("column", "text", "matching"),
    [
        (pa.array([1, 2**63 + 5, None], pa.uint64()), "a > 9223372036854775807", [1]),
        (pa.array([1, 200, None], pa.uint8()), "a = 200", [1]),
        (pa.array([0.5, None, 1.5], pa.float32()), "a < 1", [0]),
        (pa.array([Decimal("0.1"), Decimal("0.3"), None], pa.decimal128(38, 1)), "a = 0.3", [1]),
        (pa.array([Decimal("0.1"), Decimal("0.3"), None], pa.decimal256(50, 1)), "a = 0.3D", [1]),
        (pa.array([b"x", b"y", None], pa.binary()), "a IS NULL", [0, 1, 2]),
        (pa.array([None, None, None], pa.null()), "a IS NULL", [0, 1, 2]),
        (pa.array(["x", None, "é"], pa.string_view()), "a > 'x'", [2]),
        (pa.array([True, False, None]), "NOT a", [1]),
        (pa.DictionaryArray.from_arrays([0, 1, None], [3, 5]), "a = 5", [1]),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), pa.array(["x", None, "y"])), "a <> 'x'", [2]),
        (pa.array([["a"], [], None]), "size(a) = 0", [1]),
        (pa.array([2**53, 2**53 + 1, None]), "a = 9007199254740992D", [0, 1]),
        (pa.array([2**53, 2**53 + 1, None]), "a = 9007199254740993", [1]),
        (pa.array([float(2**53), 1.0, None]), "a = 9007199254740993", [0]),
        (pa.array([float("nan"), float("inf"), -0.0]), "a > 1e308", [0, 1]),
        (pa.array([float("nan"), float("inf"), -0.0]), "a = 0", [2]),
        (pa.array([float("nan"), float("inf"), -0.0]), "a = double('NaN')", [0]),
    ],
)
def test_columns_of_uncommon_types(column, text, matching):
    matcher = Matcher()
    matcher.add("it", text)
    batch = pa.table({"a": pa.chunked_array([column] * 20)})
    found = matcher.match_batch(batch)["event"].to_pylist()
    assert found == [start + index for start in range(0, 60, 3) for index in matching]


@pytest.mark.parametrize("operand", [-(2**63), -1, 0, 2**63 - 1])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_integers_at_the_ends_of_64_bits_are_compared_as_they_are(algorithm, operand):
    values = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1] * 20
    for operator, holds in (("<", lt), ("<=", le), ("=", eq), (">", gt), (">=", ge)):
        matcher = Matcher(algorithm)
        matcher.add(1, f"a {operator} {operand}")
        found = matcher.count_batch(pa.table({"a": pa.array(values, pa.int64())})).to_pylist()
        assert found == [int(holds(value, operand)) for value in values]
        assert [len(matcher.match({"a": value})) for value in values[:7]] == found[:7]
