"""Is it better to drop covered filters, or to prune?

Covering takes filters as they come: it saves much where subscriptions are alike, and little elsewhere. The fewer
auctions there are to a book, the more titles there are, and the fewer conjunctions cover each other. Pruning does
not depend on that. Covering is for conjunctions here, as it was; a covered one takes no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.language.rewrites.monotone import leaves_of, monotone
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING
from tamis_lab.experiments.routing.conjunctive import MEASURE, entry_bytes
from tamis_lab.experiments.routing.covered_tables import Covered
from tamis_lab.experiments.routing.filter_times import network_s, spent_remark
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import Pruning
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.routing.traffic import auctions, conjunctive
from tamis_lab.experiments.statements import Judge

if TYPE_CHECKING:
    from collections.abc import Sequence

judged = Judge("routing", "covering")

PRUNED, COVERED = "boolean, pruned", "counting, covered"
SYSTEMS = (BOOLEAN, PRUNED, COUNTING, COVERED)
CROSSING = 0.65
EARLIER = 0.75
"""Of the prunings: the published cut-off of accuracy, in the middle of ours."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Compare four systems, from many filters that cover each other to few."""
    sizes, line = sizes_of(scale), LabOverlay("line", BROKERS)
    rows: list[Row] = []
    for auctions_per_book in sizes.auctions_per_book:
        tell(f"{auctions_per_book:,} auctions a book")
        workload = books(auctions_per_book=auctions_per_book)
        traffic = auctions(sizes, seed, workload, sizes.covered)
        parts = conjunctive(traffic)
        pruning, all_parts, covered = Pruning(traffic, MEASURE), Pruning(parts, MEASURE), Covered(parts, line, MEASURE)
        times = {share: network_s(BOOLEAN, pruning, share, line, scale) for share in sizes.few_shares[1:]}
        cut_off, count = min(times, key=times.__getitem__), traffic.subscription_count
        rows.append(
            {
                "auctions a book": auctions_per_book,
                "covered": covered.share,
                "cut-off": cut_off,
                "load": pruning.loads(line, [0.0])[0],
                "load, pruned": pruning.loads(line, [cut_off])[0],
                "different predicates": len({leaf for each in traffic.filters for leaf in leaves_of(monotone(each))}),
                f"{BOOLEAN} bytes": entry_bytes(BOOLEAN, traffic.filters, count),
                f"{PRUNED} bytes": entry_bytes(BOOLEAN, pruning.versions(cut_off), count),
                f"{PRUNED} bytes at {EARLIER:.0%}": entry_bytes(BOOLEAN, pruning.versions(EARLIER), count),
                f"{COUNTING} bytes": entry_bytes(COUNTING, parts.filters, count),
                f"{COVERED} bytes": table_bytes(covered, 0.0),
                BOOLEAN: 1e3 * network_s(BOOLEAN, pruning, 0.0, line, scale),
                PRUNED: 1e3 * times[cut_off],
                COUNTING: 1e3 * network_s(COUNTING, all_parts, 0.0, line, scale),
                COVERED: 1e3 * covered.network_s(COUNTING, 0.0, scale),
            }
        )
    rows.sort(key=lambda row: row["covered"])
    setup = (
        f"Book auctions, {sizes.covered:,} subscriptions on a line of {BROKERS} brokers, from "
        f"{sizes.auctions_per_book[0]:,} to {sizes.auctions_per_book[-1]:,} auctions a book, which decides how many "
        f"conjunctions cover each other. Pruned by {MEASURE}, as far as is best for time. Bytes are those of the "
        "memory formulas, for each subscription of somebody else."
    )
    return Result(setup, _claims(rows), _plots(rows), tuple(rows))


def table_bytes(covered: Covered, share: float) -> float:
    """Return what is kept takes, by the memory formulas, for each subscription behind a link."""
    per_subscription = len(covered.traffic.filters) / covered.traffic.subscription_count
    tables = covered.versions(share)
    spent = sum(entry_bytes(COUNTING, filters, 1) for filters in tables.values() if filters)
    return spent / (sum(map(covered.behind, tables)) / per_subscription)


def crossing(x: Sequence[float], falling: Sequence[float], flat: Sequence[float]) -> float:
    """Return where a falling line crosses another; if it lies below all along, 0, and if above, 1.

    >>> crossing([0.2, 0.4, 0.6], [90, 60, 30], [45, 45, 45])
    0.5
    """
    gaps = [one - two for one, two in zip(falling, flat, strict=True)]
    for at in range(len(gaps) - 1):
        if gaps[at] > 0 >= gaps[at + 1]:
            return x[at] + (x[at + 1] - x[at]) * gaps[at] / (gaps[at] - gaps[at + 1])
    return 1.0 if gaps[-1] > 0 else 0.0


def _claims(rows: list[Row]) -> tuple[Claim, ...]:
    shares = [row["covered"] for row in rows]

    def all_of(name: str) -> list[float]:
        return [row[name] for row in rows]

    named = {f"{share:.0%} covered": row for share, row in zip(shares, rows, strict=True)}
    later, sooner = all_of(f"{PRUNED} bytes"), all_of(f"{PRUNED} bytes at {EARLIER:.0%}")
    cut_offs = ", ".join(f"{row['cut-off']:.0%}" for row in rows)
    chosen = (
        f"The cut-off is where time is best: after {cut_offs} of the prunings, from the least covered setting to the "
        f"most. With {EARLIER:.0%} everywhere it would be "
    )
    kept = verdicts.geometric_mean([one / two for one, two in zip(sooner, all_of(f"{BOOLEAN} bytes"), strict=True)])
    matching = (
        f"The load rises with the cover, from {rows[0]['load']:.2f} to {rows[-1]['load']:.2f}; but "
        f"there are {rows[0]['different predicates']:,} different predicates where least is covered, and "
        f"{rows[-1]['different predicates']:,} where most is. That to look these up takes up what fewer matches save "
        "is a guess."
    )
    faster = spent_remark(BROKERS, (rows[-1][BOOLEAN], rows[-1]["load"]), (rows[-1][PRUNED], rows[-1]["load, pruned"]))
    return (
        judged("always-covered", shares[0]),
        judged("boolean-bytes", rows[-1][f"{BOOLEAN} bytes"]),
        judged("boolean-bytes-alike", {name: row[f"{BOOLEAN} bytes"] for name, row in named.items()}),
        judged(
            "pruned-bytes-alike",
            {name: row[f"{PRUNED} bytes"] for name, row in named.items()},
            remark=f"{chosen}{min(sooner):.0f} to {max(sooner):.0f}.",
        ),
        judged(
            "pruned-bytes",
            verdicts.geometric_mean([row[f"{PRUNED} bytes"] / row[f"{BOOLEAN} bytes"] for row in rows]),
            remark=f"{chosen}{kept:.2f} times.",
        ),
        judged("conjunctions-take-more", [row[f"{COUNTING} bytes"] > row[f"{BOOLEAN} bytes"] for row in rows]),
        judged("left-by-covering", [1 - share for share in reversed(shares)], all_of(f"{COVERED} bytes")[::-1]),
        judged(
            "bytes-crossing",
            crossing(shares, all_of(f"{COVERED} bytes"), later),
            remark=f"{chosen}{crossing(shares, all_of(f'{COVERED} bytes'), sooner):.2f}.",
        ),
        judged("pruned-time", verdicts.geometric_mean([row[PRUNED] / row[BOOLEAN] for row in rows]), remark=faster),
        judged(
            "time-crossing",
            crossing(shares, all_of(COVERED), all_of(PRUNED)),
            remark=f"Without either, Boolean filtering takes {rows[0][BOOLEAN] / rows[0][COUNTING]:.2f} "
            "times the time of counting where least is covered.",
        ),
        *(
            judged("faster-with-less-cover", shares, all_of(name), name=name, remark=matching)
            for name in (BOOLEAN, PRUNED, COUNTING)
        ),
        judged("covering-faster-with-more", shares, all_of(COVERED)),
        judged(
            "pruning-beats-covering",
            [
                row[f"{PRUNED} bytes"] < row[f"{COVERED} bytes"] and row[PRUNED] < row[COVERED]
                for row in rows
                if row["covered"] < CROSSING
            ],
            remark=f"In bytes pruning wins up to a cover of "
            f"{crossing(shares, all_of(f'{COVERED} bytes'), later):.2f}, in time up to "
            f"{crossing(shares, all_of(COVERED), all_of(PRUNED)):.2f}.",
        ),
    )


def _plots(rows: list[Row]) -> tuple[Plot, ...]:
    shares = tuple(row["covered"] for row in rows)
    x = "share of conjunctions that are covered"
    memory, times = (
        tuple(Curve(name, shares, tuple(row[name + unit] for row in rows)) for name in SYSTEMS)
        for unit in (" bytes", "")
    )
    return Plot("Bytes of an entry", x, "bytes a subscription", memory), Plot("Time for an event", x, "ms", times)


EXPERIMENT = Experiment(
    "covering",
    "Is it better to drop covered filters, or to prune?",
    "Bittner 2008, section 8.4, figures 8.15 and 8.16",
    run,
)
