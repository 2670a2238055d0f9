"""What is an index over the subscriptions worth?"""

from __future__ import annotations

from typing import Any

from tamis.topk.index.choice import INDEXES
from tamis.topk.processor import TopK
from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.measuring import cpu_s, undisturbed
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.points import as_events, datasets, nearest
from tamis_lab.experiments.topk.sizes import sizes_of

judged = Judge("topk", "indexes")

K = 3
_WARM, _TIMED = 300, 200
"""An index is chosen with the first events that come alone, so so many are not timed."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Time single events over many subscriptions to the nearest, by index and by where the points lie."""
    sizes = sizes_of(scale)
    n = min(sizes.n, 2_000)
    rows: list[Row] = []
    for dataset, points in datasets().items():
        events = as_events(points(n + _WARM + _TIMED, seed))
        rankeds = [nearest(centre, K, n) for centre in points(sizes.indexed, seed + 1)]
        deliveries_by: dict[str, Any] = {}
        for index in INDEXES:
            tell(f"{dataset}, {index}")
            processor = TopK("block", index=index)
            processor.add_many(list(enumerate(rankeds)))
            processor.process_batch(events[:n], [float(at) for at in range(n)])
            for at in range(n, n + _WARM):
                processor.process(events[at], float(at), at)
            deliveries: list[Any] = []

            def taken(
                processor: TopK = processor, deliveries: list[Any] = deliveries, events: list[Any] = events
            ) -> None:
                for at in range(n + _WARM, n + _WARM + _TIMED):
                    deliveries.extend(processor.process(events[at], float(at), at))

            with undisturbed():
                elapsed_s = cpu_s(taken)
            deliveries_by[index] = deliveries
            if deliveries != deliveries_by["columns"]:
                raise DisagreementError(index, "columns", 0)
            rows.append({"points": dataset, "index": index, "event_us": elapsed_s / _TIMED * 1e6})
    times = {(row["points"], row["index"]): row["event_us"] for row in rows}
    gains = {dataset: times[dataset, "columns"] / times[dataset, "grid"] for dataset in datasets()}
    elsewhere = verdicts.geometric_mean([gain for dataset, gain in gains.items() if dataset != "uniform"])
    claims = (
        judged("grid-gains", gains["uniform"]),
        judged("uniform-gains-more", gains["uniform"] / elsewhere),
    )
    places = tuple(range(1, len(gains) + 1))
    lines = tuple(Curve(index, places, tuple(times[dataset, index] for dataset in gains)) for index in INDEXES)
    plot = Plot("Time for an event", "points", "microseconds", lines, x_names=tuple(gains))
    setup = f"{sizes.indexed:,} subscriptions to the {K} nearest of {n:,} points in four dimensions; single events."
    return Result(setup, claims, (plot,), tuple(rows))


EXPERIMENT = Experiment(
    "indexes",
    "What is an index over the subscriptions worth?",
    "Pripužić 2010, sections 3.6.1 and 3.8, figure 3.13",
    run,
)
