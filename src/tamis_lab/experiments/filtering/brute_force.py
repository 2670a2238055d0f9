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
LENGTHS = (6, 10, 14)
ASKED = {6: 254_000, 10: 109_000, 14: 58_500}
"""Subscriptions that the source asks a second, by their predicates."""
BYTES = 1_535
"""Of one with 14 predicates, in the source."""


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
    longer = [_longer(length, scale, seed, tell) for length in LENGTHS]
    fast = field_of(COUNTING, PATHS, schema=workload.schema)
    fast.register(texts[: scale.setting_count], tell)
    times = fast.event_s(events, scale, tell)
    brute_s = scale.setting_count / rows[-1]["asked"]
    setting = f"at {scale.setting_count:,}, brute force computed from its law"
    claims = (
        judged("constant", {f"{row['subscriptions']:,}": row["asked"] for row in rows}),
        judged("counting-gains", brute_s / times[COUNTING], at=setting),
        judged("atree-gains", brute_s / times[PATHS], at=setting),
        judged("length", longer[0]["asked"] / longer[-1]["asked"], published=ASKED[LENGTHS[0]] / ASKED[LENGTHS[-1]]),
        judged("memory-in-proportion", longer[-1]["bytes of all"] / longer[-1]["bytes of half"]),
        judged("memory", longer[-1]["bytes of all"] / longer[-1]["subscriptions"]),
    )
    counts = tuple(row["subscriptions"] for row in rows)
    lines = (
        Curve("naive", counts, tuple(row["events"] for row in rows)),
        Curve(
            "a constant by subscriptions", counts, tuple(rows[0]["asked"] / count for count in counts), is_dashed=True
        ),
    )
    plot = Plot("Brute force", "subscriptions", "events a second", lines, is_log_x=True, is_log_y=True)
    return Result(f"AND of {_LENGTH} equalities.", claims, (plot,), tuple(rows + longer))


def _longer(length: int, scale: Scale, seed: int, tell: Tell) -> Row:
    """Measure one number of subscriptions of a length, and the memory of half of them beside."""
    workload = Expressions(predicate_count=length, comparison="=", match_share=0.005)
    count = 2 * (scale.brute_counts[-1] // 2)
    texts = workload.subscriptions(count, seed)["condition"].to_pylist()
    field = field_of("naive", schema=workload.schema)
    field.register(texts[: count // 2], tell)
    half = field["naive"].engine.memory()
    field.register(texts[count // 2 :], tell)
    rate = 1 / field.event_s(workload.events(8, seed + 1), scale, tell)["naive"]
    return {
        "length": length,
        "subscriptions": count,
        "events": rate,
        "asked": rate * count,
        "bytes of half": half,
        "bytes of all": field["naive"].engine.memory(),
    }


EXPERIMENT = Experiment("brute force", "How much is an index worth at all?", "Jewel 2004, tables 5.3 and 5.4", run)
