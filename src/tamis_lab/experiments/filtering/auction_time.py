"""Is Boolean filtering faster than counting conjunctions?

The thesis' main experiment: book auctions, subscriptions of all three classes, up to half a million of them. Every
conjunction of the normal form is a subscription of its own to counting, four for each original on average. The lists of
the thesis lay in memory as they grew; ours ascend unless they are shuffled, so both are measured.
"""

from __future__ import annotations

from tamis.workloads.distributions import OPERAND_DISTRIBUTIONS
from tamis_lab.experiments.base import Claim, Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.knees import judged_knee, judged_ratio
from tamis_lab.experiments.filtering.subjects import (
    BOOLEAN,
    BOOLEAN_ORDERED,
    BOOLEAN_SHUFFLED,
    COUNTING,
    COUNTING_SHUFFLED,
    field_of,
)
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "auction time")

KNEES = {BOOLEAN: 200_000, COUNTING: 50_000}
"""Where the source sees them, all classes together."""
ALL = (BOOLEAN, BOOLEAN_ORDERED, BOOLEAN_SHUFFLED, COUNTING, COUNTING_SHUFFLED)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure both over the number of subscriptions, and for five distributions of operands."""
    rows = _sweep(scale, seed, tell)
    by_distribution = [_distribution(name, scale, seed, tell) for name in OPERAND_DISTRIBUTIONS]
    counts = tuple(row["subscriptions"] for row in rows)
    lines = tuple(Curve(name, counts, tuple(row[name] for row in rows)) for name in ALL)
    setup = (
        "Book auctions, all three classes in equal shares, operands uniform unless said otherwise; milliseconds of "
        "processor time an event, the predicate phase included."
    )
    plot = Plot("Time to match an event", "subscriptions", "ms", lines)
    return Result(setup, _claims(rows, by_distribution), (plot,), tuple(rows + by_distribution))


def _claims(rows: list[Row], by_distribution: list[Row]) -> tuple[Claim, ...]:
    first, last = rows[0], rows[-1]
    at = f"at {last['subscriptions']:,}"
    ratios = [row[BOOLEAN] / row[COUNTING] for row in rows]
    counts = [row["subscriptions"] for row in rows]
    times = {name: [row[name] for row in rows] for name in KNEES}
    return (
        judged("time", ratios[-1], at=at),
        judged("time-shuffled", last[BOOLEAN_SHUFFLED] / last[COUNTING_SHUFFLED], at=at),
        judged(
            "more-subscriptions",
            ratios[-1] / ratios[0],
            at=f"from {first['subscriptions']:,} to {last['subscriptions']:,}",
        ),
        *(
            judged("operands-hardly-matter", {row["distribution"]: row[name] for row in by_distribution}, name=name)
            for name in (BOOLEAN, COUNTING)
        ),
        *(judged_knee(judged, counts, times[name], published, name) for name, published in KNEES.items()),
        judged_ratio(judged, counts, times[COUNTING], times[BOOLEAN], "all classes"),
    )


def _sweep(scale: Scale, seed: int, tell: Tell) -> list[Row]:
    workload = books()
    field = field_of(*ALL, schema=workload.schema)
    texts = workload.subscriptions(scale.auction_counts[-1], seed)["condition"].to_pylist()
    events = workload.events(scale.most_events, seed + 1)
    rows: list[Row] = []
    for begin, end in zip((0, *scale.auction_counts), scale.auction_counts, strict=False):
        field.register(texts[begin:end], tell)
        times = field.event_s(events, scale, tell)
        rows.append({"subscriptions": end, **{name: 1e3 * taken for name, taken in times.items()}})
    return rows


def _distribution(name: str, scale: Scale, seed: int, tell: Tell) -> Row:
    workload = books(operand_distribution=name)
    count = scale.auction_counts[len(scale.auction_counts) // 2]
    field = field_of(BOOLEAN, COUNTING, schema=workload.schema)
    field.register(workload.subscriptions(count, seed)["condition"].to_pylist(), tell)
    times = field.event_s(workload.events(scale.most_events, seed + 1), scale, tell)
    return {"distribution": name, "subscriptions": count} | {each: 1e3 * taken for each, taken in times.items()}


EXPERIMENT = Experiment(
    "auction time", "Is Boolean filtering faster than counting conjunctions?", "Bittner 2008, section 5.7", run
)
