"""Do two results agree?

Each function takes what was published as numbers or words and what we measured as numbers, and returns a claim. The
noise of a shared machine is a few percent, so a difference below `NOISE` is none; a published ratio and ours agree if
they lie within a factor of `ABOUT` of one another, and neither difference is more than `EFFECT` times the other: a
saving of 7 % is not a saving of 33 %. Up to three times as far away, they agree in direction; what lies still farther
away differs, even if both are less than one.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Claim, Judgement

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOISE = 1.05
ABOUT = 1.5
EFFECT = 2
LINEAR = 0.2
"""By so much the power with which something grows may miss 1."""
ROUGHLY = 3
"""So many times as far away as what agrees, it is still the same direction."""


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
    <Judgement.AGREES: 'agrees'>
    >>> by_ratio("A takes less time than B", published=0.73, measured=1.4, where="5.7").verdict
    <Judgement.TURNED: 'turned around'>
    >>> by_ratio("A takes less time than B", published=0.73, measured=0.03, where="5.7").verdict
    <Judgement.DIFFERS: 'differs'>
    """
    verdict = _verdict(published, measured, about)
    ours = f"{rounded(measured)} {unit}" + (f", {at}" if at else "")
    return Claim(
        statement,
        f"{rounded(published)} {unit}",
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"a factor of {about:g}",
        figures=(published, measured),
    )


def _verdict(published: float, measured: float, about: float) -> Judgement:
    expected, actual = log(published), log(measured)
    if _is_within(expected, NOISE):  # published as equal
        return Judgement.AGREES if _is_within(actual, about) else Judgement.DIFFERS
    if _is_within(actual, NOISE):
        return Judgement.AGREES if _is_within(actual - expected, NOISE) else Judgement.SAME
    if (expected > 0) is not (actual > 0):
        return Judgement.TURNED
    verdict = _distance(actual - expected, about)
    is_like = 1 / EFFECT <= actual / expected <= EFFECT
    return Judgement.DIRECTION if verdict is Judgement.AGREES and not is_like else verdict


def _distance(difference: float, about: float) -> Judgement:
    """Judge two ratios of the same direction by how far the one lies from the other."""
    if _is_within(difference, about):
        return Judgement.AGREES
    return Judgement.DIRECTION if _is_within(difference, about**ROUGHLY) else Judgement.DIFFERS


def _is_within(difference: float, factor: float) -> bool:
    """Do two ratios, whose logarithms differ by so much, lie within a factor? A rounded bit more or less is nothing."""
    return abs(difference) <= log(factor) + 1e-9


def by_added(
    statement: str,
    published: float,
    measured: float,
    *,
    where: str,
    at: str = "",
    remark: str = "",
    about: float = ABOUT,
) -> Claim:
    """Compare by how much something grows with a published growth: what is added counts, not what was there before.

    >>> claim = by_added("adds messages", published=0.10, measured=0.30, where="4")
    >>> claim.ours, claim.verdict
    ('+30%', <Judgement.DIRECTION: 'agrees in direction'>)
    """
    if abs(measured) < NOISE - 1:
        verdict = Judgement.AGREES if abs(measured - published) < NOISE - 1 else Judgement.SAME
    elif (measured > 0) is not (published > 0):
        verdict = Judgement.TURNED
    else:
        verdict = _distance(log(measured / published), about)
    ours = f"{measured:+.0%}" + (f", {at}" if at else "")
    return Claim(
        statement,
        f"{published:+.0%}",
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"what is added within a factor of {about:g}",
        figures=(1 + published, 1 + measured),
    )


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
    <Judgement.AGREES: 'agrees'>
    """
    if _is_within(log(measured), NOISE):
        verdict = Judgement.SAME
    else:
        verdict = Judgement.AGREES if (measured > 1) is is_more else Judgement.TURNED
    ours = f"{rounded(measured)} {unit}" + (f", {at}" if at else "")
    return Claim(
        statement,
        published,
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"the direction, by at least {NOISE - 1:.0%}",
    )


def by_equality(
    statement: str, published: str, values: Mapping[str, float], *, where: str, within: float = ABOUT, remark: str = ""
) -> Claim:
    """Check that some values are about the same, as published.

    >>> by_equality("all alike", "alike", {"a": 10.0, "b": 11.0}, where="5").ours
    'from 10 (a) to 11 (b)'
    """
    least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    verdict = Judgement.AGREES if values[most] <= within * values[least] else Judgement.DIFFERS
    ours = f"from {rounded(values[least])} ({least}) to {rounded(values[most])} ({most})"
    return Claim(
        statement,
        published,
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"the greatest within a factor of {within:g} of the least",
    )


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
    """Compare a figure that is not a ratio, a place on an axis or a share, with a published one.

    Within so much it agrees, and within three times that in direction.

    >>> by_value("the load bends", 0.75, 0.77, within=0.05, where="8.3").verdict
    <Judgement.AGREES: 'agrees'>
    >>> by_value("the load bends", 0.75, 0.2, within=0.05, where="8.3").verdict
    <Judgement.DIFFERS: 'differs'>
    """
    difference = abs(measured - published)
    if difference <= within + 1e-9:
        verdict = Judgement.AGREES
    else:
        verdict = Judgement.DIRECTION if difference <= ROUGHLY * within + 1e-9 else Judgement.DIFFERS
    ours = f"{rounded(measured)} {unit}".strip() + (f", {at}" if at else "")
    return Claim(
        statement,
        f"{rounded(published)} {unit}".strip(),
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"{rounded(within)} {unit} more or less".replace("  ", " "),
        figures=(published, measured),
    )


def by_limit(
    statement: str, published: float, measured: float, *, where: str, unit: str = "", at: str = "", remark: str = ""
) -> Claim:
    """Check that a figure stays below a published one.

    >>> claim = by_limit("costs little", 1, 0.2, unit="ms", where="4.5")
    >>> claim.published, claim.ours, claim.verdict
    ('less than 1 ms', '0.20 ms', <Judgement.AGREES: 'agrees'>)
    """
    verdict = Judgement.AGREES if measured < published else Judgement.TURNED
    ours = f"{rounded(measured)} {unit}".strip() + (f", {at}" if at else "")
    limit = f"less than {rounded(published)} {unit}".strip()
    return Claim(
        statement,
        limit,
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance="below the limit",
    )


def by_order(
    statement: str, names: Sequence[str], values: Mapping[str, float], *, where: str, remark: str = ""
) -> Claim:
    """Check an order: `names` from the greatest value to the least. Who leads by less than noise does not lead.

    >>> by_order("speed", ["a", "b", "c"], {"a": 9.0, "b": 1.0, "c": 4.0}, where="5").verdict
    <Judgement.DIRECTION: 'agrees in direction'>
    """
    pairs = [(one, two) for index, one in enumerate(names) for two in names[index + 1 :]]
    kept = sum(values[one] > NOISE * values[two] for one, two in pairs)
    if kept == len(pairs):
        verdict = Judgement.AGREES
    elif not kept and not any(values[two] > NOISE * values[one] for one, two in pairs):
        verdict = Judgement.SAME
    else:
        verdict = Judgement.DIRECTION if 2 * kept > len(pairs) else Judgement.TURNED
    ranking = sorted(names, key=lambda name: -values[name])
    ours = " > ".join(f"{name} {rounded(values[name])}" for name in ranking)
    return Claim(
        statement,
        " > ".join(names),
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"each ahead of the next by {NOISE - 1:.0%}",
    )


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
    <Judgement.AGREES: 'agrees'>
    """
    overall = y[-1] / y[0]
    against = [
        (before, after)
        for before, after in pairwise(zip(x, y, strict=True))
        if not _is_within(log(after[1] / before[1]), NOISE) and (after[1] > before[1]) is not is_rising
    ]
    ours = f"{of} {rounded(y[0])} at {rounded(x[0])}, {rounded(y[-1])} at {rounded(x[-1])}".strip()
    if _is_within(log(overall), NOISE):
        verdict = Judgement.SAME
    elif (overall > 1) is not is_rising:
        verdict = Judgement.TURNED
    else:
        verdict = Judgement.DIRECTION if against else Judgement.AGREES
        parts = [
            f"{rounded(one[1])} at {rounded(one[0])} to {rounded(two[1])} at {rounded(two[0])}" for one, two in against
        ]
        ours += f"; but from {', from '.join(parts)}" if parts else ""
    return Claim(
        statement,
        published,
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"the direction, everywhere but for {NOISE - 1:.0%}",
    )


def by_line(
    statement: str,
    published: str,
    x: Sequence[float],
    y: Sequence[float],
    *,
    where: str,
    remark: str = "",
    within: float = LINEAR,
) -> Claim:
    """Check that something grows in proportion: the power with which it grows is 1, give or take `within`.

    >>> by_line("grows linearly", "linear", [1, 2, 4], [3.0, 6.1, 11.8], where="8.5").ours
    '3.00 at 1, 12 at 4: as the power 0.99'
    >>> by_line("grows linearly", "linear", [1, 2, 4], [3.0, 4.2, 6.0], where="8.5").verdict
    <Judgement.DIRECTION: 'agrees in direction'>
    """
    exponent = power(x, y)
    if _is_within(log(y[-1] / y[0]), NOISE):
        verdict = Judgement.SAME
    elif exponent < 0:
        verdict = Judgement.TURNED
    elif abs(exponent - 1) <= within + 1e-9:
        verdict = Judgement.AGREES
    else:
        verdict = Judgement.DIRECTION if abs(exponent - 1) <= ROUGHLY * within + 1e-9 else Judgement.DIFFERS
    ours = f"{rounded(y[0])} at {rounded(x[0])}, {rounded(y[-1])} at {rounded(x[-1])}: as the power {exponent:.2f}"
    return Claim(
        statement,
        published,
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"the power within {within:g} of 1",
    )


def by_share(
    statement: str,
    published: str,
    is_true: Sequence[bool],
    *,
    what: str,
    where: str,
    details: str = "",
    remark: str = "",
) -> Claim:
    """Check a statement about many settings: it agrees if it holds in all of them, and in direction if in most.

    What was looked for in no setting at all is not measured. `details` says what was found in each.

    >>> by_share("smaller", "always", [True, True, False], what="settings", where="5").ours
    'in 2 of 3 settings'
    >>> by_share("smaller", "always", [], what="settings", where="5").verdict
    <Judgement.UNMEASURED: 'not measured'>
    """
    kept = sum(is_true)
    if not is_true:
        verdict, remark = Judgement.UNMEASURED, f"There are no {what} in this run in which it could be seen."
    elif kept == len(is_true):
        verdict = Judgement.AGREES
    elif 2 * kept == len(is_true):
        verdict = Judgement.DIFFERS
    else:
        verdict = Judgement.DIRECTION if 2 * kept > len(is_true) else Judgement.TURNED
    ours = f"in {kept} of {len(is_true)} {what}" + (f": {details}" if details else "")
    return Claim(
        statement,
        published,
        ours,
        verdict,
        where,
        _if_not_agreed(verdict, remark),
        tolerance=f"in all {what}",
    )


def given(is_so: bool, claim: Claim, otherwise: str) -> Claim:
    """Return a claim that rests on something else; if that is not so, it cannot agree, and `otherwise` says why.

    >>> more = by_direction("B leads by more than C does", "more", 1.4, is_more=True, where="8")
    >>> given(False, more, "B does not lead.").verdict
    <Judgement.PREMISE: 'premise does not hold'>
    """
    return claim if is_so else replace(claim, verdict=Judgement.PREMISE, remark=otherwise)


def power(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the power of x with which y grows: the slope of the line through their logarithms, by least squares.

    >>> round(power([1, 2, 4], [3, 12, 48]), 9)
    2.0
    """
    across, up = [log(each) for each in x], [log(each) for each in y]
    middle, height = sum(across) / len(across), sum(up) / len(up)
    spread = sum((each - middle) ** 2 for each in across)
    return sum((one - middle) * (two - height) for one, two in zip(across, up, strict=True)) / spread


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean of ratios.

    >>> geometric_mean([0.5, 2.0])
    1.0
    """
    return exp(sum(map(log, values)) / len(values))


def rounded(number: float) -> str:
    """Write a number with as many digits as it deserves.

    >>> rounded(0.7312), rounded(1.0), rounded(27.1), rounded(8), rounded(123456.0), rounded(0.00021)
    ('0.73', '1.00', '27', '8', '123,456', '0.00021')
    """
    if isinstance(number, int) or number == 0 or abs(number) >= 10:
        return f"{number:,.0f}"
    return f"{number:.2g}" if abs(number) < 0.1 else f"{number:.2f}"


def _if_not_agreed(verdict: Judgement, remark: str) -> str:
    return "" if verdict is Judgement.AGREES else remark
