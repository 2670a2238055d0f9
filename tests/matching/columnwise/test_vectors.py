"""Vectors in columns are as far apart, and as alike, as the reference meaning says, to the last bit."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import Attribute, Call, Literal
from tamis.matching.columns import Events
from tamis.matching.columnwise import BatchSeries
from tests.matching.columnwise.tables import doubles, lists, small_doubles, small_integers
from tests.matching.columnwise.test_evaluation import Tally, check_values
from tests.strategies import numbers


@st.composite
def tables(draw):
    count = draw(st.integers(1, 5))

    def column(values, kind):
        return pa.array(draw(st.lists(st.one_of(st.none(), *[values] * 4), min_size=count, max_size=count)), kind)

    return pa.table(
        {
            "ragged": column(lists(doubles, max_size=3), pa.list_(pa.float64())),
            "even": column(st.lists(small_integers, min_size=2, max_size=2), pa.list_(pa.int64(), 2)),
            "short": column(st.lists(small_doubles, min_size=2, max_size=2), pa.large_list(pa.float32())),
            "words": column(lists(st.sampled_from("ab")), pa.list_(pa.string())),
            "x": column(doubles, pa.float64()),
            "y": column(small_doubles, pa.float64()),
            "n": column(small_integers, pa.int64()),
        }
    )


points = st.one_of(
    st.sampled_from(["ragged", "even", "even", "short", "words", "x"]).map(lambda name: Attribute((name,))),
    st.sampled_from(["x y", "x y", "x", "y x y", "x n", "n n"]).map(
        lambda names: Call("array", tuple(Attribute((name,)) for name in names.split()))
    ),
    st.just(Call("array", (Attribute(("x",)), Literal(0.5)))),
)
constants = st.one_of(
    st.lists(small_integers, min_size=2, max_size=2),
    st.lists(st.one_of(small_doubles, small_integers), min_size=2, max_size=2),
    st.lists(st.one_of(numbers, st.none(), st.just("a")), max_size=3),
).map(lambda parts: Call("array", tuple(map(Literal, parts))))
terms = st.one_of(
    st.builds(lambda *pair: Call("euclidean", pair), points, constants),
    st.builds(lambda *pair: Call("euclidean", pair), st.one_of(constants, points), points),
    st.builds(lambda *three: Call("euclidean", three), points, constants, st.one_of(constants, points)),
    st.builds(lambda *pair: Call("cosine", pair), points, constants),
    st.builds(lambda *pair: Call("cosine", pair), points, points),
)


def test_vectors_of_columns_give_what_the_reference_meaning_gives():
    tally = Tally()

    @given(table=tables(), asked=st.lists(terms, min_size=1, max_size=6))
    def check(table, asked):
        check_values(table, asked, tally)

    check()
    assert tally.columnwise > 0.4 * tally.all
    assert tally.telling > 0.2 * tally.all


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        ("euclidean(array(x, y), array(3, 0.5))", {"x": 0.0, "y": 4.5}, 5.0),
        ("euclidean(array(x, y), array(3, 0), array(0, 1))", {"x": 0, "y": 4}, 4.0),
        ("euclidean(p, array(3, 0))", {"p": [0, 4]}, 5.0),
        ("euclidean(p, array(3, 0))", {"p": [0, 4, 1]}, None),
        ("euclidean(p, array(3, 0))", {"p": [0, None]}, None),
        ("euclidean(p, array(3, 0), array(-1, 1))", {"p": [0, 4]}, None),
        ("euclidean(p, q)", {"p": [0.0], "q": [2.5]}, 2.5),
        ("cosine(p, array(0, 3))", {"p": [1.0, 0.0]}, 0.0),
        ("cosine(p, array(0, 3))", {"p": [0.0, 0.0]}, None),
        ("cosine(p, array(0, 3))", {"p": []}, None),
    ],
)
def test_an_example_gives_the_same_beside_others(text, event, expected):
    term = tamis.parse(f"{text} = 0").left
    found = BatchSeries.of(Events([event, {}, event, {"p": ["a"], "x": "b"}])).evaluated(term).tolist()
    assert (found * 4 if len(found) == 1 else found) == [expected, None, expected, None]
