"""What do prunings save and cost, by the measure that orders them?

Four measures: accuracy (network load, in the paper's words), efficiency (throughput), memory, and accuracy with the
occurrence of predicates. On a line of five brokers, and on a single one. The text leaves two things open that move
the bends far: whether equals in the queue are told apart by the second measure too, and how deep in a tree
pruning for memory may begin. Both are measured as the text has them, and as the published bends suggest.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.pruning.measures import Measure
from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.subjects import BOOLEAN
from tamis_lab.experiments.routing.filter_times import central_s, network_s, spent_remark
from tamis_lab.experiments.routing.overlays import LabOverlay
from tamis_lab.experiments.routing.prunings import FINE, Pruning, bend
from tamis_lab.experiments.routing.sizes import BROKERS, sizes_of
from tamis_lab.experiments.routing.traffic import auctions
from tamis_lab.experiments.statements import Judge

judged = Judge("routing", "measures")

ACCURACY, EFFICIENCY, MEMORY, OCCURRENCE = NAMES = ("accuracy", "efficiency", "memory", "occurrence")
HITS_ALONE, LOWEST = "efficiency, first measure alone", "memory, lowest ANDs, first measure alone"
EXPLODING = (ACCURACY, EFFICIENCY, MEMORY)
TIES = (
    "Here equals in the queue are told apart by the second measure, as the text says. If the queue looks at the first "
    "measure alone, {}. That reading was chosen because it fits, and is not an independent confirmation."
)
OTHERS = {EFFICIENCY: HITS_ALONE, MEMORY: LOWEST}
"""The other reading of the text."""
TIMED = (*NAMES, HITS_ALONE)


@dataclass(frozen=True, slots=True)
class PruningCourse:
    """What one order of prunings came to."""

    loads: list[float]
    reductions: list[float]
    bend: float

    def at_bend(self, values: list[float]) -> float:
        """Return a value at the bend."""
        return values[FINE.index(self.bend)]

    def load(self, share: float) -> float:
        """Return the load after a share of all prunings."""
        return self.loads[FINE.index(share)]

    def added(self, share: float) -> float:
        """Return what prunings have added to the load by then, as a share of what it was."""
        return self.load(share) / max(self.loads[0], 1e-9) - 1


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Prune by each measure, and look at load, table and time on the way."""
    sizes = sizes_of(scale)
    traffic, line = auctions(sizes, seed), LabOverlay("line", BROKERS)
    prunings: dict[str, Pruning] = {name: Pruning(traffic, name) for name in NAMES}
    prunings[HITS_ALONE] = Pruning(traffic, EFFICIENCY, is_lexicographic=False)
    lowest = Measure(MEMORY, ("memory", "accuracy", "efficiency"), "lowest")
    prunings[LOWEST] = Pruning(traffic, lowest, is_lexicographic=False)
    courses: dict[str, PruningCourse] = {}
    for name, pruning in prunings.items():
        tell(f"loads by {name}")
        courses[name] = _course(pruning, line)
    rows: list[Row] = []
    befores: list[Row] = []
    for name in TIMED:
        tell(f"times by {name}")
        befores.append(_row(name, prunings[name], 0.0, line, scale))
        for share in sizes.shares[1:]:
            tell(f"times by {name}, {share:.0%} of the prunings")
            rows.append(_row(name, prunings[name], share, line, scale))
    # Before pruning they are one system, whatever the measure: all curves begin with its best time.
    best = {what: min(row[what] for row in befores) for what in ("ms", "ms, one broker")}
    rows = [row for before in befores for row in ({**before, **best}, *_of(rows, before["measure"]))]
    halves = {name: _course(_halved(name, scale, seed), line) for name in (*EXPLODING, HITS_ALONE)}
    by_operands = [_operands(name, scale, seed, line, tell) for name in OPERAND_DISTRIBUTIONS]
    setup = (
        f"Book auctions, {len(traffic.filters):,} subscriptions on a line of {BROKERS} brokers, {sizes.events:,} "
        "events from all of them. Load is the share of other brokers that filter an event; the table is that of "
        f"others' filters, by predicates. Time is what all brokers spend on an event, with {BOOLEAN} filtering; "
        f"without pruning it is the best of {len(befores)} measurements, and the same for all measures."
    )
    claims = (*_thesis(courses, rows, halves), *_over_operands(by_operands), *_paper(courses, rows, halves))
    return Result(setup, claims, _plots(courses, rows, sizes.shares), tuple(rows + _loads(courses) + by_operands))


def _course(pruning: Pruning, overlay: LabOverlay) -> PruningCourse:
    loads = pruning.loads(overlay)
    return PruningCourse(loads, [pruning.reduction(share) for share in FINE], bend(FINE, loads))


def _halved(name: str, scale: Scale, seed: int) -> Pruning:
    """Return half as many subscriptions, pruned by a measure: what changes tells what a smaller number does."""
    some = auctions(sizes_of(scale), seed, count=max(60, sizes_of(scale).subscriptions // 2))
    if name == HITS_ALONE:
        return Pruning(some, EFFICIENCY, is_lexicographic=False)
    return Pruning(some, name)


def _operands(distribution: str, scale: Scale, seed: int, line: LabOverlay, tell: Tell) -> Row:
    """Return where the load bends by accuracy, and what all prunings by occurrence make of it."""
    tell(f"operands {distribution}")
    workload = books(operand_distribution=distribution)
    some = auctions(sizes_of(scale), seed, workload, max(60, sizes_of(scale).subscriptions // 2))
    before, after = Pruning(some, OCCURRENCE).loads(line, (0.0, 1.0))
    bend_at = _course(Pruning(some, ACCURACY), line).bend
    return {"operands": distribution, "bend by accuracy": bend_at, "load": before, "load by occurrence": after}


def _over_operands(rows: list[Row]) -> tuple[Claim, ...]:
    even, *others = rows
    ends = ", ".join(f"{row['load by occurrence']:.2f} ({row['operands']})" for row in rows)
    return (
        judged("operands-hardly-matter", {row["operands"]: row["bend by accuracy"] for row in rows}),
        judged(
            "occurrence-load-rises-less-if-uniform",
            [row["load by occurrence"] - row["load"] > even["load by occurrence"] - even["load"] for row in others],
            details=ends,
        ),
    )


def _row(name: str, pruning: Pruning, share: float, line: LabOverlay, scale: Scale) -> Row:
    alone_s, matched = central_s(BOOLEAN, pruning, share, scale)
    return {
        "measure": name,
        "share of prunings": share,
        "table gone": pruning.reduction(share),
        "load": pruning.loads(line, [share])[0],
        "ms": 1e3 * network_s(BOOLEAN, pruning, share, line, scale),
        "ms, one broker": 1e3 * alone_s,
        "matched, one broker": matched,
    }


def _loads(courses: dict[str, PruningCourse]) -> list[Row]:
    return [
        {"measure": name, "share of prunings": share, "table gone": reduction, "load": load}
        for name, each in courses.items()
        for share, reduction, load in zip(FINE[::10], each.reductions[::10], each.loads[::10], strict=True)
    ]


# -- What the thesis says


def _thesis(courses: dict[str, PruningCourse], rows: list[Row], halves: dict[str, PruningCourse]) -> tuple[Claim, ...]:
    ends = {name: _ratios(rows, name)[-1] for name in NAMES}
    bests = {name: min(_ratios(rows, name)) for name in NAMES}
    early = {name: 1 / _near(rows, name, 0.35)["ms"] for name in TIMED}
    leads = [
        courses[MEMORY].reductions[at] - max(courses[name].reductions[at] for name in NAMES if name != MEMORY)
        for at in range(len(FINE))
    ]
    last = {name: _spent(rows, name, 1.0) for name in NAMES}
    rarely = courses[OCCURRENCE]
    return (
        judged(
            "load-unpruned",
            courses[ACCURACY].loads[0],
            remark=f"With half as many subscriptions it is {halves[ACCURACY].loads[0]:.2f}: there are "
            "fewer to a title.",
        ),
        *(claim for name in EXPLODING for claim in _bends(name, courses)),
        *_bends(HITS_ALONE, courses),
        *_bends(LOWEST, courses),
        *(
            judged(
                "load-after-all",
                courses[name].loads[-1],
                name=name,
                remark=f"With half as many subscriptions it is {halves[name].loads[-1]:.2f}: the fewer "
                "there are, the fewer titles are asked for behind every link. Published are 200,000.",
            )
            for name in EXPLODING
        ),
        judged("occurrence-load", rarely.loads[-1]),
        judged(
            "occurrence-bend",
            bend(FINE, rarely.loads, rarely.loads[-1]),
            remark=f"The load rises by {rarely.loads[-1] - rarely.loads[0]:.2f} altogether, of which "
            f"{rarely.load(0.5) - rarely.loads[0]:.2f} come with the first half of the prunings and "
            f"{rarely.loads[-1] - rarely.load(0.85):.2f} after 85%: no place stands out.",
        ),
        *(judged("gone-after-all", courses[name].reductions[-1], name=name) for name in NAMES),
        judged(
            "memory-smallest", [lead >= -0.005 for share, lead in zip(FINE, leads, strict=True) if 0 < share <= 0.7]
        ),
        *(
            judged("best-time", bests[name], name=name, remark=_spent(rows, name, _best_share(rows, name)))
            for name in (ACCURACY, EFFICIENCY, OCCURRENCE)
        ),
        judged("accuracy-best-place", _best_share(rows, ACCURACY), remark=_flat_remark(rows)),
        judged("accuracy-longer-after-all", ends[ACCURACY] / bests[ACCURACY], remark=last[ACCURACY]),
        judged("efficiency-longer-than-unpruned", ends[EFFICIENCY], remark=last[EFFICIENCY]),
        judged("memory-longer-than-unpruned", ends[MEMORY], remark=last[MEMORY]),
        judged("occurrence-time-after-all", ends[OCCURRENCE], remark=last[OCCURRENCE]),
        *(
            judged(
                "falls-fastest",
                early,
                name=name,
                remark=TIES.format(
                    f"it is {verdicts.rounded(early[HITS_ALONE])} instead of "
                    f"{verdicts.rounded(early[EFFICIENCY])} events"
                )
                if name == EFFICIENCY
                else _spent(rows, name, 0.35),
            )
            for name in (EFFICIENCY, HITS_ALONE)
        ),
    )


def _bends(name: str, courses: dict[str, PruningCourse]) -> tuple[Claim, Claim]:
    mine, other = courses[name], courses[OTHERS.get(name, name)]
    readings = f"it is after {other.bend:.2f} of the prunings", f"it is {other.at_bend(other.reductions):.2f}"
    ties = [TIES.format(reading) if name in OTHERS else "" for reading in readings]
    return (
        judged("load-takes-off", mine.bend, name=name, remark=ties[0]),
        judged("gone-by-then", mine.at_bend(mine.reductions), name=name, remark=ties[1]),
    )


# -- What the paper says


def _paper(courses: dict[str, PruningCourse], rows: list[Row], halves: dict[str, PruningCourse]) -> tuple[Claim, ...]:
    network, throughput = courses[ACCURACY], courses[HITS_ALONE]
    alone = {name: {row["share of prunings"]: row["ms, one broker"] for row in _of(rows, name)} for name in TIMED}
    early = min(alone[ACCURACY], key=lambda share: abs(share - 0.35))
    late = [share for share in alone[ACCURACY] if 0.43 < share < 1]
    later = [alone[ACCURACY][share] <= alone[HITS_ALONE][share] for share in late]
    first_alone = alone[HITS_ALONE][early] / alone[ACCURACY][early]

    def slower(*others: str) -> list[bool]:
        return [
            alone[MEMORY][share] >= max(alone[name][share] for name in others)
            for share in alone[MEMORY]
            if 0 < share < 1
        ]

    return (
        judged("network-adds-at-half", network.added(0.5), remark=_added_remark(network, halves[ACCURACY], 0.5)),
        judged(
            "network-adds-at-bend",
            network.added(network.bend),
            remark=_added_remark(network, halves[ACCURACY], network.bend),
        ),
        judged(
            "throughput-adds-at-bend",
            throughput.added(throughput.bend),
            remark=_added_remark(throughput, halves[HITS_ALONE], throughput.bend),
        ),
        judged(
            "network-gone-at-best",
            _near(rows, ACCURACY, _best_share(rows, ACCURACY))["table gone"],
            remark=_flat_remark(rows),
        ),
        judged(
            "network-best-time",
            min(_ratios(rows, ACCURACY)),
            remark=_spent(rows, ACCURACY, _best_share(rows, ACCURACY)),
        ),
        judged(
            "throughput-best-time",
            min(_ratios(rows, EFFICIENCY)),
            remark=_spent(rows, EFFICIENCY, _best_share(rows, EFFICIENCY)),
        ),
        judged(
            "throughput-leads-alone",
            alone[EFFICIENCY][early] / alone[ACCURACY][early],
            remark=TIES.format(f"it is {first_alone:.2f} times"),
        ),
        judged(
            "network-faster-alone",
            [alone[ACCURACY][share] <= alone[EFFICIENCY][share] for share in late],
            remark=TIES.format(f"it is so in {sum(later)} of {len(later)} places"),
        ),
        judged(
            "memory-slowest-alone",
            slower(ACCURACY, EFFICIENCY),
            remark=TIES.format(f"efficiency makes it so in {sum(slower(ACCURACY, HITS_ALONE))} places"),
        ),
    )


def _added_remark(whole: PruningCourse, half: PruningCourse, share: float) -> str:
    """Say when events are added, and whether it is because there are fewer subscriptions than published."""
    is_so = half.added(share) > whole.added(share)
    return (
        f"{whole.added(0.1):+.0%} come with the first tenth of the prunings already. With half as many subscriptions "
        f"it is {half.added(share):+.0%} at the same place, so that there are fewer of them than the published 200,000 "
        f"{'explains at least a part' if is_so else 'does not explain it: we do not know what does'}."
    )


def _flat_remark(rows: list[Row]) -> str:
    """Say how much longer than the best the time is at the published bend of accuracy."""
    there, best = _near(rows, ACCURACY, 0.75), _near(rows, ACCURACY, _best_share(rows, ACCURACY))
    return (
        f"The best is looked for among few places. At {there['share of prunings']:.0%} of the prunings, with "
        f"{there['table gone']:.2f} of the table gone, the time is {there['ms'] / best['ms']:.2f} times the best."
    )


def _spent(rows: list[Row], name: str, share: float) -> str:
    """Say what brokers spend on an event without pruning, and after a share of the prunings."""
    ends = _of(rows, name)[0], _near(rows, name, share)
    return spent_remark(BROKERS, *((row["ms"], row["load"]) for row in ends))


# -- Rows


def _of(rows: list[Row], name: str) -> list[Row]:
    return [row for row in rows if row["measure"] == name]


def _ratios(rows: list[Row], name: str) -> list[float]:
    """Return the times by a measure, for the time without pruning."""
    mine = _of(rows, name)
    return [row["ms"] / mine[0]["ms"] for row in mine]


def _near(rows: list[Row], name: str, share: float) -> Row:
    return min(_of(rows, name), key=lambda row: abs(row["share of prunings"] - share))


def _best_share(rows: list[Row], name: str) -> float:
    return float(min(_of(rows, name), key=lambda row: row["ms"])["share of prunings"])


def _plots(courses: dict[str, PruningCourse], rows: list[Row], shares: tuple[float, ...]) -> tuple[Plot, ...]:
    x = "share of all prunings"
    loads = [Curve(name, FINE, tuple(each.loads), is_dashed=name not in NAMES) for name, each in courses.items()]
    tables = [Curve(name, FINE, tuple(courses[name].reductions)) for name in NAMES]
    over = [Curve(name, tuple(courses[name].reductions), tuple(courses[name].loads)) for name in NAMES]
    times, alone, matched = (
        [
            Curve(name, shares, tuple(row[what] for row in _of(rows, name)), is_dashed=name not in NAMES)
            for name in TIMED
        ]
        for what in ("ms", "ms, one broker", "matched, one broker")
    )
    return (
        Plot("Network load", x, "share of other brokers", tuple(loads)),
        Plot("Predicates gone from others' filters", x, "share", tuple(tables)),
        Plot("Network load over what is gone", "share of predicates gone", "share of other brokers", tuple(over)),
        Plot("Time for an event, all brokers", x, "ms", tuple(times)),
        Plot("Time for an event, one broker alone", x, "ms", tuple(alone)),
        Plot("Filters that match, one broker alone", x, "share of filters", tuple(matched)),
    )


EXPERIMENT = Experiment(
    "measures",
    "What do prunings save and cost, by the measure that orders them?",
    "Bittner 2008, section 8.3.1; Bittner & Hinze 2006, section 4",
    run,
)
