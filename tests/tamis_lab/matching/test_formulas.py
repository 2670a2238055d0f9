"""The published formulas to the last digit, and the structures within them."""

from __future__ import annotations

import pytest

import tamis
from tamis.workloads import Auction
from tamis_lab.matching.boolean.algorithm import Boolean
from tamis_lab.matching.cluster import Cluster
from tamis_lab.matching.counting import Counting
from tamis_lab.matching.formulas import (
    SubscriptionCharacteristics,
    Widths,
    boolean_bytes,
    characteristics,
    cluster_bytes,
    counting_bytes,
    leanest,
    tree_bytes,
    turning_point,
)
from tamis_lab.matching.shapes import conjunctions, shaped
from tests.tamis_lab.matching.auction_examples import CLASSES

SINGLE = [characteristics([condition]) for condition in CLASSES]


def without_vector(found: SubscriptionCharacteristics) -> SubscriptionCharacteristics:
    return SubscriptionCharacteristics(
        found.predicates, found.operators, found.conjunctions, found.conjunctions_per_predicate
    )


def test_the_framework_parameters_of_the_auction_classes():
    assert [found.predicates for found in SINGLE] == [6, 12, 7]
    assert [found.operators for found in SINGLE] == [4, 10, 6]
    assert [found.operator_share for found in SINGLE] == pytest.approx([0.667, 0.833, 0.857], abs=0.0005)
    assert [found.conjunctions for found in SINGLE] == [2, 4, 6]
    assert [found.conjunctions_per_predicate for found in SINGLE] == pytest.approx([1.333, 1.667, 2.571], abs=0.0005)
    assert [found.conjunction_share for found in SINGLE] == pytest.approx([0.667, 0.417, 0.429], abs=0.0005)
    assert [found.predicates * found.conjunctions_per_predicate for found in SINGLE] == pytest.approx([8, 20, 18])
    assert [found.distinct_predicates for found in SINGLE] == [6, 10, 6], "p5 = p9 and p8 = p12, and p5 = p7"


def test_the_conjunctions_of_the_auction_classes_are_the_published_ones():
    def ways(condition, names):
        return [{names[position] for position in way} for way in conjunctions(shaped(condition, "counting").shape)]

    assert ways(CLASSES[0], [1, 3, 4, 5, 6, 2]) == [{1, 2, 3, 4}, {1, 2, 5, 6}]
    second = ways(CLASSES[1], [1, 2, 3, 5, 6, 7, 8, 4, 9, 10, 11, 12])
    assert second == [{1, 2, 3, 5, 6}, {1, 2, 3, 7, 8}, {1, 2, 4, 9, 10}, {1, 2, 4, 11, 12}]
    third = ways(CLASSES[2], [1, 2, 3, 6, 7, 4, 5])
    assert third == [{first, *rest} for first in (1, 2) for rest in ((3, 6), (3, 7), (4, 5))]


def test_bytes_per_subscription_of_the_auction_classes():
    plain = [without_vector(found) for found in SINGLE]
    assert [tree_bytes(found.predicates, found.operators) for found in plain] == [38, 80, 47]
    assert [boolean_bytes(found) for found in plain] == pytest.approx([68, 134, 81])
    assert [counting_bytes(found) for found in plain] == pytest.approx([68, 168, 156])
    assert [cluster_bytes(found) for found in plain] == pytest.approx([80, 192, 192])
    assert [leanest(found) for found in plain] == ["counting", "boolean", "boolean"], "the first is a tie"
    wide = Widths(location=8)
    assert [boolean_bytes(SubscriptionCharacteristics(f.predicates, f.operators, f.conjunctions, f.conjunctions_per_predicate, widths=wide)) for f in plain] == pytest.approx([72, 138, 85])  # fmt: skip


def test_the_vector_of_fulfilled_predicates_is_the_same_for_all():
    apart = SubscriptionCharacteristics(6, 4, 2, 8 / 6, subscriptions=100, distinct_predicates=600)
    assert apart.commonality == 0
    for formula in (boolean_bytes, counting_bytes, cluster_bytes):
        assert formula(apart) - formula(without_vector(apart)) == pytest.approx(0.75)
    common = SubscriptionCharacteristics(6, 4, 2, 8 / 6, subscriptions=100, distinct_predicates=150)
    assert common.commonality == 0.75
    assert turning_point(common) == turning_point(apart)


def test_the_turning_points_of_the_auction_classes():
    assert [turning_point(found) for found in SINGLE] == pytest.approx([2.00, 3.19, 3.12], abs=0.005)
    assert [turning_point(found, against="cluster") for found in SINGLE] == pytest.approx([1.70, 2.79, 2.53], abs=0.005)


AGAINST_COUNTING = {
    (0.8, 0.3): (4.00, 4.21, 4.31, 4.36, 4.39),
    (0.8, 0.5): (2.72, 2.68, 2.67, 2.66, 2.65),
    (0.8, 0.7): (2.06, 1.97, 1.93, 1.91, 1.90),
    (0.5, 0.3): (3.82, 4.00, 4.08, 4.12, 4.15),
    (0.5, 0.5): (2.60, 2.55, 2.52, 2.51, 2.50),
    (0.5, 0.7): (1.97, 1.87, 1.83, 1.81, 1.79),
}
AGAINST_CLUSTER = {
    (0.8, 0.3): (2.12, 2.95, 3.50, 3.89, 4.19),
    (0.8, 0.5): (1.70, 2.11, 2.33, 2.48, 2.58),
    (0.8, 0.7): (1.42, 1.64, 1.75, 1.82, 1.86),
}


@pytest.mark.parametrize(("against", "table"), [("counting", AGAINST_COUNTING), ("cluster", AGAINST_CLUSTER)])
def test_the_tables_of_turning_points(against, table):
    for (operators, share), expected in table.items():
        for predicates, published in zip((2, 5, 10, 20, 50), expected, strict=True):
            found = SubscriptionCharacteristics(predicates, operators * predicates, 1, share)
            assert turning_point(found, against=against) == pytest.approx(published, abs=0.0051)
        endless = SubscriptionCharacteristics(1e9, operators * 1e9, 1, share)
        assert turning_point(endless, against=against) == pytest.approx((2 * operators + 9) / (8 * share), abs=0.001)


def test_at_the_turning_point_both_take_the_same():
    for predicates, operators, share in ((10, 8, 0.7), (5, 2, 0.3)):
        point = turning_point(SubscriptionCharacteristics(predicates, operators, 1, share))
        there = SubscriptionCharacteristics(predicates, operators, point, share * point)
        assert boolean_bytes(there) == pytest.approx(counting_bytes(there))
        point = turning_point(SubscriptionCharacteristics(predicates, operators, 1, share), against="cluster")
        there = SubscriptionCharacteristics(predicates, operators, point, share * point)
        assert boolean_bytes(there) == pytest.approx(cluster_bytes(there))


def test_a_pure_conjunction_is_always_heavier_as_a_tree():
    for predicates in range(1, 60):
        found = SubscriptionCharacteristics(predicates, 1, 1, 1)
        assert boolean_bytes(found) == 9 * predicates + 8
        assert counting_bytes(found) == 8 * predicates + 2
        assert leanest(found) == "counting"


def test_what_has_no_predicates_or_an_unknown_opponent_is_refused():
    with pytest.raises(ValueError, match="no characteristics"):
        characteristics([tamis.parse("TRUE")])
    with pytest.raises(ValueError, match="counting or cluster"):
        turning_point(SINGLE[0], against="gryphon")


# -- The structures themselves


@pytest.mark.parametrize("number", [0, 1, 2], ids=["class 1", "class 2", "class 3"])
def test_the_structures_take_the_bytes_of_the_formulas(number):
    mix = tuple(float(place == number) for place in range(3))
    table = Auction(subscription_mix=mix).subscriptions(3_000, seed=1)
    expressions = [tamis.parse(text) for text in table["condition"].to_pylist()]
    found = characteristics(expressions)
    for kind, formula in ((Boolean, boolean_bytes), (Counting, counting_bytes), (Cluster, cluster_bytes)):
        algorithm = kind()
        algorithm.add(range(len(expressions)), algorithm.prepare(expressions))
        algorithm.compile()
        payload = algorithm.statistics()["payload_bytes"]
        measured = sum(payload.values()) / len(expressions)
        if kind is Cluster:  # the access predicate need not stand in the columns
            assert measured <= formula(found)
            assert measured == pytest.approx(formula(found) - 4 * found.conjunctions, abs=0.01)
        else:
            assert measured == pytest.approx(formula(found), abs=0.01)
        assert algorithm.memory() > sum(payload.values()), "and what the formulas leave out"
