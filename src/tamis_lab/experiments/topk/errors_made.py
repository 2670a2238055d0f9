"""How often is probabilistic pruning wrong, and when?

An error is an event that is told wrongly, too late, or not at all; the rate is by the number of events that should be
told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.topk.guard import Guarded
from tamis.topk.probabilistic import Probabilistic
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import exact, play
from tamis_lab.experiments.topk.sizes import SIGMA, TopkSizes, sizes_of

if TYPE_CHECKING:
    from tamis_lab.experiments.topk.points import Points

judged = Judge("topk", "errors")

SHARES = (1.0, 0.75, 0.5, 0.25, 0.1)


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Give PA fewer and fewer candidates; then give it streams that are not in random order."""
    sizes = sizes_of(scale)
    chance = np.random.default_rng(seed)
    rows: list[Row] = []
    for share in SHARES:
        for k in sizes.ks:
            tell(f"{share:.0%} of the candidates, k = {k}")
            keys = chance.random(sizes.count)
            ranking = Probabilistic(k, sizes.n, SIGMA)
            ranking.limit = round(share * ranking.limit)
            rows.append({"share": share, "k": k, "stream": "random", "error": _error(ranking, keys, k, sizes)})
    rates = {share: float(np.mean([row["error"] for row in rows if row["share"] == share])) for share in SHARES}
    ordered = {
        "worse and worse": np.arange(sizes.count, dtype=float),
        "walk": np.cumsum(chance.normal(size=sizes.count)),
    }
    k = sizes.ks[len(sizes.ks) // 2]
    noticed = []
    for name, keys in ordered.items():
        tell(name)
        error = _error(Probabilistic(k, sizes.n, SIGMA), keys, k, sizes)
        rows.append({"share": 1.0, "k": k, "stream": name, "error": error})
        guarded = Guarded(k, sizes.n, float(sizes.n), SIGMA, 0.2)
        for place, key in enumerate(keys.tolist()):
            guarded.see(float(place), key)
        noticed.append(guarded.report is not None)
    worst = max(row["error"] for row in rows if row["stream"] != "random")
    claims = (
        *(
            judged(
                "practically-no-errors",
                [row["error"] <= SIGMA for row in rows if row["share"] == share and row["stream"] == "random"],
                share=share,
            )
            for share in (1.0, 0.75, 0.5)
        ),
        judged("many-out-of-order", max(worst, 1e-9) / SIGMA),
        judged("order-noticed", noticed),
    )
    plot = Plot(
        "Errors of PA with fewer candidates than the limit",
        "share of the limit",
        "errors for each event delivered",
        (Curve("mean of all k", SHARES[::-1], tuple(max(rates[share], 1e-6) for share in SHARES[::-1])),),
        is_log_y=True,
    )
    setup = f"{sizes.count:,} events, windows of {sizes.n:,}, k = {', '.join(map(str, sizes.ks))}, an error of {SIGMA}."
    return Result(setup, claims, (plot,), tuple(rows))


def _error(ranking: Probabilistic, keys: Points, k: int, sizes: TopkSizes) -> float:
    entered, expected = play(ranking, keys, sizes.n).entered, exact(keys, k, sizes.n)
    wrong = [place for place in entered.keys() | expected.keys() if entered.get(place) != expected.get(place)]
    return len(wrong) / len(expected)


EXPERIMENT = Experiment(
    "errors",
    "How often is probabilistic pruning wrong, and when?",
    "Pripužić 2010, sections 3.4.2 and 3.8, figure 3.15",
    run,
)
