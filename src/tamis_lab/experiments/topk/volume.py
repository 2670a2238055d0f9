"""How many events does a subscriber receive, and what does that depend on?"""

from __future__ import annotations

import math

import numpy as np

from tamis.topk.closed_form import entering_times
from tamis.topk.windows import TimeWindow
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import exact
from tamis_lab.experiments.topk.points import datasets, distances, uniform
from tamis_lab.experiments.topk.sizes import sizes_of

judged = Judge("topk", "volume")

K = 9
RATES = (1, 2, 4)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Count what ranked subscriptions and Boolean ones with a radius are told of the same events."""
    sizes = sizes_of(scale)
    k = min(K, sizes.ks[-1])
    points = uniform(sizes.count, seed)
    centres = uniform(sizes.queries, seed + 1)
    # The radius at which a Boolean subscription is told about as much: the average score of the k-th best.
    radius = float(np.mean([np.partition(distances(points[: sizes.n], each), k - 1)[k - 1] for each in centres]))
    rows: list[Row] = []
    for name, drawn in datasets().items():
        tell(name)
        events, asking = drawn(sizes.count, seed), drawn(sizes.queries, seed + 1)
        ranked = [len(exact(distances(events, each), k, sizes.n)) for each in asking]
        row: Row = {"points": name, "ranked": float(np.mean(ranked))}
        for factor in (0.8, 1.0, 1.25):
            received = [int((distances(events, each) <= factor * radius).sum()) for each in asking]
            row[f"Boolean, {factor} of the radius"] = float(np.mean(received))
        rows.append(row)
    boolean = {row["points"]: max(row["Boolean, 1.0 of the radius"], 0.1) for row in rows}
    even = rows[0]
    by_rate = [_by_rate(rate, k, radius, sizes.count, sizes.n, seed, tell) for rate in RATES]
    endless = exact(np.random.default_rng(seed).random(sizes.count), 1, 10 * sizes.count)
    claims = (
        judged("ranked-alike", {row["points"]: row["ranked"] for row in rows}),
        judged("boolean-depends", max(boolean.values()) / min(boolean.values())),
        judged(
            "radius", even["Boolean, 1.25 of the radius"] / max(even["Boolean, 0.8 of the radius"], 0.1) / (1.25 / 0.8)
        ),
        judged("rate-ranked", {f"{rate} times": ranked for rate, (ranked, _) in zip(RATES, by_rate, strict=True)}),
        judged("rate-boolean", by_rate[-1][1] / by_rate[0][1]),
        judged("records", float(len(endless)), published=math.log(sizes.count) + 0.58),
    )
    lines = (
        Curve("ranked", RATES, tuple(ranked for ranked, _ in by_rate)),
        Curve("Boolean", RATES, tuple(received for _, received in by_rate)),
    )
    plot = Plot("What a subscriber receives", "events a second, relative", "events delivered", lines)
    setup = (
        f"{sizes.queries} subscriptions, k = {k}, windows of {sizes.n:,}, {sizes.count:,} events, radius {radius:.3f}."
    )
    return Result(setup, claims, (plot,), tuple(rows))


def _by_rate(rate: int, k: int, radius: float, count: int, n: int, seed: int, tell: Tell) -> tuple[float, float]:
    """Return what ranked and Boolean subscriptions are told in a fixed time, at a rate."""
    tell(f"{rate} times as many events")
    total = count // RATES[-1] * rate
    times = np.sort(np.random.default_rng(seed).random(total) * count)
    window = TimeWindow(float(n))
    points = uniform(total, seed + 2)
    ranked, boolean = [], []
    for centre in uniform(10, seed + 1):
        keys = distances(points, centre)
        ranked.append(np.isfinite(entering_times(keys, times, k, window, until=float(count))).sum())
        boolean.append((keys <= 2 * radius).sum())
    return float(np.mean(ranked)), float(np.mean(boolean))


EXPERIMENT = Experiment(
    "volume",
    "How many events does a subscriber receive, and what does that depend on?",
    "Pripužić 2010, sections 2.4 and 4.4",
    run,
)
