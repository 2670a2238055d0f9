"""Predicates that are written differently and fulfilled by the same values: whoever finds one finds all of them.

`x = 1`, `x <=> 1`, `x IN (1)` and `x BETWEEN 1 AND 1` are true for the same events, and yet not the same predicate, for
they are not unknown together. An algorithm that looks one up and forgets the others loses matches.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    RLike,
    Test,
)
from tamis.matching import Matcher
from tamis.matching.algorithms import ALGORITHMS

every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS)

NAN = float("nan")
FAMILIES = (
    (1, 1.0, Decimal(1), Decimal("1.00")),
    (0, 0.0, -0.0, Decimal("0.0")),
    (NAN,),
    (float("inf"), 1e308),
    (2**53, float(2**53), 2**53 + 1),
    (2**63 - 1, float(2**63), Decimal(2**63)),
    (True,),
    (False,),
    ("a", "A"),
    ("",),
    ("%",),
    ("é", "e\u0301"),
    (dt.date(2024, 2, 29), dt.datetime(2024, 2, 29)),
)
"""Values that are equal, or nearly so, in all their types."""


def quoted(text: str) -> str:
    """A LIKE pattern that only this text fits."""
    return "".join("\\" + letter if letter in "%_\\" else letter for letter in text)


def twins_of(term, value):
    """All ways to ask whether a term has a value."""
    literal = Literal(value)
    asked = [
        Compare("=", term, literal),
        Compare("=", literal, term),
        Compare("<=>", term, literal),
        Compare("<=>", literal, term),
        Not(Compare("<>", term, literal)),
        In(term, (value,)),
        In(term, (value, value)),
        In(term, (value, None)),
        Between(term, literal, literal),
        And((Compare("<=", term, literal), Compare(">=", term, literal))),
        Not(Or((Compare("<", term, literal), Compare(">", term, literal)))),
        Compare("=", Compare("=", term, literal), Literal(True)),
        Compare("<=>", Compare("<=>", term, literal), Literal(True)),
    ]
    if isinstance(value, bool):
        asked += [Not(Compare("=", term, Literal(not value)))]
        if isinstance(term, Attribute):  # which alone may be a condition
            asked += [term if value else Not(term)]
    if isinstance(value, str):
        asked += [
            Like(term, quoted(value)),
            Not(Not(Like(term, quoted(value), "\\"))),
            IsA(term, value),
            RLike(term, "^" + "".join(f"\\x{{{ord(letter):x}}}" for letter in value) + "$"),
            And((Test("startswith", (term, literal)), Test("endswith", (term, literal)))),
        ]
    if isinstance(value, float) and value != value:
        asked += [Compare(">=", term, literal), Compare(">", term, Literal(float("inf")))]
    return asked


terms = st.sampled_from([Attribute(("x",)), Attribute(("y",)), Call("least", (Attribute(("x",)), Attribute(("y",))))])


@st.composite
def families_of_twins(draw):
    """Conjunctions of twins over one or two families of values, and events that have these values."""
    families = draw(st.lists(st.sampled_from(FAMILIES), min_size=1, max_size=2, unique_by=id))
    values = [value for family in families for value in family]
    leaves = st.tuples(terms, st.sampled_from(values)).flatmap(lambda pair: st.sampled_from(twins_of(*pair)))
    leaves = st.one_of(leaves, leaves, leaves, st.just(Not(IsNull(Attribute(("y",))))))
    subscriptions = draw(
        st.lists(
            st.one_of(leaves, st.lists(leaves, min_size=2, max_size=3).map(tuple).map(And)), min_size=2, max_size=30
        )
    )
    cells = st.one_of(st.sampled_from(values), st.sampled_from(values), st.none(), st.just("other"))
    batch = draw(st.lists(st.fixed_dictionaries({}, optional={"x": cells, "y": cells}), min_size=1, max_size=6))
    return subscriptions, batch


@every_algorithm
@given(drawn=families_of_twins(), cut=st.integers(0, 30), removed=st.sets(st.integers(0, 29), max_size=5))
@settings(max_examples=60)
def test_predicates_that_the_same_values_fulfil_are_all_found(algorithm, drawn, cut, removed):
    subscriptions, batch = drawn
    registered = dict(enumerate(subscriptions))
    matcher = Matcher(algorithm)
    matcher.add_many({key: each for key, each in registered.items() if key < cut})
    matcher.compile()  # so that the twins of what comes now are laid out already
    matcher.add_many({key: each for key, each in registered.items() if key >= cut})
    for _ in range(2):
        for event in batch:
            wanted = [key for key, each in registered.items() if tamis.holds(each, event)]
            assert matcher.match(event) == wanted
        found = matcher.list_batch(batch * 8).to_pylist()
        assert found[: len(batch)] == [
            [key for key, each in registered.items() if tamis.holds(each, event)] for event in batch
        ]
        assert found == found[: len(batch)] * 8
        gone = [key for key in removed if key in registered]
        matcher.remove_many(gone)
        registered = {key: each for key, each in registered.items() if key not in removed}


@every_algorithm
@pytest.mark.parametrize(
    ("texts", "event"),
    [
        (("x = 1", "x <=> 1"), {"x": 1}),
        (("b = TRUE", "b <=> TRUE", "b", "b IS TRUE"), {"b": True}),
        (("s = 'a'", "s LIKE 'a'", "s <=> 'a'", "s IN ('a')"), {"s": "a"}),
        (("s = ''", "s LIKE ''"), {"s": ""}),
        (("x = double('NaN')", "x <=> double('NaN')", "x >= double('NaN')"), {"x": NAN}),
        (("t = DATE '2024-02-29'", "t <=> TIMESTAMP '2024-02-29'"), {"t": dt.date(2024, 2, 29)}),
        (("x = 1 AND s LIKE 'a'", "x <=> 1 AND s = 'a'", "x <=> 1 AND s LIKE 'a'"), {"x": 1, "s": "a"}),
    ],
)
def test_two_ways_to_ask_for_one_value_are_both_found(algorithm, texts, event):
    matcher = Matcher(algorithm)
    matcher.add_many(dict(enumerate(texts)))
    assert matcher.match(event) == list(range(len(texts)))
    assert matcher.count_batch([event, {}] * 40).to_pylist() == [len(texts), 0] * 40
