"""How many events does each algorithm keep for a subscription?"""

from __future__ import annotations

import numpy as np

from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import VARIANTS, checked, exact, play, ranking_of
from tamis_lab.experiments.topk.sizes import sizes_of

judged = Judge("topk", "kept")


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Play a stream in random order through all nine algorithms, for several k."""
    sizes = sizes_of(scale)
    keys = np.random.default_rng(seed).random(sizes.count)
    rows: list[Row] = []
    for k in sizes.ks:
        expected = exact(keys, k, sizes.n)
        for name in VARIANTS:
            tell(f"{name}, k = {k}")
            played = play(ranking_of(name, k, sizes.n, sizes.buffer), keys, sizes.n)
            if name != "PA":
                checked(name, played, expected)
            rows.append({"k": k, "algorithm": name, "kept": played.size, "in the filter": played.filter_size})
    kept = {name: [row["kept"] for row in rows if row["algorithm"] == name] for name in VARIANTS}
    law = [k * (1 + sum(1 / each for each in range(k + 1, sizes.n + 1))) for k in sizes.ks]
    at = f"k = {sizes.ks[-1]}, n = {sizes.n:,}"
    claims = (
        judged(
            "strict-law", verdicts.geometric_mean([mine / theirs for mine, theirs in zip(kept["SA"], law, strict=True)])
        ),
        judged("relaxed-a-tenth-more", kept["RA"][-1] / kept["SA"][-1], at=at),
        judged(
            "probabilistic-fewer", [mine < theirs for mine, theirs in zip(kept["PA"][1:], kept["RA"][1:], strict=True)]
        ),
        judged("probabilistic-a-quarter", kept["RA"][-1] / kept["PA"][-1], at=at),
        judged(
            "filters-keep-fewer",
            [
                row["kept"] < kept[row["algorithm"][:2]][sizes.ks.index(row["k"])]
                for row in rows
                if len(row["algorithm"]) == 4
            ],
        ),
    )
    lines = tuple(Curve(name, sizes.ks, tuple(kept[name])) for name in ("SA", "RA", "PA", "SAPF", "RAPF"))
    lines += (Curve("k (1 + Hn - Hk)", sizes.ks, tuple(law), is_dashed=True),)
    plot = Plot("Events kept for a subscription", "k", "events", lines, is_log_x=True, is_log_y=True)
    setup = f"{sizes.count:,} events in random order, windows of {sizes.n:,}, a recent buffer of {sizes.buffer:,}."
    return Result(setup, claims, (plot,), tuple(rows))


EXPERIMENT = Experiment(
    "kept",
    "How many events does each algorithm keep for a subscription?",
    "Pripužić 2010, section 3.8, figure 3.12",
    run,
)
