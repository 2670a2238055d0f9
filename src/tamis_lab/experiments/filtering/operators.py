"""How do the filters of the A-Tree compare on AND, OR and XOR?

With AND and OR all three filters work; with XOR the thesis has no true-value paths, while ours write it out for that
one. The rates of the mixed load are lower, says the thesis, also because it shares less: so both loads are measured at
the same sharing.
"""

from __future__ import annotations

from tamis.workloads import AND_ONLY, AND_OR, AND_OR_XOR, Expressions
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import A_TREES, GENERAL, PATHS, ZERO, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "operators")

LOADS = {"AND": AND_ONLY, "AND, OR": AND_OR, "AND, OR, XOR": AND_OR_XOR}
_COUNTED = 8


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure the three filters on three sets of operators, for short and long expressions."""
    lengths = (scale.lengths[0], scale.lengths[-1])
    rows = [_row(load, length, scale, seed, tell) for load in LOADS for length in lengths]
    lines = []
    for name in A_TREES:
        for length in lengths:
            rates = tuple(row[name] for row in rows if row["length"] == length)
            lines.append(Curve(f"{name}, L = {length}", (1, 2, 3), rates, is_dashed=length == lengths[0], kin=name))
    setup = (
        f"{scale.setting_count:,} expressions, `>` over 20 attributes, half of the nodes shared, 13 % of them match an "
        "event."
    )
    names = tuple(LOADS)
    plot = Plot("Events a second by operators", "", "events a second", tuple(lines), is_log_y=True, x_names=names)
    by_load = {load: [row for row in rows if row["operators"] == load] for load in LOADS}
    return Result(setup, _claims(by_load), (plot,), tuple(rows))


def _claims(by_load: dict[str, list[Row]]) -> tuple[Claim, ...]:
    plain, and_or, mixed = by_load.values()

    def ratio(one: str, other: str, rows: list[Row]) -> float:
        return verdicts.geometric_mean([row[one] / row[other] for row in rows])

    slowed = [after[ZERO] / before[ZERO] for before, after in zip(plain, mixed, strict=True)]
    return (
        judged("paths-ahead-of-zero", ratio(PATHS, ZERO, and_or)),
        judged("paths-ahead-of-general", ratio(PATHS, GENERAL, and_or)),
        judged("zero-ahead-of-general", ratio(ZERO, GENERAL, plain + and_or + mixed)),
        judged("mixed-slower", verdicts.geometric_mean(slowed)),
        judged(
            "touches",
            [row[f"touches {GENERAL}"] >= row[f"touches {ZERO}"] == row[f"touches {PATHS}"] for row in plain + and_or],
        ),
    )


def _row(load: str, length: int, scale: Scale, seed: int, tell: Tell) -> Row:
    workload = Expressions(predicate_count=length, connectives=LOADS[load], match_share=0.13, shared_nodes=0.5)
    field = field_of(*A_TREES, schema=workload.schema)
    field.register(workload.subscriptions(scale.setting_count, seed)["condition"].to_pylist(), tell)
    events = workload.events(scale.most_events, seed + 1)
    times = field.event_s(events, scale, tell)
    row: Row = {"operators": load, "length": length} | {name: 1 / taken for name, taken in times.items()}
    for name in A_TREES:
        before = field[name].engine.statistics()["touches"]
        field[name].pairs(events.slice(0, _COUNTED))
        row[f"touches {name}"] = field[name].engine.statistics()["touches"] - before
    return row


EXPERIMENT = Experiment(
    "operators",
    "How do the filters of the A-Tree compare on AND, OR and XOR?",
    "Jewel 2004, figures 5.13 to 5.22",
    run,
)
