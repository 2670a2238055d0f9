"""User functions as the thesis has them (Jewel 2004, sections 4.2 and 4.2.1), what hooks are worth, and what they may say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching.algorithms import ALGORITHMS
from tamis.routing import Broker, Entry, Subscribe
from tests.relations.test_relations import check_safety


@tamis.function(takes=("number", "number"), gives="number", version=1)
def if_below(value, limit):
    """The return value of an extended predicate match: the event's value if it matched, else undefined."""
    return value if value < limit else None


@tamis.function(takes=("number", "number"), gives="number", version=1)
def if_at_least(value, limit):
    return value if value >= limit else None


@tamis.function(takes=("number", "number"), gives="number", version=1)
def smaller(one, two):
    return min(one, two)


@tamis.function(
    takes=("number", "number"),
    gives="boolean",
    version=1,
    implies=lambda one, two: one[0] % two[0] == 0,
    excludes=lambda one, two: False,
    unites=lambda one, two: one if two[0] % one[0] == 0 else two if one[0] % two[0] == 0 else None,
)
def divides(number, divisor):
    return isinstance(number, int) and number % divisor == 0


HOSTED = tamis.Functions([if_below, if_at_least, smaller, divides])
TRIPLE = "if_at_least(a, 200) + if_at_least(b, 100) + if_at_least(c, 600) <= 1000"
LEAST = "smaller(a, smaller(b, c)) > smaller(smaller(d, e), smaller(f, g))"


def parse(text):
    return tamis.parse(text, functions=HOSTED)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_return_values_and_aggregates_of_the_thesis_are_matched_by_every_algorithm(algorithm):
    matcher = tamis.Matcher(algorithm, functions=HOSTED)
    wanted = {
        "below": "if_below(a, 200) = 170",
        "undefined": "if_below(a, 200) IS NULL AND a IS NOT NULL",
        "triple": TRIPLE,
        "least": LEAST,
        "shares": f"{TRIPLE} OR {LEAST}",
    }
    matcher.add_many(wanted)
    events = [
        {"a": 170},
        {"a": 230},
        {"a": 300, "b": 170, "c": 500},  # the third predicate fails
        {"a": 300, "b": 170, "c": 630},  # 1100
        {"a": 240, "b": 120, "c": 630},  # 990
        {"a": 3, "b": 4, "c": 5, "d": 9, "e": 9, "f": 2, "g": 9},
        {"a": 3, "b": 4, "c": 5, "d": 9, "e": 9, "f": 3, "g": 9},
        {"a": 3, "b": None, "c": 5, "d": 9, "e": 9, "f": 2, "g": 9},  # undefined is strict
    ]
    expected = [
        ["below"],
        ["undefined"],
        ["undefined"],
        ["undefined"],
        ["undefined", "triple", "shares"],
        ["least", "shares"],
        [],
        [],
    ]
    assert [matcher.match(event) for event in events] == expected
    assert matcher.list_batch(events).to_pylist() == expected


DIVISORS = st.sampled_from([f"divides({name}, {divisor})" for name in "ab" for divisor in (1, 2, 3, 4, 6, 12)])
CONDITIONS = st.recursive(
    st.one_of(DIVISORS, st.sampled_from(["a > 3", "b = 6", "a IS NULL"])),
    lambda below: st.one_of(
        below.map(lambda text: f"NOT ({text})"),
        st.tuples(below, st.sampled_from(["AND", "OR"]), below).map(lambda three: "({}) {} ({})".format(*three)),
    ),
    max_leaves=4,
)
EVENTS = st.fixed_dictionaries({}, optional={name: st.sampled_from([None, 0, 1, 2, 6, 12, 7.5, "x"]) for name in "ab"})


@settings(max_examples=150)
@given(CONDITIONS, CONDITIONS, st.lists(EVENTS, max_size=6))
def test_no_verdict_that_hooks_lead_to_is_unsafe(one, two, some_events):
    check_safety(parse(one), parse(two), some_events)


@pytest.mark.parametrize(
    "texts",
    [
        [f"in_cidr(ip, '10.{number}.0.0/16')" for number in range(20)] + ["in_cidr(ip, '10.0.0.0/8')"],
        [f"divides(a, {number})" for number in range(6, 60, 6)] + ["divides(a, 6)", "divides(a, 3)"],
    ],
    ids=["networks", "a function of the host"],
)
def test_entries_of_brokers_fall_where_hooks_say_what_covers(texts):
    told = {}
    for strategy in ("identity", "covering"):
        broker = Broker("middle", strategy, functions=HOSTED)
        broker.connect("north", 0.0)
        broker.attach("ann")
        for key, text in enumerate(texts):
            broker.receive(Subscribe((Entry(key, parse(text)),)), "ann", 0.0)
        told[strategy] = len(broker.told("north"))
    assert told["identity"] == len(set(texts))
    assert told["covering"] == 1
