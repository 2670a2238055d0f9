"""How do the filters of the A-Tree compare on AND, OR and XOR?

With AND and OR all three filters work; with XOR the thesis has no true-value paths, while ours write it out for that
one. The rates of the mixed load are lower, says the thesis, also because it shares less: so both loads are measured at
the same sharing, and the mixed one at its own too, beside the conjunctions of equalities that the thesis compares it
with.
"""

from __future__ import annotations

from tamis.workloads import AND_ONLY, AND_OR, AND_OR_XOR, Expressions
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering import conjunctive_load
from tamis_lab.experiments.filtering.subjects import A_TREES, GENERAL, PATHS, ZERO, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "operators")

LOADS = {"AND": AND_ONLY, "AND, OR": AND_OR, "AND, OR, XOR": AND_OR_XOR}
MIXED, CONJUNCTIVE = "AND, OR, XOR, as published", "AND of equalities, as published"
OWN_SHARING, OWN_MATCHES = 0.175, 0.20
"""Of the mixed load, in the middle of 15 to 20 % and of 15 to 25 %."""
_OWN = (GENERAL, ZERO)
_COUNTED = 8


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure the three filters on three sets of operators, for short and long expressions."""
    lengths = (scale.lengths[0], scale.lengths[-1])
    rows = [
        _row(load, length, _load(LOADS[load], length, 0.13, 0.5), A_TREES, scale, seed, tell)
        for load in LOADS
        for length in lengths
    ]
    own = [row for length in lengths for row in _as_published(length, scale, seed, tell)]
    lines = []
    for name in A_TREES:
        for length in lengths:
            rates = tuple(row[name] for row in rows if row["length"] == length)
            lines.append(Curve(f"{name}, L = {length}", (1, 2, 3), rates, is_dashed=length == lengths[0], kin=name))
    setup = (
        f"{scale.setting_count:,} expressions, `>` over 20 attributes, half of the nodes shared, 13 % of them match an "
        f"event. As published, {OWN_SHARING:.1%} are shared and {OWN_MATCHES:.0%} match with XOR, beside the load of "
        "the main comparison. Rows say which shares were reached; memory has all there is, with the index of "
        "predicates."
    )
    names = tuple(LOADS)
    plot = Plot("Events a second by operators", "", "events a second", tuple(lines), is_log_y=True, x_names=names)
    by_load = {load: [row for row in rows if row["operators"] == load] for load in LOADS}
    taken = tuple(
        Curve(
            f"{name}, L = {length}",
            (1, 2, 3),
            tuple(row[f"bytes {name}"] for row in rows if row["length"] == length),
            is_dashed=length == lengths[0],
            kin=name,
        )
        for name in A_TREES
        for length in lengths
    )
    memory = Plot("Memory by operators", "", "bytes a subscription", taken, x_names=names)
    return Result(setup, _claims(by_load, own), (plot, memory), tuple(rows + own))


def _claims(by_load: dict[str, list[Row]], own: list[Row]) -> tuple[Claim, ...]:
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
        judged(
            "mixed-slower-as-published",
            verdicts.geometric_mean(
                [mixed[ZERO] / equal[ZERO] for mixed, equal in zip(own[::2], own[1::2], strict=True)]
            ),
            at=f"{own[0]['shared nodes']:.0%} shared and {own[0]['match share']:.0%} matching with XOR",
        ),
        judged(
            "paths-less-memory",
            verdicts.geometric_mean([row[f"bytes {PATHS}"] / row[f"bytes {ZERO}"] for row in and_or]),
        ),
        *(
            judged("general-memory-alike", {each: rows[-1][f"bytes {each}"] for each in (GENERAL, ZERO)}, name=name)
            for name, rows in (("AND, OR", and_or), ("AND, OR, XOR", mixed))
        ),
    )


def _load(connectives: tuple[float, float, float], length: int, match_share: float, shared_nodes: float) -> Expressions:
    return Expressions(
        predicate_count=length, connectives=connectives, match_share=match_share, shared_nodes=shared_nodes
    )


def _as_published(length: int, scale: Scale, seed: int, tell: Tell) -> list[Row]:
    """Measure the mixed load as it was published, and what it was compared with."""
    mixed = _load(AND_OR_XOR, length, OWN_MATCHES, OWN_SHARING)
    equal = conjunctive_load.load(length, scale.setting_count, seed)
    return [
        _row(name, length, workload, _OWN, scale, seed, tell)
        for name, workload in ((MIXED, mixed), (CONJUNCTIVE, equal))
    ]


def _row(
    load: str, length: int, workload: Expressions, names: tuple[str, ...], scale: Scale, seed: int, tell: Tell
) -> Row:
    field = field_of(*names, schema=workload.schema)
    field.register(workload.subscriptions(scale.setting_count, seed)["condition"].to_pylist(), tell)
    events = workload.events(scale.most_events, seed + 1)
    times = field.event_s(events, scale, tell)
    achieved = workload.achieved(min(2_000, scale.setting_count), 50, seed)
    row: Row = {"operators": load, "length": length} | {name: 1 / taken for name, taken in times.items()}
    row |= {"match share": achieved.match_share, "shared nodes": achieved.shared_nodes}
    for name in names:
        row[f"bytes {name}"] = field[name].engine.memory() / field[name].count
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
