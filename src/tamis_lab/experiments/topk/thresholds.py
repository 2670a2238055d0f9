"""How far does the interest of a subscription reach, over k and the window?"""

from __future__ import annotations

import numpy as np

from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import checked, exact, play, ranking_of
from tamis_lab.experiments.topk.points import distances, uniform
from tamis_lab.experiments.topk.sizes import DIMENSIONS, TopkSizes, sizes_of

judged = Judge("topk", "thresholds")

BY_RANK = "RAPF, k-th of the buffer"
MEASURED = ("PA", "RAPF", BY_RANK, "score")
"""RAPF has two thresholds: its filter's own (section 3.6.1), and the k-th best of its buffer, which chapter 4 has."""
_CENTRES = 3
_SCORE, _AT_K, _AT_N = 0.09, 9, 40_000
"""The average distance of the ninth nearest of 40,000 uniform points, as published."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Average the thresholds of PA and RAPF, and the score of the k-th best, over a few centres."""
    sizes = sizes_of(scale)
    windows = (sizes.n // 4, sizes.n // 2, sizes.n)
    middle = 9
    rows: list[Row] = [_row(k, sizes.n, sizes, seed, tell) for k in sizes.ks]
    rows += [_row(middle, n, sizes, seed, tell) for n in windows[:-1]]
    over_k = {what: [row[what] for row in rows if row["n"] == sizes.n] for what in MEASURED}
    by_n = sorted((row for row in rows if row["k"] == middle), key=lambda row: row["n"])
    # Of n uniform points a ball with k of them has a volume of about k / n.
    expected = _SCORE * (_AT_N / sizes.n) ** (1 / DIMENSIONS)
    claims = (
        judged(
            "probabilistic-lower", [mine < theirs for mine, theirs in zip(over_k["PA"], over_k[BY_RANK], strict=True)]
        ),
        judged(
            "probabilistic-lower-than-filter",
            [mine < theirs for mine, theirs in zip(over_k["PA"], over_k["RAPF"], strict=True)],
        ),
        judged("rises-with-k", sizes.ks, over_k["PA"]),
        judged("falls-with-window", [row["n"] for row in by_n], [row["PA"] for row in by_n]),
        judged("filter-independent-of-window", {f"n = {row['n']:,}": row[BY_RANK] for row in by_n}),
        judged("filter-rises-with-k", sizes.ks, over_k[BY_RANK]),
        judged("kth-rises", sizes.ks, over_k["score"]),
        judged(
            "ninth-nearest",
            by_n[-1]["score"],
            published=expected,
            at=f"with {sizes.n:,} points, for which the published value is scaled",
        ),
    )
    lines = tuple(Curve(what, sizes.ks, tuple(over_k[what])) for what in MEASURED)
    plot = Plot("How far the interest reaches", "k", "distance", lines, is_log_x=True)
    setup = f"{_CENTRES} centres, uniform points in four dimensions, a recent buffer of {sizes.buffer:,}."
    return Result(setup, claims, (plot,), tuple(rows))


def _row(k: int, n: int, sizes: TopkSizes, seed: int, tell: Tell) -> Row:
    tell(f"k = {k}, n = {n:,}")
    points = uniform(min(sizes.count, 6 * n), seed)
    samples: dict[str, list[float]] = {what: [] for what in MEASURED}
    for centre in 0.25 + uniform(_CENTRES, seed + 1) / 2:
        keys = distances(points, centre)
        samples["PA"].append(play(ranking_of("PA", k, n, sizes.buffer), keys, n).threshold)
        filtered = play(ranking_of("RAPF", k, n, sizes.buffer), keys, n)
        samples["RAPF"].append(checked("RAPF", filtered, exact(keys, k, n)).threshold)
        by_rank = play(ranking_of("RAPF", k, n, sizes.buffer, shared="rank"), keys, n)
        samples[BY_RANK].append(checked(BY_RANK, by_rank, exact(keys, k, n)).threshold)
        kth = [np.partition(keys[at : at + n], k - 1)[k - 1] for at in range(0, n, n // 8)]
        samples["score"].append(float(np.mean(kth)))
    return {"k": k, "n": n, **{what: float(np.mean(values)) for what, values in samples.items()}}


EXPERIMENT = Experiment(
    "thresholds",
    "How far does the interest of a subscription reach, over k and the window?",
    "Pripužić 2010, section 4.4",
    run,
)
