"""How often is a whole expression true, if it is known how often its predicates are? Bounds on selectivity.

Nobody knows how predicates depend on one another, so there are three answers. Whatever the dependence, the share of
matching events lies between `least` and `most` (the bounds of Fréchet); `average` is the share if predicates were
independent. One walk over the tree, no normal form.

    AND   least  1 - the sum of what each lacks    average  the product              most  the smallest
    OR    least  the largest                       average  1 - the product of 1-x   most  the sum

Source: Bittner 2008, section 6.4.2, algorithms 2 to 4; the bounds are those of Fréchet 1935 (docs/bibliography.md).
Departs: `at_least` has bounds and an average of its own, of which those of AND and OR are the extremes. Constants
  are leaves that hold always, or never. A predicate may be unknown, so a negated one is asked for by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from tamis.language.expressions import And, AtLeast, Expression, Literal, Or
from tamis.language.rewrites.monotone import fold_monotone
from tamis.language.rewrites.negation import nnf

if TYPE_CHECKING:
    from collections.abc import Sequence

Share: TypeAlias = Callable[[Expression], float]
"""Says of a predicate, or of a negated one, which share of the events makes it true."""
_TAKEN_IN_PLAIN_STEPS = 50
"""Of so many parts and less, plain steps take less time than arrays."""


class Estimate(NamedTuple):
    """Between which shares of the events an expression is true, and the share if predicates were independent."""

    least: float
    average: float
    most: float


def estimate(expression: Expression, share: Share) -> Estimate:
    """Estimate how often an expression is true.

    >>> import tamis
    >>> shares = {"price < 20": 0.5, "signed = TRUE": 0.25, "bids = 0": 0.75}
    >>> estimate(tamis.parse("price < 20 AND (signed OR bids = 0)"), lambda predicate: shares[str(predicate)])
    Estimate(least=0.25, average=0.40625, most=0.5)
    """

    def combine(node: Expression, below: list[Estimate]) -> Estimate:
        match node:
            case And():
                return of_all(below)
            case Or():
                return of_any(below)
            case AtLeast(count):
                return of_at_least(count, below)
            case Literal(value):
                return exactly(1.0 if value is True else 0.0)
            case _:
                return exactly(share(node))

    return fold_monotone(nnf(expression), combine)


def exactly(share: float) -> Estimate:
    """Return the estimate of what is known."""
    return Estimate(share, share, share)


def of_all(parts: Sequence[Estimate]) -> Estimate:
    """Estimate a conjunction.

    >>> of_all([exactly(0.5), exactly(0.75)])
    Estimate(least=0.25, average=0.375, most=0.5)
    """
    least, average, most = 1.0, 1.0, 1.0
    for part in parts:
        least += part.least - 1.0
        average *= part.average
        most = min(most, part.most)
    return Estimate(max(0.0, least), average, most)


def of_any(parts: Sequence[Estimate]) -> Estimate:
    """Estimate a disjunction.

    >>> of_any([exactly(0.5), exactly(0.75)])
    Estimate(least=0.75, average=0.875, most=1.0)
    """
    least, average, most = 0.0, 0.0, 0.0
    for part in parts:
        least = max(least, part.least)
        average = average + part.average - average * part.average
        most += part.most
    return Estimate(least, average, min(1.0, most))


def of_at_least(count: int, parts: Sequence[Estimate]) -> Estimate:
    """Estimate that `count` or more of some hold.

    However many of them are set aside, at least so many fewer of the others must hold; how often that can be is the sum
    of their shares by how many are needed. The least share is the same argument about those that do not hold.

    >>> of_at_least(2, [exactly(0.5), exactly(0.5), exactly(0.5)])
    Estimate(least=0.25, average=0.5, most=0.75)
    """
    if count <= 0:
        return exactly(1.0)
    if count > len(parts):
        return exactly(0.0)
    exact = (_numbers_held if len(parts) <= _TAKEN_IN_PLAIN_STEPS else _many_held)([part.average for part in parts])
    average = min(1.0, _total(exact[count:]))
    most = _most_often(count, [part.most for part in parts])
    least = 1.0 - _most_often(len(parts) - count + 1, [1.0 - part.least for part in parts])
    return Estimate(max(0.0, least), average, most)


def _numbers_held(shares: list[float]) -> list[float]:
    """Return how often just so many of some hold, for none, one, two and so on."""
    exact = [1.0]
    for share in shares:
        exact.append(0.0)
        for held in range(len(exact) - 1, 0, -1):
            exact[held] = exact[held] * (1.0 - share) + exact[held - 1] * share
        exact[0] *= 1.0 - share
    return exact


def _many_held(shares: list[float]) -> list[float]:
    """Return the same, to the last bit, of thousands: the steps are as many as the square of the shares."""
    exact = np.zeros(len(shares) + 1)
    exact[0] = 1.0
    for seen, share in enumerate(shares, start=1):
        exact[1 : seen + 1] = exact[1 : seen + 1] * (1.0 - share) + exact[:seen] * share
        exact[0] *= 1.0 - share
    return exact.tolist()


def _most_often(count: int, shares: list[float]) -> float:
    shares = sorted(shares)
    total = _total(shares)
    bound = 1.0
    for aside in range(count):
        bound = min(bound, total / (count - aside))
        total -= shares[len(shares) - 1 - aside]
    return max(0.0, bound)


def _total(shares: list[float]) -> float:
    """Add one after the other: the compiled version of this has to come to the same, and `sum` may be cleverer."""
    total = 0.0
    for share in shares:
        total += share
    return total


def opposite(part: Estimate) -> Estimate:
    """Estimate how often something does not hold.

    >>> opposite(Estimate(0.25, 0.5, 1.0))
    Estimate(least=0.0, average=0.5, most=0.75)
    """
    return Estimate(1.0 - part.most, 1.0 - part.average, 1.0 - part.least)
