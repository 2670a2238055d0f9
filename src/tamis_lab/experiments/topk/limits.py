"""How many candidates are enough?"""

from __future__ import annotations

from tamis.topk.candidate_limits import candidate_limit
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Scale, Tell
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.sizes import SIGMA

judged = Judge("topk", "limits")

KS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
PUBLISHED = {
    1_000: (17, 20, 25, 31, 39, 54, 70, 88, 103),
    2_000: (18, 21, 26, 32, 41, 57, 75, 99, 135),
    5_000: (20, 22, 28, 34, 43, 61, 80, 107, 157),
    10_000: (21, 24, 29, 36, 45, 63, 84, 112, 167),
    20_000: (22, 25, 30, 37, 46, 65, 86, 116, 175),
    50_000: (23, 26, 32, 39, 48, 68, 90, 121, 183),
    100_000: (24, 27, 33, 40, 50, 70, 92, 124, 188),
    200_000: (25, 28, 34, 41, 51, 72, 95, 128, 193),
    500_000: (26, 29, 36, 43, 53, 74, 98, 132, 199),
    1_000_000: (27, 31, 37, 44, 55, 76, 100, 135, 203),
}


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Compute the published table of limits again."""
    rows = [
        {"n": n, "k": k, "published": published, "limit": candidate_limit(k, n, SIGMA)}
        for n, limits in PUBLISHED.items()
        for k, published in zip(KS, limits, strict=True)
    ]
    claims = (judged("table", [row["limit"] == row["published"] for row in rows]),)
    lines = tuple(
        Curve(f"k = {k}", tuple(PUBLISHED), tuple(row["limit"] for row in rows if row["k"] == k)) for k in KS[::2]
    )
    plot = Plot("Candidates kept behind the best k", "events in the window (n)", "candidates", lines, is_log_x=True)
    return Result(f"An error of {SIGMA} for an event.", claims, (plot,), tuple(rows))


EXPERIMENT = Experiment("limits", "How many candidates are enough?", "Pripužić 2010, section 3.4.1", run)
