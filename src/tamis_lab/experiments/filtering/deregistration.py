"""What does it cost to remove a subscription?

Boolean filtering is said to do it as cheaply as counting, without a table from subscriptions to predicates. The lists
of popular predicates are as long as there are subscriptions, so whoever searches them pays for all.
"""

from __future__ import annotations

from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.books import books
from tamis_lab.experiments.filtering.subjects import BOOLEAN, COUNTING, PATHS, field_of
from tamis_lab.experiments.statements import Judge

judged = Judge("filtering", "deregistration")

_REMOVED_SHARE = 0.01
_FEWEST_REMOVED = 10
_NAMES = (BOOLEAN, COUNTING, PATHS)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Measure removals from a small and from a large set."""
    workload = books()
    texts = workload.subscriptions(scale.auction_counts[-1], seed)["condition"].to_pylist()
    rows: list[Row] = []
    for count in (scale.auction_counts[0], scale.auction_counts[-1]):
        field = field_of(*_NAMES, schema=workload.schema)
        field.register(texts[:count], tell)
        field.removals_per_s(_FEWEST_REMOVED, seed)  # compiles
        rates = field.removals_per_s(max(_FEWEST_REMOVED, int(_REMOVED_SHARE * count)), seed + 1)
        rows.append({"subscriptions": count, **{name: 1e6 / rate for name, rate in rates.items()}})
    few, many = (row["subscriptions"] for row in rows)
    claims = [judged("boolean-to-counting", rows[-1][BOOLEAN] / rows[-1][COUNTING], at=f"at {many:,}")]
    claims += [
        judged("does-not-grow", rows[-1][name] / rows[0][name], name=name, at=f"from {few:,} to {many:,}")
        for name in (BOOLEAN, COUNTING)
    ]
    lines = tuple(Curve(name, (few, many), tuple(row[name] for row in rows)) for name in _NAMES)
    setup = "Book auctions; 1 % of the subscriptions are removed, and everything is ready to match afterwards."
    plot = Plot("Time to remove a subscription", "subscriptions", "µs", lines, is_log_x=True)
    return Result(setup, tuple(claims), (plot,), tuple(rows))


EXPERIMENT = Experiment(
    "deregistration", "What does it cost to remove a subscription?", "Bittner 2008, section 4.4", run
)
