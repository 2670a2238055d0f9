"""The published tree in plain Python: the source's worked numbers, its arrangement, and operands that are numbers."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language import parse
from tamis_lab.matching.atree.published.graph import ARRANGEMENTS, LOOK_UPS, PARENTS, PRINTED, REPAIRED, TABLE
from tamis_lab.matching.atree.published.operands import Of, OperandTree, Planned, With

every_look_up = pytest.mark.parametrize("look_up", LOOK_UPS)


def leaf(number):
    return parse(f"p{number} = 1")


def written(expression):
    """Take `("and", 0, ("or", 1, 2))` for a function of predicates by number."""
    if isinstance(expression, int):
        return leaf(expression)
    function, *operands = expression
    return Of(function, tuple(map(written, operands)))


def grown(expressions, **options):
    tree = OperandTree(**options)
    for number, expression in expressions.items():
        tree.add(number, written(expression))
    return tree


def event_of(numbers):
    return {f"p{number}": 1 for number in numbers}


def inner(tree):
    return [node for node in tree.nodes.values() if node.children]


def is_whole(tree):
    """Every field is what the others say: levels, sorted parents, use counts, and a child is used as often as its parent."""
    for node in tree.nodes.values():
        assert node.level == 1 + max((child.level for child in node.children), default=0)
        assert node.parents == sorted(
            (other.number, place)
            for other in tree.nodes.values()
            for place, child in enumerate(other.children)
            if child is node
        )
        assert all(child.use_count >= node.use_count > 0 for child in node.children)
        assert all(operand is None for operand in node.operands), "undefined between events"
    return True


# -- The worked numbers of the source

A, B, C, D, E = range(5)
WORKED = {
    1: ("xor", ("and", A, B), ("and", C, D)),
    2: ("or", B, ("and", C, D)),
    4: ("and", A, B, C),
    3: ("and", A, B, C, E),
    5: ("and", C, D),
    6: ("and", A, B, C),
    7: ("and", C, D),
}


@every_look_up
@pytest.mark.parametrize("arrangement", ARRANGEMENTS)
def test_the_worked_example_has_the_published_nodes_levels_and_matches(arrangement, look_up):
    tree = grown(WORKED, arrangement=arrangement, look_up=look_up)
    assert len(tree.leaves) == 5
    assert sorted(node.level for node in inner(tree)) == [2, 2, 3, 3, 3, 4]
    assert sorted(tree.match(event_of([A, B, C]))) == [1, 2, 4, 6]
    assert is_whole(tree)


@every_look_up
def test_the_apartments_share_the_node_of_three_subscriptions(look_up):
    two = "city = 'TOR' AND bedroom = 2"
    tree = OperandTree(arrangement=PRINTED, look_up=look_up)
    conjunction = Of("and", tuple(map(parse, two.split(" AND "))))
    tree.add("S2", Of("or", (conjunction, Of("and", (parse("city = 'YORK'"), parse("bedroom = 3"))))))
    tree.add("S1", Of("and", (parse("type = 'APT'"), conjunction)))
    tree.add("S3", Of("and", (conjunction, parse("rent <= 1500"))))
    tree.add("S4", Of("or", (Of("and", (parse("city = 'TOR'"), parse("rent <= 1500"))), parse("city = 'YORK'"))))
    assert sorted(node.use_count for node in inner(tree)) == [1, 1, 1, 1, 1, 1, 3]
    event = {"bedroom": 2, "type": "APT", "city": "TOR", "rent": 1600}
    assert sorted(tree.match(event)) == ["S1", "S2"]


# -- Algorithm 6

STORE = {1: ("and", A, ("and", B, C)), 2: ("and", ("and", A, B), C), 3: ("and", ("and", ("and", A, B), C), D)}


def stored(tree, expressions):
    """Insert trees with the brackets that they have, which an insertion would arrange anew."""
    for number, expression in expressions.items():
        tree.roots[number] = tree._made(planned(tree, expression))
    return tree


def planned(tree, expression):
    if isinstance(expression, int):
        return tree.leaves.get(leaf(expression)) or Planned(leaf(expression), ())
    return Planned(expression[0], tuple(planned(tree, each) for each in expression[1:]))


@every_look_up
@pytest.mark.parametrize(("arrangement", "made"), [(PRINTED, 1), (REPAIRED, 0)])
def test_as_printed_the_dynamic_program_misses_a_node_that_exists(arrangement, made, look_up):
    tree = stored(OperandTree(arrangement=arrangement, look_up=look_up), STORE)
    before = len(tree.nodes)
    tree.add(4, written(("and", A, B, C, D)))
    assert len(tree.nodes) - before == made


@cache
def brackets(first, last):
    """Return all binary trees over predicates in order."""
    if first == last:
        return [first]
    return [
        ("and", one, other)
        for cut in range(first, last)
        for one in brackets(first, cut)
        for other in brackets(cut + 1, last)
    ]


def to_be_made(expression, known):
    """Return the inner nodes of a tree that do not exist, and what the tree is: nested sets, as AND has no order."""
    if isinstance(expression, int):
        return frozenset(), expression
    (one, left), (other, right) = (to_be_made(each, known) for each in expression[1:])
    node = frozenset([left, right])
    return (one | other) | (frozenset() if node in known else frozenset([node])), node


@pytest.mark.parametrize("look_up", LOOK_UPS)
def test_as_repaired_no_other_brackets_make_fewer_nodes(look_up):
    for seed in range(12):
        chance = Random(seed)
        count = chance.randint(3, 6)
        chosen = chance.sample(list(combinations(range(count), 2)), k=min(4, count))
        trees = {n: chance.choice(brackets(*each)) for n, each in enumerate(chosen)}
        tree = OperandTree(look_up=look_up)
        for number in range(count):  # so that the order of age is the order of numbers
            tree.add(("leaf", number), leaf(number))
        stored(tree, trees)
        known = {to_be_made(each, frozenset())[1] for whole in trees.values() for each in parts(whole)}
        before = len(tree.nodes)
        tree.add("new", written(("and", *range(count))))
        assert len(tree.nodes) - before == min(len(to_be_made(each, known)[0]) for each in brackets(0, count - 1)), (
            seed,
            trees,
        )


def parts(expression):
    yield expression
    if not isinstance(expression, int):
        for each in expression[1:]:
            yield from parts(each)


def test_another_cost_makes_other_brackets():
    def first_together(function, one, other, exists):
        """Prefer a node of the first two predicates."""
        is_wanted = {each.key for each in (one, other)} == {leaf(0), leaf(1)}
        return 0 if exists or is_wanted else 1

    def pairs(tree):
        return [{child.key for child in node.children} for node in inner(tree)]

    plain, other = (
        grown({1: ("and", 0, 1, 2, 3)}, arrangement=PRINTED, **options) for options in ({}, {"cost": first_together})
    )
    assert {leaf(0), leaf(1)} not in pairs(plain)
    assert {leaf(0), leaf(1)} in pairs(other)


# -- Anything at all

expressions = st.recursive(
    st.integers(0, 6),
    lambda below: (
        st.tuples(st.sampled_from(["and", "or", "xor"]), below, below)
        | st.tuples(st.sampled_from(["and", "or"]), below, below, below)
    ),
    max_leaves=8,
).filter(lambda each: not isinstance(each, int))


def holds(expression, true):
    if isinstance(expression, int):
        return expression in true
    function, *operands = expression
    count = sum(holds(each, true) for each in operands)
    return {"and": count == len(operands), "or": count > 0, "xor": count % 2 == 1}[function]


@given(
    population=st.lists(expressions, max_size=8),
    true=st.sets(st.integers(0, 6)),
    gone=st.sets(st.integers(0, 7)),
    arrangement=st.sampled_from(ARRANGEMENTS),
    look_up=st.sampled_from(LOOK_UPS),
)
@settings(max_examples=60)
def test_both_ways_to_evaluate_find_what_holds_and_removal_leaves_no_trace(
    population, true, gone, arrangement, look_up
):
    tree = grown(dict(enumerate(population)), arrangement=arrangement, look_up=look_up)
    for number in gone & set(range(len(population))):
        tree.remove(number)
    left = [number for number in range(len(population)) if number not in gone]
    wanted = [number for number in left if holds(population[number], true)]
    assert sorted(tree.match(event_of(true))) == wanted
    assert tree.match_top_down(event_of(true)) == wanted
    assert is_whole(tree)
    for number in left:
        tree.remove(number)
    assert not tree.nodes
    assert not tree.leaves
    assert not tree._table


# -- Operands that are numbers

SHOPS = tuple(map(parse, ("a >= 200", "b >= 100", "c >= 600")))


@pytest.mark.parametrize(
    ("prices", "matches"),
    [((300, 170, 500), False), ((300, 170, 630), False), ((240, 120, 630), True)],
    ids=["c is not dear enough", "1,100 together", "990 together"],
)
def test_the_worked_constraint(prices, matches):
    tree = OperandTree()
    tree.add("sum", With("<=", Of("+", SHOPS), 1000))
    event = dict(zip("abc", prices, strict=True))
    assert bool(tree.match(event)) is matches
    assert tree.match_top_down(event) == tree.match(event)


def test_least_greatest_and_mean_are_made_of_pairs():
    tree = OperandTree()
    a, b, c = SHOPS
    tree.add("mean", With("<", With("/", Of("+", SHOPS), 3), 400))
    tree.add("sum", With(">", Of("+", SHOPS), 1000))
    tree.add("least", With(">", Of("-", (Of("min", (b, c)), a)), 0))
    tree.add("greatest", With("=", Of("max", SHOPS), 700))
    assert len([node for node in inner(tree) if node.key == "+"]) == 2, "both sums are one"
    assert set(tree.match({"a": 200, "b": 250, "c": 700})) == {"mean", "sum", "least", "greatest"}
    assert tree.match({"a": 300, "b": 250}) == [], "c is undefined, and nothing is true of undefined"
    assert set(tree.match({"a": 900, "b": 100, "c": 600})) == {"sum"}


def test_undefined_is_not_false_and_zero_is_defined():
    tree = OperandTree()
    zero = parse("a <= 0")
    tree.add("zero", With("=", Of("+", (zero, parse("b >= 0"))), 0))
    tree.add("either", Of("or", (zero, parse("b > 5"))))
    assert set(tree.match({"a": 0, "b": 0})) == {"zero", "either"}
    assert tree.match({"b": 0}) == []
    assert tree.match({"a": 1, "b": 0}) == []


def test_operands_that_must_not_change_places_do_not():
    tree = OperandTree(look_up=PARENTS)
    a, b = parse("a >= 0"), parse("b >= 0")
    tree.add("a - b", With(">", Of("-", (a, b)), 0))
    tree.add("b - a", With(">", Of("-", (b, a)), 0))
    tree.add("a / b", With(">", Of("/", (a, b)), 1))
    assert set(tree.match({"a": 5, "b": 3})) == {"a - b", "a / b"}
    assert tree.match({"a": 3, "b": 5}) == ["b - a"]
    assert tree.match({"a": 3, "b": 0}) == ["a - b"], "nothing is divided by zero"


def test_a_node_is_found_in_either_way():
    for look_up in (PARENTS, TABLE):
        tree = grown({1: ("and", A, B), 2: ("and", C, ("and", A, B)), 3: ("or", A, B)}, look_up=look_up)
        assert len(inner(tree)) == 3
