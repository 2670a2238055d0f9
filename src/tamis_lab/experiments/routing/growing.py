"""What changes if there are more subscriptions?

Boolean filtering against counting conjunctions, with and without the filtering shortcut, before anything is pruned,
also for all five distributions of operands; and pruning by occurrence, for fewer and for more subscriptions.
"""

from __future__ import annotations

from math import log

from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING
from tamis_lab.experiments.routing.conjunctive import COUNTERS
from tamis_lab.experiments.routing.filter_times import central_s, network_s, spent_remark
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import FINE, Pruning
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.routing.traffic import auctions, conjunctive
from tamis_lab.experiments.statements import Judge

judged = Judge("routing", "growing")

MEASURE = "occurrence"
WITHOUT = "boolean, without the shortcut"
SHORTCUT = (
    "An event matches {} of {:,} filters here, from all directions together, so there is little to cut short. That to "
    "look after destinations costs more than it saves is a guess."
)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure load, table and time for some numbers of subscriptions."""
    sizes, line = sizes_of(scale), LabOverlay("line", BROKERS)
    rows: list[Row] = []
    curves: dict[int, Pruning] = {}
    for count in sizes.growing:
        traffic = auctions(sizes, seed, count=count)
        pruning = curves[count] = Pruning(traffic, MEASURE)
        parts = Pruning(conjunctive(traffic), MEASURE)
        times = {}
        for share in sizes.few_shares:
            tell(f"{count:,} subscriptions, {share:.0%} of the prunings")
            times[share] = 1e3 * network_s(BOOLEAN, pruning, share, line, scale)
        tell(f"{count:,} subscriptions, conjunctions, and without the shortcut")
        best = min(times, key=times.__getitem__)
        alone_s, matched = central_s(BOOLEAN, pruning, 0.0, scale)
        rows.append(
            {
                "subscriptions": count,
                BOOLEAN: times[0.0],
                WITHOUT: 1e3 * network_s(BOOLEAN, pruning, 0.0, line, scale, has_shortcut=False),
                COUNTING: 1e3 * network_s(COUNTING, parts, 0.0, line, scale),
                f"{BOOLEAN}, one broker": 1e3 * alone_s,
                f"{COUNTING}, one broker": 1e3 * central_s(COUNTING, parts, 0.0, scale)[0],
                "conjunctions": len(parts.traffic.filters),
                "matching filters": matched * count,
                "best, pruned": times[best],
                "all pruned": times[1.0],
                "load": pruning.loads(line, [0.0])[0],
                "load, best, pruned": pruning.loads(line, [best])[0],
                "load, all pruned": pruning.loads(line, [1.0])[0],
                "table gone where the load rises": pruning.reduction(pruning.rise(line)),
                "table gone": pruning.reduction(1.0),
            }
        )
    by_operands = [_unpruned(name, sizes.growing[0], seed, line, scale, tell) for name in OPERAND_DISTRIBUTIONS]
    setup = (
        f"Book auctions, {', '.join(f'{count:,}' for count in sizes.growing)} subscriptions on a line of {BROKERS} "
        f"brokers, pruned by {MEASURE}, or, as {COUNTING} needs them, as conjunctions. Time is what all brokers spend "
        "on an event."
    )
    claims = (*_claims(rows, curves, line), _over_operands(by_operands))
    return Result(setup, claims, _plots(rows, curves, line), (*rows, *by_operands))


def _unpruned(distribution: str, count: int, seed: int, line: LabOverlay, scale: Scale, tell: Tell) -> Row:
    tell(f"{count:,} subscriptions, operands {distribution}")
    traffic = auctions(sizes_of(scale), seed, books(operand_distribution=distribution), count)
    parts = Pruning(conjunctive(traffic), MEASURE)
    return {
        "operands": distribution,
        "subscriptions": count,
        BOOLEAN: 1e3 * network_s(BOOLEAN, Pruning(traffic, MEASURE), 0.0, line, scale),
        COUNTING: 1e3 * network_s(COUNTING, parts, 0.0, line, scale),
    }


def _over_operands(rows: list[Row]) -> Claim:
    return judged("operands-hardly-matter", {row["operands"]: row[BOOLEAN] / row[COUNTING] for row in rows})


def near(rows: list[Row], count: int) -> Row:
    """Return the row of so many subscriptions, or of the number nearest to it.

    >>> rows = [{"subscriptions": 5_000}, {"subscriptions": 20_000}]
    >>> near(rows, 9_000), near(rows, 200_000)
    ({'subscriptions': 5000}, {'subscriptions': 20000})
    """
    return min(rows, key=lambda row: abs(log(row["subscriptions"] / count)))


def _at(row: Row) -> str:
    return f"at {row['subscriptions']:,}"


def _claims(rows: list[Row], curves: dict[int, Pruning], line: LabOverlay) -> tuple[Claim, ...]:
    few, some, many = (near(rows, count) for count in (100_000, 200_000, 500_000))
    fewer, more = (few, some) if few is not some else (rows[0], rows[-1])
    counts = [row["subscriptions"] for row in rows]
    ratio, alone = many[BOOLEAN] / many[COUNTING], many[f"{BOOLEAN}, one broker"] / many[f"{COUNTING}, one broker"]
    cut_short = [row[BOOLEAN] / row[WITHOUT] for row in rows]
    shortcut = SHORTCUT.format(verdicts.rounded(float(many["matching filters"])), many["subscriptions"])
    rise = curves[few["subscriptions"]].rise_remark(line, 0.75)
    return (
        judged("time-unpruned", ratio, at=_at(many), remark=COUNTERS.format(many["conjunctions"])),
        verdicts.given(
            ratio < 1 / verdicts.NOISE and alone < 1 / verdicts.NOISE,
            judged("leads-by-less", ratio / alone, at=_at(many)),
            f"Boolean filtering does not lead: it takes {ratio:.2f} times the time of counting in the "
            f"network, and {alone:.2f} times on one broker.",
        ),
        judged("shortcut-saves", cut_short[rows.index(many)], at=_at(many), remark=shortcut),
        verdicts.given(
            min(cut_short) < 1 / verdicts.NOISE,
            judged("shortcut-saves-more", counts, cut_short, remark=shortcut),
            "The shortcut saves nothing with any number of subscriptions: with it, time is "
            f"{min(cut_short):.2f} to {max(cut_short):.2f} times that without.",
        ),
        *(
            judged(
                "best-time",
                row["best, pruned"] / row[BOOLEAN],
                setting=size,
                at=_at(row),
                remark=_spent(row, "best, pruned"),
            )
            for size, row in (("100,000", few), ("200,000", some))
        ),
        judged("time-after-all", few["all pruned"] / few[BOOLEAN], at=_at(few), remark=_spent(few, "all pruned")),
        judged(
            "gains-more-with-more",
            (more["best, pruned"] / more[BOOLEAN]) / (fewer["best, pruned"] / fewer[BOOLEAN]),
            at=f"{_at(more)} and {fewer['subscriptions']:,}",
            remark=f"With fewer, the best time is {fewer['best, pruned'] / fewer[BOOLEAN]:.2f} of "
            f"that without pruning, with more {more['best, pruned'] / more[BOOLEAN]:.2f}: a "
            "difference that is near to the noise of single times.",
        ),
        judged(
            "load-unpruned",
            few["load"],
            at=_at(few),
            remark=f"It grows with the number, from {rows[0]['load']:.2f} {_at(rows[0])}.",
        ),
        judged("load-after-all", few["load, all pruned"], at=_at(few)),
        judged("gone-after-all", few["table gone"], at=_at(few)),
        judged("load-rises", few["table gone where the load rises"], at=_at(few), remark=rise),
        judged(
            "load-rises-alike",
            {f"{row['subscriptions']:,}": row["table gone where the load rises"] for row in rows},
            remark=f"{rise} So it is chance which place is found.",
        ),
    )


def _spent(row: Row, then: str) -> str:
    return spent_remark(BROKERS, (row[BOOLEAN], row["load"]), (row[then], row[f"load, {then}"]))


def _plots(rows: list[Row], curves: dict[int, Pruning], line: LabOverlay) -> tuple[Plot, ...]:
    counts = tuple(row["subscriptions"] for row in rows)
    x = "subscriptions"

    def lines(*names: str) -> tuple[Curve, ...]:
        return tuple(Curve(name, counts, tuple(row[name] for row in rows)) for name in names)

    gone = {count: tuple(pruning.reduction(share) for share in FINE) for count, pruning in curves.items()}
    loads = [Curve(f"{count:,}", gone[count], tuple(pruning.loads(line))) for count, pruning in curves.items()]
    return (
        Plot("Time for an event, all brokers", x, "ms", lines(BOOLEAN, WITHOUT, COUNTING)),
        Plot("Time for an event, pruned by occurrence", x, "ms", lines(BOOLEAN, "best, pruned", "all pruned")),
        Plot(
            "Network load, by number of subscriptions",
            "share of predicates gone",
            "share of other brokers",
            tuple(loads),
        ),
    )


EXPERIMENT = Experiment(
    "growing", "What changes if there are more subscriptions?", "Bittner 2008, sections 8.2 and 8.3.2", run
)
