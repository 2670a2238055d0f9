"""What the labs have in common: a scale smaller than any that people would use, and what every result must have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Bars, Judgement, Picture, Plot, Result, Scale
from tamis_lab.experiments.plots import drawn
from tamis_lab.experiments.statements import statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis_lab.experiments.base import Claim

TINY = Scale(
    name="tiny",
    auction_counts=(60, 120),
    expression_counts=(60, 120),
    lengths=(4, 6),
    setting_count=80,
    memory_count=64,
    brute_counts=(10, 20),
    measured_s=0.002,
    most_events=8,
    passes=1,
)


def quiet(doing: str) -> None:
    """Listen to nobody."""


def assert_told(results: dict[str, Result], without_claims: tuple[str, ...] = ()) -> None:
    """Every experiment has measured something, drawn it, and judged what was published."""
    for key, result in results.items():
        assert result.setup and result.rows and result.plots, key
        assert bool(result.claims) is (key not in without_claims), key
        for claim in result.claims:
            assert isinstance(claim.verdict, Judgement)
            assert claim.statement and claim.published and claim.ours and claim.where
        json.dumps(result.rows, allow_nan=False)
        for plot in _of_each_kind(result.plots):
            assert drawn(plot).startswith("<svg")


def _of_each_kind(plots: Iterable[Plot | Bars | Picture]) -> list[Plot | Bars]:
    """Return one plot for each kind of axes: to draw all of them takes longer than to measure what is drawn."""
    kinds: dict[object, Plot | Bars] = {}
    for plot in plots:
        if isinstance(plot, Plot):
            kinds[plot.is_log_x, plot.is_log_y, bool(plot.x_names)] = plot
        elif isinstance(plot, Bars):
            kinds["bars"] = plot
    return list(kinds.values())


def claim_of(claims: Iterable[Claim], key: str) -> Claim:
    """Return the claim about a statement."""
    (found,) = [claim for claim in claims if claim.key == key]
    return found


def assert_all_judged(lab: str, results: dict[str, Result]) -> None:
    """Every published statement is judged by its experiment, and nothing else is; of several things, each once."""
    published = statements(lab)
    assert published.keys() == {key for key, result in results.items() if result.claims}
    for key, by_key in published.items():
        keys = [claim.key for claim in results[key].claims]
        assert len(set(keys)) == len(keys), key
        assert {each.partition(" (")[0] for each in keys} == by_key.keys(), key


def assert_agreed(result: Result, keys: tuple[str, ...]) -> None:
    """What is counted comes out as published."""
    for key in keys:
        claim = claim_of(result.claims, key)
        assert claim.verdict is Judgement.AGREES, claim
