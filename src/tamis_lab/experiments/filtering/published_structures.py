"""Does it matter that our structures are better than the published ones?

Jewel's tree has nodes of two operands, arranged by dynamic programming, and his Gryphon takes equalities only, in one
fixed order; ours has nodes of any number, and takes anything in the best order. So what was said of the A-Tree is
judged for both trees here. The rest of the field stands beside them: counters in slices, access by several equalities,
and the tree asked from its roots.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.workloads import AND_OR, Expressions
from tamis_lab.experiments.base import Claim, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.base import Curve as Line
from tamis_lab.experiments.filtering import conjunctive_load
from tamis_lab.experiments.filtering.subjects import (
    CLUSTER,
    COUNTING,
    GENERAL,
    GRYPHON,
    GRYPHON_PUBLISHED,
    PAIRS,
    PAIRS_GENERAL,
    PAIRS_PRINTED,
    PAIRS_TOP_DOWN,
    PAIRS_ZERO,
    PATHS,
    SEVERAL,
    SLICED,
    ZERO,
    field_of,
)
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.sweeping import swept

if TYPE_CHECKING:
    from tamis.workloads import Workload

judged = Judge("filtering", "published structures")

EQUALITIES, RANGES = "AND of equalities", "AND, OR of ranges"
TREES = {"any number": (PATHS, ZERO, GENERAL), "two": (PAIRS, PAIRS_ZERO, PAIRS_GENERAL)}
"""The three filters, by how many operands a node has."""
_OWN_GRYPHON = {"any number": GRYPHON, "two": GRYPHON_PUBLISHED}
_ALL_TREES = (PATHS, ZERO, GENERAL, PAIRS, PAIRS_ZERO, PAIRS_GENERAL, PAIRS_PRINTED, PAIRS_TOP_DOWN)
_FIELD = {
    EQUALITIES: (COUNTING, SLICED, CLUSTER, SEVERAL, GRYPHON, GRYPHON_PUBLISHED, *_ALL_TREES),
    RANGES: (COUNTING, *_ALL_TREES),
}
_REMOVED = 500


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure the field on conjunctions of equalities, and the trees on AND and OR of ranges."""
    equal, ranges = swept(_row, _FIELD, scale, seed, tell)
    claims = [claim for operands in TREES for claim in _claims(operands, equal, ranges)]
    claims.append(judged("bottom-up", equal[f"events {PAIRS}"] / equal[f"events {PAIRS_TOP_DOWN}"]))
    plots = tuple(
        Plot(
            f"{what.capitalize()}, {row['load']}",
            "",
            what,
            (Line(what, tuple(range(1, len(names) + 1)), tuple(row[f"{what} {name}"] for name in names)),),
            is_log_y=what == "events",
            x_names=names,
        )
        for row, names in ((equal, _FIELD[EQUALITIES]), (ranges, _ALL_TREES))
        for what in ("events", "nodes")
        if what == "events" or row is ranges
    )
    setup = (
        f"{scale.setting_count:,} expressions of {scale.lengths[-1]} predicates; {PAIRS_PRINTED} arranges as the "
        "program is printed, and finds nodes among parents. Events and insertions are a second."
    )
    return Result(setup, tuple(claims), plots, (equal, ranges))


def _claims(operands: str, equal: Row, ranges: Row) -> tuple[Claim, ...]:
    paths, zero, general = TREES[operands]
    gryphon = _OWN_GRYPHON[operands]
    return (
        judged(
            "filters-order",
            {name: equal[f"events {which}"] for name, which in zip(TREES["any number"], TREES[operands], strict=True)},
            operands=operands,
        ),
        judged("paths-ahead-of-zero", ranges[f"events {paths}"] / ranges[f"events {zero}"], operands=operands),
        judged("below-counting", equal[f"events {paths}"] / equal[f"events {COUNTING}"], operands=operands),
        judged("below-gryphon", equal[f"events {paths}"] / equal[f"events {gryphon}"], operands=operands),
        judged(
            "memory-order",
            {
                "atree": equal[f"bytes {paths}"],
                "gryphon": equal[f"bytes {gryphon}"],
                COUNTING: equal[f"bytes {COUNTING}"],
            },
            operands=operands,
        ),
        judged("paths-less-memory", equal[f"bytes {paths}"] / equal[f"bytes {zero}"], operands=operands),
        judged("general-memory-alike", {name: equal[f"bytes {name}"] for name in (zero, general)}, operands=operands),
        judged("deletion-faster", equal[f"deletions {paths}"] / equal[f"insertions {paths}"], operands=operands),
    )


def _row(load: str, scale: Scale, seed: int, tell: Tell) -> Row:
    length, count = scale.lengths[-1], scale.setting_count
    workload: Workload = (
        conjunctive_load.load(length, count, seed)
        if load == EQUALITIES
        else Expressions(predicate_count=length, connectives=AND_OR, match_share=0.13, shared_nodes=0.5)
    )
    names = _FIELD[load]
    texts = workload.subscriptions(count, seed)["condition"].to_pylist()
    warm = field_of(*names, schema=workload.schema)  # what is compiled here is not counted there
    warm.register(texts[:50], tell)
    warm.removals_per_s(10, seed)
    field = field_of(*names, schema=workload.schema)
    field.register(texts, tell)
    times = field.event_s(workload.events(scale.most_events, seed + 1), scale, tell)
    row: Row = {"load": load}
    for name in names:
        engine = field[name].engine
        statistics = engine.statistics()
        row[f"events {name}"] = 1 / times[name]
        row[f"insertions {name}"] = field[name].insertions_per_s
        row[f"bytes {name}"] = engine.memory() / count
        if "inner_nodes" in statistics:
            row[f"nodes {name}"] = statistics["inner_nodes"] / count
        if "look_ups" in statistics:
            row[f"look-ups {name}"] = statistics["look_ups"] / count
            row[f"parents read {name}"] = statistics["parents_read"] / count
    rates = field.removals_per_s(min(_REMOVED, count // 4), seed)
    return row | {f"deletions {name}": rate for name, rate in rates.items()}


EXPERIMENT = Experiment(
    "published structures",
    "Does it matter that our structures are better than the published ones?",
    "Jewel 2004, section 5.4",
    run,
)
