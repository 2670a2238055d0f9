"""What does it cost if more subscriptions match?

More matches are more predicates that hold, and more subscriptions to be reported.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import COUNTING, PATHS, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "matches")

SHARES = (0.05, 0.2, 0.5)
_NAMES = (PATHS, COUNTING)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure the A-Tree and counting over the share of subscriptions that match."""
    rows: list[Row] = []
    for share in SHARES:
        workload = Expressions(predicate_count=scale.lengths[-1], match_share=share, shared_nodes=0.35)
        field = field_of(*_NAMES, schema=workload.schema)
        field.register(workload.subscriptions(scale.setting_count, seed)["condition"].to_pylist(), tell)
        times = field.event_s(workload.events(scale.most_events, seed + 1), scale, tell)
        achieved = workload.achieved(min(2_000, scale.setting_count), 50, seed)
        rows.append({"asked": share, "match share": achieved.match_share} | {name: 1 / times[name] for name in _NAMES})
    claims = tuple(judged("fewer-events", SHARES, [row[name] for row in rows], name=name) for name in _NAMES)
    lines = tuple(Curve(name, SHARES, tuple(row[name] for row in rows)) for name in _NAMES)
    return Result(
        f"AND of {scale.lengths[-1]} ranges, {scale.setting_count:,} subscriptions.",
        claims,
        (Plot("Events a second by matches", "share of subscriptions that match (SMPE)", "events a second", lines),),
        tuple(rows),
    )


EXPERIMENT = Experiment(
    "matches", "What does it cost if more subscriptions match?", "Jewel 2004, figures 5.30 and 5.31", run
)
