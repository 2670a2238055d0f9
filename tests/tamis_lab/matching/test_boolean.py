"""The Boolean algorithm: trees of bytes, candidates, evaluation, event types and destinations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.language.expressions import And, Attribute, Or
from tamis.matching import Matcher, UnsupportedExpressionError
from tamis.matching.columns import Events
from tamis.matching.destinations import Destinations
from tamis_lab.matching import kernels
from tamis_lab.matching.boolean import kernels as writing
from tamis_lab.matching.boolean.algorithm import Boolean
from tamis_lab.matching.boolean.encoding import decode, encode, plan, with_widths
from tamis_lab.matching.boolean.grove import GroveOptions
from tamis_lab.matching.boolean.semantics import semantic_least_hits
from tamis_lab.matching.shapes import ALL, ALWAYS, ANY, LEAF, NEVER, fold_shape, least_hits, shaped
from tests.strategies import conditions_over, events, simple_predicates
from tests.tamis_lab.matching.auction_examples import CLASSES, EVENT

shapes = st.recursive(
    st.just([LEAF]),
    lambda inner: st.builds(
        lambda operator, parts: [operator, len(parts), *(code for part in parts for code in part)],
        st.sampled_from([ALL, ANY]),
        st.lists(inner, min_size=2, max_size=4),
    ),
    max_leaves=15,
).map(bytes)


@st.composite
def encoded_trees(draw):
    """A shape, numbers for its predicates, and which numbers hold."""
    shape = draw(shapes)
    count = plan(shape).leaf_count
    numbers = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    return shape, numbers, draw(st.sets(st.integers(0, 9)))


def meaning(shape, numbers, held):
    if shape in (ALWAYS, NEVER):
        return shape == ALWAYS
    return fold_shape(
        shape,
        lambda position: numbers[position] in held,
        lambda operator, below: all(below) if operator == ALL else any(below),
    )


def registered(*conditions, schema=None, options=None):
    algorithm = Boolean(schema, options)
    algorithm.add(
        range(len(conditions)),
        algorithm.prepare(tamis.parse(each) if isinstance(each, str) else each for each in conditions),
    )
    return algorithm


# -- Encoding


def test_the_trees_of_the_auction_classes_have_38_80_and_47_bytes():
    sizes = []
    for condition in CLASSES:
        found = shaped(condition, "boolean")
        sizes.append(len(encode(found.shape, range(len(found.predicates)))))
    assert sizes == [38, 80, 47]


def test_class_1_is_written_byte_by_byte():
    found = shaped(CLASSES[0], "boolean")
    p1, p3, p4, p5, p6, p2 = range(1, 7)
    written = encode(found.shape, [p1, p3, p4, p5, p6, p2])

    def leaf(number):
        return [4, number, 0, 0, 0]

    expected = [1, 3, *leaf(p1), 2, 2, 1, 2, *leaf(p3), *leaf(p4), 1, 2, *leaf(p5), *leaf(p6), *leaf(p2)]
    assert written == bytes(expected)


def test_a_pure_conjunction_has_its_own_code_and_leaves_and_constants_have_none():
    assert encode(bytes([ALL, 2, LEAF, LEAF]), [1, 2])[0] == kernels.PURE
    assert encode(bytes([ANY, 2, LEAF, LEAF]), [1, 2])[0] == ANY
    assert encode(bytes([LEAF]), [2**32 - 1]) == b"\x04\xff\xff\xff\xff"
    assert (encode(ALWAYS, []), encode(NEVER, [])) == (b"\x05", b"\x06")


@given(found=encoded_trees())
def test_what_is_encoded_is_decoded(found):
    shape, numbers, _ = found
    tree = encode(shape, numbers)
    assert decode(tree) == (shape, numbers)
    assert len(tree) == 5 * len(numbers) + 2 * (len(shape) - len(numbers)) // 2


@given(found=encoded_trees())
def test_widths_stand_in_front_of_every_child(found):
    shape, numbers, _ = found
    node_count = len(numbers) + (len(shape) - len(numbers)) // 2
    tree = with_widths(encode(shape, numbers))
    assert len(tree) == len(encode(shape, numbers)) + 2 * (node_count - 1)

    def read(at, end):
        """Take a tree with widths apart again; return its shape and numbers."""
        if tree[at] == LEAF:
            assert end - at == 5
            return [LEAF], [int.from_bytes(tree[at + 1 : at + 5], "little")]
        codes, found, inside = [ALL if tree[at] == kernels.PURE else tree[at], tree[at + 1]], [], at + 2
        for _ in range(tree[at + 1]):
            width = tree[inside] + 256 * tree[inside + 1]
            below, leaves = read(inside + 2, inside + 2 + width)
            codes += below
            found += leaves
            inside += 2 + width
        assert inside == end
        return codes, found

    assert read(0, len(tree)) == (list(shape), numbers)


# -- Evaluation


def evaluated(trees, held, mode, is_counted=True):
    """Evaluate trees one behind the other with the kernel; return which hold, and how many predicates were looked at."""
    data = np.frombuffer(b"".join(trees), np.uint8)
    sizes = np.array([len(tree) for tree in trees])
    locations = (np.cumsum(sizes) - sizes).astype(np.uint32)
    bits = np.zeros(1, np.uint32)
    kernels.set_bits(np.array(sorted(held), np.uint32), 0, len(held), bits)
    out, counts = np.empty((2, len(trees)), np.uint32), np.zeros(3, np.int64)
    alive = np.full(len(trees), 2**32 - 1, np.uint32)
    nowhere, stack = np.full(len(trees), -1, np.int32), np.empty((30, 4), np.int64)
    written = kernels.evaluate(
        np.arange(len(trees), dtype=np.uint32),
        is_counted,
        kernels.TreeBytes(data, locations, mode),
        kernels.Marks(alive, 0, nowhere, False),
        np.zeros(1, np.uint8),
        kernels.GroveRoom(np.zeros(0, np.uint8), np.zeros(0, np.uint32), bits, stack, counts),
        (0, 0),
        kernels.Outlet(out[0], out[1]),
    )
    return [slot in out[1][:written] for slot in range(len(trees))], int(counts[kernels.LEAVES])


@given(some=st.lists(encoded_trees(), min_size=1, max_size=5))
def test_every_way_to_evaluate_finds_the_same(some):
    held = some[0][2]
    plain = [encode(shape, numbers) for shape, numbers, _ in some if shape[0] != ALL or plan(shape).depth > 1]
    expected = [meaning(*decode(tree), held) for tree in plain]
    lazily, few = evaluated(plain, held, kernels.SHORT_CIRCUIT)
    in_full, all_of_them = evaluated(plain, held, kernels.WITHOUT)
    by_widths, as_few = evaluated([with_widths(tree) for tree in plain], held, kernels.WITH_WIDTHS)
    assert lazily == in_full == by_widths == expected
    assert few == as_few <= all_of_them == sum(len(decode(tree)[1]) for tree in plain)


def test_a_pure_conjunction_holds_unseen_and_constants_are_what_they_are():
    trees = [
        encode(bytes([ALL, 2, LEAF, LEAF]), [1, 2]),
        encode(ALWAYS, []),
        encode(NEVER, []),
        encode(bytes([LEAF]), [3]),
    ]
    assert evaluated(trees, {3}, kernels.SHORT_CIRCUIT) == ([True, True, False, True], 1)
    assert evaluated(trees, {3}, kernels.SHORT_CIRCUIT, is_counted=False) == ([False, True, False, True], 2)
    assert evaluated(trees, {1, 2}, kernels.SHORT_CIRCUIT, is_counted=False) == ([True, True, False, False], 3)


# -- Order of children


def reordered(tree, shares, sign):
    source = np.frombuffer(tree, np.uint8)
    out = np.zeros_like(source)
    size = np.array([len(tree)])
    nodes, waiting, node_shares = np.empty((60, 4), np.int64), np.empty(60, np.int64), np.empty(60, np.float32)
    room = writing.NodeRoom(nodes, node_shares, waiting)
    writing.order_children(source, np.zeros(1, np.uint32), size, shares, sign, room, out)
    return out.tobytes()


def sorted_twin(shape, numbers, shares, sign):
    """The plain twin: sort the children of every node by how often they hold; return shape and numbers."""

    def leaf(position):
        return float(shares[numbers[position]]), [LEAF], [numbers[position]]

    def join(operator, below):
        share = 1.0
        for each, _, _ in below:
            share *= each if operator == ALL else 1 - each
        direction = sign if operator == ALL else -sign
        below = sorted(below, key=lambda each: direction * each[0])
        codes = [operator, len(below), *(code for _, inside, _ in below for code in inside)]
        return share if operator == ALL else 1 - share, codes, [number for _, _, found in below for number in found]

    _, codes, found = fold_shape(shape, leaf, join)
    return bytes(codes), found


@given(found=encoded_trees(), sign=st.sampled_from([1, -1]), chosen=st.permutations(range(10)))
def test_children_come_in_the_order_in_which_they_decide(found, sign, chosen):
    # Shares that are powers of two make the products exact, whatever their order.
    shape, numbers, held = found
    shares = np.array([0.5 ** (1 + each % 4) for each in chosen], np.float32)
    tree = encode(shape, numbers)
    again = reordered(tree, shares, sign)
    if tree[0] == kernels.PURE:
        assert again == tree
        return
    assert decode(again) == sorted_twin(shape, numbers, shares, sign)
    assert least_hits(decode(again)[0]) == least_hits(shape)
    assert evaluated([again], held, kernels.SHORT_CIRCUIT)[0] == [meaning(shape, numbers, held)]


def test_what_is_learned_puts_the_child_first_that_decides():
    common, rare = "category = 'book'", "title = 'Emma'"
    batch = [{"category": "book", "title": "Emma" if number == 0 else "other"} for number in range(500)]
    looked_at = {}
    for order in ("selective", "written", "adverse"):
        algorithm = registered(f"{common} AND ({common} OR {rare})", options=GroveOptions(child_order=order))
        algorithm.learn(Events(batch))
        snapshot = algorithm.snapshot()
        numbers, _ = snapshot.match_events(Events(batch))
        assert len(numbers) == 500
        looked_at[order] = snapshot.counts()["leaves"]
    assert looked_at["selective"] < looked_at["adverse"]
    assert looked_at["selective"] <= looked_at["written"] <= looked_at["adverse"]


@pytest.mark.parametrize("options", [GroveOptions(), GroveOptions(child_order="written"), GroveOptions(child_order="adverse"), GroveOptions(short_circuit=False), GroveOptions(with_widths=True), GroveOptions(semantic=True), GroveOptions(is_shuffled=True)])  # fmt: skip
@given(
    conditions=st.lists(conditions_over(simple_predicates), max_size=8),
    batch=st.lists(events(), max_size=6),
    data=st.data(),
)
@settings(max_examples=30)
def test_no_option_changes_a_match(options, conditions, batch, data):
    algorithm = Boolean(None, options)
    try:
        algorithm.add(range(len(conditions)), algorithm.prepare(conditions))
    except UnsupportedExpressionError:
        return
    if data.draw(st.booleans(), label="lay out"):
        algorithm.learn(Events(batch))
    for event in batch:
        found = algorithm.snapshot().match_event(event)
        assert sorted(found.tolist()) == [n for n, each in enumerate(conditions) if tamis.holds(each, event)]


# -- Candidates


def test_the_golden_example_has_the_published_hits_candidates_and_matches():
    algorithm = registered(*CLASSES)
    algorithm.compile()
    snapshot = algorithm.snapshot()
    grove = snapshot.groves[None]
    fulfilled = grove.view.fulfilled_by(EVENT)
    hits = np.zeros(len(grove.index.least), np.uint8)
    kernels.count_hits(fulfilled, 0, len(fulfilled), grove.index.associations, hits)
    assert hits[:3].tolist() == [5, 8, 2]
    assert grove.index.least[:3].tolist() == [4, 5, 3]
    candidates = np.empty(128, np.uint32)
    count = kernels.list_candidates(hits, grove.index.least, candidates)
    assert candidates[:count].tolist() == [0, 1]
    assert snapshot.match_event(EVENT).tolist() == [0]
    assert snapshot.counts()["candidates"] == 2
    # Condition = New of s1 and of both branches of s2 is one predicate.
    shared = algorithm._groves[None].predicates
    assert shared.users(shared.add(tamis.parse("condition = 'New'"))) == 3 + 1


def test_the_association_multiset_counts_a_predicate_by_occurrence():
    algorithm = registered("p AND (p OR q)", "q OR p AND q AND p")
    algorithm.compile()
    index = algorithm.snapshot().groves[None].index
    predicates = algorithm._groves[None].predicates
    p, q = (predicates.add(tamis.parse(text)) for text in ("p", "q"))
    assert index.associations.members(p).tolist() == [0, 0, 1, 1]
    assert index.associations.members(q).tolist() == [0, 1, 1]
    assert algorithm.snapshot().match_event({"p": True, "q": False}).tolist() == [0]


@given(conditions=st.lists(st.lists(simple_predicates, min_size=1, max_size=4), max_size=8), event=events())
def test_a_pure_conjunction_is_a_candidate_just_where_it_matches(conditions, event):
    algorithm = registered(*(And(tuple(each)) if len(each) > 1 else each[0] for each in conditions))
    algorithm.compile()
    snapshot = algorithm.snapshot()
    found = snapshot.match_event(event)
    assert snapshot.counts()["candidates"] == len(found)


def test_subscriptions_of_more_than_255_predicates_get_wider_counters():
    wide = " OR ".join(f"a = {number} AND b = {number}" for number in range(400))
    narrow = " AND ".join(f"a <> {number}" for number in range(400))
    algorithm = registered("a = 3 AND b = 3", wide, narrow)
    algorithm.compile()
    snapshot = algorithm.snapshot()
    assert snapshot.groves[None].index.least.dtype == np.uint16
    assert sorted(snapshot.match_event({"a": 3, "b": 3}).tolist()) == [0, 1]
    assert snapshot.match_event({"a": 500, "b": 3}).tolist() == [2]
    assert sorted(snapshot.match_event({"a": 399, "b": 399}).tolist()) == [1]


# -- What follows from what


def test_least_hits_of_the_auction_classes():
    found = [shaped(condition, "boolean") for condition in CLASSES]
    assert [least_hits(each.shape) for each in found] == [4, 5, 3]
    assert semantic_least_hits(found[1]) == 6


flags_and_numbers = conditions_over(
    st.one_of(
        st.sampled_from([Attribute(("p",)), Attribute(("q",))]),
        st.builds(
            lambda operator, number: tamis.parse(f"a {operator} {number}"),
            st.sampled_from(["<", ">=", "=", "<>"]),
            st.integers(0, 3),
        ),
    ),
    max_leaves=8,
)


@given(condition=flags_and_numbers)
def test_semantic_least_hits_are_no_less_and_never_lose_a_match(condition):
    try:
        found = shaped(condition, "boolean")
    except UnsupportedExpressionError:
        return
    bound = semantic_least_hits(found)
    assert bound >= least_hits(found.shape)
    for p, q, a in product([True, False], [True, False], [-1, 0, 1, 2, 3, 4, None]):
        event = {"p": p, "q": q, "a": a}
        if tamis.holds(condition, event):
            assert sum(tamis.holds(predicate, event) for predicate in found.predicates) >= bound


# -- Event types

TYPED = [
    "type = 'book' AND price < 20",
    "'cd' = type AND price < 20",
    "price < 20",
    "type = 'book'",
    "type = 'cd' OR price < 5",
    "type = 'book' AND type = 'cd'",
]


def types_of(algorithm):
    return set(algorithm._groves) - {None}


@pytest.mark.parametrize("as_arrow", [True, False])
def test_an_event_visits_only_its_own_type(as_arrow):
    algorithm = registered(*TYPED)
    assert types_of(algorithm) == {("=", "book"), ("=", "cd")}
    snapshot = algorithm.snapshot()
    assert snapshot.match_event({"type": "book", "price": 12}).tolist() == [2, 0, 3]
    counted = {key: grove.counts.sum() for key, grove in snapshot.groves.items()}
    assert counted[("=", "cd")] == 0, "no counter of another type was touched"
    assert snapshot.match_event({"type": "vinyl", "price": 12}).tolist() == [2]
    assert snapshot.match_event({"price": 2}).tolist() == [2, 4]
    assert snapshot.match_event({"type": 7, "price": 2}).tolist() == [2, 4]
    batch = [{"type": name, "price": price} for name in ("book", "cd", None, "vinyl") for price in (2, 12, 30)]
    numbers, handles = snapshot.match_events(Events(pa.Table.from_pylist(batch) if as_arrow else batch))
    expected = [
        (n, h) for n, event in enumerate(batch) for h, text in enumerate(TYPED) if tamis.holds(tamis.parse(text), event)
    ]
    assert sorted(zip(numbers.tolist(), handles.tolist(), strict=True)) == expected
    assert numbers.tolist() == sorted(numbers.tolist())


def test_supertypes_are_asked_too():
    schema = tamis.Schema(
        {"kind": "string", "price": "int"},
        hierarchy={"Quote": None, "StockQuote": "Quote", "Other": None},
        type_attribute="kind",
    )
    texts = [
        "kind IS A 'Quote' AND price < 9",
        "kind IS A 'StockQuote'",
        "kind = 'Quote'",
        "price < 9",
        "NOT kind IS A 'Quote'",
    ]
    matcher = Matcher("boolean", schema)
    matcher.add_many(dict(enumerate(texts)))
    assert types_of(matcher._engine) == {("is a", "Quote"), ("is a", "StockQuote"), ("=", "Quote")}
    batch = [
        {"kind": kind, "price": price}
        for kind in ("Quote", "StockQuote", "Other", None, "unheard of")
        for price in (5, 10)
    ]
    for event in batch:
        expected = [n for n, text in enumerate(texts) if tamis.holds(tamis.parse(text, schema), event, schema)]
        assert matcher.match(event) == expected
    found = matcher.match_batch(batch).to_pydict()
    assert sorted(zip(found["event"], found["subscription"], strict=True)) == [
        (number, each) for number, event in enumerate(batch) for each in matcher.match(event)
    ]


def test_a_type_nobody_asks_for_any_more_is_forgotten():
    algorithm = registered(*TYPED)
    for handle in (0, 3, 5):
        algorithm.remove(handle)
    assert types_of(algorithm) == {("=", "cd")}
    assert algorithm.snapshot().match_event({"type": "book", "price": 12}).tolist() == [2]
    assert algorithm.statistics()["event_types"] == 1


# -- Destinations


def directed(names):
    table = Destinations()
    table.extend(0, names)
    return table


@given(
    names=st.lists(st.sampled_from([None, "north", "south", 5]), min_size=6, max_size=6),
    batch=st.lists(events(), min_size=1, max_size=4),
    conditions=st.lists(conditions_over(simple_predicates, max_leaves=6), min_size=6, max_size=6),
    is_laid_out=st.booleans(),
)
def test_the_shortcut_reaches_the_same_destinations(names, batch, conditions, is_laid_out):
    algorithm = Boolean()
    try:
        algorithm.add(range(6), algorithm.prepare(conditions))
    except UnsupportedExpressionError:
        return
    table = directed(names)
    if is_laid_out:
        algorithm.compile()
    snapshot = algorithm.snapshot()
    for event in batch:
        matching = [handle for handle, each in enumerate(conditions) if tamis.holds(each, event)]
        handles, reached = snapshot.reach_event(event, table)
        assert sorted(handles.tolist()) == [handle for handle in matching if names[handle] is None]
        assert {table.names[each] for each in reached.tolist()} == {names[handle] for handle in matching} - {None}
    (numbers, handles), (reaching, reached) = snapshot.reach_events(Events(batch), table)
    for number, event in enumerate(batch):
        alone, there = snapshot.reach_event(event, table)
        assert sorted(handles[numbers == number].tolist()) == sorted(alone.tolist())
        assert reached[reaching == number].tolist() == there.tolist()


def test_the_shortcut_evaluates_a_destination_until_it_is_reached():
    texts = [f"a = 1 AND (b < {number} OR c = {number})" for number in range(1, 101)]
    algorithm = registered(*texts, "type = 'x' AND a = 1 AND (b < 50 OR c = 2)")
    table = directed(["even", "odd"] * 50 + ["even"])
    algorithm.compile()
    snapshot = algorithm.snapshot()
    event = {"type": "x", "a": 1, "b": 0, "c": 0}
    handles, reached = snapshot.reach_event(event, table)
    assert (handles.tolist(), reached.tolist()) == ([], [1, 2])
    counts = snapshot.counts()
    assert (counts["candidates"], counts["evaluated"]) == (101, 2)
    assert len(snapshot.match_event(event)) == 101
    (_, handles), reached = snapshot.reach_events(Events([event, {"type": "x", "a": 1, "b": 99, "c": 0}]), table)
    assert handles.tolist() == [] and [each.tolist() for each in reached] == [[0, 0, 1], [1, 2, 2]]


def test_a_destination_stays_with_its_subscription_when_others_go():
    algorithm = registered(*(f"a = {number}" for number in range(300)))
    table = directed(list(range(300)))
    for handle in range(0, 300, 2):
        algorithm.remove(handle)
    algorithm.compile()
    for handle in (1, 77, 299):
        assert algorithm.snapshot().reach_event({"a": handle}, table)[1].tolist() == [handle + 1]
    assert algorithm.snapshot().reach_event({"a": 2}, table)[1].tolist() == []


def test_options_are_checked():
    with pytest.raises(ValueError, match="selective, written, adverse"):
        GroveOptions(child_order="best")


def test_a_tree_too_long_for_widths_is_refused():
    algorithm = Boolean(None, GroveOptions(with_widths=True))
    many = Or(tuple(tamis.parse(f"a = {number}") for number in range(9_500)))
    with pytest.raises(UnsupportedExpressionError, match="too long"):
        algorithm.prepare([many])
    Boolean().prepare([many])
