"""Does pruning do the same in larger networks?

Lines and stars are the extremes: on a line an event passes all brokers between its publisher and the farthest who wants
it, in a star only the centre. There are as many subscriptions in all, so the more brokers, the fewer at each.
"""

from __future__ import annotations

from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import BOOLEAN
from tamis_lab.experiments.routing.filter_times import network_s, spent_remark
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import FINE, Pruning
from tamis_lab.experiments.routing.sizes import sizes_of
from tamis_lab.experiments.routing.traffic import auctions
from tamis_lab.experiments.statements import Judge

judged = Judge("routing", "brokers")

MEASURE = "occurrence"
LINE, STAR = TOPOLOGIES = ("line", "star")
TIMED = 2
"""So many brokers of a kind are timed: ends and middles of a line, the centre and leaves of a star."""
PUBLISHED = 12_500
"""Subscriptions in all networks of the source."""
Loads = dict[tuple[str, int], list[float]]


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Compute the loads of lines and stars of all sizes, and time some of their brokers."""
    sizes = sizes_of(scale)
    count = min(sizes.subscriptions, PUBLISHED)
    pruning = Pruning(auctions(sizes, seed, count=count), MEASURE)
    loads: Loads = {}
    rows: list[Row] = []
    for topology in TOPOLOGIES:
        for broker_count in sizes.brokers:
            tell(f"{topology} of {broker_count}")
            overlay = LabOverlay(topology, broker_count)
            loads[topology, broker_count] = pruning.loads(overlay)
            rows += [
                {
                    "topology": topology,
                    "brokers": broker_count,
                    "share of prunings": share,
                    "table gone": pruning.reduction(share),
                    "load": loads[topology, broker_count][FINE.index(share)],
                    "ms": 1e3 * network_s(BOOLEAN, pruning, share, overlay, scale, timed=TIMED),
                }
                for share in sizes.few_shares
            ]
    setup = (
        f"Book auctions, {count:,} subscriptions in lines and stars of {sizes.brokers[0]} to "
        f"{sizes.brokers[-1]} brokers, pruned by {MEASURE}. Of brokers with as many neighbours up to {TIMED + 1} are "
        "timed, and stand for the others."
    )
    gone = [pruning.reduction(share) for share in FINE]
    return Result(setup, _claims(rows, loads, sizes.brokers), _plots(rows, loads, gone), tuple(rows))


def _claims(rows: list[Row], loads: Loads, counts: tuple[int, ...]) -> tuple[Claim, ...]:
    on_line = [loads[LINE, count] for count in counts]
    apart = max(max(each) - min(each) for each in zip(*on_line, strict=True))
    cut_offs = {key: _best(rows, *key) for key in loads}
    rises = {key: each[-1] - each[0] for key, each in loads.items()}
    bests = {key: min(_ratios(rows, *key)) for key in loads}
    after = [_ratios(rows, STAR, count)[-1] / bests[STAR, count] for count in counts]
    most = counts[-1]
    farther = [_at_end(rows, STAR, count)["load"] / _fastest(rows, STAR, count)["load"] for count in counts]
    return (
        judged("load-of-a-line", on_line[0][0]),
        judged("lines-alike", apart),
        judged("load-of-stars-falls", counts, [loads[STAR, count][0] for count in counts]),
        *(
            judged(
                "best-place",
                cut_offs[topology, most],
                topology=topology,
                at=f"{most} brokers",
                remark=_spent(_fastest(rows, topology, most), rows),
            )
            for topology in TOPOLOGIES
        ),
        judged(
            "best-place-alike",
            {f"{one} of {two}": at for (one, two), at in cut_offs.items()},
            remark=_flat_remark(rows, cut_offs),
        ),
        *(
            judged("load-added", rises[topology, most], topology=topology, at=f"{most} brokers")
            for topology in TOPOLOGIES
        ),
        *(
            judged(
                "best-time",
                bests[topology, count],
                topology=topology,
                count=count,
                remark=_spent(_fastest(rows, topology, count), rows),
            )
            for topology in TOPOLOGIES
            for count in (counts[0], most)
        ),
        *(
            judged(
                "longer-after-all",
                _ratios(rows, topology, most)[-1] / bests[topology, most],
                topology=topology,
                at=f"{most} brokers",
                remark=_spent(_at_end(rows, topology, most), rows),
            )
            for topology in TOPOLOGIES
        ),
        judged(
            "longer-with-more-brokers",
            counts,
            after,
            remark="What is counted: after all prunings an event gets to "
            f"{verdicts.rounded(farther[0])} times as many other brokers as at the best in a star of "
            f"{counts[0]}, and to {verdicts.rounded(farther[-1])} times as many in a star of {most}. That "
            "the times of single networks vary by more than one size differs from the next is a guess.",
        ),
    )


def _best(rows: list[Row], topology: str, count: int) -> float:
    """Return how much of the table is gone where the time of a network is best, of those that are pruned."""
    return float(_fastest(rows, topology, count)["table gone"])


def _flat_remark(rows: list[Row], cut_offs: dict[tuple[str, int], float]) -> str:
    """Say how little is lost, in the network that differs most, at the place that is best for most networks."""
    usual = sorted(cut_offs.values())[len(cut_offs) // 2]
    topology, count = max(cut_offs, key=lambda key: abs(cut_offs[key] - usual))
    there = next(row for row in _of(rows, topology, count) if row["table gone"] == usual)
    slower = there["ms"] / _fastest(rows, topology, count)["ms"]
    return (
        f"The best is looked for among few places. In the {topology} of {count}, the time at {usual:.2f}, which is "
        f"best for most, is {slower:.2f} times the best."
    )


def _fastest(rows: list[Row], topology: str, count: int) -> Row:
    pruned = [row for row in _of(rows, topology, count) if row["share of prunings"]]
    return min(pruned, key=lambda row: row["ms"])


def _at_end(rows: list[Row], topology: str, count: int) -> Row:
    return _of(rows, topology, count)[-1]


def _of(rows: list[Row], topology: str, count: int) -> list[Row]:
    return [row for row in rows if (row["topology"], row["brokers"]) == (topology, count)]


def _spent(row: Row, rows: list[Row]) -> str:
    """Say what brokers spend on an event without pruning, and what in a row."""
    ends = _of(rows, row["topology"], row["brokers"])[0], row
    return spent_remark(row["brokers"], *((each["ms"], each["load"]) for each in ends))


def _ratios(rows: list[Row], topology: str, count: int) -> list[float]:
    """Return the times in a network, for the time without pruning."""
    mine = [row["ms"] for row in _of(rows, topology, count)]
    return [each / mine[0] for each in mine]


def _plots(rows: list[Row], loads: Loads, gone: list[float]) -> tuple[Plot, ...]:
    plots = []
    for topology in TOPOLOGIES:
        counts = [count for kind, count in loads if kind == topology]
        some = counts[:: max(1, len(counts) // 3)]
        lines = tuple(Curve(f"{count} brokers", tuple(gone), tuple(loads[topology, count])) for count in some)
        places = tuple(dict.fromkeys(row["table gone"] for row in rows))
        times = tuple(Curve(f"{count} brokers", places, tuple(_ratios(rows, topology, count))) for count in some)
        x = "share of predicates gone"
        plots += [
            Plot(f"Network load, {topology}", x, "share of other brokers", lines),
            Plot(f"Time for an event, {topology}", x, "compared with no pruning", times),
        ]
    return tuple(plots)


EXPERIMENT = Experiment("brokers", "Does pruning do the same in larger networks?", "Bittner 2008, section 8.3.3", run)
