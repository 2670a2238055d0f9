"""The propositions on conjunctions, and what else is seen at once, against brute force."""

from __future__ import annotations

from random import Random

import pytest

from tamis.relations import quick
from tamis.relations.forms import context_of
from tests.relations.worlds import WORLDS

in_every_world = pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)


@in_every_world
@pytest.mark.parametrize("is_conjunctive", [True, False])
def test_what_is_seen_at_once_is_what_brute_force_says(world, is_conjunctive):
    chance = Random(11)
    context = context_of(world.schema)
    make = world.conjunction if is_conjunctive else world.filter
    seen = 0
    for _ in range(500):
        one, two = (make(chance, chance.randint(1, 4)) for _ in range(2))
        forms = context.form(one), context.form(two)
        for test, definition in (
            (quick.covers, world.covers),
            (quick.overlaps, world.overlaps),
            (quick.identical, world.identical),
        ):
            verdict = test(*forms)
            if verdict is not None:
                assert verdict.proven and verdict.holds is definition(one, two), f"{test.__name__}: {one} | {two}"
                seen += 1
    assert seen > 150


def test_conjunctions_about_independent_attributes_are_always_decided():
    world = WORLDS["typed"]
    chance = Random(12)
    context = context_of(world.schema)
    for _ in range(300):
        forms = [context.form(world.conjunction(chance, chance.randint(1, 4))) for _ in range(2)]
        assert None not in (quick.covers(*forms), quick.overlaps(*forms), quick.identical(*forms))


@pytest.mark.parametrize(
    ("general", "special", "stage"),
    [
        ("a = 1 AND b = 2", "b = 2 AND a = 1", "equality"),
        ("a < 5", "a < 3 AND b = 1", "propositions"),
        ("a < 5", "a < 7", "propositions"),
        ("a = 1 OR b = 2", "c = 1 OR d = 2", "witness"),
        ("a = 1 OR b = 2 OR c = 3", "b = 2 OR c = 3", "structure"),
        ("(a = 1 OR b = 2) AND c > 3", "(a = 1 OR b = 2) AND c > 4", "structure"),
        ("at_least(2, a = 1, b = 1, c = 1, d = 1)", "at_least(3, a = 1, b = 1, c = 1, e = 1)", "structure"),
    ],
)
def test_each_stage_decides_what_it_is_for(general, special, stage):
    context = context_of(None)
    verdict = quick.covers(context.form(general), context.form(special))
    assert verdict is not None and verdict.by == stage


def test_a_test_of_structure_gives_up_on_what_is_too_large_or_too_deep():
    context = context_of(None)
    wide = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(40))
    assert (
        quick.covers(context.form(f"({wide}) AND x <> 1"), context.form(f"({wide}) AND (x = 2 OR y = 1 AND x = 3)"))
        is None
    )
    deep = "x = 1"
    for number in range(60):
        deep = f"(({deep}) OR y = {number}) AND z > {number}"
    assert quick.covers(context.form(deep), context.form(deep + " AND w = 1 OR w = 2 AND x = 1 AND z > 99")) is None
