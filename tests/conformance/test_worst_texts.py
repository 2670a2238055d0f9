"""Short texts that would stall everybody: within the limits of the language, and bad for whoever takes trees for granted."""

from __future__ import annotations

from random import Random

import pytest

import tamis
from tests.worst_texts import WORST_TEXTS, event

every_text = pytest.mark.parametrize("worst", WORST_TEXTS, ids=lambda worst: worst.name)


@every_text
def test_a_worst_text_is_within_the_limits_of_the_language_and_its_small_one_is_true_and_not_true(worst):
    tamis.parse(worst.worst)
    chance = Random(1)
    assert {tamis.holds(tamis.parse(worst.tame), event(chance)) for _ in range(300)} == {True, False}
