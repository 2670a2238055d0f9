"""The structures that were compared or surveyed find what the language means, and are what their sources say."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.matching import UnsupportedExpressionError
from tamis.matching.columns import Events
from tamis_lab.matching.surveyed import access
from tamis_lab.matching.surveyed.access import ClusterSeveral
from tamis_lab.matching.surveyed.fixed_order import GryphonPublished
from tamis_lab.matching.surveyed.sliced import CountingSliced
from tests.strategies import conditions_over, events, simple_predicates

KINDS = [CountingSliced, ClusterSeveral]
every_kind = pytest.mark.parametrize("kind", [*KINDS, GryphonPublished], ids=lambda kind: kind.name)


def registered(kind, texts, begin=0, algorithm=None):
    algorithm = algorithm or kind()
    expressions = [tamis.parse(text) if isinstance(text, str) else text for text in texts]
    algorithm.add(range(begin, begin + len(texts)), algorithm.prepare(expressions))
    return algorithm


def found(algorithm, batch):
    """Return what one snapshot finds of single events and of the batch, which is the same."""
    snapshot = algorithm.snapshot()
    single = [sorted(snapshot.match_event(event).tolist()) for event in batch]
    numbers, handles = snapshot.match_events(Events(batch))
    together = [sorted(handles[numbers == number].tolist()) for number in range(len(batch))]
    assert single == together
    return single


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(
    conditions=st.lists(conditions_over(simple_predicates), max_size=10),
    batch=st.lists(events(), min_size=1, max_size=3),
    data=st.data(),
)
@settings(max_examples=60)
def test_what_is_laid_out_and_what_came_since_are_matched_as_the_language_means(kind, conditions, batch, data):
    algorithm, taken = kind(), {}
    for number, condition in enumerate(conditions):
        try:
            prepared = algorithm.prepare([condition])
        except UnsupportedExpressionError:
            continue
        algorithm.add([number], prepared)
        taken[number] = condition
        if data.draw(st.booleans()):
            algorithm.compile()
        if data.draw(st.booleans()):
            algorithm.learn(Events(batch))
    for number in data.draw(st.sets(st.sampled_from(sorted(taken)))) if taken else ():
        algorithm.remove(number)
        del taken[number]
    if data.draw(st.booleans()):
        algorithm.compile()
    assert found(algorithm, batch) == [[n for n, each in taken.items() if tamis.holds(each, event)] for event in batch]


VALUES = ("1", "2", "'Emma'")


@every_kind
@given(
    population=st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from(VALUES), min_size=1, max_size=4), max_size=80
    ),
    batch=st.lists(
        st.dictionaries(st.sampled_from("abcd"), st.sampled_from([1, 2, "Emma", None])), min_size=1, max_size=4
    ),
)
@settings(max_examples=60)
def test_conjunctions_of_equalities(kind, population, batch):
    texts = [" AND ".join(f"{name} = {value}" for name, value in each.items()) for each in population]
    half = len(texts) // 2
    algorithm = registered(kind, texts[:half])
    algorithm.compile()
    registered(kind, texts[half:], half, algorithm)
    expected = [[n for n, text in enumerate(texts) if tamis.holds(tamis.parse(text), event)] for event in batch]
    assert found(algorithm, batch) == expected


# -- Counters in slices


def test_many_hits_are_counted_with_a_carry_through_all_slices():
    texts = [" AND ".join(f"a{n} = 1" for n in range(size)) for size in (1, 2, 3, 4, 7, 8, 15, 16, 33)] * 20
    algorithm = registered(CountingSliced, texts)
    algorithm.compile()
    assert algorithm.statistics()["slices"] == 6
    for held in (0, 1, 7, 8, 16, 32, 33):
        event = {f"a{n}": 1 for n in range(held)}
        sizes = [text.count("=") for text in texts]
        assert found(algorithm, [event]) == [[n for n, size in enumerate(sizes) if size <= held]]


def test_whole_rows_grow_with_predicates_times_conjunctions():
    sizes = []
    for count in (128, 256):
        algorithm = registered(CountingSliced, [f"a = {n} AND b = {n}" for n in range(count)])
        algorithm.compile()
        sizes.append(algorithm.statistics()["whole_rows_bytes"])
        assert algorithm.memory() > 0
    assert sizes == [2 * 128 * 2 * 8, 2 * 256 * 4 * 8]


# -- Gryphon as it was compared


def test_every_path_has_a_level_for_each_attribute():
    #            root
    #          /      \*
    #    title=Emma     *
    #     /     \*        \
    #  price=5    *      price=5      three leaves, two inner levels, the root
    tree = registered(GryphonPublished, ["title = 'Emma' AND price = 5", "title = 'Emma'", "price = 5"])
    assert {name: tree.statistics()[name] for name in ("levels", "nodes")} == {"levels": 2, "nodes": 6}
    tree = registered(GryphonPublished, [f"a{n} = 1" for n in range(8)])
    assert tree.statistics()["nodes"] > 8 * 4, "mostly stars"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("price < 5", "not an equality"),
        ("a <=> 1", "not an equality"),
        ("a = 1 AND a = 2", "an attribute twice"),
        ("NOT a = 1", "not an equality"),
        ("a IN (1, 2)", "not an equality"),
    ],
)
def test_it_takes_equalities_only(text, reason):
    with pytest.raises(UnsupportedExpressionError, match=reason):
        GryphonPublished().prepare([tamis.parse(text)])


# -- Access by several equalities


def traffic(chance, used):
    """Return events in which one or the other attribute has few values that nearly all events have."""
    rows = [
        {"a": chance.randrange(2 if used == "a" else 50), "b": chance.randrange(50 if used == "a" else 2), "c": n % 4}
        for n in range(512)
    ]
    return Events(pa.Table.from_pylist(rows))


def test_schemas_are_of_several_attributes_where_that_is_worth_a_look_up():
    alone = np.full((100, 2), 0.001)
    assert access.chosen_schemas(alone) == [(0,)]
    assert access.chosen_schemas(np.full((4, 2), np.inf)) == []
    three = np.full((20_000, 3), 0.3)
    assert access.chosen_schemas(three)[0] == (0, 1, 2)


def test_conjunctions_are_clustered_anew_when_events_have_changed():
    chance = Random(4)
    texts = [f"a = {chance.randrange(2)} AND b = {chance.randrange(2)} AND d > {n}" for n in range(200)]
    algorithm = registered(ClusterSeveral, texts)
    algorithm.observe(traffic(chance, "a"))
    before = algorithm.statistics()
    assert before["clustered_anew"] == 0
    assert before["schemas"] == [1]
    for _ in range(33):
        algorithm.observe(traffic(chance, "a"))
    assert algorithm.statistics()["clustered_anew"] == 0, "nothing has changed"
    for _ in range(66):
        algorithm.observe(traffic(chance, "b"))
    assert algorithm.statistics()["clustered_anew"] >= 1
    event = {"a": 1, "b": 1, "c": 2, "d": 1000}
    assert found(algorithm, [event]) == [[n for n, text in enumerate(texts) if tamis.holds(tamis.parse(text), event)]]


def test_more_equalities_give_access_to_fewer_conjunctions_that_do_not_match():
    chance = Random(5)
    texts = [" AND ".join(f"{name} = {chance.randrange(3)}" for name in "abc") for _ in range(2_000)]
    algorithm = registered(ClusterSeveral, texts)
    algorithm.learn(Events(pa.Table.from_pylist([{name: chance.randrange(3) for name in "abc"} for _ in range(600)])))
    figures = algorithm.statistics()
    assert max(figures["schemas"]) == 3
    assert figures["checks_expected"] < 2_000 / 3 / 3, "one equality would leave a third"
    assert figures["groups"] >= 27
