"""Do two results agree?

Each function takes what was published as numbers or words and what we measured as numbers, and returns a claim. The
noise of a shared machine is a few percent, so a difference below `NOISE` is none; a published ratio and ours agree if
they lie within a factor of `ABOUT` of one another.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING

from tamis.lab.base import Claim, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOISE = 1.05
ABOUT = 1.5


def by_ratio(
    statement: str,
    published: float,
    measured: float,
    *,
    where: str,
    unit: str = "times",
    at: str = "",
    remark: str = "",
    about: float = ABOUT,
) -> Claim:
    """Compare a ratio with a published one.

    >>> by_ratio("A takes less time than B", published=0.73, measured=0.80, where="5.7").verdict
    <Verdict.AGREES: 'agrees'>
    >>> by_ratio("A takes less time than B", published=0.73, measured=1.4, where="5.7").verdict
    <Verdict.TURNED: 'turned around'>
    """
    verdict = _verdict(published, measured, about)
    ours = f"{told(measured)} {unit}" + (f", {at}" if at else "")
    return Claim(statement, f"{told(published)} {unit}", ours, verdict, where, _if_not_agreed(verdict, remark))


def _verdict(published: float, measured: float, about: float) -> Verdict:
    expected, found = log(published), log(measured)
    if _is_within(expected, NOISE):  # published as equal
        return Verdict.AGREES if _is_within(found, about) else Verdict.DIFFERS
    if _is_within(found, NOISE):
        return Verdict.AGREES if _is_within(found - expected, NOISE) else Verdict.SAME
    if (expected > 0) is not (found > 0):
        return Verdict.TURNED
    return Verdict.AGREES if _is_within(found - expected, about) else Verdict.DIRECTION


def _is_within(difference: float, factor: float) -> bool:
    """Do two ratios, whose logarithms differ by so much, lie within a factor? A rounded bit more or less is nothing."""
    return abs(difference) <= log(factor) + 1e-9


def by_direction(
    statement: str,
    published: str,
    measured: float,
    *,
    is_more: bool,
    where: str,
    unit: str = "times",
    at: str = "",
    remark: str = "",
) -> Claim:
    """Compare a ratio with a direction in words: `is_more` says that it should be above 1.

    >>> by_direction("A is faster", "faster", 1.8, is_more=True, where="5").verdict
    <Verdict.AGREES: 'agrees'>
    """
    if _is_within(log(measured), NOISE):
        verdict = Verdict.SAME
    else:
        verdict = Verdict.AGREES if (measured > 1) is is_more else Verdict.TURNED
    ours = f"{told(measured)} {unit}" + (f", {at}" if at else "")
    return Claim(statement, published, ours, verdict, where, _if_not_agreed(verdict, remark))


def by_equality(
    statement: str, published: str, values: Mapping[str, float], *, where: str, within: float = ABOUT, remark: str = ""
) -> Claim:
    """Check that some values are about the same, as published.

    >>> by_equality("all alike", "alike", {"a": 10.0, "b": 11.0}, where="5").ours
    'from 10 (a) to 11 (b)'
    """
    least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    verdict = Verdict.AGREES if values[most] <= within * values[least] else Verdict.DIFFERS
    ours = f"from {told(values[least])} ({least}) to {told(values[most])} ({most})"
    return Claim(statement, published, ours, verdict, where, _if_not_agreed(verdict, remark))


def by_value(
    statement: str,
    published: float,
    measured: float,
    *,
    within: float,
    where: str,
    unit: str = "",
    at: str = "",
    remark: str = "",
) -> Claim:
    """Compare a figure that is no ratio, a place on an axis or a share, with a published one.

    Within so much it agrees, and within three times that in direction.

    >>> by_value("the load bends", 0.75, 0.77, within=0.05, where="8.3").verdict
    <Verdict.AGREES: 'agrees'>
    >>> by_value("the load bends", 0.75, 0.2, within=0.05, where="8.3").verdict
    <Verdict.DIFFERS: 'differs'>
    """
    difference = abs(measured - published)
    if difference <= within + 1e-9:
        verdict = Verdict.AGREES
    else:
        verdict = Verdict.DIRECTION if difference <= 3 * within + 1e-9 else Verdict.DIFFERS
    ours = f"{told(measured)} {unit}".strip() + (f", {at}" if at else "")
    return Claim(statement, f"{told(published)} {unit}".strip(), ours, verdict, where, _if_not_agreed(verdict, remark))


def by_order(
    statement: str, names: Sequence[str], values: Mapping[str, float], *, where: str, remark: str = ""
) -> Claim:
    """Check an order: `names` from the greatest value to the least.

    >>> by_order("speed", ["a", "b", "c"], {"a": 9.0, "b": 1.0, "c": 4.0}, where="5").verdict
    <Verdict.DIRECTION: 'agrees in direction'>
    """
    pairs = [(one, two) for index, one in enumerate(names) for two in names[index + 1 :]]
    kept = sum(values[one] > values[two] for one, two in pairs)
    if kept == len(pairs):
        verdict = Verdict.AGREES
    else:
        verdict = Verdict.DIRECTION if 2 * kept > len(pairs) else Verdict.TURNED
    found = sorted(names, key=lambda name: -values[name])
    ours = " > ".join(f"{name} {told(values[name])}" for name in found)
    return Claim(statement, " > ".join(names), ours, verdict, where, _if_not_agreed(verdict, remark))


def by_trend(
    statement: str,
    published: str,
    x: Sequence[float],
    y: Sequence[float],
    *,
    is_rising: bool,
    where: str,
    of: str = "",
    remark: str = "",
) -> Claim:
    """Check that something rises, or falls, from the first to the last and mostly in between.

    >>> by_trend("falls with N", "falls", [1, 2, 3], [9.0, 5.0, 2.0], is_rising=False, where="5").verdict
    <Verdict.AGREES: 'agrees'>
    """
    steps = [later / earlier for earlier, later in pairwise(y)]
    overall = y[-1] / y[0]
    if _is_within(log(overall), NOISE):
        verdict = Verdict.SAME
    elif (overall > 1) is not is_rising:
        verdict = Verdict.TURNED
    else:
        against = [step for step in steps if not _is_within(log(step), NOISE) and (step > 1) is not is_rising]
        verdict = Verdict.DIRECTION if against else Verdict.AGREES
    ours = f"{of} {told(y[0])} at {told(x[0])}, {told(y[-1])} at {told(x[-1])}".strip()
    return Claim(statement, published, ours, verdict, where, _if_not_agreed(verdict, remark))


def by_share(
    statement: str, published: str, is_true: Sequence[bool], *, what: str, where: str, remark: str = ""
) -> Claim:
    """Check a statement about many settings: it agrees if it holds in all of them, and in direction if in most.

    >>> by_share("smaller", "always", [True, True, False], what="settings", where="5").ours
    'in 2 of 3 settings'
    """
    kept = sum(is_true)
    if kept == len(is_true):
        verdict = Verdict.AGREES
    else:
        verdict = Verdict.DIRECTION if 2 * kept > len(is_true) else Verdict.TURNED
    ours = f"in {kept} of {len(is_true)} {what}"
    return Claim(statement, published, ours, verdict, where, _if_not_agreed(verdict, remark))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean of ratios.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return exp(sum(map(log, values)) / len(values))


def told(number: float) -> str:
    """Write a number with as many digits as it deserves.

    >>> told(0.7312), told(1.0), told(27.1), told(8), told(123456.0), told(0.00021)
    ('0.73', '1.00', '27', '8', '123,456', '0.00021')
    """
    if isinstance(number, int) or number == 0 or abs(number) >= 10:
        return f"{number:,.0f}"
    return f"{number:.2g}" if abs(number) < 0.1 else f"{number:.2f}"


def _if_not_agreed(verdict: Verdict, remark: str) -> str:
    return "" if verdict is Verdict.AGREES else remark
