"""What changes if there are more subscriptions?

Boolean filtering against counting conjunctions, with and without the filtering shortcut, before anything is pruned; and
pruning by occurrence, for fewer and for more subscriptions.
"""

from __future__ import annotations

from math import log

from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Experiment, Line, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING
from tamis_lab.experiments.routing.conjunctive import COUNTERS
from tamis_lab.experiments.routing.filter_times import central_s, network_s, spent_told
from tamis_lab.experiments.routing.overlays import Overlay
from tamis_lab.experiments.routing.prunings import FINE, Pruning
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.routing.traffic import auctions, conjunctive

MEASURE = "occurrence"
WITHOUT = "boolean, without the shortcut"
SHORTCUT = (
    "An event matches {} of {:,} filters here, from all directions together, so there is little to cut short. That to "
    "look after destinations costs more than it saves is a guess."
)


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
    setup = (
        f"Book auctions, {', '.join(f'{count:,}' for count in sizes.growing)} subscriptions on a line of {BROKERS} "
        f"brokers, pruned by {MEASURE}, or, as {COUNTING} needs them, as conjunctions. Time is what all brokers spend "
        "on an event."
    )
    return Result(setup, _claims(rows, curves, line), _plots(rows, curves, line), tuple(rows))


def near(rows: list[Row], count: int) -> Row:
    """Return the row of so many subscriptions, or of the number nearest to it.

    >>> rows = [{"subscriptions": 5_000}, {"subscriptions": 20_000}]
    >>> near(rows, 9_000), near(rows, 200_000)
    ({'subscriptions': 5000}, {'subscriptions': 20000})
    """
    return min(rows, key=lambda row: abs(log(row["subscriptions"] / count)))


def _at(row: Row) -> str:
    return f"at {row['subscriptions']:,}"


def _claims(rows: list[Row], curves: dict[int, Pruning], line: Overlay) -> tuple[Claim, ...]:
    few, some, many = (near(rows, count) for count in (100_000, 200_000, 500_000))
    fewer, more = (few, some) if few is not some else (rows[0], rows[-1])
    counts = [row["subscriptions"] for row in rows]
    ratio, alone = many[BOOLEAN] / many[COUNTING], many[f"{BOOLEAN}, one broker"] / many[f"{COUNTING}, one broker"]
    cut_short = [row[BOOLEAN] / row[WITHOUT] for row in rows]
    shortcut = SHORTCUT.format(verdicts.told(float(many["matching filters"])), many["subscriptions"])
    rise = curves[few["subscriptions"]].rise_told(line, 0.75)
    return (
        verdicts.by_ratio("Without pruning, the time of Boolean filtering compared with that of counting, at 500,000 "
                          "subscriptions", 0.85, ratio, at=_at(many), where="8.2, figure 8.1",
                          remark=COUNTERS.format(many["conjunctions"])),
        verdicts.given(ratio < 1 / verdicts.NOISE and alone < 1 / verdicts.NOISE, verdicts.by_direction(
                       "Boolean filtering leads by less than on one broker (its time compared with that of counting, "
                       "divided by the same on one broker)", "14 to 17% instead of 27%", ratio / alone, is_more=True,
                       at=_at(many), where="8.2"),
                       f"Boolean filtering does not lead: it takes {ratio:.2f} times the time of counting in the "
                       f"network, and {alone:.2f} times on one broker."),
        verdicts.by_direction("The filtering shortcut saves time (with it, compared with without)", "10 ms at 500,000",
                              cut_short[rows.index(many)], is_more=False, at=_at(many), where="8.2, figure 8.2",
                              remark=shortcut),
        verdicts.given(min(cut_short) < 1 / verdicts.NOISE, verdicts.by_trend(
                       "The more subscriptions, the more it saves: time with the filtering shortcut, compared with "
                       "without", "5 ms at 250,000, 10 ms at 500,000", counts, cut_short, is_rising=False,
                       where="8.2, figure 8.2", remark=shortcut),
                       "The shortcut saves nothing with any number of subscriptions: with it, time is "
                       f"{min(cut_short):.2f} to {max(cut_short):.2f} times that without."),
        *(
            verdicts.by_ratio(f"The best time by occurrence, compared with that without pruning, at {told} "
                              "subscriptions", published, row["best, pruned"] / row[BOOLEAN], at=_at(row), where=where,
                              remark=_spent(row, "best, pruned"))
            for told, published, row, where in (("100,000", 0.54, few, "8.3.2, figure 8.10"),
                                                ("200,000", 0.48, some, "8.3.1, figure 8.6"))
        ),
        verdicts.by_ratio("After all prunings, compared with the time without, at 100,000 subscriptions", 0.64,
                          few["all pruned"] / few[BOOLEAN], at=_at(few), where="8.3.2, figure 8.10",
                          remark=_spent(few, "all pruned")),
        verdicts.by_direction("Pruning gains slightly more with more subscriptions: the best time compared with that "
                              "without, at 200,000 divided by that at 100,000", "grows slightly",
                              (more["best, pruned"] / more[BOOLEAN]) / (fewer["best, pruned"] / fewer[BOOLEAN]),
                              is_more=False, at=f"{_at(more)} and {fewer['subscriptions']:,}", where="8.3.2",
                              remark=f"With fewer, the best time is {fewer['best, pruned'] / fewer[BOOLEAN]:.2f} of "
                              f"that without pruning, with more {more['best, pruned'] / more[BOOLEAN]:.2f}: a "
                              "difference that is near to the noise of single times."),
        verdicts.by_value("The load without pruning, at 100,000 subscriptions", 0.09, few["load"], within=0.02,
                          at=_at(few), where="8.3.2, figure 8.10",
                          remark=f"It grows with the number, from {rows[0]['load']:.2f} {_at(rows[0])}."),
        verdicts.by_value("The load after all prunings by occurrence, at 100,000 subscriptions", 0.12,
                          few["load, all pruned"], within=0.03, at=_at(few), where="8.3.2, figure 8.10"),
        verdicts.by_value("So much of the table is gone after all prunings", 0.85, few["table gone"], within=0.02,
                          at=_at(few), where="8.3.2"),
        verdicts.by_value("The load rises slightly when so much of the table is gone", 0.75,
                          few["table gone where the load rises"], within=0.07, at=_at(few),
                          where="8.3.2, figure 8.10", remark=rise),
        verdicts.by_equality("Where the load rises does not depend on the number of subscriptions (share of the table)",
                             "the same",
                             {f"{row['subscriptions']:,}": row["table gone where the load rises"] for row in rows},
                             within=1.1, where="8.3.2", remark=f"{rise} So it is chance which place is found."),
    )  # fmt: skip


def _spent(row: Row, then: str) -> str:
    return spent_told(BROKERS, (row[BOOLEAN], row["load"]), (row[then], row[f"load, {then}"]))


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
