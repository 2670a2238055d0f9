"""Relations equal their definition on small worlds, and never err to the unsafe side anywhere."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, Attribute, Compare, Literal, Not, Or
from tamis.language.meaning import holds
from tamis.relations import Verdict, covers, covers_by_set, example, identical, overlaps, satisfiable
from tamis.relations.base import STAGES
from tamis.relations.errors import NotAFilterError
from tests.lengths import so_many
from tests.relations.worlds import WORLDS, World
from tests.strategies import conditions, conditions_over, events, predicates, simple_predicates

in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
filters = st.one_of(conditions, conditions_over(simple_predicates), predicates, simple_predicates)


# -- Brute force


def check_pairs(world: World, count: int, seed: int, largest: int) -> dict[str, int]:
    """Compare the relations of random pairs with their definition; return how often each stage decided."""
    chance = Random(seed)
    decided = dict.fromkeys(STAGES, 0)
    for _ in range(count):
        make = world.filter if chance.random() < 0.8 else world.conjunction
        one, two = (make(chance, chance.randint(1, largest)) for _ in range(2))
        if chance.random() < 0.3:  # unrelated filters seldom cover each other
            two = And((one, two)) if chance.random() < 0.5 else Or((one, two))
        for relation, definition in (
            (covers, world.covers),
            (overlaps, world.overlaps),
            (identical, world.identical),
        ):
            verdict = relation(one, two, world.schema)
            assert verdict == Verdict(definition(one, two), True), f"{relation.__name__}: {one} | {two}"
            decided[verdict.by] += 1
    return decided


def check_sets(world: World, count: int, seed: int, largest: int) -> None:
    """Compare set coverings, and examples, with their definition."""
    chance = Random(seed)
    for _ in range(count):
        some = [world.filter(chance, chance.randint(1, largest)) for _ in range(chance.randint(0, 5))]
        special = world.filter(chance, chance.randint(1, largest))
        if some and chance.random() < 0.5:
            special = And((special, Or((*some, special))))
        verdict = covers_by_set(some, special, world.schema)
        assert verdict == Verdict(world.covers_by_set(some, special), True), f"{[*map(str, some)]} | {special}"
        event = example([special], some, world.schema)
        assert (event is None) is verdict.holds
        if event is not None:
            assert holds(special, event, world.schema)
            assert not any(holds(each, event, world.schema) for each in some)
            if world.schema is not None:
                assert repr(world.schema.conform(event)) == repr(event)


@in_every_world
def test_relations_of_pairs_equal_brute_force(world):
    decided = check_pairs(world, 700, seed=1, largest=5)
    assert all(decided[stage] for stage in ("equality", "propositions", "search")), decided


@in_every_world
def test_relations_of_larger_filters_equal_brute_force(world):
    check_pairs(world, 60, seed=2, largest=25)


@in_every_world
def test_covering_by_sets_and_examples_equal_brute_force(world):
    check_sets(world, 300, seed=3, largest=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 12))
@in_every_world
def test_relations_of_up_to_a_hundred_thousand_pairs_equal_brute_force(world, seed):
    check_pairs(world, so_many(12_500), seed=seed, largest=6)
    check_sets(world, so_many(6_250), seed=seed, largest=4)


# -- Anything, ugly values included


def check_safety(one, two, some_events, schema=None):
    """See that no event contradicts a verdict, and that a proven "no" comes with an event that shows it."""
    covering, overlapping, same = (relation(one, two, schema) for relation in (covers, overlaps, identical))
    assert covering.proven or not covering
    assert overlapping.proven or overlapping
    assert same.proven or not same
    for event in some_events:
        first, second = holds(one, event, schema), holds(two, event, schema)
        assert not (covering and second and not first)
        assert overlapping or not (first and second)
        assert not same or first is second
    shown = example([two], [one], schema)
    assert (shown is not None) is (covering.proven and not covering)
    assert shown is None or (holds(two, shown, schema) and not holds(one, shown, schema))
    shown = example([one, two], [], schema)
    assert (shown is not None) is (overlapping.proven and overlapping.holds)
    assert shown is None or (holds(one, shown, schema) and holds(two, shown, schema))


@given(one=filters, two=filters, some_events=st.lists(events(), max_size=6))
@settings(max_examples=400)
def test_no_verdict_is_unsafe_whatever_the_filters_and_events(one, two, some_events):
    check_safety(one, two, some_events)


@pytest.mark.slow
@given(one=filters, two=filters, some_events=st.lists(events(), max_size=10))
@settings(max_examples=so_many(20_000))
def test_no_verdict_is_unsafe_on_many_more_filters(one, two, some_events):
    check_safety(one, two, some_events)


SCHEMA = tamis.Schema(
    {
        "a": "double", "b": "int", "c": "string", "pos": {"x": "decimal(10,2)"}, "odd name": "timestamp",
        "für": "array<string>", "d": "date",
    },
    mandatory=["b"],
    hierarchy={"Quote": None, "StockQuote": "Quote", "Other": None},
)  # fmt: skip
TYPED_TEXTS = st.sampled_from(
    "a < 1.5|a > 0.1|a >= 0.1D|a = 2|a <> double('NaN')|a BETWEEN 0 AND 1|a IS NULL|a <=> 2|b < 3|b >= 2.5|b = 2.5|b IN (1, 2, 3)"
    "|b NOT IN (2)|b > 9007199254740992D|b > 9007199254740992|b + 1 < 3|b < a|a < b|a + b = 3|c = 'b'|c > 'a'|c LIKE 'b%'|c LIKE '%b'"
    "|c NOT LIKE '%b%'|c RLIKE '^b+$'|length(c) = 2|lower(c) = 'b'|c IS A 'Quote'|pos IS NULL|pos.x > 1|pos.x = 1.5|pos.x IS NULL"
    "|`odd name` > TIMESTAMP '2024-02-29 00:00:00'|`odd name` IS NOT NULL|array_contains(`für`, 'x')|size(`für`) > 1"
    "|arrays_overlap(`für`, array('x', 'y'))|d > DATE '2024-02-29'|d > TIMESTAMP '2024-02-29 12:00:00'|d IS NULL".split(
        "|"
    )
).map(lambda text: tamis.parse(text, SCHEMA))


@st.composite
def typed_events(draw):
    some = {
        "a": st.sampled_from([0.1, 0.5, 1.5, 2.0, float("nan"), float("inf"), -0.0]),
        "c": st.sampled_from(["", "b", "bb", "ab", "B", "Quote", "StockQuote"]),
        "pos": st.sampled_from(
            [{}, {"x": tamis.language.values.Decimal("1.5")}, {"x": tamis.language.values.Decimal(1)}]
        ),
        "für": st.sampled_from([[], ["x"], ["y", None], ["x", "z"]]),
    }
    event = {"b": draw(st.sampled_from([0, 1, 2, 3, 2**53, 2**53 + 1]))}
    return SCHEMA.conform(event | {name: draw(values) for name, values in some.items() if draw(st.booleans())})


@given(one=conditions_over(TYPED_TEXTS, 6), two=conditions_over(TYPED_TEXTS, 6), some_events=st.lists(typed_events()))
@settings(max_examples=300)
def test_no_verdict_is_unsafe_with_a_schema(one, two, some_events):
    check_safety(one, two, some_events, SCHEMA)
    for event in (example([one], [], SCHEMA), example([two], [one], SCHEMA)):
        assert event is None or repr(SCHEMA.conform(event)) == repr(event)  # in the types that it declares


@given(one=filters, two=filters, three=filters)
@settings(max_examples=100)
def test_relations_agree_with_one_another(one, two, three):
    assert covers(one, one) and identical(one, one)
    assert covers(one, two) if identical(one, two) else True
    assert covers(one, three) or not (covers(one, two) and covers(two, three)) or not covers(one, three).proven
    assert covers(Or((one, two)), one) and covers(one, And((one, two)))
    assert covers_by_set([one, two], Or((one, two)))
    assert overlaps(one, two).holds is overlaps(two, one).holds or not overlaps(one, two).proven
    assert not overlaps(one, Not(one))  # NOT is true nowhere where it is


# -- Cases by hand

EMPTY = And((Compare("<", Attribute(("x",)), Literal(1)), Compare(">", Attribute(("x",)), Literal(2))))


@pytest.mark.parametrize(
    ("general", "special", "is_covered"),
    [
        ("price > 10", "price BETWEEN 20 AND 30", True),
        ("x BETWEEN 4 AND 9", "x >= 5 AND x <= 8", True),  # though it covers neither part
        ("x >= 5", "x BETWEEN 4 AND 9", False),
        ("TRUE", "x = 1 OR y = 2", True),
        ("x = 1", "TRUE", False),
        ("x IS NOT NULL", "x <> 5", True),
        ("x <> 5", "x IS NOT NULL", False),
        ("x <> 5", "x = 4 OR x = 6", True),
        ("x = 5 OR x <> 5", "x IS NOT NULL", False),  # a text is neither
        ("x IN (1, 2, 3)", "x = 2", True),
        ("x = 1 OR y = 2", "x = 1 AND z = 3", True),
        ("NOT (x = 1)", "x IS NULL", False),
        ("x IS NULL OR x < 5", "NOT (x >= 5)", True),
        ("x < 5 AND y < 5", "x < 5", False),
        ("title LIKE '%bit%'", "title LIKE '%Hobbit%' AND price < 5", True),
        ("title LIKE 'The%'", "title = 'The Hobbit'", True),
        ("title RLIKE '^T.*t$'", "title IN ('The Hobbit', 'That')", True),
        ("length(title) > 3", "title = 'The Hobbit'", True),
        ("low < high", "high > low AND low = 1", True),
        ("low <= high", "low < high OR low = high", True),
        ("array_contains(tags, 'a') OR array_contains(tags, 'b')", "arrays_overlap(tags, array('a', 'b'))", True),
        ("low + high <= 20", "low + high <= 10", True),
        ("position.x IS NULL", "position IS NULL", True),
        ("position IS NOT NULL", "position.x = 1", True),
    ],
)
def test_covering_by_hand(general, special, is_covered):
    assert covers(general, special) == Verdict(is_covered, True)


@pytest.mark.parametrize(
    ("one", "two", "is_overlap"),
    [
        ("x = 1", "x = 2", False),
        ("x = 1", "y = 2", True),
        ("x < 5", "x > 4", True),
        ("x = 1", "x = 'a'", False),
        ("x IS NULL", "x < 1 OR y < 1", True),
        ("x IS NULL", "NOT x < 1", False),
        ("title LIKE '%.jpg'", "title LIKE '%.png'", False),
        ("title LIKE '%a%'", "title LIKE '%b%'", True),
        ("a < b AND b IS NULL", "TRUE", False),
        ("position IS NULL", "position.x = 1", False),
        ("x > 9007199254740992", "x < 9007199254740993", True),  # 9007199254740992.5
        ("x = 9007199254740992", "x = 9007199254740993", True),  # the double 2**53 equals both
        ("x > 0.1", "x <= 0.1D", True),  # a decimal between them becomes the same double
        ("x = 1", "x = 1.0 AND x = 1D", True),
    ],
)
def test_overlapping_by_hand(one, two, is_overlap):
    assert overlaps(one, two) == overlaps(two, one) == Verdict(is_overlap, True)


def test_integers_have_gaps_that_reals_have_not():
    integers = tamis.Schema({"x": "int", "y": "double"})
    assert not overlaps("x > 4", "x < 5", integers)
    assert overlaps("y > 4", "y < 5", integers)
    assert identical("x > 4", "x >= 5", integers) and identical("x > 4.5", "x >= 5", integers)
    assert covers("x IN (1, 2, 3)", "x BETWEEN 1 AND 3", integers)
    assert not covers("y IN (1, 2, 3)", "y BETWEEN 1 AND 3", integers)


def test_dates_have_gaps_that_timestamps_have_not():
    schema = tamis.Schema({"day": "date", "moment": "timestamp"})
    between = "{0} > DATE '2024-02-28' AND {0} < DATE '2024-02-29'"
    assert not satisfiable(between.format("day"), schema)
    assert satisfiable(between.format("moment"), schema)


def test_a_mandatory_attribute_is_never_absent():
    schema = tamis.Schema({"price": "double", "bids": "int"}, mandatory=["price"])
    assert identical("price IS NOT NULL AND bids = 1", "bids = 1", schema)
    assert not identical("bids IS NOT NULL AND price = 1", "price = 1", schema)
    assert identical("price < 5 OR price >= 5", "TRUE", schema)
    assert not identical("bids < 5 OR bids >= 5", "TRUE", schema)
    assert identical("bids < 5 OR bids >= 5", "bids IS NOT NULL", schema)
    assert not satisfiable("price IS NULL", schema)


def test_an_event_type_makes_attributes_mandatory():
    schema = tamis.Schema(
        {"type": "string", "price": "double", "text": "string"},
        hierarchy={"Quote": None, "StockQuote": "Quote", "News": None},
        mandatory_by_type={"Quote": ["price"]},
    )
    assert identical("type IS A 'StockQuote' AND price IS NOT NULL", "type IS A 'StockQuote'", schema)
    assert covers("price IS NOT NULL", "type = 'Quote'", schema)
    assert not covers("price IS NOT NULL", "type = 'News'", schema)
    assert not overlaps("type IS A 'Quote'", "price IS NULL", schema)
    assert overlaps("type IS A 'News'", "price IS NULL", schema)
    assert covers("type IS A 'Quote'", "type IS A 'StockQuote'", schema)
    assert not covers("type IS A 'StockQuote'", "type IS A 'Quote'", schema)
    assert not overlaps("type IS A 'News'", "type IS A 'Quote'", schema)
    event = example(["type IS A 'StockQuote'"], schema=schema)
    assert event is not None and schema.conform(event) == event


def test_what_cannot_be_decided_is_not_proven_and_on_the_safe_side():
    # Whether some text fits both is more than is known of regular expressions.
    one, two = "title RLIKE '^(ab)+$'", "title RLIKE '^(ba)+$'"
    assert overlaps(one, two) == Verdict(True, False)
    assert covers("title RLIKE 'a'", "title RLIKE 'aa?'") == Verdict(False, False)
    assert identical("title RLIKE '^(a|b)$'", "title RLIKE '^[ab]$'") == Verdict(False, False)
    assert overlaps("a < b AND b < c", "c < a") == Verdict(True, False)
    assert covers(one, one) == identical(one, one) == Verdict(True, True)
    assert example([one, two]) is None


def test_a_budget_that_does_not_suffice_leaves_the_answer_open_and_safe():
    one, two = pigeons(9, 8)
    verdict = covers(one, two, budget=20)
    assert verdict == Verdict(False, False) and verdict.by == "budget"
    assert overlaps(Not(one), two, budget=20).holds
    assert covers(*pigeons(4, 3)) == Verdict(True, True)


def pigeons(pigeon_count: int, hole_count: int):
    """Two pigeons share a hole; and every pigeon has one. With more pigeons than holes the first covers the second."""

    def sits(pigeon, hole):
        return Compare("=", Attribute((f"p{pigeon}_{hole}",)), Literal(True))

    shared = [
        And((sits(one, hole), sits(two, hole)))
        for hole in range(hole_count)
        for one in range(pigeon_count)
        for two in range(one)
    ]
    housed = [Or(tuple(sits(pigeon, hole) for hole in range(hole_count))) for pigeon in range(pigeon_count)]
    return Or(tuple(shared)), And(tuple(housed))


def test_filters_of_any_depth_are_compared():
    x, y = Attribute(("x",)), Attribute(("y",))
    deep, other = Compare("=", x, Literal(0)), Compare("=", x, Literal(0))
    for number in range(1, 200):
        leaf = Compare("=", x if number % 3 else y, Literal(number))
        deep, other = Not(Or((leaf, deep))), Not(Or((deep, leaf)))
        deep, other = Or((deep, leaf)), Or((leaf, other))
    assert identical(deep, deep) == covers(deep, And((deep, Compare("=", y, Literal(-1))))) == Verdict(True, True)
    check_safety(deep, other, [{"x": number, "y": 3 * number} for number in range(50)])


def test_wide_filters_are_compared():
    many = " OR ".join(f"(x = {number} AND y > {number})" for number in range(300))
    assert covers(many, "x = 7 AND y > 8") == Verdict(True, True)
    assert covers(many, "x = 7 AND y > 6") == Verdict(False, True)
    assert covers(f"x IN ({', '.join(map(str, range(5_000)))})", "x IN (17, 4999)") == Verdict(True, True)
    assert covers_by_set([f"x >= {n} AND x < {n + 1}" for n in range(200)], "x >= 0 AND x < 200") == Verdict(True, True)


def test_thresholds_and_parities_are_counted():
    pair = "at_least(2, a = 1, b = 1, c = 1)"
    assert identical(pair, "a = 1 AND b = 1 OR a = 1 AND c = 1 OR b = 1 AND c = 1")
    assert covers("at_least(1, a = 1, b = 1, c = 1)", pair)
    assert not overlaps("at_least(3, a = 1, b = 1, c = 1)", "NOT " + pair)
    wide = ", ".join(f"a{number} = 1" for number in range(30))
    assert covers(f"at_least(10, {wide})", f"at_least(11, {wide})") == Verdict(True, True)
    assert covers(f"at_least(11, {wide})", f"at_least(10, {wide})") == Verdict(False, True)
    parity = " XOR ".join(f"a{number}" for number in range(12))
    assert not overlaps(parity, f"NOT ({parity})")
    assert overlaps(parity, "a0 AND NOT a1") == Verdict(True, True)


def test_texts_and_expressions_are_the_same_filters():
    assert covers(tamis.parse("x < 5"), "x < 4") == covers("x < 5", tamis.parse("x < 4"))
    assert covers(tamis.attr("x") < 5, "x < 4")


@pytest.mark.parametrize("wrong", [5, None, Literal(5), ["x = 1"], tamis.attr("x")])
def test_what_is_no_filter_is_refused_by_name(wrong):
    with pytest.raises(NotAFilterError, match="a filter must be a text or a condition"):
        covers("x = 1", wrong)


def test_a_schema_checks_what_it_is_asked():
    with pytest.raises(tamis.errors.UnknownAttributeError):
        covers("prize < 5", "price < 5", tamis.Schema({"price": "double"}))
    with pytest.raises(tamis.errors.TypeMismatchError):
        overlaps(Compare("<", Attribute(("price",)), Literal("a")), "price < 5", tamis.Schema({"price": "double"}))


def test_a_verdict_is_as_true_as_it_holds():
    assert Verdict(True, False) and not Verdict(False, True)
    assert covers("x < 5", "x < 4").by == "propositions"


def test_nothing_is_covered_by_everything_and_overlaps_nothing():
    assert covers("x = 1", EMPTY) == covers(EMPTY, "FALSE") == identical(EMPTY, "FALSE") == Verdict(True, True)
    assert overlaps(EMPTY, "TRUE") == covers_by_set([], "x = 1") == Verdict(False, True)
    assert covers_by_set([], EMPTY) == Verdict(True, True)


def test_the_module_is_found_where_it_is_promised():
    assert tamis.relations.covers is covers
    for name in tamis.relations.__all__:
        assert getattr(tamis.relations, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'subsumes'"):
        tamis.relations.subsumes  # noqa: B018
