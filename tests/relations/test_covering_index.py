"""The index finds what comparing all pairs finds."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.ranges.lines import cut_at
from tamis.relations import CoveringIndex, covers, kernels
from tamis.relations.errors import DuplicateKeyError, UnknownKeyError
from tamis.relations.rows import ALL_MARKS, ReachRows, contents, discard, marks_of, new_bag, sketch
from tamis.workloads import WORKLOADS
from tests.relations.worlds import WORLDS
from tests.strategies import conditions, conditions_over, scalars, simple_predicates, texts

in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


def check(index: CoveringIndex, filters, asked, schema=None):
    covering = [key for key, each in filters.items() if covers(each, asked, schema)]
    covered = [key for key, each in filters.items() if covers(asked, each, schema)]
    assert index.covering(asked) == covering, asked
    assert index.covered_by(asked) == covered, asked
    assert index.is_covered(asked) is bool(covering)


@in_every_world
def test_the_index_finds_what_comparing_all_pairs_finds(world):
    chance = Random(31)
    index = CoveringIndex(world.schema)
    filters = {}
    for number in range(160):
        make = world.conjunction if chance.random() < 0.6 else world.filter
        filters[number] = make(chance, chance.randint(1, 4))
        index.add(number, filters[number])
        if chance.random() < 0.25:
            gone = chance.choice(list(filters))
            index.remove(gone)
            del filters[gone]
    assert list(index) == list(filters)
    for _ in range(40):
        make = world.conjunction if chance.random() < 0.6 else world.filter
        check(index, filters, make(chance, chance.randint(1, 4)), world.schema)
    for key in list(filters)[:10]:
        check(index, filters, filters[key], world.schema)


filters_of_any_kind = st.one_of(conditions, conditions_over(simple_predicates, 5), simple_predicates)


@given(filters=st.lists(filters_of_any_kind, min_size=1, max_size=12), asked=filters_of_any_kind, data=st.data())
@settings(max_examples=100)
def test_the_index_finds_the_same_whatever_the_filters_say(filters, asked, data):
    index = CoveringIndex()
    kept = dict(enumerate(filters))
    for key, each in kept.items():
        index.add(key, each)
    for key in data.draw(st.sets(st.sampled_from(sorted(kept)))):
        index.remove(key)
        del kept[key]
    check(index, kept, asked)
    check(index, kept, data.draw(st.sampled_from(filters)))


@pytest.mark.parametrize("name", ["w1", "w2", "auction"])
@pytest.mark.parametrize("with_schema", [True, False])
def test_the_index_finds_the_same_in_the_workloads(name, with_schema):
    workload = WORKLOADS[name]()
    schema = workload.schema if with_schema else None
    filters = [tamis.parse(text) for text in workload.subscriptions(250, 3)["condition"].to_pylist()]
    general = [each.operands[0] if isinstance(each, tamis.language.expressions.And) else each for each in filters[:40]]
    stored = dict(enumerate([*filters[:200], *general]))
    index = CoveringIndex(schema)
    for key, each in stored.items():
        index.add(key, each)
    for asked in [*filters[200:215], *general[:5], *filters[:5]]:
        check(index, stored, asked, schema)


def test_filters_that_are_unlike_are_not_compared():
    index = CoveringIndex()
    for number in range(400):
        index.add(
            number,
            f"category = 'c{number % 20}' AND price BETWEEN {number} AND {number + 50} AND (a{number} = 1 OR b = {number})",
        )
    narrow = "category = 'c3' AND price BETWEEN 200 AND 210 AND b = 203"
    around, inside = len(index.candidates_around(narrow)), len(index.candidates_inside(narrow))
    assert around <= 3 and inside <= 3


def test_filters_that_match_nothing_are_covered_by_all_and_cover_only_each_other():
    index = CoveringIndex()
    for key, text in {"nothing": "x > 5 AND x < 3", "never": "FALSE", "one": "x = 1", "all": "TRUE"}.items():
        index.add(key, text)
    assert index.covered_by("y = 1") == ["nothing", "never"]
    assert index.covering("a = 1 AND a = 2") == ["nothing", "never", "one", "all"]
    assert index.covering("TRUE") == ["all"] and index.covered_by("TRUE") == ["nothing", "never", "one", "all"]
    index.remove("never")
    assert index.covered_by("FALSE") == ["nothing"]


def test_filters_of_which_no_event_is_known_are_always_compared():
    index = CoveringIndex(budget=1)
    odd = "title RLIKE '^(ab)+$' AND title RLIKE '^(aba)+$' AND price < 5"
    index.add("odd", odd)
    index.add("wide", "price < 7")
    index.add("pattern", "title RLIKE '^(ab)+$'")
    index.add("other", "title RLIKE 'x'")
    assert index.covering(odd) == ["odd", "wide", "pattern"]
    assert index.covered_by("price < 6") == ["odd"]
    index.remove("odd")
    assert index.covered_by("price < 6") == []


def test_records_and_event_types_are_found_by_what_they_imply():
    schema = tamis.Schema(
        {"type": "string", "price": "int", "pos": {"x": "int"}},
        hierarchy={"Quote": None, "News": None},
        mandatory_by_type={"Quote": ["price"]},
    )
    index = CoveringIndex(schema)
    index.add("priced", "type = 'Quote' AND price IS NOT NULL")
    index.add("placed", "pos IS NOT NULL")
    assert index.covering("type = 'Quote'") == ["priced"]
    assert index.covering("pos.x = 1") == ["placed"]
    assert index.covered_by("price IS NOT NULL") == ["priced"]


def test_a_mandatory_attribute_may_have_any_value_in_what_does_not_mention_it():
    schema = tamis.Schema({"t": "int", "x": "int"}, mandatory=["t"])
    index = CoveringIndex(schema)
    index.add("split", "t <= 5 AND x = 1 OR t > 5 AND x = 1")
    index.add("half", "t <= 5 AND x = 1")
    assert index.covering("x = 1") == ["split"]
    assert index.covered_by("x = 1") == ["split", "half"]
    index.add("plain", "x = 1")
    assert index.covered_by("t <= 5 AND x = 1 OR t > 5 AND x = 1") == ["split", "half", "plain"]


def test_keys_are_there_once_or_not_at_all():
    index = CoveringIndex()
    index.add("one", "x = 1")
    assert "one" in index and "two" not in index and len(index) == 1
    assert index.expression("one") == tamis.parse("x = 1")
    with pytest.raises(DuplicateKeyError, match="'one' already; remove it first"):
        index.add("one", "x = 2")
    for question in (index.remove, index.expression):
        with pytest.raises(UnknownKeyError, match="no filter 'two'"):
            question("two")
    with pytest.raises(tamis.errors.ExpressionSyntaxError):
        index.add("two", "x =")
    assert list(index) == ["one"] and index.covering("x = 1") == ["one"]


def test_what_was_removed_leaves_nothing_behind():
    index = CoveringIndex()
    chance = Random(5)
    world = WORLDS["any types"]
    for round_ in range(3):
        for number in range(60):
            index.add(number, world.filter(chance, chance.randint(1, 4)))
        for number in range(60):
            index.remove(number)
        assert not index._by_clause and not index._by_witness and not index._empty and not index._unwitnessed
        assert len(index._entries) <= 60, f"room is used again, round {round_}"


# -- Kernels and rows


@given(one=scalars, two=st.one_of(scalars, texts))
def test_sketches_keep_the_order_of_cuts(one, two):
    first, second = sorted((cut_at(one), cut_at(two)))
    assert sketch(first) <= sketch(second)
    assert -(2**63) <= sketch(first) < 2**63


@given(values=st.lists(st.one_of(scalars, texts), min_size=1, max_size=5))
def test_the_marks_of_a_value_are_among_those_of_every_set_that_has_it(values):
    together = 0
    for each in values:
        marks = marks_of(cut_at(each))
        assert -(2**63) <= marks < 2**63 and 1 <= len(bits(marks)) <= 3
        together |= marks
    assert all(not marks_of(cut_at(each)) & ~together for each in values)


def test_marks_tell_most_values_apart():
    found = {marks_of(cut_at(f"share {number:03}")) for number in range(200)}
    assert len(found) > 190


def around_plainly(rows, candidates, point, marks):
    def is_around(row):
        return all(
            low <= point[axis] <= high and bits(marks[axis]) <= bits(mine) for axis, low, high, mine in rows[row]
        )

    return [row for row in candidates if is_around(row)]


def bits(marks):
    return {bit for bit in range(64) if marks >> bit & 1}


def within_plainly(rows, candidates, limits, needed):
    def is_within(row):
        named = {axis: (low, high, marks) for axis, low, high, marks in rows[row]}
        for axis, (low, high, marks) in named.items():
            outer_low, outer_high, outer_marks = limits.get(axis, (-(2**63), 2**63 - 1, ALL_MARKS))
            if low < outer_low or high > outer_high or not bits(marks) <= bits(outer_marks):
                return False
        return needed <= named.keys()

    return [row for row in candidates if is_within(row)]


small = st.integers(0, 4)
row_lists = st.lists(
    st.dictionaries(st.integers(0, 3), st.tuples(small, small, st.integers(-1, 7)), max_size=3).map(
        lambda row: [(axis, min(low, high), max(low, high), marks) for axis, (low, high, marks) in row.items()]
    ),
    min_size=1,
    max_size=6,
)


@given(rows=row_lists, point=st.lists(small, min_size=4, max_size=4), data=st.data())
def test_the_compiled_loops_do_what_their_plain_twins_do(rows, point, data):
    stored = ReachRows()
    for number, row in enumerate(rows):
        stored.put(number, row)
    if data.draw(st.booleans(), label="one is replaced") and len(rows) > 1:
        stored.drop(0)
        stored.put(0, rows[0])
    candidates = np.array(data.draw(st.permutations(range(len(rows)))), np.int64)
    marks = data.draw(st.lists(st.integers(-1, 7), min_size=4, max_size=4))
    defaults = np.array(point, np.int64)
    named = [(axis, point[axis], point[axis], marks[axis]) for axis in range(4)]
    found = stored.reaching_around(candidates, named, np.zeros(4, np.int64))
    assert found.tolist() == around_plainly(rows, candidates.tolist(), point, marks)
    found = stored.reaching_around(candidates, [], defaults)
    assert found.tolist() == around_plainly(rows, candidates.tolist(), point, [0] * 4)
    limits = {axis: (min(a, b), max(a, b), marks) for axis, a, b, marks in data.draw(st.sampled_from(rows))}
    needed = {axis for axis in limits if data.draw(st.booleans())}
    outer = [(axis, *limit) for axis, limit in limits.items()]
    found = stored.staying_within(candidates, outer, [axis in needed for axis in limits], 4)
    assert found.tolist() == within_plainly(rows, candidates.tolist(), limits, needed)
    assert kernels.reaching_around.py_func.__doc__ and kernels.staying_within.py_func.__doc__


def test_bags_grow_and_shrink():
    bag = new_bag()
    for number in range(10):
        bag.append(number)
    discard(bag, 3)
    discard(bag, 9)
    assert sorted(contents([bag, new_bag(), bag]).tolist()) == sorted([0, 1, 2, 4, 5, 6, 7, 8] * 2)
    assert contents([]).tolist() == []
