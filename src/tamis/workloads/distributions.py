"""How are operands spread over the values that they may have?

All distributions draw indexes into a domain in ascending order. In `normal` and `zipf` its first value is the
most likely one, in the reversed forms its last.

Source: Bittner 2008, appendix B.2 (docs/bibliography.md).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tamis.workloads.errors import ParameterError

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.workloads.base import Indexes

OPERAND_DISTRIBUTIONS = ("uniform", "normal", "zipf", "reversed_normal", "reversed_zipf")


def draw(distribution: str, domain_size: int, count: int, chance: np.random.Generator) -> Indexes:
    """Draw indexes into a domain.

    >>> np.bincount(draw("zipf", 3, 11_000, np.random.default_rng(1))).round(-3)
    array([6000, 3000, 2000])
    """
    assert domain_size > 0, "there is a value to draw"
    match distribution:
        case "uniform":
            return chance.integers(0, domain_size, count)
        case "normal":
            return _folded_normal(domain_size, count, chance)
        case "zipf":
            return weighted(zipf_weights(domain_size), count, chance)
        case "reversed_normal" | "reversed_zipf":
            return domain_size - 1 - draw(distribution.removeprefix("reversed_"), domain_size, count, chance)
    raise ParameterError("operand_distribution", distribution, f"one of {', '.join(OPERAND_DISTRIBUTIONS)}")


def placed(distribution: str, domain_size: int, positions: npt.NDArray[np.float64]) -> Indexes:
    """Return the indexes below which such shares of all draws lie: what `draw` would give, in order.

    >>> placed("zipf", 3, np.array([0.0, 0.5, 0.6, 0.99])), placed("reversed_zipf", 3, np.array([0.0, 0.1, 0.5]))
    (array([0, 0, 1, 2]), array([0, 0, 2]))
    """
    if distribution not in OPERAND_DISTRIBUTIONS:
        raise ParameterError("operand_distribution", distribution, f"one of {', '.join(OPERAND_DISTRIBUTIONS)}")
    mirrored = distribution.removeprefix("reversed_")
    if mirrored != distribution:
        return domain_size - 1 - placed(mirrored, domain_size, 1 - positions)
    cumulative = _cumulative(distribution, domain_size)
    indexes: Indexes = np.searchsorted(cumulative, positions * cumulative[-1], side="right")
    return np.minimum(indexes, domain_size - 1)


@lru_cache(maxsize=4)
def _cumulative(distribution: str, domain_size: int) -> npt.NDArray[np.float64]:
    if distribution == "zipf":
        weights = zipf_weights(domain_size)
    elif distribution == "normal":
        weights = np.exp(-8 * ((np.arange(domain_size) + 0.5) / domain_size) ** 2)  # a deviation of a quarter
    else:
        weights = np.ones(domain_size)
    return np.cumsum(weights)


def zipf_weights(domain_size: int) -> npt.NDArray[np.float64]:
    """Weigh the k-th value 1/k.

    >>> zipf_weights(4).round(2)
    array([1.  , 0.5 , 0.33, 0.25])
    """
    return 1 / np.arange(1, domain_size + 1, dtype=np.float64)


def weighted(weights: npt.NDArray[np.float64], count: int, chance: np.random.Generator) -> Indexes:
    """Draw indexes by their weights, which need not sum to one."""
    cumulative = np.cumsum(weights)
    drawn: Indexes = np.searchsorted(cumulative, chance.random(count) * cumulative[-1], side="right")
    return np.minimum(drawn, len(weights) - 1)  # rounding may push a draw over the last edge


def weighted_sets(weights: npt.NDArray[np.float64], set_size: int, count: int, chance: np.random.Generator) -> Indexes:
    """Draw sets of distinct indexes, one set a row, as if one by one without putting back.

    Adding Gumbel noise to the logarithms of the weights and keeping the largest does just that, and does it for all
    sets at once.

    >>> weighted_sets(zipf_weights(3), 3, 2, np.random.default_rng(1)).sum(axis=1)
    array([3, 3])
    """
    keys = np.log(weights) + chance.gumbel(size=(count, len(weights)))
    return np.argsort(-keys, axis=1)[:, :set_size]


def _folded_normal(domain_size: int, count: int, chance: np.random.Generator) -> Indexes:
    """Fold a bell of deviation n/4 onto the domain; what falls beyond its end is drawn again."""
    distances = np.abs(chance.normal(0, domain_size / 4, count))
    while (beyond := np.flatnonzero(distances >= domain_size)).size:
        distances[beyond] = np.abs(chance.normal(0, domain_size / 4, beyond.size))
    return distances.astype(np.int64)
