"""How do the A-Tree, counting and Gryphon compare on conjunctions of equalities?

The thesis' main comparison: insertions, events, memory and deletions over the number of subscriptions, for expressions
of several lengths. All competitors were written by its author, and so are ours.

Of the nodes of a subscription, 35 to 40 % are shared in the source, which counts all nodes in its text and inner nodes
in its table of parameters. Equalities that match at all must ask for common values, so nearly all of our leaves are
shared, and all nodes cannot be shared that little: the knob is turned until 35 to 40 % of the inner nodes are, at the
largest number of subscriptions, where verdicts are found. Among fewer of them fewer nodes are shared: every row says
what was reached, of both.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis.workloads.expression_trees import shared_shares
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import A_TREES, COUNTING, GENERAL, GRYPHON, PATHS, ZERO, field_of
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept

judged = Judge("filtering", "conjunctive load")

GRYPHON_AHEAD, LEVEL = 500_000, 1_000_000
"""Beyond so many subscriptions Gryphon is said to be faster than counting, and from so many on the A-Tree as fast."""
_AS_FAST = 1.5

NAMES = (COUNTING, GRYPHON, *A_TREES)
SHARED = (0.35, 0.40)
"""How many of the inner nodes are shared, as published: the least and the most."""
_STEPS = 8
_MOST_TREES = 100_000
"""Sharing is found out on so many subscriptions at most."""
_REMOVED = 2_000
_MEASURED = {
    "insertions": ("insertions a second", True),
    "events": ("events a second", True),
    "bytes": ("bytes a subscription", False),
    "deletions": ("deletions a second", True),
}
"""What is measured, its unit, and whether it is drawn over a logarithmic axis."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure everybody over the number of subscriptions, for each length."""
    rows = [row for some in swept(_sweep, scale.lengths, scale, seed, tell) for row in some]
    length = scale.lengths[-1]
    mine = [row for row in rows if row["length"] == length]
    setting = f"L = {length}, N = {mine[-1]['subscriptions']:,}"
    claims = (
        *_insertion_claims(mine, setting),
        *_event_claims(mine[0], mine[-1], setting),
        *_crossing_claims(mine),
        *_memory_claims(mine, setting),
    )
    counts = tuple(row["subscriptions"] for row in mine)
    plots = tuple(
        Plot(
            f"{what.capitalize()}, expressions of {length} predicates",
            "subscriptions",
            label,
            tuple(Curve(name, counts, tuple(row[f"{what} {name}"] for row in mine)) for name in NAMES),
            is_log_x=True,
            is_log_y=is_log,
        )
        for what, (label, is_log) in _MEASURED.items()
    )
    reached = f"{mine[-1]['shared inner nodes']:.0%} of the inner nodes, {mine[-1]['shared nodes']:.0%} of all"
    setup = (
        f"AND of equalities over 20 attributes; {reached} shared ({setting}); 0.5 % of the subscriptions match an "
        "event. Parsing is not counted, the predicate phase is. Memory is all there is, with the index of predicates."
    )
    return Result(setup, claims, plots, tuple(rows))


def load(length: int, count: int, seed: int) -> Expressions:
    """Return a load of which so many inner nodes are shared as published, among so many subscriptions.

    The more nodes are to be shared the more are, so the knob is found by halving. Where subscriptions are too few for
    it, the load comes as near as it can.

    >>> workload = load(length=6, count=2_000, seed=1)
    >>> SHARED[0] <= shared_shares(workload.trees(2_000, 1))[1] <= SHARED[1]
    True
    """
    node_count = 2 * length - 1
    least, most = 1 / node_count, (node_count - 1) / node_count  # of the nodes of those that share any
    for _ in range(_STEPS):
        knob = (least + most) / 2
        workload = Expressions(
            predicate_count=length, comparison="=", match_share=0.005, overlap=0.95, shared_nodes=0.95 * knob
        )
        _, reached = shared_shares(workload.trees(min(count, _MOST_TREES), seed))
        if SHARED[0] <= reached <= SHARED[1]:
            break
        least, most = (knob, most) if reached < SHARED[0] else (least, knob)
    return workload


def _sweep(length: int, scale: Scale, seed: int, tell: Tell) -> list[Row]:
    tell(f"a load of which {SHARED[0]:.0%} to {SHARED[1]:.0%} of the inner nodes are shared, {length} predicates")
    workload = load(length, scale.expression_counts[-1], seed)
    trees = workload.trees(min(scale.expression_counts[-1], _MOST_TREES), seed)
    texts = workload.subscriptions(scale.expression_counts[-1], seed)["condition"].to_pylist()
    events = workload.events(scale.most_events, seed + 1)
    warm = field_of(*NAMES, schema=workload.schema)  # what is compiled here is not counted there
    warm.register(texts[:100], tell)
    warm.removals_per_s(10, seed)
    field = field_of(*NAMES, schema=workload.schema)
    rows: list[Row] = []
    for begin, end in zip((0, *scale.expression_counts), scale.expression_counts, strict=False):
        field.register(texts[begin:end], tell)
        times = field.event_s(events, scale, tell)
        row: Row = {"length": length, "subscriptions": end, "sharing measured among": min(end, len(trees))}
        row["shared nodes"], row["shared inner nodes"] = shared_shares(trees[:end])
        for name in NAMES:
            row[f"insertions {name}"] = field[name].insertions_per_s
            row[f"events {name}"] = 1 / times[name]
            row[f"bytes {name}"] = field[name].engine.memory() / end
        rates = field.removals_per_s(min(_REMOVED, end // 20), seed)
        rows.append(row | {f"deletions {name}": rate for name, rate in rates.items()})
    return rows


def _insertion_claims(mine: list[Row], setting: str) -> tuple[Claim, ...]:
    last = mine[-1]
    return (
        judged(
            "insertions-slow-down", [row["subscriptions"] for row in mine], [row[f"insertions {PATHS}"] for row in mine]
        ),
        judged("insertion-alike", {name: last[f"insertions {name}"] for name in A_TREES}, setting=setting),
        judged(
            "insertion-order",
            {name: last[f"insertions {name}"] for name in (GRYPHON, COUNTING, PATHS)},
            setting=setting,
        ),
        judged("deletion-faster", last[f"deletions {PATHS}"] / last[f"insertions {PATHS}"], setting=setting),
        judged("deletion-alike", {name: last[f"deletions {name}"] for name in A_TREES}, setting=setting),
    )


def _event_claims(first: Row, last: Row, setting: str) -> tuple[Claim, ...]:
    def slowed(name: str) -> float:
        return float(first[f"events {name}"] / last[f"events {name}"])

    few = f"events a second, N = {first['subscriptions']:,}"
    return (
        judged(
            "few-subscriptions-order", {name: first[f"events {name}"] for name in (COUNTING, GRYPHON, PATHS)}, few=few
        ),
        judged("filters-order", {name: last[f"events {name}"] for name in A_TREES}, setting=setting),
        judged("atree-slowed-less", slowed(PATHS) / slowed(COUNTING), at=setting),
        judged("gryphon-slowed-less", slowed(GRYPHON) / slowed(COUNTING), at=setting),
    )


def _crossing_claims(mine: list[Row]) -> tuple[Claim, ...]:
    """Say where curves of events a second cross; a run that ends before cannot say it."""

    def by_size(name: str, many: list[Row]) -> tuple[dict[int, float], str]:
        ratios = {row["subscriptions"]: row[f"events {name}"] / row[f"events {COUNTING}"] for row in many or mine}
        return ratios, ", ".join(f"{ratio:.2f} at {count:,}" for count, ratio in ratios.items())

    beyond = [row for row in mine if row["subscriptions"] > GRYPHON_AHEAD]
    level = [row for row in mine if row["subscriptions"] >= LEVEL]
    gryphon, gryphon_told = by_size(GRYPHON, beyond)
    atree, atree_told = by_size(PATHS, level)
    return (
        judged("gryphon-passes-counting", [gryphon[row["subscriptions"]] > 1 for row in beyond], details=gryphon_told),
        judged(
            "atree-level-with-counting",
            [1 / _AS_FAST <= atree[row["subscriptions"]] <= _AS_FAST for row in level],
            details=atree_told,
        ),
    )


def _memory_claims(mine: list[Row], setting: str) -> tuple[Claim, ...]:
    first, last = mine[0], mine[-1]

    def grown(name: str) -> float:
        """How many times as much memory the last size takes as the first."""
        return float(last[f"bytes {name}"] / first[f"bytes {name}"] * last["subscriptions"] / first["subscriptions"])

    return (
        judged(
            "gryphon-memory-rises",
            grown(GRYPHON) / grown(PATHS),
            at=f"from {first['subscriptions']:,} to {last['subscriptions']:,}",
        ),
        judged("memory-order", {name: last[f"bytes {name}"] for name in (PATHS, GRYPHON, COUNTING)}, setting=setting),
        judged("paths-less-memory", last[f"bytes {PATHS}"] / last[f"bytes {ZERO}"], at=setting),
        judged("general-memory-alike", {name: last[f"bytes {name}"] for name in (ZERO, GENERAL)}, setting=setting),
    )


EXPERIMENT = Experiment(
    "conjunctive load",
    "How do the A-Tree, counting and Gryphon compare on conjunctions of equalities?",
    "Jewel 2004, section 5.4",
    run,
)
