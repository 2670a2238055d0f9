from __future__ import annotations

import math

import numpy as np
import pytest

from tamis.workloads import ParameterError
from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS, draw, weighted_sets, zipf_weights

DRAWS = 200_000


def phi(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


def expected(distribution: str, n: int) -> np.ndarray:
    """The weights as the source's appendix B.2 defines them."""
    kind = distribution.removeprefix("reversed_")
    weights = {
        "uniform": [1.0] * n,
        "zipf": [1 / (index + 1) for index in range(n)],
        "normal": [phi((index + 1) / (n / 4)) - phi(index / (n / 4)) for index in range(n)],
    }[kind]
    shares = np.array(weights) / sum(weights)
    return shares[::-1] if distribution.startswith("reversed") else shares


@pytest.mark.parametrize("distribution", OPERAND_DISTRIBUTIONS)
@pytest.mark.parametrize("n", [1, 2, 22, 501])
def test_each_value_comes_as_often_as_the_definition_says(distribution, n):
    found = np.bincount(draw(distribution, n, DRAWS, np.random.default_rng(1)), minlength=n) / DRAWS
    shares = expected(distribution, n)
    assert found.size == n
    assert (np.abs(found - shares) <= 5 * np.sqrt(shares / DRAWS) + 1e-9).all()


def test_the_minimum_is_most_likely_or_the_maximum():
    for distribution, favourite in (("normal", 0), ("zipf", 0), ("reversed_normal", 21), ("reversed_zipf", 21)):
        assert np.bincount(draw(distribution, 22, DRAWS, np.random.default_rng(1))).argmax() == favourite


def test_an_unknown_distribution_is_named():
    with pytest.raises(
        ParameterError, match="one of uniform, normal, zipf, reversed_normal, reversed_zipf, not 'pareto'"
    ):
        draw("pareto", 3, 1, np.random.default_rng(1))


def test_sets_are_drawn_as_if_one_by_one():
    sets = weighted_sets(zipf_weights(4), 2, 50_000, np.random.default_rng(1))
    assert (sets[:, 0] != sets[:, 1]).all()
    shares = zipf_weights(4) / zipf_weights(4).sum()
    second = np.mean(sets[sets[:, 0] == 0, 1] == 1)
    assert np.mean(sets[:, 0] == 0) == pytest.approx(shares[0], abs=0.01)
    assert second == pytest.approx(shares[1] / (1 - shares[0]), abs=0.01)
