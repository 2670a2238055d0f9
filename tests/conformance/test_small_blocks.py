"""Every leaf, over every encoding of its columns, in blocks of one, two and three events.

The last block of any batch may be as small as one event. There a column looks like a constant, all its texts may be
NULL, its dictionary may be that of a larger table; and the answer is the reference meaning's all the same. The events
are those that were drawn, not those that are read back from Arrow.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language import expressions
from tamis.language.expressions import Call, Expression, Test, postorder
from tamis.language.functions import FUNCTIONS
from tamis.matching import Matcher, UnsupportedExpressionError
from tamis.matching.algorithms import ALGORITHMS
from tamis.matching.columns import Events
from tamis.matching.columnwise import truth_codes
from tests.conformance.blocks import blocks_of
from tests.conformance.encodings import ENCODINGS, SHAPES, encoded, shaped
from tests.conformance.leaves import COLUMNS, SMALL, UGLY, leaves, rows
from tests.conformance.test_matchers import takes
from tests.matching.columnwise.tables import tables
from tests.strategies import conditions, predicates

VALUES = {"small": SMALL, "ugly": UGLY}
LEAVES = [tamis.parse(text) for text in leaves()]
MOST_ENCODINGS = max(map(len, ENCODINGS.values()))


def table(events, number, shape, used=None):
    """Write events into an Arrow table, each column in the encoding of some number."""
    arrays = {"nil": pa.nulls(len(events)) if number % 2 else pa.array([None] * len(events), pa.string())}
    fields = {}
    for place, (name, kind) in enumerate(COLUMNS.items()):
        *record, field = name.split(".")
        values = [(event.get(record[0]) or {}).get(field) if record else event.get(field) for event in events]
        # One of a pair is one encoding ahead, so that different ones meet.
        encoding, array = encoded(kind, values, number + place % 2)
        if used is not None:
            used[encoding] += 1
        if record:
            fields[field] = array
        else:
            arrays[name] = array
    is_null = pa.array([event["pos"] is None for event in events], pa.bool_())
    arrays["pos"] = pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=is_null)
    return shaped(arrays, shape)


def expected(events, asked):
    return [[key for key, each in asked.items() if tamis.holds(each, event)] for event in events]


def differences(found, wanted, events, asked):
    """Say where the two differ, by leaf and event."""
    return [
        (str(asked[key]), row, "missing" if key in set(wanted[row]) else "unasked for", events[row])
        for row in range(len(wanted))
        for key in sorted(set(found[row]) ^ set(wanted[row]))
    ]


def test_the_leaves_are_of_every_kind_and_the_columns_of_every_encoding():
    nodes = [node for leaf in LEAVES for node in postorder(leaf)]
    named = {node.function for node in nodes if isinstance(node, Call | Test)}
    assert named == set(FUNCTIONS)
    classes = {
        value for value in vars(expressions).values() if isinstance(value, type) and issubclass(value, Expression)
    }
    concrete = {each for each in classes if not each.__name__.startswith("_") and not each.__subclasses__()}
    assert {type(node) for node in nodes} == concrete
    used = Counter()
    for number in range(MOST_ENCODINGS):
        for values in VALUES.values():
            table(rows(9, values, Random(number)), number, "whole", used)
    assert set(used) == {f"{kind}: {name}" for kind, ways in ENCODINGS.items() for name in ways}


def check(matchers, values, sizes, seed, event_count=7, encodings=range(MOST_ENCODINGS)):
    """Match tables of some encodings in blocks of some sizes, each against the next of some sets of leaves."""
    for number in encodings:
        matcher, asked = matchers[number % len(matchers)]
        events = rows(event_count, values, Random(1000 * seed + number))
        batch = table(events, number, SHAPES[number % len(SHAPES)])
        wanted = expected(events, asked)
        for size in sizes:
            with blocks_of(size) as seen:
                found = matcher.list_batch(batch).to_pylist()
            if matcher.algorithm == "block":
                whole, rest = divmod(event_count, size)
                assert seen == [size] * whole + [rest] * (rest > 0), "in blocks of this size"
            assert not differences(found, wanted, events, asked)


def matching(algorithm, parts):
    """Return matchers, each with a part of the leaves."""
    found = []
    for part in range(parts):
        asked = dict(list(enumerate(LEAVES))[part::parts])
        matcher = Matcher(algorithm)
        try:
            matcher.add_many(asked)
        except UnsupportedExpressionError:
            asked = {key: each for key, each in asked.items() if takes(algorithm, each)}
            matcher.add_many(asked)
        found.append((matcher, asked))
    assert sum(len(asked) for _, asked in found) > 0.99 * len(LEAVES)
    return found


@pytest.mark.parametrize(
    ("values", "size"),
    [
        # The quick suite takes every size and every pool of values, and not all of them with each other.
        pytest.param(values, size, marks=[] if (values == "small") == (size == 2) else [pytest.mark.slow])
        for values in VALUES
        for size in (1, 2, 3)
    ],
)
def test_every_leaf_over_every_encoding_in_blocks_of_few_events(values, size):
    # Blocks of one and of three events share the encodings out between them; the long test below takes all of each.
    some = range(MOST_ENCODINGS) if size == 2 else range(size // 2, MOST_ENCODINGS, 2)
    check(matching("block", parts=3), VALUES[values], [size], seed=size, encodings=some)


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name != "block"])
def test_every_algorithm_in_blocks_of_few_events(algorithm):
    """The quick suite shares the encodings out among the sizes; the test below takes all of each."""
    matchers = matching(algorithm, parts=12)
    for size in (1, 2, 3):
        some = range(size - 1, MOST_ENCODINGS, 3)
        check(matchers, VALUES["small" if size == 2 else "ugly"], [size], 10 + size, event_count=4, encodings=some)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_leaf_over_every_encoding_in_blocks_of_few_events_at_length(algorithm):
    matchers = matching(algorithm, parts=3)
    for seed, values in enumerate(VALUES.values()):
        check(matchers, values, [1, 2, 3, 5], seed=100 + seed, event_count=11)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(table=tables(), subscriptions=st.lists(st.one_of(predicates, conditions), max_size=8), size=st.integers(1, 3))
@settings(max_examples=60)
def test_generated_conditions_over_generated_tables_in_blocks_of_few_events(algorithm, table, subscriptions, size):
    asked = {key: each for key, each in enumerate(subscriptions) if takes(algorithm, each)}
    matcher = Matcher(algorithm)
    matcher.add_many(asked)
    events = Events(table).mappings()
    with blocks_of(size):
        assert matcher.list_batch(table).to_pylist() == expected(events, asked)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("test", ["startswith", "endswith", "contains", "in_cidr"])
def test_the_last_event_of_a_large_batch_may_lack_a_text(algorithm, test):
    matcher = Matcher(algorithm)
    matcher.add_many({1: f"{test}(s1, s2)", 2: f"NOT {test}(s2, s1)", 3: "s1 < s2", 4: "s2 IS NULL"})
    events = [{"s1": "ab", "s2": "x"}] * 8192 + [{"s1": "ab"}]
    found = matcher.list_batch(events).to_pylist()
    assert found[-1] == [4]
    assert found[0] == expected(events[:1], {key: matcher.expression(key) for key in (1, 2, 3, 4)})[0]
    assert matcher.list_batch(pa.Table.from_pylist(events)).to_pylist() == found


def test_no_events_at_all_are_matched_by_nobody_over_every_encoding():
    events = rows(2, SMALL, Random(1))
    for number in range(MOST_ENCODINGS):
        nothing = Events(table(events, number, "whole").slice(0, 0))
        assert [leaf for leaf in LEAVES if len(truth_codes(leaf, nothing))] == []


@pytest.mark.parametrize("row", range(3))
def test_a_block_of_one_event_has_the_text_that_its_dictionary_says_and_not_the_first(row):
    words = pa.array(["x", "y", None])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), words)
    texts = ("s = t", "s < t", "t < s", "contains(t, s)", "contains(s, t)", "startswith('yes', s)", "s <=> t")
    asked = dict(enumerate(map(tamis.parse, texts)))
    matcher = Matcher()
    matcher.add_many(asked)
    whole = pa.table({"s": column, "t": ["y", "y", "y"]})
    with blocks_of(1):
        found = matcher.list_batch(whole).to_pylist()
    assert found[row] == expected([{"s": words[row].as_py(), "t": "y"}], asked)[0]
