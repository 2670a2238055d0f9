"""What does pruning do for a system that knows nothing but conjunctions?

Every subscription is a conjunction for each way to fulfil it there, four on average. These are pruned by the same
measure, and filtered by counting.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING
from tamis_lab.experiments.routing.filter_times import network_s, spent_remark
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import FINE, Pruning
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.routing.traffic import auctions
from tamis_lab.experiments.routing.traffic import conjunctive as in_conjunctions
from tamis_lab.experiments.statements import Judge
from tamis_lab.matching.formulas import boolean_bytes, characteristics, counting_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.expressions import Expression

judged = Judge("routing", "conjunctive")

MEASURE = "occurrence"
PLACES = tuple(number / 20 for number in range(2, 15))
"""Shares of the table at which two loads are compared; a conjunctive table loses no more."""
COUNTERS = (
    "The thesis explains its result by caches that did not hold the counters of all conjunctions. The {:,} of them "
    "here have a counter of one byte each, which any cache of today holds. That the evaluation of candidates makes the "
    "rest, which only Boolean filtering has, is a guess."
)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Prune both by occurrence, and look at load, bytes and time on the way."""
    sizes, line = sizes_of(scale), LabOverlay("line", BROKERS)
    traffic = auctions(sizes, seed)
    prunings = {BOOLEAN: Pruning(traffic, MEASURE), COUNTING: Pruning(in_conjunctions(traffic), MEASURE)}
    rows: list[Row] = []
    for name, pruning in prunings.items():
        for share in sizes.shares:
            tell(f"{name}, {share:.0%} of the prunings")
            rows.append(
                {
                    "filtering": name,
                    "share of prunings": share,
                    "table gone": pruning.reduction(share),
                    "load": pruning.loads(line, [share])[0],
                    "bytes": entry_bytes(name, pruning.versions(share), traffic.subscription_count),
                    "ms": 1e3 * network_s(name, pruning, share, line, scale),
                }
            )
    setup = (
        f"Book auctions, {len(traffic.filters):,} subscriptions, or {len(prunings[COUNTING].traffic.filters):,} "
        f"conjunctions, on a line of {BROKERS} brokers, pruned by {MEASURE}. Bytes are those of the memory formulas, "
        "for each subscription of somebody else; time is what all brokers spend on an event."
    )
    return Result(setup, _claims(rows, prunings, line), _plots(rows, prunings, line), tuple(rows))


def entry_bytes(name: str, filters: Sequence[Expression], subscription_count: int) -> float:
    """Return what filters take, by the memory formulas, for each of the subscriptions that they are or were made of."""
    traits = characteristics(filters)
    return {BOOLEAN: boolean_bytes, COUNTING: counting_bytes}[name](traits) * len(filters) / subscription_count


def _claims(rows: list[Row], prunings: dict[str, Pruning], line: LabOverlay) -> tuple[Claim, ...]:
    boolean, counting = ([row for row in rows if row["filtering"] == name] for name in (BOOLEAN, COUNTING))
    best = {name: min(row["ms"] for row in rows if row["filtering"] == name) for name in prunings}
    bend = prunings[COUNTING].reduction(prunings[COUNTING].rise(line))
    loads = {name: pruning.loads_over(line, PLACES) for name, pruning in prunings.items()}
    at = {name: each[PLACES.index(0.6)] for name, each in loads.items()}
    counters = COUNTERS.format(len(prunings[COUNTING].traffic.filters))
    fastest = min(counting, key=lambda row: row["ms"])
    gaps = [two["bytes"] - one["bytes"] for one, two in zip(boolean, counting, strict=True)]
    return (
        judged("boolean-gone", boolean[-1]["table gone"]),
        judged("conjunctive-gone", counting[-1]["table gone"]),
        judged("load-rises", bend, remark=prunings[COUNTING].rise_remark(line, 0.60)),
        judged(
            "load-rises-earlier",
            [two > one for one, two in zip(loads[BOOLEAN], loads[COUNTING], strict=True)],
            details=f"{at[COUNTING]:.3f} and {at[BOOLEAN]:.3f} with 0.60 gone",
        ),
        judged("time-unpruned", boolean[0]["ms"] / counting[0]["ms"], remark=counters),
        judged(
            "time-at-best",
            best[BOOLEAN] / best[COUNTING],
            remark=f"Without pruning it is {boolean[0]['ms'] / counting[0]['ms']:.2f} times already, and "
            f"pruning leaves {best[BOOLEAN] / boolean[0]['ms']:.2f} of the time of Boolean filtering and "
            f"{best[COUNTING] / counting[0]['ms']:.2f} of that of counting.",
        ),
        judged(
            "best-conjunctive-time",
            best[COUNTING] / counting[0]["ms"],
            remark=spent_remark(BROKERS, (counting[0]["ms"], counting[0]["load"]), (fastest["ms"], fastest["load"])),
        ),
        judged("boolean-entries-smaller", [gap > 0 for gap in gaps]),
        judged(
            "difference-shrinks",
            [row["share of prunings"] for row in boolean],
            gaps,
            remark="A pruning takes one predicate of a conjunction, but a branch of a Boolean tree may "
            f"have several. {_widest_remark(boolean, counting)}",
        ),
    )


def _widest_remark(boolean: list[Row], counting: list[Row]) -> str:
    """Say where Boolean entries lose more bytes than conjunctive ones do, if anywhere."""
    steps = [
        (
            one["share of prunings"],
            two["share of prunings"],
            one["bytes"] - two["bytes"],
            three["bytes"] - four["bytes"],
        )
        for (one, two), (three, four) in zip(pairwise(boolean), pairwise(counting), strict=True)
    ]
    begin, end, lost, lost_there = max(steps, key=lambda step: step[2] - step[3])
    return (
        f"From {begin:.0%} to {end:.0%} of the prunings a Boolean subscription loses {lost:.1f} bytes, and one in "
        f"conjunctions {lost_there:.1f}."
    )


def _plots(rows: list[Row], prunings: dict[str, Pruning], line: LabOverlay) -> tuple[Plot, ...]:
    def lines(x: str, what: str) -> tuple[Curve, ...]:
        mine = {name: [row for row in rows if row["filtering"] == name] for name in prunings}
        return tuple(
            Curve(name, tuple(row[x] for row in some), tuple(row[what] for row in some)) for name, some in mine.items()
        )

    loads = [
        Curve(name, tuple(pruning.reduction(share) for share in FINE), tuple(pruning.loads(line)))
        for name, pruning in prunings.items()
    ]
    gone = "share of predicates gone"
    return (
        Plot("Network load", gone, "share of other brokers", tuple(loads)),
        Plot("Time for an event, all brokers", gone, "ms", lines("table gone", "ms")),
        Plot("Bytes of an entry", "share of all prunings", "bytes a subscription", lines("share of prunings", "bytes")),
    )


EXPERIMENT = Experiment(
    "conjunctive",
    "What does pruning do for a system that knows nothing but conjunctions?",
    "Bittner 2008, section 8.3.2",
    run,
)
