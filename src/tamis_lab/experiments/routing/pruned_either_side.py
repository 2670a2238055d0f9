"""Is it better to prune subscriptions, or advertisements?

Where subscriptions go by advertisements, pruning either makes them overlap more often, and tables of subscriptions
grow. Subscriptions are pruned first here, by accuracy, and then advertisements, by what they keep out of those.
"""

from __future__ import annotations

from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.routing.advertised import ASKED, OVERHEAD, advertisements, asked
from tamis_lab.experiments.routing.overlap import Advertised
from tamis_lab.experiments.routing.prunings import FINE, Pruning
from tamis_lab.experiments.routing.sizes import sizes_of
from tamis_lab.experiments.routing.traffic import auctions
from tamis_lab.experiments.statements import Judge

judged = Judge("routing", "both sides")

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
            costs = asked(known, pruning.versions(each)[: ASKED * sizes.asked], scale.passes)
            rows.append(
                {
                    "subscriptions gone": subscriptions.reduction(share),
                    "share of advertisements' prunings": each,
                    "advertisements gone": pruning.reduction(each),
                    "overlapping": costs.overlapping,
                    "alternatives": costs.alternatives,
                    "ms, all": costs.all_ms,
                    "ms, any": costs.any_ms,
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
        judged("advertisements-gone-unpruned", none[-1]["advertisements gone"]),
        judged(
            "advertisements-gone-pruned",
            most[-1]["advertisements gone"],
            remark="An advertisement overlaps "
            f"{most[0]['overlapping']:.2f} of the subscriptions then, and {most[-1]['overlapping']:.2f} "
            "after all its prunings: nothing is kept out by anything, and all prunings are equals. We "
            "take the one that saves the most bytes; that the source took another is a guess.",
        ),
        judged("overlapping-at-028", more[0]["overlapping"]),
        judged("overlapping-at-most", most[0]["overlapping"]),
        judged(
            "overlapping-at-019",
            some[0]["overlapping"],
            remark="Read off a plot where the curve is steep: ours climbs from "
            f"{firsts[1]['overlapping']:.2f} with {gone[1]:.2f} gone to {more[0]['overlapping']:.2f} "
            f"with {gone[3]:.2f}.",
        ),
        judged("advertisements-add-fewer", per_point[0] / max(per_point[1], 1e-9)),
        judged(
            "any-subscriptions-pruned",
            most[0]["ms, any"] / none[0]["ms, any"],
            remark="The advertisement that asks is the same before and then, with "
            f"{none[0]['alternatives']:.2f} alternatives. That to take it apart is most of the time, "
            "whatever the subscriptions are, is a guess.",
        ),
        judged("all-subscriptions-pruned", most[0]["ms, all"] / none[0]["ms, all"], remark=found_told),
        judged(
            "all-falls",
            gone,
            [row["ms, all"] for row in firsts],
            remark=f"{found_told} On the way it is {', '.join(f'{each:.2f}' for each in overlapping)}.",
        ),
        judged("any-advertisements-alone", gain(none, "ms, any"), remark=unpruned),
        judged("any-advertisements-too", gain(most, "ms, any"), remark=pruned),
        judged("all-advertisements-alone", gain(none, "ms, all"), remark=unpruned),
        judged("all-advertisements-too", gain(most, "ms, all"), remark=pruned),
    )


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
                Curve(
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
