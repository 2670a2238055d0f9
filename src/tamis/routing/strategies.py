"""Which strategies are there?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.routing.base import Strategy
from tamis.routing.covering import Covering
from tamis.routing.errors import UnknownStrategyError
from tamis.routing.flooding import Flooding
from tamis.routing.identity import Identity
from tamis.routing.merging import ImperfectMerging, Merging
from tamis.routing.simple import Simple

if TYPE_CHECKING:
    from tamis.language.schema import Schema

STRATEGIES: dict[str, type[Strategy]] = {
    each.name: each for each in (Flooding, Simple, Identity, Covering, Merging, ImperfectMerging)
}
"""By name, those that tell the least first."""


def strategy_of(given: str | Strategy, schema: Schema | None = None) -> Strategy:
    """Return a strategy by its name, or as it is.

    >>> strategy_of("covering").name
    'covering'
    >>> strategy_of("magic")
    Traceback (most recent call last):
        ...
    tamis.routing.errors.UnknownStrategyError: there is no strategy 'magic'; there are: flooding, simple, ...
    """
    if isinstance(given, Strategy):
        return given
    if given not in STRATEGIES:
        raise UnknownStrategyError(given, tuple(STRATEGIES))
    return STRATEGIES[given](schema)
