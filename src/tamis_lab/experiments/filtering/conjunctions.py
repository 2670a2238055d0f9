"""What does Boolean filtering cost where there is nothing Boolean?

A pure conjunction needs as many hits as it has predicates, so each candidate is a match, and its tree is not evaluated.
What remains is one look at where the tree stands.
"""

from __future__ import annotations

from tamis.workloads import Expressions
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "pure conjunctions")

_NAMES = (BOOLEAN, COUNTING)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure both on pure conjunctions, over their number."""
    workload = Expressions(predicate_count=6, comparison="=", match_share=0.002)
    field = field_of(*_NAMES, schema=workload.schema)
    texts = workload.subscriptions(scale.expression_counts[-1], seed)["condition"].to_pylist()
    events = workload.events(scale.most_events, seed + 1)
    rows: list[Row] = []
    for begin, end in zip((0, *scale.expression_counts), scale.expression_counts, strict=False):
        field.register(texts[begin:end], tell)
        times = field.event_s(events, scale, tell)
        rows.append({"subscriptions": end, **{name: 1e3 * taken for name, taken in times.items()}})
    more = rows[-1][BOOLEAN] - rows[-1][COUNTING]
    claim = judged("fraction-of-a-millisecond", more, at=f"at {rows[-1]['subscriptions']:,}")
    counts = tuple(row["subscriptions"] for row in rows)
    lines = tuple(Curve(name, counts, tuple(row[name] for row in rows)) for name in _NAMES)
    plot = Plot("Time to match an event, pure conjunctions", "subscriptions", "ms", lines)
    return Result("Conjunctions of six equalities; 0.2 % of them match an event.", (claim,), (plot,), tuple(rows))


EXPERIMENT = Experiment(
    "pure conjunctions",
    "What does Boolean filtering cost where there is nothing Boolean?",
    "Bittner 2008, section 4.5.1",
    run,
)
