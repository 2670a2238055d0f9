"""What does a grid over thresholds spare, on points of even and of uneven density, beside Boolean subscriptions?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.language.expressions import Compare, Literal
from tamis.topk.processor import TopK
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.errors import DisagreementError
from tamis_lab.experiments.measuring import cpu_s, undisturbed
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import VARIANTS
from tamis_lab.experiments.topk.points import as_events, clustered, distances, nearest, uniform
from tamis_lab.experiments.topk.sizes import sizes_of

if TYPE_CHECKING:
    from tamis_lab.experiments.topk.points import Points

judged = Judge("topk", "grids")

KS = (1, 3, 9)
NAMES = ("PA", "SAPF", "RAPF", "SASF", "RASF")
BOOLEAN = "Boolean"
INDEXES = {"without": "auto", "grid": "grid"}
DATASETS = {"uniform": uniform, "clustered": clustered}


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Time events once windows are full, for all algorithms with a threshold, without an index and with a grid."""
    sizes = sizes_of(scale)
    n = max(100, sizes.n // 4)
    rows: list[Row] = []
    times: dict[tuple[str, str, str], list[float]] = {}
    with undisturbed():
        for dataset, draw in DATASETS.items():
            points, centres = draw(n + n // 2, seed), draw(sizes.queries, seed + 1)
            for k in KS:
                for name in (*NAMES, BOOLEAN):
                    deliveries = {}
                    # Conditions have the matcher's own index.
                    for index in INDEXES if name != BOOLEAN else ("without",):
                        tell(f"{dataset}, {name}, k = {k}, {index}")
                        processor = _processor(name, INDEXES[index], centres, points[:n], k)
                        event_us, deliveries[index] = _timed(processor, points, n)
                        times.setdefault((dataset, name, index), []).append(event_us)
                        rows.append({
                            "dataset": dataset, "algorithm": name, "k": k, "index": index,
                            "event_us": event_us, "told": len(deliveries[index]),
                        })  # fmt: skip
                    if name not in ("PA", BOOLEAN) and deliveries["grid"] != deliveries["without"]:
                        raise DisagreementError(f"{name} with a grid", f"{name} without", 0)
    gains = {dataset: _gain(times, dataset) for dataset in DATASETS}
    last = {key: values[-1] for key, values in times.items()}
    at = f"k = {KS[-1]}"
    claims = (
        judged("grid-gains", gains["uniform"], at=at),
        judged("grid-gains-less", gains["uniform"] / gains["clustered"], at=at),
        judged("filtered-slower", last["uniform", "RAPF", "without"] / last["uniform", "PA", "without"], at=at),
        judged("filtered-slower-with-grid", last["uniform", "RAPF", "grid"] / last["uniform", "PA", "grid"], at=at),
        judged("boolean-alike", last["uniform", BOOLEAN, "without"] / last["uniform", "PA", "without"], at=at),
    )
    plots = tuple(
        Plot(
            f"Time for an event, {dataset} points", "k", "microseconds",
            tuple(
                Curve(name if name == BOOLEAN else f"{name}, {index}", KS, tuple(values))
                for (which, name, index), values in times.items()
                if which == dataset and name in ("PA", "RAPF", "SASF", BOOLEAN)
            ),
            is_log_x=True, is_log_y=True,
        )
        for dataset in DATASETS
    )  # fmt: skip
    setup = f"{sizes.queries} subscriptions, windows of {n:,}, a recent buffer of {max(2, n // 20)}, four dimensions."
    return Result(setup, claims, plots, tuple(rows))


def _gain(times: dict[tuple[str, str, str], list[float]], dataset: str) -> float:
    """Return how many times as fast events are with a grid, on average, for the greatest k."""
    ratios = [times[dataset, name, "without"][-1] / times[dataset, name, "grid"][-1] for name in NAMES]
    return float(np.mean(ratios))


def _timed(processor: TopK, points: Points, n: int) -> tuple[float, set[tuple[object, object]]]:
    """Fill the windows; return how many microseconds an event takes then, and what is told."""
    events = as_events(points)
    for at, event in enumerate(events[:n]):
        processor.process(event, float(at), at)
    deliveries: set[tuple[object, object]] = set()

    def rest() -> None:
        for at, event in enumerate(events[n:], n):
            deliveries.update((each.subscription, each.event) for each in processor.process(event, float(at), at))

    return 1e6 * cpu_s(rest) / (len(events) - n), deliveries


def _processor(name: str, index: str, centres: Points, window: Points, k: int) -> TopK:
    rankeds = [nearest(centre, k, len(window)) for centre in centres]
    if name == BOOLEAN:
        processor = TopK()
        for place, (ranked, centre) in enumerate(zip(rankeds, centres, strict=True)):
            radius = float(np.partition(distances(window, centre), k - 1)[k - 1])
            processor.add(place, Compare("<=", ranked.score, Literal(radius)))
        return processor
    algorithm, filter_ = VARIANTS[name]
    if filter_ is None:
        processor = TopK(algorithm, guard=False, index=index)
    else:
        processor = TopK(algorithm, filter=filter_, buffer=max(2, len(window) // 20), index=index)
    processor.add_many(list(enumerate(rankeds)))
    return processor


EXPERIMENT = Experiment(
    "grids",
    "What does a grid over thresholds spare, on points of even and of uneven density, beside Boolean subscriptions?",
    "Pripužić 2010, figures 3.13, 5.11 and 5.12",
    run,
)
