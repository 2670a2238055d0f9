"""What changes if there are more subscriptions?

Boolean filtering against counting conjunctions, with and without the filtering shortcut, before anything is pruned; and
pruning by occurrence, for fewer and for more subscriptions.
"""

from __future__ import annotations

from tamis.lab import verdicts
from tamis.lab.base import Claim, Experiment, Line, Plot, Result, Row, Scale, Tell
from tamis.lab.filtering.auction_time import CACHES
from tamis.lab.filtering.subjects import BOOLEAN, COUNTING
from tamis.lab.routing.filter_times import central_s, network_s
from tamis.lab.routing.overlays import Overlay
from tamis.lab.routing.prunings import FINE, Pruning
from tamis.lab.routing.sizes import BROKERS, sizes_of
from tamis.lab.routing.traffic import auctions, conjunctive

MEASURE = "occurrence"
WITHOUT = "boolean, without the shortcut"
SHORTCUT = (
    "An event that matches a filter of a neighbour has few other candidates from there, with so few subscriptions: to "
    "look after destinations takes longer than to evaluate those."
)
STEPS = (
    "The load rises in small steps all along, by a few hundredths altogether, so that where it bends is nearly a "
    "matter of taste."
)
SMALL = "Our filters that are pruned to one or two common predicates cost less than the published ones did."


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure load, table and time for some numbers of subscriptions."""
    sizes, line = sizes_of(scale), Overlay("line", BROKERS)
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
        rows.append(
            {
                "subscriptions": count,
                BOOLEAN: times[0.0],
                WITHOUT: 1e3 * network_s(BOOLEAN, pruning, 0.0, line, scale, has_shortcut=False),
                COUNTING: 1e3 * network_s(COUNTING, parts, 0.0, line, scale),
                f"{BOOLEAN}, one broker": 1e3 * central_s(BOOLEAN, pruning, 0.0, scale)[0],
                f"{COUNTING}, one broker": 1e3 * central_s(COUNTING, parts, 0.0, scale)[0],
                "best, pruned": min(times.values()),
                "all pruned": times[1.0],
                "load": pruning.loads(line, [0.0])[0],
                "load, all pruned": pruning.loads(line, [1.0])[0],
                "table gone where the load rises": pruning.reduction(pruning.rise(line)),
                "table gone": pruning.reduction(1.0),
            }
        )
    setup = (
        f"Book auctions, {', '.join(f'{count:,}' for count in sizes.growing)} subscriptions on a line of {BROKERS} "
        f"brokers, pruned by {MEASURE}, or, as {COUNTING} needs them, as conjunctions. Time is what all brokers spend "
        "on an event."
    )
    return Result(setup, _claims(rows), _plots(rows, curves, line), tuple(rows))


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    first, last = rows[0], rows[-1]
    counts = [row["subscriptions"] for row in rows]
    at = f"at {counts[-1]:,}"
    ratio, alone = last[BOOLEAN] / last[COUNTING], last[f"{BOOLEAN}, one broker"] / last[f"{COUNTING}, one broker"]
    cut_short = [row[BOOLEAN] / row[WITHOUT] for row in rows]
    return (
        verdicts.by_ratio("Without pruning, time of Boolean filtering for that of counting, at 500,000 subscriptions",
                          0.85, ratio, at=at, where="8.2, figure 8.1", remark=CACHES),
        verdicts.by_direction("Boolean filtering leads by less than on one broker (its time for that of counting, for "
                              "the same on one broker)", "14 to 17% instead of 27%", ratio / alone, is_more=True, at=at,
                              where="8.2", remark="Only Boolean filtering has the shortcut here, and only in a network "
                              "is there anything to cut short."),
        verdicts.by_direction("The filtering shortcut saves time (with it, for without)", "10 ms at 500,000",
                              cut_short[-1], is_more=False, at=at, where="8.2, figure 8.2", remark=SHORTCUT),
        verdicts.by_trend("The more subscriptions, the more it saves: time with the filtering shortcut, for without",
                          "5 ms at 250,000, 10 ms at 500,000", counts, cut_short, is_rising=False,
                          where="8.2, figure 8.2", remark=SHORTCUT),
        verdicts.by_ratio("The best time by occurrence, for that without pruning, at 100,000 subscriptions", 0.54,
                          first["best, pruned"] / first[BOOLEAN], at=f"at {counts[0]:,}",
                          where="8.3.2, figure 8.10", remark=SMALL),
        verdicts.by_ratio("The best time by occurrence, for that without pruning, at 200,000 subscriptions", 0.48,
                          last["best, pruned"] / last[BOOLEAN], at=at, where="8.3.1, figure 8.6", remark=SMALL),
        verdicts.by_ratio("After all prunings, for the time without, at 100,000 subscriptions", 0.64,
                          first["all pruned"] / first[BOOLEAN], at=f"at {counts[0]:,}", where="8.3.2, figure 8.10",
                          remark=SMALL),
        verdicts.by_direction("Pruning gains slightly more with more subscriptions: the best time for that without, at "
                              "the most for that at the fewest", "grows slightly",
                              (last["best, pruned"] / last[BOOLEAN]) / (first["best, pruned"] / first[BOOLEAN]),
                              is_more=False, where="8.3.2", remark="Published are 100,000 and 200,000, far more than "
                              "here."),
        verdicts.by_value("The load without pruning, at 100,000 subscriptions", 0.09, last["load"], within=0.02,
                          at=at, where="8.3.2, figure 8.10"),
        verdicts.by_value("The load after all prunings by occurrence, at 100,000 subscriptions", 0.12,
                          last["load, all pruned"], within=0.03, at=at, where="8.3.2, figure 8.10"),
        verdicts.by_value("So much of the table is gone after all prunings", 0.85, last["table gone"], within=0.02,
                          at=at, where="8.3.2"),
        verdicts.by_value("The load rises slightly when so much of the table is gone", 0.75,
                          last["table gone where the load rises"], within=0.07, at=at, where="8.3.2, figure 8.10",
                          remark=STEPS),
        verdicts.by_equality("Where the load rises does not depend on the number of subscriptions (share of the table)",
                             "the same",
                             {f"{row['subscriptions']:,}": row["table gone where the load rises"] for row in rows},
                             within=1.1, where="8.3.2"),
    )  # fmt: skip


def _plots(rows: list[Row], curves: dict[int, Pruning], line: Overlay) -> tuple[Plot, ...]:
    counts = tuple(row["subscriptions"] for row in rows)
    x = "subscriptions"

    def lines(*names: str) -> tuple[Line, ...]:
        return tuple(Line(name, counts, tuple(row[name] for row in rows)) for name in names)

    gone = {count: tuple(pruning.reduction(share) for share in FINE) for count, pruning in curves.items()}
    loads = [Line(f"{count:,}", gone[count], tuple(pruning.loads(line))) for count, pruning in curves.items()]
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
