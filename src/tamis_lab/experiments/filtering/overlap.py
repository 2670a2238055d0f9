"""What is it worth that subscriptions have parts in common?

The more they share, the fewer nodes there are to be made, kept and told.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import PATHS, field_of
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept

judged = Judge("filtering", "overlap")

SHARED = (0.1, 0.25, 0.4, 0.6, 0.8)
_MEASURED = {
    "events": "events a second",
    "insertions": "insertions a second",
    "bytes": "bytes a subscription",
    "nodes": "nodes a subscription",
}
"""What is measured, and its unit."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure the A-Tree over the share of nodes that subscriptions have in common."""
    rows = swept(_row, SHARED, scale, seed, tell)
    claims = tuple(judged(f"shared-{what}", SHARED, [row[what] for row in rows]) for what in _MEASURED)
    plots = tuple(
        Plot(
            unit.capitalize(),
            "share of nodes in common (SNPS)",
            unit,
            (Curve(PATHS, SHARED, tuple(row[what] for row in rows)),),
        )
        for what, unit in _MEASURED.items()
    )
    setup = (
        f"AND of {scale.lengths[-1]} ranges, {scale.setting_count:,} subscriptions, 38 % match an event; true-value "
        "paths. Memory includes the index of predicates."
    )
    return Result(setup, claims, plots, tuple(rows))


def _row(shared: float, scale: Scale, seed: int, tell: Tell) -> Row:
    workload = Expressions(predicate_count=scale.lengths[-1], match_share=0.38, shared_nodes=shared, pool_size=200)
    field = field_of(PATHS, schema=workload.schema)
    field.register(workload.subscriptions(scale.setting_count, seed)["condition"].to_pylist(), tell)
    times = field.event_s(workload.events(scale.most_events, seed + 1), scale, tell)
    subject = field[PATHS]
    statistics = subject.engine.statistics()
    achieved = workload.achieved(min(2_000, scale.setting_count), 8, seed)
    return {
        "shared": shared,
        "shared as measured": achieved.shared_nodes,
        "events": 1 / times[PATHS],
        "insertions": subject.insertions_per_s,
        "bytes": subject.engine.memory() / subject.count,
        "nodes": (statistics["leaves"] + statistics["inner_nodes"]) / subject.count,
    }


EXPERIMENT = Experiment(
    "overlap", "What is it worth that subscriptions have parts in common?", "Jewel 2004, figures 5.26 to 5.29", run
)
