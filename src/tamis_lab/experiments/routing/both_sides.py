"""Is it better to prune subscriptions, or advertisements?

Where subscriptions go by advertisements, pruning either makes them overlap more often, and tables of subscriptions
grow. Subscriptions are pruned first here, by accuracy, and then advertisements, by what they keep out of those.
"""

from __future__ import annotations

from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Experiment, Line, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.routing.advertised import ASKED, OVERHEAD, advertisements, asked
from tamis_lab.experiments.routing.overlap import Advertised
from tamis_lab.experiments.routing.prunings import FINE, Pruning
from tamis_lab.experiments.routing.sizes import sizes_of
from tamis_lab.experiments.routing.traffic import auctions

GONE = (0.0, 0.10, 0.19, 0.28, 0.50, 0.84)
"""What is gone of the subscriptions; the last is all that can go."""
SHARES = (0.0, 0.35, 1.0)
"""Shares of all prunings of advertisements."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Prune subscriptions, and then advertisements, and ask which overlap."""
    sizes = sizes_of(scale)
    traffic = auctions(sizes, seed)
    subscriptions = Pruning(traffic, "accuracy")
    rows: list[Row] = []
    for gone in GONE:
        share = next((each for each in FINE if subscriptions.reduction(each) >= gone), 1.0)
        versions = subscriptions.versions(share)
        known = Advertised(versions, traffic.schema, is_conjunctive=False)
        pruning = advertisements(traffic, versions, sizes, seed)
        for each in SHARES:
            tell(f"{gone:.0%} of the subscriptions gone, {each:.0%} of the advertisements' prunings")
            found = asked(known, pruning.versions(each)[: ASKED * sizes.asked], scale.passes)
            rows.append(
                {
                    "subscriptions gone": subscriptions.reduction(share),
                    "share of advertisements' prunings": each,
                    "advertisements gone": pruning.reduction(each),
                    "overlapping": found.overlapping,
                    "alternatives": found.alternatives,
                    "ms, all": found.all_ms,
                    "ms, any": found.any_ms,
                }
            )
    setup = (
        f"{len(traffic.filters):,} subscriptions, pruned by accuracy until so many of their predicates are gone, and "
        f"{sizes.advertisements[0]:,} advertisements, pruned by what they keep out of these; {ASKED * sizes.asked:,} "
        "of them are asked which subscriptions they overlap (all), and whether any (any)."
    )
    return Result(setup, _claims(rows), _plots(rows), tuple(rows))


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    by_gone = [rows[at : at + len(SHARES)] for at in range(0, len(rows), len(SHARES))]
    none, _, some, more, _, most = by_gone
    firsts = [each[0] for each in by_gone]
    gone = [row["subscriptions gone"] for row in firsts]

    def gain(each: list[Row], what: str) -> float:
        return float(each[-1][what] / each[0][what])

    per_point = [
        (row["overlapping"] - none[0]["overlapping"]) / row[what]
        for row, what in ((more[0], "subscriptions gone"), (none[1], "advertisements gone"))
    ]
    overlapping = [row["overlapping"] for row in firsts]
    found_told = (
        f"An advertisement overlaps {overlapping[0]:.2f} of the subscriptions before, and {overlapping[-1]:.2f} when "
        "all is gone that can go: there are more to be found, with fewer predicates each."
    )
    unpruned, pruned = (OVERHEAD.format(each[0]["alternatives"], each[-1]["alternatives"]) for each in (none, most))
    return (
        verdicts.by_value("So much of the advertisements can go if subscriptions are not pruned", 0.72,
                          none[-1]["advertisements gone"], within=0.01, where="8.6.2, figure 8.20"),
        verdicts.by_value("So much of the advertisements can go if subscriptions are pruned as far as they can be",
                          0.53, most[-1]["advertisements gone"], within=0.02, where="8.6.2, figure 8.20",
                          remark="An advertisement overlaps "
                          f"{most[0]['overlapping']:.2f} of the subscriptions then, and {most[-1]['overlapping']:.2f} "
                          "after all its prunings: nothing is kept out by anything, and all prunings are equals. We "
                          "take the one that saves the most bytes; that the source took another is a guess."),
        verdicts.by_value("With 0.28 of the subscriptions gone, an advertisement overlaps so many of them", 0.75,
                          more[0]["overlapping"], within=0.02, where="8.6.2, figure 8.23"),
        verdicts.by_value("With all of the subscriptions gone that can go, an advertisement overlaps so many of them",
                          0.75, most[0]["overlapping"], within=0.02, where="8.6.2, figure 8.23"),
        verdicts.by_value("With 0.19 of the subscriptions gone, an advertisement overlaps so many of them", 0.65,
                          some[0]["overlapping"], within=0.03, where="8.6.2, figure 8.23",
                          remark="Read off a plot where the curve is steep: ours climbs from "
                          f"{firsts[1]['overlapping']:.2f} with {gone[1]:.2f} gone to {more[0]['overlapping']:.2f} "
                          f"with {gone[3]:.2f}."),
        verdicts.by_direction("Pruning advertisements adds fewer overlaps than pruning subscriptions (overlaps that "
                              "each hundredth of the predicates adds, subscriptions compared with advertisements)",
                              "prune advertisements", per_point[0] / max(per_point[1], 1e-9), is_more=True,
                              where="8.6.2"),
        verdicts.by_ratio("Time to know whether any: subscriptions pruned all the way, compared with before", 1.8 / 8.7,
                          most[0]["ms, any"] / none[0]["ms, any"], where="8.6.2, figure 8.21",
                          remark="The advertisement that asks is the same before and then, with "
                          f"{none[0]['alternatives']:.2f} alternatives. That to take it apart is most of the time, "
                          "whatever the subscriptions are, is a guess."),
        verdicts.by_ratio("Time to find all: subscriptions pruned all the way, compared with before", 38 / 108,
                          most[0]["ms, all"] / none[0]["ms, all"], where="8.6.2, figure 8.22", remark=found_told),
        verdicts.by_trend("Time to find all falls the more of the subscriptions is gone (ms)", "falls", gone,
                          [row["ms, all"] for row in firsts], is_rising=False, where="8.6.2, figure 8.22",
                          remark=f"{found_told} On the way it is {', '.join(f'{each:.2f}' for each in overlapping)}."),
        verdicts.by_ratio("Whether any: advertisements pruned all the way, subscriptions not, compared with before",
                          0.55, gain(none, "ms, any"), where="8.6.2, figure 8.21", remark=unpruned),
        verdicts.by_ratio("Whether any: advertisements pruned all the way, subscriptions too, compared with before",
                          0.89, gain(most, "ms, any"), where="8.6.2, figure 8.21", remark=pruned),
        verdicts.by_ratio("All: advertisements pruned all the way, subscriptions not, compared with before", 86 / 108,
                          gain(none, "ms, all"), where="8.6.2, figure 8.22", remark=unpruned),
        verdicts.by_ratio("All: advertisements pruned all the way, subscriptions too, compared with before", 34 / 38,
                          gain(most, "ms, all"), where="8.6.2, figure 8.22", remark=pruned),
    )  # fmt: skip


def _plots(rows: list[Row]) -> tuple[Plot, ...]:
    shown = {
        "Subscriptions that an advertisement overlaps": ("overlapping", "share"),
        "Time to find all overlaps": ("ms, all", "ms"),
        "Time to know whether there is any": ("ms, any", "ms"),
    }
    places = list(dict.fromkeys(row["subscriptions gone"] for row in rows))
    return tuple(
        Plot(
            title,
            "share of advertisements' predicates gone",
            unit,
            tuple(
                Line(
                    f"subscriptions: {gone:.0%} gone",
                    tuple(row["advertisements gone"] for row in rows if row["subscriptions gone"] == gone),
                    tuple(row[what] for row in rows if row["subscriptions gone"] == gone),
                )
                for gone in places
            ),
        )
        for title, (what, unit) in shown.items()
    )


EXPERIMENT = Experiment(
    "both sides", "Is it better to prune subscriptions, or advertisements?", "Bittner 2008, section 8.6.2", run
)
