"""Where are the settings of an experiment measured? One after the other here, or wherever somebody spreads them.

An experiment sweeps over settings that know nothing of each other: a length, a share, a load. It says what it measures
of one, and asks for all of them; what it makes of the rows it does itself. So the same experiment runs in a loop, or as
one Spark job with a task for each setting, and gets the same rows. Counts are the same on any machine; a time is only
worth something where nothing else runs, and those who spread say whether they want it.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tamis_lab.experiments.statements import CAVEATS, statements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tamis_lab.experiments.base import Scale, Tell

Setting = TypeVar("Setting")
Measured = TypeVar("Measured")
Spread: TypeAlias = "Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]"
"""Calls a function for each of some settings, wherever, and returns what it returned, in their order."""

_SPREAD: ContextVar[Spread | None] = ContextVar("spread", default=None)
_TIMED = (CAVEATS["times"], CAVEATS["mixed"])


def swept(
    measure: Callable[[Setting, Scale, int, Tell], Measured],
    settings: Iterable[Setting],
    scale: Scale,
    seed: int,
    tell: Tell,
) -> list[Measured]:
    """Return what is measured of each setting, in order; `measure` is a function of a module, so that it can travel.

    >>> swept(lambda setting, scale, seed, tell: setting * seed, [1, 2, 3], None, 10, print)
    [10, 20, 30]
    """
    wanted = list(settings)
    spread = _SPREAD.get()
    if spread is None:
        return [measure(setting, scale, seed, tell) for setting in wanted]
    tell(f"{len(wanted)} settings elsewhere")
    measured: list[Measured] = spread(partial(_elsewhere, measure, scale, seed), wanted)
    return measured


def _elsewhere(measure: Callable[..., Measured], scale: Scale, seed: int, setting: Any) -> Measured:
    return measure(setting, scale, seed, _untold)


def _untold(doing: str) -> None:
    """Tell nobody: who would listen is far away."""


@contextmanager
def spreading(spread: Spread) -> Iterator[None]:
    """Let all experiments in this block measure their settings where `spread` calls functions."""
    token = _SPREAD.set(spread)
    try:
        yield
    finally:
        _SPREAD.reset(token)


def is_timed(lab: str, experiment: str) -> bool:
    """Does an experiment measure times?

    >>> is_timed("filtering", "overlap"), is_timed("filtering", "normal forms")
    (True, False)
    """
    return any(statement.caveat in _TIMED for statement in statements(lab).get(experiment, {}).values())
