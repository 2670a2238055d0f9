"""Whatever parses can be compared: no two filters make a relation raise anything but an error of ours.

Filters are drawn from the table of functions itself, so that a function is here from the day it is in the language.
What was proven of them is tried out on events.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import TamisError
from tamis.language.expressions import (
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsA,
    IsNull,
    Like,
    Literal,
    Not,
    RLike,
    Test,
)
from tamis.language.functions import FUNCTIONS
from tamis.language.meaning import holds
from tamis.relations import covers, covers_by_set, identical, merge, overlaps
from tamis.relations import example as example_of
from tests.strategies import (
    COMPARISONS,
    conditions_over,
    events,
    like_patterns,
    numbers,
    regexes,
    scalars,
    texts,
    times,
)

ATTRIBUTES = st.sampled_from([Attribute(tuple(name.split("."))) for name in ("a", "b", "c", "pos", "pos.x", "für")])
LITERALS = {
    "any": scalars,
    "number": numbers,
    "string": st.one_of(texts, st.sampled_from(["10.0.0.0/8", "10.1.2.3", "2001:db8::/32"])),
    "boolean": st.booleans(),
}


@st.composite
def terms(draw: st.DrawFn, kind: str = "", height: int = 2) -> Expression:
    """Draw a term of a kind: an attribute, a literal, or any function that gives it, over smaller terms."""
    kind = kind or draw(st.sampled_from(["any", "number", "string", "array"]))
    names = [
        name
        for name, function in FUNCTIONS.items()
        if not function.is_test and (kind == "any" or function.gives in (kind, "any"))
    ]
    if height and draw(st.booleans()):
        return draw(calls(draw(st.sampled_from(names)), height))
    return draw(LITERALS[kind].map(Literal)) if kind in LITERALS and draw(st.booleans()) else draw(ATTRIBUTES)


@st.composite
def calls(draw: st.DrawFn, name: str, height: int = 2) -> Expression:
    """Draw a call of a function, with as many arguments as it wants and up to two more if it takes them."""
    function = FUNCTIONS[name]
    kinds = function.takes or ("any",)
    if function.variadic:
        kinds += kinds[-1:] * draw(st.integers(0, 2))
    arguments = tuple(draw(terms(kind, height - 1)) for kind in kinds)
    return (Test if function.is_test else Call)(name, arguments)


PREDICATES = st.one_of(
    st.sampled_from([name for name, function in FUNCTIONS.items() if function.is_test]).flatmap(calls),
    st.builds(Compare, st.sampled_from(COMPARISONS), terms(), terms()),
    st.builds(Compare, st.sampled_from(COMPARISONS), terms(), scalars.map(Literal)),
    st.builds(Between, terms(), numbers.map(Literal), terms()),
    st.builds(Between, terms(), times.map(Literal), times.map(Literal)),
    st.builds(In, terms(), st.lists(scalars, min_size=1, max_size=3).map(tuple)),
    st.builds(IsNull, terms()),
    st.builds(IsA, terms(), st.sampled_from(["Quote", "Other"])),
    st.builds(Like, terms(), like_patterns),
    st.builds(RLike, terms(), regexes),
    ATTRIBUTES,
)
FILTERS = conditions_over(PREDICATES, max_leaves=3)


def parsed(condition: Expression) -> Expression:
    """Return what the text of a condition says, if it says anything."""
    try:
        return tamis.parse(str(condition))
    except TamisError:
        assume(False)
        raise


def check_relations(one: Expression, two: Expression, asked: list[dict[str, Any]]) -> None:
    """Compare two filters in every way; let events refute what was proven, or show that a merger loses them."""
    third = tamis.parse("a = 1")
    covering, overlapping, same = (relation(one, two, budget=200) for relation in (covers, overlaps, identical))
    together = covers_by_set([one, third], two, budget=200)
    either = merge([one, two]).expression
    witness = example_of([two], [one], budget=200)
    assert witness is None or (not covering and not same), witness
    for event in [*asked, *([witness] if witness is not None else [])]:
        first, second = holds(one, event), holds(two, event)
        assert event is not witness or (second and not first), event
        assert not (covering and second and not first), event
        assert not (together and second and not first and not holds(third, event)), event
        assert overlapping or not (first and second), event
        assert not same or first is second, event
        assert holds(either, event) or not (first or second), event


@given(FILTERS, FILTERS, st.lists(events(), max_size=6))
@example(tamis.parse("greatest(a, b) NOT LIKE '%a%'"), tamis.parse("in_cidr(d, e)"), [])
@example(tamis.parse("least(a, b) LIKE '%a%' AND size(a) > 1"), tamis.parse("a.x <=> b.x AND a = b"), [])
def test_relations_over_all_functions_raise_nothing_and_prove_nothing_that_an_event_refutes(one, two, asked):
    check_relations(parsed(one), parsed(two), asked)


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=8)
@given(data=st.data())
def test_a_filter_with_any_function_is_compared_with_all_others(name, data):
    call = data.draw(calls(name))
    if not FUNCTIONS[name].is_test:
        call = data.draw(
            st.one_of(
                st.builds(Compare, st.sampled_from(COMPARISONS), st.just(call), terms()),
                st.builds(Like, st.just(call), like_patterns),
                st.builds(In, st.just(call), st.lists(scalars, min_size=1, max_size=3).map(tuple)),
                st.just(IsNull(call)),
            )
        )
    one, two = parsed(call), parsed(data.draw(PREDICATES))
    asked = data.draw(st.lists(events(), max_size=3))
    check_relations(one, two, asked)
    check_relations(Not(two), one, asked)
