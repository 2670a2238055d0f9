"""How much is an index worth at all?

Whoever asks every subscription needs twice the time for twice as many. The published table has that to the digit. Ours
is the reference evaluator, in Python: the constant is another, the law is the same.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import COUNTING, PATHS, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "brute force")

_LENGTH = 6


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure brute force over the number of subscriptions, and what counting and the A-Tree do beside it."""
    workload = Expressions(predicate_count=_LENGTH, comparison="=", match_share=0.005)
    events = workload.events(scale.most_events, seed + 1)
    texts = workload.subscriptions(max(scale.brute_counts[-1], scale.setting_count), seed)["condition"].to_pylist()
    rows: list[Row] = []
    for count in scale.brute_counts:
        field = field_of("naive", schema=workload.schema)
        field.register(texts[:count], tell)
        rate = 1 / field.event_s(events.slice(0, 8), scale, tell)["naive"]
        rows.append({"subscriptions": count, "events": rate, "asked": rate * count})
    fast = field_of(COUNTING, PATHS, schema=workload.schema)
    fast.register(texts[: scale.setting_count], tell)
    times = fast.event_s(events, scale, tell)
    brute_s = scale.setting_count / rows[-1]["asked"]
    setting = f"at {scale.setting_count:,}, brute force computed from its law"
    claims = (
        judged("constant", {f"{row['subscriptions']:,}": row["asked"] for row in rows}),
        judged("counting-gains", brute_s / times[COUNTING], at=setting),
        judged("atree-gains", brute_s / times[PATHS], at=setting),
    )
    counts = tuple(row["subscriptions"] for row in rows)
    lines = (
        Curve("naive", counts, tuple(row["events"] for row in rows)),
        Curve(
            "a constant by subscriptions", counts, tuple(rows[0]["asked"] / count for count in counts), is_dashed=True
        ),
    )
    plot = Plot("Brute force", "subscriptions", "events a second", lines, is_log_x=True, is_log_y=True)
    return Result(f"AND of {_LENGTH} equalities.", claims, (plot,), tuple(rows))


EXPERIMENT = Experiment("brute force", "How much is an index worth at all?", "Jewel 2004, tables 5.3 and 5.4", run)
