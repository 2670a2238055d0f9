"""Which algorithms are there? One table; the conformance suite tests whatever stands in it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tamis.topk.block.algorithm import BlockRankings
from tamis.topk.guard import Guarded
from tamis.topk.naive import NaiveRankings
from tamis.topk.per_subscription import PerSubscription
from tamis.topk.probabilistic import Probabilistic
from tamis.topk.recent_buffer import Filtered, buffer_size
from tamis.topk.relaxed import Relaxed
from tamis.topk.strict import Strict
from tamis.topk.windows import CountWindow

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.schema import Schema
    from tamis.topk.base import Ranking, RankingAlgorithm
    from tamis.topk.ranked import Ranked
    from tamis.topk.settings import TopKSettings


def _probabilistic(ranked: Ranked, settings: TopKSettings) -> Ranking:
    n = ranked.window.events if isinstance(ranked.window, CountWindow) else 1
    if settings.guard:
        return Guarded(ranked.k, n, ranked.window.span, settings.sigma, settings.gamma)
    return Probabilistic(ranked.k, n, settings.sigma)


RANKINGS: dict[str, Callable[[Ranked, TopKSettings], Ranking]] = {
    "naive": lambda ranked, settings: NaiveRankings(ranked.k),
    "strict": lambda ranked, settings: Strict(ranked.k),
    "relaxed": lambda ranked, settings: Relaxed(ranked.k, settings.gamma),
    "probabilistic": _probabilistic,
}
"""The algorithms that keep a ranking for each subscription."""


def ranking_for(algorithm: str, settings: TopKSettings, ranked: Ranked) -> Ranking:
    """Return a new ranking for a subscription, behind a filter if the settings ask for one."""
    ranking = RANKINGS[algorithm](ranked, settings)
    if settings.filter is None:
        return ranking
    size = buffer_size(ranked.window, settings.buffer, settings.buffer_s)
    match settings.filter:
        case "strict":
            filter_: Ranking = Strict(ranked.k)
        case "relaxed":
            filter_ = Relaxed(ranked.k, settings.gamma)
        case _:
            filter_ = Probabilistic(ranked.k, size.events, settings.sigma)
    return Filtered(ranking, filter_, ranked.window, size)


def _per_subscription(name: str, settings: TopKSettings, schema: Schema | None) -> RankingAlgorithm:
    return PerSubscription(partial(ranking_for, name, settings), schema, by_definition=name == "naive")


ALGORITHMS: dict[str, Callable[[TopKSettings, Schema | None], RankingAlgorithm]] = {
    **{name: partial(_per_subscription, name) for name in RANKINGS},
    "block": lambda settings, schema: BlockRankings(schema, index=settings.index),
}
IS_EXACT = {name: name != "probabilistic" for name in ALGORITHMS}
"""Which of them report what the definition reports, on every stream."""
