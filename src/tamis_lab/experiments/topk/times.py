"""How long does an event take, by algorithm and k?"""

from __future__ import annotations

import numpy as np

from tamis_lab.experiments import verdicts
from tamis_lab.experiments.base import Curve, Experiment, Plot, Result, Row, Scale, Tell
from tamis_lab.experiments.measuring import undisturbed
from tamis_lab.experiments.statements import Judge
from tamis_lab.experiments.topk.playing import VARIANTS, checked, exact, play, ranking_of
from tamis_lab.experiments.topk.sizes import sizes_of

judged = Judge("topk", "times")

GROUPS = {
    "strict": ("SA", "SASF", "RASF"),
    "relaxed": ("RA", "SARF", "RARF"),
    "probabilistic": ("PA", "SAPF", "RAPF"),
}
"""By what looks at every event: the ranking where there is no filter, else the filter."""


def run(scale: Scale, seed: int, tell: Tell) -> Result:
    """Time all nine algorithms over k, without scores and without an index."""
    sizes = sizes_of(scale)
    keys = np.random.default_rng(seed + 1).random(sizes.count)
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    rows: list[Row] = []
    with undisturbed():
        for k in sizes.ks:
            expected = exact(keys, k, sizes.n)
            for name in VARIANTS:
                tell(f"{name}, k = {k}")
                passes = range(scale.passes)
                played = [play(ranking_of(name, k, sizes.n, sizes.buffer), keys, sizes.n) for _ in passes]
                best = min(played, key=lambda each: each.event_s)
                if name != "PA":
                    checked(name, best, expected)
                times[name].append(best.event_s * 1e6)
                rows.append({"k": k, "algorithm": name, "event_us": best.event_s * 1e6})
    last = {group: verdicts.geometric_mean([times[name][-1] for name in names]) for group, names in GROUPS.items()}
    at = f"k = {sizes.ks[-1]}"
    claims = (
        judged("order", last),
        judged("relaxed-faster", times["SA"][-1] / times["RA"][-1], at=at),
        judged(
            "probabilistic-fastest",
            [times["PA"][place] == min(each[place] for each in times.values()) for place in range(len(sizes.ks))],
        ),
        judged("alike-for-every-k", {f"k = {k}": time for k, time in zip(sizes.ks, times["PA"], strict=True)}),
    )
    lines = tuple(Curve(name, sizes.ks, tuple(times[name])) for name in VARIANTS)
    plot = Plot("Time for an event and a subscription", "k", "microseconds", lines, is_log_x=True, is_log_y=True)
    setup = f"{sizes.count:,} events in random order, windows of {sizes.n:,}; one subscription, scores given."
    return Result(setup, claims, (plot,), tuple(rows))


EXPERIMENT = Experiment(
    "times", "How long does an event take, by algorithm and k?", "Pripužić 2010, section 3.8, figure 3.13", run
)
