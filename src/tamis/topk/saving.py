"""How does a ranking move to another place? As numbers in tuples, which can travel, and from which it is made again.

A ranking that goes on somewhere else must answer as it would have here, so all that its later answers depend on is
written: what it holds, which of that has been among the best, and each algorithm's own numbers.

Source: ours; the thesis leaves the hand-over of rankings open (Pripužić 2010, chapter 7, docs/bibliography.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.topk.base import Candidate
from tamis.topk.errors import SettingError
from tamis.topk.naive import NaiveRankings
from tamis.topk.probabilistic import Probabilistic
from tamis.topk.recent_buffer import Filtered
from tamis.topk.relaxed import Relaxed
from tamis.topk.strict import Strict

if TYPE_CHECKING:
    from tamis.topk.base import Ranking
    from tamis.topk.owner import Owner


def state_of(owner: Owner) -> tuple[Any, ...]:
    """Return what an owner's ranking holds, for `resume`."""
    return saved(owner._ranking)


def resume(owner: Owner, state: Any) -> None:
    """Let an owner that has taken nothing yet go on from what another one's ranking held."""
    restore(owner._ranking, state)


def saved(ranking: Ranking) -> tuple[Any, ...]:
    """Return what a ranking holds, as numbers and tuples of numbers.

    >>> ranking = Strict(1)
    >>> ranking.insert(Candidate(5.0, -7, 9.0))
    [7]
    >>> saved(ranking)
    (((5.0, 7, 9.0),), (7,), ())
    """
    if isinstance(ranking, Filtered):
        return saved(ranking.ranking), saved(ranking.filter), tuple(sorted(ranking._tried))
    items = tuple((item.key, item.number, item.leaves) for item in ranking.items)
    return items, tuple(sorted(ranking.entered)), _own(ranking)


def _own(ranking: Ranking) -> tuple[Any, ...]:
    match ranking:
        case Probabilistic():
            return ranking._n, ranking.threshold
        case Relaxed():
            return (ranking._limit,)
        case Strict() | NaiveRankings():
            return ()
    raise SettingError(f"a ranking of the kind {type(ranking).__name__} cannot move")


def restore(ranking: Ranking, state: Any) -> None:
    """Let a new ranking, of the same subscription and the same settings, hold what another one held."""
    try:
        if isinstance(ranking, Filtered):
            inner, filter_, tried = state
            restore(ranking.ranking, inner)
            restore(ranking.filter, filter_)
            ranking._tried = set(map(_number, tried))
            ranking._passed_on([])
            return
        items, entered, own = state
        # By the clock of a filter events leave as whole numbers, which may be too large for a double.
        candidates = sorted(Candidate(float(key), -_number(number), leaves + 0) for key, number, leaves in items)
        if isinstance(ranking, Strict):
            vars(ranking).update(vars(Strict.resumed(ranking.k, candidates, map(_number, entered))))
            return
        ranking.items, ranking.entered = candidates, set(map(_number, entered))
        if isinstance(ranking, Probabilistic):
            n, threshold = own
            ranking.expect(_number(n))
            ranking.threshold = float(threshold)
        elif isinstance(ranking, Relaxed):
            (limit,) = own
            ranking._limit = _number(limit)
        ranking._schedule()
    except (TypeError, ValueError) as error:
        raise SettingError(f"this is not what a {type(ranking).__name__} holds: {error}") from None


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r:.40} is not a whole number")
    return value
