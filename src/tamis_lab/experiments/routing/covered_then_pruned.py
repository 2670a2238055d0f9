"""Is there anything left to prune after covering?

Covering lowers the number of filters, pruning their size. So covered conjunctions are dropped first, and those that are
left are pruned.
"""

from __future__ import annotations

from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.subjects import COUNTING
from tamis_lab.experiments.routing.conjunctive import MEASURE
from tamis_lab.experiments.routing.covered_tables import Covered
from tamis_lab.experiments.routing.covering import table_bytes
from tamis_lab.experiments.routing.filter_times import spent_remark
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.routing.traffic import auctions, conjunctive
from tamis_lab.experiments.statements import Judge

judged = Judge("routing", "both")

ALONE, BOTH = "covered", "covered and pruned"


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Prune what covering leaves, from many filters that cover each other to few."""
    sizes, line = sizes_of(scale), LabOverlay("line", BROKERS)
    rows: list[Row] = []
    for auctions_per_book in sizes.auctions_per_book:
        tell(f"{auctions_per_book:,} auctions a book")
        workload = books(auctions_per_book=auctions_per_book)
        covered = Covered(conjunctive(auctions(sizes, seed, workload, sizes.covered)), line, MEASURE)
        times = {share: covered.network_s(COUNTING, share, scale) for share in sizes.few_shares[1:]}
        cut_off = min(times, key=times.__getitem__)
        rows.append(
            {
                "auctions a book": auctions_per_book,
                "covered": covered.share,
                "cut-off": cut_off,
                "gone of what covering leaves": covered.reduction(cut_off),
                "own": covered.own_share,
                "load": covered.load(0.0),
                "load, pruned": covered.load(cut_off),
                f"{ALONE}, bytes": table_bytes(covered, 0.0),
                f"{BOTH}, bytes": table_bytes(covered, cut_off),
                f"{ALONE}, ms": 1e3 * covered.network_s(COUNTING, 0.0, scale),
                f"{BOTH}, ms": 1e3 * times[cut_off],
            }
        )
    rows.sort(key=lambda row: row["covered"])
    setup = (
        f"Book auctions, {sizes.covered:,} subscriptions as conjunctions on a line of {BROKERS} brokers, from "
        f"{sizes.auctions_per_book[0]:,} to {sizes.auctions_per_book[-1]:,} auctions a book. Covered ones are dropped, "
        f"the others pruned by {MEASURE}, as far as is best for time; {COUNTING} filters."
    )
    return Result(setup, _claims(rows), _plots(rows), tuple(rows))


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    shares = [row["covered"] for row in rows]
    gains = [row[f"{BOTH}, ms"] / row[f"{ALONE}, ms"] for row in rows]
    gone = [row["gone of what covering leaves"] for row in rows]
    least, most = rows[0], rows[-1]
    own = (
        f"A broker's own filters are never pruned: they are {least['own']:.0%} of what brokers have where least is "
        f"covered, and {most['own']:.0%} where most is. "
    )
    spent = [
        spent_remark(BROKERS, (row[f"{ALONE}, ms"], row["load"]), (row[f"{BOTH}, ms"], row["load, pruned"]))
        for row in (least, most)
    ]
    cut_offs = ", ".join(f"{row['cut-off']:.0%}" for row in rows)
    return (
        judged("faster-still", [gain < 1 for gain in gains], remark=own),
        judged("time-least-covered", gains[0], at=f"{shares[0]:.0%} covered", remark=own + spent[0]),
        judged("time-most-covered", gains[-1], at=f"{shares[-1]:.0%} covered", remark=own + spent[1]),
        judged(
            "gains-more-with-less-cover",
            shares,
            gains,
            remark=f"{own}So it should rise all along. That single times of some hundredths of a "
            "millisecond vary by more than that is a guess.",
        ),
        judged(
            "takes-more-of-what-is-left",
            shares,
            gone,
            remark=f"How far is best for time is not the same everywhere: {cut_offs} of the prunings, "
            "from the least covered to the most.",
        ),
        judged("takes-more-of-the-whole", gone[0] * (1 - shares[0]) / (gone[-1] * (1 - shares[-1]))),
        judged("takes-a-good-part", 1 - gone[-1], at=f"{shares[-1]:.0%} covered"),
    )


def _plots(rows: list[Row]) -> tuple[Plot, ...]:
    shares = tuple(row["covered"] for row in rows)
    x = "share of conjunctions that are covered"

    def lines(unit: str) -> tuple[Curve, ...]:
        return tuple(Curve(name, shares, tuple(row[f"{name}, {unit}"] for row in rows)) for name in (ALONE, BOTH))

    gone = Curve("gone", shares, tuple(row["gone of what covering leaves"] for row in rows))
    return (
        Plot("Time for an event", x, "ms", lines("ms")),
        Plot("Bytes of an entry", x, "bytes a subscription", lines("bytes")),
        Plot("What pruning takes of what covering leaves", x, "share of predicates", (gone,)),
    )


EXPERIMENT = Experiment(
    "both", "Is there anything left to prune after covering?", "Bittner 2008, section 8.4, figure 8.17", run
)
