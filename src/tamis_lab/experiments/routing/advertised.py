"""What do prunings of advertisements save and cost?

The table of advertisements shrinks, and it takes less time to compare with it; but a pruned advertisement overlaps more
subscriptions, and these go where nothing comes from that they want. What goes first is what keeps the fewest
subscriptions out. Subscriptions are registered here, and advertisements ask. The published shares are means over five
distributions of operands, and so are ours before and after all prunings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tamis.language import parse
from tamis.language.rewrites.disjunctive import disjuncts
from tamis.pruning.characteristics import Characteristics
from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.routing.overlap import Advertised, agreed, asked_s
from tamis_lab.experiments.routing.prunings import Pruning
from tamis_lab.experiments.routing.sizes import RoutingSizes, sizes_of
from tamis_lab.experiments.routing.traffic import Traffic, auctions
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.expressions import Expression
    from tamis.workloads import Auction

judged = Judge("routing", "advertised")

FEWER = 5
"""With each distribution there is only one subscription for so many: shares hardly depend on their number."""
ASKED = 4
"""So many times as many are asked as elsewhere: there are eight kinds of them, and they differ."""
OVERHEAD = (
    "An advertisement has {:.2f} alternatives before, and {:.2f} then; each of them is asked with. That most of the "
    "time goes by their number is a guess."
)


@dataclass(frozen=True, slots=True)
class AskingCosts:
    """What asking with some advertisements came to."""

    overlapping: float
    """The share of subscriptions that an advertisement overlaps (ovl)."""
    candidates: float
    """How many subscriptions had to be looked at, for each advertisement."""
    alternatives: float
    """How many conjunctions an advertisement is."""
    all_ms: float
    any_ms: float


def asked(known: Advertised, queries: Sequence[Expression], passes: int) -> AskingCosts:
    """Ask which of some subscriptions some advertisements overlap, and whether any."""
    asking = [known.asked(each) for each in queries]
    before = known.index.candidate_count
    overlapping = [known.overlapping(each) for each in asking]
    candidates = known.index.candidate_count - before
    agreed("whether any", [known.overlaps_any(each) for each in asking], [bool(each) for each in overlapping])
    return AskingCosts(
        sum(map(len, overlapping)) / len(overlapping) / len(known.index),
        candidates / len(overlapping),
        sum(len(disjuncts(each)) for each in queries) / len(queries),
        1e3 * asked_s(known.answers, asking, passes),
        1e3 * asked_s(known.overlaps_any, asking, passes),
    )


def advertisements(
    traffic: Traffic,
    subscriptions: Sequence[Expression],
    sizes: RoutingSizes,
    seed: int,
    workload: Auction | None = None,
) -> Pruning:
    """Return advertisements that meet these subscriptions, to be pruned by what they keep out."""
    texts = (workload or books()).advertisements(sizes.advertisements[0], seed + 3)["condition"].to_pylist()
    worth = Characteristics(subscriptions, lambda each: traffic.share(each) * sizes.sample, traffic.schema)
    return Pruning(replace(traffic, filters=[parse(text) for text in texts], share=worth), "overlap")


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Prune advertisements, and ask with some of them on the way."""
    sizes = sizes_of(scale)
    traffic = auctions(sizes, seed)
    pruning = advertisements(traffic, traffic.filters, sizes, seed)
    known = Advertised(traffic.filters, traffic.schema, is_conjunctive=False)
    rows: list[Row] = []
    for share in sizes.shares:
        tell(f"{share:.0%} of the prunings")
        costs = asked(known, pruning.versions(share)[: ASKED * sizes.asked], scale.passes)
        rows.append(
            {
                "share of prunings": share,
                "table gone": pruning.reduction(share),
                "overlapping": costs.overlapping,
                "candidates": costs.candidates,
                "alternatives": costs.alternatives,
                "ms, all": costs.all_ms,
                "ms, any": costs.any_ms,
            }
        )
    by_operands = [_overlapping(name, sizes, seed, tell) for name in OPERAND_DISTRIBUTIONS]
    setup = (
        f"{sizes.advertisements[0]:,} advertisements of books, pruned together; {ASKED * sizes.asked:,} of them are "
        f"asked which of {len(traffic.filters):,} subscriptions they overlap (all), and whether any (any). Candidates "
        "are subscriptions that have enough predicates left, once for each alternative of an advertisement."
    )
    return Result(setup, _claims(rows, by_operands), _plots(rows), (*rows, *by_operands))


def _overlapping(distribution: str, sizes: RoutingSizes, seed: int, tell: Tell) -> Row:
    """Return how much advertisements overlap before and after all prunings, with fewer subscriptions."""
    tell(f"operands {distribution}")
    workload = books(operand_distribution=distribution)
    traffic = auctions(sizes, seed, workload, max(min(400, sizes.subscriptions), sizes.subscriptions // FEWER))
    pruning = advertisements(traffic, traffic.filters, sizes, seed, workload)
    known = Advertised(traffic.filters, traffic.schema, is_conjunctive=False)
    shares = []
    for share in (0.0, 1.0):
        asking = [known.asked(each) for each in pruning.versions(share)[: ASKED * sizes.asked]]
        shares.append(sum(len(known.overlapping(each)) for each in asking) / len(asking) / len(known.index))
    before, after = shares
    return {"operands": distribution, "overlapping before": before, "overlapping after": after}


def _claims(rows: list[Row], by_operands: list[Row]) -> tuple[Claim, ...]:
    def mean(what: str) -> float:
        return float(np.mean([row[what] for row in by_operands]))

    first, last = rows[0], rows[-1]
    gone = [row["table gone"] for row in rows]

    def at(place: float, what: str) -> float:
        return float(np.interp(place, gone, [row[what] for row in rows]))

    most = max(row["candidates"] for row in rows)
    overhead = OVERHEAD.format(first["alternatives"], last["alternatives"])
    return (
        judged("gone-after-all", gone[-1]),
        judged("overlapping-before", mean("overlapping before"), at="the mean of five distributions"),
        judged("overlapping-after-all", mean("overlapping after"), at="the mean of five distributions"),
        *(judged("overlapping-on-the-way", at(place, "overlapping"), place=place) for place in (0.37, 0.55)),
        judged("more-candidates-on-the-way", most / first["candidates"]),
        judged("fewer-candidates-after-all", last["candidates"] / first["candidates"]),
        judged("time-of-all", last["ms, all"] / first["ms, all"], remark=overhead),
        judged("time-of-any", last["ms, any"] / first["ms, any"], remark=overhead),
        judged("time-of-any-falls", gone, [row["ms, any"] for row in rows], remark=overhead),
    )


def _plots(rows: list[Row]) -> tuple[Plot, ...]:
    gone = tuple(row["table gone"] for row in rows)
    x = "share of advertisements' predicates gone"

    def line(label: str, what: str, of: float = 1.0) -> Curve:
        return Curve(label, gone, tuple(row[what] / of for row in rows))

    overlapping = line("overlapping", "overlapping")
    candidates = line("candidates", "candidates", max(rows[0]["candidates"], 1e-9))
    times = line("all overlaps", "ms, all"), line("whether any", "ms, any")
    return (
        Plot("Subscriptions that an advertisement overlaps", x, "share", (overlapping,)),
        Plot("Candidates", x, "compared with no pruning", (candidates,)),
        Plot("Time to compare an advertisement", x, "ms", times),
    )


EXPERIMENT = Experiment(
    "advertised", "What do prunings of advertisements save and cost?", "Bittner 2008, section 8.6.1", run
)
