"""A second oracle: DuckDB gives the same answers to the same conditions, over every type and every Arrow encoding.

The reference meaning is ours, and what it got wrong every matcher would get wrong with it. DuckDB shares no code with
us. It reads the events as they were drawn, in plain columns, and the matchers read them in all encodings of Arrow;
conditions are translated by `duckdb_sql`, whose table lists what DuckDB sees differently.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from random import Random

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import settings

import tamis
from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS
from tests.conformance import duckdb_sql
from tests.conformance.blocks import blocks_of
from tests.conformance.duckdb_sql import DIFFERENCES, LeftOutError, Sql, to_sql
from tests.conformance.encodings import SHAPES
from tests.conformance.generated import Conditions, event
from tests.conformance.leaves import COLUMNS, SMALL, UGLY, leaves
from tests.conformance.test_matchers import takes
from tests.conformance.test_small_blocks import table
from tests.lengths import so_many

PLAIN = {
    "int": pa.int64(),
    "double": pa.float64(),
    "decimal": pa.decimal128(10, 2),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.timestamp("us"),
    "timestamp": pa.timestamp("us"),
    "array<string>": pa.list_(pa.string()),
    "array<int>": pa.list_(pa.int64()),
    "array<double>": pa.list_(pa.float64()),
}
KINDS = {"date": "time", "timestamp": "time"}
SAMPLED = 2_000
"""Of how many pairs of each round the reference meaning is asked too."""
POOLS = {"small": ([SMALL], 0.0), "ugly": ([SMALL, UGLY], 0.5)}


def sql_columns():
    """Return what DuckDB calls the attributes, and their types."""
    found = {"pos": Sql('"pos"', "record")}
    for name, kind in COLUMNS.items():
        text = ".".join(f'"{part}"' for part in name.split("."))
        if kind.startswith("array"):
            element = Sql("", kind.removeprefix("array<").removesuffix(">"))
            found[name] = Sql(text, "array", element=element)
        elif kind == "decimal":
            found[name] = Sql(text, kind, 10, 2)
        else:
            found[name] = Sql(text, KINDS.get(kind, kind))
    return found


def plain_table(events):
    """Write events into an Arrow table of plain columns, for DuckDB."""
    arrays = {"row": pa.array(range(len(events)))}
    fields = {}
    for name, kind in COLUMNS.items():
        *record, field = name.split(".")
        values = [(each.get(record[0]) or {}).get(field) if record else each.get(field) for each in events]
        if kind == "date":
            values = [value and dt.datetime(value.year, value.month, value.day) for value in values]
        (fields if record else arrays)[field] = pa.array(values, PLAIN[kind])
    is_null = pa.array([each["pos"] is None for each in events], pa.bool_())
    arrays["pos"] = pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=is_null)
    return pa.table(arrays)


class Oracle:
    """DuckDB with the events of a round."""

    def __init__(self, events):
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.register("arrow_events", plain_table(events))
        self._connection.execute("CREATE TABLE events AS SELECT * FROM arrow_events")

    def truths(self, conditions, at_once=100):
        """Return the truth of every condition (a row) for every event: 0 unknown, 1 false, 2 true."""
        found = []
        for first in range(0, len(conditions), at_once):
            some = conditions[first : first + at_once]
            answer = self._connection.execute(
                f"SELECT row, {', '.join(some)} FROM events ORDER BY row"
            ).to_arrow_table()
            found += [pc.fill_null(pc.add(column.cast(pa.int8()), 1), 0).to_numpy() for column in answer.columns[1:]]
        return np.array(found, np.uint8).reshape(len(conditions), -1)


def translated(texts, left_out):
    """Return the expressions of texts that DuckDB understands as we do, and their SQL; counts the others."""
    columns = sql_columns()
    found = {}
    for text in texts:
        expression = tamis.parse(text)
        try:
            found[expression] = to_sql(expression, columns)
        except LeftOutError as difference:
            left_out[difference.difference] += 1
    return found


def matched(matcher, batch, condition_count, event_count):
    """Return the matches as a table of flags, a row for each condition."""
    pairs = matcher.match_batch(batch)
    flags = np.zeros((condition_count, event_count), np.bool_)
    flags[pairs["subscription"].to_numpy(), pairs["event"].to_numpy()] = True
    assert np.count_nonzero(flags) == pairs.num_rows, "no pair twice"
    return flags


def compare(algorithm, texts, events, number, left_out, block=None):
    """Compare a round of conditions and events with DuckDB; return how many pairs were compared, and how many true."""
    sql = translated(texts, left_out)
    asked = {
        expression: text for expression, text in sql.items() if algorithm == "block" or takes(algorithm, expression)
    }
    assert len(asked) > 0.8 * len(sql)
    expressions = list(asked)
    truths = Oracle(events).truths(list(asked.values()))
    matcher = Matcher(algorithm)
    matcher.add_many(dict(enumerate(expressions)))
    batch = table(events, number, SHAPES[number % len(SHAPES)])
    if block is None:
        found = matched(matcher, batch, len(asked), len(events))
    else:
        with blocks_of(block):
            found = matched(matcher, batch, len(asked), len(events))
    wrong = np.argwhere(found != (truths == 2))
    examples = [
        (
            str(expressions[key]),
            "ours:",
            bool(found[key, row]),
            "meaning:",
            tamis.holds(expressions[key], events[row]),
            events[row],
        )
        for key, row in wrong[:5]
    ]
    assert not len(wrong), f"{len(wrong)} of {found.size} pairs differ, such as {examples}"
    chance = Random(number)
    for _ in range(SAMPLED):  # and the third value, and the reference meaning, of some
        key, row = chance.randrange(len(expressions)), chance.randrange(len(events))
        truth = tamis.truth(expressions[key], events[row])
        assert truths[key, row] == {None: 0, False: 1, True: 2}[truth], (str(expressions[key]), events[row])
    return found.size, int(np.count_nonzero(found))


def drawn_round(seed, values, condition_count, event_count):
    chance = Random(seed)
    pools, drawn = POOLS[values]
    generator = Conditions(chance)
    texts = [generator.condition(depth=number % 4) for number in range(condition_count)]
    return texts, [event(chance, pools, drawn) for _ in range(event_count)]


@pytest.mark.parametrize("values", POOLS)
def test_duckdb_agrees_on_every_leaf(values):
    left_out = Counter()
    _, events = drawn_round(7, values, 0, 40)
    texts = leaves()
    pairs, true_count = compare("block", texts, events, 3, left_out)
    assert pairs > 0.75 * len(texts) * len(events)
    assert 0.05 * pairs < true_count < 0.95 * pairs
    assert set(left_out) <= {name for name, (treatment, _) in DIFFERENCES.items() if treatment == "left out"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_duckdb_agrees_on_generated_conditions(algorithm):
    left_out = Counter()
    for seed, values in enumerate(POOLS):
        texts, events = drawn_round(20 + seed, values, 60, 60)
        compare(algorithm, texts, events, seed + 5, left_out, block=7)


def test_a_matcher_that_answers_another_question_does_not_agree(monkeypatch):
    _, events = drawn_round(7, "ugly", 0, 40)
    texts = ["startswith(s, t)", "startswith(s, 'a')", "i < j"]
    compare("block", texts, events, 0, Counter())
    monkeypatch.setitem(duckdb_sql._TESTS, "startswith", "ends_with")
    with pytest.raises(AssertionError, match="pairs differ"):
        compare("block", texts, events, 0, Counter())


@pytest.mark.slow
def test_duckdb_and_the_reference_meaning_agree_on_up_to_ten_million_pairs(capsys):
    wanted = so_many(10_000_000)
    first_seed = 1_000 if settings().derandomize else Random().randrange(1_000, 2**32)
    others = [algorithm for algorithm in ALGORITHMS if algorithm != "block"]
    pairs, left_out = Counter(), Counter()
    matches = number = 0
    while pairs.total() < wanted or len(pairs) < len(ALGORITHMS):
        seed = first_seed + number
        algorithm = "block" if number % 2 else others[number // 2 % len(others)]
        event_count = 100 if algorithm == "naive" else 2_000  # that is the reference meaning, event by event
        texts, events = drawn_round(seed, "small" if number % 3 else "ugly", 700, event_count)
        try:
            compared, true_count = compare(
                algorithm, texts, events, number, left_out, block=(None, 333, 64)[number % 3]
            )
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {algorithm}: {error}") from None
        pairs[algorithm] += compared
        matches += true_count
        number += 1
    with capsys.disabled():
        print(
            f"\n{pairs.total():,} pairs agreed with DuckDB, {number * SAMPLED:,} of them also compared with the meaning"
        )
        print(f"{matches:,} were matches; by algorithm {dict(pairs)}; conditions left out {dict(left_out)}")
    assert pairs.total() >= wanted
    assert 0.05 * pairs.total() < matches < 0.95 * pairs.total()
