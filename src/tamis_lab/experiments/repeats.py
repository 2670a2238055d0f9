"""What do several runs of an experiment come to? Medians, with the least and the greatest as error bars.

An experiment runs once for each of some seeds, which draw other subscriptions and events. Of each statement, the claim
of the median run stands for all of them: the run whose figure is in the middle, or, where a statement has no single
figure, one with the verdict that came out most often, in doubt the worse one. Lines become medians point by point.
Rows stay apart, each with its seed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Curve, Judgement, Plot, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis_lab.experiments.base import Bars, Claim, Picture

_WORST_LAST = tuple(Judgement)


def merged(results: Sequence[Result], seeds: Sequence[int]) -> Result:
    """Return what the results of one experiment come to, run with these seeds; one result is returned as it is."""
    if len(results) == 1:
        return results[0]
    first = results[0]
    by_key = [{_name(claim): claim for claim in result.claims} for result in results]
    claims = tuple(
        _claim([claims[_name(claim)] for claims in by_key if _name(claim) in claims]) for claim in first.claims
    )
    plots = tuple(_plot([result.plots[place] for result in results]) for place in range(len(first.plots)))
    rows = tuple({"seed": seed, **row} for seed, result in zip(seeds, results, strict=True) for row in result.rows)
    return Result(first.setup, claims, plots, rows)


def _name(claim: Claim) -> str:
    return f"{claim.key}\0{claim.statement}"


def _claim(claims: Sequence[Claim]) -> Claim:
    """Return the claim that stands for those of all runs.

    >>> from tamis_lab.experiments.verdicts import by_ratio
    >>> claim = _claim([by_ratio("A", 2.0, ours, where="5") for ours in (1.9, 0.5, 2.1)])
    >>> claim.ours, claim.repeats, claim.agreed_of
    ('1.90 times', (0.5, 1.9, 2.1), (2, 3))
    """
    agreed = sum(claim.verdict is Judgement.AGREES for claim in claims)
    figures = [claim.figures[1] for claim in claims if claim.figures is not None]
    if len(figures) == len(claims):
        middle = sorted(claims, key=lambda claim: claim.figures[1] if claim.figures else 0.0)[(len(claims) - 1) // 2]
        return replace(middle, repeats=tuple(sorted(figures)), agreed_of=(agreed, len(claims)))
    counts = Counter(claim.verdict for claim in claims)
    usual = max(counts, key=lambda verdict: (counts[verdict], _WORST_LAST.index(verdict)))
    middle = next(claim for claim in claims if claim.verdict is usual)
    return replace(middle, agreed_of=(agreed, len(claims)))


def _plot(plots: Sequence[Plot | Bars | Picture]) -> Plot | Bars | Picture:
    """Return one plot with error bars; of what is not lines, or has other places in other runs, the first run's."""
    first = plots[0]
    if not isinstance(first, Plot):
        return first
    lines = []
    for place, line in enumerate(first.lines):
        same = [plot.lines[place] for plot in plots if isinstance(plot, Plot) and len(plot.lines) == len(first.lines)]
        is_alike = len(same) == len(plots) and all(each.label == line.label and each.x == line.x for each in same)
        lines.append(_median(same) if is_alike else line)
    return replace(first, lines=tuple(lines))


def _median(lines: Sequence[Curve]) -> Curve:
    """Return the median of lines over the same places.

    >>> line = _median([Curve("a", (1.0, 2.0), y) for y in ((3.0, 5.0), (4.0, 4.0), (9.0, 4.5))])
    >>> line.y, line.low, line.high
    ((4.0, 4.5), (3.0, 4.0), (9.0, 5.0))
    """
    heights = list(zip(*(line.y for line in lines), strict=True))
    return replace(
        lines[0],
        y=tuple(map(median, heights)),
        low=tuple(map(min, heights)),
        high=tuple(map(max, heights)),
    )
