"""Whether any filter overlaps a query is proven once, of as few filters as it takes."""

from __future__ import annotations

from random import Random

import pytest

from tamis.language.parser import parse
from tamis.relations.advertisements import OverlapIndex
from tamis.relations.advertisements import index as index_module
from tamis.relations.advertisements.proofs import Proofs
from tests.relations.worlds import WORLDS

in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


@pytest.fixture
def compared(monkeypatch):
    """Return the pairs that are compared from now on, by looking or by searching."""
    pairs = []

    def noted(compare):
        def comparing(one, two, *more):
            pairs.append((str(one.expression), str(two.expression)))
            return compare(one, two, *more)

        return comparing

    monkeypatch.setattr(index_module, "overlaps_forms", noted(index_module.overlaps_forms))
    monkeypatch.setattr(index_module.quick, "overlaps", noted(index_module.quick.overlaps))
    return pairs


def test_a_decision_ends_at_the_first_overlap_that_is_proven(compared):
    index = OverlapIndex(is_exact=True)
    for number in range(500):
        index.add(number, f"price > {number} AND (format = 'Hardcover' OR bids < {number})")
    assert index.overlaps_any("price > 3 AND (bids > 700 OR format <> 'Softcover')")
    assert len(compared) <= 2 * index_module._PORTION


def test_a_filter_that_no_predicate_of_the_query_touches_is_tried_first(compared):
    index = OverlapIndex(is_exact=True)
    for number in range(300):
        index.add(number, f"(price < {number} OR bids = {number}) AND (price < {number} OR bids > {number})")
    index.add("easy", "colour = 'red'")
    assert index.witness("price > 400") == "easy"
    assert len(compared) < 10


def test_who_overlapped_the_last_query_is_asked_first_about_the_next(compared):
    index = OverlapIndex(is_exact=True)
    for number in range(200):
        index.add(number, f"title = 'Title {number}' AND price < 20")
    index.add("all", "price < 10 OR sold")
    assert index.witness("title = 'none' AND price < 5") == "all"
    compared.clear()
    for number in range(5):
        assert index.witness(f"title = 'nobody {number}' AND price < 5") == "all"
    assert len(compared) <= 5


def test_what_was_proven_is_not_asked_again_and_goes_with_the_filter(compared):
    index = OverlapIndex(is_exact=True)
    index.add("one", "a > 5 OR b = 1")
    index.add("two", "a > 7 OR b = 1")
    assert index.witness("b = 1 OR a = 0") == "one"
    compared.clear()
    assert index.witness("b = 1 OR a = 0") == "one" and not compared
    index.remove("one")
    assert index.witness("b = 1 OR a = 0") == "two"
    index.remove("two")
    index.add("one", "a = 9 AND b = 2")  # another filter under the same key
    assert index.witness("b = 1 OR a = 0") is None and not index.overlaps_any("b = 1 OR a = 0")


def test_nothing_is_proven_of_filters_that_nobody_asks_for(compared):
    index = OverlapIndex(is_exact=True)
    for number in range(100):
        index.add(number, f"a > {number} OR b = {number}")
    assert index.overlapping("a < 50 OR b > 70", only=lambda key: key in (3, 99)) == [3, 99]
    assert {special for _, special in compared} == {"a > 3 OR b = 3", "a > 99 OR b = 99"}


def test_proofs_are_bounded_and_removal_forgets(monkeypatch):
    monkeypatch.setattr("tamis.relations.advertisements.proofs.MOST_PROOFS", 10)
    proofs = Proofs()
    for number in range(100):
        proofs.add(number % 7, parse(f"a = {number}"), overlaps=number % 3 == 0)
        assert len(proofs) <= 10
    proofs.add("k", parse("b = 1"), overlaps=True)
    proofs.forget("k")
    assert proofs.witness(parse("b = 1")) == [] and proofs.known("k", parse("b = 1")) is None
    assert "k" not in proofs.lately


@pytest.mark.parametrize("most_proofs", [2, 1_000])
@in_every_world
def test_an_index_that_grows_and_shrinks_between_questions_equals_brute_force(world, most_proofs, monkeypatch):
    monkeypatch.setattr("tamis.relations.advertisements.proofs.MOST_PROOFS", most_proofs)
    monkeypatch.setattr(index_module, "_MOST_WAITING", 3)
    chance = Random(11)
    index, here = OverlapIndex(world.schema, is_exact=True), {}
    queries = [world.conjunction(chance, chance.randint(2, 4)) for _ in range(12)]
    queries += [world.filter(chance, chance.randint(1, 5)) for _ in range(6)]
    answers = set()
    for number in range(120):
        if here and chance.random() < 0.45:
            gone = chance.choice(list(here))
            del here[gone]
            index.remove(gone)
        else:
            key = number % 15
            if key not in here:
                here[key] = world.conjunction(chance, chance.randint(1, 4))
                index.add(key, here[key])
        query = chance.choice(queries)
        expected = [key for key, each in here.items() if world.overlaps(query, each)]
        witness = index.witness(query)
        assert (witness in expected) if expected else witness is None, (query, here)
        assert index.overlaps_any(query) is bool(expected)
        answers.add(bool(expected))
    assert answers == {True, False}


def test_large_pairs_beyond_the_budget_of_a_query_count_as_overlapping_and_are_asked_again_later(monkeypatch):
    overlap_index = OverlapIndex(is_exact=True)
    for number in range(4):
        overlap_index.add(number, f"length(s) = {number} AND s = 'abcdefgh'")  # no predicate alone is disjoint
    assert overlap_index.overlapping("x > 1 AND s = 'abcdefgh'") == []
    fresh = OverlapIndex(is_exact=True)
    for number in range(4):
        fresh.add(number, overlap_index.expression(number))
    monkeypatch.setattr(index_module, "_LARGE_PAIR", 0)
    monkeypatch.setattr(index_module, "_LARGE_PAIRS_BUDGET", 0)
    assert fresh.overlapping("x > 1 AND s = 'abcdefgh'") == [1, 2, 3]  # the first is within the budget
    monkeypatch.undo()
    assert fresh.overlapping("x > 1 AND s = 'abcdefgh'") == []
