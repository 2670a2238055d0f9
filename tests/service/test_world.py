"""A node keeps its word in every world that chance makes."""

from __future__ import annotations

import pytest

from tests.lengths import so_many
from tests.service.world import World

QUICK = 300
EACH = 50
SLOW = so_many(20_000)
PART = 200


@pytest.mark.parametrize("first", range(0, QUICK, EACH))
def test_a_node_keeps_its_word_whatever_happens(first):
    for seed in range(first, first + EACH):
        World(seed).run()


@pytest.mark.parametrize("node_count", [2, 3])
def test_nodes_that_share_a_log_keep_their_word_whatever_happens(node_count):
    for seed in range(EACH):
        World(seed, node_count=node_count).run()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SLOW, PART))
def test_acceptance_2_up_to_twenty_thousand_worlds_without_a_problem(first):
    for seed in range(first, min(first + PART, SLOW)):
        World(seed, node_count=(1, 1, 1, 1, 2, 3)[seed % 6]).run()


def test_a_world_is_made_by_its_seed_alone():
    first, second = World(7).run(), World(7).run()
    assert first.checker.bodies == second.checker.bodies
    assert first.now == second.now
    assert first.sessions == second.sessions
